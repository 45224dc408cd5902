"""Time to a true error: runs to an accuracy beside steps of one length and integrators of others, on nine motions.

The true error of each side is measured against a run to 1e-11 at the end of the motion: of angles in rad, of positions in m, of
speeds relative to the largest. Ours gets the asked error as its accuracy, or the next smaller one if its true error is above
it. Integrators of others get the largest of the tolerances 1e-6, 3e-7, 1e-7, ... whose true error is small enough
(`benchmarks/integrators.py`), or as many steps as that needs (`benchmarks/engines.py`); where they call our compiled right-hand
side, the part of the time inside the callback is told. RK4 takes its best step, which a user does not know, and estimates
nothing: beside it are runs without an estimate, to the largest accuracy whose true error is small enough.

A run of others may take MOST_TIMES the time of ours. A row tells those that were stopped there, with this bound in place of a
time, and those whose settings end before, with their least true error and its time. A side that takes longer than SLOW is timed
once. `benchmarks/long_runs.py` continues with four-bars over 100 s and in batches, and with the cost of the estimate.

The true errors over time are drawn in `accuracy.png`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from math import prod
from statistics import median
from typing import Any

import numpy as np

import pfaffian as pf
from benchmarks import long_runs
from benchmarks.check import CheckFailed
from benchmarks.error_over_time import draw
from benchmarks.problems import PROBLEMS, Problem, end_of_run, off
from benchmarks.result import Comparison, Goal, Timing
from benchmarks.rivals import ALONE, OURS, RK4, Attempt, Rival, attempt, attempts, least, once, rivals
from benchmarks.timing import Options, interleaved

ERRORS = (1e-6, 1e-9)
EXACT = 1e-11

LEAST_BESIDE_RK4 = {1e-6: 0.83, 1e-9: 1.0}
"""Least ratio of the time of RK4 with its best step to ours without an estimate, by the error."""

LEAST_MEAN = {1e-9: 3.0}
"""Least geometric mean of these ratios."""

TRUE = 3
"""How many times as large as the asked accuracy the true error may be, as that of an estimate."""

MOST_TIMES = 50
"""How many times the time of ours a run of others may take."""

SLOW = 0.2
"""Time of a run [s] beyond which it is timed once."""


def run(o: Options) -> Iterator[Comparison]:
    ratios: dict[float, list[float]] = {error: [] for error in ERRORS}
    for what, make in list(PROBLEMS.items())[: 1 if o.quick else None]:
        for error, row in motion(what, make(), ERRORS[: 1 if o.quick else None], o):
            if row.goal and row.ratio:
                ratios[error].append(row.ratio)
            yield row
    yield from means(ratios)
    yield from long_runs.run(o)
    if not o.quick:
        draw(o.out / "accuracy.png", list(PROBLEMS.items()), o)


def means(ratios: dict[float, list[float]]) -> Iterator[Comparison]:
    """The geometric mean of the ratios of all motions for each error."""
    for error, found in ratios.items():
        if found:
            what = f"geometric mean of {len(found)} motions, error {error:g}, relative to ours"
            goal = Goal("ratio", ">=", LEAST_MEAN[error]) if error in LEAST_MEAN else None
            theirs = Timing(RK4, (prod(found) ** (1 / len(found)),))
            yield Comparison(what, "a run", Timing(ALONE, (1.0,)), theirs, goal)


def motion(what: str, of: Problem, errors: Sequence[float], o: Options) -> Iterator[tuple[float, Comparison]]:
    """Errors with the rows of a motion; those beside RK4 have a goal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pf.RunWarning)  # of the 1e-11 some runs miss a little
        exact = end_of_run(of, EXACT, o)

    def error_of(x: np.ndarray) -> float:
        return off(x, exact, of.m.nq)

    sides = rivals(of, o)
    most = MOST_TIMES * median(attempt(sides[OURS], errors[-1], error_of, np.inf).seconds for _ in range(3))
    tried = {name: attempts(rival, error_of, errors[-1], most) for name, rival in sides.items()}
    for error in errors:
        mine = [a for a in tried[OURS] if a.setting <= error] or [attempt(sides[OURS], error, error_of, most)]
        if not mine[0].error <= TRUE * error:
            raise CheckFailed(f"{what}: a run to an accuracy of {error:g} has an error of {mine[0].error:.2g}")
        for row in compare(f"{what}, error {error:g}", error, sides, tried | {OURS: mine}, most, o):
            yield error, row


def compare(
    what: str, error: float, sides: dict[str, Rival], tried: dict[str, list[Attempt]], most: float, o: Options
) -> Iterator[Comparison]:
    """The rows of a motion and an error.

    tried: attempts of the sides.   most: the bound of each of them [s].
    """
    best = {name: least(found, error) for name, found in tried.items()}
    quick = {name: a for name, a in best.items() if a.error <= error and a.seconds <= SLOW}
    calls: dict[str, Any] = {name: lambda a=a, name=name: sides[name].solve(a.setting) for name, a in quick.items()}
    timings = {name: once(name, found, error, most) for name, found in tried.items()} | interleaved(calls, 1, o)
    for name, a in best.items():
        if name not in (OURS, ALONE):
            beside, goal = (ALONE, Goal("ratio", ">=", LEAST_BESIDE_RK4[error])) if name == RK4 else (OURS, None)
            mine = {"accuracy of ours": best[beside].setting, "its true error": best[beside].error}
            notes = a.notes | mine | ({} if a.error <= error else {"not within": error})
            yield Comparison(f"{what}, beside {name}", "a run", timings[beside], timings[name], goal, notes)
