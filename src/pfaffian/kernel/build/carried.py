"""Objects that a binary wheel carries, so that the interpreter and the passes run where nothing can be compiled.

`python -m tools.wheel` compiles them for several levels of a processor. One is found by the text and the flags that it was made
of: a wheel whose text has changed since carries none that fits, and an ordinary wheel carries none.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from pfaffian.kernel.build.processor import processor
from pfaffian.kernel.build.toolchain import FLAGS, MODES, Mode

FOLDER = Path(__file__).parents[1] / "carried"

V3 = frozenset(("avx2", "abm", "bmi1", "bmi2", "f16c", "fma", "movbe"))
V4 = V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}

LEVELS: dict[str, dict[str, frozenset[str]]] = {
    "x86_64": {"x86-64-v4": V4, "x86-64-v3": V3, "x86-64": frozenset()},
    "aarch64": {"armv8-a": frozenset()},
}
"""Architecture -> level, as compilers call it, the best first -> features that a processor needs for it."""


def levels() -> tuple[str, ...]:
    """Those of this processor, the best first."""
    here = processor()
    return tuple(name for name, needs in LEVELS.get(here.architecture, {}).items() if needs <= set(here.features))


def file_name(text: str, mode: Mode, level: str) -> str:
    """Name of the object of a C text for a level."""
    digest = hashlib.sha256("\0".join([text, *FLAGS, *MODES[mode]]).encode()).hexdigest()
    return f"{digest}.{level}.so"


def carried(text: str, mode: Mode) -> Path | None:
    """The object that the package carries for a C text and this processor, the best; None if it carries none."""
    places = [FOLDER / file_name(text, mode, level) for level in levels()] if FOLDER.is_dir() else []
    return next((place for place in places if place.is_file()), None)
