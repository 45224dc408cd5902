"""`pf.read` reads files of every format and recognises the format from their contents."""

from __future__ import annotations

import warnings

import pytest

import pfaffian as pf
from pfaffian.errors import ModelError, ModelWarning
from pfaffian.formats.text.run_settings import RunSettings

MASS = '<inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
LINKS = f'<link name="a"/><link name="b">{MASS}</link>'
URDF = f'<robot name="r">{LINKS}<joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint></robot>'
MJCF = '<mujoco><worldbody><body name="b"><joint name="j"/><geom size="0.1"/></body></worldbody></mujoco>'
HINGE = '<joint name="j" type="revolute"><parent>world</parent><child>b</child></joint>'
SDF = f'<sdf version="1.9"><model name="r"><link name="b"/>{HINGE}</model></sdf>'
YAML = "{bodies: {b: {mass: 2, inertia: 1}}, joints: {j: {kind: revolute, parent: world, child: b}}}"
TEXTS = {"URDF": URDF, "MJCF": MJCF, "SDF": SDF}
BEFORE = "\ufeff<?xml version='1.0'?>\n<!-- <robot> <mujoco> <sdf> " + "long " * 40_000 + "-->\n"


@pytest.mark.parametrize("suffix", [".xml", ".urdf", ".sdf", "", ".txt"])
@pytest.mark.parametrize("kind", TEXTS)
def test_the_root_element_decides_the_format(tmp_path, kind, suffix):
    file = tmp_path / f"r{suffix}"
    file.write_text(TEXTS[kind], encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        m, settings = pf.read(file)
    assert m.q_names == ("j",) and isinstance(settings, RunSettings)


def test_text_before_the_root_element_is_ignored(tmp_path):
    file = tmp_path / "r.yaml"
    file.write_text(BEFORE.replace("\ufeff<?xml version='1.0'?>\n", "") + URDF, encoding="utf-8")
    assert pf.read(file)[0].q_names == ("j",)
    file.write_text(YAML, encoding="utf-8")
    assert pf.read(file)[0].q_names == ("j",)


@pytest.mark.parametrize("kind", TEXTS)
def test_comments_with_options_of_commands_are_read(tmp_path, kind):
    """As the engines of these formats read them; expat accepts no "--" inside a comment."""
    file = tmp_path / "r.xml"
    last = TEXTS[kind].rfind("</")
    for remark in ("<!-- run --level 2\n<robot> --->", "<!----->", "<!--\n--\n<![CDATA[\n-->"):
        text = f" \n<?xml version='1.0'?>\n{remark}{TEXTS[kind][:last]}{remark}<!-- plain -->{TEXTS[kind][last:]}"
        file.write_text(text, encoding="utf-8")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelWarning)
            assert pf.read(file)[0].q_names == ("j",)
        file.write_text(f"{text}<{kind}", encoding="utf-8")
        with pytest.raises(ModelError, match=f"r.xml line {text.count(chr(10)) + 1}: this is not well-formed XML"):
            pf.read(file)


@pytest.mark.parametrize("part", ["<!-- ", "<![CDATA[", "<?a ", "<!-- -- --><a b='<!-- -- -->'/>", "<![CDATA[ -- <!-- ]]>-->"])
def test_what_is_no_comment_is_refused(part):
    """Also at the size of a file, without a search to its end from each beginning."""
    for times in (1, 100_000):
        with pytest.raises(ModelError, match="not well-formed XML"):
            pf.formats.parse_urdf(f"{part * times}<robot><link name='a'/></robot")


OTHERS = {
    "a.xacro": (URDF, "xacro is source code of URDF; if you trust it"),
    "a.txt": (
        YAML,
        "it is neither XML for URDF (<robot>), MJCF (<mujoco>), SDF (<sdf>), OSIM (<OpenSimDocument>), nor a .yaml",
    ),
    "a.xml": ("<mujocoinclude/>", "this is a part of an MJCF file"),
    "b.xml": ("<html/>", "this is a web page"),
    "c.xml": ("<a><robot/></a>", "the root element is <a>; one of <robot>, <mujoco>, <sdf>, <OpenSimDocument> is needed"),
    "d.xml": ("<robot", "not well-formed XML"),
    "e.xml": ('<!DOCTYPE robot [<!ENTITY a "b">]><robot/>', "document types and entities are not allowed"),
    "f.xml": ("", "it is neither XML for URDF"),
    "a.stl": ("solid a\n", "this is a mesh (STL)"),
    "a.zip": ("PK\x03\x04 ...", "it is no zip archive, as FMUs are"),
    "a.dae": ("<COLLADA/>", "this is a mesh (COLLADA)"),
    "a.config": ("<model/>", "this is Gazebo's model.config"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_files_are_refused_with_their_kind(tmp_path, name):
    text, message = OTHERS[name]
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(ModelError) as error:
        pf.read(tmp_path / name)
    assert message in str(error.value)


def test_only_options_of_the_format_are_accepted(tmp_path):
    for kind, option, message in (
        ("MJCF", "base", "MJCF has no option 'base'; there are keyframe, friction"),
        ("SDF", "keyframe", "SDF has no option 'keyframe'; there are base"),
        ("URDF", "allow", "URDF has no option 'allow'"),
    ):
        file = tmp_path / "r.xml"
        file.write_text(TEXTS[kind], encoding="utf-8")
        with pytest.raises(ModelError) as error:
            pf.read(file, **{option: "free"})
        assert message in str(error.value)
    (tmp_path / "r.yaml").write_text(YAML, encoding="utf-8")
    with pytest.raises(ModelError, match="YAML has no option 'base'; there are allow"):
        pf.read(tmp_path / "r.yaml", base="free")
    (tmp_path / "r.xml").write_text(URDF, encoding="utf-8")
    assert pf.read(tmp_path / "r.xml", base="free")[0].nv == 7
