"""Compiled objects by a key of the caller, without tracing: small notes in the store that point to an object.

KEY.alias holds what is needed to call the object, and its own name and sha256: a note that is not whole or belongs
elsewhere does not count.
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
from pathlib import Path
from typing import Any

import casadi as ca

from pfaffian.errors import BuildError, ModelError
from pfaffian.kernel.build import library, private_files, store, toolchain
from pfaffian.kernel.call.recipe import Recipe, Shape
from pfaffian.kernel.remember import checking, compare


@dataclass(frozen=True)
class Found:
    """A loaded library and how to call it."""

    library: ctypes.CDLL
    meta: dict[str, Any]
    shapes: tuple[Shape, ...]
    doubles: int
    digest: str


def check_key(key: Any) -> None:
    if key is not None and not (isinstance(key, str) and key):
        raise ModelError(f"key must be a text that is not empty, got {key!r}")


@cache
def sources() -> str:
    """sha256 of the library's own source files: what a changed library compiled before is never used again.

    Of the files as they were when they were imported: what is edited later is not what runs.
    """
    root = Path(__file__).resolve().parents[2]
    digest = hashlib.sha256(ca.CasadiMeta.version().encode())
    for path in sorted([*root.rglob("*.py"), *root.rglob("*.h")]):
        text = path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()} {len(text)}\n".encode() + text)
    return digest.hexdigest()


sources()


def recall(key: str, recipe: Recipe) -> Found | None:
    """The object of an earlier remember(), or None."""
    try:
        name = _name(key, recipe)
        if name is None:
            return None
        said = _read(name)
        shapes = tuple(Shape(tuple(inputs), tuple(outputs)) for inputs, outputs in said["shapes"])
        loaded = library.open_entry(store.get(store.directory(), said["object"]))
    except (OSError, BuildError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return Found(*loaded, shapes, said["doubles"], said["digest"]) if loaded else None


def remember(key: str, recipe: Recipe, meta: dict[str, Any], shapes: tuple[Shape, ...]) -> None:
    """Note where the object of the recipe is. A store that cannot be written to forgets it."""
    with contextlib.suppress(OSError, BuildError, KeyError):
        name = _name(key, recipe)
        said = {"object": meta["key"], "digest": recipe.digest, "shapes": shapes, "doubles": recipe.source.doubles}
        if name is not None:
            _write(name, said)


def noted(key: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """make(), a JSON object, from the note that an earlier process left under the key, if it did."""
    name = hashlib.sha256(json.dumps([key, sources()]).encode()).hexdigest()
    with contextlib.suppress(OSError, ValueError, KeyError):
        found = _read(name)["said"]
        if checking():
            compare(f"note {key}", json.dumps(found), json.dumps(make()))
        return found
    said = make()
    with contextlib.suppress(OSError):
        _write(name, {"said": said})
    return said


def _name(key: str, recipe: Recipe) -> str | None:
    """Name of the note: everything that decides about the object. None without a compiler."""
    compiler = toolchain.find_compiler()
    if compiler is None:
        return None
    how = [recipe.printer.__name__, recipe.lanes, compiler.argv, compiler.flags(recipe.mode), compiler.identity]
    return hashlib.sha256(json.dumps([key, *how, sources()]).encode()).hexdigest()


def _read(name: str) -> dict[str, Any]:
    """What a note says. ValueError, KeyError: it is not whole, or belongs elsewhere."""
    note = store.directory() / f"{name}.alias"
    said = private_files.read_note(note)
    if said.pop("check") != _check(said) or said["name"] != name:
        raise ValueError(f"{note} is not what was written")
    os.utime(note)  # prune looks at it
    return said


def _write(name: str, said: dict[str, Any]) -> None:
    said = {"name": name, **said}
    private_files.write(store.directory() / f"{name}.alias", json.dumps(said | {"check": _check(said)}, indent=1))


def _check(said: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()
