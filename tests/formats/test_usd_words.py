"""Parts of a stage that are not there, or that UsdPhysics does not know, are named; a disabled body is part of its parent."""

import re
import warnings

import numpy as np
import pytest

import pfaffian as pf
from pfaffian.errors import ModelError, ModelWarning
from tests.formats.test_usd_facts import CUBE, RIGID, TETRAHEDRON, prim
from tests.tolerance import close

SINGLE = 1e-6
"""Relative tolerance: a stage has single precision."""

BOX = prim(*CUBE, "double size = 1")
BODY = prim("Xform", "b", RIGID, BOX)


def read(folder, *prims, head=""):
    """The machine of a stage, and its warnings."""
    file = folder / "s.usda"
    file.write_text(f'#usda 1.0\n(\n metersPerUnit = 1\n upAxis = "Z"\n{head})\n' + "\n".join(prims) + "\n")
    with warnings.catch_warnings(record=True, action="always") as caught:
        m, _ = pf.formats.read_usd(file)
    return m, "; ".join(str(w.message) for w in caught if w.category is ModelWarning)


@pytest.mark.parametrize("arc", ["references = @./none.usda@", "payload = @./none.usda@", "references = </nothing>"])
def test_prims_whose_parts_usd_does_not_find_are_named(tmp_path, arc):
    _, told = read(tmp_path, BODY, f'def "arm" (\n {arc}\n)\n{{\n}}')
    assert "references, payloads or layers that USD does not find: '/arm'" in told


def test_a_layer_that_is_missing_is_named(tmp_path):
    _, told = read(tmp_path, BODY, head=" subLayers = [@./none.usda@]\n")
    assert "that USD does not find: '/'" in told


@pytest.mark.parametrize(
    ("other", "words"),
    [(prim("PhysicsGearJoint", "gear", ""), "/gear (PhysicsGearJoint)"),
     (prim("Xform", "x", "PhysicsMuscleAPI"), "/x (PhysicsMuscleAPI)"),
     (prim("PointInstancer", "many", "", "rel prototypes = </b>"), "/many (PointInstancer)")],
    ids=["joint", "schema", "instancer"],
)  # fmt: skip
def test_what_usdphysics_lacks_and_instancers_of_bodies_are_named(tmp_path, other, words):
    assert f"prims that are not read: '{words}'" in read(tmp_path, BODY, other)[1]


def test_an_instancer_of_decoration_is_not_named(tmp_path):
    leaf = prim("Sphere", "leaf", "")
    assert "not read" not in read(tmp_path, BODY, leaf, prim("PointInstancer", "many", "", "rel prototypes = </leaf>"))[1]


@pytest.mark.parametrize(("enabled", "masses"), [(0, [2000.0]), (1, [1000.0, 1000.0])])
def test_a_disabled_body_within_another_is_part_of_it(tmp_path, enabled, masses):
    """Its collider, 2 m above, weighs with the other's, as in usd-core."""
    up = ("double3 xformOp:translate = (0, 0, 2)", 'uniform token[] xformOpOrder = ["xformOp:translate"]')
    inner = prim("Xform", "lid", RIGID, f"bool physics:rigidBodyEnabled = {enabled}", *up, BOX)
    m, _ = read(tmp_path, prim("Xform", "b", RIGID, BOX, inner))
    close(np.array([float(b.mass) for b in m.bodies]), np.array(masses), SINGLE, "masses")
    close(np.array(m.value(m.bodies[0].com)).ravel(), np.array([0, 0, 0 if enabled else 1.0]), SINGLE, "mass centre")


def test_a_joint_to_a_prim_within_a_body_is_placed_in_that_body(tmp_path):
    """The prim is turned by 90 degrees about x, in a body that is turned by 90 degrees about z."""

    def turned(axis, *at):
        ops = f'["xformOp:translate", "xformOp:rotate{axis}"]'
        return f"double3 xformOp:translate = {at}", f"float xformOp:rotate{axis} = 90", f"uniform token[] xformOpOrder = {ops}"

    arm = prim("Xform", "arm", RIGID, *turned("Z", 5.0, 0.0, 0.0), BOX, prim("Xform", "tip", "", *turned("X", 1.0, 2.0, 3.0)))
    ends = "rel physics:body0 = </arm/tip>", "rel physics:body1 = </b>"
    hinge = prim(
        "PhysicsRevoluteJoint", "j", "", *ends, "point3f physics:localPos0 = (0, 0.5, 0)", 'uniform token physics:axis = "Y"'
    )
    m, _ = read(tmp_path, arm, BODY, hinge)
    (j,) = [j for j in m.joints if j.name == "j"]
    at = j.placement if j.parent == "arm" else j.child_placement
    close(np.array(m.value(at.p)).ravel(), np.array([1, 2, 3.5]), SINGLE, "place")
    close(np.array(m.value(at.R))[:, 2], np.array([0, 0, 1.0]), SINGLE, "axis")  # a hinge turns about z of its frame


@pytest.mark.parametrize(
    ("line", "words"),
    [("quatf physics:localRot1 = (1.5, 0, 1.5, 0)", "'/j.physics:localRot1'"),
     ("quatf physics:localRot0 = (0.7071, 0, 0, 0.7071)", None)],
    ids=["long", "four digits"],
)  # fmt: skip
def test_quaternions_of_joints_off_unit_length_are_named(tmp_path, line, words):
    _, told = read(tmp_path, BODY, prim("PhysicsRevoluteJoint", "j", "", "rel physics:body1 = </b>", line))
    assert words is None if "quaternions" not in told else f"not of unit length are normalised: {words}" in told


@pytest.mark.parametrize(
    ("lines", "words"),
    [(("float physics:mass = 2", "quatf physics:principalAxes = (1, 1, 0, 0)"), "are normalised: '/b.physics:principalAxes'"),
     (("float physics:mass = 2", "quatf physics:principalAxes = (0, 0, 0, 0)"), None),
     (("quatd xformOp:orient = (1, 1, 0, 0)", 'uniform token[] xformOpOrder = ["xformOp:orient"]'),
      "turn by twice the arc cosine of their scalar part, as in USD: '/b.xformOp:orient'"),
     (("float physics:mass = -2",), "below zero count as not given, as in USD: '/b.physics:mass'"),
     (("float physics:density = -2",), "below zero count as not given, as in USD: '/b.physics:density'")],
    ids=["axes", "none", "transform", "mass", "density"],
)  # fmt: skip
def test_odd_numbers_of_bodies_are_named(tmp_path, lines, words):
    _, told = read(tmp_path, prim("Xform", "b", RIGID, *lines, BOX))
    assert words in told if words else "quaternions" not in told


@pytest.mark.parametrize("scalar", [0.5, 1.25])
def test_a_transform_turns_by_the_scalar_part_of_its_quaternion_as_in_usd(tmp_path, scalar):
    """By 120 degrees and not at all, where both quaternions point along one of 90 degrees about z."""
    ops = f"quatd xformOp:orient = ({scalar}, 0, 0, {scalar})", 'uniform token[] xformOpOrder = ["xformOp:orient"]'
    arm = prim(
        "Xform", "tip", "", "double3 xformOp:translate = (1, 0, 0)", 'uniform token[] xformOpOrder = ["xformOp:translate"]'
    )
    m, _ = read(
        tmp_path, prim("Xform", "b", RIGID, BOX, prim("Xform", "a", "", *ops, BOX, arm.replace("\n}", f"\n{BOX}\n}}", 1)))
    )
    places = [np.array(m.value(shape.placement.p)).ravel() for shape in m.bodies[0].shapes]
    angle = 2 * np.arccos(min(scalar, 1))
    close(places[-1], np.array([np.cos(angle), np.sin(angle), 0]), SINGLE, "place")


def solid(kind, *lines, api="PhysicsCollisionAPI"):
    """A body with a round solid."""
    return prim("Xform", "b", RIGID, "float physics:mass = 2", prim(kind, "c", api, "double height = 1", *lines))


@pytest.mark.parametrize(
    ("other", "words"),
    [(prim("PhysicsRevoluteJoint", "j", "", "rel physics:body1 = </b>", 'token physics:axis = "y"'), "physics:axis is 'y'"),
     (prim("PhysicsSphericalJoint", "j", "", "rel physics:body1 = </b>", 'token physics:axis = "-Z"'), "physics:axis is '-Z'"),
     (solid("Cylinder", 'token axis = "W"').replace('"b"', '"d"'), "'/d/c': axis is 'W'"),
     (solid("Cone", 'token axis = ""', api="").replace('"b"', '"d"'), "'/d/c': axis is ''")],
    ids=["hinge", "ball", "collider", "picture"],
)  # fmt: skip
def test_axes_other_than_three_are_refused(tmp_path, other, words):
    with pytest.raises(ModelError, match=re.escape(f"{words}; it must be X, Y or Z")):
        read(tmp_path, BODY, other)


@pytest.mark.parametrize(
    ("kind", "line", "words"),
    [("Cube", "double size = 0", "size is 0.0; it must be above zero"),
     ("Cube", "double size = None", "size is None; it must be above zero"),
     ("Sphere", "double radius = -2", "radius is -2.0; it must be above zero"),
     ("Cylinder", "double height = 0", "height is 0.0; it must be above zero"),
     ("Cone", "double radius = 0", "radius is 0.0; it must be above zero"),
     ("Capsule", "double height = -1", "height is -1.0; it must be zero or positive"),
     ("Capsule_1", "double radiusTop = -1", "radiusTop is -1.0; it must be zero or positive"),
     ("Cylinder_1", "double radiusBottom = 0\ndouble radiusTop = 0", "both of its radii are zero; one must be above zero")],
    ids=lambda x: x.split()[0] if x[0].isupper() else "",
)  # fmt: skip
@pytest.mark.parametrize("api", ["PhysicsCollisionAPI", ""], ids=["collider", "picture"])
def test_sizes_of_solids_that_are_none_are_refused_with_their_prim(tmp_path, kind, line, words, api):
    with pytest.raises(ModelError, match=re.escape(f"s.usda: '/b/c': {words}")):
        read(tmp_path, prim("Xform", "b", RIGID, BOX.replace('"c"', '"d"'), prim(kind, "c", api, line)))


def test_solids_with_a_tip_and_a_capsule_without_length(tmp_path):
    ends = "double height = 1", "double radiusBottom = 1", "double radiusTop = 0"
    sizes = {
        "Capsule": ("double height = 0", "double radius = 1"),
        "Cone": ("double height = 1", "double radius = 1"),
        "Cylinder_1": ends,
    }
    bodies = [prim("Xform", kind, RIGID, prim(kind, "c", "PhysicsCollisionAPI", *lines)) for kind, lines in sizes.items()]
    m, _ = read(tmp_path, *bodies)
    close(np.array([float(b.mass) for b in m.bodies]), 1000 * np.pi / 3 * np.array([4, 1, 1]), SINGLE, "masses")
    close(np.array([float(b.com[2]) for b in m.bodies]), np.array([0, -0.25, -0.25]), SINGLE, "mass centres")
    assert [b.shapes[0].kind for b in m.bodies] == ["sphere", "cone", "cylinder"]


@pytest.mark.parametrize("way", ["sdf", "meshSimplification"])
def test_an_approximation_that_usdphysics_lacks_is_named(tmp_path, way):
    mesh = prim(
        "Mesh", "c", "PhysicsCollisionAPI PhysicsMeshCollisionAPI", *TETRAHEDRON, f'token physics:approximation = "{way}"'
    )
    m, told = read(tmp_path, prim("Xform", "b", RIGID, mesh))
    assert ("have the mass of the mesh itself: '/b/c (sdf)'" in told) == (way == "sdf")
    close(float(m.bodies[0].mass), 1000 / 6, SINGLE, "mass")


@pytest.mark.parametrize("word", ["stiffness", "damping"])
def test_drives_that_would_drive_the_motion_are_refused(tmp_path, word):
    lines = "rel physics:body1 = </b>", f"float drive:linear:physics:{word} = -3"
    with pytest.raises(ModelError, match=f"s.usda: '/j': drive:linear:physics:{word} is -3.0; it must be zero or positive"):
        read(tmp_path, BODY, prim("PhysicsPrismaticJoint", "j", "PhysicsDriveAPI:linear", *lines))


def test_a_drive_of_an_unknown_type_is_named(tmp_path):
    lines = (
        "rel physics:body1 = </b>",
        "float drive:angular:physics:stiffness = 3",
        'token drive:angular:physics:type = "torque"',
    )
    _, told = read(tmp_path, BODY, prim("PhysicsRevoluteJoint", "j", "PhysicsDriveAPI:angular", *lines))
    assert "left out: 'j: a drive of unknown type torque'" in told


def test_a_stage_with_x_up_is_refused(tmp_path):
    (tmp_path / "s.usda").write_text(f'#usda 1.0\n(\n upAxis = "X"\n)\n{BODY}\n')
    with pytest.raises(ModelError, match="upAxis is 'X'; it must be Y or Z"):
        pf.read(tmp_path / "s.usda")


def test_errors_of_usd_begin_with_what_is_wrong(tmp_path):
    (tmp_path / "s.usda").write_text('#usda 1.0\ndef Xform "a"\n{\n float x = }\n')
    with pytest.raises(ModelError, match=r"^s\.usda: this USD file cannot be read: s\.usda:4"):
        pf.read(tmp_path / "s.usda")


@pytest.mark.parametrize(
    ("line", "type"),
    [("float3 physics:mass = (1, 2, 3)", "float"), ("float physics:centerOfMass = 1", "point3f"),
     ("float physics:diagonalInertia = 1", "float3"), ("float4 physics:principalAxes = (1, 0, 0, 0)", "quatf"),
     ("bool physics:mass = 1", "float"), ("int physics:rigidBodyEnabled = 0", "bool"),
     ("float physics:velocity = 1", "vector3f"), ("string newton:inertia = \"1 1 1 0 0 0\"", "float[]")],
    ids=lambda x: x.split()[1] if " " in x else "",
)  # fmt: skip
def test_values_of_another_type_than_the_schema_has_are_refused(tmp_path, line, type):
    with pytest.raises(ModelError, match=re.escape(f"{line.split()[1]}' has a value of a type other than {type}; correct it")):
        read(tmp_path, prim("Xform", "b", RIGID, line, BOX))


@pytest.mark.parametrize("line", ["float[] physics:lowerLimit = [1]", "float3 newton:armature = (1, 1, 1)",
                                  "float4 physics:localRot0 = (1, 0, 0, 0)", "float physics:localPos1 = 1"])  # fmt: skip
def test_values_of_joints_of_another_type_are_refused(tmp_path, line):
    with pytest.raises(ModelError, match="has a value of a type other than"):
        read(tmp_path, BODY, prim("PhysicsRevoluteJoint", "j", "", "rel physics:body1 = </b>", line))


def test_other_precisions_than_the_schema_has_are_read(tmp_path):
    lines = "double physics:mass = 3", "double3 physics:diagonalInertia = (1, 2, 2.5)", "vector3d physics:velocity = (1, 0, 0)"
    m, told = read(tmp_path, prim("Xform", "b", RIGID, *lines, "quatd physics:principalAxes = (1, 0, 0, 0)"))
    assert float(m.bodies[0].mass) == 3 and not told


BESIDE = "joints place bodies elsewhere than the stage does, and the joints count: 'j'"
FREE = {"cylindrical": ("transX", "rotX"), "planar": ("transX", "transY", "rotZ"), "universal": ("rotX", "rotY"),
        "translation": ("transX", "transY", "transZ")}  # fmt: skip
AXES = [a + x for a in ("trans", "rot") for x in "XYZ"]


def placed(joint, at, turn):
    """A body at a place, turned about an axis by an angle in degrees, on a joint to the world."""
    axis, angle = turn
    ops = f"double3 xformOp:translate = {at}", f"float xformOp:rotate{axis} = {angle}"
    order = f'uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:rotate{axis}"]'
    locks = [a for a in AXES if a not in FREE.get(joint, AXES)]
    lines = [f"float limit:{a}:physics:{w} = {x}" for a in locks for w, x in (("low", 1), ("high", -1))]
    kind = "" if joint in FREE else joint
    end = prim(f"Physics{kind}Joint", "j", " ".join(f"PhysicsLimitAPI:{a}" for a in locks), "rel physics:body1 = </b>", *lines)
    return prim("Xform", "b", RIGID, *ops, order, BOX), end


PLACES = """
Revolute     0 0 0  X 40  allowed
Revolute     0 0.1 0  X 40  not
Revolute     0 0 0  Y 1  not
Prismatic    3 0 0  X 0  allowed
Prismatic    3 0 0.1  X 0  not
Prismatic    0 0 0  X 1  not
Spherical    0 0 0  Y 40  allowed
Spherical    0.1 0 0  Y 40  not
Fixed        0 0 0  Y 0  allowed
Fixed        0.1 0 0  Y 0  not
Fixed        0 0 0  Y 1  not
cylindrical  3 0 0  X 40  allowed
cylindrical  0 0.1 0  X 40  not
cylindrical  0 0 0  Y 1  not
planar       3 2 0  Z 40  allowed
planar       3 2 0.1  Z 40  not
planar       3 2 0  X 1  not
universal    0 0 0  Y 40  allowed
universal    0 0 0.1  Y 40  not
universal    0 0 0  Z 1  not
translation  1 2 3  Z 0  allowed
translation  1 2 3  Z 1  not
"""
"""Joint, place of its body, axis and angle [degrees] by which this is turned, and whether the joint allows it."""


@pytest.mark.parametrize("row", PLACES.strip().splitlines(), ids=lambda r: " ".join(r.split()))
def test_a_stage_that_places_bodies_where_their_joint_does_not_allow_is_named(tmp_path, row):
    """With a body beside it, so that something moves."""
    joint, x, y, z, axis, angle, allowed = row.split()
    parts = placed(joint, (float(x), float(y), float(z)), (axis, angle))
    assert (BESIDE in read(tmp_path, *parts, BODY.replace('"b"', '"free"'))[1]) == (allowed == "not")


def test_a_follower_is_where_its_law_says(tmp_path):
    follower = prim("PhysicsRevoluteJoint", "j", "NewtonMimicAPI", "rel physics:body1 = </b>", "rel newton:mimicJoint = </k>")
    first = prim("PhysicsRevoluteJoint", "k", "", "rel physics:body1 = </a>")
    assert BESIDE not in read(tmp_path, BODY, BODY.replace('"b"', '"a"'), follower, first)[1]


@pytest.mark.parametrize("line", ["float physics:mass.timeSamples = {0: 5}", "float physics:mass = 2"])
def test_a_single_value_in_time_is_none_at_the_default_time(tmp_path, line):
    m, told = read(tmp_path, prim("Xform", "b", RIGID, line.replace("{", "{\n").replace("}", "\n}"), BOX))
    assert float(m.bodies[0].mass) == (1000 if "time" in line else 2)
    assert ("values that vary in time" in told) == ("time" in line)


@pytest.mark.parametrize("head", ["metersPerUnit = 0.01", "kilogramsPerUnit = 0.001", 'upAxis = "Y"', "metersPerUnit = 1", ""])
def test_layers_with_other_units_are_named(tmp_path, head):
    """As in USD, their numbers are those of the stage."""
    (tmp_path / "part.usda").write_text(f'#usda 1.0\n(\n defaultPrim = "b"\n {head}\n)\n{BODY}\n')
    m, told = read(tmp_path, 'def "c" (\n references = @./part.usda@\n)\n{\n}')
    assert float(m.bodies[0].mass) == 1000
    other = head not in ("metersPerUnit = 1", "")
    assert (
        "layers with other units or another up axis than the stage are not converted, as in USD: 'part.usda'" in told
    ) == other


@pytest.mark.parametrize(
    ("api", "lines", "named"),
    [("PhysicsMassAPI", ("float physics:mass = 3",), True), ("PhysicsMassAPI", ("float physics:density = 3",), True),
     ("PhysicsMassAPI", ("float3 physics:diagonalInertia = (1, 1, 1)",), True), ("PhysicsMassAPI", (), False),
     ("PhysicsCollisionAPI PhysicsMassAPI", ("float physics:mass = 3",), False),
     ("PhysicsCollisionAPI PhysicsMassAPI", ("float physics:mass = 3", "bool physics:collisionEnabled = 0"), True)],
    ids=["mass", "density", "inertia", "nothing", "collider", "disabled"],
)  # fmt: skip
def test_masses_of_pictures_and_groups_are_named(tmp_path, api, lines, named):
    m, told = read(tmp_path, prim("Xform", "b", RIGID, BOX, prim("Cube", "extra", api, *lines)))
    close(float(m.bodies[0].mass), 1003 if api != "PhysicsMassAPI" and not named else 1000, SINGLE, "mass")
    assert ("neither rigid bodies nor enabled colliders have no effect, as in UsdPhysics: '/b/extra'" in told) == named


@pytest.mark.parametrize(
    ("kind", "scale", "named"),
    [("Sphere", (1, 1, 2), True), ("Cylinder", (1, 2, 1), True), ("Cone", (2, 2, 1), False), ("Cube", (1, 2, 3), False),
     ("Sphere", (2, 2, -2), False)],
)  # fmt: skip
def test_round_colliders_with_several_scales_across_are_named(tmp_path, kind, scale, named):
    lines = f"double3 xformOp:scale = {scale}", 'uniform token[] xformOpOrder = ["xformOp:scale"]'
    _, told = read(tmp_path, prim("Xform", "b", RIGID, prim(kind, "c", "PhysicsCollisionAPI", *lines)))
    assert ("stay round, with the largest, as in UsdPhysics: '/b/c'" in told) == named


@pytest.mark.parametrize("api", ["PhysicsCollisionAPI", ""])
def test_sizes_of_colliders_that_vary_in_time_are_named(tmp_path, api):
    """A cube whose edge has values at times alone has its default edge, 2 m, in UsdPhysics."""
    m, told = read(tmp_path, prim("Xform", "b", RIGID, BOX, prim("Cube", "d", api, "double size.timeSamples = {0: 0.1}")))
    assert ("values that vary in time" in told and "'/b/d.size'" in told) == bool(api)
    close(np.array([float(m.bodies[0].mass)]), np.array([9000.0 if api else 1000.0]), SINGLE, "mass")
