"""Solutions of smallest norm are as accurate after one pass of Gram-Schmidt as after two, for any condition number."""

import casadi as ca
import numpy as np
import pytest

from pfaffian.maths.linear import orthogonalise, smallest
from pfaffian.maths.minimum_norm import minimum_norm

BACKWARD = 50 * np.finfo(float).eps
"""Error relative to |X| cond(A) of a backward stable solution, for rows as close to dependent as RANK_TOLERANCE allows."""


def rows_of(condition: float, seed: int, m: int = 5, n: int = 9) -> np.ndarray:
    random = np.random.default_rng(seed)
    U, V = (np.linalg.qr(random.normal(size=(k, k)))[0] for k in (m, n))
    return U @ np.diag(np.geomspace(1, 1 / condition, m)) @ V[:m]


@pytest.mark.parametrize("condition", [1.0, 1e2, 1e4])
@pytest.mark.parametrize("seed", range(5))
def test_one_pass_is_as_accurate_as_lapack(condition, seed):
    A = rows_of(condition, seed)
    expected = np.random.default_rng(seed + 9).normal(size=(5, 2))
    X = A.T @ expected  # in the row space, so that X is the smallest solution for the right-hand side A X
    rows = orthogonalise(ca.SX(ca.DM(A)), ca.SX(5, 0), 1e-5, passes=1)
    found = np.array(ca.DM(smallest(rows, ca.SX(ca.DM(A @ X)))))
    assert np.abs(found - X).max() <= BACKWARD * condition * np.abs(X).max()
    assert float(rows.rank) == 5


def test_the_plain_product_is_less_accurate():
    """Q^T D counts overlaps of rows twice after one pass, so each row must add only what the later rows leave."""
    worst = {"plain": 0.0, "in turn": 0.0}
    for seed in range(20):
        A = rows_of(3e4, seed)
        X = np.linalg.qr(A.T)[0] @ np.random.default_rng(seed).normal(size=(5, 1))  # equal parts along short and long rows
        B = ca.SX(ca.DM(A @ X))
        rows = orthogonalise(ca.SX(ca.DM(A)), B, 1e-5, passes=1)
        for name, found in (("plain", rows.Q.T @ rows.D), ("in turn", smallest(rows, B))):
            off = np.abs(A @ np.array(ca.DM(found)) - A @ X).max() / np.abs(A @ X).max()
            worst[name] = max(worst[name], off)
    assert worst["in turn"] <= BACKWARD
    assert worst["plain"] > 100 * worst["in turn"]


def test_dependent_rows_are_left_out():
    A = rows_of(10.0, 3)
    doubled = ca.SX(ca.DM(np.vstack([A[:2], A[:1] + A[1:2], A[2:]])))
    X = A.T @ np.ones((5, 1))
    rows = orthogonalise(doubled, ca.SX(6, 0), 1e-5, passes=1)
    assert np.array_equal(ca.DM(rows.independent).full().ravel(), [1, 1, 0, 1, 1, 1])
    assert np.abs(np.array(ca.DM(smallest(rows, doubled @ ca.SX(ca.DM(X))))) - X).max() <= 1e-13


@pytest.mark.parametrize("blocks", [None, [[[0, 2, 4]], [[1]], [[3]], [[5]]]], ids=["alone", "in a group"])
def test_the_smallest_combination_of_rows(blocks):
    """The smallest L with A^T L = X: dependent rows share the coefficient that one of them alone has in a
    basic combination."""
    A = rows_of(10.0, 3)
    A = np.vstack([A[:2], A[:1] + A[3:4], A[2:4], A[4:]])[[0, 1, 4, 3, 2, 5]]
    X = A.T @ np.random.default_rng(1).normal(size=(6, 2))
    found = minimum_norm(ca.SX(ca.DM(A)), 1e-5, ca.SX.ones(6, 1), blocks=blocks)
    assert found.rows is not None and float(found.rank) == 5
    B = ca.SX(ca.DM(A @ X))
    L = np.array(ca.DM(found.combination(B)))
    np.testing.assert_allclose(L, np.linalg.pinv(A.T, rcond=1e-9) @ X, rtol=0, atol=1e-12)
    basic = np.array(ca.DM(found.basic_combination(B)))
    np.testing.assert_allclose(A.T @ basic, X, rtol=0, atol=1e-12)
    assert blocks is not None or np.count_nonzero(basic.any(axis=1)) == 5
