"""Operational-space control: the task's own inertia, no constraints. A yardstick for the projected laws."""

from __future__ import annotations

from typing import Any

import casadi as ca

from pfaffian.control.acceleration import INFEASIBLE
from pfaffian.control.full_actuation import UNDRIVEN, inputs_of
from pfaffian.control.law import Command, Control, maker, with_no_wrench
from pfaffian.control.reason import out_of_reach, undriven
from pfaffian.control.reference import Reference
from pfaffian.control.task import Task, check_aim, pursue
from pfaffian.dynamics.motion import RANK_TOLERANCE
from pfaffian.maths.linear import solve_semidefinite
from pfaffian.maths.tree_factor import solve_M
from pfaffian.model.number import scalar
from pfaffian.terms.terms import Terms


@maker
def operational_space(task: Task, reference: Reference, *, stiffness: Any, damping: Any, joint_damping: float = 0.0) -> Control:
    """tau = J^T Lambda (theta_ddot_d + G_D e_dot + G_P e - drift) + c - f - N^T joint_damping M v, Lambda = (J M^-1 J^T)^-1.

    Every velocity must be actuated; u is the smallest with B u = tau, of which there are many where motors share a joint.

    Args:
        task, reference, stiffness, damping: as in `projected`.   joint_damping: [1/s] of motion that the task leaves open.
    Stops a run: the task's coordinates do not determine a motion; the actuators drive some velocity no more.
    Raises ModelError: some velocity has no actuator.
    """

    check_aim(task, reference)

    def law(terms: Terms, z: ca.SX, w: ca.SX, reaction: ca.SX) -> Command:
        goal = pursue(terms, task, reference, w, stiffness, damping)
        x, k = goal.x, goal.error.numel()
        J, inverse_J = x.J, solve_M(terms.factor, x.J.T)
        calm = -scalar(joint_damping, "joint_damping") * terms.v
        solved = solve_semidefinite(J @ inverse_J, goal.acceleration + goal.feedback - x.drift - J @ calm, RANK_TOLERANCE)
        tau = terms.M @ calm + J.T @ solved.x + terms.c - terms.f
        u, lost = inputs_of(terms, tau, "operational-space control")
        signals = {"error": goal.error, "error_rate": goal.error_rate}
        return Command(with_no_wrench(terms, u), ca.SX(0, 1), ca.vertcat(ca.sum1(solved.kept) < k, lost), signals)

    reasons = {INFEASIBLE: out_of_reach(task, constrained=False), UNDRIVEN: undriven(constrained=False)}
    return Control(law, (), reference.w_names, tuple(reasons), reasons=reasons)
