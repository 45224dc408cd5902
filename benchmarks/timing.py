"""Fair timing: one core, after a warm-up, the sides alternately."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.result import Timing

CLOCK = time.process_time_ns
"""Processor time of all threads of this process: on its one core this is wall time on an idle machine, and on a busy one the
load of other processes is not counted."""

WARM = 1.0
"""Seconds of work before the first sample."""

SAMPLE = 0.02
"""Shortest duration of a sample [s]; a faster call is repeated within it."""


@dataclass(frozen=True)
class Options:
    """Options of a call.

    repeat: samples of each side.   quick: one sample at a small batch, on any core, without judgement.
    out: folder for figures.   chains: folder of URDF+ files, for `parallel_chains`.   files, beside: folder of robots and
    another checkout of the library, for `readers`."""

    repeat: int = 9
    quick: bool = False
    out: Path = Path("out/benchmarks")
    batch: int = 4096
    chains: Path | None = None
    files: Path | None = None
    beside: Path | None = None

    @property
    def runs(self) -> int:
        """Number of states in a batch."""
        return 64 if self.quick else self.batch

    @property
    def backend(self) -> str:
        """Backend that computes: with `quick` nothing is compiled."""
        return "interpreter" if self.quick else "c"


def pin_to_one_core() -> int | None:
    """Pin this process and its children to the last core it may use; returns the core, or None where this is not possible."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    return core


def interleaved(calls: Mapping[str, Callable[[], object]], work: int, o: Options) -> dict[str, Timing]:
    """Time the calls in turn, A B C A B C ...

    Args:
        calls: functions without arguments by name of the side.   work: units of work in one call.
    Returns:
        ns for each unit of work.
    """
    loops = _warm(calls, o)
    samples: dict[str, list[float]] = {name: [] for name in calls}
    gc.collect()
    gc.disable()
    try:
        for _ in range(1 if o.quick else o.repeat):
            for name, call in calls.items():
                samples[name].append(_sample(call, loops[name]) / work)
    finally:
        gc.enable()
    return {name: Timing(name, tuple(s)) for name, s in samples.items()}


def _sample(call: Callable[[], object], loops: int) -> float:
    """Duration of one call [ns]."""
    start = CLOCK()
    for _ in range(loops):
        call()
    return (CLOCK() - start) / loops


def _warm(calls: Mapping[str, Callable[[], object]], o: Options) -> dict[str, int]:
    """Run each side for its share of the warm-up, and return how often each is called in one sample."""
    loops = {}
    for name, call in calls.items():
        call()
        if o.quick:
            loops[name] = 1
            continue
        once, start = [_sample(call, 1)], time.perf_counter()
        while time.perf_counter() - start < WARM / len(calls):
            once.append(_sample(call, 1))
        loops[name] = max(1, round(SAMPLE * 1e9 / max(1.0, min(once))))
    return loops
