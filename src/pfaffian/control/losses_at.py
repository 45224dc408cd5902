"""Friction that follows the loads of joints where the acceleration is given, and the inputs follow."""

from __future__ import annotations

import casadi as ca

from pfaffian.control.allocation import allocate
from pfaffian.dynamics.load_losses import losses_at
from pfaffian.terms.terms import Terms, has_losses


def with_losses_at(T: Terms, a: ca.SX, R: ca.SX, idle: int) -> Terms:
    """The Terms with the friction that loads cause when the smallest inputs u^T R u make the machine accelerate by a (nv, 1).

    Where a joint stands still, friction is zero: the inputs alone hold it.
    """
    if not has_losses(T.mechanism):
        return T
    force = T.M @ a + T.c - T.applied

    def inputs(friction: ca.SX) -> tuple[ca.SX, ca.SX]:
        answer = allocate(T, ca.densify(force - friction), R, idle=idle)
        return answer.u, ca.densify(answer.tau - T.B @ answer.u)

    return T.with_losses(losses_at(T, a, inputs))
