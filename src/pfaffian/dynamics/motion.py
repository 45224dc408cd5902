"""The result of every formulation, and the rows that several of them use."""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca

from pfaffian.kernel.remember import once_for
from pfaffian.maths.linear import Orthogonal, orthogonalise
from pfaffian.maths.minimum_norm import MinimumNorm, minimum_norm
from pfaffian.terms.terms import Terms

RANK_TOLERANCE = 1e-5
"""A row counts as dependent when what is left of it is this part of its length, or of its typical length.

Rounding does not decide it: close to a singular configuration the directions of rows are less certain than their lengths, and
integrating across it without a row for one stage errs less than with a row of arbitrary direction. Measured on 4096
slider-cranks over 20 s at 1 ms (`studies/slider_crank.py`): energy errors of 6.8e-10 J in the median and 2.9e-5 J at most; with
1e-6 at most 5.4e-4 J, with 1e-4 3e-6 J in the median. The largest come from steps that begin within 1e-5 of the singular
configuration, so that their first stage lacks the row, most at less than 0.05 rad/s. (Eight runs with errors of up to 2.8e-3 J
under the classical rule had a middle stage there: off the constraint by h^2/8 of the acceleration, 1e-6, where the row was 1e-5
to 1e-4 long, so that its direction was off by 10 degrees. `simulate.step` describes today's rule.) The correction of drift uses
the same tolerance.
"""


class Motion(NamedTuple):
    """v_dot: (nv, 1) acceleration.   reaction: (nv, 1) A^T lambda [N, N m], M v_dot + c = f + B u + reaction.
    rank: (1, 1) independent constraint rows."""

    v_dot: ca.SX
    reaction: ca.SX
    rank: ca.SX


def weighted_rows(terms: Terms, rhs: ca.SX, tolerance: float = RANK_TOLERANCE) -> Orthogonal:
    """Orthonormal rows Q of Lam = A W^-T, M = W W^T, and the right-hand sides (m, k) carried with them. [aghili08 (19)]"""
    return orthogonalise(terms.Lam, rhs, tolerance, terms.row_size, terms.counted, groups=terms.groups)


def shortest_change(terms: Terms, tolerance: float = RANK_TOLERANCE, rows: list[int] | None = None) -> MinimumNorm:
    """solve(rhs): the y (nv, k) shortest in the metric of M with Lam y = rhs (m, k): the effect of constraints on a motion.

    It serves accelerations (Gauss), and positions or velocities that have drifted off. A may be redundant or lose rank. rows:
    only some of them. Written once for these Terms.
    """

    def written() -> MinimumNorm:
        Lam, size = (terms.Lam, terms.row_size) if rows is None else (terms.Lam[rows, :], terms.row_size[rows, 0])
        return minimum_norm(Lam, tolerance, size, terms.counted, terms.row_blocks(rows))

    return once_for(terms, f"shortest change: {tolerance!r}, {rows}", written)
