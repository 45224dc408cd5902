"""Files of a version that is not known are read, and one warning names the version and what is not known."""

import warnings

import pytest

from pfaffian.errors import ModelWarning
from pfaffian.formats import parse_sdf, parse_urdf

MASS = "<mass>1</mass><inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz></inertia>"
SDF = f"""<sdf version="{{}}"><model name="m"><link name="b"><inertial>{MASS}</inertial></link><joint name="j" type="revolute">
<parent>world</parent><child>b</child><axis><xyz>0 0 1</xyz></axis><twist>2</twist></joint></model></sdf>"""
INERTIA = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
URDF = f"""<robot name="r" version="{{}}"><link name="a"/><link name="b"><inertial><mass value="1"/>{INERTIA}</inertial></link>
<joint name="j" type="continuous"><parent link="a"/><child link="b"/><twist by="2"/></joint></robot>"""


@pytest.mark.parametrize(
    ("parse", "text", "version", "words"),
    [
        (parse_sdf, SDF, "1.13", "versions newer than 1.12, the newest that is known: '1.13'"),
        (parse_sdf, SDF, "2.0", "versions newer than 1.12, the newest that is known: '2.0'"),
        (parse_sdf, SDF, "1.12", None),
        (parse_urdf, URDF, "2.1", "version 2.1 of <robot>, of which 1.2 is known"),
        (parse_urdf, URDF, "1.0", None),
        (parse_urdf, URDF, "1.2", None),
    ],
)
def test_unknown_versions_are_named_once(parse, text, version, words):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        parse(text.format(version))
    (told,) = [str(w.message) for w in caught if issubclass(w.category, ModelWarning)]
    assert "'<twist> in <joint> j'" in told
    assert words in told if words else "version" not in told
