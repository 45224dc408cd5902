"""What a task shall do: set point, polynomial, function of time, sampled series."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError, brief, plural
from pfaffian.model import shown
from pfaffian.model.caller import answer
from pfaffian.model.number import column, floats, named_float, several


class Setpoint(NamedTuple):
    """Value, rate and acceleration of a reference, each (k, 1)."""

    value: ca.SX
    rate: ca.SX
    acceleration: ca.SX


@dataclass(frozen=True, eq=False)
class Reference:
    """at(t, w) -> Setpoint; w (nw, 1) are inputs of the run, named by w_names, for a sampled reference."""

    at: Callable[[ca.SX, ca.SX], Setpoint]
    size: int
    w_names: tuple[str, ...] = ()

    def __repr__(self) -> str:
        inputs = [f"inputs {shown.listed(self.w_names)}"] if self.w_names else []
        return shown.words(self, f"{shown.maker(self.at)} of {plural(self.size, 'coordinate')}", *inputs)


def of_unit_length(x: Setpoint, turn: slice, what: str) -> Setpoint:
    """x with the quaternion at `turn` made of length one, and its rate and acceleration those of that one.

    With n = q / |q| and P = 1 - n n^T: n_dot = P q_dot / |q|, n_ddot = (P q_ddot - 2 n^T q_dot n_dot) / |q| - |n_dot|^2 n.
    Raises ModelError: it is zero, whatever t is. One that becomes zero is no number there.
    """
    q, rate, bend = (ca.densify(ca.SX(part))[turn, 0] for part in x)
    if q.is_constant() and not np.any(np.array(ca.evalf(q))):
        raise ModelError(f"{what}: its quaternion is zero, which is no attitude; [0, 0, 0, 1] is none turned")
    size = ca.norm_2(q)
    n = q / size
    slope = ca.dot(n, rate)
    n_dot = (rate - slope * n) / size
    n_bend = (bend - ca.dot(n, bend) * n - 2 * slope * n_dot) / size - ca.dot(n_dot, n_dot) * n
    parts = [ca.SX(ca.densify(ca.SX(part))) for part in x]
    for part, unit in zip(parts, (n, n_dot, n_bend), strict=True):
        part[turn, 0] = unit
    return Setpoint(*parts)


def as_reference(value: Any, what: str = "reference") -> Reference:
    """The value as it is. Raises ModelError: it is no Reference."""
    if not isinstance(value, Reference):
        raise ModelError(f"{what}: a Reference is needed, made by set_point([...]), polynomial, ..., got {brief(value)}")
    return value


def set_point(values: Any) -> Reference:
    """Stay where one is told.   values: (k,) numbers or Parameters, one for each coordinate of the task.

    Raises ModelError: something else.
    """
    x = _column(values, "set_point")
    rest = ca.SX.zeros(x.numel(), 1)
    return Reference(lambda t, w: Setpoint(x, rest, rest), x.numel())


def _column(values: Any, what: str) -> ca.SX:
    """(k, 1) of numbers or parameters, one for each coordinate."""
    if not several(values) and not (isinstance(values, (ca.SX, ca.DM)) and values.numel() > 1):
        raise ModelError(f"{what}: a list of numbers, one for each coordinate, is needed, such as [0.3], got {brief(values)}")
    x = ca.densify(column(values, what))
    if not x.numel():
        raise ModelError(f"{what}: at least one number is needed")
    return x


def function_of_time(f: Callable[[ca.SX], Any], size: int) -> Reference:
    """Any expression of t [s] and parameters, differentiated twice, as a column or list of `size` numbers."""
    if not callable(f) or isinstance(size, bool) or not isinstance(size, (int, np.integer)):
        raise ModelError(f"function_of_time(f, size): a function of t and a whole number, got {brief(f)} and {brief(size)}")

    def at(t: ca.SX, w: ca.SX) -> Setpoint:
        s = ca.SX.sym("s")
        x = ca.densify(column(answer(f, "the reference", s), "the reference"))
        if x.numel() != size:
            raise ModelError(f"the reference gives {x.numel()} numbers where the task has {size}")
        rate = ca.jacobian(x, s)
        others = ca.vertcat(ca.SX(0, 1), *[y for y in ca.symvar(x) if not ca.is_equal(y, s)])
        return Setpoint(*ca.Function("reference", [s, others], [x, rate, ca.jacobian(rate, s)])(t, others))

    return Reference(at, size)


def polynomial(start: Any, end: Any, duration: float, begin: float = 0.0) -> Reference:
    """From rest at `start` (k,) to rest at `end` (k,) by a polynomial of degree five, still before and after.

    duration: [s] of the motion.   begin: [s] its first instant.   Raises ModelError: lengths differ; a duration not above zero.
    """
    a, b = _column(start, "polynomial: start"), _column(end, "polynomial: end")
    duration, begin = named_float(duration, "polynomial: duration"), named_float(begin, "polynomial: begin")
    if a.numel() != b.numel() or not duration > 0:
        raise ModelError("a polynomial reference needs a start and an end of one length and a duration above zero")

    def at(t: ca.SX, w: ca.SX) -> Setpoint:
        s = ca.fmin(ca.fmax((t - begin) / duration, 0), 1)
        shape = s**3 * (10 - 15 * s + 6 * s**2)
        slope = 30 * s**2 * (1 - s) ** 2 / duration
        bend = 60 * s * (1 - s) * (1 - 2 * s) / duration**2
        return Setpoint(a + (b - a) * shape, (b - a) * slope, (b - a) * bend)

    return Reference(at, a.numel())


def sampled(names: Sequence[str]) -> Reference:
    """A series given with the run: for each name its value, rate and acceleration as inputs `name`, `name'`, `name''`.

    names: one for each coordinate of the task. Make the inputs from samples with `series`, and run with hold="linear".
    Raises ModelError: names that are none, or alike.
    """
    given = tuple(names) if several(names) else ()
    if not given or not all(isinstance(n, str) for n in given) or len(set(given)) < len(given):
        raise ModelError(f"sampled: different names, one for each coordinate of the task, such as ['x'], got {brief(names)}")
    names = given
    n = len(names)
    inputs = tuple(f"{name}{mark}" for mark in ("", "'", "''") for name in names)
    return Reference(lambda t, w: Setpoint(w[:n, 0], w[n : 2 * n, 0], w[2 * n :, 0]), n, inputs)


def series(times: np.ndarray, values: np.ndarray, step: float) -> np.ndarray:
    """Inputs (samples, 3 k) of a sampled reference: values (n, k) at times (n,), by a cubic spline every `step` [s]."""
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
    """Natural cubic spline and its derivatives."""
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
