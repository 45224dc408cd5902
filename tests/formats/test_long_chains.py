"""Long chains are read in a time that is proportional to their length, whatever their elements and their order."""

import gc
import importlib.util
import warnings

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from benchmarks.long_files import mjcf, sdf, urdf, usd, yaml
from pfaffian.errors import ModelError
from pfaffian.formats import parse_mjcf, parse_sdf, parse_urdf, parse_yaml, read_usd
from pfaffian.model.circle import circle
from pfaffian.model.number import all_constants, constants
from pfaffian.model.pose import IDENTITY, Pose
from tests.work import lines

LINKS = 40


CHAINS = {
    "urdf": (urdf, parse_urdf),
    "urdf, last first": (lambda n: urdf(n, reverse=True), parse_urdf),
    "urdf, mimics": (lambda n: urdf(n, mimics=True), lambda text: parse_urdf(text, mimic="follow")),
    "sdf": (sdf, parse_sdf),
    "sdf, children first": (lambda n: sdf(n, back=True), parse_sdf),
    "yaml": (lambda n: yaml(n, run=True), parse_yaml),
    "yaml, expressions": (lambda n: yaml(n, "forces:|{kind: potential, V: m#*cos(j#)}"), parse_yaml),
    "yaml, laws": (lambda n: yaml(n, "forces:|{kind: joint-friction, joint: j#, sliding: m#}"), parse_yaml),
    "yaml, closures": (lambda n: yaml(n, "constraints:|{kind: spherical, body_a: world, body_b: l#}"), parse_yaml),
    "mjcf": (mjcf, parse_mjcf),
    "usd": (usd, read_usd),
}
NEEDS = {"mjcf": "mujoco", "usd": "pxr"}


@pytest.mark.parametrize("name", CHAINS)
def test_the_work_is_proportional_to_the_length(name, tmp_path):
    make, read = CHAINS[name]
    if importlib.util.find_spec(NEEDS.get(name, "numpy")) is None:
        pytest.skip(f"needs {NEEDS[name]}")

    def work(n):
        text = make(n)
        if read is read_usd:
            (tmp_path / f"{n}.usda").write_text(text)
            text = tmp_path / f"{n}.usda"
        return lines(lambda: read(text))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        work(2)  # what is made once
        assert work(2 * LINKS) <= 2 * work(LINKS)  # any part that grows with the square would add to twice the work


def test_chains_of_joints_that_follow_one_another_may_be_long():
    """Longer than Python's recursion may be deep; the last joint moves all."""
    n = 1500
    m = parse_urdf(urdf(n, mimics=True), mimic="follow")
    assert m.q_names == (f"j{n - 1}",)
    *rest, j, last = m.joints
    with pytest.raises(ModelError, match="joints follow each other in a circle: j0, j1"):
        m.with_(joints=[*rest, pf.joint(j.name, "revolute", j.parent, j.child, mimic=pf.mimic({"j0": 1})), last])


def test_circles():
    assert circle({"a": "bc", "b": "d", "c": "d", "d": ""}) == [] and circle({}) == []
    assert circle({"a": "b", "b": "c", "c": "b"}) == ["b", "c"] and circle({"x": "x"}) == ["x"]
    assert circle({"a": "bc", "b": "", "c": "bd", "d": "ba"}) == ["a", "c", "d"]
    ladder = {f"{side}{i}": (f"a{i + 1}", f"b{i + 1}") for i in range(16) for side in "ab"}  # 2^16 ways from its top
    assert lines(lambda: circle(ladder)) < 100 * len(ladder)


def test_ten_thousand_links_are_allowed():
    """In SDF and URDF another error comes first; YAML files have two million characters."""
    links = "".join(f'<link name="{i}"/>' for i in range(10_001))
    with pytest.raises(ModelError, match="a <link> of this name is on line 1"):
        parse_sdf(f'<sdf version="1.9"><model name="m">{links}<link name="7"/></model></sdf>')
    with pytest.raises(ModelError, match="10001 links have no parent"):
        parse_urdf(f'<robot name="m">{links}</robot>')
    space = "\n".join("#" * 1000 for _ in range(2000))
    assert parse_yaml(f"{space}\n{yaml(2)}")[0].nv == 2


def test_many_numbers_are_evaluated_as_each_alone():
    m = parse_yaml(yaml(4, "forces:|{kind: spring, body_a: world, body_b: l#, stiffness: m#^2}"))[0]
    p = np.arange(1.0, 5.0)
    numbers = [x for b in m.bodies for x in (b.mass, b.com, b.inertia)] + [f.stiffness for f in m.forces]
    for x, value in zip(numbers, m.values(numbers, p), strict=True):
        assert value.shape == x.shape and np.array_equal(value, m.value(x, p))
    oblong = ca.horzcat(m.p_symbols, 2 * m.p_symbols)
    assert np.array_equal(m.value(oblong, p), np.c_[p, 2 * p])
    assert [x.item() for x in m.values([f.stiffness for f in m.forces], p)] == [1.0, 4.0, 9.0, 16.0]


def test_constants_are_read_together_as_each_alone():
    """Also those that are sparse, empty, or of several columns."""
    given = [ca.SX([[1, 2, 3], [4, 5, 6]]), ca.SX(2, 2), ca.SX(0, 1), ca.SX(1.5), ca.SX(ca.DM.eye(3)), ca.SX(1, 3)]
    for x, found in zip(given, all_constants(given), strict=True):
        assert found.shape == x.shape and np.array_equal(found, constants(x))
    assert all_constants([]) == []


def test_a_place_followed_by_a_direction_is_their_product():
    turn, place = pf.pose(rpy=(0.1, 0.2, 0.3)), pf.pose((1, 2, 3))
    found = place @ pf.pose((0, 0, 0), rpy=(0.1, 0.2, 0.3)), place @ Pose(turn.R, IDENTITY.p)
    assert found[0] == found[1] == Pose(turn.R, place.p)
    assert turn @ Pose(turn.R, IDENTITY.p) == Pose(turn.R @ turn.R, IDENTITY.p)


def test_joints_lie_where_the_file_places_them_in_their_links():
    """Not by way of the model's frame, which rounds; the model's own <pose> does not count."""
    m, _ = parse_sdf(sdf(3))
    for j in m.joints[1:]:
        assert j.child_placement == IDENTITY and j.placement == pf.pose((0, 0, 1), rpy=(0, 0.1, 0)), j.name
    links = "".join(f'<link name="{n}"><pose>0 0 {z} 0 0 0</pose></link>' for n, z in (("a", 1), ("b", 3.5)))
    joint = '<joint name="j" type="revolute"><pose>0 0 -.25 0 0 0</pose><parent>a</parent><child>b</child></joint>'
    m, _ = parse_sdf(f'<sdf version="1.9"><model name="m"><pose>7 0 0 0 0 0</pose>{links}{joint}</model></sdf>')
    assert m.joint("j").placement == pf.pose((0, 0, 2.25)) and m.joint("j").child_placement == pf.pose((0, 0, -0.25))


def test_numbers_that_parts_share_are_not_changed_by_one_of_them():
    """The zeros of joints are the same objects for all."""
    one, other = (pf.joint(n, "revolute", "world", n) for n in "ab")
    assert one.damping is other.damping and one.rest is other.rest
    for x in (one.damping, one.rest, one.pitch, one.armature):
        with pytest.raises(ModelError, match="cannot be changed in place"):
            x[0] = 1
    m = pf.mechanism("m", [pf.body("a", 1, inertia=1)], [one])
    with pytest.raises(ValueError, match="read-only"):
        m.moments[0][0] = 2


@pytest.mark.parametrize("on", [True, False])
def test_garbage_collection_is_left_as_it_was(on):
    before = gc.isenabled()
    try:
        (gc.enable if on else gc.disable)()
        with pytest.raises(ModelError), warnings.catch_warnings(record=True):
            parse_mjcf("<mujoco/>")
        assert gc.isenabled() == on
    finally:
        (gc.enable if before else gc.disable)()


def test_warnings_of_readers_point_to_the_call(recwarn):
    parse_mjcf(mjcf(1).replace("<joint", '<joint frictionloss="1"'))
    assert {w.filename for w in recwarn} == {__file__}
