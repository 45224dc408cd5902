"""Wrong files with loops, sidecars and constraints: each is refused with a message that names the element."""

import pytest

from pfaffian.errors import ModelError
from pfaffian.formats import parse_urdf, parse_yaml
from pfaffian.formats.urdf.urdf_sidecar import parse_sidecar

MASS = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
TREE = "".join(
    ['<link name="g"/>']
    + [f'<link name="{n}">{MASS}</link>' for n in "abc"]
    + [f'<joint name="{n}" type="continuous"><parent link="g"/><child link="{n}"/></joint>' for n in "abc"]
)


def end(tag, link):
    return f'<{tag} link="{link}"/>'


def pair(a="a", b="b", first="predecessor", second="successor"):
    return end(first, a) + end(second, b)


def ball(*names):
    words = ("body_A", "body_B", "p_AP", "p_BQ")
    given = {"body_A": 'name="a"', "body_B": 'name="b"', "p_AP": 'value="0 0 0"', "p_BQ": 'value="0 0 0"'} | dict(names)
    inside = "".join(f"<drake:ball_constraint_{w} {given[w]}/>" for w in words if given[w])
    return f"<drake:ball_constraint>{inside}</drake:ball_constraint>"


def bushing(frame="F", value="1 1 1"):
    four = "".join(
        f'<drake:bushing_{w} value="{value}"/>'
        for w in ("force_stiffness", "torque_stiffness", "force_damping", "torque_damping")
    )
    ends = f'<drake:bushing_frameA name="F"/><drake:bushing_frameC name="{frame}"/>'
    return f'<frame name="F" link="a"/><drake:linear_bushing_rpy>{ends}{four}</drake:linear_bushing_rpy>'


def gazebo(inside, kind="revolute", parent="a"):
    return f'<gazebo><joint name="l" type="{kind}"><parent>{parent}</parent><child>b</child>{inside}</joint></gazebo>'


LOOPS = {
    "no name": (f'<loop type="revolute">{pair()}</loop>', "<loop>: the attribute 'name' is missing"),
    "no type": (f'<loop name="l">{pair()}</loop>', "<loop> 'l': the attribute 'type' is missing"),
    "type": (
        f'<loop name="l" type="magic">{pair()}</loop>',
        "<loop> 'l': no closure is of type 'magic'; the types are revolute",
    ),
    "no end": (f'<loop name="l" type="revolute">{end("predecessor", "a")}</loop>', "<successor> is missing in 'l'"),
    "no link": (f'<loop name="l" type="revolute">{pair("a", "x")}</loop>', "<loop> 'l': there is no link 'x'"),
    "itself": (f'<loop name="l" type="revolute">{pair("a", "a")}</loop>', "this loop connects 'a' to itself"),
    "axis": (f'<loop name="l" type="revolute">{pair()}<axis xyz="0 0 0"/></loop>', "the axis .* has no direction"),
    "two names": (
        f'<loop name="l" type="revolute">{pair()}</loop>' * 2,
        "another loop of this name is at .*; names must be unique",
    ),
    "no pitch": (f'<loop name="l" type="screw">{pair()}</loop>', "constraint 'l': pitch is required for"),
    "coupling with ratio zero": (f'<coupling name="k">{pair()}<ratio value="0"/></coupling>', "the ratio is zero"),
    "coupling without ratio": (f'<coupling name="k">{pair()}</coupling>', "<ratio> is missing in 'k'"),
    "coupling of an unknown link": (
        f'<coupling name="k">{pair("x")}<ratio value="1"/></coupling>',
        "<coupling> 'k': there is no link 'x'",
    ),
    "coupling without a tree joint": (
        f'<coupling name="k">{pair("g", "b")}<ratio value="1"/></coupling>',
        "no joint between the coupled links is free to follow",
    ),
    "coupling of a ball": (
        f'<drake:joint name="d" type="ball">{pair("a", "d", "parent", "child")}</drake:joint><link name="d">{MASS}</link>'
        f'<coupling name="k">{pair("d", "b")}<ratio value="1"/></coupling>',
        "joint 'd' between the coupled links",
    ),
    "independent": (
        f'<joint name="d" type="fixed" independent="maybe">{pair("a", "d", "parent", "child")}</joint><link name="d"/>',
        "independent must be true or false, not 'maybe'",
    ),
    "one end": ('<loop_joint name="l" type="spherical"><link1 link="a"/></loop_joint>', "two ends are needed"),
    "three ends": (
        '<loop_joint name="l" type="spherical"><link1 link="a"/><link1 link="a"/><link2 link="b"/></loop_joint>',
        "two ends",
    ),
    "end without a link": (
        '<loop_joint name="l" type="spherical"><link1/><link2 link="b"/></loop_joint>',
        "<link1>: the attribute 'link' is missing",
    ),
    "end's numbers": (
        '<loop_joint name="l" type="spherical"><link1 link="a" xyz="1 2"/><link2 link="b"/></loop_joint>',
        "3 numbers",
    ),
    "constraint": (f'<constraint name="l" type="revolute">{end("parent", "a")}</constraint>', "<child> is missing in 'l'"),
    "universal": (
        f'<constraint name="l" type="universal">{pair("a", "b", "parent", "child")}<child_axis xyz="0 0 0"/></constraint>',
        "has no direction",
    ),
    "gazebo type": (gazebo("", "gearbox"), "no closure is of type 'gearbox'"),
    "gazebo link": (gazebo("", parent="x"), "there is no link 'x'"),
    "gazebo pose": (gazebo("<pose>1 2 3</pose>"), "6 numbers separated by spaces are needed, got '1 2 3'"),
    "gazebo frame": (gazebo('<pose relative_to="a">0 0 0 0 0 0</pose>'), "a pose relative to 'a' is not supported"),
    "gazebo axis": (
        gazebo('<axis><xyz expressed_in="__model__">0 0 1</xyz></axis>'),
        "an axis expressed in another frame is not supported",
    ),
    "gazebo code": (gazebo("<axis><xyz>__import__ 0 1</xyz></axis>"), "'__import__' is not a decimal number"),
    "ball without point": (ball(("p_AP", "")), "<drake:ball_constraint_p_AP> is missing"),
    "ball on unknown link": (ball(("body_A", 'name="x"')), "there is no link 'x'"),
    "ball without value": (
        ball(("p_AP", "")).replace("</drake", "<drake:ball_constraint_p_AP/></drake", 1),
        "the attribute 'value' is missing",
    ),
    "bushing frame": (bushing("G"), "there is no frame 'G'; write <frame"),
    "bushing below zero": (bushing(value="-1 1 1"), "must be positive semidefinite"),
    "drake type": (
        f'<drake:joint name="d" type="quaternion">{pair("a", "b", "parent", "child")}</drake:joint>',
        "type 'quaternion' is unknown",
    ),
    "drake screw": (
        f'<drake:joint name="d" type="screw">{pair("a", "d", "parent", "child")}</drake:joint><link name="d">{MASS}</link>',
        "<drake:screw_thread_pitch value=.../> is missing",
    ),
    "parents": (
        f'<joint name="d" type="fixed"><parent link="a"/>{pair("b", "d", "parent", "child")}</joint><link name="d"/>',
        "a joint has one parent and one child",
    ),
    "entity": ('<!DOCTYPE a [<!ENTITY e "b">]><loop name="l" type="revolute"/>', "not well-formed|document types"),
}

SIDECARS = {
    "empty": ("", "the file is empty"),
    "other": ("bodies: {}", "a file of loops needs the key closed_loop .* or closures"),
    "list": ("closed_loop: a", "closed_loop: a list is needed"),
    "three": ("closed_loop: [[a, b, c]]", r"closed_loop\[0\]: a list of length 2 is needed"),
    "types": ("closed_loop: [[a, b]]\ntype: []", "type: a list of length 1 is needed"),
    "kind": ("closed_loop: [[a, b]]\ntype: [7d]", "no closure is of type '7d'"),
    "unknown joint": ("closed_loop: [[a, x]]", "there is no joint or link 'x'"),
    "itself": ("closed_loop: [[a, a]]", "this loop connects 'a' to itself"),
    "motor": ("closed_loop: []\nname_mot: [x]", "name_mot: there is no joint 'x'"),
    "joint_name alone": ("closed_loop: []\njoint_name: [a]", "joint_name and joint_type are needed together"),
    "retyped": ("closed_loop: []\njoint_name: [a]\njoint_type: [UJOINT_XX]", "joint_type 'UJOINT_XX' is unknown"),
    "hinge": ("closures: [{link_a: a, link_b: b, point: [0, 0, 0]}]", "the key 'axis' is missing"),
    "hinge on unknown link": ("closures: [{link_a: x, link_b: b, point: [0, 0, 0], axis: [0, 0, 1]}]", "there is no link 'x'"),
    "hinge axis": ("closures: [{link_a: a, link_b: b, point: [0, 0, 0], axis: [0, 0, 0]}]", "has no direction"),
    "alias": ("closed_loop: &a [[a, b]]\ntype: *a", "anchors and aliases are not allowed"),
    "tag": ("closed_loop: !!python/object/apply:os.system [x]", "tags such as"),
}

YAMLS = {
    "rotation": (
        "joints: {j: {kind: fixed, parent: world, child: a, placement: {rotation: [[1, 0, 0], [0, 1, 0], [0, 0, 2]]}}}",
        "a proper rotation",
    ),
    "two turns": (
        "joints: {j: {kind: fixed, parent: world, child: a, "
        "placement: {rpy: [0, 0, 0], rotation: [[p, 0, 0], [0, 1, 0], [0, 0, 1]]}}}",
        "give only one of rotation, rpy and quaternion",
    ),
    "phi": ("constraints: {c: {kind: holonomic}}", "the key 'phi' is missing"),
    "unknown coordinate": (
        "constraints: {c: {kind: holonomic, phi: elbow}}",
        "constraint 'c': .*there is no parameter 'elbow'",
    ),
    "servo with unknown inputs": (
        "constraints: {c: {kind: weld, body_a: world, body_b: a, servo: {directions: [x, y, z, u, v, w]}}}",
        "'c'.*'x'",
    ),
    "servo below zero": (
        "constraints: {c: {kind: holonomic, phi: j, servo: {directions: [m], stiffness: -1}}}",
        "stiffness -1 is below zero",
    ),
    "lenient": ("lenient: maybe", "lenient: 'maybe' is unknown; there are true, false"),
    "upper limit -inf": ("joints: {j: {kind: revolute, parent: world, child: a, limits: [1, -inf]}}", "the wrong way round"),
    "pseudo": (
        "forces: {f: {kind: pose-damper, body_a: world, body_b: a, damping: [[1, 2], [3]]}}",
        "a list of length 2 is needed",
    ),
    "mesh": ("bodies: {a: {mass: 1, inertia: 1, shape: {kind: mesh, label: x, density: 3}}}", "the key 'density' is unknown"),
}
PLAIN = """parameters: {p: 1}
bodies: {a: {mass: 1, inertia: 1}}
joints: {j: {kind: revolute, parent: world, child: a}}
actuators: {m: {joint: j}}
"""


@pytest.mark.parametrize(("part", "words"), LOOPS.values(), ids=LOOPS)
def test_urdf(part, words):
    with pytest.raises(ModelError, match=words):
        parse_urdf(f'<robot name="r">{TREE}{part}</robot>')


@pytest.mark.parametrize(("text", "words"), SIDECARS.values(), ids=SIDECARS)
def test_sidecars(tmp_path, text, words):
    (tmp_path / "loops.yaml").write_text(text)
    with pytest.raises(ModelError, match=words):
        parse_urdf(f'<robot name="r">{TREE}</robot>', loops=tmp_path / "loops.yaml")
        parse_sidecar(text, "loops")


@pytest.mark.parametrize(("text", "words"), YAMLS.values(), ids=YAMLS)
def test_yaml(text, words):
    key = text.split(":")[0]
    others = "\n".join(line for line in PLAIN.splitlines() if not line.startswith(f"{key}:"))
    with pytest.raises(ModelError, match=words):
        parse_yaml(f"{others}\n{text}\n")
