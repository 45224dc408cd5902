"""Meshes from files, as solids with few enough triangles for a picture.

Binary STL and plain COLLADA, the most frequent kinds, and MuJoCo's own are read here. The package trimesh reads the others, and
what `collada.py` does not know: importing it takes longer than drawing a machine.
"""

from __future__ import annotations

import re
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from pfaffian.errors import ModelError, install, optional
from pfaffian.formats.text.file import MAX_BYTES
from pfaffian.formats.text.mesh_file import MESHES
from pfaffian.formats.text.msh_file import read_msh
from pfaffian.formats.text.xml import parse_xml
from pfaffian.viewer import collada
from pfaffian.viewer.solids import Solid

FACES = 3000
"""Largest number of triangles of a mesh; finer meshes lose detail that no picture shows."""

_DECLARATION = re.compile(rb"^(\xef\xbb\xbf)?\s*<\?xml[^>]*\?>")


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
    kind = path.suffix.lower().removeprefix(".")
    with path.open("rb") as stream:
        data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ModelError(f"{path.name}: larger than {MAX_BYTES} bytes")
    found = {"stl": _stl, "dae": lambda data: _dae(data, path.name), "msh": _msh}.get(kind, lambda data: [])(data)
    if not found and kind != "msh":  # which trimesh does not know
        found = _by_trimesh(data, kind, path.name)
    if not found:
        raise ModelError(f"{path.name}: the mesh has no triangles")
    total = sum(len(x.faces) for x in found)
    return tuple(simplified(x, max(int(FACES * len(x.faces) / total), 60)) for x in found)


_HEADER = 84
"""Bytes of a binary STL before its triangles; the last four count them."""

_TRIANGLE = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])


def _stl(data: bytes) -> list[Solid]:
    """The solid of a binary STL; none if it is not one."""
    count = int.from_bytes(data[_HEADER - 4 : _HEADER], "little")
    if not count or len(data) != _HEADER + count * _TRIANGLE.itemsize:
        return []
    corners = np.frombuffer(data, _TRIANGLE, count, _HEADER)["corners"].reshape(-1, 3).astype(float)
    return [Solid(corners, np.arange(len(corners)).reshape(-1, 3))] if np.isfinite(corners).all() else []


def _msh(data: bytes) -> list[Solid]:
    """The solid of a mesh file of MuJoCo; none if it is not one, or has no triangles."""
    found = read_msh(data)
    return [Solid(*found)] if found is not None and len(found[1]) else []


def _dae(data: bytes, name: str) -> list[Solid]:
    """The solids of a COLLADA file. Raises ModelError: it is not well-formed, or has entities."""
    data = _DECLARATION.sub(b"", data)
    root = parse_xml(data.decode("utf-8", "replace"), name, words=True)
    try:
        return collada.solids(root)
    except collada.UnreadCollada:
        return [x._replace(vertices=x.vertices * collada.unit(root)) for x in _by_trimesh(data, "dae", name)]


def _by_trimesh(data: bytes, kind: str, name: str) -> list[Solid]:
    """The solids of a file of another kind. Raises ModelError: trimesh is not installed, or cannot read it."""
    trimesh = need_trimesh()
    try:
        # Without a resolver no other file is opened, such as materials and textures.
        scene = trimesh.load_scene(BytesIO(data), file_type=kind, resolver=None, process=False)
        return [_solid(g, kind) for g in scene.dump() if isinstance(g, trimesh.Trimesh) and len(g.faces)]
    except Exception as error:  # trimesh raises whatever its readers raise
        hint = f"; run {install('pycollada')}" if kind == "dae" and not _installed("collada") else ""
        raise ModelError(f"{name}: {type(error).__name__}: {error}{hint}"[:300]) from None


def _installed(module: str) -> bool:
    from importlib.util import find_spec

    return find_spec(module) is not None


def need_trimesh() -> Any:
    """Import the package trimesh. Raises ModelError: it is not installed, with the command that installs it."""
    return optional("trimesh", "trimesh", "meshes need")


def _solid(g: Any, kind: str) -> Solid:
    """A geometry of trimesh as a solid, with the colour of its material."""
    material = getattr(g.visual, "material", None)
    colour = getattr(material, "main_color", None) if kind in ("dae", "glb", "obj") else None
    paint = None if colour is None else tuple(float(x) / 255 for x in np.asarray(colour).ravel()[:4])
    return Solid(np.asarray(g.vertices, dtype=float), np.asarray(g.faces), paint)


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
