"""First guesses of the starts of segments, from what is measured near them."""

from __future__ import annotations

import numpy as np

from pfaffian.fitting.records import CheckedRecord, Measurements
from pfaffian.fitting.segments import Segments
from pfaffian.fitting.starts import closed, kinematic_matrix
from pfaffian.model.mechanism import Mechanism

NEAR = 7
"""Samples from which a position and a rate are guessed."""

MEASURED = 1e-3
"""By how much less a measured number moves onto the constraints than another one."""

SEARCH = 40
"""Newton iterations from a guess of coordinates that are not measured."""

STRIDE = 0.1
"""Change of a measured coordinate after which the others are closed again on the way between two starts [rad], or part of its
range: from farther off Newton's iterations may end on another branch."""


MOST = 100
"""Most such changes between two samples."""


def guesses(
    m: Mechanism, layout: Measurements, records: tuple[CheckedRecord, ...], segments: Segments, q: np.ndarray, p: np.ndarray
) -> np.ndarray:
    """(segments, nq + nv) states at the starts: measured numbers by a line through near samples.

    The others are those of the segment before, and q (nq,) without speed at the start of a record; on loops they follow the
    measured ones from sample to sample. p: (np,) parameters.
    """
    x, at, before = np.zeros((segments.runs, m.nq + m.nv)), layout.slices, 0
    for i in range(segments.runs):
        r = records[segments.record[i]]
        fresh = i == 0 or segments.record[i] != segments.record[i - 1]
        first = int(np.searchsorted(r.time, segments.begin[i]))
        x[i, : m.nq] = q if fresh else x[i - 1, : m.nq]
        if m.ideal and not fresh and "q" in at:
            x[i, : m.nq] = _followed(
                m, x[i], r.y[before : first + NEAR, at["q"]], r.time[before : first + NEAR], first - before, p
            )
        before = first
        near, ease = slice(first, first + NEAR), np.ones(2 * m.nv)
        t = r.time[near] - segments.begin[i]
        if "q" in at:
            _position(m, x[i], ease, t, _continuous(m, r.y[near, at["q"]]))
        if "v" in at:
            _rate(m, x[i], ease, t, r.y[near, at["v"]])
        if m.ideal:
            x[i : i + 1] = closed(m, x[i : i + 1], p, segments.begin[i : i + 1], ease, SEARCH)[0]
    return x


def _followed(m: Mechanism, x: np.ndarray, y: np.ndarray, t: np.ndarray, count: int, p: np.ndarray) -> np.ndarray:
    """q (nq,) on the constraints after `count` samples of the measured coordinates y (samples, nq), from the state x (nx,) on.

    Where nothing was measured, they go straight on to the next measured ones.
    """
    seen = np.isfinite(y).any(axis=0)
    if seen.all() or not seen.any():
        return x[: m.nq]
    angles = np.array([unit == "rad" for unit in m.q_units])[seen]
    ease, size = np.ones(2 * m.nv), np.where(angles, 1.0, np.nanmax(y[:, seen], axis=0) - np.nanmin(y[:, seen], axis=0))
    for owner in m.owners if not m.velocities else ():
        ease[m.v_slices[owner.name]] = MEASURED if seen[m.q_slices[owner.name]].all() else 1.0
    x, last = x[None].copy(), x[: m.nq][seen]
    filled = np.column_stack([np.interp(t, t[np.isfinite(c)], c[np.isfinite(c)]) for c in y[:, seen].T])
    for now, time in zip(filled[: count + 1], t, strict=False):
        away = np.divide(np.abs(now - last), STRIDE * size, out=np.zeros(len(size)), where=size > 0).max()
        steps = min(int(away), MOST)
        for part in range(steps):
            x[0, : m.nq][seen] = last + (now - last) * ((part + 1) / steps)
            x = closed(m, x, p, np.array([time]), ease, SEARCH)[0]
        last = now if steps else last
    return np.asarray(x[0, : m.nq])


def _position(m: Mechanism, x: np.ndarray, ease: np.ndarray, t: np.ndarray, y: np.ndarray) -> None:
    """Write measured coordinates and their rates into a state."""
    seen = np.isfinite(y).any(axis=0)
    lines = np.array([_line(t, column) for column in y.T])
    x[: m.nq][seen] = lines[seen, 0]
    owners = [o for o in m.owners if seen[m.q_slices[o.name]].all()] if not m.velocities else []
    K = kinematic_matrix(m, x[: m.nq]) if owners else np.zeros((0, 0))
    for owner in owners:
        here, rates = m.q_slices[owner.name], m.v_slices[owner.name]
        x[m.nq :][rates] = np.linalg.lstsq(K[here, rates], lines[here, 1], rcond=None)[0]
        ease[rates] = ease[m.nv :][rates] = MEASURED


def _continuous(m: Mechanism, q: np.ndarray) -> np.ndarray:
    """Samples of q (n, nq) whose quaternions keep the sign of the first one."""
    q = q.copy()
    for at in m.quaternions.values():
        q[:, at] *= np.where(np.nan_to_num(q[:, at]) @ np.nan_to_num(q[0, at]) < 0, -1.0, 1.0)[:, None]
    return q


def _rate(m: Mechanism, x: np.ndarray, ease: np.ndarray, t: np.ndarray, y: np.ndarray) -> None:
    """Write measured velocities into a state."""
    seen = np.isfinite(y).any(axis=0)
    x[m.nq :][seen] = [_line(t, column)[0] for column in y[:, seen].T]
    ease[m.nv :][seen] = MEASURED


def _line(t: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """The value at t = 0 and the slope of a line through the finite samples, in the middle of those through each two of them:
    an outlier does not turn it."""
    good = np.isfinite(y)
    t, y = t[good], y[good]
    if len(y) < 2:
        return (float(y[0]), 0.0) if len(y) else (0.0, 0.0)
    i, j = np.triu_indices(len(t), 1)
    slope = np.median((y[j] - y[i]) / (t[j] - t[i]))
    return float(np.median(y - slope * t)), float(slope)
