"""The result of every formulation, and the rows that several of them use."""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca

from pfaffian.kernel.remember import once_for
from pfaffian.maths.linear import Orthogonal, orthogonalise
from pfaffian.maths.minimum_norm import MinimumNorm, minimum_norm
from pfaffian.terms.terms import Terms

RANK_TOLERANCE = 1e-5
"""A row counts as dependent if its remainder is below this fraction of its length, or of its typical length.

The value is far above rounding, for this reason: close to a singular configuration the direction of a row is less certain than
its length, and to integrate across it without the row for one stage gives a smaller error than with a row of arbitrary
direction. Measured on 4096 slider-cranks over 20 s at 1 ms (`studies/slider_crank.py`): energy errors of 6.8e-10 J in the
median and 2.9e-5 J at most; with 1e-6 at most 5.4e-4 J, with 1e-4 3e-6 J in the median. The largest errors come from steps that
begin within 1e-5 of the singular configuration, most at less than 0.05 rad/s, whose first stage therefore lacks the row. (Under
the classical rule, eight runs with errors of up to 2.8e-3 J had a middle stage there: off the constraint by h^2/8 of the
acceleration, 1e-6, where the row was 1e-5 to 1e-4 long, so that its direction was off by 10 degrees. `simulate.step` describes
the present rule.) The correction of drift uses this tolerance too.
"""


class Motion(NamedTuple):
    """Result of every formulation, also of one's own: see `FORMULATIONS`.

    v_dot: (nv, 1) acceleration.   reaction: (nv, 1) A^T lambda [N, N m], M v_dot + c = f + B u + reaction.
    rank: (1, 1) number of independent constraint rows.

    Example:
        >>> import casadi as ca
        >>> import pfaffian as pf
        >>> def without_constraints(T):
        ...     return pf.Motion(ca.solve(T.M, T.force), ca.SX.zeros(T.mechanism.nv, 1), ca.SX(0))
        >>> pf.FORMULATIONS["without constraints"] = without_constraints
        >>> m = pf.mechanism("cart", [pf.body("cart", 2.0)], [pf.joint("rail", "prismatic", "world", "cart")])
        >>> pf.forward_dynamics(m, [0.0], formulation="without constraints").v_dot
        array([-9.81])
        >>> del pf.FORMULATIONS["without constraints"]
    """

    v_dot: ca.SX
    reaction: ca.SX
    rank: ca.SX


def weighted_rows(terms: Terms, rhs: ca.SX, tolerance: float = RANK_TOLERANCE) -> Orthogonal:
    """Orthonormal rows Q of Lam = A W^-T, M = W W^T, and the right-hand sides (m, k) carried with them. [aghili08 (19)]"""
    return orthogonalise(terms.Lam, rhs, tolerance, terms.row_size, terms.counted, groups=terms.groups)


def shortest_change(terms: Terms, tolerance: float = RANK_TOLERANCE, rows: list[int] | None = None) -> MinimumNorm:
    """Factorisation whose solve(rhs) gives the shortest y (nv, k) with Lam y = rhs (m, k): the effect of constraints.

    y = W^T v are mass-weighted coordinates, so y is shortest in the metric of M. It gives constrained accelerations (Gauss),
    and corrects positions and velocities that have drifted off the constraints. A may be redundant or lose rank.
    rows: indices of the rows to use, all if None. The factorisation is made once for these Terms.
    """

    def factorised() -> MinimumNorm:
        Lam, size = (terms.Lam, terms.row_size) if rows is None else (terms.Lam[rows, :], terms.row_size[rows, 0])
        return minimum_norm(Lam, tolerance, size, terms.counted, terms.row_blocks(rows))

    return once_for(terms, f"shortest change: {tolerance!r}, {rows}", factorised)
