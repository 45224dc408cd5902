"""The error of the steps between the comparisons of a run, estimated from the recorded speeds.

The error of a step of a rule of order p is h^(p+1) times derivatives of the motion of order p + 1, and the differences of that
order of recorded speeds rise and fall with these derivatives. They show where a motion changes fast for a short time, as when
wheels turn until they stand across a body, which a few comparisons at equal distances miss. Where a difference is much larger
than at every comparison, the step there is compared as well. The error at the compared step of the largest difference, over
that difference, is the error per unit of difference; times the sum of the differences it gives the error of all steps.

Where speeds jump, under piecewise constant inputs or in impacts, the differences measure the jump and not the error of the
steps. The estimate is then too small, and never the cause of a warning.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pfaffian.simulate.error.accuracy import StepErrorMonitor
from pfaffian.simulate.error.comparisons import Comparison
from pfaffian.simulate.error.sizes import relative
from pfaffian.states.abstract_system import enter

INSTANTS, INSTANTS_OTHER_STATE = 2**6, 2**10
"""Largest number of instants at which differences are taken, so that a long run takes no longer; more of them for states other
than [q; v], since reduced directions turn faster."""

NOISE = 1e-11
"""Differences below this, relative to the largest speeds, are rounding."""

BURST = 3.0
"""The step of the largest difference is compared if that difference exceeds this many times those at comparisons."""

MOST_ERROR = 1.0
"""Upper bound of the error of a step per unit of its difference: a hundred times its value in an oscillation."""

BLOCK = 2**10
"""Runs whose differences are taken at once."""


class RecordedSpeeds(NamedTuple):
    """Differences of the recorded speeds of some runs, relative to the largest speeds.

    runs: (n,) runs of the batch.   steps: (instants,) the step in the middle of each difference.   records: (instants,) the
    record before that step.   size: (instants, n) the largest difference of all entries of v, zero after a stop.
    total: (n,) sum of the differences over all steps of a run.
    """

    runs: np.ndarray
    steps: np.ndarray
    records: np.ndarray
    size: np.ndarray
    total: np.ndarray

    def at(self, step: int) -> np.ndarray:
        """(n,) the differences nearest to a step."""
        return self.size[np.abs(self.steps - step).argmin()]


def add_bursts(
    watch: StepErrorMonitor, q: np.ndarray, v: np.ndarray, stopped: np.ndarray, error: np.ndarray, balance_errors: np.ndarray
) -> None:
    """Raise, in place, the errors of `Watch.gathered` to those that the differences of recorded speeds indicate, if larger.

    Errors of a run whose state is not [q; v] are always examined, others only if they may exceed the bound of the run.
    q, v: (times, runs, nq or nv), (times, runs, 0) if not recorded.   stopped: see `Watch.gathered`.   error: (runs,) and
    balance_errors: (runs, 1 + momenta), as it returns them.
    """
    errors, finite = 1 + len(watch.halves.sizes.units), np.flatnonzero(np.isfinite(error))
    for begin in range(0, len(finite) if v.shape[2] else 0, BLOCK):
        speeds = _recorded_speeds(watch, v, stopped, finite[begin : begin + BLOCK])
        if speeds is None:
            return
        if not (watch.loop.simulation.system.other_state or (MOST_ERROR * speeds.total > watch.bound).any()):
            continue
        runs, estimate = speeds.runs, _error_per_difference(watch, speeds, q, v) * speeds.total[:, None]
        error[runs] = np.fmax(error[runs], relative(estimate[:, :errors], watch.largest[runs]))
        energy = slice(0, estimate.shape[1] - errors)
        balance_errors[runs, energy] = np.fmax(balance_errors[runs, energy], estimate[:, errors:])


def _recorded_speeds(watch: StepErrorMonitor, v: np.ndarray, stopped: np.ndarray, runs: np.ndarray) -> RecordedSpeeds | None:
    """The RecordedSpeeds of some runs; None if there are too few records."""
    n, when = watch.halves.order + 1, watch.loop.when
    count = len(v) - n
    if count < 1:
        return None
    every = -(-count // (INSTANTS_OTHER_STATE if watch.loop.simulation.system.other_state else INSTANTS))
    speeds = v if len(runs) == v.shape[1] else v[:, runs]
    differences = sum(weight * speeds[j : count + j : every] for j, weight in enumerate(np.diff(np.eye(n + 1), n, axis=0)[0]))
    largest = watch.largest[runs][:, [watch.halves.sizes.units.index(unit) for unit in watch.mechanism.v_units]]
    with np.errstate(all="ignore"):
        size = (np.abs(differences) / largest).max(axis=2)
    size[~np.isfinite(size)] = 0
    records = np.arange(0, count, every) + n // 2
    steps = np.where(stopped[runs] < 0, when.end, stopped[runs]) - when.first
    return RecordedSpeeds(runs, when.first + records * when.every, records, size, size.mean(axis=0) * steps)


def _error_per_difference(watch: StepErrorMonitor, speeds: RecordedSpeeds, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """(n, 1 + units + energy) error of a step per unit of difference; nan for runs whose comparisons are sufficient."""
    n, width = len(speeds.runs), 1 + len(watch.halves.sizes.units) + watch.halves.energy.stop - watch.halves.energy.start
    largest, errors = np.full(n, NOISE), np.full((n, width), np.nan)
    for comparison in watch.comparisons:
        _update_largest(speeds.at(comparison.k), comparison, speeds.runs, largest, errors)
    burst, peak = speeds.size.max(axis=0) > BURST * largest, speeds.size.argmax(axis=0)
    if not watch.loop.simulation.system.other_state:
        burst &= MOST_ERROR * speeds.total > watch.bound
    for i in np.unique(peak[burst]).tolist() if _state_recorded(watch, q) else ():
        selected = speeds.runs[burst & (peak == i)]
        _update_largest(speeds.size[i], _compared(watch, speeds, q, v, i, selected), speeds.runs, largest, errors)
    errors[~burst] = np.nan
    return errors / largest[:, None]


def _compared(
    watch: StepErrorMonitor, speeds: RecordedSpeeds, q: np.ndarray, v: np.ndarray, i: int, runs: np.ndarray
) -> Comparison:
    """Compare, for some runs, the step in the middle of difference i."""
    when, step, at = watch.loop.when, int(speeds.steps[i]), speeds.records[i]
    t = when.start + step * when.step
    x = enter(watch.loop.simulation.system, q[at, runs], v[at, runs], watch.loop.p[runs], t)
    return watch.compared(step, x, runs)


def _update_largest(
    size: np.ndarray, comparison: Comparison, runs: np.ndarray, largest: np.ndarray, errors: np.ndarray
) -> None:
    """Store, in place, the errors of a comparison for runs whose difference there, `size` (n,), is larger than any before,
    unless something jumps within the step.   largest: (n,) differences.   errors: (n, 1 + units + energy)."""
    found = np.concatenate([comparison.error[runs], np.abs(comparison.balance_errors[runs])], axis=1)[:, : errors.shape[1]]
    larger = (size > largest) & np.isfinite(found[:, 0]) & ~comparison.jumps[runs]
    largest[larger], errors[larger] = size[larger], found[larger]


def _state_recorded(watch: StepErrorMonitor, q: np.ndarray) -> bool:
    """Whether the records determine the whole state: q is recorded, no law has a state, there are no modes and no law in
    Python."""
    s = watch.loop.simulation
    return bool(q.shape[2]) and s.nx == s.system.nx and not watch.loop.python
