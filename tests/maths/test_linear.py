"""Linear algebra on CasADi expressions, compared with NumPy."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

from pfaffian.maths.linear import ROUNDING, handedness, root, solve_symmetric
from tests.tolerance import ALGEBRA, close


@pytest.mark.parametrize("n", range(7))
def test_handedness_is_the_determinant(n: int) -> None:
    random = np.random.default_rng(n)
    for _ in range(6):
        Q, _ = np.linalg.qr(random.normal(size=(n, n)))
        close(float(ca.DM(handedness(ca.SX(Q)))), np.linalg.det(Q), ALGEBRA, "determinant of an orthogonal matrix")


def test_handedness_of_permutations() -> None:
    swap = ca.SX(ca.DM([[0, 1, 0], [1, 0, 0], [0, 0, 1]]))
    assert float(ca.DM(handedness(swap))) == -1
    assert float(ca.DM(handedness(swap[[1, 0, 2], :]))) == 1


@pytest.mark.parametrize("n", range(1, 8))
def test_symmetric_systems_read_the_upper_half(n: int) -> None:
    """Only the upper half of the matrix is given. Its entries differ as much as masses and inertias do."""
    random = np.random.default_rng(n)
    for spread in (1.0, 1e4):
        sizes, R = spread ** random.uniform(-0.5, 0.5, n), random.normal(size=(n, n))
        A, B = sizes[:, None] * (R @ R.T + np.eye(n)) * sizes, random.normal(size=(n, 3))
        X = np.array(ca.DM(solve_symmetric(ca.SX(np.triu(A)), ca.SX(B))))
        close(sizes[:, None] * X, sizes[:, None] * np.linalg.solve(A, B), ALGEBRA * n * np.linalg.cond(R @ R.T + np.eye(n)),
              "A^-1 B", scale=np.abs(sizes[:, None] * X).max())  # fmt: skip


@pytest.mark.parametrize("rank", range(5))
def test_the_root_of_a_semidefinite_matrix(rank: int) -> None:
    """R^T R = G with R upper triangular, also where some directions have no weight, in units that differ as N and N m do."""
    random = np.random.default_rng(rank)
    A = random.normal(size=(rank, 4)) * np.array([1.0, 1e3, 1e-2, 1.0])
    G = A.T @ A
    R = np.array(ca.DM(root(ca.SX(G))))
    size = np.sqrt(np.diag(G))
    assert not np.tril(R, -1).any() and np.count_nonzero(np.diag(R)) == rank
    assert (np.abs(R.T @ R - G) <= 2 * ROUNDING * np.outer(size, size)).all()
