"""The point nearest to another one within linear limits: min 1/2 |u - u0|_H^2 with W u <= l, by a dual method.

In z = L^T (u - u0), H = L L^T, with rows of length one, it is the z nearest to the origin with V z <= d. From z = 0 on, where
no row is active, each turn takes the row v that is violated most and moves z along w, what the active rows N leave of it, and
the multipliers y against r, what they make of it: v = N^T r + w. The move ends where the row is met, and it becomes active, or
before that where a multiplier falls to zero, and its row is dropped. The dual value rises with every row that is met, so no set
of active rows comes twice. Where w = 0 and no multiplier falls, r tells which active rows v contradicts.
[Goldfarb and Idnani 1983]

B holds the dual vectors of the active rows, B N^T = 1 and in their span, so that adding or dropping a row is one outer product;
what that gathers of rounding only bears on which rows are taken. The answer is of the active rows alone, made orthonormal.
Turns are calls of one Function, so their text is there once; one after the end changes nothing, and there the kernel stops.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import casadi as ca

from pfaffian.maths.linear import NOTHING, orthogonalise
from pfaffian.maths.pack import pack

SOLVED, INFEASIBLE, TOO_MANY_TURNS, INACCURATE, INDEFINITE, NOT_A_NUMBER = range(6)

LARGEST = 1.7976931348623157e308
"""The largest double: what is above is infinite."""

ROUNDING = 1e-14
"""Limits are loosened, while rows are chosen, by this part of the numbers they are the difference of."""

PARALLEL = 1e-10
"""A row depends on the active ones if less than this part of it is left, of the length of what they make of it."""

RISING = 1e-11
"""Parts of r below this share of its size are zero."""

ACCURATE = 1e-9
"""Largest error of the optimality conditions, relative to their terms."""

FAR = 1e300
"""Beyond every length of a move."""


def most_turns(n: int, m: int) -> int:
    """Bound on the turns, twice the most that millions of random and degenerate problems took."""
    return 8 * (n + 1) + 2 * m


class Nearest(NamedTuple):
    """u: (n, 1).   y: (m, 1) multipliers, H (u - u0) + W^T y = 0; of an infeasible problem y >= 0 with W^T y = 0, l^T y < 0.

    active: (m, 1) 1 for rows that hold u, or that contradict each other.   status: (1, 1) SOLVED ... NOT_A_NUMBER.
    turns: (1, 1) that were taken, at most `most_turns`.   error: (1, 1) of the optimality conditions, relative.
    """

    u: ca.SX
    y: ca.SX
    active: ca.SX
    status: ca.SX
    turns: ca.SX
    error: ca.SX


class _State(NamedTuple):
    """going: (1, 1) turns taken, so that it differs from turn to turn.   status: -1 while going.
    held: row of an unfinished move, counted from 1, or 0; y_p: its multiplier.   loose: violations that count as none.
    z: (n, 1).   Of each of k places for an active row, row: (k, 1) counted from 1, 0 if free.   y: (k, 1).   B: (k, n).
    N: (k, n + 1) with its limit."""

    going: ca.SX
    status: ca.SX
    held: ca.SX
    y_p: ca.SX
    loose: ca.SX
    z: ca.SX
    row: ca.SX
    y: ca.SX
    B: ca.SX
    N: ca.SX


def nearest(H: ca.SX, u0: ca.SX, W: ca.SX, l: ca.SX) -> Nearest:
    """The u nearest to u0 in the metric of H with W u <= l.

    Rows of W may be zero, parallel or contradict each other; where l is inf a row says nothing, where it is -inf nothing meets
    it. No constant of SX may be infinite: leave out such rows.

    Args:
        H: (n, n) positive definite.   u0: (n, 1).   W: (m, n), a row shorter than 1e-150 counts as zero.   l: (m, 1).
    """
    m, n = W.shape
    k = min(n, m)
    H, u0, W, l = ca.densify(H), ca.densify(u0), ca.sparsify(W), ca.densify(l)
    L, definite = _cholesky(H)
    V, d, e, inverse = _normal(L, u0, W, l)
    known = ca.sum1(ca.fabs(pack((H, u0, W)))) <= LARGEST
    known *= ca.sum1(ca.vertcat(ca.SX(0, 1), ca.fabs(l) <= LARGEST, l > LARGEST, l < -LARGEST)) == m
    start = _start(n, k, ca.if_else(known, ca.if_else(definite, -1, INDEFINITE), NOT_A_NUMBER))
    rows = ca.horzcat(V, d + ROUNDING * e)
    turn = _turn(m, n, *map(tuple, rows.sparsity().get_triplet()))
    x = _pack(_next(start, rows, n, m))  # Nothing is active yet: most of it folds away.
    for _ in range(most_turns(n, m) - 1):
        x = turn(x, pack(rows))
    s = _unpack(x, n, k)
    here = [s.row == i + 1 for i in range(m)]
    z, held = _polished(s, sum((here[i] * d[i] for i in range(m)), ca.SX.zeros(k, 1)))
    move = _solve_transposed(L, z)
    contradicting = s.status == INFEASIBLE
    by_place = ca.if_else(contradicting, s.y, held)
    by_row = [ca.dot(here[i], by_place) + contradicting * (s.held == i + 1) for i in range(m)]
    y = ca.vertcat(ca.SX(0, 1), *by_row) * inverse
    # Rows of an infeasible problem that are active beside the contradiction are not of it.
    active = [ca.sum1(here[i]) * (1 - contradicting) + contradicting * (by_row[i] > 0) for i in range(m)]
    error = _error(H, move, W, l, e, inverse, u0 + move, y, z)
    wrong = (s.status == SOLVED) * ca.logic_not(error <= ACCURATE)
    status = ca.if_else(s.status < 0, TOO_MANY_TURNS, ca.if_else(wrong, INACCURATE, s.status))
    return Nearest(u0 + move, y, ca.vertcat(ca.SX(0, 1), *active), status, s.going, error)


def _start(n: int, k: int, status: ca.SX) -> _State:
    none = ca.SX.zeros
    return _State(none(1), status, none(1), none(1), none(1), none(n), none(k), none(k), none(k, n), none(k, n + 1))


def _pack(s: _State) -> ca.SX:
    return ca.vertcat(*[ca.vec(ca.densify(part)) for part in s])


def _unpack(x: ca.SX, n: int, k: int) -> _State:
    like = _start(n, k, ca.SX(0))
    ends = [0]
    for part in like:
        ends.append(ends[-1] + part.numel())
    parts = [ca.reshape(x[a:b], *part.shape) for part, a, b in zip(like, ends, ends[1:], strict=False)]
    return _State(*parts)


@lru_cache(maxsize=64)
def _turn(m: int, n: int, row: tuple[int, ...], column: tuple[int, ...]) -> ca.Function:
    """(state, entries of [V d]) -> state; where V has entries is part of its name, as one kernel may call several."""
    k = min(n, m)
    sparsity = ca.Sparsity.triplet(m, n + 1, row, column)
    entries = ca.SX.sym("rows", sparsity.nnz())
    x = ca.SX.sym("x", _pack(_start(n, k, ca.SX(0))).numel())
    after = _next(_unpack(x, n, k), ca.SX(sparsity, entries), n, m)
    return ca.Function(f"qp_{m}_{n}_{sparsity.hash()}", [x, entries], [_pack(after)], {"never_inline": True, "cse": True})


def _next(s: _State, rows: ca.SX, n: int, m: int) -> _State:
    k = s.row.numel()
    V, d = rows[:, :n], rows[:, n]
    live = s.status < 0

    # The row that is violated most, unless a move is not finished.
    slack = d - V @ s.z
    worst, p = -s.loose - ROUNDING * ca.sum1(ca.fabs(s.z)), ca.SX(0)
    for i in range(m):
        p = p + (slack[i] < worst) * (i + 1 - p)
        worst = ca.fmin(worst, slack[i])
    p = live * ca.if_else(s.held > 0, s.held, p)
    row = ca.SX.zeros(1, n + 1)
    for i in range(m):
        row = row + (p == i + 1) * rows[i, :]
    v, d_p = row[:n].T, row[n]
    lack = ca.dot(v, s.z) - d_p

    # v = N^T r + w, with what rounding left of it in w taken off once more.
    N = s.N[:, :n]
    r = s.B @ v
    w = v - N.T @ r
    more = s.B @ w
    r, w = r + more, w - N.T @ more
    made, left = 1 + ca.sum1(ca.fabs(r)), ca.sumsqr(w)
    free = [s.row[j] == 0 for j in range(k)]
    depends = ca.logic_or(left <= (PARALLEL * made) ** 2, sum(free, ca.SX(0)) == 0)
    # Where the row depends on active ones, the limits alone tell whether it says more than they; z has gathered rounding.
    counts = ca.dot(r, s.N[:, n]) > d_p

    # How far: to the row, or to where a multiplier falls to zero.
    fall, first = ca.SX(FAR), ca.SX(0)
    for j in range(k):
        until = (s.y[j] + (r[j] <= RISING * made) * FAR) / ca.fmax(r[j], RISING)
        first = first + (until < fall) * (j + 1 - first)
        fall = ca.fmin(fall, until)
    violated = p > 0
    inverse = (1 - depends) / ca.fmax(left, NOTHING)
    reach = ca.fmax(lack, 0) * inverse
    met = violated * (1 - depends) * (reach <= fall)
    says_more = violated * (1 - depends * (1 - counts))
    dropped = says_more * (1 - met) * (first > 0)
    contradicts = says_more * depends * (first == 0)
    t = ca.if_else(met, reach, ca.if_else(dropped, fall, 0))

    # Rows in their places, and the dual vectors.
    out = ca.vertcat(*[dropped * (first == j + 1) for j in range(k)])
    taken, place = ca.SX(0), []
    for j in range(k):
        place.append(met * free[j] * (1 - taken))
        taken = taken + place[j]
    into = ca.vertcat(*place)
    b = s.B.T @ out
    overlap = s.B @ b
    c = met * r - into + (1 - out) * overlap / ca.fmax(ca.sumsqr(b), NOTHING) + out
    B = s.B - c @ (met * inverse * w + b).T
    N_ = s.N + ca.diag(into) @ (ca.repmat(row, k, 1) - s.N)
    y = ca.fmax((1 - contradicts) * s.y - (t + contradicts) * r, 0) * (1 - out) + into * (s.y_p + t)
    unfinished = dropped + contradicts
    return _State(
        going=s.going + live,
        status=ca.if_else(live, ca.if_else(violated, ca.if_else(contradicts, INFEASIBLE, -1), SOLVED), s.status),
        held=unfinished * p + (1 - live) * s.held,
        y_p=dropped * (s.y_p + t) + contradicts + (1 - live) * s.y_p,
        loose=ca.fmax(s.loose, (violated - says_more) * 2 * lack),
        z=s.z - t * (1 - depends) * w,
        row=(1 - out) * s.row + into * p,
        y=y,
        B=B,
        N=N_,
    )


def _polished(s: _State, d: ca.SX) -> tuple[ca.SX, ca.SX]:
    """z (n, 1) on the active rows N z = d, and their multipliers (k, 1), from orthonormal rows."""
    k, n = s.B.shape
    N = ca.diag(s.row > 0) @ s.N[:, :n]
    found = orthogonalise(N, d, PARALLEL / 10, passes=1)
    z, y = ca.SX.zeros(n, 1), [ca.SX(0)] * k
    # As in `smallest`; z is what its parts along the rows of Q make it, so the multipliers are of these.
    for j in reversed(range(k)):
        part = found.D[j] - found.Q[j, :] @ z
        z = z + found.Q[j, :].T * part
        for i in range(j + 1, k):
            part = part + sum((a for at, a in found.taken[i] if at == j), ca.SX(0)) * y[i]
        y[j] = -part * found.scale[j]
    return z, ca.fmax(ca.vertcat(ca.SX(0, 1), *y), 0)


def _cholesky(H: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Lower triangular L with H = L L^T, and whether H is positive definite; where it is not, L is of no meaning but finite."""
    n = H.shape[0]
    L = ca.SX(n, n)
    definite = ca.SX(1)
    for j in range(n):
        pivot = H[j, j] - ca.sumsqr(L[j, :j])
        good = pivot > 1e-15 * H[j, j]
        definite = definite * good
        diagonal = ca.sqrt(ca.if_else(good, pivot, 1))
        L[j, j] = diagonal
        for i in range(j + 1, n):
            entry = H[i, j] - ca.dot(L[i, :j], L[j, :j])
            if not entry.is_zero():
                L[i, j] = entry / diagonal
    return L, definite


def _solve_rows(L: ca.SX, W: ca.SX) -> ca.SX:
    """W L^-T, structural zeros kept."""
    n = L.shape[0]
    columns: list[ca.SX] = []
    for j in range(n):
        c = W[:, j]
        for i in range(j):
            if L.sparsity().has_nz(j, i):
                c = c - columns[i] * L[j, i]
        columns.append(ca.sparsify(c / L[j, j]))
    return ca.horzcat(*columns)


def _solve_transposed(L: ca.SX, z: ca.SX) -> ca.SX:
    """L^-T z."""
    n = L.shape[0]
    x: list[ca.SX] = [ca.SX(0)] * n
    for j in reversed(range(n)):
        x[j] = (z[j] - sum((L[i, j] * x[i] for i in range(j + 1, n)), ca.SX(0))) / L[j, j]
    return ca.vertcat(*x)


def _normal(L: ca.SX, u0: ca.SX, W: ca.SX, l: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
    """Rows of length one V z <= d, the size e of the numbers whose difference d is, and 1 / length, 0 of a row that is zero or
    whose limit is infinite; d of such a row is -1 if nothing meets it, else 1."""
    V = _solve_rows(L, W)
    squared = ca.sum2(V * V)
    used = (squared > NOTHING) * (ca.fabs(l) <= LARGEST)
    inverse = ca.densify(used / ca.sqrt(ca.fmax(squared, NOTHING)))
    limit = ca.if_else(used, l, 0)
    d = (limit - W @ u0) * inverse + (1 - used) * ca.if_else(l < 0, -1, 1)
    e = (ca.fabs(limit) + ca.fabs(W) @ ca.fabs(u0)) * inverse
    return ca.sparsify(ca.diag(inverse) @ V), ca.densify(d), ca.densify(e), inverse + (1 - used) * (l < 0)


def _error(H: ca.SX, move: ca.SX, W: ca.SX, l: ca.SX, e: ca.SX, inverse: ca.SX, u: ca.SX, y: ca.SX, z: ca.SX) -> ca.SX:
    """Largest of what is left of H (u - u0) + W^T y = 0 and of W u <= l, relative to their terms."""
    pulled = H @ move
    error = _largest(pulled + W.T @ y) / ca.fmax(_largest(pulled) + _largest(ca.fabs(W).T @ y), NOTHING)
    size = _largest(z)
    for i in range(W.shape[0]):
        over = ca.if_else(ca.fabs(l[i]) <= LARGEST, ca.dot(W[i, :].T, u) - l[i], 0) * inverse[i]
        error = ca.fmax(error, over / ca.fmax(e[i] + size, NOTHING))
    return error


def _largest(x: ca.SX) -> ca.SX:
    return ca.mmax(ca.fabs(x))
