"""Runs to a given accuracy: steps under error control, and an estimate of the global error from a second, finer solution.

Each run is computed twice, side by side in one compiled loop: with steps of the tolerance that it needs, which is its result,
and with steps of a tolerance COARSER times larger. The error of the result is a small part of their difference: about a
twentieth where the motion is smooth, and PART is assumed. Where it exceeds the accuracy the run is repeated with a
smaller tolerance.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pfaffian import kernel
from pfaffian.evaluate.progress import progress_bar
from pfaffian.kernel.call.recipe import Backend
from pfaffian.kernel.program.numpy_loop import Span
from pfaffian.kernel.remember import remembered
from pfaffian.simulate.error.global_error import ERROR_KINDS, ROUNDING, Solutions, global_error
from pfaffian.simulate.record.result import INTERRUPTED, causes_of, status_of
from pfaffian.simulate.run.interrupt import interrupts
from pfaffian.simulate.step.attempt import attempt, first_length, lane_of, record
from pfaffian.simulate.step.simulation import Simulation

COARSER = 16.0
"""Ratio of the tolerances of the two solutions of a run."""

PART = 0.35
"""Error of the result as a part of its difference from the coarser solution."""

PER_STEP = 0.02
"""Tolerance of a step in the first solution of a run, as a part of its accuracy."""

TRIES = 6
"""Largest number of solutions of a run."""

AIM = 0.5
"""Part of the accuracy at which a repeated run aims."""

MOST_SHORTENED = 1e-6
"""Least factor by which the tolerance changes from one solution of a run to the next."""

SMALLEST = 1e-14
"""Smallest tolerance of a step: below it, steps differ by rounding."""

ATTEMPTS = 1_000_000
"""Greatest number of steps that a run tries."""

SAME = 4 * float(np.finfo(float).eps)
"""Relative difference of instants that count as one."""

GIVEN_UP = -1
"""Status of a lane that is given up, because its run will be repeated."""

CHECKS = 32
"""Number of instants at which the error is estimated, if a run has fewer records."""

FIRST_CALL, CALL_BYTES = 256, 2**26
"""Most steps that the first call of the compiled loop tries, and memory for the progress of a call [bytes]."""

BLOCK = 2**13
"""Most lanes in one call."""


SAMPLE, MARK = -1, -2
"""What happens at the begin of an interval: the next sample of the inputs, an abrupt change; or the sampler of an index."""


class Interval(NamedTuple):
    """A part of a run in which nothing changes abruptly.   since, barrier: its ends, as times since the run began [s]; a
    barrier that is inf may be passed.   w: [w; w_dot], (2 nw,) or (runs, 2 nw), the inputs at its begin and their rates.
    due: indices of the samplers that are called at its begin."""

    since: float
    barrier: float
    w: np.ndarray
    due: tuple[int, ...]


class InputIntervals(NamedTuple):
    """Inputs and samplers of runs.   series: (samples, nw) or (samples, runs, nw).   step: time between two samples [s].
    linear: whether they are interpolated.   rates: period and phase of each sampler [s].   marks: other instants at which
    the equations change abruptly, since the run began [s]."""

    series: np.ndarray
    step: float = np.inf
    linear: bool = False
    rates: tuple[tuple[float, float], ...] = ()
    marks: np.ndarray = np.zeros(0)

    def snapped(self, instants: np.ndarray) -> np.ndarray:
        """The instants (times,), those that differ by rounding from the begin of an interval moved there."""
        begins = np.array([interval.since for interval in self.intervals(float(instants[-1]))])
        nearest = begins[np.abs(instants[:, None] - begins).argmin(axis=1)] if len(begins) > 1 else np.zeros_like(instants)
        return np.where(np.abs(instants - nearest) <= SAME * np.abs(instants), nearest, instants)

    def intervals(self, end: float) -> list[Interval]:
        """The intervals of a run that lasts until `end` [s]."""
        most = max(0, min(len(self.series) - 1, int(np.ceil(end / self.step * (1 - SAME)))))
        events = [(i * self.step if i else 0.0, SAMPLE) for i in range(most + 1)]
        for j, (period, phase) in enumerate(self.rates):
            count = int(np.floor((end - phase) / period * (1 + SAME))) + 1
            events += [(phase + i * period, j) for i in range(max(count, 0))]
        events = sorted(events + [(float(t), MARK) for t in self.marks])
        grouped: list[tuple[float, list[int]]] = []
        for t, j in events:
            if not grouped or t > grouped[-1][0] * (1 + SAME):
                grouped.append((t, []))
            grouped[-1][1].append(j)
        after = [t for t, _ in grouped[1:]] + [np.inf]
        sample, intervals = -1, []
        for (t, due), barrier in zip(grouped, after, strict=True):
            sample += due.count(SAMPLE)
            w, last = self.series[sample], sample == len(self.series) - 1
            rate = np.zeros_like(w) if last or not self.linear else (self.series[sample + 1] - w) / self.step
            now = w + rate * (t - (sample * self.step if sample else 0.0))
            samplers = tuple(j for j in due if j >= 0)
            intervals.append(Interval(t, barrier, np.concatenate([now, rate], axis=-1), samplers))
        return intervals


class SolvedRuns(NamedTuple):
    """Solutions of runs.   records: (times, runs, signals).   q_v: (times, runs, nq + nv).   lane: (runs, numbers) at the end.
    status: (runs,).   tried: (runs,) number of steps tried."""

    records: np.ndarray
    q_v: np.ndarray
    lane: np.ndarray
    status: np.ndarray
    steps: np.ndarray
    tried: np.ndarray


@remembered(64)
def compiled_attempt(s: Simulation, backend: Backend, lanes: int, strict: bool) -> kernel.Rollout:
    """The compiled loop of a simulation under error control."""
    return kernel.compile_rollout(lambda: attempt(s), backend=backend, lanes=lanes, strict=strict, key=f"attempt {s.key}")


@remembered(64)
def compiled_record(s: Simulation, backend: Backend, strict: bool) -> kernel.Kernel:
    """The compiled `record` of a simulation."""
    return kernel.compile(lambda: record(s), backend=backend, strict=strict, key=f"record {s.key}")


@remembered(64)
def compiled_start(s: Simulation, backend: Backend, strict: bool) -> kernel.Kernel:
    """The compiled `first_length` of a simulation."""
    return kernel.compile(lambda: first_length(s), backend=backend, strict=strict, key=f"first length {s.key}")


class Watch(NamedTuple):
    """What watches over a solution.   count: called with the simulated time of each call, summed over lanes [s].
    interrupted: whether Ctrl-C was pressed.   lost: solutions so far -> (lanes,) whether a lane is given up."""

    count: Callable[[float], Any]
    interrupted: Callable[[], bool]
    lost: Callable[[SolvedRuns], np.ndarray]


class Solver(NamedTuple):
    """What solves runs.   loop, recorder, starter, samplers: compiled.   inputs: of the runs.   p: (runs, np).
    begin: [s].   instants: (times,) of the records [s], since begin.   longest: greatest length of a step [s].
    threads: of a call."""

    simulation: Simulation
    loop: kernel.Rollout
    recorder: kernel.Kernel
    starter: kernel.Kernel
    samplers: tuple[kernel.Kernel, ...]
    inputs: InputIntervals
    p: np.ndarray
    begin: float
    instants: np.ndarray
    longest: float
    threads: int

    def solve(self, x: np.ndarray, runs: np.ndarray, tolerance: np.ndarray, watch: Watch) -> SolvedRuns:
        """Solve runs from their states x (n, [x; z; d]), each with a tolerance (n,).

        runs: (n,) which run of the batch each is.
        """
        at, end, n = lane_of(self.simulation), float(self.instants[-1]), len(x)
        solved = self.empty(n)
        lane = solved.lane
        lane[:, at.x], lane[:, at.discrete] = x[:, : at.x.stop], x[:, at.x.stop :]
        lane[:, at.begin], lane[:, at.tolerance], lane[:, at.longest] = self.begin, tolerance, self.longest
        for interval in self.inputs.intervals(end):
            w = interval.w[runs] if interval.w.ndim == 2 else interval.w
            lane[:, at.since], lane[:, at.barrier] = interval.since, interval.barrier
            lane[:, at.end] = min(end, interval.barrier)
            self._sample(solved, interval, w, self.p[runs])
            if interval.since == 0:
                lane[:, at.root] = 1.0
                lane[:, at.length] = self.starter(lane, w, self.p[runs])[0][:, 0]
            for first in range(0, n, BLOCK):
                self._pass(solved, slice(first, first + BLOCK), interval, w, runs, watch)
        return solved

    def watched(self) -> Solver:
        """This solver, with so many instants that a large error is noticed before the end of a run."""
        end = float(self.instants[-1])
        more = np.linspace(0.0, end, CHECKS + 1)[:-1] if len(self.instants) < CHECKS else self.instants[:0]
        return self._replace(instants=np.union1d(self.instants, more))

    def empty(self, n: int) -> SolvedRuns:
        """Solutions of n runs before their start."""
        records, q_v = (np.full((len(self.instants), n, width), np.nan) for width in self.recorder.shape.outputs)
        lane, status = np.zeros((n, lane_of(self.simulation).size)), np.zeros(n, np.int32)
        return SolvedRuns(records, q_v, lane, status, np.zeros(n, np.int64), np.zeros(n, np.int64))

    def _sample(self, solved: SolvedRuns, interval: Interval, w: np.ndarray, p: np.ndarray) -> None:
        """Call the samplers that are due at the begin of an interval; lanes in which one has a fault stop."""
        at, lane, going = lane_of(self.simulation), solved.lane, solved.status == 0
        first = 2 + self.loop.shapes[0].outputs[1]
        for j, sampler in enumerate(self.samplers):
            if j in interval.due:
                x = np.concatenate([lane[:, at.x], lane[:, at.discrete]], axis=1)
                t = np.array([self.begin + interval.since])
                x, faults = sampler(x, w[..., : w.shape[-1] // 2], p, t)
                stops = going & (faults != 0).any(axis=1)
                if stops.any():
                    solved.status[stops] = first + np.argmax(faults[stops] != 0, axis=1)
                lane[going & ~stops, at.discrete] = x[going & ~stops, at.x.stop :]
            first += sampler.shape.outputs[1]

    def _pass(
        self, solved: SolvedRuns, block: slice, interval: Interval, w: np.ndarray, runs: np.ndarray, watch: Watch
    ) -> None:
        """Advance the lanes of a block to the end of an interval, and write their records."""
        at, lane, n = lane_of(self.simulation), solved.lane[block], FIRST_CALL
        status, tried, p = solved.status[block], solved.tried[block], self.p[runs[block]]
        w, new = (w[block] if w.ndim == 2 else w), True
        while True:
            going = np.flatnonzero((status == 0) & (lane[:, at.time] < lane[:, at.end]))
            if new and interval.since == self.instants[-1]:
                going = np.flatnonzero(status == 0)  # samples at the end are only for its record
            if not going.size:
                return
            left = (lane[going, at.end] - lane[going, at.time]) / np.minimum(lane[going, at.length], self.longest)
            most = max(4, min(n, CALL_BYTES // (8 * at.moving * len(going))))
            steps = int(min(most, 2 + np.ceil(min(left.max(), most))))
            given = lane[going], (w[going] if w.ndim == 2 else w)[None], p[going]
            r = self.loop(*given, Span(0.0, 1.0, steps), threads=self.threads, status=status[going])
            self._record(solved, r.records, r.x, going + block.start, w[going] if w.ndim == 2 else w, p[going], interval)
            watch.count(float((r.x[:, at.time] - lane[going, at.time]).sum()))
            lane[going], status[going], new = r.x, r.status, False
            tried[going] += steps
            status[(status == 0) & watch.lost(solved)[block]] = GIVEN_UP
            status[(status == 0) & (tried >= ATTEMPTS)] = status_of(self.simulation, "integrator")
            if watch.interrupted():
                status[status == 0] = causes_of(self.simulation).index(INTERRUPTED)
            n = min(2 * n, ATTEMPTS)

    def _record(
        self,
        solved: SolvedRuns,
        passed: np.ndarray,
        x: np.ndarray,
        lanes: np.ndarray,
        w: np.ndarray,
        p: np.ndarray,
        now: Interval,
    ) -> None:
        """Write the records at instants within the steps that lanes have made.

        passed: (steps, lanes, numbers) before each step.   x: (lanes, numbers) at the end.
        """
        at = lane_of(self.simulation)
        times = np.concatenate([passed[:, :, at.time], x[None, :, at.time]])
        solved.steps[lanes] += (times[1:] > times[:-1]).sum(axis=0)
        ends = np.minimum(times[-1], x[:, at.end])
        found = []
        for i in range(len(lanes)):
            begin = np.searchsorted(self.instants, times[0, i], "left" if times[0, i] == now.since else "right")
            stop = np.searchsorted(self.instants, ends[i], "left" if ends[i] == now.barrier else "right")
            j = np.arange(begin, stop)
            k = np.maximum(np.searchsorted(times[:, i], self.instants[j], "left") - 1, 0)
            found.append(np.stack([np.full(len(j), i), j, k]))
        i, j, k = np.concatenate(found, axis=1)
        if len(i):
            rows = np.concatenate([passed[k, i], x[i, at.moving :]], axis=1)
            given = (a[i] if a.ndim == 2 else a for a in (w, p))
            y, q_v = self.recorder(rows, *given, self.instants[j][:, None], threads=self.threads)
            solved.records[j, lanes[i]], solved.q_v[j, lanes[i]] = y, q_v


class Controlled(NamedTuple):
    """Runs to an accuracy.   solved: of each run.   error: (times, runs, kinds), nan where it was not estimated.
    tolerance: (runs,) of the steps.   interrupted: whether Ctrl-C ended the runs."""

    solved: SolvedRuns
    error: np.ndarray
    tolerance: np.ndarray
    interrupted: bool


def controlled(
    solver: Solver, x: np.ndarray, accuracy: float, status: np.ndarray, estimated: np.ndarray, progress: bool
) -> Controlled:
    """Solve runs from their states x (runs, [x; z; d]), until the estimate of their error is within the accuracy.

    status: (runs,) nonzero where a run cannot start.   estimated: runs whose error is estimated.
    """
    requested, solver = solver.instants, solver.watched()
    tolerance = np.full(len(x), max(PER_STEP * accuracy, SMALLEST))
    error = np.full((len(solver.instants), len(x), len(ERROR_KINDS)), np.nan)
    whole = solver.empty(len(x))
    whole.status[:] = status
    todo = np.flatnonzero(status == 0)
    total = float(requested[-1]) * (len(todo) + len(estimated)) or 1.0
    with progress_bar(100, "%", solver.simulation.mechanism.name, progress) as bar, interrupts() as interrupted:
        for left in reversed(range(TRIES)):
            pairs = _Pairs.of(solver, todo, estimated)
            lost = partial(pairs.lost, accuracy, tolerance) if left else pairs.nothing
            watch = Watch(lambda s: bar(100 * s / total), interrupted, lost)  # type: ignore[arg-type]
            tolerances = tolerance[pairs.runs] * np.where(pairs.coarse, COARSER, 1.0)
            found = solver.solve(x[pairs.runs], pairs.runs, tolerances, watch)
            for old, new in zip(whole, found, strict=True):
                if old.ndim == 3:
                    old[:, todo] = new[:, ~pairs.coarse]
                else:
                    old[todo] = new[~pairs.coarse]
            error[:, pairs.second] = pairs.error(found)
            worst, reached = pairs.worst(error[:, pairs.second])
            again = pairs.beyond(worst, accuracy, tolerance) & (whole.status[pairs.second] <= 0)
            todo = pairs.second[again]
            if not todo.size or not left:
                break
            factor = np.clip(AIM * accuracy / worst[again] * reached[again] ** 2, MOST_SHORTENED, AIM)
            tolerance[todo] = np.maximum(tolerance[todo] * factor, SMALLEST)
        at = np.searchsorted(solver.instants, requested)
        stored = whole._replace(records=whole.records[at], q_v=whole.q_v[at])
        return Controlled(stored, error[at], tolerance, interrupted())


class _Pairs(NamedTuple):
    """The lanes of runs and of their coarser solutions, side by side.   runs: (lanes,) the run of each.   coarse: (lanes,)
    whether it is the coarser solution.   first, second: runs that are solved, and those of them with a coarser solution."""

    solver: Solver
    runs: np.ndarray
    coarse: np.ndarray
    first: np.ndarray
    second: np.ndarray

    @staticmethod
    def of(solver: Solver, first: np.ndarray, estimated: np.ndarray) -> _Pairs:
        """The lanes of the runs `first`."""
        second = np.intersect1d(first, estimated)
        order = np.argsort(np.concatenate([first, second]), kind="stable")
        return _Pairs(solver, np.concatenate([first, second])[order], order >= len(first), first, second)

    def error(self, found: SolvedRuns) -> np.ndarray:
        """(times, runs, kinds) the estimated error of the runs `second`."""
        fine = found.q_v[:, ~self.coarse][:, np.searchsorted(self.first, self.second)]
        both, s = Solutions(found.q_v[:, self.coarse], fine), self.solver
        return ROUNDING + PART * global_error(s.simulation.mechanism, both, s.p[self.second], float(s.instants[-1]))

    def worst(self, error: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The largest of the errors (times, runs, kinds) of each of the runs `second`, and the part of the time to which it is
        known."""
        known = np.isfinite(error).all(axis=2).sum(axis=0)
        end = self.solver.instants[np.maximum(known - 1, 0)] / max(self.solver.instants[-1], np.finfo(float).tiny)
        return np.nanmax(error, axis=(0, 2), initial=0.0), end

    def lost(self, accuracy: float, tolerance: np.ndarray, found: SolvedRuns) -> np.ndarray:
        """(lanes,) whether the error of a lane's run exceeds the accuracy already, so that it will be repeated."""
        worst, _ = self.worst(self.error(found))
        return np.isin(self.runs, self.second[self.beyond(worst, accuracy, tolerance)])

    def beyond(self, worst: np.ndarray, accuracy: float, tolerance: np.ndarray) -> np.ndarray:
        """Whether the errors `worst` of the runs `second` exceed the accuracy, and a smaller tolerance (runs,) is possible."""
        return (worst > accuracy) & (tolerance[self.second] > SMALLEST)

    def nothing(self, found: SolvedRuns) -> np.ndarray:
        """No lane is given up."""
        return np.zeros(len(self.runs), dtype=bool)
