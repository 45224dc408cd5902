"""Plain inverse dynamics: every joint as if there were no constraint. A yardstick for the projected laws."""

from __future__ import annotations

from typing import Any

import casadi as ca

from pfaffian.control.law import Command, Control, maker, motor_matrix, with_no_wrench
from pfaffian.control.reason import out_of_reach
from pfaffian.control.reference import Reference
from pfaffian.control.task import Task, check_aim, pursue
from pfaffian.dynamics.motion import RANK_TOLERANCE
from pfaffian.errors import ModelError
from pfaffian.maths.linear import Semidefinite, solve_semidefinite
from pfaffian.terms.terms import Terms

SINGULAR = "the task's Jacobian is singular here: plain inverse dynamics cannot go on"


@maker
def computed_torque(task: Task, reference: Reference, *, stiffness: Any, damping: Any) -> Control:
    """u = B^-1 (M v_dot_d + c - f), J v_dot_d = theta_ddot_d + G_D e_dot + G_P e - drift; as many tasks and actuators as v.

    Ignores the constraints: a reference that is off by a millimetre pushes against them.

    Args:
        task, reference, stiffness, damping: as in `projected`.
    Stops a run: the task's Jacobian is singular.
    Raises ModelError: not as many task coordinates or actuators as velocities.
    """

    check_aim(task, reference)

    def law(terms: Terms, z: ca.SX, w: ca.SX, reaction: ca.SX) -> Command:
        m, goal = terms.mechanism, pursue(terms, task, reference, w, stiffness, damping)
        x, k = goal.x, goal.error.numel()
        if not k == len(m.actuators) == m.nv:
            raise ModelError(
                f"plain inverse dynamics needs {m.nv} task coordinates and actuators, got {k} and {len(m.actuators)}; "
                "see actuate_all, or use control.projected"
            )
        wanted = goal.acceleration + goal.feedback - x.drift
        v_dot = _solve(x.J, wanted)
        u = _solve(motor_matrix(terms), terms.M @ v_dot.x + terms.c - terms.f).x
        signals = {"error": goal.error, "error_rate": goal.error_rate}
        return Command(with_no_wrench(terms, u), ca.SX(0, 1), ca.sum1(v_dot.kept) < k, signals)

    return Control(law, (), reference.w_names, (SINGULAR,), reasons={SINGULAR: out_of_reach(task, constrained=False)})


def _solve(A: ca.SX, b: ca.SX) -> Semidefinite:
    """A^-1 b through A^T A, which needs no pivoting; a singular A leaves pivots out."""
    return solve_semidefinite(ca.densify(A.T @ A), ca.densify(A.T @ b), RANK_TOLERANCE)
