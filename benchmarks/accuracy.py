"""Time to a true error: runs to an accuracy beside steps of one length and integrators of others, on nine motions.

The true error of each side is measured against a run to 1e-11 at the end of the motion: of angles in rad, of positions in m, of
speeds relative to the largest. `accuracy=` gets the asked error itself, so its true error is smaller. RK4 takes the longest of
the steps T / 2^k whose true error is small enough, which a user does not know, and estimates nothing; beside it are runs to an
accuracy without their estimate. Integrators of others take the largest of the tolerances error / 10^k that is small enough
(`benchmarks/integrators.py`), or as many steps as that needs (`benchmarks/engines.py`); where they call our compiled right-hand
side, the time inside the callback is told apart. One that takes longer than SLOW is timed once. `benchmarks/long_runs.py`
continues with four-bars over 100 s and in batches, and with the cost of the estimate.

The true errors over time are drawn in `accuracy.png`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from math import prod
from typing import Any, NamedTuple

import numpy as np

from benchmarks import long_runs
from benchmarks.check import CheckFailed
from benchmarks.engines import by_drake, by_exudyn
from benchmarks.error_over_time import draw
from benchmarks.integrators import Rate, around_ours, by_diffrax
from benchmarks.problems import PROBLEMS, Problem, end_of_run, end_of_steps, off, start
from benchmarks.result import Comparison, Goal, Timing
from benchmarks.timing import Options, interleaved

ERRORS = (1e-6, 1e-9)
EXACT = 1e-11

LEAST_BESIDE_RK4 = {1e-6: 0.83, 1e-9: 1.0}
"""Least ratio of the time of RK4 with its best step to ours without an estimate, by the error."""

TRIES = 7
"""Tolerances of a tenth, a hundredth, ... of the asked error that are tried."""

STEPS = [2**k for k in range(4, 21)]
"""Numbers of steps of one length that are tried."""

SLOW, SLOWEST = 0.2, 1.5
"""Time of a run [s] beyond which it is timed once, and beyond which no smaller tolerance is tried."""

SOLVERS = ("Dopri8", "Kvaerno5")
"""Of diffrax."""


class Reached(NamedTuple):
    """A run that is as exact as asked.   setting: its tolerance or number of steps.   seconds: of processor time it took."""

    setting: float
    seconds: float


def run(o: Options) -> Iterator[Comparison]:
    beside_rk4 = []
    for what, make in list(PROBLEMS.items())[: 1 if o.quick else None]:
        of = make()
        exact = end_of_run(of, EXACT, o)
        for error in ERRORS[: 1 if o.quick else None]:
            for row in compare(f"{what}, error {error:g}", of, error, exact, o):
                beside_rk4 += [row.ratio] if row.goal and error == ERRORS[-1] else []
                yield row
    if beside_rk4:
        mean = Timing("RK4, best step", (prod(filter(None, beside_rk4)) ** (1 / len(beside_rk4)),))
        what = f"geometric mean of {len(beside_rk4)} motions, error {ERRORS[-1]:g}, relative to ours"
        yield Comparison(what, "a run", Timing("no estimate", (1.0,)), mean, Goal("ratio", ">=", 3.0))
    yield from long_runs.run(o)
    if not o.quick:
        draw(o.out / "accuracy.png", list(PROBLEMS.items()), o)


def compare(what: str, of: Problem, error: float, exact: np.ndarray, o: Options) -> Iterator[Comparison]:
    """The rows of a motion and an error; the one beside RK4 has a goal."""
    mine = off(end_of_run(of, error, o), exact, of.m.nq)
    if not mine <= error:
        raise CheckFailed(f"{what}: a run to an accuracy of {error:g} has an error of {mine:.2g}")
    calls: dict[str, Callable[[], object]] = {
        "": lambda: end_of_run(of, error, o),
        "no estimate": lambda: end_of_run(of, error, o, False),
    }
    once, notes, failed = dict[str, Timing](), dict[str, dict[str, Any]](), list[str]()
    for name, (solve, settings) in rivals(of, error, o).items():
        found = reaching(solve, settings, lambda x: off(x, exact, of.m.nq), error)
        if found is None:
            failed.append(name)
            continue
        notes[name] = {"setting": found.setting}
        if found.seconds > SLOW:
            once[name] = Timing(name, (1e9 * found.seconds,))
        else:
            calls[name] = lambda solve=solve, setting=found.setting: solve(setting)
        if isinstance(solve, Around):
            notes[name] |= solve.told(found.setting)
    timings = interleaved(calls, 1, o) | once
    notes["no estimate"] = {"true error": mine, "not reached by": ", ".join(failed) or "none"}
    for name in (n for n in timings if n):
        ours, goal = timings[""], None
        if name == "RK4, best step":
            ours, goal = timings["no estimate"], Goal("ratio", ">=", LEAST_BESIDE_RK4[error])
        yield Comparison(f"{what}, beside {name}", "a run", ours, timings[name], goal, notes[name])


Solve = Callable[[float], np.ndarray]
"""Setting -> [q; v] at the end of a motion."""


class Around(NamedTuple):
    """An integrator around our compiled right-hand side."""

    solve: Callable[..., np.ndarray]
    rate: Rate
    begin: np.ndarray
    ends: np.ndarray

    def __call__(self, tolerance: float) -> np.ndarray:
        return self.solve(self.rate, self.begin, self.ends, tolerance)[-1]

    def told(self, tolerance: float) -> dict[str, Any]:
        """What a run spends inside the callback."""
        self.rate.inside, self.rate.calls, begun = 0.0, 0, time.perf_counter()
        self(tolerance)
        return {"part in the callback": self.rate.inside / (time.perf_counter() - begun), "calls": self.rate.calls}


def rivals(of: Problem, error: float, o: Options) -> dict[str, tuple[Solve, Iterable[float]]]:
    """Name -> a motion by another integrator, and the settings to try, the quickest first."""
    begin, ends = start(of), np.array([0.0, of.duration])
    tolerances = [error / 10**k for k in range(1, TRIES + 1)]
    found: dict[str, tuple[Solve, Iterable[float]]] = {"RK4, best step": (lambda n: end_of_steps(of, int(n), o), STEPS)}
    rate = Rate(of)
    found |= {name: (Around(solve, rate, begin, ends), tolerances) for name, solve in around_ours().items()}
    for solver in SOLVERS:
        if by := by_diffrax(of, solver):
            found[f"diffrax {solver}"] = (lambda tolerance, by=by: by(begin, ends, tolerance)[-1]), tolerances
    found |= {name: (solve, tolerances) for name, solve in by_drake(of).items()}
    return found | {name: (solve, STEPS) for name, solve in by_exudyn(of).items()}


def reaching(solve: Solve, settings: Iterable[float], off: Callable[[np.ndarray], float], error: float) -> Reached | None:
    """The first of the settings with which a motion is within the error, None if there is none or they take too long.

    off: error of a last state.
    """
    for i, setting in enumerate(settings):
        try:
            if i == 0:
                solve(setting)  # what it compiles is not timed
            begun = time.process_time()
            found = off(solve(setting))
        except Exception:  # whatever a rival raises where it fails
            continue
        seconds = time.process_time() - begun
        if found <= error:
            return Reached(setting, seconds)
        if seconds > SLOWEST:
            return None
    return None
