"""The compiled steps of a run with their inputs: for a batch of runs, and for trial steps of some of its runs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pfaffian import kernel
from pfaffian.control.layout import EventNumbers
from pfaffian.kernel.call.recipe import Backend
from pfaffian.kernel.call.rollout import Buffers, InPlace
from pfaffian.kernel.program.numpy_loop import LARGEST, Hold, RolloutResult
from pfaffian.kernel.remember import remembered
from pfaffian.simulate.step.events import eventful
from pfaffian.simulate.step.inputs import Times
from pfaffian.simulate.step.running_statistics import Tally
from pfaffian.simulate.step.sampling import in_python
from pfaffian.simulate.step.simulation import Simulation
from pfaffian.states.abstract_system import show

ROOM = 2**10
"""Rows of the parts of steps with events for which a call of a single run has room; where there are more it is made again."""


@remembered(64)
def compiled(simulation: Simulation, backend: Backend, lanes: int, strict: bool) -> kernel.Rollout:
    """The compiled time loop of a simulation."""
    build = lambda: (simulation.traced.step, simulation.traced.observe, *simulation.traced.samplers)  # noqa: E731
    return kernel.compile_rollout(build, backend=backend, lanes=lanes, strict=strict, key=simulation.key)


def settled(s: Simulation, loop: kernel.Rollout, x: np.ndarray, u: np.ndarray, p: np.ndarray, t: float) -> np.ndarray:
    """The states x (runs, nx) of runs that begin at the time t [s], with the next values of switched parameters, and put onto
    the constraints where one jumps there: the end of a step without length.

    u: (samples, nu) or (samples, runs, nu).   p: (runs, np).
    """
    if not eventful(s):
        return x
    never = [(LARGEST, LARGEST - 1)] * (len(loop.shapes) - 2)
    r = loop(x, u, p, kernel.Span(t, 0.0, 1, limit=s.system.limit, sampling=never))
    d = s.nx - s.layout.size
    jumps = EventNumbers(*r.x[:, d:][:, s.layout.events].T).last >= 0
    states = np.where(jumps[:, None], r.x[:, :d], x[:, :d])
    return np.where((r.status == 0)[:, None], np.hstack([states, r.x[:, d:]]), x)


@dataclass(frozen=True, eq=False)
class TimeLoop:
    """A compiled simulation with its inputs.

    when: times of steps and records.   series, hold: inputs, see `kernel.Rollout`.   p: (runs, np) parameters.
    due: period and phase of each sampler, in steps.   threads: number of threads of a call.
    tally: statistics of the run, if any; every step is then recorded for them.
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

    @property
    def _limit(self) -> float:
        """The magnitude beyond which the state has diverged."""
        return self.simulation.system.limit

    def span(self, first: int, steps: int, last: bool = False) -> kernel.Span:
        """The Span of `steps` steps of the run from step `first`.   last: whether the last state is recorded."""
        when = self.when
        return kernel.Span(when.start, when.step, steps, self.every, first, last, self.hold, when.stride, self._limit, self.due)

    def steps(self, x: np.ndarray, at: slice, first: int, steps: int, last: bool, **so_far: Any) -> RolloutResult:
        """The next steps of the runs `at`, from their states x (runs, nx) at step `first`.

        last: whether the last state is recorded.   so_far: `status` and `stopped` of the runs. The result of a single run with
        events holds the parts of its steps.
        """
        series = self.series[:, at] if self.series.ndim == 3 else self.series
        room = ROOM if len(x) == len(self.p) == 1 and eventful(self.simulation) else 0
        return self.rollout(x, series, self.p[at], self.span(first, steps, last), threads=self.threads, room=room, **so_far)

    def beside(self, x: np.ndarray, runs: np.ndarray, *, first: int, steps: int, parts: int = 1) -> RolloutResult:
        """Trial steps of some runs, which leave the run itself unchanged, with the record at their end.

        x: (len(runs), nx) the states at step `first`.   runs: indices of the runs in the batch.
        parts: number of substeps in each step; `first` and `steps` count substeps.
        """
        if len(x) == len(self.p) == 1:
            return self._alone(x, first, steps, parts)
        series, p, whole = self.series, self.p, len(runs) == len(self.p)
        span = self._in_parts(parts)._replace(first=first, steps=steps, every=first + steps, last=True)
        chosen = series if whole or series.ndim == 2 else series[:, runs]
        return self.rollout(x, chosen, p if whole else p[runs], span, threads=self.threads)

    def _in_parts(self, parts: int) -> kernel.Span:
        """The Span of trial steps, with each step of the run divided into `parts` substeps."""
        when, due = self.when, [(period * parts, phase * parts) for period, phase in self.due]
        length, stride = when.step / parts, when.stride * parts
        return kernel.Span(when.start, length, 0, hold=self.hold, stride=stride, limit=self._limit, sampling=due)

    def _alone(self, x: np.ndarray, first: int, steps: int, parts: int) -> RolloutResult:
        """Trial steps of a batch of one run, where preparing a call takes longer than the call: prepared calls are reused."""
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
        """Prepared calls for a single run, by the number of substeps."""
        return {}

    def q_and_v(self, k: int, x: np.ndarray, runs: np.ndarray) -> np.ndarray:
        """[q; v; 0] (len(runs), nq + nv + 1) of the states x of these runs at step k."""
        s = self.simulation
        p = s.parameters(self.p[runs], x) if s.system.other_state else self.p
        q, v = show(s.system, x, p, self.when.start + k * self.when.step)
        q_v = np.zeros((len(x), q.shape[1] + v.shape[1] + 1))
        q_v[:, : q.shape[1]], q_v[:, q.shape[1] : -1] = q, v
        return q_v
