"""Speeds, thrusts and inputs that a path requires, and its shortest duration within limits. [konz25 5.5]"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.control.allocation import input_limits
from pfaffian.control.feasible import along_reference
from pfaffian.control.reason import foremost
from pfaffian.control.reference import as_reference
from pfaffian.errors import ModelError, brief
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.model.number import column, floats, named_float
from pfaffian.model.user_functions import call_for_value

FALLING = 0.05
"""Thrust, as a fraction of the weight, below which its direction is not reliable."""

PATH_INSTANTS = 2000
"""Number of instants at which a flat output is sampled."""

REFERENCE_INSTANTS = 201
"""Number of instants at which `least_time` samples a reference of a whole configuration."""


def check_thrust(
    position: Callable[[ca.SX], Any], duration: float, *, gravity: float = 9.81, begin: float = 0.0, drag: float = 0.0
) -> np.ndarray:
    """Thrust that a flat output requires over time, as a fraction of the weight.

        |r'' + drag r' - a_G| / g

    Args:
        position: function of t [s] that returns r [m] with the vertical coordinate last, upwards.
        duration: [s].
        gravity: [m/s^2]; default 9.81.
        begin: first instant [s]; default 0.
        drag: d/m [1/s] of a drag force -d r' that is equal in all directions; default 0.
    Returns:
        (instants,) thrusts at evenly spaced instants from `begin` to `begin` + `duration`.
    Raises ModelError: the thrust is below a twentieth of the weight (free fall); the message says when.

    Example:
        >>> from pfaffian import control
        >>> thrust = control.check_thrust(lambda t: [0.0, 5.0 * t**2], 1.0, gravity=10.0)
        >>> round(float(thrust.max()), 6)  # 10 m/s^2 upwards in addition to the weight
        2.0
    """
    given = {"gravity": gravity, "duration": duration, "begin": begin, "drag": drag}
    g, T, t0, drag_rate = (named_float(x, f"check_thrust: {n}") for n, x in given.items())
    t = ca.SX.sym("t")
    p = column(call_for_value(position, "check_thrust: position", t), "check_thrust: position")
    rate = ca.jacobian(p, t)
    acceleration = ca.jacobian(rate, t) + drag_rate * rate
    up = ca.SX.zeros(p.numel(), 1)
    up[p.numel() - 1] = g
    f = ca.Function("carried", [t], [ca.norm_2(acceleration + up) / g])
    at = np.linspace(t0, t0 + T, PATH_INSTANTS)
    thrust = np.array([float(f(x)) for x in at])
    check_not_falling(thrust, at, "check_thrust")
    return thrust


def check_not_falling(thrust: np.ndarray, at: np.ndarray, what: str) -> None:
    """Raise ModelError where a thrust (n,), as a fraction of the weight, is not above FALLING.   at: (n,) instants [s]."""
    least = int(np.argmin(np.where(np.isfinite(thrust), thrust, -1.0)))
    if not thrust[least] > FALLING:
        raise ModelError(
            f"{what}: at t = {at[least]:.4g} s the reference requires a thrust of {max(thrust[least], 0):.2g} of the weight: "
            "free fall, where thrust has no direction; take more time, or another path"
        )


PATH_LIMITS = ("speed", "acceleration", "tilt", "rate", "thrust", "least_thrust")
MECHANISM_LIMITS = ("speed", "acceleration", "input")


def least_time(
    path: Callable[[float], Any],
    limits: Mapping[str, Any],
    *,
    gravity: float = 9.81,
    longest: float = 100.0,
    mechanism: Mechanism | None = None,
) -> float:
    """Shortest duration in which a path respects limits: a flat output (x, y, z), or any reference of a mechanism.

    The search assumes that longer durations respect the limits too, as they do where stretching the time does not change the
    path.

    Args:
        path: function of the duration T [s]. Without a mechanism it returns a function of t from 0 to T that returns r (3,)
            [m], such as lambda T: rest_to_rest(a, b, T). With a mechanism it returns a Reference of the whole configuration,
            such as lambda T: pvtol_reference(rest_to_rest(a, b, T)).
        limits: at least one, each above zero. Without a mechanism {name: number} of speed [m/s], acceleration [m/s^2], tilt
            [rad], rate of the thrust's direction [rad/s], thrust and least_thrust as fractions of the weight. With a mechanism
            {name: limit} of speed and acceleration, one number for all velocities or (nv,) in their units, and of input,
            (motors, 2) lowest and highest [N, N m] or "actuators" for the limits of the mechanism's actuators.
        gravity: [m/s^2]; default 9.81. Not used with a mechanism, which has its own.
        longest: largest duration to try [s]; default 100.
        mechanism: mechanism that follows the Reference; None for a path (x, y, z).
    Returns:
        T [s].
    Raises ModelError: no limits, or an unknown one; a limit that the path violates even in `longest`, with the factor by which
    it does, and with a mechanism the motor or velocity that does and the time; a reference that the mechanism cannot follow at
    any duration, with the reason.

    Example:
        >>> from pfaffian import control
        >>> T = control.least_time(lambda T: control.rest_to_rest([0, 0, 0], [1, 0, 0], T), {"speed": 1.0})
        >>> round(T, 3)  # the polynomial is 2.461 times as fast as the mean
        2.461
    """
    known = PATH_LIMITS if mechanism is None else MECHANISM_LIMITS
    unknown = [name for name in limits if name not in known]
    if unknown or not limits:
        given = f"{brief(unknown[0])}: {brief(limits[unknown[0]])} is no limit" if unknown else "at least one limit is needed"
        raise ModelError(f"least_time: {given}; {', '.join(known)}, each above zero")
    T_max = named_float(longest, "least_time: longest")
    violated = (
        _by_path(path, limits, gravity) if mechanism is None else _by_machine(path, limits, as_mechanism(mechanism), T_max)
    )
    high = 0.1
    while violated(high):
        high *= 2
        if high > T_max:
            factors = violated(T_max)
            if factors:
                name = max(factors, key=factors.__getitem__)
                raise ModelError(
                    f"least_time: even in {T_max:g} s the limit on {name} is violated by a factor of {factors[name]:.3g}"
                )
            high = T_max
            break
    low = high / 2
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if violated(middle) else (low, middle)
    return high


Violations = Callable[[float], dict[str, float]]
"""T -> {name of a violated limit: factor by which it is violated}."""


def _by_path(path: Callable[[float], Any], limits: Mapping[str, Any], gravity: float) -> Violations:
    """Violations of limits by a flat output. Raises ModelError: a limit that is not above zero."""
    for name, x in limits.items():
        if not named_float(x, f"least_time: {name}") > 0:
            raise ModelError(f"least_time: {brief(name)}: {brief(x)} is no limit; {', '.join(PATH_LIMITS)}, each above zero")

    def violated(T: float) -> dict[str, float]:
        largest = extremes(path(T), T, gravity=gravity)
        factors = {n: largest[n] / x for n, x in limits.items() if n != "least_thrust" and not largest[n] <= x}
        if "least_thrust" in limits and not largest["least_thrust"] >= limits["least_thrust"]:
            factors["least_thrust"] = limits["least_thrust"] / max(largest["least_thrust"], 1e-300)
        return factors

    return violated


def _by_machine(path: Callable[[float], Any], limits: Mapping[str, Any], m: Mechanism, longest: float) -> Violations:
    """Violations of limits by a mechanism that follows a Reference; infinite where it cannot follow it below `longest`."""
    bounds = {name: _bounds(m, name, x) for name, x in limits.items()}

    def violated(T: float) -> dict[str, float]:
        """Each limit exceeded by the path of duration T -> the largest demand over the limit."""
        goal, times = as_reference(path(T), "least_time: path"), np.linspace(0, T, REFERENCE_INSTANTS)
        try:
            along = along_reference(m, goal, times, None, "least_time")
        except ModelError:
            if longest <= T:
                raise
            return {"the reference": np.inf}
        values = {"speed": along.v, "acceleration": along.v_dot, "input": along.u}
        factors = {}
        for name, bound in bounds.items():
            excess = _excess(values[name], bound)
            instant, i = foremost(excess)  # of several motors that agree to rounding, the first
            if excess[instant, i] > 0:
                which = repr(m.motor_names[i]) if name == "input" else f"of {m.v_names[i]!r}"
                factors[f"{name} {which} at t = {times[instant]:.3g} s"] = float(1 + excess[instant, i])
        return factors

    return violated


def _bounds(m: Mechanism, name: str, given: Any) -> np.ndarray:
    """(n, 2) lowest and highest value of each velocity, acceleration or input.

    Raises ModelError: limits of another form, or not above zero.
    """
    if name == "input":
        return input_limits(m, given)
    highest = floats(given, f"least_time: {name}")
    if highest.shape not in ((), (m.nv,)) or not (highest > 0).all():
        raise ModelError(f"least_time: {name}: a number above zero, or one for each of {m.nv} velocities, got {brief(given)}")
    return np.outer(np.broadcast_to(highest, m.nv), [-1.0, 1.0])


def _excess(x: np.ndarray, bound: np.ndarray) -> np.ndarray:
    """(instants, n) distance of x beyond bounds (n, 2), relative to half their width; zero within."""
    low, high = bound.T
    both = np.isfinite(low) & np.isfinite(high)
    one_sided = np.where(np.isfinite(low), np.abs(low), np.where(np.isfinite(high), np.abs(high), 1.0))
    size = np.where(both, (np.where(both, high, 1) - np.where(both, low, 0)) / 2, one_sided)
    return np.maximum(np.maximum(x - high, low - x), 0.0) / np.where(size > 0, size, 1.0)


def extremes(position: Callable[[ca.SX], Any], duration: float, *, gravity: float = 9.81) -> dict[str, float]:
    """Extremes of a flat output r(t): speed, acceleration, tilt, rate of the thrust's direction, and thrust.

    Args:
        position: function of the time t [s] that returns r (3,) [m], z up.
        duration: duration of the flight, from t = 0 [s].
        gravity: [m/s^2]; default 9.81.
    Returns:
        {name: largest value} of speed [m/s], acceleration [m/s^2], tilt [rad], rate [rad/s] and thrust, and the smallest
        thrust as least_thrust, both thrusts as fractions of the weight.
    Raises ModelError: position does not return three numbers; duration or gravity is not a number.

    Example:
        >>> from pfaffian import control
        >>> x = control.extremes(lambda t: [3.0 * t, 0.0, 4.0 * t + 5.0 * t**2], 1.0, gravity=10.0)
        >>> round(x["acceleration"], 6), round(x["thrust"], 6)
        (10.0, 2.0)
    """
    g, T, t = named_float(gravity, "extremes: gravity"), named_float(duration, "extremes: duration"), ca.SX.sym("t")
    r = column(call_for_value(position, "extremes: position", t), "extremes: position")
    if r.numel() != 3:
        raise ModelError(f"extremes: position must give three numbers, got {r.numel()}")
    v = ca.jacobian(r, t)
    a = ca.jacobian(v, t)
    thrust = a + ca.DM([0, 0, g])
    size = ca.norm_2(thrust)
    z = thrust / size
    parts = [ca.norm_2(v), ca.norm_2(a), ca.acos(ca.fmin(1, ca.fmax(-1, z[2]))), ca.norm_2(ca.jacobian(z, t)), size / g]
    f = ca.Function("x", [t], [ca.vertcat(*parts)])
    values = np.array(f(np.linspace(0, T, PATH_INSTANTS)[None, :])).T
    largest = np.where(np.isfinite(values), values, np.inf).max(axis=0)
    names = ("speed", "acceleration", "tilt", "rate", "thrust")
    return dict(zip(names, largest.tolist(), strict=True)) | {"least_thrust": float(values[:, 4].min())}
