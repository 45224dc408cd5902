"""Numbers that a format allows and a machine hardly has: springs and dampers that drive it, efforts below zero; and the white
space between numbers, which is that of XML in all formats."""

import warnings

import pytest

import pfaffian as pf
from pfaffian.errors import ModelError, ModelWarning
from pfaffian.formats import parse_mjcf, parse_osim, parse_sdf, parse_urdf
from pfaffian.formats.text.strict_number import words_of

BELOW = "stiffness and damping below zero, which may drive the motion, are used as they are: '{}'"
MASS = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'


def urdf(inside="", beside=""):
    ends = '<parent link="a"/><child link="b"/><axis xyz="0 1 0"/>'
    slide = f'<joint name="s" type="prismatic">{ends}<limit lower="-1" upper="1" effort="9" velocity="1"/>{inside}</joint>'
    return f'<robot name="r"><link name="a"/><link name="b">{MASS}</link>{slide}{beside}</robot>'


def sdf(dynamics="", mass="1"):
    axis = f"<axis><xyz>1 0 0</xyz><dynamics>{dynamics}</dynamics></axis>"
    link = f'<link name="b"><inertial><mass>{mass}</mass></inertial></link>'
    joint = f'<joint name="s" type="prismatic"><parent>world</parent><child>b</child>{axis}</joint>'
    return f'<sdf version="1.9"><model name="m">{link}{joint}</model></sdf>'


def mjcf(given):
    return f'<mujoco><worldbody><body><joint name="s" {given}/><geom size=".1"/></body></worldbody></mujoco>'


def told(parse, text):
    """The machine of a text, and its warnings."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        found = parse(text)
    m = found if isinstance(found, pf.Mechanism) else found[0]
    return m, "; ".join(str(w.message) for w in caught if w.category is ModelWarning)


@pytest.mark.parametrize(
    ("parse", "text", "name"),
    [(parse_urdf, urdf('<dynamics damping="-2"/>'), "s"),
     (parse_urdf, urdf(beside='<gazebo reference="s"><springStiffness>-2</springStiffness></gazebo>'), "s"),
     (parse_sdf, sdf("<damping>-2</damping>"), "s"), (parse_sdf, sdf("<spring_stiffness>-2</spring_stiffness>"), "s"),
     (parse_mjcf, mjcf('damping="-2"'), "s"), (parse_mjcf, mjcf('stiffness="-2"'), "s")],
    ids=["urdf damping", "gazebo spring", "sdf damping", "sdf spring", "mjcf damping", "mjcf spring"],
)  # fmt: skip
def test_springs_and_dampers_that_may_drive_a_machine_are_read_and_named(parse, text, name):
    m, words = told(parse, text)
    j = m.joint(name)
    assert BELOW.format(name) in words and -2 in (float(j.stiffness), float(j.damping))
    assert "below zero" not in told(parse, text.replace("-2", "2"))[1]


@pytest.mark.parametrize("given", ['stiffness="-2"', 'damping="-2"'])
def test_tendons_that_may_drive_a_machine_are_read_and_named(given):
    text = mjcf("").replace(
        "</mujoco>", f'<tendon><fixed name="t" {given}><joint joint="s" coef="2"/></fixed></tendon></mujoco>'
    )
    m, words = told(parse_mjcf, text)
    assert BELOW.format("t") in words and [f.name.split()[0] for f in m.forces] == ["t"]
    assert "below zero" not in told(parse_mjcf, text.replace("-2", "2"))[1]


def test_the_spring_of_a_ball_that_may_drive_a_machine_is_named():
    text = mjcf('type="ball" stiffness="-2"')
    assert BELOW.format("s") in told(parse_mjcf, text)[1]
    assert "below zero" not in told(parse_mjcf, text.replace("-2", "2"))[1]


def test_springs_and_dampers_of_closures_are_named_too():
    loop = '<loop name="o" type="revolute"><predecessor link="b"/><successor link="a"/><axis xyz="0 1 0"/>{}</loop>'
    closing = '<joint name="c" type="prismatic"><parent link="a"/><child link="b"/><axis xyz="1 0 0"/>'
    closing += '<limit lower="-1" upper="1" effort="9" velocity="1"/><dynamics damping="-2"/></joint>'
    assert "below zero" not in told(parse_urdf, urdf(beside=loop.format("")))[1]
    assert BELOW.format("c") in told(parse_urdf, urdf(beside=closing))[1]


def test_an_effort_below_zero_is_named():
    m, words = told(parse_urdf, urdf().replace('effort="9"', 'effort="-9"'))
    assert "an effort below zero counts as no limit: 's'" in words and m.joint("s").effort == float("inf")
    for effort in ("9", "0"):
        assert "effort below zero" not in told(parse_urdf, urdf().replace('effort="9"', f'effort="{effort}"'))[1]


def test_friction_below_zero_is_refused():
    with pytest.raises(ModelError, match="<dynamics>: joint 's': the friction is below zero"):
        told(parse_sdf, sdf("<friction>-2</friction>"))


OSIM = """<OpenSimDocument Version="40000"><Model name="m"><BodySet><objects><Body name="b">
<mass>{}</mass></Body></objects></BodySet></Model></OpenSimDocument>"""


@pytest.mark.parametrize("space", ["\u00a0", "\u2003", "\u3000", "\u0085", "\u2028"], ids=ascii)
@pytest.mark.parametrize(
    ("parse", "text"),
    [(parse_sdf, sdf(mass="{}")), (parse_urdf, urdf('<dynamics damping="{}"/>')), (parse_mjcf, mjcf('damping="{}"')),
     (parse_urdf, urdf(beside='<gazebo reference="s"><springStiffness>{}</springStiffness></gazebo>')), (parse_osim, OSIM)],
    ids=["sdf", "urdf", "mjcf", "gazebo", "osim"],
)  # fmt: skip
def test_only_the_white_space_of_xml_stands_around_numbers(parse, text, space):
    for number in (f"{space}2", f"2{space}"):
        with pytest.raises(ModelError, match=r"is not a decimal number|bad format in attribute"):
            told(parse, text.replace("{}", number))


def test_only_the_white_space_of_xml_stands_between_numbers():
    assert words_of(" 1\t-2\n3\u00a04 ") == ["1", "-2", "3\u00a04"] and words_of("1  2") == ["1", "2"] and words_of(" ") == []
