"""The attitude of a machine that thrusts along its z axis, integrated along a path without singularities. [konz25 (5.70)]"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.control.flat import moving, thrust_attitude
from pfaffian.control.path_demands import check_not_falling, check_thrust
from pfaffian.errors import ModelError
from pfaffian.maths import so3
from pfaffian.model.number import floats, named_float

DEGREE = 5
"""Degree of the spline through samples of a path: its fourth derivative, the highest that is needed, is continuous."""


def turning_series(
    position: Callable[[ca.SX], Any] | np.ndarray,
    duration: float,
    step: float,
    *,
    heading: float = 0.0,
    turning: Callable[[ca.SX], Any] | float = 0.0,
    gravity: float = 9.81,
    drag: float = 0.0,
) -> np.ndarray:
    """Inputs of a `sampled` reference of a free joint whose z axis is along the thrust and which turns about it as chosen.

        R_z along r'' + drag r' - a_G,  w_x = -R_y^T R_z_dot,  w_y = R_x^T R_z_dot,  w_z = turning     [konz25 (5.70)]

    No attitude is singular, not even upside down, so this serves for loops and flips. The heading cannot be chosen along the
    path but follows from the rates; `path_end` gives its final value.

    Args:
        position: function of t [s] that returns r (3,) [m], four times differentiable, z up; or (n, 3) samples of r, six or
            more, evenly spaced over the duration, which are interpolated by a spline of degree five. The samples should come
            from a computed path, since the fourth derivative of a measured path is noise.
        duration: of the path [s], which begins at t = 0.
        step: time between samples of the result [s], which begin at t = 0; the duration is a whole number of steps.
        heading: at the start [rad], as `quadcopter_reference` defines it for a machine that is tilted; default 0.
        turning: w_z [rad/s], a number or a function of t; default 0, so that the machine turns no more than its thrust does.
        gravity: [m/s^2] along -z; default 9.81.
        drag: d/m [1/s] of a drag -d r', the same in all directions; default 0.
    Returns:
        (samples, 21): (x, y, z, qx, qy, qz, qw), their rates and their accelerations; the last sample is at t = duration.
    Raises ModelError: a position of another size; a step that does not divide the duration; free fall, that is a thrust below
    a twentieth of the weight at some time, which the message gives.

    Example:
        >>> from pfaffian import control
        >>> u = control.turning_series(lambda t: [5.0 * t**2, 0.0, 0.0], 1.0, 0.5, gravity=10.0)
        >>> u.shape
        (3, 21)
        >>> u[0, 3:7].round(6)  # tilted by 45 degrees about y
        array([0.      , 0.382683, 0.      , 0.92388 ])
    """
    what = "turning_series"
    given = {"duration": duration, "step": step, "gravity": gravity, "drag": drag, "heading": heading}
    T, h, g, drag_rate, start_heading = (named_float(x, f"{what}: {n}") for n, x in given.items())
    n = _steps(T, h, what)
    if callable(position):
        check_thrust(position, T, gravity=g, drag=drag_rate)
        path = _of_function(lambda t: moving(position, t, 3, f"{what}: position", 4), n, h)
    else:
        path = _of_samples(position, T, n, f"{what}: position")
    force = path[2:] + drag_rate * path[1:4]
    force[0, :, 2] += g
    check_not_falling(np.linalg.norm(force[0], axis=1) / g, h / 2 * np.arange(2 * n + 1), what)
    z = _directions(force)
    if callable(turning):
        spin = turning
        w_z = _of_function(lambda t: moving(spin, t, 1, f"{what}: turning", 1), n, h)
    else:
        w_z = np.array([named_float(turning, f"{what}: turning"), 0.0])
    turn_rates = np.broadcast_to(w_z.reshape(2, -1, 1), (2, 2 * n + 1, 1))
    attitudes = _integrated(z, turn_rates[0], h, start_heading)
    return _series(path[:, ::2], attitudes, z[:, ::2], turn_rates[:, ::2])


def _steps(T: float, h: float, what: str) -> int:
    """The number of steps in the duration. Raises ModelError: the duration is not a whole number of steps, at least one."""
    if not (0 < h <= T * (1 + 1e-9)):
        raise ModelError(f"{what}: a step above zero and within the duration is needed, got {h:g} s of {T:g} s")
    n = round(T / h)
    if abs(n * h - T) > 1e-9 * T:
        raise ModelError(
            f"{what}: samples every {h:g} s would end at t = {n * h:g} s, but the path ends at {T:g} s; take a step of "
            f"{T / n:.9g} s"
        )
    return n


def _of_function(derivatives: Callable[[ca.SX], list[ca.SX]], n: int, h: float) -> np.ndarray:
    """(orders, 2 n + 1, k) values of a function of t, which returns a list of derivatives (k, 1), at every half step."""
    t = ca.SX.sym("t")
    parts = derivatives(t)
    values = ca.Function("path", [t], parts).map(2 * n + 1)(h / 2 * np.arange(2 * n + 1)[None, :])
    return np.array([np.array(x).T for x in values])


def _of_samples(position: Any, T: float, n: int, what: str) -> np.ndarray:
    """(5, 2 n + 1, 3) position and its first four derivatives at every half step, by the spline through samples (m, 3) over T.

    Raises ModelError: samples of another shape, too few, or not finite.
    """
    r = floats(position, what)
    if r.ndim != 2 or r.shape[1] != 3 or len(r) <= DEGREE or not np.isfinite(r).all():
        raise ModelError(f"{what} must be a function of t, or samples (n, 3), {DEGREE + 1} or more, got the shape {r.shape}")
    at = np.linspace(0.0, len(r) - 1.0, 2 * n + 1)
    rate = (len(r) - 1) / T
    return np.array([rate**order * x for order, x in enumerate(spline(r, at))])


def spline(y: np.ndarray, at: np.ndarray) -> list[np.ndarray]:
    """Values and first four derivatives, at the points `at` (n,), of the spline of degree five through y (m, k) at 0, 1, ...

    The ends are not-a-knot.
    """
    m, side = len(y), (DEGREE + 1) // 2
    inner = np.arange(side, m - side, dtype=float)
    knots = np.concatenate([np.zeros(DEGREE + 1), inner, np.full(DEGREE + 1, m - 1.0)])
    first, weights = _basis(knots, np.arange(m, dtype=float), DEGREE)
    rows, columns = np.repeat(np.arange(m), DEGREE + 1), (first[:, None] + np.arange(DEGREE + 1)).ravel()
    A = ca.DM.triplet(rows.tolist(), columns.tolist(), ca.DM(weights.ravel()), m, m)
    c, degree, values = np.array(ca.solve(A, ca.DM(y), "qr")), DEGREE, []
    for _ in range(DEGREE):
        first, weights = _basis(knots, at, degree)
        values.append(np.einsum("nj,njk->nk", weights, c[first[:, None] + np.arange(degree + 1)]))
        c = degree * np.diff(c, axis=0) / (knots[degree + 1 : -1] - knots[1 : -degree - 1])[:, None]
        knots, degree = knots[1:-1], degree - 1
    return values


def _basis(knots: np.ndarray, x: np.ndarray, degree: int) -> tuple[np.ndarray, np.ndarray]:
    """Index (n,) of the first B-spline that is not zero at x (n,), and the values (n, degree + 1) of those. [de Boor 1978]"""
    span = np.clip(np.searchsorted(knots, x, side="right") - 1, degree, len(knots) - degree - 2)
    values = np.ones((len(x), 1))
    for d in range(1, degree + 1):
        i = span[:, None] + np.arange(-d + 1, 1)
        low, high = knots[i], knots[i + d]
        part = values / (high - low)
        values = np.zeros((len(x), d + 1))
        values[:, :-1] += part * (high - x[:, None])
        values[:, 1:] += part * (x[:, None] - low)
    return span - degree, values


def _directions(force: np.ndarray) -> np.ndarray:
    """(3, n, 3) z = f / |f| and its first two derivatives, from f and its first two derivatives (3, n, 3)."""
    f = [ca.SX.sym(name, 3) for name in ("f", "f_dot", "f_bend")]
    s = ca.SX.sym("s")
    z = f[0] + s * f[1] + s**2 / 2 * f[2]
    parts = [z / ca.norm_2(z)]
    for _ in range(2):
        parts.append(ca.jacobian(parts[-1], s))
    at = ca.Function("z", f, ca.substitute(parts, [s], [ca.SX(0)])).map(force.shape[1])
    return np.array([np.array(x).T for x in at(*[x.T for x in force])])


def _integrated(z: np.ndarray, w_z: np.ndarray, h: float, heading: float) -> np.ndarray:
    """(n + 1, 4) quaternions of the attitude, integrated over n steps by the classical Runge-Kutta scheme.

    z: (3, 2 n + 1, 3) direction of the thrust and its derivatives, at half steps.   w_z: (2 n + 1, 1) turning rate.
    h: step [s].   heading: at the start [rad], see `thrust_attitude`.
    """
    q, z_dot, turn_rates = ca.SX.sym("q", 4), ca.SX.sym("z_dot", 3, 3), ca.SX.sym("w_z", 3)
    end = ca.SX.sym("z", 3)
    k1 = _turning(q, z_dot[:, 0], turn_rates[0])[0]
    k2 = _turning(q + h / 2 * k1, z_dot[:, 1], turn_rates[1])[0]
    k3 = _turning(q + h / 2 * k2, z_dot[:, 1], turn_rates[1])[0]
    k4 = _turning(q + h * k3, z_dot[:, 2], turn_rates[2])[0]
    q_next = _along(end, q + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4))
    step = ca.Function("onward", [q, z_dot[:, 0], z_dot[:, 1], z_dot[:, 2], turn_rates, end], [q_next])
    start = _along(ca.DM(z[0, 0]), ca.evalf(thrust_attitude(z[0, 0], heading)))
    rates = [z[1, i : i + len(z[1]) - 2 + (i == 2) : 2].T for i in range(3)]
    turns = np.hstack([w_z[:-2:2], w_z[1:-1:2], w_z[2::2]]).T
    after = step.mapaccum(turns.shape[1])(start, *rates, turns, z[0, 2::2].T)
    return np.array(ca.horzcat(start, after)).T


def _series(path: np.ndarray, q: np.ndarray, z: np.ndarray, w_z: np.ndarray) -> np.ndarray:
    """(samples, 21) coordinates of a free joint with rates and accelerations, as inputs of a `sampled` reference.

    path: (5, samples, 3) position and its derivatives.   q: (samples, 4) quaternions.   z: (3, samples, 3) direction of the
    thrust and its derivatives.   w_z: (2, samples, 1) turning rate and its derivative.
    """
    x, rate, acceleration = ca.SX.sym("q", 4), ca.SX.sym("z_dot", 3), ca.SX.sym("z_bend", 3)
    turn = ca.SX.sym("w_z", 2)
    q_dot, w = _turning(x, rate, turn[0])
    # The time derivatives of w_x = -R_y^T z_dot and w_y = R_x^T z_dot, where R_x and R_y turn with w.
    w_dot = _turning(x, acceleration, turn[1])[1] + turn[0] * ca.vertcat(w[1], -w[0], 0)
    f = ca.Function("rates", [x, rate, acceleration, turn], [q_dot, so3.quat_rate(x) @ w_dot + so3.quat_rate(q_dot) @ w])
    q_dots, q_ddots = (np.array(y).T for y in f.map(len(q))(q.T, z[1].T, z[2].T, w_z[:, :, 0]))
    return np.hstack([path[0], q, path[1], q_dots, path[2], q_ddots])


def _turning(q: ca.SX, z_dot: ca.SX, w_z: ca.SX) -> tuple[ca.SX, ca.SX]:
    """q_dot (4,) and w (3,) at which the z axis of the quaternion q moves at z_dot (3,) and the body turns about it at w_z."""
    R = so3.quat_to_matrix(q)
    w = ca.vertcat(-ca.dot(R[:, 1], z_dot), ca.dot(R[:, 0], z_dot), w_z)
    return so3.quat_rate(q) @ w, w


def _along(z: Any, q: Any) -> Any:
    """The quaternion q, normalised, after the smallest rotation that turns its z axis to z (3,)."""
    q = q / ca.norm_2(q)
    axis = so3.quat_to_matrix(q)[:, 2]
    turned = so3.quat_mul(ca.vertcat(ca.cross(axis, z), 1 + ca.dot(axis, z)), q)
    return turned / ca.norm_2(turned)


class PathEnd(NamedTuple):
    """The state of a free joint at the end of a series; made by `path_end`.

    time: [s].   position: (3,) [m].   heading: [rad], as `quadcopter_reference` defines it: the direction of the x axis in the
    horizontal plane, or upside down that which the machine has after it is pitched back upright.
    tilt: angle between the z axis and the vertical [rad].   speed: [m/s].   rate: angular speed [rad/s].

    Example:
        >>> from pfaffian import control
        >>> u = control.turning_series(lambda t: [0.5 * t, 0.0, 1.0], 2.0, 0.1, heading=0.3)
        >>> control.path_end(u, 0.1).position
        array([1., 0., 1.])
    """

    time: float
    position: np.ndarray
    heading: float
    tilt: float
    speed: float
    rate: float


def path_end(series: np.ndarray, step: float) -> PathEnd:
    """The state at the end of a series of a free joint. A run beyond it keeps the last sample, including its rates.

    Args:
        series: (samples, 21), such as `turning_series` returns.
        step: time between samples [s].
    Returns:
        PathEnd.
    Raises ModelError: another shape, a step not above zero.

    Example:
        >>> from pfaffian import control
        >>> move = control.rest_to_rest([0, 0, 0], [1, 0, 0], 2.0)
        >>> u = control.turning_series(move, 2.0, 0.01, heading=0.3, turning=0.5)
        >>> end = control.path_end(u, 0.01)
        >>> round(end.time, 6), round(end.heading, 2), round(end.speed, 6)
        (2.0, 1.3, 0.0)
    """
    x, h = floats(series, "path_end: series"), named_float(step, "path_end: step")
    if x.ndim != 2 or x.shape[1] != 21 or not len(x) or not h > 0:
        raise ModelError(f"path_end: a series (samples, 21) and a step above zero are needed, got {x.shape} and {h:g}")
    last = x[-1]
    R = np.array(ca.DM(so3.quat_to_matrix(last[3:7] / np.linalg.norm(last[3:7]))))
    rate = 2 * np.linalg.norm(last[10:14]) / np.linalg.norm(last[3:7])
    # R = Rz(heading) Ry(beta) Rx(alpha) with |alpha| up to 90 degrees, so cos(beta) has the sign of R_zz.
    nose = np.copysign(1.0, R[2, 2]) * R[:2, 0]
    return PathEnd(
        (len(x) - 1) * h, last[:3].copy(), float(np.arctan2(nose[1], nose[0])), float(np.arccos(np.clip(R[2, 2], -1, 1))),
        float(np.linalg.norm(last[7:10])), float(rate),
    )  # fmt: skip
