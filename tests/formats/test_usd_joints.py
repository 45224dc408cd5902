"""Joints, drives, mimics and starts of USD stages, compared with the same machine made in Python."""

import re

import numpy as np
import pytest

import pfaffian as pf
from pfaffian.errors import ModelError, ModelWarning
from pfaffian.formats import read_usd
from tests.tolerance import close

pytest.importorskip("pxr")

SINGLE = 1e-6
"""Relative tolerance: the numbers of a stage have single precision."""

HEAD = '#usda 1.0\n(\n metersPerUnit = {}\n kilogramsPerUnit = {}\n upAxis = "Z"\n)\n'
BODY = """def Xform "{0}" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"{1}])
{{
float physics:mass = 2
point3f physics:centerOfMass = (0.5, 0, 0.25)
float3 physics:diagonalInertia = (1, 2, 2.5)
{2}
}}
"""
STANDARD = {"mass": 2, "com": (0.5, 0, 0.25), "inertia": (1, 2, 2.5)}


def read(tmp_path, *parts, metre=1, kilogram=1, match=None):
    file = tmp_path / "s.usda"
    file.write_text(HEAD.format(metre, kilogram) + "\n".join(parts))
    if match is None:
        return read_usd(file)
    with pytest.warns(ModelWarning, match=match):
        return read_usd(file)


def body(name, inside="", api=""):
    return BODY.format(name, api, inside)


def d6(name, free, ends, inside=""):
    """A PhysicsJoint.   free: instance -> (low, high); other axes are locked.   ends: body0 and body1."""
    axes = [a + x for a in ("trans", "rot") for x in "XYZ"]
    spans = {n: free.get(n, (1, -1)) for n in axes if free.get(n, (1, -1))}
    lines = [
        f"float limit:{n}:physics:{w} = {x}" for n, pair in spans.items() for w, x in zip(("low", "high"), pair, strict=True)
    ]
    rels = [f"rel physics:body{k} = </{b}>" for k, b in enumerate(ends) if b]
    apis = ", ".join(f'"PhysicsLimitAPI:{n}"' for n in spans)
    drives = "".join(f', "PhysicsDriveAPI:{n}"' for n in axes if f"drive:{n}:" in inside)
    return (
        f'def PhysicsJoint "{name}" (prepend apiSchemas = [{apis}{drives}])\n{{\n'
        + "\n".join([*rels, *lines, inside])
        + "\n}\n"
    )


def joint(kind, name, ends, inside=""):
    rels = [f"rel physics:body{k} = </{b}>" for k, b in enumerate(ends) if b]
    return f'def Physics{kind}Joint "{name}"\n{{\n' + "\n".join([*rels, inside]) + "\n}\n"


def drive(name, **numbers):
    return "\n".join(f"float drive:{name}:physics:{k} = {x}" for k, x in numbers.items())


def accelerations_agree(m, ours, q, v, what):
    close(pf.forward_dynamics(m, q, v).v_dot, pf.forward_dynamics(ours, q, v).v_dot, SINGLE, what)


def test_limits_and_drives_of_a_cylindrical_joint(tmp_path):
    """The stage is in centimetres: 50 cm, degrees, and drives per centimetre and per degree."""
    inside = drive("transY", stiffness=300, damping=20, targetPosition=10, maxForce=900) + "\n" + drive("rotY", damping=5000)
    part = d6("j", {"transY": (-50, "inf"), "rotY": (-90, 180)}, ("", "b"), inside)
    m, _ = read(tmp_path, body("b"), part, metre=0.01, match="drives act as springs and dampers")
    turn = np.pi / 180
    assert m.q_limits[0] == pytest.approx((-0.5, np.inf)) and m.q_limits[1] == pytest.approx((-90 * turn, 180 * turn))
    assert m.u_names == ("j transY", "j rotY") and m.u_limits[0] == pytest.approx((-9, 9))
    given = {"stiffness": [300, 0], "damping": [20, 5000 * 1e-4 / turn], "rest": [0.1, 0]}
    ours = pf.mechanism("m", [pf.body("b", mass=2, com=(0.005, 0, 0.0025), inertia=(1e-4, 2e-4, 2.5e-4))],
                        [pf.joint("j", "cylindrical", "world", "b", axis=(0, 1, 0), **given)])  # fmt: skip
    accelerations_agree(m, ours, [0.3, 0.7], [0.2, -1.1], "cylindrical")


@pytest.mark.parametrize("flipped", [False, True])
def test_a_joint_of_three_translations_keeps_its_signs(tmp_path, flipped):
    """From its second body, the coordinates are those of the inverse motion; limits and targets follow."""
    inside = drive("transX", stiffness=40, targetPosition=0.25)
    free = {"transX": (-1, 3), "transY": None, "transZ": None}
    m, _ = read(tmp_path, body("b"), d6("j", free, ("b", "") if flipped else ("", "b"), inside))
    assert m.joint("j").limits[0] == ((-3, 1) if flipped else (-1, 3))
    rest = -0.25 if flipped else 0.25
    ours = pf.mechanism("m", [pf.body("b", **STANDARD)],
                        [pf.joint("j", "translation", "world", "b", stiffness=[40, 0, 0], rest=[rest, 0, 0])])  # fmt: skip
    accelerations_agree(m, ours, [0.3, 0.7, 0.1], [0.2, -1.1, 0.4], "translation")


@pytest.mark.parametrize("k", range(3))
def test_motion_in_a_plane_about_each_normal(tmp_path, k):
    x, y, z = ("XYZ"[(k + i) % 3] for i in (1, 2, 3))
    part = d6("j", {f"trans{x}": (-2, 1), f"trans{y}": None, f"rot{z}": (-30, 60)}, ("", "b"))
    place = 'double3 xformOp:translate = (3, 4, 5)\nuniform token[] xformOpOrder = ["xformOp:translate"]'
    m, settings = read(tmp_path, body("b", place), part)
    assert m.joints[0].kind.name == "planar" and m.q_limits[0] == pytest.approx((-2, 1))
    assert m.q_limits[2] == pytest.approx((-np.pi / 6, np.pi / 3))
    at = (3, 4, 5)
    assert [settings.guess[n] for n in m.q_names[:2]] == [at[(k + 1) % 3], at[(k + 2) % 3]]
    R = pf.forward_kinematics(m, [0, 0, 0.3])["b"].rotation
    assert R[(k + 1) % 3, (k + 1) % 3] == pytest.approx(np.cos(0.3)) and R[(k + 2) % 3, (k + 1) % 3] == pytest.approx(
        np.sin(0.3)
    )


@pytest.mark.parametrize(("first", "second"), ["XY", "YZ", "XZ"])
def test_two_turns_are_a_universal_joint(tmp_path, first, second):
    """About the first axis, then about the second, which turns with the body; it starts turned, and in motion about both."""
    free = {f"rot{first}": (-30, 60), f"rot{second}": (-45, 45)}
    inside = drive(f"rot{second}", stiffness=2, damping=0.1, targetPosition=30)
    a, b = np.radians(20), np.radians(-40)
    axes = {x: np.eye(3)["XYZ".index(x)] for x in "XYZ"}
    quaternions = [np.r_[np.cos(x / 2), np.sin(x / 2) * axes[n]] for x, n in ((a, first), (b, second))]
    w = quaternions[0][0] * quaternions[1][0]
    xyz = (
        quaternions[0][0] * quaternions[1][1:]
        + quaternions[1][0] * quaternions[0][1:]
        + np.cross(quaternions[0][1:], quaternions[1][1:])
    )
    turn = f'quatd xformOp:orient = {(float(w), *map(float, xyz))}\nuniform token[] xformOpOrder = ["xformOp:orient"]\n'
    back = axes[first] * np.cos(b) - np.cross(axes[second], axes[first]) * np.sin(b)  # the first axis in the frame of the body
    rates = np.degrees(0.5 * back + 0.25 * axes[second])
    speed = np.cross(np.radians(rates), (0.5, 0, 0.25))
    moving = (
        f"vector3f physics:angularVelocity = {tuple(map(float, rates))}\nvector3f physics:velocity = {tuple(map(float, speed))}"
    )
    m, settings = read(tmp_path, body("b", turn + moving), d6("j", free, ("", "b"), inside))
    assert m.joint("j").kind.name == "universal" and m.u_names == (f"j rot{second}",)
    close([settings.guess[n] for n in m.q_names], [a, b], SINGLE, "start")
    close([settings.v[n] for n in m.v_names], [0.5, 0.25], SINGLE, "velocities")
    close(m.q_limits, np.radians([[-30, 60], [-45, 45]]), SINGLE, "limits")
    hinges = [pf.joint("A", "revolute", "world", "between", axis=axes[first]),
              pf.joint("B", "revolute", "between", "b", axis=axes[second], stiffness=2 * 180 / np.pi, damping=18 / np.pi,
                       rest=np.pi / 6)]  # fmt: skip
    ours = pf.mechanism("m", [pf.body("between"), pf.body("b", **STANDARD)], hinges)
    accelerations_agree(m, ours, [a, b], [0.5, 0.25], "universal")
    with pytest.raises(ModelError, match="turns about two axes and is reached from its second body; swap body0 and body1"):
        read(tmp_path, body("b"), d6("j", free, ("b", "")))


def test_limits_that_a_kind_lacks_are_named(tmp_path):
    turns = {f"rot{x}": (-30, 30) for x in "XYZ"}
    words = r"j: limits of rotX.*j: drive rotZ"
    read(tmp_path, body("b"), d6("j", turns, ("", "b"), drive("rotZ", stiffness=1)), match=words)


@pytest.mark.parametrize("up", ["Y", "Z"])
@pytest.mark.parametrize(("ends", "sense"), [(("", "b"), 1), (("b", ""), -1)])
def test_a_hinge_turns_its_second_body_against_its_first(tmp_path, up, ends, sense):
    """Where either of them may be the world, wherever the file places bodies, without an articulation: the frame of the second
    body is turned forward by the coordinate in that of the first. An arm hangs on the body."""
    turned = "quatf physics:localRot{} = (0.8, 0.6, 0, 0)\npoint3f physics:localPos{} = ({}, 2, 3)"
    hinge = joint("Revolute", "h", ends, "\n".join(turned.format(k, k, x) for k, x in ((0, 1), (1, 4))))
    arm = joint("Revolute", "k", ("b", "c"), "\n".join(turned.format(k, k, x) for k, x in ((0, 5), (1, 6))))
    placed = "float3 xformOp:translate = (7, 8, 9)\nuniform token[] xformOpOrder = ['xformOp:translate']".replace("'", '"')
    file = tmp_path / "s.usda"
    file.write_text("\n".join([HEAD.format(1, 1).replace('"Z"', f'"{up}"'), body("b", placed), body("c", placed), hinge, arm]))
    found = pf.forward_kinematics(read_usd(file)[0], {"h": 0.4, "k": -0.3})

    def pose(R, p):
        return np.block([[R, np.reshape(p, (3, 1))], [np.zeros((1, 3)), np.ones((1, 1))]])

    def turn(angle):  # about x, the axis of both
        c, s = np.cos(angle), np.sin(angle)
        return np.array([[1, 0, 0], [0, c, -s], [0, s, c]])

    def frame(x):
        return pose(turn(2 * np.arctan2(0.6, 0.8)), (x, 2, 3))

    first, second = (frame(1), frame(4)) if sense > 0 else (frame(4), frame(1))
    stage = pose(turn(np.pi / 2 if up == "Y" else 0), np.zeros(3))
    b = stage @ first @ pose(turn(sense * 0.4), np.zeros(3)) @ np.linalg.inv(second)
    c = b @ frame(5) @ pose(turn(-0.3), np.zeros(3)) @ np.linalg.inv(frame(6))
    for name, right in (("b", b), ("c", c)):
        close(pose(found[name].rotation, found[name].position), right, SINGLE, name)


@pytest.mark.parametrize("newton", [False, True])
def test_mimics_across_kinds_have_the_units_of_the_stage(tmp_path, newton):
    """A rack follows a wheel: 2 cm for each degree, and 5 cm off. A pointer follows the rack: 3 degrees for each centimetre."""

    def after(axis, leader, ratio, offset):
        if newton:
            return f"rel newton:mimicJoint = </{leader}>\nfloat newton:mimicCoef0 = {offset}\nfloat newton:mimicCoef1 = {ratio}"
        stem = f"physxMimicJoint:{axis}"
        return f"rel {stem}:referenceJoint = </{leader}>\nfloat {stem}:gearing = {-ratio}\nfloat {stem}:offset = {-offset}"

    parts = [body(n) for n in "abc"]
    parts += [joint("Revolute", "wheel", ("", "a")), joint("Prismatic", "rack", ("", "b"), after("transX", "wheel", 2, 5))]
    parts += [joint("Revolute", "pointer", ("", "c"), after("rotX", "rack", 3, 20))]
    m, _ = read(tmp_path, *parts, metre=0.01)
    assert m.q_names == ("wheel",)
    found = pf.forward_kinematics(m, [np.pi / 180])
    assert found["b"].position[0] == pytest.approx(0.07)
    turned = found["c"].rotation
    assert np.arctan2(turned[2, 1], turned[1, 1]) == pytest.approx(np.radians(20 + 3 * 7))


def test_a_mimic_that_is_disabled_does_not_follow(tmp_path):
    inside = "rel newton:mimicJoint = </wheel>\nbool newton:mimicEnabled = 0"
    parts = [joint("Revolute", "wheel", ("", "a")), joint("Revolute", "free", ("", "b"), inside)]
    assert read(tmp_path, body("a"), body("b"), *parts)[0].nv == 2


def test_damping_friction_and_armature_of_newton(tmp_path):
    """Damping is per degree for turns; the stage is in decimetres and grams."""
    inside = "float newton:damping = 0.01\nfloat newton:friction = 3\nfloat newton:armature = 7"
    m, _ = read(tmp_path, body("a"), body("b"), joint("Revolute", "turn", ("", "a"), inside), metre=0.1, kilogram=0.001,
                match="dry friction is smooth")  # fmt: skip
    j = m.joint("turn")
    assert float(j.damping) == pytest.approx(0.01 * 1e-5 * 180 / np.pi) and float(j.armature) == pytest.approx(7e-5)
    fast = pf.forward_dynamics(m, pf.assemble(m).q, {"turn": 1.0}).v_dot[0]
    still = pf.forward_dynamics(m, pf.assemble(m).q).v_dot[0]
    M = pf.mass_matrix(m)[0, 0]
    assert (still - fast) * M == pytest.approx(3e-5 + 0.01 * 1e-5 * 180 / np.pi, rel=1e-4)
    with pytest.raises(ModelError, match=r"newton:damping is -1"):
        read(tmp_path, body("a"), joint("Revolute", "turn", ("", "a"), "float newton:damping = -1"))


def test_armature_on_every_velocity_of_a_spherical_joint(tmp_path):
    m, _ = read(
        tmp_path, body("a"), joint("Spherical", "ball", ("", "a"), "float newton:armature = 7\nfloat newton:damping = 1")
    )
    bare, _ = read(tmp_path, body("a"), joint("Spherical", "ball", ("", "a")))
    assert pf.mass_matrix(m) - pf.mass_matrix(bare) == pytest.approx(7 * np.eye(3))
    assert np.diag(np.array(m.value(m.joints[0].damping))) == pytest.approx(180 / np.pi * np.ones(3))


def test_velocities_of_bodies_are_the_start(tmp_path):
    """A floating body, turned, in centimetres, and an arm that turns relative to it; a third link moves with the arm."""
    place = "double3 xformOp:translate = (100, -200, 50)\nquatf xformOp:orient = (0.5, 0.5, 0.5, 0.5)\n"
    place += 'uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:orient"]'
    moving = "vector3f physics:velocity = (10, 20, 30)\nvector3f physics:angularVelocity = (90, 0, 45)\n"
    hinge = joint("Revolute", "hinge", ("a", "base"), 'uniform token physics:axis = "X"')
    last = joint("Prismatic", "slide", ("a", "c"))
    turning = "vector3f physics:velocity = (10, 20, 30)\nvector3f physics:angularVelocity = (120, 0, 45)\n"
    parts = [body("base", moving + place), body("a", turning + place), body("c", place), hinge, last]
    m, settings = read(tmp_path, *parts, metre=0.01, match="velocities of bodies .*: 'a'")
    start = pf.assemble(m, settings.start, settings.v)
    R = np.array([[0, 0, 1], [1, 0, 0], [0, 1, 0]])
    com, R = (0.005, 0, 0.0025), np.array([[0, 0, 1], [1, 0, 0], [0, 1, 0]])
    for name, w in (("base", [90, 0, 45]), ("a", [120, 0, 45])):
        twist = pf.jacobian(m, name, start.q, frame="LOCAL_WORLD_ALIGNED", point=com) @ start.v
        close(twist[3:], R @ np.radians(w), SINGLE, f"angular velocity of {name}")
        if name == "base":  # the arm turns about the same point, so that its own mass centre moves differently
            close(twist[:3], R @ [0.1, 0.2, 0.3], SINGLE, f"velocity of {name}")
    assert settings.v["hinge"] == pytest.approx(np.radians(-30), rel=1e-6) and "slide" not in settings.v


def test_velocities_that_a_joint_does_not_allow_are_named(tmp_path):
    parts = [
        body("a", "vector3f physics:velocity = (1, 0, 0)"),
        joint("Prismatic", "slide", ("", "a"), 'uniform token physics:axis = "Z"'),
    ]
    read(tmp_path, *parts, match=r"velocities of bodies that their joints do not allow are left out: 'a'")


def test_gravity_is_off(tmp_path):
    m, _ = read(tmp_path, body("a", "bool physxRigidBody:disableGravity = 1"), body("b"), metre=0.1)
    fall = pf.forward_dynamics(m, pf.assemble(m).q).v_dot
    assert fall[:6] == pytest.approx(np.zeros(6), abs=1e-12) and np.abs(fall[6:]).max() == pytest.approx(9.81)
    for line in ("bool newton:gravityEnabled = 0", "float physics:gravityMagnitude = 0"):
        m, _ = read(tmp_path, body("a"), f'def PhysicsScene "s"\n{{\n{line}\n}}\n')
        assert not np.any(m.value(m.gravity))


def test_every_property_that_is_not_read_is_named(tmp_path):
    inside = "float physxJoint:jointFriction = 1\nfloat newton:velocityLimit = 3\nfloat physics:lowerLimmit = 3"
    varying = "vector3f physics:velocity.timeSamples = {\n0: (1, 0, 0),\n1: (2, 0, 0),\n}"
    parts = [body("a", varying), joint("Revolute", "j", ("", "a"), inside)]
    parts += ['def Scope "motor"\n{\nfloat newton:kp = 5\nrel newton:targets = </j>\n}\n']
    parts += ['def PhysicsScene "s"\n{\nint newton:maxSolverIterations = 5\n}\n']
    words = r"values that vary in time .*: '/a\.physics:velocity'; properties that are not read: '/j\.newton:velocityLimit', "
    words += r"'/j\.physics:lowerLimmit', '/j\.physxJoint:jointFriction', '/motor\.newton:kp', '/motor\.newton:targets'$"
    read(tmp_path, *parts, match=words)


def test_a_target_velocity_moves_the_rest_of_a_spring_or_becomes_an_input(tmp_path):
    """tau = k (target - q) + d (speed - v), in degrees; without k the constant d speed, beyond maxForce too, as the damper."""
    per = 180 / np.pi
    sprung = joint("Revolute", "a", ("", "b"), drive("angular", stiffness=2, damping=0.5, targetPosition=10, targetVelocity=8))
    loose = joint("Revolute", "c", ("", "e"), drive("angular", damping=0.5, targetVelocity=8))
    weak = joint("Prismatic", "f", ("", "g"), drive("linear", damping=0.5, targetVelocity=-8, maxForce=3))
    parts = [x.replace("Joint \"", "Joint \"").replace("\n{", f' (prepend apiSchemas = ["PhysicsDriveAPI:{n}"])\n{{', 1)
             for x, n in ((sprung, "angular"), (loose, "angular"), (weak, "linear"))]  # fmt: skip
    m, settings = read(tmp_path, *map(body, "beg"), *parts)
    assert settings.u == pytest.approx({"c": 4, "f": -4})
    u = [settings.u.get(n, 0.0) for n in m.u_names]
    still = pf.forward_dynamics(m.with_(gravity=(0, 0, 0)), np.zeros(3), np.zeros(3), u).v_dot
    I = pf.mass_matrix(m)
    wanted = [(2 * per * 10 / per + 0.5 * 8), 4, -4]
    close(I @ still, np.array(wanted), SINGLE, "forces at rest")


def test_a_drive_without_force_exerts_none(tmp_path):
    """By UsdPhysics maxForce limits what a drive exerts, so that one of 0 switches its spring, damper and speed off."""
    inside = drive("transY", stiffness=300, damping=20, targetPosition=10, targetVelocity=3, maxForce=0)
    m, settings = read(tmp_path, body("b"), d6("j", {"transY": None, "rotY": None}, ("", "b"), inside))
    ours = pf.mechanism("m", [pf.body("b", **STANDARD)], [pf.joint("j", "cylindrical", "world", "b", axis=(0, 1, 0))])
    accelerations_agree(m, ours, [0.3, 0.7], [0.2, -1.1], "no drive")
    assert not settings.u and m.u_limits[0] == pytest.approx((0, 0))
    with pytest.raises(ModelError, match=r"maxForce is -2\.0; it must be zero or positive"):
        read(tmp_path, body("b"), d6("j", {"transY": None, "rotY": None}, ("", "b"), drive("transY", maxForce=-2)))


def test_the_velocity_of_a_flipped_slide_keeps_its_sign(tmp_path):
    """Reached from its second body; both bodies' relative acceleration is that of the drive's force."""
    slides = {f"trans{x}": None for x in "XYZ"}
    part = d6("j", slides, ("b", ""), drive("transX", damping=2, targetVelocity=3))
    m, settings = read(tmp_path, body("b"), part)
    a = pf.forward_dynamics(m.with_(gravity=(0, 0, 0)), np.zeros(3), np.zeros(3), [settings.u[n] for n in m.u_names]).v_dot
    assert a[0] * 2 == pytest.approx(-6)  # the coordinate is that of the world seen from b, so b moves along -x


def test_an_axis_with_equal_limits_is_locked_there(tmp_path):
    """A hinge 0.5 m along its own axis, and a body that is welded at 30 degrees."""
    hinge = d6("j", {"rotX": (-90, 90), "transX": (0.5, 0.5)}, ("", "b"))
    weld = d6("k", {"rotY": (30, 30), "transZ": (2, 2)}, ("b", "c"))
    m, _ = read(tmp_path, body("b"), body("c"), hinge, weld)
    at = pf.forward_kinematics(m, [0.0])
    close(at["b"].position, np.array([0.5, 0, 0]), SINGLE, "place of the hinge")
    close(at["c"].position, np.array([0.5, 0, 2]), SINGLE, "place of the weld")
    close(np.array(at["c"].rotation)[:, 0], np.array([np.sqrt(0.75), 0, -0.5]), SINGLE, "x of the weld")


def test_an_angle_beside_other_turns_is_refused(tmp_path):
    with pytest.raises(ModelError, match="locked at an angle about rotY beside other turns"):
        read(tmp_path, body("b"), d6("j", {"rotX": (-90, 90), "rotY": (30, 30)}, ("", "b")))


@pytest.mark.parametrize("first", ["a", "z"])
def test_kinematic_bodies_stay_whatever_joints_they_have(tmp_path, first):
    """Whether the moving body comes before the kinematic one or after it."""
    still = body("m", "bool physics:kinematicEnabled = 1")
    hinges = [joint("Revolute", "h", (first, "m")), joint("Prismatic", "w", ("", "m"))]
    parts = sorted([still, body(first)], key=lambda x: x.split('"')[1])
    m, _ = read(tmp_path, *parts, *hinges, match="joints between bodies that do not move are left out: 'w'")
    assert (m.nv, m.v_names) == (1, ("h",))


def test_several_scenes_with_other_gravity_are_named(tmp_path):
    scene = 'def PhysicsScene "{}"\n{{\nfloat physics:gravityMagnitude = {}\n}}'.format
    m, _ = read(tmp_path, scene("x", 3), scene("y", 4), body("b"), match="the first of several physics scenes: '/x'")
    close(m.value(m.gravity).ravel(), np.array([0, 0, -3]), SINGLE, "gravity")


@pytest.mark.parametrize(
    ("kind", "name"), [("Revolute", "rotX"), ("Revolute", "linear"), ("Prismatic", "transX"), ("Prismatic", "angular")]
)
def test_drives_have_the_name_that_their_joint_has(tmp_path, kind, name):
    """UsdPhysics parses no other drive, whatever the axis of the joint."""
    turned = joint(kind, "j", ("", "b"), drive(name, stiffness=40))
    applied = turned.replace('"j"\n', f'"j" (prepend apiSchemas = ["PhysicsDriveAPI:{name}"])\n')
    m, _ = read(tmp_path, body("b"), applied, match=f"left out: 'j: drive {name}'")
    assert not m.value(m.joint("j").stiffness).any()


def test_a_d6_joint_has_drives_of_its_axes_only(tmp_path):
    part = d6("j", {"rotZ": ()}, ("", "b"), drive("angular", stiffness=2)).replace("[", '["PhysicsDriveAPI:angular", ', 1)
    m, _ = read(tmp_path, body("b"), part, match="left out: 'j: drive angular'")
    assert m.joint("j").kind.name == "revolute" and not m.value(m.joint("j").stiffness).any()


def test_properties_of_schemas_that_are_not_applied_are_named(tmp_path):
    """A drive, limits that would lock an axis, and a velocity of a prim that is no body."""
    slide = d6("j", {"transZ": ()}, ("", "b")).replace(', "PhysicsLimitAPI:rotZ"', "")
    other = joint("Revolute", "k", ("b", "c"), drive("angular", stiffness=2))
    still = 'def Xform "still"\n{\nvector3f physics:velocity = (1, 0, 0)\n}\n'
    words = r"not applied have no effect, as in UsdPhysics: '/j\.limit:rotZ:physics:high', '/j\.limit:rotZ:physics:low'"
    words += r", '/k\.drive:angular:physics:stiffness', '/still\.physics:velocity'"
    m, _ = read(tmp_path, body("b"), body("c"), slide, other, still, match=words)
    assert m.joint("j").kind.name == "cylindrical" and not m.value(m.joint("k").stiffness).any()


@pytest.mark.parametrize(
    ("prim", "named"),
    [
        ('def PhysxPhysicsGearJoint "g"\n{\n}', "/g (PhysxPhysicsGearJoint)"),
        ('def Mesh "m" (prepend apiSchemas = ["PhysxDeformableBodyAPI"])\n{\n}', "/m (PhysxDeformableBodyAPI)"),
        ('def Points "p" (prepend apiSchemas = ["PhysxParticleSetAPI"])\n{\n}', "/p (PhysxParticleSetAPI)"),
        ('def MjcTendon "t"\n{\n}', "/t (MjcTendon)"),
    ],
)
def test_prims_of_other_engines_are_named_though_they_give_no_property(tmp_path, prim, named):
    read(tmp_path, body("b"), prim, match=re.escape(f"prims that are not read: '{named}'"))


def test_physx_chooses_offsets_of_contact(tmp_path):
    """Their default is -inf, as files of PhysX say."""
    skin = 'def Sphere "s" (prepend apiSchemas = ["PhysicsCollisionAPI", "PhysxCollisionAPI"])\n{\n'
    skin += "float physxCollision:contactOffset = -inf\nfloat physxCollision:restOffset = -inf\n}\n"
    assert read(tmp_path, body("b", skin), match="contact between shapes is left out")[0].nv == 6


CONNECTED = """def PhysicsSphericalJoint "s" (prepend apiSchemas = ["{}"])
{{
rel physics:body0 = </{}>
rel physics:body1 = </{}>
point3f physics:localPos0 = (0.1, 0.2, 0.3)
point3f physics:localPos1 = {}
}}
"""
AWAY = "double3 xformOp:translate = (1, 0, 0)\nfloat xformOp:rotateZ = 90\n"
AWAY += 'uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:rotateZ"]'


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize(("ends", "wanted"), [(("b", "c"), (0.2, 0.9, 0.3)), (("c", "b"), (0.8, 0.1, 0.3))])
def test_a_connect_of_mujoco_holds_what_is_there_at_the_start(tmp_path, ends, wanted, right):
    """A second anchor that says otherwise is named, and so is that the constraint is soft there."""
    first = joint("Fixed", "a", ("", "b")), joint("Spherical", "k", ("b", "c"), "point3f physics:localPos0 = (1, 0, 0)")
    connect = CONNECTED.format("MjcEqualityConnectAPI", *ends, wanted if right else (0.5, 0, 0))
    m, _ = read(tmp_path, body("b"), body("c", AWAY), *first, connect, match=r"are exact: '/s \(MjcEqualityConnectAPI\)'")
    close(m.value(m.constraints[0].placement_b.p).ravel(), np.array(wanted), SINGLE, "anchor")
    if not right:
        told = "s: physics:localPos1, which MuJoCo's connect ignores"
        read(tmp_path, body("b"), body("c", AWAY), *first, connect, match=told)


@pytest.mark.parametrize("api", ["MjcEqualityWeldAPI", "MjcEqualityJointAPI", "MjcEqualityAPI"])
def test_schemas_that_make_a_joint_soft_in_mujoco_are_named(tmp_path, api):
    text = joint("Fixed", "a", ("", "b")).replace('"a"', f'"a" (prepend apiSchemas = ["{api}"])')
    read(tmp_path, text, body("b"), body("c"), match=re.escape(f"'/a ({api})'"))


@pytest.mark.parametrize("api", ["NewtonMimicAPI", "MjcEqualityJointAPI", "NewtonJointAPI"])
def test_mujocos_equality_of_joints_includes_the_mimic_of_newton(tmp_path, api, recwarn):
    follower = joint("Revolute", "k", ("b", "c"), "rel newton:mimicJoint = </j>\nfloat newton:mimicCoef1 = 3")
    text = joint("Revolute", "j", ("", "b")), follower.replace('"k"', f'"k" (prepend apiSchemas = ["{api}"])')
    m, _ = read(tmp_path, body("b"), body("c"), *text)
    close(m.value(m.joint("k").mimic.ratios), np.array([[3.0]]), SINGLE, "ratio")
    assert any("unless NewtonMassAPI" in str(w.message) for w in recwarn) == (api == "NewtonJointAPI")
