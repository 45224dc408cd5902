"""Lagrange multipliers by the constraints' own inertia A M^-1 A^T.

The classical form; it squares the condition number of the rows, so it is here for comparison and for its multipliers.
"""

from __future__ import annotations

import casadi as ca

from pfaffian.dynamics.motion import RANK_TOLERANCE, Motion
from pfaffian.maths.linear import orthogonalise, solve_semidefinite
from pfaffian.maths.minimum_norm import minimum_norm_by_gram
from pfaffian.maths.tree_factor import solve_M
from pfaffian.terms.terms import Terms, as_terms

SHARED = 1e-6
"""Part in a vanishing combination above which a row counts as sharing."""

TINY = 1e-300
"""Where every row vanishes, so do their multipliers."""


def motion(terms: Terms, *, tolerance: float = RANK_TOLERANCE) -> Motion:
    """(A M^-1 A^T) lambda = b - A M^-1 (f + B u - c), pivots of dependent rows skipped. [aghili05 (18)-(19)]"""
    free = solve_M(terms.factor, terms.force)
    MA = solve_M(terms.factor, terms.A.T)
    solution = solve_semidefinite(terms.A @ MA, terms.b - terms.A @ free, tolerance, terms.row_size, terms.groups)
    reaction = ca.densify(terms.A.T @ solution.x)
    return Motion(ca.densify(free + MA @ solution.x), reaction, ca.sum1(solution.kept))


def minimum_norm_multipliers(terms: Terms, reaction: ca.SX, tolerance: float = RANK_TOLERANCE) -> ca.SX:
    """lambda (m, 1) of smallest norm with A^T lambda = reaction (nv, 1), (A^+)^T reaction, at terms. [aghili05 (19)]

    tolerance: of rank, relative to a row's length.
    It is the only one exactly if the rank is m; with redundant rows how they share the load is not determined.
    """
    # Solutions of A^T lambda = reaction: the smallest is in the range of A, so dependent rows share the load.
    columns = as_terms(terms).A.T
    lengths = ca.sum2(columns * columns)
    size = lengths * columns.shape[0] / ca.fmax(ca.sum1(lengths), TINY)
    return minimum_norm_by_gram(columns, tolerance, size).solve(reaction)


def unique_multipliers(terms: Terms, tolerance: float = RANK_TOLERANCE) -> ca.SX:
    """(m, 1) at terms: 1 where the motion determines a multiplier, 0 where redundant rows share its load. [aghili05 (19)]

    tolerance: of rank, relative to a row's length.
    The reaction A^T lambda is always unique; lambda_i is where row i takes part in no combination of rows that vanishes.
    """
    rest = vanishing_combinations(as_terms(terms), tolerance)
    return ca.sum1(rest * rest).T < SHARED**2


def vanishing_combinations(terms: Terms, tolerance: float = RANK_TOLERANCE) -> ca.SX:
    """(m, m) at terms: rows that span the combinations z^T A = 0, zero where a row of A is independent of those before it."""
    # A dropped row leaves, of the identity carried with the rows, the combination of rows that vanishes.
    return orthogonalise(terms.A, ca.SX.eye(terms.A.shape[0]), tolerance, terms.row_size, groups=terms.groups).rest
