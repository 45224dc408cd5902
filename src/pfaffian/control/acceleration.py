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
"""Largest residuals of the task's and the constraints' rows of a feasible task, relative to the required acceleration."""

NEGLIGIBLE = 1e-6
"""Part of G_P theta and G_D theta_dot that is added to the size of the required acceleration, for where that passes zero."""

WORTH_ELIMINATING = 8
"""Smallest number of joints with prescribed accelerations that are worth eliminating. With fewer, the law shares the factor
and the orthonormal rows of the plant."""


class TaskAcceleration(NamedTuple):
    """The acceleration that a task requires.   v_dot: (nv, 1).   error, error_rate: (k, 1) of the task.
    infeasible: (1, 1) nonzero where no acceleration satisfies both task and constraints.
    """

    v_dot: ca.SX
    error: ca.SX
    error_rate: ca.SX
    infeasible: ca.SX


def task_acceleration(
    terms: Terms, task: Task, reference: Reference, w: ca.SX, stiffness: Any, damping: Any, rest_damping: Any = 0.0
) -> TaskAcceleration:
    """v_dot with A v_dot = b and theta_ddot = theta_ddot_d + G_D e_dot + G_P e, e = theta_d - theta. [aghili05 (43) (44)]

    The task's rows follow the constraint rows in one orthonormalisation. As q itself is never parametrised, singular
    parametrisations do not matter. Where neither task nor constraints determine v_dot, |v_dot + M^-1 c_v + rest_damping v| is
    smallest in the metric of M, with rest_damping in 1/s and the Coriolis and centrifugal force c_v: the accelerations of the
    bodies, weighted by their masses, so that the motion does not depend on the coordinates, nor on where loops are cut.
    """
    goal = pursue(terms, task, reference, w, stiffness, damping)
    x = goal.x
    rhs = ca.vertcat(terms.b, goal.acceleration + goal.feedback - x.drift)
    v_dot, rest, shortest = _determined(terms, x.J, rhs, -scalar(rest_damping, "rest_damping") * terms.v)
    m = terms.A.shape[0]
    missed = x.J @ v_dot - rhs[m:, 0]
    slight = ca.sumsqr(goal.G_D * x.rate) + ca.sumsqr(goal.G_P * x.theta)
    size = ca.sumsqr(rhs) + ca.sumsqr(x.drift) + NEGLIGIBLE**2 * slight
    # Near a singular configuration rows are short and magnify errors of the state. This is not a contradiction, so the
    # squared residual is multiplied by the squared length of the shortest row.
    infeasible = ca.logic_or(
        ca.sumsqr(missed) * shortest > INFEASIBLE_PART**2 * size, ca.sumsqr(rest) > INCONSISTENT_PART**2 * size
    )
    return TaskAcceleration(v_dot, goal.error, goal.error_rate, infeasible)


def _determined(terms: Terms, J: ca.SX, rhs: ca.SX, v_t: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
    """v_dot (nv, 1) with [A; J] v_dot = rhs, nearest to v_t - M^-1 c_v in the metric of M; the residual of A if joints were
    eliminated; the squared length, at most 1, that the orthonormalisation leaves of the shortest independent constraint row.

    If the task prescribes the accelerations of many joints directly, these are eliminated first. The other joints then form a
    smaller mechanism with a factor of its own, M_FF = W_F W_F^T.
    """
    n, m, k = J.shape[1], terms.A.shape[0], terms.kinematics
    prescribed = _prescribed(J)
    prescribed = prescribed if len(prescribed) >= WORTH_ELIMINATING else {}
    F = [i for i in range(n) if i not in prescribed]
    S, prescribing_rows = list(prescribed), list(prescribed.values())
    others = [m + i for i in range(J.shape[0]) if i not in prescribing_rows]
    v_S = ca.vertcat(ca.SX(0, 1), *[rhs[m + i] / J[i, j] for j, i in prescribed.items()])
    rows = ca.vertcat(terms.A, J)[list(range(m)) + others, :]
    W = terms.factor if not S else factor_tree(terms.M[F, F], _contracted(k.parents, F))
    beta = rhs[list(range(m)) + others, 0] - rows[:, S] @ v_S - rows[:, F] @ v_t[F, 0]
    c_v = terms.velocity_force if len(_prescribed(J)) < n else ca.SX(n, 1)  # nothing is open where the task prescribes all
    start = solve_W(W, -terms.M[F, S] @ (v_S - v_t[S, 0]) - c_v[F, 0])
    size = ca.vertcat(terms.row_size, ca.SX.ones(len(others), 1))
    if S:
        size *= ca.sum2(rows[:, F] ** 2) / ca.sum2(rows**2)
    # The constraint rows are in the order of `shortest_change`, so that their orthonormalisation is shared with the plant.
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
    # A row that is short itself, at a singular configuration, is left out at that instant. This is not a contradiction.
    in_use = terms.row_size > RANK_TOLERANCE**2
    shortest = ca.mmin(ca.if_else(Q.independent[:m, 0], ca.fmin(Q.left[:m, 0], 1), 1)) if m else ca.SX(1)
    return v_dot, in_use * (terms.A @ v_dot - rhs[:m, 0]) if S else ca.SX(0, 1), shortest


def _prescribed(J: ca.SX) -> dict[int, int]:
    """Velocity -> first row of J whose only entry is a constant for this velocity, so that it prescribes the acceleration."""
    row_of: dict[int, int] = {}
    for i in range(J.shape[0]):
        row = ca.sparsify(J[i, :])
        if row.nnz() == 1 and row.nz[0].is_constant():
            row_of.setdefault(row.sparsity().get_col()[0], i)
    return row_of


def _contracted(parents: Sequence[int], F: Sequence[int]) -> list[int]:
    """Parents in the tree in which only the coordinates F move: the nearest ancestor of each that is in F, or -1."""
    out = []
    for i in F:
        ancestor = parents[i]
        while ancestor >= 0 and ancestor not in F:
            ancestor = parents[ancestor]
        out.append(F.index(ancestor) if ancestor >= 0 else -1)
    return out
