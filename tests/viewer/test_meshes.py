"""Meshes that are read without trimesh: binary STL and plain COLLADA, beside trimesh where it is installed."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from pfaffian.formats.text.xml import parse_xml
from pfaffian.viewer import collada, meshes
from pfaffian.viewer.meshes import read_mesh
from pfaffian.viewer.solids import box

SINGLE = 1e-6
"""Coordinates of an STL are float32, of about one metre; those of trimesh's COLLADA too."""

CORNERS = "0 0 0  2 0 0  2 1 0  0 1 0  1 0.5 3"

DAE = f"""<?xml version="1.0" encoding="utf-8"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
  <asset><created>2020-01-01T00:00:00Z</created><modified>2020-01-01T00:00:00Z</modified>
    <unit name="centimeter" meter="0.01"/><up_axis>Y_UP</up_axis></asset>
  <library_effects>
    <effect id="red-effect"><profile_COMMON><technique sid="common"><phong>
      <diffuse><color>0.8 0.2 0.1 1</color></diffuse><transparent><color>1 1 1 0.5</color></transparent>
    </phong></technique></profile_COMMON></effect>
    <effect id="blue-effect"><profile_COMMON><technique sid="common"><lambert>
      <diffuse><color>0.1 0.2 0.9 1</color></diffuse>
    </lambert></technique></profile_COMMON></effect>
  </library_effects>
  <library_materials>
    <material id="red"><instance_effect url="#red-effect"/></material>
    <material id="blue"><instance_effect url="#blue-effect"/></material>
  </library_materials>
  <library_geometries><geometry id="roof"><mesh>
    <source id="points"><float_array id="numbers" count="15">{CORNERS}</float_array>
      <technique_common><accessor source="#numbers" count="5" stride="3">
        <param name="X" type="float"/><param name="Y" type="float"/><param name="Z" type="float"/>
      </accessor></technique_common></source>
    <source id="normals"><float_array id="ups" count="3">0 0 1</float_array>
      <technique_common><accessor source="#ups" count="1" stride="3">
        <param name="X" type="float"/><param name="Y" type="float"/><param name="Z" type="float"/>
      </accessor></technique_common></source>
    <vertices id="corners"><input semantic="POSITION" source="#points"/></vertices>
    <polylist count="2" material="wall">
      <input semantic="NORMAL" source="#normals" offset="0"/><input semantic="VERTEX" source="#corners" offset="1"/>
      <vcount>4 3</vcount><p>0 0 0 3 0 2 0 1  0 0 0 1 0 4</p>
    </polylist>
    <triangles count="1" material="top">
      <input semantic="VERTEX" source="#corners" offset="0"/><input semantic="NORMAL" source="#normals" offset="1"/>
      <p>2 0 3 0 4 0</p>
    </triangles>
  </mesh></geometry></library_geometries>
  <library_visual_scenes><visual_scene id="all">
    <node id="outer"><translate>1 2 3</translate><rotate>0 0 1 30</rotate><scale>2 1 1</scale>
      <node id="inner"><matrix>1 0 0 0  0 0 -1 0  0 1 0 5  0 0 0 1</matrix>
        <instance_geometry url="#roof"><bind_material><technique_common>
          <instance_material symbol="wall" target="#red"/><instance_material symbol="top" target="#blue"/>
        </technique_common></bind_material></instance_geometry>
      </node></node>
  </visual_scene></library_visual_scenes>
  <scene><instance_visual_scene url="#all"/></scene>
</COLLADA>
"""


def stl(corners: np.ndarray) -> bytes:
    """A binary STL of triangles (n, 3, 3)."""
    triangles = [struct.pack("<12fH", 0, 0, 1, *t.ravel(), 0) for t in corners]
    return b"\0" * 80 + struct.pack("<I", len(corners)) + b"".join(triangles)


def placed(points: np.ndarray) -> np.ndarray:
    """Points (n, 3) of the roof in the frame of the file [m], by the nodes of DAE written out."""
    c, s = np.cos(np.pi / 6), np.sin(np.pi / 6)
    x, y, z = points.T
    inner = np.stack([x, -z, y + 5], axis=1) * [2, 1, 1]
    turned = inner @ np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]])
    return 0.01 * (turned + [1, 2, 3])


@pytest.fixture
def without_trimesh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meshes, "need_trimesh", lambda: pytest.fail("trimesh was asked"))


def test_collada_is_read_with_nodes_unit_and_colours(tmp_path: Path, without_trimesh: None) -> None:
    (tmp_path / "roof.dae").write_text(DAE)
    wall, top = read_mesh(str(tmp_path / "roof.dae"))
    corners = np.array(CORNERS.split(), dtype=float).reshape(5, 3)
    expected = {(0, 3, 2), (0, 2, 1), (0, 1, 4)}
    sets = lambda s: {tuple(sorted(map(tuple, np.round(s.vertices[f], 9).tolist()))) for f in s.faces}  # noqa: E731
    assert sets(wall) == {tuple(sorted(map(tuple, np.round(placed(corners[list(f)]), 9).tolist()))) for f in expected}
    assert sets(top) == {tuple(sorted(map(tuple, np.round(placed(corners[[2, 3, 4]]), 9).tolist())))}
    assert wall.colour == (0.8, 0.2, 0.1, 0.5) and top.colour == (0.1, 0.2, 0.9, 1.0)


@pytest.mark.parametrize("unit", ["", '<unit name="none" meter="0"/>'])
def test_without_a_unit_lengths_are_metres_and_a_texture_is_white(unit: str) -> None:
    text = DAE.partition("?>")[2].replace('<unit name="centimeter" meter="0.01"/>', unit)
    text = text.replace("<color>0.1 0.2 0.9 1</color>", '<texture texture="wood" texcoord="uv"/>')
    _, top = collada.solids(parse_xml(text, "a.dae", words=True))
    corners = np.array(CORNERS.split(), dtype=float).reshape(5, 3)
    np.testing.assert_allclose(top.vertices[top.faces[0]], 100 * placed(corners[[2, 3, 4]]))
    assert top.colour == (1.0, 1.0, 1.0, 1.0)


def normals(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    a, b, c = vertices[faces].transpose(1, 0, 2)
    return np.cross(b - a, c - a)


def test_a_mirrored_node_is_not_turned_inside_out(tmp_path: Path, without_trimesh: None) -> None:
    (tmp_path / "a.dae").write_text(DAE)
    (tmp_path / "b.dae").write_text(DAE.replace("<scale>2 1 1<", "<scale>-2 1 1<"))
    first, second = (read_mesh(str(tmp_path / name))[1] for name in ("a.dae", "b.dae"))
    inside = [
        float(normals(s.vertices, s.faces)[0] @ (s.vertices.mean(axis=0) - placed(np.array([[1, 0.5, 1]]))[0]))
        for s in (first,)
    ]
    mirrored = normals(second.vertices, second.faces)[0] @ (second.vertices.mean(axis=0) - second_middle())
    assert np.sign(inside[0]) == np.sign(mirrored)


def second_middle() -> np.ndarray:
    """The middle of the roof under the mirrored node [m]."""
    c, s = np.cos(np.pi / 6), np.sin(np.pi / 6)
    return 0.01 * (np.array([-2.0, -1.0, 5.5]) @ np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]]) + [1, 2, 3])


@pytest.mark.parametrize(
    "change",
    [("polylist", "polygons"), ('stride="3"', 'stride="4"'), ("<vcount>4 3<", "<vcount>4 2<"), ("0 0 0 3 0 2", "0 0 0 9 0 2"),
     ('count="15"', 'count="16"'), ("2 0 0  2 1 0", "2 0 x  2 1 0"), ("2 0 0  2 1 0", "2 0 nan  2 1 0"), ("#roof", "#hall"),
     ('target="#red"', 'target="http://a/b"'), ("<rotate>", "<lookat>1</lookat><rotate>"),
     ("<instance_geometry url", "<instance_node url='#inner'/><instance_geometry url")],
)  # fmt: skip
def test_what_is_unknown_or_wrong_in_collada_is_left_to_another_reader(change: tuple[str, str]) -> None:
    text = DAE.partition("?>")[2].replace(*change)
    assert text != DAE.partition("?>")[2]
    with pytest.raises(collada.UnreadCollada):
        collada.solids(parse_xml(text, "a.dae", words=True))


def test_the_unit_counts_for_files_that_trimesh_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("trimesh")
    pytest.importorskip("collada")
    (tmp_path / "a.dae").write_text(DAE)
    ours = read_mesh(str(tmp_path / "a.dae"))

    def unknown(root: object) -> list:
        raise collada.UnreadCollada

    monkeypatch.setattr(collada, "solids", unknown)
    (tmp_path / "b.dae").write_text(DAE)
    theirs = read_mesh(str(tmp_path / "b.dae"))
    for a, b in zip(ours, sorted(theirs, key=lambda s: -len(s.faces)), strict=True):
        np.testing.assert_allclose(
            np.sort(a.vertices[a.faces].mean(axis=1), axis=0), np.sort(b.vertices[b.faces].mean(axis=1), axis=0), atol=SINGLE
        )


def test_a_binary_stl_is_read(tmp_path: Path, without_trimesh: None) -> None:
    cube = box((1.0, 0.5, 0.25)).moved(np.eye(3), np.array([0.3, 0, 0]))
    (tmp_path / "box.STL").write_bytes(stl(cube.vertices[cube.faces]))
    (found,) = read_mesh(str(tmp_path / "box.STL"))
    assert len(found.faces) == 12 and len(found.vertices) == 8 and found.colour is None
    np.testing.assert_allclose(np.ptp(found.vertices, axis=0), (1.0, 0.5, 0.25), atol=SINGLE)
    outward = np.einsum(
        "ij,ij->i", normals(found.vertices, found.faces), found.vertices[found.faces].mean(axis=1) - [0.3, 0, 0]
    )
    assert (outward > 0).all()


def test_other_stl_files_are_left_to_another_reader() -> None:
    good = stl(box((1.0, 1.0, 1.0)).vertices[box((1.0, 1.0, 1.0)).faces])
    bad = np.array([[[0, 0, 0], [1, 0, 0], [0, np.nan, 0]]])
    for data in (b"", b"solid a", good[:-1], good + b"\0", good[:80] + b"\0\0\0\0", stl(bad)):
        assert meshes._stl(data) == []
    assert len(meshes._stl(good)) == 1
