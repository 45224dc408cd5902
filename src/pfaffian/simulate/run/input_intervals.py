"""The parts of a run in which nothing changes abruptly: between samples of the inputs, instants of laws, jumps of forces.

They depend on when the first run began and on what is given to it, but not on how long it lasts, so that steps up to its end
are those of a longer run.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pfaffian.simulate.step.lane import SAME, nearest_instant

SAMPLE, MARK = -1, -2
"""What happens at the begin of an interval: the next sample of the inputs, an abrupt change; or the sampler of an index."""


class Interval(NamedTuple):
    """A part of a run in which nothing changes abruptly.   since, barrier: its ends, as times since the run began [s]; a
    barrier that is inf may be passed.   w: [w; w_dot], (2 nw,) or (runs, 2 nw), the inputs at its begin and their rates.
    due: indices of the samplers that are called at its begin."""

    since: float
    barrier: float
    w: np.ndarray
    due: tuple[int, ...]


class InputIntervals(NamedTuple):
    """Inputs and samplers of runs.   series: (samples, nw) or (samples, runs, nw).   step: time between two samples [s].
    linear: whether they are interpolated.   rates: period and phase of each sampler that is called between calls of the loop
    [s].   marks: other instants at which the equations change abruptly, since the run began [s].   first: number of samples
    before those of `series`."""

    series: np.ndarray
    step: float = np.inf
    linear: bool = False
    rates: tuple[tuple[float, float], ...] = ()
    marks: np.ndarray = np.zeros(0)
    first: int = 0

    def snapped(self, instants: np.ndarray, inner: tuple[tuple[float, float], ...]) -> np.ndarray:
        """The instants (times,), those that differ by rounding from the begin of an interval, or else from an instant of a
        sampler that the loop calls, moved there.   inner: period and phase of each of these [s]."""
        intervals = self.intervals(float(instants[-1]))
        begins = np.array([interval.since for interval in intervals] + [intervals[-1].barrier])
        begins = begins[np.isfinite(begins)]
        nearest = begins[np.clip(np.searchsorted(begins, instants * (1 - SAME)), 0, len(begins) - 1)]
        for near in (*[nearest_instant(*each, instants) for each in inner], nearest):
            instants = np.where(np.abs(instants - near) <= SAME * np.abs(instants), near, instants)
        return instants

    def intervals(self, end: float, begin: float = 0.0) -> list[Interval]:
        """The intervals of a run from that which contains `begin` [s] up to that which contains `end`, or begins there."""
        grouped: list[tuple[float, list[int]]] = []
        for t, j in sorted(self._events(begin, end)):
            if not grouped or t > grouped[-1][0] * (1 + SAME):
                grouped.append((t, []))
            grouped[-1][1].append(j)
        after = [t for t, _ in grouped[1:]] + [np.inf]
        sample, found = self.first - 1, list[Interval]()
        for (t, due), barrier in zip(grouped, after, strict=True):
            sample += due.count(SAMPLE)
            if t <= end * (1 + SAME):
                found.append(Interval(t, barrier, self._inputs(sample, t), tuple(j for j in due if j >= 0)))
        return found

    def _events(self, begin: float, end: float) -> list[tuple[float, int]]:
        """Instants at which something happens, from the last of each kind before `begin` to the first after `end`, and what.

        The end of a series, after its last sample, is an instant too: there another run may continue with other inputs.
        """
        samples = len(self.series) + (len(self.series) > 1)
        if self.step < np.inf:
            samples = min(samples, max(1, int(end / self.step) + 3 - self.first))
        found = [(i * self.step if i else 0.0, SAMPLE) for i in range(self.first, self.first + samples)]
        for j, (period, phase) in enumerate(self.rates):
            first = max(0, int((begin - phase) / period) - 1)
            found += [(phase + i * period, j) for i in range(first, max(0, int((end - phase) / period) + 3))]
        if found[0][0] > 0:
            found.append((0.0, MARK))
        return found + [(float(t), MARK) for t in self.marks]

    def _inputs(self, sample: int, t: float) -> np.ndarray:
        """[w; w_dot] at an instant after a sample of the run."""
        i = min(max(sample - self.first, 0), len(self.series) - 1)
        w, last = self.series[i], sample - self.first >= len(self.series) - 1
        rate = np.zeros_like(w) if last or not self.linear else (self.series[i + 1] - w) / self.step
        since = sample * self.step if sample > 0 and i == sample - self.first else t
        return np.concatenate([w + rate * (t - since), rate], axis=-1)
