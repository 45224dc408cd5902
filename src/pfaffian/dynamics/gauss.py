"""Gauss' principle in mass-weighted coordinates: the fast formulation, and the default with constraints.

With M = W W^T and y = W^T v the metric is the identity, the rows become Lam = A W^-T, and the constrained y_dot is the point on
the constraints nearest to the free y_dot.
"""

from __future__ import annotations

import casadi as ca

from pfaffian.dynamics.motion import RANK_TOLERANCE, Motion, shortest_change
from pfaffian.dynamics.multipliers import minimum_norm_multipliers
from pfaffian.maths.tree_factor import multiply_W, solve_W, solve_WT
from pfaffian.terms.connection import rate
from pfaffian.terms.momentum import momenta, momentum_rate
from pfaffian.terms.terms import Terms


def motion(terms: Terms, *, tolerance: float = RANK_TOLERANCE) -> Motion:
    """Acceleration and reaction nearest to the free motion in the metric of M.

    y_dot = y_free + Lam^+ (b - Lam y_free),  y_free = W^-1 (f + B u - c),  reaction = W (y_dot - y_free).
    A may be redundant or lose rank.
    """
    if terms.losses is not None and terms.losses.moved is not None and tolerance == RANK_TOLERANCE:
        v_dot, correction = terms.losses.moved
        rank = shortest_change(terms).rank if terms.A.shape[0] else ca.SX(0)
        return Motion(v_dot, ca.densify(multiply_W(terms.factor, correction)), rank)
    return nearest_to(terms, terms.force, tolerance)


def multipliers(terms: Terms) -> ca.SX:
    """(m, 1) multipliers of smallest norm of `motion`, from its rows, for a control law that measures them.

    Lam Lam^T lambda = b - Lam y_free. The reaction is not computed, unless sparsity demands a factor of Lam Lam^T instead of
    orthonormal rows.
    """
    change = shortest_change(terms)
    if change.rows is None:
        return minimum_norm_multipliers(terms, motion(terms).reaction)
    return change.combination(terms.b - terms.Lam @ solve_W(terms.factor, terms.force))


def by_momenta(terms: Terms) -> Motion:
    """Motion nearest to the free one, with the force from momenta p = M v: M v_dot = p_dot - M_dot v, without bias force c."""
    k = terms.kinematics
    return nearest_to(terms, momentum_rate(terms) - rate(k, momenta(terms)), RANK_TOLERANCE)


def nearest_to(terms: Terms, force: ca.SX, tolerance: float) -> Motion:
    """Motion nearest to the free one under a force (nv, 1), the sum of all forces except reactions."""
    F = terms.factor
    y_free = solve_W(F, force)
    if terms.A.shape[0] == 0:
        return Motion(ca.densify(solve_WT(F, y_free)), ca.SX.zeros(terms.M.shape[0], 1), ca.SX(0))
    change = shortest_change(terms, tolerance)
    correction = change.solve(terms.b - terms.Lam @ y_free)
    return Motion(ca.densify(solve_WT(F, y_free + correction)), multiply_W(F, correction), change.rank)
