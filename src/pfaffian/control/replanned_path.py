"""Courses: references from the present motion to rest at a goal, replanned while a machine flies. [konz25 5.5]

`rest_to_rest` plans a motion before a run. A course begins with any y, y', ..., such as those of the previous course, so that
the goal may change at any instant while y stays as smooth as before.
"""

from __future__ import annotations

from collections.abc import Callable
from math import comb, factorial
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError
from pfaffian.model.number import column, matrix, scalar

MOST_COLUMNS = 8
"""Most columns y, y', ... of a course. With eight, the coefficients of its polynomials reach 1e7 in the third derivative and
4e11 in the last one, and rounding errors grow with them."""


class Course(NamedTuple):
    """A course under way, the state of `course_step`. Its fields are numbers, or expressions in a law in discrete time.

    start: (k, n) y, y', ... at its beginning, a column for each.   end: (k, 1) y where it comes to rest.
    duration: (1, 1) from beginning to end [s].   elapsed: (1, 1) time since its beginning [s].

    Example:
        >>> from pfaffian import control
        >>> resting = control.Course([[0.0, 0.0]], [0.0], 1.0, 1.0)
        >>> print(resting.end, resting.elapsed)
        [0.0] 1.0
    """

    start: Any
    end: Any
    duration: Any
    elapsed: Any


def course(start: Any, end: Any, duration: Any, elapsed: Any) -> ca.SX:
    """Polynomial of least degree, 2 n - 1, from given y, y', ... to rest, with its derivatives at one instant. [konz25 5.5]

        y = end + (1 - s)^n sum_i start_i T^i / i! s^i sum_{j < n - i} (n - 1 + j over j) s^j,   s = elapsed / T

    with start_0 - end instead of start_0.

    Args:
        start: (k, n) y, y', ... at the beginning, a column for each, n from 1 to 8. The attitude of a multicopter needs five,
            which gives a polynomial of degree nine.
        end: (k,) y at the end, where the n - 1 derivatives are zero.
        duration: T [s], above zero.
        elapsed: time since the beginning [s]; limited to the range from 0 to T.
    Returns:
        (k, n) y, y', ... at that time.
    Raises ModelError: shapes that do not fit, or a numeric duration that is not above zero.

    Example:
        >>> from pfaffian import control
        >>> print(control.course([[0.0, 2.0]], [1.0], 1.0, 0.5))  # y and y' half-way; it passes the end and comes back
        [[0.75, 1]]
        >>> print(control.course([[0.0, 2.0]], [1.0], 1.0, 1.0))
        [[1, 0]]
    """
    x, b = ca.densify(matrix(start, "course: start")), ca.densify(column(end, "course: end"))
    T, t = scalar(duration, "course: duration"), scalar(elapsed, "course: elapsed")
    k, n = x.shape
    if b.numel() != k or not 1 <= n <= MOST_COLUMNS:
        raise ModelError(
            f"course: start (k, n) with n from 1 to {MOST_COLUMNS} and end (k,) are needed, got {x.shape} and {b.numel()}"
        )
    if T.is_constant() and not float(T) > 0:
        raise ModelError(f"course: a duration above zero is needed, got {float(T):g} s")
    s = ca.fmin(ca.fmax(t / T, 0), 1)
    scaled = ca.horzcat(*[(x[:, i] - (b if i == 0 else 0)) * T**i for i in range(n)])
    shapes = _shapes(n)
    columns = []
    for m in range(n):
        fades = [_polynomial(shapes[m][i], s) * (1 - s) ** (n - m) for i in range(n)]
        columns.append((scaled @ ca.vertcat(*fades)) / T**m + (b if m == 0 else 0))
    return ca.horzcat(*columns)


def _shapes(n: int) -> list[list[np.ndarray]]:
    """Coefficients [m][i] of P, where (1 - s)^(n - m) P(s) is the m-th derivative of the factor of start_i T^i in `course`."""
    first = [np.array([0.0] * i + [comb(n - 1 + j, j) / factorial(i) for j in range(n - i)]) for i in range(n)]
    shapes = [first]
    for m in range(n - 1):
        # The factor (1 - s) is kept apart, so that each derivative vanishes exactly at the end.
        shapes.append([_derivative(P, n - m) for P in shapes[-1]])
    return shapes


def _derivative(P: np.ndarray, k: int) -> np.ndarray:
    """Coefficients of (1 - s) P' - k P: the derivative of (1 - s)^k P is (1 - s)^(k - 1) times this polynomial."""
    slope = np.append(P[1:] * np.arange(1, len(P)), 0.0)
    return slope - np.append(0.0, slope[:-1]) - k * P


def _polynomial(coefficients: np.ndarray, s: ca.SX) -> ca.SX:
    """Value at s of a polynomial with coefficients in ascending order, by Horner's rule."""
    value = ca.SX(0)
    for c in coefficients[::-1]:
        value = value * s + float(c)
    return value


def course_step(current: Course, goal: Any, duration: Any, period: Any) -> tuple[Course, ca.SX]:
    """Advance a course by one period; where the goal has changed, a new course begins at the present motion.

    Args:
        current: the Course at this instant.
        goal: (k,) y where the course shall come to rest.
        duration: of a course that begins now [s]; a course under way keeps its duration.
        period: time to the next instant [s].
    Returns:
        the Course for the next instant, and (k, n) y, y', ... at this instant.
    Raises ModelError: a goal of another size than the course, shapes that do not fit, or a numeric duration that is not above
    zero.

    Example:
        >>> import casadi as ca
        >>> from pfaffian import control
        >>> at = control.Course([[0.0, 0.0]], [0.0], 1.0, 1.0)
        >>> for k in range(3):  # at the second instant the goal is 1, in 2 s
        ...     at, y = control.course_step(at, [0.0 if k < 1 else 1.0], 2.0, period=0.5)
        ...     print(ca.evalf(y), at.elapsed)
        [[0, 0]] 1
        [[0, 0]] 0.5
        [[0.15625, 0.5625]] 1
    """
    now = course(current.start, current.end, current.duration, current.elapsed)
    end, target = column(current.end, "course_step: end"), column(goal, "course_step: goal")
    if end.numel() != target.numel():
        raise ModelError(f"course_step: the goal has {target.numel()} numbers, the course {end.numel()}")
    new = ca.mmax(ca.fabs(ca.densify(target - end))) > 0
    T = ca.if_else(new, scalar(duration, "course_step: duration"), scalar(current.duration, "course_step: duration"))
    elapsed = ca.if_else(new, 0, scalar(current.elapsed, "course_step: elapsed")) + scalar(period, "course_step: period")
    start = ca.if_else(new, now, matrix(current.start, "course_step: start"))
    return Course(start, ca.if_else(new, target, end), T, ca.fmin(elapsed, T)), now


def taylor(derivatives: Any) -> Callable[[ca.SX], ca.SX]:
    """Polynomial of time with given derivatives at t = 0.

        y(t) = sum_i derivatives_i t^i / i!

    A flat reference of this y, evaluated at t = 0, is the reference at the present instant of a course.

    Args:
        derivatives: (k, n) y, y', ..., a column for each, such as `course` returns; numbers or expressions.
    Returns:
        Function of t [s] that returns (k, 1).
    Raises ModelError: derivatives are not numbers or expressions.

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
