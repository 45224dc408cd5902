"""Singularity measures of parallel machines against closed forms: five-bar, 3-RRR, Stewart platform."""

from __future__ import annotations

import numpy as np

import pfaffian as pf
from pfaffian.constraints import singularities
from studies.stewart_platform import CORNERS, FEET, HEIGHT, LEGS
from studies.stewart_platform import mechanism as stewart
from tests.refused import refusals
from tests.tolerance import close

AXIS = (0, 1, 0)
HIT = 1e-6
"""A state on its constraints to 1e-9 is within the square root of that of a fold."""


def rod(name: str, l: float) -> pf.Body:
    return pf.body(name, 1.0, com=(l / 2, 0, 0), inertia=0.1)


def hinge(name: str, a: str, b: str, at=(0, 0, 0)) -> pf.Joint:
    return pf.joint(name, "revolute", a, b, axis=AXIS, placement=at)


def turned(angle: float, r) -> np.ndarray:
    """(x, z) of a vector turned about y."""
    return np.array([np.cos(angle) * r[0] + np.sin(angle) * r[1], -np.sin(angle) * r[0] + np.cos(angle) * r[1]])


E = np.array([[0.0, 1.0], [-1.0, 0.0]])
"""Velocity (x, z) of a point at r by a unit rate about y."""

# -- the five-bar -------------------------------------------------------------------------------------------------------

BASE, CRANK, COUPLER = 0.8, 0.5, 0.7


def five_bar() -> pf.Mechanism:
    bodies = [rod("a", CRANK), rod("b", COUPLER), rod("d", CRANK), rod("e", COUPLER)]
    joints = [hinge("A", "world", "a"), hinge("B", "a", "b", (CRANK, 0, 0)), hinge("D", "world", "d", (BASE, 0, 0)),
              hinge("E", "d", "e", (CRANK, 0, 0))]  # fmt: skip
    tip = pf.closure("C", "revolute", "b", "e", axis=AXIS, placement_a=(COUPLER, 0, 0), placement_b=(COUPLER, 0, 0))
    motors = [pf.actuator("left", "A"), pf.actuator("right", "D")]
    return pf.mechanism("five-bar", bodies, joints, constraints=[tip], actuators=motors)


def of_five_bar(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows u_i P_dot = (u_i E r_i) theta_i_dot: the coefficients of both sides."""
    cranks = [turned(q[0], (CRANK, 0)), turned(q[2], (CRANK, 0))]
    u = [turned(q[0] + q[1], (COUPLER, 0)), turned(q[2] + q[3], (COUPLER, 0))]
    return np.array(u), np.diag([u[i] @ E @ cranks[i] for i in (0, 1)])


def measured(m, q, **more):
    return singularities(m, q, "b", point=(COUPLER, 0, 0), turning=False, length=1.0, **more)


def test_a_five_bar_agrees_with_its_jacobian():
    m = five_bar()
    q = pf.assemble(m, {"A": -1.9, "D": -1.2}).q
    found = measured(m, q)
    of_tip, of_cranks = of_five_bar(q)
    close(found.jacobian[[0, 2]], np.linalg.solve(of_tip, of_cranks), 1e-8, "Jacobian")
    assert found.mobility == 2 and found.rank == 2 and min(found.input, found.output, found.constraint) > 0.05


def test_singular_configurations_of_a_five_bar():
    """Type 2 where the couplers lie in one line, type 1 where a crank and its coupler do."""
    m, sideways = five_bar(), -np.arccos((BASE / 2 - COUPLER) / CRANK)
    flat = pf.assemble(m, [sideways, -sideways, -np.pi - sideways, np.pi + (np.pi + sideways) - 2 * np.pi]).q
    found = measured(m, flat)
    assert found.input < HIT < 0.1 < found.output and np.isnan(found.jacobian).all()
    stretched = pf.assemble(m, [-1.0, 0.0, -0.5, -1.5], hold=["A", "B"]).q
    found = measured(m, stretched)
    assert found.output < HIT < 0.1 < found.input and found.constraint > 0.1


def test_machines_with_one_motion_and_with_one_row():
    """A lever, and two slides that a rod couples: columns and rows of length one remain columns and rows."""
    y = {"kind": "revolute", "axis": (0, 1, 0)}
    lever = pf.mechanism("lever", [pf.body("lever", 1.0)], [pf.joint("hinge", parent="world", child="lever", **y)])
    found = singularities(lever, [0.3], "lever", length=1.0, inputs=["hinge"], point=(2.0, 0, 0))
    close(found.jacobian.ravel(), [-2 * np.sin(0.3), 0, -2 * np.cos(0.3), 0, 1, 0], 1e-12, "Jacobian of a lever")
    assert (found.mobility, found.rank) == (1, 0)
    bodies = [pf.body(n, 1.0) for n in "ab"]
    slides = [pf.joint(n, "prismatic", "world", n, axis=axis) for n, axis in (("a", (1, 0, 0)), ("b", (0, 1, 0)))]
    rod = pf.closure("rod", "distance", "a", "b", length=5.0)
    found = singularities(pf.mechanism("ladder", bodies, slides, constraints=[rod]), [3.0, 4.0], "b", length=1.0, inputs=["a"])
    close(found.jacobian.ravel(), [0, -3 / 4, 0, 0, 0, 0], 1e-12, "Jacobian of a ladder")
    assert (found.mobility, found.rank) == (1, 1)


def test_rows_that_lose_rank_add_a_motion():
    """A parallelogram has 1 motion, and 2 where it lies flat."""
    bodies = [rod("a", 0.5), rod("b", 1.0), rod("c", 0.5)]
    joints = [hinge("A", "world", "a"), hinge("B", "a", "b", (0.5, 0, 0)), hinge("C", "b", "c", (1.0, 0, 0))]
    foot = pf.closure("D", "revolute", "world", "c", axis=AXIS, placement_a=(1.0, 0, 0), placement_b=(0.5, 0, 0))
    m = pf.mechanism("parallelogram", bodies, joints, constraints=[foot])
    flat = singularities(m, [0.0, 0.0, np.pi], "b", inputs=["A"], length=1.0)
    assert flat.mobility == 2 and flat.constraint < HIT and flat.rank == 1 and flat.input == 0.0
    up = singularities(m, [-1.0, 1.0, np.pi - 1.0], "b", inputs=["A"], length=1.0)
    assert up.mobility == 1 and up.constraint > 0.05 and up.rank == 2
    close(up.jacobian[3:, 0], np.zeros(3), 1e-9, "the coupler only slides", 1)
    assert (
        flat.constraint < singularities(m, [-0.1, 0.1, np.pi - 0.1], "b", inputs=["A"], length=1.0).constraint < up.constraint
    )


# -- 3-RRR ----------------------------------------------------------------------------------------------------------------

FOOT, PLATE, ARM = 1.0, 0.3, 0.6
ANGLES = np.pi / 2 + np.arange(3) * 2 * np.pi / 3
CORNER = PLATE * np.column_stack([np.cos(ANGLES), np.sin(ANGLES)])


def planar_platform() -> pf.Mechanism:
    """A platform on a planar joint and three legs of two arms each."""
    slide = [
        pf.joint(n, "prismatic", a, b, axis=axis)
        for n, a, b, axis in (("x", "world", "s", (1, 0, 0)), ("z", "s", "p", (0, 0, 1)))
    ]
    bodies = [pf.body("s", 0.1), pf.body("p", 0.1), pf.body("plate", 1.0, inertia=0.1)]
    joints, ends = [*slide, hinge("turn", "p", "plate")], []
    for i, angle in enumerate(ANGLES):
        bodies += [rod(f"u{i}", ARM), rod(f"l{i}", ARM)]
        foot = (FOOT * np.cos(angle), 0, FOOT * np.sin(angle))
        joints += [hinge(f"A{i}", "world", f"u{i}", foot), hinge(f"B{i}", f"u{i}", f"l{i}", (ARM, 0, 0))]
        ends.append(pf.closure(f"C{i}", "revolute", f"l{i}", "plate", axis=AXIS, placement_a=(ARM, 0, 0),
                               placement_b=(CORNER[i, 0], 0, CORNER[i, 1])))  # fmt: skip
    return pf.mechanism("3-RRR", bodies, joints, constraints=ends)


def of_planar_platform(m, q, length) -> tuple[np.ndarray, np.ndarray]:
    at = dict(zip(m.q_names, q, strict=True))
    left, right = np.zeros((3, 3)), np.zeros((3, 3))
    for i in range(3):
        arm, lower = turned(at[f"A{i}"], (ARM, 0)), turned(at[f"A{i}"] + at[f"B{i}"], (ARM, 0))
        left[i] = [*lower, lower @ E @ turned(at["turn"], CORNER[i]) / length]
        right[i, i] = lower @ E @ arm
    return left, right


def test_a_planar_platform_agrees_with_its_jacobian():
    m, inputs = planar_platform(), ["A0", "A1", "A2"]
    q = pf.assemble(m, {"x": 0.08, "z": -0.05, "turn": 0.3}).q
    found = singularities(m, q, "plate", inputs=inputs, length=PLATE)
    left, right = of_planar_platform(m, q, PLATE)
    close(found.jacobian[[0, 2, 4]], np.linalg.solve(left, right), 1e-7, "Jacobian")
    close(found.jacobian[[1, 3, 5]], np.zeros((3, 3)), 1e-9, "in its plane", 1)
    assert found.mobility == 3 and found.input > 0.01


# -- Stewart ------------------------------------------------------------------------------------------------------------


def test_a_stewart_platform_agrees_with_its_leg_jacobian():
    """l_dot = u (v + w x c), u along the leg, c from the platform's origin to its joint."""
    m = stewart()
    q = pf.assemble(m, {"platform.x": 0.1, "platform.y": -0.05, "platform.z": 0.02}).q
    at = pf.forward_kinematics(m, q)["platform"]
    found = singularities(m, q, "platform", length=0.35)
    arms = CORNERS @ np.array(at.rotation).T
    legs = arms + at.position - FEET
    u = legs / np.linalg.norm(legs, axis=1)[:, None]
    close(np.linalg.inv(found.jacobian), np.hstack([u, np.cross(arms, u) / 0.35]), 1e-7, "leg Jacobian")
    assert found.mobility == 6 and list(m.u_names) == list(LEGS) and HEIGHT > 0


def test_a_stewart_platform_turned_by_a_right_angle_is_singular():
    """With all legs locked a motion of its platform remains free. [ider (17)]"""
    m, half = stewart(), np.sqrt(0.5)
    turn = {f"platform.q{n}": x for n, x in zip("xyzw", (0, 0, half, half), strict=True)}
    near = {f"platform.q{n}": x for n, x in zip("xyzw", (0, 0, np.sin(0.6), np.cos(0.6)), strict=True)}
    at = [singularities(m, pf.assemble(m, x).q, "platform", length=0.35) for x in (turn, near)]
    assert at[0].input < HIT < 0.01 < at[1].input


# -- wrong arguments ----------------------------------------------------------------------------------------------------

M = five_bar()
AT = pf.assemble(M, {"A": -1.9, "D": -1.2}).q
WRONG = {
    "no length": (lambda: singularities(M, AT, "b", length=0.0), "length must be above zero"),
    "a length of nan": (lambda: singularities(M, AT, "b", length=np.nan), "nan|above zero"),
    "an unknown body": (lambda: singularities(M, AT, "f", length=1.0), "there is no body 'f'"),
    "an unknown input": (lambda: singularities(M, AT, "b", length=1.0, inputs=["X"]), "inputs: there is no velocity 'X'"),
    "no inputs": (lambda: singularities(M.with_(actuators=[]), AT, "b", length=1.0), "name the driven velocities"),
    "a batch": (lambda: singularities(M, np.array([AT, AT]), "b", length=1.0), "one state at a time"),
    "off the constraints": (lambda: singularities(M, AT + 0.1 * np.arange(4), "b", length=1.0), "off the constraints"),
    "a word for turning": (lambda: singularities(M, AT, "b", length=1.0, turning="no"), "^turning(?! x)"),
    "a name as machine": (lambda: singularities("M", AT, "b", length=1.0), "a Mechanism is needed"),
    "a point of two": (lambda: singularities(M, AT, "b", length=1.0, point=(0, 0)), "point"),
}


test_wrong_arguments_are_named = refusals(WRONG)
