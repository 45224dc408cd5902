"""The smallest singular value, compared with NumPy's."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

from pfaffian.maths.roots import smallest_singular_value


def of(*matrices: np.ndarray) -> np.ndarray:
    G = ca.SX.sym("G", *matrices[0].shape)
    f = ca.Function("f", [G], [smallest_singular_value(G)])
    return np.array([float(f(x)) for x in matrices])


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (2, 2), (3, 8), (6, 6), (15, 17)])
def test_random_matrices(shape):
    """Matrices of any scale, of full rank, rank deficient by one, and of rank one; errors relative to the largest value."""
    random, k = np.random.default_rng(7), shape[0]
    given = [random.normal(size=shape) * 10.0**p for p in (0, 0, 0, -6, 5)]
    for rank in {max(k - 1, 0), min(k - 1, 1)}:
        given.append(random.normal(size=(k, rank)) @ random.normal(size=(rank, shape[1])))
    sizes = [np.linalg.svd(x)[1] for x in given]
    off = [abs(x - s[-1]) / max(s[0], 1e-300) for x, s in zip(of(*given), sizes, strict=True)]
    assert max(off) < 3e-15, off


def test_matrices_whose_pivots_vanish():
    """Diagonal matrices whose values bisection hits exactly, in any order, also repeated. A NaN gives NaN."""
    given = [np.diag(x) for x in ((1, 0.5, 0.25), (0.25, 0.5, 1), (1, 0.5, 0.1), (0.5, 0, 1), (1.0, 1, 1), (0.0, 0, 0))]
    given.append(np.triu(np.ones((3, 3))) - np.diag((0, 1, 0)))
    assert np.abs(of(*given) - [np.linalg.svd(x)[1][-1] for x in given]).max() < 1e-15
    assert np.isnan(of(np.full((3, 3), np.nan)))


def test_it_takes_few_operations():
    """Jacobi rotations took 220,000 operations for this matrix, and most of a minute to compile."""
    G = ca.SX.sym("G", 15, 17)
    assert ca.Function("f", [G], [smallest_singular_value(G)]).n_instructions() < 25_000
