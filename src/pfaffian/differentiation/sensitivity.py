"""Derivatives of one step and of many steps with respect to the initial state, the inputs and the parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import casadi as ca
import numpy as np

from pfaffian import kernel
from pfaffian.control.law import Control
from pfaffian.differentiation.many_steps import (
    RunAxes,
    along_velocities,
    backward_steps,
    broadcast_runs,
    forward_steps,
    input_series,
    q_and_v,
    regular_start,
)
from pfaffian.differentiation.step_slopes import differentiable, refuse_accuracy, with_matrices
from pfaffian.errors import RunError
from pfaffian.evaluate.arrays import as_batch, configurations, parameter_values, velocities
from pfaffian.evaluate.compiled import given, matrices
from pfaffian.evaluate.single_values import MOST_THREADS, as_number, as_whole, some_runs
from pfaffian.kernel import Span
from pfaffian.kernel.call.recipe import Backend, check_options
from pfaffian.kernel.remember import remembered as by_key
from pfaffian.model.mechanism import Mechanism
from pfaffian.simulate.record.result import causes_of
from pfaffian.simulate.run.roll import first_state
from pfaffian.simulate.step.simulation import Simulation
from pfaffian.simulate.step.step import Scheme
from pfaffian.terms.connection import left_inverse
from pfaffian.terms.kinematics import Kinematics


class StepDerivatives(NamedTuple):
    """The end of a step and its derivatives, x_next = A x + B u + P p with x = [displacements along the velocities; v; z].

    q: (..., nq), v: (..., nv), z: (..., nz) of a law, after the step.   A: (..., n, n), n = 2 nv + nz.   B: (..., n, inputs).
    P: (..., n, np).
    """

    q: np.ndarray
    v: np.ndarray
    z: np.ndarray
    A: np.ndarray
    B: np.ndarray
    P: np.ndarray


def step_derivatives(
    m: Mechanism,
    q: Any,
    v: Any = None,
    u: Any = None,
    *,
    step: float = 1e-3,
    accuracy: None = None,
    t: float = 0.0,
    parameters: Any = None,
    control: Control | None = None,
    z: Any = None,
    scheme: Scheme | None = None,
    threads: int = 1,
    backend: Backend = "auto",
) -> StepDerivatives:
    """One step of `run` from one or many states, and its derivatives with respect to state, inputs and parameters.

    The derivatives follow the stages of the integrator, including the correction onto the constraints. Each stage has the
    derivatives of `derivatives`; stages of tr-bdf2 have those of the equations that they solve. The factors along which the
    correction moves are treated as constant, which neglects a part of the size of the corrected residual: about step^5, and
    step^3 with tr-bdf2. Where the start satisfies the constraints, so do A, B and P. Where a force has a kink, such as a
    contact that begins, the derivative is that of the side on which the step lies.

    Args:
        m: the mechanism.
        q: (nq,) or (runs, nq) array, or {coordinate: number or (runs,)}, neutral where left out; on the constraints.
        v: (nv,) or (runs, nv) array, or {velocity: number or (runs,)}; what is left out is zero.
        u: (nu,) or (runs, nu) array, or {input: number or (runs,)}, constant during the step; under a law, the inputs of the
            law and the external wrenches. What is left out is zero.
        step: length of the step [s], 1e-3 by default.
        accuracy: refused, since steps of one length have none; `accurate_rollout` takes it.
        t: time at the start of the step [s], 0 by default.
        parameters: {name: value or (runs,)} or a (np,) or (runs, np) array; defaults where left out.
        control: a law in continuous time, None by default.
        z: (nz,) or (runs, nz) states that the law integrates; their start values by default.
        scheme: with the integrator rk4, euler, tr-bdf2, dopri5 or dop853; `pf.Scheme()` by default.
        threads: number of threads that share the states of a batch, 1 by default.
        backend: "auto" interpreted at once, and compiled beside it where that pays; "c" compiled first; "interpreter" or
            "numpy" only interpreted, in C or by NumPy. The bits are the same.
    Returns:
        a named tuple: q (..., nq), v (..., nv), z (..., nz) after the step; A (..., n, n), B (..., n, inputs) and P (..., n,
        np), n = 2 nv + nz, of displacements along the velocities, q + K(q) eps, of v and of z.
    Raises ModelError: wrong names, shapes or numbers; the integrator midpoint, a law in discrete time, constraints that
    switch on and off, a joint with a distribution, an accuracy.

    Example:
        >>> import pfaffian as pf
        >>> slide = pf.joint("x", "prismatic", "world", "box", axis=(1, 0, 0), stiffness=8.0)
        >>> m = pf.mechanism("oscillator", [pf.body("box", mass=2.0)], [slide])
        >>> pf.calculus.step_derivatives(m, [0.1], step=0.5, backend="numpy").A.round(3)  # a rotation by 2 rad/s * 0.5 s
        array([[ 0.542,  0.417], [-1.687,  0.542]])
    """
    refuse_accuracy(accuracy, "step_derivatives")
    s = differentiable(m, control, scheme, "step_derivatives")
    m, names, zs = s.mechanism, s.w_names, np.array(s.z, dtype=float)
    at = given(
        q=(q, configurations(m, q)),
        v=(v, velocities(m, v)),
        u=(u, as_batch(u, names, np.zeros(len(names)), "u")),
        z=(z, as_batch(z, [f"z{i}" for i in range(len(zs))], zs, "z")),
        parameters=(parameters, parameter_values(m, parameters)),
    )
    f, n = _step(s, backend), 2 * m.nv + len(zs)
    shapes = [(m.nq, 1), (m.nv, 1), (len(zs), 1), (n, n), (n, len(names)), (n, len(m.p_names))]
    count = as_whole(threads, "threads", most=MOST_THREADS)
    times = np.array([as_number(t, "t")]), np.array([as_number(step, "step", above=0)])
    arrays = matrices(lambda *x: f(*x, threads=count), at, shapes, *times)
    return StepDerivatives(*[x[..., 0] for x in arrays[:3]], *arrays[3:])


@by_key(64)
def _step(s: Simulation, backend: Backend) -> kernel.Kernel:
    """Kernel (q, v, w, z, p, t, h) -> the arrays of StepDerivatives, column by column."""
    m = s.mechanism

    def build() -> ca.Function:
        """One step with its Jacobians by coordinates of velocity, as a function of q, v, inputs, z, parameters, t and h."""
        parts = with_matrices(s)
        (x, w, p, t, h), x_next = parts.step(s)
        J = ca.jacobian(x_next, ca.vertcat(x, w, p))
        here, end = (Kinematics(m, y[: m.nq, 0], ca.SX(m.nv, 1), time) for y, time in ((x, t), (x_next, t + h)))
        rest = x.numel() - m.nq
        onto, back = here.kinematic_matrix, left_inverse(end)
        J = ca.diagcat(back, ca.SX.eye(rest)) @ J @ ca.diagcat(onto, ca.SX.eye(rest + w.numel() + p.numel()))
        n = m.nv + rest
        values = [*ca.vertsplit(x_next, [0, m.nq, m.nq + m.nv, x.numel()]), J[:, :n], J[:, n : n + w.numel()]]
        values.append(J[:, n + w.numel() :])
        q, v, z = (ca.SX.sym(name, k) for name, k in (("q", m.nq), ("v", m.nv), ("z", len(s.z))))
        f = ca.Function("step", [x, w, p, t, h], values)
        outputs = [ca.vec(ca.densify(y)) for y in f(ca.vertcat(q, v, z), w, p, t, h)]
        return ca.Function("step_derivatives", [q, v, w, z, p, t, h], outputs)

    return kernel.compile(build, key=f"step derivatives {s.key}", backend=backend)


# -- many steps -----------------------------------------------------------------------------------------------------------


class RunTangent(NamedTuple):
    """Changes of q (records, ..., nq) and v (records, ..., nv) along a direction."""

    q: np.ndarray
    v: np.ndarray


class RunGradient(NamedTuple):
    """Derivatives of one number with respect to the start, q (..., nv) along the velocities and v (..., nv), the samples of the
    inputs u (samples, ..., nu) and the parameters (..., np)."""

    q: np.ndarray
    v: np.ndarray
    u: np.ndarray
    parameters: np.ndarray


def gradient_of(m: Mechanism, axes: RunAxes, start: np.ndarray, swept: np.ndarray, by_u: np.ndarray) -> RunGradient:
    """The gradient at the end of a backward sweep.   start: (runs, nx).   swept: (runs, nx + np) by the state there and by the
    parameters.   by_u: (samples, runs, nu)."""
    n = start.shape[1]
    parts = (along_velocities(m, start, swept), swept[:, m.nq : m.nq + m.nv], by_u, swept[:, n:])
    return RunGradient(*[x if axes.many else x[..., 0, :] for x in parts])


class Differentiated(Protocol):
    """The steps of runs, through which changes are carried.   s: the simulation.   axes: of the runs."""

    @property
    def s(self) -> Simulation: ...

    @property
    def axes(self) -> RunAxes: ...

    def forwards(self, dq: Any, dv: Any, du: Any, dp: Any) -> np.ndarray:
        """Changes (records, runs, nx) of the records, from those of the start, the inputs and the parameters."""

    def backwards(self, g: np.ndarray) -> RunGradient:
        """Gradient of the sum of g (records, runs, nx) times the records."""


@dataclass(frozen=True, eq=False)
class DifferentiableRun:
    """A run with its forward (`jvp`) and backward (`vjp`) derivatives, from `pf.calculus.rollout` or `accurate_rollout`.

    time: (records,) [s].   q: (records, ..., nq), v: (records, ..., nv), each with an axis of runs if several runs were given.
    steps: number of steps that were differentiated, without those of an accurate run to its records; there (...), of each run.
    """

    time: np.ndarray
    q: np.ndarray
    v: np.ndarray
    steps: int | np.ndarray
    _of: Differentiated

    def __repr__(self) -> str:
        return f"<DifferentiableRun of {self._of.s.mechanism.name!r}: {len(self.time)} records, {self._of.axes.runs} runs>"

    def jvp(self, *, dq: Any = None, dv: Any = None, du: Any = None, dp: Any = None) -> RunTangent:
        """Change of all records when the start changes by K(q) dq and dv, the inputs by du and the parameters by dp.

        Args:
            dq: (nv,), (runs, nv) or {velocity: number}; this and all others are zero by default.
            dv: (nv,), (runs, nv) or {velocity: number}.
            du: (nu,) for all samples of u, (samples, nu) or (samples, runs, nu). The samples of `rollout` are its steps.
            dp: (np,), (runs, np) or {parameter: number}.
        Returns:
            a named tuple: changes of q (records, ..., nq) and v (records, ..., nv).
        Raises ModelError: wrong names or shapes.
        """
        o = self._of
        return RunTangent(*[o.axes.shaped(x) for x in q_and_v(o.forwards(dq, dv, du, dp), o.s.mechanism)])

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
        return o.backwards(o.axes.weights_of_state(o.s.mechanism, q, v, (len(self.time), o.s.nx)))


class _EqualSteps(NamedTuple):
    """Steps of one length.   x: (records, runs, nx).   u: (samples, nu) or (samples, runs, nu).   p: (runs, np)."""

    s: Simulation
    x: np.ndarray
    u: np.ndarray
    p: np.ndarray
    span: Span
    axes: RunAxes
    threads: int
    backend: Backend

    def forwards(self, dq: Any, dv: Any, du: Any, dp: Any) -> np.ndarray:
        """Changes (records, runs, nx) of the records."""
        s, axes = self.s, self.axes
        moved = axes.moved_start(s.mechanism, self.x[0], dq, dv)
        change = input_series(du, s.w_names, self.span.steps, axes.runs, "du")
        both = np.concatenate(np.broadcast_arrays(broadcast_runs(self.u, axes.runs), change), axis=2)
        p = axes.moved_parameters(s.mechanism, self.p, dp)
        steps = forward_steps(s, self.backend, axes.lanes, False)
        r = steps(np.hstack([self.x[0], moved]), both, p, self.span, threads=self.threads)
        return r.records[:, :, s.nx :]

    def backwards(self, g: np.ndarray) -> RunGradient:
        """Gradient of the sum of g (records, runs, nx) times the records."""
        s, runs, span = self.s, self.axes.runs, self.span
        backward, n_p = backward_steps(s, self.backend, self.axes.lanes), self.p.shape[1]
        end = g[-1] if span.steps % span.every == 0 else 0 * g[-1]  # otherwise the last record lies before the end
        state = np.hstack([end, np.zeros((runs, n_p + len(s.w_names)))])
        inputs = list[np.ndarray]()
        for k in reversed(range(0, span.steps, span.every)):
            x, u, t = self.between(k)
            direct = np.zeros_like(x)  # weights of the records, part of the gradient at their steps
            direct[0] = g[k // span.every]
            both = (np.broadcast_to(y, (*x.shape[:2], 1)) for y in (t[:, None, None], span.h))
            now = np.concatenate([x, u, *both, direct], axis=2)[::-1]
            r = backward(state, now, self.p, Span(0.0, span.h, len(x), last=True, limit=np.inf), threads=self.threads)
            inputs.append(r.records[1:])
            state = r.x
        by_u = np.concatenate([np.zeros((0, runs, len(s.w_names))), *inputs])[::-1]
        return gradient_of(s.mechanism, self.axes, self.x[0], state[:, : s.nx + n_p], by_u)

    def between(self, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """States and inputs (steps, runs, n) and times (steps,) of the steps from that of a record, k, to the next record.

        The states between records are computed again.
        """
        span, every = self.span, self.span.every
        steps = min(every, span.steps - k)
        x = self.x[[k // every]]
        if steps > 1:
            again = span._replace(first=k, steps=steps, every=1, last=False)
            x = _states(self.s, self.backend, self.axes.lanes)(x[0], self.u, self.p, again, threads=self.threads).records
        u = broadcast_runs(self.u[k : k + steps] if len(self.u) > 1 else self.u, self.axes.runs)
        return x, np.broadcast_to(u, (steps, *u.shape[1:])), span.t0 + span.h * np.arange(k, k + steps)


def rollout(
    m: Mechanism,
    q: Any,
    v: Any = None,
    u: Any = None,
    *,
    steps: int | None = None,
    step: float = 1e-3,
    accuracy: None = None,
    every: int = 1,
    t: float = 0.0,
    parameters: Any = None,
    control: Control | None = None,
    scheme: Scheme | None = None,
    threads: int = 1,
    backend: Backend = "auto",
) -> DifferentiableRun:
    """Many steps, with the bits of `run` and with derivatives with respect to the start, the inputs and the parameters.

    `jvp` carries a change of all of these forwards. `vjp` gives the gradient of one number with respect to all of them, in one
    backward sweep at the cost of about three runs. Both differentiate each step as `step_derivatives` does. The records are the
    checkpoints of the sweep: states between them are computed again. A start in a singular configuration is refused; where a
    motion passes through one, the derivatives are those of the steps taken, with the constraint rows used there.

    Args:
        m: the mechanism.
        q: (nq,) or (runs, nq) array, or {coordinate: number or (runs,)}, neutral where left out; on the constraints.
        v: (nv,) or (runs, nv) array, or {velocity: number or (runs,)}; what is left out is zero.
        u: (nu,) or {input: number} for all steps, (steps, nu) or (steps, runs, nu): constant during each step; under a law, the
            inputs of the law and the external wrenches. Zero by default.
        steps: number of steps.
        step: length of each step [s], 1e-3 by default.
        accuracy: refused, since steps of one length have none; `accurate_rollout` takes it.
        every: number of steps between two records, 1 by default.
        t: time at the start [s], 0 by default.
        parameters: {name: value or (runs,)} or a (np,) or (runs, np) array; defaults where left out.
        control: a law in continuous time, None by default.
        scheme: with the integrator rk4, euler, tr-bdf2, dopri5 or dop853; `pf.Scheme()` by default.
        threads: number of threads that share the runs of a batch, 1 by default.
        backend: "auto" interpreted at once, and compiled beside it where that pays; "c" compiled first; "interpreter" or
            "numpy" only interpreted, in C or by NumPy. The bits are the same.
    Returns:
        a `DifferentiableRun`: time (records,), q (records, ..., nq), v (records, ..., nv), and its methods jvp and vjp.
    Raises ModelError: as `step_derivatives`; a start off the constraints or in a singular configuration.
    Raises RunError: a run stops; the message says why.

    Example:
        Derivative of a 2 kg cart's speed after 1 s with respect to the force in each of ten steps, h / m:

        >>> import numpy as np, pfaffian as pf
        >>> slide = pf.joint("x", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> m = pf.mechanism("cart", [pf.body("cart", mass=2.0)], [slide], actuators=[pf.actuator("push", "x")])
        >>> r = pf.calculus.rollout(m, [0.0], steps=10, step=0.1, every=10, backend="numpy")
        >>> r.vjp(v=[[0.0], [1.0]]).u.ravel().round(3)[:3]
        array([0.05, 0.05, 0.05])
    """
    refuse_accuracy(accuracy, "rollout")
    s = differentiable(m, control, scheme, "rollout")
    m, begin, count = s.mechanism, as_number(t, "t"), as_whole(steps, "steps")
    check_options(backend, 1)
    begun = regular_start(m, q, v, parameters, begin, backend, "rollout")
    values = input_series(u, s.w_names, count, None, "u")
    several = some_runs({"q, v, parameters": len(begun.q), "u": values.shape[1] if values.ndim == 3 else 1})
    x, p = first_state(s, begun, begin, several, 0), np.broadcast_to(begun.p, (several, begun.p.shape[1]))
    many = several > 1 or values.ndim == 3 or any(np.ndim(y) == 2 for y in (q, v, parameters))
    span = Span(begin, as_number(step, "step", above=0), count, as_whole(every, "every"), last=True)
    workers = as_whole(threads, "threads", most=MOST_THREADS)
    axes = RunAxes(several, many)
    r = _states(s, backend, axes.lanes)(x, values, p, span, threads=workers)
    if r.status.any():
        run = int(np.argmax(r.status != 0))
        raise RunError(
            f"rollout: run {run} stopped after {r.stopped[run]} steps: {causes_of(s)[r.status[run]]}; there is no derivative"
        )
    of = _EqualSteps(s, r.records, values, p, span, axes, workers, backend)
    time = begin + span.h * np.array(span.recorded())
    qs, vs = q_and_v(r.records, m)
    return DifferentiableRun(time, axes.shaped(qs), axes.shaped(vs), count, of)


@by_key(64)
def _states(s: Simulation, backend: Backend, lanes: int) -> kernel.Rollout:
    """The compiled steps of `run`, which record the whole state."""

    def build() -> tuple[ca.Function, ...]:
        step = s.traced.step
        given = [ca.SX.sym(name, step.size1_in(i)) for name, i in (("x", 0), ("u", 1), ("p", 3), ("t", 4))]
        return step, ca.Function("states", given, [given[0]])

    return kernel.compile_rollout(build, backend=backend, lanes=lanes, key=f"states {s.key}")
