"""Derivatives of a run to an accuracy, with the instants at which its steps begin and end held fixed.

The steps that error control has chosen are differentiated one after another, each as in `sensitivity.py`. A record is a step of
its own, from where the step begins that contains its instant. Each run has its own steps, so that their lengths are inputs of
the compiled steps; a run that has made its last step waits for the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pfaffian.control.law import Control
from pfaffian.differentiation.many_steps import (
    RunAxes,
    backward_steps,
    forward_steps,
    input_series,
    q_and_v,
    regular_start,
)
from pfaffian.differentiation.sensitivity import RunGradient, RunTangent, gradient_of
from pfaffian.differentiation.step_slopes import differentiable
from pfaffian.errors import RunError
from pfaffian.evaluate.single_values import MOST_THREADS, as_number, as_whole
from pfaffian.kernel import Span
from pfaffian.kernel.call.recipe import Backend
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.simulate.record.result import causes_of
from pfaffian.simulate.run.accuracy_request import RunRequest, as_accuracy, pair_for
from pfaffian.simulate.run.accurate import run_with_steps
from pfaffian.simulate.run.solver import Solver
from pfaffian.simulate.run.step_log import StepBegins
from pfaffian.simulate.step.lane import SAME, lane_of
from pfaffian.simulate.step.simulation import Simulation
from pfaffian.simulate.step.step import Scheme


@dataclass(frozen=True, eq=False)
class AccurateRollout:
    """A run to an accuracy with forward (`jvp`) and backward (`vjp`) derivatives, returned by `pf.calculus.accurate_rollout`.

    time: (records,) [s].   q: (records, ..., nq), v: (records, ..., nv), each with an axis of runs if several runs were given.
    steps: (...) number of steps that were differentiated, without those to the records.
    """

    time: np.ndarray
    q: np.ndarray
    v: np.ndarray
    steps: np.ndarray
    _of: _FrozenSteps

    def __repr__(self) -> str:
        return f"<AccurateRollout of {self._of.s.mechanism.name!r}: {len(self.time)} records, {self._of.axes.runs} runs>"

    def jvp(self, *, dq: Any = None, dv: Any = None, du: Any = None, dp: Any = None) -> RunTangent:
        """Change of all records when the start changes by K(q) dq and dv, the inputs by du and the parameters by dp.

        Args:
            dq: (nv,), (runs, nv) or {velocity: number}; this and all others are zero by default.
            dv: (nv,), (runs, nv) or {velocity: number}.
            du: (nu,) for all samples of u, (samples, nu) or (samples, runs, nu).
            dp: (np,), (runs, np) or {parameter: number}.
        Returns:
            a named tuple: changes of q (records, ..., nq) and v (records, ..., nv).
        Raises ModelError: wrong names or shapes.
        """
        o = self._of
        m, n, runs = o.s.mechanism, o.s.nx, o.axes.runs
        change = np.broadcast_to(input_series(du, o.s.w_names, o.samples, runs, "du"), (o.samples, runs, len(o.s.w_names)))
        both = np.concatenate([o.w, change[o.sample, np.arange(runs)]], axis=2)
        p = o.axes.moved_parameters(m, o.p, dp)
        step = partial(forward_steps(o.s, o.backend, 8, True), threads=o.threads)
        inputs = np.concatenate([both, o.begin[:, :, None], o.h[:, :, None]], axis=2)
        begun = np.hstack([o.x[0], o.axes.moved_start(m, o.x[0], dq, dv)])
        points = step(begun, inputs[:-1], p, o.span(len(o.x) - 1)).records if len(o.x) > 1 else begun[None]
        inputs = o.at_records(inputs)
        inputs[..., -1] = o.left
        ends = step(o.flat(o.at_records(points)), o.flat(inputs)[None], o.of_records(p), o.span(1)).x
        return RunTangent(*[o.axes.shaped(x) for x in q_and_v(ends[:, n:].reshape(*o.at.shape, n), m)])

    def vjp(self, *, q: Any = None, v: Any = None) -> RunGradient:
        """Gradient of sum(q * records of q) + sum(v * records of v), by one backward sweep over all steps.

        Args:
            q: (records, ..., nq) weights, such as the derivative of a cost with respect to the records; zero by default.
            v: (records, ..., nv) weights, zero by default.
        Returns:
            a named tuple: q (..., nv) along the velocities and v (..., nv) of the start, u (samples, ..., nu), parameters (...,
            np).
        Raises ModelError: weights of another shape.
        """
        o = self._of
        m, n, runs = o.s.mechanism, o.s.nx, o.axes.runs
        g = o.axes.weights_of_state(m, q, v, (len(self.time), n))
        step = partial(backward_steps(o.s, o.backend, 8), threads=o.threads)
        n_p, n_w = o.p.shape[1], len(o.s.w_names)
        ends = np.concatenate([o.flat(g), np.zeros((g[..., 0].size, n_p + n_w))], axis=1)
        before = np.concatenate([o.x, o.w, o.begin[:, :, None], o.h[:, :, None], np.zeros_like(o.x)], axis=2)
        now = o.at_records(before)
        now[..., n + n_w + 1] = o.left
        back = step(ends, o.flat(now)[None], o.of_records(o.p), o.span(1)).x.reshape(*o.at.shape, -1)
        run = np.broadcast_to(np.arange(runs), o.at.shape)
        np.add.at(before[:, :, -n:], (o.at, run), back[..., :n])
        by_u = np.zeros((o.samples, runs, n_w))
        np.add.at(by_u, (o.at_records(o.sample), run), back[..., n + n_p :])
        state = np.concatenate([before[-1, :, -n:], back[..., n : n + n_p].sum(axis=0), np.zeros((runs, n_w))], axis=1)
        if len(o.x) > 1:
            swept = step(state, before[-2::-1], o.p, o.span(len(o.x) - 1))
            state = swept.x
            np.add.at(by_u, (o.sample[-2::-1], np.arange(runs)), swept.records[1:])
        return gradient_of(m, o.axes, o.x[0], state[:, : n + n_p], by_u)


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
) -> AccurateRollout:
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
        scheme: with the integrator dopri5 or dop853; by default the one that suits the accuracy.
        threads: number of threads that share the runs of a batch, 1 by default.
        backend: "auto" interpreted at once, and compiled beside it where that pays; "c" compiled first; "interpreter" or
            "numpy" only interpreted, in C or by NumPy. The bits are the same.
    Returns:
        an `AccurateRollout`: time (records,), q (records, ..., nq), v (records, ..., nv), and its methods jvp and vjp.
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
    s = differentiable(m, control, scheme or Scheme(integrator=pair_for(exact)), "accurate_rollout")
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
    return AccurateRollout(result["time"], qs, vs, steps if axes.many else steps[0], of)


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
