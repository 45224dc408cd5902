"""The folder that results go to: made before a long run, not after it; files are whole or absent."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pfaffian.errors import ModelError, RunError
from pfaffian.viewer.plain import text


def prepare(folder: Path) -> Path:
    """The folder, made if it is not there. Raises ModelError: it cannot be made or written to."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, prefix="tmp"):
            pass
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ModelError(f"cannot write into {text(folder)!r}: {reason}; choose another folder with --out") from None
    return folder


def place(path: Path, write: Callable[[Path], Any]) -> Path:
    """Let `write` fill a file aside, then give it its name. Raises RunError: the disk is full, or closed to us."""
    try:
        handle, name = tempfile.mkstemp(prefix="tmp", suffix=path.suffix, dir=path.parent)
        os.close(handle)
        try:
            write(Path(name))
            # mkstemp keeps the file to its owner; a result is as open as any other new file.
            os.chmod(name, 0o666 & ~_umask())
            os.replace(name, path)
        finally:
            with contextlib.suppress(OSError):
                os.unlink(name)
    except OSError as error:
        raise RunError(f"cannot write {text(path)!r}: {error.strerror or error}") from error
    return path


def _umask() -> int:
    """The process's mask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def unused(name: str, taken: set[str]) -> str:
    """The name, with a number if two texts were cleaned to the same; noted as taken."""
    wanted, n = name, 2
    while wanted.lower() in taken:
        wanted, n = f"{name}-{n}", n + 1
    taken.add(wanted.lower())
    return wanted
