"""Records cut into segments, as one batch: their steps, their samples, and the inputs over each step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pfaffian.errors import ModelError
from pfaffian.fitting.records import CheckedRecord

GAP = 3.5
"""An interval longer than this many usual ones is a gap, where a segment ends."""

ON_GRID = 1e-6
"""Distance of a sample from the end of a step, in steps, that counts as rounding."""

STENCIL = np.arange(4)
"""Steps between which measured times are interpolated."""


class Segments(NamedTuple):
    """Segments of records as a batch of runs of equal length.

    record: (segments,) index of the record.   begin: (segments,) time of the start [s].   h: step [s].   steps: of each.
    at: (segments, samples) times of the samples after the start.   y: (segments, samples, ny), nan where nothing is measured.
    """

    record: np.ndarray
    begin: np.ndarray
    h: float
    steps: int
    at: np.ndarray
    y: np.ndarray

    @property
    def runs(self) -> int:
        return len(self.begin)

    def take(self, which: slice | np.ndarray) -> Segments:
        """Some of the segments."""
        return self._replace(record=self.record[which], begin=self.begin[which], at=self.at[which], y=self.y[which])


def usual_interval(records: Sequence[CheckedRecord]) -> float:
    """The median time between samples, the smallest of all records [s]."""
    return float(min(np.median(np.diff(r.time)) for r in records))


def cut(records: Sequence[CheckedRecord], horizon: float, substeps: int = 1, every: float | None = None) -> Segments:
    """Segments of at most `horizon` [s], one after another without a common sample, or one that begins `every` so many seconds.

    substeps: steps in a usual interval.   Raises ModelError: no record has a segment of two samples.
    """
    h, pieces = usual_interval(records) / substeps, list[tuple[int, np.ndarray]]()
    for k, r in enumerate(records):
        usual = float(np.median(np.diff(r.time)))
        ends = np.flatnonzero(np.diff(r.time) > max(GAP * usual, 0.0)) + 1
        for run in np.split(np.arange(len(r.time)), ends):
            pieces += [(k, one) for one in _pieces(r, run, horizon, every or horizon, usual)]
    if not any(len(one) > 1 for _, one in pieces):
        raise ModelError(
            "records: no record has two samples without a gap between them within the horizon; give a longer horizon"
        )
    most = max(len(one) for _, one in pieces)
    ny = records[0].y.shape[1]
    at, y = np.zeros((len(pieces), most)), np.full((len(pieces), most, ny), np.nan)
    for i, (k, one) in enumerate(pieces):
        at[i, : len(one)] = records[k].time[one] - records[k].time[one[0]]
        y[i, : len(one)] = records[k].y[one]
    begin = np.array([records[k].time[one[0]] for k, one in pieces])
    steps = max(int(np.ceil(at.max() / h - ON_GRID)), len(STENCIL) - 1)
    return Segments(np.array([k for k, _ in pieces]), begin, h, steps, at, y)


def _pieces(r: CheckedRecord, run: np.ndarray, horizon: float, every: float, usual: float) -> list[np.ndarray]:
    """The samples of each segment of samples without a gap."""
    t, found, first = r.time[run], list[np.ndarray](), 0
    while first < len(run) - 1:
        last = int(np.searchsorted(t, t[first] + horizon + (usual if every < horizon else -usual) / 2))
        if every < horizon and last == len(run) and t[-1] < t[first] + horizon - usual / 2 and found:
            break  # of overlapping segments only whole ones
        found.append(run[first:last])
        first = max(int(np.searchsorted(t, t[first] + every - usual / 2)), first + 1)
    short = [x for x in found[-1:] if len(x) < len(found[0]) / 4 and len(found) > 1]
    return found[: len(found) - len(short)]


class InputIntegral(NamedTuple):
    """The integral of an input that is held between samples.   time: (n,) with ends far away.   area: (n, nw)."""

    time: np.ndarray
    area: np.ndarray
    u: np.ndarray

    def over(self, begin: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray]:
        """Means (..., nw) over h from the times `begin`, and their derivatives by the time."""
        (a, rate_a), (b, rate_b) = self.until(begin), self.until(begin + h)
        return (b - a) / h, (rate_b - rate_a) / h

    def until(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The integral until t, and the input there."""
        i = np.clip(np.searchsorted(self.time, t, side="right") - 1, 0, len(self.time) - 1)
        return self.area[i] + self.u[i] * (t - self.time[i])[..., None], self.u[i]


def input_integral(r: CheckedRecord) -> InputIntegral:
    """The inputs of a record, each held until the next sample, the first one before its time too."""
    steps = np.diff(r.time)[:, None] * r.u[:-1]
    return InputIntegral(r.time, np.concatenate([np.zeros((1, r.u.shape[1])), np.cumsum(steps, axis=0)]), r.u)


def weights(at: np.ndarray, h: float, steps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Interpolation of values at steps: first steps (...), weights (..., 4) of four steps, and their time derivatives."""
    s = at / h
    base = np.clip(np.floor(s + ON_GRID).astype(int) - 1, 0, steps - len(STENCIL) + 1)
    f = s - base
    w, dw = np.ones((*f.shape, 4)), np.zeros((*f.shape, 4))
    for j in STENCIL:
        for i in STENCIL[j != STENCIL]:
            scale = 1.0 / (j - i)
            dw[..., j] = dw[..., j] * (f - i) * scale + w[..., j] * scale
            w[..., j] *= (f - i) * scale
    return base, w, dw / h
