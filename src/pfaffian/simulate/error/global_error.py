"""The global error of a run: the difference between its motion and that of a finer solution, at every record.

angle: the largest difference of an angle [rad]; of a quaternion, the angle between the two.
length: the largest difference of a position, relative to the machine's length.
speed: the largest difference of a speed, relative to the largest of its unit in the run.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pfaffian.model.mechanism import Mechanism
from pfaffian.terms.lengths import scales

ERROR_KINDS = ("angle", "length", "speed")

ROUNDING = 1e-13
"""Error that remains where two solutions do not differ."""

SLOW = 1e-6
"""Least size of a speed, relative to others."""


class Solutions(NamedTuple):
    """Two solutions of the same runs.   motion, finer: (times, runs, nq + nv) q and v."""

    motion: np.ndarray
    finer: np.ndarray


def global_error(m: Mechanism, of: Solutions, p: np.ndarray, duration: float) -> np.ndarray:
    """(times, runs, 3) the difference of each of the ERROR_KINDS.   p: (runs, np) parameters.   duration: of the runs [s]."""
    off = np.abs(of.motion - of.finer)
    q, v = off[..., : m.nq], off[..., m.nq :]
    error = np.zeros((*off.shape[:2], len(ERROR_KINDS)))
    turning = [i for turn in m.quaternions.values() for i in range(turn.start, turn.stop)]
    angles = [i for i, unit in enumerate(m.q_units) if unit != "m" and i not in turning]
    error[..., 0] = q[..., angles].max(axis=-1, initial=0.0)
    for turn in m.quaternions.values():
        error[..., 0] = np.maximum(error[..., 0], 2 * np.sqrt((q[..., turn] ** 2).sum(axis=-1)))
    sliding = [i for i, unit in enumerate(m.q_units) if unit == "m"]
    start = of.motion[0, :, : m.nq]
    long = scales(m, p, start, tuple(m.q_units))
    error[..., 1] = (q[..., sliding] / long[:, sliding]).max(axis=-1, initial=0.0)
    error[..., 2] = (v / _largest_speeds(m, of.finer[..., m.nq :], long[:, sliding], duration)).max(axis=-1, initial=0.0)
    return np.where(np.isnan(off).any(axis=-1, keepdims=True), np.nan, error)


def _largest_speeds(m: Mechanism, v: np.ndarray, long: np.ndarray, duration: float) -> np.ndarray:
    """(runs, nv) the largest speed of the unit of each v; that of slides at least that of the fastest turn on the machine's
    length.   long: (runs, slides) that length."""
    with np.errstate(all="ignore"):
        top = np.nanmax(np.abs(v), axis=0, initial=0.0)
    units, lever = np.array(m.v_units), long.max(axis=-1, initial=0.0)
    scale = {unit: lever if unit == "m/s" else np.ones(len(top)) for unit in m.v_units}
    relative = {unit: top[:, units == unit].max(axis=-1, initial=0.0) / scale[unit] for unit in scale}
    fastest = np.max([*relative.values(), np.full(len(top), 1 / duration if duration else 1.0)], axis=0)
    largest = {unit: np.maximum(found, SLOW * fastest) for unit, found in relative.items()}
    if {"m/s", "rad/s"} <= set(largest):
        largest["m/s"] = np.maximum(largest["m/s"], largest["rad/s"])
    return np.stack([scale[unit] * largest[unit] for unit in m.v_units], axis=-1) if m.nv else top
