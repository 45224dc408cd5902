"""Finding files that a model file names: in its own folder, in folders that the caller allows, in installed packages."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path, PurePosixPath

from pfaffian.errors import ModelError, install
from pfaffian.formats.text.strict_number import printable

_PACKAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def allowed_path(folder: Path, name: str, allow: Iterable[str | Path] | None, where: str, way: str = "") -> Path:
    """The path of the file `name`, relative to the folder.

    allow: further folders, None if the reader has no such option.   way: out of an error, if it is none of the usual two.
    Raises ModelError: with symbolic links resolved, the path is neither below the folder nor below one of `allow`.
    """
    allowed, way = [Path(a) for a in allow or ()], way or ("move the file there" if allow is None else WAY_OUT)
    if not allowed and (not _simple(name) or PurePosixPath(name).is_absolute()):
        raise ModelError(f"{where}: {printable(name)} is not a path below the file's own folder; {way}")
    try:
        path = (folder / name).resolve()
        if any(path.is_relative_to(root.resolve()) for root in (folder, *allowed)):
            return path
    except (OSError, ValueError, RuntimeError):
        raise ModelError(f"{where}: {printable(name)} is not a usable path; correct the name") from None
    raise ModelError(f"{where}: {printable(name)} leads out of the file's own folder; {way}")


WAY_OUT = "move the file there, or pass allow=[folder]"
"""End of messages about files outside the allowed folders."""


def installed(package: str, name: str, where: str = "installed") -> Path:
    """Find a file of an installed distribution by the end of its path; the package is not imported.

    Args:
        package: name of the distribution, such as "example-robot-data".
        name: end of the file's path, such as "panda.urdf".
        where: beginning of error messages, "installed" by default.
    Returns: the path of the file.
    Raises ModelError: the package is not installed, or it has no such file or several.

    Example:
        >>> import pfaffian as pf
        >>> pf.formats.installed("numpy", "numpy/version.py").name
        'version.py'
        >>> pf.formats.installed("no-robots", "panda.urdf")
        Traceback (most recent call last):
        pfaffian.errors.ModelError: installed: the package no-robots is not installed; run `pip install no-robots`
    """
    if not _PACKAGE.fullmatch(package):
        raise ModelError(f"{where}: {printable(package)} is not a package name; write it as for `pip install`")
    if not _simple(name):
        raise ModelError(
            f"{where}: {printable(name)} is not a path in a package; give a relative path such as robots/panda.urdf"
        )
    try:
        files = metadata.distribution(package).files or []
    except metadata.PackageNotFoundError:
        raise ModelError(f"{where}: the package {package} is not installed; run {install(package)}") from None
    parts = PurePosixPath(name).parts
    found = [f for f in files if f.parts[-len(parts) :] == parts]
    if len(found) != 1:
        count = f"{len(found)} files" if found else "no file"
        raise ModelError(f"{where}: {package} has {count} whose path ends in {printable(name)}; give the path more exactly")
    return Path(str(found[0].locate()))


def _simple(name: str) -> bool:
    """Whether a name is a relative path without "..", valid on every operating system."""
    return not (set(name) & set("\\:\0")) and ".." not in name.split("/") and not name.startswith("/")
