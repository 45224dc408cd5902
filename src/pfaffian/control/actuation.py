"""What stands between a wanted wrench and servos and motors: one step of each filter, for laws in discrete time. [konz25 5.3]

Every function is one step from k to k+1 of a period T, of numbers or of symbols, to be called from a law of one's own in
`discrete`, whose state it carries on. The coefficients of a propeller are (p1, p2, p3) = (kT, k_M, tau_MB) / Theta_P.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import casadi as ca

Number = Any  # float, ca.SX or ca.DM


def servo_step(angle: Number, rate: Number, wanted: Number, period: float, p0: Number, p1: Number) -> tuple[Number, Number]:
    """Next angle [rad] and rate [rad/s] of a servo that is simulated since it measures nothing. [konz25 (5.18)]

        angle'' + p1 angle' + p0 angle = p0 wanted,  by Euler's rule

    angle, rate, wanted: of one servo, or a column.   period: [s].   p0 [1/s^2], p1 [1/s]: k_PS / Theta_A and k_DS / Theta_A.
    """
    return angle + period * rate, rate + period * (p0 * (wanted - angle) - p1 * rate)


def propeller_step(speed: Number, current: Number, period: float, p: tuple[Number, Number, Number]) -> Number:
    """Next speed of a propeller, varpi + T (p2 i - p3 - p1 varpi^2). [konz25 (5.19)]

    speed: varpi [rad/s].   current: i_M [A].   period: [s].   p: (p1 [1/rad], p2 [rad/(s^2 A)], p3 [rad/s^2]).
    """
    return speed + period * (p[1] * current - p[2] - p[0] * speed**2)


class PropellerEstimate(NamedTuple):
    """Speed at k and at k - 1 [rad/s], and the friction p3 [rad/s^2]."""

    speed: Number
    before: Number
    friction: Number


def propeller_observer(
    x: PropellerEstimate, measured: Number, current: Number, period: float, p: tuple[Number, Number], gains: tuple[float, float]
) -> PropellerEstimate:
    """Next estimate from the mean speed over the last period, which is what an encoder gives. [konz25 (5.22)-(5.23)]

        e = measured - (speed + before) / 2,  friction' = friction + T l2 e
        speed' = speed + T (p2 i - friction - p1 speed^2 + l1 e)

    Errors have the polynomial (5.24), z^3 + (T/2 (4 p1 w + l1) - 2) z^2 + (1 - T/2 (4 p1 w + T l2)) z - T/2 (l1 + T l2); it
    is stable with l1 > 0 and a small l2 < 0.

    x: estimate.   measured: [rad/s].   current: [A].   period: T [s].   p: (p1, p2).   gains: (l1 [1/s], l2 [1/s^2]).
    """
    e = measured - (x.speed + x.before) / 2
    speed = x.speed + period * (p[1] * current - x.friction - p[0] * x.speed**2 + gains[0] * e)
    return PropellerEstimate(speed, x.speed, x.friction + period * gains[1] * e)


def propeller_current(
    wanted: Number, then: Number, speed: Number, friction: Number, period: float, p: tuple[Number, Number], gain: float
) -> Number:
    """i_M [A] by which a propeller at `speed` follows `wanted` now and `then` a period later. [konz25 (5.25)]

    The error then decays by 1 - T (2 p1 varpi + gain) a period.   wanted, then, speed: [rad/s].   friction: p3 [rad/s^2].
    period: T [s].   p: (p1, p2).   gain: k_P [1/s].
    """
    return ((then - wanted) / period + p[0] * wanted**2 + friction + gain * (wanted - speed)) / p[1]


class TiltThrusts(NamedTuple):
    """Thrusts [N] and tilt angles [rad], a column each."""

    thrust: ca.SX
    angle: ca.SX


def tilt_thrusts(f: Any, B: Any, *, thrust: tuple[float, float] = (0.3, 7.0), angle: float = 0.7853981633974483) -> TiltThrusts:
    """Thrusts and tilts for a wrench: (F cos, F sin) = B^-1 f, then each within its limits. [konz25 (5.28)-(5.30)]

    f: (6,) [N, N m].   B: (6, 6), of a `thrust_multicopter` with arms that tilt.   thrust: (low, high) [N].
    angle: the largest tilt [rad]. The defaults are the tricopter's of the thesis.
    """
    x = ca.solve(B, f) if isinstance(B, ca.SX) else ca.inv(ca.DM(B)) @ f
    n = x.numel() // 2
    up, across = x[:n], x[n:]
    return TiltThrusts(
        ca.fmin(ca.fmax(ca.sqrt(up**2 + across**2), thrust[0]), thrust[1]),
        ca.fmin(ca.fmax(ca.atan2(across, up), -angle), angle),
    )


def low_pass(x: Number, wanted: Number, share: float) -> Number:
    """Next x, share x + (1 - share) wanted: what smooths the tricopter's thrusts. [konz25 (5.31)]"""
    return share * x + (1 - share) * wanted


class QuadcopterFilter(NamedTuple):
    """Numbers of `quadcopter_forces`.

    B: (4, 4) of (F_z, tau) = B varpi^2, a `thrust_multicopter`'s rows times kF.   spin: Theta_P times the signs of varpi_dot in
    -tau_z, (4,) [kg m^2].   k0, k1: (magnitude, tilt, tilt, heading) [1/s^2], [1/s].
    """

    B: Any
    spin: Any
    k0: Any
    k1: Any


def quadcopter_forces(
    h: Any,
    speeds: Any,
    wanted: Any,
    period: float,
    of: QuadcopterFilter,
    *,
    slowest: float = 0.0,
    fastest: float = float("inf"),
) -> tuple[Any, Any]:
    """Next h (4,) and propeller speeds (4,) that bring thrust and moments to `wanted`. [konz25 (5.35)-(5.38)]

        s = B w^2,  w_dot = (B^-1 (h - k1 s)) / (2 w),  h_dot = k0 (wanted - f),  f = s - (0, 0, 0, spin^T w_dot)

    so that s'' + k1 s' + k0 (f - wanted) = 0: what it takes to change the speeds is part of the moment that it makes.

    h: its state, k1 s at rest.   speeds: w [rad/s].   wanted: (F_z [N], tau [N m]).   period: [s].   of: its numbers.
    slowest, fastest: limits of the speeds [rad/s].
    """
    B, k0, k1, spin, w, h = (_column(x) for x in (of.B, of.k0, of.k1, of.spin, speeds, h))
    s = B @ w**2
    w_dot = (ca.inv(B) @ (h - k1 * s)) / (2 * w)
    f = s - ca.vertcat(0, 0, 0, ca.dot(spin, w_dot))
    return h + period * k0 * (wanted - f), ca.fmin(ca.fmax(w + period * w_dot, slowest), fastest)


def _column(x: Any) -> Any:
    return x if isinstance(x, ca.SX | ca.MX) else ca.DM(x)
