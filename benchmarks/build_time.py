"""Waiting times: `import pfaffian`, the first forward dynamics of a robot, and the first run of loops and laws.

Each sample is a fresh process (`benchmarks.fresh`) with an empty cache folder for "trace and compile" and with the same folder
again for "from the cache". The time is that of the first call of `pf.forward_dynamics` at one state: equations, Program, C,
compiler, trial run, evaluation. The times of a second call and of reading the URDF file are also given. Importing is timed
inside the process too, without the interpreter's start: `import pfaffian` alone, which loads names when they are first used,
and with all of them loaded. All are wall times, as a user waits; processor time, including the compiler's, is also given,
since wall times depend on the load of the machine. For a first run (`benchmarks.first_use`) the processor time is compared: it
includes the start's Newton kernel, the step, the law and the recorded signals.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pfaffian
from benchmarks.first_use import MACHINES
from benchmarks.result import Comparison, Goal, Timing, formatted
from benchmarks.timing import Options

ROOT = Path(__file__).parents[1]
SECOND = 1e9
IMPORT, CACHED = Goal("median", "<=", 0.5 * SECOND), Goal("median", "<=", 0.2 * SECOND)
SAMPLES, RUN_SAMPLES = 5, 3
ROBOTS = {"panda": ("Panda, 9 dof", 1.0), "talos_reduced": ("Talos, 38 dof", 5.0)}


def run(o: Options) -> Iterator[Comparison]:
    every: list[dict[str, float]] = []
    for name, (what, limit) in ROBOTS.items():
        if o.quick and name != "panda":
            continue
        first, second = samples((name,), 1 if o.quick else SAMPLES)
        every += first + second
        yield comparison(f"{what}, trace and compile", first, Goal("median", "<=", limit * SECOND))
        yield comparison(f"{what}, from the cache", second, CACHED)
    yield from first_runs(o)
    for what, key in (("import pfaffian", "import"), ("import pfaffian and every public name", "all names")):
        busy = min(s[f"{key}, processor"] for s in every)
        notes = {"minimum": formatted(min(s[key] for s in every)), "least processor time": formatted(busy)}
        yield Comparison(what, "a fresh process", Timing("", tuple(s[key] for s in every)), None, IMPORT, notes)


def first_runs(o: Options) -> Iterator[Comparison]:
    for name, (what, _, limit) in MACHINES.items():
        if o.quick and name != "ur5":
            continue
        first, second = samples(("run", name), 1 if o.quick else RUN_SAMPLES)
        goal = Goal("median", "<=", limit * SECOND)
        yield comparison(f"{what}, first run, processor time", first, goal, "build, processor")
        yield comparison(f"{what}, first run in another process, processor time", second, None, "build, processor")


def comparison(what: str, found: list[dict[str, float]], goal: Goal | None, clock: str = "build") -> Comparison:
    middle = sorted(found, key=lambda s: s[clock])[len(found) // 2]
    notes = {"minimum": formatted(min(s[clock] for s in found))}
    beside = ("build, processor", "build", "read the file", "make the machine", "second call")
    notes |= {name: formatted(middle[name]) for name in beside if name in middle and name != clock}
    return Comparison(what, "a fresh process", Timing("", tuple(s[clock] for s in found)), None, goal, notes)


def samples(what: tuple[str, ...], count: int) -> tuple[list[dict[str, float]], list[dict[str, float]]]:
    """Measurements of processes with an empty cache and, alternately, with the cache just filled."""
    first, second = [], []
    for _ in range(count):
        with tempfile.TemporaryDirectory() as cache:
            first.append(fresh(what, cache))
            second.append(fresh(what, cache))
    return first, second


def fresh(what: tuple[str, ...], cache: str) -> dict[str, float]:
    """Run one process, which imports the same pfaffian as this one."""
    paths = [str(ROOT), str(Path(pfaffian.__file__).parents[1])]
    environment = os.environ | {"PFAFFIAN_CACHE": cache, "PYTHONPATH": os.pathsep.join(paths)}
    process = subprocess.run(
        [sys.executable, "-m", "benchmarks.fresh", *what], env=environment, check=True, stdout=subprocess.PIPE, text=True
    )
    return json.loads(process.stdout)
