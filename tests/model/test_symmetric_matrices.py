"""Whether a matrix is symmetric: of numbers and of expressions, with rows of any units."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

from pfaffian.model.number import SYMMETRIC, is_symmetric

UNITS = ("N", "N", "N m")
"""Of the rows of a matrix, of which the last is smaller by 1e-8 in each direction."""


def with_entry(i: int, j: int, off: float) -> np.ndarray:
    """A symmetric matrix of two units but for one entry, which is `off` too large."""
    unit = np.array([1.0, 1.0, 1e-8])
    x = np.array([[2.0, 0.3, 0.4], [0.3, 1.0, -0.5], [0.4, -0.5, 3.0]]) * np.outer(unit, unit)
    x[i, j] += off
    return x


@pytest.mark.parametrize(
    ("i", "j", "size"), [(0, 1, 2.0), (1, 0, 2.0), (0, 2, np.sqrt(6.0) * 1e-8), (2, 1, np.sqrt(6.0) * 1e-8)]
)
def test_the_rounding_of_an_entry_is_that_of_its_units(i, j, size):
    assert is_symmetric(with_entry(i, j, 0.0), UNITS)
    assert is_symmetric(with_entry(i, j, 0.9 * SYMMETRIC * size), UNITS)
    assert not is_symmetric(with_entry(i, j, 1.1 * SYMMETRIC * size), UNITS)
    assert is_symmetric(with_entry(i, j, 1.9 * SYMMETRIC))  # all of one unit


def test_an_entry_without_its_mirror_is_not_symmetric():
    """Also where the diagonal is zero, so that nothing but the entry itself has a size."""
    assert not is_symmetric(np.array([[0.0, 1e-30], [0.0, 0.0]]), ("N", "N m"))
    assert not is_symmetric(np.array([[0.0, 0.0], [1e-30, 0.0]]), ("N", "N m"))
    assert is_symmetric(np.array([[0.0, 2.0], [2.0, 0.0]]), ("N", "N m"))
    assert is_symmetric(np.zeros((2, 2)))


def test_expressions_are_symmetric_whatever_their_symbols():
    a, b = ca.SX.sym("a"), ca.SX.sym("b")
    assert is_symmetric(ca.blockcat([[a, a * b], [b * a, b]]))
    assert not is_symmetric(ca.blockcat([[1, a], [b, 1]]))
    assert not is_symmetric(ca.blockcat([[1, a], [a * (1 + 1e-9), 1]]))
    assert is_symmetric(ca.SX([[1, 2], [2, 3]])) and not is_symmetric(ca.SX([[1, 2], [4, 3]]))


def test_numbers_that_are_not_finite_are_compared_as_they_are():
    assert is_symmetric(np.array([[1.0, np.inf], [np.inf, 2.0]]))
    assert is_symmetric(np.array([[np.nan, np.nan], [np.nan, 2.0]]))
    assert not is_symmetric(np.array([[1.0, np.inf], [5.0, 2.0]]))
