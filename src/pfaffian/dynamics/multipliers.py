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
    m = terms.A.shape[0]
    rows = orthogonalise(terms.A, ca.SX.eye(m), tolerance, terms.row_size)
    # Q = D A makes D^T Q F a solution. A dropped row leaves the combination of rows that vanishes: take those out of it.
    some = rows.D.T @ (rows.Q @ reaction)
    idle = orthogonalise(rows.rest, ca.SX(m, 0), tolerance).Q
    return some - idle.T @ (idle @ some)
