"""Runs to a given accuracy: steps under error control, and an estimate of the global error from a second, finer solution.

Each run is computed twice, by lanes of one compiled loop: once with steps of the tolerance that it needs, once with steps of a
tolerance FINER times smaller. Their difference is the error of the first, except for the small error of the second. Where it
exceeds the accuracy the run is repeated with a smaller tolerance.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from pfaffian import kernel
from pfaffian.evaluate.progress import progress_bar
from pfaffian.kernel.call.recipe import Backend
from pfaffian.kernel.program.numpy_loop import Span
from pfaffian.kernel.remember import remembered
from pfaffian.simulate.error.global_error import Solutions, global_error
from pfaffian.simulate.run.interrupt import interrupts
from pfaffian.simulate.step.attempt import Lane, attempt, first_length, lane_of, record
from pfaffian.simulate.step.simulation import Simulation

FINER = 16.0
"""Ratio of the tolerances of the two solutions of a run."""

PER_STEP = 0.1
"""Tolerance of a step in the first solution of a run, as a part of its accuracy."""

TRIES = 6
"""Largest number of solutions of a run."""

AIM = 0.3
"""Part of the accuracy at which a repeated run aims."""

MOST_SHORTENED = 1e-3
"""Least factor by which the tolerance changes from one solution of a run to the next."""

SMALLEST = 1e-14
"""Smallest tolerance of a step: below it, steps differ by rounding."""

ATTEMPTS = 1_000_000
"""Greatest number of steps that a run tries."""

FIRST_CALL, CALL_BYTES = 256, 2**26
"""Most steps that the first call of the compiled loop tries, and memory for the progress of a call [bytes]."""

BLOCK = 2**13
"""Most lanes in one call."""


class Inputs(NamedTuple):
    """The inputs of runs.   series: (samples, nw) or (samples, runs, nw).   step: time between two samples [s].
    linear: whether they are interpolated."""

    series: np.ndarray
    step: float
    linear: bool

    def intervals(self, end: float) -> Iterator[tuple[float, float, np.ndarray]]:
        """(from, barrier, [w; w_dot]) of each interval until the time `end` [s] since the begin of the run."""
        samples = self.series
        for i, w in enumerate(samples):
            last = i == len(samples) - 1
            rate = (samples[i + 1] - w) / self.step if self.linear and not last else np.zeros_like(w)
            yield i * self.step if i else 0.0, np.inf if last else (i + 1) * self.step, np.concatenate([w, rate], axis=-1)
            if (i + 1) * self.step >= end and not last:
                return


class Solved(NamedTuple):
    """Solutions of runs.   records: (times, runs, signals).   q_v: (times, runs, nq + nv).   lane: (runs, numbers) at the end.
    status: (runs,).   tried: (runs,) number of steps tried."""

    records: np.ndarray
    q_v: np.ndarray
    lane: np.ndarray
    status: np.ndarray
    tried: np.ndarray


@remembered(64)
def compiled_attempt(s: Simulation, backend: Backend, lanes: int, strict: bool) -> kernel.Rollout:
    """The compiled loop of a simulation under error control."""
    return kernel.compile_rollout(
        lambda: attempt(s), backend=backend, lanes=lanes, strict=strict, key=f"attempt {s.key}"
    )


@remembered(64)
def compiled_record(s: Simulation, backend: Backend, strict: bool) -> kernel.Kernel:
    """The compiled `record` of a simulation."""
    return kernel.compile(lambda: record(s), backend=backend, strict=strict, key=f"record {s.key}")


@remembered(64)
def compiled_start(s: Simulation, backend: Backend, strict: bool) -> kernel.Kernel:
    """The compiled `first_length` of a simulation."""
    return kernel.compile(lambda: first_length(s), backend=backend, strict=strict, key=f"first length {s.key}")


class Solver(NamedTuple):
    """What solves runs.   loop, recorder, starter: compiled.   inputs: of the runs.   p: (runs, np).   begin: [s].
    instants: (times,) of the records [s], since begin.   longest: greatest length of a step [s].   threads: of a call."""

    simulation: Simulation
    loop: kernel.Rollout
    recorder: kernel.Kernel
    starter: kernel.Kernel
    inputs: Inputs
    p: np.ndarray
    begin: float
    instants: np.ndarray
    longest: float
    threads: int

    def solve(self, x: np.ndarray, runs: np.ndarray, tolerance: np.ndarray, count: Any) -> Solved:
        """Solve runs from their states x (n, [x; z; d]), each with a tolerance (n,).

        runs: (n,) which run of the batch each is.   count: called with the parts of the whole that are done.
        """
        at, end = lane_of(self.simulation), float(self.instants[-1])
        lane = np.zeros((len(x), at.size))
        split = at.x.stop
        lane[:, at.x], lane[:, at.discrete] = x[:, :split], x[:, split:]
        lane[:, at.settings] = self.begin, 0.0, end, np.inf, 0.0, self.longest
        lane[:, at.settings.stop - 2] = tolerance
        solved = Solved(
            np.full((len(self.instants), len(x), self.loop_width), np.nan),
            np.full((len(self.instants), len(x), self.recorder.shape.outputs[1]), np.nan),
            lane, np.zeros(len(x), np.int32), np.zeros(len(x), np.int64),
        )  # fmt: skip
        for since, barrier, w in self.inputs.intervals(end):
            lane[:, at.settings.start + 1] = since
            lane[:, at.settings.start + 2] = min(end, barrier)
            lane[:, at.settings.start + 3] = barrier
            mine = w[runs] if w.ndim == 2 else w
            if since == 0:
                lane[:, at.length] = self.starter(lane, mine, self.p[runs])[0][:, 0]
            for first in range(0, len(x), BLOCK):
                self._pass(solved, slice(first, first + BLOCK), runs, mine, since, count)
        return solved

    @property
    def loop_width(self) -> int:
        return self.recorder.shape.outputs[0]

    def _pass(self, solved: Solved, block: slice, runs: np.ndarray, w: np.ndarray, since: float, count: Any) -> None:
        """Advance the lanes of a block to the end of an interval, and write their records."""
        at, lane = lane_of(self.simulation), solved.lane[block]
        end, status, tried = at.settings.start + 2, solved.status[block], solved.tried[block]
        p, w = self.p[runs[block]], w[block] if w.ndim == 2 else w
        n = FIRST_CALL
        while True:
            going = np.flatnonzero((status == 0) & (lane[:, at.time] < lane[:, end]) & (tried < ATTEMPTS))
            if not going.size:
                return
            left = ((lane[going, end] - lane[going, at.time]) / np.minimum(lane[going, at.length], self.longest)).max()
            most = min(n, max(4, CALL_BYTES // (8 * at.moving * len(going))))
            steps = int(min(most, 2 + np.ceil(min(left, most))))
            mine = w[going] if w.ndim == 2 else w
            r = self.loop(
                lane[going], mine[None], p[going], Span(0.0, 1.0, steps), threads=self.threads, status=status[going]
            )
            before = lane[going, at.time]
            self._record(solved, r.records, r.x, going + block.start, mine, p[going], at, since)
            lane[going], status[going] = r.x, r.status
            tried[going] += steps
            count(float((r.x[:, at.time] - before).sum()))
            n = min(2 * n, ATTEMPTS)

    def _record(
        self, solved: Solved, passed: np.ndarray, x: np.ndarray, going: np.ndarray, w: np.ndarray, p: np.ndarray, at: Lane, since: float
    ) -> None:
        """Write the records at instants within the steps that were made.   passed: (steps, lanes, numbers) before each."""
        times = np.concatenate([passed[:, :, at.time], x[None, :, at.time]])
        step, lanes, places = [], [], []
        for i in range(len(going)):
            begin = np.searchsorted(self.instants, times[0, i], "left" if times[0, i] == 0 and since == 0 else "right")
            stop = np.searchsorted(self.instants, min(times[-1, i], x[i, at.settings.start + 2]), "right")
            if stop > begin:
                step.append(np.maximum(np.searchsorted(times[:, i], self.instants[begin:stop], "left") - 1, 0))
                lanes.append(np.full(stop - begin, i))
                places.append(np.arange(begin, stop))
        if not step:
            return
        k, i, j = map(np.concatenate, (step, lanes, places))
        rows = np.concatenate([passed[k, i], x[i, at.moving :]], axis=1)
        w, p = (a[i] if a.ndim == 2 else a for a in (w, p))
        y, q_v = self.recorder(rows, w, p, self.instants[j][:, None], threads=self.threads)
        solved.records[j, going[i]], solved.q_v[j, going[i]] = y, q_v


class Controlled(NamedTuple):
    """Runs to an accuracy.   solved: of each run.   error: (times, runs, kinds), nan where it was not estimated.
    tolerance: (runs,) of the steps."""

    solved: Solved
    error: np.ndarray
    tolerance: np.ndarray
    interrupted: bool


def controlled(solver: Solver, x: np.ndarray, accuracy: float, estimated: np.ndarray, progress: bool) -> Controlled:
    """Solve runs from their states x (runs, [x; z; d]), until the estimate of their error is within the accuracy.

    estimated: runs whose error is estimated.
    """
    runs = len(x)
    tolerance = np.full(runs, max(PER_STEP * accuracy, SMALLEST))
    error = np.full((len(solver.instants), runs, 3), np.nan)
    whole, todo = None, np.arange(runs)
    total = float(solver.instants[-1]) * (runs + len(estimated))
    with progress_bar(100, "%", solver.simulation.mechanism.name, progress) as bar, interrupts():
        for _ in range(TRIES):
            second = np.intersect1d(todo, estimated)
            order = np.argsort(np.concatenate([todo, second]), kind="stable")  # both solutions of a run side by side
            which = np.concatenate([todo, second])[order]
            fine = (np.arange(len(order)) >= len(todo))[order]
            found = solver.solve(
                x[which], which, tolerance[which] / np.where(fine, FINER, 1.0), lambda s: bar(100 * s / total if total else 0)
            )
            coarse = Solved(*(a[:, ~fine] if a.ndim == 3 else a[~fine] for a in found))
            if whole is None:
                whole = coarse
            else:
                for old, new in zip(whole, coarse, strict=True):
                    if old.ndim == 3:
                        old[:, todo] = new
                    else:
                        old[todo] = new
            if not second.size:
                break
            place = np.searchsorted(todo, second)
            pair = Solutions(coarse.q_v[:, place], found.q_v[:, fine])
            error[:, second] = global_error(solver.simulation.mechanism, pair, solver.p[second])
            with np.errstate(all="ignore"):
                worst = np.nanmax(error[:, second], axis=(0, 2))
                again = (worst > accuracy) & (tolerance[second] > SMALLEST) & (coarse.status[place] == 0)
                factor = np.clip(AIM * accuracy / worst, MOST_SHORTENED, AIM)
            todo = second[again]
            if not todo.size:
                break
            tolerance[todo] = np.maximum(tolerance[todo] * factor[again], SMALLEST)
    return Controlled(whole, error, tolerance, False)
