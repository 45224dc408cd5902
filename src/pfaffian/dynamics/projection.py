"""Projection operator and constraint inertia matrices. [aghili05]

The rows are orthonormalised in the metric of the velocity coordinates themselves, P = I - A^+ A projects onto the null
space of A, and one system of full size gives the acceleration whatever the rank of A.
"""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca

from pfaffian.dynamics.motion import RANK_TOLERANCE, Motion
from pfaffian.errors import ModelError
from pfaffian.maths.linear import orthogonalise, solve_definite
from pfaffian.terms.terms import Terms

VARIANTS = ("nonsymmetric", "symmetric", "tuned")


class Projector(NamedTuple):
    """P: (nv, nv) onto the null space of A. [aghili05 (4) (15)]
    particular: (nv, 1) A^+ b, which is C v for constraints at rest. [aghili05 (16)]   rank: (1, 1)."""

    P: ca.SX
    particular: ca.SX
    rank: ca.SX


def projector(terms: Terms, tolerance: float = RANK_TOLERANCE) -> Projector:
    """P = I - A^+ A and A^+ b for rows of any rank."""
    rows = orthogonalise(terms.A, terms.b, tolerance, terms.row_size)
    return Projector(ca.SX.eye(terms.A.shape[1]) - rows.Q.T @ rows.Q, rows.Q.T @ rows.D, rows.rank)


def constraint_inertia(M: ca.SX, P: ca.SX, particular: ca.SX, variant: str) -> tuple[ca.SX, ca.SX]:
    """Constraint inertia matrix (nv, nv) and the force (nv, 1) that the constraints' curvature adds.

    nonsymmetric: Mc = M + PM - (PM)^T,        M A^+ b             [aghili05 (22)-(24)]
    symmetric:    PMP + (I-P) M (I-P),        (I - 2P) M A^+ b     [aghili05 (27) (28)]
    tuned:        PM + g (I - P),  g = |M|,    g A^+ b             [aghili05 (29)]
    """
    n = M.shape[0]
    I = ca.SX.eye(n)
    PM = P @ M
    if variant == "nonsymmetric":
        return M + PM - PM.T, M @ particular
    if variant == "symmetric":
        return PM @ P + (I - P) @ M @ (I - P), M @ particular - 2 * PM @ particular
    if variant == "tuned":
        # With g at least the largest eigenvalue of M the matrix is positive definite; the Frobenius norm is.
        g = ca.norm_fro(ca.densify(M))
        return PM + g * (I - P), g * particular
    raise ModelError(f"constraint inertia {variant!r} is unknown; one of {', '.join(VARIANTS)}")


def motion(terms: Terms, *, variant: str = "nonsymmetric", tolerance: float = RANK_TOLERANCE) -> Motion:
    """Mc v_dot = P (f + B u - c) + curvature;  reaction = (I - P)(M v_dot - f - B u + c). [aghili05 (20)-(32)]"""
    M, force = ca.densify(terms.M), terms.force
    P, particular, rank = projector(terms, tolerance)
    Mc, curvature = constraint_inertia(M, P, particular, variant)
    v_dot = solve_definite(Mc, P @ force + curvature)
    residual = M @ v_dot - force
    return Motion(v_dot, residual - P @ residual, rank)
