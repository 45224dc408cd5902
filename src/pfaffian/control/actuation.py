"""Filters from a requested wrench to servos and motors, one step at a time, for laws in discrete time. [konz25 5.3]

servo_step, propeller_step, propeller_observer, propeller_current      one servo, one propeller
tilt_thrusts, tilt_wrench, tilt_jacobian, low_pass                     thrusts and tilts of three arms or more
tricopter_forces, tricopter_transfer                                   a tricopter's filter and its frequency response
quadcopter_filter, quadcopter_forces, quadcopter_wrench,               the filter of a quadcopter, also with more propellers
    spin_coupling, quadcopter_transfer

A function whose name ends in `_step`, `_observer` or `_forces` advances a state by one period T, from k to k + 1, for numbers
or symbols. Call it in a law of your own (`discrete`), which stores this state. The coefficients of a propeller are
(p1, p2, p3) = (kT, k_M, tau_MB) / Theta_P.

Example:
    >>> from pfaffian.control import actuation
    >>> speed = 500.0
    >>> for _ in range(2):
    ...     speed = actuation.propeller_step(speed, 10.0, 0.01, (4e-5, 10.0, 0.0))
    >>> round(speed, 3)  # [rad/s], towards sqrt(p2 i / p1) = 1581
    501.8
"""

from __future__ import annotations

import math
from math import pi
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError
from pfaffian.model.number import floats, named_float

DEPENDENT = 1e-9
"""Singular values of rows of unit length below this part of the largest count as zero."""

Number = Any  # float, ca.SX or ca.DM


def servo_step(angle: Number, rate: Number, setpoint: Number, period: float, p0: Number, p1: Number) -> tuple[Number, Number]:
    """One step of a simulated servo, for servos that do not measure their angle. [konz25 (5.18)]

        angle'' + p1 angle' + p0 angle = p0 setpoint,  by Euler's rule

    Args:
        angle, rate: of one servo, or columns of several [rad], [rad/s].
        setpoint: requested angle [rad].
        period: [s].
        p0, p1: k_PS / Theta_A [1/s^2] and k_DS / Theta_A [1/s].
    Returns:
        next angle and rate.

    Example:
        >>> from pfaffian.control import actuation
        >>> actuation.servo_step(0.0, 1.0, 0.5, 0.1, 100.0, 10.0)  # 1 + 0.1 (100 * 0.5 - 10 * 1)
        (0.1, 5.0)
    """
    return angle + period * rate, rate + period * (p0 * (setpoint - angle) - p1 * rate)


def propeller_step(speed: Number, current: Number, period: float, p: tuple[Number, Number, Number]) -> Number:
    """Next speed of a propeller, varpi + T (p2 i - p3 - p1 varpi^2). [konz25 (5.19)]

    Args:
        speed: varpi [rad/s].
        current: i_M of its motor [A].
        period: T [s].
        p: (p1 [1/rad], p2 [rad/(s^2 A)], p3 [rad/s^2]).
    Returns:
        next speed [rad/s].

    Example:
        >>> from pfaffian.control import actuation
        >>> actuation.propeller_step(500.0, 10.0, 0.01, (4e-5, 10.0, 0.0))  # 500 + 0.01 (100 - 10)
        500.9
    """
    return speed + period * (p[1] * current - p[2] - p[0] * speed**2)


class PropellerEstimate(NamedTuple):
    """Estimated state of a propeller, for `propeller_observer`.

    speed: at k [rad/s].   before: speed at k - 1 [rad/s].   friction: p3 [rad/s^2].
    """

    speed: Number
    before: Number
    friction: Number


def propeller_observer(
    x: PropellerEstimate, measured: Number, current: Number, period: float, p: tuple[Number, Number], gains: tuple[float, float]
) -> PropellerEstimate:
    """Next estimate from the mean speed over the last period, which an encoder measures. [konz25 (5.22)-(5.23)]

        e = measured - (speed + before) / 2,  friction' = friction + T l2 e
        speed' = speed + T (p2 i - friction - p1 speed^2 + l1 e)

    The errors have the characteristic polynomial (5.24),

        z^3 + (T/2 (4 p1 w + l1) - 2) z^2 + (1 - T/2 (4 p1 w + T l2)) z - T/2 (l1 + T l2),

    which is stable for l1 > 0 and a small l2 < 0.

    Args:
        x: PropellerEstimate at k.
        measured: mean speed from k - 1 to k [rad/s].
        current: i_M [A].
        period: T [s].
        p: (p1 [1/rad], p2 [rad/(s^2 A)]).
        gains: (l1 [1/s], l2 [1/s^2]).
    Returns:
        PropellerEstimate at k + 1.

    Example:
        >>> from pfaffian.control import actuation
        >>> x = actuation.PropellerEstimate(500.0, 500.0, 0.0)
        >>> actuation.propeller_observer(x, 510.0, 1.0, 0.01, (4e-6, 1.0), (20.0, -10.0))
        PropellerEstimate(speed=502.0, before=500.0, friction=-1.0)
    """
    e = measured - (x.speed + x.before) / 2
    speed = x.speed + period * (p[1] * current - x.friction - p[0] * x.speed**2 + gains[0] * e)
    return PropellerEstimate(speed, x.speed, x.friction + period * gains[1] * e)


def propeller_current(
    setpoint: Number,
    next_setpoint: Number,
    speed: Number,
    friction: Number,
    period: float,
    p: tuple[Number, Number],
    gain: float,
) -> Number:
    """Motor current with which a propeller follows a requested speed. [konz25 (5.25)]

    The speed error is multiplied by 1 - T (2 p1 varpi + gain) each period.

    Args:
        setpoint, next_setpoint: requested speed now and a period later [rad/s].
        speed: varpi [rad/s].
        friction: p3 [rad/s^2].
        period: T [s].
        p: (p1 [1/rad], p2 [rad/(s^2 A)]).
        gain: k_P [1/s].
    Returns:
        i_M [A].

    Example:
        >>> from pfaffian.control import actuation
        >>> actuation.propeller_current(500.0, 500.0, 500.0, 0.0, 0.01, (4e-6, 2.0), 10.0)  # p1 varpi^2 / p2
        0.5
    """
    return ((next_setpoint - setpoint) / period + p[0] * setpoint**2 + friction + gain * (setpoint - speed)) / p[1]


class TiltThrusts(NamedTuple):
    """Thrusts and tilt angles of arms.

    thrust: (n, 1) [N].   angle: (n, 1) [rad].   missing: (6, 1) requested wrench minus that of these limited thrusts and
    angles [N, N m]; empty if no wrench was requested.

    Example:
        >>> from pfaffian.control import actuation
        >>> actuation.TiltThrusts([3.0, 4.0, 5.0], [0.0, 0.1, 0.0]).angle
        [0.0, 0.1, 0.0]
    """

    thrust: Any
    angle: Any
    missing: Any = ca.DM(0, 1)


def tilt_thrusts(f: Any, B: Any, *, thrust: tuple[float, float] = (0.3, 7.0), angle: float = 0.7853981633974483) -> TiltThrusts:
    """Smallest thrusts and tilts for a wrench, (F cos, F sin) = B^T (B B^T)^-1 f, then limited. [konz25 (5.28)]

    Limits change the wrench, by `missing` = f - B (F cos, F sin), which is zero where no limit is active. A law that respects
    these limits (`prototype_tracking` with the limits of `thrust_polygon`) never requests a wrench out of reach.

    Args:
        f: (6,) requested wrench [N, N m].
        B: (6, 2 n) of rank six, of a `thrust_multicopter` with n arms that tilt, three or more.
        thrust: (lowest, highest) [N]; default the tricopter's of the thesis.
        angle: largest tilt [rad]; default pi/4, the tricopter's.
    Returns:
        TiltThrusts.
    Raises ModelError: B of another shape, or with rows that depend on each other.

    Example:
        >>> import numpy as np
        >>> from pfaffian.control import actuation
        >>> x = actuation.tilt_thrusts([3.0, 4.0, 9.0, 0.0, 0.0, 9.0], np.eye(6))  # the last one is limited to pi/4 and 7 N
        >>> print(x.thrust, x.angle)
        [3, 4, 7] [0, 0, 0.785398]
        >>> print(x.missing)
        [0, 0, 4.05025, 0, 0, 4.05025]
    """
    rows, wrench = _column(B), _column(f)
    if rows.shape[0] != 6 or rows.shape[1] % 2 or rows.shape[1] < 6:
        raise ModelError(f"tilt_thrusts: B (6, 2 n) of three or more arms that tilt is needed, got {rows.shape}")
    x = right_inverse(rows, "tilt_thrusts") @ wrench
    n = x.numel() // 2
    up, across = x[:n], x[n:]
    limited = TiltThrusts(
        ca.fmin(ca.fmax(ca.sqrt(up**2 + across**2), thrust[0]), thrust[1]),
        ca.fmin(ca.fmax(ca.atan2(across, up), -angle), angle),
    )
    return limited._replace(missing=wrench - tilt_wrench(limited, B))


def right_inverse(B: Any, what: str) -> Any:
    """B^T (B B^T)^-1 (n, k), which gives the smallest x with B x = f; B^-1 where B (k, n) is square.

    what: name of the calling function, for messages.

    Raises ModelError: B is numeric and its rows depend on each other.

    Example:
        >>> import casadi as ca
        >>> from pfaffian.control import actuation
        >>> print(actuation.right_inverse(ca.DM([[1.0, 1.0]]), "two thrusters"))
        [0.5, 0.5]
    """
    rows = _column(B)
    if isinstance(rows, ca.DM):
        unit_rows = np.array(rows) / np.linalg.norm(np.array(rows), axis=1, keepdims=True)
        s = np.linalg.svd(unit_rows, compute_uv=False)
        if not s.min() > DEPENDENT * s.max():
            raise ModelError(f"{what}: the rows of B depend on each other, so that some wrench has no inputs")
    return ca.inv(rows) if rows.shape[0] == rows.shape[1] else rows.T @ ca.inv(rows @ rows.T)


def tilt_wrench(x: TiltThrusts, B: Any) -> Any:
    """The wrench of thrusts and tilts, B (F cos, F sin). [konz25 (5.16c), (5.16d)]

    Args:
        x: TiltThrusts, or another object with thrust [N] and angle [rad].
        B: (6, 2 n), of a `thrust_multicopter` with n arms that tilt.
    Returns:
        (6,) [N, N m].

    Example:
        >>> import numpy as np
        >>> from pfaffian.control import actuation
        >>> print(actuation.tilt_wrench(actuation.TiltThrusts([3.0, 4.0, 5.0], [0.0, 0.0, 0.0]), np.eye(6)))
        [3, 4, 5, 0, 0, 0]
    """
    F, angle = _column(x.thrust), _column(x.angle)
    return _column(B) @ ca.vertcat(F * ca.cos(angle), F * ca.sin(angle))


def low_pass(x: Number, u: Number, forgetting: float) -> Number:
    """Next state of a first-order low pass, c x + (1 - c) u, which smooths a tricopter's thrusts. [konz25 (5.29)]

    Args:
        x: state of the filter.
        u: input of the filter.
        forgetting: c, the fraction of x that remains after a period, 0 to 1.
    Returns:
        next x.

    Example:
        >>> from pfaffian.control import actuation
        >>> actuation.low_pass(1.0, 2.0, 0.75)
        1.25
    """
    return forgetting * x + (1 - forgetting) * u


class TiltDrives(NamedTuple):
    """State of a tricopter's drives: thrusts [N], tilt angles [rad] and their rates [rad/s], a column each."""

    thrust: Any
    angle: Any
    rate: Any


def tricopter_forces(
    x: TiltDrives,
    setpoint: Any,
    period: float,
    B: Any,
    *,
    forgetting: float,
    servo: tuple[float, float],
    thrust: tuple[float, float] = (0.3, 7.0),
    angle: float = 0.7853981633974483,
) -> tuple[TiltDrives, TiltThrusts]:
    """One step of the filter between a requested wrench and a tricopter's drives. [konz25 (5.18), (5.28), (5.29)]

    Requested thrusts pass a `low_pass`, and the propellers follow its output (`propeller_current`, speeds sqrt(thrust / kF)).
    Tilt angles are those of simulated servos, `servo_step`. `tilt_wrench` of x is the wrench on the machine.

    Args:
        x: TiltDrives.
        setpoint: (6,) requested wrench [N, N m].
        period: [s].
        B: (6, 2 n), of a `thrust_multicopter` with n arms that tilt.
        forgetting: c_F, the fraction of the thrusts that remains after a period, 0 to 1.
        servo: (p0 [1/s^2], p1 [1/s]) of its servos.
        thrust: (lowest, highest) [N]; default the tricopter's of the thesis.
        angle: largest tilt [rad]; default pi/4, the tricopter's.
    Returns:
        next TiltDrives, and the requested TiltThrusts: thrusts, the angles for the servos, and the part of the wrench that
        limits leave out.

    Example:
        >>> import numpy as np
        >>> from pfaffian.control import actuation
        >>> x = actuation.TiltDrives([3.0, 3.0, 3.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0])
        >>> wrench = [5.0, 5.0, 5.0, 0.0, 0.0, 0.0]
        >>> x, goal = actuation.tricopter_forces(x, wrench, 0.005, np.eye(6), forgetting=0.5, servo=(100.0, 20.0))
        >>> print(x.thrust)  # half-way from 3 to 5
        [4, 4, 4]
    """
    goal = tilt_thrusts(setpoint, B, thrust=thrust, angle=angle)
    turned, rate = servo_step(_column(x.angle), _column(x.rate), goal.angle, period, *servo)
    return TiltDrives(low_pass(_column(x.thrust), goal.thrust, forgetting), turned, rate), goal


def tilt_jacobian(thrust: Any, angle: Any, B: Any) -> np.ndarray:
    """Derivative J (6, 6) of `tilt_wrench` with respect to thrusts and angles. [konz25 (5.33)]

    Args:
        thrust: (3,) [N].
        angle: (3,) [rad].
        B: (6, 6), of a `thrust_multicopter` with arms that tilt.
    Returns:
        (6, 6), with the columns for thrusts before those for angles.

    Example:
        >>> import numpy as np
        >>> from pfaffian.control import actuation
        >>> np.diag(actuation.tilt_jacobian([1.0, 2.0, 3.0], [0.0, 0.0, 0.0], np.eye(6)))
        array([1., 1., 1., 1., 2., 3.])
    """
    F, a = floats(thrust, "tilt_jacobian: thrust"), floats(angle, "tilt_jacobian: angle")
    c, s = np.diag(np.cos(a)), np.diag(np.sin(a))
    return floats(B, "tilt_jacobian: B") @ np.block([[c, -s @ np.diag(F)], [s, c @ np.diag(F)]])


def tricopter_transfer(
    z: complex, angle: Any, B: Any, period: float, *, forgetting: float, servo: tuple[float, float]
) -> np.ndarray:
    """Frequency response of `tricopter_forces` about given tilts, with no limit active. [konz25 (5.31)-(5.33)]

        G = J diag(G_F, G_theta) J^-1,  G_F = (1 - c) / (z - c),  G_theta = p0 T^2 / ((z - 1)^2 + p1 T (z - 1) + p0 T^2)

    The thrusts cancel out.

    Args:
        z: exp(i 2 pi f T) at f Hz.
        angle: (3,) [rad].
        B: (6, 6), of a `thrust_multicopter` with arms that tilt.
        period: T [s].
        forgetting: c, the fraction of the thrusts that remains after a period, 0 to 1.
        servo: (p0 [1/s^2], p1 [1/s]) of its servos.
    Returns:
        G (6, 6), from the requested wrench to the actual one.

    Example:
        >>> import numpy as np
        >>> from pfaffian.control import actuation
        >>> G = actuation.tricopter_transfer(1.0, [0.0, 0.0, 0.0], np.eye(6), 0.005, forgetting=0.5, servo=(100.0, 20.0))
        >>> bool(np.abs(G - np.eye(6)).max() < 1e-9)  # a constant wrench is reached
        True
    """
    J, q = tilt_jacobian(np.ones(3), angle, B), (z - 1) / period
    turned = servo[0] / (q**2 + servo[1] * q + servo[0])
    return J @ np.diag([(1 - forgetting) / (z - forgetting)] * 3 + [turned] * 3) @ np.linalg.inv(J)


class QuadcopterFilter(NamedTuple):
    """Parameters of `quadcopter_forces`, returned by `quadcopter_filter`.

    B: (4, n) of (F_z, tau) = B varpi^2, a `thrust_multicopter`'s rows times kF.
    spin: (n,) Theta_P times the signs of varpi_dot in -tau_z [kg m^2].
    k0, k1: coefficients for (magnitude, tilt, tilt, heading) [1/s^2], [1/s].
    static: whether the filter neglects spin, (5.42), although a real quadcopter has it.
    """

    B: Any
    spin: Any
    k0: Any
    k1: Any
    static: bool = False


def quadcopter_filter(
    B: Any, spin: Any, hover: float, *, magnitude: float, tilt: float, heading: float, static: bool = False
) -> QuadcopterFilter:
    """The filter of `quadcopter_forces` with given cut-off frequencies. [konz25 5.3.4]

    Thrust and tilt pass second-order Butterworth filters, k0 = w^2, k1 = sqrt(2) w. For rotation about the vertical in hover,
    k1 places a pole onto the zero at -1 / p4, which leaves k0 p4 / (q + k0 p4): k1 = 1 / p4 for the filter (5.35),
    k1 = 1 / p4 + k0 p4 for the static one (5.42).

    Args:
        B: (4, n) of (F_z, tau) = B varpi^2, a `thrust_multicopter`'s rows times kF, of four or more propellers.
        spin: (n,) Theta_P times the signs of varpi_dot in -tau_z [kg m^2].
        hover: speed of all propellers [rad/s].
        magnitude, tilt, heading: cut-off frequencies of thrust, of moments about x and y, and of the moment about z [Hz].
        static: whether the filter neglects spin; default False.
    Returns:
        QuadcopterFilter.
    Raises ModelError: a frequency or a speed is not above zero; B and spin do not fit, or rows of B depend on each other; the
    moment of an accelerating propeller does not have the sign of its drag.

    Example:
        >>> import numpy as np
        >>> from pfaffian.control import actuation
        >>> kF, kM, l = 1e-5, 2e-7, 0.2
        >>> B = np.array([[kF] * 4, [0, kF * l, 0, -kF * l], [-kF * l, 0, kF * l, 0], [-kM, kM, -kM, kM]])
        >>> spin = 3e-5 * np.array([1, -1, 1, -1])
        >>> of = actuation.quadcopter_filter(B, spin, 500.0, magnitude=5.0, tilt=5.0, heading=1.0)
        >>> of.k1.round(3)  # sqrt(2) 2 pi 5 Hz, and 1 / p4 = 2 * 500 * kM / 3e-5
        array([44.429, 44.429, 44.429,  6.667])
    """
    named = (("hover", hover), ("magnitude", magnitude), ("tilt", tilt), ("heading", heading))
    speed, *f = (named_float(x, f"quadcopter_filter: {n}") for n, x in named)
    if not min(speed, *f) > 0:
        raise ModelError("quadcopter_filter: hover and the frequencies must be above zero")
    p4 = spin_coupling(np.full(np.shape(B)[-1], speed), B, spin)[3]
    if not p4 > 0:
        raise ModelError(
            f"quadcopter_filter: p4 is {p4:g} s, not above zero: a propeller that speeds up must turn the machine as its drag "
            "does; check the signs of spin"
        )
    w = 2 * pi * np.array(f)
    turning = w[2] / p4
    k0 = np.array([w[0] ** 2, w[1] ** 2, w[1] ** 2, turning])
    k1 = np.array([*(math.sqrt(2) * w[[0, 1, 1]]), 1 / p4 + static * turning * p4])
    B_copy, spin_copy = (np.array(floats(x, f"quadcopter_filter: {n}")) for n, x in (("B", B), ("spin", spin)))
    return QuadcopterFilter(B_copy, spin_copy, k0, k1, static)


def quadcopter_wrench(speeds: Any, rates: Any, B: Any, spin: Any) -> Any:
    """Thrust and moments (F_z, tau) of a quadcopter's propellers, B w^2 - (0, 0, 0, spin^T w_dot). [konz25 (5.17c), (5.34)]

    Args:
        speeds: w (n,) [rad/s].
        rates: w_dot (n,) [rad/s^2].
        B: (4, n) of (F_z, tau) = B w^2, a `thrust_multicopter`'s rows times kF.
        spin: (n,) Theta_P times the signs of w_dot in -tau_z [kg m^2].
    Returns:
        (4,) [N, N m].

    Example:
        >>> from pfaffian.control import actuation
        >>> B = [[1e-5] * 4, [0, 2e-6, 0, -2e-6], [-2e-6, 0, 2e-6, 0], [-2e-7, 2e-7, -2e-7, 2e-7]]
        >>> print(actuation.quadcopter_wrench([500.0] * 4, [0.0] * 4, B, [3e-5, -3e-5, 3e-5, -3e-5]))
        [10, 0, 0, 0]
    """
    return _column(B) @ _column(speeds) ** 2 - ca.vertcat(0, 0, 0, ca.dot(_column(spin), _column(rates)))


def quadcopter_forces(
    h: Any,
    speeds: Any,
    setpoint: Any,
    period: float,
    gains: QuadcopterFilter,
    *,
    slowest: float = 0.0,
    fastest: float = float("inf"),
) -> tuple[Any, Any]:
    """One step of the filter between requested forces and a quadcopter's propellers. [konz25 (5.36), (5.37), corrected]

        s = B w^2,  w_dot = (B^-1 (h - k1 s)) / (2 w),  h_dot = k0 (setpoint - f),  f = s - (0, 0, 0, spin^T w_dot)

    so that s'' + k1 s' + k0 (f - setpoint) = 0. The moment that changes the propellers' speeds is thus part of the moment f on
    the machine; a static filter has f = s. With more than four propellers B^T (B B^T)^-1 replaces B^-1, so that w^2 changes as
    little as possible. The part of w^2 that does not contribute to s, which limits of speeds leave, decays at the rate k1 of
    the thrust.

    Args:
        h: (4,) state of the filter; k1 s in a steady state.
        speeds: w (n,) [rad/s].
        setpoint: (4,) requested (F_z [N], tau [N m]).
        period: [s].
        gains: QuadcopterFilter of the vehicle.
        slowest, fastest: limits of the speeds [rad/s]; default 0 and infinity.
    Returns:
        next h (4,), and the next speeds (n,) as setpoints of the propellers [rad/s].

    Example:
        >>> import numpy as np
        >>> from pfaffian.control import actuation
        >>> B = np.array([[1e-5] * 4, [0, 2e-6, 0, -2e-6], [-2e-6, 0, 2e-6, 0], [-2e-7, 2e-7, -2e-7, 2e-7]])
        >>> spin = 3e-5 * np.array([1, -1, 1, -1])
        >>> gains = actuation.quadcopter_filter(B, spin, 500.0, magnitude=5.0, tilt=5.0, heading=1.0)
        >>> rest = gains.k1 * [10.0, 0, 0, 0]
        >>> print(actuation.quadcopter_forces(rest, [500.0] * 4, [10.0, 0, 0, 0], 0.005, gains)[1])  # hover
        [500, 500, 500, 500]
    """
    B, k0, k1, w, h = (_column(x) for x in (gains.B, gains.k0, gains.k1, speeds, h))
    s = B @ w**2
    least = right_inverse(B, "quadcopter_forces")
    changed = least @ (h - k1 * s)
    if B.shape[1] > 4:
        changed -= k1[0] * (w**2 - least @ s)
    w_dot = changed / (2 * w)
    f = s if gains.static else quadcopter_wrench(w, w_dot, B, gains.spin)
    return h + period * k0 * (setpoint - f), ca.fmin(ca.fmax(w + period * w_dot, slowest), fastest)


def spin_coupling(speeds: Any, B: Any, spin: Any) -> np.ndarray:
    """p (4,) of tau_z = s_4 + p^T s_dot, s = B w^2: the moment on a quadcopter while its thrusts change. [konz25 (5.41)]

        p = -(spin / (2 w))^T B^-1,  with B^T (B B^T)^-1 instead of B^-1 for more than four propellers

    Args:
        speeds: w (n,) [rad/s].
        B: (4, n) of (F_z, tau) = B w^2, a `thrust_multicopter`'s rows times kF.
        spin: (n,) Theta_P times the signs of w_dot in -tau_z [kg m^2].
    Returns:
        p (4,) [m s, s, s, s].
    Raises ModelError: shapes that do not fit, or rows of B that depend on each other.

    Example:
        >>> from pfaffian.control import actuation
        >>> B = [[1e-5] * 4, [0, 2e-6, 0, -2e-6], [-2e-6, 0, 2e-6, 0], [-2e-7, 2e-7, -2e-7, 2e-7]]
        >>> p = actuation.spin_coupling([500.0] * 4, B, [3e-5, -3e-5, 3e-5, -3e-5])
        >>> round(p[3].item(), 6)  # 3e-5 / (2 * 500 * 2e-7)
        0.15
    """
    w, rows, s = (floats(x, f"spin_coupling: {n}") for n, x in (("speeds", speeds), ("B", B), ("spin", spin)))
    if rows.ndim != 2 or len(rows) != 4 or not w.shape == s.shape == rows.shape[1:]:
        raise ModelError(f"spin_coupling: B (4, n), speeds and spin (n,) are needed, got {rows.shape}, {w.shape}, {s.shape}")
    return -np.array(right_inverse(rows, "spin_coupling")).T @ (s / (2 * w))


def quadcopter_transfer(z: complex, speeds: Any, of: QuadcopterFilter, period: float) -> np.ndarray:
    """Frequency response of `quadcopter_forces` about given speeds. [konz25 (5.40), (5.43), corrected]

    With q = (z - 1) / T, G_jj = k0 / (q^2 + k1 q + k0) for j < 4, and D = q^2 + (k1 + k0 p4) q + k0 with the last k0 and k1,

        G_44 = k0 (p4 q + 1) / D,  G_4j = p_j G_jj q^2 (q + k1) / D

    A static filter has D = q^2 + k1 q + k0 and G_4j = p_j G_jj q.

    Args:
        z: exp(i 2 pi f T) at f Hz.
        speeds: (n,) of the propellers [rad/s]; in hover, those with the smallest w^2.
        of: QuadcopterFilter.
        period: T [s].
    Returns:
        G (4, 4), from the requested (F_z, tau) to the actual ones.

    Example:
        >>> import numpy as np
        >>> from pfaffian.control import actuation
        >>> B = np.array([[1e-5] * 4, [0, 2e-6, 0, -2e-6], [-2e-6, 0, 2e-6, 0], [-2e-7, 2e-7, -2e-7, 2e-7]])
        >>> of = actuation.quadcopter_filter(B, 3e-5 * np.array([1, -1, 1, -1]), 500.0, magnitude=5.0, tilt=5.0, heading=1.0)
        >>> G = actuation.quadcopter_transfer(np.exp(2j * np.pi * 1.0 * 0.005), [500.0] * 4, of, 0.005)
        >>> round(float(abs(G[3, 3])), 2)  # 1 / sqrt(2) is left at 1 Hz
        0.71
    """
    k0, k1 = (floats(x, f"quadcopter_transfer: {n}") for n, x in (("k0", of.k0), ("k1", of.k1)))
    q = (z - 1) / period
    p = spin_coupling(speeds, of.B, of.spin)
    low = k0 / (q**2 + k1 * q + k0)
    D = q**2 + (k1[3] + (0.0 if of.static else k0[3] * p[3])) * q + k0[3]
    G = np.diag([*low[:3], k0[3] * (p[3] * q + 1) / D])
    G[3, :3] = p[:3] * low[:3] * q * (1.0 if of.static else q * (q + k1[3]) / D)
    return G


def _column(x: Any) -> Any:
    """x as a DM, unless it is an expression."""
    return x if isinstance(x, ca.SX | ca.MX) else ca.DM(x)
