"""Factor a sparse symmetric matrix as L D L^T and compute single entries of its inverse, at a cost that follows the sparsity.

Example:
    >>> import casadi as ca
    >>> from pfaffian.maths import selected_inverse
    >>> G = ca.SX([[2.0, 1.0], [1.0, 2.0]])
    >>> entry = selected_inverse.entries(selected_inverse.factor(G, lambda i, pivot: 1 / pivot))
    >>> print(entry(0, 0), entry(0, 1))
    0.666667 -0.333333
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import casadi as ca


class SparseFactor(NamedTuple):
    """L D L^T with rows in the order of elimination.

    order: the rows.   columns: for each pivot {row: entry} of L below the diagonal.   inverse: 1 / D, or 0 for skipped pivots.
    """

    order: list[int]
    columns: list[dict[int, ca.SX]]
    inverse: list[ca.SX]


def factor(G: ca.SX, invert: Callable[[int, ca.SX], ca.SX], after: Mapping[int, set[int]] | None = None) -> SparseFactor:
    """Factor G as L D L^T, eliminating the row with the fewest neighbours first.

    Args:
        G: (m, m) symmetric.
        invert: (row, pivot) -> 1 / pivot, or 0 to skip the pivot.
        after: for a row, the rows that must be eliminated before it; no conditions if not given.
    """
    m = G.shape[0]
    S: list[dict[int, ca.SX]] = [{} for _ in range(m)]
    for i, j in zip(*G.sparsity().get_triplet(), strict=True):
        S[i][j] = G[i, j]
    before = {i: set(rows) for i, rows in (after or {}).items() if rows}
    waiting, result = set(range(m)), SparseFactor([], [], [])
    heap = [(len(S[i]), i) for i in range(m) if i not in before]
    heapify(heap)
    while waiting:
        size, i = heappop(heap)
        if i not in waiting or size != len(S[i]):
            continue
        waiting.remove(i)
        for j in [j for j, rows in before.items() if i in rows]:
            before[j].remove(i)
            if not before[j]:
                del before[j]
                heappush(heap, (len(S[j]), j))
        r = invert(i, S[i].pop(i, ca.SX(0)))
        column = {j: entry * r for j, entry in S[i].items()}
        for j, l in column.items():
            del S[j][i]
            for k, entry in S[i].items():
                S[j][k] = S[j].get(k, ca.SX(0)) - l * entry
            if j not in before:
                heappush(heap, (len(S[j]), j))
        result.order.append(i)
        result.columns.append(column)
        result.inverse.append(r)
    return result


def entries(of: SparseFactor) -> Callable[[int, int], ca.SX]:
    """(i, j) -> an entry of (L D L^T)^+, computed from the last pivot backwards and only where needed. [Takahashi 1973]"""
    place = {i: n for n, i in enumerate(of.order)}
    known: dict[tuple[int, int], ca.SX] = {}

    def entry(i: int, j: int) -> ca.SX:
        i, j = (i, j) if place[i] < place[j] else (j, i)
        if (i, j) not in known:
            pivot = of.inverse[place[i]] if i == j else ca.SX(0)
            known[i, j] = pivot - sum((l * entry(k, j) for k, l in of.columns[place[i]].items()), ca.SX(0))
        return known[i, j]

    for i in reversed(of.order):  # each entry needs only those of later pivots, so in this order the recursion stays shallow
        for k in of.columns[place[i]]:
            entry(i, k)
        entry(i, i)
    return entry


def supports(x: ca.SX) -> list[list[int]]:
    """For each row the columns of its entries, in ascending order."""
    columns: list[list[int]] = [[] for _ in range(x.shape[0])]
    for i, j in zip(*x.sparsity().get_triplet(), strict=True):
        columns[i].append(j)
    return columns


def weighed(entry: Callable[[int, int], ca.SX], T: ca.SX) -> ca.SX:
    """trace(T^T Y T) from entries of a symmetric Y."""
    TT = ca.sparsify(T @ T.T)
    pairs = [(i, j) for i, j in zip(*TT.sparsity().get_triplet(), strict=True) if i <= j]
    return sum((TT[i, j] * entry(i, j) * (1 if i == j else 2) for i, j in pairs), ca.SX(0))
