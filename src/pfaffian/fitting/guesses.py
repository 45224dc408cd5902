"""First guesses of the starts of segments, from what is measured near them."""

from __future__ import annotations

import numpy as np

from pfaffian.fitting.records import Layout, Record
from pfaffian.fitting.segments import Segments
from pfaffian.model.mechanism import Mechanism

NEAR = 7
"""Samples from which a position and a rate are guessed."""


def guesses(m: Mechanism, layout: Layout, records: tuple[Record, ...], segments: Segments, q: np.ndarray) -> np.ndarray:
    """(segments, nq + nv) states at the starts: measured, by a line through near samples, else q (nq,) and no speed."""
    x, at = np.zeros((segments.runs, m.nq + m.nv)), layout.slices
    x[:, : m.nq] = q
    for i in range(segments.runs):
        r = records[segments.record[i]]
        first = int(np.searchsorted(r.time, segments.begin[i]))
        near = slice(first, first + NEAR)
        t = r.time[near] - segments.begin[i]
        if "q" in at:
            _position(m, x[i], t, r.y[near, at["q"]])
        if "v" in at:
            y = r.y[near, at["v"]]
            seen = np.isfinite(y).any(axis=0)
            x[i, m.nq :][seen] = [_line(t, column)[0] for column in y[:, seen].T]
    return x


def _position(m: Mechanism, x: np.ndarray, t: np.ndarray, y: np.ndarray) -> None:
    """Write measured coordinates and their rates into a state."""
    seen = np.isfinite(y).any(axis=0)
    lines = np.array([_line(t, column) for column in y.T])
    x[: m.nq][seen] = lines[seen, 0]
    if m.nq == m.nv and not m.velocities:
        x[m.nq :][seen] = lines[seen, 1]


def _line(t: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """The value at t = 0 and the slope of a line through the finite samples."""
    good = np.isfinite(y)
    t, y = t[good], y[good]
    if len(y) < 2:
        return (float(y[0]), 0.0) if len(y) else (0.0, 0.0)
    slope, value = np.polyfit(t, y, 1)
    return float(value), float(slope)
