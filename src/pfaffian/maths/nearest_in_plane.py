"""The point of a plane, or of a line, nearest to the origin between pairs of parallel lines, without iterations.

The pairs come one after another. Where the point found so far is beyond line i, the nearest point between all pairs up to
this one lies on line i itself: z = d v_i + t n_i, with the line's normal v_i and direction n_i, and the smallest |t| that the
earlier pairs leave, an interval. Where they leave none, their part of the plane is beyond line i as a whole. Then the lines
that end the interval from both sides prove, together with line i, that no point lies between all pairs. [Seidel 1991]
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import casadi as ca

from pfaffian.maths.qp import SLIGHT, Tolerances, tolerances

DIMENSIONS = (1, 2)
"""Sizes of z for which this works."""

FAR = 1e30
"""Larger than any distance, also in floats."""

Bounds = Sequence[ca.SX | None]
"""The limit of each row; None for an open end."""


class Between(NamedTuple):
    """Result of `nearest_between`.

    z: (k, 1).   solved: (1, 1) whether Y z is within all limits.
    proof: (n, 1) where it cannot be: weights c with Y^T c = 0, for which c^T x < 0 within the limits; else zero.
    """

    z: ca.SX
    solved: ca.SX
    proof: ca.SX


class _ScaledRows(NamedTuple):
    """Rows of unit length, or zero.   V: (n, k).   low, high: their limits.   unit: (n, 1) 1 / length, or zero.
    step: (1, 1) size of z.   tol: tolerances."""

    V: ca.SX
    low: Bounds
    high: Bounds
    unit: ca.SX
    step: ca.SX
    tol: Tolerances


class _Cut(NamedTuple):
    """What one row leaves of a line.   low, high: ends of t.   slope: what a unit of z across the row moves them.
    cosine: of the row and the line's normal.   side: 1 or -1 if the line is beyond the limit of the row as a whole, else 0."""

    low: ca.SX
    high: ca.SX
    slope: ca.SX
    cosine: ca.SX
    side: ca.SX


def nearest_between(Y: ca.SX, low: Bounds, high: Bounds) -> Between:
    """The z of smallest |z| with low <= Y z <= high, for z of one or two entries.

    Y: (n, k) rows; those shorter than a rounding of the longest one count as zero.   low, high: n limits, low below high.
    """
    if Y.shape[1] == 1:
        return _on_line(Y, low, high)
    rows, reach = _rows(Y, low, high)
    z, failed, at, d, side = ca.SX.zeros(Y.shape[1]), ca.SX(0), ca.SX(-1), ca.SX(0), ca.SX(0)
    for i in range(Y.shape[0]):
        v, slight = rows.V[i, :], rows.tol.rounding * (SLIGHT * rows.step + ca.sum1(ca.fabs(z)))
        past = _past(v @ z, rows.low[i], rows.high[i], slight)
        limit = ca.if_else(past > 0, _or_zero(rows.high[i]), _or_zero(rows.low[i]))
        t, empty = _shortest([_cut(rows, j, v, limit) for j in range(i)], rows)
        beyond = ca.logic_and(past != 0, ca.logic_not(failed))
        fails = ca.logic_and(beyond, empty)
        failed, at = ca.logic_or(failed, fails), ca.if_else(fails, i, at)
        d, side = ca.if_else(fails, limit, d), ca.if_else(fails, past, side)
        z = ca.if_else(beyond, limit * v.T + t * _across(v).T, z)
    off = _off(Y, z, low, high, reach, rows.tol)
    proof = ca.if_else(failed, _contradiction(rows, at, d, side), ca.if_else(rows.unit > 0, 0, _first(off)))
    return Between(z, ca.logic_and(ca.logic_not(failed), _none(off, z, Y, low, high)), ca.densify(proof))


def _on_line(w: ca.SX, low: Bounds, high: Bounds) -> Between:
    """`nearest_between` for z of one entry, an interval.   w: (n, 1)."""
    tol, size = tolerances(w[0, 0]), ca.fabs(w)
    zero = ca.logic_not(size > tol.parallel * ca.mmax(size))
    slope, far = 1 / (w + zero), zero * FAR
    ends = [_ends(_scaled(low[i], slope[i]), _scaled(high[i], slope[i]), w[i] > 0) for i in range(w.numel())]
    lows, highs = [a - far[i] for i, (a, _) in enumerate(ends)], [b + far[i] for i, (_, b) in enumerate(ends)]
    least, most = reduce(ca.fmax, lows, ca.SX(-FAR)), reduce(ca.fmin, highs, ca.SX(FAR))
    z, reach = ca.fmin(ca.fmax(0, least), most), _reach(low, high)
    off = _off(w, z, low, high, reach, tol)
    crossed = least > most
    pair = _first([(x == most) * a for x, a in zip(highs, ca.vertsplit(slope), strict=True)])
    pair -= _first([(x == least) * a for x, a in zip(lows, ca.vertsplit(slope), strict=True)])
    dead = _first([zero[i] * off[i] for i in range(w.numel())])
    return Between(z, _none(off, z, w, low, high), ca.densify(ca.if_else(ca.sumsqr(dead) > 0, dead, crossed * pair)))


def _ends(a: ca.SX | None, b: ca.SX | None, rises: ca.SX) -> tuple[ca.SX, ca.SX]:
    """The interval between a and b, which are in this order where the row rises; open where there is none."""
    if a is not None and b is not None:
        return ca.fmin(a, b), ca.fmax(a, b)
    low, high = ca.SX(-FAR) if a is None else a, ca.SX(FAR) if b is None else b
    open_low, open_high = ca.SX(-FAR) if b is None else b, ca.SX(FAR) if a is None else a
    return ca.if_else(rises, low, open_low), ca.if_else(rises, high, open_high)


def _scaled(x: ca.SX | None, by: ca.SX) -> ca.SX | None:
    return None if x is None else x * by


def _reach(low: Bounds, high: Bounds) -> ca.SX:
    """The size of the limits."""
    return reduce(ca.fmax, [ca.fabs(x) for x in (*low, *high) if x is not None], ca.SX(0))


def _off(Y: ca.SX, z: ca.SX, low: Bounds, high: Bounds, reach: ca.SX, tol: Tolerances) -> list[ca.SX]:
    """For each entry of Y z 1 if it is above its limit, -1 if it is below, else 0."""
    x, terms = Y @ z, SLIGHT * reach + ca.fabs(Y) @ ca.fabs(z)
    return [_past(x[i], low[i], high[i], tol.accurate * terms[i]) for i in range(Y.shape[0])]


def _none(off: Sequence[ca.SX], z: ca.SX, Y: ca.SX, low: Bounds, high: Bounds) -> ca.SX:
    """Whether no limit is exceeded; false where a number is nan, which comparisons pass over."""
    total = ca.sumsqr(Y) + ca.sumsqr(z) + sum((ca.fabs(x) for x in (*low, *high) if x is not None), ca.SX(0))
    return ca.logic_and(ca.logic_not(reduce(ca.logic_or, off)), total <= FAR)


def _rows(Y: ca.SX, low: Bounds, high: Bounds) -> tuple[_ScaledRows, ca.SX]:
    """The rows scaled to unit length, and the size of the limits."""
    tol = tolerances(Y[0, 0])
    length = ca.sqrt(ca.sum2(Y**2))
    longest = ca.mmax(length)
    counts = ca.logic_and(length > tol.parallel * longest, length > 0)
    unit = ca.densify(ca.if_else(counts, 1 / (length + ca.logic_not(counts)), 0))
    reach = _reach(low, high)
    scaled = [[_scaled(x, unit[i]) for i, x in enumerate(side)] for side in (low, high)]
    step = reach / (longest + (longest <= 0))
    return _ScaledRows(ca.diag(unit) @ Y, scaled[0], scaled[1], unit, step, tol), reach


def _or_zero(x: ca.SX | None) -> ca.SX:
    return ca.SX(0) if x is None else x


def _past(x: ca.SX, low: ca.SX | None, high: ca.SX | None, slight: ca.SX) -> ca.SX:
    """1 if x is above its limit by more than what is slight, -1 if it is below, else 0."""
    over = ca.SX(0) if high is None else x - high > slight
    return over if low is None else over - (low - x > slight)


def _across(v: ca.SX) -> ca.SX:
    """The direction of a line with the normal v (1, k); zero on a line, where there is none."""
    return ca.horzcat(-v[1], v[0]) if v.shape[1] == 2 else ca.SX.zeros(1, 1)


def _cut(rows: _ScaledRows, j: int, v: ca.SX, d: ca.SX) -> _Cut:
    """What row j leaves of the line v z = d. A row of zeros leaves all of it."""
    c, s = rows.V[j, :] @ v.T, rows.V[j, :] @ _across(v).T
    along = ca.fabs(s) <= rows.tol.parallel
    slope, far = 1 / (s + along), ca.if_else(along, FAR, 0)
    a, b = (None if x is None else x - c * d for x in (rows.low[j], rows.high[j]))
    loose = rows.tol.parallel * (ca.fabs(d) + SLIGHT * rows.step)
    low, high = _ends(_scaled(a, slope), _scaled(b, slope), s > 0)
    return _Cut(low - far, high + far, slope, c, along * _past(ca.SX(0), a, b, loose))


def _shortest(cuts: Sequence[_Cut], rows: _ScaledRows) -> tuple[ca.SX, ca.SX]:
    """The smallest |t| that cuts leave, and whether they leave none."""
    low = reduce(ca.fmax, [x.low for x in cuts], ca.SX(-FAR))
    high = reduce(ca.fmin, [x.high for x in cuts], ca.SX(FAR))
    gap = rows.tol.violation * (ca.fabs(low) + SLIGHT * rows.step)
    empty = reduce(ca.logic_or, [x.side != 0 for x in cuts], low - high > gap)
    return ca.fmin(ca.fmax(0, low), high), empty


def _contradiction(rows: _ScaledRows, at: ca.SX, d: ca.SX, side: ca.SX) -> ca.SX:
    """(n, 1) weights of the rows before row `at` that leave nothing of its line, v z = d, and of this row itself."""
    n = rows.V.shape[0]
    at_row = ca.vertcat(*[at == i for i in range(n)])
    cuts = [_cut(rows, j, at_row.T @ rows.V, d) for j in range(n)]
    low = reduce(ca.fmax, [ca.if_else(j < at, x.low, -FAR) for j, x in enumerate(cuts)])
    high = reduce(ca.fmin, [ca.if_else(j < at, x.high, FAR) for j, x in enumerate(cuts)])
    upper = _first([(j < at) * (x.high == high) * x.slope for j, x in enumerate(cuts)])
    lower = _first([(j < at) * (x.low == low) * x.slope for j, x in enumerate(cuts)])
    ends = upper - lower
    against = _first([(j < at) * x.side for j, x in enumerate(cuts)])
    crossing = ends - at_row * (ca.vertcat(*[x.cosine for x in cuts]).T @ ends)
    return rows.unit * ca.if_else(ca.sumsqr(against) > 0, against + at_row * side, crossing)


def _first(values: Sequence[ca.SX]) -> ca.SX:
    """(n, 1) the first value that is not zero in its place, the others zero."""
    found, passed = list[ca.SX](), ca.SX(0)
    for x in values:
        found.append(ca.if_else(passed, 0, x))
        passed = ca.logic_or(passed, x != 0)
    return ca.vertcat(*found)
