"""The attitude of a machine that thrusts along its z axis, integrated along a path: through any attitude. [konz25 (5.70)]"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.control.extremes import check_not_falling, check_thrust
from pfaffian.control.flat import moving
from pfaffian.errors import ModelError
from pfaffian.maths import so3
from pfaffian.model.number import floats, named_float

DEGREE = 5
"""Of the spline through samples of a path: its fourth derivative is continuous, and the attitude needs no more."""


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
    """Inputs of a `sampled` reference of a free joint, whose z axis is along the thrust and which turns about it as chosen.

        R_z along r'' + drag r' - a_G,  w_x = -R_y^T R_z_dot,  w_y = R_x^T R_z_dot,  w_z = turning     [konz25 (5.70)]

    No attitude is singular, also not upside down: for loops and flips. The heading is not chosen but results; `path_end` says
    where it comes to.

    Args:
        position: function of t [s] that returns r (3,) [m], four times differentiable, z up; or (n, 3) samples of it, evenly
            over the duration, six or more, through which a spline of degree five goes: of a computed path, as four derivatives
            of measured ones are noise.
        duration: [s], from t = 0.
        step: [s] between samples of the result, which begin at t = 0; a whole number of them is the duration.
        heading: at the start [rad]; default 0.
        turning: w_z [rad/s], a number or a function of t; default 0, so that the machine turns no more than its thrust does.
        gravity: [m/s^2] along -z; default 9.81.
        drag: d/m [1/s] of a drag -d r' alike in all directions; default 0.
    Returns:
        (samples, 21): (x, y, z, qx, qy, qz, qw), their rates and their accelerations; the last sample is at t = duration.
    Raises ModelError: a position of another size; a step that does not divide the duration, and where the samples would end;
    somewhere less thrust than a twentieth of the weight, free fall, and when.

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
    T, h, g, slowing, nose = (named_float(x, f"{what}: {n}") for n, x in given.items())
    n = _steps(T, h, what)
    if callable(position):
        check_thrust(position, T, gravity=g, drag=slowing)
        path = _of_function(lambda t: moving(position, t, 3, f"{what}: position", 4), n, h)
    else:
        path = _of_samples(position, T, n, f"{what}: position")
    force = path[2:] + slowing * path[1:4]
    force[0, :, 2] += g
    check_not_falling(np.linalg.norm(force[0], axis=1) / g, h / 2 * np.arange(2 * n + 1), what)
    z = _directions(force)
    if callable(turning):
        spin = turning
        w_z = _of_function(lambda t: moving(spin, t, 1, f"{what}: turning", 1), n, h)
    else:
        w_z = np.array([named_float(turning, f"{what}: turning"), 0.0])
    about = np.broadcast_to(w_z.reshape(2, -1, 1), (2, 2 * n + 1, 1))
    attitudes = _integrated(z, about[0], h, nose)
    return _series(path[:, ::2], attitudes, z[:, ::2], about[:, ::2])


def _steps(T: float, h: float, what: str) -> int:
    """How many steps make the duration. Raises ModelError: none, or no whole number."""
    if not (0 < h <= T * (1 + 1e-9)):
        raise ModelError(f"{what}: a step above zero and within the duration is needed, got {h:g} s of {T:g} s")
    n = round(T / h)
    if abs(n * h - T) > 1e-9 * T:
        raise ModelError(
            f"{what}: samples every {h:g} s would end at t = {n * h:g} s and not with the path, at {T:g} s; take a step of "
            f"{T / n:.9g} s"
        )
    return n


def _of_function(derivatives: Callable[[ca.SX], list[ca.SX]], n: int, h: float) -> np.ndarray:
    """(orders, 2 n + 1, k) of a function of t at every half step."""
    t = ca.SX.sym("t")
    parts = derivatives(t)
    found = ca.Function("path", [t], parts).map(2 * n + 1)(h / 2 * np.arange(2 * n + 1)[None, :])
    return np.array([np.array(x).T for x in found])


def _of_samples(position: Any, T: float, n: int, what: str) -> np.ndarray:
    """(5, 2 n + 1, 3) of samples (m, 3) over T at every half step, by the spline through them."""
    r = floats(position, what)
    if r.ndim != 2 or r.shape[1] != 3 or len(r) <= DEGREE or not np.isfinite(r).all():
        raise ModelError(f"{what} must be a function of t, or samples (n, 3), {DEGREE + 1} or more, got the shape {r.shape}")
    at = np.linspace(0.0, len(r) - 1.0, 2 * n + 1)
    by = (len(r) - 1) / T
    return np.array([by**order * x for order, x in enumerate(spline(r, at))])


def spline(y: np.ndarray, at: np.ndarray) -> list[np.ndarray]:
    """The spline of degree five through y (m, k) at 0, 1, ..., and its first four derivatives, at (n,); not-a-knot ends."""
    m, side = len(y), (DEGREE + 1) // 2
    inner = np.arange(side, m - side, dtype=float)
    knots = np.concatenate([np.zeros(DEGREE + 1), inner, np.full(DEGREE + 1, m - 1.0)])
    first, weights = _basis(knots, np.arange(m, dtype=float), DEGREE)
    rows, columns = np.repeat(np.arange(m), DEGREE + 1), (first[:, None] + np.arange(DEGREE + 1)).ravel()
    A = ca.DM.triplet(rows.tolist(), columns.tolist(), ca.DM(weights.ravel()), m, m)
    c, degree, found = np.array(ca.solve(A, ca.DM(y), "qr")), DEGREE, []
    for _ in range(DEGREE):
        first, weights = _basis(knots, at, degree)
        found.append(np.einsum("nj,njk->nk", weights, c[first[:, None] + np.arange(degree + 1)]))
        c = degree * np.diff(c, axis=0) / (knots[degree + 1 : -1] - knots[1 : -degree - 1])[:, None]
        knots, degree = knots[1:-1], degree - 1
    return found


def _basis(knots: np.ndarray, x: np.ndarray, degree: int) -> tuple[np.ndarray, np.ndarray]:
    """Where the B-splines begin that are not zero at x (n,), and their values (n, degree + 1). [de Boor 1978]"""
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
    """(3, n, 3) z = f / |f| and its first two derivatives, of f and its own."""
    f = [ca.SX.sym(name, 3) for name in ("f", "f_dot", "f_bend")]
    s = ca.SX.sym("s")
    z = f[0] + s * f[1] + s**2 / 2 * f[2]
    parts = [z / ca.norm_2(z)]
    for _ in range(2):
        parts.append(ca.jacobian(parts[-1], s))
    at = ca.Function("z", f, ca.substitute(parts, [s], [ca.SX(0)])).map(force.shape[1])
    return np.array([np.array(x).T for x in at(*[x.T for x in force])])


def _integrated(z: np.ndarray, w_z: np.ndarray, h: float, heading: float) -> np.ndarray:
    """(n + 1, 4) attitudes along z and its derivatives (3, 2 n + 1, 3), with w_z (2 n + 1, 1), by the classical Runge-Kutta
    scheme.
    """
    q, z_dot, about = ca.SX.sym("q", 4), ca.SX.sym("z_dot", 3, 3), ca.SX.sym("w_z", 3)
    end = ca.SX.sym("z", 3)
    k1 = _turning(q, z_dot[:, 0], about[0])[0]
    k2 = _turning(q + h / 2 * k1, z_dot[:, 1], about[1])[0]
    k3 = _turning(q + h / 2 * k2, z_dot[:, 1], about[1])[0]
    k4 = _turning(q + h * k3, z_dot[:, 2], about[2])[0]
    moved = _along(end, q + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4))
    onward = ca.Function("onward", [q, z_dot[:, 0], z_dot[:, 1], z_dot[:, 2], about, end], [moved])
    start = _along(ca.DM(z[0, 0]), ca.DM([0, 0, np.sin(heading / 2), np.cos(heading / 2)]))
    rates = [z[1, i : i + len(z[1]) - 2 + (i == 2) : 2].T for i in range(3)]
    turns = np.hstack([w_z[:-2:2], w_z[1:-1:2], w_z[2::2]]).T
    after = onward.mapaccum(turns.shape[1])(start, *rates, turns, z[0, 2::2].T)
    return np.array(ca.horzcat(start, after)).T


def _series(path: np.ndarray, q: np.ndarray, z: np.ndarray, w_z: np.ndarray) -> np.ndarray:
    """(samples, 21) of a path (5, samples, 3), attitudes (samples, 4), z (3, samples, 3) and w_z (2, samples, 1)."""
    x, rate, bend = ca.SX.sym("q", 4), ca.SX.sym("z_dot", 3), ca.SX.sym("z_bend", 3)
    turn = ca.SX.sym("w_z", 2)
    q_dot, w = _turning(x, rate, turn[0])
    # d/dt of w_x = -R_y^T z_dot and w_y = R_x^T z_dot, where R_x and R_y turn with w
    w_dot = _turning(x, bend, turn[1])[1] + turn[0] * ca.vertcat(w[1], -w[0], 0)
    f = ca.Function("rates", [x, rate, bend, turn], [q_dot, so3.quat_rate(x) @ w_dot + so3.quat_rate(q_dot) @ w])
    q_dots, q_bends = (np.array(y).T for y in f.map(len(q))(q.T, z[1].T, z[2].T, w_z[:, :, 0]))
    return np.hstack([path[0], q, path[1], q_dots, path[2], q_bends])


def _turning(q: ca.SX, z_dot: ca.SX, w_z: ca.SX) -> tuple[ca.SX, ca.SX]:
    """q_dot and w (3,) with which the z axis of q moves by z_dot, turning about it by w_z."""
    R = so3.quat_to_matrix(q)
    w = ca.vertcat(-ca.dot(R[:, 1], z_dot), ca.dot(R[:, 0], z_dot), w_z)
    return so3.quat_rate(q) @ w, w


def _along(z: Any, q: Any) -> Any:
    """q, normalised, after the smallest rotation that brings its z axis along z (3,)."""
    q = q / ca.norm_2(q)
    have = so3.quat_to_matrix(q)[:, 2]
    found = so3.quat_mul(ca.vertcat(ca.cross(have, z), 1 + ca.dot(have, z)), q)
    return found / ca.norm_2(found)


class PathEnd(NamedTuple):
    """Where a series of a free joint ends.

    time: [s].   position: (3,) [m].   heading: of the x axis over the horizon [rad].   tilt: of the z axis [rad].
    speed: [m/s].   rate: [rad/s].

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
    """Where a series of a free joint ends, and how fast: a run that goes on holds its last sample, rates included.

    Args:
        series: (samples, 21), such as `turning_series` gives.
        step: [s] between samples.
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
    return PathEnd(
        (len(x) - 1) * h, last[:3].copy(), float(np.arctan2(R[1, 0], R[0, 0])), float(np.arccos(np.clip(R[2, 2], -1, 1))),
        float(np.linalg.norm(last[7:10])), float(rate),
    )  # fmt: skip
