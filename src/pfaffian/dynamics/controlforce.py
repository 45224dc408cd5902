"""Control forces of chosen directions: geometrical constraints with ideal reactions, servo constraints without. [ider]

In mass-weighted coordinates the geometrical rows are orthonormalised first; what the chosen directions can do to the servo
rows within them is the decoupling matrix G, and the motion exists if G has full rank.
"""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca

from pfaffian.dynamics.motion import RANK_TOLERANCE, Motion, weighted_rows
from pfaffian.maths.linear import multiply_W, orthogonalise, solve_W, solve_WT
from pfaffian.terms.terms import Terms

FAULT = "servo constraint not realisable: the chosen control directions cannot produce the wanted acceleration here"


class ControlForce(NamedTuple):
    """motion: of the whole.   mu: (ms, 1) forces along the chosen directions.   G: (ms, ms) decoupling matrix.
    realisable: (1, 1) whether G, relative to its typical size, has full rank."""

    motion: Motion
    mu: ca.SX
    G: ca.SX
    realisable: ca.SX


def control_force(terms: Terms, *, tolerance: float = RANK_TOLERANCE) -> ControlForce:
    """M v_dot + c = f + B u + A^T lambda + Z^T mu with A v_dot = b and A_s v_dot = b_s. [ider (14)-(19)]

    Realisable even where a direction is tangent to its own constraint surface, as long as inertia couples them.
    """
    F, servo = terms.factor, terms.servo
    rows = weighted_rows(terms, terms.b, tolerance)
    free = solve_W(F, terms.force)
    held = free + rows.Q.T @ (rows.D - rows.Q @ free)
    wanted, pushed = solve_W(F, servo.A.T).T, solve_W(F, servo.Z.T)
    pushed = ca.densify(pushed - rows.Q.T @ (rows.Q @ pushed))
    G = wanted @ pushed
    # Columns of G compare with what directions and rows could do at best, so units cancel.
    reach = ca.sqrt(ca.sum2(wanted * wanted) @ ca.sum1(solve_W(F, servo.Z.T) ** 2))
    ms = G.shape[0]
    size = ca.sum2((G / reach) ** 2) if ms else ca.SX(0, 1)
    solved = orthogonalise(G, servo.b - wanted @ held, tolerance, size)
    mu = solved.Q.T @ solved.D
    y_dot = held + pushed @ mu
    reaction = multiply_W(F, y_dot - free)
    motion = Motion(ca.densify(solve_WT(F, y_dot)), reaction, rows.rank + solved.rank)
    return ControlForce(motion, ca.densify(mu), G, solved.rank >= ms)


def motion(terms: Terms, *, tolerance: float = RANK_TOLERANCE) -> Motion:
    """Acceleration and reaction, control forces included, of mixed geometrical and servo constraints."""
    return control_force(terms, tolerance=tolerance).motion
