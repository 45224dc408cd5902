"""References from flat outputs, which machines with fewer inputs than motions can follow. [konz25 4.8, 5.5]

A flat output y(t) and its derivatives determine the motion and the inputs: along such a reference a prototype that matches
leaves no matching force. In free fall the thrust has no direction, and there is no such reference.
"""

from __future__ import annotations

from collections.abc import Callable
from math import comb
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.control.reference import Reference, function_of_time
from pfaffian.errors import ModelError, brief
from pfaffian.maths import so3
from pfaffian.model.caller import answer
from pfaffian.model.number import column, floats, named_float

FALLING = 0.05
"""Part of the weight below which the direction of thrust is not reliable."""

DENSE = 2000
"""Instants at which a reference is sampled."""


def rest_to_rest(start: Any, end: Any, duration: float, *, begin: float = 0.0, smooth: int = 4) -> Callable[[ca.SX], ca.SX]:
    """A path in time from rest to rest, by a polynomial of degree 2 smooth + 1, constant before and after.

    The first `smooth` derivatives vanish at both ends: four for what a multicopter's attitude needs. [konz25 5.5]

    Args:
        start: (k,) where it rests before `begin`, in any unit.
        end: (k,) where it rests after `begin` + `duration`.
        duration: of the motion [s], above zero.
        begin: [s] when the motion starts; default 0.
        smooth: number of derivatives that vanish at both ends, 1 to 9; default 4.
    Returns:
        Function of the time t [s] that returns (k, 1), for flat references and `function_of_time`.
    Raises ModelError: sizes that differ, a duration not above zero, another smooth.

    Example:
        >>> from pfaffian import control
        >>> y = control.rest_to_rest([0.0], [2.0], duration=3.0)
        >>> [float(y(t)) for t in (0.0, 1.5, 4.0)]
        [0.0, 1.0, 2.0]
    """
    a, b = (np.array(floats(np.atleast_1d(x), f"rest_to_rest: {n}")) for n, x in (("start", start), ("end", end)))
    T, t0 = named_float(duration, "rest_to_rest: duration"), named_float(begin, "rest_to_rest: begin")
    if a.ndim != 1 or a.shape != b.shape or not T > 0:
        raise ModelError("rest_to_rest: a start and an end of one length and a duration above zero are needed")
    if isinstance(smooth, bool) or not isinstance(smooth, int) or not 1 <= smooth <= 9:
        raise ModelError(f"rest_to_rest: smooth must be a whole number from 1 to 9, got {brief(smooth)}")
    n = smooth
    powers = [(-1) ** i * comb(n + i, i) * comb(2 * n + 1, n - i) for i in range(n + 1)]

    def y(t: ca.SX) -> ca.SX:
        s = ca.fmin(ca.fmax((t - t0) / T, 0), 1)
        shape = s ** (n + 1) * sum(c * s**i for i, c in enumerate(powers))
        return ca.densify(ca.DM(a) + ca.DM(b - a) * shape)

    return y


def along(path: Callable[[ca.SX], Any], progress: Callable[[ca.SX], Any]) -> Callable[[ca.SX], ca.SX]:
    """A path in time from a curve of its own parameter: t -> path(progress(t)).

    Args:
        path: function of the curve's parameter, such as an angle, that returns a column or list of numbers.
        progress: function of the time t [s] that returns the parameter, such as `rest_to_rest`.
    Returns:
        Function of the time t [s], for flat references and `function_of_time`.
    Raises ModelError: an argument that is not a function; when it is called, a progress of more than one number.

    Example:
        >>> import casadi as ca
        >>> from pfaffian import control
        >>> circle = control.along(lambda a: [ca.cos(a), ca.sin(a)], control.rest_to_rest([0.0], [3.141592653589793], 2.0))
        >>> float(circle(1.0)[1])  # half-way along half a circle
        1.0
    """
    if not (callable(path) and callable(progress)):
        raise ModelError(f"along: two functions are needed, got {brief(path)} and {brief(progress)}")

    def y(t: ca.SX) -> ca.SX:
        where = column(answer(progress, "along: progress", t), "along: progress")
        if where.numel() != 1:
            raise ModelError(f"along: progress must be one number, got {where.numel()}")
        return column(answer(path, "along: path", where), "along: path")

    return y


def pvtol_reference(y: Callable[[ca.SX], Any], *, lean: float = 0.0, gravity: float = 9.81) -> Reference:
    """Reference (x, y, angle) of a machine in a vertical plane, from its flat output: the point eps above its mass centre.

        angle = atan2(-y1'', y2'' + g),  x = y1 + eps sin angle,  y = y2 - eps cos angle            [konz25 4.8.2, corrected]

    Args:
        y: function of t [s] that returns y1 along the horizon and y2 upwards [m], four times differentiable.
        lean: eps [m], by which the inputs push sideways as they turn the machine, see `hover_placement`; default 0.
        gravity: [m/s^2]; default 9.81.
    Returns:
        Reference of three coordinates [m, m, rad].
    Raises ModelError: at the run: y is not a function, does not return two numbers, or is in free fall at all times
    (`check_thrust` says when one is).

    Example:
        >>> import casadi as ca
        >>> from pfaffian import control
        >>> reference = control.pvtol_reference(lambda t: [5.0 * t**2, 0.0], gravity=10.0)
        >>> print(ca.evalf(reference.at(0.0, []).value))  # 10 m/s^2 to the right: 45 degrees
        [0, 0, -0.785398]
    """
    return function_of_time(_in_a_plane(y, lean, gravity, "pvtol_reference"), 3)


def bicopter_reference(y: Callable[[ca.SX], Any], *, lean: float = 0.0, gravity: float = 9.81) -> Reference:
    """Reference (x, y, z, qx, qy, qz, qw) of a bicopter that stays in the yz-plane and tilts about x as a PVTOL. [konz25 4.8.4]

    Args:
        y: function of t [s] that returns y1 along the world's y and y2 along z [m], four times differentiable.
        lean: eps_y [m], see `bicopter_lean`; default 0.
        gravity: [m/s^2] along -z; default 9.81.
    Returns:
        Reference of seven coordinates, the configuration of a free joint.
    Raises ModelError: at the run: y is not a function, does not return two numbers, or is in free fall at all times.

    Example:
        >>> import casadi as ca
        >>> from pfaffian import control
        >>> reference = control.bicopter_reference(lambda t: [2.0, 1.0])  # hovers
        >>> print(ca.evalf(reference.at(0.0, []).value))
        [0, 2, 1, 0, 0, 0, 1]
    """
    place = _in_a_plane(y, lean, gravity, "bicopter_reference")

    def whole(t: ca.SX) -> ca.SX:
        p = place(t)
        return ca.vertcat(0, p[:2], ca.sin(p[2] / 2), 0, 0, ca.cos(p[2] / 2))

    return function_of_time(whole, 7)


def _in_a_plane(y: Callable[[ca.SX], Any], lean: float, gravity: float, what: str) -> Callable[[ca.SX], ca.SX]:
    """t -> (x, y, angle). [konz25 4.8.2, corrected]"""
    eps, g = named_float(lean, f"{what}: lean"), named_float(gravity, f"{what}: gravity")

    def place(t: ca.SX) -> ca.SX:
        p, bend = _twice(y, t, 2, f"{what}: y")
        _not_falling(bend + ca.DM([0, g]), what)
        angle = ca.atan2(-bend[0], bend[1] + g)
        return ca.vertcat(p[0] + eps * ca.sin(angle), p[1] - eps * ca.cos(angle), angle)

    return place


def quadcopter_reference(
    position: Callable[[ca.SX], Any],
    heading: Callable[[ca.SX], Any] | float = 0.0,
    *,
    gravity: float = 9.81,
    drag: float = 0.0,
) -> Reference:
    """Reference (x, y, z, qx, qy, qz, qw) of a machine that thrusts along its z axis, from position and heading. [konz25 5.5]

        R_z along r'' + drag r' - a_G,   R = Rz(heading) Ry(beta) Rx(alpha)
        alpha = arcsin(sin(heading) R_z^x - cos(heading) R_z^y),  beta = atan2(cos(heading) R_z^x + sin(heading) R_z^y, R_z^z)

    Upside down the heading is that of the machine rolled over; where the thrust is along the heading's y axis there is none.
    For loops and flips through such attitudes, integrate the attitude by `turning_series`.

    Args:
        position: function of t [s] that returns r (3,) [m], four times differentiable, z up.
        heading: function of t, or a number [rad]; default 0.
        gravity: [m/s^2] along -z; default 9.81.
        drag: d/m [1/s] of a drag -d r' alike in all directions; default 0.
    Returns:
        Reference of seven coordinates, the configuration of a free joint.
    Raises ModelError: at the run: functions that return another number of values, or free fall at all times.

    Example:
        >>> import casadi as ca
        >>> from pfaffian import control
        >>> reference = control.quadcopter_reference(lambda t: [5.0 * t**2, 0.0, 1.0], gravity=10.0)
        >>> print(ca.evalf(reference.at(0.0, []).value))  # tilted by 45 degrees about y
        [0, 0, 1, 0, 0.382683, 0, 0.92388]
    """
    g, slowing = (named_float(x, f"quadcopter_reference: {n}") for n, x in (("gravity", gravity), ("drag", drag)))

    def place(t: ca.SX) -> ca.SX:
        r, v, bend = _moving(position, t, 3, "quadcopter_reference: position")
        phi = column(answer(heading, "quadcopter_reference: heading", t), "heading") if callable(heading) else ca.SX(heading)
        force = bend + slowing * v + ca.DM([0, 0, g])
        _not_falling(force, "quadcopter_reference")
        return ca.vertcat(r, thrust_attitude(force, phi))

    return function_of_time(place, 7)


def thrust_attitude(force: Any, heading: Any) -> ca.SX:
    """Attitude (qx, qy, qz, qw) with the z axis along a force and a given heading, as of `quadcopter_reference`. [konz25 5.5]

    Args:
        force: (3,) along the world's axes, of any unit and any length but zero; numbers or expressions.
        heading: [rad].
    Returns:
        (4, 1) expression, scalar last.
    Raises ModelError: a force without three numbers.

    Example:
        >>> import casadi as ca
        >>> from pfaffian import control
        >>> print(ca.evalf(control.thrust_attitude([1.0, 0.0, 1.0], 0.0)))  # 45 degrees about y
        [0, 0.382683, 0, 0.92388]
    """
    f, phi = so3.matrix(column(force, "thrust_attitude: force"), 3), ca.SX(heading)
    z, s, c = f / ca.norm_2(f), ca.sin(phi), ca.cos(phi)
    return _euler(ca.asin(s * z[0] - c * z[1]), ca.atan2(c * z[0] + s * z[1], z[2]), phi)


def _euler(a: ca.SX, b: ca.SX, phi: ca.SX) -> ca.SX:
    """Quaternion (x, y, z, w) of Rz(phi) Ry(b) Rx(a), smooth in the angles."""
    x, y, z = ca.vertcat(ca.sin(a / 2), 0, 0, ca.cos(a / 2)), ca.vertcat(0, ca.sin(b / 2), 0, ca.cos(b / 2)), _about_z(phi)
    return ca.SX(so3.quat_mul(so3.quat_mul(z, y), x))


def _not_falling(f: ca.SX, what: str) -> None:
    """Raise ModelError: the force is zero for all t."""
    if ca.densify(f).is_constant() and not np.any(np.array(ca.evalf(f))):
        raise ModelError(f"{what}: free fall at every instant, where thrust has no direction")


def _about_z(angle: ca.SX) -> ca.SX:
    return ca.vertcat(0, 0, ca.sin(angle / 2), ca.cos(angle / 2))


def turning_series(
    position: Callable[[ca.SX], Any],
    duration: float,
    step: float,
    *,
    heading: float = 0.0,
    gravity: float = 9.81,
    drag: float = 0.0,
) -> np.ndarray:
    """Inputs of a `sampled` reference of a free joint, whose attitude turns no more than its thrust does.

        R_z along r'' + drag r' - a_G,  w_x = -R_y^T R_z_dot,  w_y = R_x^T R_z_dot,  w_z = 0           [konz25 (5.70)]

    No attitude is singular, also not upside down: for loops and flips. The heading is not chosen but results.

    Args:
        position: function of t [s] that returns r (3,) [m], four times differentiable, z up.
        duration: [s], from t = 0.
        step: [s] between samples, which begin at t = 0; it should divide the duration.
        heading: at the start [rad]; default 0.
        gravity: [m/s^2] along -z; default 9.81.
        drag: d/m [1/s] of a drag -d r' alike in all directions; default 0.
    Returns:
        (samples, 21): (x, y, z, qx, qy, qz, qw), their rates and their accelerations.
    Raises ModelError: a position of another size; a step not above zero or longer than the duration; somewhere less thrust
    than a twentieth of the weight, free fall, and when.

    Example:
        >>> from pfaffian import control
        >>> u = control.turning_series(lambda t: [5.0 * t**2, 0.0, 0.0], 1.0, 0.5, gravity=10.0)
        >>> u.shape
        (3, 21)
        >>> u[0, 3:7].round(6)  # tilted by 45 degrees about y
        array([0.      , 0.382683, 0.      , 0.92388 ])
    """
    given = {"duration": duration, "step": step, "gravity": gravity, "drag": drag}
    T, h, g, slowing = (named_float(x, f"turning_series: {n}") for n, x in given.items())
    if not (0 < h <= T):
        raise ModelError(f"turning_series: a step above zero and within the duration is needed, got {h:g} s of {T:g} s")
    check_thrust(position, T, gravity=g, drag=slowing)
    t = ca.SX.sym("t")
    r, v, bend = _moving(position, t, 3, "turning_series: position")
    f = bend + slowing * v + ca.DM([0, 0, g])
    z = f / ca.norm_2(f)
    z_dot = ca.jacobian(z, t)
    path = ca.Function("path", [t], [r, v, bend, z, z_dot, ca.jacobian(z_dot, t)])
    q = ca.SX.sym("q", 4)
    _, _, _, z, z_dot, z_bend = path(t)
    rate, w = _turning(q, z_dot)
    turn = ca.Function("turn", [q, t], [rate, _turning(q, z_bend)[0] + so3.quat_rate(rate) @ w])
    onward = ca.Function("onward", [q, t], [_along(path(t + h)[3], _onward(turn, q, t, h))])
    times = h * np.arange(round(T / h) + 1)
    start = _upright(path(0.0)[3], heading)
    attitudes = ca.horzcat(start, onward.mapaccum(len(times) - 1)(start, times[None, :-1]))
    x, x_dot, x_bend, *_ = path.map(len(times))(times[None, :])
    rates, bends = turn.map(len(times))(attitudes, times[None, :])
    return np.array(ca.vertcat(x, attitudes, x_dot, rates, x_bend, bends)).T


def _turning(q: ca.SX, z_dot: ca.SX) -> tuple[ca.SX, ca.SX]:
    """q_dot and w (3,) with which the z axis of q moves by z_dot, without rotation about it."""
    R = so3.quat_to_matrix(q)
    w = ca.vertcat(-ca.dot(R[:, 1], z_dot), ca.dot(R[:, 0], z_dot), 0)
    return so3.quat_rate(q) @ w, w


def _onward(turn: ca.Function, q: ca.SX, t: ca.SX, h: float) -> ca.SX:
    """q after a step of h, by the classical Runge-Kutta scheme."""
    k1 = turn(q, t)[0]
    k2 = turn(q + h / 2 * k1, t + h / 2)[0]
    k3 = turn(q + h / 2 * k2, t + h / 2)[0]
    k4 = turn(q + h * k3, t + h)[0]
    return q + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def _upright(z: ca.DM, heading: float) -> ca.DM:
    """Attitude (x, y, z, w) with thrust along z (3,) that is turned least from the heading."""
    return _along(z, ca.DM([0, 0, np.sin(heading / 2), np.cos(heading / 2)]))


def _along(z: Any, q: Any) -> Any:
    """q, normalised, after the smallest rotation that brings its z axis along z (3,)."""
    q = q / ca.norm_2(q)
    have = so3.quat_to_matrix(q)[:, 2]
    found = so3.quat_mul(ca.vertcat(ca.cross(have, z), 1 + ca.dot(have, z)), q)
    return found / ca.norm_2(found)


def check_thrust(
    position: Callable[[ca.SX], Any], duration: float, *, gravity: float = 9.81, begin: float = 0.0, drag: float = 0.0
) -> np.ndarray:
    """The thrust that a flat output requires, in parts of the weight.

        |r'' + drag r' - a_G| / g

    Args:
        position: function of t [s] that returns (..., up) [m], the last entry upwards.
        duration: [s].
        gravity: [m/s^2]; default 9.81.
        begin: [s] first instant; default 0.
        drag: d/m [1/s] of a drag -d r' alike in all directions; default 0.
    Returns:
        (instants,) from `begin` to `begin` + `duration`, evenly spaced.
    Raises ModelError: somewhere it requires less than a twentieth of the weight, free fall, and when.

    Example:
        >>> from pfaffian import control
        >>> thrust = control.check_thrust(lambda t: [0.0, 5.0 * t**2], 1.0, gravity=10.0)
        >>> round(float(thrust.max()), 6)  # 10 m/s^2 upwards beside the weight
        2.0
    """
    given = {"gravity": gravity, "duration": duration, "begin": begin, "drag": drag}
    g, T, t0, slowing = (named_float(x, f"check_thrust: {n}") for n, x in given.items())
    t = ca.SX.sym("t")
    p = column(answer(position, "check_thrust: position", t), "check_thrust: position")
    rate = ca.jacobian(p, t)
    bend = ca.jacobian(rate, t) + slowing * rate
    up = ca.SX.zeros(p.numel(), 1)
    up[p.numel() - 1] = g
    f = ca.Function("carried", [t], [ca.norm_2(bend + up) / g])
    at = np.linspace(t0, t0 + T, DENSE)
    found = np.array([float(f(x)) for x in at])
    least = int(np.argmin(np.where(np.isfinite(found), found, -1.0)))
    if not found[least] > FALLING:
        raise ModelError(
            f"check_thrust: at t = {at[least]:.4g} s the reference requires {max(found[least], 0):.2g} of the weight, free "
            "fall, where thrust has no direction; take more time, or another path"
        )
    return found


def least_time(
    path: Callable[[float], Callable[[ca.SX], Any]], limits: dict[str, float], *, gravity: float = 9.81, longest: float = 100.0
) -> float:
    """The shortest duration in which a flat output (x, y, z) respects limits.

    Args:
        path: function of the duration T [s] that returns a function of t from 0 to T giving r (3,) [m], such as lambda T:
            rest_to_rest(a, b, T).
        limits: {name: number} of speed [m/s], acceleration [m/s^2], tilt [rad], rate [rad/s] of the thrust's direction, thrust
            and least_thrust in parts of the weight; at least one, each above zero.
        gravity: [m/s^2]; default 9.81.
        longest: duration at which to give up [s]; default 100.
    Returns:
        T [s].
    Raises ModelError: an unknown limit, or none; one that even `longest` does not respect, which, and by what factor.

    Example:
        >>> from pfaffian import control
        >>> T = control.least_time(lambda T: control.rest_to_rest([0, 0, 0], [1, 0, 0], T), {"speed": 1.0})
        >>> round(T, 3)  # the polynomial is 2.461 times as fast as the mean
        2.461
    """
    known = ("speed", "acceleration", "tilt", "rate", "thrust", "least_thrust")
    for name, x in limits.items():
        if name not in known or not named_float(x, f"least_time: {name}") > 0:
            raise ModelError(f"least_time: {brief(name)}: {brief(x)} is no limit; {', '.join(known)}, each above zero")
    if not limits:
        raise ModelError(f"least_time: at least one limit is needed of {', '.join(known)}")

    def missed(T: float) -> dict[str, float]:
        found = extremes(path(T), T, gravity=gravity)
        over = {n: found[n] / x for n, x in limits.items() if n != "least_thrust" and not found[n] <= x}
        if "least_thrust" in limits and not found["least_thrust"] >= limits["least_thrust"]:
            over["least_thrust"] = limits["least_thrust"] / max(found["least_thrust"], 1e-300)
        return over

    high = 0.1
    while missed(high):
        high *= 2
        if high > longest:
            worst = missed(longest)
            if not worst:
                high = longest
                break
            name = max(worst, key=worst.__getitem__)
            raise ModelError(f"least_time: in {longest:g} s the limit on {name} still is missed by {worst[name]:.3g} times")
    low = high / 2
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if missed(middle) else (low, middle)
    return high


def extremes(position: Callable[[ca.SX], Any], duration: float, *, gravity: float = 9.81) -> dict[str, float]:
    """The extremes of a flat output r(t): speed, acceleration, tilt, rate of the thrust's direction, and thrust.

    Args:
        position: function of the time t [s] that returns r (3,) [m], z up.
        duration: [s] of the flight, from t = 0.
        gravity: [m/s^2]; default 9.81.
    Returns:
        {name: largest} of speed [m/s], acceleration [m/s^2], tilt [rad], rate [rad/s] and thrust, and least_thrust, thrusts in
        parts of the weight.
    Raises ModelError: position does not return three numbers.

    Example:
        >>> from pfaffian import control
        >>> x = control.extremes(lambda t: [3.0 * t, 0.0, 4.0 * t + 5.0 * t**2], 1.0, gravity=10.0)
        >>> round(x["acceleration"], 6), round(x["thrust"], 6)
        (10.0, 2.0)
    """
    g, t = named_float(gravity, "extremes: gravity"), ca.SX.sym("t")
    r = column(answer(position, "extremes: position", t), "extremes: position")
    if r.numel() != 3:
        raise ModelError(f"extremes: position must give three numbers, got {r.numel()}")
    v = ca.jacobian(r, t)
    a = ca.jacobian(v, t)
    carried = a + ca.DM([0, 0, g])
    size = ca.norm_2(carried)
    z = carried / size
    parts = [ca.norm_2(v), ca.norm_2(a), ca.acos(ca.fmin(1, ca.fmax(-1, z[2]))), ca.norm_2(ca.jacobian(z, t)), size / g]
    f = ca.Function("x", [t], [ca.vertcat(*parts)])
    values = np.array(f(np.linspace(0, duration, DENSE)[None, :])).T
    most = np.where(np.isfinite(values), values, np.inf).max(axis=0)
    names = ("speed", "acceleration", "tilt", "rate", "thrust")
    return dict(zip(names, most.tolist(), strict=True)) | {"least_thrust": float(values[:, 4].min())}


def _twice(y: Callable[[ca.SX], Any], t: ca.SX, size: int, what: str) -> tuple[ca.SX, ca.SX]:
    """y and its second derivative at t."""
    p, _, bend = _moving(y, t, size, what)
    return p, bend


def _moving(y: Callable[[ca.SX], Any], t: ca.SX, size: int, what: str) -> tuple[ca.SX, ca.SX, ca.SX]:
    """y and its first two derivatives at t."""
    if not callable(y):
        raise ModelError(f"{what} must be a function of t, got {brief(y)}")
    s = ca.SX.sym("s")
    p = ca.densify(column(answer(y, what, s), what))
    if p.numel() != size:
        raise ModelError(f"{what} must give {size} numbers, got {p.numel()}")
    rate = ca.jacobian(p, s)
    value, first, second = ca.Function("y", [s], [p, ca.densify(rate), ca.densify(ca.jacobian(rate, s))])(t)
    return value, first, second
