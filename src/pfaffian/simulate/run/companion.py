"""The global error of runs with steps of one length, from a second solution by the same rule with steps twice as long.

With p the order of the rule, the error of the second solution is 2^p times that of the run, as long as the steps are short
enough for the order to show. Where something happens at single steps, or the longer steps fail, the second solution takes
steps half as long instead.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from pfaffian.simulate.error.global_error import ERROR_KINDS, ROUNDING, Solutions, global_error
from pfaffian.simulate.run.roll import LoopStart, first_step, initial_status
from pfaffian.simulate.run.singular_start import REGULAR
from pfaffian.simulate.step.integrators import INTEGRATORS
from pfaffian.simulate.step.signals import entries_of
from pfaffian.simulate.step.time_loop import Loop
from pfaffian.states.system import show

SAMPLE = 32
"""One run of a batch in this many has its error estimated: those whose numbers are its multiples."""

LARGE = 0.05
"""Difference of two solutions from which on no order shows, and the difference itself counts as the error."""

CALL_BYTES = 2**26
"""Memory for the records of one call [bytes]."""


class Motion(NamedTuple):
    """The motion of runs.   times: (times,) of the records.   q_v: (times, runs, nq + nv) at each record; None where q or v is
    not recorded.   end: (runs, nx) last states.   status: (runs,)."""

    times: np.ndarray
    q_v: np.ndarray | None
    end: np.ndarray
    status: np.ndarray


def estimated_error(loop: Loop, start: LoopStart, motion: Motion) -> np.ndarray:
    """(times, runs, kinds) the estimated error of a batch at its records; nan where it is not estimated, and, if q and v are
    not recorded, before the end.

    start: of the runs.   motion: what they recorded.
    """
    count, when = len(motion.status), loop.when
    error = np.full((when.records, count, len(ERROR_KINDS)), np.nan)
    if loop.python or not when.steps:
        return error
    runs = np.arange(0, count, SAMPLE if count > 1 else 1)
    if doubled := _doubled(loop):
        error[:, runs] = _compared(doubled, start, motion, runs, 2 ** _order(loop) - 1)
        runs = runs[np.isnan(error[-1, runs]).any(axis=1) & (motion.status[runs] == 0)]
    if runs.size:
        error[:, runs] = _compared(_halved(loop), start, motion, runs, 1 - 2.0 ** -_order(loop))
    return error


def _order(loop: Loop) -> int:
    """The order of the integrator."""
    return INTEGRATORS.named(loop.simulation.scheme.integrator or "").order


def _doubled(loop: Loop) -> Loop | None:
    """The loop with steps twice as long; None if that leaves out something that happens at a single step."""
    when, series = loop.when, len(loop.series) > 1
    whole = [when.steps, when.first, *(k for pair in loop.due for k in pair), *([when.stride] if series else [])]
    if any(k % 2 for k in whole) or loop.simulation.changing.names or loop.simulation.scheme.stiff:
        return None
    due = [(period // 2, phase // 2) for period, phase in loop.due]
    every, stride = (when.every if when.every % 2 else when.every // 2), max(1, when.stride // 2)
    steps = {"step": when.step * 2, "steps": when.steps // 2, "first": when.first // 2}
    return replace(loop, when=when._replace(**steps, every=every, stride=stride), due=due, tally=None)


def _halved(loop: Loop) -> Loop:
    """The loop with steps half as long."""
    when = loop.when
    due = [(period * 2, phase * 2) for period, phase in loop.due]
    steps = {"step": when.step / 2, "steps": when.steps * 2, "first": when.first * 2}
    return replace(loop, when=when._replace(**steps, every=when.every * 2, stride=when.stride * 2), due=due, tally=None)


def _compared(other: Loop, start: LoopStart, motion: Motion, runs: np.ndarray, ratio: float) -> np.ndarray:
    """(times, runs, kinds) the error of runs, from the motion with other steps.   ratio: of the difference to the error."""
    s, when, records = other.simulation, other.when, len(motion.times)
    found = _motion(other, start, runs)
    if motion.q_v is None:
        mine, its = (_shown(other, x, runs)[None] for x in (motion.end[runs], found.end))
        its[:, found.status != 0] = np.nan
        known = np.array([records - 1])
    else:
        known = np.linspace(0, records - 1, len(found.q_v)).astype(int)
        mine, its = motion.q_v[known][:, runs], found.q_v
    off = global_error(s.mechanism, Solutions(its, mine), other.p[runs], when.step * when.steps)
    error = np.full((records, len(runs), off.shape[2]), np.nan)
    error[known] = ROUNDING + np.minimum(off, off / ratio + off * np.minimum(1.0, off / LARGE))
    between = np.setdiff1d(np.arange(records), known) if motion.q_v is not None else known[:0]
    error[between] = np.fmax(error[between - 1], error[np.minimum(between + 1, records - 1)])
    return error


def _shown(loop: Loop, x: np.ndarray, runs: np.ndarray) -> np.ndarray:
    """(runs, nq + nv) q and v of last states."""
    s, when = loop.simulation, loop.when
    return np.concatenate(show(s.system, x, s.parameters(loop.p[runs], x), when.start + when.step * when.end), axis=1)


def _motion(loop: Loop, start: LoopStart, runs: np.ndarray) -> Motion:
    """The motion of runs with the steps of a loop."""
    s, when = loop.simulation, loop.when
    loop = replace(loop, series=loop.series[:, runs] if loop.series.ndim == 3 else loop.series, p=loop.p[runs])
    x, kinds, at = start.x[runs], start.kinds[runs], entries_of(s.signals)
    status, stopped = (a[runs] for a in initial_status(s, start.start, len(start.kinds), when.first))
    done, q_v = 0, list[np.ndarray]()
    most = max(1, CALL_BYTES // (8 * len(runs) * max(s.width, 1))) * when.every
    while done < when.steps:
        k, first = when.first + done, done == 0 and (kinds != REGULAR).any()
        n = 1 if first else min(most, when.steps - done)
        last = done + n == when.steps
        if first:
            r = first_step(loop, x, k, kinds, status, stopped)
        else:
            r = loop.steps(x, slice(None), k, n, last, status=status, stopped=stopped)
        x, status, stopped, done = r.x, r.status, r.stopped, done + n
        q_v.append(np.concatenate([r.records[:, :, at[name]] for name in ("q", "v") if name in at], axis=2))
    return Motion(when.start + when.step * when.every * np.arange(when.records), np.concatenate(q_v), x, status)
