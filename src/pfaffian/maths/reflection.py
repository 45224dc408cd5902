"""Taking an orthonormal row out of rows that share only some of its columns, without filling in the others.

Gram and Schmidt subtract (q . r) q from a row r, which fills r in wherever q = [x, z] has an entry, also in the columns x that
r does not touch: the joints of another leg of a platform. With s = |x| and the unit row u = x / s, the reflection in q + u
takes q to -u, and every row orthogonal to q to one without a part along u:

    c = q . r,    r_x <- r_x - (u . r) u,    r_z <- r_z - (c + u . r) / (1 + s) z.

What is left of rows keeps its lengths and products, so that ranks and coefficients are those of Gram and Schmidt; a row without
entries in x gets none. Without x, where s = 0, it is their step. The smallest solution with q . y = d comes back from w, that
of the remaining rows, as

    y_x = w_x + (s d - z . w - u . w) u,    y_z = w_z + (d - z . w / (1 + s)) z,

where u . w is what rounding has left along u. [Bjoerck and Paige 1994 show that a step of Gram and Schmidt is a reflection too]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import casadi as ca

NOTHING = 1e-300
"""Squared length below which a part of a row counts as none."""


class Reflection(NamedTuple):
    """An orthonormal row q = [s u, z], or q = z, or zero.   z: (1, n).   u: (1, n), empty if q has no part of its own.
    s, part: |x| and 1 / (1 + s).   turned: (1, n) z / (1 + s).
    """

    z: ca.SX
    u: ca.SX
    s: ca.SX
    part: ca.SX
    turned: ca.SX


def reflection(r: ca.SX, scale: ca.SX, keep: ca.SX, own: set[int]) -> Reflection:
    """Of a row q = scale r, r (1, n), with the columns x; keep is 1, or 0 where q is zero."""
    if not own:
        z = r * scale
        return Reflection(z, ca.SX(*r.shape), ca.SX(0), ca.SX(1), z)
    x, z = _columns(r, own), _columns(r, set(columns(r)) - own) * scale
    squared = ca.dot(x, x)
    inverse = keep * (squared > NOTHING) / ca.sqrt(ca.fmax(squared, NOTHING))
    s = squared * inverse * scale
    part = 1 / (1 + s)
    return Reflection(z, x * inverse, s, part, part * z)


def take_out(of: Reflection, r: ca.SX) -> tuple[ca.SX, ca.SX]:
    """c = q . r, and what is left of a row r (1, n)."""
    c, along, left = ca.SX(0), ca.SX(0), r
    if overlap(of.u, r):
        along = ca.dot(of.u, r)
        c, left = of.s * along, left - along * of.u
    if overlap(of.z, r):
        c += ca.dot(of.z, r)
    return c, left - (c + along) * of.turned


def put_back(of: Reflection, d: ca.SX, w: ca.SX) -> ca.SX:
    """y (n, k) with q . y = d (1, k)."""
    shared = of.z @ w
    y = w + of.z.T @ (d - of.part * shared)
    return y + of.u.T @ (of.s * d - shared - of.u @ w) if of.u.nnz() else y


def reflected_columns(support: set[int], others: Sequence[set[int]]) -> set[int]:
    """The columns x of a row with entries in `support`: those that only some of the others touch, for the least work.

    others: the columns of the rows that it is taken out of. All of them are filled in z, and in x those that touch x.
    """
    by = {j: frozenset(i for i, columns in enumerate(others) if j in columns) for j in support}
    own, least = set[int](), len(others) * len(support)
    for some in sorted(set(by.values()), key=sorted):
        x = {j for j in support if by[j] <= some}
        work = len(others) * (len(support) - len(x)) + len(some) * len(x) + len(x) + 2
        if work <= least:
            own, least = x, work
    return own


def columns(r: ca.SX) -> list[int]:
    """Where a row (1, n) has entries."""
    return [int(j) for j in r.sparsity().get_col()]


def overlap(a: ca.SX, b: ca.SX) -> bool:
    """Whether two rows have entries in a common column."""
    return not set(columns(a)).isdisjoint(columns(b))


def _columns(q: ca.SX, these: set[int]) -> ca.SX:
    """q with its entries in these columns alone."""
    at = sorted(these)
    x = ca.SX(*q.shape)
    x[0, at] = q[0, at]
    return ca.sparsify(x)
