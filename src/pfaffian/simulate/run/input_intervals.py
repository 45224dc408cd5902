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


class Intervals(NamedTuple):
    """Successive parts of a run in which nothing changes abruptly.   since, barrier: (n,) their ends, as times since the run
    began [s]; a barrier that is inf may be passed.   sample: (n,) number of the sample of the inputs that is in force.
    due: interval -> indices of the samplers that are called at its begin."""

    since: np.ndarray
    barrier: np.ndarray
    sample: np.ndarray
    due: dict[int, tuple[int, ...]]

    def groups(self, end: float, apart: bool, most: int) -> list[slice]:
        """The intervals in groups that the compiled loop passes at once: at most so many, and those before samplers are called
        or before the `end` of the run, whose inputs are for its record alone.   apart: whether the first is a group."""
        n = len(self.since)
        begins = {0, n, *self.due, *np.flatnonzero(self.since == end).tolist(), *([1] if apart else [])}
        cuts = [cut for a, b in zip(sorted(begins), sorted(begins)[1:], strict=False) for cut in range(a, b, max(1, most))]
        return [slice(a, b) for a, b in zip(cuts, [*cuts[1:], n], strict=True)]


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
        begins = np.append(intervals.since, intervals.barrier[-1])
        begins = begins[np.isfinite(begins)]
        nearest = begins[np.clip(np.searchsorted(begins, instants * (1 - SAME)), 0, len(begins) - 1)]
        for near in (*[nearest_instant(*each, instants) for each in inner], nearest):
            instants = np.where(np.abs(instants - near) <= SAME * np.abs(instants), near, instants)
        return instants

    def intervals(self, end: float, begin: float = 0.0) -> Intervals:
        """The intervals of a run from that which contains `begin` [s] up to that which contains `end`, or begins there."""
        times, kinds = self._events(begin, end)
        order = np.lexsort((kinds, times))
        times, kinds = times[order], kinds[order]
        new = np.concatenate([[True], times[1:] > times[:-1] * (1 + SAME)])
        since, of = times[new], np.cumsum(new) - 1
        barrier = np.append(since[1:], np.inf)
        sample = self.first - 1 + np.cumsum(np.bincount(of, kinds == SAMPLE)).astype(int)
        some = np.flatnonzero((since <= end * (1 + SAME)) & (barrier > begin))
        due = dict[int, tuple[int, ...]]()
        for i, j in zip((of - some[0])[kinds >= 0].tolist(), kinds[kinds >= 0].tolist(), strict=True):
            if 0 <= i < len(some):
                due[i] = (*due.get(i, ()), j)
        return Intervals(since[some], barrier[some], sample[some], due)

    def _events(self, begin: float, end: float) -> tuple[np.ndarray, np.ndarray]:
        """Instants at which something happens, from the last of each kind before `begin` to the first after `end`, and what.

        The end of a series, after its last sample, is an instant too: there another run may continue with other inputs.
        """
        samples = len(self.series) + (len(self.series) > 1)
        if self.step < np.inf:
            samples = min(samples, max(1, int(end / self.step) + 3 - self.first))
        number = self.first + np.arange(samples)
        found: list[tuple[np.ndarray, int]] = [(number * (self.step if number[-1] else 0.0), SAMPLE)]
        for j, (period, phase) in enumerate(self.rates):
            first = max(0, int((begin - phase) / period) - 1)
            found.append((phase + np.arange(first, max(0, int((end - phase) / period) + 3)) * period, j))
        found.append((np.concatenate([[0.0] if self.first else [], self.marks]), MARK))
        return np.concatenate([t for t, _ in found]), np.concatenate([np.full(len(t), kind) for t, kind in found])

    @property
    def separate(self) -> bool:
        """Whether runs have inputs of their own."""
        return self.series.ndim == 3

    def rows(self, of: Intervals, some: slice, runs: np.ndarray) -> np.ndarray:
        """(n, entries) the rows of inputs of some intervals, [w; w_dot; since; barrier], or (n, runs, entries) if these differ.

        runs: (runs,) which runs of the batch.
        """
        sample, since, series = of.sample[some] - self.first, of.since[some], self.series
        i = np.clip(sample, 0, len(series) - 1)
        w, following = (x[:, runs] if self.separate else x for x in (series[i], series[np.minimum(i + 1, len(series) - 1)]))
        shaped = (-1, *[1] * (w.ndim - 1))
        rate = np.zeros_like(w)
        if self.linear and len(series) > 1:
            rate = np.where((sample < len(series) - 1).reshape(shaped), (following - w) / self.step, 0.0)
            begins = np.where((of.sample[some] > 0) & (i == sample), of.sample[some] * self.step, since)
            w = w + rate * (since - begins).reshape(shaped)
        ends = [np.broadcast_to(t.reshape(shaped), (*w.shape[:-1], 1)) for t in (since, of.barrier[some])]
        return np.concatenate([w, rate, *ends], axis=-1)
