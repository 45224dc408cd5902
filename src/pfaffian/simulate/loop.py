"""The compiled steps of a run, and what they take: the way on from a state, for all of its runs or for some beside it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pfaffian import kernel
from pfaffian.kernel.call.rollout import Buffers, InPlace
from pfaffian.kernel.program.loop import Hold, RolloutResult
from pfaffian.simulate.inputs import Times
from pfaffian.simulate.sampling import in_python
from pfaffian.simulate.simulation import Simulation
from pfaffian.simulate.statistics import Tally
from pfaffian.simulate.system import show


@dataclass(frozen=True, eq=False)
class Loop:
    """A compiled simulation with its inputs.

    when: steps and records.   series, hold: inputs, see `kernel.Rollout`.   p: (runs, np) parameters.   due: period and phase
    of each sampler, in steps.   threads: of a call.   tally: statistics, if any are kept: then each step is recorded for them.
    """

    simulation: Simulation
    rollout: kernel.Rollout
    when: Times
    series: np.ndarray
    hold: Hold
    p: np.ndarray
    due: list[tuple[int, int]]
    threads: int
    tally: Tally | None = None

    @property
    def every(self) -> int:
        """Steps between two records of a call."""
        return 1 if self.tally else self.when.every

    @property
    def python(self) -> bool:
        """Whether a law in Python is evaluated between the steps."""
        return in_python(self.simulation.control) is not None

    def span(self, first: int, steps: int, last: bool = False) -> kernel.Span:
        """Some steps of the run.   last: whether the last state is recorded."""
        when = self.when
        return kernel.Span(when.start, when.step, steps, self.every, first, last, self.hold, when.stride, sampling=self.due)

    def steps(self, x: np.ndarray, at: slice, first: int, steps: int, last: bool, **so_far: Any) -> RolloutResult:
        """The next steps of the runs `at`, from their states x (runs, nx) at step `first`.

        last: whether the last state is recorded.   so_far: `status` and `stopped` of the runs.
        """
        series = self.series[:, at] if self.series.ndim == 3 else self.series
        return self.rollout(x, series, self.p[at], self.span(first, steps, last), threads=self.threads, **so_far)

    def beside(self, x: np.ndarray, some: np.ndarray, *, first: int, steps: int, parts: int = 1) -> RolloutResult:
        """Steps of some runs that the run itself does not take, with the record at their end.

        x: (len(some), nx).   parts: of each step; first and steps count them.
        """
        if len(x) == len(self.p) == 1:
            return self._alone(x, first, steps, parts)
        series, p, whole = self.series, self.p, len(some) == len(self.p)
        span = self._in_parts(parts)._replace(first=first, steps=steps, every=first + steps, last=True)
        own = series if whole or series.ndim == 2 else series[:, some]
        return self.rollout(x, own, p if whole else p[some], span, threads=self.threads)

    def _in_parts(self, parts: int) -> kernel.Span:
        """Steps of the run in so many parts."""
        when, due = self.when, [(period * parts, phase * parts) for period, phase in self.due]
        return kernel.Span(when.start, when.step / parts, 0, hold=self.hold, stride=when.stride * parts, sampling=due)

    def _alone(self, x: np.ndarray, first: int, steps: int, parts: int) -> RolloutResult:
        """The same of a single run, whose calls take longer to prepare than to make."""
        if parts not in self._prepared:
            buffers = Buffers(np.empty_like(x), self.series, self.p, np.zeros(1, np.int32), np.zeros(1, np.int64))
            self._prepared[parts] = InPlace(self.rollout, self._in_parts(parts), buffers, 1)
        moved = self._prepared[parts]
        end, _, _, status, stopped = moved.arrays
        end[...], status[...], stopped[...] = x, 0, -1
        record = moved.observed(first, steps)
        return RolloutResult(end.copy(), record[None].copy(), status.copy(), stopped.copy())

    @cached_property
    def _prepared(self) -> dict[int, InPlace]:
        """Of a single run, by the parts of a step."""
        return {}

    def q_and_v(self, k: int, x: np.ndarray, some: np.ndarray) -> np.ndarray:
        """[q; v; 0] (runs, nq + nv + 1) of the states x at step k, of these runs of the batch."""
        s = self.simulation
        p = s.parameters(self.p[some], x) if s.system.other_state else self.p
        q, v = show(s.system, x, p, self.when.start + k * self.when.step)
        found = np.zeros((len(x), q.shape[1] + v.shape[1] + 1))
        found[:, : q.shape[1]], found[:, q.shape[1] : -1] = q, v
        return found
