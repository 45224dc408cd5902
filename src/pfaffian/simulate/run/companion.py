"""The global error of runs with steps of one length, from solutions by the same rule with steps two and four times as long.

The ratio of the differences between the three tells by which factor twice the step multiplies the error: 2^p for a rule of
order p whose steps are short enough. Where that does not show, where something happens at single steps, or where the longer
steps fail, a solution with steps half as long takes their place.
"""

from __future__ import annotations

import time
from dataclasses import replace
from math import gcd
from typing import Any, NamedTuple

import numpy as np

from pfaffian.errors import ModelError, RunWarning, brief, notice
from pfaffian.simulate.error.global_error import ERROR_KINDS, OF_SPEEDS, ROUNDING, Solutions, global_error, largest_speeds
from pfaffian.simulate.record.event_names import numbers_of
from pfaffian.simulate.run.roll import LoopStart, first_step, next_steps
from pfaffian.simulate.run.singular_start import REGULAR
from pfaffian.simulate.step.events import eventful
from pfaffian.simulate.step.inputs import Times
from pfaffian.simulate.step.integrators import INTEGRATORS
from pfaffian.simulate.step.signals import entries_of
from pfaffian.simulate.step.time_loop import TimeLoop
from pfaffian.states.abstract_system import show

SAMPLE = 32
"""One run of a batch in this many has its error estimated: those whose numbers are its multiples."""

LIKE = 1.2
"""How many times smaller or larger than that of the order the factor between two step lengths may be to count as it."""

NEXT = 2.0
"""How many times larger than that of the order the factor is at most: that of the next order, of which is the energy that a
motion without dissipation loses, and so the phase that grows from it. More is chance."""

UNLIKE = 4.0
"""How many times larger than that of the order the factor may be; beyond, solutions are alike by chance."""

SMALL = 1e-11
"""Differences up to this may be rounding."""

LOOKS, MOST_BETWEEN = 64, 2_000
"""Number of instants at which the largest speed of a run is looked for, if it has fewer records; and the most between two."""

CALL_BYTES = 2**26
"""Memory for the records of one call [bytes]."""

FIRST_CALL = 1_000
"""Most steps of the first call."""


class RecordedMotion(NamedTuple):
    """The motion of runs.   times: (times,) of the records.   q_v: (times, runs, nq + nv) at each record; None where q or v is
    not recorded.   end: (runs, nx) last states.   status: (runs,)."""

    times: np.ndarray
    q_v: np.ndarray | None
    end: np.ndarray
    status: np.ndarray

    def every(self, number: int) -> RecordedMotion:
        """The motion with only every so many records."""
        return self._replace(times=self.times[::number], q_v=None if self.q_v is None else self.q_v[::number])


def as_estimated(error: Any, runs: int) -> np.ndarray:
    """Indices of the runs whose error is estimated.   error: True, False, (runs,) of these, or None: every SAMPLE-th run.

    Raises ModelError: it is none of these.
    """
    if error is None:
        return np.arange(0, runs, SAMPLE)
    flags = np.asarray(error)
    if flags.dtype != bool or flags.shape not in ((), (runs,)):
        raise ModelError(f"error: True, False or ({runs},) of these are needed, got {brief(error)}")
    return np.flatnonzero(np.broadcast_to(flags, runs))


def estimated_error(loop: TimeLoop, start: LoopStart, motion: RecordedMotion, runs: np.ndarray) -> np.ndarray:
    """(times, batch, kinds) the estimated error of runs of a batch at their records; nan for all others, and, if q and v are
    not recorded, before the end.

    start: of the batch.   motion: what it recorded.   runs: indices of the runs whose error is estimated.
    """
    count, when = len(motion.status), loop.when
    error = np.full((when.records, count, len(ERROR_KINDS)), np.nan)
    if loop.python or not when.steps or not runs.size:
        return error
    try:
        _estimate(error, loop, start, motion, runs)
    except KeyboardInterrupt:  # the runs themselves are complete, and their result must not be lost
        notice("Ctrl-C ended the estimate of the error, which is nan; the runs are complete", RunWarning)
        error[:] = np.nan
    error[:, runs] += ROUNDING
    return error


def _estimate(error: np.ndarray, loop: TimeLoop, start: LoopStart, motion: RecordedMotion, runs: np.ndarray) -> None:
    """Write the estimated error of runs into `error` (times, batch, kinds)."""
    eventless, passing = runs, runs[:0]
    if eventful(loop.simulation):
        passes = _passed_events(loop, start, motion, runs)
        eventless, passing = runs[~passes], runs[passes]
    unclear = eventless
    if eventless.size and loop.when.steps % 4 == 0 and (twice := _longer(loop, 2)) and (four := _longer(loop, 4)):
        (first, ended), (second, also) = (_differences(other, start, motion, eventless) for other in (twice, four))
        ratio = _ratio(first, second, _order(loop))
        of_order = 2.0 ** _order(loop)
        alike = (ratio >= of_order / LIKE) & (ratio <= of_order * LIKE)
        error[:, eventless] = _filled(first / (np.where(alike, of_order, np.minimum(ratio, NEXT * of_order)) - 1))
        other = ((ratio < of_order / 2) | (ratio > UNLIKE * of_order)).any(axis=1)
        unclear = eventless[(ended | also | other) & (motion.status[eventless] == 0)]
    if passing.size:
        unclear, start = np.union1d(unclear, passing), _finer(loop, start)
    if unclear.size:
        error[:, unclear] = _differences(_halved(loop), start, motion, unclear)[0] / (1 - 2.0 ** -_order(loop))


def _passed_events(loop: TimeLoop, start: LoopStart, motion: RecordedMotion, runs: np.ndarray) -> np.ndarray:
    """(len(runs),) whether runs passed events. What lies between two events of a step is one part of it, of whatever length, so
    that longer steps do not tell its error."""
    s = loop.simulation
    return numbers_of(s, motion.end[runs]).total > numbers_of(s, start.x[runs]).total


def _finer(loop: TimeLoop, start: LoopStart) -> LoopStart:
    """The start with what lies between two events of a step made in two parts, see `EventNumbers`."""
    s = loop.simulation
    numbers = numbers_of(s, start.x)._replace(finer=np.ones(len(start.x)))
    events = s.nx - s.layout.size + np.arange(s.layout.size)[s.layout.events]
    x = start.x.copy()
    x[:, events] = np.stack(numbers, axis=1)
    return start._replace(x=x)


def _ratio(twice: np.ndarray, four: np.ndarray, order: int) -> np.ndarray:
    """(runs, kinds) the factor by which steps twice as long multiply the error.

    twice, four: (times, runs, kinds) differences of the run from solutions with steps two and four times as long. Differences
    that hardly grow are rounding, or as large as they can become, so that no order shows.
    """
    known = np.isfinite(twice) & np.isfinite(four)
    near, far = (np.where(known, x, 0.0).max(axis=0) for x in (twice, four))
    with np.errstate(all="ignore"):
        ratio = np.where(near > SMALL, (far - near) / near, 2.0**order)
    return np.maximum(ratio, 2.0)


def _filled(error: np.ndarray) -> np.ndarray:
    """The errors, at records between two others the larger of these."""
    times = np.arange(len(error))
    known = np.flatnonzero(np.isfinite(error).any(axis=(1, 2)))
    if not known.size:
        return error
    before = known[np.maximum(np.searchsorted(known, times, "right") - 1, 0)]
    after = known[np.minimum(np.searchsorted(known, times, "left"), len(known) - 1)]
    return np.fmax(error[before], error[after])


def _order(loop: TimeLoop) -> int:
    """The order of the integrator."""
    return INTEGRATORS.named(loop.simulation.scheme.integrator or "").order


def _longer(loop: TimeLoop, times: int) -> TimeLoop | None:
    """The loop with steps so many times as long; None if that leaves out something that happens at a single step."""
    when, series = loop.when, len(loop.series) > 1
    whole = [when.steps, when.first, *(k for pair in loop.due for k in pair), *([when.stride] if series else [])]
    if any(k % times for k in whole) or loop.simulation.changing.names or loop.simulation.scheme.stiff:
        return None
    due = [(period // times, phase // times) for period, phase in loop.due]
    every = when.every * times // gcd(when.every, times) // times
    steps: dict[str, Any] = {"step": when.step * times, "steps": when.steps // times, "first": when.first // times}
    return replace(loop, when=when._replace(**steps, every=every, stride=max(1, when.stride // times)), due=due, tally=None)


def _halved(loop: TimeLoop) -> TimeLoop:
    """The loop with steps half as long."""
    when = loop.when
    due = [(period * 2, phase * 2) for period, phase in loop.due]
    steps: dict[str, Any] = {"step": when.step / 2, "steps": when.steps * 2, "first": when.first * 2}
    return replace(loop, when=when._replace(**steps, every=when.every * 2, stride=when.stride * 2), due=due, tally=None)


def _differences(other: TimeLoop, start: LoopStart, motion: RecordedMotion, runs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(times, runs, kinds) the differences of runs from their motion with other steps, nan where one of them has no record;
    and (runs,) whether that motion stopped."""
    s, when, records = other.simulation, other.when, len(motion.times)
    between = _between(when) if records < LOOKS else 1
    found = _motion(replace(other, when=when._replace(every=when.every // between)), start, runs)
    speeds = largest_speeds(s.mechanism, found.q_v) if found.q_v is not None and between > 1 else {}
    found = found.every(between)
    if motion.q_v is None or found.q_v is None:
        mine, its = (_coordinates(other, x, runs)[None] for x in (motion.end[runs], found.end))
        its[:, found.status != 0] = np.nan
        known = np.array([records - 1])
    else:
        known = np.searchsorted(motion.times, found.times - np.diff(motion.times[:2]).sum() / 2)
        mine, its = motion.q_v[known][:, runs], found.q_v
    difference = np.full((records, len(runs), len(ERROR_KINDS)), np.nan)
    duration, both = when.step * when.steps, Solutions(its, mine)
    difference[known] = global_error(s.mechanism, both, other.p[runs], duration, speeds, OF_SPEEDS)
    return difference, found.status != 0


def _between(when: Times) -> int:
    """Number of parts of the time between two records, so that there are LOOKS parts in all; 1 if no such number is found."""
    parts = (n for n in range(1, MOST_BETWEEN) if when.every % n == 0 and when.steps * n >= LOOKS * when.every)
    return next(parts, 1)


def _coordinates(loop: TimeLoop, x: np.ndarray, runs: np.ndarray) -> np.ndarray:
    """(runs, nq + nv) q and v of last states."""
    s, when = loop.simulation, loop.when
    return np.concatenate(show(s.system, x, s.parameters(loop.p[runs], x), when.start + when.step * when.end), axis=1)


def _motion(loop: TimeLoop, start: LoopStart, runs: np.ndarray) -> RecordedMotion:
    """The motion of runs with the steps of a loop."""
    s, when = loop.simulation, loop.when
    loop = replace(loop, series=loop.series[:, runs] if loop.series.ndim == 3 else loop.series, p=loop.p[runs])
    x, kinds, at = start.x[runs], start.kinds[runs], entries_of(s.signals)
    status, stopped = np.zeros(len(runs), np.int32), np.full(len(runs), -1)  # records of runs that cannot start are nan
    done, q_v, call = 0, list[np.ndarray](), FIRST_CALL
    few = when.steps * len(runs) <= FIRST_CALL
    most = when.steps if few else max(1, CALL_BYTES // (8 * len(runs) * max(s.width, 1))) * when.every
    while done < when.steps:
        clock, k, first = time.perf_counter(), when.first + done, done == 0 and (kinds != REGULAR).any()
        n = 1 if first else min(most, call, when.steps - done)
        last = done + n == when.steps
        if first:
            r = first_step(loop, x, k, kinds, status, stopped)
        else:
            r = loop.steps(x, slice(None), k, n, last, status=status, stopped=stopped)
        x, status, stopped, done = r.x, r.status, r.stopped, done + n
        if not few and not first:
            call = next_steps(n, time.perf_counter() - clock)
        if {"q", "v"} <= set(at):
            q_v.append(np.concatenate([r.records[:, :, at["q"]], r.records[:, :, at["v"]]], axis=2))
    times = when.start + when.step * when.every * (when.first // when.every + np.arange(when.records))
    return RecordedMotion(times, np.concatenate(q_v) if q_v else None, x, status)
