"""Velocities that no motor drives, eliminated: how rates of the motors move outputs at constant momentum.

Without constraints, and with motors along velocities s of their own, b being all others,

    Mbb b_dot + Mbs s_dot = f_b,    Msb b_dot + Mss s_dot = f_s + u,

so that with the elimination of b, one solve with Mbb,

    b_dot = beta + X s_dot,    X = -Mbb^-1 Mbs,    beta = Mbb^-1 f_b,
    V_dot = J_b b_dot + J_s s_dot + J_dot v = G s_dot + drift,    G = J_s + J_b X,    drift = J_b beta + J_dot v.

G is the generalised Jacobian, and u follows from s_dot. The whole mass matrix is never solved.
"""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca

from pfaffian.control.law import motor_matrix
from pfaffian.maths.linear import solve_symmetric
from pfaffian.maths.reflection import NOTHING
from pfaffian.terms.terms import Terms


class Undriven(NamedTuple):
    """b, s: entries of v.   X: (b, s).   beta: (b, 1).   f: (nv, 1).   inertia: (s, s) Mss + Msb X.
    G: (k, s).   drift: (k, 1).
    share: (k, 1) what part of each output's mobility is that of single motors, the rest that of b alone.
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
    """The velocity that each motor drives by a force of its own; None where this is not the form of the machine."""
    B = ca.sparsify(motor_matrix(terms))
    rows = list(map(int, B.sparsity().row()))
    alone = len(rows) == B.shape[1] == len(set(rows)) == len({*B.sparsity().get_col()})
    ones = alone and ca.densify(ca.sum1(B) - 1).is_zero()
    free = not terms.A.shape[0] and not terms.mechanism.servos
    return rows if ones and free and terms.M.shape[0] - len(rows) <= len(rows) else None


def undriven(terms: Terms, s: list[int], J: ca.SX, J_dot: ca.SX) -> Undriven:
    """For motors along velocities s, see `driven`, and outputs V = J v."""
    M, f, b = ca.densify(terms.M), terms.f - terms.c, [i for i in range(terms.M.shape[0]) if i not in s]
    solved = solve_symmetric(M[b, b], ca.horzcat(-M[b, s], f[b, 0], J[:, b].T))
    X, beta, alone = ca.horzsplit(solved, [0, len(s), len(s) + 1, len(s) + 1 + J.shape[0]])
    G = ca.densify(J[:, s] + ca.sparsify(J[:, b]) @ X)
    inertia = M[s, s] + M[s, b] @ X
    by_motors, by_rest = G**2 @ (1 / ca.diag(inertia)), ca.sum1(J[:, b].T * alone).T
    drift = ca.densify(J[:, b] @ beta + J_dot @ terms.v)
    return Undriven(b, s, X, beta, f, inertia, G, drift, by_motors / ca.fmax(by_motors + by_rest, NOTHING))


def inputs(terms: Terms, x: Undriven, s_dot: ca.SX) -> ca.SX:
    """u (motors, 1) for accelerations (motors, 1) along the motors."""
    v_dot = ca.SX(terms.M.shape[0], 1)
    v_dot[x.s, 0], v_dot[x.b, 0] = s_dot, x.beta + x.X @ s_dot
    return (terms.M @ v_dot)[x.s, 0] - x.f[x.s, 0]
