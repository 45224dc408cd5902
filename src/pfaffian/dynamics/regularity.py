"""How far constraints are from losing rank, whatever the order, the frames and the units that they are written in.

The rows of a constraint are measured by what they typically are: with G_c the mean of Lam_c Lam_c^T over random configurations
and G_c = S_c S_c^T, the rows S_c^-1 Lam_c have length one on average and nothing in common. The same constraint written another
way, T Lam_c with a constant T, has S_c^-1 Lam_c turned, so the singular values of all these rows together are the same.
"""

from __future__ import annotations

import casadi as ca

from pfaffian.dynamics.motion import RANK_TOLERANCE, shortest_change
from pfaffian.maths.linear import NOTHING, solve_symmetric
from pfaffian.terms.terms import Terms, row_lengths


def regularity(terms: Terms, tolerance: float = RANK_TOLERANCE) -> ca.SX:
    """(1, 1) at terms: 1 where constraints are as independent as on average or more, near 0 where they almost lose rank.

    The least, over constraints c, of sqrt(m_c / |X_c|^2), X_c the columns of the pseudo-inverse of the measured rows that
    belong to c: how far the motion must go for a unit of the constraint. Rows that are set aside do not count. Along chains of
    loops, where rows are eliminated by A A^T, it is the least pivot, which does depend on their order.
    """
    own = terms.typical.measures
    if not own:
        return ca.SX(1)  # no row has an entry
    found = shortest_change(terms, tolerance)
    if found.rows is None:
        assert found.gram is not None
        left = [ca.if_else(keep, left, 1) for keep, left in zip(found.gram.kept, found.gram.left, strict=True)]
        return ca.sqrt(ca.fmin(1, ca.mmin(ca.vertcat(*left))))
    C = ca.SX(*found.rows.coefficients.shape)
    C[list(found.order), :] = found.rows.coefficients
    C = ca.diag(1 / row_lengths(terms)) @ C
    keep = ca.vertcat(*[step.keep for step in found.rows.steps])
    X = _pseudo_inverse(ca.vertcat(*[S @ C[list(at), :] for at, S in own]), keep)
    first, worst = 0, ca.SX(1)
    for _, S in own:
        count = S.shape[0]
        stretch = ca.sumsqr(X[:, first : first + count])
        worst = ca.fmin(worst, count / ca.fmax(stretch, NOTHING))
        first += count
    return ca.sqrt(worst)


def _pseudo_inverse(C: ca.SX, keep: ca.SX) -> ca.SX:
    """(s, m) of C (m, s), the columns that are not kept left out."""
    C = C @ ca.diag(keep)
    return ca.diag(keep) @ solve_symmetric(ca.densify(C.T @ C) + ca.diag(1 - keep), ca.densify(C.T))
