"""Kinetic energies given by the caller: bodies described by T, rotors, gyroscopic terms, systems without bodies."""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from hypothesis import given

import pfaffian as pf
from pfaffian import control
from pfaffian.terms.equations_digest import digest
from tests.identities.test_connection import weightless
from tests.oracles.test_formulations import affordable
from tests.random_mechanisms import Case, matrices, moving, trees
from tests.tolerance import ALGEBRA, DERIVATIVE, INTEGRATED, close

QUICK = {"backend": "interpreter", "step": 1e-3}


def body_energy(b: pf.Body):
    """T of a body from its data and its twist."""

    def T(k):
        R, w = k.rotation(b.name), k.twist(b.name)[3:]
        v = R.T @ k.velocity(b.name, b.com)
        return (b.mass * ca.sumsqr(v) + ca.dot(w, b.inertia @ w)) / 2

    return pf.forces.kinetic_energy(f"T {b.name}", T)


def described_by_energies(m: pf.Mechanism) -> pf.Mechanism:
    """The same mechanism, in which every second moving body has no mass, but a kinetic energy."""
    replaced = set(moving(m)[::2])
    bodies = [pf.body(b.name) if b.name in replaced else b for b in m.bodies]
    return m.with_(bodies=bodies, forces=[*m.forces, *(body_energy(b) for b in m.bodies if b.name in replaced)])


@given(trees(most=3))
def test_bodies_described_by_their_energy(drawn):
    case = weightless(drawn)
    quantities = {"M": lambda T: T.M, "c": lambda T: T.c, "T": lambda T: T.T, "rnea": lambda T: T.inertia_force(T.v)}
    quantities |= {"C v": lambda T: T.C @ T.v, "C": lambda T: T.C + T.C.T}
    one = matrices(case, quantities)
    two = matrices(Case(described_by_energies(case.m), case.q, case.v, case.u, 0.0), quantities)
    size = np.abs(one["M"]).max() * (1 + np.abs(case.v).sum()) ** 2
    for name in quantities:
        close(two[name], one[name], DERIVATIVE, name, size)


def chain() -> Case:
    random = np.random.default_rng(4)
    return weightless((random, ["revolute", "spherical", "prismatic"], [-1, 0, 0]))


def test_every_formulation():
    case = chain()
    names = affordable(case.m)
    known = matrices(case, {n: lambda T, n=n: pf.FORMULATIONS[n](T).v_dot for n in names})
    by_energies = Case(described_by_energies(case.m), case.q, case.v, case.u, 0.0)
    with pytest.raises(
        pf.ModelError,
        match=r"inertia besides that of its bodies.*, which the formulation 'articulated'",
    ):
        matrices(by_energies, {"x": lambda T: pf.FORMULATIONS["articulated"](T).v_dot})
    names = [n for n in names if n not in ("articulated", "quasi-velocity-innovations")]
    found = matrices(by_energies, {n: lambda T, n=n: pf.FORMULATIONS[n](T).v_dot for n in names})
    for n in names:
        close(found[n], known["gauss"], 1e-10, n)


def test_motion_and_linearised_motion():
    case = chain()
    by_energies = described_by_energies(case.m)
    one, *others = (
        pf.run(m, case.q, case.v, duration=0.05, **QUICK) for m in (case.m, by_energies, pf.reduction.hamiltonian(by_energies))
    )
    for two in others:
        close(two["q"].values, one["q"].values, INTEGRATED, "motion")
        close(two["energy"].values, one["energy"].values, INTEGRATED, "energy")
    still = np.zeros(case.m.nv)
    A, B = (pf.linearise(m, case.q, still).A for m in (case.m, by_energies))
    close(B, A, 1e-10, "linearised")


def bare(T, nq=2, *forces) -> pf.Mechanism:
    names = list("xyz"[:nq])
    coordinate_set = pf.coordinates("r", names, names, lambda q: ca.SX.eye(nq), q_units="m")
    return pf.mechanism("bare", [], [], coordinates=[coordinate_set], forces=[pf.forces.kinetic_energy("T", T), *forces])


def test_a_charge_in_a_field():
    """T = |v|^2 / 2 + (x vy - y vx): a circle, at twice the field over the mass; the linear term contributes no energy."""
    m = bare(lambda k: ca.sumsqr(k.v) / 2 + k.q[0] * k.v[1] - k.q[1] * k.v[0])
    for system in (m, pf.reduction.hamiltonian(m)):
        r = pf.run(system, [0, 0], [1, 0], duration=1.0, every=10, **QUICK)
        t = r["time"].values
        close(r["q"].values, np.column_stack([np.sin(2 * t), np.cos(2 * t) - 1]) / 2, INTEGRATED, "circle")
        close(r["energy"].values, np.full_like(t, 0.5), INTEGRATED, "energy")
    close(pf.bias_force(m, [0.3, 0.1], [1, 2]), [-4, 2], ALGEBRA, "skew in v")


def test_a_growing_mass_and_a_potential_in_T0():
    m = bare(lambda k: (1 + k.t) * k.v[0] ** 2 / 2, 1)
    r = pf.run(m, [0], [1], duration=1.0, every=10, **QUICK)
    close(r["v"].values[:, 0], 1 / (1 + r["time"].values), INTEGRATED, "constant momentum")
    assert pf.mass_matrix(m, t=2.0).tolist() == [[3]] and pf.energy(m, None, [1.0], t=2.0).kinetic == 1.5
    close(pf.bias_force(m, None, [2.0], t=1.0), [2.0], ALGEBRA, "dM/dt v")
    turning = bare(lambda k: (k.v[0] ** 2 + 9 * k.q[0] ** 2) / 2, 1)  # a bead on a rod that turns at 3 rad/s
    r = pf.run(turning, [1], [0], duration=0.5, every=10, **QUICK)
    close(r["q"].values[:, 0], np.cosh(3 * r["time"].values), INTEGRATED, "bead")
    close(r["energy"].values, np.full(r.sizes["time"], -4.5), INTEGRATED, "Jacobi's integral")


def test_a_rotor_given_by_its_energy_equals_armature():
    """It acts within a joint: the reactions of the bodies are those with armature."""
    case = chain()
    alone = [replace(j, armature=0 * j.armature) for j in case.m.joints]
    known = case.m.with_(joints=[replace(j, armature=0 * j.armature + 0.3) if j.name == "j2" else j for j in alone])
    by_energies = case.m.with_(
        joints=alone, forces=[pf.forces.kinetic_energy("rotor", lambda k: 0.15 * k.joint_rate("j2") ** 2)]
    )
    names = [j.name for j in known.joints]
    one, two = (pf.reaction_wrench(m, names, case.q, case.v) for m in (known, by_energies))
    for n in names:
        close(two[n].wrench, one[n].wrench, 1e-10, f"wrench of {n}", 10.0)


def test_constraints_and_inputs():
    """A bead that has only T, on a circle given by a row and by coordinates with phi = 0."""
    weight = pf.forces.potential("V", lambda k: 9.81 * k.q[1])
    free = bare(lambda k: ca.sumsqr(k.v) / 2, 2, weight).with_(constraints=[pf.holonomic("c", lambda k: ca.sumsqr(k.q) - 1)])
    on = pf.coordinates("r", ["x", "y"], ["w"], lambda q: ca.vertcat(-q[1], q[0]), phi=lambda q: ca.sumsqr(q) - 1, start=(1, 0))
    T = pf.forces.kinetic_energy("T", lambda k: ca.sumsqr(k.q_dot) / 2)
    on_circle = pf.mechanism("held", [], [], coordinates=[on], forces=[T, weight], actuators=[pf.actuator("motor", "r")])
    one, two = pf.run(free, [1, 0], duration=0.5, **QUICK), pf.run(on_circle, [1, 0], duration=0.5, **QUICK)
    close(two["q"].values, one["q"].values, 1e-9, "a pendulum in two descriptions")
    aim = control.computed_torque(lambda k: k.q[1], control.set_point([0.3]), stiffness=400, damping=40)
    r = pf.run(on_circle, [1, 0], duration=0.2, control=aim, every=10, **QUICK)
    t = r["time"].values
    close(r["q"].values[:, 1], 0.3 * (1 - (1 + 20 * t) * np.exp(-20 * t)), 1e-7, "error dynamics of the law")
    close(pf.inverse_dynamics(on_circle, [0.6, 0.8], {}, [2.0]).u, [2 + 9.81 * 0.6], ALGEBRA, "motor")


def test_digests_and_texts():
    def made(c, name="T"):
        return pf.mechanism("m", [], [], coordinates=[pf.coordinates("r", ["x"], ["x"], lambda q: ca.SX.eye(1))],
                            forces=[pf.forces.kinetic_energy(name, lambda k: c * k.v[0] ** 2)])  # fmt: skip

    assert digest(made(1)) == digest(made(1)) != digest(made(2))
    assert repr(made(1).forces[0]) == "<KineticEnergy 'T': a lambda>"


def test_parameters():
    mass = pf.Parameter("mass", 2.0, "kg")
    coordinate_set = pf.coordinates("r", ["x"], ["x"], lambda q: ca.SX.eye(1), q_units="m")
    T = pf.forces.kinetic_energy("T", lambda k: mass * (1 + k.q[0] ** 2) * k.v[0] ** 2 / 2)
    m = pf.mechanism("m", [], [], coordinates=[coordinate_set], forces=[T], parameters=[mass])
    assert pf.mass_matrix(m, [1.0]).tolist() == [[4]] and pf.mass_matrix(m, [1.0], parameters={"mass": 3.0}).tolist() == [[6]]
    assert pf.bias_force(m, [1.0], [2.0], parameters={"mass": [1.0, 2.0]}).tolist() == [[4], [8]]
    with pytest.raises(pf.ModelError, match="moves no body that has a mass"):
        pf.mass_centre(m)


def test_wrong_kinetic_energies_are_refused():
    for T, message in (
        (lambda k: k.v[0] ** 3, "force 'T': T must be quadratic in v"),
        (lambda k: ca.norm_2(k.v), "must be quadratic"),
        (lambda k: ca.fabs(k.v[0]) + k.v[1] ** 2, "must be quadratic"),
        (lambda k: k.v, "must return one number"),
        (lambda k: k.joint("nothing"), "no joint or coordinates 'nothing'"),
        (lambda k: None, "its function returns nothing"),
    ):
        with pytest.raises(pf.ModelError, match=message):
            pf.mass_matrix(bare(T))
    with pytest.raises(pf.ModelError, match="T must be a function of the kinematics"):
        pf.forces.kinetic_energy("T", 3)
    with pytest.raises(pf.ModelError, match=r"velocity 'r\.y' moves no inertia"):
        pf.run(bare(lambda k: k.v[0] ** 2), duration=0.01, **QUICK)
