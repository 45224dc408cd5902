"""Operational-space control: the task's own inertia, no constraints. A yardstick for the projected laws."""

from __future__ import annotations

from typing import Any

import casadi as ca

from pfaffian.control.acceleration import INFEASIBLE
from pfaffian.control.law import Command, Control, maker, motor_matrix, with_no_wrench
from pfaffian.control.reason import out_of_reach
from pfaffian.control.reference import Reference
from pfaffian.control.task import Task, check_aim, pursue
from pfaffian.dynamics.motion import RANK_TOLERANCE
from pfaffian.errors import ModelError
from pfaffian.maths.linear import solve_semidefinite
from pfaffian.maths.tree_factor import solve_M
from pfaffian.model.number import scalar
from pfaffian.terms.terms import Terms


@maker
def operational_space(task: Task, reference: Reference, *, stiffness: Any, damping: Any, joint_damping: float = 0.0) -> Control:
    """tau = J^T Lambda (theta_ddot_d + G_D e_dot + G_P e - drift) + c - f - N^T joint_damping M v, Lambda = (J M^-1 J^T)^-1.

    Every joint must be actuated.

    Args:
        task, reference, stiffness, damping: as in `projected`.   joint_damping: [1/s] of motion that the task leaves open.
    Stops a run: the task's coordinates do not determine a motion.
    Raises ModelError: not as many actuators as velocities.
    """

    check_aim(task, reference)

    def law(terms: Terms, z: ca.SX, w: ca.SX, reaction: ca.SX) -> Command:
        m, goal = terms.mechanism, pursue(terms, task, reference, w, stiffness, damping)
        x, k = goal.x, goal.error.numel()
        if len(m.actuators) != m.nv:
            raise ModelError(
                f"operational-space control needs every velocity actuated: {m.nv} velocities, {len(m.actuators)} actuators; "
                "see actuate_all, or use control.projected"
            )
        J, inverse_J = x.J, solve_M(terms.factor, x.J.T)
        calm = -scalar(joint_damping, "joint_damping") * terms.v
        solved = solve_semidefinite(J @ inverse_J, goal.acceleration + goal.feedback - x.drift - J @ calm, RANK_TOLERANCE)
        tau = terms.M @ calm + J.T @ solved.x + terms.c - terms.f
        B = motor_matrix(terms)
        u = solve_semidefinite(B.T @ B, B.T @ tau, RANK_TOLERANCE).x
        signals = {"error": goal.error, "error_rate": goal.error_rate}
        return Command(with_no_wrench(terms, u), ca.SX(0, 1), ca.sum1(solved.kept) < k, signals)

    return Control(law, (), reference.w_names, (INFEASIBLE,), reasons={INFEASIBLE: out_of_reach(task, constrained=False)})
