"""C text -> loaded library: from the store, or compiled beside it, tried and published."""

from __future__ import annotations

import ctypes
import hashlib
import warnings
from pathlib import Path
from typing import Any

from pfaffian.errors import BuildError
from pfaffian.kernel.build import store, toolchain
from pfaffian.kernel.build.toolchain import Compiler, Mode
from pfaffian.kernel.build.trial import Trial, check
from pfaffian.kernel.build.waiting import tell

_warned: set[str] = set()


def load(text: str, mode: Mode, trial: Trial, compiler: Compiler) -> tuple[ctypes.CDLL, dict[str, Any]]:
    """The library of the source text, and its sidecar.

    A new object is tried against the interpreter before it is published. Raises BuildError with the compiler's message or
    the path of the source.
    """
    place, key = store.directory(), key_of(text, mode, compiler)
    found = open_entry(store.get(place, key))
    if found:
        return found
    with store.lock(place, key):
        found = open_entry(store.get(place, key))
        return found or _build(place, key, text, mode, trial, compiler)


def key_of(text: str, mode: Mode, compiler: Compiler) -> str:
    """Name of the entry of the store: a digest of everything that reaches the compiler."""
    return hashlib.sha256("\0".join([text, *compiler.argv, *compiler.flags(mode), compiler.identity]).encode()).hexdigest()


def open_entry(entry: tuple[Path, dict[str, Any]] | None) -> tuple[ctypes.CDLL, dict[str, Any]] | None:
    """The library of an entry of the store; None if there is no entry or it does not load."""
    if entry is None:
        return None
    try:
        return ctypes.CDLL(str(entry[0])), entry[1]
    except OSError:
        return None


def _build(
    place: Path, key: str, text: str, mode: Mode, trial: Trial, compiler: Compiler
) -> tuple[ctypes.CDLL, dict[str, Any]]:
    meta = {"compiler": compiler.version, "flags": list(compiler.flags(mode)), "key": key}
    with store.building(place) as folder:
        source, built = folder / "kernel.c", folder / "kernel.so"
        source.write_text(text, encoding="utf-8")
        toolchain.compile_source(compiler, source, built, mode)
        tell("trying what was compiled")
        meta["trial"] = check(trial, built, source)
        target = store.publish(place, key, built, meta)
    try:
        return ctypes.CDLL(str(target)), meta
    except OSError as error:
        raise BuildError(f"{compiler.argv[0]} wrote an object that does not load: {error}") from error


def warn_once(message: str) -> None:
    """Say once in each process why NumPy interprets."""
    if message not in _warned:
        _warned.add(message)
        text = f"running by NumPy, some 100 times slower: {message}"
        warnings.warn(text, RuntimeWarning, stacklevel=6)
