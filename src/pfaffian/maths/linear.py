"""Linear algebra that traces: no pivoting, no branches, structural zeros kept.

A rank decision is a select: where the remainder of a row is below its tolerance, zero is taken instead of a division.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import casadi as ca

NOTHING = 1e-300
"""Below any length that counts; makes 0 of 0 / 0."""


class Orthogonal(NamedTuple):
    """Rows A X = B in orthonormal form: Q X = D.

    Q: (m, n) orthonormal rows, zero where the row depended on those before it.   D: (m, k).   kept: (m, 1) of 1 and 0.
    left: (m, 1) squared length that remained of each row, relative to what it typically is.
    rest: (m, k) right-hand sides left on dropped rows, zero on kept ones: not zero means that rows contradict each other.
    """

    Q: ca.SX
    D: ca.SX
    kept: ca.SX
    left: ca.SX
    rest: ca.SX

    @property
    def rank(self) -> ca.SX:
        return ca.sum1(self.kept)


def orthogonalise(A: ca.SX, B: ca.SX, tolerance: float, size: ca.SX | None = None) -> Orthogonal:
    """Rank-revealing orthonormal rows by modified Gram-Schmidt, every row twice.

    Row i is kept if what remains of it, relative to its own length, exceeds `tolerance`; a row that is short of its
    typical length must have that much more left. A dropped row and its right-hand side become zero. Q^T Q is the
    orthogonal projector onto the row space and X = Q^T D the smallest solution.

    Args:
        A: (m, n), any rank.   B: (m, k) right-hand sides, carried along.   tolerance: [1].
        size: (m, 1) squared length of each row relative to what it typically is; ones if not given.
    """
    m, n = A.shape
    Q: list[ca.SX] = []
    D, kept, lefts, rest = [], [], [], []
    for i in range(m):
        r = ca.sparsify(ca.horzcat(A[i, :], B[i, :]))
        own = ca.dot(r[:n], r[:n])
        for _ in range(2):
            for q in Q:
                if _overlap(q[:n], r[:n]):
                    r = r - ca.dot(q[:n], r[:n]) * q
        left = ca.dot(r[:n], r[:n])
        weighted = left if size is None else left * ca.fmin(1, size[i])
        keep = weighted > tolerance**2 * own
        q = r * ca.if_else(keep, 1 / ca.sqrt(left), 0)
        Q.append(q)
        D.append(q[n:])
        kept.append(keep)
        lefts.append(weighted / ca.fmax(own, NOTHING))
        rest.append(ca.if_else(keep, 0, 1) * r[n:])
    if not Q:
        return Orthogonal(ca.SX(0, n), ca.SX(0, B.shape[1]), ca.SX(0, 1), ca.SX(0, 1), ca.SX(0, B.shape[1]))
    parts = [q[:n] for q in Q], D, kept, lefts, rest
    Q_, D_, kept_, left_, rest_ = (ca.vertcat(*x) for x in parts)
    return Orthogonal(Q_, ca.densify(D_), kept_, left_, rest_)


class MinimumNorm(NamedTuple):
    """X: (n, k) smallest with A X = B.   rank: (1, 1) of A.   left: (m, 1) as in Orthogonal, rows in the order of A or not."""

    X: ca.SX
    rank: ca.SX
    left: ca.SX


def minimum_norm(A: ca.SX, B: ca.SX, tolerance: float, size: ca.SX) -> MinimumNorm:
    """The smallest solution of A X = B, dependent rows left out as in `orthogonalise`, at a cost that follows the sparsity.

    Orthonormal rows, unless they would fill in, as along chains of loops: then A A^T, which stays banded, with one step of
    refinement for the digits that squaring costs. Its pivots are far above rounding where rows are kept at all.
    """
    order, entries = elimination_order(A)
    if entries <= FILL_ACCEPTED * A.nnz():
        rows = orthogonalise(A[order, :], B[order, :], tolerance, size[order])
        return MinimumNorm(rows.Q.T @ rows.D, rows.rank, rows.left)
    return minimum_norm_by_gram(A, B, tolerance, size)


def minimum_norm_by_gram(A: ca.SX, B: ca.SX, tolerance: float, size: ca.SX) -> MinimumNorm:
    """`minimum_norm` by A A^T and one step of refinement, whatever the fill."""
    gram = _factor_gram(A, max(tolerance, GRAM_TOLERANCE), size)
    X = A.T @ _solve_gram(gram, B)
    return MinimumNorm(X + A.T @ _solve_gram(gram, B - A @ X), sum(gram.kept, ca.SX(0)), ca.vertcat(*gram.left))


GRAM_TOLERANCE = 3e-5
"""Smallest length ratio that pivots of A A^T, its square, can tell from rounding."""

FILL_ACCEPTED = 2
"""Times its own entries that a matrix may grow to while its rows are made orthonormal."""


def elimination_order(A: ca.SX) -> tuple[list[int], int]:
    """Order of the rows of a sparse A (m, n) in which orthonormalising them fills in little, and the entries they end with.

    Next comes the row that would end with the fewest, given the blocks that the rows before it have grown into.
    """
    supports = [set(A[i, :].sparsity().get_col()) for i in range(A.shape[0])]
    waiting, order, entries = dict(enumerate(supports)), [], 0
    blocks: list[set[int]] = []
    while waiting:
        i = min(waiting, key=lambda i: (len(waiting[i]), i))
        grown = waiting.pop(i)
        order.append(i)
        entries += len(grown)
        blocks = [b for b in blocks if not b & grown] + [grown]
        for j, support in waiting.items():
            if supports[j] & grown:
                waiting[j] = support | grown
    return order, entries


class _Gram(NamedTuple):
    """A A^T = L D L^T of rows in `order`: below the diagonal {row: entry} for each pivot, 1 / D or 0, what was kept and left."""

    order: list[int]
    columns: list[dict[int, ca.SX]]
    inverse: list[ca.SX]
    kept: list[ca.SX]
    left: list[ca.SX]


def _factor_gram(A: ca.SX, tolerance: float, size: ca.SX) -> _Gram:
    """Pivots with the fewest neighbours first; one that is below tolerance^2 of its diagonal entry is skipped."""
    m = A.shape[0]
    G = ca.sparsify(A @ A.T)
    S: list[dict[int, ca.SX]] = [{} for _ in range(m)]
    for i, j in zip(*G.sparsity().get_triplet(), strict=True):
        S[i][j] = G[i, j]
    waiting, order, columns, inverse, kept, left = set(range(m)), [], [], [], [], []
    while waiting:
        i = min(waiting, key=lambda i: (len(S[i]), i))
        waiting.remove(i)
        pivot = S[i].pop(i, ca.SX(0))
        weighted = pivot * ca.fmin(1, size[i])
        keep = weighted > tolerance**2 * G[i, i]
        r = ca.if_else(keep, 1 / pivot, 0)
        column = {j: entry * r for j, entry in S[i].items()}
        for j, l in column.items():
            del S[j][i]
            for k, entry in S[i].items():
                S[j][k] = S[j].get(k, ca.SX(0)) - l * entry
        order.append(i)
        columns.append(column)
        inverse.append(r)
        kept.append(keep)
        left.append(weighted / G[i, i])
    return _Gram(order, columns, inverse, kept, left)


def _solve_gram(gram: _Gram, B: ca.SX) -> ca.SX:
    x = {i: B[i, :] for i in gram.order}
    for i, column in zip(gram.order, gram.columns, strict=True):
        for j, l in column.items():
            x[j] = x[j] - l * x[i]
    for i, r, column, keep in zip(*(reversed(v) for v in (gram.order, gram.inverse, gram.columns, gram.kept)), strict=True):
        below = sum((l * x[j] for j, l in column.items()), ca.SX.zeros(1, B.shape[1]))
        x[i] = ca.if_else(keep, x[i] * r - below, 0)
    return ca.vertcat(*[x[i] for i in range(len(x))])


def _overlap(a: ca.SX, b: ca.SX) -> bool:
    return bool(set(a.sparsity().get_col()) & set(b.sparsity().get_col()))


def null_space(Q: ca.SX, tolerance: float) -> tuple[ca.SX, ca.SX]:
    """Orthonormal rows (n, n) that span the null space of orthonormal rows Q (m, n), and which of them are not zero.

    A row of I - Q^T Q is dropped if less than `tolerance` of it is left: compared with 1, not with its own length.
    """
    n = Q.shape[1]
    P = ca.SX.eye(n) - Q.T @ Q
    basis = orthogonalise(P, ca.SX(n, 0), tolerance, ca.sum2(P * P))
    return basis.Q, basis.kept


class TreeFactor(NamedTuple):
    """M = W W^T, W = L^T, with L lower triangular and zero wherever the tree leaves no path: no fill-in.

    L: rows as {column: entry} below the diagonal.   diagonal, inverse: of L.
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
    """Factor a positive definite M = L^T L from the leaves to the root.

    Args:
        M: (n, n) symmetric.   parents: for each coordinate the one before it on the path to the root, -1 at the root;
            range(-1, n - 1) for a matrix without a tree. M[i, j] may differ from zero on such paths only.
    A matrix that is not positive definite gives NaN.
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
    path = [k]
    while parents[path[-1]] >= 0:
        path.append(parents[path[-1]])
    return path


def solve_W(F: TreeFactor, B: ca.SX) -> ca.SX:
    """W^-1 B, (n, k): u = W^-1 f, and Lam^T = W^-1 A^T."""
    return _columns(B, lambda b: _solve_upper(F, b))


def solve_WT(F: TreeFactor, B: ca.SX) -> ca.SX:
    """W^-T B, (n, k): from quasi-velocities back to velocities."""
    return _columns(B, lambda b: _solve_lower(F, b))


def multiply_W(F: TreeFactor, b: ca.SX) -> ca.SX:
    """W b, (n, 1): f = W u."""
    out = [F.diagonal[k] * b[k] for k in range(len(F.L))]
    for k, row in enumerate(F.L):
        for j, entry in row.items():
            out[j] = out[j] + entry * b[k]
    return ca.vertcat(*out)


def multiply_WT(F: TreeFactor, b: ca.SX) -> ca.SX:
    """W^T b, (n, 1): quasi-velocities of velocities b."""
    out = [F.diagonal[k] * b[k] for k in range(len(F.L))]
    for k, row in enumerate(F.L):
        for j, entry in row.items():
            out[k] = out[k] + entry * b[j]
    return ca.vertcat(*out)


def solve_M(F: TreeFactor, B: ca.SX) -> ca.SX:
    """M^-1 B, (n, k)."""
    return solve_WT(F, solve_W(F, B))


def _columns(B: ca.SX, solve) -> ca.SX:
    if B.shape[1] == 0:
        return ca.SX(*B.shape)
    return ca.horzcat(*[solve(B[:, i]) for i in range(B.shape[1])])


def _solve_upper(F: TreeFactor, b: ca.SX) -> ca.SX:
    x = {k: b[k] for k in range(len(F.L)) if not b[k].is_zero()}
    for k in reversed(range(len(F.L))):
        if k in x:
            x[k] = x[k] * F.inverse[k]
            for j, entry in F.L[k].items():
                x[j] = x[j] - x[k] * entry if j in x else -(x[k] * entry)
    return _column(x, len(F.L))


def _solve_lower(F: TreeFactor, b: ca.SX) -> ca.SX:
    x: dict[int, ca.SX] = {}
    for k, row in enumerate(F.L):
        terms = [entry * x[j] for j, entry in row.items() if j in x]
        if terms or not b[k].is_zero():
            x[k] = (b[k] - sum(terms, ca.SX(0))) * F.inverse[k]
    return _column(x, len(F.L))


def _column(x: dict[int, ca.SX], n: int) -> ca.SX:
    out = ca.SX(n, 1)
    for k in sorted(x):
        out[k] = x[k]
    return out


def solve_definite(A: ca.SX, B: ca.SX) -> ca.SX:
    """A^-1 B by LU without pivoting, for A (n, n) with x^T A x > 0, symmetric or not.

    Elimination keeps that property, so every pivot is positive; growth stays small for the matrices used here.
    """
    n = A.shape[0]
    U, X = ca.densify(A), ca.densify(B)
    pivots = []
    for k in range(n):
        pivots.append(1 / U[k, k])
        if k + 1 < n:
            l = U[k + 1 :, k] * pivots[k]
            U[k + 1 :, k + 1 :] = U[k + 1 :, k + 1 :] - l @ U[k, k + 1 :]
            X[k + 1 :, :] = X[k + 1 :, :] - l @ X[k, :]
    for k in reversed(range(n)):
        if k + 1 < n:
            X[k, :] = X[k, :] - U[k, k + 1 :] @ X[k + 1 :, :]
        X[k, :] = X[k, :] * pivots[k]
    return X


class Semidefinite(NamedTuple):
    """A solution of G x = b with G (m, m) positive semidefinite, and which pivots were kept."""

    x: ca.SX
    kept: ca.SX


def solve_semidefinite(G: ca.SX, b: ca.SX, tolerance: float, size: ca.SX | None = None) -> Semidefinite:
    """x = G^- b by L D L^T, skipping pivots of dependent rows: the rule of `orthogonalise` for G = A A^T.

    G: (m, m) positive semidefinite.   b: (m, 1).   x is a solution if b is in the range of G, zero on skipped rows.
    """
    m = G.shape[0]
    S, x, own = ca.densify(G), ca.densify(b), ca.diag(G)
    rows, kept = [], []
    for k in range(m):
        weighted = S[k, k] if size is None else S[k, k] * ca.fmin(1, size[k])
        keep = weighted > tolerance**2 * own[k]
        inverse = ca.if_else(keep, 1 / S[k, k], 0)
        l = S[k + 1 :, k] * inverse
        S[k + 1 :, k + 1 :] = S[k + 1 :, k + 1 :] - l @ S[k + 1 :, k].T
        x[k + 1 :, :] = x[k + 1 :, :] - l * x[k]
        x[k] = x[k] * inverse
        rows.append(l)
        kept.append(keep)
    for k in reversed(range(m)):
        x[k] = ca.if_else(kept[k], x[k] - ca.dot(rows[k], x[k + 1 :, :]), 0)
    return Semidefinite(x, ca.vertcat(*kept))
