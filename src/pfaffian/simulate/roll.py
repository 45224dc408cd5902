"""All steps of all runs, in calls short enough to be interrupted; where a call ends does not change a bit."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pfaffian.evaluate.progress import progress_bar
from pfaffian.kernel.program.loop import RolloutResult
from pfaffian.simulate.accuracy import Watch
from pfaffian.simulate.advice import tell_start, tell_stiff
from pfaffian.simulate.entrance import REGULAR, entering
from pfaffian.simulate.interrupt import interrupts
from pfaffian.simulate.loop import Loop
from pfaffian.simulate.python_law import PythonLaw
from pfaffian.simulate.result import INTERRUPTED, causes_of
from pfaffian.simulate.simulation import Simulation
from pfaffian.simulate.start import Start
from pfaffian.simulate.system import enter

CALL_SECONDS = 0.5
"""Duration of one call of the compiled loop, about: Ctrl-C and the progress bar wait for its end."""

FIRST_LANE_STEPS = 20_000
"""Steps times runs of the first call, whose duration decides how many the next may have."""

GROWTH = 8
"""Largest ratio of the steps of one call to those of the call before."""

BLOCK = 2**16
"""Runs in one call of the compiled loop: what a call takes beside the state does not grow with a batch."""

CALL_BYTES = 2**27
"""Memory that the records of one call may take besides the whole record, into which they are copied."""


class Departure(NamedTuple):
    """What runs start with.   x: (runs, nx) first states.   start: what was done to put them onto their constraints.
    kinds: (runs,) the kind of each start, see `entrances`."""

    x: np.ndarray
    start: Start
    kinds: np.ndarray


class Rolled(NamedTuple):
    """x: (runs, nx) last good states.   records: (times, runs, signals).   status, stopped: (runs,), the latter in steps.
    warned: whether a warning about the first step was given.   tiers: what computed the steps, in order.
    interrupted: whether Ctrl-C ended the runs that were on their way."""

    x: np.ndarray
    records: np.ndarray
    status: np.ndarray
    stopped: np.ndarray
    warned: bool
    tiers: tuple[str, ...]
    interrupted: bool = False


@dataclass
class _Runs:
    """Runs on their way, after `done` steps and with `filled` records; the others as in Departure and Rolled."""

    watch: Watch
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

    @property
    def loop(self) -> Loop:
        return self.watch.loop

    @property
    def k(self) -> int:
        """The next step."""
        return self.loop.when.first + self.done

    def ask(self) -> None:
        """Let the law in Python and its sensors answer, if they are due; runs in which it fails stop."""
        if self.python is not None and self.python.is_due(self.k):
            self.x, self.status, self.stopped = self.python.answered(self.x, self.k, self.status, self.stopped)

    def look(self) -> None:
        """Compare the next step with its halves, if that is due; warn of the first one, and of what no step can follow."""
        if self.k in self.watch.at:
            first = self.done == 0
            if first and self.python:
                self.watch.begin = self.x.copy()  # with the law's first answer; x changes in place
            self.watch.look(self.k, self.x, (self.status == 0) & ((self.kinds == REGULAR) | (not first)))
            self.warned = (first and tell_start(self.watch)) or self.warned
        if self.done == 0:
            tell_stiff(self.watch, self.watch.begin, self.warned)

    def take(self, r: RolloutResult, at: slice) -> int:
        """What a call has done for the runs `at`; the number of records."""
        self.x[at], self.status[at], self.stopped[at] = r.x, r.status, r.stopped
        self.tiers += () if r.tier in self.tiers[-1:] else (r.tier,)
        records = r.records if self.loop.tally is None else self.loop.tally.add(r.records, self.k, at.start)
        self.records[self.filled : self.filled + len(records), at] = records
        return len(records)

    def advance(self, steps: int, last: bool) -> None:
        """The next steps of the compiled loop, of some runs after the other."""
        made = 0
        for begin in range(0, len(self.status), BLOCK):
            at = slice(begin, begin + BLOCK)
            so_far = {"status": self.status[at], "stopped": self.stopped[at]}
            made = self.take(self.loop.steps(self.x[at], at, self.k, steps, last, **so_far), at)
        self.done, self.filled = self.done + steps, self.filled + made

    def end(self, interrupted: bool) -> Rolled:
        """What was computed. If interrupted, the runs on their way have stopped, and what they did not record is NaN."""
        if interrupted:
            running = self.status == 0
            self.status[running], self.stopped[running] = causes_of(self.loop.simulation).index(INTERRUPTED), self.k
            self.records[self.filled :] = np.nan
        return Rolled(self.x, self.records, self.status, self.stopped, self.warned, self.tiers, interrupted)

    def enter(self) -> None:
        """The first step."""
        k, at = self.k, np.flatnonzero(self.kinds != REGULAR)
        x, status, stopped = self.x[at], self.status[at], self.stopped[at]
        self.advance(1, False)
        own = _left(self.loop, x, k, at, status, stopped)
        self.x[at], self.status[at], self.stopped[at] = own.x, own.status, own.stopped


def roll(watch: Watch, departure: Departure, python: PythonLaw | None, progress: bool) -> Rolled:
    """All steps.   watch: compares some of them on the way.   python: the law that runs between compiled steps."""
    loop, when, width = watch.loop, watch.loop.when, watch.loop.simulation.width
    runs, count = _begun(watch, departure, python), len(departure.kinds)
    watch.begin = departure.x
    if when.steps and (departure.kinds != REGULAR).any():
        runs.ask()
        runs.look()
        runs.enter()
    n, most = max(1, FIRST_LANE_STEPS // count), max(1, CALL_BYTES // (8 * min(count, BLOCK) * max(width, 1))) * loop.every
    name = f"{loop.simulation.mechanism.name}{', a law in Python: slow' if python else ''}"
    with progress_bar(when.steps, "step", name, progress, runs.done) as count_steps, interrupts() as interrupted:
        while True:
            clock, before = time.perf_counter(), runs.x
            runs.ask()
            runs.look()
            n = min(n, most, when.steps - runs.done, max(1, watch.until(runs.k)))
            n = min(n, python.until(runs.k)) if python else n
            # A law that is due at the end answers for the last record.
            last = runs.done + n == when.steps and not (python and n and python.is_due(when.end))
            runs.advance(n, last)
            if last and not n:
                runs.x = before  # what is sampled at the end is for its record: a run that goes on samples it again
            count_steps(n)
            if last or interrupted():
                return runs.end(not last)
            seconds = max(time.perf_counter() - clock, 1e-6)
            n = max(1, int(min(GROWTH, CALL_SECONDS / seconds) * n))


def entered(loop: Loop, x: np.ndarray, k: int, kinds: np.ndarray, status: np.ndarray, stopped: np.ndarray) -> RolloutResult:
    """Step k from the states x (runs, nx), that of singular starts by a step of its own."""
    at = np.flatnonzero(kinds != REGULAR)
    r = loop.steps(x, slice(None), k, 1, False, status=status, stopped=stopped)
    own = _left(loop, x[at], k, at, status[at], stopped[at])
    r.x[at], r.status[at], r.stopped[at] = own.x, own.status, own.stopped
    return r


def _left(loop: Loop, x: np.ndarray, k: int, at: np.ndarray, status: np.ndarray, stopped: np.ndarray) -> RolloutResult:
    """Step k of singular starts, the runs `at` of the batch."""
    series = loop.series[:, at] if loop.series.ndim == 3 else loop.series
    so_far: dict[str, Any] = {"status": status, "stopped": stopped}
    return entering(loop.simulation)(x, series, loop.p[at], loop.span(k, 1), **so_far)


def first_state(s: Simulation, begun: Start, t: float, runs: int, seed: Any) -> np.ndarray:
    """(runs, nx) the state [x; z; d] at the start."""
    x, z = enter(s.system, begun.q, begun.v, begun.p, t), np.array(s.z, dtype=float)
    d = s.layout.started(runs, seed, begun.p[:, s.changing.at])
    return np.hstack([np.broadcast_to(x, (runs, x.shape[1])), np.broadcast_to(z, (runs, len(z))), d])


def shut_out(s: Simulation, begun: Start, runs: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Status and stopping step (runs,) before step k: runs that could not start have stopped."""
    out = np.broadcast_to(np.array([bool(message) for message in begun.messages]), runs)
    return np.where(out, len(causes_of(s)) - 1, 0).astype(np.int32), np.where(out, k, -1).astype(np.int64)


def _begun(watch: Watch, departure: Departure, python: PythonLaw | None) -> _Runs:
    """Before the first step."""
    loop, count = watch.loop, len(departure.kinds)
    status, stopped = shut_out(loop.simulation, departure.start, count, loop.when.first)
    width = loop.simulation.width if loop.tally is None else len(loop.tally.kept)
    records = np.empty((loop.when.records, width, count)).swapaxes(1, 2)
    x = departure.x.copy(order="F")  # departure.x stays as it is
    return _Runs(watch, python, departure.kinds, x, status, stopped, records)
