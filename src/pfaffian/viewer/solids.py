"""Triangles of solids: boxes, spheres, cylinders, capsules and cones in closed form, and meshes from files by trimesh."""

from __future__ import annotations

import re
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pfaffian.errors import ModelError, install, optional
from pfaffian.formats.text.file import MAX_BYTES
from pfaffian.formats.text.mesh_file import MESHES
from pfaffian.formats.text.xml import parse_xml

AROUND = 32
"""Number of sides with which round solids are drawn."""

FACES = 3000
"""Largest number of triangles of a mesh; finer meshes lose detail that no picture shows."""

_DECLARATION = re.compile(rb"^(\xef\xbb\xbf)?\s*<\?xml[^>]*\?>")


class Solid(NamedTuple):
    """A surface of triangles.   vertices: (n, 3) [m].   faces: (m, 3) indices of vertices, anticlockwise seen from outside.
    colour: (4,) from the mesh file, or None."""

    vertices: np.ndarray
    faces: np.ndarray
    colour: tuple[float, ...] | None = None

    def moved(self, R: np.ndarray, p: np.ndarray) -> Solid:
        """The solid rotated by R, then displaced by p."""
        return self._replace(vertices=self.vertices @ np.asarray(R).T + np.ravel(p))


def box(size: Any) -> Solid:
    """A box centred at the origin.   size: (3,) lengths of its edges [m]."""
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) / 2
    quads = np.array([[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]])
    return Solid(corners * np.asarray(size, dtype=float), np.concatenate([quads[:, :3], quads[:, [0, 2, 3]]]))


def turned(profile: Any, around: int = AROUND) -> Solid:
    """The solid of revolution about z of a profile (n, 2) of radii and heights; closed if its end radii are zero."""
    r, z = np.asarray(profile, dtype=float).T
    angle = 2 * np.pi * np.arange(around) / around
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    rings = np.concatenate([r[:, None, None] * ring, np.broadcast_to(z[:, None, None], (len(r), around, 1))], axis=2)
    i = np.arange(around)
    faces = []
    for k in range(len(r) - 1):
        a, b = k * around + i, (k + 1) * around + i
        an, bn = k * around + (i + 1) % around, (k + 1) * around + (i + 1) % around
        faces += [np.stack([a, an, bn], 1)] if r[k] > 0 else []
        faces += [np.stack([a, bn, b], 1)] if r[k + 1] > 0 else []
    return Solid(rings.reshape(-1, 3), np.concatenate(faces))


def cylinder(radius: float, length: float, around: int = AROUND) -> Solid:
    h = length / 2
    return turned([(0, -h), (radius, -h), (radius, h), (0, h)], around)


def cone(radius: float, length: float) -> Solid:
    return turned([(0, -length / 2), (radius, -length / 2), (0, length / 2)])


def capsule(radius: float, length: float) -> Solid:
    angle = np.linspace(0, np.pi / 2, 7)
    cap = [(radius * np.sin(a), length / 2 + radius * np.cos(a)) for a in angle]
    cap[0] = (0.0, length / 2 + radius)
    return turned([(r, -z) for r, z in cap] + cap[::-1])


def sphere(radius: float) -> Solid:
    angle = np.linspace(0, np.pi, 13)
    profile = np.stack([radius * np.sin(angle), -radius * np.cos(angle)], axis=1)
    profile[[0, -1], 0] = 0
    return turned(profile)


MAKERS = {
    "box": lambda x: box(x),
    "sphere": lambda x: sphere(x[0]),
    "cylinder": lambda x: cylinder(*x),
    "capsule": lambda x: capsule(*x),
    "cone": lambda x: cone(*x),
}
"""Kind of shape -> function that makes the solid from its size."""


def rod(a: np.ndarray, b: np.ndarray, radius: float, around: int = 12) -> Solid:
    """A cylinder from a point a to a point b [m]."""
    along = np.asarray(b, dtype=float) - a
    length = float(np.linalg.norm(along))
    solid = cylinder(radius, length, around)
    return solid.moved(towards(along), (np.asarray(a) + b) / 2)


def towards(direction: Any) -> np.ndarray:
    """A rotation (3, 3) that takes z to the direction; the identity if that is zero."""
    z = np.asarray(direction, dtype=float).ravel()
    length = np.linalg.norm(z)
    if length == 0:
        return np.eye(3)
    z = z / length
    x = np.cross([0.0, 1.0, 0.0] if abs(z[1]) < 0.9 else [1.0, 0.0, 0.0], z)
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(z, x), z], axis=1)


def read_mesh(file: str) -> tuple[Solid, ...]:
    """The solids of a mesh file, one for each of its geometries. Raises ModelError: the file cannot be read, and why."""
    path = Path(file)
    if path.suffix.lower() not in MESHES:
        raise ModelError(f"{path.name}: meshes are files that end in {', '.join(MESHES)}")
    try:
        return _read(path, path.stat().st_mtime_ns)
    except OSError as error:
        raise ModelError(f"{path.name}: {error.strerror}") from None


@lru_cache(maxsize=256)
def _read(path: Path, _: int) -> tuple[Solid, ...]:
    """The solids of a mesh file, with at most FACES triangles together. Raises ModelError: it is too large or not a mesh."""
    trimesh = need_trimesh()
    kind = path.suffix.lower().removeprefix(".")
    with path.open("rb") as stream:
        data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ModelError(f"{path.name}: larger than {MAX_BYTES} bytes")
    if kind == "dae":
        data = _DECLARATION.sub(b"", data)
        parse_xml(data.decode("utf-8", "replace"), path.name)  # refuses entities and document types
    try:
        # Without a resolver no other file is opened, such as materials and textures.
        scene = trimesh.load_scene(BytesIO(data), file_type=kind, resolver=None, process=False)
        geometries = [g for g in scene.dump() if isinstance(g, trimesh.Trimesh) and len(g.faces)]
    except Exception as error:  # trimesh raises whatever its readers raise
        hint = f"; run {install('pycollada')}" if kind == "dae" and not _installed("collada") else ""
        raise ModelError(f"{path.name}: {type(error).__name__}: {error}{hint}"[:300]) from None
    if not geometries:
        raise ModelError(f"{path.name}: the mesh has no triangles")
    total = sum(len(g.faces) for g in geometries)
    return tuple(_solid(g, max(int(FACES * len(g.faces) / total), 60), kind) for g in geometries)


def _installed(module: str) -> bool:
    from importlib.util import find_spec

    return find_spec(module) is not None


def need_trimesh() -> Any:
    """Import the package trimesh. Raises ModelError: it is not installed, with the command that installs it."""
    return optional("trimesh", "trimesh", "meshes need")


def _solid(g: Any, faces: int, kind: str) -> Solid:
    solid = simplified(Solid(np.asarray(g.vertices, dtype=float), np.asarray(g.faces)), faces)
    material = getattr(g.visual, "material", None)
    colour = getattr(material, "main_color", None) if kind in ("dae", "glb", "obj") else None
    return solid if colour is None else solid._replace(colour=tuple(float(x) / 255 for x in np.asarray(colour).ravel()[:4]))


GRIDS = (4096, 128, 96, 64, 48, 36, 27, 20, 15, 11, 8, 6, 4, 3, 2)
"""Cells of grids along the longest side of a solid, for finer to coarser detail."""


def simplified(solid: Solid, faces: int) -> Solid:
    """The solid with at most `faces` triangles: the vertices within a cell of a grid become one, at their mean."""
    low, extent = solid.vertices.min(axis=0), np.ptp(solid.vertices, axis=0).max()
    if not extent > 0:
        return Solid(solid.vertices[:1], np.zeros((0, 3), dtype=int))
    places = (solid.vertices - low) / extent
    fine, coarse = 0, len(GRIDS) - 1
    while fine < coarse:  # the finest grid that leaves few enough triangles
        middle = (fine + coarse) // 2
        enough = len(_merged(places, solid.faces, GRIDS[middle])[1]) <= faces
        fine, coarse = (fine, middle) if enough else (middle + 1, coarse)
    cell, left = _merged(places, solid.faces, GRIDS[fine])
    count = np.bincount(cell)
    means = np.stack([np.bincount(cell, x) / count for x in solid.vertices.T], axis=1)
    return Solid(means, left, solid.colour)


def _merged(places: np.ndarray, faces: np.ndarray, cells: int) -> tuple[np.ndarray, np.ndarray]:
    """The cell (n,) of each vertex in a grid, numbered, and the triangles (m, 3) of cells that are left, each once.

    places: (n, 3) of the vertices, along a side of length 1.
    """
    keys = np.floor(places * cells).astype(np.int64)
    _, cell = np.unique(keys @ np.array([1, 2**20, 2**40]), return_inverse=True)
    a, b, c = cell.ravel()[faces].T
    a, b, c = np.stack([a, b, c])[:, (a != b) & (b != c) & (c != a)]
    low, high = np.minimum(np.minimum(a, b), c), np.maximum(np.maximum(a, b), c)
    n = int(cell.max()) + 1
    _, first = np.unique((low * n + (a + b + c - low - high)) * n + high, return_index=True)
    return cell.ravel(), np.stack([a, b, c], axis=1)[np.sort(first)]
