"""Eliminate an orthonormal row from rows that share only some of its columns, without fill-in in the others.

A Gram-Schmidt step subtracts (q . r) q from a row r. This fills r in wherever q = [x, z] has an entry, also in the columns x
in which r has none, such as the joints of another leg of a platform. With s = |x| and the unit row u = x / s, the reflection
in q + u takes q to -u, and every row orthogonal to q to one without a part along u:

    c = q . r,    r_x <- r_x - (u . r) u,    r_z <- r_z - (c + u . r) / (1 + s) z.

The remainders of rows keep their lengths and scalar products, so that ranks and coefficients are those of Gram-Schmidt. A row
without entries in x gets none there. Without x, where s = 0, the reflection is a Gram-Schmidt step. The smallest solution y
with q . y = d follows from w, the smallest solution for the remaining rows, as

    y_x = w_x + (s d - z . w - u . w) u,    y_z = w_z + (d - z . w / (1 + s)) z,

where u . w is the part along u that rounding has left. A Gram-Schmidt step is itself
a reflection [Bjoerck and Paige 1994].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import casadi as ca

NOTHING = 1e-300
"""Squared length below which a part of a row counts as zero."""


class Reflection(NamedTuple):
    """The reflection that eliminates an orthonormal row q = [s u, z], q = z or q = 0.

    z: (1, n).   u: (1, n), without entries if q has no columns x.   s, part: |x| and 1 / (1 + s).
    turned: (1, n) z / (1 + s).
    """

    z: ca.SX
    u: ca.SX
    s: ca.SX
    part: ca.SX
    turned: ca.SX


def reflection(r: ca.SX, scale: ca.SX, keep: ca.SX, unshared: set[int]) -> Reflection:
    """The reflection that eliminates q = scale r, r (1, n).   keep: 1, or 0 where q is zero.   unshared: the columns x."""
    if not unshared:
        z = r * scale
        return Reflection(z, ca.SX(*r.shape), ca.SX(0), ca.SX(1), z)
    x, z = _columns(r, unshared), _columns(r, set(columns(r)) - unshared) * scale
    squared = ca.dot(x, x)
    inverse = keep * (squared > NOTHING) / ca.sqrt(ca.fmax(squared, NOTHING))
    s = squared * inverse * scale
    part = 1 / (1 + s)
    return Reflection(z, x * inverse, s, part, part * z)


def take_out(of: Reflection, r: ca.SX) -> tuple[ca.SX, ca.SX]:
    """c = q . r, and the remainder of a row r (1, n) after the reflection."""
    c, along, left = ca.SX(0), ca.SX(0), r
    if overlap(of.u, r):
        along = ca.dot(of.u, r)
        c, left = of.s * along, left - along * of.u
    if overlap(of.z, r):
        c += ca.dot(of.z, r)
    return c, left - (c + along) * of.turned


def put_back(of: Reflection, d: ca.SX, w: ca.SX) -> ca.SX:
    """The smallest y (n, k) with q . y = d (1, k), from the smallest solution w (n, k) for the remaining rows."""
    shared = of.z @ w
    y = w + of.z.T @ (d - of.part * shared)
    return y + of.u.T @ (of.s * d - shared - of.u @ w) if of.u.nnz() else y


def reflected_columns(support: set[int], others: Sequence[set[int]]) -> set[int]:
    """The columns x that minimise the work of eliminating a row with entries in `support`.

    others: the columns of the rows from which it is eliminated. They all fill in on z, and those with entries in x on x too.
    """
    rows_of = {j: frozenset(i for i, columns in enumerate(others) if j in columns) for j in support}
    unshared, least = set[int](), len(others) * len(support)
    for touching in sorted(set(rows_of.values()), key=sorted):
        x = {j for j in support if rows_of[j] <= touching}
        work = len(others) * (len(support) - len(x)) + len(touching) * len(x) + len(x) + 2
        if work <= least:
            unshared, least = x, work
    return unshared


def columns(r: ca.SX) -> list[int]:
    """The columns in which a row (1, n) has entries."""
    return [int(j) for j in r.sparsity().get_col()]


def overlap(a: ca.SX, b: ca.SX) -> bool:
    """Whether two rows have entries in a common column."""
    return not set(columns(a)).isdisjoint(columns(b))


def _columns(q: ca.SX, these: set[int]) -> ca.SX:
    """q (1, n) with only its entries in these columns."""
    at = sorted(these)
    x = ca.SX(*q.shape)
    x[0, at] = q[0, at]
    return ca.sparsify(x)
