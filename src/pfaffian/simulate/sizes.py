"""Sizes of states and of their differences: of angles in rad, of speeds for each unit."""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

import numpy as np

from pfaffian.kernel.remember import remembered
from pfaffian.simulate.simulation import Simulation
from pfaffian.terms.lengths import default_length


class Sizes(NamedTuple):
    """units: of the entries of v, in the order in which speeds stand.   turns: where quaternions stand.
    lever: the machine's length [m].
    order, begin: the numbers of [q; v; 0] in groups, and where each group begins: plain angles (and 0), v by unit."""

    units: tuple[str, ...]
    lever: float
    order: np.ndarray
    begin: np.ndarray
    turns: tuple[slice, ...]

    def of(self, x: np.ndarray) -> np.ndarray:
        """(..., 1 + units) the largest of x (..., nq + nv + 1): of angles, a quaternion being half of one; of v by unit."""
        found = np.maximum.reduceat(np.abs(x)[..., self.order], self.begin, axis=-1)
        for turn in self.turns:
            found[..., 0] = np.maximum(found[..., 0], 2 * np.sqrt((x[..., turn] ** 2).sum(axis=-1)))
        return found

    def levelled(self, speeds: np.ndarray) -> np.ndarray:
        """(runs, units) largest speeds; that of slides is at least what the fastest rotation gives at the end of the lever, so
        that the stretching of a stiff rod is not judged by itself."""
        if not self.lever or self.units != ("m/s", "rad/s"):
            return speeds
        return np.column_stack([np.fmax(speeds[:, 0], self.lever * speeds[:, 1]), speeds[:, 1]])


@remembered(64)
def sizes_of(s: Simulation) -> Sizes:
    """The Sizes of the states of its mechanism."""
    m = s.mechanism
    units, turns = sorted(set(m.v_units)), tuple(m.quaternions.values())
    inside = {i for turn in turns for i in range(turn.start, turn.stop)}
    angles = [i for i, unit in enumerate(m.q_units) if unit in ("rad", "1") and i not in inside]
    parts = [[*angles, m.nq + m.nv]] + [[m.nq + i for i, u in enumerate(m.v_units) if u == unit] for unit in units]
    return Sizes(tuple(units), default_length(m), np.concatenate(parts), np.cumsum([0, *map(len, parts[:-1])]), turns)


def relative(error: np.ndarray, largest: np.ndarray) -> np.ndarray:
    """(runs,) the larger of the errors in a Look, of angles [rad] and of speeds relative to the largest (runs, units)."""
    speed = error[:, 1:]
    with np.errstate(all="ignore"):
        parts = np.divide(speed, largest, out=speed.copy(), where=speed > 0)
    return reduce(np.fmax, parts.T, error[:, 0])
