"""Elimination of the velocities that no motor drives: the generalised Jacobian from motor speeds to outputs.

Without constraints, let s be the velocities that one motor each drives directly, and b all other velocities. Then

    Mbb b_dot + Mbs s_dot = f_b,    Msb b_dot + Mss s_dot = f_s + u,

and the elimination of b takes one solve with Mbb,

    b_dot = beta + X s_dot,    X = -Mbb^-1 Mbs,    beta = Mbb^-1 f_b,
    V_dot = J_b b_dot + J_s s_dot + J_dot v = G s_dot + drift,    G = J_s + J_b X,    drift = J_b beta + J_dot v.

G is the generalised Jacobian, and u follows from s_dot. No equations with the whole mass matrix are solved.
"""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca

from pfaffian.control.law import motor_matrix
from pfaffian.maths.linear import solve_symmetric
from pfaffian.maths.reflection import NOTHING
from pfaffian.terms.terms import Terms


class Undriven(NamedTuple):
    """The equations of motion after the elimination of undriven velocities.

    b, s: indices of the undriven and of the driven entries of v.   X: (b, s) and beta: (b, 1) of b_dot = beta + X s_dot.
    f: (nv, 1) applied force without inputs, minus c.   inertia: (s, s) Mss + Msb X.   G: (k, s) generalised Jacobian.
    drift: (k, 1) V_dot at s_dot = 0.   share: (k, 1) fraction of each output's mobility that is due to the motors, each moving
    alone; the rest is due to b.
    """

    b: list[int]
    s: list[int]
    X: ca.SX
    beta: ca.SX
    f: ca.SX
    inertia: ca.SX
    G: ca.SX
    drift: ca.SX
    share: ca.SX


def driven(terms: Terms) -> list[int] | None:
    """The index of the velocity that each motor drives; None where the elimination does not apply.

    It applies without constraints, if each motor drives one velocity with factor 1, no two motors drive the same one, and at
    most half of the velocities are undriven.
    """
    B = ca.sparsify(motor_matrix(terms))
    rows = list(map(int, B.sparsity().row()))
    alone = len(rows) == B.shape[1] == len(set(rows)) == len({*B.sparsity().get_col()})
    ones = alone and ca.densify(ca.sum1(B) - 1).is_zero()
    free = not terms.A.shape[0] and not terms.mechanism.servos
    return rows if ones and free and terms.M.shape[0] - len(rows) <= len(rows) else None


def undriven(terms: Terms, s: list[int], J: ca.SX, J_dot: ca.SX) -> Undriven:
    """Eliminate the velocities that no motor drives.   s: indices of the driven ones, see `driven`.   J, J_dot: of V = J v."""
    M, f, b = ca.densify(terms.M), terms.f - terms.c, [i for i in range(terms.M.shape[0]) if i not in s]
    solved = solve_symmetric(M[b, b], ca.horzcat(-M[b, s], f[b, 0], J[:, b].T))
    X, beta, alone = ca.horzsplit(solved, [0, len(s), len(s) + 1, len(s) + 1 + J.shape[0]])
    G = ca.densify(J[:, s] + ca.sparsify(J[:, b]) @ X)
    inertia = M[s, s] + M[s, b] @ X
    by_motors, by_rest = G**2 @ (1 / ca.diag(inertia)), ca.sum1(J[:, b].T * alone).T
    drift = ca.densify(J[:, b] @ beta + J_dot @ terms.v)
    return Undriven(b, s, X, beta, f, inertia, G, drift, by_motors / ca.fmax(by_motors + by_rest, NOTHING))


def inputs(terms: Terms, x: Undriven, s_dot: ca.SX) -> ca.SX:
    """(motors, 1) inputs u that give the driven velocities the accelerations s_dot (motors, 1)."""
    v_dot = ca.SX(terms.M.shape[0], 1)
    v_dot[x.s, 0], v_dot[x.b, 0] = s_dot, x.beta + x.X @ s_dot
    return (terms.M @ v_dot)[x.s, 0] - x.f[x.s, 0]
