"""Random and degenerate problems of the nearest input within limits, and their optimality conditions as a check.

    python -m tests.maths.qp_problems 1000000

solves about this many problems and prints the outcomes of each family, the most turns, and the largest errors.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from fractions import Fraction
from itertools import chain, combinations
from typing import NamedTuple

import numpy as np

SIZES = ((3, 6), (4, 8), (6, 12), (7, 14), (6, 24))


class Problems(NamedTuple):
    """Minimise (u - u0)^T H (u - u0) / 2, W u <= l.   H: (runs, n, n).   u0: (runs, n).   W: (runs, m, n).   l: (runs, m)."""

    H: np.ndarray
    u0: np.ndarray
    W: np.ndarray
    l: np.ndarray


def metric(r: np.random.Generator, runs: int, n: int, condition: float) -> np.ndarray:
    """Random metrics (runs, n, n) with a condition number of at most `condition`."""
    Q = np.linalg.qr(r.normal(size=(runs, n, n)))[0]
    eigenvalues = condition ** r.uniform(-0.5, 0.5, (runs, n))
    return np.einsum("bij,bj,bkj->bik", Q, eigenvalues, Q)


def plain(r: np.random.Generator, runs: int, n: int, m: int) -> Problems:
    """Random rows around the origin, with u0 inside or outside."""
    return Problems(
        metric(r, runs, n, 100.0),
        r.normal(size=(runs, n)) * 10.0 ** r.uniform(-1, 1, (runs, 1)),
        r.normal(size=(runs, m, n)),
        r.uniform(0, 1, (runs, m)),
    )


def box(r: np.random.Generator, runs: int, n: int, m: int) -> Problems:
    """Limits on each input, and further random rows."""
    p = plain(r, runs, n, m)
    p.W[:, : 2 * n] = np.vstack([np.eye(n), -np.eye(n)])
    return p


def inside(r: np.random.Generator, runs: int, n: int, m: int) -> Problems:
    p = plain(r, runs, n, m)
    return p._replace(l=np.einsum("bmn,bn->bm", p.W, p.u0) + r.uniform(0, 1, (runs, m)) * (r.random((runs, m)) < 0.7))


def doubled(r: np.random.Generator, runs: int, n: int, m: int) -> Problems:
    """Half of the rows repeat the other half with another scale."""
    p, half = plain(r, runs, n, m), m // 2
    scale = np.where(r.random((runs, half)) < 0.5, 1.0, 10.0 ** r.uniform(-3, 3, (runs, half)))
    p.W[:, half : 2 * half] = p.W[:, :half] * scale[:, :, None]
    p.l[:, half : 2 * half] = p.l[:, :half] * scale
    return p


def vertex(r: np.random.Generator, runs: int, n: int, m: int) -> Problems:
    """Most rows meet in one point up to rounding."""
    p = plain(r, runs, n, m)
    at = r.normal(size=(runs, n))
    return p._replace(l=np.einsum("bmn,bn->bm", p.W, at) + r.uniform(0, 1, (runs, m)) * (r.random((runs, m)) < 0.2))


def cone(r: np.random.Generator, runs: int, n: int, m: int) -> Problems:
    """All rows meet exactly in the origin."""
    p = plain(r, runs, n, m)
    return p._replace(l=np.zeros((runs, m)))


def grid(r: np.random.Generator, runs: int, n: int, m: int) -> Problems:
    """Small whole numbers: exact ties, dependent rows, contradictions."""
    return Problems(
        np.broadcast_to(np.eye(n), (runs, n, n)).copy(),
        r.integers(-3, 4, (runs, n)).astype(float),
        r.integers(-1, 2, (runs, m, n)).astype(float),
        r.integers(-1, 3, (runs, m)).astype(float),
    )


def equalities(r: np.random.Generator, runs: int, n: int, m: int) -> Problems:
    """n - 1 pairs of opposite rows, which make equations."""
    p, k = plain(r, runs, n, m), n - 1
    p.W[:, k : 2 * k] = -p.W[:, :k]
    p.l[:, k : 2 * k] = -p.l[:, :k]
    p.W[:, 2 * k :] *= 0.1
    return p


def narrow(r: np.random.Generator, runs: int, n: int, m: int) -> Problems:
    """Two opposite rows leave a gap of 1e-9 to 1e-3 between them, or contradict each other by as much."""
    p = plain(r, runs, n, m)
    p.W[:, 1] = -p.W[:, 0]
    p.l[:, 1] = -p.l[:, 0] + 10.0 ** r.uniform(-9, -3, runs) * r.choice([-1.0, 1.0], runs)
    return p


def contradicting(r: np.random.Generator, runs: int, n: int, m: int) -> Problems:
    """Infeasible rows: W^T y = 0 and l^T y < 0 for some y >= 0."""
    p = plain(r, runs, n, m)
    k = min(m, n + 1)
    y = r.uniform(0.1, 1, (runs, k))
    p.W[:, k - 1] = -np.einsum("bk,bkn->bn", y[:, :-1], p.W[:, : k - 1]) / y[:, -1:]
    p.l[:, k - 1] = -(np.einsum("bk,bk->b", y[:, :-1], p.l[:, : k - 1]) + 10.0 ** r.uniform(-6, 0, runs)) / y[:, -1]
    return p


def odd_rows(r: np.random.Generator, runs: int, n: int, m: int) -> Problems:
    """Zero rows, infinite limits, and occasionally a row that no u satisfies."""
    p = plain(r, runs, n, m)
    p.W[r.random((runs, m)) < 0.2] = 0
    p.l[r.random((runs, m)) < 0.2] = np.inf
    p.l[r.random((runs, m)) < 0.01] = -np.inf
    p.l[r.random((runs, m)) < 0.02] = -0.1
    return p


def badly_scaled(r: np.random.Generator, runs: int, n: int, m: int) -> Problems:
    """H with a condition number of up to 1e6, and rows whose lengths differ by up to 1e6."""
    p = plain(r, runs, n, m)
    scale = 10.0 ** r.uniform(-3, 3, (runs, m))
    return p._replace(H=metric(r, runs, n, 1e6), W=p.W * scale[:, :, None], l=p.l * scale)


def nearly_parallel(r: np.random.Generator, runs: int, n: int, m: int) -> Problems:
    """Half of the rows are the other half, turned by 1e-6 to 1e-2 rad."""
    p, half = plain(r, runs, n, m), m // 2
    turned = r.normal(size=(runs, half, n)) * 10.0 ** r.uniform(-6, -2, (runs, half, 1))
    p.W[:, half : 2 * half] = p.W[:, :half] + turned
    return p


FAMILIES: dict[str, Callable[[np.random.Generator, int, int, int], Problems]] = {
    f.__name__: f
    for f in (
        plain, box, inside, doubled, vertex, cone, grid, equalities, narrow, contradicting, odd_rows, badly_scaled,
        nearly_parallel,
    )
}  # fmt: skip


class Errors(NamedTuple):
    """Errors (runs,) relative to the terms of H (u - u0) + W^T y = 0, of W u <= l, of y (W u - l) = 0, and of y >= 0."""

    stationary: np.ndarray
    feasible: np.ndarray
    complementary: np.ndarray
    sign: np.ndarray


def conditions(p: Problems, u: np.ndarray, y: np.ndarray) -> Errors:
    """Errors of the optimality conditions at the inputs u (runs, n) and multipliers y (runs, m)."""
    finite = np.isfinite(p.l)
    move = u - p.u0
    terms = np.einsum("bij,bj->bi", np.abs(p.H), np.abs(p.u0) + np.abs(move)) + np.einsum("bmn,bm->bn", np.abs(p.W), np.abs(y))
    left = np.einsum("bij,bj->bi", p.H, move) + np.einsum("bmn,bm->bn", p.W, y)
    limit = np.where(finite, p.l, 0)
    largest_u = (np.abs(p.u0) + np.abs(move)).max(axis=1, keepdims=True)
    size = np.abs(limit) + np.abs(p.W).sum(axis=2) * largest_u + 1e-300
    over = np.where(finite, np.einsum("bmn,bn->bm", p.W, u) - limit, 0) / size
    largest = np.abs(y).max(axis=1, keepdims=True) + 1e-300
    return Errors(
        np.abs(left).max(axis=1) / (terms.max(axis=1) + 1e-300),
        np.maximum(over, np.where(p.l == -np.inf, np.inf, 0)).max(axis=1),
        (np.abs(over) * (y > 1e-12 * largest)).max(axis=1),
        (-y / largest).max(axis=1),
    )


def contradiction(p: Problems, y: np.ndarray) -> np.ndarray:
    """(runs,) |W^T y| relative to its terms; inf where y proves no infeasibility, because y < 0 or l^T y >= 0."""
    alone = (p.l == -np.inf) & (y > 0)
    of = np.where(alone[:, :, None], 0, p.W)
    left = np.abs(np.einsum("bmn,bm->bn", of, y)).max(axis=1)
    terms = np.einsum("bmn,bm->bn", np.abs(of), np.abs(y)).max(axis=1) + 1e-300
    limit = np.where(np.isfinite(p.l), p.l, np.where(p.l > 0, 1e300, -1e300))
    gain = np.einsum("bm,bm->b", np.where(y != 0, limit, 0), y)
    return np.where((y >= 0).all(axis=1) & (gain < 0), left / terms, np.inf)


class Reference(NamedTuple):
    """Answers of the solver DAQP.   u: (runs, n), nan where it found none.   solved: (runs,)."""

    u: np.ndarray
    solved: np.ndarray


def by_daqp(p: Problems) -> Reference:
    import daqp

    limit = np.clip(p.l, -1e30, 1e30)  # infinity for DAQP
    runs, m = p.l.shape
    below, kinds = np.full(m, -1e30), np.zeros(m, dtype=np.intc)
    linear = -np.einsum("bij,bj->bi", p.H, p.u0)
    found = [daqp.solve(p.H[i], linear[i], p.W[i], limit[i], below, kinds) for i in range(runs)]
    solved = np.array([f[2] == 1 for f in found])
    return Reference(np.where(solved[:, None], np.array([f[0] for f in found]), np.nan), solved)


def exact(H: np.ndarray, u0: np.ndarray, W: np.ndarray, l: np.ndarray) -> np.ndarray | None:
    """u (n,) of one problem in rational numbers, or None if no u satisfies the rows. Tries every set of active rows."""
    H, W = ([[Fraction(x) for x in row] for row in A.tolist()] for A in (H, W))
    u0, l = ([Fraction(x) for x in b.tolist()] for b in (u0, l))
    n, m = len(u0), len(l)
    pull = [sum(h * x for h, x in zip(row, u0, strict=True)) for row in H]
    for active in chain.from_iterable(combinations(range(m), k) for k in range(min(n, m) + 1)):
        rows = [H[i] + [W[a][i] for a in active] + [pull[i]] for i in range(n)]
        rows += [W[a] + [Fraction(0)] * len(active) + [l[a]] for a in active]
        x = _eliminated(rows)
        if x is None or any(y < 0 for y in x[n:]):
            continue
        if all(sum(w * x for w, x in zip(row, x, strict=False)) <= limit for row, limit in zip(W, l, strict=True)):
            return np.array([float(x_i) for x_i in x[:n]])
    return None


def _eliminated(rows: list[list[Fraction]]) -> list[Fraction] | None:
    """Solution x of A x = b, given the rows [A b], or None if A is singular."""
    for c in range(len(rows)):
        pivot = next((r for r in range(c, len(rows)) if rows[r][c]), None)
        if pivot is None:
            return None
        rows[c], rows[pivot] = rows[pivot], rows[c]
        rows[c] = [x / rows[c][c] for x in rows[c]]
        for r in range(len(rows)):
            if r != c and rows[r][c]:
                rows[r] = [a - rows[r][c] * b for a, b in zip(rows[r], rows[c], strict=True)]
    return [row[-1] for row in rows]


def main(count: int) -> None:
    import pfaffian as pf

    each = max(1, count // len(FAMILIES) // len(SIZES))
    print(f"{each * len(SIZES)} problems of each family, sizes {SIZES}")
    print("family           solved infeasible else | turns | stationary feasible complementary W^T y | daqp: missed, alone, u")
    for k, (name, draw) in enumerate(FAMILIES.items()):
        status, turns, errors, apart = np.zeros(6, dtype=int), 0, np.zeros(4), np.zeros(3)
        for size, (n, m) in enumerate(SIZES):
            p = draw(np.random.default_rng([k, size]), each, n, m)
            r = pf.analysis.solve_qp(*p)
            status += np.bincount(r.status, minlength=6)
            turns = max(turns, int(r.iterations.max()))
            good, bad = r.status == 0, r.status == 1
            e = conditions(Problems(*[x[good] for x in p]), r.u[good], r.multipliers[good])
            left = contradiction(Problems(*[x[bad] for x in p]), r.multipliers[bad])
            errors = np.maximum(errors, [x.max(initial=0) for x in (*e[:3], left)])
            daqp_ = by_daqp(p)
            off = np.abs(daqp_.u - r.u)[good & daqp_.solved].max(axis=1) / (1 + np.abs(p.u0[good & daqp_.solved]).max(axis=1))
            apart += (good & ~daqp_.solved).sum(), (~good & daqp_.solved).sum(), 0
            apart[2] = max(apart[2], off.max(initial=0))
        counts = f"{name:16} {status[0]:6} {status[1]:10} {status[2:].sum():4} | {turns:5}"
        errors_, apart_ = (" ".join(f"{x:.1e}" for x in y) for y in (errors, apart[2:]))
        print(f"{counts} | {errors_} | {apart[0]:.0f} {apart[1]:.0f} {apart_}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 10_000)
