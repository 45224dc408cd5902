"""The smallest solution of wide rows and the directions that they leave, beside NumPy."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

from pfaffian.maths.spare import smallest_and_spare
from tests.tolerance import PEER

TOLERANCE = 1e-9


def found(A: np.ndarray, b: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, ...]:
    at = [ca.SX.sym("A", *A.shape), ca.SX.sym("b", len(b)), ca.SX.sym("size", len(b))]
    f = ca.Function("f", at, list(smallest_and_spare(at[0], at[1], TOLERANCE, at[2])))
    x, independent, spare = (np.array(y) for y in f(A, b, size))
    return x.ravel(), independent.ravel(), spare


@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (3, 3), (3, 4), (6, 8), (2, 7)])
def test_beside_numpy(shape: tuple[int, int]) -> None:
    random, (m, n) = np.random.default_rng(4), shape
    for condition in (1.0, 1e6):
        A = np.geomspace(1, 1 / condition, m)[:, None] * random.normal(size=shape) * random.choice([-1, 1], size=n)
        b = A @ random.normal(size=n)
        x, independent, S = found(A, b, np.ones(m))
        assert independent.all()
        np.testing.assert_allclose(x, np.linalg.pinv(A, rcond=1e-14) @ b, atol=PEER * condition)
        rows = np.vstack([A / np.linalg.norm(A, axis=1)[:, None], S])
        np.testing.assert_allclose(S @ rows.T, np.eye(n)[m:], atol=PEER)


def test_rows_that_depend_on_others() -> None:
    """The second row is twice the first, the third vanishes, the last is tiny beside what is typical of it."""
    A = np.array([[1.0, 2, 3, 0, 1], [2, 4, 6, 0, 2], [0, 0, 0, 0, 0], [1e-12, 0, 0, 2e-12, 0]])
    x, independent, S = found(A, np.array([4.0, 8, 0, 1]), np.array([1, 1, 1, 1e-20]))
    np.testing.assert_array_equal(independent, [1, 0, 0, 0])
    np.testing.assert_allclose(A[:3] @ x, [4, 8, 0], atol=PEER)
    np.testing.assert_allclose(S @ np.vstack([A[0], S]).T, [[0, 1]], atol=PEER)
    assert found(A[[3]], np.array([1.0]), np.ones(1))[1].all()
