"""The global error of a run: the difference between its motion and that of a finer solution, at every record.

angle: the largest difference of an angle [rad]; of a quaternion, the angle between the two.
length: the largest difference of a position, relative to the machine's length; without one, to the largest position, which is
    at least FRACTION of a free fall in the time: what constraints hold against gravity moves by rounding alone.
speed: the largest difference of a speed, relative to the largest of its unit in the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import casadi as ca
import numpy as np

from pfaffian.kernel.remember import once_for
from pfaffian.model.mechanism import Mechanism
from pfaffian.terms.lengths import scales

ERROR_KINDS = ("angle", "length", "speed")

ROUNDING = 1e-13
"""Error that remains where two solutions do not differ."""

OF_SPEEDS = 4 * float(np.finfo(float).eps)
"""Rounding of speeds in steps of one length, relative to the fastest or to a turn of 1 rad in the time of the run."""

FRACTION = 1e-9
"""Least size of a position, relative to a free fall in the time of the run."""

SLOW = 1e-6
"""Least size of a speed, relative to others."""


class Solutions(NamedTuple):
    """Two solutions of the same runs.   motion, finer: (times, runs, nq + nv) q and v."""

    motion: np.ndarray
    finer: np.ndarray


class EntryKinds(NamedTuple):
    """Which entries of q and v are of which kind.   angles: plain ones.   turns: slices of quaternions.   slides: lengths.
    speeds: unit -> entries of v."""

    angles: list[int]
    turns: tuple[slice, ...]
    slides: list[int]
    speeds: dict[str, list[int]]


def _kinds(m: Mechanism) -> EntryKinds:
    """The EntryKinds of a mechanism."""
    inside = {i for turn in m.quaternions.values() for i in range(turn.start, turn.stop)}
    slides = [i for i, unit in enumerate(m.q_units) if unit == "m"]
    angles = [i for i in range(m.nq) if i not in inside and i not in slides]
    speeds = {unit: [i for i, other in enumerate(m.v_units) if other == unit] for unit in dict.fromkeys(m.v_units)}
    return EntryKinds(angles, tuple(m.quaternions.values()), slides, speeds)


def global_error(
    m: Mechanism,
    of: Solutions,
    p: np.ndarray,
    duration: float,
    speeds: Mapping[str, np.ndarray] = MappingProxyType({}),
    rounding: float = 0.0,
) -> np.ndarray:
    """(times, runs, 3) the difference of each of the ERROR_KINDS.   p: (runs, np) parameters.   duration: of the runs [s].

    speeds: unit -> (runs,) largest speeds of the run, at records or between them.   rounding: of speeds, see OF_SPEEDS: it
    counts where a machine, or one unit of its speeds, hardly moves.
    """
    kinds, off = once_for(m, "kinds of entries", lambda: _kinds(m)), np.abs(of.motion - of.finer)
    error = np.zeros((*off.shape[:2], len(ERROR_KINDS)))
    if kinds.angles:
        error[..., 0] = off[..., kinds.angles].max(axis=-1)
    for turn in kinds.turns:
        error[..., 0] = np.maximum(error[..., 0], 2 * np.sqrt((off[..., turn] ** 2).sum(axis=-1)))
    lever = np.ones(off.shape[1])
    if kinds.slides:
        largest = np.nan_to_num(np.fmax.reduce(np.abs(of.motion[:, :, : m.nq]), axis=0))
        fall = once_for(m, "gravity", lambda: _gravity(m)) * duration * duration / 2
        long = np.maximum(scales(m, p, largest, tuple(m.q_units))[:, kinds.slides], FRACTION * fall)
        error[..., 1] = (off[..., kinds.slides] / long).max(axis=-1)
        lever = long.max(axis=-1)
    of_unit = {unit: speeds.get(unit, np.zeros(len(lever))) / (lever if unit == "m/s" else 1.0) for unit in kinds.speeds}
    error[..., 2] = _speed_error(kinds, off[..., m.nq :], of.finer[..., m.nq :], lever, duration, of_unit, rounding)
    error[np.isnan(off).any(axis=-1)] = np.nan
    return error


def _gravity(m: Mechanism) -> float:
    """|g| [m/s^2] at the defaults of the parameters."""
    return float(ca.evalf(ca.substitute(ca.norm_2(m.gravity), m.p_symbols, ca.DM(m.p_defaults))))


def largest_speeds(m: Mechanism, q_v: np.ndarray) -> dict[str, np.ndarray]:
    """unit -> (runs,) the largest speed of the motion q_v (times, runs, nq + nv)."""
    speeds = np.fmax.reduce(np.abs(q_v[:, :, m.nq :]), axis=0, initial=0.0)
    return {unit: speeds[:, at].max(axis=1) for unit, at in _kinds(m).speeds.items()}


def _speed_error(
    kinds: EntryKinds,
    off: np.ndarray,
    v: np.ndarray,
    lever: np.ndarray,
    duration: float,
    speeds: Mapping[str, np.ndarray],
    rounding: float,
) -> np.ndarray:
    """(times, runs) the largest difference `off` of speeds v (times, runs, nv), relative to the largest of their unit; that of
    slides is at least that of the fastest turn on the machine's length, `lever` (runs,).   speeds: unit -> (runs,) largest.
    rounding: see `global_error`."""
    sized = {unit: np.abs(v[..., at]).max(axis=-1) / (lever if unit == "m/s" else 1.0) for unit, at in kinds.speeds.items()}
    largest = {unit: np.fmax(np.fmax.reduce(x, axis=0, initial=0.0), speeds[unit]) for unit, x in sized.items()}
    fastest = np.max([*largest.values(), np.full(len(lever), 1 / duration if duration else 1.0)], axis=0)
    if {"m/s", "rad/s"} <= set(largest):
        largest["m/s"] = np.maximum(largest["m/s"], largest["rad/s"])
    found = np.zeros(off.shape[:2])
    for unit, at in kinds.speeds.items():
        size, long = np.maximum(largest[unit], SLOW * fastest), lever if unit == "m/s" else 1.0
        found = np.fmax(found, (off[..., at].max(axis=-1) / long + rounding * fastest) / size)
    return found
