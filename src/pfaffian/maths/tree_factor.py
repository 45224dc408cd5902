"""Factor a mass matrix as M = W W^T along a tree, and solve with the factor: no fill-in, no pivoting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import casadi as ca


class TreeFactor(NamedTuple):
    """M = W W^T, W = L^T, with L lower triangular and zero wherever the tree has no path: no fill-in.

    L: for each row {column: entry} below the diagonal.   diagonal, inverse: the diagonal entries of L, and 1 / these.
    """

    L: tuple[dict[int, ca.SX], ...]
    diagonal: tuple[ca.SX, ...]
    inverse: tuple[ca.SX, ...]

    @property
    def W(self) -> ca.SX:
        """(n, n) upper triangular factor."""
        n = len(self.L)
        W = ca.SX(n, n)
        for k in range(n):
            W[k, k] = self.diagonal[k]
            for j, entry in self.L[k].items():
                W[j, k] = entry
        return W


def factor_tree(M: ca.SX, parents: Sequence[int]) -> TreeFactor:
    """Factor a positive definite M = L^T L from the leaves to the root; a matrix that is not positive definite yields NaN.

    Args:
        M: (n, n) symmetric. M[i, j] may differ from zero only if one of i and j is on the path from the other to the root.
        parents: for each coordinate the next one on the path to the root, -1 at the root; range(-1, n - 1) for a matrix
            without a tree.
    """
    n = M.shape[0]
    rows = [{j: M[k, j] for j in _path(parents, k)} for k in range(n)]
    diagonal, inverse = [ca.SX(0)] * n, [ca.SX(0)] * n
    for k in reversed(range(n)):
        diagonal[k] = ca.sqrt(rows[k].pop(k))
        inverse[k] = 1 / diagonal[k]
        rows[k] = {j: entry * inverse[k] for j, entry in rows[k].items() if not entry.is_zero()}
        for i, a in rows[k].items():
            for j, b in rows[k].items():
                if j <= i:
                    rows[i][j] = rows[i].get(j, ca.SX(0)) - a * b
    return TreeFactor(tuple(rows), tuple(diagonal), tuple(inverse))


def _path(parents: Sequence[int], k: int) -> list[int]:
    """The coordinates from k to the root."""
    path = [k]
    while parents[path[-1]] >= 0:
        path.append(parents[path[-1]])
    return path


def solve_W(F: TreeFactor, B: ca.SX) -> ca.SX:
    """W^-1 B (n, k), as in u = W^-1 f and Lam^T = W^-1 A^T, skipping structural zeros."""
    x = _rows(B)
    for k in reversed(range(len(F.L))):
        if x[k].nnz():
            x[k] = x[k] * F.inverse[k]
            for j, entry in F.L[k].items():
                x[j] = x[j] - x[k] * entry
    return ca.vertcat(ca.SX(0, B.shape[1]), *x)


def solve_WT(F: TreeFactor, B: ca.SX) -> ca.SX:
    """W^-T B (n, k), which turns quasi-velocities into velocities, skipping structural zeros."""
    x = _rows(B)
    for k, row in enumerate(F.L):
        before = sum((entry * x[j] for j, entry in row.items() if x[j].nnz()), ca.SX(*x[k].shape))
        x[k] = (x[k] - before) * F.inverse[k]
    return ca.vertcat(ca.SX(0, B.shape[1]), *x)


def multiply_W(F: TreeFactor, B: ca.SX) -> ca.SX:
    """W B (n, k), as in f = W u."""
    b = _rows(B)
    out = [F.diagonal[k] * b[k] for k in range(len(F.L))]
    for k, row in enumerate(F.L):
        for j, entry in row.items():
            out[j] = out[j] + entry * b[k]
    return ca.vertcat(ca.SX(0, B.shape[1]), *out)


def multiply_WT(F: TreeFactor, b: ca.SX) -> ca.SX:
    """W^T b (n, 1), which turns velocities into quasi-velocities."""
    return ca.vertcat(
        ca.SX(0, 1),
        *[F.diagonal[k] * b[k] + sum((entry * b[j] for j, entry in row.items()), ca.SX(0)) for k, row in enumerate(F.L)],
    )


def solve_M(F: TreeFactor, B: ca.SX) -> ca.SX:
    """M^-1 B (n, k)."""
    return solve_WT(F, solve_W(F, B))


def _rows(B: ca.SX) -> list[ca.SX]:
    """The rows of B (n, k), without entries that are zero: a few operations on whole rows are quicker than many on entries."""
    return list(ca.vertsplit(ca.sparsify(B)))
