"""Measurements by a fresh process of itself, as one line of JSON, times in ns and memory in bytes.

python -m benchmarks.fresh ROBOT: a first forward dynamics.   python -m benchmarks.fresh run MACHINE: a first run of two steps.
python -m benchmarks.fresh forward MACHINE, linearise MACHINE, "two seconds" MACHINE: other first uses of a machine.
python -m benchmarks.fresh irregular MACHINE: a first run of two steps with constraints that records all but regularity.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
import warnings


def now() -> tuple[int, int]:
    """Wall time, and processor time including that of child processes [ns]."""
    t = os.times()
    return time.perf_counter_ns(), time.process_time_ns() + round((t.children_user + t.children_system) * 1e9)


start = now()
import pfaffian as pf  # noqa: E402

imported = now()
for name in dir(pf):
    getattr(pf, name)
everything = now()

ALWAYS = ("q", "v", "energy", "kinetic_energy")
WITH_ROWS = ("phi", "violation", "velocity_violation", "rank", "reaction", "multiplier")
"""The standard signals of any machine, and of one with constraints, except the regularity."""

KIB = 1024
"""Bytes in the unit of the operating system's figure of the peak memory."""


def main(name: str) -> None:
    """Times of the import, of importing every public name, of reading the file, and of a first and a second call."""
    from benchmarks.robots import robot

    # Without a compiler the interpreter would be timed instead.
    warnings.simplefilter("error", RuntimeWarning)
    before = now()
    m = pf.actuate_all(robot(name))
    read = now()
    pf.forward_dynamics(m, m.neutral())
    built = now()
    pf.forward_dynamics(m, m.neutral())
    called = now()
    report({"import": (start, imported), "all names": (start, everything), "read the file": (before, read),
            "build": (read, built), "second call": (built, called)})  # fmt: skip


def run(name: str, use: str = "run") -> None:
    """Times of making the machine, of a first use of it and of the same use again."""
    from benchmarks.first_use import MACHINES

    warnings.simplefilter("error", RuntimeWarning)
    before = now()
    m, law, q = MACHINES[name][1]()
    made = now()
    warnings.simplefilter("ignore", pf.RunWarning)
    record = (*ALWAYS, *(["u"] if m.nu else []), *WITH_ROWS) if use == "irregular" else None
    again = {
        "forward": lambda: pf.forward_dynamics(m, q),
        "linearise": lambda: pf.linearise(m, q, control=law),
        "two seconds": lambda: pf.run(m, q, duration=2.0, step=1e-3, control=law),
    }.get(use, lambda: pf.run(m, q, duration=2e-3, step=1e-3, control=law, record=record))
    again()
    built = now()
    again()
    report({"make the machine": (before, made), "build": (made, built), "second call": (built, now())})


def report(spans: dict[str, tuple[tuple[int, int], tuple[int, int]]]) -> None:
    times = {key: end[0] - begin[0] for key, (begin, end) in spans.items()}
    times |= {f"{key}, processor": end[1] - begin[1] for key, (begin, end) in spans.items()}
    print(json.dumps(times | {"peak memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KIB}))


if __name__ == "__main__":
    if len(sys.argv) > 2:
        run(sys.argv[2], sys.argv[1])
    else:
        main(sys.argv[1])
