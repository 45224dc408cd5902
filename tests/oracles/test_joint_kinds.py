"""Kinds of joints against what they are made of: other joints, other engines, constraints that leave the same motion.

Trees of all kinds are held against Pinocchio in test_pinocchio_joints; here MuJoCo, and for every kind a free body whose other
motions are held by constraints. A joint with a distribution has its rows as twin, one that follows others phi = 0.
"""

from __future__ import annotations

from typing import Any

import casadi as ca
import mujoco
import numpy as np
import pinocchio as pin
import pytest

import pfaffian as pf
from pfaffian.errors import ModelError
from pfaffian.maths import so3
from pfaffian.model.joint import KINDS, Mimic
from tests.oracles.pinocchio_twin import se3
from tests.random_mechanisms import SCREWS, joint_numbers, random_body, random_pose
from tests.tolerance import ALGEBRA, PEER, close

MOVING = tuple(name for name, kind in KINDS.items() if kind.nv)
TWIN = 1e-9
"""A joint against constraints that leave the same motion, relative to the largest acceleration."""


def machine(random: np.random.Generator, kind: str, **numbers: Any) -> pf.Mechanism:
    """A joint of a kind between two bodies, the first on a hinge, another hinge beyond: what it carries and what carries it."""
    given = joint_numbers(random, kind) | numbers
    bodies = [random_body(random, n) for n in ("a", "b", "c")]
    joints = [
        pf.joint("first", "revolute", "world", "a", axis=random.normal(size=3), placement=random_pose(random)),
        pf.joint("j", kind, "a", "b", axis=random.normal(size=3), placement=random_pose(random),
                 child_placement=random_pose(random), **given),
        pf.joint("last", "revolute", "b", "c", axis=random.normal(size=3), placement=random_pose(random)),
    ]  # fmt: skip
    return pf.mechanism(kind, bodies, joints, gravity=random.normal(size=3) * 5)


def state(m: pf.Mechanism, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return pf.random_configuration(m, random), random.normal(size=m.nv)


def at(m: pf.Mechanism, q: np.ndarray, v: np.ndarray, **parts: Any) -> dict[str, np.ndarray]:
    found = pf.compile_terms(m, parts, backend="numpy", lanes=1)(q, v)
    return {name: np.asarray(x) for name, x in found.items()}


def accelerations(T: pf.Terms, v_dot: ca.SX) -> ca.SX:
    """Of the bodies' origins and of their axes: twelve numbers for each body, whatever the coordinates."""
    k, found = T.kinematics, []
    for b in T.mechanism.bodies:
        twist = k.twist(b.name, "LOCAL_WORLD_ALIGNED")
        found.append(ca.jtimes(twist, T.v, v_dot) + ca.jtimes(twist, T.q, k.q_dot))
    return ca.densify(ca.vertcat(*found))


def moved(name: str):
    return lambda T: accelerations(T, pf.FORMULATIONS[name](T).v_dot)


def relative_state(m: pf.Mechanism, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """q and v of the joint j if it were a free one: pose and twist of b in a, along the joint's frames."""
    j = m.joint("j")
    found = at(m, q, v, R=lambda T: relative(T, j).R, p=lambda T: relative(T, j).p, V=lambda T: relative_twist(T, j))
    return np.r_[found["p"], np.array(ca.DM(so3.matrix_to_quat(found["R"]))).ravel()], found["V"]


def relative(T: pf.Terms, j: pf.Joint) -> pf.Pose:
    k = T.kinematics
    return j.placement.inverse() @ k.pose(j.parent).inverse() @ k.pose(j.child) @ j.child_placement


def relative_twist(T: pf.Terms, j: pf.Joint) -> ca.SX:
    """(6, 1) of b over a, in the joint's frame on b, by differentiating the pose."""
    k, G = T.kinematics, relative(T, j)
    R_dot, p_dot = (ca.reshape(ca.jtimes(ca.vec(x), T.q, k.q_dot), *x.shape) for x in (G.R, G.p))
    return ca.vertcat(G.R.T @ p_dot, so3.vee(G.R.T @ R_dot))


def freed(m: pf.Mechanism) -> pf.Mechanism:
    """The machine with a free joint in place of j."""
    free = pf.joint("j", "free", "a", "b", placement=m.joint("j").placement, child_placement=m.joint("j").child_placement)
    return m.with_(joints=[m.joints[0], free, m.joints[2]])


@pytest.mark.parametrize("kind", [k for k in MOVING if k != "free"])
def test_a_free_body_held_by_a_closure_moves_alike(kind):
    random = np.random.default_rng(MOVING.index(kind))
    m = machine(random, kind, damping=0.0, stiffness=0.0, armature=0.0)
    q, v = state(m, random)
    j, twin = m.joint("j"), freed(m)
    more = {"pitch": m.value(j.pitch).item()} if kind in SCREWS else {}
    if kind == "universal":
        more = {"axis": (1, 0, 0), "axis_b": (0, 1, 0)}
    held = pf.closure("held", kind, "a", "b", placement_a=j.placement, placement_b=j.child_placement, **more)
    twin = twin.with_(constraints=[held])
    free_q, free_v = relative_state(m, q, v)
    one = at(m, q, v, a=moved("articulated"), T=lambda T: T.T, V=lambda T: T.V)
    two = at(twin, np.r_[q[0], free_q, q[-1]], np.r_[v[0], free_v, v[-1]], a=moved("gauss"), phi=lambda T: T.rows.phi,
             T=lambda T: T.T, V=lambda T: T.V)  # fmt: skip
    close(two["phi"], 0 * two["phi"], 1e-12, "closed", 1.0)
    for part in ("a", "T", "V"):
        close(two[part], one[part], TWIN, part)


@pytest.mark.parametrize("kind", MOVING)
def test_every_formulation_agrees(kind):
    random = np.random.default_rng(40 + MOVING.index(kind))
    m = pf.actuate_all(machine(random, kind))
    q, v = state(m, random)
    u = random.normal(size=m.nu)
    names = [n for n in pf.FORMULATIONS if n != "control-force"]
    found = pf.compile_terms(m, {n: lambda T, n=n: pf.FORMULATIONS[n](T).v_dot for n in names}, backend="numpy", lanes=1)(
        q, v, u
    )
    for n in names:
        close(found[n], found["articulated"], TWIN, n)


SLIDES_AND_HINGES = {
    "revolute": "h", "prismatic": "s", "cylindrical": "sh", "planar-translation": "xy", "translation": "xys", "planar": "xyh",
    "schoenflies": "xysh", "universal": "XY",
}  # fmt: skip
AXES = {"x": 0, "y": 1, "s": 2, "X": 0, "Y": 1, "h": 2}


def xml(m: pf.Mechanism) -> str:
    """The machine for MuJoCo, each joint as slides and hinges along the axes of its frame."""

    def numbers(x) -> str:
        return " ".join(repr(float(n)) for n in np.ravel(x))

    text, ends = "", ""
    for j in m.joints:
        X = j.placement @ j.child_placement.inverse()
        q = np.array(ca.DM(so3.matrix_to_quat(m.value(X.R)))).ravel()
        b, R, at_child = m.body(j.child), m.value(j.child_placement.R), numbers(m.value(j.child_placement.p))
        I = m.value(b.inertia)
        full = [I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]]
        text += f'<body name="{b.name}" pos="{numbers(m.value(X.p))}" quat="{numbers([q[3], *q[:3]])}">'
        text += f'<inertial pos="{numbers(m.value(b.com))}" mass="{m.value(b.mass).item()!r}" fullinertia="{numbers(full)}"/>'
        for i, part in enumerate(SLIDES_AND_HINGES[j.kind.name]):
            type_ = "slide" if part in "xys" else "hinge"
            arm = m.value(j.armature).ravel()[i]
            text += f'<joint type="{type_}" axis="{numbers(R[:, AXES[part]])}" pos="{at_child}" armature="{arm}"/>'
        ends += "</body>"
    return (
        f'<mujoco><compiler angle="radian" boundmass="0" boundinertia="0" balanceinertia="false" autolimits="false"/>'
        f'<option gravity="{numbers(m.value(m.gravity))}"><flag contact="disable" constraint="disable"/></option>'
        f"<worldbody>{text}{ends}</worldbody></mujoco>"
    )


@pytest.mark.parametrize("kind", SLIDES_AND_HINGES)
def test_slides_and_hinges_of_mujoco(kind):
    """Their velocities are rates of coordinates, ours those of the body: theirs = K v."""
    random = np.random.default_rng(60 + MOVING.index(kind))
    armature = 0.0 if kind in ("planar", "schoenflies") else 0.3  # along v here, along q_dot there
    m = machine(random, kind, damping=0.0, stiffness=0.0, armature=armature)
    q, v = state(m, random)
    ours = at(m, q, v, M=lambda T: T.M, c=lambda T: T.c, v_dot=lambda T: pf.FORMULATIONS["gauss"](T).v_dot,
              K=lambda T: ca.densify(T.kinematics.kinematic_matrix), p=lambda T: T.kinematics.position("c"),
              drift=lambda T: ca.densify(ca.jtimes(T.kinematics.q_dot, T.q, T.kinematics.q_dot)))  # fmt: skip
    theirs = mujoco.MjModel.from_xml_string(xml(m))
    data = mujoco.MjData(theirs)
    K, drift = ours["K"].reshape(m.nv, m.nv), ours["drift"]
    data.qpos, data.qvel = q, K @ v
    mujoco.mj_forward(theirs, data)
    M = np.zeros((m.nv, m.nv))
    mujoco.mj_fullM(theirs, data, M)
    close(ours["p"], data.body("c").xpos, PEER, "position")
    close(ours["M"].reshape(M.shape), K.T @ M @ K, PEER, "mass matrix")
    close(ours["c"], K.T @ (data.qfrc_bias + M @ drift), PEER, "bias force", 1 + np.abs(ours["c"]).max())
    close(K @ ours["v_dot"] + drift, data.qacc, PEER, "acceleration")


# -- joints that follow others -----------------------------------------------------------------------------------------


def hand(random: np.random.Generator, follows: Mimic | None) -> pf.Mechanism:
    """A palm on a free joint with three fingers, a screw and a chain of two; the last hinge follows if asked to."""
    bodies = [random_body(random, n) for n in ("palm", "a", "b", "c", "d")]
    given = {n: {"placement": random_pose(random), "axis": random.normal(size=3)} for n in ("a", "b", "c", "d")}
    sprung = {"stiffness": 3.0, "rest": 0.2, "damping": 0.4, "armature": 0.3}
    joints = [
        pf.joint("base", "free", "world", "palm"),
        pf.joint("one", "revolute", "palm", "a", **given["a"]),
        pf.joint("two", "prismatic", "palm", "b", **given["b"]),
        pf.joint("three", "helical", "a", "c", pitch=0.2, mimic=follows, **given["c"], **sprung),
        pf.joint("four", "revolute", "c", "d", mimic=follows and pf.mimic({"three": -0.5}), **given["d"]),
    ]
    return pf.mechanism("hand", bodies, joints, gravity=(1, 2, -9))


def test_a_joint_that_follows_is_one_held_by_phi():
    """Sum, offset and a follower of a follower; springs, dampers and armature on the one that follows."""
    m = hand(np.random.default_rng(3), pf.mimic({"one": 0.7, "two": -1.3}, 0.4))
    held = hand(np.random.default_rng(3), None).with_(constraints=[
        pf.holonomic("three", lambda k: k.joint("three") - 0.7 * k.joint("one") + 1.3 * k.joint("two") - 0.4),
        pf.holonomic("four", lambda k: k.joint("four") + 0.5 * k.joint("three")),
    ])  # fmt: skip
    assert (m.nq, m.nv, held.nv) == (9, 8, 10) and not any("three" in n for n in m.q_names + m.v_names)
    random = np.random.default_rng(4)
    q, v = state(m, random)
    three, rate = 0.7 * q[7] - 1.3 * q[8] + 0.4, 0.7 * v[6] - 1.3 * v[7]
    full_q, full_v = np.r_[q, three, -0.5 * three], np.r_[v, rate, -0.5 * rate]
    parts = {"x": lambda T: ca.vertcat(T.kinematics.joint("three"), T.kinematics.joint_rate("four")), "T": lambda T: T.T,
             "V": lambda T: T.V, "power": lambda T: ca.dot(T.f, T.v)}  # fmt: skip
    for name, ours in pf.reaction_wrench(m, ["one", "two", "four"], q, v).items():
        theirs = pf.reaction_wrench(held, name, full_q, full_v).wrench
        close(ours.wrench, theirs, TWIN, f"wrench of {name}", 1 + np.abs(theirs).max())
    names = [n for n in pf.FORMULATIONS if n not in ("articulated", "control-force") and "innovations" not in n]
    one, two = at(m, q, v, **parts, **{n: moved(n) for n in names}), at(held, full_q, full_v, **parts, a=moved("gauss"))
    close(one["x"], [three, -0.5 * rate], ALGEBRA, "what it has")
    for part in ("x", "T", "V", "power"):
        close(one[part], two[part], TWIN, part)
    for n in names:
        close(one[n], two["a"], TWIN, n)
    with pytest.raises(ModelError, match="'articulated' does not support"):
        pf.compile_terms(m, {"a": moved("articulated")}, backend="numpy", lanes=1)


def test_mass_and_bias_of_a_mimic_joint_in_pinocchio():
    """A hinge that follows the one before its parent: M and bias, which are all that Pinocchio gives of it."""
    random = np.random.default_rng(11)
    bodies = [random_body(random, n) for n in "abc"]
    where = [{"placement": random_pose(random)} for _ in bodies]
    m = pf.mechanism("m", bodies, [
        pf.joint("one", "revolute", "world", "a", **where[0]), pf.joint("two", "prismatic", "a", "b", **where[1]),
        pf.joint("three", "revolute", "b", "c", mimic=pf.mimic({"one": 1.7}, 0.3), **where[2]),
    ])  # fmt: skip
    model, parent = pin.Model(), 0
    for j, theirs in zip(m.joints, (pin.JointModelRZ(), pin.JointModelPZ(), pin.JointModelRZ()), strict=True):
        parent, b = model.addJoint(parent, theirs, se3(m, j.placement), j.name), m.body(j.child)
        own = pin.Inertia(m.value(b.mass).item(), m.value(b.com).ravel(), m.value(b.inertia))
        model.appendBodyToJoint(parent, own, pin.SE3.Identity())
    model = pin.transformJointIntoMimic(model, 1, 3, 1.7, 0.3)
    data, (q, v) = model.createData(), state(m, random)
    ours = at(m, q, v, M=lambda T: T.M, c=lambda T: T.c)
    upper = np.triu(pin.crba(model, data, q))
    close(ours["M"].reshape(2, 2), upper + np.triu(upper, 1).T, PEER, "mass matrix")
    close(ours["c"], pin.rnea(model, data, q, v, np.zeros(2)), PEER, "bias force")


@pytest.mark.parametrize("kind", MOVING)
def test_a_locked_joint_is_the_rest_of_the_machine(kind):
    """M less the rows and columns of the joint, and all bodies where they were."""
    random = np.random.default_rng(80 + MOVING.index(kind))
    m = machine(random, kind)
    q, v = state(m, random)
    here = m.q_slices["j"]
    still = m.with_(joints=[pf.locked(j, q[here]) if j.name == "j" else j for j in m.joints])
    assert still.nv == 2
    parts = {"M": lambda T: T.M, "p": lambda T: T.kinematics.position("c"), "R": lambda T: T.kinematics.rotation("c")}
    one, two = at(m, q, v, **parts), at(still, q[[0, -1]], v[[0, -1]], **parts)
    close(two["M"].reshape(2, 2), one["M"].reshape(m.nv, m.nv)[np.ix_([0, -1], [0, -1])], ALGEBRA, "mass matrix")
    close(two["p"], one["p"], ALGEBRA, "position")
    close(two["R"], one["R"], ALGEBRA, "rotation")


# -- springs of several directions -------------------------------------------------------------------------------------


def test_a_spring_of_an_orientation_pulls_like_a_pendulum():
    """k (1 - cos turn) for one k about all axes, about whichever axis it turned, from both quaternions of an orientation."""
    ball = pf.body("ball", 1.0, (0, 0, 0), 0.5)
    rest = np.array([0.1, -0.7, 0.5, 0.5])
    m = pf.mechanism("m", [ball], [pf.joint("j", "spherical", "world", "ball", stiffness=2.0, rest=rest)], gravity=(0, 0, 0))
    axis = np.array([0.6, 0.0, 0.8])
    for turn in (0.0, 1e-6, 1.0, 3.0, np.pi, 4.0):
        q = np.array(ca.DM(so3.quat_mul(rest / np.linalg.norm(rest), so3.quat_exp(turn * axis)))).ravel()
        for sign in (1, -1):
            got = at(m, sign * q, np.zeros(3), f=lambda T: T.f, V=lambda T: T.V)
            close(got["f"], -2.0 * np.sin(turn) * axis, 4 * ALGEBRA, f"torque at {turn}", 1.0)
            close(got["V"], 2.0 * (1 - np.cos(turn)), 4 * ALGEBRA, f"energy at {turn}", 1.0)


def test_springs_and_dampers_couple_directions_as_asked():
    k, d = [[3, 1, 0.5], [1, 2, 0], [0.5, 0, 4]], [[1, 0.2, 0], [0.2, 1, 0.3], [0, 0.3, 2]]
    plate = pf.body("plate", 1.0, (0, 0, 0), 0.5)
    m = pf.mechanism("m", [plate], [pf.joint("j", "planar", "world", "plate", stiffness=k, damping=d, rest=(0.1, 0.2, 0.3))])
    q, v = np.array([0.5, -0.4, 1.1]), np.array([0.3, 0.2, -0.7])
    got = at(m, q, v, f=lambda T: T.f, V=lambda T: T.V)
    R = np.array([[np.cos(1.1), -np.sin(1.1), 0], [np.sin(1.1), np.cos(1.1), 0], [0, 0, 1]])
    e = q - [0.1, 0.2, 0.3]
    close(got["f"], -R.T @ k @ e - d @ v, ALGEBRA, "force")
    close(got["V"], e @ k @ e / 2, ALGEBRA, "energy")


# -- joints with a distribution ----------------------------------------------------------------------------------------

WHEELED = {"kind": "planar", "distribution": ["vx", "wz"], "stiffness": [2.0, 3.0, 1.0], "rest": (0.1, -0.2, 0.3)}
ROWS = {
    "no side slip": (WHEELED, lambda v: v[1]),
    "a wheel off the middle": ({"kind": "planar", "distribution": [[1, 0], [0, 0.4], [0, 1]]}, lambda v: v[1] - 0.4 * v[2]),
    "Suslov": ({"kind": "spherical", "distribution": ["wx", "wy"]}, lambda v: v[2]),
    "a drill": ({"kind": "free", "stiffness": 2.0, "distribution": [[0, 0], [0, 0], [1, 0.1], [0, 0], [0.2, 0], [0, 1]]},
                lambda v: ca.vertcat(v[:2], v[3], v[4] - 0.2 * (v[2] - 0.1 * v[5]))),
    "a skate on a screw": ({"kind": "planar-helical", "pitch": 0.3, "distribution": [[1, 0], [0, 0], [0, 1]]}, lambda v: v[1]),
}  # fmt: skip


def cart(given: dict[str, Any], constraints: Any = ()) -> pf.Mechanism:
    """A base with two hinges on it."""
    random = np.random.default_rng(21)
    bodies = [random_body(random, n) for n in "abc"]
    joints = [
        pf.joint("base", given["kind"], "world", "a", axis=random.normal(size=3), placement=random_pose(random),
                 child_placement=random_pose(random), **{k: x for k, x in given.items() if k != "kind"}),
        pf.joint("one", "revolute", "a", "b", placement=random_pose(random)),
        pf.joint("two", "revolute", "b", "c", placement=random_pose(random), axis=(1, 0, 0)),
    ]  # fmt: skip
    return pf.mechanism("cart", bodies, joints, constraints=constraints, gravity=(1, 0.5, -9))


@pytest.mark.parametrize("name", ROWS)
def test_a_distribution_is_its_rows_without_multipliers(name):
    given, row = ROWS[name]
    m = cart(given)
    twin = cart({k: x for k, x in given.items() if k != "distribution"},
                [pf.nonholonomic("rows", lambda k: row(k.joint_rate("base")))])  # fmt: skip
    B, random = m.value(m.joint("base").distribution), np.random.default_rng(5)
    q, v = state(m, random)
    full_v = np.r_[B @ v[: B.shape[1]], v[B.shape[1] :]]
    names = [n for n in pf.FORMULATIONS if n != "control-force"]
    one = at(m, q, v, **{n: moved(n) for n in names})
    two = at(twin, q, full_v, a=moved("gauss"), eta=lambda T: T.rows.eta)
    close(two["eta"], 0 * two["eta"], ALGEBRA, "rows", 1.0)
    for n in names:
        close(one[n], two["a"], 1e-10, n)

    for joint, ours in pf.reaction_wrench(m, ["base", "one"], q, v).items():
        theirs = pf.reaction_wrench(twin, joint, q, full_v).wrench
        close(ours.wrench, theirs, TWIN, f"wrench of {joint}", 1 + np.abs(theirs).max())

    def operations(m: pf.Mechanism) -> int:
        T = pf.symbols(m)
        return ca.Function("f", [T.q, T.v], [pf.FORMULATIONS["gauss"](T).v_dot]).n_instructions()

    assert operations(m) < operations(twin)
    run = {"duration": 0.1, "step": 2e-3, "every": 25, "backend": "interpreter"}
    a, b = pf.run(m, q, v, **run), pf.run(twin, q, full_v, **run)
    close(a["q"].values, b["q"].values, 1e-10, "run", 1.0)
    close(a["energy"].values, np.full(a["energy"].shape, a["energy"].values.ravel()[0]), 1e-9, "energy", 10.0)
    assert a["v"].sizes["velocity"] == m.nv


def test_speeds_have_names_and_units():
    m = cart({"kind": "planar", "distribution": [[1, 0], [0, 0.4], [0, 1]], "speeds": {"drive": "m/s", "turn": "rad/s"}})
    assert m.v_names == ("base.drive", "base.turn", "one", "two") and m.v_units[:2] == ("m/s", "rad/s")
    assert pf.actuate_all(m).u_units[:2] == ("N", "N m")
    m = cart({"kind": "planar", "distribution": [[1, 0], [0, 0.4], [0, 1]]})
    assert m.v_names[:2] == ("base.vx", "base.speed_2") and m.v_units[:2] == ("m/s", "1/s")
    assert cart(WHEELED).q_names[:3] == ("base.x", "base.y", "base.angle")


def test_pitch_ratio_and_distribution_may_be_parameters():
    """And what a run changes is what the model would be with the number in it."""
    p = [pf.Parameter("pitch", 0.1), pf.Parameter("ratio", 2.0), pf.Parameter("off", 0.3)]

    def built(pitch, ratio, off, parameters=()):
        random = np.random.default_rng(31)
        bodies = [random_body(random, n) for n in "abc"]
        joints = [
            pf.joint("base", "planar", "world", "a", distribution=[[1, 0], [0, off], [0, 1]]),
            pf.joint("screw", "helical", "a", "b", pitch=pitch, placement=random_pose(random)),
            pf.joint("geared", "revolute", "b", "c", mimic=pf.mimic({"screw": ratio}, off), placement=random_pose(random)),
        ]
        return pf.mechanism("m", bodies, joints, parameters=parameters)

    varied, numbers = built(*p, p), built(-0.4, 0.7, 1.1)
    q, v = state(numbers, np.random.default_rng(1))
    parts = {"M": lambda T: T.M, "c": lambda T: T.c, "a": moved("gauss")}
    one = pf.compile_terms(varied, parts, backend="numpy", lanes=1)(q, v, parameters={"pitch": -0.4, "ratio": 0.7, "off": 1.1})
    two = at(numbers, q, v, **parts)
    for part in parts:
        close(one[part], two[part], 1e-11, part)
