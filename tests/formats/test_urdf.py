"""The meaning of URDF files, and the messages about files that are refused."""

import math
import os
import socket
import warnings

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian.errors import ModelError, ModelWarning
from pfaffian.formats import parse_urdf, read_urdf
from pfaffian.maths import so3
from pfaffian.terms.terms import symbols
from tests.tolerance import SATISFIED, close
from tests.work import CALLS_A_CHARACTER, calls, calls_to_refuse

MASS = '<inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'


def link(name, inside=MASS):
    return f'<link name="{name}">{inside}</link>'


def joint(name, parent, child, kind="revolute", inside=""):
    return f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>{inside}</joint>'


def robot(*parts):
    return '<robot name="r">\n' + "\n".join(parts) + "\n</robot>"


ARM = (link("a"), link("b"), joint("j", "a", "b"))


def test_every_kind_of_joint():
    kinds = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")
    m = parse_urdf(robot(link("a"), *(link(k) + joint(f"to {k}", "a", k, k) for k in kinds)))
    assert {j.name: j.kind.name for j in m.joints} == {
        "root_joint": "fixed", "to revolute": "revolute", "to continuous": "revolute", "to prismatic": "prismatic",
        "to fixed": "fixed", "to floating": "free", "to planar": "planar",
    }  # fmt: skip
    assert [a.name for a in m.actuators] == ["to revolute", "to continuous", "to prismatic"]
    assert m.nv == 1 + 1 + 1 + 0 + 6 + 3


def test_limits_effort_damping_axis():
    inside = '<axis xyz="0 3 4"/><limit lower="-1" upper="2" effort="5" velocity="9"/><dynamics damping="0.5"/>'
    m = parse_urdf(robot(link("a"), link("b"), joint("j", "a", "b", inside=inside)))
    j = m.joint("j")
    assert (j.limits, j.effort, m.value(j.damping).item(), m.actuators[0].limits) == (((-1, 2),), 5, 0.5, (-5, 5))
    assert m.value(j.placement.R)[:, 2] == pytest.approx([0, 0.6, 0.8], abs=1e-15)
    for unknown in ("0", "-1"):
        m = parse_urdf(robot(link("a"), link("b"), joint("j", "a", "b", inside=inside.replace('"5"', f'"{unknown}"'))))
        assert m.joint("j").effort == math.inf and m.actuators[0].limits == (-math.inf, math.inf)
    bare = parse_urdf(robot(*ARM)).joint("j")
    assert (bare.limits, bare.effort) == (((-math.inf, math.inf),), math.inf)
    assert parse_urdf(robot(*ARM)).value(bare.placement.R)[:, 2] == pytest.approx([1, 0, 0], abs=1e-15)


def test_inertia_turns_with_its_origin():
    inside = (
        '<inertial><origin xyz="1 2 3" rpy="0 0 1.5707963267948966"/><mass value="2"/>'
        '<inertia ixx="1" iyy="2" izz="2.5" ixy="0" ixz="0" iyz="0"/></inertial>'
    )
    m = parse_urdf(robot(link("a"), link("b", inside), joint("j", "a", "b")))
    assert m.value(m.body("b").com).ravel() == pytest.approx([1, 2, 3])
    assert m.value(m.body("b").inertia) == pytest.approx(np.diag([2, 1, 2.5]), abs=1e-15)


def test_joints_keep_the_order_of_the_file_with_parents_first():
    links = "".join(link(n) for n in "dcba")
    m = parse_urdf(
        robot(links, joint("3", "c", "d"), joint("1", "a", "b"), joint("2", "b", "c"), joint("0", "a", "e"), link("e"))
    )
    assert [j.name for j in m.joints] == ["root_joint", "1", "2", "3", "0"]


def test_bases_and_a_root_link_called_world():
    on_world = (link("world", ""), link("b"), joint("j", "world", "b"))
    m = parse_urdf(robot(*on_world))
    assert [b.name for b in m.bodies] == ["b"] and m.joint("j").parent == "world" and len(m.joints) == 1
    free = parse_urdf(robot(*on_world), base="free")
    assert free.joint("root_joint").child == "world_link" and free.nv == 7
    assert parse_urdf(robot(*ARM), base="free").joints[0].kind.name == "free"


def test_actuated_chooses_motors():
    parts = (*ARM, link("c"), joint("k", "b", "c", "prismatic"))
    assert [a.name for a in parse_urdf(robot(*parts), actuated=["k", "j"]).actuators] == ["k", "j"]
    assert parse_urdf(robot(*parts), actuated=()).nu == 0
    with pytest.raises(ModelError, match="actuated: 'x' is not a movable joint with one velocity; one of j, k"):
        parse_urdf(robot(*parts), actuated=["x"])


MIMICS = (*ARM, link("c"), joint("k", "b", "c", inside='<mimic joint="j" multiplier="-2" offset="0.1"/>'))


def test_mimic_joints_move_freely_or_follow():
    with pytest.warns(ModelWarning, match="mimic joints move on their own: 'k'; mimic='follow' couples them"):
        assert parse_urdf(robot(*MIMICS)).nu == 2
    m = parse_urdf(robot(*MIMICS), mimic="follow")
    assert [a.name for a in m.actuators] == ["j"] and m.q_names == ("j",) and not m.constraints
    t = symbols(m)
    assert float(ca.Function("k", [t.q], [t.kinematics.joint("k")])(0.3)) == pytest.approx(-0.5, abs=1e-15)


def test_a_mimic_joint_of_a_locked_joint_is_locked():
    """The joint "i" moves no mass and is locked, so "k", which follows it, and "l", which follows "k", do not move either."""
    file = robot(*ARM, link("c"), link("d"), '<link name="e"/>', joint("i", "b", "e"),
                 joint("l", "c", "d", inside='<mimic joint="k" multiplier="3" offset="-0.2"/>'),
                 joint("k", "b", "c", inside='<mimic joint="i" offset="0.7"/>'))  # fmt: skip
    with pytest.warns(ModelWarning, match="joints that move no mass are locked at zero: 'i'"):
        m = parse_urdf(file, mimic="follow")
    assert m.q_names == ("j",)
    with pytest.warns(ModelWarning):
        free = parse_urdf(file)
    where = {"d": lambda T: T.kinematics.position("d", (0.1, 0.2, 0.3))}
    here = pf.compile_terms(free, where, backend="numpy", lanes=1)([0.3, 0.7, 1.9])["d"]
    assert pf.compile_terms(m, where, backend="numpy", lanes=1)([0.3])["d"] == pytest.approx(here, abs=1e-14)


def test_friction_is_reported_not_used():
    with pytest.warns(ModelWarning, match="dry friction is left out: 'j'; friction='smooth' reads it") as caught:
        parse_urdf(robot(link("a"), link("b"), joint("j", "a", "b", inside='<dynamics friction="1"/>')))
    assert caught[0].filename == __file__


@pytest.mark.parametrize("closing", [False, True])
def test_friction_is_smoothed_on_request(closing):
    """A slide with 3 N of friction, in the tree or beside an equal slide, with which it closes a loop."""
    slide = joint("j", "a", "b", "prismatic", inside='<dynamics friction="3"/>')
    parts = [link("a"), link("b"), *([joint("i", "a", "b", "prismatic")] if closing else []), slide]
    with pytest.warns(ModelWarning, match="dry friction is smooth below 0.001 rad/s or m/s: 'j'"):
        m = parse_urdf(robot(*parts), friction="smooth")
    for v in (-2.0, 2.0):
        assert 2 * pf.forward_dynamics(m, [0.1], [v]).v_dot[0] == pytest.approx(-3 * np.sign(v), rel=1e-6)


BAD = {
    "not xml": ("<robot", r"line 1: this is not well-formed XML"),
    "empty": ("", r"line 1: this is not well-formed XML: no element found"),
    "other root": ("<machine/>", r"the root element of a URDF file is <robot>"),
    "no link": ("<robot/>", r"the robot has no <link>"),
    "two links of one name": (robot(link("a"), link("a")), r"line 3: <link> 'a': another link of this name is on line 2"),
    "two joints of one name": (
        robot(*ARM, link("c"), joint("j", "b", "c")),
        r"line 6: .*another joint of this name is on line 4",
    ),
    "missing link": (robot(link("a"), joint("j", "a", "b")), r"line 3: <joint> 'j': there is no link 'b'"),
    "two parents": (
        robot(*ARM, link("c"), joint("k", "c", "b")),
        r"line 5: .*2 links have no parent: 'a' \(line 2\), 'c' \(line 5\); connect them",
    ),
    "two roots": (
        robot(*ARM, link("c")),
        r"line 5: .*2 links have no parent: 'a' \(line 2\), 'c' \(line 5\); connect them",
    ),
    "all in a cycle": (robot(*ARM, joint("k", "b", "a")), r"the joints form a cycle without a root"),
    "cycle beside the tree": (
        robot(*ARM, link("c"), link("d"), joint("k", "c", "d"), joint("l", "d", "c")),
        r"line 7: <joint> 'k': this joint is in a cycle",
    ),
    "self loop": (robot(link("a"), link("b"), joint("j", "b", "b")), r"this joint is in a cycle"),
    "unknown type": (
        robot(link("a"), link("b"), joint("j", "a", "b", "ball")),
        r"type 'ball' is unknown; the types are revolute",
    ),
    "zero axis": (robot(link("a"), link("b"), joint("j", "a", "b", inside='<axis xyz="0 0 0"/>')), r"has no direction"),
    "limits crossed": (
        robot(link("a"), link("b"), joint("j", "a", "b", inside='<limit lower="1" upper="-1"/>')),
        r"lower 1.0 is above upper -1.0; swap",
    ),
    "no child": (
        '<robot><link name="a"/><joint name="j" type="fixed"><parent link="a"/></joint></robot>',
        r"<child> is missing",
    ),
    "no name": ("<robot><link/></robot>", r"the attribute 'name' is missing"),
    "nothing moves": (robot(link("a")), r"no joint moves; read it with base='free'"),
    "no link has mass": (robot(link("a", ""), link("b", ""), joint("j", "a", "b")), r"no joint moves"),
    "negative mass": (robot(link("a", MASS.replace('"2"', '"-2"'))), r"line 2: .*link 'a': the mass -2.0 is negative"),
    "no inertia": (robot(link("a", '<inertial><mass value="1"/></inertial>')), r"<inertia> is missing in 'a'"),
    "mimics an unknown joint": (
        robot(*ARM, link("c"), joint("k", "b", "c", inside='<mimic joint="x"/>')),
        r"mimics 'x', which is not a joint",
    ),
    "two limits": (
        robot(link("a"), link("b"), joint("j", "a", "b", inside='<limit lower="0" upper="1"/>\n<limit lower="0" upper="2"/>')),
        r"line 5: <limit>: another <limit> of the same element is on line 4; keep one of them",
    ),
    "two inertials": (robot(link("a", MASS + MASS)), r"another <inertial> of the same element"),
    "two origins": (
        robot(link("a"), link("b"), joint("j", "a", "b", inside='<origin xyz="1 0 0"/><origin xyz="2 0 0"/>')),
        r"another <origin>",
    ),
    "two rotors": (
        f'<robot xmlns:drake="d">{link("a")}<transmission><joint name="j"/><joint name="k"/>'
        '<actuator><drake:rotor_inertia value="1"/></actuator></transmission></robot>',
        r"another <joint>",
    ),
    "a wrong velocity": (
        robot(link("a"), link("b"), joint("j", "a", "b", inside='<limit effort="1" velocity="--1"/>')),
        r"velocity: '--1' is not a decimal number",
    ),
    "mimics itself": (
        robot(link("a"), link("b"), joint("j", "a", "b", inside='<mimic joint="j"/>')),
        r"follow each other in a circle",
    ),
    "xacro": (
        robot(link("a", MASS.replace('"2"', '"${m}"'))),
        r"'\$\{m\}' is not a decimal number.*expand it to URDF first",
    ),
    "xacro namespace": ('<robot xmlns:xacro="x"><xacro:arm/></robot>', r"no <link>; if this is xacro source"),
    "bidi name": (robot(link("a\u202eb")), r"1 to 128 printable characters"),
    "long name": (robot(link("a" * 1_000_000)), r"1 to 128 printable characters"),
    "surrogate": (robot(link("\ud800")), r"lone surrogates"),
    "null": ("<robot>\0</robot>", r"not well-formed XML"),
    "doctype": ("<!DOCTYPE robot><robot/>", r"document types and entities are not allowed"),
    "entity": ('<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><robot>&x;</robot>', r"line 1: document types"),
    "undefined entity": ("<robot>&x;</robot>", r"undefined entity"),
    "too deep": ("<a>" * 5000, r"more than 256 levels"),
    "too many links": (robot('<link name="a"/>' * 20_001), r"20001 links are more than 20000"),
}


@pytest.mark.parametrize("text, words", BAD.values(), ids=BAD)
def test_bad_files_are_refused_with_the_reason(text, words):
    with pytest.raises(ModelError, match=words) as caught:
        parse_urdf(text, mimic="follow")
    assert len(str(caught.value)) < 1000


CIRCLES = {
    "itself": (("j", "a", "b", "j"),),
    "each other": (("j", "a", "b", "k"), ("k", "b", "c", "j")),
    "a circle of others": (("j", "a", "b", "k"), ("k", "b", "c", "l"), ("l", "c", "d", "k")),
}


@pytest.mark.parametrize("mimic", ["free", "follow"])
@pytest.mark.parametrize("circle", CIRCLES)
def test_mimics_in_a_circle_are_refused_however_they_are_read(circle, mimic):
    joints = [joint(n, a, b, inside=f'<mimic joint="{other}"/>') for n, a, b, other in CIRCLES[circle]]
    with pytest.raises(ModelError, match=r"line \d+: <joint> '[jk]': mimic joints follow each other in a circle"):
        parse_urdf(robot(*map(link, "abcd"[: len(joints) + 1]), *joints), mimic=mimic)


NO_NUMBERS = [
    "1_000",
    "\u0661\u0662",
    "nan",
    "inf",
    "-Infinity",
    "1e400",
    "0x10",
    "1,5",
    "",
    " ",
    "1 2",
    "1e",
    "--1",
    "1" * 500,
]


@pytest.mark.parametrize("word", NO_NUMBERS)
def test_invalid_numbers_are_refused(word):
    with pytest.raises(ModelError, match=r"line 2: <mass>: value: .*(decimal number|too large)"):
        parse_urdf(robot(link("a", MASS.replace('"2"', f'"{word}"'))))


@pytest.mark.parametrize("option", [{"base": "loose"}, {"mimic": "maybe"}])
def test_unknown_options(option):
    ((name, value),) = option.items()
    with pytest.raises(ModelError, match=f"^{name}={value!r}: one of .* is needed"):
        parse_urdf(robot(*ARM), **option)


NAMES = ['"); system("', "</script><script>", "../../x", "${HOME}", "a\\nb", "%s%n", "'; DROP", "世界", "-rf"]


@pytest.mark.parametrize("name", NAMES)
def test_names_may_contain_any_printable_text(name):
    quoted = name.replace("<", "&lt;").replace('"', "&quot;")
    m = parse_urdf(robot(link("a"), link(quoted), joint(quoted, "a", quoted)))
    assert m.joints[1].name == name and m.bodies[1].name == name and m.q_names == (name,)


def test_meshes_and_includes_open_no_file(monkeypatch, tmp_path):
    path = tmp_path / "r.urdf"
    mesh = '<visual><geometry><mesh filename="file:///etc/passwd"/></geometry></visual>'
    include = '<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="file:///etc/passwd"/>'
    path.write_text(robot(link("a", MASS + mesh), link("b", MASS + include), joint("j", "a", "b")))
    opened = []
    real = os.open
    monkeypatch.setattr(os, "open", lambda p, *a, **k: (opened.append(str(p)), real(p, *a, **k))[1])
    monkeypatch.setattr(socket, "socket", lambda *a, **k: pytest.fail("a socket was opened"))
    monkeypatch.setattr("builtins.open", lambda *a, **k: pytest.fail(f"{a[0]} was opened"))
    assert read_urdf(path).nv == 1
    assert set(opened) <= {str(path)}


def test_unreadable_files_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.urdf")
    (tmp_path / "latin.urdf").write_bytes("<robot name='é'/>".encode("latin-1"))
    cases = {"pipe.urdf": "not a regular file", ".": "not a regular file", "none.urdf": "No such file",
             "latin.urdf": "UTF-8", "a\0b": "cannot be read"}  # fmt: skip
    for name, words in cases.items():
        with pytest.raises(ModelError, match=words):
            read_urdf(tmp_path / name)


def test_a_byte_order_mark_is_accepted(tmp_path):
    path = tmp_path / "r.urdf"
    path.write_bytes(b"\xef\xbb\xbf" + robot(*ARM).encode())
    assert read_urdf(path).nv == 1


BOMBS = {
    "laughs": '<!DOCTYPE r [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><robot>&b;</robot>',
    "depth": "<robot>" * 1_000_000,
    "attributes": "<robot " + " ".join(f'a{i}="1"' for i in range(20_000)) + "/>",
    "digits": robot(link("a", MASS.replace('"2"', '"' + "9" * 1_000_000 + '"'))),
    "spaces": robot(link("a"), link("b"), joint("j", "a", "b", inside=f'<axis xyz="1{" " * 1_000_000}"/>')),
    "chain in a circle": robot(*(link(f"l{i}") + joint(f"j{i}", f"l{i}", f"l{(i + 1) % 3000}") for i in range(3000))),
}


@pytest.mark.parametrize("text", BOMBS.values(), ids=BOMBS)
def test_bombs_are_refused_quickly(text):
    assert calls_to_refuse(parse_urdf, text, ModelError) < 1000 + CALLS_A_CHARACTER * len(text)


def test_mimic_of_a_fixed_joint_is_ignored(recwarn):
    text = """<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link><link name="c"/>
    <joint name="turn" type="continuous"><parent link="a"/><child link="b"/></joint>
    <joint name="frozen" type="fixed"><parent link="b"/><child link="c"/><mimic joint="turn"/></joint></robot>"""
    for mimic in ("free", "follow"):
        assert not parse_urdf(text, mimic=mimic).constraints
    assert not [w for w in recwarn if "mimic" in str(w.message)]


def chain(count):
    """The text of a chain of `count` links, all with different numbers."""
    links = [link(f"l{i}") for i in range(count)]
    place = '<origin xyz="0 {i} 1" rpy="0.1 0 {i}"/><axis xyz="{i} 0 1"/><limit lower="-1" upper="1" effort="1" velocity="1"/>'
    joints = [joint(f"j{i}", f"l{i - 1}", f"l{i}", inside=place.format(i=i)) for i in range(1, count)]
    return f'<robot name="r">{"".join(links + joints)}</robot>'


LINK = 2500
"""Most function calls for reading one link. It takes 2300, and took 3300 when every number was parsed as an expression."""


def test_every_link_costs_the_same():
    """The cost of reading grows in proportion to the number of links. Function calls are counted instead of time."""
    parse_urdf(chain(2))  # imports
    few, many = (calls(lambda n=n: parse_urdf(chain(n))) for n in (50, 150))
    assert many < 3.2 * few and (many - few) / 100 < LINK


# -- Gazebo, transmissions, and what is not read -----------------------------------------------------------------------

PAIR = """<robot name="r"><link name="base"/><link name="a">{0}</link><link name="b">{0}</link>
<joint name="A" type="continuous"><parent link="base"/><child link="a"/><axis xyz="0 1 0"/>{1}</joint>
<joint name="B" type="{2}"><parent link="a"/><child link="b"/><origin xyz="0 0 1"/><axis xyz="1 0 0"/>{3}</joint>{4}</robot>"""
HEAVY = """<inertial><origin xyz="0.1 0 -0.3"/><mass value="2"/>
<inertia ixx=".2" iyy=".3" izz=".4" ixy="0" ixz="0" iyz="0"/></inertial>"""


def pair(more="", first="", kind="prismatic", second=None, match=None, version="1.0"):
    if second is None:
        second = '<limit lower="-9" upper="9" effort="0" velocity="0"/>'
    text = PAIR.format(HEAVY, first, kind, second, more).replace("<robot", f'<robot version="{version}"', 1)
    if match is None:
        return pf.formats.parse_urdf(text)
    with pytest.warns(ModelWarning, match=match):
        return pf.formats.parse_urdf(text)


def test_springs_of_gazebo_act_as_those_of_joints():
    springs = "<springStiffness>{}</springStiffness><springReference>{}</springReference>"
    more = f'<gazebo reference="A">{springs.format(5, 0.2)}<implicitSpringDamper>1</implicitSpringDamper></gazebo>'
    more += f'<gazebo reference="B">{springs.format(70, -0.1)}</gazebo>'
    m, bare = pair(more), pair()
    q, v = [0.5, 0.3], [1.0, -2.0]
    pull = pf.mass_matrix(bare, q) @ (pf.forward_dynamics(m, q, v).v_dot - pf.forward_dynamics(bare, q, v).v_dot)
    assert pull == pytest.approx([-5 * 0.3, -70 * 0.4])
    fixed = '<gazebo reference="B"><springStiffness>5</springStiffness></gazebo>'
    pair(fixed, kind="fixed", match="<springStiffness> of <gazebo> B, which is a fixed joint")


@pytest.mark.parametrize(("switch", "off"), [("turnGravityOff", "true"), ("gravity", "false")])
def test_gravity_of_a_link_is_switched_off(switch, off):
    m = pair(f'<gazebo reference="b"><{switch}>{off}</{switch}></gazebo><gazebo reference="a"><gravity>1</gravity></gazebo>')
    arm = pf.mechanism("arm", [pf.body("a", mass=2, com=(0.1, 0, -0.3), inertia=(0.2, 0.3, 0.4))],
                       [pf.joint("A", "revolute", "world", "a", axis=(0, 1, 0))])  # fmt: skip
    q = [0.4, 0.2]
    torque = -pf.mass_matrix(m, q) @ pf.forward_dynamics(m, q).v_dot
    own = -pf.mass_matrix(arm, q[:1]) @ pf.forward_dynamics(arm, q[:1]).v_dot
    assert torque == pytest.approx([own[0], 0], abs=1e-12)


@pytest.mark.parametrize(("last", "acts"), [("<gravity>false</gravity>", False), ("<turnGravityOff>0</turnGravityOff>", True)])
def test_of_contradicting_elements_of_gazebo_the_last_one_counts_and_is_told(last, acts):
    first = "<turnGravityOff>0</turnGravityOff>" if not acts else "<gravity>false</gravity>"
    more = "".join(f'<gazebo reference="b">\n{x}</gazebo>' for x in (first, last))
    m = pair(more, match="the gravity of <gazebo> b before line [0-9], which says the opposite")
    assert [f.name for f in m.forces] == ([] if acts else ["b without gravity"])
    stiff = '<gazebo reference="A"><springStiffness>{}</springStiffness></gazebo>'
    m = pair(
        stiff.format(5) + stiff.format(7), match="the <springStiffness> of <gazebo> A before line [0-9], which says another"
    )
    assert m.value(m.joint("A").stiffness).item() == 7


@pytest.mark.parametrize(
    "name", ["mu1", "kp", "selfCollide", "material", "sensor", "stopErp", "provideFeedback", "preserveFixedJoint"]
)
def test_what_gazebo_adds_about_contact_pictures_and_solvers_says_nothing(name):
    with warnings.catch_warnings(action="error"):
        assert pair(f'<gazebo reference="a"><{name}>0.3</{name}></gazebo>') == pair("")


def test_stale_references_that_are_harmless_are_not_told():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pair('<gazebo reference="gone"><material>Gazebo/Red</material><mu1>1</mu1></gazebo>')


def geared(sort, inside=""):
    return f'<transmission name="t"><type>x/{sort}</type>{inside}</transmission>'


REDUCTION = '<actuator name="m"><mechanicalReduction>50</mechanicalReduction></actuator>'
GAINS = '<actuator name="m"><drake:controller_gains p="9" d="1"/></actuator>'
STARTED = """<ros2_control name="s"><joint name="A"><state_interface name="position"><param name="initial_value">1.2</param>
</state_interface></joint></ros2_control>"""
UNREAD = {
    '<gazebo reference="a"><dampingFactor>0.1</dampingFactor><mu1>1</mu1></gazebo>': "'<dampingFactor> of <gazebo> a'$",
    '<gazebo reference="c"><springStiffness>1</springStiffness></gazebo>': "'<gazebo> c, which is no link or joint'$",
    '<gazebo reference="d"><gravity>0</gravity><mu1>1</mu1></gazebo>': "'<gazebo> d, which is no link or joint'$",
    "<gravity>0</gravity>": "'<gravity> in <robot> r'$",
    "<gazebo>\n<static>true</static><self_collide>1</self_collide></gazebo>": "'<static> of <gazebo> on line \\d'$",
    "<gazebo><plugin name='p'/></gazebo>": "'<plugin> of <gazebo> on line",
    '<spring joint="A" k="5"/>': "'<spring> in <robot> r'$",
    geared("DifferentialTransmission"): "'<transmission> t, a DifferentialTransmission'$",
    f'<ros2_control name="s">{geared("FourBarLinkageTransmission")}</ros2_control>': "t, a FourBarLinkageTransmission'$",
    geared("SimpleTransmission", GAINS): "'<drake:controller_gains> of <transmission> t'$",
    '<ros2_control><joint name="B"><param name="mimic">A</param></joint></ros2_control>': "'mimic of <ros2_control> B'$",
    STARTED: "'initial_value of <ros2_control> A'$",
    geared("SimpleTransmission", REDUCTION): "joint's side of transmissions, whatever their mechanicalReduction: 't'$",
}


@pytest.mark.parametrize(("more", "words"), UNREAD.items())
def test_elements_that_are_not_read_are_named(more, words):
    pair(more, match=words)


def test_attributes_that_are_not_read_are_named():
    dynamics = '<dynamics dampping="1" friction="0" spring_stiffness="3"/>'
    pair(first=dynamics, match="'dampping of <dynamics> A', 'spring_stiffness of <dynamics> A'$")
    pair(first='<limit effort="1" velocity="2" acceleration="3"/>', match="'acceleration of <limit> A'$")


def test_an_inertia_turns_with_its_frame():
    """A rod along the x of its frame, turned about y and then about z of the link, points where that x does."""
    rod = "<mass value='1'/><inertia ixx='0' iyy='2' izz='2' ixy='0' ixz='0' iyz='0'/>"
    text = f'<robot name="r"><link name="a"><inertial><origin rpy="0 0.3 0.8"/>{rod}</inertial></link></robot>'
    m = pf.formats.parse_urdf(text, base="free")
    along = np.array([np.cos(0.3) * np.cos(0.8), np.cos(0.3) * np.sin(0.8), -np.sin(0.3)])
    close(m.value(m.bodies[0].inertia), 2 * (np.eye(3) - np.outer(along, along)), SATISFIED, "inertia", 1.0)


def test_a_quaternion_turns_as_the_angles_of_the_same_rotation():
    """Of links and joints; one that is not of unit length is normalised, and told, and so are those of version 1.0."""
    by_angles = '<origin xyz="1 2 3" rpy="0.3 -0.4 1.2"/>'
    turn = np.array(ca.DM(so3.matrix_to_quat(pf.pose(rpy=(0.3, -0.4, 1.2)).R))).ravel()
    by_quaternion = f'<origin xyz="1 2 3" quat_xyzw="{" ".join(map(repr, turn.tolist()))}"/>'
    inertial = "<mass value='2'/><inertia ixx='1' iyy='2' izz='2.5' ixy='0' ixz='0' iyz='0'/>"
    found = []
    for at in (by_angles, by_quaternion):
        link = f'<link name="c"><inertial>{at}{inertial}</inertial></link>'
        more = f'{link}<joint name="C" type="fixed">{at}<parent link="b"/><child link="c"/></joint>'
        m = pair(more, first=at, version="1.2")
        found.append(pf.forward_dynamics(m, [0.5, 0.3], [1.0, -2.0]).v_dot)
    close(found[1], found[0], SATISFIED, "accelerations", 1.0)
    m = pair(
        first='<origin quat_xyzw="0 0 0.63 0.84"/>',
        match=r"quaternions that are not of unit length are normalised: 'line \d+'$",
        version="1.1",
    )
    pair(first='<origin quat_xyzw="0 0 0.6001 0.8"/>', version="1.1")
    words = r"other tools ignore it without version=\"1.1\" of <robot>: 'line \d+'$"
    pair(first='<origin quat_xyzw="0 0 0.6 0.8"/>', match=words)
    close(pf.forward_kinematics(m, [0.0, 0.0])["a"].rotation[1, 0], 0.96, SATISFIED, "sine of the turn", 1.0)


@pytest.mark.parametrize(
    ("turn", "words"),
    {
        'rpy="0 0 0" quat_xyzw="0 0 0 1"': "it has rpy and quat_xyzw; keep one of them",
        'quat_xyzw="0 0 0 0"': "not all zero",
        'quat_xyzw="0 0 1"': "4 numbers separated by spaces",
    }.items(),
)
def test_a_wrong_quaternion_is_refused(turn, words):
    with pytest.raises(ModelError, match=words):
        pair(first=f"<origin {turn}/>")


def test_bounds_that_a_limit_leaves_out_are_told():
    limit = '<limit effort="7" velocity="3" {}/>'
    m = pair(second=limit.format(""), match=r"leaves out are 0 by the format: 'B \(lower and upper\)'; write them")
    assert m.joint("B").limits == ((0, 0),)
    m = pair(second=limit.format('upper="2"'), match=r"'B \(lower\)'")
    assert m.joint("B").limits == ((0, 2),)


@pytest.mark.parametrize("kind", ["revolute", "prismatic"])
def test_a_limit_that_the_format_requires_is_told_once_where_it_is_missing(kind):
    m = pair(
        kind=kind,
        second="",
        match=r"^URDF: joints without the <limit> .* have none: 'B'; write it, or type 'continuous' of a hinge$",
    )
    assert m.joint("B").limits == ((-np.inf, np.inf),)
    with warnings.catch_warnings(record=True, action="always") as caught:
        pair(kind=kind)
    assert not [w for w in caught if "<limit>" in str(w.message)]


def test_a_planar_joint_moves_as_in_mujoco():
    """Whose velocities are rates, while those here are along the axes of the child."""
    mujoco = pytest.importorskip("mujoco")
    text = PAIR.format(HEAVY, "", "planar", "", "").replace('axis xyz="1 0 0"', 'axis xyz="1 2 0.5"')
    m, model = pf.formats.parse_urdf(text), mujoco.MjModel.from_xml_string(text)
    data, q, v = mujoco.MjData(model), np.array([0.4, 0.2, -0.3, 0.7]), np.array([1.0, -2, 0.5, 3])
    K, turned = np.eye(4), np.array([[np.cos(0.7), -np.sin(0.7)], [np.sin(0.7), np.cos(0.7)]])
    K[1:3, 1:3] = turned
    data.qpos, data.qvel = q, K @ v
    mujoco.mj_forward(model, data)
    rates = K @ pf.forward_dynamics(m, q, v).v_dot
    rates[1:3] += v[3] * turned @ (-v[2], v[1])
    close(rates, data.qacc, SATISFIED, "accelerations", 10.0)


def test_damping_of_other_joints_is_read_or_named():
    """One number says the damping of a ball joint of Drake, but not that of a planar one."""
    head = '<drake:joint name="B" type="ball"><parent link="a"/><child link="b"/><dynamics damping="0.4"/></drake:joint>'
    text = PAIR.format(HEAVY, "", "prismatic", "", "")
    start, end = text.index('<joint name="B"'), text.index("</robot>")
    m = pf.formats.parse_urdf(text[:start] + head + text[end:])
    assert np.diag(np.array(m.value(m.joint("B").damping))) == pytest.approx([0.4] * 3)
    pair(kind="planar", second='<dynamics damping="0.4"/>', match="velocities of several units is left out: 'B'")
