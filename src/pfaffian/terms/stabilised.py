"""Constraints to which a run returns at given rates, instead of being put onto them. [konz25 A.2]"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import casadi as ca

from pfaffian.errors import ModelError, brief
from pfaffian.model.constraint import Closure, Holonomic, Nonholonomic, acceleration_constraint
from pfaffian.model.coordinates import Coordinates
from pfaffian.model.data import data
from pfaffian.model.number import Scalar, not_negative
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.pfaffian import target_rows

Stabilisable = Closure | Holonomic | Nonholonomic


def stabilised(constraint: Stabilisable | Coordinates, *, damping: Scalar, stiffness: Scalar | None = None) -> Any:
    """A constraint whose residual returns to zero at given rates, wherever a run starts. [konz25 (A.10)-(A.13)]

        phi'' + damping phi' + stiffness phi = 0,    A v_dot = b - damping phi' - stiffness phi     closures, phi(q, t) = 0
        eta' + damping eta = 0,                      A v_dot = b - damping eta                      eta(q, v, t) = 0
        phi' + damping phi = 0,                      q_dot = K v - dphi/dq^+ damping phi            coordinates with phi(q) = 0

    A run puts its start and the end of every step onto its other constraints. A stabilised constraint only adds rows for the
    accelerations: the start may violate it, and the errors of steps decay at these rates. Record its residual as an output to
    see how large it is.

    Args:
        constraint: a closure, phi = 0, eta = 0, or `pf.coordinates` with a phi; to use `active_while`, stabilise first.
        damping: [1/s], above zero. Steps longer than about 2 / damping diverge.
        stiffness: [1/s^2], above zero, only for closures and phi(q, t) = 0; (damping / 2)^2 by default, the fastest return
            without overshoot.
    Returns:
        An `acceleration_constraint` of the same name in place of the constraint, or the coordinates.
    Raises ModelError: another kind of constraint, or one that is active only at times; coordinates without phi; a damping or
    stiffness that is not above zero; a stiffness for a residual without one.

    Example:
        >>> import pfaffian as pf
        >>> ring = pf.holonomic("ring", lambda k: k.q[0] ** 2 + k.q[1] ** 2 - 1)
        >>> plane = pf.joint("xy", "planar-translation", "world", "bead")
        >>> soft = pf.constraints.stabilised(ring, damping=20.0)
        >>> m = pf.mechanism("bead", [pf.body("bead", mass=2.0)], [plane], constraints=[soft], gravity=(0, 0, 0))
        >>> run = pf.run(m, [1.1, 0.0], [0.0, 1.0], duration=2.0, step=0.01, backend="numpy")
        >>> abs(float((run["q"].values[-1] ** 2).sum()) - 1) < 1e-6
        True
    """
    if not isinstance(constraint, (*Stabilisable.__args__, Coordinates)):
        raise ModelError(f"stabilised: a closure, phi = 0, eta = 0 or coordinates are needed, got {brief(constraint)}")
    what = f"stabilised {constraint.name!r}"
    rates = [_positive(damping, f"{what}: damping")]
    if isinstance(constraint, (Closure, Holonomic)):
        rates.append(rates[0] ** 2 / 4 if stiffness is None else _positive(stiffness, f"{what}: stiffness"))
    elif stiffness is not None:
        raise ModelError(f"{what}: its residual needs a damping only; leave the stiffness out")
    if isinstance(constraint, Coordinates):
        if constraint.phi is None:
            raise ModelError(f"{what}: these coordinates have no phi to return to")
        return replace(constraint, returns=rates[0])
    if constraint.active is not None:
        raise ModelError(f"{what}: it is active only at times; stabilise it first, then pass it to active_while")
    return acceleration_constraint(constraint.name, _Returning(constraint, *rates))


def _positive(x: Scalar, what: str) -> ca.SX:
    """A number as an expression. Raises ModelError: it is not above zero."""
    number = not_negative(x, what)
    if number.is_zero():
        raise ModelError(f"{what} must be above zero")
    return number


@data
class _Returning:
    """Function of the kinematics that returns (Z, z) of a stabilised constraint.   damping: [1/s].   stiffness: [1/s^2]."""

    constraint: Stabilisable
    damping: ca.SX
    stiffness: ca.SX = ca.SX(0)

    def __call__(self, k: Kinematics) -> tuple[ca.SX, ca.SX]:
        rows = target_rows(k, self.constraint)
        return rows.A, rows.b - self.damping * rows.eta - self.stiffness * rows.phi
