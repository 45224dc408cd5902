"""Runs to a given accuracy: steps under error control, and an estimate of the global error from a second, finer solution.

Each run is computed twice, side by side in one compiled loop: with steps of the tolerance that it needs, which is its result,
and with steps of a tolerance COARSER times larger. The error of the result is a small part of their difference: about a
twentieth where the motion is smooth, and PART is assumed. Where it exceeds a part of the accuracy, WITHIN, the run is
repeated with a smaller tolerance.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from pfaffian.evaluate.progress import progress_bar
from pfaffian.simulate.error.global_error import ERROR_KINDS, ROUNDING, Solutions, global_error
from pfaffian.simulate.record.event_table import PassedEvents
from pfaffian.simulate.run.interrupt import interrupts
from pfaffian.simulate.run.solver import SolvedRuns, Solver, Watch
from pfaffian.simulate.step.events import eventful
from pfaffian.simulate.step.lane import lane_of
from pfaffian.simulate.step.motion_statistics import Evaluate, Steps
from pfaffian.simulate.step.simulation import Simulation

COARSER, OF_STIFF = 16.0, 4.0
"""Ratios of the tolerances of the two solutions of a run: of steps of the explicit pair, and of those of the stiff one, whose
errors fall with up to the square of their tolerance where stiff directions turn."""

PART, PART_OF_LONG, PART_OF_STIFF = 0.35, 0.5, 0.6
"""Error of the result as a part of its difference from the coarser solution: of steps of the explicit pair, of those with a
tolerance above LONG, and after the stiff pair has made steps."""

LONG = 1e-7
"""Tolerance above which steps are so long that errors need not fall by the order of the pair."""

ROUNDED = 1.15
"""What is added to PART at the smallest tolerance, at which both solutions differ from the motion by rounding."""

OF_FINER = 1.35
"""That part where the coarser solution has made more steps, since barriers limit those of both, see `LONGER`: it is then the
more accurate one, and the difference is the error of the result."""

OF_STEP, WITH_EVENTS, CHANCE = 0.03, 0.1, 4.0
"""A single step may add this part of its tolerance to the errors of both solutions, so that smaller differences may be chance:
the error is then up to CHANCE times the difference. Where events limit the steps, both take the same ones, and the part is
larger."""

PER_STEP = 0.02
"""Tolerance of a step in the first solution of a run, as a part of the bound of its estimate."""

RECENT = 0.5
"""Part of the time since the run began in which the largest error counts for a record."""

TRIES = 6
"""Largest number of solutions of a run."""

WITHIN, LEAST_HALVED = 0.5, 1e-10
"""Part of the accuracy within which the estimate must be, since the error is up to twice the estimate where few steps decide
it; not of an accuracy below LEAST_HALVED, for which rounding may leave no smaller tolerance."""

AIM = 0.5
"""Part of that bound at which a run aims that is repeated for the first time; each time after that the part is squared, since
errors of an unstable motion grow faster than is expected."""

EVIDENT, HOPELESS = 1 / 8, 2.0
"""Part of the time after which the error of a repeated run shows how it grows, and the error at its end, relative to the
accuracy, for which the run is then given up."""

GROWTH = 2.0
"""Largest power of the time with which an error is expected to grow: that of a phase whose rate drifts."""

SHORTEST_PART = 1e-3
"""Least part of the time from which the error at the end is foretold."""

MOST_SHORTENED = 1e-6
"""Least factor by which the tolerance changes from one solution of a run to the next."""

SMALLEST = 1e-14
"""Smallest tolerance of a step: below it, steps differ by rounding."""

BLOCK = 2**12
"""Most runs that are solved at once: each with its coarser solution, until its error is small enough."""


class LaneStarts(NamedTuple):
    """Where runs begin.   lane, coarse: (runs, numbers) their lanes and those of their coarser solutions, as in `Solver.solve`.
    w: (runs, 2 nw + 1) inputs before.   tolerance: (runs,) of the first solution.   status: (runs,) nonzero if one cannot
    start.   error: (runs, kinds) estimated before, 0 at a new start."""

    lane: np.ndarray
    coarse: np.ndarray
    w: np.ndarray
    tolerance: np.ndarray
    status: np.ndarray
    error: np.ndarray

    def some(self, runs: slice) -> LaneStarts:
        """A copy of where some of the runs begin."""
        return LaneStarts(*(x[runs].copy() for x in self))


class StepTally(Protocol):
    """Accumulates steps of runs.   stored_entries: of the signals to store over time."""

    stored_entries: np.ndarray

    def restart(self, runs: np.ndarray) -> None:
        """Forget what was accumulated for some runs, which are solved once more."""

    def add(self, steps: Steps, runs: np.ndarray, evaluate: Evaluate) -> None:
        """Add steps.   runs: (n,) of each."""


class Controlled(NamedTuple):
    """Runs to an accuracy.   records: (times, runs, signals).   error: (times, runs, kinds), nan where it was not estimated.
    lane, last, w, status, steps, stiff_steps, stiff: of each run, as in `SolvedRuns`.   coarse: `last` of the coarser
    solutions, nan without one.   ends: (runs, n) last, coarse and w side by side, of which they are parts.
    tolerance: (runs,) of the steps.   tally: statistics, if any.   events: that the runs passed.
    interrupted: whether Ctrl-C ended the runs."""

    records: np.ndarray
    error: np.ndarray
    lane: np.ndarray
    last: np.ndarray
    coarse: np.ndarray
    w: np.ndarray
    ends: np.ndarray
    status: np.ndarray
    steps: np.ndarray
    stiff_steps: np.ndarray
    stiff: np.ndarray
    tolerance: np.ndarray
    tally: StepTally | None
    events: list[PassedEvents]
    interrupted: bool = False


def controlled(
    solver: Solver,
    starts: LaneStarts,
    accuracy: float,
    estimated: np.ndarray,
    tally: StepTally | None,
    progress: bool,
) -> Controlled:
    """Solve runs until the estimate of their error is within the accuracy, block by block, so that the memory and the time that
    a run needs do not depend on the number of runs.

    starts: their lanes are overwritten by those at the end, one block after the other.   estimated: runs whose error is
    estimated.   tally: their statistics, if any; only signals that it stores are recorded then.
    """
    done = _empty(solver, starts, tally)
    total = (solver.end - solver.elapsed) * (len(starts.lane) + len(estimated)) or 1.0
    with progress_bar(100, "%", solver.simulation.mechanism.name, progress) as bar, interrupts() as interrupted:
        watch = Watch(lambda s: bar(100 * s / total), interrupted, lambda found: np.zeros(1, dtype=bool))  # type: ignore[arg-type]
        most = len(starts.lane) if solver.python else BLOCK  # a law in Python is called for all runs at once
        for first in range(0, len(starts.lane), most):
            begins = Begins(first, starts.some(slice(first, first + most)))
            _solve(solver, begins, accuracy, estimated, watch, done)
        return done._replace(interrupted=interrupted())


def first_tolerance(accuracy: float) -> float:
    """The tolerance of the steps of a run of this accuracy, before its error is known."""
    return max(PER_STEP * _bound(accuracy), SMALLEST)


def _bound(accuracy: float) -> float:
    """What the estimate of the error of a run must not exceed."""
    return WITHIN * accuracy if accuracy >= LEAST_HALVED else accuracy


def error_from(
    s: Simulation, difference: np.ndarray, tolerance: np.ndarray | float, stiffened: np.ndarray, finer: np.ndarray
) -> np.ndarray:
    """The estimated error of solutions with these tolerances, from their differences from the coarser solutions.

    stiffened: whether the stiff pair has made steps of either solution.   finer: whether the coarser one made more steps.
    """
    by_chance = np.minimum((WITH_EVENTS if eventful(s) else OF_STEP) * tolerance, CHANCE * difference)
    explicit = np.where(tolerance > LONG, PART_OF_LONG, PART)
    part = np.where(finer, OF_FINER, np.where(stiffened, PART_OF_STIFF, explicit))
    return ROUNDING + by_chance + (part + ROUNDED * SMALLEST / tolerance) * difference


def _recent(error: np.ndarray, solver: Solver, at: np.ndarray, before: np.ndarray) -> np.ndarray:
    """(len(at), runs, kinds) the largest errors (times, runs, kinds) of the last part, RECENT, of the time up to each instant:
    two solutions may meet by chance where both are wrong.   before: (runs, kinds) such errors when the runs begin."""
    since = (1 - RECENT) * solver.instants[at]
    first = np.searchsorted(solver.instants, since)
    largest = np.array([np.fmax.reduce(error[i : j + 1], axis=0) for i, j in zip(first, at, strict=True)])
    largest[since <= solver.elapsed] = np.fmax(largest[since <= solver.elapsed], before)
    return np.where(np.isnan(error[at]), np.nan, largest)


def _empty(solver: Solver, starts: LaneStarts, tally: StepTally | None) -> Controlled:
    """Runs that are not solved yet."""
    n, of_one = len(starts.lane), solver.empty(1)
    width = of_one.records.shape[-1] if tally is None else len(tally.stored_entries)
    records = np.full((len(solver.instants), n, width), np.nan)
    error = np.full((len(solver.instants), n, len(ERROR_KINDS)), np.nan)
    width, n_w = of_one.last.shape[-1], of_one.w.shape[-1]
    ends = np.full((n, 2 * width + n_w), np.nan)
    last, coarse, w = np.split(ends, [width, 2 * width], axis=1)
    w[:] = 0.0
    status, tolerance = starts.status.copy(), starts.tolerance.copy()
    steps, stiff_steps = (np.zeros(n, np.int64) for _ in range(2))
    stiff = np.full((len(solver.instants), n, 1), np.nan)
    return Controlled(
        records, error, starts.lane, last, coarse, w, ends, status, steps, stiff_steps, stiff, tolerance, tally, []
    )


class Begins(NamedTuple):
    """Where the runs of a block begin.   first: the first of them.   starts: of them alone."""

    first: int
    starts: LaneStarts

    @property
    def runs(self) -> np.ndarray:
        """(runs,) which they are."""
        return self.first + np.arange(len(self.starts.lane))

    def of(self, runs: np.ndarray) -> LaneStarts:
        """Those of some runs."""
        return LaneStarts(*(x[runs - self.first] for x in self.starts))


def _solve(solver: Solver, begins: Begins, accuracy: float, estimated: np.ndarray, watch: Watch, done: Controlled) -> None:
    """Solve the runs of a block, those with a nonzero status excepted, and write them into `done`."""
    todo = begins.runs
    estimated = np.intersect1d(todo, estimated)
    dense, tolerance = solver.watched() if estimated.size else solver, done.tolerance
    todo, at = todo[begins.starts.status == 0], np.searchsorted(dense.instants, solver.instants)
    bound = _bound(accuracy)
    for left in reversed(range(TRIES)):
        if not todo.size:
            return
        pairs, events = _Pairs.of(dense, begins, todo, estimated), list[PassedEvents]()
        judged = bound, tolerance, left < TRIES - 1
        looks = watch._replace(lost=partial(pairs.lost, *judged)) if left else watch
        looks = looks._replace(events=events.append)
        if done.tally:
            done.tally.restart(todo)
            looks = looks._replace(steps=partial(pairs.add, done.tally))
        found = pairs.solved(tolerance, looks)
        pairs.store(found, at, done)
        error = pairs.error(found, tolerance)
        done.error[:, pairs.second] = _recent(error, dense, at, begins.of(pairs.second).error)
        expected = pairs.excess(*judged, error)
        again = (expected > 0) & (done.status[pairs.second] <= 0)
        todo = pairs.second[again]
        done.events.extend(pairs.events_of(each, todo) for each in events)
        if left:
            aim = AIM**2.0 ** (TRIES - 1 - left)
            factor = np.clip(aim / expected[again], MOST_SHORTENED, aim)
            tolerance[todo] = np.maximum(tolerance[todo] * factor, SMALLEST)


class _Pairs(NamedTuple):
    """The lanes of runs and of their coarser solutions, side by side.   runs: (lanes,) the run of each.   coarse: (lanes,)
    whether it is the coarser solution.   first, second: runs that are solved, and those of them with a coarser solution."""

    solver: Solver
    begins: Begins
    runs: np.ndarray
    coarse: np.ndarray
    first: np.ndarray
    second: np.ndarray

    @staticmethod
    def of(solver: Solver, begins: Begins, first: np.ndarray, estimated: np.ndarray) -> _Pairs:
        """The lanes of the runs `first`."""
        second = np.intersect1d(first, estimated)
        order = np.argsort(np.concatenate([first, second]), kind="stable")
        return _Pairs(solver, begins, np.concatenate([first, second])[order], order >= len(first), first, second)

    def solved(self, tolerance: np.ndarray, watch: Watch) -> SolvedRuns:
        """The lanes, solved with these tolerances (runs,) of the first solutions."""
        starts = self.begins.of(self.runs)
        start = np.where(self.coarse[:, None], starts.coarse, starts.lane)
        tolerances = tolerance[self.runs, None] * np.where(self.coarse[:, None], (COARSER, OF_STIFF), 1.0)
        return self.solver.solve(start, starts.w, self.runs, tolerances, self.coarse, watch)

    def store(self, found: SolvedRuns, at: np.ndarray, done: Controlled) -> None:
        """Write the solutions into `done`, with the records at the instants of the indices `at`."""
        fine = ~self.coarse
        stored = found.records[at][:, fine]
        done.records[:, self.first] = stored if done.tally is None else stored[:, :, done.tally.stored_entries]
        done.stiff[:, self.first] = found.stiff[at][:, fine]
        done.coarse[self.second] = found.last[self.coarse]
        done.lane[self.first] = found.lane[fine, : done.lane.shape[1]]
        for name in ("last", "w", "status", "steps", "stiff_steps"):
            getattr(done, name)[self.first] = getattr(found, name)[fine]

    def events_of(self, passed: PassedEvents, again: np.ndarray) -> PassedEvents:
        """The events of the first solutions of runs, those that are solved `again` excepted."""
        remaining = ~self.coarse[passed.runs] & ~np.isin(self.runs[passed.runs], again)
        return PassedEvents(*(x[remaining] for x in passed._replace(runs=self.runs[passed.runs])))

    def add(self, tally: StepTally, steps: Steps, evaluate: Evaluate) -> None:
        """Add steps of the first solutions to the statistics of their runs."""
        fine = steps.some(np.flatnonzero(~self.coarse[steps.lanes]))
        tally.add(fine, self.runs[fine.lanes], evaluate)

    def error(self, found: SolvedRuns, tolerance: np.ndarray) -> np.ndarray:
        """(times, runs, kinds) the estimated error of the runs `second`.   tolerance: (runs,) of the first solutions."""
        rows, s = np.flatnonzero(~self.coarse)[np.searchsorted(self.first, self.second)], self.solver
        at = lane_of(s.simulation)
        speeds = dict(zip(at.units, found.lane[rows, at.speeds].T, strict=True))
        both = Solutions(found.q_v[:, self.coarse], found.q_v[:, rows])
        difference = global_error(s.simulation.mechanism, both, s.p[self.second], s.end, speeds)
        stiffened = np.fmax(found.stiffened[:, rows], found.stiffened[:, self.coarse]) == 1
        finer = found.made[:, self.coarse] > found.made[:, rows]
        return error_from(s.simulation, difference, tolerance[self.second, None], stiffened, finer)

    def excess(self, accuracy: float, tolerance: np.ndarray, repeated: bool, error: np.ndarray) -> np.ndarray:
        """(runs,) the error, relative to the accuracy, that each of the runs `second` is expected to reach, if it has to be
        solved again with a smaller tolerance; else 0.

        It follows from the motion up to the first instant at which that shows, so that it is the same whenever it is asked.
        repeated: whether the runs have been solved before.   error: (times, runs, kinds) so far.
        """
        known = np.isfinite(error[:, :, 0])
        worst = np.fmax.accumulate(np.where(known, error.max(axis=2), 0.0), axis=0) / accuracy
        parts, shows = self.solver.instants / (self.solver.end or 1.0), worst > 1
        if not (repeated or shows.any()):
            return np.zeros(len(self.second))
        expected = _expected(worst, parts)
        if repeated:
            shows |= (expected > HOPELESS) & (parts >= EVIDENT)[:, None] & known
        first = shows.argmax(axis=0), np.arange(shows.shape[1])
        return np.where(shows.any(axis=0) & (tolerance[self.second] > SMALLEST), expected[first], 0.0)

    def lost(self, accuracy: float, tolerance: np.ndarray, repeated: bool, found: SolvedRuns) -> np.ndarray:
        """(lanes,) whether a lane is of a run that will be solved again, see `excess`."""
        excess = self.excess(accuracy, tolerance, repeated, self.error(found, tolerance))
        return np.isin(self.runs, self.second[excess > 0])


def _expected(worst: np.ndarray, parts: np.ndarray) -> np.ndarray:
    """(times, runs) what the largest errors so far, `worst` (times, runs), will be at the end: they go on with the power of the
    time with which they grew since half of it, or with GROWTH before that shows.   parts: (times,) of the time of the runs."""
    half = np.maximum(np.searchsorted(parts, parts / 2, "right") - 1, 0)
    with np.errstate(all="ignore"):
        power = np.clip(np.log2(worst / worst[half]), 0, GROWTH)
        power = np.where((parts >= EVIDENT)[:, None] & np.isfinite(power), power, GROWTH)
        return np.where(worst > 0, worst * np.maximum(parts, SHORTEST_PART)[:, None] ** -power, 0.0)
