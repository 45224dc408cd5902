"""Derivatives of one step and of many steps with respect to the initial state, the inputs and the parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian import kernel
from pfaffian.control.law import Control
from pfaffian.differentiation.step_slopes import differentiable, with_matrices, with_products
from pfaffian.errors import ModelError, RunError
from pfaffian.evaluate.arrays import as_batch, configurations, parameter_values, velocities
from pfaffian.evaluate.compiled import given, matrices
from pfaffian.evaluate.given_state import check_on_constraints, off_constraints
from pfaffian.evaluate.single_values import MOST_THREADS, as_number, as_whole, some_runs
from pfaffian.kernel import Span
from pfaffian.kernel.call.memory import on_processor
from pfaffian.kernel.call.recipe import Backend, check_options
from pfaffian.kernel.remember import remembered as by_key
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.number import floats
from pfaffian.simulate.record.result import causes_of
from pfaffian.simulate.run.roll import first_state
from pfaffian.simulate.run.singular_start import REGULAR, entrances
from pfaffian.simulate.step.simulation import Simulation
from pfaffian.simulate.step.step import Scheme
from pfaffian.starts.assemble import start_arguments, start_of
from pfaffian.starts.start import start_state
from pfaffian.terms.connection import left_inverse
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.terms import symbols
from pfaffian.terms.traced_now import remembered


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
        scheme: with the integrator rk4, euler or tr-bdf2; `pf.Scheme()` by default.
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
        return f"<DifferentiableRun of {self._of.s.mechanism.name!r}: {len(self.time)} records, {self._of.runs} runs>"

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
        K = _maps(m)(o.x[0, :, : m.nq])[0].reshape(o.runs, m.nv, m.nq).transpose(0, 2, 1)
        moved = np.zeros((o.runs, n))
        moved[:, : m.nq] = (K @ o.rows(velocities(m, dq, "dq"), "dq")[:, :, None])[..., 0]
        moved[:, m.nq : m.nq + m.nv] = o.rows(velocities(m, dv, "dv"), "dv")
        change = _series(du, o.s.w_names, o.steps, o.runs, "du")
        both = np.concatenate(np.broadcast_arrays(_broadcast(o.u, o.runs), change), axis=2)
        p = np.hstack([o.p, o.rows(as_batch(dp, m.p_names, np.zeros(len(m.p_names)), "dp"), "dp")])
        r = _forward(o.s, o.backend, o.lanes)(np.hstack([o.x[0], moved]), both, p, o.span, threads=o.threads)
        return RunTangent(*[o.shaped(x) for x in _split(r.records[:, :, n:], m)])

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
        m, n, records = o.s.mechanism, o.s.nx, len(self.time)
        g = np.zeros((records, o.runs, n))
        for x, name, at in ((q, "q", slice(0, m.nq)), (v, "v", slice(m.nq, m.nq + m.nv))):
            if x is not None:
                g[:, :, at] = o.weights(x, name, (records, at.stop - at.start))
        backward, n_p = _backward(o.s, o.backend, o.lanes), o.p.shape[1]
        end = g[-1] if o.steps % o.every == 0 else 0 * g[-1]  # otherwise the last record lies before the end
        state = np.hstack([end, np.zeros((o.runs, n_p + len(o.s.w_names)))])
        inputs = list[np.ndarray]()
        for k in reversed(range(0, o.steps, o.every)):
            x, u, t = o.between(k)
            direct = np.zeros_like(x)  # weights of the records, part of the gradient at their steps
            direct[0] = g[k // o.every]
            now = np.concatenate([x, u, np.broadcast_to(t[:, None, None], (*x.shape[:2], 1)), direct], axis=2)[::-1]
            r = backward(state, now, o.p, Span(0.0, o.span.h, len(x), last=True, limit=np.inf), threads=o.threads)
            inputs.append(r.records[1:])
            state = r.x
        K = _maps(m)(o.x[0, :, : m.nq])[0].reshape(o.runs, m.nv, m.nq)
        by_q = (K @ state[:, : m.nq, None])[..., 0]
        by_u = np.concatenate([np.zeros((0, o.runs, len(o.s.w_names))), *inputs])[::-1]
        by_u = by_u if o.many else by_u[:, 0]
        rest = [x if o.many else x[0] for x in (by_q, state[:, m.nq : m.nq + m.nv], state[:, n : n + n_p])]
        return RunGradient(rest[0], rest[1], by_u, rest[2])


class _RunData(NamedTuple):
    """The data of a DifferentiableRun.   x: (records, runs, nx).   u: (samples, nu) or (samples, runs, nu).   p: (runs, np).
    many: whether the caller gave an axis of runs."""

    s: Simulation
    x: np.ndarray
    u: np.ndarray
    p: np.ndarray
    span: Span
    many: bool
    threads: int
    backend: Backend

    @property
    def runs(self) -> int:
        return self.x.shape[1]

    @property
    def steps(self) -> int:
        return self.span.steps

    @property
    def every(self) -> int:
        return self.span.every

    @property
    def lanes(self) -> int:
        return 8 if self.runs > 1 else 1

    def shaped(self, x: np.ndarray) -> np.ndarray:
        """x (times, runs, n), without the axis of runs if the caller gave none."""
        return x if self.many else x[:, 0]

    def rows(self, x: np.ndarray, what: str) -> np.ndarray:
        """x (runs, n) or (1, n), broadcast to (runs, n). Raises ModelError: another number of runs."""
        if len(x) not in (1, self.runs):
            raise ModelError(f"{what} is for {len(x)} runs, but there are {self.runs}")
        return np.broadcast_to(x, (self.runs, x.shape[1]))

    def weights(self, x: Any, what: str, shape: tuple[int, int]) -> np.ndarray:
        """Weights as an array (records, runs, n). Raises ModelError: they have another shape."""
        array, records, n = floats(x, what), *shape
        expected = (records, self.runs, n) if self.many else shape
        if array.shape != expected:
            raise ModelError(f"{what} has shape {array.shape}: {expected} is needed, a weight for each number of the records")
        return array.reshape(records, self.runs, n)

    def between(self, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """States and inputs (steps, runs, n) and times (steps,) of the steps from that of a record, k, to the next record.

        The states between records are computed again.
        """
        steps = min(self.every, self.steps - k)
        x, span = self.x[[k // self.every]], self.span._replace(first=k, steps=steps, every=1, last=False)
        if steps > 1:
            x = _states(self.s, self.backend, self.lanes)(x[0], self.u, self.p, span, threads=self.threads).records
        u = _broadcast(self.u[k : k + steps] if len(self.u) > 1 else self.u, self.runs)
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
        scheme: with the integrator rk4, euler or tr-bdf2; `pf.Scheme()` by default.
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
    begun = start_state(start_of(m, start_arguments(m, q, v, parameters), begin, backend), False)
    check_on_constraints(
        m, _off(m)(begun.q, begun.v, begun.p, np.array([begin]))[0].reshape(len(begun.q), 4, -1).transpose(0, 2, 1)
    )
    if (entrances(m, begun, begin, backend) != REGULAR).any():
        raise ModelError("rollout: the start is in a singular configuration, where the motion has no derivative; start off it")
    values = _series(u, s.w_names, count, None, "u")
    several = some_runs({"q, v, parameters": len(begun.q), "u": values.shape[1] if values.ndim == 3 else 1})
    x, p = first_state(s, begun, begin, several, 0), np.broadcast_to(begun.p, (several, begun.p.shape[1]))
    many = several > 1 or values.ndim == 3 or any(np.ndim(y) == 2 for y in (q, v, parameters))
    span = Span(begin, as_number(step, "step", above=0), count, as_whole(every, "every"), last=True)
    workers = as_whole(threads, "threads", most=MOST_THREADS)
    r = _states(s, backend, 8 if several > 1 else 1)(x, values, p, span, threads=workers)
    if r.status.any():
        run = int(np.argmax(r.status != 0))
        raise RunError(
            f"rollout: run {run} stopped after {r.stopped[run]} steps: {causes_of(s)[r.status[run]]}; there is no derivative"
        )
    of = _RunData(s, r.records, values, p, span, many, workers, backend)
    time = begin + span.h * np.array(span.recorded())
    qs, vs = _split(r.records, m)
    return DifferentiableRun(time, of.shaped(qs), of.shaped(vs), of)


def _series(u: Any, names: Sequence[str], steps: int, count: int | None, what: str) -> np.ndarray:
    """Inputs (samples, nu) or (samples, runs, nu), samples being 1 or `steps`.   count: number of runs to broadcast to."""
    u = on_processor(u, what)
    array = floats(u, what) if isinstance(u, (np.ndarray, list, tuple)) else np.zeros(0)
    if array.ndim > 1:
        if (
            array.ndim > 3
            or array.shape[-1] != len(names)
            or len(array) != steps
            or (count and array.ndim == 3 and array.shape[1] != count)
        ):
            raise ModelError(
                f"{what} has shape {array.shape}: ({len(names)},) for all steps, ({steps}, {len(names)}) or ({steps}, runs, "
                f"{len(names)}) is needed"
            )
    else:
        array = as_batch(u, names, np.zeros(len(names)), what)
        if len(array) > 1:
            raise ModelError(f"{what}: one number for each input is needed, or (steps, runs, {len(names)}) for inputs of runs")
    return _broadcast(array, count) if count else array


def _broadcast(u: np.ndarray, count: int) -> np.ndarray:
    """Inputs (samples, nu) or (samples, runs, nu), broadcast to (samples, count, nu)."""
    return np.broadcast_to(u[:, None] if u.ndim == 2 else u, (len(u), count, u.shape[-1]))


def _split(x: np.ndarray, m: Mechanism) -> tuple[np.ndarray, np.ndarray]:
    """q and v of states x (..., nx)."""
    return x[..., : m.nq], x[..., m.nq : m.nq + m.nv]


@remembered(64)
def _off(m: Mechanism) -> kernel.Kernel:
    """Kernel (q, v, p, t) -> how far each constraint row is off, see `off_constraints`, column by column."""
    T = symbols(m)
    return kernel.compile(ca.Function("off", [T.q, T.v, m.p_symbols, T.t], [ca.vec(off_constraints(T))]))


@remembered(64)
def _maps(m: Mechanism) -> kernel.Kernel:
    """Kernel q -> the kinematic matrix K, column by column."""
    T = symbols(m)
    return kernel.compile(ca.Function("maps", [T.q], [ca.vec(ca.densify(T.kinematics.kinematic_matrix))]))


@by_key(64)
def _states(s: Simulation, backend: Backend, lanes: int) -> kernel.Rollout:
    """The compiled steps of `run`, which record the whole state."""

    def build() -> tuple[ca.Function, ...]:
        step = s.traced.step
        given = [ca.SX.sym(name, step.size1_in(i)) for name, i in (("x", 0), ("u", 1), ("p", 3), ("t", 4))]
        return step, ca.Function("states", given, [given[0]])

    return kernel.compile_rollout(build, backend=backend, lanes=lanes, key=f"states {s.key}")


@by_key(64)
def _forward(s: Simulation, backend: Backend, lanes: int) -> kernel.Rollout:
    """The compiled steps of [x; dx] under the inputs [u; du] and the parameters [p; dp]."""

    def build() -> tuple[ca.Function, ...]:
        parts = with_products(s)
        (x, w, p, t, h), x_next = parts.step(s)
        dx, dw, dp = (ca.SX.sym(name, y.numel()) for name, y in (("dx", x), ("dw", w), ("dp", p)))
        moved = ca.jtimes(x_next, ca.vertcat(x, w, p), ca.vertcat(dx, dw, dp))
        X, W, P, W1 = (ca.vertcat(*y) for y in ((x, dx), (w, dw), (p, dp), (ca.SX.sym("w1", 2 * w.numel()),)))
        step = ca.Function("step", [X, W, W1, P, t, h], [ca.densify(ca.vertcat(x_next, moved)), ca.SX(0, 1)])
        return step, ca.Function("states", [X, W, P, t], [X])

    return kernel.compile_rollout(build, backend=backend, lanes=lanes, key=f"ahead {s.key}")


@by_key(64)
def _backward(s: Simulation, backend: Backend, lanes: int) -> kernel.Rollout:
    """The compiled backward steps of [l; by_p; by_u], the gradients with respect to the state after a step, the parameters and
    the inputs. Inputs are [x; u; t; direct] before the step, `direct` being the weights of a record there.
    """

    def build() -> tuple[ca.Function, ...]:
        """One step of the adjoint equations, backwards in time, and the gradient by the inputs that it leaves."""
        parts = with_products(s)
        (x, w, p, t, h), x_next = parts.step(s)
        sizes = [0, x.numel(), x.numel() + w.numel(), x.numel() + w.numel() + p.numel()]
        l, direct = ca.SX.sym("l", x.numel()), ca.SX.sym("own", x.numel())
        by_p, by_u = ca.SX.sym("by_p", p.numel()), ca.SX.sym("by_u", w.numel())
        gradients = ca.vertsplit(ca.densify(ca.jtimes(x_next, ca.vertcat(x, w, p), l, True)), sizes)
        state, now = ca.vertcat(l, by_p, by_u), ca.vertcat(x, w, t, direct)
        later = ca.vertcat(gradients[0] + direct, by_p + gradients[2], gradients[1])
        other, time = ca.SX.sym("now1", now.numel()), ca.SX.sym("time")
        step = ca.Function("step", [state, now, other, p, time, h], [later, ca.SX(0, 1)])
        return step, ca.Function("by_u", [state, now, p, time], [by_u])

    return kernel.compile_rollout(build, backend=backend, lanes=lanes, key=f"back {s.key}")
