"""The compiled steps of a run, and what they take: the way on from a state, for all of its runs or for some beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pfaffian import kernel
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
        series, p, when, whole = self.series, self.p, self.when, len(some) == len(self.p)
        span = self.span(first, steps, last=True)._replace(
            h=when.step / parts,
            stride=when.stride * parts,
            every=first + steps,
            sampling=[(period * parts, phase * parts) for period, phase in self.due],
        )
        own = series if whole or series.ndim == 2 else series[:, some]
        return self.rollout(x, own, p if whole else p[some], span, threads=self.threads)

    def q_and_v(self, k: int, x: np.ndarray, some: np.ndarray) -> np.ndarray:
        """[q; v; 0] (runs, nq + nv + 1) of the states x at step k, of these runs of the batch."""
        s = self.simulation
        p = s.parameters(self.p[some], x) if s.system.own_state else self.p
        q, v = show(s.system, x, p, self.when.start + k * self.when.step)
        found = np.zeros((len(x), q.shape[1] + v.shape[1] + 1))
        found[:, : q.shape[1]], found[:, q.shape[1] : -1] = q, v
        return found
