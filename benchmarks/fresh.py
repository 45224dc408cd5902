"""What a fresh process measures of itself: python -m benchmarks.fresh ROBOT prints one line of JSON, times in ns."""

from __future__ import annotations

import json
import sys
import time

start = time.perf_counter_ns()
import pfaffian as pf  # noqa: E402

imported = time.perf_counter_ns()
for name in pf.__all__:
    getattr(pf, name)
everything = time.perf_counter_ns()


def main(name: str) -> None:
    """Times of: the import, importing every public name, reading the file, then a kernel of forward dynamics."""
    from benchmarks.robots import robot

    before = time.perf_counter_ns()
    m = pf.actuate_all(robot(name))
    read = time.perf_counter_ns()
    made = pf.compile_terms(m, {"v_dot": lambda T: pf.FORMULATIONS["articulated"](T).v_dot}, backend="c")
    built = time.perf_counter_ns()
    made(m.neutral())
    called = time.perf_counter_ns()
    times = {"import": imported - start, "all names": everything - start, "read": read - before, "build": built - read,
             "first call": called - built}  # fmt: skip
    print(json.dumps(times | {"operations": made.kernel.program.n_ops}))


if __name__ == "__main__":
    main(sys.argv[1])
