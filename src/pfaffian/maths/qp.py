"""The nearest point within linear limits: minimise |u - u0|_H^2 / 2 subject to W u <= l, by a dual active-set method.

In z = L^T u with H = L L^T, and with rows scaled to unit length, the solution is the z nearest to z0 = L^T u0 with V z <= d.
The method starts at z0, where no row is active. Each iteration chooses the most violated row v and decomposes it as
v = N^T r + w, with r its coordinates in the active rows N and w orthogonal to them. It moves z along -w and the multipliers y
along -r. The move ends where z reaches the row, which becomes active, or earlier where a multiplier falls to zero, whose row is
dropped. The dual value rises with every row that is reached, so no set of active rows occurs twice. Where w = 0 and no
multiplier falls, r shows which active rows v contradicts. [Goldfarb and Idnani 1983]

B contains the dual vectors of the active rows, B N^T = 1 and in their span, so that adding or dropping a row is one outer
product; its rounding errors only affect which rows are chosen. The result is computed from the active rows alone, after these
are made orthonormal.

Where u0 is far beyond all limits, the step from u0 to the active rows is so long that its rounding misses them, so the last
step is repeated from its end. If u0 is farther away than `distant` times the limits, the method starts at a smaller multiple
of u0, where the same rows are active unless the direction of u0 is within 1 / distant of one at which they change. A result is
checked against the given H, W and l, row by row: a point or a contradiction that does not satisfy its conditions is
INACCURATE.

Iterations are calls of one Function, so that the code contains its text once. An iteration after the end changes nothing, and
the kernel then stops repeating it. A row of W and its negative limit the same direction from both sides; this direction is
stored once: W = S W_0 with one entry +-1 in each row of S.

A law that is exported in floats does the same search twice, in coordinates that make H the identity: see `nearest_by_root`.

The time of an iteration depends on its longest chain of dependent operations, not on their number. Sums and minima are
therefore computed by pairwise rounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache, reduce
from hashlib import sha256
from typing import NamedTuple

import casadi as ca

from pfaffian.maths.linear import orthogonalise
from pfaffian.maths.pack import pack
from pfaffian.maths.precision import for_floats
from pfaffian.maths.reflection import NOTHING

SOLVED, INFEASIBLE, TOO_MANY_ITERATIONS, INACCURATE, INDEFINITE, NOT_A_NUMBER = range(6)

LARGEST = 1.7976931348623157e308
"""The largest finite double."""


class Tolerances(NamedTuple):
    """Tolerances for the arithmetic, double or single, in which a problem is solved.

    rounding: fraction of a limit by which it is loosened while rows are chosen.
    parallel: a row depends on the active ones if its remainder is below this fraction of the size of its coordinates in them.
    rising: entries of r below this fraction of its size count as zero.

    accurate: largest error of H (u - u0) + W^T y = 0, relative to its terms, that a result may have. It also bounds the
        violation of rows where u0 is distant, as the digits of u0 allow no better.
    violation: largest violation of a limit that a result may have, relative to the row's terms. In doubles, results satisfy
        rows to 3e-12 even where more than n of them meet in one point. Rows that fail to meet by more than this tolerance have
        no solution, however rounding affected the iterations.
    certain: largest entry of W^T y, relative to its terms, at which rows may count as a contradiction.
    further: rows with only nearly W^T y = 0, such as two that are opposite up to a small angle, do meet somewhere. They count
        as a contradiction only if any u that satisfies them is this many times farther away than the rows are from the origin
        and from u.

    distant: largest distance of u0 from the origin, relative to the limits' distances, at which the method starts at u0 itself.
        Up to there the rounding error of rows, in doubles 1e-16 of that distance, still shows which rows are active, and
        few directions are so near to one at which these change.
    pivot: a pivot of H below this fraction of its diagonal entry counts as not positive.
    """

    rounding: ca.SX
    parallel: ca.SX
    rising: ca.SX
    accurate: ca.SX
    violation: ca.SX
    certain: ca.SX
    further: ca.SX
    distant: ca.SX
    pivot: ca.SX


DOUBLE = (1e-14, 1e-10, 1e-11, 1e-9, 1e-11, 1e-12, 1e3, 1e10, 1e-15)
SINGLE = (5e-6, 1e-4, 1e-4, 2e-3, 3e-4, 1e-4, 10.0, 1e3, 1e-6)
"""Tolerances in doubles, which round by 1e-16, and in floats, which round by 6e-8: an exported law may run in
either, see `in_floats`.
"""

SLIGHT = 1e-3
"""Fraction of the largest distance of a limit, or of u or u0 where these are nearer, that is added to the scale of every row:
the terms of a row through the origin may be no more than rounding errors of the other rows.
"""

WITHIN, WAY = 1e-5, 2e-6
"""Fractions of the terms of a limit by which an answer in floats may exceed it: of those at u, and of those of the way from u0,
whose rounding is all that remains of u where limits meet in the origin.
"""

BEYOND = 1e300
"""Larger than the length of any move."""


def most_iterations(n: int, m: int) -> int:
    """Upper bound on the number of iterations: twice the most that millions of random and degenerate problems needed."""
    return 8 * (n + 1) + 2 * m


def in_floats(x: ca.SX) -> ca.SX:
    """Whether x is computed in single precision: known where expressions are built for floats, else a test that the expression
    itself makes when it is evaluated.

    x: (1, 1), any number. Without it CasADi would evaluate the test while the expression is built, in doubles.
    """
    if for_floats():
        return ca.SX(1)
    one = ca.fmin(ca.fmax(x, 1), 1)
    return one + 1e-9 <= one


def tolerances(x: ca.SX) -> Tolerances:
    """The tolerances for the arithmetic in which x (1, 1) is computed."""
    floats = in_floats(x)
    return Tolerances(*[ca.if_else(floats, single, double) for single, double in zip(SINGLE, DOUBLE, strict=True)])


class Nearest(NamedTuple):
    """Result of `nearest`.

    u: (n, 1).
    y: (m, 1) multipliers, H (u - u0) + W^T y = 0; of an infeasible problem y >= 0 with W^T y = 0, l^T y < 0.
    active: (m, 1) 1 for rows that limit u, or that contradict each other.   status: (1, 1) SOLVED ... NOT_A_NUMBER.
    iterations: (1, 1) number of iterations, at most `most_iterations` for each search.
    error: (1, 1) relative error of the optimality conditions.   within: (1, 1) whether u satisfies W u <= l up to rounding.
    """

    u: ca.SX
    y: ca.SX
    active: ca.SX
    status: ca.SX
    iterations: ca.SX
    error: ca.SX
    within: ca.SX


class _Iterate(NamedTuple):
    """State of the method between two iterations.

    moves: (1, 1) number of iterations that found a violated row.   status: -1 until an end other than SOLVED is known.
    pending: the row of an unfinished move, counted from 1, or 0; y_p: its multiplier.
    loose: violation up to which a row counts as satisfied.   z: (n, 1).
    There are k places for active rows.   row: (k, 1) the row in each place, counted from 1, or 0 if the place is free.
    y: (k, 1) its multiplier.   B: (k, n) its dual vector.   N: (k, n + 1) the row itself, with its limit.
    """

    moves: ca.SX
    status: ca.SX
    pending: ca.SX
    y_p: ca.SX
    loose: ca.SX
    z: ca.SX
    row: ca.SX
    y: ca.SX
    B: ca.SX
    N: ca.SX


def nearest(H: ca.SX, u0: ca.SX, W: ca.SX, l: ca.SX) -> Nearest:
    """The u nearest to u0 in the metric of H with W u <= l, as an expression, for use in a law of your own.

        u = argmin (u - u0)^T H (u - u0) / 2   with   W u <= l

    Rows of W may be zero or parallel, and may contradict each other. A limit of inf restricts nothing, and no u satisfies one
    of -inf. Constants in an SX must be finite: leave out rows with an infinite limit.

    Args:
        H: (n, n) positive definite.
        u0: (n, 1) the point to approach.
        W: (m, n) rows; one shorter than 1e-150 counts as zero.
        l: (m, 1) their limits.
    Returns:
        u (n, 1), multipliers y (m, 1), active (m, 1), status (0: solved; see `pf.analysis.solve_qp`), iterations, error,
        within.

    Example:
        >>> import casadi as ca
        >>> from pfaffian import control
        >>> found = control.nearest(ca.SX.eye(2), ca.SX([3.0, 4.0]), ca.SX([[1.0, 1.0]]), ca.SX(5.0))
        >>> ca.evalf(found.u)
        DM([2, 3])
    """
    H, u0, l = ca.densify(H), ca.densify(u0), ca.densify(l)
    return _search(H, u0, *_directions(ca.sparsify(W)), l)


def nearest_by_root(R: ca.SX, u0: ca.SX, W: ca.SX, l: ca.SX, small: float = 0.0) -> Nearest:
    """The u nearest to u0 in the metric of H = R^T R with W u <= l, by two searches that are accurate in floats.

    Rounding of the product R^T R would hide whatever in R is below the root of an ulp. Here R is made orthonormal by
    coordinates x instead, so that all searches have the identity as their H:

        u = u_i + T x,   |R T x|^2 = r |x|^2,   r = the sum of all squares in R

    The first search starts from u_1 = u0. The second one starts from its result u_2, where limits that are reached have a
    distance of almost zero, so that u satisfies them to the digits of u and not to those of the way from u0. Its errors are
    those of the result.

    Args:
        R: (k, n), R^T R + small r positive definite.
        u0: (n, 1) the point to approach.
        W: (m, n) rows.
        l: (m, 1) their limits.
        small: weight of the distance from u0 in the first search and from its result in the second, beside a motion of the
            size of R; 0 for none. The second search squares the error that the weight causes. [Rockafellar 1976]
    Returns:
        Nearest, with the iterations of both searches.
    """
    n, size = R.shape[1], ca.fmax(ca.sqrt(ca.sumsqr(R)), NOTHING)
    rows = ca.horzcat(R.T / size, math.sqrt(small) * ca.SX.eye(n)) if small else R.T / size
    T = ca.densify(orthogonalise(rows, ca.SX.eye(n), NOTHING).D.T)
    sides, directions = _directions(ca.sparsify(W))
    S, V, H = sides.matrix, directions @ T, ca.SX.eye(n)
    finite = ca.fabs(l) <= LARGEST

    def terms_of(u: ca.SX) -> ca.SX:
        """Size of the terms of l - W u."""
        return _where(finite, ca.fabs(l) + ca.fabs(S) @ (ca.fabs(directions) @ ca.fabs(u)))

    def search(u: ca.SX, start: ca.SX) -> Nearest:
        """The x nearest to the start; x = 0 is u."""
        return _search(H, start, sides, V, l - S @ (directions @ u), terms_of(u))

    first = search(u0, ca.SX.zeros(n, 1))
    step = T @ first.u
    second = search(u0 + step, small * (T.T @ step) - first.u)
    # The second search may fail in a corner, where all distances are roundings of the first step.
    good = second.status == SOLVED
    found = Nearest(*[ca.if_else(good, b, a) for a, b in zip(first, second, strict=True)])
    u, way = u0 + step + _where(good, T @ second.u), ca.fabs(u0) + ca.fabs(T) @ ca.fabs(first.u)
    over = S @ (directions @ u) - l - WITHIN * terms_of(u) - WAY * terms_of(way)
    within = _most(_where(finite, over)) <= 0
    status = ca.if_else(ca.logic_and(found.status == SOLVED, ca.logic_not(within)), INACCURATE, found.status)
    iterations = first.iterations + second.iterations
    return found._replace(u=u, y=size**2 * found.y, status=status, iterations=iterations, within=within)


def _search(H: ca.SX, u0: ca.SX, sides: _Sides, W: ca.SX, l: ca.SX, terms: ca.SX | None = None) -> Nearest:
    """`nearest`, with the rows S W, where W are the directions that they limit.

    terms: (m, 1) size of the numbers whose sum each limit is, up to whose rounding it is met; that of the limit if None.
    """
    m, n = len(sides.of), W.shape[1]
    k = min(n, m)
    S, tol = sides.matrix, tolerances(H[0, 0])
    F = _cholesky(H)
    V, limits = _normal(F, u0, S, W, l, tol)
    are_numbers = _total(ca.fabs(pack((ca.tril(H), u0, W)))) <= LARGEST
    are_numbers *= _total(ca.logic_or(ca.fabs(l) <= LARGEST, ca.fabs(l) > LARGEST)) == m
    problem = V, limits.d, ca.vertcat(tol.rounding, tol.parallel, tol.rising)
    iteration = _iteration(sides, n, *map(tuple, V.sparsity().get_triplet()))
    z0 = F.L.T @ u0
    start = _start(n, k, are_numbers, F.definite, limits.never)._replace(z=limits.share * z0)
    x = _pack(_next(start, *problem[:2], S, tol))  # The first iteration, inlined: no row is active yet.
    for _ in range(most_iterations(n, m) - 1):
        x = iteration(x, pack(problem))
    s = _unpack(x, n, k)
    here = [s.row == i + 1 for i in range(m)]
    u, move, multipliers = _polished(s, F, u0, z0, tol)
    contradicting = s.status == INFEASIBLE
    by_place = ca.if_else(contradicting, s.y, multipliers)
    of_row = [_total(_where(at, by_place)) + contradicting * (s.pending == i + 1) for i, at in enumerate(here)]
    y = ca.vertcat(ca.SX(0, 1), *of_row) * limits.inverse
    # Active rows of an infeasible problem need not be part of the contradiction.
    active = [ca.if_else(contradicting, of_row[i] > 0, _total(at)) for i, at in enumerate(here)]
    left, over, certain = _errors(H @ move, S, W, l, terms, limits, (u, y), tol)
    within = over <= ca.if_else(limits.share < 1, tol.accurate, tol.violation)
    good = ca.logic_and(left <= tol.accurate, within)
    ended = ca.if_else(s.moves < most_iterations(n, m), ca.if_else(good, SOLVED, INACCURATE), TOO_MANY_ITERATIONS)
    known_end = ca.if_else(contradicting, ca.if_else(certain, INFEASIBLE, INACCURATE), s.status)
    status, iterations = ca.if_else(s.status < 0, ended, known_end), s.moves + (s.status < 0)
    return Nearest(u, y, ca.vertcat(ca.SX(0, 1), *active), status, iterations, ca.fmax(left, over), within)


def _start(n: int, k: int, are_numbers: ca.SX, definite: ca.SX, never: ca.SX) -> _Iterate:
    """The state before the first iteration: no row is active. A limit that no u satisfies is a contradiction by itself."""
    none, pending = ca.SX.zeros, ca.SX(0)
    for i in reversed(range(never.numel())):
        pending = ca.if_else(never[i], i + 1, pending)
    status = ca.if_else(are_numbers, ca.if_else(definite, ca.if_else(pending > 0, INFEASIBLE, -1), INDEFINITE), NOT_A_NUMBER)
    return _Iterate(none(1), status, pending, none(1), none(1), none(n), none(k), none(k), none(k, n), none(k, n + 1))


def _pack(s: _Iterate) -> ca.SX:
    """A state as one column."""
    return ca.vertcat(*[ca.vec(ca.densify(part)) for part in s])


def _unpack(x: ca.SX, n: int, k: int) -> _Iterate:
    """The state in a column made by `_pack`."""
    template = _start(n, k, ca.SX(1), ca.SX(1), ca.SX(0, 1))
    ends = [0]
    for part in template:
        ends.append(ends[-1] + part.numel())
    parts = [ca.reshape(x[a:b], *part.shape) for part, a, b in zip(template, ends, ends[1:], strict=False)]
    return _Iterate(*parts)


@lru_cache(maxsize=64)
def _iteration(sides: _Sides, n: int, row: tuple[int, ...], column: tuple[int, ...]) -> ca.Function:
    """One iteration as a Function: (state, entries of V, d and three of the tolerances) -> state.

    Its name contains a digest of everything that its code depends on, as one kernel may call several of them.
    """
    S, m = sides.matrix, len(sides.of)
    sparsity = ca.Sparsity.triplet(S.shape[1], n, row, column)
    V, d, tolerances = ca.SX.sym("V", sparsity.nnz()), ca.SX.sym("d", m), ca.SX.sym("tolerances", 3)
    tol = Tolerances(*ca.vertsplit(tolerances), *[ca.SX(0)] * 6)
    template = _pack(_start(n, min(n, m), ca.SX(1), ca.SX(1), ca.SX(0, 1)))
    x = ca.SX.sym("x", template.numel())
    after = _next(_unpack(x, n, min(n, m)), ca.SX(sparsity, V), d, S, tol)
    name = sha256(repr((sides, n, row, column)).encode()).hexdigest()[:16]
    return ca.Function(f"qp_{name}", [x, ca.vertcat(V, d, tolerances)], [_pack(after)], {"never_inline": True})


def _next(s: _Iterate, V: ca.SX, d: ca.SX, S: ca.DM, tol: Tolerances) -> _Iterate:
    """The state after one iteration; an unchanged state if the iteration has ended."""
    k, n = s.row.numel(), s.z.numel()
    live, free = s.status < 0, [s.row[j] == 0 for j in range(k)]
    chosen = _chosen(s, live, V, d, S, tol)
    split = _split(s, chosen.v)
    move = _move(s, chosen, split, free, tol)
    into, out = places = _places(move, free)
    t, grown, row = move.length, s.y_p + move.length, ca.horzcat(chosen.v.T, chosen.d)
    y = ca.fmax(_where(ca.logic_not(move.contradicts), s.y) - (t + move.contradicts) * split.r, 0)
    unfinished = ca.logic_or(move.drops, move.contradicts)
    return _Iterate(
        moves=s.moves + chosen.found,
        status=ca.if_else(move.contradicts, INFEASIBLE, s.status),
        pending=ca.if_else(live, _where(unfinished, chosen.p), s.pending),
        y_p=ca.if_else(live, _where(move.drops, grown) + move.contradicts, s.y_p),
        loose=ca.fmax(s.loose, _where(ca.logic_and(chosen.found, ca.logic_not(move.restricts)), 2 * chosen.lack)),
        z=s.z - _where(move.new, t) * split.w,
        row=ca.vertcat(*[ca.if_else(into[j], chosen.p, _where(ca.logic_not(out[j]), s.row[j])) for j in range(k)]),
        y=ca.vertcat(*[ca.if_else(into[j], grown, y[j]) for j in range(k)]),
        B=_dual_vectors(s, split, move, places),
        N=ca.vertcat(ca.SX(0, n + 1), *[ca.if_else(into[j], row, s.N[j, :]) for j in range(k)]),
    )


class _Chosen(NamedTuple):
    """The row v^T z <= d towards which an iteration moves z.

    p: its number, counted from 1, or 0 if there is none.   found: whether there is one.   v: (n, 1).   lack: v^T z - d.
    """

    p: ca.SX
    found: ca.SX
    v: ca.SX
    d: ca.SX
    lack: ca.SX


def _chosen(s: _Iterate, live: ca.SX, V: ca.SX, d: ca.SX, S: ca.DM, tol: Tolerances) -> _Chosen:
    """The row of the unfinished move, else the most violated row; none after the end, where live is 0."""
    slack = d - S @ _product(V, s.z)
    none = -s.loose - tol.rounding * _total(ca.fabs(s.z))
    _, worst = _least([none, *ca.vertsplit(slack)])
    p = _where(live, ca.if_else(s.pending > 0, s.pending, worst))
    here = ca.vertcat(ca.SX(0, 1), *[p == i + 1 for i in range(d.numel())])
    along = S.T @ here
    v, d_p = _sum([along[i] * V[i, :].T for i in range(V.shape[0])]), _picked(ca.vertsplit(here), ca.vertsplit(d))
    return _Chosen(p, p > 0, v, d_p, _total(v * s.z) - d_p)


class _Split(NamedTuple):
    """A row as v = N^T r + w.

    r: (k, 1) its coordinates in the active rows.   size: 1 + the sum of |r_j|.   w: (n, 1) its part orthogonal to them.
    left: |w|^2.
    """

    r: ca.SX
    size: ca.SX
    w: ca.SX
    left: ca.SX


def _split(s: _Iterate, v: ca.SX) -> _Split:
    """Decompose a row into parts along the active rows and orthogonal to them."""
    N = s.N[:, : s.z.numel()]
    r = _product(s.B, v)
    w = v - _product(N.T, r)
    # Subtract once more the part along N that rounding has left in w.
    correction = _product(s.B, w)
    r, w = r + correction, w - _product(N.T, correction)
    return _Split(r, 1 + _total(ca.fabs(r)), w, _total(w * w))


class _Move(NamedTuple):
    """A move of z by -length w and of y by -length r, and how it ends; at most one of reaches, drops and contradicts.

    new: whether the row is independent of the active ones; if not, z stays.   inverse: 1 / |w|^2, or 0 if not new.
    restricts: whether the row restricts z more than the active ones do.   reaches: z reaches the row.
    drops: before that, the multiplier of the active row in place `first`, counted from 1, falls to zero.
    contradicts: neither can happen.
    """

    length: ca.SX
    new: ca.SX
    inverse: ca.SX
    restricts: ca.SX
    reaches: ca.SX
    drops: ca.SX
    first: ca.SX
    contradicts: ca.SX


def _move(s: _Iterate, chosen: _Chosen, split: _Split, free: Sequence[ca.SX], tol: Tolerances) -> _Move:
    """The move to the chosen row, or to where a multiplier falls to zero.   free: whether each place for a row is free."""
    depends = ca.logic_or(split.left <= (tol.parallel * split.size) ** 2, ca.logic_not(_any(free)))
    # If the row depends on active ones, compare limits to decide whether it restricts more: z has accumulated rounding.
    counts = _total(split.r * s.N[:, s.z.numel()]) > chosen.d
    fall, first = _fall(s, split, tol)
    new = ca.logic_and(chosen.found, ca.logic_not(depends))
    inverse = _where(new, 1 / ca.fmax(split.left, NOTHING))
    reach = ca.fmax(chosen.lack, 0) * inverse
    reaches = ca.logic_and(new, reach <= fall)
    restricts = ca.logic_or(new, ca.logic_and(chosen.found, counts))
    drops = ca.logic_and(ca.logic_and(restricts, ca.logic_not(reaches)), first > 0)
    contradicts = ca.logic_and(ca.logic_and(restricts, depends), first == 0)
    length = ca.if_else(reaches, reach, _where(drops, fall))
    return _Move(length, new, inverse, restricts, reaches, drops, first, contradicts)


def _fall(s: _Iterate, split: _Split, tol: Tolerances) -> tuple[ca.SX, ca.SX]:
    """Length of the move at which the first multiplier falls to zero, and its place, counted from 1; BEYOND and 0 if none."""
    least = tol.rising * split.size
    r, y = split.r, s.y
    falls = [ca.if_else(r[j] > least, y[j] / ca.fmax(r[j], least), BEYOND) for j in range(y.numel())]
    return _least([ca.SX(BEYOND), *falls])


class _Places(NamedTuple):
    """For each place of an active row.   into: whether the chosen row enters it.   out: whether the row in it is dropped."""

    into: list[ca.SX]
    out: list[ca.SX]


def _places(move: _Move, free: Sequence[ca.SX]) -> _Places:
    """A row that is reached enters the first free place; a dropped row leaves its place."""
    out = [ca.logic_and(move.drops, move.first == j + 1) for j in range(len(free))]
    into = [ca.logic_and(move.reaches, ca.logic_and(here, ca.logic_not(_any(free[:j])))) for j, here in enumerate(free)]
    return _Places(into, out)


def _dual_vectors(s: _Iterate, split: _Split, move: _Move, places: _Places) -> ca.SX:
    """B (k, n) after the move: with the dual vector of a new active row, or without that of a dropped one."""
    k = s.row.numel()
    b = _picked(places.out, [s.B[j, :].T for j in range(k)])
    overlap = _product(s.B, b) * (1 / ca.fmax(_total(b * b), NOTHING))
    gain = [_where(move.reaches, split.r[j]) - places.into[j] for j in range(k)]
    c = [gain[j] + ca.if_else(places.out[j], 1, overlap[j]) for j in range(k)]
    return s.B - ca.vertcat(ca.SX(0, 1), *c) @ (_where(move.reaches, move.inverse) * split.w + b).T


def _where(condition: ca.SX, x: ca.SX) -> ca.SX:
    """x where the condition is true, else zero."""
    return ca.if_else(condition, x, 0)


def _sum(terms: Sequence[ca.SX]) -> ca.SX:
    """Sum, by rounds of pairs."""
    rest = list(terms)
    while len(rest) > 1:
        rest = [a + b for a, b in zip(rest[::2], rest[1::2], strict=False)] + rest[len(rest) // 2 * 2 :]
    return rest[0] if rest else ca.SX(0)


def _total(x: ca.SX) -> ca.SX:
    """Sum of the entries of x, by rounds of pairs."""
    return _sum(ca.vertsplit(ca.vec(ca.densify(x))))


def _product(A: ca.SX, x: ca.SX) -> ca.SX:
    """A x, its sums by rounds of pairs."""
    rows = [ca.sparsify(A[i, :] * x.T) for i in range(A.shape[0])]
    return ca.vertcat(ca.SX(0, 1), *[_sum([row.nz[i] for i in range(row.nnz())]) for row in rows])


def _picked(one: Sequence[ca.SX], of: Sequence[ca.SX]) -> ca.SX:
    """The value whose condition is true, or zero; at most one condition may be true."""
    return _sum([_where(here, x) for here, x in zip(one, of, strict=True)])


def _any(conditions: Sequence[ca.SX]) -> ca.SX:
    """Whether any of the conditions is true."""
    return reduce(ca.logic_or, conditions, ca.SX(0))


def _least(values: Sequence[ca.SX]) -> tuple[ca.SX, ca.SX]:
    """The least value and its index; of several equal ones the first."""
    rest = [(x, ca.SX(i)) for i, x in enumerate(values)]
    while len(rest) > 1:
        pairs = zip(rest[::2], rest[1::2], strict=False)
        left = rest[len(rest) // 2 * 2 :]
        rest = [(ca.if_else(y < x, y, x), ca.if_else(y < x, j, i)) for (x, i), (y, j) in pairs] + left
    return rest[0]


class _OrthonormalRows(NamedTuple):
    """Active rows N x = d in orthonormal form, Q x = D.

    Rows of Q are (n, 1) each, and zero for free places. Row j of N is row j of Q divided by its scale, plus `parts` times the
    earlier rows of Q.
    """

    Q: list[ca.SX]
    D: list[ca.SX]
    scale: list[ca.SX]
    parts: list[list[ca.SX]]


def _orthonormal(s: _Iterate, tol: Tolerances) -> _OrthonormalRows:
    """Active rows in orthonormal form, as by `linear.orthogonalise`: they have unit length and are known to be independent."""
    k, n = s.B.shape
    found = _OrthonormalRows([], [], [], [])
    for j in range(k):
        row, d, parts = s.N[j, :n].T, s.N[j, n], []
        d = d - tol.rounding * ca.fabs(d)  # the limit as it was before it was loosened
        for q, d_q in zip(found.Q, found.D, strict=True):
            parts.append(_total(q * row))
            row, d = row - parts[-1] * q, d - parts[-1] * d_q
        left = _total(row * row)
        keep = ca.logic_and(s.row[j] > 0, left > (tol.parallel / 10) ** 2)
        found.scale.append(keep / ca.sqrt(ca.fmax(left, NOTHING)))
        found.Q.append(row * found.scale[j])
        found.D.append(d * found.scale[j])
        found.parts.append(parts)
    return found


def _polished(s: _Iterate, F: _HessianFactor, u0: ca.SX, z0: ca.SX, tol: Tolerances) -> tuple[ca.SX, ca.SX, ca.SX]:
    """The point u on the active rows nearest to u0 and the step u - u0, both (n, 1), and the rows' multipliers (k, 1).

    z0: (n, 1) L^T u0.
    """
    k = s.B.shape[0]
    Q, D, scale, parts = _orthonormal(s, tol)
    z, way, y, along = z0, ca.SX.zeros(z0.shape), [ca.SX(0)] * k, [ca.SX(0)] * k
    for j in reversed(range(k)):
        along[j] = D[j] - _total(Q[j] * z)
        z, way = z + Q[j] * along[j], way + Q[j] * along[j]
    move = _solve_transposed(F, way)
    u = u0 + move
    # Rounding of a long step misses the rows: take one more step from its end.
    z = F.L.T @ u
    further = [d - _total(q * z) for q, d in zip(Q, D, strict=True)]
    correction = _solve_transposed(F, _sum([q * part for q, part in zip(Q, further, strict=True)]))
    # As in `linear.smallest`: the step is the sum of its parts along the rows of Q, so these parts give the multipliers. The
    # last step counts too: if the whole step is tiny, it is most of it.
    for j in reversed(range(k)):
        part = along[j] + further[j]
        for i in range(j + 1, k):
            part = part + parts[i][j] * y[i]
        y[j] = -part * scale[j]
    return u + correction, move + correction, ca.fmax(ca.vertcat(ca.SX(0, 1), *y), 0)


class _HessianFactor(NamedTuple):
    """Cholesky factor of H.

    L: lower triangular, H = L L^T; finite but meaningless where H is not positive definite.   inverse: 1 / L_jj for each
    column.   definite: whether H is positive definite.
    """

    L: ca.SX
    inverse: tuple[ca.SX, ...]
    definite: ca.SX


def _cholesky(H: ca.SX) -> _HessianFactor:
    """The Cholesky factor of H (n, n)."""
    n, tol = H.shape[0], tolerances(H[0, 0])
    L, inverse = ca.SX(n, n), []
    definite = ca.SX(1)
    for j in range(n):
        pivot = H[j, j] - ca.sumsqr(L[j, :j])
        good = pivot > tol.pivot * H[j, j]
        definite = definite * good
        L[j, j] = ca.sqrt(ca.if_else(good, pivot, 1))
        inverse.append(1 / L[j, j])
        for i in range(j + 1, n):
            entry = H[i, j] - ca.dot(L[i, :j], L[j, :j])
            if not entry.is_zero():
                L[i, j] = entry * inverse[j]
    return _HessianFactor(L, tuple(inverse), definite)


def _solve_rows(F: _HessianFactor, W: ca.SX) -> ca.SX:
    """W L^-T; structural zeros stay zero."""
    columns: list[ca.SX] = []
    for j, inverse in enumerate(F.inverse):
        c = W[:, j]
        for i in range(j):
            if F.L.sparsity().has_nz(j, i):
                c = c - columns[i] * F.L[j, i]
        columns.append(ca.sparsify(c * inverse))
    return ca.horzcat(*columns)


def _solve_transposed(F: _HessianFactor, z: ca.SX) -> ca.SX:
    """L^-T z."""
    n = F.L.shape[0]
    x: list[ca.SX] = [ca.SX(0)] * n
    for j in reversed(range(n)):
        x[j] = (z[j] - sum((F.L[i, j] * x[i] for i in range(j + 1, n)), ca.SX(0))) * F.inverse[j]
    return ca.vertcat(*x)


class _Sides(NamedTuple):
    """Row i of W is sign[i] times row of[i] of W_0, the directions.   matrix: S with W = S W_0."""

    of: tuple[int, ...]
    sign: tuple[int, ...]

    @property
    def matrix(self) -> ca.DM:
        return ca.DM.triplet(
            list(range(len(self.of))), list(self.of), list(self.sign), len(self.of), max(self.of, default=-1) + 1
        )


def _directions(W: ca.SX) -> tuple[_Sides, ca.SX]:
    """The direction that each row of W limits, and the directions W_0. Constant rows that are equal or opposite share one."""
    of, sign, rows = [], [], list[ca.SX]()
    for i in range(W.shape[0]):
        here = W[i, :]
        same = (
            [(j, s) for j, row in enumerate(rows) for s in (1, -1) if (row - s * here).is_zero()] if here.is_constant() else []
        )
        j, s = same[0] if same else (len(rows), 1)
        rows += [] if same else [here]
        of.append(j)
        sign.append(s)
    return _Sides(tuple(of), tuple(sign)), ca.vertcat(ca.SX(0, W.shape[1]), *rows)


class _Limits(NamedTuple):
    """Limits scaled to rows of unit length; a limit on a zero row and an infinite one restrict nothing.

    d: (m, 1) distance of each limit from the origin, loosened by its rounding; BEYOND if it restricts nothing.
    length: (m, 1) of each row.   inverse: (m, 1) 1 / length, or 0 if the limit restricts nothing; 1 where `never` is true.
    never: (m, 1) whether no u satisfies the limit.
    reach, away: (1, 1) largest distance of a limit, and of u0 along a row.
    share: (1, 1) multiple of u0 at which the method starts; see `Tolerances.distant`.
    """

    d: ca.SX
    length: ca.SX
    inverse: ca.SX
    never: ca.SX
    reach: ca.SX
    away: ca.SX
    share: ca.SX


def _normal(F: _HessianFactor, u0: ca.SX, S: ca.DM, W: ca.SX, l: ca.SX, tol: Tolerances) -> tuple[ca.SX, _Limits]:
    """Directions in z as rows V of unit length, or zero; and the limits along them."""
    V = _solve_rows(F, W)
    squared = ca.sum2(V * V)
    long = squared > NOTHING
    scale = ca.densify(_where(long, 1 / ca.sqrt(ca.fmax(squared, NOTHING))))
    P = ca.fabs(S)
    used = ca.logic_and(P @ long, ca.fabs(l) <= LARGEST)
    inverse, limit, never = (_where(c, x) for c, x in ((used, P @ scale), (used, l), (ca.logic_not(used), l < 0)))
    d = limit * inverse
    reach, away = _largest(d), _most(ca.fabs(W) @ ca.fabs(u0) * scale)
    # If all limits are at the origin, no distance counts as far.
    reach = ca.if_else(reach > 0, reach, away)
    share = ca.fmin(1, tol.distant * reach / ca.fmax(away, NOTHING))
    d = ca.if_else(used, d + tol.rounding * ca.fabs(d), BEYOND)
    d, length, inverse, never = (ca.densify(x) for x in (d, P @ (squared * scale), inverse + never, never))
    return ca.sparsify(ca.diag(scale) @ V), _Limits(d, length, inverse, never, reach, away, share)


def _errors(
    pulled: ca.SX, S: ca.DM, W: ca.SX, l: ca.SX, terms_of_l: ca.SX | None, limits: _Limits, found: tuple[ca.SX, ca.SX],
    tol: Tolerances,
) -> tuple[ca.SX, ca.SX, ca.SX]:  # fmt: skip
    """Relative errors of a result, and whether it proves a contradiction.

    found: u and the multipliers y.
    Returns the residual of H (u - u0) + W^T y = 0, with pulled = H (u - u0); the largest violation of W u <= l, each row
    relative to its terms; and whether W^T y = 0 is accurate enough for l^T y < 0 to prove that no u satisfies the rows.
    """
    (u, y), finite = found, ca.fabs(l) <= LARGEST
    l, y = _where(finite, l), _where(finite, y)
    terms_of_l = ca.fabs(l) if terms_of_l is None else _where(finite, terms_of_l)
    residual, terms = _largest(W.T @ (S.T @ y)), _largest(ca.fabs(W).T @ (ca.fabs(S).T @ y))
    size = ca.fabs(S) @ (ca.fabs(W) @ ca.fabs(u))
    slight = SLIGHT * ca.fmin(limits.reach, ca.fmax(limits.away, _most(size * limits.inverse)))
    size = ca.fmax(terms_of_l + size + slight * limits.length, NOTHING)
    over = (S @ (W @ u) - l) / size
    left = _largest(pulled + W.T @ (S.T @ y)) / ca.fmax(_largest(pulled) + terms, NOTHING)
    doubt = residual / ca.fmax(terms, NOTHING)
    certain = ca.logic_and(doubt <= tol.certain, tol.further * doubt * ca.dot(size, y) <= -ca.dot(l, y))
    return left, ca.fmax(_most(_where(finite, over)), 0), certain


def _largest(x: ca.SX) -> ca.SX:
    """The largest absolute value of the entries of x, 0 if there are none."""
    return _most(ca.fabs(x))


def _most(x: ca.SX) -> ca.SX:
    """The largest entry of x, 0 if there are none."""
    return -_least([-x_i for x_i in ca.vertsplit(ca.vec(ca.densify(x)))] or [ca.SX(0)])[0]
