"""Bicopter and quadcopter: inputs, feasible references, matching force in closed form. [konz25 4.8.3, 4.8.4]"""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import pfaffian as pf
from pfaffian import control
from pfaffian.control.prototype import APPROACHES
from pfaffian.maths import so3
from tests.control.test_placement import quadcopter
from tests.control.test_prototype import PLANAR as PLANE
from tests.control.test_prototype import pvtol
from tests.refused import refusals
from tests.tolerance import close

G = 9.81
BICOPTER = {"mass": 1.3, "inertia": (0.015, 0.008, 0.018), "arm": 0.25, "height": 0.05, "lean": 0.3}
POLES = [-8, -8, -8 * np.exp(0.4j), -8 * np.exp(-0.4j)]
HEADING = (5.0, 0.8)
EXACT = 1e-12
"""Rounding of a few hundred operations."""


def bicopter(**changes) -> pf.Mechanism:
    return pf.multicopters.bicopter("bicopter", **BICOPTER | changes)


def effect(m: pf.Mechanism) -> np.ndarray:
    return pf.compile_terms(m, {"B": lambda T: T.B}, backend="numpy", lanes=1)(m.neutral(), np.zeros(m.nv))["B"]


def test_effect_of_the_propellers():
    """Input matrix [konz25 (4.150)], and the motions that no input produces: eps_x and eps_y."""
    s, c, l, h = np.sin(0.3), np.cos(0.3), 0.25, 0.05
    side = l * c - h * s
    B = np.array([[1, 0, 1, 0], [0, s, 0, -s], [0, c, 0, c], [0, side, 0, -side], [h, 0, h, 0], [-l, 0, l, 0]])
    close(effect(bicopter()), B, EXACT, "B")
    x, y = pf.multicopters.bicopter_coupling_length(**BICOPTER)
    close([x, y], [-0.008 / (1.3 * h), 0.015 * s / (1.3 * side)], EXACT, "eps")
    M = np.diag([1.3, 1.3, 1.3, 0.015, 0.008, 0.018])
    acceleration = np.linalg.solve(M, B)
    close(acceleration[0], -x * acceleration[4], EXACT, "sideways along x with a turn about y")
    close(acceleration[1], y * acceleration[3], EXACT, "sideways along y with a turn about x")


def test_the_thrust_polygon_is_within_reach_of_the_propellers():
    """The polygon's corners lie on the edges of the sector of a ring, so that it is as large as its chords allow."""
    least, most, tilt, chords = 2.0, 14.0, np.radians(30), 4
    W, l = pf.multicopters.thrust_polygon(least, most, tilt, chords=chords)
    random = np.random.default_rng(1)
    u = random.uniform((-10, -1), (10, 15), size=(100_000, 2))
    inside = (u @ W.T <= l).all(axis=1)
    F, theta = np.hypot(*u.T), np.arctan2(*u.T)
    given = (F - least >= 0) & (F - most <= 0) & (np.abs(theta) <= tilt)
    assert not (inside & ~given).any()
    assert 0.96 < inside.sum() / given.sum() < 0.99
    at = np.linspace(-tilt, tilt, chords + 1)
    corners = [*(most * np.stack([np.sin(at), np.cos(at)], 1)), (least * np.tan(tilt), least), (-least * np.tan(tilt), least)]
    slack = l - np.array(corners) @ W.T
    assert slack.min() > -1e-13
    assert ((slack < 1e-13).sum(axis=1) == 2).all()
    two, twice = pf.multicopters.thrust_polygon(least, most, tilt, propellers=2, chords=chords)
    close(two @ np.r_[1.0, 2.0, 3.0, 4.0], np.r_[W @ [1.0, 2.0], W @ [3.0, 4.0]], EXACT, "of two")
    close(twice, np.r_[l, l], EXACT, "of two")


WRONG = {
    "no least": (lambda: pf.multicopters.thrust_polygon(-1.0, 14.0, 0.5), "least must not be below zero"),
    "a tilt of ninety degrees": (lambda: pf.multicopters.thrust_polygon(1.0, 14.0, np.pi / 2), "tilt between 0 and pi/2"),
    "nothing left": (lambda: pf.multicopters.thrust_polygon(13.9, 14.0, 0.5, chords=1), "no input is left .* use more chords"),
    "half a chord": (lambda: pf.multicopters.thrust_polygon(1.0, 14.0, 0.5, chords=1.5), "whole numbers above zero"),
    "no height": (
        lambda: pf.multicopters.bicopter_coupling_length(**BICOPTER | {"height": 0.0}),
        "height and l'y = .* not zero",
    ),
    "inertia of one": (lambda: pf.multicopters.bicopter_coupling_length(**BICOPTER | {"inertia": 0.1}), "inertia"),
    "a path of three": (lambda: control.bicopter_reference(lambda t: [t, t, t]).at(ca.SX.sym("t"), ca.SX(0, 1)), "2 numbers"),
}


test_wrong_bicopters_are_named = refusals(WRONG)


# -- references: Bp^T (M v_R_dot + b) = 0, the zero-error matching force [konz25 (4.60)] -----------------------------------


def two_masses() -> pf.Mechanism:
    bodies = [pf.body("a", 1.0), pf.body("b", 2.0)]
    joints = [pf.joint(n, "prismatic", "world", n, axis=(1, 0, 0)) for n in ("a", "b")]
    spring = pf.forces.potential("spring", lambda s: 5.0 / 2 * (s.q[0] - s.q[1]) ** 2)
    return pf.mechanism("two", bodies, joints, gravity=(0, 0, 0), actuators=[pf.actuator("F", "a")], forces=[spring])


def wave(t):
    return [0.8 * ca.sin(2.1 * t), 1.5 * ca.cos(1.7 * t)]


def round_about(t):
    return [ca.sin(t), 0.5 * ca.cos(1.3 * t), 0.2 * t + 0.1 * ca.sin(2 * t)]


def circle(t):
    """A vertical circle, upside down at its top."""
    return [1.6 * ca.sin(np.pi * t), 1.6 * (1 - ca.cos(np.pi * t))]


LEAN = pf.multicopters.bicopter_coupling_length(**BICOPTER)
FLAT = {
    "two masses": (
        two_masses(),
        control.function_of_time(lambda t: [(1 - 1.3**2 * 2.0 / 5.0) * ca.sin(1.3 * t), ca.sin(1.3 * t)], 2),
        control.function_of_time(lambda t: [(1 + 1.3**2 * 2.0 / 5.0) * ca.sin(1.3 * t), ca.sin(1.3 * t)], 2),
    ),
    "PVTOL": (
        pvtol(),
        control.pvtol_reference(wave, coupling_length=0.05),
        control.pvtol_reference(wave, coupling_length=-0.05),
    ),
    "quadcopter": (
        quadcopter(),
        control.quadcopter_reference(round_about, lambda t: 0.3 + 0.5 * ca.sin(t)),
        control.quadcopter_reference(round_about, gravity=9.0),
    ),
    "bicopter": (bicopter(), control.bicopter_reference(circle, coupling_length=LEAN[1]), control.bicopter_reference(circle)),
}


@pytest.mark.parametrize("name", FLAT)
def test_a_flat_reference_leaves_no_matching_force(name):
    """A reference for another machine leaves one, and the error names the motion that lacks an input."""
    m, feasible, other = FLAT[name]
    u = control.check_reference(m, feasible, 2.0)
    assert u.shape == (500, m.nu)
    with pytest.raises(pf.ModelError, match=r"at t = .* s the reference requires .* along .* that no input gives"):
        control.check_reference(m, other, 2.0)


def test_the_inputs_of_a_reference_are_those_of_a_flight_along_it():
    m, reference, _ = FLAT["bicopter"]
    u = control.check_reference(m, reference, 1.0, limits=pf.multicopters.thrust_polygon(2.0, 22.0, 0.5, propellers=2))
    start = reference.at(ca.SX(0.0), ca.SX(0, 1))
    q, rate = (np.array(ca.DM(ca.evalf(x))).ravel() for x in (start.value, start.rate))
    law = control.prototype_tracking([control.quadcopter_pair("body", POLES, heading=HEADING, coupling_length=LEAN)], reference)
    r = pf.run(m, q, np.r_[rate[:3], 2 * rate[3:6]], duration=1.0, step=1 / 499, control=law)
    close(r.u.values, u, 1e-6, "u")


def test_a_reference_on_constraints_is_checked_with_their_reactions():
    """A bead on a turning rod that is driven about the pivot: the rod's reaction supplies the force that no input gives."""
    bodies = [pf.body("rod", 1.0, inertia=0.1), pf.body("bead", 0.5, inertia=0.01)]
    joints = [pf.joint("turn", "revolute", "world", "rod"), pf.joint("bead", "planar", "world", "bead")]
    end = pf.holonomic("held", lambda k: (k.position("bead") - k.position("rod", (0.4, 0, 0)))[:2])
    motors = [pf.actuator("drive", "turn")]
    m = pf.mechanism("rod", bodies, joints, constraints=[end], actuators=motors, gravity=(0, 0, 0))

    def along(a, r=0.4, spin=0.0):
        return [a, r * ca.cos(a), r * ca.sin(a), spin]

    angle = lambda t: 0.5 * ca.sin(2 * t)  # noqa: E731
    u = control.check_reference(m, control.function_of_time(lambda t: along(angle(t)), 4), 1.0)
    t = np.linspace(0, 1, 500)
    close(u.ravel(), (0.1 + 0.5 * 0.4**2) * -2 * np.sin(2 * t), 1e-9, "moment")
    for wrong, words in ((along(0.3, 0.5), "off the constraints by 0.0955: held"), (None, "along bead.* that no input gives")):
        reference = control.function_of_time(lambda t, x=wrong: x or along(angle(t), spin=t**2), 4)
        with pytest.raises(pf.ModelError, match=words):
            control.check_reference(m, reference, 1.0)


def test_the_reference_of_a_skate_must_not_slip():
    edge = pf.rolling.knife_edge("skate", "b", (1, 0, 0))
    m = PLANE.with_(constraints=[edge])
    turning = control.function_of_time(lambda t: [ca.sin(t), 1 - ca.cos(t), t], 3)
    control.check_reference(m, turning, 1.0)
    with pytest.raises(pf.ModelError, match=r"t = 0 s the reference is off the constraints by 0.1[0-9]*: skate"):
        control.check_reference(m, control.function_of_time(lambda t: [t, 0, 0.3], 3), 1.0)


QUAD, BI, CIRCLE = quadcopter(), FLAT["bicopter"][0], FLAT["bicopter"][1]
FALLING = control.quadcopter_reference(lambda t: [0, 0, -G / 6 * t**3])
MISSED = {
    "free fall": (
        lambda: control.check_reference(QUAD, FALLING, 2.0, begin=-1.0),
        "t = 1 s the reference is no number: .* free",
    ),
    "a domain": (
        lambda: control.check_reference(PLANE, control.function_of_time(lambda t: [ca.sqrt(0.5 - t), 0, 0], 3), 1.0),
        r"t = 0\.501 s the reference is no number",
    ),
    "a quaternion": (
        lambda: control.check_reference(QUAD, control.function_of_time(lambda t: [0, 0, 0, 0, 0, 0, 1 + t], 7), 1.0),
        "leaves the configurations, by .*w",
    ),
    "limits": (
        lambda: control.check_reference(BI, CIRCLE, 2.0, limits=pf.multicopters.thrust_polygon(2.0, 9.0, 0.5, propellers=2)),
        r"beyond the limits, row 4 of W u <= l by .* of up 1",
    ),
    "inputs": (lambda: control.check_reference(QUAD, control.sampled(QUAD.q_names), 1.0), "without inputs of the run"),
    "free fall for ever": (
        lambda: control.check_reference(QUAD, control.quadcopter_reference(lambda t: [0, 0, -G / 2 * t**2]), 1.0),
        "quadcopter_reference: free fall",
    ),
    "free fall in a plane": (
        lambda: control.check_reference(BI, control.bicopter_reference(lambda t: [t, -G / 2 * t**2]), 1.0),
        "bicopter_reference: free fall",
    ),
    "of another size": (lambda: control.check_reference(QUAD, control.set_point([0.0]), 1.0), "the configuration of .* 7"),
}


test_infeasible_references_are_named = refusals(MISSED)


# -- matching force about a set point [konz25 (4.149), (4.155), corrected] --------------------------------------------------


def forces(m: pf.Mechanism, law: control.Control, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Matching forces and accelerations at states (n, nq), (n, nv)."""
    h = 1e-6
    outputs = {"v_dot": pf.of_motion(lambda T, motion: motion.v_dot)}
    r = pf.run(m, q, v, duration=h, step=h, control=law, outputs=outputs, record=["matching_force"])
    return r.matching_force.values[:, 0], r.v_dot.values[:, 0]


def random_states(n: int, seed: int = 2) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    return np.hstack([random.normal(size=(n, 3)), Rotation.random(n, random).as_quat()]), 2 * random.normal(size=(n, 6))


def expected(q, v, lean, inertia, placed, Theta_z, Pi_z, m, quaternion=(0, 0, 0, 1.0)) -> np.ndarray:
    """btilde for a constant reference: (4.155) of studies/errata.md; with eps = 0 a quadcopter's, (4.149) of the same page."""
    (ex, ey), (x, y, z) = lean, inertia
    a, h = m * (placed.h - placed.s), placed.h
    there = Rotation.from_quat(quaternion).as_matrix()
    made = []
    for at, w in zip(q[:, 3:], v[:, 3:], strict=True):
        E = there.T @ Rotation.from_quat(at).as_matrix()
        b1 = (Theta_z - a * ((x - z) / y * ex - ey)) * w[0] * w[2] - Pi_z / 2 * (E[0, 2] + E[2, 0])
        b2 = (Theta_z - a * ((y - z) / x * ey - ex)) * w[1] * w[2] - Pi_z / 2 * (E[1, 2] + E[2, 1])
        made.append([b1 / (h - ex), b2 / (h - ey), 0, -ey * b2 / (h - ey), ex * b1 / (h - ex), 0])
    return np.array(made)


MACHINES = {
    "quadcopter": (quadcopter(), (0.0, 0.0), (0.015, 0.018, 0.03)),
    "bicopter": (bicopter(), LEAN, (0.015, 0.008, 0.018)),
}
MASS, SHARE = 0.7, 0.3


@pytest.mark.parametrize("approach", APPROACHES)
@pytest.mark.parametrize("name", MACHINES)
def test_the_matching_force_about_a_set_point(name, approach):
    m, lean, inertia = MACHINES[name]
    placed = control.hover_placement(POLES, coupling_length=lean[1], mass=MASS)
    pair = control.quadcopter_pair(
        "body" if name == "bicopter" else "b", POLES, heading=HEADING, coupling_length=lean, inertia_ratio=SHARE, mass=MASS
    )
    goal = Rotation.from_rotvec([0, 0, 0.7]).as_quat()
    law = control.prototype_tracking([pair], control.set_point([0.2, -0.1, 0.3, *goal]), approach=approach)
    q, v = random_states(6)
    found, _ = forces(m, law, q, v)
    Theta_z = SHARE * placed.inertia
    btilde = expected(q, v, lean, inertia, placed, Theta_z, Theta_z * HEADING[0] ** 2, MASS, goal)
    close(found, btilde, 1e-10, "btilde")
    assert np.abs(btilde).max() > 0.1


@pytest.mark.parametrize("approach", APPROACHES)
def test_a_quadcopter_matches_in_steady_flight_as_at_a_set_point(approach):
    placed = control.hover_placement(POLES, mass=MASS)
    pair = control.quadcopter_pair("b", POLES, heading=HEADING, inertia_ratio=SHARE, mass=MASS)
    reference = control.function_of_time(lambda t: [0.7 * t, -t, 0.4 * t, 0, 0, 0, 1], 7)
    q, v = random_states(6, 3)
    found, _ = forces(quadcopter(), control.prototype_tracking([pair], reference, approach=approach), q, v)
    Theta_z = SHARE * placed.inertia
    close(found, expected(q, v, (0, 0), (1, 1, 1), placed, Theta_z, Theta_z * 25.0, MASS), 1e-10, "btilde")


def test_a_bicopter_has_its_poles_in_both_planes():
    """Tilt about x has the placed poles; tilt about y those of the other eps, (4.140), with the same h and s."""
    m, lean = bicopter(), LEAN
    placed = control.hover_placement(POLES, coupling_length=lean[1])
    pair = control.quadcopter_pair("body", POLES, heading=HEADING, coupling_length=lean)
    law = control.prototype_tracking([pair], control.set_point(m.neutral()))
    found = np.poly(pf.linearise(m, m.neutral(), np.zeros(6), control=law).eigenvalues).real
    k, d, arm = placed.stiffness, placed.damping, placed.s - lean[0]
    other = [1, d * (placed.h - lean[0]) / arm, (k * (placed.h - lean[0]) + G) / arm, d * G / arm, k * G / arm]
    heave, heading = [1, d, k], [1, 2 * HEADING[1] * HEADING[0], HEADING[0] ** 2]
    product = np.polymul(np.polymul(np.poly(POLES).real, other), np.polymul(heave, heading))
    close(found, product, 1e-8, "characteristic polynomial")


def test_the_matching_force_is_of_second_order():
    """An error ten times smaller leaves about a hundredth of the matching force. [konz25 (4.147), (4.154)]"""
    random = np.random.default_rng(5)
    for name, (m, lean, _) in MACHINES.items():
        body = "body" if name == "bicopter" else "b"
        law = control.prototype_tracking([control.quadcopter_pair(body, POLES, heading=HEADING, coupling_length=lean)],
                                         control.set_point(m.neutral()))  # fmt: skip
        e, v = random.normal(size=(2, 6))
        sizes = []
        for small in (1e-2, 1e-3):
            q = np.r_[small * e[:3], np.array(ca.DM(so3.quat_exp(ca.DM(small * e[3:])))).ravel()]
            sizes.append(np.abs(forces(m, law, np.stack([q, q]), small * np.stack([v, v]))[0]).max())
        assert 0 < sizes[1] < 0.011 * sizes[0], name


def test_a_bicopter_without_lean_becomes_a_quadcopter():
    """With beta = 0 and propellers so high that eps_x vanishes, the motion approaches that of the quadcopter."""
    pair = control.quadcopter_pair("b", POLES, heading=HEADING, inertia_ratio=SHARE)
    goal = control.set_point([0, 0, 0, 0, 0, 0, 1.0])
    q, v = random_states(4, 6)
    _, limit = forces(quadcopter(), control.prototype_tracking([pair], goal), q, v)
    off = []
    for height in (50.0, 500.0):
        same = {**BICOPTER, "mass": 1.2, "inertia": (0.015, 0.018, 0.03), "lean": 0.0, "height": height}
        lean = pf.multicopters.bicopter_coupling_length(**same)
        tilted = control.quadcopter_pair("body", POLES, heading=HEADING, inertia_ratio=SHARE, coupling_length=lean)
        _, found = forces(pf.multicopters.bicopter("b", **same), control.prototype_tracking([tilted], goal), q, v)
        off.append(np.abs(found - limit).max() / np.abs(limit).max())
    assert off[0] < 1e-1
    close(off[1] / off[0], 0.1, 0.05, "ten times the height, a tenth of the difference")
