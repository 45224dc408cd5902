"""The origin of a result: versions, the source files of the library, and the processor."""

from __future__ import annotations

import platform
import re
from functools import cache
from importlib.metadata import version
from pathlib import Path

import numpy as np

from pfaffian.kernel.build.processor import processor
from pfaffian.kernel.call.cache_keys import sources

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


def machine() -> dict[str, str]:
    """Versions, source files and processor that produce a result.

    source_sha256: digest of the library's files.   commit: commit of the checkout that contains them, if there is one.
    """
    return _unchanging() | {"source_sha256": sources()}


@cache
def _unchanging() -> dict[str, str]:
    """What stays the same in a process."""
    cpu = processor()
    commit = checked_out(Path(__file__).resolve().parents[4])
    return {
        "pfaffian": version("pfaffian"),
        **({"commit": commit} if commit else {}),
        "casadi": version("casadi"),
        "numpy": np.__version__,
        "python": platform.python_version(),
        "architecture": cpu.architecture,
        "processor": cpu.model,
        "features": " ".join(cpu.vector),
    }


def checked_out(folder: Path) -> str | None:
    """The commit of a checkout of this library, None if the folder is not a checkout. Read from files, without running git."""
    try:
        if 'name = "pfaffian"' not in (folder / "pyproject.toml").read_text(encoding="utf-8"):
            return None
        place = folder / ".git"
        if place.is_file():  # a second worktree, or a submodule
            place = folder / place.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
        common = place / "commondir"
        shared = place / common.read_text(encoding="utf-8").strip() if common.is_file() else place
        head = (place / "HEAD").read_text(encoding="utf-8").strip()
        commit = _resolved(head.removeprefix("ref:").strip(), place, shared) if head.startswith("ref:") else head
    except (OSError, ValueError):
        return None
    return commit if commit and _COMMIT.fullmatch(commit) else None


def _resolved(ref: str, *places: Path) -> str | None:
    """The commit of a branch, from its file or from the packed refs; None if neither has it."""
    for place in places:
        if (place / ref).is_file():
            return (place / ref).read_text(encoding="utf-8").strip()
    for place in places:
        packed = place / "packed-refs"
        for line in packed.read_text(encoding="utf-8").splitlines() if packed.is_file() else ():
            if line.endswith(f" {ref}"):
                return line.split(" ")[0]
    return None
