"""Building blocks of laws in discrete time: PID with anti-windup, actuators with lag, attitude and rate loops, batteries.

pid_step                                                               a PID controller with limits
lag_step, second_order_step                                            actuators of first and second order
attitude_rate, rate_torque                                             the attitude loop and the rate loop of a vehicle
battery_voltage, charge_step                                           voltage and charge of a battery under load

A function whose name ends in `_step` advances a state by one period T, for numbers or symbols. Call it in a law of your own
(`discrete`), which stores the state.

Example:
    >>> from pfaffian.control import regulators
    >>> u = 0.0
    >>> for _ in range(3):
    ...     u = regulators.lag_step(u, 1.0, 0.01, time_constant=0.02)
    >>> round(u, 6)  # 1 - exp(-3 * 0.01 / 0.02)
    0.77687
"""

from __future__ import annotations

import math
from math import inf
from typing import Any, NamedTuple

import casadi as ca

from pfaffian.control.actuation import Number
from pfaffian.errors import ModelError, brief
from pfaffian.maths import so3
from pfaffian.model.number import interval, named_float


class Pid(NamedTuple):
    """Result of `pid_step`.

    u: the output within its limits.   integral, slope: integral and filtered rate of the error, to pass to the next step.
    """

    u: Number
    integral: Number
    slope: Number


def pid_step(
    error: Number, last: Number, integral: Number, slope: Number, period: float, *, gain: float, integral_gain: float = 0.0,
    rate_gain: float = 0.0, smoothing: float = 0.0, limits: tuple[float, float] = (-inf, inf),
) -> Pid:  # fmt: skip
    """One step of a PID controller with anti-windup: the integral stops while the output is at a limit.

        u = clip(gain e + integral_gain I + rate_gain s),   I += T e unless this drives u further beyond a limit

    Args:
        error, last: the error now, and one period ago.
        integral, slope: results of the previous step, zero at first.
        period: T [s].
        gain, integral_gain, rate_gain: gains of the error, its integral and its rate; the last two zero by default.
        smoothing: time constant of the filter of the rate [s]; 0 by default.
        limits: (low, high) of u, none by default.
    Returns:
        Pid.
    Raises ModelError: a period that is not above zero, a smoothing below zero, a lower limit above the upper one.

    Example:
        >>> from pfaffian.control.regulators import pid_step
        >>> x, I, s = 0.0, 0.0, 0.0
        >>> for _ in range(100):
        ...     u, I, s = pid_step(5.0, 5.0, I, s, 0.01, gain=1.0, integral_gain=1.0, limits=(-1, 1))
        >>> u, I  # saturated all the time, without windup
        (1.0, 0.0)
    """
    for word, x in (("gain", gain), ("integral_gain", integral_gain), ("rate_gain", rate_gain)):
        if not _symbolic(x):
            named_float(x, word)
    T = _above_zero(period, "period")
    smooth = named_float(smoothing, "smoothing")
    if not smooth >= 0:
        raise ModelError(f"smoothing must not be below zero, got {smoothing!r}")
    low, high = interval(limits, "limits")
    share = T / (T + smooth)
    slope = slope + share * ((error - last) / T - slope)
    updated = integral + T * error
    raw = gain * error + integral_gain * updated + rate_gain * slope
    change = integral_gain * error
    winding_up = _both(raw > high, change > 0) + _both(raw < low, change < 0)
    next_integral = _choose(winding_up, integral, updated)
    u = gain * error + integral_gain * next_integral + rate_gain * slope
    return Pid(_clip(u, low, high), next_integral, slope)


def lag_step(x: Number, setpoint: Number, period: float, *, time_constant: float, rate: float = inf) -> Number:
    """One step of an actuator of first order, such as a motor with its lag in speed; exact for a constant setpoint.

        x + (setpoint - x) (1 - exp(-T / time_constant)), a change of at most rate T

    Args:
        x: state of the actuator.
        setpoint: requested value of x.
        period: T [s].
        time_constant: [s], above zero.
        rate: largest change per second; unlimited by default.
    Returns: x after the step.
    Raises ModelError: a period, time_constant or rate that is not above zero.

    Example:
        >>> from pfaffian.control.regulators import lag_step
        >>> round(lag_step(0.0, 1.0, 0.1, time_constant=0.1), 6), lag_step(0.0, 1.0, 0.1, time_constant=0.1, rate=2.0)
        (0.632121, 0.2)
    """
    T, tau = _above_zero(period, "period"), _above_zero(time_constant, "time_constant")
    if not rate > 0:
        raise ModelError(f"rate must be above zero, got {rate!r}")
    return x + _clip((setpoint - x) * (1 - math.exp(-T / tau)), -rate * T, rate * T)


def second_order_step(
    x: Number, x_dot: Number, setpoint: Number, period: float, *, frequency: float, damping: float = 0.7
) -> tuple[Number, Number]:
    """One step of an actuator of second order, x_ddot = w^2 (setpoint - x) - 2 d w x_dot; exact for a constant setpoint.

    Args:
        x, x_dot: state of the actuator.
        setpoint: requested value of x.
        period: T [s].
        frequency: w [rad/s], above zero.
        damping: d [1], from 0 to below 1; 0.7 by default.
    Returns: x and x_dot after the step.
    Raises ModelError: a number out of its range.

    Example:
        >>> from pfaffian.control.regulators import second_order_step
        >>> x, rate = second_order_step(0.0, 0.0, 1.0, 0.5, frequency=3.0, damping=0.0)
        >>> round(x, 6)  # 1 - cos(1.5)
        0.929263
    """
    T, w, d = _above_zero(period, "period"), _above_zero(frequency, "frequency"), named_float(damping, "damping")
    if not 0 <= d < 1:
        raise ModelError(f"damping must be from 0 to below 1, got {damping!r}; for an actuator without overshoot use lag_step")
    v, y = w * math.sqrt(1 - d * d), x - setpoint
    decay, c, s = math.exp(-d * w * T), math.cos(v * T), math.sin(v * T)
    after = decay * (y * c + (x_dot + d * w * y) / v * s)
    rate = decay * (x_dot * c - (w * w * y + d * w * x_dot) / v * s)
    return setpoint + after, rate


def attitude_rate(R: Any, setpoint: Any, gain: Number) -> Any:
    """(3, 1) angular velocity, along the body's axes, that turns a body to an attitude: gain log(R^T setpoint) [rad/s].

    Args:
        R, setpoint: (3, 3) current and requested rotation from the body's axes to the world's, less than half a turn apart.
        gain: one number or (3, 1) [1/s].
    Raises ModelError: R or setpoint is not (3, 3).

    Example:
        >>> import casadi as ca
        >>> from pfaffian.control.regulators import attitude_rate
        >>> from pfaffian.maths import so3
        >>> ca.DM(attitude_rate(ca.DM.eye(3), so3.exp(ca.DM([0, 0, 0.2])), 5.0)).full().ravel().round(9)
        array([0., 0., 1.])
    """
    for word, x in (("R", R), ("setpoint", setpoint)):
        _check_shape(x, (3, 3), f"attitude_rate: {word}")
    return gain * so3.log(ca.mtimes(R.T, setpoint))


def rate_torque(w: Any, setpoint: Any, inertia: Any, gain: Number) -> Any:
    """(3, 1) moment that steers an angular velocity to its setpoint: inertia gain (setpoint - w) + w x inertia w [N m].

    Args:
        w, setpoint: (3, 1) current and requested angular velocity along the body's axes [rad/s].
        inertia: (3, 3) about the mass centre [kg m^2].
        gain: one number or (3, 1) [1/s].
    Raises ModelError: an angular velocity that is not (3, 1), an inertia that is not (3, 3).

    Example:
        >>> import casadi as ca
        >>> from pfaffian.control.regulators import rate_torque
        >>> ca.DM(rate_torque(ca.DM([0, 0, 1]), ca.DM([0, 0, 3]), ca.diag(ca.DM([1, 1, 2])), 5.0)).full().ravel()
        array([ 0.,  0., 20.])
    """
    for word, x, shape in (("w", w, (3, 1)), ("setpoint", setpoint, (3, 1)), ("inertia", inertia, (3, 3))):
        _check_shape(x, shape, f"rate_torque: {word}")
    return ca.mtimes(inertia, gain * (setpoint - w)) + ca.cross(w, ca.mtimes(inertia, w))


def battery_voltage(charge: Number, current: Number, *, full: float, empty: float, resistance: float) -> Number:
    """Voltage of a battery under load: empty + (full - empty) charge - resistance current [V].

    Args:
        charge: remaining charge, from 0 to 1.
        current: drawn from the battery [A].
        full, empty: open-circuit voltages of the full and of the empty battery [V].
        resistance: internal resistance [ohm].
    Raises ModelError: `empty` above `full`, a resistance below zero.

    Example:
        >>> from pfaffian.control.regulators import battery_voltage
        >>> round(battery_voltage(0.5, 20.0, full=16.8, empty=13.2, resistance=0.02), 6)
        14.6
    """
    if not named_float(empty, "empty") <= named_float(full, "full"):
        raise ModelError(f"battery_voltage: empty {empty!r} is above full {full!r}")
    if not named_float(resistance, "resistance") >= 0:
        raise ModelError(f"battery_voltage: resistance must not be below zero, got {resistance!r}")
    return empty + (full - empty) * charge - resistance * current


def charge_step(charge: Number, current: Number, period: float, *, capacity: float) -> Number:
    """One step of a battery's charge, from 0 to 1: charge - T current / capacity, but at least zero.

    Args:
        charge: remaining charge, from 0 to 1.
        current: drawn from the battery [A].
        period: T [s].
        capacity: [A s]; 1 mAh is 3.6 A s.
    Raises ModelError: a period or capacity that is not above zero.

    Example:
        >>> from pfaffian.control.regulators import charge_step
        >>> charge_step(0.5, 36.0, 10.0, capacity=3600.0)
        0.4
    """
    return _clip(charge - _above_zero(period, "period") * current / _above_zero(capacity, "capacity"), 0.0, inf)


def _above_zero(x: Any, what: str) -> float:
    """A number as a float. Raises ModelError: it is not above zero."""
    value = named_float(x, what)
    if not value > 0:
        raise ModelError(f"{what} must be above zero, got {x!r}")
    return value


def _check_shape(x: Any, shape: tuple[int, int], what: str) -> None:
    """Raise ModelError unless x is a CasADi matrix or NumPy array of this shape; (n,) counts as (n, 1)."""
    actual = getattr(x, "shape", None)
    if actual != shape and (shape[1] > 1 or actual != shape[:1]):
        raise ModelError(f"{what} must be {shape}, got {brief(x) if actual is None else actual}")


def _symbolic(*xs: Any) -> bool:
    """Whether any of the values is a CasADi type."""
    return any(isinstance(x, (ca.SX, ca.DM, ca.MX)) for x in xs)


def _clip(x: Number, low: float, high: float) -> Number:
    """The number nearest to x between low and high."""
    return ca.fmax(low, ca.fmin(high, x)) if _symbolic(x) else max(low, min(high, x))


def _both(a: Any, b: Any) -> Any:
    """1 where both conditions hold, otherwise 0."""
    return ca.logic_and(a, b) if _symbolic(a, b) else float(a and b)


def _choose(condition: Any, a: Number, b: Number) -> Number:
    """The number a where the condition holds, otherwise b."""
    return ca.if_else(condition, a, b) if _symbolic(condition) else (a if condition else b)
