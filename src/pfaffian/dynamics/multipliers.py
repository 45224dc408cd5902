"""Lagrange multipliers by the constraints' own inertia A M^-1 A^T.

The classical form; it squares the condition number of the rows, so it is here for comparison and for its multipliers.
"""

from __future__ import annotations

import casadi as ca

from pfaffian.dynamics.motion import RANK_TOLERANCE, Motion
from pfaffian.maths.linear import orthogonalise, solve_M, solve_semidefinite
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
    A = terms.A
    rows = orthogonalise(A, ca.SX.eye(A.shape[0]), tolerance, terms.row_size)
    some = rows.D.T @ (rows.Q @ reaction)
    # Q = D A makes `some` a solution; its part in the range of A is the smallest.
    range_rows = orthogonalise((rows.Q.T @ rows.Q @ A.T), ca.SX(A.shape[1], 0), tolerance, ca.sum2(A.T * A.T) / ca.sumsqr(A) * A.shape[1])
    return range_rows.Q.T @ (range_rows.Q @ some)
