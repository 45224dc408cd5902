"""The sides of `python -m benchmarks accuracy`, and what time each needs for a true error.

No run of others is awaited for longer than a bound of processor time: those that call our right-hand side are stopped within
it, and the others are tried with no further setting once a run has passed the bound.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from math import inf
from typing import Any, NamedTuple

import numpy as np

from benchmarks.engines import by_drake, by_exudyn
from benchmarks.integrators import Rate, around_ours, by_diffrax
from benchmarks.problems import Problem, end_of_run, end_of_steps, start
from benchmarks.result import Timing
from benchmarks.timing import Options

TOLERANCES = [10.0 ** (-k / 2) for k in range(12, 29)]
ACCURACIES = [10.0 ** (-k / 2) for k in range(6, 25)]
STEPS = [round(2 ** (k / 2)) for k in range(8, 41)]
"""Settings that are tried: tolerances of others, accuracies of ours, numbers of steps of one length."""

SOLVERS = ("Dopri8", "Kvaerno5")
"""Of diffrax."""

OURS, ALONE, RK4 = "", "no estimate", "RK4, best step"
"""Names of sides that are ours: runs to an accuracy, the same without an estimate of their error, steps of one length."""


class Rival(NamedTuple):
    """An integrator.   solve: setting -> [q; v] at the end of a motion.   settings: those to try, the quickest first.
    rate: our right-hand side, where the integrator calls it."""

    solve: Callable[[float], np.ndarray]
    settings: Sequence[float]
    rate: Rate | None = None


class Attempt(NamedTuple):
    """A run with a setting.   seconds: of processor time.   error: true, inf where it failed or was stopped.
    inside: part of the time inside the callback, nan where there is none.   calls: of the callback."""

    setting: float
    seconds: float
    error: float
    inside: float
    calls: int

    @property
    def notes(self) -> dict[str, Any]:
        """What a row tells of it."""
        called = {"part in the callback": self.inside, "calls": self.calls} if self.calls else {}
        return {"setting": self.setting, "true error": str(self.error) if self.error == inf else self.error} | called


def rivals(of: Problem, o: Options) -> dict[str, Rival]:
    """Name -> side of a motion, ours first."""
    begin, ends = start(of), np.array([0.0, of.duration])
    rate = Rate(of, o.backend)
    found = {
        OURS: Rival(lambda accuracy: end_of_run(of, accuracy, o), ACCURACIES),
        ALONE: Rival(lambda accuracy: end_of_run(of, accuracy, o, False), ACCURACIES),
        RK4: Rival(lambda n: end_of_steps(of, int(n), o), STEPS),
    }
    for name, solve in around_ours().items():
        found[name] = Rival(lambda x, solve=solve: solve(rate, begin, ends, x)[-1], TOLERANCES, rate)
    for solver in SOLVERS:
        if by := by_diffrax(of, solver):
            found[f"diffrax {solver}"] = Rival(lambda x, by=by: by(begin, ends, x)[-1], TOLERANCES)
    found |= {name: Rival(solve, TOLERANCES) for name, solve in by_drake(of).items()}
    return found | {name: Rival(solve, STEPS) for name, solve in by_exudyn(of).items()}


def attempts(rival: Rival, error_of: Callable[[np.ndarray], float], least: float, most: float) -> list[Attempt]:
    """Runs with the settings in turn, until one is within the least error or takes longer than the most seconds."""
    found = list[Attempt]()
    if not rival.rate:
        attempt(rival, rival.settings[0], error_of, most)  # what it compiles is not timed
    for setting in rival.settings:
        found.append(attempt(rival, setting, error_of, most))
        if found[-1].error <= least or found[-1].seconds > most:
            break
    return found


def attempt(rival: Rival, setting: float, error_of: Callable[[np.ndarray], float], most: float) -> Attempt:
    """One run; one that calls our right-hand side is stopped there after the most seconds."""
    begun, wall = time.process_time(), time.perf_counter()
    if rival.rate:
        rival.rate.restart(begun + most)
    try:
        error = error_of(rival.solve(setting))
    except Exception:  # whatever an integrator raises where it fails
        error = inf
    seconds, inside, calls = time.process_time() - begun, np.nan, 0
    if rival.rate:
        inside, calls = rival.rate.inside / (time.perf_counter() - wall), rival.rate.calls
        rival.rate.restart()
    return Attempt(setting, seconds, error, inside, calls)


def least(found: Sequence[Attempt], error: float) -> Attempt:
    """The first attempt within an error; the one with the least error if there is none."""
    return next((a for a in found if a.error <= error), min(found, key=lambda a: a.error))


def once(name: str, found: Sequence[Attempt], error: float, most: float) -> Timing:
    """The time of one run within an error; that of the bound if the last one passed it, and none was."""
    a = least(found, error)
    if a.error > error and found[-1].seconds > most:
        return Timing(f"{name}, stopped", (1e9 * most,))
    return Timing(name, (1e9 * a.seconds,))
