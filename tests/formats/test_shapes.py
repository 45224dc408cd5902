"""Shapes in URDF and YAML files, and the folders in which their meshes are searched."""

from __future__ import annotations

import warnings
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian.formats.text.mesh_file import places
from pfaffian.viewer.meshes import read_mesh

MASS = '<inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
TRIANGLE = (
    "solid a\n" + "facet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 2 0\nendloop\nendfacet\nendsolid a\n"
)


def robot(*shapes: str, before: str = "") -> str:
    hinge = '<joint name="h" type="continuous"><parent link="base"/><child link="rod"/></joint>'
    return f'<robot name="r">{before}<link name="base"/><link name="rod">{MASS}{"".join(shapes)}</link>{hinge}</robot>'


def shape_element(geometry: str, tag: str = "visual", more: str = "") -> str:
    return f"<{tag}><geometry>{geometry}</geometry>{more}</{tag}>"


def test_urdf_solids_with_their_poses_and_colours() -> None:
    blue = '<material name="sky"><color rgba="0 0 2 0.5"/></material>'
    text = robot(
        shape_element('<box size="1 2 3"/>', more='<origin xyz="0 0 1" rpy="0 0 1.5"/><material name="sky"/>'),
        shape_element('<cylinder radius="0.1" length="2"/>', more='<material name="own"><color rgba="1 0 0 1"/></material>'),
        shape_element('<sphere radius="0.5"/>', "collision"),
        before=blue,
    )
    box, cylinder, ball = pf.formats.parse_urdf(text).body("rod").shapes
    assert [s.kind for s in (box, cylinder, ball)] == ["box", "cylinder", "sphere"]
    assert box.colour == (0.0, 0.0, 1.0, 0.5) and cylinder.colour == (1.0, 0.0, 0.0, 1.0) and ball.role == "collision"
    assert box.placement == pf.pose((0, 0, 1), rpy=(0, 0, 1.5))
    assert box.mass is None and pf.formats.parse_urdf(text).body("rod").mass == pf.formats.parse_urdf(robot()).body("rod").mass


BAD = (
    '<sphere radius="-1"/>', '<sphere radius="nan"/>', '<box/>', '<box size="1 2"/>', "<blob/>", "", '<cylinder radius="1"/>',
    '<mesh filename="a.stl" scale="0 1 1"/>', "<mesh/>", '<box size="1 1 1"/><box size="1 1 1"/>',
)  # fmt: skip


def test_shapes_that_cannot_be_read_are_left_out_once_or_refused() -> None:
    """A robot with invalid shapes is read, since its motion does not depend on them."""
    text = robot(*[shape_element(g) for g in BAD], shape_element('<sphere radius="1"/>'))
    with pytest.warns(pf.ModelWarning, match=f"left out of pictures: URDF line 1.*and {len(BAD) - 1} more") as caught:
        assert len(pf.formats.parse_urdf(text).body("rod").shapes) == 1
    assert len(caught) == 1
    for g in BAD:
        with pytest.raises(pf.ModelError, match="URDF line 1"):
            pf.formats.parse_urdf(robot(shape_element(g)), strict=True)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package with a mesh and a URDF folder, and a secret file next to the package."""
    here = tmp_path / "ws" / "arm"
    for folder in ("urdf", "meshes"):
        (here / folder).mkdir(parents=True)
    (here / "package.xml").write_text("<package/>")
    for path in (here / "meshes" / "a.stl", tmp_path / "ws" / "secret.stl", here / "urdf" / "b.stl"):
        path.write_text(TRIANGLE)
    (here / "meshes" / "notes.txt").write_text("private")
    (here / "meshes" / "out.stl").symlink_to(tmp_path / "ws" / "secret.stl")
    (here / "meshes" / "text.stl").symlink_to(here / "meshes" / "notes.txt")
    return here


def test_meshes_are_found_in_their_package_and_next_to_the_file(package: Path) -> None:
    where = places(package / "urdf", ())
    for name in ("package://arm/meshes/a.stl", "package:///arm/meshes/a.stl", "model://arm/meshes/a.stl"):
        assert where.find(name) == str((package / "meshes" / "a.stl").resolve())
    assert where.find("b.stl") == where.find("file://b.stl") == str((package / "urdf" / "b.stl").resolve())
    other = places(None, [package.parent])
    assert other.find("package://arm/meshes/a.stl") and other.find("arm/meshes/a.stl") and other.find("secret.stl")
    assert places(None, [package]).find("package://arm/meshes/a.stl")


OUTSIDE = (
    "../../secret.stl", "package://arm/../secret.stl", "package://arm/meshes/out.stl", "package://ws/secret.stl",
    "package://arm/meshes/notes.txt", "package://arm/meshes/text.stl", "package://arm/meshes/none.stl", "package://../secret.stl",
    "http://example.com/a.stl", "package://arm/meshes\\a.stl", "package://arm/meshes/a.stl\0", "", "/", "package://arm/",
    "~/a.stl", "$HOME/a.stl", "a" * 5000 + ".stl", "package://arm//../../secret.stl",
)  # fmt: skip


@pytest.mark.parametrize("name", OUTSIDE)
def test_no_name_leads_out_of_the_allowed_folders(package: Path, name: str) -> None:
    assert places(package / "urdf", ()).find(name) is None
    absolute = str(package.parent / "secret.stl")
    assert places(package / "urdf", ()).find(absolute) is None
    assert places(package / "urdf", ()).find(f"file://{absolute}") is None


def test_a_folder_is_a_package_by_its_manifest_only(package: Path) -> None:
    """Without a package.xml, a folder above the file with the name of the package is not searched."""
    (package / "package.xml").unlink()
    assert places(package / "urdf", ()).find("package://arm/meshes/a.stl") is None


def test_meshes_are_found_and_missing_ones_give_one_warning_when_drawn(package: Path) -> None:
    file = package / "urdf" / "arm.urdf"
    file.write_text(robot(shape_element('<mesh filename="package://arm/meshes/a.stl" scale="2 2 2"/>')))
    shape = pf.formats.read_urdf(file).body("rod").shapes[0]
    assert (
        shape.file and np.array(ca.DM(shape.size)).ravel().tolist() == [2, 2, 2] and shape.label == "package://arm/meshes/a.stl"
    )
    file.write_text(robot(*[shape_element(f'<mesh filename="package://lost/{i}.stl"/>') for i in range(3)]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        m = pf.formats.read_urdf(file)
    assert [s.file for s in m.body("rod").shapes] == [None] * 3
    with pytest.warns(
        pf.ModelWarning, match=r"drawn as rods between their joints: package://lost/0.stl is not found.*=\[folder\]; and 2 more"
    ) as w:
        pf.animate(m, pf.run(m, duration=0.0, backend="numpy"))
    assert len(w) == 1


DAE = '<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">{}</COLLADA>'


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        (
            "a.dae",
            b'<!DOCTYPE a [<!ENTITY b "c">]>' + DAE.format("&b;").encode(),
            "document types and entities are not allowed",
        ),
        ("a.dae", b'<?xml version="1.0" encoding="utf-16"?><!DOCTYPE a><a/>', "document types and entities are not allowed"),
        ("a.dae", DAE.format("").encode(), "a.dae"),
        ("a.stl", b"", "a.stl"),
        ("a.stl", b"\0" * 80 + b"\xff\xff\xff\xff", "a.stl"),
        ("a.obj", b"mtllib /etc/passwd\nf 1 2 3\n", "a.obj"),
        ("a.ply", b"ply\nformat ascii 1.0\nelement vertex 999999999999\nend_header\n", "a.ply"),
        ("a.off", b"OFF\n9999999999 1 0\n", "a.off"),
        ("a.glb", b"glTF\2\0\0\0\xff\xff\xff\xff", "a.glb"),
        ("a.txt", b"private", "meshes are files that end in"),
    ],
)
def test_a_hostile_mesh_gives_a_model_error(tmp_path: Path, name: str, data: bytes, words: str) -> None:
    pytest.importorskip("trimesh")
    (tmp_path / name).write_bytes(data)
    with pytest.raises(pf.ModelError, match=words):
        read_mesh(str(tmp_path / name))


def test_a_mesh_opens_no_other_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("trimesh")
    (tmp_path / "a.obj").write_text("mtllib secret.mtl\nv 0 0 0\nv 1 0 0\nv 0 1 0\nusemtl x\nf 1 2 3\n")
    (tmp_path / "secret.mtl").write_text("newmtl x\nmap_Kd secret.png\n")
    text = (tmp_path / "a.obj").read_text()
    (tmp_path / "b.obj").write_text(text)
    assert len(read_mesh(str(tmp_path / "a.obj"))[0].faces) == 1
    opened: list[str] = []
    real = Path.open
    monkeypatch.setattr(Path, "open", lambda self, *a, **k: (opened.append(self.name), real(self, *a, **k))[1])
    monkeypatch.setattr("builtins.open", lambda path, *a, **k: pytest.fail(f"{path} was opened"))
    read_mesh(str(tmp_path / "b.obj"))
    assert opened == ["b.obj"]


def test_shapes_in_yaml_are_equal_to_those_in_python(package: Path) -> None:
    text = """
    parameters: {l: 0.5}
    bodies:
      rod:
        shape:
          - {kind: box, size: [l, 0.02, 0.01], density: 2700, placement: {xyz: [l/2, 0, 0]}, colour: [1, 0, 0]}
          - {kind: mesh, file: b.stl, scale: 2, role: collision}
          - {kind: mesh, file: package://arm/meshes/a.stl, scale: [1, 1, -1], colour: "#00ff00"}
    joints: {h: {kind: revolute, parent: world, child: rod, axis: [0, 1, 0]}}
    """
    m, _ = pf.formats.parse_yaml(text, folder=package / "urdf")
    l = pf.Parameter("l", 0.5)
    shapes = [
        pf.shape("box", size=(l, 0.02, 0.01), density=2700, placement=(l / 2, 0, 0), colour=(1, 0, 0)),
        pf.shape("mesh", file=str((package / "urdf" / "b.stl").resolve()), scale=2, role="collision"),
        pf.shape("mesh", file=str((package / "meshes" / "a.stl").resolve()), scale=(1, 1, -1), colour="#00ff00"),
    ]
    hinge = pf.joint("h", "revolute", "world", "rod", axis=(0, 1, 0))
    twin = pf.mechanism(m.name, [pf.body("rod", shape=shapes)], [hinge], parameters=[l])
    assert m == twin


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ("{kind: box}", "it needs size"),
        ("{kind: blob, size: 1}", "'blob' is unknown"),
        ("{kind: sphere, radius: 1, size: [1, 1, 1]}", "it has no size"),
        ("{kind: mesh, file: ../../secret.stl}", "is not a file"),
        ("{kind: mesh, file: package://arm/meshes/notes.txt}", "is not a file"),
        ("{kind: sphere, radius: 1, colour: red}", "colour 'red' is invalid"),
        ("{kind: sphere, radius: 1, paint: red}", "'paint' is unknown"),
    ],
)
def test_a_wrong_shape_in_yaml_is_named_with_its_line(package: Path, shape: str, words: str) -> None:
    text = f"bodies:\n  rod:\n    shape: {shape}\njoints: {{h: {{kind: revolute, parent: world, child: rod}}}}"
    with pytest.raises(pf.ModelError, match=f"YAML line 3: bodies.rod.shape.*{words}"):
        pf.formats.parse_yaml(text, folder=package / "urdf")
