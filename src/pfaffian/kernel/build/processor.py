"""The processor of this machine, as the operating system describes it."""

from __future__ import annotations

import platform
from functools import cache
from typing import NamedTuple

VECTOR = ("avx", "avx2", "fma", "avx512f", "avx512dq", "asimd", "sve", "sve2")
"""Instruction sets that make a difference to compiled programs."""


class Processor(NamedTuple):
    """A processor.   architecture: such as x86_64.   model: vendor and name.   features: all its instruction sets, sorted."""

    architecture: str
    model: str
    features: tuple[str, ...]

    @property
    def vector(self) -> tuple[str, ...]:
        """The instruction sets of VECTOR that it has."""
        return tuple(name for name in VECTOR if name in self.features)


@cache
def processor() -> Processor:
    """The first processor of this machine. Its features are known on Linux only."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            first = file.read(16384).split("\n\n")[0]
    except OSError:
        first = ""
    entries = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in first.splitlines())}
    features = entries.get("flags") or entries.get("Features") or ""
    model = entries.get("model name") or entries.get("CPU part") or platform.processor()
    return Processor(
        platform.machine(), f"{entries.get('vendor_id', '')} {model}".strip(), tuple(sorted(set(features.split())))
    )
