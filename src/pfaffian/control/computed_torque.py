"""Plain inverse dynamics: every joint as if there were no constraint. A yardstick for the projected laws."""

from __future__ import annotations

from typing import Any

import casadi as ca

from pfaffian.control.acceleration import gain
from pfaffian.control.law import Command, Control
from pfaffian.control.reference import Reference
from pfaffian.control.task import Task, task_terms
from pfaffian.errors import ModelError
from pfaffian.maths.linear import solve_definite
from pfaffian.terms.terms import Terms

SINGULAR = "the task's Jacobian is singular here: plain inverse dynamics cannot go on"


def computed_torque(task: Task, reference: Reference, *, stiffness: Any, damping: Any) -> Control:
    """u = B^-1 (M v_dot_d + c - f), J v_dot_d = theta_ddot_d + G_D e_dot + G_P e - drift; as many tasks and inputs as v.

    Ignores the constraints: a reference that is off by a millimetre pushes against them. Raises ModelError: not as many task
    coordinates or inputs as velocities.
    """

    def law(terms: Terms, z: ca.SX, w: ca.SX, reaction: ca.SX) -> Command:
        m, x = terms.mechanism, task_terms(terms, task)
        k = x.theta.numel()
        if k != m.nv or m.nu != m.nv:
            raise ModelError(f"plain inverse dynamics needs {m.nv} task coordinates and inputs, got {k} and {m.nu}")
        wanted = reference.at(terms.t, w)
        error, error_rate = wanted.value - x.theta, wanted.rate - x.rate
        push = gain(damping, k, "damping") * error_rate + gain(stiffness, k, "stiffness") * error
        v_dot = _solve(x.J, wanted.acceleration + push - x.drift)
        u = _solve(terms.B, terms.M @ v_dot + terms.c - terms.f)
        lost = ca.sumsqr(x.J @ v_dot - (wanted.acceleration + push - x.drift)) > 1e-12 * (1 + ca.sumsqr(push))
        return Command(u, ca.SX(0, 1), lost, {"error": error, "error_rate": error_rate})

    return Control(law, (), reference.w_names, (SINGULAR,))


def _solve(A: ca.SX, b: ca.SX) -> ca.SX:
    """A^-1 b through A^T A, which needs no pivoting."""
    return solve_definite(ca.densify(A.T @ A), ca.densify(A.T @ b))
