"""Which file a mesh named in a model file is: one of the robot's own package, or under a folder that the caller allows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import NamedTuple

MESHES = (".stl", ".obj", ".ply", ".off", ".glb", ".dae")
"""Suffixes of files that are drawn; no other file is opened for a mesh, whatever a model file says."""

_URI = re.compile(r"(?:package|model)://+([A-Za-z0-9][A-Za-z0-9._-]{0,99})/(.+)")


class Places(NamedTuple):
    """Where meshes may lie.   folder: of the model file, None if it has none.   allow: folders that the caller allows."""

    folder: Path | None = None
    allow: tuple[Path, ...] = ()

    def find(self, name: str) -> str | None:
        """The path of a mesh by its name in the file, None if it is not found.

        package://P/x is x in the folder P that holds the model file and a package.xml, or P/x or x of an allowed folder P;
        another name lies under the model file's folder or an allowed one.
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


NOWHERE = Places()


def places(folder: Path | None, allow: Iterable[str | Path]) -> Places:
    """Where the meshes of a model file in that folder may lie."""
    return Places(None if folder is None else folder.absolute(), tuple(Path(a).absolute() for a in allow))


def _upwards(folder: Path) -> list[Path]:
    return list(dict.fromkeys((folder, *folder.parents, folder.resolve(), *folder.resolve().parents)))


def _first(tried: Iterable[tuple[Path, Path]]) -> str | None:
    """The first (root, file) whose file exists and, links followed, lies under the root."""
    for root, path in tried:
        try:
            found = path.resolve()
            if found.is_relative_to(root.resolve()) and found.suffix.lower() in MESHES and found.is_file():
                return str(found)
        except (OSError, ValueError, RuntimeError):
            continue
    return None
