"""Derivatives of a run to an accuracy, with the instants at which its steps begin and end held fixed.

The steps that error control has chosen are differentiated one after another, each as in `sensitivity.py`. A record is a step of
its own, from where the step begins that contains its instant. Each run has its own steps, so that their lengths are inputs of
the compiled steps; a run that has made its last step waits for the others.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pfaffian.control.law import Control
from pfaffian.differentiation.many_steps import (
    RunAxes,
    backward_steps,
    forward_steps,
    input_series,
    regular_start,
)
from pfaffian.differentiation.sensitivity import DifferentiableRun, RunGradient, gradient_of
from pfaffian.differentiation.step_slopes import differentiable
from pfaffian.errors import RunError
from pfaffian.evaluate.single_values import MOST_THREADS, as_number, as_whole
from pfaffian.kernel import Span
from pfaffian.kernel.call.recipe import Backend
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.simulate.record.result import causes_of
from pfaffian.simulate.run.accuracy_request import PAIR, as_accuracy
from pfaffian.simulate.run.accurate import run_with_steps
from pfaffian.simulate.run.run_request import RunRequest
from pfaffian.simulate.run.solver import Solver
from pfaffian.simulate.run.step_log import StepBegins
from pfaffian.simulate.step.lane import SAME, lane_of
from pfaffian.simulate.step.simulation import Simulation
from pfaffian.simulate.step.step import Scheme


class _FrozenSteps(NamedTuple):
    """The steps of runs.   x: (points, runs, nx) states at which they begin, the last being the end of the last step.
    begin, h: (points, runs) when they begin and how long they are [s], 0 where a run waits.   w: (points, runs, nw) inputs.
    sample: (points, runs) index of the sample of u that these are.   samples: their number.   p: (runs, np).
    at, left: (records, runs) from which point the step to a record begins, and how long it is [s]."""

    s: Simulation
    x: np.ndarray
    begin: np.ndarray
    h: np.ndarray
    w: np.ndarray
    sample: np.ndarray
    samples: int
    p: np.ndarray
    at: np.ndarray
    left: np.ndarray
    axes: RunAxes
    threads: int
    backend: Backend

    def forwards(self, dq: Any, dv: Any, du: Any, dp: Any) -> np.ndarray:
        """Changes (records, runs, nx) of the records."""
        s, axes, n, n_w = self.s, self.axes, self.s.nx, len(self.s.w_names)
        change = np.broadcast_to(input_series(du, s.w_names, self.samples, axes.runs, "du"), (self.samples, axes.runs, n_w))
        both = np.concatenate([self.w, change[self.sample, np.arange(axes.runs)]], axis=2)
        p = axes.moved_parameters(s.mechanism, self.p, dp)
        step = partial(forward_steps(s, self.backend, 8, True), threads=self.threads)
        inputs = np.concatenate([both, self.begin[:, :, None], self.h[:, :, None]], axis=2)
        begun = np.hstack([self.x[0], axes.moved_start(s.mechanism, self.x[0], dq, dv)])
        points = step(begun, inputs[:-1], p, self.span(len(self.x) - 1)).records if len(self.x) > 1 else begun[None]
        inputs = self.at_records(inputs)
        inputs[..., -1] = self.left
        ends = step(self.flat(self.at_records(points)), self.flat(inputs)[None], self.of_records(p), self.span(1)).x
        return np.asarray(ends[:, n:].reshape(*self.at.shape, n))

    def backwards(self, g: np.ndarray) -> RunGradient:
        """Gradient of the sum of g (records, runs, nx) times the records."""
        s, n, runs = self.s, self.s.nx, self.axes.runs
        step = partial(backward_steps(s, self.backend, 8), threads=self.threads)
        n_p, n_w = self.p.shape[1], len(s.w_names)
        ends = np.concatenate([self.flat(g), np.zeros((g[..., 0].size, n_p + n_w))], axis=1)
        before = np.concatenate([self.x, self.w, self.begin[:, :, None], self.h[:, :, None], np.zeros_like(self.x)], axis=2)
        now = self.at_records(before)
        now[..., n + n_w + 1] = self.left
        back = step(ends, self.flat(now)[None], self.of_records(self.p), self.span(1)).x.reshape(*self.at.shape, -1)
        run = np.broadcast_to(np.arange(runs), self.at.shape)
        np.add.at(before[:, :, -n:], (self.at, run), back[..., :n])
        by_u = np.zeros((self.samples, runs, n_w))
        np.add.at(by_u, (self.at_records(self.sample), run), back[..., n + n_p :])
        state = np.concatenate([before[-1, :, -n:], back[..., n : n + n_p].sum(axis=0), np.zeros((runs, n_w))], axis=1)
        if len(self.x) > 1:
            swept = step(state, before[-2::-1], self.p, self.span(len(self.x) - 1))
            state = swept.x
            np.add.at(by_u, (self.sample[-2::-1], np.arange(runs)), swept.records[1:])
        return gradient_of(s.mechanism, self.axes, self.x[0], state[:, : n + n_p], by_u)

    def span(self, steps: int) -> Span:
        """The span of a call."""
        return Span(0.0, 1.0, steps, last=True, limit=np.inf)

    def at_records(self, x: np.ndarray) -> np.ndarray:
        """(records, runs, ...) the entries of x (points, runs, ...) from which the steps to the records begin."""
        return x[self.at, np.arange(self.axes.runs)]

    def flat(self, x: np.ndarray) -> np.ndarray:
        """x (records, runs, n) as rows."""
        return x.reshape(-1, x.shape[-1])

    def of_records(self, p: np.ndarray) -> np.ndarray:
        """The rows p (runs, n) for each record."""
        return np.tile(p, (len(self.at), 1))


def accurate_rollout(
    m: Mechanism,
    q: Any,
    v: Any = None,
    u: Any = None,
    *,
    accuracy: float,
    times: Any = None,
    duration: float | None = None,
    u_step: float | None = None,
    t: float = 0.0,
    parameters: Any = None,
    control: Control | None = None,
    scheme: Scheme | None = None,
    threads: int = 1,
    backend: Backend = "auto",
) -> DifferentiableRun:
    """A run to an accuracy, with the bits of `run` and with derivatives by the start, the inputs and the parameters.

    The derivatives are those of the steps that the run has made, whose instants stay where they are. They are the exact ones of
    these steps, and those of the motion as far as the steps suffice for its derivatives too. The run keeps to one explicit
    pair, `dopri5` or `dop853`, where `run` may change to the stiff one, and passes kinks of forces by short steps, where `run`
    ends steps at them.

    Args:
        m: the mechanism.
        q: (nq,) or (runs, nq) array, or {coordinate: number or (runs,)}, neutral where left out; on the constraints.
        v: (nv,) or (runs, nv) array, or {velocity: number or (runs,)}; what is left out is zero.
        u: (nu,) or {input: number} for all times; with `u_step` (samples, nu) or (samples, runs, nu). Zero by default.
        accuracy: largest error of the motion at each record, as in `run`.
        times: (records,) increasing instants of the records [s]; or give `duration`.
        duration: of the run [s], with 201 records.
        u_step: time from one sample of u to the next [s]; each is held.
        t: time at the start [s], 0 by default.
        parameters: {name: value or (runs,)} or a (np,) or (runs, np) array; defaults where left out.
        control: a law in continuous time, None by default.
        scheme: with the integrator dopri5 or dop853, the default.
        threads: number of threads that share the runs of a batch, 1 by default.
        backend: "auto" interpreted at once, and compiled beside it where that pays; "c" compiled first; "interpreter" or
            "numpy" only interpreted, in C or by NumPy. The bits are the same.
    Returns:
        a `DifferentiableRun`: time (records,), q (records, ..., nq), v (records, ..., nv), and its methods jvp and vjp.
    Raises ModelError: as `rollout`; an accuracy or times that `run` refuses.
    Raises RunError: a run stops; the message says why.

    Example:
        The period of a pendulum's small swings is 2 pi sqrt(l / g), so that after 1 s, with g = 9.81 and l = 1:

        >>> import pfaffian as pf
        >>> rod = pf.Parameter("rod", 1.0, "m")
        >>> hinge = pf.joint("hinge", "revolute", "world", "bob", axis=(0, 1, 0))
        >>> m = pf.mechanism("pendulum", [pf.body("bob", 1.0, com=(0, 0, -rod))], [hinge], parameters=[rod])
        >>> r = pf.calculus.accurate_rollout(m, [1e-4], accuracy=1e-9, times=[1.0], backend="numpy")
        >>> print((r.jvp(dp=[1.0]).q / 1e-4).round(4))  # sqrt(g) / 2 sin sqrt(g)
        [[0.0149]]
    """
    as_mechanism(m)
    exact = as_accuracy(accuracy)
    s = differentiable(m, control, scheme or Scheme(integrator=PAIR), "accurate_rollout")
    begin, workers = as_number(t, "t"), as_whole(threads, "threads", most=MOST_THREADS)
    regular_start(s.mechanism, q, v, parameters, begin, backend, "accurate_rollout")
    result, solver, log = run_with_steps(
        s.system,
        RunRequest(
            accuracy=exact, times=times, duration=duration, max_step=None, start=begin, start_from=None, q=q, v=v, guess=None,
            parameters=parameters, u=u, u_step=u_step, hold="zero", control=control, switches=None, outputs=None,
            record=["q", "v"], scheme=s.scheme, correct_start=False, error=None, seed=0, backend=backend, strict=True,
            threads=threads, progress=False,
        ),
    )  # fmt: skip
    status = result["status"]
    if status.any():
        run = int(np.argmax(status != 0))
        cause = causes_of(solver.simulation)[status[run]]
        raise RunError(
            f"accurate_rollout: run {run} stopped at {result['stopped'][run]:.6g} s: {cause}; there is no derivative"
        )
    runs = len(status)
    axes = RunAxes(runs, runs > 1 or np.ndim(u) == 3 or any(np.ndim(y) == 2 for y in (q, v, parameters)))
    of = _frozen(solver, log.begins(lane_of(solver.simulation), runs), axes, workers, backend)
    steps = (of.h > 0).sum(axis=0)
    qs, vs = (axes.shaped(result[name].transpose(1, 0, 2)) for name in ("q", "v"))
    return DifferentiableRun(result["time"], qs, vs, steps if axes.many else steps[0], of)


def _frozen(solver: Solver, begins: StepBegins, axes: RunAxes, threads: int, backend: Backend) -> _FrozenSteps:
    """The steps of a solution, up to the last point from which a record is reached."""
    runs, instants = np.arange(axes.runs), solver.instants
    at = np.array([np.searchsorted(begins.time[:, i], instants, "right") - 1 for i in runs]).T
    left = instants[:, None] - begins.time[at, runs]
    h = np.diff(begins.time, axis=0, append=begins.time[-1:])
    period, count = solver.inputs.step, len(solver.inputs.series)
    sample = np.zeros(begins.since.shape, dtype=int)
    if count > 1:
        sample = np.minimum((begins.since * (1 + SAME) / period).astype(int), count - 1)
    return _FrozenSteps(
        solver.simulation, begins.x, solver.begin + begins.time, h, begins.w, sample, count, solver.p, at, left, axes, threads,
        backend,
    )  # fmt: skip
