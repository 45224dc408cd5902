"""References from flat outputs, which machines with fewer inputs than motions can follow. [konz25 4.8, 5.5]

A flat output y(t) and its derivatives determine the motion and the inputs. Along such a reference, a matched prototype has no
matching force. In free fall the thrust has no direction, so that no such reference exists.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import comb
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.control.reference import Reference, function_of_time
from pfaffian.errors import ModelError, brief
from pfaffian.maths import so3
from pfaffian.model.number import column, floats, is_whole, named_float, scalar, vector
from pfaffian.model.user_functions import call_for_value


def rest_to_rest(start: Any, end: Any, duration: float, *, begin: float = 0.0, smooth: int = 4) -> Callable[[ca.SX], ca.SX]:
    """Path in time from rest to rest, a polynomial of degree 2 smooth + 1 that is constant before and after. [konz25 5.5]

    The first `smooth` derivatives vanish at both ends; the attitude of a multicopter needs four.

    Args:
        start: (k,) value before `begin`, in any unit.
        end: (k,) value after `begin` + `duration`.
        duration: duration of the motion [s], above zero.
        begin: time at which the motion starts [s]; default 0.
        smooth: number of derivatives that vanish at both ends, 1 to 9; default 4.
    Returns:
        Function of the time t [s] that returns (k, 1), for flat references and `function_of_time`.
    Raises ModelError: start and end of different sizes, a duration not above zero, a smooth that is not from 1 to 9.

    Example:
        >>> from pfaffian import control
        >>> y = control.rest_to_rest([0.0], [2.0], duration=3.0)
        >>> [float(y(t)) for t in (0.0, 1.5, 4.0)]
        [0.0, 1.0, 2.0]
    """
    a, b = (np.array(floats(x, f"rest_to_rest: {n}"), ndmin=1) for n, x in (("start", start), ("end", end)))
    T, t0 = named_float(duration, "rest_to_rest: duration"), named_float(begin, "rest_to_rest: begin")
    if a.ndim != 1 or a.shape != b.shape or not T > 0:
        raise ModelError("rest_to_rest: a start and an end of one length and a duration above zero are needed")
    if not is_whole(smooth) or not 1 <= smooth <= 9:
        raise ModelError(f"rest_to_rest: smooth must be a whole number from 1 to 9, got {brief(smooth)}")
    n = smooth
    powers = [(-1) ** i * comb(n + i, i) * comb(2 * n + 1, n - i) for i in range(n + 1)]

    def y(t: ca.SX) -> ca.SX:
        s = ca.fmin(ca.fmax((t - t0) / T, 0), 1)
        shape = s ** (n + 1) * sum(c * s**i for i, c in enumerate(powers))
        return ca.densify(ca.DM(a) + ca.DM(b - a) * shape)

    return y


def along(path: Callable[[ca.SX], Any], progress: Callable[[ca.SX], Any]) -> Callable[[ca.SX], ca.SX]:
    """Path in time along a parametrised curve, t -> path(progress(t)).

    Args:
        path: function of the curve's parameter, such as an angle, that returns a column or list of numbers.
        progress: function of the time t [s] that returns the parameter, such as that of `rest_to_rest`.
    Returns:
        Function of the time t [s], for flat references and `function_of_time`.
    Raises ModelError: an argument that is not a function; when the result is called, a progress of more than one number.

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
        parameter = column(call_for_value(progress, "along: progress", t), "along: progress")
        if parameter.numel() != 1:
            raise ModelError(f"along: progress must be one number, got {parameter.numel()}")
        return column(call_for_value(path, "along: path", parameter), "along: path")

    return y


def pvtol_reference(y: Callable[[ca.SX], Any], *, coupling_length: float = 0.0, gravity: float = 9.81) -> Reference:
    """Reference (x, y, angle) of a machine in a vertical plane; its flat output is the point eps above its mass centre.

        angle = atan2(-y1'', y2'' + g),  x = y1 + eps sin angle,  y = y2 - eps cos angle            [konz25 4.8.2, corrected]

    Args:
        y: function of t [s] that returns y1 along the horizon and y2 upwards [m], four times differentiable.
        coupling_length: eps [m], by which the inputs push sideways as they turn the machine, see `hover_placement`; default 0.
        gravity: [m/s^2]; default 9.81.
    Returns:
        Reference of three coordinates [m, m, rad].
    Raises ModelError: at the run: y is not a function, does not return two numbers, or is in free fall at all times.
    `check_thrust` finds free fall at single instants.

    Example:
        >>> import casadi as ca
        >>> from pfaffian import control
        >>> reference = control.pvtol_reference(lambda t: [5.0 * t**2, 0.0], gravity=10.0)
        >>> print(ca.evalf(reference.at(0.0, []).value))  # 10 m/s^2 to the right: 45 degrees
        [0, 0, -0.785398]
    """
    return function_of_time(_in_a_plane(y, coupling_length, gravity, "pvtol_reference"), 3)


def bicopter_reference(y: Callable[[ca.SX], Any], *, coupling_length: float = 0.0, gravity: float = 9.81) -> Reference:
    """Reference (x, y, z, qx, qy, qz, qw) of a bicopter that stays in the yz-plane and tilts about x as a PVTOL. [konz25 4.8.4]

    Args:
        y: function of t [s] that returns y1 along the world's y and y2 along z [m], four times differentiable.
        coupling_length: eps_y [m], see `bicopter_coupling_length`; default 0.
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
    place = _in_a_plane(y, coupling_length, gravity, "bicopter_reference")

    def whole(t: ca.SX) -> ca.SX:
        p = place(t)
        return ca.vertcat(0, p[:2], ca.sin(p[2] / 2), 0, 0, ca.cos(p[2] / 2))

    return function_of_time(whole, 7)


def _in_a_plane(y: Callable[[ca.SX], Any], coupling_length: float, gravity: float, what: str) -> Callable[[ca.SX], ca.SX]:
    """Function t -> (x, y, angle) of a machine in a vertical plane, from its flat output. [konz25 4.8.2, corrected]"""
    eps, g = named_float(coupling_length, f"{what}: coupling_length"), named_float(gravity, f"{what}: gravity")

    def place(t: ca.SX) -> ca.SX:
        p, p_ddot = _twice(y, t, 2, f"{what}: y")
        _not_falling(p_ddot + ca.DM([0, g]), what)
        angle = ca.atan2(-p_ddot[0], p_ddot[1] + g)
        return ca.vertcat(p[0] + eps * ca.sin(angle), p[1] - eps * ca.cos(angle), angle)

    return place


def quadcopter_reference(
    position: Callable[[ca.SX], Any],
    heading: Callable[[ca.SX], Any] | float = 0.0,
    *,
    gravity: float = 9.81,
    drag: float = 0.0,
) -> Reference:
    """Reference (x, y, z, qx, qy, qz, qw) of a machine with thrust along its z axis, from position and heading. [konz25 5.5]

        R_z along r'' + drag r' - a_G,   R = Rz(heading) Ry(beta) Rx(alpha)
        alpha = arcsin(sin(heading) R_z^x - cos(heading) R_z^y),  beta = atan2(cos(heading) R_z^x + sin(heading) R_z^y, R_z^z)

    The heading is the direction of the machine's x axis in the horizontal plane, however it is tilted; so it is for
    `thrust_attitude`, `turning_series` and `path_end`.
    Upside down, |beta| is above 90 degrees, and the machine has this heading after it is pitched back upright. Where the
    thrust is along the heading's y axis, beta is not determined. For loops and flips through such attitudes, integrate the
    attitude by `turning_series`.

    Args:
        position: function of t [s] that returns r (3,) [m], four times differentiable, z up.
        heading: function of t, or a number [rad]; default 0.
        gravity: [m/s^2] along -z; default 9.81.
        drag: d/m [1/s] of a drag force -d r' that is equal in all directions; default 0.
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
    g, drag_rate = (named_float(x, f"quadcopter_reference: {n}") for n, x in (("gravity", gravity), ("drag", drag)))

    def place(t: ca.SX) -> ca.SX:
        r, v, a = moving(position, t, 3, "quadcopter_reference: position")
        phi = (
            column(call_for_value(heading, "quadcopter_reference: heading", t), "heading")
            if callable(heading)
            else ca.SX(heading)
        )
        force = a + drag_rate * v + ca.DM([0, 0, g])
        _not_falling(force, "quadcopter_reference")
        return ca.vertcat(r, thrust_attitude(force, phi))

    return function_of_time(place, 7)


def tricopter_reference(
    position: Callable[[ca.SX], Any], attitude: Callable[[ca.SX], Any] | Sequence[float] = (0, 0, 0)
) -> Reference:
    """Reference (x, y, z, qx, qy, qz, qw) of a machine that pushes in any direction, from position and angles. [konz25 5.5]

        R = Rz(phi) Ry(beta) Rx(alpha)

    The flat output of a tricopter with tilting arms is (r, alpha, beta, phi): attitude and position are independent, and only
    |beta| = 90 degrees is singular. `check_reference` checks whether the thrusts suffice.

    Args:
        position: function of t [s] that returns r (3,) [m], twice differentiable.
        attitude: function of t that returns (alpha, beta, phi) [rad], twice differentiable, or three numbers; default level.
    Returns:
        Reference of seven coordinates, the configuration of a free joint.
    Raises ModelError: attitude of numbers that are not three; at the run: functions that return another number of values.

    Example:
        >>> import casadi as ca
        >>> from pfaffian import control
        >>> reference = control.tricopter_reference(lambda t: [t, 0.0, 1.0], [0.5, 0.0, 0.0])  # rolled by 0.5 rad
        >>> print(ca.evalf(reference.at(2.0, []).value))
        [2, 0, 1, 0.247404, 0, 0, 0.968912]
    """
    what = "tricopter_reference: attitude"
    fixed = ca.SX(3, 1) if callable(attitude) else vector(attitude, 3, what)

    def place(t: ca.SX) -> ca.SX:
        (r,) = moving(position, t, 3, "tricopter_reference: position", 0)
        angles = moving(attitude, t, 3, what, 0)[0] if callable(attitude) else fixed
        return ca.vertcat(r, _euler(*ca.vertsplit(angles)))

    return function_of_time(place, 7)


def thrust_attitude(force: Any, heading: Any) -> ca.SX:
    """Attitude (qx, qy, qz, qw) with the z axis along a force and a given heading. [konz25 5.5]

    The heading is defined as in `quadcopter_reference`.

    Args:
        force: (3,) along the world's axes, in any unit and not zero; numbers or expressions.
        heading: [rad].
    Returns:
        (4, 1) expression, scalar last.
    Raises ModelError: a force without three numbers, a heading that is not one number.

    Example:
        >>> import casadi as ca
        >>> from pfaffian import control
        >>> print(ca.evalf(control.thrust_attitude([1.0, 0.0, 1.0], 0.0)))  # 45 degrees about y
        [0, 0.382683, 0, 0.92388]
    """
    f, phi = so3.matrix(column(force, "thrust_attitude: force"), 3), scalar(heading, "thrust_attitude: heading")
    z, s, c = f / ca.norm_2(f), ca.sin(phi), ca.cos(phi)
    return _euler(ca.asin(s * z[0] - c * z[1]), ca.atan2(c * z[0] + s * z[1], z[2]), phi)


def _euler(a: ca.SX, b: ca.SX, phi: ca.SX) -> ca.SX:
    """Quaternion (x, y, z, w) of Rz(phi) Ry(b) Rx(a), smooth in the angles."""
    x, y, z = ca.vertcat(ca.sin(a / 2), 0, 0, ca.cos(a / 2)), ca.vertcat(0, ca.sin(b / 2), 0, ca.cos(b / 2)), _about_z(phi)
    return ca.SX(so3.quat_mul(so3.quat_mul(z, y), x))


def _not_falling(f: ca.SX, what: str) -> None:
    """Raise ModelError if the force is zero for all t."""
    if ca.densify(f).is_constant() and not np.any(np.array(ca.evalf(f))):
        raise ModelError(f"{what}: free fall at every instant, where thrust has no direction")


def _about_z(angle: ca.SX) -> ca.SX:
    """Quaternion (x, y, z, w) of a rotation about z."""
    return ca.vertcat(0, 0, ca.sin(angle / 2), ca.cos(angle / 2))


def _twice(y: Callable[[ca.SX], Any], t: ca.SX, size: int, what: str) -> tuple[ca.SX, ca.SX]:
    """y and its second derivative at t."""
    p, _, p_ddot = moving(y, t, size, what)
    return p, p_ddot


def moving(y: Callable[[ca.SX], Any], t: ca.SX, size: int, what: str, order: int = 2) -> list[ca.SX]:
    """y and its derivatives at t, up to the given order. Raises ModelError: y is not a function or returns another size."""
    if not callable(y):
        raise ModelError(f"{what} must be a function of t, got {brief(y)}")
    s = ca.SX.sym("s")
    parts = [ca.densify(column(call_for_value(y, what, s), what))]
    if parts[0].numel() != size:
        raise ModelError(f"{what} must give {size} numbers, got {parts[0].numel()}")
    for _ in range(order):
        parts.append(ca.densify(ca.jacobian(parts[-1], s)))
    others = ca.vertcat(ca.SX(0, 1), *[x for x in ca.symvar(ca.vertcat(*parts)) if not ca.is_equal(x, s)])
    return list(ca.Function("y", [s, others], parts).call([t, others]))
