"""Lagrange multipliers by the constraints' own inertia A M^-1 A^T.

The classical form; it squares the condition number of the rows, so it is here for comparison and for its multipliers.
"""

from __future__ import annotations

import casadi as ca

from pfaffian.dynamics.motion import RANK_TOLERANCE, Motion
from pfaffian.maths.linear import solve_semidefinite
from pfaffian.maths.minimum_norm import minimum_norm_by_gram
from pfaffian.maths.tree_factor import solve_M
from pfaffian.terms.terms import Terms


def motion(terms: Terms, *, tolerance: float = RANK_TOLERANCE) -> Motion:
    """(A M^-1 A^T) lambda = b - A M^-1 (f + B u - c), pivots of dependent rows skipped. [aghili05 (18)-(19)]"""
    free = solve_M(terms.factor, terms.force)
    MA = solve_M(terms.factor, terms.A.T)
    solution = solve_semidefinite(terms.A @ MA, terms.b - terms.A @ free, tolerance, terms.row_size)
    reaction = ca.densify(terms.A.T @ solution.x)
    return Motion(ca.densify(free + MA @ solution.x), reaction, ca.sum1(solution.kept))


def minimum_norm_multipliers(terms: Terms, reaction: ca.SX, tolerance: float = RANK_TOLERANCE) -> ca.SX:
    """lambda (m, 1) of smallest norm with A^T lambda = reaction (nv, 1), (A^+)^T reaction. [aghili05 (19)]

    It is the only one exactly if the rank is m; with redundant rows how they share the load is not determined.
    """
    # Solutions of A^T lambda = reaction: the smallest is in the range of A, so dependent rows share the load.
    columns = terms.A.T
    lengths = ca.sum2(columns * columns)
    return minimum_norm_by_gram(columns, reaction, tolerance, lengths * columns.shape[0] / ca.sum1(lengths)).X
