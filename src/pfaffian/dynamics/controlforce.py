"""Control forces along chosen directions that maintain servo constraints, next to geometric ones with reactions. [ider]

In mass-weighted coordinates the geometric rows are orthonormalised first. The decoupling matrix G is the effect of the chosen
directions on the servo rows within the motions that the geometric rows allow. The motion exists if G has full rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import casadi as ca

from pfaffian.dynamics.motion import RANK_TOLERANCE, Motion, weighted_rows
from pfaffian.maths.linear import Orthogonal, handedness, orthogonalise
from pfaffian.maths.tree_factor import multiply_W, solve_W, solve_WT
from pfaffian.model.constraint import Servo
from pfaffian.terms.terms import Terms, as_terms

SHORTEST = 1e-150
"""Length below which a direction or a row counts as zero."""


class ControlForce(NamedTuple):
    """Motion and control forces under geometric and servo constraints.

    motion: of the mechanism.   mu: (ms, 1) forces along the chosen directions.   G: (ms, ms) decoupling matrix.
    realisable: (1, 1) whether G has full rank, with rows and directions of unit length in the metric of M.
    hold: (1, 1) length of the part of its weakest row that is independent of the others: 1 at best, 0 if a motion cannot be
        produced.
    side: (1, 1) sign of det G: if it changes along a motion, G was singular in between.
    """

    motion: Motion
    mu: ca.SX
    G: ca.SX
    realisable: ca.SX
    hold: ca.SX
    side: ca.SX


def fault(servos: Sequence[Servo]) -> str:
    """The message for a decoupling matrix that has lost rank, with the names of all directions and rows."""
    directions = [n for s in servos for n in direction_names(s)]
    return (
        f"servo constraint not realisable: forces along {', '.join(directions)} cannot produce the required acceleration of "
        f"{', '.join(s.name for s in servos)} here; choose other directions (see pfaffian.constraints.realisability)"
    )


def direction_names(servo: Servo, count: int = 0) -> tuple[str, ...]:
    """Names of a servo constraint's directions; if a function gives them, they are numbered up to `count`, or one name if 0."""
    if not callable(servo.directions):
        return servo.directions
    return tuple(f"direction {i} of {servo.name}" for i in range(count)) or (f"the directions of {servo.name}",)


def control_force(terms: Terms, *, tolerance: float = RANK_TOLERANCE) -> ControlForce:
    """Forces along chosen directions that maintain servo constraints, with the reactions of ideal ones. [ider (14)-(19)]

    M v_dot + c = f + B u + A^T lambda + Z^T mu with A v_dot = b and A_s v_dot = b_s. A solution can exist even if a direction
    is tangent to the surface of its constraint, as long as inertia couples them.

    Args:
        terms: Terms of a mechanism with servo constraints.
        tolerance: fraction of a row's length below which the remainder counts as zero and the row as dependent.
    Returns:
        a named tuple of expressions: motion (v_dot, reaction, rank), mu (ms, 1) forces along the directions [N, N m], G (ms,
        ms) decoupling matrix, realisable (1, 1) whether it has full rank, hold (1, 1) length of the independent part of its
        weakest row (1 at best, 0 if a motion cannot be produced) and side (1, 1), the sign of det G.

    Example:
        >>> import pfaffian as pf
        >>> cart, rail = pf.body("cart", 2.0), pf.joint("rail", "prismatic", "world", "cart")
        >>> servo = pf.servo(pf.holonomic("stay", lambda k: k.q[0]), ["motor"])
        >>> m = pf.mechanism("cart", [cart], [rail], constraints=[servo], actuators=[pf.actuator("motor", "rail")])
        >>> f = pf.compile_terms(m, {"mu": lambda T: pf.constraints.control_force(T).mu}, backend="numpy")
        >>> float(f()["mu"].round(2))  # holds 2 kg up
        19.62
    """
    F, servo = as_terms(terms).factor, terms.servo
    rows = weighted_rows(terms, terms.b, tolerance)
    free = solve_W(F, terms.force)
    ideal = free + rows.Q.T @ (rows.D - rows.Q @ free)
    targets, directions = solve_W(F, servo.A.T).T, solve_W(F, servo.Z.T)
    pushed = ca.densify(directions - rows.Q.T @ (rows.Q @ directions))
    G = targets @ pushed
    ms = G.shape[0]
    unit, solved = decoupled(G, servo.b - targets @ ideal, targets, directions, tolerance)
    mu = unit * (solved.Q.T @ solved.D)
    y_dot = ideal + pushed @ mu
    reaction = multiply_W(F, y_dot - free)
    motion = Motion(ca.densify(solve_WT(F, y_dot)), reaction, rows.rank + solved.rank)
    hold = ca.sqrt(ca.mmin(ca.fmin(1, solved.left))) if ms else ca.SX(1)
    return ControlForce(motion, ca.densify(mu), G, solved.rank >= ms, hold, handedness(solved.Q))


def decoupled(G: ca.SX, rhs: ca.SX, targets: ca.SX, directions: ca.SX, tolerance: float) -> tuple[ca.SX, Orthogonal]:
    """Solve G mu = rhs (ms, k) for servo rows `targets` (ms, nv) and directions (nv, ms) in mass-weighted coordinates.

    Returns a unit (ms, 1) of each force, and the orthonormal rows of G in these units, so that mu = diag(unit) Q^T D.

    Directions of unit length make N and N m, or motors with different gears, comparable. The remainder of a row is relative to
    its length before the projection onto the motions that the geometric constraints allow.
    """
    unit = 1 / ca.fmax(ca.sqrt(ca.sum1(directions * directions)), SHORTEST)
    scaled = G * ca.repmat(unit, G.shape[0], 1)
    size = ca.sum2(scaled * scaled) / ca.fmax(ca.sum2(targets * targets), SHORTEST**2)
    return unit.T, orthogonalise(scaled, rhs, tolerance, size)


def ideal_reaction(terms: Terms, motion: Motion) -> ca.SX:
    """(nv, 1) A^T lambda, the reaction of a motion minus the forces of servo constraints."""
    return motion.reaction - terms.servo.Z.T @ control_force(terms).mu if terms.mechanism.servos else motion.reaction


def motion(terms: Terms, *, tolerance: float = RANK_TOLERANCE) -> Motion:
    """Acceleration and reaction under geometric and servo constraints; the reaction includes the control forces."""
    return control_force(terms, tolerance=tolerance).motion
