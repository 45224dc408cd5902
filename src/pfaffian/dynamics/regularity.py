"""Distance of constraints from losing rank, independent of the choice of cut joints, of order, frames and units.

Loops are measured joint by joint (`dynamics/loop_regularity.py`), so their rows do not depend on the choice of a tree. All
other constraints are measured within the motions that the loops allow, in units of the typical size of their rows: with G_c
the mean of Lam_c Lam_c^T over random configurations and G_c = S_c S_c^T, the rows S_c^-1 Lam_c have length one on average and
are uncorrelated. If a constraint is written in another way, T Lam_c with a constant T, then S_c^-1 Lam_c is rotated, so the
singular values of all these rows together do not change.
"""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca
import numpy as np

from pfaffian.dynamics.loop_regularity import of_loops
from pfaffian.dynamics.motion import RANK_TOLERANCE, shortest_change
from pfaffian.maths.linear import connected, orthogonalise, solve_symmetric
from pfaffian.maths.reflection import NOTHING
from pfaffian.maths.values import values
from pfaffian.model.mechanism import Mechanism, random_configuration
from pfaffian.terms.lengths import machine_length, slides
from pfaffian.terms.loops import Loops, loops
from pfaffian.terms.terms import Terms, always_active, mass_weighted, row_lengths, shared
from pfaffian.terms.traced_now import remembered

SAMPLES = 32
"""Number of random configurations over which the typical size of rows is averaged."""

ROUNDING = 1e-6
"""A row whose typical length is below this fraction of the longest row of its constraint is rounding."""


def regularity(terms: Terms, tolerance: float = RANK_TOLERANCE) -> ca.SX:
    """(1, 1) regularity: near 0 where constraints almost lose rank, 1 where they are at least as independent as on average.

    It is the minimum of the regularity of loops (`of_loops`) and, over all other constraints c, of sqrt(m_c / |X_c|^2). X_c are
    the columns of the pseudo-inverse of the measured rows that belong to c: the motion that is needed to change c by one unit
    while loops stay closed. Dropped rows do not count, nor do closures that repeat another.
    """
    worst = ca.SX(1)
    if not terms.rows.counts:
        return worst
    at = loops(terms.kinematics)
    if at.joints:
        worst = ca.fmin(worst, of_loops(terms.mechanism, at))
    if len(at.of) < len(terms.rows.counts):
        worst = ca.fmin(worst, _of_others(terms, at, tolerance))
    return ca.sqrt(worst)


def _of_others(terms: Terms, at: Loops, tolerance: float) -> ca.SX:
    """(1, 1) the least m_c / |X_c|^2 of constraints that close no loop."""
    change, m = shortest_change(terms, tolerance), terms.mechanism
    C, independent, lengths = change.coefficients, change.independent, row_lengths(terms)
    closing_rows = [
        i
        for i, c in enumerate(i for i, count in enumerate(terms.rows.counts) for _ in range(count))
        if c in at.of and C[i, :].nnz()
    ]
    measured, first = list[tuple[ca.SX, ca.SX]](), 0
    for i, (typical, count) in enumerate(zip(samples(m), terms.rows.counts, strict=True)):
        these = list(range(first, first + count))
        first += count
        if i not in at.of:
            S = _measure(typical, lengths[these, 0])
            rows = ca.sparsify(S.inverse @ C[these, :])
            if rows.nnz():  # some have no entries in this mechanism, such as rows normal to a plane
                measured.append((rows, S.rank))
    all_rows = [rows for rows, _ in measured] + [ca.sparsify(C[i, :]) for i in closing_rows]
    supports = [set(rows.sparsity().get_col()) for rows in all_rows]
    parts = [part for part in connected(supports) if part[0] < len(measured)]
    columns = [sorted({j for c in part for j in supports[c]}) for part in parts]
    worst = ca.SX(1)
    for part, used, N in zip(parts, columns, change.overlaps(columns), strict=True):
        members = [c for c in part if c < len(measured)]
        closing = [closing_rows[c - len(measured)] for c in part if c >= len(measured)]
        free = _free(C[closing, used] @ ca.diag(independent[used, 0]), independent[used, 0], tolerance)
        X = _pseudo_inverse(ca.vertcat(*[measured[c][0] for c in members])[:, used], free)
        begin = 0
        for rows, rank in [measured[c] for c in members]:
            of_it = X[:, begin : begin + rows.shape[0]]
            worst = ca.fmin(worst, rank / ca.fmax(ca.trace(of_it.T @ N @ of_it), NOTHING))
            begin += rows.shape[0]
    return worst


def _free(C: ca.SX, independent: ca.SX, tolerance: float) -> ca.SX:
    """(s, s) projector onto the combinations of independent rows that keep loops closed.   C: (m, s) rows of the loops."""
    if not C.shape[0]:
        return ca.diag(independent)
    Q = orthogonalise(C, ca.SX(C.shape[0], 0), tolerance, groups=[[*range(C.shape[0])]]).Q
    return ca.diag(independent) - Q.T @ Q


class RowSize(NamedTuple):
    """Typical size of the rows of a constraint.

    inverse: (m_c, m_c) S^-1, with a row of zeros for each row of the constraint that is rounding.   rank: of S.
    """

    inverse: ca.SX
    rank: ca.SX


def _measure(typical: ca.DM, lengths: ca.SX) -> RowSize:
    """The RowSize of a constraint with the typical size S (m_c, k), whose rows have typical lengths (m_c, 1)."""
    S, scale = ca.SX(typical), ca.diag(1 / lengths)
    squared = ca.sum2((scale @ S) ** 2)
    size = squared / ca.fmax(ca.mmax(squared), NOTHING)
    rows = orthogonalise(scale @ S, scale, ROUNDING, size, groups=[[*range(lengths.numel())]])
    return RowSize(rows.D, rows.rank)


@remembered(64)
def samples(m: Mechanism) -> tuple[ca.DM, ...]:
    """Typical size S (m_c, k) of the rows of each ideal constraint, with parameters at their defaults.

    S S^T is the mean of Lam_c Lam_c^T over random configurations, a measure that decides nothing.
    """
    T = shared(always_active(m))
    terms = ca.Function("terms", [T.q, T.v, T.t, m.p_symbols], [ca.densify(T.M), ca.densify(T.A)])
    ends = np.cumsum(T.rows.counts)[:-1]
    # Slides are within the length of the tree alone, so that samples do not depend on the frames of closures.
    long = float(m.value(machine_length(m, closed=False)).item()) or float(m.value(machine_length(m)).item()) or 1.0
    each, random = np.where(slides(m), long, 1.0), np.random.default_rng(20)
    weighted = []
    for _ in range(SAMPLES):
        q, v = random_configuration(m, random, long), each * random.normal(size=m.nv)
        M, A = values(terms, q, v, 0, m.p_defaults)
        Lam = mass_weighted(A, M)
        weighted.append(np.split((A if Lam is None else Lam) / np.sqrt(SAMPLES), ends))
    return tuple(_root([W[i] for W in weighted]) for i in range(len(T.rows.counts)))


def _root(W: list[np.ndarray]) -> ca.DM:
    """S (m, k) with few columns such that S S^T is the sum of W W^T."""
    return ca.DM(np.linalg.qr(np.hstack(W).T)[1].T)


def _pseudo_inverse(C: ca.SX, free: ca.SX) -> ca.SX:
    """(s, m) pseudo-inverse of C free, for C (m, s) and a projector free (s, s)."""
    C = C @ free
    return free @ solve_symmetric(ca.densify(C.T @ C) + ca.SX.eye(free.shape[0]) - free, ca.densify(C.T))
