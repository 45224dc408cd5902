"""What the processor is, as far as the system tells."""

from __future__ import annotations

import platform
from functools import cache
from typing import NamedTuple

VECTOR = ("avx", "avx2", "fma", "avx512f", "avx512dq", "asimd", "sve", "sve2")
"""Instruction sets by which compiled programs differ."""


class Processor(NamedTuple):
    """architecture: x86_64, say.   model: its maker's name for it.   features: all instruction sets it has, sorted."""

    architecture: str
    model: str
    features: tuple[str, ...]

    @property
    def vector(self) -> tuple[str, ...]:
        """The instruction sets that matter."""
        return tuple(name for name in VECTOR if name in self.features)


@cache
def processor() -> Processor:
    """The first processor of this machine. Other systems than Linux tell no features."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            first = file.read(16384).split("\n\n")[0]
    except OSError:
        first = ""
    said = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in first.splitlines())}
    features = said.get("flags") or said.get("Features") or ""
    model = said.get("model name") or said.get("CPU part") or platform.processor()
    return Processor(platform.machine(), f"{said.get('vendor_id', '')} {model}".strip(), tuple(sorted(set(features.split()))))
