"""Compiled objects, found by a key of the caller without tracing, or by a skeleton without printing; and Programs by a key.

KEY.alias is a small note that names an object of the store, with everything needed to call it. It also contains its own name
and sha256, so that a damaged or renamed note is ignored. KEY.programs contains Programs, after the sha256 of name and bytes.
Both contain what was told while their contents were made, which is told again when they are used.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import Any

import casadi as ca
import numpy as np

from pfaffian import sources as source_files
from pfaffian.errors import BuildError, ModelError, ModelWarning, Notice, RunWarning, issue, notice_once, with_notices
from pfaffian.kernel.build import library, private_files, toolchain
from pfaffian.kernel.build import object_store as store
from pfaffian.kernel.call.recipe import PortLengths, Recipe
from pfaffian.kernel.program.program_bytes import pack, unpack
from pfaffian.kernel.remember import checking, compare

Key = str | tuple[str, str]
"""A key of the caller; or a kind of key, such as "skeleton", and a digest."""


@dataclass(frozen=True)
class Recalled:
    """A loaded library, with everything needed to call it.

    meta: its sidecar.   shapes: lengths of the ports of each Program.   doubles: size of the workspace.   digest: of the
    Programs.   numbers: the table of constants of these Programs.   notices: what is to be told whenever they are used.
    """

    library: ctypes.CDLL
    meta: dict[str, Any]
    shapes: tuple[PortLengths, ...]
    doubles: int
    digest: str
    numbers: np.ndarray
    notices: tuple[Notice, ...]


def check_key(key: Any) -> None:
    """Raise ModelError if the key is neither None nor a text."""
    if key is not None and not (isinstance(key, str) and key):
        raise ModelError(f"key must be a non-empty text, got {key!r}")


def sources() -> str:
    """Digest of the code of this library in this process, so that objects of another version of it are not used.

    It is that of the source files as they were when the library was imported. If one was changed before its code was imported,
    no other process has the same code, and the digest is one that no other process has.
    """
    found = _contents()  # read before the comparison, so that they are what it compares
    with _LOOKING:
        changed = source_files.changed()
    return _after_changes(changed) if changed else found


_LOOKING = Lock()
"""A file that was changed has to be found by one thread before another concludes that there is none."""


@cache
def _contents() -> str:
    """sha256 of CasADi's version and the source files."""
    return hashlib.sha256(ca.CasadiMeta.version().encode() + source_files.contents()).hexdigest()


@cache
def _after_changes(changed: tuple[str, ...]) -> str:
    """A digest that no other process has, and a warning that names the changed files."""
    names = ", ".join(changed[:3]) + (f" and {len(changed) - 3} more" if len(changed) > 3 else "")
    notice_once(
        f"source files of the library were changed between its import and their own ({names}): what this process compiles is "
        "not used by others; start Python again"
    )
    return hashlib.sha256(os.urandom(32)).hexdigest()


sources()  # now, since files that are edited after the import of their code do not count


def recall(key: Key, recipe: Recipe) -> Recalled | None:
    """The object that an earlier call of `remember` noted under the key; None if there is none or it cannot be loaded."""
    try:
        name = _name(key, recipe)
        if name is None:
            return None
        note = _read(name)
        shapes = tuple(PortLengths(tuple(inputs), tuple(outputs)) for inputs, outputs in note["shapes"])
        numbers = np.array(note["numbers"], float)
        loaded, notices = library.open_entry(store.get(store.directory(), note["object"])), _notices(note["notices"])
    except (OSError, BuildError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return Recalled(*loaded, shapes, note["doubles"], note["digest"], numbers, notices) if loaded else None


def remember(key: Key, recipe: Recipe, meta: dict[str, Any], doubles: int) -> None:
    """Note under the key which object of the store belongs to the recipe. No effect if the store cannot be written to."""
    with contextlib.suppress(OSError, BuildError, KeyError):
        name = _name(key, recipe)
        note = {"object": meta["key"], "digest": recipe.digest, "shapes": recipe.shapes, "doubles": doubles}
        if name is not None:
            _write(name, note | {"numbers": recipe.numbers.tolist(), "notices": _as_data(recipe.notices)})


def by_skeleton(recipe: Recipe) -> Key:
    """The key of the recipe's skeleton, which Programs that differ only in numbers share."""
    return "skeleton", recipe.skeleton


def programs(key: str, recipe: Recipe) -> Recipe:
    """The recipe with its Programs: from the store if an earlier call wrote them under the key, else traced and written."""
    parts = [key, recipe.printer.__name__]
    with contextlib.suppress(OSError, ValueError):
        name = _named(*parts)
        path = store.directory() / f"{name}.programs"
        seal, data = private_files.read(path).split(b"\n", 1)
        if seal.decode() != _sealed(name, data):
            raise ValueError(f"{path} is not what was written")
        os.utime(path)  # for prune
        head, packed = data.split(b"\n", 1)
        return recipe.of(unpack(packed), _notices(json.loads(head)))
    traced = recipe.programs
    with contextlib.suppress(OSError):
        name = _named(*parts)  # anew, because tracing imports modules
        data = json.dumps(_as_data(recipe.notices)).encode() + b"\n" + pack(traced)
        private_files.write(store.directory() / f"{name}.programs", _sealed(name, data).encode() + b"\n" + data)
    return recipe


def _sealed(name: str, data: bytes) -> str:
    """sha256 of the name and the bytes of a file with Programs."""
    return hashlib.sha256(name.encode() + data).hexdigest()


def noted(key: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The JSON object make(), read from the note that an earlier process wrote under the key if there is one."""
    value, notices = _noted(key, make)
    issue(notices)
    return value


def _noted(key: str, make: Callable[[], dict[str, Any]]) -> tuple[dict[str, Any], tuple[Notice, ...]]:
    """The JSON object of `noted`, and what was told while it was made."""
    with contextlib.suppress(OSError, ValueError, KeyError):
        note = _read(_named(key))
        if checking():
            compare(f"note {key}", json.dumps(note["value"]), json.dumps(with_notices(make)[0]))
        return note["value"], _notices(note["notices"])
    value, notices = with_notices(make)
    with contextlib.suppress(OSError):
        _write(_named(key), {"value": value, "notices": _as_data(notices)})
    return value, notices


_CATEGORIES = {x.__name__: x for x in (ModelWarning, RunWarning)}


def _as_data(notices: tuple[Notice, ...]) -> list[list[str]]:
    """Notices as they are written into the store."""
    return [[x.message, x.category.__name__] for x in notices]


def _notices(data: list[list[str]]) -> tuple[Notice, ...]:
    """Notices as they are read from the store."""
    return tuple(Notice(message, _CATEGORIES[category]) for message, category in data)


def _named(*parts: Any) -> str:
    """The name of a file of the store: a digest of these parts and of the library's code."""
    return hashlib.sha256(json.dumps([*parts, sources()]).encode()).hexdigest()


def _name(key: Key, recipe: Recipe) -> str | None:
    """Name of the note of a key, a digest of everything that determines the object; None without a compiler."""
    compiler = toolchain.find_compiler()
    if compiler is None:
        return None
    how = [recipe.printer.__name__, recipe.lanes, compiler.argv, compiler.flags(recipe.mode), compiler.identity]
    return _named(key, *how)


def _read(name: str) -> dict[str, Any]:
    """The contents of a note. Raises OSError, ValueError or KeyError: it is absent, damaged or was renamed."""
    path = store.directory() / f"{name}.alias"
    note = private_files.read_note(path)
    if note.pop("check") != _check(note) or note["name"] != name:
        raise ValueError(f"{path} is not what was written")
    os.utime(path)  # for prune
    return note


def _write(name: str, note: dict[str, Any]) -> None:
    """Write a note with its name and sha256."""
    note = {"name": name, **note}
    text = json.dumps(note | {"check": _check(note)}, indent=1)
    private_files.write(store.directory() / f"{name}.alias", text.encode())


def _check(note: dict[str, Any]) -> str:
    """sha256 of the contents of a note."""
    return hashlib.sha256(json.dumps(note, sort_keys=True).encode()).hexdigest()
