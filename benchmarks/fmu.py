"""FMUs of the slider-crank of the zoo and of the welded Panda: size, time inside a step, inside the rates, and to compile.

A driver in C calls the functions of FMI 3.0, so that no importer is timed.
co-simulation: a communication step of one step beside a step of `pf.stepper` with the same bits, on one lane; notes: bytes of
the binary, and processor time of the compilers of both.
model exchange: setContinuousStates and getContinuousStateDerivatives at random states on the constraints, beside
`pin.constraintDynamics` looped in Python.
"""

from __future__ import annotations

import ctypes as c
import os
import resource
import subprocess
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import which
from typing import TypeVar

import numpy as np

import pfaffian as pf
from benchmarks.check import CheckFailed, agree
from benchmarks.constrained_dynamics import SPREAD, constraint_dynamics
from benchmarks.peers import twin
from benchmarks.result import Comparison, Goal
from benchmarks.robots import closed_states, ready, robot, welded
from benchmarks.timing import Options, interleaved

T = TypeVar("T")
STEP, STEPS, SAME = 1e-3, 200, 1e-9
PROCESSORS = "x86-64", "x86-64-v3"

DRIVER = """
#include <stddef.h>
typedef int Step(void *, double, double, _Bool, _Bool *, _Bool *, _Bool *, double *);
int steps(Step *step, void *it, double t, double h, int n) {
  _Bool a, b, d;
  double reached;
  int said = 0;
  for (int k = 0; k < n; k++) said |= step(it, t + k * h, h, 1, &a, &b, &d, &reached);
  return said;
}
typedef int States(void *, const double *, size_t);
typedef int Rates(void *, double *, size_t);
int rates(States *set, Rates *get, void *it, const double *x, double *rate, size_t n, int count) {
  int said = 0;
  for (int k = 0; k < count; k++) said |= set(it, x + k * n, n) | get(it, rate + k * n, n);
  return said;
}
"""


class Loaded:
    """The binary of an FMU in FMI 3.0 with one instance, started."""

    def __init__(self, file: Path, folder: Path, exchange: bool) -> None:
        with zipfile.ZipFile(file) as archive:
            archive.extractall(folder)
        (binary,) = folder.glob("binaries/*/*")
        self.dll, text = c.CDLL(str(binary)), (folder / "modelDescription.xml").read_text(encoding="utf-8")
        token = text.partition('instantiationToken="')[2].partition('"')[0].encode()
        flags = [] if exchange else [c.c_bool(False), c.c_bool(False), None, c.c_size_t(0)]
        create = self.dll[f"fmi3Instantiate{'ModelExchange' if exchange else 'CoSimulation'}"]
        create.restype = c.c_void_p
        end = [None, None] if exchange else [None, None, None]
        self.at = c.c_void_p(create(b"it", token, None, c.c_bool(False), c.c_bool(False), *flags, *end))
        start = c.c_bool(False), c.c_double(0), c.c_double(0), c.c_bool(False), c.c_double(0)
        if self.dll.fmi3EnterInitializationMode(self.at, *start) or self.dll.fmi3ExitInitializationMode(self.at):
            raise CheckFailed("the FMU does not start")


def driver(folder: Path) -> c.CDLL:
    """The compiled driver."""
    compiler = which("gcc") or which("clang")
    if compiler is None:
        raise CheckFailed("no C compiler")
    (folder / "driver.c").write_text(DRIVER, encoding="ascii")
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "driver.c", "-o", "driver.so"], cwd=folder, check=True)
    return c.CDLL(str(folder / "driver.so"))


def run(o: Options) -> Iterator[Comparison]:
    crank, settings = pf.read("zoo:slider_crank")
    panda = welded(pf.actuate_all(robot("panda")), "world", "panda_hand", ready(robot("panda")))
    machines = (("slider-crank", crank, {"q": dict(settings.start)}, 200e3), ("welded Panda", panda, {"q": ready(panda)}, 2e6))
    for what, m, start, most in machines:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            loops = driver(folder)
            yield from stepped(what, m, start, most, folder, loops, o)
            if what == "welded Panda":
                yield exchanged(what, m, start, folder, loops, o)


def compiling(make: Callable[[], T]) -> tuple[T, float]:
    """What a call returns, and the processor time of the compilers that it starts [s]."""

    def now() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    begin = now()
    return make(), now() - begin


def stepped(
    what: str, m: pf.Mechanism, start: dict[str, object], most: float, folder: Path, loops: c.CDLL, o: Options
) -> Iterator[Comparison]:
    """A step of an FMU for co-simulation beside one of `pf.stepper`, for each level of processors."""
    os.environ["PFAFFIAN_CACHE"] = str(folder / "cache")
    own, alone = compiling(lambda: pf.stepper(m, step=STEP, record="lean", backend=o.backend))
    own.reset(**start)
    for processor in PROCESSORS:
        made, inside = compiling(lambda p=processor: pf.fmu(m, folder / f"{p}.fmu", step=STEP, processor=p, **start))
        it, (size,), reached = Loaded(made.file, folder / processor, False), made.platforms.values(), [0]
        if size > most:
            raise CheckFailed(f"the binary of the {what} has {size} bytes, more than {most:.0f}")

        def fmu(it: Loaded = it, reached: list[int] = reached) -> None:
            if loops.steps(it.dll.fmi3DoStep, it.at, c.c_double(reached[0] * STEP), c.c_double(STEP), STEPS):
                raise CheckFailed("a step of the FMU fails")
            reached[0] += STEPS

        times = interleaved({"fmu": fmu, "stepper": lambda: own.step(steps=STEPS)}, STEPS, o)
        notes = {"binary": f"{size / 1e3:.0f} kB", "compilers": f"{inside:.2g} s", "those of a stepper": f"{alone:.2g} s"}
        goal = Goal("ratio", ">=", 1 / 1.2) if processor == PROCESSORS[-1] else None
        yield Comparison(f"{what}, co-simulation, {processor}", "a step", times["fmu"], times["stepper"], goal, notes)


def exchanged(what: str, m: pf.Mechanism, start: dict[str, object], folder: Path, loops: c.CDLL, o: Options) -> Comparison:
    """The rates of an FMU for model exchange beside `pin.constraintDynamics`."""
    it = Loaded(pf.fmu(m, folder / "rates.fmu", kind="model exchange", **start).file, folder / "rates", True)
    q, v, u = closed_states(m, ready(m), o.runs, SPREAD)
    x, rate = np.ascontiguousarray(np.hstack([q, v])), np.empty((len(q), m.nq + m.nv))
    pointer = c.POINTER(c.c_double)
    given = x.ctypes.data_as(pointer), rate.ctypes.data_as(pointer), c.c_size_t(x.shape[1]), len(x)

    def fmu() -> None:
        if loops.rates(it.dll.fmi3SetContinuousStates, it.dll.fmi3GetContinuousStateDerivatives, it.at, *given):
            raise CheckFailed("the rates of the FMU fail")

    w = twin(m)
    theirs = [np.ascontiguousarray(a[:, i]) for a, i in zip((q, v, 0 * u), (w.q_order, w.v_order, w.v_order), strict=True)]
    rows, exact = list(zip(*theirs, strict=True)), constraint_dynamics(w)
    fmu()
    found = agree(what, rate[:8, m.nq :][:, w.v_order], np.array([exact(*row) for row in rows[:8]]), SAME)
    times = interleaved({"fmu": fmu, "pin": lambda: [exact(*row) for row in rows]}, len(x), o)
    return Comparison(
        f"{what}, model exchange", "an evaluation", times["fmu"], times["pin"], Goal("ratio", ">=", 3), {"difference": found}
    )
