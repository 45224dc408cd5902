"""One call of an exported law: the position control of `studies/konz_quadcopter.py`, evaluated 200 times per second in flight.

Its C99 is compiled with -O2 for any processor of this kind, and called from C with a state near the reference; nothing else is
timed. Notes: operations, stack as reported by gcc and as computed, and the difference between single and double precision.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory

import pfaffian as pf
from benchmarks.check import CheckFailed
from benchmarks.result import Comparison
from benchmarks.timing import Options, interleaved
from studies import konz_quadcopter

CALLS = 1000
LOOP = """\
#include "law.h"
int again(int calls);
int again(int calls) {
  law_in in = {0};
  law_state state;
  static law_work work;
  law_out out;
  int said = 0;
  law_init(&state);
  in.q[6] = 1, in.w[6] = 1, in.v[3] = 1, in.v[0] = 1;
  for (int i = 0; i < calls; i++) {
    in.q[2] = i & 1;
    said |= law_step(&in, &state, &work, &out);
  }
  return said;
}
"""


def run(o: Options) -> Iterator[Comparison]:
    law, mechanism = konz_quadcopter.law(), konz_quadcopter.mechanism()
    compiler = os.environ.get("PFAFFIAN_CC") or which("gcc") or which("clang")
    if compiler is None:
        raise CheckFailed("no C compiler")
    for precision in ("double", "single"):
        with TemporaryDirectory() as folder:
            made = pf.export(law, mechanism, folder, precision=precision)
            (Path(folder) / "loop.c").write_text(LOOP, encoding="ascii")
            argv = [compiler, "-std=c99", "-O2", "-shared", "-fPIC", "law.c", "loop.c", "-o", "law.so"]
            subprocess.run(argv, cwd=folder, check=True)
            again = ctypes.CDLL(str(Path(folder) / "law.so")).again
            if again(CALLS):
                raise CheckFailed("the exported law fails near its reference")
            timing = interleaved({"ours": lambda again=again: again(CALLS)}, CALLS, o)["ours"]
        stack = {
            "stack": f"{made.stack} B computed",
            "by gcc -O2": f"{made.measured_stack} B",
            "state": f"{made.state} B",
            "work": f"{made.work} B",
        }
        notes = {"operations": made.operations, **stack} | ({"beside double": f"{made.error:.1e}"} if made.error else {})
        yield Comparison(f"quadcopter's law in C99, {precision}", "call", timing, notes=notes)
