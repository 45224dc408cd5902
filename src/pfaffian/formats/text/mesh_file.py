"""Finding the mesh files that a model file names: in the robot's own package, or below a folder that the caller allows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import NamedTuple

MESHES = (".stl", ".obj", ".ply", ".off", ".glb", ".dae", ".msh")
"""Suffixes of mesh files; files with other suffixes are never opened as a mesh, whatever a model file names."""

_URI = re.compile(r"(?:package|model)://+([A-Za-z0-9][A-Za-z0-9._-]{0,99})/(.+)")


class MeshFolders(NamedTuple):
    """Folders in which meshes may lie.   folder: of the model file, None for a text.   allow: those that the caller allows."""

    folder: Path | None = None
    allow: tuple[Path, ...] = ()

    def find(self, name: str) -> str | None:
        """The path of a mesh, from its name in the model file; None if it is not found.

        package://P/x (or model://P/x) is x in a folder P above the model file that has a package.xml, P/x in an allowed
        folder, or x in an allowed folder P. Any other name is a path in the model file's folder or in an allowed one.
        """
        uri = _URI.fullmatch(name)
        rest = uri[2] if uri else name
        if PurePosixPath(rest).suffix.lower() not in MESHES or set(rest) & set("\\\0") or (uri and ".." in rest.split("/")):
            return None
        if uri:
            above = [] if self.folder is None else [a for a in _upwards(self.folder) if a.name == uri[1]]
            tried = [(a, a) for a in above if (a / "package.xml").is_file()]
            tried += [(a, a / uri[1]) for a in self.allow] + [(a, a) for a in self.allow if a.name == uri[1]]
            return _first((root, start / rest) for root, start in tried)
        starts = [*([] if self.folder is None else [self.folder]), *self.allow]
        plain = rest.removeprefix("file://")
        return _first((root, start / plain) for start in starts for root in starts)


NOWHERE = MeshFolders()


def places(folder: Path | None, allow: Iterable[str | Path]) -> MeshFolders:
    """The MeshFolders for a model file.   folder: its folder, or None.   allow: further folders."""
    return MeshFolders(None if folder is None else folder.absolute(), tuple(Path(a).absolute() for a in allow))


def _upwards(folder: Path) -> list[Path]:
    """The folder and those above it, by its name and with symbolic links resolved."""
    return list(dict.fromkeys((folder, *folder.parents, folder.resolve(), *folder.resolve().parents)))


def _first(tried: Iterable[tuple[Path, Path]]) -> str | None:
    """The path of the first pair (root, file) whose file exists and, links resolved, lies below its root."""
    for root, path in tried:
        try:
            found = path.resolve()
            if found.is_relative_to(root.resolve()) and found.suffix.lower() in MESHES and found.is_file():
                return str(found)
        except (OSError, ValueError, RuntimeError):
            continue
    return None
