"""The library's source files, and whether the code in this process is what they contained when the library was imported.

A module is imported when it is first needed, perhaps long after its file was edited or the library was upgraded. What is stored
for later processes must be found again by the same code only, so `changed` compares each file with its state at the beginning,
as soon as its code is in memory. It compares times, not contents, because an edit may have been undone after its import.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # see `lazy`
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_ROOT = os.path.dirname(__file__)


def _files(folder: str) -> Iterator[os.DirEntry[str]]:
    """The files in a folder and its subfolders that contain Python code, or C text for the kernel."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith((".py", ".h")):
                yield entry
            elif "." not in entry.name and entry.name != "__pycache__" and entry.is_dir():
                yield from _files(entry.path)


def _state(found: os.stat_result) -> tuple[int, ...]:
    """What a write, a replacement or a move of a file changes. Unlike the other times, st_ctime can never be set back."""
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


_STATES = {entry.path: _state(entry.stat()) for entry in _files(_ROOT)}
"""Path of each file -> its state when the library was imported, before any module that can enter a key."""


def _short(path: str) -> str:
    """The path inside the package, the same on every machine."""
    return path[len(_ROOT) + 1 :].replace(os.sep, "/")


def contents() -> bytes:
    """The names and contents of all files, in one text. A file that an upgrade has removed is empty."""
    parts = []
    for path in sorted(_STATES, key=_short):
        try:
            with open(path, "rb", buffering=0) as file:
                text = file.read()
        except OSError:
            text = b""
        parts += [f"{_short(path)} {len(text)}\n".encode(), text]
    return b"".join(parts)


def read(name: str) -> str:
    """The text of a file of the package, whose name begins with its room."""
    path = os.path.join(_ROOT, *name.split("/"))
    _in_memory.append(path)
    with open(path, encoding="utf-8") as file:
        return file.read()


_MODULES = tuple(
    "pfaffian." + _short(path).removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    for path in _STATES
    if path.endswith(".py") and _short(path) != "__init__.py"
)
_imported: dict[str, Any] = {}
"""Name of each module that was compared -> its spec, which a reload replaces."""

_in_memory: list[str] = []
"""Paths of files that were read and not yet compared."""

_changed: list[str] = []


def changed() -> tuple[str, ...]:
    """The files that were written, replaced or moved between the import of the library and that of their code, as found so far.

    A file that is changed after its code was compared here does not count, since the code in memory is still the former one.
    """
    modules = sys.modules
    for name in _MODULES:  # without calls, as this runs before each look into the cache
        if name in modules:
            spec = modules[name].__spec__
            if spec is not None and (name not in _imported or _imported[name] is not spec):
                _imported[name] = spec
                _in_memory.append(spec.origin or "")
    while _in_memory:
        path = _in_memory.pop()
        try:
            now = _state(os.stat(path))
        except OSError:
            now = ()
        if now != _STATES.get(path):
            _changed.append(_short(path))
    return tuple(_changed)
