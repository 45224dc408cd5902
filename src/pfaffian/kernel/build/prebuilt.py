"""Compiled objects in a binary wheel, with which the interpreter and the passes run where nothing can be compiled.

`python -m tools.wheel` compiles them for several levels of a processor's architecture. An object is found by a digest of its C
text and flags, so an object whose text has changed since is not used. An ordinary wheel contains no objects.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from pfaffian.kernel.build.processor import processor
from pfaffian.kernel.build.toolchain import FLAGS, MODES, BuildMode

FOLDER = Path(__file__).parents[1] / "carried"

V3 = frozenset(("avx2", "abm", "bmi1", "bmi2", "f16c", "fma", "movbe"))
V4 = V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}

LEVELS: dict[str, dict[str, frozenset[str]]] = {
    "x86_64": {"x86-64-v4": V4, "x86-64-v3": V3, "x86-64": frozenset()},
    "aarch64": {"armv8-a": frozenset()},
}
"""{architecture: {level: features that a processor needs for it}}; levels have the names of compilers, the best first."""


def levels() -> tuple[str, ...]:
    """The levels that this processor supports, the best first."""
    here = processor()
    return tuple(name for name, needs in LEVELS.get(here.architecture, {}).items() if needs <= set(here.features))


def file_name(text: str, mode: BuildMode, level: str) -> str:
    """Name of the file with the object of a C text for a level."""
    digest = hashlib.sha256("\0".join([text, *FLAGS, *MODES[mode]]).encode()).hexdigest()
    return f"{digest}.{level}.so"


def carried(text: str, mode: BuildMode) -> Path | None:
    """Path of the best object that the package contains for a C text and this processor; None if there is none."""
    places = [FOLDER / file_name(text, mode, level) for level in levels()] if FOLDER.is_dir() else []
    return next((place for place in places if place.is_file()), None)
