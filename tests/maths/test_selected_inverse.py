"""Pivots of a sparse symmetric factor, and entries of its inverse."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

from pfaffian.maths.selected_inverse import entries, factor


@pytest.mark.parametrize("seed", range(6))
def test_the_next_pivot_has_the_fewest_neighbours(seed: int) -> None:
    """Candidates are the pivots that wait for no others; of equal ones the first is chosen. The inverse agrees with NumPy."""
    random, m = np.random.default_rng(seed), 12
    G = np.where(random.random((m, m)) < 0.15, random.normal(size=(m, m)), 0.0)
    G = G + G.T + 10 * np.eye(m)
    after = {i: set(random.choice(i, int(random.integers(0, 3)))) for i in range(4, m)} if seed % 2 else {}
    of = factor(ca.sparsify(ca.SX(G)), lambda i, pivot: 1 / pivot, after)
    near = [{j for j in np.flatnonzero(G[i]) if j != i} for i in range(m)]
    waiting = set(range(m))
    for i, column in zip(of.order, of.columns, strict=True):
        ready = [k for k in waiting if not after.get(k, set()) & waiting]
        assert i == min(ready, key=lambda k: (len(near[k]), k)) and set(column) == near[i]
        waiting.remove(i)
        for j in near[i]:
            near[j] |= near[i] - {j}
            near[j].remove(i)
    entry, inverse = entries(of), np.linalg.inv(G)
    for i, j in ((0, 0), (3, 7), (11, 2)):
        np.testing.assert_allclose(float(ca.DM(entry(i, j))), inverse[i, j], atol=1e-14)
