"""Velocities after the impacts of surfaces that rebound, of one gap or of several that close at once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import casadi as ca
import numpy as np

from pfaffian.maths.qp import SOLVED, nearest
from pfaffian.maths.tree_factor import solve_W, solve_WT
from pfaffian.parts.rebound import Gap
from pfaffian.simulate.step.step import along
from pfaffian.terms.pfaffian import POSITION, VELOCITY
from pfaffian.terms.terms import Terms

PLASTIC = 64 * float(np.finfo(float).eps)
"""Least coefficient of restitution: with 0, rounding closes a gap again where velocities are then put onto constraints."""


def is_due(gap: Gap) -> ca.SX:
    """Whether a gap has closed and goes on closing."""
    return ca.logic_and(gap.value < 0, gap.rate < 0)


def after_impact(T: Terms, gaps: Sequence[Gap]) -> ca.SX:
    """(nv, 1) velocities after the impacts at T that are due; unchanged where none is.

        v+ = argmin (v - v-)^T M (v - v-) / 2   with   J v >= -e J v-   of the gaps that close at once

    along the velocities that the constraints leave. A single gap thus reaches -e J v-, and a body that falls flat onto a
    surface does not turn. [Moreau 1988] Gaps that contradict each other rebound one after another.
    """
    changes = [_change(T, gap) for gap in gaps]
    v = T.v
    for gap, change in zip(reversed(gaps), reversed(changes), strict=True):
        v = ca.if_else(is_due(gap), T.v + _opening(gap) / (gap.J @ change) * change, v)
    if len(gaps) == 1:
        return v
    # A gap is as good as closed where it is no wider than another is deep.
    deepest = reduce(ca.fmax, [ca.if_else(is_due(gap), -gap.value, -1) for gap in gaps])
    meets = ca.vertcat(*[ca.logic_and(gap.value <= deepest, gap.rate < 0) for gap in gaps])
    W = T.factor.W
    rows = ca.horzcat(*changes).T @ W
    least = ca.vertcat(*[_opening(gap) for gap in gaps])
    found = nearest(ca.SX.eye(T.mechanism.nv), ca.SX(T.mechanism.nv, 1), -(meets * rows), ca.if_else(meets, -least, 1))
    together = T.v + solve_WT(T.factor, found.u)
    return ca.if_else(ca.logic_and(found.status == SOLVED, ca.sum1(meets) > 1), together, v)


def _opening(gap: Gap) -> ca.SX:
    """Least change of the rate of a gap in an impact."""
    return -(1 + ca.fmax(gap.restitution, PLASTIC)) * gap.rate


def _change(T: Terms, gap: Gap) -> ca.SX:
    """(nv, 1) the part of M^-1 J^T of a gap along which the constraints stay satisfied."""
    y = solve_WT(T.factor, solve_W(T.factor, ca.densify(gap.J.T)))
    return y - along(T).move(T.rows.A[T.rows.at(POSITION, VELOCITY), :] @ y) if T.mechanism.ideal else y
