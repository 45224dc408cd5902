"""What the steps between the looks at a run err, told by the speeds that it recorded.

A step of a rule of order p errs by h^(p+1) times derivatives of the motion of order p + 1, and the differences of that order of
recorded speeds rise and fall as these do. So they tell where a motion turns fast for a short while, as wheels that come to
stand across a body do, which a few looks at even instants miss. If they are much larger somewhere than at any look, the step
there is compared as well; the largest difference at which a step was compared tells what one unit of difference costs, and
their sum the cost of all steps.

Where speeds jump, under inputs that are held or in impacts, differences tell of the jump and not of the steps: their sum is too
small then, never the reason of a warning.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pfaffian.simulate.accuracy import Watch
from pfaffian.simulate.looks import Look
from pfaffian.simulate.sizes import relative
from pfaffian.simulate.system import enter

INSTANTS, IN_OWN_STATE = 2**6, 2**10
"""Most instants at which differences are taken, so that those of a long run take no longer; reduced directions turn faster."""

NOISE = 1e-11
"""Differences below this, relative to the largest speeds, are made of rounding."""

BURST = 3.0
"""Ratio of the largest difference to those at looks from which on its step is compared."""

MOST = 1.0
"""A step errs by at most this times its difference, a hundred times as much as in an oscillation."""

BLOCK = 2**10
"""Runs whose differences are taken at once."""


class RecordedSpeeds(NamedTuple):
    """Differences of the speeds of some runs, relative to the largest speeds.

    runs: (n,) of the batch.   steps: (instants,) the step in the middle of each.   records: (instants,) the record before it.
    size: (instants, n) the largest of all entries of v, zero after a stop.   total: (n,) over all steps of each run.
    """

    runs: np.ndarray
    steps: np.ndarray
    records: np.ndarray
    size: np.ndarray
    total: np.ndarray

    def at(self, step: int) -> np.ndarray:
        """(n,) those nearest to a step."""
        return self.size[np.abs(self.steps - step).argmin()]


def add_bursts(watch: Watch, q: np.ndarray, v: np.ndarray, stopped: np.ndarray, error: np.ndarray, made: np.ndarray) -> None:
    """Raise, in place, what `Watch.gathered` found to what the differences of recorded speeds tell, where that is more.

    Numbers of a reduced or other own state are raised always, others where the errors may be beyond the bound of the run.
    q, v: (times, runs, nq or nv), (times, runs, 0) if not recorded.   error, made, stopped: see `Watch.gathered`.
    """
    errors, some = 1 + len(watch.halves.sizes.units), np.flatnonzero(np.isfinite(error))
    for begin in range(0, len(some) if v.shape[2] else 0, BLOCK):
        speeds = _recorded_speeds(watch, v, stopped, some[begin : begin + BLOCK])
        if speeds is None:
            return
        if not (watch.loop.simulation.system.own_state or (MOST * speeds.total > watch.bound).any()):
            continue
        runs, found = speeds.runs, _cost(watch, speeds, q, v) * speeds.total[:, None]
        error[runs] = np.fmax(error[runs], relative(found[:, :errors], watch.largest[runs]))
        energy = slice(0, found.shape[1] - errors)
        made[runs, energy] = np.fmax(made[runs, energy], found[:, errors:])


def _recorded_speeds(watch: Watch, v: np.ndarray, stopped: np.ndarray, runs: np.ndarray) -> RecordedSpeeds | None:
    """The RecordedSpeeds of some runs; None where there are too few records."""
    n, when = watch.halves.order + 1, watch.loop.when
    count = len(v) - n
    if count < 1:
        return None
    every = -(-count // (IN_OWN_STATE if watch.loop.simulation.system.own_state else INSTANTS))
    own = v if len(runs) == v.shape[1] else v[:, runs]
    found = sum(weight * own[j : count + j : every] for j, weight in enumerate(np.diff(np.eye(n + 1), n, axis=0)[0]))
    largest = watch.largest[runs][:, [watch.halves.sizes.units.index(unit) for unit in watch.mechanism.v_units]]
    with np.errstate(all="ignore"):
        size = (np.abs(found) / largest).max(axis=2)
    size[~np.isfinite(size)] = 0
    records = np.arange(0, count, every) + n // 2
    steps = np.where(stopped[runs] < 0, when.end, stopped[runs]) - when.first
    return RecordedSpeeds(runs, when.first + records * when.every, records, size, size.mean(axis=0) * steps)


def _cost(watch: Watch, speeds: RecordedSpeeds, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """(n, 1 + units + energy) what a step errs for one unit of difference; nan where the looks tell enough."""
    n, width = len(speeds.runs), 1 + len(watch.halves.sizes.units) + watch.halves.energy.stop - watch.halves.energy.start
    most, by = np.full(n, NOISE), np.full((n, width), np.nan)
    for look in watch.looks:
        _learn(speeds.at(look.k), look, speeds.runs, most, by)
    far, top = speeds.size.max(axis=0) > BURST * most, speeds.size.argmax(axis=0)
    if not watch.loop.simulation.system.own_state:
        far &= MOST * speeds.total > watch.bound
    for i in np.unique(top[far]).tolist() if _known(watch, q) else ():
        some = speeds.runs[far & (top == i)]
        _learn(speeds.size[i], _compared(watch, speeds, q, v, i, some), speeds.runs, most, by)
    by[~far] = np.nan
    return by / most[:, None]


def _compared(watch: Watch, speeds: RecordedSpeeds, q: np.ndarray, v: np.ndarray, i: int, some: np.ndarray) -> Look:
    """The step in the middle of difference i, of some runs."""
    when, step, at = watch.loop.when, int(speeds.steps[i]), speeds.records[i]
    t = when.start + step * when.step
    x = enter(watch.loop.simulation.system, q[at, some], v[at, some], watch.loop.p[some], t)
    return watch.compared(step, x, some)


def _learn(size: np.ndarray, look: Look, runs: np.ndarray, most: np.ndarray, by: np.ndarray) -> None:
    """Take the errors of a look where the differences (n,) are larger there than at those taken so far."""
    seen = np.concatenate([look.error[runs], np.abs(look.made[runs])], axis=1)[:, : by.shape[1]]
    better = (size > most) & np.isfinite(seen[:, 0]) & ~look.rough[runs]
    most[better], by[better] = size[better], seen[better]


def _known(watch: Watch, q: np.ndarray) -> bool:
    """Whether the records tell the whole state: nothing integrated or held by a law, no modes, no law in Python."""
    s = watch.loop.simulation
    return bool(q.shape[2]) and s.nx == s.system.nx and not watch.loop.python
