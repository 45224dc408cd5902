"""USD stages written by pxr: the machine of a stage must move like the same machine made in Python."""

import numpy as np
import pytest

import pfaffian as pf
from pfaffian.errors import ModelError, ModelWarning
from pfaffian.formats import read_usd
from tests.tolerance import close

pytest.importorskip("pxr")
from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics

SINGLE = 2e-7
"""Relative tolerance: physics attributes of a stage have single precision."""

RODS = (("crank", 0.25, 1.0), ("coupler", 1.0, 2.0), ("rocker", 0.75, 1.5))
"""Name, length [m] and mass [kg]: binary fractions, which are exact also in a stage in centimetres and grams."""


def stage(path, up="Z", metre=1.0, kilogram=1.0):
    s = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageMetersPerUnit(s, metre)
    UsdPhysics.SetStageKilogramsPerUnit(s, kilogram)
    UsdGeom.SetStageUpAxis(s, up)
    return s


def rod(s, name, at, length, mass, metre=1.0, kilogram=1.0, api=True):
    """The prim of a rod along x of its frame."""
    prim = UsdGeom.Xform.Define(s, f"/{name}")
    prim.AddTranslateOp().Set(Gf.Vec3d(*(x / metre for x in at)))
    UsdPhysics.RigidBodyAPI.Apply(prim.GetPrim())
    if api:
        given = UsdPhysics.MassAPI.Apply(prim.GetPrim())
        given.CreateMassAttr(mass / kilogram)
        given.CreateCenterOfMassAttr(Gf.Vec3f(length / 2 / metre, 0, 0))
        given.CreateDiagonalInertiaAttr(Gf.Vec3f(*([mass * length**2 / 8 / kilogram / metre**2] * 3)))
    return prim.GetPrim()


def hinge(s, name, first, second, at=(0, 0, 0), its=(0, 0, 0), axis="Y", metre=1.0, kind=UsdPhysics.RevoluteJoint):
    j = kind.Define(s, f"/{name}")
    for rel, body in ((j.CreateBody0Rel(), first), (j.CreateBody1Rel(), second)):
        if body:
            rel.SetTargets([Sdf.Path(f"/{body}")])
    j.CreateLocalPos0Attr(Gf.Vec3f(*(x / metre for x in at)))
    j.CreateLocalPos1Attr(Gf.Vec3f(*(x / metre for x in its)))
    if axis:
        j.CreateAxisAttr(axis)
    return j


def four_bar(s, metre=1.0, kilogram=1.0, axis="Y", turned=()):
    """Joints of a four-bar with all rods along x: closed at zero, with the ground pivots of crank and rocker 0.5 m apart."""
    at = 0.0
    for name, length, mass in RODS:
        rod(s, name, (at if name != "rocker" else 0.5, 0, 0), length, mass, metre, kilogram)
        at += length
    ends = {"a": (None, "crank", (0, 0, 0), (0, 0, 0)), "b": ("crank", "coupler", (0.25, 0, 0), (0, 0, 0)),
            "c": (None, "rocker", (0.5, 0, 0), (0, 0, 0)), "d": ("coupler", "rocker", (1.0, 0, 0), (0.75, 0, 0))}  # fmt: skip
    joints = {}
    for name, (first, second, p, its) in ends.items():
        if name in turned:
            first, second, p, its = second, first, its, p
        joints[name] = hinge(s, name, first, second, p, its, axis, metre)
    joints["d"].CreateExcludeFromArticulationAttr(True)
    return joints


def written():
    bodies = [pf.body(n, mass=m, com=(l / 2, 0, 0), inertia=m * l**2 / 8) for n, l, m in RODS]
    y = {"axis": (0, 1, 0)}
    joints = [
        pf.joint("a", "revolute", "world", "crank", **y),
        pf.joint("b", "revolute", "crank", "coupler", placement=(0.25, 0, 0), **y),
        pf.joint("c", "revolute", "world", "rocker", placement=(0.5, 0, 0), **y),
    ]
    pin = pf.closure("d", "revolute", "coupler", "rocker", placement_a=(1, 0, 0), placement_b=(0.75, 0, 0), **y)
    return pf.mechanism("four bar", bodies, joints, constraints=[pin])


def accelerations(m, q, v):
    return pf.forward_dynamics(m, q, v).v_dot


@pytest.mark.parametrize(("up", "metre", "kilogram"), [("Z", 1.0, 1.0), ("Y", 0.01, 0.001)])
def test_a_loop_moves_as_in_python(tmp_path, up, metre, kilogram):
    """With y up, the stage's z axis is the library's -y, so a hinge about -z of the stage is a hinge about y."""
    s = stage(tmp_path / "bars.usda", up, metre, kilogram)
    joints = four_bar(s, metre, kilogram, axis="Y" if up == "Z" else "Z", turned=("b", "d"))
    s.Save()
    with pytest.warns(ModelWarning, match=r"joints close loops .*'d' \(revolute, excluded from its articulation\)"):
        m, settings = read_usd(tmp_path / "bars.usda")
    assert joints and m.q_names == ("a", "b", "c") and not settings.guess
    ours = written()
    start = pf.assemble(ours, [0.9, -0.3, 1.2], [0.3, 0.1, -0.2], hold=["a"])
    sign = np.array([1.0, -1.0, 1.0]) * (1 if up == "Z" else -1)
    q, v = start.q, start.v
    close(accelerations(m, sign * q, sign * v) * sign, accelerations(ours, q, v), SINGLE, "accelerations")


def test_drives_limits_mimics_and_armature(tmp_path):
    s = stage(tmp_path / "arm.usda", metre=0.01)
    rod(s, "upper", (0, 0, 0), 1.0, 2.0, 0.01)
    rod(s, "lower", (1, 0, 0), 0.5, 1.0, 0.01)
    rod(s, "tip", (1.5, 0, 0), 0.5, 1.0, 0.01)
    shoulder = hinge(s, "shoulder", None, "upper", metre=0.01)
    shoulder.CreateLowerLimitAttr(-90.0)
    drive = UsdPhysics.DriveAPI.Apply(shoulder.GetPrim(), "angular")
    drive.CreateStiffnessAttr(200.0)
    drive.CreateDampingAttr(10.0)
    drive.CreateTargetPositionAttr(45.0)
    drive.CreateMaxForceAttr(30000.0)
    shoulder.GetPrim().CreateAttribute("physxJoint:armature", Sdf.ValueTypeNames.Float).Set(2500.0)
    hinge(s, "elbow", "upper", "lower", (1, 0, 0), metre=0.01)
    wrist = hinge(s, "wrist", "lower", "tip", (0.5, 0, 0), metre=0.01).GetPrim()
    wrist.CreateRelationship("physxMimicJoint:rotY:referenceJoint").SetTargets([Sdf.Path("/elbow")])
    wrist.CreateAttribute("physxMimicJoint:rotY:gearing", Sdf.ValueTypeNames.Float).Set(0.5)
    wrist.CreateAttribute("physxMimicJoint:rotY:offset", Sdf.ValueTypeNames.Float).Set(9.0)
    s.Save()
    with pytest.warns(ModelWarning, match="drives act as springs and dampers .* 'shoulder'"):
        m, _ = read_usd(tmp_path / "arm.usda")
    assert m.u_names == ("shoulder", "elbow") and m.q_names == ("shoulder", "elbow")
    assert m.u_limits[0] == pytest.approx([-3.0, 3.0]) and m.q_limits[0] == pytest.approx([-np.pi / 2, np.inf])
    y = {"axis": (0, 1, 0)}
    k = 200 * 1e-4 * 180 / np.pi
    joints = [
        pf.joint("shoulder", "revolute", "world", "upper", stiffness=k, damping=k / 20, rest=np.pi / 4, armature=0.25, **y),
        pf.joint("elbow", "revolute", "upper", "lower", placement=(1, 0, 0), **y),
        pf.joint("wrist", "revolute", "lower", "tip", placement=(0.5, 0, 0), mimic=pf.mimic({"elbow": -0.5}, -np.pi / 20), **y),
    ]
    bodies = [pf.body(n, mass=a, com=(l / 2, 0, 0), inertia=a * l**2 / 8) for n, l, a in
              (("upper", 1.0, 2.0), ("lower", 0.5, 1.0), ("tip", 0.5, 1.0))]  # fmt: skip
    ours = pf.mechanism("arm", bodies, joints)
    q, v = [0.3, -0.8], [0.5, 1.1]
    close(accelerations(m, q, v), accelerations(ours, q, v), SINGLE, "accelerations")


def test_bodies_float_and_start_at_their_pose_in_the_stage(tmp_path):
    """A ball without a MassAPI gets the mass of its collider; shapes below its prim belong to it."""
    s = stage(tmp_path / "ball.usda")
    scene = UsdPhysics.Scene.Define(s, "/physics")
    scene.CreateGravityDirectionAttr(Gf.Vec3f(1, 0, 0))
    scene.CreateGravityMagnitudeAttr(2.0)
    ball = rod(s, "ball", (0.5, -0.25, 2.0), 0, 0, api=False)
    UsdPhysics.ArticulationRootAPI.Apply(ball)
    sphere = UsdGeom.Sphere.Define(s, "/ball/skin")
    sphere.CreateRadiusAttr(0.25)
    UsdPhysics.CollisionAPI.Apply(sphere.GetPrim())
    cube = UsdGeom.Cube.Define(s, "/ball/hat")
    cube.CreateSizeAttr(0.5)
    cube.AddScaleOp().Set(Gf.Vec3f(1, 2, 4))
    rod(s, "bob", (0.5, -0.25, 1.5), 0.5, 1.0)
    hinge(s, "slide", "ball", "bob", axis="Z", kind=UsdPhysics.PrismaticJoint)
    hinge(s, "socket", "ball", "bob", axis=None, kind=UsdPhysics.SphericalJoint).CreateJointEnabledAttr(False)
    s.Save()
    m, settings = read_usd(tmp_path / "ball.usda")
    mass = 1000 * 4 / 3 * np.pi * 0.25**3
    assert m.value(m.body("ball").mass).item() == pytest.approx(mass) and [s.role for s in m.body("ball").shapes] == [
        "collision",
        "visual",
    ]
    assert m.value(m.body("ball").inertia)[0, 0] == pytest.approx(0.4 * mass * 0.25**2)
    assert m.value(m.body("ball").shapes[1].size).ravel() == pytest.approx([0.5, 1, 2])
    assert settings.guess == {"ball base.x": 0.5, "ball base.y": -0.25, "ball base.z": 2.0, "ball base.qw": 1.0, "slide": -0.5}
    assert m.value(m.gravity).ravel() == pytest.approx([2, 0, 0])
    q = settings.arrays(m).q
    assert pf.forward_kinematics(m, q)["bob"].position == pytest.approx([0.5, -0.25, 1.5])


def test_solids_are_converted_from_unit_and_scale_of_the_stage(tmp_path):
    """The stage is in centimetres; solids are scaled by 1, 2 and 3 along x, y and z, and axes of round ones are along y."""
    s = stage(tmp_path / "solids.usda", metre=0.01)
    ball = rod(s, "ball", (0, 0, 0), 0.5, 1.0, metre=0.01)
    UsdPhysics.ArticulationRootAPI.Apply(ball)
    sizes = {"Cube": {"size": 10.0}, "Sphere": {"radius": 4.0}}
    sizes |= {kind: {"radius": 4.0, "height": 20.0} for kind in ("Cylinder", "Capsule", "Cone")}
    for kind, given in sizes.items():
        solid = getattr(UsdGeom, kind).Define(s, f"/ball/{kind}")
        for name, x in given.items():
            solid.GetPrim().GetAttribute(name).Set(x)
        if "height" in given:
            solid.CreateAxisAttr("Y")
        solid.AddScaleOp().Set(Gf.Vec3f(1, 2, 3))
    s.Save()
    m, _ = read_usd(tmp_path / "solids.usda")
    found = {shape.kind: m.value(shape.size).ravel().tolist() for shape in m.body("ball").shapes}
    for kind, size in found.items():
        expected = {"box": [0.1, 0.2, 0.3], "sphere": [0.12]}.get(kind, [0.12, 0.4])
        assert size == pytest.approx(expected), kind
    assert set(found) == {"box", "sphere", "cylinder", "capsule", "cone"}


def test_a_stage_may_not_open_files_elsewhere(tmp_path):
    outside = tmp_path / "outside.usda"
    outside.write_text("#usda 1.0\n(\n)\n")
    inside = tmp_path / "robot"
    inside.mkdir()
    for name in ("../outside.usda", str(outside), "https://example.org/a.usd"):
        file = inside / "r.usda"
        file.write_text(f"#usda 1.0\n(\n subLayers = [@{name}@]\n)\n")
        with pytest.raises(ModelError, match=r"is not a path below the file's own folder"):
            read_usd(file)


WRONG = {
    "one body twice": ("RevoluteJoint", ["rel physics:body0 = </a>"], "connects a body to itself"),
    "missing": ("RevoluteJoint", ["rel physics:body0 = </b>"], "'/b', which does not exist"),
    "many": ("RevoluteJoint", ["rel physics:body0 = [</a>, </c>]"], "names 2 bodies"),
    "limits": ("RevoluteJoint", ["float physics:lowerLimit = 9", "float physics:upperLimit = 1"], "lower limit 9.0 is above"),
    "no length": ("DistanceJoint", ["float physics:maxDistance = 1"], "only rods of fixed length are read"),
    "zero quaternion": ("FixedJoint", ["quatf physics:localRot0 = (0, 0, 0, 0)"], "is not a quaternion"),
    "mimics an unknown joint": ("RevoluteJoint", ["rel newton:mimicJoint = </k>"], "which is not a joint"),
    "another type": (
        "RevoluteJoint",
        ["float physics:axis = 1"],
        "'/j.physics:axis' has a value of a type other than token; correct it",
    ),
    "no type": ("RevoluteJoint", ["double1_000 mine = (1, 2, 3)"], "'/j.mine' has a value of an unknown type; correct it"),
    "no kind": (
        "Joint",
        ["float limit:transX:physics:low = 1", "float limit:transX:physics:high = -1"],
        "no joint kind has the free axes",
    ),
}
HEAD = """#usda 1.0
def Xform "a" (
    prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"]
)
{
    float physics:mass = 1
}
"""


@pytest.mark.parametrize(("kind", "inside", "words"), WRONG.values(), ids=WRONG)
def test_wrong_stages(tmp_path, kind, inside, words):
    file = tmp_path / "wrong.usda"
    api = '(\n prepend apiSchemas = ["PhysicsLimitAPI:transX"]\n)' if kind == "Joint" else ""
    lines = "\n".join(["rel physics:body1 = </a>", *inside])
    file.write_text(f'{HEAD}def Physics{kind} "j" {api}\n{{\n{lines}\n}}\n')
    with pytest.raises(ModelError, match=words):
        read_usd(file)


@pytest.mark.parametrize(
    ("word", "value"), [("mass", "nan"), ("centerOfMass", "(0, inf, 0)"), ("diagonalInertia", "(1, 1, 3)")]
)
def test_impossible_masses_are_refused(tmp_path, word, value):
    kind = {"mass": "float", "centerOfMass": "point3f"}.get(word, "float3")
    file = tmp_path / "s.usda"
    file.write_text(
        '#usda 1.0\ndef Xform "a" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"])\n'
        f"{{ float physics:density = 1\n {kind} physics:{word} = {value}\n}}\n"
    )
    with pytest.raises(ModelError, match=r"s\.usda: '/a(\.physics:\w+)?': .*(is not finite|triangle inequality)"):
        pf.formats.read_usd(file, strict=True)


BODY = 'def Xform "{}" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"])\n{{ float physics:mass = 1\n'
BODY += "float3 physics:diagonalInertia = (1, 1, 1)\n}}\n"
HINGE = 'def PhysicsRevoluteJoint "{}"\n{{ {}\n rel physics:body1 = </{}>\n {}\n}}\n'


def test_joints_keep_the_order_of_the_file_in_each_round(tmp_path):
    """The first joint of the file can be placed only after the second, and so follows the third."""
    joints = (
        HINGE.format("j", "rel physics:body0 = </a>", "c", "") + HINGE.format("k", "", "a", "") + HINGE.format("l", "", "b", "")
    )
    file = tmp_path / "s.usda"
    file.write_text("#usda 1.0\n" + "".join(map(BODY.format, "abc")) + joints)
    assert pf.formats.read_usd(file)[0].q_names == ("k", "l", "j")


def test_limits_may_be_infinite_but_are_numbers(tmp_path):
    file = tmp_path / "s.usda"
    for value, limits in (("-inf", (-np.inf, np.inf)), ("nan", None)):
        hinge = HINGE.format("j", "", "a", f"float physics:lowerLimit = {value}")
        file.write_text("#usda 1.0\n" + BODY.format("a") + hinge)
        if limits:
            assert pf.formats.read_usd(file)[0].joint("j").limits == (limits,)
        else:
            with pytest.raises(ModelError, match=r"'/j.physics:lowerLimit': nan is not finite; correct it"):
                pf.formats.read_usd(file)


@pytest.mark.parametrize(
    ("text", "words"),
    [('def PhysicsRevoluteJoint "j"\n{\n}', "there is no rigid body; apply PhysicsRigidBodyAPI"),
     ('def Mesh "cloth" (prepend apiSchemas = ["PhysicsDeformableBodyAPI"])\n{\n}', "such as '/cloth', which is not read"),
     ('def Xform "b" (prepend apiSchemas = ["PhysicsRigidBodyAPI"])\n{\nbool physics:kinematicEnabled = 1\n}',
      "no joint moves: joints or kinematicEnabled fix all bodies; let one move")],
    ids=["joint", "cloth", "kinematic"],
)  # fmt: skip
def test_a_stage_in_which_nothing_moves_is_refused_with_the_reason(tmp_path, text, words):
    file = tmp_path / "still.usda"
    file.write_text(f"#usda 1.0\n{text}\n")
    with pytest.raises(ModelError, match=f"still.usda: .*{words}"):
        read_usd(file)


@pytest.mark.parametrize(
    "data", [b"", b"#usda 1.0\n(", b"PXR-USDC" + bytes(200), b"\xff\xfe", b'#usda 1.0\ndef Xform "\xf0(" (\n']
)
def test_damaged_stages(tmp_path, data):
    for suffix in (".usda", ".usdc", ".usd"):
        file = tmp_path / f"damaged{suffix}"
        file.write_bytes(data)
        with pytest.raises(ModelError):
            read_usd(file)
