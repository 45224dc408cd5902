"""Small files beside what the engines of their formats compute: usd-core 26.11, MuJoCo 4.0.0 and libsdformat 12.3.0."""

from __future__ import annotations

import numpy as np
import pytest

import pfaffian as pf
from pfaffian.errors import ModelError, ModelWarning
from tests.tolerance import close

pytest.importorskip("pxr")
pytest.importorskip("mujoco")
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*(contact between shapes|actuatorfrcrange limits motors):pfaffian.errors.ModelWarning"
)

SINGLE = 1e-6
"""Relative tolerance beside numbers of USD, which are of single precision, and printed values of MuJoCo."""


def stage(inside: str, api: str = "", more: str = "") -> str:
    applied = ", ".join(f'"Physics{a}API"' for a in ("RigidBody", *api.split()))
    return (
        f'#usda 1.0\n(\n metersPerUnit = 1\n upAxis = "Z"\n)\ndef Xform "b" (prepend apiSchemas = [{applied}])\n'
        f"{{\n{inside}\n}}\n{more}\n"
    )


def collider(kind: str, lines: str, api: str = "") -> str:
    applied = ", ".join(f'"Physics{a}API"' for a in ("Collision", *api.split()))
    return f'def {kind} "c" (prepend apiSchemas = [{applied}])\n{{\n{lines}\n}}\n'


THREE, CUBE = "float physics:mass = 3\n", "double size = 2\n"
TETRAHEDRON = (
    "int[] faceVertexCounts = [3, 3, 3, 3]\nint[] faceVertexIndices = [0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3]\n"
    "point3f[] points = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]\n"
)
PROTOTYPE = f'def Xform "proto"\n{{\n{collider("Cube", CUBE)}\n}}'
INSTANCE = 'def Xform "many" (\ninstanceable = true\nprepend references = </proto>\n)\n{\n}\n'
FAR = f"{CUBE}double3 xformOp:translate = (5, 0, 0)\n" + 'uniform token[] xformOpOrder = ["xformOp:translate"]\n'
CAPSULE = 'double radiusTop = 0.5\ndouble radiusBottom = 0.5\ndouble height = 2\nuniform token axis = "Z"\n'
ROUND = 2.25, 0.75
"""Mass of the cylinder, and of both half balls, of that capsule."""
ALONG, ACROSS = (
    ROUND[0] * 0.125 + ROUND[1] * 0.1,
    ROUND[0] * (0.0625 + 4 / 12) + ROUND[1] * (0.1 + 1 + 2 * 0.375 * 0.5),
)

MASSES = {
    "a mass of the collider": (stage(collider("Cube", CUBE + "float physics:mass = 7", "Mass")), 7, [14 / 3] * 3),
    "a density of the collider": (stage(collider("Cube", CUBE + "float physics:density = 200", "Mass")), 1600, [3200 / 3] * 3),
    "a mass centre": (
        stage(THREE + "point3f physics:centerOfMass = (0, 0, 0)\n" + collider("Cube", FAR), "Mass"),
        3,
        [2, 77, 77],
    ),
    "an instance": (stage(THREE + INSTANCE, "Mass", PROTOTYPE), 3, [2, 2, 2]),
    "a mesh": (stage(THREE + collider("Mesh", TETRAHEDRON, "MeshCollision"), "Mass"), 3, [0.225] * 3),
    "a capsule": (stage(THREE + collider("Capsule_1", CAPSULE), "Mass"), 3, [ACROSS, ACROSS, ALONG]),
}


def same(m: pf.Mechanism, mass: float, moments: list[float]) -> None:
    b = m.bodies[0]
    close([*m.value(b.mass).ravel(), *np.diag(m.value(b.inertia))], [mass, *moments], SINGLE, "mass and moments")


@pytest.mark.parametrize("name", MASSES)
def test_masses_of_usd(tmp_path, name):
    text, mass, moments = MASSES[name]
    (tmp_path / "b.usda").write_text(text)
    same(pf.read(tmp_path / "b.usda")[0], mass, moments)


def test_velocities_of_usd_are_the_start(tmp_path):
    (tmp_path / "b.usda").write_text(stage("vector3f physics:velocity = (1, 0, 0)\n" + collider("Cube", CUBE)))
    m, settings = pf.read(tmp_path / "b.usda")
    assert pf.assemble(m, settings.start, settings.v).v.tolist() == [1, 0, 0, 0, 0, 0]


def test_limits_of_a_d6_joint(tmp_path):
    axes = [f"{way}{x}" for way in ("trans", "rot") for x in "XYZ"]
    spans = {a: (-30, 45) if a == "rotX" else (1, -1) for a in axes}
    lines = [f"float limit:{a}:physics:{w} = {x}" for a in axes for w, x in zip(("low", "high"), spans[a], strict=True)]
    applied = ", ".join(f'"PhysicsLimitAPI:{a}"' for a in axes)
    inside = "\n".join(["rel physics:body1 = </b>", *lines])
    joint = f'def PhysicsJoint "hinge" (prepend apiSchemas = [{applied}])\n{{\n{inside}\n}}'
    (tmp_path / "b.usda").write_text(stage("float physics:mass = 2\nfloat3 physics:diagonalInertia = (1, 1, 1)", "Mass", joint))
    m = pf.read(tmp_path / "b.usda")[0]
    assert m.q_names == ("hinge",)
    close(np.ravel(m.q_limits), np.radians([-30, 45]), SINGLE, "limits")


PENDULUM = (
    '<mujoco>{}<worldbody><body name="b" {}><joint name="a" axis="0 {} {}" {}/><geom size=".1" mass="1" pos="{} 0 0"/>'
    "</body></worldbody></mujoco>"
)


def test_a_spring_that_yields_is_refused():
    """After 8 s from 1 rad MuJoCo's is at 0.9966, an elastic one would be at 0.0176."""
    spring = 'stiffness="10" springyield="0.2" damping="1"'
    with pytest.raises(ModelError, match="springyield"):
        pf.formats.parse_mjcf(PENDULUM.format('<option gravity="0 0 0"/>', "", 0, 1, spring, 1))


@pytest.mark.parametrize(
    ("motor", "acceleration"), [("", 4.905 / 0.254), ('<actuator><motor joint="a"/></actuator>', 3.905 / 0.254)]
)
def test_gravity_compensation_by_motors(motor, acceleration):
    text = PENDULUM.format("", 'gravcomp="1"', 1, 0, 'actuatorgravcomp="true" actuatorfrcrange="-1 1"', 0.5)
    m = pf.formats.parse_mjcf(text.replace("</mujoco>", f"{motor}</mujoco>"))[0]
    close(pf.forward_dynamics(m, [0.0]).v_dot, [acceleration], SINGLE, "acceleration")


BOX = "<geometry><box><size>.2 .3 .4</size></box></geometry>"


@pytest.mark.parametrize(
    "inside",
    [
        f"<inertial auto='true'/><collision name='c'><density>500</density>{BOX}</collision>",
        f"<inertial auto='true'><density>500</density></inertial><collision name='c'>{BOX}</collision>",
    ],
)
def test_an_automatic_inertia_of_sdf(inside):
    text = f"<sdf version='1.11'><model name='m'><link name='l'>{inside}</link></model></sdf>"
    same(pf.formats.parse_sdf(text)[0], 12, [0.25, 0.2, 0.13])


def test_the_gravity_of_a_world_of_sdf():
    link = "<link name='a'><inertial><mass>1</mass><inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz></inertia></inertial></link>"
    m = pf.formats.parse_sdf(f"<sdf version='1.9'><world name='w'><model name='m'>{link}</model></world></sdf>")[0]
    assert m.value(m.gravity).ravel().tolist() == [0, 0, -9.8]


def test_an_include_of_a_sibling_folder(tmp_path):
    for name, text in {
        "arm/arm.xml": '<include file="../common/world.xml"/>' + PENDULUM.format("", "", 1, 0, "", 0.5)[len("<mujoco>") :],
        "common/world.xml": '<mujocoinclude><option gravity="0 0 -2"/></mujocoinclude>',
    }.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("<mujoco>" + text if name.startswith("arm") else text)
    m = pf.read(tmp_path / "arm" / "arm.xml", folder=tmp_path)[0]
    assert m.value(m.gravity).ravel().tolist() == [0, 0, -2]
    with pytest.raises(ModelError, match="folder="):
        pf.read(tmp_path / "arm" / "arm.xml")


ROBOT = """<robot name="r"><link name="base"/><link name="a"><inertial><mass value="1"/>
<inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="A" type="continuous"><parent link="base"/><child link="a"/><axis xyz="0 0 1"/>{}</joint>{}</robot>"""


def test_springs_of_gazebo_references():
    spring = "<springStiffness>5</springStiffness><springReference>0.2</springReference>"
    m = pf.formats.parse_urdf(ROBOT.format("", f'<gazebo reference="A">{spring}</gazebo>'))
    close(pf.forward_dynamics(m, [0.5], [1.0]).v_dot, [-15], SINGLE, "acceleration")


@pytest.mark.parametrize(
    ("inside", "more", "told"),
    [
        ("", '<gazebo reference="A"><implicitSpringDamper>true</implicitSpringDamper></gazebo>', ""),
        ('<dynamics damping="0" spring_stiffness="5" spring_reference="0.2"/>', "", "spring_stiffness"),
        ('<dynamics dampping="3"/>', "", "dampping"),
        ("", '<transmission name="t"><type>x</type><joint name="A"/><actuator name="m"><mechanicalReduction>50'
             "</mechanicalReduction></actuator></transmission>", "mechanicalReduction"),
        ("", '<ros2_control name="s" type="system"><transmission name="t"><plugin>transmission_interface/'
             "FourBarLinkageTransmission</plugin></transmission></ros2_control>", "FourBarLinkageTransmission"),
        ("", '<spring joint="A" k="5"/>', "<spring>"),
    ],
)  # fmt: skip
def test_what_urdf_adds_to_a_joint_is_named(recwarn, inside, more, told):
    pf.formats.parse_urdf(ROBOT.format(inside, more))
    messages = " ".join(str(w.message) for w in recwarn if w.category is ModelWarning)
    assert told in messages and bool(told) == bool(messages)


def test_gravity_of_a_link_is_switched_off(recwarn):
    m = pf.formats.parse_urdf(ROBOT.format("", '<gazebo reference="a"><turnGravityOff>true</turnGravityOff></gazebo>'))
    assert [f.name for f in m.forces] == ["a without gravity"] and not recwarn


def test_a_spring_of_gazebo():
    """5 N m/rad from 0.2 rad at 0.5 rad, about an axis with 0.1 kg m^2."""
    inertia = '<inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/>'
    link = f'<link name="base"/><link name="a"><inertial><mass value="1"/>{inertia}</inertial></link>'
    ends = '<parent link="base"/><child link="a"/><axis xyz="0 0 1"/>'
    spring = "<springStiffness>5</springStiffness><springReference>0.2</springReference>"
    joint = f'<joint name="A" type="continuous">{ends}</joint><gazebo reference="A">{spring}</gazebo>'
    m = pf.formats.parse_urdf(f'<robot name="r">{link}{joint}</robot>')
    close(pf.forward_dynamics(m, [0.5], [1.0]).v_dot, [-15.0], SINGLE, "acceleration")
