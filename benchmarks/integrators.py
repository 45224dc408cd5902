"""Integrators of others: SciPy and SUNDIALS around our compiled right-hand side, diffrax around equations in jax.numpy.

Each takes relative and absolute tolerances of one number. The constraints hold at the start, and none of these puts the state
back onto them. diffrax needs the equations in jax.numpy: those of the double pendulum, of the heavy top with a quaternion, and
of the four-bar with the multipliers of its loop are written out below.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

import pfaffian as pf
from benchmarks.problems import Problem

MOST_STEPS = 10**6


CHECKED = 16
"""Calls of a right-hand side between two looks at the processor time."""


class TooLong(Exception):
    """An integrator has passed the bound of its processor time."""


class Rate:
    """Our compiled right-hand side [q_dot; v_dot] of [q; v], the time spent inside it [s], and the number of its calls."""

    def __init__(self, of: Problem, backend: Any) -> None:
        quantities = {"q": lambda T: T.kinematics.q_dot, "v": lambda T: pf.FORMULATIONS["gauss"](T).v_dot}
        self.f = pf.compile_terms(of.m, quantities, lanes=1, backend=backend).kernel
        self.n, self.fixed = of.m.nq, (np.zeros(of.m.nu) if of.u is None else np.ravel(of.u), of.m.p_defaults, np.zeros(1))
        self.restart()

    def restart(self, until: float = math.inf) -> None:
        """Count from here on.   until: processor time [s] after which calls raise TooLong."""
        self.inside, self.calls, self.until = 0.0, 0, until

    def __call__(self, t: float, x: np.ndarray) -> np.ndarray:
        if self.calls % CHECKED == 0 and time.process_time() > self.until:
            raise TooLong
        begun = time.perf_counter()
        found = np.concatenate(self.f(x[: self.n], x[self.n :], *self.fixed), axis=None)
        self.inside, self.calls = self.inside + time.perf_counter() - begun, self.calls + 1
        return found


Solve = Callable[[Rate, np.ndarray, np.ndarray, float], np.ndarray]
"""(rate, start, instants, tolerance) -> (instants, n) states; an exception or nan where it fails."""


def _scipy(method: str) -> Solve:
    def solve(rate: Rate, begin: np.ndarray, times: np.ndarray, tolerance: float) -> np.ndarray:
        found = solve_ivp(rate, (0.0, times[-1]), begin, method, t_eval=times, rtol=max(tolerance, 3e-14), atol=tolerance)
        return found.y.T if found.success else np.full((len(times), len(begin)), np.nan)

    return solve


def _cvode(rate: Rate, begin: np.ndarray, times: np.ndarray, tolerance: float) -> np.ndarray:
    from sksundae.cvode import CVODE

    def f(t: float, y: np.ndarray, out: np.ndarray) -> None:
        out[:] = rate(t, y)

    return CVODE(f, method="Adams", rtol=tolerance, atol=tolerance, max_num_steps=MOST_STEPS).solve(times, begin).y


def _ida(rate: Rate, begin: np.ndarray, times: np.ndarray, tolerance: float) -> np.ndarray:
    from sksundae.ida import IDA

    def residual(t: float, y: np.ndarray, y_dot: np.ndarray, out: np.ndarray) -> None:
        out[:] = y_dot - rate(t, y)

    solver = IDA(residual, rtol=tolerance, atol=tolerance, max_num_steps=MOST_STEPS)
    return solver.solve(times, begin, rate(0.0, begin)).y


def around_ours() -> dict[str, Solve]:
    """The integrators around our right-hand side that are installed."""
    found = {"SciPy DOP853": _scipy("DOP853"), "SciPy Radau": _scipy("Radau")}
    return found | ({"SUNDIALS CVODE": _cvode, "SUNDIALS IDA": _ida} if find_spec("sksundae") else {})


Rates = Callable[[Any, Any], Any]
"""(state, p) -> its rate, in jax.numpy.   p: parameters, if there are any."""


def double_pendulum(jnp: Any) -> Rates:
    """The rate of (h, k, h', k') of two uniform rods of 1 kg and 1 m; k is measured from the first rod."""
    g, c = 9.81, 1 / 2

    def rate(x: Any, p: Any) -> Any:
        a, b, v, w = x[0], x[0] + x[1], x[2], x[2] + x[3]
        M = jnp.array([[4 / 3, c * jnp.cos(a - b)], [c * jnp.cos(a - b), 1 / 3]])
        f = jnp.array([-c * jnp.sin(a - b) * w**2 - 1.5 * g * jnp.sin(a), c * jnp.sin(a - b) * v**2 - c * g * jnp.sin(b)])
        v_dot = jnp.linalg.solve(M, f)
        return jnp.array([x[2], x[3], v_dot[0], v_dot[1] - v_dot[0]])

    return rate


def heavy_top(jnp: Any) -> Rates:
    """The rate of (quaternion x, y, z, w; body-fixed angular velocity) of the top of 15 kg about its tip."""
    J = np.array([15.234375, 15.234375, 0.46875])

    def rate(x: Any, p: Any) -> Any:
        e, s, w = x[:3], x[3], x[4:]
        down = jnp.array([2 * (e[0] * e[2] - s * e[1]), 2 * (e[1] * e[2] + s * e[0]), 1 - 2 * (e[0] ** 2 + e[1] ** 2)])
        torque = jnp.cross(jnp.array([0.0, 0.0, 1.0]), -15.0 * 9.81 * down)
        w_dot = (torque - jnp.cross(w, J * w)) / J
        return jnp.concatenate([(s * w + jnp.cross(e, w)) / 2, jnp.array([-(e @ w) / 2]), w_dot])

    return rate


def four_bar(jnp: Any) -> Rates:
    """The rate of the angles A, B, D and their rates of rods of 0.4 (or p), 0.9 and 0.8 m over 1 m; B is measured from the
    crank."""
    g = 9.81

    def rate(x: Any, p: Any) -> Any:
        l = jnp.array([0.4 if p is None else p, 0.9, 0.8])
        m = 2 * l
        q = jnp.array([x[0], x[0] + x[1], x[2]])
        v = jnp.array([x[3], x[3] + x[4], x[5]])
        s, c = jnp.sin(q), jnp.cos(q)
        own = m * l**2 / 3
        cross = m[1] * l[0] * l[1] / 2
        bend = jnp.cos(q[0] - q[1]) * cross
        M = jnp.array([[own[0] + m[1] * l[0] ** 2, bend, 0.0], [bend, own[1], 0.0], [0.0, 0.0, own[2]]])
        turn = jnp.sin(q[0] - q[1]) * cross
        weight = g * c * jnp.array([m[0] * l[0] / 2 + m[1] * l[0], m[1] * l[1] / 2, m[2] * l[2] / 2])
        f = jnp.array([-turn * v[1] ** 2, turn * v[0] ** 2, 0.0]) - weight
        sign = l * jnp.array([1.0, 1.0, -1.0])
        A = jnp.stack([-sign * s, -sign * c])
        b = jnp.array([jnp.sum(sign * c * v**2), -jnp.sum(sign * s * v**2)])
        K = jnp.block([[M, A.T], [A, jnp.zeros((2, 2))]])
        v_dot = jnp.linalg.solve(K, jnp.concatenate([f, b]))
        return jnp.array([x[3], x[4], x[5], v_dot[0], v_dot[1] - v_dot[0], v_dot[2]])

    return rate


IN_JAX = {"double pendulum": double_pendulum, "heavy top": heavy_top, "four-bar": four_bar}
"""Name of a mechanism -> its equations in jax.numpy, in our coordinates."""


def by_diffrax(of: Problem, solver: str) -> Callable[..., np.ndarray] | None:
    """(start, instants, tolerance, p) -> states by a solver of diffrax, compiled; with a start (runs, n) and parameters (runs,)
    for all of them at once.

    None where diffrax is not installed or the equations are not written in jax.numpy.
    """
    if not find_spec("diffrax") or of.m.name not in IN_JAX:
        return None
    import diffrax
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    rate = IN_JAX[of.m.name](jnp)
    term = diffrax.ODETerm(lambda t, x, p: rate(x, p))

    def one(x: Any, times: Any, tolerance: Any, p: Any) -> Any:
        control = diffrax.PIDController(rtol=tolerance, atol=tolerance)
        method, save = getattr(diffrax, solver)(), diffrax.SaveAt(ts=times)
        found = diffrax.diffeqsolve(
            term, method, 0.0, times[-1], 1e-4, x, p, stepsize_controller=control, saveat=save, max_steps=MOST_STEPS,
            throw=False, adjoint=diffrax.ForwardMode(),
        )  # fmt: skip
        return found.ys

    single, many = jax.jit(one), jax.jit(jax.vmap(one, in_axes=(0, None, None, 0)))
    return lambda x, times, tolerance, p=None: np.asarray((single if x.ndim == 1 else many)(x, times, tolerance, p))
