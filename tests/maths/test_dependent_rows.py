"""Elimination of dependent rows, most independent first, compared with NumPy's singular values."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

from pfaffian.maths.linear import connected, null_space, orthogonalise, smallest, solve_semidefinite
from pfaffian.maths.minimum_norm import damped, minimum_norm, minimum_norm_by_gram
from tests.tolerance import ALGEBRA, close

TOLERANCE = 1e-5


def dependent(random: np.random.Generator, m: int, n: int, rank: int) -> np.ndarray:
    return random.normal(size=(m, rank)) @ random.normal(size=(rank, n))


def numbers(x: ca.SX) -> np.ndarray:
    return np.array(ca.DM(ca.densify(x)))


SHAPES = [(5, 3, 2), (5, 5, 4), (4, 6, 2), (12, 9, 6), (3, 3, 3), (6, 2, 1)]


@pytest.mark.parametrize("passes", (1, 2))
@pytest.mark.parametrize(("m", "n", "rank"), SHAPES)
def test_elimination_of_dependent_rows(m: int, n: int, rank: int, passes: int) -> None:
    random = np.random.default_rng(m + n)
    A = dependent(random, m, n, rank)
    x = random.normal(size=(n, 2))
    rows = orthogonalise(ca.SX(A), ca.SX(A @ x), TOLERANCE, passes=passes, groups=[range(m)])
    Q = numbers(rows.Q)
    assert float(ca.DM(rows.rank)) == rank == numbers(rows.independent).sum()
    close(Q.T @ Q, np.linalg.pinv(A, rcond=1e-9) @ A, 1e3 * ALGEBRA, "projector onto the rows")
    close(numbers(smallest(rows, ca.SX(A @ x))), np.linalg.pinv(A, rcond=1e-9) @ A @ x, 1e3 * ALGEBRA, "smallest solutions")
    close(numbers(rows.coefficients) @ Q, A, 1e3 * ALGEBRA, "rows from their coefficients")
    close(numbers(rows.rest), np.zeros((m, 2)), 1e3 * ALGEBRA, "nothing left of rows that agree")
    off = numbers(orthogonalise(ca.SX(A), ca.SX.eye(m), TOLERANCE, groups=[range(m)]).rest)
    assert np.linalg.matrix_rank(off, tol=1e-8) == m - rank
    close(off @ A, np.zeros((m, n)), 1e3 * ALGEBRA, "combinations of rows that vanish")


def test_a_row_that_almost_vanishes_is_eliminated_last() -> None:
    """The first row is short and slightly out of the plane of the others. In written order it would count as independent."""
    A = np.array([[1e-3, 1e-3, 2e-8], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.5, 0.5, 0.0]])
    size = ca.SX(np.sum(A**2, axis=1))
    good, bad = (orthogonalise(ca.SX(A), ca.SX(4, 0), TOLERANCE, size, groups=groups) for groups in ([range(4)], None))
    assert float(ca.DM(good.rank)) == 2 and float(ca.DM(bad.rank)) == 3
    close(numbers(good.Q.T @ good.Q), np.diag([1.0, 1.0, 0.0]), 1e-9, "projector")
    assert numbers(good.left)[0, 0] < TOLERANCE**2 < numbers(good.left)[1, 0]
    assert numbers(good.independent).T.tolist() == [[0.0, 1.0, 1.0, 0.0]]


def test_the_first_of_equal_rows_counts_and_groups_keep_their_order() -> None:
    A = np.array([[1.0, 2.0, 0.0], [1.0, 2.0, 0.0], [3.0, 0.0, 1.0]])
    assert numbers(orthogonalise(ca.SX(A), ca.SX(3, 0), TOLERANCE, groups=[range(3)]).independent)[:2, 0].tolist() == [1.0, 0.0]
    later = orthogonalise(ca.SX(A), ca.SX(A @ np.ones((3, 1))), TOLERANCE, groups=[[1], [0, 2]])
    assert numbers(later.independent)[:, 0].tolist() == [0.0, 1.0, 1.0]


def test_elimination_does_not_mix_blocks_without_shared_columns() -> None:
    """Elimination creates no new entries between the blocks of a chain of loops."""
    A = np.zeros((6, 6))
    A[:3, :3], A[3:, 3:] = dependent(np.random.default_rng(1), 3, 3, 2), dependent(np.random.default_rng(2), 3, 3, 2)
    rows = orthogonalise(ca.sparsify(ca.SX(A)), ca.SX(6, 0), TOLERANCE, groups=[range(3), range(3, 6)])
    assert float(ca.DM(rows.rank)) == 4
    assert all(i < 3 for step in rows.steps[:3] for i, _ in step.spread)


@pytest.mark.parametrize(("m", "n", "rank"), SHAPES)
def test_semidefinite_systems_best_pivot_first(m: int, n: int, rank: int) -> None:
    random = np.random.default_rng(m * n)
    A = dependent(random, m, n, rank)
    b = A @ random.normal(size=(n, 2))
    found = solve_semidefinite(ca.SX(A @ A.T), ca.SX(b), TOLERANCE, groups=[range(m)])
    assert numbers(found.independent).sum() == rank
    close(A.T @ numbers(found.x), np.linalg.pinv(A, rcond=1e-9) @ b, 1e6 * ALGEBRA, "smallest solution by A A^T")
    short = solve_semidefinite(ca.SX(A @ A.T), ca.SX(b), TOLERANCE, ca.SX.zeros(m, 1), groups=[range(m)])
    assert numbers(short.independent).sum() == 0


def test_blocks_along_a_chain_of_loops() -> None:
    """Forty loops, each with two columns shared with the next and one dependent row, eliminated by A A^T block by block."""
    random, loops = np.random.default_rng(7), 40
    A, blocks = np.zeros((3 * loops, 2 * loops + 2)), []
    for i in range(loops):
        A[3 * i : 3 * i + 3, 2 * i : 2 * i + 4] = dependent(random, 3, 4, 2)
        blocks.append([[3 * i, 3 * i + 1, 3 * i + 2]])
    x = random.normal(size=(A.shape[1], 1))
    found = minimum_norm(ca.sparsify(ca.SX(A)), TOLERANCE, ca.SX.ones(len(A), 1), None, blocks)
    assert float(ca.DM(found.rank)) == 2 * loops == np.linalg.matrix_rank(A, 1e-9)
    close(numbers(found.solve(ca.SX(A @ x))), np.linalg.pinv(A, rcond=1e-9) @ A @ x, 1e-9, "smallest solution")


@pytest.mark.parametrize(("left", "size", "rank"), [(2e-3, 1, 2), (8e-4, 1, 1), (8e-4, 9, 1), (2e-3, 0.1, 1), (1, 0, 0)])
def test_a_row_is_independent_if_its_remainder_exceeds_the_tolerance(left: float, size: float, rank: int) -> None:
    """The remainder is relative to the row's length, or to its typical length if that is larger."""
    A, sizes = 10 * ca.SX(ca.DM([[1, 0], [1, left]])), ca.SX(ca.DM([size, size]))
    assert float(ca.DM(orthogonalise(A, ca.SX(2, 0), 1e-3, sizes).rank)) == rank
    assert numbers(solve_semidefinite(A @ A.T, ca.SX(2, 1), 1e-3, sizes).independent).sum() == rank


@pytest.mark.parametrize(("left", "size", "rank"), [(1e-4, 1, 2), (1e-5, 1, 1), (1e-4, 0.01, 1), (2.5e-5, 9, 1), (1, 0, 0)])
def test_by_gram_a_row_is_independent_if_its_remainder_exceeds_3e_5_of_its_length(left: float, size: float, rank: int) -> None:
    A, sizes = 10 * ca.SX(ca.DM([[1, 0], [1, left]])), ca.SX(ca.DM([size, size]))
    assert float(ca.DM(minimum_norm_by_gram(A, TOLERANCE, sizes).rank)) == rank


def test_overlaps_are_blocks_of_the_pseudo_inverse() -> None:
    """Blocks of (A A^T)^-1 for independent rows, in any order of elimination; those of dropped rows are zero."""
    A = np.random.default_rng(8).normal(size=(7, 9)) * (np.abs(np.subtract.outer(range(7), range(9)) + 1) < 2)
    A[6] = A[5]
    found = minimum_norm_by_gram(ca.sparsify(ca.SX(ca.DM(A))), TOLERANCE, ca.SX.ones(7, 1))
    independent = numbers(found.independent).ravel()
    assert independent[:5].all() and independent.sum() == 6 == float(ca.DM(found.rank))
    at = np.flatnonzero(independent)
    whole = np.zeros((7, 7))
    whole[np.ix_(at, at)] = np.linalg.inv(A[at] @ A[at].T)
    for block, x in zip([[2, 0, 5], [6], [1, 3]], found.overlaps([[2, 0, 5], [6], [1, 3]]), strict=True):
        close(numbers(x), whole[np.ix_(block, block)], 1e6 * ALGEBRA, f"rows {block}")


def test_a_damped_solution_is_the_smallest_for_small_residuals() -> None:
    A = dependent(np.random.default_rng(3), 5, 4, 2)
    b = A @ np.random.default_rng(4).normal(size=(4, 1))
    for size, allowed in ((1e-3, 1e-6), (1e-6, 1e-8)):
        x = numbers(damped(ca.SX(A), ca.SX(size * b), TOLERANCE))
        close(x, size * np.linalg.pinv(A, rcond=1e-9) @ b, allowed, "close to the solution", scale=size)
    far = numbers(damped(ca.SX(A), ca.SX(10 * b), TOLERANCE))
    assert np.linalg.norm(far) < np.linalg.norm(10 * np.linalg.pinv(A, rcond=1e-9) @ b)


def test_null_space_of_any_rows() -> None:
    Q, _ = np.linalg.qr(np.random.default_rng(5).normal(size=(6, 6)))
    for rank in range(7):
        N, nonzero = null_space(ca.SX(Q[:rank]), TOLERANCE)
        assert numbers(nonzero).sum() == 6 - rank
        close(numbers(N.T @ N), np.eye(6) - Q[:rank].T @ Q[:rank], 1e2 * ALGEBRA, "projector onto the null space", scale=1.0)


def test_connected_parts() -> None:
    assert connected([{1}, {2}, {1, 3}, {4}, {3, 2}, set()]) == [[3], [0, 1, 2, 4], [5]]
