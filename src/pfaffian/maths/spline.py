"""Cubic splines through samples of many series at once: their slopes and second derivatives at the samples.

The equations are solved by cyclic reduction, elementwise operations alone, so that a series gives the same bits whatever series
stand beside it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class SplineSlopes(NamedTuple):
    """First and second derivatives (n, k) of splines at their samples."""

    first: np.ndarray
    second: np.ndarray


def spline_slopes(x: np.ndarray, y: np.ndarray) -> SplineSlopes:
    """Slopes of the cubic splines through y (n, k) at increasing x (n,), n >= 2, whose third derivative is continuous at the
    second and last but one sample: exact for cubic polynomials; of three samples a parabola, of two a straight line.

    Example:
        >>> import numpy as np
        >>> from pfaffian.maths.spline import spline_slopes
        >>> x = np.array([0.0, 1.0, 2.0, 4.0, 5.0])
        >>> found = spline_slopes(x, x[:, None] ** 3)
        >>> print(found.first[:, 0].round(9), found.second[:, 0].round(9))
        [ 0.  3. 12. 48. 75.] [ 0.  6. 12. 24. 30.]
    """
    h = np.diff(x)[:, None]
    delta = np.diff(y, axis=0) / h
    if len(x) == 2:
        return SplineSlopes(np.repeat(delta, 2, axis=0), np.zeros_like(y))
    first = np.empty_like(y)
    if len(x) == 3:
        bend = (delta[1] - delta[0]) / (h[0] + h[1])
        first[:] = delta[0] - bend * h[0], delta[0] + bend * h[0], delta[1] + bend * h[1]
        return SplineSlopes(first, np.repeat(2 * bend[None], 3, axis=0))
    inner = 3 * (h[1:] * delta[:-1] + h[:-1] * delta[1:])
    begin = ((3 * h[0] + 2 * h[1]) * h[1] * delta[0] + h[0] ** 2 * delta[1]) / (h[0] + h[1])
    end = (h[-1] ** 2 * delta[-2] + (3 * h[-1] + 2 * h[-2]) * h[-2] * delta[-1]) / (h[-1] + h[-2])
    low, middle, high = h[1:].copy(), 2 * (h[1:] + h[:-1]), h[:-1].copy()
    # The slopes at both ends follow from the others, h1 s0 + (h0 + h1) s1 = begin, and leave equations with a dominant middle.
    inner[0] -= begin
    inner[-1] -= end
    middle[0] -= h[0] + h[1]
    middle[-1] -= h[-1] + h[-2]
    low[0] = high[-1] = 0
    first[1:-1] = solve_tridiagonal(low, middle, high, inner)
    first[0] = (begin - (h[0] + h[1]) * first[1]) / h[1]
    first[-1] = (end - (h[-1] + h[-2]) * first[-2]) / h[-2]
    second = np.empty_like(y)
    second[:-1] = (6 * delta - 4 * first[:-1] - 2 * first[1:]) / h
    second[-1] = (2 * first[-2] + 4 * first[-1] - 6 * delta[-1]) / h[-1]
    return SplineSlopes(first, second)


def solve_tridiagonal(low: np.ndarray, middle: np.ndarray, high: np.ndarray, b: np.ndarray) -> np.ndarray:
    """x (n, k) with low_i x_i-1 + middle_i x_i + high_i x_i+1 = b_i, coefficients (n, 1) with a dominant middle; the first low
    and the last high are zero. Every second unknown is eliminated until one is left."""
    n = len(b)
    if n == 1:
        return b / middle
    x, odd, even = np.empty_like(b), slice(1, None, 2), slice(0, None, 2)
    before = -low[odd] / middle[: n - 1 : 2]
    m, l, r, d = (
        middle[odd] + before * high[: n - 1 : 2],
        before * low[: n - 1 : 2],
        np.zeros_like(high[odd]),
        before * b[: n - 1 : 2],
    )
    d += b[odd]
    more = (n - 1) // 2  # odd unknowns with an even one after them
    after = -high[1 : 2 * more : 2] / middle[2::2]
    m[:more] += after * low[2::2]
    r[:more] = after * high[2::2]
    d[:more] += after * b[2::2]
    x[odd] = solve_tridiagonal(l, m, r, d)
    rest = b[even].copy()
    rest[1:] -= low[2::2] * x[1 : 2 * len(rest) - 2 : 2]
    inner = n // 2  # even unknowns with an odd one after them
    rest[:inner] -= high[: 2 * inner : 2] * x[1::2]
    x[even] = rest / middle[even]
    return x
