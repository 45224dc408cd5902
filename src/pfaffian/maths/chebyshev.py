"""Polynomials through the values of functions at Chebyshev's points of a unit interval: integrals, values, roots and maxima.

All sums run in a fixed order, entry by entry, so that no bit depends on how many functions are evaluated at once.
[Trefethen 2013, chapters 2 to 4, 18, 19]
"""

from __future__ import annotations

import numpy as np

DEGREE = 8

NODES = (1 - np.cos(np.pi * np.arange(DEGREE + 1) / DEGREE)) / 2
"""Points at which functions are evaluated, from 0 to 1."""

CELLS = 32
"""Parts of the interval in which a polynomial has at most one root or maximum that matters."""

GRID = np.linspace(0.0, 1.0, CELLS + 1)

BISECTIONS, SECTIONS = 48, 20
"""Steps that locate a root and a maximum within a cell."""

GOLDEN = (np.sqrt(5) - 1) / 2


def _to_coefficients() -> np.ndarray:
    """(DEGREE + 1, DEGREE + 1) matrix from values at the NODES to coefficients."""
    k = np.arange(DEGREE + 1)
    half = np.where((k == 0) | (k == DEGREE), 0.5, 1.0)
    return 2 / DEGREE * half[:, None] * np.cos(np.pi * np.outer(k, k) / DEGREE) * half


def _weights() -> np.ndarray:
    """(DEGREE + 1,) weights of the values at the NODES in the integral. [Clenshaw, Curtis 1960]"""
    k = np.arange(DEGREE + 1)
    of_terms = np.where(k % 2 == 0, 1 / (1.0 - k**2 + (k == 1)), 0.0)
    return of_terms @ _to_coefficients()


MATRIX, WEIGHTS = _to_coefficients(), _weights()


def _combined(weights: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The sum of weights (n,) times values (n, ...), in order."""
    total = weights[0] * values[0]
    for w, y in zip(weights[1:], values[1:], strict=True):
        total = total + w * y
    return total


def integral(values: np.ndarray) -> np.ndarray:
    """(...) integrals over the unit interval of functions with these values (DEGREE + 1, ...) at the NODES."""
    return _combined(WEIGHTS, values)


def coefficients(values: np.ndarray) -> np.ndarray:
    """(DEGREE + 1, ...) coefficients of the polynomials with these values at the NODES."""
    return np.stack([_combined(row, values) for row in MATRIX])


def at(c: np.ndarray, s: np.ndarray) -> np.ndarray:
    """The values of polynomials with coefficients c (DEGREE + 1, ...) at s (...) between 0 and 1. [Clenshaw 1955]"""
    x, b1, b2 = 2 - 4 * s, np.zeros(()), np.zeros(())
    for c_k in c[:0:-1]:
        b1, b2 = c_k + x * b1 - b2, b1
    return c[0] + x / 2 * b1 - b2


def on_grid(values: np.ndarray, c: np.ndarray) -> np.ndarray:
    """(CELLS + 1, ...) values on the GRID, those at its ends as given in `values` (DEGREE + 1, ...)."""
    inner = [at(c, s) for s in GRID[1:-1]]
    return np.stack([values[0], *inner, values[-1]])


def linear_on_grid(values: np.ndarray) -> np.ndarray:
    """(CELLS + 1, ...) values on the GRID of the functions that are linear between the NODES, with values (DEGREE + 1, ...)."""
    k = np.clip(np.searchsorted(NODES, GRID, "right") - 1, 0, DEGREE - 1)
    part = ((GRID - NODES[k]) / (NODES[k + 1] - NODES[k])).reshape(-1, *[1] * (values.ndim - 1))
    return (1 - part) * values[k] + part * values[k + 1]


def root(c: np.ndarray, level: float, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """(n,) where polynomials c (DEGREE + 1, n) pass a level between low and high (n,), where they lie on either side of it."""
    below = at(c, low) < level
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        same = (at(c, middle) < level) == below
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return (low + high) / 2


def peak(c: np.ndarray, cell: np.ndarray) -> np.ndarray:
    """(n,) where polynomials c (DEGREE + 1, n) are largest within their cells (n,)."""
    low, high = GRID[cell], GRID[cell + 1]
    for _ in range(SECTIONS):
        a, b = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        left = at(c, a) > at(c, b)
        low, high = np.where(left, low, a), np.where(left, b, high)
    return (low + high) / 2
