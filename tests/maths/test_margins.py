"""What counts as zero beside the sizes that occur, the rank of matrices of any units, and how clear these decisions are."""

from __future__ import annotations

import numpy as np
import pytest

from pfaffian.maths.margins import (
    CLEAR,
    ROUNDING,
    ZERO,
    Decision,
    equilibrated,
    free,
    largest,
    null_space,
    parted,
    rank,
    singular_values,
    span,
    unit_rows,
    vanishing,
)
from tests.tolerance import close

ROUNDED = 1e-12
"""Rounding of a few scalings."""


def matrices(count: int = 3) -> np.ndarray:
    """Random matrices (count, 4, 3) of rank 2, whose last row is a sum of the two before it."""
    random = np.random.default_rng(4)
    x = random.normal(size=(count, 4, 2)) @ random.normal(size=(count, 2, 3))
    x[:, 3] = x[:, 1] + x[:, 2]
    return x


@pytest.mark.parametrize("unit", [1e-5, 1e-3, 1.0, 1e5])
def test_units_of_rows_and_columns_do_not_change_a_rank(unit):
    x = matrices() * np.array([1.0, unit, 1.0, 1.0])[:, None] * np.array([1.0, 1.0, unit**2])
    x[:, 3] = x[:, 0] * 0.5 - x[:, 2]
    assert rank(x).answer == 2
    assert rank(x).margin > CLEAR


def test_a_rank_is_that_at_most_states_and_judged_where_it_is_largest():
    x = matrices()
    x[0] = 0.0
    x[1, 1:] = x[1, 0]
    assert rank(x).answer == 2
    assert rank(x[:2]).answer == 1
    assert rank(x[:1]) == Decision(0, 0.0)
    assert rank(np.zeros((2, 0, 3))).answer == 0


@pytest.mark.parametrize(
    ("apart", "found", "clear"), [(1e-3, 2, True), (8e-8, 2, True), (4e-9, 2, False), (4e-10, 1, False), (1e-12, 1, True)]
)
def test_the_smallest_singular_value_decides_a_rank_and_is_told(apart, found, clear):
    """Two rows that differ by a small angle: their smallest singular value is half of it."""
    decision = rank(np.array([[[1.0, 1.0], [1.0 - apart, 1.0 + apart]]]))
    assert decision.answer == found
    assert decision.nearest == pytest.approx(apart / 2, rel=1e-3)
    assert (decision.margin > CLEAR) == clear


def test_what_is_rounding_of_larger_numbers_has_no_rank():
    x = np.array([[[1.0, 0.0], [0.0, 0.5 * ROUNDING]]])
    assert rank(x).answer == 2  # the only number of its row and column, so it may have any unit
    assert rank(x, np.ones_like(x)).answer == 1
    assert rank(2.1 * x, np.ones_like(x)).answer == 2
    assert rank(2.1 * x, np.full_like(x, 4.0)).answer == 1
    assert rank(np.array([[[1.0, 0.5 * ROUNDING], [0.0, 1.0]]]), np.ones((1, 2, 2))).answer == 2
    assert rank(np.array([[[1.0, 2.0], [3.0, 4.0]]]), np.ones((1, 2, 2))).answer == 2
    assert equilibrated(np.array([[1.0, 1.0], [1.0, 0.9 * ROUNDING]]))[1, 1] == 0
    assert equilibrated(np.array([[1.0, 1.0], [1.0, 4 * ROUNDING]]))[1, 1] > 0
    low = np.array([[1.0, 1.0], [0.9 * ROUNDING, 0.8 * ROUNDING], [1.0, 2.0]])
    assert (equilibrated(low)[1] == 0).all()
    assert (equilibrated(low.T)[:, 1] == 0).all()


def test_rows_and_columns_are_scaled_to_unit_length():
    x = matrices(1)[0] * np.array([1e-5, 1.0, 1e5, 3.0])[:, None]
    even = equilibrated(x)
    close(np.linalg.norm(even, axis=0) / np.linalg.norm(even, axis=0).mean(), np.ones(3), 0.02, "lengths of columns")
    close(np.linalg.norm(unit_rows(x), axis=1), np.ones(4), ROUNDED, "lengths of rows")
    assert (unit_rows(np.zeros((2, 3))) == 0).all()
    assert equilibrated(np.zeros((0, 3))).shape == (0, 3)


def test_an_entry_vanishes_if_it_is_small_at_all_states():
    x = np.array([[0.5 * ZERO, 2 * ZERO, 0.0, 0.5 * ZERO], [0.0, 0.0, 0.0, 0.2 * ZERO]])
    assert vanishing(x, 1.0).answer.tolist() == [True, False, True, True]
    assert vanishing(-x, np.array([1.0, 4.0, 0.0, 0.0])).answer.tolist() == [True, True, True, False]
    assert vanishing(x, 1.0).nearest in (0.5 * ZERO, 2 * ZERO)
    assert vanishing(np.zeros((2, 3)), 0.0).answer.all()
    assert vanishing(np.array([[ZERO]]), 1.0).answer.all()


def test_a_margin_is_the_factor_from_the_bound():
    assert Decision(True, ZERO / 5).margin == pytest.approx(5)
    assert Decision(True, 7 * ZERO).margin == pytest.approx(7)
    assert Decision(True, 1e-6, 1e-4).margin == pytest.approx(100)
    assert Decision(True, 0.0).margin == np.inf
    with np.errstate(all="raise"):
        assert vanishing(np.array([[0.0, 1.0, 1e-5, 1e-11]]), 1.0).nearest == 1e-11
        assert vanishing(np.array([[0.0, 1e-8, 1e-11]]), 1.0).nearest == 1e-8
        assert vanishing(np.array([[0.0, 0.0]]), 1.0).nearest == 0.0


def test_sizes_are_parted_clearly_by_a_wide_gap_far_from_the_bound():
    sizes = np.array([1.0, 0.2, 3e-7, 1e-16, 0.0])
    assert parted("x", sizes, 1e-6) == ("x", 3e-7, pytest.approx(np.sqrt(0.2 * 3e-7)))
    assert parted("x", np.append(sizes, 1.2e-6), 1e-6).margin == pytest.approx(1.2)
    assert parted("x", np.array([1e-6]), 1e-6).margin == pytest.approx(1e3)
    assert parted("x", np.array([0.0, 2e-6]), 1e-6) == ("x", 2e-6, 1e-6)
    assert parted("x", np.array([4e-5, 3e-7]), 1e-6).margin == pytest.approx(np.sqrt(4e-5 / 3e-7))


def test_rows_leave_motions_free_whatever_their_lengths():
    rows = np.array([[1.0, 0.0, 0.0], [1e-12, 3e-12 * 8e-9, 0.0], [0.0, 0.0, 0.0]])
    assert free(rows).answer.shape == (3, 1)
    assert free(rows, 1e-6).answer.shape == (3, 2)
    assert free(rows).nearest == pytest.approx(24e-9 / 2)
    close(np.abs(free(rows).answer), [[0.0], [0.0], [1.0]], ROUNDED, "what no row changes")
    close(free(np.zeros((0, 3))).answer, np.eye(3), ROUNDED, "all motions without rows")
    assert free(np.zeros((2, 3))).answer.shape == (3, 3)


def test_the_dimension_of_a_span_and_its_margin():
    assert span(np.diag([2.0, 4.0, 4e-8])) == (3, pytest.approx(1e-8), ZERO)
    assert span(np.diag([2.0, 4.0, 4e-10])) == (2, pytest.approx(1e-10), ZERO)
    assert span(np.diag([2.0, 4.0, 4e-8]), 1e-6) == (2, pytest.approx(1e-8), 1e-6)
    assert span(np.zeros((3, 2))) == (0, 0.0, ZERO)


def test_rounding_does_not_choose_the_largest():
    assert largest(np.array([1.0, 3.0, 3.0 * (1 + 1e-9), 2.0])) == 1
    assert largest(np.array([1.0, 3.0, 3.1])) == 2


def test_singular_values_are_relative_to_the_largest():
    close(singular_values(np.diag([3.0, -6.0])), [1.0, 0.5], ROUNDED, "of a diagonal matrix")
    assert singular_values(np.zeros((2, 3))).tolist() == [0.0, 0.0]
    assert singular_values(np.zeros((0, 3))).size == 0


def test_a_null_space_and_its_margin_do_not_depend_on_how_often_a_row_stands_there():
    rows = np.array([[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.0, 0.0, 8e-9]])
    few, many = null_space(rows), null_space(np.tile(rows, (40, 1)))
    assert few.answer.shape == many.answer.shape == (0, 3)
    assert few.nearest == pytest.approx(8e-9 / np.sqrt(3))
    assert many.nearest == pytest.approx(few.nearest)
    for smallest in (8e-10, 0.0):
        rows[2, 2] = smallest
        close(np.abs(null_space(np.tile(rows, (40, 1))).answer), [[0.0, 0.0, 1.0]], ROUNDED, "what no row contains")


def test_an_entry_is_rounding_beside_the_largest_of_its_row_or_of_its_column():
    for x in (np.array([[1.0, 0.9 * ROUNDING, 1.0], [0.5, 1e-3 * ROUNDING, 1.0]]), np.array([[1.0], [0.9 * ROUNDING], [1.0]])):
        assert (equilibrated(x) != 0).tolist() == (x >= 0.5).tolist()
