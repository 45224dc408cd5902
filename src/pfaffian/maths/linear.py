"""Linear algebra that traces: no pivoting, no branches, structural zeros kept.

A rank decision is a factor of 1 or 0: where the remainder of a row is below its tolerance, it becomes zero. A select would be
pushed by CasADi into every product it takes part in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import casadi as ca

from pfaffian.maths.so3 import symmetric

NOTHING = 1e-300
"""Below any squared length that counts: what is not kept is divided by this at least, and stays finite."""


class Orthogonal(NamedTuple):
    """Rows A X = B in orthonormal form: Q X = D.

    Q: (m, n) orthonormal rows, zero where the row depended on those before it.   D: (m, k).   kept: (m, 1) of 1 and 0.
    left: (m, 1) squared length that remained of each row, relative to what it typically is.
    rest: (m, k) right-hand sides left on dropped rows, zero on kept ones: not zero means that rows contradict each other.
    taken: for each row what was taken off it, (row, part) in turn.   scale: of each row, 1 / length or 0.
    """

    Q: ca.SX
    D: ca.SX
    kept: ca.SX
    left: ca.SX
    rest: ca.SX
    taken: tuple[tuple[tuple[int, ca.SX], ...], ...]
    scale: tuple[ca.SX, ...]

    @property
    def rank(self) -> ca.SX:
        return ca.sum1(self.kept)

    def carry(self, B: ca.SX) -> tuple[ca.SX, ca.SX]:
        """D and rest of other right-hand sides B (m, k)."""
        D: list[ca.SX] = []
        rest: list[ca.SX] = []
        for i, (scale, taken) in enumerate(zip(self.scale, self.taken, strict=True)):
            r = B[i, :]
            for j, part in taken:
                r = r - part * D[j]
            D.append(r * scale)
            rest.append((1 - self.kept[i]) * r)
        nothing = ca.SX(0, B.shape[1])
        return ca.densify(ca.vertcat(nothing, *D)), ca.vertcat(nothing, *rest)


def orthogonalise(
    A: ca.SX, B: ca.SX, tolerance: float, size: ca.SX | None = None, counted: ca.DM | None = None, *, passes: int = 2
) -> Orthogonal:
    """Rank-revealing orthonormal rows by modified Gram-Schmidt, every row twice unless one pass does.

    Row i is kept if what remains of it, relative to its own length, exceeds `tolerance`; a row that is short of its
    typical length must have that much more left. A dropped row and its right-hand side become zero. Q^T Q is the
    orthogonal projector onto the row space and X = Q^T D the smallest solution.

    Args:
        A: (m, n), any rank.   B: (m, k) right-hand sides, carried along.   tolerance: [1].
        size: (m, 1) squared length of each row relative to what it typically is; ones if not given.
        counted: (1, n) what each column counts where lengths are compared, ones if not given: columns much larger than others
            would make rows look dependent that differ in the others only.
        passes: 1 for rows that are orthonormal only as far as A is well conditioned, at half the cost; see `smallest`.
    """
    m, n = A.shape
    Q: list[ca.SX] = []
    taken: list[list[tuple[int, ca.SX]]] = []
    scale, kept, lefts = [], [], []
    for i in range(m):
        r = ca.sparsify(A[i, :])
        own = _squared(r, counted)
        taken.append([])
        for _ in range(passes):
            for j, q in enumerate(Q):
                if _overlap(q, r):
                    part = ca.dot(q, r)
                    taken[i].append((j, part))
                    r = r - part * q
        left = _squared(r, counted)
        weighted = left if size is None else left * ca.fmin(1, size[i])
        keep = weighted > tolerance**2 * own
        scale.append(keep / ca.sqrt(ca.fmax(_squared(r), NOTHING)))
        Q.append(r * scale[i])
        kept.append(keep)
        lefts.append(weighted / ca.fmax(own, NOTHING))

    none = ca.SX(0, 1)
    Q_, kept_, left_ = ca.vertcat(ca.SX(0, n), *Q), ca.vertcat(none, *kept), ca.vertcat(none, *lefts)
    bare = Orthogonal(Q_, none, kept_, left_, none, tuple(map(tuple, taken)), tuple(scale))
    D, rest = bare.carry(B)
    return bare._replace(D=D, rest=rest)


def smallest(rows: Orthogonal, B: ca.SX) -> ca.SX:
    """X (n, k) smallest with A X = B (m, k), as accurate after one pass as after two: where Q^T D would add up what the rows
    overlap, each row adds what the later ones have left to it. [Bjoerck and Paige 1994]"""
    D, _ = rows.carry(B)
    X = ca.SX(rows.Q.shape[1], B.shape[1])
    for i in reversed(range(rows.Q.shape[0])):
        q = ca.sparsify(rows.Q[i, :])
        X = X + q.T @ (D[i, :] - q @ X)
    return X


def _squared(r: ca.SX, counted: ca.DM | None = None) -> ca.SX:
    """Squared length of a row (1, n), its entries counted as told."""
    r = r if counted is None else r * counted
    return ca.dot(r, r)


def _overlap(a: ca.SX, b: ca.SX) -> bool:
    return bool(set(a.sparsity().get_col()) & set(b.sparsity().get_col()))


def handedness(Q: ca.SX) -> ca.SX:
    """The determinant of an orthogonal Q (n, n), 1 or -1, by reflections of its columns; 1 of nothing."""
    sign = ca.SX(1)
    while Q.shape[0]:
        side = ca.if_else(Q[0, 0] < 0, -1, 1)
        w = Q[:, 0] + side * ca.SX.eye(Q.shape[0])[:, 0]
        Q = (Q - w @ (w.T @ Q) / (1 + ca.fabs(Q[0, 0])))[1:, 1:]
        sign *= side
    return sign


def null_space(Q: ca.SX, tolerance: float) -> tuple[ca.SX, ca.SX]:
    """Orthonormal rows (n, n) that span the null space of orthonormal rows Q (m, n), and which of them are not zero.

    A row of I - Q^T Q is dropped if less than `tolerance` of it is left: compared with 1, not with its own length.
    """
    n = Q.shape[1]
    P = ca.SX.eye(n) - Q.T @ Q
    basis = orthogonalise(P, ca.SX(n, 0), tolerance, ca.sum2(P * P))
    return basis.Q, basis.kept


def solve_definite(A: ca.SX, B: ca.SX) -> ca.SX:
    """A^-1 B by LU without pivoting, for A (n, n) with x^T A x > 0, symmetric or not.

    Elimination keeps that property, so every pivot is positive; growth stays small for the matrices used here.
    """
    return _eliminate(A, B, lambda U: U)


def solve_symmetric(A: ca.SX, B: ca.SX) -> ca.SX:
    """A^-1 B for a symmetric positive definite A (n, n), of which the upper half is read: half of `solve_definite`'s work."""
    return _eliminate(symmetric(A), B, symmetric)


def _eliminate(A: ca.SX, B: ca.SX, whole: Callable[[ca.SX], ca.SX]) -> ca.SX:
    """A^-1 B by elimination from the first column on.   whole: what is left of A -> the same from the part that is computed."""
    n = A.shape[0]
    U, X = ca.densify(A), ca.densify(B)
    pivots = []
    for k in range(n):
        pivots.append(1 / U[k, k])
        if k + 1 < n:
            l = U[k + 1 :, k] * pivots[k]
            U[k + 1 :, k + 1 :] = whole(U[k + 1 :, k + 1 :] - l @ U[k, k + 1 :])
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

    G: (m, m) positive semidefinite.   b: (m, k).   x is a solution if b is in the range of G, zero on skipped rows.
    """
    m = G.shape[0]
    S, x, own = ca.densify(G), ca.densify(b), ca.diag(G)
    rows, kept = [], []
    for k in range(m):
        weighted = S[k, k] if size is None else S[k, k] * ca.fmin(1, size[k])
        keep = weighted > tolerance**2 * own[k]
        inverse = keep / ca.fmax(S[k, k], NOTHING)
        l = S[k + 1 :, k] * inverse
        S[k + 1 :, k + 1 :] = S[k + 1 :, k + 1 :] - l @ S[k + 1 :, k].T
        x[k + 1 :, :] = x[k + 1 :, :] - l @ x[k, :]
        x[k, :] = x[k, :] * inverse
        rows.append(l)
        kept.append(keep)
    for k in reversed(range(m)):
        x[k, :] = kept[k] * (x[k, :] - rows[k].T @ x[k + 1 :, :])
    return Semidefinite(x, ca.vertcat(*kept))
