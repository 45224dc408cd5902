"""A wrong model is refused with a message that names the wrong element and the way out."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian.constraints import acceleration_constraint
from tests.refused import refusals

BODIES = [pf.body("arm", 1.0, (0.5, 0, 0), 0.1), pf.body("hand", 0.5, inertia=0.05)]
JOINTS = [
    pf.joint("turn", "revolute", "world", "arm"),
    pf.joint("ball", "spherical", "arm", "hand", placement=pf.pose((1, 0, 0))),
]


def made(**parts) -> pf.Mechanism:
    return pf.mechanism("m", **({"bodies": BODIES, "joints": JOINTS} | parts))


def test_neutral_sets_only_quaternions_to_one():
    """A hinge may have a name that ends like the last entry of a quaternion."""
    joints = [pf.joint("arm.qw", "revolute", "world", "arm"), pf.joint("ball", "spherical", "arm", "hand")]
    assert made(joints=joints).neutral().tolist() == [0, 0, 0, 0, 1]


def rows(constraint) -> None:
    """Trace the rows of the constraint, because only then are they checked."""
    pf.compile_terms(made(constraints=[constraint]), {"A": lambda T: T.A}, backend="numpy", lanes=1)


STRANGER = ca.SX.sym("x")
LOOSE = pf.Parameter("length", 1.0)
WRONG = {
    "phi of velocities": (
        lambda: rows(pf.holonomic("c", lambda k: k.v[0])), r"'c': phi depends on velocities; use nonholonomic"),
    "eta without velocity": (lambda: rows(pf.nonholonomic("c", lambda k: k.q[0])), r"'c': eta has no velocity in it"),
    "no pair": (
        lambda: rows(acceleration_constraint("c", lambda k: [[1.0]])), r"'c': its function must return a pair \(Z, z\)"),
    "rows and right sides": (
        lambda: rows(acceleration_constraint("c", lambda k: ([1, 1], 0))), r"'c': Z 2 x 1 and z 1 given; a row"),
    "no acceleration in a row": (
        lambda: rows(acceleration_constraint("c", lambda k: (ca.SX(1, k.v.numel()), k.v[0]))),
        r"'c': row 0 of Z has no entry"),
    "unlisted symbol of Z": (
        lambda: rows(acceleration_constraint("c", lambda k: (k.v.T * STRANGER, 0))), r"'c': Z uses symbols.*parameters"),
    "no rows": (lambda: rows(pf.holonomic("c", lambda k: ca.SX(0, 1))), r"'c' gives no rows"),
    "unlisted symbol of phi": (
        lambda: rows(pf.holonomic("c", lambda k: k.joint("turn") - STRANGER)), r"'c' uses symbols.*list them as parameters"),
    "unlisted parameter of phi": (
        lambda: rows(pf.holonomic("c", lambda k: k.joint("turn") - LOOSE)), r"'c' uses symbols.*list them as parameters"),
    "unlisted symbol of eta": (
        lambda: rows(pf.nonholonomic("c", lambda k: k.v[0] - STRANGER)), r"'c' uses symbols.*list them as parameters"),
    "unlisted parameter of a body": (
        lambda: made(bodies=[pf.body("arm", LOOSE), BODIES[1]]), r"body 'arm': mass uses a Parameter that is not among"),
    "unlisted parameter of gravity": (lambda: made(gravity=(0, 0, -9.81 * LOOSE)), r"gravity uses a Parameter"),
    "unlisted parameter of a servo": (
        lambda: made(constraints=[pf.servo(pf.holonomic("c", lambda k: k.q[0]), ["m"], stiffness=LOOSE)],
                     actuators=[pf.actuator("m", "turn")]), r"constraint 'c': stiffness uses a Parameter"),
    "both ends on one body": (
        lambda: made(constraints=[pf.closure("c", "weld", "arm", "arm")]), r"'c': both ends are on 'arm'"),
    "closure without a body": (
        lambda: made(constraints=[pf.closure("c", "weld", "arm", "leg")]), r"'c': there is no body 'leg'"),
    "spring without a body": (lambda: made(forces=[pf.spring("s", "leg", "arm")]), r"force 's': there is no body 'leg'"),
    "wrench without a body": (lambda: made(forces=[pf.wrench("w", "leg")]), r"force 'w': there is no body 'leg'"),
    "component too high": (
        lambda: made(actuators=[pf.actuator("a", "ball", component=3)]),
        r"'a': joint 'ball' has 3 velocities, none numbered 3"),
    "component below zero": (
        lambda: made(actuators=[pf.actuator("a", "turn", component=-1)]),
        r"'a': joint 'turn' has 1 velocities, none numbered -1"),
    "actuator without a joint": (lambda: made(actuators=[pf.actuator("a", "wrist")]), r"'a': there is no joint 'wrist'"),
    "reversed limits": (
        lambda: made(actuators=[pf.actuator("a", "turn", limits=(1, -1))]),
        r"'a': limits \(1.0, -1.0\) are the wrong way round"),
    "limit that is no number": (
        lambda: made(actuators=[pf.actuator("a", "turn", limits=(0, np.nan))]), r"'a': limits .* are the wrong way round"),
    "servo without input": (
        lambda: made(constraints=[pf.servo(pf.holonomic("c", lambda k: k.q[0]), ["motor"])]),
        r"'c': there is no input 'motor'"),
    "too few directions": (
        lambda: pf.compile_terms(made(constraints=[pf.servo(pf.holonomic("c", lambda k: k.q[:2]), ["m"])],
                                      actuators=[pf.actuator("m", "turn")]), {"Z": lambda T: T.servo.Z}),
        r"'c' has 2 rows but 1 directions; give one force per row"),
    "a name used twice": (lambda: made(bodies=[BODIES[0], BODIES[0]]), r"bodies: the name 'arm' is used 2 times"),
    "no name": (lambda: made(actuators=[pf.actuator("", "turn")]), r"actuators: '' is not a name"),
    "too long a name": (lambda: made(actuators=[pf.actuator("x" * 129, "turn")]), r"is not a name; use 1 to 128"),
    "nothing moves": (
        lambda: pf.mechanism("m", BODIES[:1], [pf.joint("j", "fixed", "world", "arm")]), r"'m' has no joint that moves"),
    "no such body": (lambda: made(joints=[JOINTS[0], pf.joint("j", "revolute", "arm", "leg")]), r"'j': there is no body 'leg'"),
    "world as a child": (
        lambda: made(joints=[*JOINTS, pf.joint("j", "revolute", "arm", "world")]), r"'j': the world cannot be a child"),
    "two joints to a body": (
        lambda: made(joints=[*JOINTS, pf.joint("j", "revolute", "world", "hand")]), r"'j': body 'hand' has a joint already"),
    "parents after children": (lambda: made(joints=JOINTS[::-1]), r"'ball': its parent 'arm' comes later or is in a cycle"),
    "body without joint": (lambda: made(joints=JOINTS[:1]), r"body 'hand' has no joint or edge that leads to it; use kind"),
    "no mass": (
        lambda: made(bodies=[BODIES[0], pf.body("hand")]), r"joint 'ball' moves no mass at all; give 'hand' a mass"),
    "mass below zero": (lambda: made(bodies=[pf.body("arm", -1.0), BODIES[1]]), r"body 'arm': the mass is negative"),
    "not finite at the defaults": (
        lambda: made(bodies=[pf.body("arm", 1.0, (1 / ZERO, 0, 0)), BODIES[1]], parameters=[ZERO]),
        r"body 'arm': com is not finite at the parameters' default values"),
}  # fmt: skip
ZERO = pf.Parameter("zero", 0.0)


test_a_wrong_model_is_named = refusals(WRONG)


def test_valid_parts_are_accepted():
    """Cases at the bounds: the last component, equal limits, a closure to the world, a symbol of a listed parameter."""
    x = pf.Parameter("x", 0.2)
    m = made(
        actuators=[pf.actuator("a", "ball", component=2), pf.actuator("b", "turn", limits=(1, 1))],
        constraints=[pf.holonomic("c", lambda k: k.joint("turn") - x.symbol), pf.closure("w", "spherical", "world", "hand")],
        parameters=[x],
    )
    assert m.u_names == ("a", "b")
    assert pf.formats.unphysical(m) == {}


def test_lenient_accepts_unphysical_bodies():
    heavy = pf.body("arm", 1.0, inertia=(1.0, 1.0, 3.0))
    with pytest.raises(pf.ModelError, match="body 'arm'"):
        made(bodies=[heavy, BODIES[1]])
    assert set(pf.formats.unphysical(made(bodies=[heavy, BODIES[1]], lenient=True))) == {"arm"}


@pytest.mark.parametrize("com", [0.0, 3.0], ids=["at the frame", "far from it"])
@pytest.mark.parametrize("moments, why", [
    (lambda x: (1, 1, 2 + x), "break the triangle inequality"),
    (lambda x: (-x, 1, 1), "moment of inertia about the centre of mass is negative"),
    (lambda x: (1, 1 + x, 1.5), None),
])  # fmt: skip
def test_parameters_that_make_a_body_barely_unphysical_are_refused(moments, why, com):
    """1e-6 beyond the bound of a physical body is refused; rounding errors are accepted."""
    x = pf.Parameter("x", -0.1)
    body = pf.body("arm", 0.1, com=(com, 0, 0), inertia=moments(x.symbol))
    m = made(bodies=[body, BODIES[1]], parameters=[x])
    keep = {"duration": 1e-2, "step": 1e-2, "backend": "interpreter"}
    if why is None:
        assert pf.run(m, parameters={"x": 1e-6}, **keep).status == 0
        return
    assert (pf.run(m, parameters={"x": [-0.2, -1e-6, 0.0, 1e-13]}, **keep).status == 0).all()
    with pytest.raises(pf.ModelError, match=rf"body 'arm' in run 2 \(x = 1e-06\): .*{why}"):
        pf.run(m, parameters={"x": [-0.2, 0.0, 1e-6]}, **keep)


ELSEWHERE = ca.SX.sym("z")
UNKNOWN = {
    "body 'a': mass": lambda: {"bodies": [pf.body("a", ELSEWHERE)]},
    "joint 'x': damping": lambda: {"joints": [pf.joint("x", "prismatic", "world", "a", damping=ELSEWHERE)]},
    "force 's': stiffness": lambda: {"forces": [pf.spring("s", "a", "world", stiffness=ELSEWHERE)]},
    "actuator 'u': gear": lambda: {"actuators": [pf.actuator("u", "x", gear=ELSEWHERE)]},
    "constraint 'c': number": lambda: {"constraints": [pf.closure("c", "distance", "a", "world", length=ELSEWHERE)]},
    "gravity": lambda: {"gravity": (0, 0, ELSEWHERE)},
}


@pytest.mark.parametrize("what", UNKNOWN)
def test_an_unlisted_parameter_is_named_by_the_argument_that_uses_it(what):
    parts = {"bodies": [pf.body("a", 1.0)], "joints": [pf.joint("x", "prismatic", "world", "a")]} | UNKNOWN[what]()
    with pytest.raises(pf.ModelError, match=f"^{what} uses a Parameter that is not among"):
        pf.mechanism("m", **parts)


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
def test_symmetry_is_relative_to_the_largest_entry(size):
    """Rounding is accepted and a real difference refused, whatever the unit."""
    I = size * np.array([[2.0, 0.3, 0.1], [0.3, 3.0, 0.2], [0.1, 0.2, 4.0]])
    rounded, lopsided = I.copy(), I.copy()
    rounded[0, 1] += 1e-13 * size
    lopsided[0, 1] += 1e-11 * size
    assert pf.body("b", 1.0, inertia=rounded).name == "b"
    with pytest.raises(pf.ModelError, match="symmetric"):
        pf.body("b", 1.0, inertia=lopsided)


def test_an_array_of_one_entry_is_a_number():
    load = pf.Parameter("load", 2.0, "kg")
    slide = pf.joint("x", "prismatic", "world", "b", axis=(1, 0, 0))
    for mass in (np.array([2.0]), np.array([[2.0]]), np.array([load], dtype=object)):
        m = pf.mechanism("box", [pf.body("b", mass)], [slide], parameters=[load])
        assert pf.mass_matrix(m).item() == 2.0


def test_a_constant_expression_that_is_not_finite_is_named():
    hinge, endless = pf.joint("hinge", "revolute", "world", "b"), ca.SX(np.diag([1.0, np.inf, 1.0]))
    with pytest.raises(pf.ModelError, match="body 'b': inertia is not finite"):
        pf.mechanism("m", [pf.body("b", mass=1, inertia=endless)], [hinge])
