"""Maggi-Kane: independent accelerations along an orthonormal basis of the null space of A."""

from __future__ import annotations

import casadi as ca

from pfaffian.dynamics.motion import RANK_TOLERANCE, Motion
from pfaffian.maths.linear import null_space, orthogonalise, solve_definite
from pfaffian.terms.terms import Terms

BASIS_TOLERANCE = 1e-5
"""Length below which the remainder of a row of I - A^+ A is rounding: otherwise it is of order 1 / sqrt(nv)."""


def motion(terms: Terms, *, tolerance: float = RANK_TOLERANCE) -> Motion:
    """Motion v_dot = A^+ b + N^T eta,  (N M N^T) eta = N (f + B u - c - M A^+ b), where the rows of N span the null space."""
    M, force, n = terms.M, terms.force, terms.M.shape[0]
    rows = orthogonalise(terms.A, terms.b, tolerance, terms.row_size, groups=terms.groups)
    particular = rows.Q.T @ rows.D
    N, nonzero = null_space(rows.Q, BASIS_TOLERANCE)
    # The number of rows of N is fixed at n. A dropped row gets a unit on the diagonal, so that the system stays solvable.
    reduced = N @ M @ N.T + ca.diag(1 - nonzero)
    eta = solve_definite(reduced, N @ (force - M @ particular))
    v_dot = ca.densify(particular + N.T @ eta)
    return Motion(v_dot, M @ v_dot - force, n - ca.sum1(nonzero))
