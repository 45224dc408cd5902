"""Derivatives of one step and of many steps with respect to the initial state, the inputs and the parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

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
from pfaffian.differentiation.step_slopes import differentiable, with_matrices
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
    switch on and off, a joint with a distribution.

    Example:
        >>> import pfaffian as pf
        >>> slide = pf.joint("x", "prismatic", "world", "box", axis=(1, 0, 0), stiffness=8.0)
        >>> m = pf.mechanism("oscillator", [pf.body("box", mass=2.0)], [slide])
        >>> pf.calculus.step_derivatives(m, [0.1], step=0.5, backend="numpy").A.round(3)  # a rotation by 2 rad/s * 0.5 s
        array([[ 0.542,  0.417], [-1.687,  0.542]])
    """
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
    """Derivatives of one number with respect to the start, q (..., nv) along the velocities and v (..., nv), the inputs of
    each step u (steps, ..., nu) and the parameters (..., np)."""

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


@dataclass(frozen=True, eq=False)
class DifferentiableRun:
    """A run with its forward (`jvp`) and backward (`vjp`) derivatives, returned by `pf.calculus.rollout`.

    time: (records,) [s].   q: (records, ..., nq), v: (records, ..., nv), each with an axis of runs if several runs were given.
    """

    time: np.ndarray
    q: np.ndarray
    v: np.ndarray
    _of: _RunData

    def __repr__(self) -> str:
        return f"<DifferentiableRun of {self._of.s.mechanism.name!r}: {len(self.time)} records, {self._of.axes.runs} runs>"

    def jvp(self, *, dq: Any = None, dv: Any = None, du: Any = None, dp: Any = None) -> RunTangent:
        """Change of all records when the start changes by K(q) dq and dv, the inputs by du and the parameters by dp.

        Args:
            dq: (nv,), (runs, nv) or {velocity: number}; this and all others are zero by default.
            dv: (nv,), (runs, nv) or {velocity: number}.
            du: (nu,) for all steps, (steps, nu) or (steps, runs, nu).
            dp: (np,), (runs, np) or {parameter: number}.
        Returns:
            a named tuple: changes of q (records, ..., nq) and v (records, ..., nv).
        Raises ModelError: wrong names or shapes.
        """
        o = self._of
        m, n = o.s.mechanism, o.s.nx
        moved = o.axes.moved_start(m, o.x[0], dq, dv)
        change = input_series(du, o.s.w_names, o.steps, o.axes.runs, "du")
        both = np.concatenate(np.broadcast_arrays(broadcast_runs(o.u, o.axes.runs), change), axis=2)
        p = o.axes.moved_parameters(m, o.p, dp)
        steps = forward_steps(o.s, o.backend, o.axes.lanes, False)
        r = steps(np.hstack([o.x[0], moved]), both, p, o.span, threads=o.threads)
        return RunTangent(*[o.axes.shaped(x) for x in q_and_v(r.records[:, :, n:], m)])

    def vjp(self, *, q: Any = None, v: Any = None) -> RunGradient:
        """Gradient of sum(q * records of q) + sum(v * records of v), by one backward sweep over all steps.

        Args:
            q: (records, ..., nq) weights, such as the derivative of a cost with respect to the records; zero by default.
            v: (records, ..., nv) weights, zero by default.
        Returns:
            a named tuple: q (..., nv) along the velocities and v (..., nv) of the start, u (steps, ..., nu), parameters (...,
            np).
        Raises ModelError: weights of another shape.
        """
        o = self._of
        m, n, runs = o.s.mechanism, o.s.nx, o.axes.runs
        g = o.axes.weights_of_state(m, q, v, (len(self.time), n))
        backward, n_p = backward_steps(o.s, o.backend, o.axes.lanes), o.p.shape[1]
        end = g[-1] if o.steps % o.every == 0 else 0 * g[-1]  # otherwise the last record lies before the end
        state = np.hstack([end, np.zeros((runs, n_p + len(o.s.w_names)))])
        inputs = list[np.ndarray]()
        for k in reversed(range(0, o.steps, o.every)):
            x, u, t = o.between(k)
            direct = np.zeros_like(x)  # weights of the records, part of the gradient at their steps
            direct[0] = g[k // o.every]
            both = (np.broadcast_to(y, (*x.shape[:2], 1)) for y in (t[:, None, None], o.span.h))
            now = np.concatenate([x, u, *both, direct], axis=2)[::-1]
            r = backward(state, now, o.p, Span(0.0, o.span.h, len(x), last=True, limit=np.inf), threads=o.threads)
            inputs.append(r.records[1:])
            state = r.x
        by_u = np.concatenate([np.zeros((0, runs, len(o.s.w_names))), *inputs])[::-1]
        return gradient_of(m, o.axes, o.x[0], state[:, : n + n_p], by_u)


class _RunData(NamedTuple):
    """The data of a DifferentiableRun.   x: (records, runs, nx).   u: (samples, nu) or (samples, runs, nu).   p: (runs, np)."""

    s: Simulation
    x: np.ndarray
    u: np.ndarray
    p: np.ndarray
    span: Span
    axes: RunAxes
    threads: int
    backend: Backend

    @property
    def steps(self) -> int:
        return self.span.steps

    @property
    def every(self) -> int:
        return self.span.every

    def between(self, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """States and inputs (steps, runs, n) and times (steps,) of the steps from that of a record, k, to the next record.

        The states between records are computed again.
        """
        steps = min(self.every, self.steps - k)
        x, span = self.x[[k // self.every]], self.span._replace(first=k, steps=steps, every=1, last=False)
        if steps > 1:
            x = _states(self.s, self.backend, self.axes.lanes)(x[0], self.u, self.p, span, threads=self.threads).records
        u = broadcast_runs(self.u[k : k + steps] if len(self.u) > 1 else self.u, self.axes.runs)
        return x, np.broadcast_to(u, (steps, *u.shape[1:])), self.span.t0 + self.span.h * np.arange(k, k + steps)


def rollout(
    m: Mechanism,
    q: Any,
    v: Any = None,
    u: Any = None,
    *,
    steps: int,
    step: float = 1e-3,
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
    of = _RunData(s, r.records, values, p, span, axes, workers, backend)
    time = begin + span.h * np.array(span.recorded())
    qs, vs = q_and_v(r.records, m)
    return DifferentiableRun(time, axes.shaped(qs), axes.shaped(vs), of)


@by_key(64)
def _states(s: Simulation, backend: Backend, lanes: int) -> kernel.Rollout:
    """The compiled steps of `run`, which record the whole state."""

    def build() -> tuple[ca.Function, ...]:
        step = s.traced.step
        given = [ca.SX.sym(name, step.size1_in(i)) for name, i in (("x", 0), ("u", 1), ("p", 3), ("t", 4))]
        return step, ca.Function("states", given, [given[0]])

    return kernel.compile_rollout(build, backend=backend, lanes=lanes, key=f"states {s.key}")
