"""Files that are whole or absent, whatever happens during writing."""

from __future__ import annotations

import contextlib
import os
import re
import time
from pathlib import Path
from uuid import uuid4

ORPHAN, OLD = re.compile(r"\.pfaffian-[0-9a-f]{32}\.tmp"), 3600.0
"""Names of temporary files, and the age [s] from which no process can still be writing one."""


def write_whole(path: Path, *parts: bytes | memoryview) -> None:
    """Write a temporary file, and rename it to `path` once all parts are on the disk. Raises OSError: it cannot be written.

    Also removes temporary files in that folder that killed processes of the same user left.
    """
    _sweep(path.parent)
    aside = path.with_name(f".pfaffian-{uuid4().hex}.tmp")
    try:
        with aside.open("xb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
        _sync_folder(path.parent)
    finally:
        with contextlib.suppress(OSError):
            aside.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Flush the new name to the disk as well, where the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _sweep(folder: Path) -> None:
    """Remove temporary files of the same user that are older than OLD."""
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            if ORPHAN.fullmatch(entry.name):
                status = entry.stat(follow_symlinks=False)
                if status.st_uid == os.getuid() and time.time() - status.st_mtime > OLD:
                    os.unlink(entry.path)
