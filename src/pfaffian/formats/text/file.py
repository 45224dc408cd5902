"""Reading the text of one regular file, with a bound on its size, and without garbage collection meanwhile."""

from __future__ import annotations

import gc
import stat
from collections.abc import Callable
from functools import wraps
from os import PathLike
from pathlib import Path
from typing import ParamSpec, TypeVar

from pfaffian.errors import ModelError, brief
from pfaffian.formats.text.strict_number import printable

MAX_BYTES = 64 * 1024 * 1024

P = ParamSpec("P")
R = TypeVar("R")


def as_path(value: str | PathLike[str], what: str = "the file") -> Path:
    """The value as a Path. Raises ModelError: it is neither a text nor a path, or it is empty."""
    if not isinstance(value, (str, PathLike)) or not str(value):
        raise ModelError(f"{what} must be given by a path, got {brief(value)}")
    return Path(value)


def read_text(path: Path) -> str:
    """The text of a regular UTF-8 file of at most 64 MB. Raises ModelError otherwise."""
    try:
        # Reading from a pipe or a device could block or never end.
        if not stat.S_ISREG(path.stat().st_mode):
            raise ModelError(f"{printable(str(path))} is not a regular file; give the path of a file")
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        where = f"{printable(path.name)} in {printable(str(path.parent))}"
        raise ModelError(f"{where} cannot be read: {reason}") from None
    return decode(data, path.name)


def decode(data: bytes, source: str) -> str:
    """The text of at most 64 MB of UTF-8 bytes, without a byte order mark. Raises ModelError: too many bytes, or not UTF-8."""
    if len(data) > MAX_BYTES:
        raise ModelError(f"{printable(source)}: the file is larger than {MAX_BYTES} bytes; split it or remove embedded data")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ModelError(f"{printable(source)} line {line}: this is not UTF-8 text; save the file as UTF-8") from None


def without_collection(read: Callable[P, R]) -> Callable[P, R]:
    """The function, without a search for cycles among objects: it would go again and again through all parts of a file."""

    @wraps(read)
    def call(*args: P.args, **options: P.kwargs) -> R:
        was = gc.isenabled()
        gc.disable()
        try:
            return read(*args, **options)
        finally:
            if was:
                gc.enable()

    return call
