"""What a path asks for: speeds, thrusts and inputs, and the shortest time in which they stay within limits. [konz25 5.5]"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.control.allocation import input_limits
from pfaffian.control.feasible import along_reference
from pfaffian.control.reference import as_reference
from pfaffian.errors import ModelError, brief
from pfaffian.model.caller import ask_value
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.model.number import column, floats, named_float

FALLING = 0.05
"""Part of the weight below which the direction of thrust is not reliable."""

DENSE = 2000
"""Instants at which a path is sampled."""

SPARSE = 201
"""Instants at which a reference of a whole configuration is sampled for its shortest time."""


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
    p = column(ask_value(position, "check_thrust: position", t), "check_thrust: position")
    rate = ca.jacobian(p, t)
    bend = ca.jacobian(rate, t) + slowing * rate
    up = ca.SX.zeros(p.numel(), 1)
    up[p.numel() - 1] = g
    f = ca.Function("carried", [t], [ca.norm_2(bend + up) / g])
    at = np.linspace(t0, t0 + T, DENSE)
    found = np.array([float(f(x)) for x in at])
    check_carried(found, at, "check_thrust")
    return found


def check_carried(carried: np.ndarray, at: np.ndarray, what: str) -> None:
    """Raise ModelError: thrusts (n,) in parts of the weight that are below FALLING somewhere, and when.   at: (n,) [s]."""
    least = int(np.argmin(np.where(np.isfinite(carried), carried, -1.0)))
    if not carried[least] > FALLING:
        raise ModelError(
            f"{what}: at t = {at[least]:.4g} s the reference requires {max(carried[least], 0):.2g} of the weight, free "
            "fall, where thrust has no direction; take more time, or another path"
        )


KNOWN = ("speed", "acceleration", "tilt", "rate", "thrust", "least_thrust")
OF_MACHINE = ("speed", "acceleration", "input")


def least_time(
    path: Callable[[float], Any],
    limits: Mapping[str, Any],
    *,
    gravity: float = 9.81,
    longest: float = 100.0,
    mechanism: Mechanism | None = None,
) -> float:
    """The shortest duration in which a path respects limits: a flat output (x, y, z), or any reference of a mechanism.

    Limits are taken to be met by all longer durations, as where a path is the same and only its time is stretched.

    Args:
        path: function of the duration T [s] that returns a function of t from 0 to T giving r (3,) [m], such as lambda T:
            rest_to_rest(a, b, T); of a mechanism a Reference of its whole configuration, such as lambda T:
            pvtol_reference(rest_to_rest(a, b, T)).
        limits: {name: number} of speed [m/s], acceleration [m/s^2], tilt [rad], rate [rad/s] of the thrust's direction, thrust
            and least_thrust in parts of the weight; at least one, each above zero. Of a mechanism {name: limit} of speed and
            acceleration, one number for all velocities or (nv,) in their units, and of input, (motors, 2) lowest and highest
            [N, N m] or "actuators" for their own.
        gravity: [m/s^2]; default 9.81. A mechanism has its own.
        longest: duration at which to give up [s]; default 100.
        mechanism: the machine that follows a Reference; None for a path (x, y, z).
    Returns:
        T [s].
    Raises ModelError: an unknown limit, or none; one that even `longest` does not respect, which, and by what factor; a
    reference that the mechanism cannot follow in any time, and why.

    Example:
        >>> from pfaffian import control
        >>> T = control.least_time(lambda T: control.rest_to_rest([0, 0, 0], [1, 0, 0], T), {"speed": 1.0})
        >>> round(T, 3)  # the polynomial is 2.461 times as fast as the mean
        2.461
    """
    known = KNOWN if mechanism is None else OF_MACHINE
    unknown = [name for name in limits if name not in known]
    if unknown or not limits:
        given = f"{brief(unknown[0])}: {brief(limits[unknown[0]])} is no limit" if unknown else "at least one limit is needed"
        raise ModelError(f"least_time: {given}; {', '.join(known)}, each above zero")
    most = named_float(longest, "least_time: longest")
    missed = _by_path(path, limits, gravity) if mechanism is None else _by_machine(path, limits, as_mechanism(mechanism), most)
    high = 0.1
    while missed(high):
        high *= 2
        if high > most:
            worst = missed(most)
            if worst:
                name = max(worst, key=worst.__getitem__)
                raise ModelError(f"least_time: in {most:g} s the limit on {name} still is missed by {worst[name]:.3g} times")
            high = most
            break
    low = high / 2
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if missed(middle) else (low, middle)
    return high


Missed = Callable[[float], dict[str, float]]
"""T -> {name of a limit that is missed: by what factor}."""


def _by_path(path: Callable[[float], Any], limits: Mapping[str, Any], gravity: float) -> Missed:
    for name, x in limits.items():
        if not named_float(x, f"least_time: {name}") > 0:
            raise ModelError(f"least_time: {brief(name)}: {brief(x)} is no limit; {', '.join(KNOWN)}, each above zero")

    def missed(T: float) -> dict[str, float]:
        found = extremes(path(T), T, gravity=gravity)
        over = {n: found[n] / x for n, x in limits.items() if n != "least_thrust" and not found[n] <= x}
        if "least_thrust" in limits and not found["least_thrust"] >= limits["least_thrust"]:
            over["least_thrust"] = limits["least_thrust"] / max(found["least_thrust"], 1e-300)
        return over

    return missed


def _by_machine(path: Callable[[float], Any], limits: Mapping[str, Any], m: Mechanism, longest: float) -> Missed:
    bounds = {name: _bounds(m, name, x) for name, x in limits.items()}

    def missed(T: float) -> dict[str, float]:
        goal = as_reference(path(T), "least_time: path")
        try:
            along = along_reference(m, goal, np.linspace(0, T, SPARSE), None, "least_time")
        except ModelError:
            if longest <= T:
                raise
            return {"the reference": np.inf}
        found = {"speed": along.v, "acceleration": along.v_dot, "input": along.u}
        over = {name: _exceeded(found[name], bound) for name, bound in bounds.items()}
        return {name: factor for name, factor in over.items() if factor > 1}

    return missed


def _bounds(m: Mechanism, name: str, given: Any) -> np.ndarray:
    """(n, 2) the lowest and highest of each velocity or input. Raises ModelError: another form, or one not above zero."""
    if name == "input":
        return input_limits(m, given)
    most = floats(given, f"least_time: {name}")
    if most.shape not in ((), (m.nv,)) or not (most > 0).all():
        raise ModelError(f"least_time: {name}: a number above zero, or one for each of {m.nv} velocities, got {brief(given)}")
    return np.outer(np.broadcast_to(most, m.nv), [-1.0, 1.0])


def _exceeded(x: np.ndarray, bound: np.ndarray) -> float:
    """The factor by which x (instants, n) leaves bounds (n, 2), in parts of half their width; at most 1 where it does not."""
    low, high = bound.T
    both = np.isfinite(low) & np.isfinite(high)
    one = np.where(np.isfinite(low), np.abs(low), np.where(np.isfinite(high), np.abs(high), 1.0))
    size = np.where(both, (np.where(both, high, 1) - np.where(both, low, 0)) / 2, one)
    return float(1 + (np.maximum(x - high, low - x) / np.where(size > 0, size, 1.0)).max())


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
    r = column(ask_value(position, "extremes: position", t), "extremes: position")
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
