"""Arguments of joints, the messages for wrong ones, and that every argument is part of the digest."""

import copy
import pickle
from itertools import pairwise

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian.errors import ModelError
from pfaffian.formats.text.run_settings import RunSettings
from pfaffian.model.joint import KINDS
from pfaffian.model.pose import align_z
from pfaffian.terms.equations_digest import digest
from pfaffian.viewer.describe import describe
from tests.tolerance import close

INF = float("inf")
OFF = pf.Parameter("off", 0.0)


def joint(kind="planar", name="j", **given):
    return pf.joint(name, kind, "world", "a", **given)


def machine(*joints, **given):
    bodies = [pf.body(j.child, 1.0, (0.1, 0, 0), 0.2) for j in joints]
    return pf.mechanism("m", bodies, joints, **given)


def two(**given):
    return machine(joint("revolute", "one"), pf.joint("two", "revolute", "world", "b", **given))


WHEELED = machine(joint(distribution=["vx", "wz"]))

REFUSED = {
    "unknown kind": (lambda: joint("screw"), r"kind 'screw' is unknown; one of fixed, revolute, .*universal"),
    "ball of MuJoCo": (lambda: joint("ball"), r"one of fixed, .*, spherical, free, universal; did you mean 'spherical'\?"),
    "hinge of MuJoCo": (lambda: joint("hinge"), r"did you mean 'revolute'\?"),
    "slide of MuJoCo": (lambda: joint("slide"), r"did you mean 'prismatic'\?"),
    "weld of MuJoCo": (lambda: joint("weld"), r"did you mean 'fixed'\?"),
    "nearly": (lambda: joint("sperical"), r"did you mean 'spherical'\?"),
    "connect of MuJoCo": (
        lambda: pf.closure("c", "connect", "world", "b"), r"mean 'spherical'\? \(pf.coincide makes it from two points\)"),
    "a rod": (lambda: pf.closure("c", "rod", "world", "b"), r"did you mean 'distance'\?"),
    "edge is no kind": (lambda: joint("edge"), r"kind 'edge' is unknown"),
    "no pitch": (lambda: joint("helical"), r"joint 'j': a helical joint needs its pitch=... \[m/rad\]"),
    "pitch of a planar joint": (lambda: joint("planar", pitch=0.1), r"a planar joint has no pitch"),
    "too few stiffnesses": (lambda: joint(stiffness=[1, 2]), r"stiffness: one number, 3 or a symmetric \(3, 3\) is needed"),
    "skew damping": (lambda: joint(damping=[[1, 2, 0], [0, 1, 0], [0, 0, 1]]), r"damping: the matrix must be symmetric"),
    "skew stiffness of parameters": (
        lambda: joint(stiffness=[[1, OFF, 0], [0, 1, 0], [0, 0, 1]]), r"stiffness: the matrix must be symmetric"),
    "armature as a matrix": (lambda: joint(armature=np.eye(3)), r"armature: 3 numbers are needed, got 3 x 3"),
    "spring of a fixed joint": (lambda: joint("fixed", stiffness=1.0), r"joint 'j': stiffness: a fixed joint takes none"),
    "coupled orientation": (
        lambda: joint("free", stiffness=np.eye(6) + np.eye(6, k=3) + np.eye(6, k=-3)),
        r"cannot couple translations to an orientation"),
    "rest of one number": (lambda: joint(rest=0.1), r"rest: a sequence of 3 numbers is needed"),
    "rest of zeros": (lambda: joint("spherical", rest=(0, 0, 0, 0)), r"rest: the quaternion must be numbers, not all"),
    "too few limits": (lambda: joint(limits=(-1, 1)), r"limits: a pair \(low, high\) for each of x, y, angle is needed"),
    "limits of a quaternion": (lambda: joint("free", limits=[(-1, 1)] * 7), r"a free joint takes no limits"),
    "reversed limits": (lambda: joint(limits=[(0, 1), (1, 0), (0, 1)]), r"limits of y \(1.0, 0.0\) are the wrong way round"),
    "a negative armature": (lambda: joint(armature=(0.1, -0.2, 0)), r"'j': armature -0.2 is below zero, but it is an inertia"),
    "negative by default": (lambda: joint("revolute", armature=OFF - 1), r"'j': armature -\d.* is below zero"),
    "no such velocity": (lambda: joint(distribution=["vx", "wy"]), r"a planar joint has no velocity 'wy'"),
    "a distribution of all velocities": (lambda: joint(distribution=np.eye(3)), r"\(3, 1 to 2\) is needed, got \(3, 3\)"),
    "a distribution with two rows": (lambda: joint(distribution=[[1, 0], [0, 1]]), r"combines the 3 velocities vx, vy, wz"),
    "revolute distribution": (lambda: joint("revolute", distribution=[[1]]), r"a revolute joint takes no distribution"),
    "universal, speeds": (lambda: joint("universal", distribution=["about_x"]), r"a universal joint takes no distribution"),
    "dependent columns": (
        lambda: machine(joint(distribution=[[1, 2], [0, 0], [1, 2]])), r"'j': distribution: the columns depend on each other"),
    "dependent by default": (
        lambda: machine(joint(distribution=[[1, 1], [0, 0], [0, OFF]]), parameters=[OFF]), r"the columns depend on each other"),
    "speeds without a distribution": (lambda: joint(speeds=["a"]), r"speeds are the names of a distribution's velocities"),
    "one speed twice": (lambda: joint(distribution=["vx", "wz"], speeds=["a", "a"]), r"speeds: 2 different names are needed"),
    "too many speeds": (lambda: joint(distribution=["vx"], speeds=["a", "b"]), r"speeds: 1 different names are needed"),
    "mimic as a dict": (lambda: joint("revolute", mimic={"one": 2}), r"mimic=\{'one': 2\}; make it by mimic"),
    "mimic by a name": (lambda: pf.mimic("one"), r"mimic: a dict of joint name -> ratio is needed, got 'one'"),
    "mimic with a ratio in text": (lambda: pf.mimic({"one": "2"}), r"mimic: ratio of 'one': '2' is not a number"),
    "mimic of a planar joint": (lambda: joint("planar", mimic=pf.mimic({"one": 1})), r"a planar joint cannot follow others"),
    "limits of a follower": (
        lambda: joint("revolute", mimic=pf.mimic({"one": 1}), limits=(0, 1)), r"it follows others and has no limits or effort"),
    "follows unknown": (lambda: two(mimic=pf.mimic({"on": 1})), r"joint 'two' follows 'on', which is not a joint; .*'one'"),
    "follows itself": (lambda: two(mimic=pf.mimic({"two": 1})), r"joints follow each other in a circle: two; let one of them"),
    "follows in a circle": (
        lambda: machine(joint("revolute", "one", mimic=pf.mimic({"two": 1})), pf.joint("free", "free", "world", "c"),
                        pf.joint("two", "revolute", "world", "b", mimic=pf.mimic({"one": 1}))),
        r"in a circle: one, two; let one of them move freely"),
    "follows a planar joint": (
        lambda: machine(joint("planar", "one"), pf.joint("two", "revolute", "world", "b", mimic=pf.mimic({"one": 1}))),
        r"'two' follows 'one', which has 3 coordinates; one is needed"),
    "a ratio with an unlisted parameter": (
        lambda: two(mimic=pf.mimic({"one": OFF})), r"joint 'two': mimic uses a Parameter that is not among the mechanism's"),
    "an offset with an unlisted parameter": (
        lambda: two(mimic=pf.mimic({"one": 1}, OFF)), r"joint 'two': mimic uses a Parameter that is not among the mechanism's"),
    "a motor on a follower": (
        lambda: two(mimic=pf.mimic({"one": 1})).with_(actuators=[pf.actuator("motor", "two")]),
        r"actuator 'motor': joint 'two' follows one; drive that, with gear times the ratio"),
    "locked follower": (lambda: pf.locked(joint("revolute", mimic=pf.mimic({"one": 1}))), r"lock the joints that it follows"),
    "locked by a name": (lambda: pf.locked("j"), r"locked: a joint\(...\) is needed, got 'j'"),
    "locked at too few numbers": (lambda: pf.locked(joint(), [0, 1]), r"locked: 3 numbers are needed, got 2"),
    "linearised": (lambda: pf.linearise(WHEELED), r"'j' has a distribution, which linearise does not .* by nonholonomic"),
    "commutation coefficients": (lambda: pf.calculus.commutation_coefficients(WHEELED), r"'j' has a distribution"),
}  # fmt: skip


@pytest.mark.parametrize("make, words", REFUSED.values(), ids=REFUSED)
def test_wrong_joints_are_refused_with_the_reason(make, words):
    with pytest.raises(ModelError, match=words):
        make()


@pytest.mark.parametrize("what", ["stiffness", "damping"])
@pytest.mark.parametrize("number", [INF, float("nan")])
def test_a_matrix_of_constants_has_finite_entries(what, number):
    for given in (ca.SX(np.diag([1.0, number, 3.0])), ca.SX([1.0, number, 3.0])):
        with pytest.raises(ModelError, match=f"joint 'j': {what}: the expression contains nan or inf"):
            joint(**{what: given})


@pytest.mark.parametrize("kind", KINDS)
def test_names_units_and_limits_match_the_dimensions(kind):
    j = joint(kind, **({"pitch": 0.1} if KINDS[kind].screws else {}))
    assert len(set(j.q_names)) == len(j.q_units) == len(j.limits) == j.nq
    assert len(set(j.v_names)) == len(j.v_units) == j.nv
    assert pickle.loads(pickle.dumps(j)) == j == copy.copy(j) and hash(pickle.loads(pickle.dumps(j))) == hash(j)


def test_every_coordinate_has_limits_and_a_warning():
    m = machine(joint(limits=[(-1, 1), (-INF, 0.5), (-2, 2)]))
    assert m.q_limits.tolist() == [[-1, 1], [-INF, 0.5], [-2, 2]]
    with pytest.warns(pf.RunWarning, match=r"'j.y' is outside at the start, by up to 0.5 m|'j.y'"):
        pf.run(m, [0, 1, 0], duration=1e-3, step=1e-3, backend="interpreter")
    assert two(mimic=pf.mimic({"one": 1})).q_limits.tolist() == [[-INF, INF]]


def test_every_argument_that_affects_the_equations_is_in_the_digest():
    first = joint("revolute", "one")

    def followed(**given):
        return machine(first, joint("revolute", "also").__class__(**vars(first) | {"name": "also", "child": "b"}),
                       pf.joint("two", "helical", "world", "c", **{"pitch": 0.1} | given))  # fmt: skip

    made = [
        followed(), followed(pitch=0.2), followed(mimic=pf.mimic({"one": 1})), followed(mimic=pf.mimic({"also": 1})),
        followed(mimic=pf.mimic({"one": 2})), followed(mimic=pf.mimic({"one": 1}, 0.1)),
        *[machine(joint(**x)) for x in (
            {}, {"stiffness": 1}, {"stiffness": [1, 1, 2]}, {"stiffness": 1, "rest": (0, 0.1, 0)}, {"damping": [1, 2, 3]},
            {"damping": [[1, 0.5, 0], [0.5, 2, 0], [0, 0, 3]]}, {"armature": [1, 2, 3]}, {"distribution": ["vx", "wz"]},
            {"distribution": ["vx"]}, {"distribution": ["vy", "wz"]}, {"distribution": [[1, 0], [0, 0.4], [0, 1]]},
        )],
    ]  # fmt: skip
    assert len({digest(m) for m in made}) == len(made) == len(set(made))
    assert all(a != b for a, b in pairwise(made))
    assert digest(machine(joint(stiffness=1))) == digest(machine(joint(stiffness=np.eye(3))))


def test_coordinate_and_rate_of_a_follower():
    m = two(mimic=pf.mimic({"one": -2.0}, 0.5))
    seen = {"q": lambda T: T.kinematics.joint("two"), "v": lambda T: T.kinematics.joint_rate("two")}
    got = pf.compile_terms(m, seen, backend="numpy", lanes=1)([0.1], [3.0])
    assert (got["q"], got["v"]) == (pytest.approx(0.3), pytest.approx(-6))
    assert isinstance(m.joint("two").parts[0].S, ca.SX) and m.neutral().tolist() == [0]


def test_repr():
    assert repr(joint(distribution=["vx", "wz"])) == "<Joint 'j': planar, 'world' to 'a', speeds vx, wz>"
    assert repr(two(mimic=pf.mimic({"one": 1})).joints[1]) == "<Joint 'two': revolute, 'world' to 'b', follows one>"
    assert repr(pf.mimic({"one": 1, "two": -0.5}, 0.1)) == "<Mimic: 1 'one' + -0.5 'two', offset 0.1>"
    assert repr(pf.locked(joint("revolute"), 0.3)) == "<Joint 'j': fixed, 'world' to 'a'>"


def test_describe_names_leaders_and_speeds():
    text = describe(two(mimic=pf.mimic({"one": 1})), RunSettings()) + describe(WHEELED, RunSettings())
    assert "revolute  follows one" in text and "x y [m], angle [rad] by vx, wz" in text


WORDS = {
    "revolute": ("continuous", "hinge", "pin", "rotational", "revolut"),
    "prismatic": ("slide", "slider", "translational"),
    "spherical": ("ball", "socket", "connect", "SOCKET"),
    "universal": ("cardan", "hooke"),
    "free": ("floating", "freejoint", "freeflyer"),
    "fixed": ("rigid", "weld"),
    "helical": ("screw",),
}


@pytest.mark.parametrize(("meant", "word"), [(kind, word) for kind, words in WORDS.items() for word in words])
def test_kinds_of_other_libraries_get_a_suggestion(meant, word):
    with pytest.raises(ModelError, match=f"did you mean '{meant}'"):
        pf.joint("j", word, "world", "a")
    if meant != "free" and word != "weld":  # there is no free closure, and "weld" is a kind of closure
        with pytest.raises(ModelError, match=f"did you mean '{meant}'"):
            pf.closure("c", word, "world", "a")


def test_bodies_are_described_below_their_parents():
    names = [f"link{i}" for i in range(30)]
    bodies = [pf.body(n, 1.0) for n in (*names, "other")]
    joints = [pf.joint(f"to {b}", "prismatic", a, b) for a, b in pairwise(("world", *names))]
    m = pf.mechanism("two trees", bodies, [*joints, pf.joint("to other", "prismatic", "world", "other")])
    lines = [line for line in describe(m, RunSettings()).splitlines() if " to " in line and "prismatic" in line]
    assert [line.split()[0] for line in lines] == [*names, "other"]
    assert [len(line) - len(line.lstrip()) for line in lines] == [2 + i for i in (*range(24), *[24] * 6, 0)]


def test_a_pose_is_inverted_once():
    X = pf.pose((1, 2, 3), rpy=(0.1, 0.2, 0.3))
    assert X.inverse() is X.inverse() and X.inverse() != X


@pytest.mark.parametrize(
    "form", [{"rpy": (0, 0, 0)}, {"quaternion": (0, 0, 0, 2)}, {"rotation": np.eye(3)}], ids=["rpy", "quaternion", "rotation"]
)
def test_poses_that_turn_nothing_are_equal_in_every_form(form):
    assert pf.pose((1, 2, 3), **form) == pf.pose((1, 2, 3))
    ends = [pf.joint("j", "prismatic", "world", "a", placement=X) for X in (pf.pose((1, 2, 3), **form), (1, 2, 3))]
    assert ends[0] == ends[1] and hash(ends[0]) == hash(ends[1])


ROUNDING = 1e-13
"""Tolerance of a rotation of a few operations; directions within 1e-14 of -z count as -z."""


@pytest.mark.parametrize("away", [1e-3, 6.3e-6, 2.65e-6, 1e-9, 3e-13, 1e-17, 0.0])
@pytest.mark.parametrize("angle", [0.0, 0.7, 2.0])
def test_a_frame_along_an_axis_near_minus_z_is_a_rotation(away, angle):
    """Files write half turns with few digits, as 3.1416; 1 + z has few digits there."""
    axis = np.array([away * np.cos(angle), away * np.sin(angle), -np.sqrt(1 - away**2)])
    R = align_z(axis)
    close(R.T @ R, np.eye(3), ROUNDING, "R^T R", 1.0)
    close(R[:, 2], axis, ROUNDING, "its z", 1.0)
    assert np.linalg.det(R) > 0 and np.trace(R) == pytest.approx(1 + 2 * axis[2], abs=ROUNDING)  # the smallest rotation


def test_a_joint_along_nearly_minus_z_leaves_its_body_where_it_is():
    m = pf.mechanism("m", [pf.body("a", mass=1, inertia=1.0)], [pf.joint("j", "revolute", "world", "a", axis=(0, 6.3e-6, -1))])
    R = pf.compile_terms(m, {"R": lambda T: T.kinematics.pose("a").R}, backend="interpreter", lanes=1)([0.0])["R"]
    close(np.reshape(R, (3, 3)), np.eye(3), ROUNDING, "R at rest", 1.0)
