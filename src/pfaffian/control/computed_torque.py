"""Plain inverse dynamics: every joint as if there were no constraint. A yardstick for the projected laws."""

from __future__ import annotations

from typing import Any

import casadi as ca

from pfaffian.control.full_actuation import UNDRIVEN, inputs_of
from pfaffian.control.law import Command, Control, maker, with_no_wrench
from pfaffian.control.reason import out_of_reach, undriven
from pfaffian.control.reference import Reference
from pfaffian.control.task import Task, check_aim, pursue
from pfaffian.dynamics.motion import RANK_TOLERANCE
from pfaffian.errors import ModelError
from pfaffian.maths.linear import solve_semidefinite
from pfaffian.terms.terms import Terms

SINGULAR = "the task's Jacobian is singular here: plain inverse dynamics cannot go on"


@maker
def computed_torque(task: Task, reference: Reference, *, stiffness: Any, damping: Any) -> Control:
    """u = B^-1 (M v_dot_d + c - f), J v_dot_d = theta_ddot_d + G_D e_dot + G_P e - drift; as many task coordinates as v.

    Ignores the constraints: a reference that is off by a millimetre pushes against them. Where motors share a joint u is the
    smallest of those that give the same forces.

    Args:
        task, reference, stiffness, damping: as in `projected`.
    Stops a run: the task's Jacobian is singular; the actuators drive some velocity no more.
    Raises ModelError: not as many task coordinates as velocities, or some velocity has no actuator.
    """

    check_aim(task, reference)

    def law(terms: Terms, z: ca.SX, w: ca.SX, reaction: ca.SX) -> Command:
        m, goal = terms.mechanism, pursue(terms, task, reference, w, stiffness, damping)
        x, k = goal.x, goal.error.numel()
        if k != m.nv:
            raise ModelError(f"plain inverse dynamics needs {m.nv} task coordinates, got {k}; use control.projected")
        wanted = goal.acceleration + goal.feedback - x.drift
        v_dot = solve_semidefinite(x.J.T @ x.J, x.J.T @ wanted, RANK_TOLERANCE)
        u, lost = inputs_of(terms, terms.M @ v_dot.x + terms.c - terms.f, "plain inverse dynamics")
        signals = {"error": goal.error, "error_rate": goal.error_rate}
        return Command(with_no_wrench(terms, u), ca.SX(0, 1), ca.vertcat(ca.sum1(v_dot.kept) < k, lost), signals)

    reasons = {SINGULAR: out_of_reach(task, constrained=False), UNDRIVEN: undriven(constrained=False)}
    return Control(law, (), reference.w_names, tuple(reasons), reasons=reasons)
