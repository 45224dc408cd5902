"""No file is read with a number that is none: 2,000 files, each with one wrong number, by a seed, in every format.

Each is refused with the line of the number, in USD with the prim. A number may be spelt in other ways: the machine is the same.
"""

import importlib.util
import random
import re
import warnings

import pytest

from pfaffian.errors import ModelError
from pfaffian.formats import parse_mjcf, parse_sdf, parse_urdf, parse_yaml, read_usd

# In the texts below, @ stands before each number, ~ before each that may be infinite, ^ before each in a list of any length. An
# element has a line of its own.
URDF = """<robot name="arm"><link name="base"/>
<link name="a"><inertial><origin xyz="@1 @.2 @-3" rpy="@0 @.1 @0"/><mass value="@1.5"/><inertia ixx="@.1" iyy="@.1" izz="@.1" ixy="@0" ixz="@1e-3" iyz="@0"/></inertial></link>
<link name="b"><inertial><mass value="@2"/><inertia ixx="@1" iyy="@1" izz="@1" ixy="@0" ixz="@0" iyz="@0"/></inertial></link>
<link name="c"><inertial><mass value="@2"/><inertia ixx="@1" iyy="@1" izz="@1" ixy="@0" ixz="@0" iyz="@0"/></inertial></link>
<joint name="j" type="revolute"><origin xyz="@0 @0 @1" rpy="@.1 @.2 @.3"/><parent link="base"/><child link="a"/><axis xyz="@0 @1 @0"/><limit lower="@-1" upper="@1" effort="@10" velocity="@3"/><dynamics damping="@.1" friction="@0"/></joint>
<joint name="k" type="prismatic"><parent link="a"/><child link="b"/><axis xyz="@1 @0 @0"/><mimic joint="j" multiplier="@2" offset="@.1"/></joint>
<joint name="l" type="continuous"><parent link="b"/><child link="c"/></joint>
<loop name="o" type="revolute"><predecessor link="c"><origin xyz="@1 @0 @0"/></predecessor><successor link="base"/><axis xyz="@0 @1 @0"/></loop>
<loop_joint name="p" type="spherical"><link1 link="base" xyz="@1 @2 @3"/><link2 link="c" rpy="@0 @.1 @0"/></loop_joint>
<transmission name="t"><joint name="j"/><actuator name="m"><drake:rotor_inertia value="@.01"/><drake:gear_ratio value="@3"/></actuator></transmission>
</robot>"""  # noqa: E501

SDF = """<sdf version="1.9"><model name="m">
<pose>@0 @0 @1 @0 @.1 @0</pose>
<link name="a"><pose>@1 @2 @3 @0 @0 @.1</pose><inertial><pose>@0 @0 @.5 @0 @0 @0</pose><mass>@2</mass><inertia><ixx>@1</ixx><iyy>@1</iyy><izz>@1</izz><ixy>@.1</ixy></inertia></inertial></link>
<link name="b"><inertial><mass>@3</mass></inertial></link>
<link name="c"/>
<frame name="f" attached_to="b"><pose>@0 @0 @1 @0 @0 @.2</pose></frame>
<joint name="j" type="revolute"><parent>a</parent><child>b</child><axis><xyz>@0 @1 @0</xyz><limit><lower>~-1</lower><upper>~1</upper><effort>~20</effort><velocity>~3</velocity></limit><dynamics><damping>@.1</damping><friction>@.2</friction><spring_reference>@.3</spring_reference><spring_stiffness>@4</spring_stiffness></dynamics></axis></joint>
<joint name="k" type="screw"><parent>b</parent><child>c</child><screw_thread_pitch>@.02</screw_thread_pitch><axis><xyz>@0 @0 @1</xyz></axis></joint>
</model></sdf>"""  # noqa: E501

MJCF = """<mujoco model="m"><compiler angle="radian"/>
<option timestep="@.002" gravity="@0 @0 @-9.81"/>
<worldbody>
<body name="a" pos="@0 @0 @1" quat="@1 @0 @0 @.1">
<joint name="h" axis="@0 @1 @0" range="~-1 ~1" damping="^.1" armature="@.01" stiffness="^2" springref="@.3" ref="@.1"/>
<inertial pos="@0 @0 @.1" mass="@2" diaginertia="@.1 @.1 @.1"/>
<body name="b" pos="@0 @0 @1" gravcomp="@.5">
<joint name="s" type="slide" axis="@1 @0 @0" limited="true" range="~-.5 ~.5"/>
<geom type="box" size="@.1 @.2 @.3" mass="@1.5" pos="@0 @.1 @0"/>
<site name="p" pos="@0 @.1 @.2"/></body></body>
<site name="o" pos="@0 @0 @2"/></worldbody>
<equality>
<joint joint1="h" joint2="s" polycoef="^0 ^1 ^.1 ^0 ^0"/></equality>
<tendon><spatial name="t" stiffness="^3" damping="^.1"><site site="o"/><site site="p"/></spatial></tendon>
<actuator>
<motor name="u" joint="h" gear="^20" ctrlrange="~-1 ~1"/>
<position name="v" joint="s" kp="@5" forcerange="~-2 ~2"/></actuator></mujoco>"""

YAML = """name: m
gravity: [@0, @0, @-9.81]
parameters:
  l: @0.5
  k: {default: @40, unit: N/m}
bodies:
  a: {mass: @2, com: [@0.1, @0, @-0.2], inertia: [@0.1, @0.1, @0.1]}
  b: {mass: @1.5, inertia: [@1, @1, @1, @0.1, @0, @0]}
joints:
  j: {kind: revolute, parent: world, child: a, axis: [@0, @1, @0], damping: @0.1, armature: @0.01, limits: [~-1, ~1]}
  s: {kind: prismatic, parent: a, child: b, placement: {xyz: [@0, @0, @1], rpy: [@0, @0.1, @0]}, stiffness: @3, rest: @0.1}
constraints:
  c: {kind: distance, body_a: world, body_b: b, length: @2, placement_b: {quaternion: [@0, @0, @0.6, @0.8]}}
forces:
  f: {kind: spring, body_a: world, body_b: b, point_a: [@0, @0, @3], stiffness: @50, rest: @0.4, damping: @0.2}
  g: {kind: joint-friction, joint: j, sliding: @0.3}
actuators:
  m: {joint: j, gear: @10, limits: [~-2, ~2]}
run:
  duration: @2
  step: @1e-3
  q: {j: @0.3}
"""

USD = """#usda 1.0
( metersPerUnit = 1
  upAxis = "Z" )
def PhysicsScene "scene"
{ float physics:gravityMagnitude = ~9.81
}
def Xform "rod" ( prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"] )
{ float physics:mass = @2
  point3f physics:centerOfMass = (@0, @0, @-0.5)
  float3 physics:diagonalInertia = (@0.5, @0.5, @0.25)
  double3 xformOp:translate = (@0, @0, @1)
  uniform token[] xformOpOrder = ["xformOp:translate"]
}
def PhysicsRevoluteJoint "hinge" ( prepend apiSchemas = ["PhysicsDriveAPI:angular"] )
{ rel physics:body1 = </rod>
  uniform token physics:axis = "Y"
  point3f physics:localPos0 = (@0, @0, @1)
  quatf physics:localRot1 = (@1, @0, @0, @0)
  float physics:lowerLimit = ~-90
  float physics:upperLimit = ~90
  float drive:angular:physics:stiffness = @3
  float drive:angular:physics:damping = @.1
  float drive:angular:physics:targetPosition = @10
}
"""

NO_NUMBERS = ["--1", "+-1", "-+1", "0x10", "-0x1p3", "1e999", "-1e400", "nan", "-NaN", "1_000", "1.5.2", "\u0663", "1e", "5%",
              "1d3", "0b1", "1f", "\u00bd", "1,5", "x", "1 2", "1/0", "e5", ".", "1e5.5", "\u22121", "", "true"]  # fmt: skip
"""Texts that are a number in no format; `1,5` and `1 2` are two."""

INFINITE = ["inf", "-inf", "Infinity", "+INF"]

SPELT = ["{:.7e}", "{:E}", "{:+.6f}", " {} "]
"""Other ways to write a number, the first two also in USD. Numbers in the texts have at most six digits."""

MARK = re.compile(r"([@~^])([-+.0-9e]+)")


def marked(text):
    """The text without marks; and the place, the text and the mark of each number."""
    sites, plain, end = [], "", 0
    for found in MARK.finditer(text):
        plain += text[end : found.start()]
        sites.append((len(plain), found[2], found[1]))
        plain, end = plain + found[2], found.end()
    return plain + text[end:], sites


def mutants(text, count, seed, infinite):
    """`count` texts with one wrong number each: (text, line, wrong number).   infinite: what the format reads as infinite."""
    plain, sites = marked(text)
    allowed = {"@": (), "~": infinite, "^": ("", "1 2")}
    pairs = [(site, word) for site in sites for word in NO_NUMBERS + INFINITE if word not in allowed[site[2]]]
    for (at, old, _), word in random.Random(seed).sample(pairs, count):
        yield plain[:at] + word + plain[at + len(old) :], plain.count("\n", 0, at) + 1, word


FORMATS = {
    "urdf": (URDF, lambda text: parse_urdf(text, mimic="follow"), 750),
    "sdf": (SDF, lambda text: parse_sdf(text)[0], 600),
    "mjcf": (MJCF, lambda text: parse_mjcf(text)[0], 350),
    "yaml": (YAML, lambda text: parse_yaml(text)[0], 200),
    "usd": (USD, None, 100),
}
"""Format -> its text, its reader, and the number of mutants: 2,000 in all."""
NEEDS = {"mjcf": "mujoco", "usd": "pxr"}


@pytest.fixture(params=FORMATS)
def given(request, tmp_path):
    """The name of a format, its text, its reader, and a number of mutants."""
    text, read, count = FORMATS[request.param]
    if importlib.util.find_spec(NEEDS.get(request.param, "numpy")) is None:
        pytest.skip(f"needs {NEEDS[request.param]}")

    def read_text(text):
        path = tmp_path / "m.usda"
        path.write_text(text)
        return read_usd(path)[0]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield request.param, text, read or read_text, count


def test_no_wrong_number_is_read(given):
    name, text, read, count = given
    infinite = [*INFINITE, "1e999", "-1e400"] if name == "usd" else INFINITE  # the parser of pxr overflows in silence
    for mutant, line, word in mutants(text, count, 33, infinite):
        with pytest.raises(ModelError) as caught:
            read(mutant)
            pytest.fail(f"line {line}: {word!r} was read")
        place = "m.usda" if name == "usd" else rf"line {line}\b"
        assert re.search(place, str(caught.value)), f"{word!r} on line {line}: {caught.value}"


def test_numbers_may_be_spelt_in_several_ways(given):
    name, text, read, _ = given
    plain, sites = marked(text)
    machine = read(plain)
    for i, (at, old, _) in enumerate(sites):
        word = SPELT[i % (2 if name == "usd" else 4)].format(float(old))
        assert read(plain[:at] + word + plain[at + len(old) :]) == machine, word
