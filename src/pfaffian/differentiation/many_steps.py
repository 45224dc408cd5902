"""What derivatives of many steps share: how arrays of runs are read, regular starts, compiled steps with derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian import kernel
from pfaffian.differentiation.step_slopes import with_products
from pfaffian.errors import ModelError
from pfaffian.evaluate.arrays import as_batch, velocities
from pfaffian.evaluate.given_state import check_on_constraints, off_constraints
from pfaffian.kernel.call.memory import on_processor
from pfaffian.kernel.call.recipe import Backend
from pfaffian.kernel.remember import remembered as by_key
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.number import floats
from pfaffian.simulate.run.singular_start import REGULAR, entrances
from pfaffian.simulate.step.simulation import Simulation
from pfaffian.starts.given_start import start_arguments, start_of
from pfaffian.starts.start import Start, start_state
from pfaffian.terms.terms import symbols
from pfaffian.terms.traced_now import remembered


class RunAxes(NamedTuple):
    """The axes of arrays of runs.   runs: their number.   many: whether the caller gave an axis of runs."""

    runs: int
    many: bool

    @property
    def lanes(self) -> int:
        """Lanes of a kernel."""
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

    def weights_of_state(self, m: Mechanism, q: Any, v: Any, shape: tuple[int, int]) -> np.ndarray:
        """(records, runs, n) weights of whole states, given those of q and v.   shape: (records, n)."""
        g = np.zeros((shape[0], self.runs, shape[1]))
        for x, name, at in ((q, "q", slice(0, m.nq)), (v, "v", slice(m.nq, m.nq + m.nv))):
            if x is not None:
                g[:, :, at] = self.weights(x, name, (shape[0], at.stop - at.start))
        return g

    def moved_start(self, m: Mechanism, x: np.ndarray, dq: Any, dv: Any) -> np.ndarray:
        """(runs, nx) the change of starts x (runs, nx) along K(q) dq and dv."""
        K = _kinematic_matrices(m, x).transpose(0, 2, 1)
        moved = np.zeros(x.shape)
        moved[:, : m.nq] = (K @ self.rows(velocities(m, dq, "dq"), "dq")[:, :, None])[..., 0]
        moved[:, m.nq : m.nq + m.nv] = self.rows(velocities(m, dv, "dv"), "dv")
        return moved

    def moved_parameters(self, m: Mechanism, p: np.ndarray, dp: Any) -> np.ndarray:
        """(runs, 2 np) the parameters p (runs, np) and their change."""
        return np.hstack([p, self.rows(as_batch(dp, m.p_names, np.zeros(len(m.p_names)), "dp"), "dp")])


def along_velocities(m: Mechanism, x: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """(runs, nv) gradients along the velocities, of gradients (runs, n) with respect to states x (runs, nx)."""
    return (_kinematic_matrices(m, x) @ gradient[:, : m.nq, None])[..., 0]


def _kinematic_matrices(m: Mechanism, x: np.ndarray) -> np.ndarray:
    """(runs, nv, nq) the transposed kinematic matrices at states x (runs, nx)."""
    return _maps(m)(x[:, : m.nq])[0].reshape(len(x), m.nv, m.nq)


def regular_start(m: Mechanism, q: Any, v: Any, parameters: Any, begin: float, backend: Backend, what: str) -> Start:
    """The given start of runs. Raises ModelError: it is off the constraints, or in a singular configuration."""
    begun = start_state(start_of(m, start_arguments(m, q, v, parameters), begin, backend), False)
    check_on_constraints(
        m, _off(m)(begun.q, begun.v, begun.p, np.array([begin]))[0].reshape(len(begun.q), 4, -1).transpose(0, 2, 1)
    )
    if (entrances(m, begun, begin, backend) != REGULAR).any():
        raise ModelError(f"{what}: the start is in a singular configuration, where the motion has no derivative; start off it")
    return begun


def input_series(u: Any, names: Sequence[str], steps: int, count: int | None, what: str) -> np.ndarray:
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
    return broadcast_runs(array, count) if count else array


def broadcast_runs(u: np.ndarray, count: int) -> np.ndarray:
    """Inputs (samples, nu) or (samples, runs, nu), broadcast to (samples, count, nu)."""
    return np.broadcast_to(u[:, None] if u.ndim == 2 else u, (len(u), count, u.shape[-1]))


def q_and_v(x: np.ndarray, m: Mechanism) -> tuple[np.ndarray, np.ndarray]:
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
def forward_steps(s: Simulation, backend: Backend, lanes: int, apart: bool) -> kernel.Rollout:
    """The compiled steps of [x; dx] under the inputs [u; du] and the parameters [p; dp].

    apart: whether each run has steps of its own; the inputs are then [u; du; t; h], and a run whose h is 0 waits.
    """

    def build() -> tuple[ca.Function, ...]:
        """One step and its change, and what is recorded: the state and its change."""
        parts = with_products(s)
        (x, w, p, t, h), x_next = parts.step(s)
        dx, dw, dp = (ca.SX.sym(name, y.numel()) for name, y in (("dx", x), ("dw", w), ("dp", p)))
        moved = ca.jtimes(x_next, ca.vertcat(x, w, p), ca.vertcat(dx, dw, dp))
        X, P, W = ca.vertcat(x, dx), ca.vertcat(p, dp), ca.vertcat(w, dw, *([t, h] if apart else []))
        time, length = (ca.SX.sym("time"), ca.SX.sym("length")) if apart else (t, h)
        following = ca.densify(ca.vertcat(x_next, moved))
        following = _where(h > 0, following, X) if apart else following
        step = ca.Function("step", [X, W, ca.SX.sym("w1", W.numel()), P, time, length], [following, ca.SX(0, 1)])
        return step, ca.Function("states", [X, W, P, time], [X])

    return kernel.compile_rollout(build, backend=backend, lanes=lanes, key=f"ahead {apart} {s.key}")


@by_key(64)
def backward_steps(s: Simulation, backend: Backend, lanes: int) -> kernel.Rollout:
    """The compiled backward steps of [l; by_p; by_u], the gradients with respect to the state after a step, the parameters and
    the inputs. Inputs are [x; u; t; h; direct] before the step, `direct` being the weights of a record there; a run whose h is
    0 waits.
    """

    def build() -> tuple[ca.Function, ...]:
        """One step of the adjoint equations, backwards in time, and the gradient by the inputs that it leaves."""
        parts = with_products(s)
        (x, w, p, t, h), x_next = parts.step(s)
        sizes = [0, x.numel(), x.numel() + w.numel(), x.numel() + w.numel() + p.numel()]
        l, direct = ca.SX.sym("l", x.numel()), ca.SX.sym("own", x.numel())
        by_p, by_u = ca.SX.sym("by_p", p.numel()), ca.SX.sym("by_u", w.numel())
        gradient = ca.densify(ca.jtimes(x_next, ca.vertcat(x, w, p), l, True))
        waits = ca.vertcat(l, ca.SX.zeros(w.numel() + p.numel(), 1))
        gradients = ca.vertsplit(_where(h > 0, gradient, waits), sizes)
        state, now = ca.vertcat(l, by_p, by_u), ca.vertcat(x, w, t, h, direct)
        later = ca.vertcat(gradients[0] + direct, by_p + gradients[2], gradients[1])
        other, time, length = ca.SX.sym("now1", now.numel()), ca.SX.sym("time"), ca.SX.sym("length")
        step = ca.Function("step", [state, now, other, p, time, length], [later, ca.SX(0, 1)])
        return step, ca.Function("by_u", [state, now, p, time], [by_u])

    return kernel.compile_rollout(build, backend=backend, lanes=lanes, key=f"back {s.key}")


def _where(condition: ca.SX, yes: ca.SX, no: ca.SX) -> ca.SX:
    """Each entry of `yes` where the condition is true, else that of `no`."""
    return ca.vertcat(*[ca.if_else(condition, yes[i], no[i]) for i in range(yes.numel())])
