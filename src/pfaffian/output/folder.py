"""Folders for results, created before a long run and not after it, and files in them that are whole or absent."""

from __future__ import annotations

import tempfile
from pathlib import Path

from pfaffian.errors import ModelError, RunError
from pfaffian.output.plain import text
from pfaffian.output.whole_file import write_whole


def prepare(folder: Path) -> Path:
    """Create the folder if it does not exist, and return it. Raises ModelError: it cannot be created or written to."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, prefix="tmp"):
            pass
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ModelError(f"cannot write into {text(folder)!r}: {reason}; choose another folder with --out") from None
    return folder


def write_file(path: Path, data: bytes) -> Path:
    """Write a file, whole or not at all, and return its path. Raises RunError: this fails, as with a full disk."""
    try:
        write_whole(path, data)
    except OSError as error:
        raise RunError(f"cannot write {text(path)!r}: {error.strerror or error}") from error
    return path


def unused(name: str, used: set[str]) -> str:
    """The name, with a number appended if it is in `used`, regardless of case; adds it to `used`."""
    candidate, n = name, 2
    while candidate.lower() in used:
        candidate, n = f"{name}-{n}", n + 1
    used.add(candidate.lower())
    return candidate
