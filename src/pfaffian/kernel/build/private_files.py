"""Folders and files that only this user can write: code is never loaded from a file that another user could have written."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from pathlib import Path
from typing import Any

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def make_folder(path: Path) -> str | None:
    """Create the folder with mode 0700 if it does not exist. Return the reason why it is not private, or None if it is.

    No mode is changed: a folder that others can write to, or could replace by their own link, is refused.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        link, status = path.lstat(), path.stat()
    except OSError as error:
        return error.strerror or str(error)
    if {link.st_uid, status.st_uid} != {os.getuid()}:
        return "it belongs to another user"
    if status.st_mode & OTHERS_WRITE:
        return f"its mode {stat.S_IMODE(status.st_mode):04o} lets other users write into it; `chmod go-w` it, or remove it"
    return None if os.access(path, os.W_OK | os.X_OK) else "it cannot be written to"


def read(path: Path) -> bytes:
    """Contents of a private file. Raises PermissionError: another user owns it or can write it, or it is no regular file."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & OTHERS_WRITE:
            raise PermissionError(f"{path} is not private")
        return file.read()


def read_note(path: Path) -> dict[str, Any]:
    """The JSON object in a private file. Raises ValueError: the file does not contain one."""
    try:
        note = json.loads(read(path))
    except RecursionError:
        note = None  # nested too deeply
    if not isinstance(note, dict):
        raise ValueError(f"{path} does not contain a JSON object")
    return note


def write(path: Path, data: bytes) -> None:
    """Write a small file that only this user can read and write, whole or not at all. Raises OSError: it cannot be written."""
    handle, name = tempfile.mkstemp(prefix="tmp", dir=path.parent)
    try:
        with open(handle, "wb") as file:
            file.write(data)
        os.replace(name, path)
    except OSError:
        os.unlink(name)
        raise
