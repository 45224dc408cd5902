"""The time loop of a run: calls of the compiled loop, short enough to be interrupted. Where a call ends changes no bit."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pfaffian.evaluate.progress import progress_bar
from pfaffian.kernel.program.numpy_loop import RolloutResult
from pfaffian.simulate.error.accuracy import StepErrorMonitor
from pfaffian.simulate.error.advice import warn_of_first_steps, warn_of_stiffness
from pfaffian.simulate.record.event_table import PassedEvents
from pfaffian.simulate.record.result import INTERRUPTED, causes_of
from pfaffian.simulate.run.interrupt import interrupts
from pfaffian.simulate.run.python_law import PythonLaw
from pfaffian.simulate.run.singular_start import REGULAR, entering
from pfaffian.simulate.run.step_events import events_at_end, step_events
from pfaffian.simulate.step.simulation import Simulation
from pfaffian.simulate.step.time_loop import TimeLoop
from pfaffian.starts.start import Start
from pfaffian.states.abstract_system import enter

CALL_SECONDS = 0.5
"""Approximate duration of one call of the compiled loop [s]; Ctrl-C and the progress bar wait until the call ends."""

FIRST_LANE_STEPS = 20_000
"""Number of steps times runs in the first call; its duration sets the number of steps in the next."""

GROWTH = 8
"""Largest ratio of the number of steps in one call to that in the call before."""

BLOCK = 2**16
"""Most runs in one call of the compiled loop, so that the memory of a call does not grow with the batch."""

CALL_BYTES = 2**27
"""Memory for the records of one call [bytes], in addition to the complete record, into which they are copied."""


class LoopStart(NamedTuple):
    """The start of the time loop.   x: (runs, nx) initial states.   start: how they were put onto the constraints.
    kinds: (runs,) the kind of each start, see `entrances`."""

    x: np.ndarray
    start: Start
    kinds: np.ndarray


class LoopResult(NamedTuple):
    """The result of the time loop.   x: (runs, nx) last good states.   records: (times, runs, signals).
    status: (runs,).   stopped: (runs,) step at which a run stopped, -1 if it finished.
    warned: whether a warning about the first step was given.   tiers: backends that computed the steps, in order.
    interrupted: whether Ctrl-C ended the runs that had not finished.   events: that a single run passed."""

    x: np.ndarray
    records: np.ndarray
    status: np.ndarray
    stopped: np.ndarray
    warned: bool
    tiers: tuple[str, ...]
    interrupted: bool = False
    events: tuple[PassedEvents, ...] = ()


@dataclass
class _Runs:
    """The progress of the time loop.   done: number of steps taken.   filled: number of records written.
    The other fields are those of Departure and Rolled."""

    watch: StepErrorMonitor
    python: PythonLaw | None
    kinds: np.ndarray
    x: np.ndarray
    status: np.ndarray
    stopped: np.ndarray
    records: np.ndarray
    done: int = 0
    filled: int = 0
    warned: bool = False
    tiers: tuple[str, ...] = ()
    events: tuple[PassedEvents, ...] = ()

    @property
    def loop(self) -> TimeLoop:
        return self.watch.loop

    @property
    def k(self) -> int:
        """Index of the next step."""
        return self.loop.when.first + self.done

    def evaluate_law(self) -> None:
        """Evaluate the law in Python and its sensors, if they are due; runs in which the law fails stop."""
        if self.python is not None and self.python.is_due(self.k):
            self.x, self.status, self.stopped = self.python.answered(self.x, self.k, self.status, self.stopped)

    def check_step(self) -> None:
        """Compare the next step with two half steps, if a comparison is due. Before the first step, warn if its error is too
        large, and of springs and dampers that are too fast for the steps.
        """
        if self.k in self.watch.at:
            first = self.done == 0
            if first and self.python:
                self.watch.begin = self.x.copy()  # with the law's first inputs; x changes in place
            self.watch.compare(self.k, self.x, (self.status == 0) & ((self.kinds == REGULAR) | (not first)))
            self.warned = (first and warn_of_first_steps(self.watch)) or self.warned
        if self.done == 0:
            warn_of_stiffness(self.watch, self.watch.begin, self.warned)

    def store(self, r: RolloutResult, at: slice) -> int:
        """Store the result of a call for the runs `at`; returns its number of records."""
        self.x[at], self.status[at], self.stopped[at] = r.x, r.status, r.stopped
        self.tiers += () if r.tier in self.tiers[-1:] else (r.tier,)
        if r.parts.size:
            self.events += step_events(self.loop, r.parts)
        records = r.records if self.loop.tally is None else self.loop.tally.add(r.records, self.k, at.start)
        self.records[self.filled : self.filled + len(records), at] = records
        return len(records)

    def advance(self, steps: int, last: bool) -> None:
        """Take the next steps of the compiled loop, block by block of runs.   last: whether to record the last state."""
        count = 0
        for begin in range(0, len(self.status), BLOCK):
            at = slice(begin, begin + BLOCK)
            so_far = {"status": self.status[at], "stopped": self.stopped[at]}
            count = self.store(self.loop.steps(self.x[at], at, self.k, steps, last, **so_far), at)
        self.done, self.filled = self.done + steps, self.filled + count

    def end(self, interrupted: bool) -> LoopResult:
        """The result. If interrupted, runs that had not finished are marked as stopped, and missing records are NaN."""
        if interrupted:
            running = self.status == 0
            self.status[running], self.stopped[running] = causes_of(self.loop.simulation).index(INTERRUPTED), self.k
            self.records[self.filled :] = np.nan
        elif len(self.status) == 1 and not self.status.any():
            self.events += events_at_end(self.loop, self.x, self.k)
        so_far = self.x, self.records, self.status, self.stopped, self.warned, self.tiers
        return LoopResult(*so_far, interrupted, self.events)

    def enter(self) -> None:
        """Take the first step; runs that start in a singular configuration take a special one."""
        k, at = self.k, np.flatnonzero(self.kinds != REGULAR)
        x, status, stopped = self.x[at], self.status[at], self.stopped[at]
        self.advance(1, False)
        singular = _singular_step(self.loop, x, k, at, status, stopped)
        self.x[at], self.status[at], self.stopped[at] = singular.x, singular.status, singular.stopped


def roll(watch: StepErrorMonitor, departure: LoopStart, python: PythonLaw | None, progress: bool) -> LoopResult:
    """Take all steps.   watch: compares some with half steps.   python: a law that is called between compiled steps."""
    loop, when, width = watch.loop, watch.loop.when, watch.loop.simulation.width
    runs, count = _begun(watch, departure, python), len(departure.kinds)
    watch.begin = departure.x
    if when.steps and (departure.kinds != REGULAR).any():
        runs.evaluate_law()
        runs.check_step()
        runs.enter()
    n, most = max(1, FIRST_LANE_STEPS // count), max(1, CALL_BYTES // (8 * min(count, BLOCK) * max(width, 1))) * loop.every
    name = f"{loop.simulation.mechanism.name}{', a law in Python: slow' if python else ''}"
    with progress_bar(when.steps, "step", name, progress, runs.done) as count_steps, interrupts() as interrupted:
        while True:
            clock, before = time.perf_counter(), runs.x
            runs.evaluate_law()
            runs.check_step()
            n = min(n, most, when.steps - runs.done, max(1, watch.until(runs.k)))
            n = min(n, python.until(runs.k)) if python else n
            # A law that is due at the end is evaluated for the last record, in one more pass without a step.
            last = runs.done + n == when.steps and not (python and n and python.is_due(when.end))
            runs.advance(n, last)
            if last and not n:
                runs.x = before  # samples at the end are only for its record: a run that continues takes them again
            count_steps(n)
            if last or interrupted():
                return runs.end(not last)
            n = next_steps(n, time.perf_counter() - clock)


def next_steps(steps: int, seconds: float) -> int:
    """Number of steps of the next call, if one of so many took so many seconds."""
    return max(1, int(min(GROWTH, CALL_SECONDS / max(seconds, 1e-6)) * steps))


def first_step(
    loop: TimeLoop, x: np.ndarray, k: int, kinds: np.ndarray, status: np.ndarray, stopped: np.ndarray
) -> RolloutResult:
    """Step k from the initial states x (runs, nx); runs that start in a singular configuration take a special step."""
    at = np.flatnonzero(kinds != REGULAR)
    r = loop.steps(x, slice(None), k, 1, False, status=status, stopped=stopped)
    singular = _singular_step(loop, x[at], k, at, status[at], stopped[at])
    r.x[at], r.status[at], r.stopped[at] = singular.x, singular.status, singular.stopped
    return r


def _singular_step(
    loop: TimeLoop, x: np.ndarray, k: int, at: np.ndarray, status: np.ndarray, stopped: np.ndarray
) -> RolloutResult:
    """Step k of the runs `at` of the batch, which start in singular configurations, from their states x."""
    series = loop.series[:, at] if loop.series.ndim == 3 else loop.series
    so_far: dict[str, Any] = {"status": status, "stopped": stopped}
    return entering(loop.simulation)(x, series, loop.p[at], loop.span(k, 1), **so_far)


def first_state(s: Simulation, begun: Start, t: float, runs: int, seed: Any) -> np.ndarray:
    """(runs, nx) initial states [x; z; d].   t: [s].   seed: of the sensors' noise."""
    x, z = enter(s.system, begun.q, begun.v, begun.p, t), np.array(s.z, dtype=float)
    d = s.layout.started(runs, seed, begun.p[:, s.changing.at])
    return np.hstack([np.broadcast_to(x, (runs, x.shape[1])), np.broadcast_to(z, (runs, len(z))), d])


def initial_status(s: Simulation, begun: Start, runs: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Status and stopping step (runs,) before step k: runs that cannot start have stopped there."""
    out = np.broadcast_to(np.array([bool(message) for message in begun.messages]), runs)
    return np.where(out, len(causes_of(s)) - 1, 0).astype(np.int32), np.where(out, k, -1).astype(np.int64)


def _begun(watch: StepErrorMonitor, departure: LoopStart, python: PythonLaw | None) -> _Runs:
    """The state of the time loop before the first step."""
    loop, count = watch.loop, len(departure.kinds)
    status, stopped = initial_status(loop.simulation, departure.start, count, loop.when.first)
    width = loop.simulation.width if loop.tally is None else len(loop.tally.stored_entries)
    records = np.empty((loop.when.records, width, count)).swapaxes(1, 2)
    x = departure.x.copy(order="F")  # departure.x stays unchanged
    return _Runs(watch, python, departure.kinds, x, status, stopped, records)
