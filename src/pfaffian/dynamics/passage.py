"""Acceleration in a singular configuration that a motion passes through, from the rates of the lost rows.

Where a combination n of rows vanishes, n^T A = 0, it does not restrict v_dot. But it must also hold an instant later:
d/dt (A v_dot - b) = A v_ddot + A_dot v_dot - b_dot = 0. Multiplied by n^T, this becomes

    n^T (A_dot - db/dv) v_dot = n^T (db/dq q_dot + db/dt),

which are nonzero rows as far as the velocity distinguishes the branches. At rest they vanish: the branch is not determined.
Rows that depend on v (an eta that is not affine in v) would add terms quadratic in v_dot; a combination with such a row is
omitted.
"""

from __future__ import annotations

import casadi as ca

from pfaffian.dynamics.motion import RANK_TOLERANCE, Motion, weighted_rows
from pfaffian.dynamics.multipliers import SHARED
from pfaffian.maths.linear import orthogonalise
from pfaffian.maths.reflection import NOTHING
from pfaffian.maths.tree_factor import multiply_W, solve_W, solve_WT
from pfaffian.terms.terms import Terms, turning


def motion(terms: Terms, *, tolerance: float = RANK_TOLERANCE) -> Motion:
    """Acceleration, reaction and rank in a singular configuration, as limits of their values before and after it.

    In other configurations the result is that of `gauss`, at several times its cost. The reaction is in the span to which the
    rows tend: for holonomic rows n^T (A_dot - db/dv) is three times n^T A_dot, up to rows of A.
    """
    F, b, m = terms.factor, terms.b, terms.A.shape[0]
    y_free = solve_W(F, terms.force)
    lost = weighted_rows(terms, ca.SX.eye(m), tolerance).rest
    if turning_rows := turning(terms):
        lost *= ca.sum2(lost[:, turning_rows] ** 2) < SHARED**2
    slope = terms.A_dot - ca.jacobian(b, terms.v)
    later = lost @ slope
    change_rate = lost @ (ca.jtimes(b, terms.q, terms.kinematics.q_dot) + ca.jacobian(b, terms.t))
    typical = ca.sum2(lost * lost) * ca.sumsqr(slope)
    size = ca.vertcat(terms.row_size, ca.sum2(later * later) / ca.fmax(typical, NOTHING))
    Lam = ca.vertcat(terms.Lam, solve_W(F, later.T).T)
    rhs = ca.vertcat(b, change_rate) - Lam @ y_free
    groups = [*(terms.groups or [[i] for i in range(m)]), list(range(m, 2 * m))]
    rows = orthogonalise(ca.sparsify(Lam), rhs, tolerance, ca.densify(size), terms.counted, groups=groups)
    change = rows.Q.T @ rows.D
    return Motion(ca.densify(solve_WT(F, y_free + change)), multiply_W(F, change), rows.rank)
