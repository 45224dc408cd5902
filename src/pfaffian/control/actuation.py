"""What stands between a wanted wrench and servos and motors: one step of each filter, for laws in discrete time. [konz25 5.3]

Every function is one step from k to k+1 of a period T, of numbers or of symbols, to be called from a law of one's own in
`discrete`, whose state it carries on. The coefficients of a propeller are (p1, p2, p3) = (kT, k_M, tau_MB) / Theta_P.
"""

from __future__ import annotations

from math import pi, sqrt
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError
from pfaffian.model.number import floats, named_float

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
    """Thrusts and tilts for a wrench: (F cos, F sin) = B^-1 f, then each within its limits. [konz25 (5.28)]

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


def tilt_wrench(x: TiltThrusts, B: Any) -> Any:
    """(6,) [N, N m] that thrusts and tilts make, B (F cos, F sin). [konz25 (5.16c), (5.16d)]

    B: (6, 6), as of `tilt_thrusts`.
    """
    F, angle = _column(x.thrust), _column(x.angle)
    return _column(B) @ ca.vertcat(F * ca.cos(angle), F * ca.sin(angle))


def low_pass(x: Number, wanted: Number, share: float) -> Number:
    """Next x, share x + (1 - share) wanted: what smooths the tricopter's thrusts. [konz25 (5.29)]"""
    return share * x + (1 - share) * wanted


class TiltDrives(NamedTuple):
    """Thrusts [N], tilt angles [rad] and their rates [rad/s], a column each: what the drives of a tricopter do."""

    thrust: Any
    angle: Any
    rate: Any


def tricopter_forces(
    x: TiltDrives,
    wanted: Any,
    period: float,
    B: Any,
    *,
    share: float,
    servo: tuple[float, float],
    thrust: tuple[float, float] = (0.3, 7.0),
    angle: float = 0.7853981633974483,
) -> tuple[TiltDrives, Any]:
    """Next x that brings the wrench to `wanted`, and the angles (3,) for the servos. [konz25 (5.18), (5.28), (5.29)]

    Thrusts are `low_pass` of those wanted, the propellers follow them (`propeller_current`, speeds sqrt(thrust / kF)); angles
    are those that a servo takes by itself, `servo_step`. What x makes is `tilt_wrench`.

    wanted: (6,) [N, N m].   period: [s].   B, thrust, angle: of `tilt_thrusts`.   share: c_F.   servo: (p0 [1/s^2], p1 [1/s]).
    """
    goal = tilt_thrusts(wanted, B, thrust=thrust, angle=angle)
    turned, rate = servo_step(_column(x.angle), _column(x.rate), goal.angle, period, *servo)
    return TiltDrives(low_pass(_column(x.thrust), goal.thrust, share), turned, rate), goal.angle


def tilt_jacobian(thrust: Any, angle: Any, B: Any) -> np.ndarray:
    """J (6, 6) of `tilt_wrench` by thrusts and angles. [konz25 (5.33)]

    thrust: (3,) [N].   angle: (3,) [rad].   B: (6, 6).
    """
    F, a = floats(thrust, "tilt_jacobian: thrust"), floats(angle, "tilt_jacobian: angle")
    c, s = np.diag(np.cos(a)), np.diag(np.sin(a))
    return floats(B, "tilt_jacobian: B") @ np.block([[c, -s @ np.diag(F)], [s, c @ np.diag(F)]])


def tricopter_transfer(
    z: complex, angle: Any, B: Any, period: float, *, share: float, servo: tuple[float, float]
) -> np.ndarray:
    """G (6, 6) from wanted wrench to wrench of `tricopter_forces` about tilts, within its limits. [konz25 (5.31)-(5.33)]

        J diag(G_F, G_theta) J^-1,  G_F = (1 - c) / (z - c),  G_theta = p0 T^2 / ((z - 1)^2 + p1 T (z - 1) + p0 T^2)

    Thrusts cancel out.   z: exp(i 2 pi f T) at f Hz.   angle: (3,) [rad].   the others: as of `tricopter_forces`.
    """
    J, q = tilt_jacobian(np.ones(3), angle, B), (z - 1) / period
    turned = servo[0] / (q**2 + servo[1] * q + servo[0])
    return J @ np.diag([(1 - share) / (z - share)] * 3 + [turned] * 3) @ np.linalg.inv(J)


class QuadcopterFilter(NamedTuple):
    """Numbers of `quadcopter_forces`.

    B: (4, 4) of (F_z, tau) = B varpi^2, a `thrust_multicopter`'s rows times kF.   spin: Theta_P times the signs of varpi_dot in
    -tau_z, (4,) [kg m^2].   k0, k1: (magnitude, tilt, tilt, heading) [1/s^2], [1/s].   static: whether the filter takes spin
    for zero, (5.42), which a quadcopter does not.
    """

    B: Any
    spin: Any
    k0: Any
    k1: Any
    static: bool = False


def quadcopter_filter(
    B: Any, spin: Any, hover: float, *, magnitude: float, tilt: float, heading: float, static: bool = False
) -> QuadcopterFilter:
    """The filter with these cut-off frequencies. [konz25 5.3.4]

    Thrust and tilting are Butterworth's low passes of order two, k0 = w^2, k1 = sqrt(2) w. In hovering the pole at -1 / p4 of
    what turns the quadcopter is put onto the zero there, which leaves k0 p4 / (q + k0 p4): k1 = 1 / p4 for the filter (5.35),
    k1 = 1 / p4 + k0 p4 for the static one (5.42).

    B, spin, static: see `QuadcopterFilter`.   hover: speed of all propellers [rad/s].   magnitude, tilt, heading: [Hz].
    Raises ModelError: frequencies or a speed that are not above zero; propellers whose acceleration does not turn the machine.
    """
    named = (("hover", hover), ("magnitude", magnitude), ("tilt", tilt), ("heading", heading))
    speed, *f = (named_float(x, f"quadcopter_filter: {n}") for n, x in named)
    if not min(speed, *f) > 0:
        raise ModelError("quadcopter_filter: hover and the frequencies must be above zero")
    p4 = spin_coupling(np.full(4, speed), B, spin)[3]
    if not p4 > 0:
        raise ModelError(
            f"quadcopter_filter: p4 is {p4:g} s: a gain in speed must turn the machine as drag does; check the signs of spin"
        )
    w = 2 * pi * np.array(f)
    turning = w[2] / p4
    k0 = np.array([w[0] ** 2, w[1] ** 2, w[1] ** 2, turning])
    k1 = np.array([*(sqrt(2) * w[[0, 1, 1]]), 1 / p4 + static * turning * p4])
    own_B, own_spin = (np.array(floats(x, f"quadcopter_filter: {n}")) for n, x in (("B", B), ("spin", spin)))
    return QuadcopterFilter(own_B, own_spin, k0, k1, static)


def quadcopter_wrench(speeds: Any, rates: Any, B: Any, spin: Any) -> Any:
    """(F_z, tau) (4,) [N, N m], B w^2 - (0, 0, 0, spin^T w_dot). [konz25 (5.17c), (5.34)]

    speeds: w (4,) [rad/s].   rates: w_dot (4,) [rad/s^2].   B, spin: see `QuadcopterFilter`.
    """
    return _column(B) @ _column(speeds) ** 2 - ca.vertcat(0, 0, 0, ca.dot(_column(spin), _column(rates)))


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
    """Next h (4,) and propeller speeds (4,) that bring thrust and moments to `wanted`. [konz25 (5.36), (5.37), corrected]

        s = B w^2,  w_dot = (B^-1 (h - k1 s)) / (2 w),  h_dot = k0 (wanted - f),  f = s - (0, 0, 0, spin^T w_dot)

    so that s'' + k1 s' + k0 (f - wanted) = 0: what it takes to change the speeds is part of the moment that it makes. A static
    filter has f = s here.

    h: its state, k1 s at rest.   speeds: w [rad/s].   wanted: (F_z [N], tau [N m]).   period: [s].   of: its numbers.
    slowest, fastest: limits of the speeds [rad/s].
    """
    B, k0, k1, w, h = (_column(x) for x in (of.B, of.k0, of.k1, speeds, h))
    s = B @ w**2
    w_dot = (ca.inv(B) @ (h - k1 * s)) / (2 * w)
    f = s if of.static else quadcopter_wrench(w, w_dot, B, of.spin)
    return h + period * k0 * (wanted - f), ca.fmin(ca.fmax(w + period * w_dot, slowest), fastest)


def spin_coupling(speeds: Any, B: Any, spin: Any) -> np.ndarray:
    """p (4,) of tau_z = s_4 + p^T s_dot, s = B w^2: what turns a quadcopter while its thrusts change. [konz25 (5.41)]

        p = -(spin / (2 w))^T B^-1

    speeds: w (4,) [rad/s].   B, spin: see `QuadcopterFilter`.
    """
    w, rows, s = (floats(x, f"spin_coupling: {n}") for n, x in (("speeds", speeds), ("B", B), ("spin", spin)))
    return -np.linalg.solve(rows.T, s / (2 * w))


def quadcopter_transfer(z: complex, speeds: Any, of: QuadcopterFilter, period: float) -> np.ndarray:
    """G (4, 4) from wanted (F_z, tau) to those of `quadcopter_forces` about speeds. [konz25 (5.40), (5.43), corrected]

    With q = (z - 1) / T, G_jj = k0 / (q^2 + k1 q + k0) for j < 4, and D = q^2 + (k1 + k0 p4) q + k0 of the last k0, k1,

        G_44 = k0 (p4 q + 1) / D,  G_4j = p_j G_jj q^2 (q + k1) / D

    A static filter has D = q^2 + k1 q + k0 and G_4j = p_j G_jj q.

    z: exp(i 2 pi f T) at f Hz.   speeds: (4,) [rad/s].   of: the filter.   period: T [s].
    """
    k0, k1 = (floats(x, f"quadcopter_transfer: {n}") for n, x in (("k0", of.k0), ("k1", of.k1)))
    q = (z - 1) / period
    p = spin_coupling(speeds, of.B, of.spin)
    own = k0 / (q**2 + k1 * q + k0)
    D = q**2 + (k1[3] + (0.0 if of.static else k0[3] * p[3])) * q + k0[3]
    G = np.diag([*own[:3], k0[3] * (p[3] * q + 1) / D])
    G[3, :3] = p[:3] * own[:3] * q * (1.0 if of.static else q * (q + k1[3]) / D)
    return G


def _column(x: Any) -> Any:
    return x if isinstance(x, ca.SX | ca.MX) else ca.DM(x)
