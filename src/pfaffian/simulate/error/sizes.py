"""Sizes of states and of their differences: the largest angle [rad] and the largest speed of each unit."""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

import numpy as np

from pfaffian.kernel.remember import remembered
from pfaffian.simulate.step.simulation import Simulation
from pfaffian.terms.lengths import default_length


class StateSizes(NamedTuple):
    """How the sizes of a mechanism's states are computed.   units: units of v, in the order of the speeds.
    lever: the machine's length [m].   turns: slices of the quaternions in q.
    order, begin: indices into [q; v; 0] sorted into groups, and the position at which each group begins: plain angles (with
        the 0), then v unit by unit."""

    units: tuple[str, ...]
    lever: float
    order: np.ndarray
    begin: np.ndarray
    turns: tuple[slice, ...]

    def of(self, x: np.ndarray) -> np.ndarray:
        """(..., 1 + units) largest sizes in x (..., nq + nv + 1): of angles (quaternions: twice the norm) and of v by unit."""
        largest = np.maximum.reduceat(np.abs(x)[..., self.order], self.begin, axis=-1)
        for turn in self.turns:
            largest[..., 0] = np.maximum(largest[..., 0], 2 * np.sqrt((x[..., turn] ** 2).sum(axis=-1)))
        return largest

    def levelled(self, speeds: np.ndarray) -> np.ndarray:
        """(runs, units) largest speeds, that of slides at least the lever times the fastest rotation. Otherwise the small
        stretching of a stiff rod would be compared with itself alone."""
        if not self.lever or self.units != ("m/s", "rad/s"):
            return speeds
        return np.column_stack([np.fmax(speeds[:, 0], self.lever * speeds[:, 1]), speeds[:, 1]])


@remembered(64)
def sizes_of(s: Simulation) -> StateSizes:
    """How to compute the largest angle and the largest speed of each unit in the states of a simulation."""
    m = s.mechanism
    units, turns = sorted(set(m.v_units)), tuple(m.quaternions.values())
    inside = {i for turn in turns for i in range(turn.start, turn.stop)}
    angles = [i for i, unit in enumerate(m.q_units) if unit in ("rad", "1") and i not in inside]
    parts = [[*angles, m.nq + m.nv]] + [[m.nq + i for i, u in enumerate(m.v_units) if u == unit] for unit in units]
    return StateSizes(tuple(units), default_length(m), np.concatenate(parts), np.cumsum([0, *map(len, parts[:-1])]), turns)


def relative(error: np.ndarray, largest: np.ndarray) -> np.ndarray:
    """(runs,) the largest error (runs, 1 + units): of angles [rad], and of speeds relative to `largest` (runs, units)."""
    speed = error[:, 1:]
    with np.errstate(all="ignore"):
        parts = np.divide(speed, largest, out=speed.copy(), where=speed > 0)
    return reduce(np.fmax, parts.T, error[:, 0])
