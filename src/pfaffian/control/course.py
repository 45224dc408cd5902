"""Courses: from the motion of this instant to rest at a place, found anew while a machine flies. [konz25 5.5]

`rest_to_rest` is for what is planned before a run. A course begins with any y, y', ..., such as those of the course before, so
that a goal may change at any instant and y stays as smooth as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from math import comb, factorial
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError
from pfaffian.model.number import column, matrix, scalar

MOST = 8
"""Derivatives of a course, at most: its polynomial has coefficients of 1e7 then."""


class Course(NamedTuple):
    """A course under way, for `course_step`; numbers or expressions, so that a law in discrete time may keep it.

    start: (k, n) y, y', ... where it begins, a column for each.   end: (k, 1) where it comes to rest.
    duration: (1, 1) of the whole [s].   passed: (1, 1) of it so far [s].

    Example:
        >>> from pfaffian import control
        >>> resting = control.Course([[0.0, 0.0]], [0.0], 1.0, 1.0)
        >>> print(resting.end, resting.passed)
        [0.0] 1.0
    """

    start: Any
    end: Any
    duration: Any
    passed: Any


def course(start: Any, end: Any, duration: Any, passed: Any) -> ca.SX:
    """y, y', ... on the way from given ones to rest, by the polynomial of least degree, 2 n - 1. [konz25 5.5]

        y = end + (1 - s)^n sum_i start_i T^i / i! s^i sum_{j < n - i} (n - 1 + j over j) s^j,   s = passed / T,   start_0 - end

    Args:
        start: (k, n) y, y', ... at the beginning, a column for each, n from 1 to 8; five for what a multicopter's attitude
            needs: the polynomial has degree nine then.
        end: (k,) where it comes to rest, with as many derivatives zero.
        duration: T [s], above zero.
        passed: time since the beginning [s]; before it counts as the beginning, after T as the end.
    Returns:
        (k, n) y, y', ... then.
    Raises ModelError: shapes that do not fit, a duration of numbers that is not above zero.

    Example:
        >>> from pfaffian import control
        >>> print(control.course([[0.0, 2.0]], [1.0], 1.0, 0.5))  # y and y' half-way; it passes the end and comes back
        [[0.75, 1]]
        >>> print(control.course([[0.0, 2.0]], [1.0], 1.0, 1.0))
        [[1, 0]]
    """
    x, b = ca.densify(matrix(start, "course: start")), ca.densify(column(end, "course: end"))
    T, t = scalar(duration, "course: duration"), scalar(passed, "course: passed")
    k, n = x.shape
    if b.numel() != k or not 1 <= n <= MOST:
        raise ModelError(f"course: start (k, n) with n from 1 to {MOST} and end (k,) are needed, got {x.shape} and {b.numel()}")
    if T.is_constant() and not float(T) > 0:
        raise ModelError(f"course: a duration above zero is needed, got {float(T):g} s")
    s = ca.fmin(ca.fmax(t / T, 0), 1)
    away = ca.horzcat(*[(x[:, i] - (b if i == 0 else 0)) * T**i for i in range(n)])
    shapes = _shapes(n)
    columns = []
    for m in range(n):
        fades = [_polynomial(shapes[m][i], s) * (1 - s) ** (n - m) for i in range(n)]
        columns.append((away @ ca.vertcat(*fades)) / T**m + (b if m == 0 else 0))
    return ca.horzcat(*columns)


def _shapes(n: int) -> list[list[np.ndarray]]:
    """[m][i] coefficients of P in (1 - s)^(n - m) P(s), the m-th derivative of what remains at s of a start_i T^i."""
    first = [np.array([0.0] * i + [comb(n - 1 + j, j) / factorial(i) for j in range(n - i)]) for i in range(n)]
    found = [first]
    for m in range(n - 1):
        # of (1 - s)^k P the derivative is (1 - s)^(k - 1) ((1 - s) P' - k P): so it vanishes exactly at the end
        found.append([_after(P, n - m) for P in found[-1]])
    return found


def _after(P: np.ndarray, k: int) -> np.ndarray:
    slope = np.append(P[1:] * np.arange(1, len(P)), 0.0)
    return slope - np.append(0.0, slope[:-1]) - k * P


def _polynomial(coefficients: np.ndarray, s: ca.SX) -> ca.SX:
    value = ca.SX(0)
    for c in coefficients[::-1]:
        value = value * s + float(c)
    return value


def course_step(of: Course, goal: Any, duration: Any, period: Any) -> tuple[Course, ca.SX]:
    """y, y', ... now, and the course a period later: the same one, or where the goal has changed a new one from here.

    Args:
        of: the Course, kept from one instant to the next.
        goal: (k,) where to come to rest.
        duration: of a course that begins now [s]; one under way keeps its own.
        period: [s] to the next instant.
    Returns:
        the Course for the next instant, and (k, n) y, y', ... at this one.
    Raises ModelError: as `course`.

    Example:
        >>> import casadi as ca
        >>> from pfaffian import control
        >>> at = control.Course([[0.0, 0.0]], [0.0], 1.0, 1.0)
        >>> for k in range(3):  # at the second instant the goal is 1, in 2 s
        ...     at, y = control.course_step(at, [0.0 if k < 1 else 1.0], 2.0, period=0.5)
        ...     print(ca.evalf(y), at.passed)
        [[0, 0]] 1
        [[0, 0]] 0.5
        [[0.15625, 0.5625]] 1
    """
    now = course(of.start, of.end, of.duration, of.passed)
    end, target = column(of.end, "course_step: end"), column(goal, "course_step: goal")
    if end.numel() != target.numel():
        raise ModelError(f"course_step: the goal has {target.numel()} numbers, the course {end.numel()}")
    new = ca.mmax(ca.fabs(ca.densify(target - end))) > 0
    T = ca.if_else(new, scalar(duration, "course_step: duration"), scalar(of.duration, "course_step: duration"))
    passed = ca.if_else(new, 0, scalar(of.passed, "course_step: passed")) + scalar(period, "course_step: period")
    start = ca.if_else(new, now, matrix(of.start, "course_step: start"))
    return Course(start, ca.if_else(new, target, end), T, ca.fmin(passed, T)), now


def taylor(derivatives: Any) -> Callable[[ca.SX], ca.SX]:
    """The function of time with given derivatives at zero: flat references of it at t = 0 are those of this instant.

        y(t) = sum_i derivatives_i t^i / i!

    Args:
        derivatives: (k, n) y, y', ..., a column for each, such as `course` gives; numbers or expressions.
    Returns:
        Function of t [s] that returns (k, 1).
    Raises ModelError: no numbers.

    Example:
        >>> import casadi as ca
        >>> from pfaffian import control
        >>> y = control.taylor([[1.0, 2.0, 6.0]])
        >>> print(y(2.0))  # 1 + 2 * 2 + 6 * 2^2 / 2
        17
    """
    x = ca.densify(matrix(derivatives, "taylor: derivatives"))

    def y(t: ca.SX) -> ca.SX:
        return x @ ca.vertcat(*[t**i / factorial(i) for i in range(x.shape[1])])

    return y
