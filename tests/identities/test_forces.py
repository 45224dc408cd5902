"""Springs, wrenches and inputs against formulas that share no code with theirs."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from hypothesis import given

import pfaffian as pf
from pfaffian.terms.recursions import gravity_energy
from tests.identities.test_inertia import drawn_case
from tests.random_mechanisms import Case, matrices, random_body, random_pose, random_tree, trees
from tests.tolerance import ALGEBRA, CENTRAL, DERIVATIVE, close


def undamped(m: pf.Mechanism) -> pf.Mechanism:
    """The mechanism with springs and weight only, without dampers, wrenches and inputs."""
    springs = [type(f)(**{**vars(f), "damping": ca.SX(0)}) for f in m.forces if hasattr(f, "stiffness")]
    joints = [type(j)(**{**vars(j), "damping": 0 * j.damping}) for j in m.joints]
    return m.with_(joints=joints, forces=springs, actuators=[])


def slope(T: pf.Terms, x: ca.SX) -> ca.SX:
    """(nv, 1) derivative of a function of the configuration along the velocities."""
    return (ca.jacobian(x, T.q) @ T.kinematics.kinematic_matrix).T


@given(trees())
def test_springs_are_minus_the_slope_of_their_energy(drawn):
    case = drawn_case(drawn)
    m = undamped(case.m)
    r = matrices(Case(m, case.q, case.v, np.zeros(0), 0.0), {
        "f": lambda T: T.f,
        "slope": lambda T: slope(T, T.V - gravity_energy(T.kinematics, m.gravity)),
    })  # fmt: skip
    close(r["f"], -r["slope"], DERIVATIVE, "forces are minus the slope of the potential", 10 + np.abs(r["slope"]).max())


def test_springs_by_central_differences():
    random = np.random.default_rng(3)
    m = random_tree(random, ["revolute", "prismatic", "revolute"], [-1, 0, 1])
    s = pf.spring("s", "b0", "b2", point_a=(0.1, 0.2, 0.3), point_b=(-0.3, 0.1, 0), stiffness=30.0, rest=0.4)
    m = undamped(m.with_(forces=[s]))
    at = pf.compile_terms(m, {"f": lambda T: T.f, "c": lambda T: T.c, "V": lambda T: T.V}, backend="numpy", lanes=1)
    q, h = random.normal(size=3), 1e-5
    expected = [(at(q + h * e)["V"] - at(q - h * e)["V"]) / (2 * h) for e in np.eye(3)]
    r = at(q)
    close(r["c"] - r["f"], np.array(expected), CENTRAL, "weight and springs are minus the slope of V")


def test_spring_without_rest_length():
    """The pull is -k (p_b - p_a) on b and the opposite on a, the energy k l^2 / 2. Where the points coincide both are zero,
    not NaN."""
    random = np.random.default_rng(11)
    m = random_tree(random, ["free", "spherical"], [-1, 0])
    ends = {"point_a": (0.1, 0.2, 0.3), "point_b": (-0.3, 0.1, 0.0)}

    def between(x):
        return x("b1", ends["point_b"]) - x("b0", ends["point_a"])

    s = pf.spring("s", "b0", "b1", **ends, stiffness=7.0)
    plain, sprung = undamped(m), undamped(m.with_(forces=[s]))
    q, v = pf.random_configuration(m, random), random.normal(size=m.nv)
    parts = {"f": lambda T: T.f, "V": lambda T: T.V}
    one, two = (matrices(Case(x, q, v, np.zeros(0), 0.0), parts) for x in (plain, sprung))
    known = matrices(Case(plain, q, v, np.zeros(0), 0.0), {
        "line": lambda T: between(T.kinematics.position),
        "J": lambda T: ca.jacobian(between(T.kinematics.velocity), T.v),
    })  # fmt: skip
    line = known["line"].ravel()
    close(two["f"] - one["f"], -7.0 * known["J"].T @ known["line"], ALGEBRA, "pull of the spring", 1 + 7.0 * np.abs(line).max())
    close(two["V"] - one["V"], [[3.5 * line @ line]], ALGEBRA, "energy of the spring", 1 + np.abs(two["V"]).max())
    end = {"p": lambda T: T.kinematics.position("b1", ends["point_b"])}
    there = matrices(Case(plain, q, v, np.zeros(0), 0.0), end)["p"].ravel()
    coincident = pf.spring("met", "world", "b1", point_a=there, point_b=ends["point_b"], stiffness=7.0)
    slack = matrices(Case(undamped(m.with_(forces=[coincident])), q, v, np.zeros(0), 0.0), parts)
    close(slack["f"], one["f"], ALGEBRA, "no pull where the points meet", 1.0)
    close(slack["V"], one["V"], ALGEBRA, "nor energy", 1.0)


@pytest.mark.parametrize("axes", ["LOCAL", "WORLD"])
@pytest.mark.parametrize("fixed", [True, False])
def test_wrench_is_the_transposed_motion_of_its_point(axes, fixed):
    random = np.random.default_rng(4)
    m = random_tree(random, ["free", "revolute", "spherical"], [-1, 0, 1])
    value, point = random.normal(size=6), random.normal(size=3)
    w = pf.wrench("w", "b2", point=point, axes=axes, value=value if fixed else None)
    plain = Case(m, pf.random_configuration(m, random), np.zeros(m.nv), np.zeros(0), 0.0)
    pushed = Case(m.with_(forces=[w]), plain.q, plain.v, np.zeros(0) if fixed else value, 0.0)
    turn = {"R": lambda T: T.kinematics.rotation("b2"),
            "velocity": lambda T: ca.jacobian(T.kinematics.velocity("b2", point), T.v),
            "spin": lambda T: ca.jacobian(T.kinematics.twist("b2", "WORLD")[3:], T.v)}  # fmt: skip
    k = matrices(plain, turn)
    R = k["R"] if axes == "LOCAL" else np.eye(3)
    expected = k["velocity"].T @ R @ value[:3] + k["spin"].T @ R @ value[3:]
    applied = {"f": lambda T: T.generalised_input}
    found = matrices(pushed, applied)["f"] - matrices(plain, applied)["f"]
    assert pushed.m.u_names == (() if fixed else tuple(f"w.{c}" for c in ("fx", "fy", "fz", "nx", "ny", "nz")))
    close(found.ravel(), expected, ALGEBRA, f"wrench along {axes} axes")


def test_gears_components_and_order_of_inputs():
    random = np.random.default_rng(5)
    m = random_tree(random, ["planar", "revolute"], [-1, 0])
    motors = [pf.actuator("second", "j1", gear=3.0), pf.actuator("turn", "j0", component=2, gear=-0.5)]
    m = m.with_(actuators=motors, forces=[pf.wrench("w", "b1")])
    B = matrices(Case(m, m.neutral(), np.zeros(4), np.zeros(8), 0.0), {"B": lambda T: T.B})["B"]
    assert m.u_names[:3] == ("second", "turn", "w.fx")
    assert B[:, 0].tolist() == [0, 0, 0, 3.0]
    assert B[:, 1].tolist() == [0, 0, -0.5, 0]
    assert B[:, 2:].any()


def test_armature_only_adds_to_the_diagonal():
    random = np.random.default_rng(6)
    body, place = random_body(random, "b"), random_pose(random)
    link = [pf.joint("j", "spherical", "world", "b", placement=place, armature=x) for x in (0.0, 0.25)]
    M = []
    for j in link:
        m = pf.mechanism("m", [body], [j])
        q = pf.random_configuration(m, np.random.default_rng(1))
        M.append(matrices(Case(m, q, np.zeros(3), np.zeros(0), 0.0), {"M": lambda T: T.M})["M"])
    close(M[1] - M[0], 0.25 * np.eye(3), ALGEBRA, "armature")


def test_lumped_bodies_equal_one_body():
    """Bodies on fixed joints move as one: M and c equal those of a body with the combined mass, mass centre and inertia."""
    random = np.random.default_rng(7)
    m = random_tree(random, ["revolute", "spherical"], [-1, 0])
    plate, place = random_body(random, "plate"), random_pose(random)
    bolted = m.with_(bodies=[*m.bodies, plate], joints=[*m.joints, pf.joint("bolt", "fixed", "b0", "plate", placement=place)])
    R, p = m.value(place.R), m.value(place.p).ravel()
    b0 = m.body("b0")
    masses = [m.value(x.mass).item() for x in (b0, plate)]
    coms = [m.value(b0.com).ravel(), R @ m.value(plate.com).ravel() + p]
    inertias = [m.value(b0.inertia), R @ m.value(plate.inertia) @ R.T]
    com = sum(k * c for k, c in zip(masses, coms, strict=True)) / sum(masses)
    I = sum(J + k * ((c - com) @ (c - com) * np.eye(3) - np.outer(c - com, c - com))
            for J, k, c in zip(inertias, masses, coms, strict=True))  # fmt: skip
    whole = m.with_(bodies=[pf.body("b0", sum(masses), com, ((I + I.T) / 2).tolist()), m.body("b1")])
    q, v = pf.random_configuration(m, random), random.normal(size=m.nv)
    parts = {"M": lambda T: T.M, "c": lambda T: T.c, "V": lambda T: T.V, "T": lambda T: T.T}
    one, two = (matrices(Case(x, q, v, np.zeros(0), 0.0), parts) for x in (whole, bolted))
    for name in parts:
        close(two[name], one[name], ALGEBRA, f"{name} of lumped bodies")
