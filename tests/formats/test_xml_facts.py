"""Every element and attribute of SDF and URDF is read, refused, named or harmless, as tests/data/*_facts.csv say.

Their names were printed by `python -m tools.schema_names`, from SDFormat's descriptions 1.12 and urdfdom's urdf.xsd. Each row
gives the answer and a value other than the default. A small model that has this value is read:

read        the mechanism or the settings change
refused     a ModelError
named       a warning tells more than for the model without it
harmless    mechanism, settings and warnings are the same

An element with the attribute "*" answers for all its attributes and for the elements within it. Rows of elements that only hold
others, and of names that the model has anyway, have no value.
"""

from __future__ import annotations

import csv
import warnings
from pathlib import Path
from xml.etree import ElementTree

import pytest

import pfaffian as pf
from pfaffian.errors import ModelError, ModelWarning
from tools.compare_files.urdf import examine
from tools.schema_names import sdf as sdf_names
from tools.schema_names import unanswered
from tools.schema_names import urdf as urdf_names

DATA = Path(__file__).parents[1] / "data"

MASS = "<inertial><mass>2</mass><inertia><ixx>1</ixx><iyy>2</iyy><izz>2.5</izz></inertia></inertial>"
PLACES = {"a": "", "b": "<pose>0 0 1 0 0 0</pose>", "c": "<pose relative_to='frame'/>", "d": "", "e": "", "f": ""}
LINKS = "".join(f"<link name='{n}'>{place}{MASS}</link>" for n, place in PLACES.items())
BALL = "<geometry><sphere><radius>0.1</radius></sphere></geometry>"
AUTO = f"<link name='auto'><inertial auto='true'/><collision name='c'>{BALL}</collision></link>"


def sdf_joint(name: str, kind: str, parent: str, child: str, inside: str = "<axis><xyz>0 1 0</xyz></axis>") -> str:
    return f"<joint name='{name}' type='{kind}'><parent>{parent}</parent><child>{child}</child>{inside}</joint>"


SDF = f"""<sdf version="1.12"><world name="w"><model name="m">{LINKS}{AUTO}<frame name="frame"><pose>0 0 0 0 0 1</pose></frame>
<frame name="moved"><pose>0.1 0 0 0 0 0</pose></frame>
{sdf_joint("j", "revolute", "world", "a")}{sdf_joint("k", "revolute", "a", "b")}{sdf_joint("weld", "fixed", "b", "auto", "")}
{sdf_joint("u", "universal", "b", "c", "<axis><xyz>1 0 0</xyz></axis><axis2><xyz>0 1 0</xyz></axis2>")}
{sdf_joint("t", "screw", "a", "d")}{sdf_joint("v", "revolute", "a", "e")}
{
    sdf_joint(
        "g",
        "gearbox",
        "b",
        "e",
        "<axis><xyz>0 1 0</xyz></axis><axis2><xyz>0 1 0</xyz></axis2><gearbox_reference_body>a</gearbox_reference_body>",
    )
}
{sdf_joint("s", "prismatic", "a", "f", "<axis><xyz>1 0 0</xyz><mimic joint='v'/></axis>")}</model></world></sdf>"""

URDF_LINK = """<link name="{}"><inertial><mass value="2"/>
<inertia ixx="1" iyy="2" izz="2.5" ixy="0" ixz="0" iyz="0"/></inertial>
<collision><geometry><sphere radius="0.1"/></geometry></collision></link>"""
URDF_JOINT = '<joint name="{}" type="{}"><parent link="{}"/><child link="{}"/><axis xyz="0 1 0"/>{}</joint>'
URDF = '<robot name="r" version="1.2">' + "".join(map(URDF_LINK.format, "abcd"))
URDF += URDF_JOINT.format("j", "revolute", "a", "b", '<limit lower="-1" upper="1" effort="1" velocity="1"/>')
URDF += URDF_JOINT.format("k", "continuous", "b", "c", "")
URDF += URDF_JOINT.format("m", "continuous", "c", "d", '<mimic joint="k"/>')
URDF += '<transmission name="t"><type>x/SimpleTransmission</type><joint name="j"/><actuator name="n"/></transmission></robot>'

ROOTS = {
    "sdf": {
        "world": "world", "model": "world/model", "link": ".//link[@name='b']", "joint": ".//joint[@name='j']",
        "joint/axis2": ".//joint[@name='u']", "joint/thread_pitch": ".//joint[@name='t']",
        "joint/screw_thread_pitch": ".//joint[@name='t']", "joint/gearbox_ratio": ".//joint[@name='g']",
        "joint/gearbox_reference_body": ".//joint[@name='g']", "inertial": ".//link[@name='b']/inertial",
        "inertial/density": ".//link[@name='auto']/inertial", "collision": ".//collision", "pose": ".//link[@name='b']/pose",
        "frame": ".//frame", "mimic": ".//mimic", "physics": "world/physics",
    },
    "urdf": {"robot": ".", "robot/link": ".//link[@name='b']", "robot/joint": ".//joint[@name='j']",
             "robot/joint/mimic": ".//joint[@name='m']", "robot/transmission": "transmission"},
}  # fmt: skip
"""Beginning of the element in a row -> its place in the model."""

MODELS = {"sdf": (SDF, pf.formats.parse_sdf, {}), "urdf": (URDF, pf.formats.parse_urdf, {"mimic": "follow"})}


def table(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader((DATA / f"{name}_facts.csv").read_text().splitlines()))


def changed(name: str, path: str, attribute: str, value: str) -> str:
    """The text of the model with a value; elements on the way to it are added where they are missing."""
    root = ElementTree.fromstring(MODELS[name][0])
    start = max((p for p in ROOTS[name] if path == p or path.startswith(p + "/")), key=len)
    place = ROOTS[name][start]
    if (found := root.find(place)) is None:
        found = ElementTree.SubElement(root.find("world"), start)
    own = place.split("/")[-1].split("[")[0]  # the element that is found, whose tag the path contains
    tags = path.split("/")
    tags = tags[tags.index(own) + 1 :] if own in tags else tags[1:]
    for tag in tags:
        below = found.find(tag)
        found = ElementTree.SubElement(found, tag) if below is None else below
    if attribute:
        found.set(attribute, value)
    else:
        found.text = value
    return ElementTree.tostring(root, encoding="unicode")


def read(name: str, text: str):
    _, parse, options = MODELS[name]
    with warnings.catch_warnings(record=True, action="always") as caught:
        found = parse(text, **options)
    told = {part for w in caught if w.category is ModelWarning for part in str(w.message).split("; ")}
    return found, told


BASES = {name: read(name, MODELS[name][0]) for name in MODELS}


def answer(name: str, text: str) -> str:
    try:
        found, told = read(name, text)
    except ModelError:
        return "refused"
    if told - BASES[name][1]:
        return "named"
    return "harmless" if found == BASES[name][0] else "read"


WALKED = [(n, r) for n in MODELS for r in table(n) if r["value"]]


@pytest.mark.parametrize(("name", "row"), WALKED, ids=lambda x: x if isinstance(x, str) else f"{x['element']}-{x['attribute']}")
def test_each_element_does_what_the_table_says(name, row):
    assert answer(name, changed(name, row["element"], row["attribute"], row["value"])) == row["answer"]


READ = [r for r in table("urdf") if r["value"] and r["answer"] == "read"]


@pytest.mark.parametrize("row", READ, ids=lambda r: f"{r['element']}-{r['attribute']}")
def test_what_urdf_reads_moves_as_in_other_engines(tmp_path, row):
    """Mass matrix, accelerations and limits, in Pinocchio, MuJoCo and, where it is installed, Drake."""
    (tmp_path / "robot.urdf").write_text(changed("urdf", row["element"], row["attribute"], row["value"]))
    found = examine(tmp_path / "robot.urdf")
    assert found.outcome in ("equal", "differs with a known cause"), (found.numbers, found.why)
    assert {what.split()[0] for what in found.differences} >= {"Pinocchio", "MuJoCo"}


PART = (
    '<link name="{}"><inertial><mass value="{}"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
)
TURN = (
    '<joint name="{0}" type="revolute"><parent link="{1}"/><child link="{2}"/><axis xyz="0 1 0"/>'
    '<limit lower="-1e16" upper="1e16" effort="1" velocity="1"/></joint>'
)


def test_joints_without_mass_and_limits_beyond_reach_are_no_difference(tmp_path):
    """A finger without mass, which the reader holds and names, is held in the engines too."""
    parts = PART.format("base", 1), PART.format("arm", 1), '<link name="finger"/>'
    turns = TURN.format("shoulder", "base", "arm"), TURN.format("knuckle", "arm", "finger")
    (tmp_path / "robot.urdf").write_text(f'<robot name="r">{"".join(parts + turns)}</robot>')
    found = examine(tmp_path / "robot.urdf")
    assert found.outcome == "equal" and not found.note, (found.numbers, found.why)
    assert {what.split()[0] for what in found.differences} >= {"Pinocchio", "MuJoCo"}


def test_robots_that_float_are_compared(tmp_path):
    """A body off its mass centre on a floating joint, whose velocities the engines have along other axes, with an arm."""
    off = PART.format("b", 2).replace("<inertial>", '<inertial><origin xyz="0.3 -0.2 0.1"/>').replace('ixy="0"', 'ixy="0.4"')
    floating = '<joint name="f" type="floating"><parent link="base"/><child link="b"/></joint>'
    parts = '<link name="base"/>', off, PART.format("arm", 1), floating, TURN.format("shoulder", "b", "arm")
    (tmp_path / "robot.urdf").write_text(f'<robot name="r">{"".join(parts)}</robot>')
    found = examine(tmp_path / "robot.urdf")
    assert found.outcome == "equal" and found.nv == 7 and not found.note, (found.numbers, found.why)
    assert {what.split()[0] for what in found.differences} >= {"Pinocchio", "MuJoCo"}


def test_every_name_of_urdf_xsd_has_an_answer():
    version, rows = urdf_names()
    missing = unanswered("urdf", rows)
    assert len(rows) > 100 and not missing, f"{version}: {len(missing)} names without an answer, such as {missing[:5]}"


DESCRIPTION = """<element name="joint" required="*"><attribute name="type" type="string"/>
<element name="physics" required="0"><element name="simbody" required="0"><element name="must_be_new" type="bool"/></element>
</element><include filename="pose.sdf" required="0"/></element>"""


def test_a_new_name_of_a_description_is_found(tmp_path):
    (tmp_path / "joint.sdf").write_text(DESCRIPTION)
    attributes = "".join(f'<attribute name="{n}"/>' for n in ("relative_to", "turned_by"))
    (tmp_path / "pose.sdf").write_text(f'<element name="pose">{attributes}</element>')
    rows = sdf_names(tmp_path)[1]
    assert ("joint/pose", "") in rows and ("joint/physics", "") in rows
    assert unanswered("sdf", rows) == [("joint/physics/simbody/must_be_new", ""), ("pose", "turned_by")]


def test_every_row_has_an_answer():
    for name in MODELS:
        rows = table(name)
        assert {r["answer"] for r in rows} <= {"read", "refused", "named", "harmless"}
        assert len({(r["element"], r["attribute"]) for r in rows}) == len(rows)
