"""The nearest point within linear limits: min 1/2 |u - u0|_H^2 with W u <= l, by a dual method.

In z = L^T u, H = L L^T, with rows of length one, it is the z nearest to z0 = L^T u0 with V z <= d. It starts at z0, where no
row is active. Each turn takes the most violated row v and moves z along w, the part of v orthogonal to the active rows N, and
their multipliers y against r, its coordinates in these: v = N^T r + w. The move ends where z reaches the row, which becomes
active, or before that where a multiplier falls to zero, whose row is dropped. The dual value rises with every row that is
reached, so no set of active rows occurs twice. Where w = 0 and no multiplier falls, r shows which active rows v contradicts.
[Goldfarb and Idnani 1983]

B are the dual vectors of the active rows, B N^T = 1 and in their span, so that adding or dropping a row is one outer product;
its rounding errors only affect which rows are chosen. The result is computed from the active rows alone, made orthonormal.

Where u0 is far beyond all limits, the long way from it ends beside the active rows by its rounding, so the last step is
repeated from there; and beyond `distant` times the limits the turns start on the way, at a multiple of u0, where the same rows
are active unless the direction is within 1 / distant of one where they change. A result is judged by the given H, W and l, row
by row: one that misses its conditions is INACCURATE, be it a point or a contradiction.

Turns are calls of one Function, so that the code contains its text once; a turn after the end changes nothing, and the kernel
stops there. A row of W and its negative limit one direction from both sides, which is stored once: W = S W_0, one entry +-1 in
a row of S.

The time of a turn is that of its longest chain of operations, not of their number: hence sums in pairs and minima by rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, reduce
from hashlib import sha256
from typing import NamedTuple

import casadi as ca

from pfaffian.maths.pack import pack
from pfaffian.maths.reflection import NOTHING

SOLVED, INFEASIBLE, TOO_MANY_TURNS, INACCURATE, INDEFINITE, NOT_A_NUMBER = range(6)

LARGEST = 1.7976931348623157e308
"""The largest double: anything above is infinite."""


class Tolerances(NamedTuple):
    """What counts as zero, of the arithmetic in which a problem is solved.

    rounding: part of themselves by which limits are loosened while rows are chosen.   parallel: a row depends on the active
    ones if its remainder is below this part of the length of its coordinates in them.   rising: entries of r below this part
    of its size count as zero.

    accurate: largest error of H (u - u0) + W^T y = 0, relative to its terms, and of rows where u0 is distant: its own digits
    end there.   violation: largest violation of a limit by a result, relative to the row's terms. In doubles, where more than n
    rows meet in one point, they are satisfied to 3e-12; rows that miss each other by more than this have no solution, whatever
    rounding made of the turns.   certain: largest entry of W^T y, relative to its terms, of rows that contradict each other.
    further: how many times farther away than the rows are from the origin and from u a u would have to be that satisfies rows
    with only nearly W^T y = 0: two that are opposite but for a small angle meet, and are no contradiction if they meet nearer.

    distant: largest distance of u0 from the origin, in those of limits, at which the turns start at u0 itself: the rounding
    error of rows then, in doubles 1e-16 of it, still shows which are active, and few directions are that near to where these
    change.   pivot: part of a diagonal entry of H below which a pivot is not positive.
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
"""Floats round by 6e-8, doubles by 1e-16: an exported law may run in either, see `in_floats`."""

SLIGHT = 1e-3
"""Part of the largest distance of a limit, as far as u or u0 come that far, in the scale of each row: where a row is satisfied
at the origin, its own terms are the rounding of others'.
"""

BEYOND = 1e300
"""Larger than the length of any move."""


def most_turns(n: int, m: int) -> int:
    """Bound on the turns, twice the most that millions of random and degenerate problems took."""
    return 8 * (n + 1) + 2 * m


def in_floats(x: ca.SX) -> ca.SX:
    """Whether the arithmetic in which x is computed rounds as floats do, which an expression cannot know but can find out.

    x: (1, 1), any number; without it the answer would be found while the expression is written, in doubles.
    """
    one = ca.fmin(ca.fmax(x, 1), 1)
    return one + 1e-9 <= one


def _tolerances(x: ca.SX) -> Tolerances:
    floats = in_floats(x)
    return Tolerances(*[ca.if_else(floats, single, double) for single, double in zip(SINGLE, DOUBLE, strict=True)])


class Nearest(NamedTuple):
    """u: (n, 1).   y: (m, 1) multipliers, H (u - u0) + W^T y = 0; of an infeasible problem y >= 0 with W^T y = 0, l^T y < 0.

    active: (m, 1) 1 for rows that hold u, or that contradict each other.   status: (1, 1) SOLVED ... NOT_A_NUMBER.
    turns: (1, 1) their number, at most `most_turns`.   error: (1, 1) of the optimality conditions, relative.   within: (1, 1)
    whether u satisfies W u <= l but for rounding.
    """

    u: ca.SX
    y: ca.SX
    active: ca.SX
    status: ca.SX
    turns: ca.SX
    error: ca.SX
    within: ca.SX


class _State(NamedTuple):
    """moves: (1, 1) turns that found a row violated.   status: -1 while the only known end is SOLVED.
    pending: row of an unfinished move, counted from 1, or 0; y_p: its multiplier.   loose: violation that counts as none.
    z: (n, 1).   For each of k places of an active row, row: (k, 1) counted from 1, 0 if free.   y: (k, 1).   B: (k, n).
    N: (k, n + 1) with its limit.
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
    """The u nearest to u0 in the metric of H with W u <= l, as an expression, for laws of one's own.

        u = argmin (u - u0)^T H (u - u0) / 2   with   W u <= l

    Rows of W may be zero, parallel or contradict each other; an l of inf is no limit, and no u satisfies one of -inf. No
    constant of SX may be infinite: leave out such rows.

    Args:
        H: (n, n) positive definite.
        u0: (n, 1).
        W: (m, n), a row shorter than 1e-150 counts as zero.
        l: (m, 1).
    Returns:
        u (n, 1), multipliers y (m, 1), active (m, 1), status (0: solved; see `pf.control.solve_qp`), turns, error,
        within.

    Example:
        >>> import casadi as ca
        >>> from pfaffian import control
        >>> found = control.nearest(ca.SX.eye(2), ca.SX([3.0, 4.0]), ca.SX([[1.0, 1.0]]), ca.SX(5.0))
        >>> ca.evalf(found.u)
        DM([2, 3])
    """
    m, n = W.shape
    k = min(n, m)
    H, u0, l = ca.densify(H), ca.densify(u0), ca.densify(l)
    sides, W = _directions(ca.sparsify(W))
    S, of = sides.matrix, _tolerances(H[0, 0])
    F = _cholesky(H, of)
    V, limits = _normal(F, u0, S, W, l, of)
    known = _total(ca.fabs(pack((ca.tril(H), u0, W)))) <= LARGEST
    known *= _total(ca.logic_or(ca.fabs(l) <= LARGEST, ca.fabs(l) > LARGEST)) == m
    given = V, limits.d, ca.vertcat(of.rounding, of.parallel, of.rising)
    turn = _turn(sides, n, *map(tuple, V.sparsity().get_triplet()))
    z0 = F.L.T @ u0
    start = _start(n, k, known, F.definite, limits.never)._replace(z=limits.share * z0)
    x = _pack(_next(start, *given[:2], S, of))  # No row is active: most of it folds into constants.
    for _ in range(most_turns(n, m) - 1):
        x = turn(x, pack(given))
    s = _unpack(x, n, k)
    here = [s.row == i + 1 for i in range(m)]
    u, move, multipliers = _polished(s, F, u0, z0, of)
    contradicting = s.status == INFEASIBLE
    by_place = ca.if_else(contradicting, s.y, multipliers)
    of_row = [_total(_where(at, by_place)) + contradicting * (s.pending == i + 1) for i, at in enumerate(here)]
    y = ca.vertcat(ca.SX(0, 1), *of_row) * limits.inverse
    # Active rows of an infeasible problem need not be part of the contradiction.
    active = [ca.if_else(contradicting, of_row[i] > 0, _total(at)) for i, at in enumerate(here)]
    left, over, certain = _errors(H @ move, S, W, l, limits, u, y, of)
    within = over <= ca.if_else(limits.share < 1, of.accurate, of.violation)
    good = ca.logic_and(left <= of.accurate, within)
    ended = ca.if_else(s.moves < most_turns(n, m), ca.if_else(good, SOLVED, INACCURATE), TOO_MANY_TURNS)
    known_end = ca.if_else(contradicting, ca.if_else(certain, INFEASIBLE, INACCURATE), s.status)
    status, turns = ca.if_else(s.status < 0, ended, known_end), s.moves + (s.status < 0)
    return Nearest(u, y, ca.vertcat(ca.SX(0, 1), *active), status, turns, ca.fmax(left, over), within)


def _start(n: int, k: int, known: ca.SX, definite: ca.SX, never: ca.SX) -> _State:
    """No row is active. A limit that nothing satisfies is a contradiction by itself."""
    none, pending = ca.SX.zeros, ca.SX(0)
    for i in reversed(range(never.numel())):
        pending = ca.if_else(never[i], i + 1, pending)
    status = ca.if_else(known, ca.if_else(definite, ca.if_else(pending > 0, INFEASIBLE, -1), INDEFINITE), NOT_A_NUMBER)
    return _State(none(1), status, pending, none(1), none(1), none(n), none(k), none(k), none(k, n), none(k, n + 1))


def _pack(s: _State) -> ca.SX:
    return ca.vertcat(*[ca.vec(ca.densify(part)) for part in s])


def _unpack(x: ca.SX, n: int, k: int) -> _State:
    like = _start(n, k, ca.SX(1), ca.SX(1), ca.SX(0, 1))
    ends = [0]
    for part in like:
        ends.append(ends[-1] + part.numel())
    parts = [ca.reshape(x[a:b], *part.shape) for part, a, b in zip(like, ends, ends[1:], strict=False)]
    return _State(*parts)


@lru_cache(maxsize=64)
def _turn(sides: _Sides, n: int, row: tuple[int, ...], column: tuple[int, ...]) -> ca.Function:
    """(state, entries of V, d and three of the tolerances) -> state; its name contains all that its text depends on, as one
    kernel may call several.
    """
    S, m = sides.matrix, len(sides.of)
    sparsity = ca.Sparsity.triplet(S.shape[1], n, row, column)
    V, d, few = ca.SX.sym("V", sparsity.nnz()), ca.SX.sym("d", m), ca.SX.sym("tolerances", 3)
    of = Tolerances(*ca.vertsplit(few), *[ca.SX(0)] * 6)
    like = _pack(_start(n, min(n, m), ca.SX(1), ca.SX(1), ca.SX(0, 1)))
    x = ca.SX.sym("x", like.numel())
    after = _next(_unpack(x, n, min(n, m)), ca.SX(sparsity, V), d, S, of)
    name = sha256(repr((sides, n, row, column)).encode()).hexdigest()[:16]
    return ca.Function(f"qp_{name}", [x, ca.vertcat(V, d, few)], [_pack(after)], {"never_inline": True})


def _next(s: _State, V: ca.SX, d: ca.SX, S: ca.DM, of: Tolerances) -> _State:
    """The state after one turn; the same state after the end."""
    k, n = s.row.numel(), s.z.numel()
    live, free = s.status < 0, [s.row[j] == 0 for j in range(k)]
    chosen = _chosen(s, live, V, d, S, of)
    split = _split(s, chosen.v)
    move = _move(s, chosen, split, free, of)
    into, out = places = _places(move, free)
    t, grown, row = move.length, s.y_p + move.length, ca.horzcat(chosen.v.T, chosen.d)
    y = ca.fmax(_where(ca.logic_not(move.contradicts), s.y) - (t + move.contradicts) * split.r, 0)
    unfinished = ca.logic_or(move.drops, move.contradicts)
    return _State(
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
    """The row v^T z <= d that a turn moves z towards.   p: its number from 1 on, 0 for none.   found: whether there is one.
    v: (n, 1).   lack: v^T z - d.
    """

    p: ca.SX
    found: ca.SX
    v: ca.SX
    d: ca.SX
    lack: ca.SX


def _chosen(s: _State, live: ca.SX, V: ca.SX, d: ca.SX, S: ca.DM, of: Tolerances) -> _Chosen:
    """The most violated row, unless a move is unfinished; none after the end, where live is 0."""
    slack = d - S @ _product(V, s.z)
    none = -s.loose - of.rounding * _total(ca.fabs(s.z))
    _, worst = _least([none, *ca.vertsplit(slack)])
    p = _where(live, ca.if_else(s.pending > 0, s.pending, worst))
    here = ca.vertcat(ca.SX(0, 1), *[p == i + 1 for i in range(d.numel())])
    along = S.T @ here
    v, d_p = _sum([along[i] * V[i, :].T for i in range(V.shape[0])]), _picked(ca.vertsplit(here), ca.vertsplit(d))
    return _Chosen(p, p > 0, v, d_p, _total(v * s.z) - d_p)


class _Split(NamedTuple):
    """v = N^T r + w.   r: (k, 1) its coordinates in the active rows.   size: 1 + the sum of |r_j|.   w: (n, 1) its part
    orthogonal to them.   left: |w|^2.
    """

    r: ca.SX
    size: ca.SX
    w: ca.SX
    left: ca.SX


def _split(s: _State, v: ca.SX) -> _Split:
    """A row along the active ones and orthogonal to them."""
    N = s.N[:, : s.z.numel()]
    r = _product(s.B, v)
    w = v - _product(N.T, r)
    # What rounding left of N in w is subtracted once more.
    more = _product(s.B, w)
    r, w = r + more, w - _product(N.T, more)
    return _Split(r, 1 + _total(ca.fabs(r)), w, _total(w * w))


class _Move(NamedTuple):
    """A move of z by -length w and of y by -length r, and how it ends; at most one of reaches, drops and contradicts.

    new: whether the row is independent of the active ones; if not, z stays.   inverse: 1 / |w|^2, or 0 if not new.
    restricts: whether the row restricts z at all beside the active ones.   reaches: z comes to the row.   drops: before that
    the multiplier of the active row in place `first`, counted from 1, falls to zero.   contradicts: neither can happen.
    """

    length: ca.SX
    new: ca.SX
    inverse: ca.SX
    restricts: ca.SX
    reaches: ca.SX
    drops: ca.SX
    first: ca.SX
    contradicts: ca.SX


def _move(s: _State, chosen: _Chosen, split: _Split, free: Sequence[ca.SX], of: Tolerances) -> _Move:
    """The move to the chosen row, or to where a multiplier falls to zero.   free: whether each place of an active row is."""
    depends = ca.logic_or(split.left <= (of.parallel * split.size) ** 2, ca.logic_not(_any(free)))
    # If the row depends on active ones, only the limits tell whether it adds to them: z has accumulated rounding.
    counts = _total(split.r * s.N[:, s.z.numel()]) > chosen.d
    fall, first = _fall(s, split, of)
    new = ca.logic_and(chosen.found, ca.logic_not(depends))
    inverse = _where(new, 1 / ca.fmax(split.left, NOTHING))
    reach = ca.fmax(chosen.lack, 0) * inverse
    reaches = ca.logic_and(new, reach <= fall)
    restricts = ca.logic_or(new, ca.logic_and(chosen.found, counts))
    drops = ca.logic_and(ca.logic_and(restricts, ca.logic_not(reaches)), first > 0)
    contradicts = ca.logic_and(ca.logic_and(restricts, depends), first == 0)
    length = ca.if_else(reaches, reach, _where(drops, fall))
    return _Move(length, new, inverse, restricts, reaches, drops, first, contradicts)


def _fall(s: _State, split: _Split, of: Tolerances) -> tuple[ca.SX, ca.SX]:
    """Length of the move at which the first multiplier falls to zero, and its place, counted from 1; BEYOND and 0 if none."""
    least = of.rising * split.size
    r, y = split.r, s.y
    falls = [ca.if_else(r[j] > least, y[j] / ca.fmax(r[j], least), BEYOND) for j in range(y.numel())]
    return _least([ca.SX(BEYOND), *falls])


class _Places(NamedTuple):
    """For each place of an active row, into: whether the chosen row comes there.   out: whether the row there is dropped."""

    into: list[ca.SX]
    out: list[ca.SX]


def _places(move: _Move, free: Sequence[ca.SX]) -> _Places:
    """The first free place for a row that is reached, and the one that a dropped row leaves."""
    out = [ca.logic_and(move.drops, move.first == j + 1) for j in range(len(free))]
    into = [ca.logic_and(move.reaches, ca.logic_and(here, ca.logic_not(_any(free[:j])))) for j, here in enumerate(free)]
    return _Places(into, out)


def _dual_vectors(s: _State, split: _Split, move: _Move, places: _Places) -> ca.SX:
    """B (k, n) after the move: with the vector of a row that became active, or without that of one that was dropped."""
    k = s.row.numel()
    b = _picked(places.out, [s.B[j, :].T for j in range(k)])
    overlap = _product(s.B, b) * (1 / ca.fmax(_total(b * b), NOTHING))
    gain = [_where(move.reaches, split.r[j]) - places.into[j] for j in range(k)]
    c = [gain[j] + ca.if_else(places.out[j], 1, overlap[j]) for j in range(k)]
    return s.B - ca.vertcat(ca.SX(0, 1), *c) @ (_where(move.reaches, move.inverse) * split.w + b).T


def _where(condition: ca.SX, x: ca.SX) -> ca.SX:
    """x, or zero."""
    return ca.if_else(condition, x, 0)


def _sum(terms: Sequence[ca.SX]) -> ca.SX:
    """Sum in pairs."""
    rest = list(terms)
    while len(rest) > 1:
        rest = [a + b for a, b in zip(rest[::2], rest[1::2], strict=False)] + rest[len(rest) // 2 * 2 :]
    return rest[0] if rest else ca.SX(0)


def _total(x: ca.SX) -> ca.SX:
    """Sum of the entries."""
    return _sum(ca.vertsplit(ca.vec(ca.densify(x))))


def _product(A: ca.SX, x: ca.SX) -> ca.SX:
    """A x."""
    rows = [ca.sparsify(A[i, :] * x.T) for i in range(A.shape[0])]
    return ca.vertcat(ca.SX(0, 1), *[_sum([row.nz[i] for i in range(row.nnz())]) for row in rows])


def _picked(one: Sequence[ca.SX], of: Sequence[ca.SX]) -> ca.SX:
    """The value whose condition is true, or zero; at most one is."""
    return _sum([_where(here, x) for here, x in zip(one, of, strict=True)])


def _any(conditions: Sequence[ca.SX]) -> ca.SX:
    return reduce(ca.logic_or, conditions, ca.SX(0))


def _least(values: Sequence[ca.SX]) -> tuple[ca.SX, ca.SX]:
    """The least and its index from 0 on, the first of several equal ones."""
    rest = [(x, ca.SX(i)) for i, x in enumerate(values)]
    while len(rest) > 1:
        pairs = zip(rest[::2], rest[1::2], strict=False)
        left = rest[len(rest) // 2 * 2 :]
        rest = [(ca.if_else(y < x, y, x), ca.if_else(y < x, j, i)) for (x, i), (y, j) in pairs] + left
    return rest[0]


class _Rows(NamedTuple):
    """Active rows N x = d as orthonormal ones, Q x = D, each (n, 1), and zero for free places. Row j of N is that of Q divided
    by scale, plus the parts of those before it.
    """

    Q: list[ca.SX]
    D: list[ca.SX]
    scale: list[ca.SX]
    parts: list[list[ca.SX]]


def _orthonormal(s: _State, of: Tolerances) -> _Rows:
    """Like `orthogonalise`, for rows of length one that were found independent one after another."""
    k, n = s.B.shape
    found = _Rows([], [], [], [])
    for j in range(k):
        row, d, parts = s.N[j, :n].T, s.N[j, n], []
        d = d - of.rounding * ca.fabs(d)  # not loosened
        for q, d_q in zip(found.Q, found.D, strict=True):
            parts.append(_total(q * row))
            row, d = row - parts[-1] * q, d - parts[-1] * d_q
        left = _total(row * row)
        keep = ca.logic_and(s.row[j] > 0, left > (of.parallel / 10) ** 2)
        found.scale.append(keep / ca.sqrt(ca.fmax(left, NOTHING)))
        found.Q.append(row * found.scale[j])
        found.D.append(d * found.scale[j])
        found.parts.append(parts)
    return found


def _polished(s: _State, F: _Factor, u0: ca.SX, z0: ca.SX, of: Tolerances) -> tuple[ca.SX, ca.SX, ca.SX]:
    """The point on the active rows nearest to u0 and the way to it from there, (n, 1), and their multipliers (k, 1).

    z0: (n, 1) L^T u0.
    """
    k = s.B.shape[0]
    Q, D, scale, parts = _orthonormal(s, of)
    z, way, y, along = z0, ca.SX.zeros(z0.shape), [ca.SX(0)] * k, [ca.SX(0)] * k
    for j in reversed(range(k)):
        along[j] = D[j] - _total(Q[j] * z)
        z, way = z + Q[j] * along[j], way + Q[j] * along[j]
    move = _solve_transposed(F, way)
    u = u0 + move
    # A long way ends beside the rows by its rounding: one more step from there.
    z = F.L.T @ u
    further = [d - _total(q * z) for q, d in zip(Q, D, strict=True)]
    more = _solve_transposed(F, _sum([q * part for q, part in zip(Q, further, strict=True)]))
    # As in `smallest`; the way is the sum of its parts along the rows of Q, so these give the multipliers: those of the last
    # step too, which of a way of next to nothing is most.
    for j in reversed(range(k)):
        part = along[j] + further[j]
        for i in range(j + 1, k):
            part = part + parts[i][j] * y[i]
        y[j] = -part * scale[j]
    return u + more, move + more, ca.fmax(ca.vertcat(ca.SX(0, 1), *y), 0)


class _Factor(NamedTuple):
    """Lower triangular L with H = L L^T, 1 / L_jj of each column, and whether H is positive definite; where it is not, L is
    finite but meaningless.
    """

    L: ca.SX
    inverse: tuple[ca.SX, ...]
    definite: ca.SX


def _cholesky(H: ca.SX, of: Tolerances) -> _Factor:
    n = H.shape[0]
    L, inverse = ca.SX(n, n), []
    definite = ca.SX(1)
    for j in range(n):
        pivot = H[j, j] - ca.sumsqr(L[j, :j])
        good = pivot > of.pivot * H[j, j]
        definite = definite * good
        L[j, j] = ca.sqrt(ca.if_else(good, pivot, 1))
        inverse.append(1 / L[j, j])
        for i in range(j + 1, n):
            entry = H[i, j] - ca.dot(L[i, :j], L[j, :j])
            if not entry.is_zero():
                L[i, j] = entry * inverse[j]
    return _Factor(L, tuple(inverse), definite)


def _solve_rows(F: _Factor, W: ca.SX) -> ca.SX:
    """W L^-T, structural zeros kept."""
    columns: list[ca.SX] = []
    for j, inverse in enumerate(F.inverse):
        c = W[:, j]
        for i in range(j):
            if F.L.sparsity().has_nz(j, i):
                c = c - columns[i] * F.L[j, i]
        columns.append(ca.sparsify(c * inverse))
    return ca.horzcat(*columns)


def _solve_transposed(F: _Factor, z: ca.SX) -> ca.SX:
    """L^-T z."""
    n = F.L.shape[0]
    x: list[ca.SX] = [ca.SX(0)] * n
    for j in reversed(range(n)):
        x[j] = (z[j] - sum((F.L[i, j] * x[i] for i in range(j + 1, n)), ca.SX(0))) * F.inverse[j]
    return ca.vertcat(*x)


class _Sides(NamedTuple):
    """Row i of W is sign[i] times the direction of[i].   matrix: S with W = S W_0."""

    of: tuple[int, ...]
    sign: tuple[int, ...]

    @property
    def matrix(self) -> ca.DM:
        return ca.DM.triplet(
            list(range(len(self.of))), list(self.of), list(self.sign), len(self.of), max(self.of, default=-1) + 1
        )


def _directions(W: ca.SX) -> tuple[_Sides, ca.SX]:
    """The direction that each row of W limits, and the directions W_0. Rows of numbers that are opposite or equal share one."""
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
    """For each limit, (m, 1): its distance d from the origin in units of the row's length, loosened by its rounding, BEYOND if
    it is none; the row's length and 1 / length, or 0 if it is none; and whether nothing satisfies it, with 1 for 1 / length.
    reach, away: (1, 1) largest distance of a limit, and of u0 towards one.   share: (1, 1) of u0 where the turns begin, see
    `distant`.
    """

    d: ca.SX
    length: ca.SX
    inverse: ca.SX
    never: ca.SX
    reach: ca.SX
    away: ca.SX
    share: ca.SX


def _normal(F: _Factor, u0: ca.SX, S: ca.DM, W: ca.SX, l: ca.SX, of: Tolerances) -> tuple[ca.SX, _Limits]:
    """Directions of length one in z, rows of V, zero where they are zero; and the limits along them."""
    V = _solve_rows(F, W)
    squared = ca.sum2(V * V)
    long = squared > NOTHING
    scale = ca.densify(_where(long, 1 / ca.sqrt(ca.fmax(squared, NOTHING))))
    P = ca.fabs(S)
    used = ca.logic_and(P @ long, ca.fabs(l) <= LARGEST)
    inverse, limit, never = (_where(c, x) for c, x in ((used, P @ scale), (used, l), (ca.logic_not(used), l < 0)))
    d = limit * inverse
    reach, away = _largest(d), _most(ca.fabs(W) @ ca.fabs(u0) * scale)
    # If all limits are at the origin there is no scale to be far from.
    reach = ca.if_else(reach > 0, reach, away)
    share = ca.fmin(1, of.distant * reach / ca.fmax(away, NOTHING))
    d = ca.if_else(used, d + of.rounding * ca.fabs(d), BEYOND)
    d, length, inverse, never = (ca.densify(x) for x in (d, P @ (squared * scale), inverse + never, never))
    return ca.sparsify(ca.diag(scale) @ V), _Limits(d, length, inverse, never, reach, away, share)


def _errors(
    pulled: ca.SX, S: ca.DM, W: ca.SX, l: ca.SX, limits: _Limits, u: ca.SX, y: ca.SX, of: Tolerances
) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Largest residuals of H (u - u0) + W^T y = 0, pulled = H (u - u0), and of W u <= l, each row relative to its terms.

    And whether W^T y = 0 is accurate enough for l^T y < 0 to show that no u satisfies the rows.
    """
    finite = ca.fabs(l) <= LARGEST
    l, y = _where(finite, l), _where(finite, y)
    pushed, terms = _largest(W.T @ (S.T @ y)), _largest(ca.fabs(W).T @ (ca.fabs(S).T @ y))
    size = ca.fabs(S) @ (ca.fabs(W) @ ca.fabs(u))
    slight = SLIGHT * ca.fmin(limits.reach, ca.fmax(limits.away, _most(size * limits.inverse)))
    size = ca.fmax(ca.fabs(l) + size + slight * limits.length, NOTHING)
    over = (S @ (W @ u) - l) / size
    left = _largest(pulled + W.T @ (S.T @ y)) / ca.fmax(_largest(pulled) + terms, NOTHING)
    doubt = pushed / ca.fmax(terms, NOTHING)
    certain = ca.logic_and(doubt <= of.certain, of.further * doubt * ca.dot(size, y) <= -ca.dot(l, y))
    return left, ca.fmax(_most(_where(finite, over)), 0), certain


def _largest(x: ca.SX) -> ca.SX:
    return _most(ca.fabs(x))


def _most(x: ca.SX) -> ca.SX:
    return -_least([-x_i for x_i in ca.vertsplit(ca.vec(ca.densify(x)))] or [ca.SX(0)])[0]
