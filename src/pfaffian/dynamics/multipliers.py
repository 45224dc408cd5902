"""Lagrange multipliers from the inverse of the constraint-space inertia, A M^-1 A^T.

This is the classical form. It squares the condition number of the rows, so it serves for comparison and for its multipliers.
"""

from __future__ import annotations

import casadi as ca

from pfaffian.dynamics.motion import RANK_TOLERANCE, Motion
from pfaffian.maths.linear import orthogonalise, solve_semidefinite
from pfaffian.maths.minimum_norm import MinimumNorm, minimum_norm_by_gram
from pfaffian.maths.tree_factor import solve_M
from pfaffian.terms.terms import Terms, as_terms

SHARED = 1e-6
"""Weight in a vanishing combination of rows above which a row shares its load with others."""

TINY = 1e-300
"""Smallest squared length of all rows that is divided by: if every row vanishes, so do the multipliers."""


def motion(terms: Terms, *, tolerance: float = RANK_TOLERANCE) -> Motion:
    """Motion from (A M^-1 A^T) lambda = b - A M^-1 (f + B u - c), with the pivots of dependent rows skipped. [aghili05
    (18)-(19)]
    """
    free = solve_M(terms.factor, terms.force)
    MA = solve_M(terms.factor, terms.A.T)
    solution = solve_semidefinite(terms.A @ MA, terms.b - terms.A @ free, tolerance, terms.row_size, terms.groups)
    reaction = ca.densify(terms.A.T @ solution.x)
    return Motion(ca.densify(free + MA @ solution.x), reaction, ca.sum1(solution.independent))


def minimum_norm_multipliers(terms: Terms, reaction: ca.SX, tolerance: float = RANK_TOLERANCE) -> ca.SX:
    """Multipliers lambda of smallest norm with A^T lambda = reaction, (A^+)^T reaction. [aghili05 (19)]

    They are unique if and only if A has full row rank. The motion does not determine how redundant rows share the load.

    Args:
        terms: Terms at a state.
        reaction: (nv, 1) A^T lambda [N, N m], for instance that of a formulation.
        tolerance: of rank, relative to a row's length.
    Returns:
        lambda (m, 1), an expression.

    Example:
        >>> import pfaffian as pf
        >>> stops = [pf.holonomic(name, lambda k: k.q[0]) for name in ("stop", "second stop")]
        >>> rail = pf.joint("rail", "prismatic", "world", "lift")
        >>> m = pf.mechanism("lift", [pf.body("lift", 2.0)], [rail], constraints=stops)
        >>> def multipliers(T): return pf.constraints.minimum_norm_multipliers(T, pf.FORMULATIONS["gauss"](T).reaction)
        >>> pf.compile_terms(m, {"lambda": multipliers}, backend="numpy")()["lambda"].round(2)  # each carries half of 19.62 N
        array([9.81, 9.81])
    """
    return by_least_norm(as_terms(terms), tolerance).solve(reaction)


def by_least_norm(terms: Terms, tolerance: float = RANK_TOLERANCE) -> MinimumNorm:
    """Factorisation that solves A^T lambda = reaction by the smallest lambda, which is in the range of A.

    Dependent rows therefore share the load.
    """
    columns = terms.A.T
    lengths = ca.sum2(columns * columns)
    size = lengths * columns.shape[0] / ca.fmax(ca.sum1(lengths), TINY)
    return minimum_norm_by_gram(columns, tolerance, size)


def unique_multipliers(terms: Terms, tolerance: float = RANK_TOLERANCE) -> ca.SX:
    """Whether the motion determines each multiplier: 1 if it does, 0 if redundant rows share the load. [aghili05 (19)]

    The reaction A^T lambda is always unique. lambda_i is unique if row i is part of no vanishing combination of rows.

    Args:
        terms: Terms at a state.
        tolerance: of rank, relative to a row's length.
    Returns:
        (m, 1), an expression.

    Example:
        >>> import pfaffian as pf
        >>> stops = [pf.holonomic(name, lambda k: k.q[0]) for name in ("stop", "second stop")]
        >>> rail = pf.joint("rail", "prismatic", "world", "lift")
        >>> m = pf.mechanism("lift", [pf.body("lift", 2.0)], [rail], constraints=stops)
        >>> pf.compile_terms(m, {"unique": pf.constraints.unique_multipliers}, backend="numpy")()["unique"]
        array([0., 0.])
    """
    rest = vanishing_combinations(as_terms(terms), tolerance)
    return ca.sum1(rest * rest).T < SHARED**2


def vanishing_combinations(terms: Terms, tolerance: float = RANK_TOLERANCE) -> ca.SX:
    """(m, m) rows z^T that span the combinations z^T A = 0; row i is zero if row i of A does not depend on earlier rows."""
    # Orthogonalisation carries the identity as right-hand side: for a dropped row it becomes the vanishing combination of rows.
    return orthogonalise(terms.A, ca.SX.eye(terms.A.shape[0]), tolerance, terms.row_size, groups=terms.groups).rest
