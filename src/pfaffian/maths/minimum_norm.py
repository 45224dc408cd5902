"""Minimum-norm solutions of A X = B for A of any rank, at a cost that follows the sparsity of A."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.maths.linear import Orthogonal, orthogonalise, smallest
from pfaffian.maths.reflection import NOTHING, columns, reflected_columns
from pfaffian.maths.selected_inverse import SparseFactor, entries, factor


class MinimumNorm(NamedTuple):
    """A factorisation for minimum-norm solutions of A X = B, for any number of right-hand sides B (m, k).

    A: (m, n) the rows that are solved: the given ones, or orthonormal ones within each block.   rank: (1, 1) of A.
    blocks: for each block the indices of its given rows, and their orthonormal form; empty where A are the given rows.
    order, rows: orthonormal rows of A[order]; None where `gram` is used.
    gram: the factor of A A^T; None where `rows` is used.
    """

    A: ca.SX
    rank: ca.SX
    blocks: tuple[tuple[tuple[int, ...], Orthogonal], ...]
    order: tuple[int, ...]
    rows: Orthogonal | None
    gram: Gram | None

    def solve(self, B: ca.SX) -> ca.SX:
        """Smallest X (n, k) with A X = B (m, k)."""
        if self.rows is not None:
            return smallest(self.rows, B[list(self.order), :])
        assert self.gram is not None
        if self.blocks:
            B = ca.vertcat(*[block.carry(B[list(at), :])[0] for at, block in self.blocks])
        X = self.A.T @ _solve_gram(self.gram, B)
        return X + self.A.T @ _solve_gram(self.gram, B - self.A @ X)

    def combination(self, B: ca.SX) -> ca.SX:
        """The smallest L (m, k) with A^T L = X for the X that solves A X = B; needs `rows`.

        X = Q^T D and A = C Q, so that C^T L = D.
        """
        assert self.rows is not None
        D, _ = self.rows.carry(B[list(self.order), :])
        # A row of C^T is zero where one of Q is, and independent of the others elsewhere.
        used = ca.diag(self.independent) @ self.coefficients.T
        return smallest(orthogonalise(used, ca.SX(used.shape[0], 0), 0, passes=1), D)

    def basic_combination(self, B: ca.SX) -> ca.SX:
        """An L (m, k) with A^T L = X as `combination`, zero for rows that were left out; needs `rows`.

        It follows by substitution where rows were taken in their own order, as C is then triangular.
        """
        assert self.rows is not None
        if any(len(step.picked) > 1 for step in self.rows.steps):
            return self.combination(B)
        D, _ = self.rows.carry(B[list(self.order), :])
        L = ca.SX.zeros(*B.shape)
        for j, step in reversed(list(enumerate(self.rows.steps))):
            left = D[j, :] - sum((part * L[self.order[i], :] for i, part in step.spread), ca.SX(*D[j, :].shape))
            L[self.order[step.picked[0][0]], :] = left * step.scale
        return L

    @property
    def coefficients(self) -> ca.SX:
        """(m, s) C with C R equal to the given rows, except for dropped remainders.

        R are the s rows that are solved with, zero where they were dropped; see `overlaps`.
        """
        if self.rows is not None:
            C = ca.SX(len(self.order), len(self.rows.steps))
            C[list(self.order), :] = self.rows.coefficients
            return C
        if not self.blocks:
            return ca.SX(ca.DM.eye(self.A.shape[0]))
        C = ca.diagcat(*[block.coefficients for _, block in self.blocks])
        back = np.argsort([i for at, _ in self.blocks for i in at])
        return C[back.tolist(), :]

    @property
    def independent(self) -> ca.SX:
        """(s, 1) 1 for each row of R (see `coefficients`) that is not zero, 0 for the others."""
        if self.rows is not None:
            return ca.vertcat(ca.SX(0, 1), *[step.keep for step in self.rows.steps])
        assert self.gram is not None
        return ca.vertcat(*[keep for _, keep in sorted(zip(self.gram.of.order, self.gram.independent, strict=True))])

    def overlaps(self, blocks: list[list[int]]) -> list[ca.SX]:
        """Blocks (k, k) of (R R^T)^+ at these indices (k,), R as in `coefficients`: unit matrices where R is orthonormal."""
        if self.gram is None:
            return [ca.SX(ca.DM.eye(len(at))) for at in blocks]
        entry = entries(self.gram.of)
        return [ca.blockcat([[entry(i, j) for j in at] for i in at]) for at in blocks]


Blocks = Sequence[Sequence[Sequence[int]]]
"""Blocks of rows such that rows of different blocks are independent; each block is a list of groups as in `orthogonalise`."""


def minimum_norm(
    A: ca.SX, tolerance: float, size: ca.SX, counted: ca.DM | None = None, blocks: Blocks | None = None
) -> MinimumNorm:
    """Factor A for minimum-norm solutions of A X = B; dependent rows are left out as in `orthogonalise`.

    Orthonormal rows are used where they stay sparse: reflections ensure this for the legs of a platform and for chains of
    loops. Where there is too much fill-in, as in nets of loops, A A^T is factored instead, and one step of refinement recovers
    the digits lost by squaring. The pivots of kept rows are then far above rounding, unless columns have different weights
    (`counted`), for which orthonormal rows are always used.
    """
    order = elimination_order(A, blocks, reflected=counted is None)
    if order.filled <= FILL_ACCEPTED * A.nnz() or counted is not None:
        flat, none = list(order.rows), ca.SX(A.shape[0], 0)
        how: dict[str, Any] = {"passes": 1, "reflected": True} if counted is None else {"counted": counted}
        rows = orthogonalise(A[flat, :], none, tolerance, size[flat, 0], groups=order.groups, **how)
        return MinimumNorm(A, rows.rank, (), order.rows, rows, None)
    if blocks is None:
        return minimum_norm_by_gram(A, tolerance, size)
    parts = [(_members(block), _orthonormal(A, tolerance, size, block)) for block in blocks]
    Q = ca.sparsify(ca.vertcat(*[part.Q for _, part in parts]))
    return minimum_norm_by_gram(Q, tolerance, ca.SX.ones(Q.shape[0], 1))._replace(blocks=tuple(parts))


def minimum_norm_by_gram(A: ca.SX, tolerance: float, size: ca.SX) -> MinimumNorm:
    """Factor A for minimum-norm solutions by A A^T, with one step of refinement, whatever the fill-in."""
    gram = _factor_gram(A, max(tolerance, GRAM_TOLERANCE), size)
    return MinimumNorm(A, sum(gram.independent, ca.SX(0)), (), (), None, gram)


DAMPING, LEAST_DAMPING = 1e-2, 1e-12
"""Damping mu at |b| = 1, and its lower bound, relative to the mean squared length of rows."""


def damped(A: ca.SX, b: ca.SX, tolerance: float) -> ca.SX:
    """x (n, 1) near A^+ b for A (m, n) of any rank: A^T (A A^T + mu I)^-1 b, with a damping mu that vanishes with |b|^2.

    Newton iterations with this step also converge to solutions at which A loses rank, without losing speed to the damping.
    b: (m, 1), scaled so that |b| = 1 is far from a solution. [Yamashita and Fukushima 2001]
    """
    m = A.shape[0]
    mu = (DAMPING * ca.fmin(1, ca.sumsqr(b)) + LEAST_DAMPING) * ca.sumsqr(A) / m
    wide = ca.sparsify(ca.horzcat(A, ca.sqrt(mu) * ca.SX.eye(m)))
    return minimum_norm_by_gram(wide, tolerance, ca.SX.ones(m, 1)).solve(b)[: A.shape[1], :]


def _members(block: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """All rows of a block."""
    return tuple(i for group in block for i in group)


def _orthonormal(A: ca.SX, tolerance: float, size: ca.SX, block: Sequence[Sequence[int]]) -> Orthogonal:
    """Orthonormal rows of one block."""
    at = list(_members(block))
    groups = [[at.index(i) for i in group] for group in block]
    return orthogonalise(A[at, :], ca.SX(len(at), 0), tolerance, size[at, 0], groups=groups)


GRAM_TOLERANCE = 3e-5
"""Smallest ratio of a remainder to its row's length at which the pivot of A A^T, its square, stands out from rounding."""

FILL_ACCEPTED = 1.5
"""Factor by which the number of entries of a matrix may grow when its rows are made orthonormal."""


class Order(NamedTuple):
    """An elimination order.

    rows: indices of rows, in this order.   groups: as in `orthogonalise`, of positions in this order; None where each group is
    one row.   filled: number of entries of the rows once they are orthonormal.
    """

    rows: tuple[int, ...]
    groups: list[list[int]] | None
    filled: int


def elimination_order(A: ca.SX, blocks: Blocks | None, reflected: bool) -> Order:
    """An order of the blocks of rows of a sparse A (m, n) in which orthonormalisation causes little fill-in.

    The next block is the one whose columns have the fewest entries in the remaining rows. This completes one leg before the
    next one, and takes a chain of loops from its ends. reflected: as in `orthogonalise`.
    """
    order, filled = _blocks_in_order(A, blocks or [[[i]] for i in range(A.shape[0])], reflected)
    rows = tuple(i for block in order for i in _members(block))
    place = {row: i for i, row in enumerate(rows)}
    groups = None if blocks is None else [[place[i] for i in group] for block in order for group in block]
    return Order(rows, groups, filled)


def _blocks_in_order(A: ca.SX, blocks: Blocks, reflected: bool) -> tuple[list[Sequence[Sequence[int]]], int]:
    """The blocks in elimination order, and the number of entries of their orthonormal rows."""
    waiting = {b: {c for i in _members(block) for c in columns(A[i, :])} for b, block in enumerate(blocks)}
    size, order, entries = [len(_members(block)) for block in blocks], list[Sequence[Sequence[int]]](), 0
    weight = [sum(size[b] for b, support in waiting.items() if c in support) for c in range(A.shape[1])]
    cost = {b: sum(weight[c] for c in support) for b, support in waiting.items()}
    while waiting:
        b = min(waiting, key=lambda b: (cost[b], b))
        support = waiting.pop(b)
        touching = [i for i, columns in waiting.items() if columns & support]
        order.append(blocks[b])
        entries += size[b] * len(support)
        unshared = reflected_columns(support, [waiting[i] for i in touching]) if reflected else set()
        for c in support:
            weight[c] -= size[b]
        for i in touching:
            fill_in = (support if waiting[i] & unshared else support - unshared) - waiting[i]
            waiting[i] = waiting[i] | fill_in
            for c in fill_in:
                weight[c] += size[i]
        for i in touching:  # no other block has columns whose weight has changed
            cost[i] = sum(weight[c] for c in waiting[i])
    return order, entries


class Gram(NamedTuple):
    """Factor of A A^T.   of: L D L^T.   independent: for each row, as eliminated, 1 if it is kept, 0 if skipped."""

    of: SparseFactor
    independent: list[ca.SX]


def _factor_gram(A: ca.SX, tolerance: float, size: ca.SX) -> Gram:
    """Factor A A^T, skipping each pivot below tolerance^2 times its diagonal entry.   size: as in `orthogonalise`."""
    G, independent = ca.sparsify(A @ A.T), list[ca.SX]()

    def invert(i: int, pivot: ca.SX) -> ca.SX:
        independent.append(pivot * ca.fmin(1, size[i]) > tolerance**2 * G[i, i])
        return independent[-1] / ca.fmax(pivot, NOTHING)

    return Gram(factor(G, invert), independent)


def _solve_gram(gram: Gram, B: ca.SX) -> ca.SX:
    """X (m, k) with (A A^T) X = B (m, k), zero for skipped rows."""
    order, columns, inverse = gram.of
    x = {i: B[i, :] for i in order}
    for i, column in zip(order, columns, strict=True):
        for j, l in column.items():
            x[j] = x[j] - l * x[i]
    for i, r, column, keep in zip(*(reversed(v) for v in (order, inverse, columns, gram.independent)), strict=True):
        below = sum((l * x[j] for j, l in column.items()), ca.SX.zeros(1, B.shape[1]))
        x[i] = keep * (x[i] * r - below)
    return ca.vertcat(*[x[i] for i in range(len(x))])
