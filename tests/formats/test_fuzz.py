"""Damaged and random files give a Mechanism or a ModelError, and nothing else."""

import warnings
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pfaffian.errors import ModelError
from pfaffian.formats import parse_mjcf, parse_sdf, parse_urdf, parse_yaml
from pfaffian.formats.text.file import decode
from pfaffian.model.mechanism import Mechanism

URDF = b"""<?xml version="1.0"?>
<robot name="arm">
 <link name="base"/>
 <link name="upper"><inertial><origin xyz="0 0 .5" rpy="0 .1 0"/><mass value="1.5"/>
  <inertia ixx=".1" iyy=".1" izz=".01" ixy="0" ixz="0" iyz="0"/></inertial></link>
 <link name="lower"><inertial><mass value="1"/>
  <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
 <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
  <limit lower="-1" upper="1" effort="10" velocity="1"/><dynamics damping=".1" friction="0"/></joint>
 <joint name="elbow" type="continuous"><origin xyz="0 0 1"/><parent link="upper"/><child link="lower"/>
  <mimic joint="shoulder" multiplier="2"/></joint>
</robot>"""
LOOPS = URDF.replace(b"</robot>", b"""
 <loop name="l" type="revolute"><predecessor link="lower"><origin xyz="1 0 0"/></predecessor><successor link="base"/></loop>
 <loop_joint name="m" type="spherical"><link1 link="base" xyz="1 2 3"/><link2 link="lower" rpy="0 .1 0"/></loop_joint>
 <gazebo><joint name="n" type="universal"><parent>base</parent><child>lower</child><pose>0 0 1 0 0 0</pose>
  <axis><xyz>0 1 0</xyz></axis></joint></gazebo><frame name="F" link="upper" xyz="1 0 0"/>
 <coupling name="o" type="rolling"><predecessor link="upper"/><successor link="lower"/><ratio value="6"/></coupling>
 <drake:linear_bushing_rpy><drake:bushing_frameA name="F"/><drake:bushing_frameC name="F"/></drake:linear_bushing_rpy>
</robot>""")  # fmt: skip
SIDECARS = [
    b"closed_loop: [[shoulder, lower]]\ntype: [6d]\nname_mot: [elbow]\njoint_name: [elbow]\njoint_type: [UJOINT_XY]\n",
    b"closures: [{link_a: upper, link_b: lower, point: [0, 0, 1], axis: [0, 1, 0]}]\nindependent: [shoulder]\n",
]
MJCF = b"""<mujoco model="m"><compiler angle="radian"/><option gravity="0 0 -9"/>
 <default><joint damping=".1"/><default class="c"><geom size=".1" mass="1"/></default></default>
 <worldbody><body name="a" pos="0 0 1" childclass="c"><freejoint/><geom/>
  <body name="b"><joint name="h" axis="0 1 0" range="-1 1" limited="true"/><geom type="box" size=".1 .2 .3"/>
   <replicate count="2" offset="0 0 1"><body><joint type="ball"/><geom/><site name="s"/></body></replicate></body></body>
  <body name="c"><joint name="g" type="slide" ref=".1" stiffness="2"/><geom/></body></worldbody>
 <equality><connect body1="b" body2="c" anchor="0 0 0"/><joint joint1="h" joint2="g" polycoef="0 1 0 0 0"/></equality>
 <tendon><fixed name="t"><joint joint="h" coef=".5"/><joint joint="g" coef="2"/></fixed></tendon>
 <actuator><motor name="u" joint="h" gear="2"/><position tendon="t" kp="3"/></actuator>
 <keyframe><key name="k" qpos="0 0 1 1 0 0 0 0 1 0 0 0 1 0 0 0 .1"/></keyframe></mujoco>"""
SDF = b"""<?xml version="1.0"?><sdf version="1.9"><model name="m"><pose>0 0 1 0 0 0</pose>
 <link name="a"><inertial><mass>2</mass><inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz></inertia></inertial></link>
 <link name="b"><pose relative_to="a">1 0 0 0 .1 0</pose></link><frame name="f" attached_to="b"><pose>0 0 1 0 0 0</pose></frame>
 <link name="c"><pose relative_to="f">0 0 1 0 0 0</pose></link>
 <joint name="1" type="revolute"><parent>a</parent><child>b</child><axis>
  <xyz expressed_in="f">0 1 0</xyz><limit><lower>-1</lower><upper>1</upper></limit><dynamics><damping>.1</damping></dynamics>
  </axis></joint>
 <joint name="2" type="universal"><parent>b</parent><child>c</child><axis/><axis2><xyz>1 0 0</xyz></axis2></joint>
 <joint name="3" type="ball"><parent>a</parent><child>c</child></joint>
 <model name="n" placement_frame="g" canonical_link="d"><pose relative_to="f">0 1 0 0 0 0</pose>
  <link name="d"/><frame name="g" attached_to="d"><pose>1 0 0 0 0 1</pose></frame></model>
 <joint name="4" type="revolute"><parent>c</parent><child>n::d</child></joint></model></sdf>"""
YAMLS = [
    p.read_bytes() for p in sorted((Path(__file__).parents[2] / "examples").glob("*.yaml")) if b"urdf:" not in p.read_bytes()
]
LAWS = b"""bodies: {a: {mass: 1, inertia: 1}, b: {mass: 1, inertia: 1}}
parameters: {l: 0.5}
joints: {base: {kind: free, parent: world, child: a}, b: {kind: revolute, parent: a, child: b}}
constraints: {c: {kind: holonomic, phi: {law: coupling, a: {law: sum, joints: [b], coefs: [1]},
  coefs: [0, l, 1, 0, 0], starts: [1, 0]}}}
forces:
  p: {kind: contact, body_a: a, shape_a: {kind: sphere, radius: l}, shape_b: {xyz: [0, 0, l]}, stiffness: l, exponent: 1.5}
  t: {kind: potential, V: {law: spring-of-length, along: {law: path, bodies: [a, b], points: [[1, 2], [0, 1], [0, 0]],
    spans: [[0, 1]], divisors: [1]}, stiffness: 2, low: 0, high: 1}}
  r: {kind: belt, driven: b, by: base, radii: [1, l], stiffness: 1}
  s: {kind: stop, joint: b, component: 0, low: -1, stiffness: l, exponent: 1.5}
actuators: {t: {gears: [{joint: b, gear: 1}, {joint: base, component: 2, gear: l}]}}
"""
SMALL = YAMLS[-1].split(b"run:")[0]
FUZZ = settings(derandomize=True, deadline=None, max_examples=400, database=None)
SOME = settings(FUZZ, max_examples=150)

XML = [b"<", b">", b'"', b"'", b"]]>", b"<![CDATA[", b"<!--", b"<!DOCTYPE a>", b"&#0;", b"&lt;"]
YAML = [
    b"&a",
    b"*a",
    b"!!",
    b": ",
    b"- ",
    b"{",
    b"}",
    b"[",
    b"]",
    b"%YAML 9.9\n",
    b"---\n",
    b"...",
    b"|",
    b"? ",
    b"<<: ",
]
WORDS = [b"", b"\0", b"\xff", b"\n", b"\t", b"nan", b"1e999", b"world", b"-", b"0", b"(", b"^", b"/", b"9" * 400]
WORDS += [b"\xe2\x80\xae", b"\xed\xa0\x80", b'"\\x', *XML, *YAML]


@st.composite
def damaged(draw, corpus):
    data = draw(st.sampled_from(corpus))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        cut = draw(st.sampled_from([0, 0, 1, 1, 3, 20, 200]))
        data = data[:at] + draw(st.one_of(st.sampled_from(WORDS), st.binary(max_size=3))) + data[at + cut :]
    return data


def harmless(reader, data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            made = reader(decode(data, "fuzz"))
        except ModelError as error:
            assert str(error).isprintable() and len(str(error)) < 2000
        else:
            assert isinstance(made[0] if isinstance(made, tuple) else made, Mechanism)


@FUZZ
@given(damaged([URDF, LOOPS]), st.sampled_from(["fixed", "free"]), st.sampled_from(["free", "follow"]))
def test_damaged_urdf(data, base, mimic):
    harmless(lambda text: parse_urdf(text, base=base, mimic=mimic), data)


@SOME
@given(damaged([MJCF]))
def test_damaged_mjcf(data):
    harmless(parse_mjcf, data)


@SOME
@given(damaged([SDF]))
def test_damaged_sdf(data):
    harmless(parse_sdf, data)


@FUZZ
@given(damaged(SIDECARS))
def test_damaged_files_of_loops(tmp_path_factory, data):
    file = tmp_path_factory.getbasetemp() / "loops.yaml"
    file.write_bytes(data)
    harmless(lambda text: parse_urdf(URDF.decode(), loops=file), b"")


@FUZZ
@given(damaged([*YAMLS, SMALL, LAWS, LAWS]))
def test_damaged_yaml(data):
    harmless(parse_yaml, data)


@pytest.mark.parametrize("reader", [parse_urdf, parse_yaml])
@FUZZ
@given(st.one_of(st.binary(max_size=60), st.lists(st.sampled_from(WORDS), max_size=12).map(b"".join)))
def test_random_bytes(reader, data):
    harmless(reader, data)


@pytest.mark.parametrize("reader", [parse_urdf, parse_yaml])
@FUZZ
@given(text=st.text(st.characters(codec=None), max_size=40))
def test_random_text(reader, text):
    try:
        reader(text)
    except ModelError as error:
        assert str(error).isprintable()


LETTERS = st.text('ab(l)+-*/^0123456789. "{}[]:,&*!|>\n', max_size=40)


@FUZZ
@given(LETTERS)
def test_random_expressions(text):
    harmless(lambda t: parse_yaml("parameters: {l: 1}\nbodies: {a: {mass: " + t + "}}"), text.encode())
