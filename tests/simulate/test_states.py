"""A system in another state than [q; v] is the same machine: Hamilton's state, chosen velocities, a reduction by momentum."""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from pfaffian.terms.momentum import momentum_rate, moving, transport, weight
from pfaffian.terms.terms import random_configuration
from tests.by_scipy import run_adaptive
from tests.graph_twin import graph_twin
from tests.random_mechanisms import random_forces, random_tree
from tests.simulate.machines import FOUR_BAR_START, ball_and_plane, flying_pair, four_bar, pendulum, velocity
from tests.tolerance import ALGEBRA, DERIVATIVE, SATISFIED, close

KEEP = {"duration": 0.1, "step": 1e-3, "every": 10, "backend": "interpreter"}
SAME = 1e-9
"""Difference between two states of one machine after 0.1 s of RK4 at 1 ms: both have errors of order h^4."""


def on_constraints(m, q=None, v=None):
    there = pf.assemble(m, q, velocity(m) if v is None else v)
    return there.q, there.v


def spun(m):
    """Velocities such as a caller may choose, far from orthogonal."""
    mixed = np.random.default_rng(3).normal(size=(m.nv, m.nv)) / m.nv
    return pf.velocities(lambda k: ca.SX.eye(m.nv) + mixed * ca.sin(k.q[0] + 0.3), [f"y{i}" for i in range(m.nv)])


def chosen(m):
    return pf.reduction.chosen_velocities(m, spun(m))


STATES = {"Hamilton's": pf.reduction.hamiltonian, "chosen velocities": chosen}
MACHINES = {
    "pendulum": (pendulum(), None, {"pivot": 2.0}),
    "ball and plane": (ball_and_plane(), None, None),
    "flying pair": (flying_pair(), None, None),
    "four-bar": (four_bar(), FOUR_BAR_START, {"a": 1.0}),
}


def on_slides(kind: str, tied: bool = True):
    """Bodies on a first joint that slides, under forces of all kinds; if `tied`, a constraint ties the last body to a
    moving position."""
    random = np.random.default_rng(5)
    m = random_forces(random, random_tree(random, [kind, "revolute", "spherical"], [-1, 0, 1])).with_(gravity=(1.0, 2.0, -9.0))
    first = replace(m.joints[0], armature=0 * m.joints[0].armature)
    rail = pf.holonomic("rail", lambda k: k.position(m.bodies[-1].name)[0] - 0.1 * ca.sin(k.t))
    return m.with_(joints=(first, *m.joints[1:]), constraints=(rail,) if tied else ()), None, velocity(m)


SLIDING = ("free", "tube", "flying")
MACHINES |= {"free tied": on_slides("free"), "tube pushed": on_slides("cylindrical", False)}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("machine", MACHINES)
def test_the_motion_equals_that_of_q_and_v(machine, state):
    m, q, v = MACHINES[machine]
    if state == "Hamilton's":
        assert (pf.reduction.hamiltonian(m).parts[-1].name == "centred_momentum") == machine.startswith(SLIDING)
    q, v = on_constraints(m, q, v)
    plain, other = pf.run(m, q, v, **KEEP), pf.run(STATES[state](m), q, v, **KEEP)
    assert other.status == 0 and plain.attrs["state"] == "[q; v]" != other.attrs["state"]
    for name in ("q", "v", "energy"):
        close(other[name], plain[name], SAME, f"{name} of {machine} in {state} state")
    if m.ideal:
        assert float(other.violation.max()) < SATISFIED and float(other.velocity_violation.max()) < SATISFIED
        close(other.reaction, plain.reaction, 1e2 * SAME, "reaction")


TREES = {
    "chain": (["revolute", "prismatic", "spherical", "revolute"], [-1, 0, 1, 2]),
    "free": (["free", "spherical", "revolute"], [-1, 0, 1]),
    "planar": (["planar", "revolute", "planar"], [-1, 0, 0]),
}


@pytest.mark.parametrize("tree", TREES)
def test_momenta_change_as_the_product_rule_says(tree):
    """Hamel's and Hamilton's form, without M_dot and bias force, against d/dt (M v) = M_dot v + M v_dot, which has both."""
    random = np.random.default_rng(7)
    m = random_forces(random, random_tree(random, *TREES[tree]))
    compare_momentum_rates(m, random)
    # In these velocities rotors spin at rates that are functions of q.
    compare_momentum_rates(m.with_(velocities=spun(m)), random)
    bare = [replace(j, armature=0 * j.armature, stiffness=0 * j.stiffness) for j in m.joints]
    compare_momentum_rates(graph_twin(m.with_(joints=bare)).m, random)


def compare_momentum_rates(m, random):
    T = pf.symbols(m)
    motion = pf.FORMULATIONS["gauss"](T)
    by_hamel = momentum_rate(T) + motion.reaction
    by_product = ca.jtimes(T.M @ T.v, T.q, T.kinematics.q_dot) + T.M @ motion.v_dot
    back = moving(T, T.M @ T.v)
    from_momenta = transport(T, back.h) + weight(T.kinematics) + T.generalised_input + motion.reaction
    f = ca.Function("all", [T.q, T.v, T.u, T.t, m.p_symbols], [by_hamel, from_momenta, by_product, back.v])
    q, v = random_configuration(m, random), random.normal(size=m.nv)
    found, again, expected, v_again = (np.array(x) for x in f(q, v, random.normal(size=m.nu), 0.3, m.p_defaults))
    scale = np.abs(expected).max() + 1
    close(found, expected, 1e3 * DERIVATIVE, "p_dot", scale=scale)
    close(again, expected, 1e3 * DERIVATIVE, "p_dot from momenta", scale=scale)
    close(v_again.ravel(), v, 1e3 * ALGEBRA, "M^-1 M v")


def test_the_state_is_in_the_result():
    m = flying_pair()
    q, v = on_constraints(m)
    r = pf.run(pf.reduction.hamiltonian(m), q, v, **KEEP)
    M = pf.mass_matrix(m, r.q.values)
    close(r.momentum, np.einsum("tij,tj->ti", M, r.v.values), 1e3 * ALGEBRA, "p = M v")
    assert list(r.momentum_entry.values) == list(m.v_names) and list(r.momentum_unit.values[[0, 3]]) == ["N s", "N m s"]
    lean = pf.run(pf.reduction.hamiltonian(m), q, v, record=["q", "momentum"], **KEEP)
    assert "v" not in lean and np.array_equal(lean.momentum, r.momentum)


def test_hamiltons_state_is_as_good_far_away_and_at_any_speed():
    """A satellite with an arm at 7.5 km/s, 7000 km from the origin, turns as it does at rest."""
    bodies = [
        pf.body("hub", 100.0, com=(0.1, 0.2, -0.1), inertia=(10, 20, 25)),
        pf.body("arm", 5.0, com=(0.3, 0, 0), inertia=0.2),
    ]
    joints = [pf.joint("f", "free", "world", "hub"), pf.joint("h", "revolute", "hub", "arm", axis=(0, 1, 0))]
    m, ends = pf.mechanism("satellite", bodies, joints, gravity=(0, 0, 0)), []
    for far, speed in ((0, 0), (7e6, 7500)):
        v = {"f.vx": 0.6 * speed, "f.vy": 0.8 * speed, "f.wx": 1.2, "f.wy": 0.9, "f.wz": -0.7, "h": 2.0}
        ends.append(pf.run(pf.reduction.hamiltonian(m), {"f.x": far}, v, duration=0.5, every=500))
    close(ends[1].q[-1, 3:], ends[0].q[-1, 3:], 1e3 * ALGEBRA, "attitude and joint")
    start, end = ends[1].centred_momentum.values[[0, -1], :3]
    assert np.array_equal(start, end) and np.linalg.norm(start) > 7e5


def test_bits_are_equal_by_numpy_and_c(tmp_path):
    m = ball_and_plane()
    q, v = on_constraints(m)
    qs, vs = np.array([q] * 5), np.array([v] * 5) * np.linspace(0.5, 1, 5)[:, None]
    keep = KEEP | {"record": ["q", "v", "momentum"]}
    plain, fast = (pf.run(pf.reduction.hamiltonian(m), qs, vs, **keep | {"backend": b}) for b in ("numpy", "c"))
    for name in keep["record"]:
        assert np.array_equal(plain[name], fast[name]), name
    pf.results.write_netcdf(plain, tmp_path / "r.nc")
    assert pf.results.read_netcdf(tmp_path / "r.nc").equals(plain)


@pytest.mark.parametrize("state", STATES)
def test_laws_inputs_and_parameters_are_the_mechanisms(state):
    """A law that integrates, a force and a parameter all act as in [q; v]."""
    length = pf.Parameter("length", 0.8, "m")
    m = pf.mechanism(
        "arm",
        [pf.body("b", 1.0, com=(0.5 * length, 0, 0), inertia=0.1), pf.body("c", 0.5, com=(0.2, 0, 0), inertia=0.05)],
        [
            pf.joint("A", "revolute", "world", "b", axis=(0, 1, 0)),
            pf.joint("B", "revolute", "b", "c", axis=(0, 1, 0), placement=(length, 0, 0)),
        ],
        forces=[pf.wrench("push", "c")],
        actuators=[pf.actuator("mA", "A"), pf.actuator("mB", "B")],
        parameters=[length],
    )

    def integrating(terms, z, w, y):
        off = terms.q - w
        return control.Command(u=ca.vertcat(-4 * off - terms.v - z, ca.SX(6, 1)), z_dot=off)

    law = control.Control(integrating, z=(0.0, 0.0), w_names=("A*", "B*"))
    keep = KEEP | {"control": law, "u": {"A*": 0.4, "B*": -0.2, "push.fz": 2.0}, "parameters": {"length": 0.9}}
    plain, other = pf.run(m, {"A": 0.1}, **keep), pf.run(STATES[state](m), {"A": 0.1}, **keep)
    for name in ("q", "v", "u"):
        close(other[name], plain[name], SAME, name)


def test_an_adaptive_run_takes_a_system():
    m = flying_pair()
    q, v = on_constraints(m)
    ends = [run_adaptive(s, q, v, times=[0, 0.3], tolerance=1e-12) for s in (m, pf.reduction.hamiltonian(m), chosen(m))]
    for other in ends[1:]:
        close(other.q, ends[0].q, SAME, "q")
        close(other.v, ends[0].v, SAME, "v")


def test_a_singular_start_is_left_along_its_branch():
    """Two equal cranks and a coupler as long as the ground, all in line: the first step needs the lost rows."""
    bodies = [pf.body(n, 1.0, com=(l / 2, 0, 0), inertia=0.1) for n, l in {"crank": 1.0, "coupler": 2.0, "rocker": 1.0}.items()]
    joints = [
        pf.joint("a", "revolute", "world", "crank", axis=(0, 1, 0)),
        pf.joint("b", "revolute", "crank", "coupler", axis=(0, 1, 0), placement=(1, 0, 0)),
        pf.joint("d", "revolute", "world", "rocker", axis=(0, 1, 0), placement=(2, 0, 0)),
    ]
    close_it = pf.closure("c", "revolute", "coupler", "rocker", axis=(0, 1, 0), placement_a=(2, 0, 0), placement_b=(1, 0, 0))
    m = pf.mechanism("parallelogram", bodies, joints, constraints=[close_it])
    v = {"a": 3.0, "b": -3.0, "d": 3.0}
    plain, other = pf.run(m, {}, v, **KEEP), pf.run(pf.reduction.hamiltonian(m), {}, v, **KEEP)
    assert plain.entrance == other.entrance == 1
    close(other.q, plain.q, 1e3 * SAME, "q")
    # The energy is constant, so the first step was not taken without the rows.
    close(other.energy, np.full(len(other.time), float(other.energy[0])), 1e-6, "energy")
