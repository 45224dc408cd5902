"""Several hinges and sliders between two bodies of a stage act one after the other, in its order, as in MuJoCo."""

import numpy as np
import pytest

import pfaffian as pf
from tests.formats.test_usd_joints import SINGLE, body, joint, read
from tests.tolerance import close

pytest.importorskip("pxr")

HEAD = "hinges and sliders between the same two bodies act one after the other, as in MuJoCo: 'z', 'y', 's'"
AT = "point3f physics:localPos0 = (1, 0.5, 0)\npoint3f physics:localPos1 = (0.25, 0, 0)"
HINGE = 'uniform token physics:axis = "{}"\nfloat physics:lowerLimit = {}\nfloat physics:upperLimit = {}\n' + AT
UP = "point3f physics:localPos0 = (0, 0, 1)"
PARTS = (
    joint("Revolute", "z", "ab", HINGE.format("Z", -30, 40)),
    joint("Revolute", "y", "ab", HINGE.format("Y", -50, 60)),
    joint("Prismatic", "s", "ab", f'uniform token physics:axis = "X"\n{AT}'),
)


def ours():
    """The same machine in Python: the first body turns about x, and its joints lead from there to the second one."""
    masses = {"mass": 2, "com": (0.5, 0, 0.25), "inertia": (1, 2, 2.5)}
    end = pf.pose((0.25, 0, 0))
    return pf.mechanism(
        "m",
        [pf.body("a", **masses), pf.body("c"), pf.body("d"), pf.body("b", **masses)],
        [
            pf.joint("x", "revolute", "world", "a", axis=(1, 0, 0)),
            pf.joint("z", "revolute", "a", "c", axis=(0, 0, 1), placement=pf.pose((1, 0.5, 0)), child_placement=end),
            pf.joint("y", "revolute", "c", "d", axis=(0, 1, 0), placement=end, child_placement=end),
            pf.joint("s", "prismatic", "d", "b", axis=(1, 0, 0), placement=end, child_placement=end),
        ],
        gravity=(0, 0, -9.81),
    )


def stage(*parts, start=""):
    return body("a"), body("b", start), joint("Revolute", "x", ("", "a"), 'uniform token physics:axis = "X"'), *parts


def shift(*at):
    return f'double3 xformOp:translate = {at}\nuniform token[] xformOpOrder = ["xformOp:translate"]'


@pytest.mark.parametrize("flipped", [False, True])
def test_they_act_in_the_order_of_the_stage(tmp_path, flipped):
    """Also where the tree reaches them from the second body."""
    parts = stage(*PARTS, start=shift(0.75, 0.5, 0))
    if flipped:
        parts = (*parts[:2], parts[2].replace("</a>", "</b>"), *parts[3:])
    m, settings = read(tmp_path, *parts, match=HEAD)
    assert not m.constraints and [b.name for b in m.bodies] == ["a", "b after z", "b after y", "b"] and not settings.guess
    if flipped:
        assert [j.name for j in m.joints] == ["x", "s", "y", "z"]
        return
    close(m.value(m.joint("z").limits), np.deg2rad([[-30, 40]]), SINGLE, "limits")
    q, v = np.array([0.3, 0.5, -0.7, 0.2]), np.array([1.0, -2, 3, 0.5])
    close(pf.mass_matrix(m, q), pf.mass_matrix(ours(), q), SINGLE, "mass matrix")
    close(pf.forward_dynamics(m, q, v).v_dot, pf.forward_dynamics(ours(), q, v).v_dot, SINGLE, "accelerations")


def test_they_start_where_the_stage_places_their_bodies(tmp_path):
    """At .4 rad about z, then -.3 rad about y, then .2 m along x."""
    q = np.array([0.0, 0.4, -0.3, 0.2])
    at = pf.forward_kinematics(ours(), q)["b"]
    x, y, z, w = at.quaternion
    turn = f"quatd xformOp:orient = ({w:.17g}, {x:.17g}, {y:.17g}, {z:.17g})"
    start = f"double3 xformOp:translate = {tuple(map(float, at.position))}\n{turn}\n"
    start += 'uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:orient"]'
    m, settings = read(tmp_path, *stage(*PARTS, start=start), match=HEAD)
    close(settings.arrays(m).q, q, SINGLE, "start")


@pytest.mark.parametrize(
    "second",
    [
        joint("Revolute", "k", "ab", f'uniform token physics:axis = "Z"\n{UP}\n{UP.replace("0 =", "1 =")}'),
        joint("Revolute", "k", "ab", f'uniform token physics:axis = "X"\n{UP}'),
        joint("Revolute", "k", "ab", 'uniform token physics:axis = "X"\nbool physics:excludeFromArticulation = 1'),
        joint("Revolute", "k", "ba", 'uniform token physics:axis = "X"'),
        joint("Spherical", "k", "ab"),
    ],
    ids=["same axis", "other place", "excluded", "other way round", "ball"],
)  # fmt: skip
def test_joints_that_hold_bodies_together_stay_loops(tmp_path, second):
    """Such as the second hinge of a door, and joints that would put the second body at two places."""
    first = joint("Revolute", "z", "ab", 'uniform token physics:axis = "Z"')
    m, _ = read(tmp_path, *stage(first, second), match="close loops as constraints: 'k'")
    assert [c.name for c in m.constraints] == ["k"] and len(m.bodies) == 2


def test_two_sliders_along_one_axis_stay_a_loop(tmp_path):
    slides = [joint("Prismatic", n, "ab", f'uniform token physics:axis = "X"\n{AT}') for n in "ks"]
    m, _ = read(tmp_path, *stage(*slides, start=shift(0.75, 0.5, 0)), match="close loops")
    assert len(m.bodies) == 2


def moving(at, v, turns):
    """What a prim says that is at a place, with a velocity of its mass centre [m/s] and turns [deg/s] along its axes."""
    return (
        f"{shift(*at)}\nvector3f physics:velocity = {tuple(map(float, v))}\nvector3f physics:angularVelocity = {tuple(turns)}"
    )


def test_velocities_are_those_of_all_joints_in_series(tmp_path):
    """At zero all frames are parallel, so that the velocity of the mass centre of b follows by hand: it turns about y and z
    through (1, 0.5, 0), and slides along x."""
    place, turns, slide = (0.75, 0.5, 0.0), np.deg2rad([0, 30, 60]), 0.25
    arm = np.array([1.25, 0.5, 0.25]) - (1, 0.5, 0)
    v = np.cross(turns, arm) + (slide, 0, 0)
    found = read(tmp_path, *stage(*PARTS, start=moving(place, v, (0, 30, 60))), match=HEAD)[1].v
    assert found.keys() == {"y", "z", "s"}
    close([found[n] for n in "yzs"], [*turns[1:], slide], SINGLE, "rates")
    lost = "velocities of bodies that their joints do not allow are left out: 'b'"
    again = read(tmp_path, *stage(*PARTS, start=moving(place, v, (10, 30, 60))), match=lost)[1].v
    assert again.keys() == {"y", "z", "s"}


def test_velocities_of_joints_in_series_that_the_tree_reaches_from_their_second_body(tmp_path):
    """The first body turns the other way round against the second one."""
    turns = np.deg2rad([0, 30, 60])
    v = np.cross(turns, np.array([0.5, 0, 0.25]) - (1, 0.5, 0)) + (0.25, 0, 0)
    parts = stage(*PARTS, start=shift(0.75, 0.5, 0))
    first = body("a", moving((0, 0, 0), v, (0, 30, 60)))
    found = read(tmp_path, first, parts[1], parts[2].replace("</a>", "</b>"), *parts[3:], match=HEAD)[1].v
    close([found[n] for n in "yzs"], [*-turns[1:], -0.25], SINGLE, "rates")


def test_masses_behind_joints_in_series_are_named(tmp_path):
    light = [x.replace("mass = 2", "mass = 0").replace("(1, 2, 2.5)", "(0, 0, 0)") for x in stage(*PARTS)]
    with pytest.raises(pf.ModelError, match="'/b': it moves, but has no mass"):
        read(tmp_path, light[0].replace("mass = 0", "mass = 2"), *light[1:])
