"""C text -> loaded library: from the store, or else compiled, tested and published in the store."""

from __future__ import annotations

import ctypes
import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pfaffian.errors import BuildError
from pfaffian.kernel.build import object_store as store
from pfaffian.kernel.build import toolchain
from pfaffian.kernel.build.prebuilt import carried
from pfaffian.kernel.build.toolchain import BuildMode, Compiler
from pfaffian.kernel.build.trial import Trial, check
from pfaffian.kernel.build.waiting import tell


def load(text: str, mode: BuildMode, trial: Trial, compiler: Compiler) -> tuple[ctypes.CDLL, dict[str, Any]]:
    """The library of a C text, and the contents of its sidecar.

    A new object is compared with the interpreter before it is published. Raises BuildError: it cannot be compiled or fails the
    comparison; the message contains that of the compiler or the path of the source.
    """
    place, key = store.directory(), key_of(text, mode, compiler)
    entry = open_entry(store.get(place, key))
    if entry:
        return entry
    with store.lock(place, key):
        entry = open_entry(store.get(place, key))
        return entry or _build(place, key, text, mode, trial, compiler)


def key_of(text: str, mode: BuildMode, compiler: Compiler) -> str:
    """Name of the store's entry for a C text: a digest of everything that reaches the compiler."""
    return hashlib.sha256("\0".join([text, *compiler.argv, *compiler.flags(mode), compiler.identity]).encode()).hexdigest()


def ready(text: str, mode: BuildMode, trial: Trial, compiler: Compiler | None) -> ctypes.CDLL:
    """The library of the text of the interpreter or the passes: the package's object if there is one, else as by `load`.

    The package's object is tested too, once on each machine, since processors differ. Raises BuildError: the package has no
    object, and nothing can be compiled.
    """
    object_ = carried(text, mode)
    if object_ is not None:
        try:
            return _adopted(object_, text, trial)
        except (BuildError, OSError):
            if compiler is None:
                raise
    if compiler is None:
        raise BuildError(toolchain.NO_COMPILER)
    return load(text, mode, trial, compiler)[0]


def _adopted(object_: Path, text: str, trial: Trial) -> ctypes.CDLL:
    """The library of an object of the package, tested and copied into the store."""
    place = store.directory()
    key = hashlib.sha256(b"carried\0" + object_.read_bytes()).hexdigest()

    def copy(source: Path, built: Path) -> None:
        shutil.copyfile(object_, built)

    entry = open_entry(store.get(place, key))
    return (entry or _publish(place, key, text, trial, {"carried": object_.name}, copy))[0]


def open_entry(entry: tuple[Path, dict[str, Any]] | None) -> tuple[ctypes.CDLL, dict[str, Any]] | None:
    """The library of an entry of the store, and its sidecar; None if there is no entry or it does not load."""
    if entry is None:
        return None
    try:
        return ctypes.CDLL(str(entry[0])), entry[1]
    except OSError:
        return None


def _build(
    place: Path, key: str, text: str, mode: BuildMode, trial: Trial, compiler: Compiler
) -> tuple[ctypes.CDLL, dict[str, Any]]:
    """Compile a C text, test the object and publish it; return its library and sidecar."""
    meta = {"compiler": compiler.version, "flags": list(compiler.flags(mode))}

    def compiled(source: Path, built: Path) -> None:
        toolchain.compile_source(compiler, source, built, mode)

    return _publish(place, key, text, trial, meta, compiled)


def _publish(
    place: Path, key: str, text: str, trial: Trial, meta: dict[str, Any], make: Callable[[Path, Path], None]
) -> tuple[ctypes.CDLL, dict[str, Any]]:
    """Write an object by make(source, object), test it and publish it; return its library and sidecar.

    meta: contents of the sidecar, without key, trial and sha256.
    """
    meta, place = meta | {"key": key}, store.place_to_build(place)
    with store.building(place) as folder:
        source, built = folder / "kernel.c", folder / "kernel.so"
        source.write_text(text, encoding="utf-8")
        make(source, built)
        tell("testing the compiled code")
        meta["trial"] = check(trial, built, source)
        target = store.publish(place, key, built, meta)
    try:
        return ctypes.CDLL(str(target)), meta
    except OSError as error:
        raise BuildError(f"the compiled object was tested, but does not load: {error}") from error
