"""The smallest singular value, beside NumPy's."""

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
def test_of_random_matrices(shape):
    """Of full rank, short of it by one and by all but one, and of any scale: to rounding of the largest."""
    random, k = np.random.default_rng(7), shape[0]
    given = [random.normal(size=shape) * 10.0**p for p in (0, 0, 0, -6, 5)]
    for rank in {max(k - 1, 0), min(k - 1, 1)}:
        given.append(random.normal(size=(k, rank)) @ random.normal(size=(rank, shape[1])))
    sizes = [np.linalg.svd(x)[1] for x in given]
    off = [abs(x - s[-1]) / max(s[0], 1e-300) for x, s in zip(of(*given), sizes, strict=True)]
    assert max(off) < 3e-15, off


def test_of_matrices_whose_pivots_vanish():
    """Entries that halving meets exactly, in any order, with nothing between them; and no number stays none."""
    given = [np.diag(x) for x in ((1, 0.5, 0.25), (0.25, 0.5, 1), (1, 0.5, 0.1), (0.5, 0, 1), (1.0, 1, 1), (0.0, 0, 0))]
    given.append(np.triu(np.ones((3, 3))) - np.diag((0, 1, 0)))
    assert np.abs(of(*given) - [np.linalg.svd(x)[1][-1] for x in given]).max() < 1e-15
    assert np.isnan(of(np.full((3, 3), np.nan)))


def test_it_is_short():
    """Jacobi's rotations took 220,000 operations here, and its compiler most of a minute."""
    G = ca.SX.sym("G", 15, 17)
    assert ca.Function("f", [G], [smallest_singular_value(G)]).n_instructions() < 25_000
