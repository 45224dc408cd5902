"""Linear algebra on expressions: no pivoting, no branches, and structural zeros stay zero.

A rank decision is a factor of 1 or 0, which makes the remainder of a row zero where it is below its tolerance. A select would
not do, because CasADi would push it into every product that contains the row.

Example:
    >>> import casadi as ca
    >>> from pfaffian.maths import linear
    >>> A = ca.SX([[1.0, 1.0], [2.0, 2.0]])  # the second row depends on the first
    >>> rows = linear.orthogonalise(A, ca.SX([2.0, 4.0]), tolerance=1e-9)
    >>> print(ca.DM(rows.rank), ca.DM(rows.Q.T @ rows.D))  # rank, and the smallest X with A X = B
    1 [1, 1]
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import casadi as ca

from pfaffian.maths.reflection import NOTHING, Reflection, columns, put_back, reflected_columns, reflection, take_out
from pfaffian.maths.so3 import symmetric

SURE = 0.01
"""A row may come next if its squared remainder, relative to its length, is at least this fraction of the largest one. Rows keep
their order as long as this is safe, so that among rows that contradict each other the same ones are kept in every metric.
"""

ROUNDING = 1e-6
"""A pivot below this fraction of its diagonal entry is zero up to rounding, in floats too; see `root`."""


def largest(sizes: Iterable[ca.SX]) -> ca.SX:
    """The largest of nonnegative numbers (1, 1), or 0 if there are none. Zeros and repeated expressions are left out.

    Example:
        >>> import casadi as ca
        >>> from pfaffian.maths import linear
        >>> x = ca.SX.sym("x")
        >>> print(linear.largest([ca.fabs(x), ca.SX(0), ca.fabs(x)]))
        fabs(x)
    """
    found: dict[Any, ca.SX] = {}
    for x in sizes:
        if not x.is_zero():
            key = float(x) if x.is_constant() else (x.op(), *[x.dep(i).element_hash() for i in range(x.n_dep())])
            found.setdefault(key if x.is_constant() or x.n_dep() else x.element_hash(), x)
    return functools.reduce(ca.fmax, found.values()) if found else ca.SX(0)


def largest_entry(x: ca.SX) -> ca.SX:
    """max |x_i|, or 0 if x is empty; entries that are NaN do not count.

    Example:
        >>> import casadi as ca
        >>> from pfaffian.maths import linear
        >>> print(linear.largest_entry(ca.SX([1.0, -3.0, 0.0])))
        3
    """
    sizes = ca.fabs(ca.sparsify(x))
    return largest([sizes[i] for i in sizes.sparsity().find()])


class RowStep(NamedTuple):
    """How one orthonormal row was computed, so that the same operations can be applied to right-hand sides.

    picked: (row of A, weight) of its source: one row, or all candidates with weight 1 for the chosen one and 0 for the others.
    again: (step, factor) of earlier rows subtracted in the second pass.   length: of the remainder.
    keep: 1, or 0 where the remainder was too short.   scale: keep / length.   of: the orthonormal row.
    spread: (row of A, factor) of the remaining rows from which this row was then subtracted.
    """

    picked: list[tuple[int, ca.SX]]
    again: list[tuple[int, ca.SX]]
    length: ca.SX
    keep: ca.SX
    scale: ca.SX
    of: Reflection
    spread: list[tuple[int, ca.SX]]


class Orthogonal(NamedTuple):
    """Rows A X = B in orthonormal form: Q X = D.

    Q: (s, n) orthonormal rows, zero for dropped rows; s = m where rows were processed in their own order. With `reflected`
        each is written in the coordinates that earlier reflections leave, so that only `smallest` can use them.   D: (s, k).
    independent: (m, 1) 1 for kept rows of A, 0 for dropped ones.
    left: (m, 1) squared length of each row's remainder, relative to the typical squared length of the row.
    rest: (m, k) remaining right-hand sides of dropped rows, zero for kept ones: where not zero, rows contradict each other.
    steps: how each row of Q was computed.
    """

    Q: ca.SX
    D: ca.SX
    independent: ca.SX
    left: ca.SX
    rest: ca.SX
    steps: tuple[RowStep, ...]

    @property
    def rank(self) -> ca.SX:
        return ca.sum1(self.independent)

    @property
    def coefficients(self) -> ca.SX:
        """(m, s) C with A = C Q, except for the remainders of dropped rows."""
        C = ca.SX(self.independent.numel(), len(self.steps))
        for j, step in enumerate(self.steps):
            for i, part in step.spread:
                C[i, j] += part
            for i, this in step.picked:
                for k, part in step.again:
                    C[i, k] += this * part
                if len(step.picked) == 1:
                    C[i, j] = step.length
        return C

    def carry(self, B: ca.SX) -> tuple[ca.SX, ca.SX]:
        """D (s, k) and rest (m, k) for other right-hand sides B (m, k)."""
        D: list[ca.SX] = []
        waiting = [B[i, :] for i in range(B.shape[0])]
        for picked, again, _, _, scale, _, spread in self.steps:
            r = _combination(picked, waiting)
            for j, part in again:
                r = r - part * D[j]
            if len(picked) == 1:
                waiting[picked[0][0]] = r
            D.append(r * scale)
            for i, part in spread:
                waiting[i] = waiting[i] - part * D[-1]
        nothing = ca.SX(0, B.shape[1])
        rest = [(1 - self.independent[i]) * r for i, r in enumerate(waiting)]
        return ca.densify(ca.vertcat(nothing, *D)), ca.vertcat(nothing, *rest)


def orthogonalise(
    A: ca.SX,
    B: ca.SX,
    tolerance: float,
    size: ca.SX | None = None,
    counted: ca.DM | None = None,
    *,
    passes: int = 2,
    groups: Sequence[Sequence[int]] | None = None,
    reflected: bool = False,
    most: int | None = None,
) -> Orthogonal:
    """Rank-revealing orthonormal rows by modified Gram-Schmidt, orthogonalised twice unless `passes` is 1.

    A row is kept if the length of its remainder exceeds `tolerance` times the length of the row, or times its typical length
    where the row is shorter than that. A dropped row and its right-hand side become zero. Q^T Q is the orthogonal projector
    onto the row space and X = Q^T D the smallest solution.

    Rows that may depend on each other belong in one group. The next row of a group is the first one whose remainder,
    relative to its length, is not much shorter than the longest. In a fixed order, a row whose remainder almost vanishes at
    some instant would be kept before others that still have the same direction at full length, and its direction would be
    determined by rounding errors.

    Args:
        A: (m, n), any rank.
        B: (m, k) right-hand sides, to which the same operations are applied.
        tolerance: [1].
        size: (m, 1) squared length of each row relative to its typical one; ones if not given.
        counted: (1, n) weight of each column in the lengths that are compared; ones if not given. Without it, columns much
            larger than others would make rows seem dependent that differ only in the others.
        passes: 1 for rows that are orthonormal only as far as A is well conditioned, at half the cost; see `smallest`.
        groups: lists of row indices, processed one after the other; each row alone, in order, if not given.
        reflected: whether rows are eliminated from others by reflections (`maths.reflection`), which cause less fill-in; needs
            one pass and equal weights of columns.
        most: how many rows are computed, if the rank cannot be larger.

    Example:
        >>> import casadi as ca
        >>> from pfaffian.maths import linear
        >>> found = linear.orthogonalise(ca.SX([[3, 4], [6, 8]]), ca.SX(2, 0), 1e-9)
        >>> print(found.rank, found.independent)  # the second row is twice the first
        1 [1, 0]
    """
    m, n = A.shape
    rows = [ca.sparsify(A[i, :]) for i in range(m)]
    support = [set(columns(r)) for r in rows]
    weight = [ca.SX(1) if size is None else ca.fmin(1, size[i]) for i in range(m)]
    squared = [_squared(r, counted) for r in rows]
    independent, left = [ca.SX(0)] * m, [ca.SX(0)] * m
    Q, in_Q, steps = list[ca.SX](), list[set[int]](), list[RowStep]()
    for group, waiting in _elimination_order(rows, groups)[:most]:
        picked = _best([(i, _squared(rows[i], counted) * weight[i] / ca.fmax(squared[i], NOTHING)) for i in group])
        r, again = _without(Q if passes > 1 else [], in_Q, _combination(picked, rows))
        typical = _combination(picked, squared)
        weighted = _squared(r, counted) * _combination(picked, weight)
        keep = weighted > tolerance**2 * typical
        length = ca.sqrt(ca.fmax(_squared(r), NOTHING))
        scale = keep / length
        Q.append(r * scale)
        in_Q.append(set(columns(Q[-1])))
        spread = list[tuple[int, ca.SX]]()
        touching = [i for i in waiting if not in_Q[-1].isdisjoint(support[i])]
        unshared = reflected_columns(set(columns(r)), [support[i] for i in touching]) if reflected else set()
        of = reflection(r, scale, keep, unshared)
        for i in touching:
            part, rows[i] = take_out(of, rows[i])
            support[i] = set(columns(rows[i]))
            spread.append((i, part))
        for i, this in picked:
            independent[i] += this * keep
            left[i] += (this if len(group) == 1 else this * keep) * weighted / ca.fmax(typical, NOTHING)
        steps.append(RowStep(picked, again, length, keep, scale, of, spread))
    for i in {i for step in steps for i, _ in step.picked if len(step.picked) > 1}:
        left[i] += (1 - independent[i]) * _squared(rows[i], counted) * weight[i] / ca.fmax(squared[i], NOTHING)

    none = ca.SX(0, 1)
    chosen, remains = (ca.vertcat(none, *x) for x in (independent, left))
    bare = Orthogonal(ca.vertcat(ca.SX(0, n), *Q), none, chosen, remains, none, tuple(steps))
    D, rest = bare.carry(B)
    return bare._replace(D=D, rest=rest)


def _without(Q: list[ca.SX], in_Q: list[set[int]], r: ca.SX) -> tuple[ca.SX, list[tuple[int, ca.SX]]]:
    """A row r (1, n) without its parts along orthonormal rows Q, and (index, part) of those.   in_Q: the columns of each."""
    parts, in_r = list[tuple[int, ca.SX]](), columns(r)
    for j, q in enumerate(Q):
        if not in_Q[j].isdisjoint(in_r):
            parts.append((j, ca.dot(q, r)))
            r = r - parts[-1][1] * q
            in_r = columns(r)
    return r, parts


def _elimination_order(rows: list[ca.SX], groups: Sequence[Sequence[int]] | None) -> list[tuple[list[int], list[int]]]:
    """For each orthonormal row to compute: its candidate rows, and the rows from which it is then subtracted."""
    if groups is None:
        groups = [[i] for i in range(len(rows))]
    order = []
    for g, group in enumerate(groups):
        later = [i for other in groups[g + 1 :] for i in other]
        width = len({c for i in group for c in columns(rows[i])})
        several = len(group) > 1
        order += [(list(group), (list(group) if several else []) + later)] * (min(len(group), width) if several else 1)
    return order


def connected(supports: Sequence[set[int]]) -> list[list[int]]:
    """Indices of sets, grouped so that sets of different groups have no common elements.

    Example:
        >>> from pfaffian.maths import linear
        >>> linear.connected([{0, 1}, {2}, {1, 3}])
        [[1], [0, 2]]
    """
    parts: list[tuple[set[int], list[int]]] = []
    for i, support in enumerate(supports):
        touching = [p for p in parts if p[0] & support]
        parts = [p for p in parts if not p[0] & support]
        parts.append((support.union(*[p[0] for p in touching]), sorted([i, *[j for p in touching for j in p[1]]])))
    return [members for _, members in parts]


def _best(values: list[tuple[int, ca.SX]]) -> list[tuple[int, ca.SX]]:
    """(index, weight) of each value: 1 for the first that is at least SURE times the largest, 0 for the others."""
    if len(values) == 1:
        return [(values[0][0], ca.SX(1))]
    enough, found, picked = SURE * _pairwise_largest([x for _, x in values]), ca.SX(0), []
    for i, x in values:
        now = ca.fmax(found, x >= enough)
        picked.append((i, now - found))
        found = now
    return picked


def _pairwise_largest(values: list[ca.SX]) -> ca.SX:
    """The largest value, by rounds of pairwise comparisons."""
    while len(values) > 1:
        values = [
            ca.fmax(*pair) if len(pair) == 2 else pair[0] for pair in (values[i : i + 2] for i in range(0, len(values), 2))
        ]
    return values[0]


def _combination(weights: list[tuple[int, ca.SX]], of: Sequence[ca.SX]) -> ca.SX:
    """Sum of weight * of[index] over the (index, weight) pairs."""
    total = weights[0][1] * of[weights[0][0]]
    for i, w in weights[1:]:
        total = total + w * of[i]
    return total


def smallest(rows: Orthogonal, B: ca.SX, start: ca.SX | None = None) -> ca.SX:
    """Smallest X (n, k) with A X = B (m, k), or the one nearest to `start`, which needs rows that are not reflected.

    The result is as accurate after one pass as after two: Q^T D would accumulate the overlap of rows, whereas here each row
    adds only the part of D that the later rows have not supplied. [Bjoerck and Paige 1994]

    rows: result of `orthogonalise` for A.   B: (m, k).   start: (n, k), zero if None.

    Example:
        >>> import casadi as ca
        >>> from pfaffian.maths import linear
        >>> rows = linear.orthogonalise(ca.SX([[1, 1]]), ca.SX(1, 0), 1e-9, passes=1)
        >>> print(ca.evalf(linear.smallest(rows, ca.SX([2]))))  # of all x with x_1 + x_2 = 2
        [1, 1]
    """
    D, _ = rows.carry(B)
    assert start is None or not any(step.of.u.nnz() for step in rows.steps), "a start needs rows that are not reflected"
    X = ca.SX(rows.Q.shape[1], B.shape[1]) if start is None else start
    for i in reversed(range(len(rows.steps))):
        X = put_back(rows.steps[i].of, D[i, :], X)
    return X


def _squared(r: ca.SX, counted: ca.DM | None = None) -> ca.SX:
    """Squared length of a row (1, n), its entries weighted by `counted`."""
    r = r if counted is None else r * counted
    return ca.dot(r, r)


def handedness(Q: ca.SX) -> ca.SX:
    """The determinant of an orthogonal Q (n, n), 1 or -1, by reflections of its columns; 1 if n = 0.

    Example:
        >>> import casadi as ca
        >>> from pfaffian.maths import linear
        >>> float(linear.handedness(ca.SX([[0, 1], [1, 0]])))  # it swaps two axes
        -1.0
    """
    sign = ca.SX(1)
    while Q.shape[0]:
        side = ca.if_else(Q[0, 0] < 0, -1, 1)
        w = Q[:, 0] + side * ca.SX.eye(Q.shape[0])[:, 0]
        Q = (Q - w @ (w.T @ Q) / (1 + ca.fabs(Q[0, 0])))[1:, 1:]
        sign *= side
    return sign


def null_space(Q: ca.SX, tolerance: float) -> tuple[ca.SX, ca.SX]:
    """Orthonormal rows (n, n) that span the null space of orthonormal rows Q (m, n), and (n, 1) 1 for each that is not zero.

    A row of I - Q^T Q is dropped if the length of its remainder is below `tolerance`, relative to 1, not to the row's length.

    Example:
        >>> import casadi as ca
        >>> from pfaffian.maths import linear
        >>> basis, nonzero = linear.null_space(ca.SX([[0, 1]]), 1e-9)
        >>> print(ca.sparsify(basis), nonzero)
        [[1, 00]] 1
    """
    n = Q.shape[1]
    P = ca.SX.eye(n) - Q.T @ Q
    basis = orthogonalise(P, ca.SX(n, 0), tolerance, ca.sum2(P * P), groups=[list(range(n))])
    return basis.Q, ca.vertcat(ca.SX(0, 1), *[step.keep for step in basis.steps])


def solve_definite(A: ca.SX, B: ca.SX) -> ca.SX:
    """A^-1 B by LU without pivoting, for A (n, n) with x^T A x > 0, symmetric or not.

    Elimination preserves that property, so every pivot is positive; entries grow little for the matrices of this library.

    B: (n, k).

    Example:
        >>> import casadi as ca
        >>> from pfaffian.maths import linear
        >>> print(linear.solve_definite(ca.SX([[2, 1], [0, 4]]), ca.SX([4, 8])))
        [1, 2]
    """
    return _eliminate(A, B, lambda U: U)


def solve_symmetric(A: ca.SX, B: ca.SX) -> ca.SX:
    """A^-1 B for a symmetric positive definite A (n, n) and B (n, k); reads only the upper triangle of A.

    It takes half the work of `solve_definite`.

    Example:
        >>> import casadi as ca
        >>> from pfaffian.maths import linear
        >>> print(linear.solve_symmetric(ca.SX([[2, 1], [1, 3]]), ca.SX([5, 10])))
        [1, 3]
    """
    return _eliminate(symmetric(A), B, symmetric)


def _eliminate(A: ca.SX, B: ca.SX, whole: Callable[[ca.SX], ca.SX]) -> ca.SX:
    """A^-1 B by Gaussian elimination without pivoting.   whole: completes the remainder of A from its computed part."""
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


def root(G: ca.SX) -> ca.SX:
    """R (m, m), upper triangular, with R^T R = G, the rows of dependent pivots zero.

    G: (m, m) positive semidefinite.

    Example:
        >>> import casadi as ca
        >>> from pfaffian.maths import linear
        >>> ca.evalf(linear.root(ca.SX([[4, 2], [2, 1]]))).full().tolist()
        [[2.0, 1.0], [0.0, 0.0]]
    """
    m, R = G.shape[0], ca.SX(*G.shape)
    for j in range(m):
        pivot = G[j, j] - ca.sumsqr(R[:j, j])
        keep = pivot > ROUNDING * G[j, j]
        R[j, j] = ca.sqrt(ca.if_else(keep, pivot, 0))
        inverse = keep / ca.fmax(R[j, j], NOTHING)
        for i in range(j + 1, m):
            entry = G[j, i] - ca.dot(R[:j, j], R[:j, i])
            if not entry.is_zero():
                R[j, i] = entry * inverse
    return R


class Semidefinite(NamedTuple):
    """A solution of G x = b with G (m, m) positive semidefinite.

    x: (m, k).   independent: (m, 1) 1 for rows that are independent of those eliminated before them, 0 for the others.
    """

    x: ca.SX
    independent: ca.SX


def least_squares(A: ca.SX, b: ca.SX, tolerance: float) -> Semidefinite:
    """x that minimises |A x - b|, from A^T A x = A^T b; zero for columns of A that depend on earlier ones.

    A: (m, n).   b: (m, k).   tolerance: for A^T A, as in `solve_semidefinite`.

    Example:
        >>> import casadi as ca
        >>> from pfaffian.maths import linear
        >>> print(linear.least_squares(ca.SX([[1], [1]]), ca.SX([1, 3]), 1e-9).x)  # the mean
        2
    """
    return solve_semidefinite(A.T @ A, A.T @ b, tolerance)


def solve_semidefinite(
    G: ca.SX, b: ca.SX, tolerance: float, size: ca.SX | None = None, groups: Sequence[Sequence[int]] | None = None
) -> Semidefinite:
    """x = G^- b by L D L^T, skipping the pivots of dependent rows by the rule of `orthogonalise` for G = A A^T.

    G: (m, m) positive semidefinite.   b: (m, k).   x is a solution if b is in the range of G, zero on skipped rows.
    size, groups: as in `orthogonalise`.

    Example:
        >>> import casadi as ca
        >>> from pfaffian.maths import linear
        >>> found = linear.solve_semidefinite(ca.SX([[1, 1], [1, 1]]), ca.SX([3, 3]), 1e-9)
        >>> print(found.x, found.independent)  # the second row repeats the first
        [3, 00] [1, 0]
    """
    m = G.shape[0]
    S, y, diagonal = ca.densify(G), ca.densify(b), [G[i, i] for i in range(m)]
    weight = [ca.SX(1) if size is None else ca.fmin(1, size[i]) for i in range(m)]
    independent, steps = [ca.SX(0)] * m, []
    for group, waiting in _elimination_order([ca.SX.ones(1, m)] * m, groups):
        picked = _best([(i, S[i, i] * weight[i] / ca.fmax(diagonal[i], NOTHING)) for i in group])
        column = _combination(picked, [S[i, :] for i in range(m)])
        pivot = _combination(picked, list(ca.vertsplit(column.T)))
        keep = pivot * _combination(picked, weight) > tolerance**2 * _combination(picked, diagonal)
        inverse = keep / ca.fmax(pivot, NOTHING)
        top = _combination(picked, [y[i, :] for i in range(m)])
        l = column[waiting].T * inverse
        S[waiting, waiting] = S[waiting, waiting] - l @ column[waiting]
        y[waiting, :] = y[waiting, :] - l @ top
        for i, this in picked:
            independent[i] += this * keep
        steps.append((picked, waiting, keep, top * inverse, l))
    x = ca.SX.zeros(*b.shape)
    for picked, waiting, keep, top, l in reversed(steps):
        x_picked = keep * (top - l.T @ x[waiting, :])
        for i, this in picked:
            x[i, :] += this * x_picked
    return Semidefinite(x, ca.vertcat(*independent))
