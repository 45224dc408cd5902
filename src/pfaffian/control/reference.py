"""References for tasks and configurations: a constant, a polynomial, a function of time, or a sampled series."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError, brief, listed, plural
from pfaffian.model import reprs
from pfaffian.model.coordinates import Coordinates, residual
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.number import at_defaults, column, floats, is_whole, named_float, several
from pfaffian.model.user_functions import call_for_value

NO_LENGTH = 1e-300
"""A quaternion whose largest entry does not exceed this counts as zero, since a shorter one has no exact direction."""

INSTANT = 1e-12
"""A quaternion that reaches zero within this time [s] counts as zero: its rate is then parallel to it up to rounding."""


LEFT = 1e-5
"""Largest |phi| of coordinates in a reference, and largest rate of phi relative to 1 + |q_dot|.

Interpolation between samples causes errors of about this size.
"""

NO_ENTRIES = ca.SX(0, 1)
"""An empty column."""


class Setpoint(NamedTuple):
    """The desired value of a task at one instant, with its rate and acceleration.

    value: (k, 1) in the task's units.   rate: (k, 1) its derivative by time.   acceleration: (k, 1) its second derivative.

    Example:
        >>> from pfaffian import control
        >>> x = control.polynomial([0.0], [1.0], duration=2.0).at(1.0, [])
        >>> print(x.value, x.rate, x.acceleration)
        0.5 0.9375 0
    """

    value: ca.SX
    rate: ca.SX
    acceleration: ca.SX


@dataclass(frozen=True, eq=False)
class Reference:
    """A reference of k coordinates over time; made by `set_point`, `polynomial`, `function_of_time`, `sampled` and others.

    at: function (t, w) -> Setpoint of the time t [s] and the run's inputs w (nw, 1).   size: k.
    w_names: names of the inputs of the run that a sampled reference reads; () for other references.

    Example:
        >>> from pfaffian import control
        >>> reference = control.set_point([0.3, 1.0])
        >>> reference
        <Reference: set_point of 2 coordinates>
        >>> print(reference.size, reference.at(0.0, []).value)
        2 [0.3, 1]
    """

    at: Callable[[ca.SX, ca.SX], Setpoint]
    size: int
    w_names: tuple[str, ...] = ()

    def __repr__(self) -> str:
        inputs = [f"inputs {reprs.listed(self.w_names)}"] if self.w_names else []
        return reprs.words(self, f"{reprs.maker(self.at)} of {plural(self.size, 'coordinate')}", *inputs)


def of_unit_length(x: Setpoint, turn: slice, what: str) -> Setpoint:
    """A setpoint whose quaternion at `turn` is normalised, with the rate and acceleration of the normalised quaternion.

    With n = q / |q| and P = 1 - n n^T: n_dot = P q_dot / |q|, n_ddot = (P q_ddot - 2 n^T q_dot n_dot) / |q| - |n_dot|^2 n.
    A quaternion of zero length (`no_direction`) is replaced by the identity. Raises ModelError: it is zero for all t.
    """
    q, rate, acceleration = (ca.densify(ca.SX(part))[turn, 0] for part in x)
    zero = no_direction(x, turn)
    if q.is_constant() and ca.evalf(zero):
        raise ModelError(f"{what}: its quaternion is zero, which is no attitude; the identity is [0, 0, 0, 1]")
    # Divide all three by the largest entry of q, so that no square is too large or too small for a double.
    scale = ca.if_else(zero, 1, 1 / ca.mmax(ca.fabs(q)))
    q, rate, acceleration = ca.if_else(zero, ca.DM([0, 0, 0, 1]), q * scale), rate * scale, acceleration * scale
    size = ca.norm_2(q)
    n = q / size
    slope = ca.dot(n, rate)
    n_dot = (rate - slope * n) / size
    n_ddot = (acceleration - ca.dot(n, acceleration) * n - 2 * slope * n_dot) / size - ca.dot(n_dot, n_dot) * n
    parts = [ca.SX(ca.densify(ca.SX(part))) for part in x]
    for part, unit in zip(parts, (n, n_dot, n_ddot), strict=True):
        part[turn, 0] = unit
    return Setpoint(*parts)


def no_direction(x: Setpoint, turn: slice) -> ca.SX:
    """Whether the quaternion at `turn` is zero, and so not an attitude, or reaches zero at its rate within INSTANT."""
    q, rate = (ca.mmax(ca.fabs(ca.densify(ca.SX(part))[turn, 0])) for part in (x.value, x.rate))
    return q <= ca.fmax(NO_LENGTH, INSTANT * rate)


def places(m: Mechanism) -> list[str]:
    """Labels of joints with a quaternion and of coordinates with phi = 0, whose values in a reference may be invalid."""
    bound = [f"coordinates {c.name!r}" for c in m.coordinates if c.phi is not None]
    return [f"joint {name!r}" for name in m.quaternions] + bound


def of_configuration(m: Mechanism, reference: Reference, t: ca.SX, w: ca.SX) -> tuple[Setpoint, ca.SX]:
    """The setpoint of the whole configuration with normalised quaternions, and for each of the `places` whether it is invalid.

    Invalid (k, 1) is a quaternion of zero, or coordinates that leave phi = 0, or whose rate does. Raises ModelError: a
    reference of another size, or one that is not a configuration at any time.
    """
    x = reference.at(t, w)
    if reference.size != m.nq:
        raise ModelError(
            f"the reference has {reference.size} numbers, but the configuration of {m.name!r} has {m.nq}: {listed(m.q_names)}"
        )
    invalid = [no_direction(x, turn) for turn in m.quaternions.values()]
    invalid += [_leaves(m, c, x) for c in m.coordinates if c.phi is not None]
    for name, turn in m.quaternions.items():
        x = of_unit_length(x, turn, f"the reference of joint {name!r}")
    for name, off in zip(places(m), invalid, strict=True):
        if (never := at_defaults(ca.SX(off))) is not None and never.item():
            raise ModelError(f"the reference of {name} is no configuration: it leaves phi(q) = 0 by more than {LEFT:g}")
    return x, ca.vertcat(NO_ENTRIES, *invalid)


def _leaves(m: Mechanism, c: Coordinates, x: Setpoint) -> ca.SX:
    """Whether coordinates violate phi = 0, or their rate leads away from it."""
    at, s = m.q_slices[c.name], ca.SX.sym("q", c.nq)
    phi = residual(c, s, m.p_symbols)
    f = ca.Function("phi", [s, m.p_symbols], [ca.densify(phi), ca.densify(ca.jacobian(phi, s))])
    q, rate = (ca.densify(ca.SX(part))[at, 0] for part in (x.value, x.rate))
    off, rows = f(q, m.p_symbols)
    return ca.mmax(ca.fabs(ca.vertcat(off, rows @ rate / (1 + ca.norm_2(rate))))) > LEFT


def as_reference(value: Any, what: str = "reference") -> Reference:
    """The value unchanged. Raises ModelError: it is not a Reference."""
    if not isinstance(value, Reference):
        raise ModelError(f"{what}: a Reference is needed, made by set_point([...]), polynomial, ..., got {brief(value)}")
    return value


def set_point(values: Any) -> Reference:
    """A reference of constant values; its rate and acceleration are zero.

    Args:
        values: (k,) numbers or Parameters, one for each coordinate of the task, in its units.
    Returns:
        Reference of k coordinates.
    Raises ModelError: values that are not a list of numbers, or an empty one.

    Example:
        >>> from pfaffian import control
        >>> print(control.set_point([0.3, 1.0]).at(5.0, []).value)
        [0.3, 1]
    """
    x = _column(values, "set_point")
    rest = ca.SX.zeros(x.numel(), 1)
    return Reference(lambda t, w: Setpoint(x, rest, rest), x.numel())


def _column(values: Any, what: str) -> ca.SX:
    """A list of numbers or parameters, one for each coordinate, as (k, 1). Raises ModelError: it is not a list, or empty."""
    if not several(values) and not (isinstance(values, (ca.SX, ca.DM)) and values.numel() > 1):
        raise ModelError(f"{what}: a list of numbers, one for each coordinate, is needed, such as [0.3], got {brief(values)}")
    x = ca.densify(column(values, what))
    if not x.numel():
        raise ModelError(f"{what}: at least one number is needed")
    return x


def function_of_time(f: Callable[[ca.SX], Any], size: int) -> Reference:
    """A reference given by an expression of time, which is differentiated twice.

    Args:
        f: function of the time t [s] (a CasADi symbol) that returns a column or list of numbers in the task's units; it may
            contain Parameters.
        size: number of values that f returns, one for each coordinate of the task.
    Returns:
        Reference of `size` coordinates.
    Raises ModelError: f is not a function, size not an integer; at the run, f returns another number of values or fails.

    Example:
        >>> from pfaffian import control
        >>> circle = control.function_of_time(lambda t: [t**2, 3 * t], 2)
        >>> x = circle.at(2.0, [])
        >>> print(x.value, x.rate)
        [4, 6] [4, 3]
    """
    if not callable(f) or not is_whole(size):
        raise ModelError(f"function_of_time(f, size) takes a function of t and an integer, got {brief(f)} and {brief(size)}")

    def at(t: ca.SX, w: ca.SX) -> Setpoint:
        s = ca.SX.sym("s")
        x = ca.densify(column(call_for_value(f, "the reference", s), "the reference"))
        if x.numel() != size:
            raise ModelError(f"the reference gives {x.numel()} numbers where the task has {size}")
        rate = ca.jacobian(x, s)
        others = ca.vertcat(ca.SX(0, 1), *[y for y in ca.symvar(x) if not ca.is_equal(y, s)])
        return Setpoint(*ca.Function("reference", [s, others], [x, rate, ca.jacobian(rate, s)])(t, others))

    return Reference(at, size)


def polynomial(start: Any, end: Any, duration: float, begin: float = 0.0) -> Reference:
    """A reference from rest to rest along a polynomial of degree five, constant before and after.

    Position, rate and acceleration are continuous; the rate is largest half-way, 15/8 of its mean.

    Args:
        start: (k,) numbers or Parameters, the values at rest before `begin`, in the task's units.
        end: (k,) values at rest after `begin` + `duration`.
        duration: of the motion [s], above zero.
        begin: [s] when the motion starts; default 0.
    Returns:
        Reference of k coordinates.
    Raises ModelError: start and end of different lengths, values that are not a list of numbers, a duration not above zero.

    Example:
        >>> from pfaffian import control
        >>> reference = control.polynomial([0.0], [4.0], duration=2.0)
        >>> [float(reference.at(t, []).value) for t in (-1.0, 1.0, 3.0)]
        [0.0, 2.0, 4.0]
    """
    a, b = _column(start, "polynomial: start"), _column(end, "polynomial: end")
    duration, begin = named_float(duration, "polynomial: duration"), named_float(begin, "polynomial: begin")
    if a.numel() != b.numel() or not duration > 0:
        raise ModelError("a polynomial reference needs a start and an end of equal length and a duration above zero")

    def at(t: ca.SX, w: ca.SX) -> Setpoint:
        s = ca.fmin(ca.fmax((t - begin) / duration, 0), 1)
        shape = s**3 * (10 - 15 * s + 6 * s**2)
        slope = 30 * s**2 * (1 - s) ** 2 / duration
        bend = 60 * s * (1 - s) * (1 - 2 * s) / duration**2
        return Setpoint(a + (b - a) * shape, (b - a) * slope, (b - a) * bend)

    return Reference(at, a.numel())


def sampled(names: Sequence[str], values: None = None) -> Reference:
    """A reference whose samples are supplied by the run as inputs of the law.

    For each name there are three inputs, the value `name`, the rate `name'` and the acceleration `name''`: all values first,
    then all rates, then all accelerations. `series` computes them from samples; run with u_step=... and hold="linear".

    Args:
        names: one for each coordinate of the task, all different.
        values: not used; samples are given to `series`, and an error says so.
    Returns:
        Reference with one coordinate for each name; its `w_names` are the names of the inputs.
    Raises ModelError: names that are not texts, none, or repeated ones; samples in their place.

    Example:
        >>> import pfaffian as pf
        >>> from pfaffian import control
        >>> rail = pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> m = pf.mechanism("cart", [pf.body("cart", 2.0)], [rail], actuators=[pf.actuator("motor", "rail")])
        >>> u = control.series([0.0, 0.1, 0.2], [[0.0], [0.1], [0.2]], step=0.01)  # 1 m/s
        >>> law = control.projected(control.joints("rail"), control.sampled(["x"]), stiffness=100.0, damping=20.0)
        >>> run = pf.run(m, v=[1.0], duration=0.2, step=0.01, control=law, u=u, u_step=0.01, hold="linear", backend="numpy")
        >>> run["q"].values[-1].round(6)
        array([0.2])
    """
    given = tuple(names) if several(names) else ()
    if values is not None or any(isinstance(n, Real) for n in given):
        raise ModelError(
            "sampled takes names, not samples: u = control.series(times, values, step) makes the inputs from samples; then "
            "run with control.sampled(['x', ...]), u=u, u_step=step and hold='linear'"
        )
    if not given or not all(isinstance(n, str) for n in given) or len(set(given)) < len(given):
        raise ModelError(f"sampled: distinct names are needed, one for each task coordinate, such as ['x'], got {brief(names)}")
    names = given
    n = len(names)
    inputs = tuple(f"{name}{mark}" for mark in ("", "'", "''") for name in names)
    return Reference(lambda t, w: Setpoint(w[:n, 0], w[n : 2 * n, 0], w[2 * n :, 0]), n, inputs)


def series(times: np.ndarray, values: np.ndarray, step: float) -> np.ndarray:
    """The inputs of a `sampled` reference, interpolated from samples by a natural cubic spline.

    Args:
        times: (n,) instants of the samples [s], increasing, two or more.
        values: (n, k) samples in the task's units, a row for each instant.
        step: time between the rows of the result [s], from the first instant to the last; give it to the run as `u_step`.
    Returns:
        (samples, 3 k): k values, k rates, k accelerations in each row. At both ends the acceleration is zero.
    Raises ModelError: times that do not increase, shapes that do not fit, numbers that are not finite, a step not above zero.

    Example:
        >>> from pfaffian import control
        >>> control.series([0.0, 1.0, 2.0], [[0.0], [3.0], [6.0]], step=1.0)
        array([[0., 3., 0.],
               [3., 3., 0.],
               [6., 3., 0.]])
    """
    times, values, step = floats(times, "times"), floats(values, "values"), named_float(step, "series: step")
    if not step > 0:
        raise ModelError(f"series: step must be a time above zero, got {step:g}")
    if times.ndim != 1 or values.ndim != 2 or len(times) != len(values) or len(times) < 2 or not (np.diff(times) > 0).all():
        raise ModelError(
            f"a series needs increasing times (n,), two or more, and values (n, k); got {times.shape} and {values.shape}"
        )
    t = np.arange(times[0], times[-1] + step / 2, step)
    return np.hstack([_spline(times, values, t, order) for order in range(3)])


def _spline(x: np.ndarray, y: np.ndarray, t: np.ndarray, order: int) -> np.ndarray:
    """The natural cubic spline through (x, y) at the instants t, or its derivative of order 1 or 2."""
    h, slope = np.diff(x), np.diff(y, axis=0) / np.diff(x)[:, None]
    A = np.eye(len(x))
    rhs = np.zeros_like(y)
    for j in range(1, len(x) - 1):
        A[j, j - 1 : j + 2] = h[j - 1], 2 * (h[j - 1] + h[j]), h[j]
        rhs[j] = 6 * (slope[j] - slope[j - 1])
    m = np.linalg.solve(A, rhs)
    i = np.clip(np.searchsorted(x, t) - 1, 0, len(x) - 2)
    s, hi = (t - x[i])[:, None], h[i][:, None]
    b = slope[i] - hi * (2 * m[i] + m[i + 1]) / 6
    c, d = m[i] / 2, (m[i + 1] - m[i]) / (6 * hi)
    return (y[i] + s * (b + s * (c + s * d)), b + s * (2 * c + 3 * s * d), 2 * c + 6 * s * d)[order]
