"""Bases of subspaces that do not depend on rounding."""

import numpy as np
import pytest

from pfaffian.maths.span import basis, complement

RANDOM = np.random.default_rng(5)


def orthonormal(n, k):
    return np.linalg.qr(RANDOM.normal(size=(n, k)))[0]


@pytest.mark.parametrize("k", range(6))
def test_a_basis_spans_the_range(k):
    V = orthonormal(5, k) if k else np.zeros((5, 0))
    Q = basis(V @ V.T)
    assert Q.shape == (5, k) and np.abs(Q.T @ Q - np.eye(k)).max(initial=0) < 1e-14
    assert np.abs(Q @ Q.T - V @ V.T).max() < 1e-14


def test_a_basis_does_not_depend_on_rounding():
    """If several coordinates are equally near to the subspace, the first is chosen in spite of rounding."""
    even = np.eye(4) - np.full((4, 4), 0.25)
    expected = basis(even)
    assert expected[0, 0] > 0.8 and np.abs(expected[:, 0] - even[0] / np.linalg.norm(even[0])).max() < 1e-15
    for _ in range(20):
        noise = RANDOM.normal(size=(4, 4))
        assert np.abs(basis(even + 1e-15 * (noise + noise.T)) - expected).max() < 1e-13


def test_a_null_space_depends_only_on_the_span_of_the_rows():
    """The basis of the null space does not change if the rows are combined, repeated or scaled."""
    rows = RANDOM.normal(size=(2, 5))
    expected = complement(rows, 1e-9)
    assert expected.shape == (5, 3) and np.abs(rows @ expected).max() < 1e-14
    mixed = RANDOM.normal(size=(4, 2)) @ rows
    assert np.abs(complement(mixed, 1e-9) - expected).max() < 1e-12
    assert (complement(np.zeros((0, 3)), 1e-9) == np.eye(3)).all()
    almost = np.vstack([rows, rows[0] + 1e-6 * orthonormal(5, 1).T])
    assert complement(almost, 1e-5).shape == (5, 3) and complement(almost, 1e-9).shape == (5, 2)
    assert complement(np.zeros((2, 3)), 1e-9).shape == (3, 3)
