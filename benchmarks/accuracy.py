"""Time to a true error: runs to an accuracy beside steps of one length and integrators of others, on nine motions.

The true error of each side is measured against a run to 1e-11 at the end of the motion: of angles in rad, of positions in m, of
speeds relative to the largest. `accuracy=` gets the asked error itself, so that the true error of ours is smaller. Integrators
of others get the largest of the tolerances 1e-6, 1e-7, ... whose true error is small enough (`benchmarks/integrators.py`), or
as many steps as that needs (`benchmarks/engines.py`); where they call our compiled right-hand side, the part of the time inside
the callback is told. RK4 takes its best step, which a user does not know, and estimates nothing: beside it are runs without an
estimate, to the largest accuracy whose true error is small enough.

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
from benchmarks.rivals import ALONE, RK4, Attempt, Rival, attempt, attempts, rivals
from benchmarks.timing import Options, interleaved

ERRORS = (1e-6, 1e-9)
EXACT = 1e-11

LEAST_BESIDE_RK4 = {1e-6: 0.83, 1e-9: 1.0}
"""Least ratio of the time of RK4 with its best step to ours without an estimate, by the error."""

LEAST_MEAN = {1e-9: 3.0}
"""Least geometric mean of these ratios."""

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

    ours = Rival(lambda accuracy: end_of_run(of, accuracy, o), errors)
    for error in errors:
        if not (mine := error_of(ours.solve(error))) <= error:
            raise CheckFailed(f"{what}: a run to an accuracy of {error:g} has an error of {mine:.2g}")
    most = MOST_TIMES * median(attempt(ours, errors[-1], error_of, np.inf).seconds for _ in range(3))
    sides = rivals(of, o)
    tried = {name: attempts(rival, error_of, errors[-1], most) for name, rival in sides.items()}
    for error in errors:
        for row in compare(f"{what}, error {error:g}", error, sides | {"": ours}, tried, most, o):
            yield error, row


def compare(
    what: str, error: float, sides: dict[str, Rival], tried: dict[str, list[Attempt]], most: float, o: Options
) -> Iterator[Comparison]:
    """The rows of a motion and an error.

    sides: by name, "" is ours.   tried: attempts of the others.   most: their bound [s].
    """
    best = {name: least(found, error) for name, found in tried.items()}
    quick = {name: a for name, a in best.items() if a.error <= error and a.seconds <= SLOW}
    calls: dict[str, Any] = {name: lambda a=a, name=name: sides[name].solve(a.setting) for name, a in quick.items()}
    timings = interleaved({"": lambda: sides[""].solve(error)} | calls, 1, o)
    for name, a in best.items():
        if name == ALONE:
            continue
        ours, goal, notes = timings[""], None, a.notes
        if name == RK4:
            ours, goal = timings[ALONE], Goal("ratio", ">=", LEAST_BESIDE_RK4[error])
            notes = notes | {"accuracy of ours": best[ALONE].setting, "its true error": best[ALONE].error}
        stopped = a.error > error and tried[name][-1].seconds > most
        theirs = Timing(f"{name}, stopped", (1e9 * most,)) if stopped else Timing(name, (1e9 * a.seconds,))
        if a.error > error:
            notes = notes | {"not within": error}
        yield Comparison(f"{what}, beside {name}", "a run", ours, timings.get(name, theirs), goal, notes)


def least(found: Sequence[Attempt], error: float) -> Attempt:
    """The first attempt within an error; the one with the least error if there is none."""
    return next((a for a in found if a.error <= error), min(found, key=lambda a: a.error))
