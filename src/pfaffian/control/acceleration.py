"""The acceleration that a task asks for, within the constraints."""

from __future__ import annotations

from typing import Any, NamedTuple

import casadi as ca

from pfaffian.control.reference import Reference
from pfaffian.control.task import Task, TaskTerms, task_terms
from pfaffian.dynamics.motion import RANK_TOLERANCE
from pfaffian.errors import ModelError
from pfaffian.maths.linear import multiply_WT, orthogonalise, solve_W, solve_WT
from pfaffian.model.number import vector
from pfaffian.terms.terms import Terms

INFEASIBLE = (
    "infeasible: the task asks for a motion that the constraints forbid, or its coordinates do not determine the motion here; "
    "choose other task coordinates"
)


class TaskAcceleration(NamedTuple):
    """v_dot: (nv, 1) wanted.   error, error_rate: (k, 1) of the task.   infeasible: (1, 1) nonzero where it cannot be had."""

    v_dot: ca.SX
    error: ca.SX
    error_rate: ca.SX
    infeasible: ca.SX


def gain(value: Any, size: int, what: str) -> ca.SX:
    """(size, 1) gains from one number or one for each coordinate."""
    if isinstance(value, (list, tuple)) or getattr(value, "ndim", 0) == 1:
        return vector(value, size, what)
    return ca.SX.ones(size, 1) * vector([value], 1, what)


def task_acceleration(
    terms: Terms, task: Task, reference: Reference, w: ca.SX, stiffness: Any, damping: Any, rest_damping: Any = 0.0
) -> TaskAcceleration:
    """v_dot with A v_dot = b and theta_ddot = theta_ddot_d + G_D e_dot + G_P e, e = theta_d - theta. [aghili05 (43) (44)]

    The task's rows follow the constraints' in one orthonormalisation, so q itself is never parametrised and singular
    parametrisations do not matter. Motion that neither determines is damped by rest_damping [1/s] (smallest in the metric of M).
    """
    x: TaskTerms = task_terms(terms, task)
    k = x.theta.numel()
    if reference.size != k:
        raise ModelError(f"the reference has {reference.size} coordinates, the task {k}")
    wanted = reference.at(terms.t, w)
    error, error_rate = wanted.value - x.theta, wanted.rate - x.rate
    push = gain(damping, k, "damping") * error_rate + gain(stiffness, k, "stiffness") * error
    F = terms.factor
    A = ca.vertcat(terms.A, x.J)
    size = ca.vertcat(terms.row_size, ca.SX.ones(k, 1))
    rhs = ca.vertcat(terms.b, wanted.acceleration + push - x.drift)
    rows = orthogonalise(solve_W(F, A.T).T, rhs, RANK_TOLERANCE, size)
    y_dot = rows.Q.T @ rows.D
    y = multiply_WT(F, terms.v)
    y_dot -= ca.SX(rest_damping) * (y - rows.Q.T @ (rows.Q @ y))
    v_dot = ca.densify(solve_WT(F, y_dot))
    missed = x.J @ v_dot - rhs[terms.A.shape[0] :]
    infeasible = ca.sumsqr(missed) > 1e-12 * (ca.sumsqr(rhs) + ca.sumsqr(x.drift))
    return TaskAcceleration(v_dot, error, error_rate, infeasible)
