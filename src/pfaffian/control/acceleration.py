"""The acceleration that a task requires, within the constraints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import casadi as ca

from pfaffian.control.reference import Reference
from pfaffian.control.task import Task, pursue
from pfaffian.dynamics.motion import RANK_TOLERANCE
from pfaffian.maths.linear import orthogonalise, smallest
from pfaffian.maths.minimum_norm import elimination_order
from pfaffian.maths.tree_factor import factor_tree, solve_W, solve_WT
from pfaffian.model.number import scalar
from pfaffian.terms.terms import Terms

INFEASIBLE = (
    "infeasible: the task requires a motion that the constraints forbid, or its coordinates do not determine the motion here; "
    "choose other task coordinates"
)

INFEASIBLE_PART, INCONSISTENT_PART = 1e-6, 1e-3
"""Parts of the required acceleration that the task and the constraints may miss."""

NEGLIGIBLE = 1e-6
"""Part of a coordinate or rate: where the required acceleration passes zero, errors are measured by this part of these."""

WORTH_TAKING_OUT = 8
"""Number of joints with a task of their own from which eliminating them pays; with fewer, the plant's factor and rows are
shared."""


class TaskAcceleration(NamedTuple):
    """v_dot: (nv, 1) required.   error, error_rate: (k, 1) of the task.   infeasible: (1, 1) nonzero where there is none."""

    v_dot: ca.SX
    error: ca.SX
    error_rate: ca.SX
    infeasible: ca.SX


def task_acceleration(
    terms: Terms, task: Task, reference: Reference, w: ca.SX, stiffness: Any, damping: Any, rest_damping: Any = 0.0
) -> TaskAcceleration:
    """v_dot with A v_dot = b and theta_ddot = theta_ddot_d + G_D e_dot + G_P e, e = theta_d - theta. [aghili05 (43) (44)]

    The task's rows follow the constraints' in one orthonormalisation, so q itself is never parametrised and singular
    parametrisations do not matter. Motion that neither determines is damped by rest_damping [1/s] (smallest in the metric of
    M).
    """
    goal = pursue(terms, task, reference, w, stiffness, damping)
    x = goal.x
    rhs = ca.vertcat(terms.b, goal.acceleration + goal.feedback - x.drift)
    v_dot, rest, shortest = _determined(terms, x.J, rhs, -scalar(rest_damping, "rest_damping") * terms.v)
    m = terms.A.shape[0]
    missed = x.J @ v_dot - rhs[m:, 0]
    slight = ca.sumsqr(goal.G_D * x.rate) + ca.sumsqr(goal.G_P * x.theta)
    size = ca.sumsqr(rhs) + ca.sumsqr(x.drift) + NEGLIGIBLE**2 * slight
    # Short rows, near a singular configuration, magnify errors of the state: that is no contradiction.
    infeasible = ca.logic_or(
        ca.sumsqr(missed) * shortest > INFEASIBLE_PART**2 * size, ca.sumsqr(rest) > INCONSISTENT_PART**2 * size
    )
    return TaskAcceleration(v_dot, goal.error, goal.error_rate, infeasible)


def _determined(terms: Terms, J: ca.SX, rhs: ca.SX, v_t: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
    """v_dot (nv, 1) with [A; J] v_dot = rhs, nearest to v_t in the metric of M; the residual of A where J leaves it no choice;
    and the squared length left of the shortest constraint row in use, at most 1.

    Joints whose own acceleration the task prescribes, if they are many, are eliminated first: the others then are a smaller
    mechanism with a factor of its own, M_FF = W_F W_F^T.
    """
    n, m, k = J.shape[1], terms.A.shape[0], terms.kinematics
    given = _given(J)
    given = given if len(given) >= WORTH_TAKING_OUT else {}
    F = [i for i in range(n) if i not in given]
    S, given_rows = list(given), list(given.values())
    others = [m + i for i in range(J.shape[0]) if i not in given_rows]
    v_S = ca.vertcat(ca.SX(0, 1), *[rhs[m + i] / J[i, j] for j, i in given.items()])
    rows = ca.vertcat(terms.A, J)[list(range(m)) + others, :]
    W = terms.factor if not S else factor_tree(terms.M[F, F], _contracted(k.parents, F))
    beta = rhs[list(range(m)) + others, 0] - rows[:, S] @ v_S - rows[:, F] @ v_t[F, 0]
    start = solve_W(W, -terms.M[F, S] @ (v_S - v_t[S, 0]))
    size = ca.vertcat(terms.row_size, ca.SX.ones(len(others), 1))
    if S:
        size *= ca.sum2(rows[:, F] ** 2) / ca.sum2(rows**2)
    # Constraint rows in the order of `shortest_change`, so that the plant's are the first of these.
    order = elimination_order(terms.Lam, terms.row_blocks(), reflected=terms.counted is None)
    flat = [*order.rows, *range(m, m + len(others))]
    groups = order.groups and [*order.groups, *[[m + i] for i in range(len(others))]]
    Lam, none = solve_W(W, rows[flat, F].T).T, ca.SX(len(flat), 0)
    passes = 1 if terms.counted is None else 2
    Q = orthogonalise(Lam, none, RANK_TOLERANCE, ca.densify(size[flat, 0]), passes=passes, groups=groups)
    move = solve_WT(W, smallest(Q, beta[flat, 0], start))
    v_dot = ca.SX.zeros(n, 1)
    v_dot[F, 0] = v_t[F, 0] + move
    v_dot[S, 0] = v_S
    # A row that is itself short, at a singular configuration, is set aside for a moment: no contradiction.
    in_use = terms.row_size > RANK_TOLERANCE**2
    shortest = ca.mmin(ca.if_else(Q.independent[:m, 0], ca.fmin(Q.left[:m, 0], 1), 1)) if m else ca.SX(1)
    return v_dot, in_use * (terms.A @ v_dot - rhs[:m, 0]) if S else ca.SX(0, 1), shortest


def _given(J: ca.SX) -> dict[int, int]:
    """Velocity -> the row of J that contains it alone, with a constant."""
    found: dict[int, int] = {}
    for i in range(J.shape[0]):
        row = ca.sparsify(J[i, :])
        if row.nnz() == 1 and row.nz[0].is_constant():
            found.setdefault(row.sparsity().get_col()[0], i)
    return found


def _contracted(parents: Sequence[int], F: Sequence[int]) -> list[int]:
    """Parents in the tree of the coordinates F, the others rigid: the nearest ancestor of each that is in F."""
    out = []
    for i in F:
        before = parents[i]
        while before >= 0 and before not in F:
            before = parents[before]
        out.append(F.index(before) if before >= 0 else -1)
    return out
