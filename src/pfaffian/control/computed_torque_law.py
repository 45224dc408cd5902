"""Computed torque: plain inverse dynamics that ignores constraints, for comparison with the projected laws."""

from __future__ import annotations

from typing import Any

import casadi as ca

from pfaffian.control.command import Command
from pfaffian.control.full_actuation import command_of_task, without_constraints
from pfaffian.control.law import Control, maker
from pfaffian.control.reference import Reference
from pfaffian.control.task import Task, check_aim, pursue
from pfaffian.dynamics.motion import RANK_TOLERANCE
from pfaffian.errors import ModelError
from pfaffian.maths.linear import least_squares
from pfaffian.terms.terms import Terms

SINGULAR = "the task's Jacobian is singular here: plain inverse dynamics cannot go on"


@maker
def computed_torque(task: Task, reference: Reference, *, stiffness: Any, damping: Any) -> Control:
    """Control every motion by plain inverse dynamics, ignoring constraints.

        u = B^-1 (M v_dot_d + c - f),   J v_dot_d = theta_ddot_d + G_D e_dot + G_P e - drift,   e = theta_d - theta

    Without constraints the closed loop is e_ddot + G_D e_dot + G_P e = 0. With constraints, a reference that misses them by a
    millimetre makes the actuators push against them; use `projected` instead. Where several actuators drive one joint, u is
    the smallest of all inputs that give the same forces.

    Args:
        task: theta(q), a function of the Kinematics that returns (k, 1), such as joints(...) or point(...).
        reference: theta_d(t), with as many coordinates as the task.
        stiffness: G_P [1/s^2], not negative; one number, or one for each task coordinate.
        damping: G_D [1/s], not negative; one number, or one for each task coordinate.
    Returns:
        Control that records error e and error_rate e_dot.
    Stops a run: the task's Jacobian is singular; the actuators no longer drive some velocity.
    Raises ModelError: task is not a function or reference not a Reference. At the run: the number of task coordinates differs
    from that of velocities or from that of the reference, a gain is negative, or a velocity has no actuator.

    Example:
        >>> import pfaffian as pf
        >>> from pfaffian import control
        >>> bob = pf.body("bob", mass=2.0, com=(0, 0, -1))
        >>> m = pf.mechanism("pendulum", [bob], [pf.joint("hinge", "revolute", "world", "bob", axis=(0, 1, 0))])
        >>> law = control.computed_torque(control.joints("hinge"), control.set_point([1.0]), stiffness=4.0, damping=4.0)
        >>> pf.run(pf.actuate_all(m), duration=0.05, step=0.01, control=law, backend="numpy")["u"].values[0]  # m l^2 K e
        array([8.])
    """

    check_aim(task, reference)

    def law(terms: Terms, z: ca.SX, w: ca.SX, reaction: ca.SX) -> Command:
        """Inputs for the accelerations that J v_dot = feedforward + feedback - drift determines."""
        m, goal = terms.mechanism, pursue(terms, task, reference, w, stiffness, damping)
        x, k = goal.x, goal.error.numel()
        if k != m.nv:
            raise ModelError(f"plain inverse dynamics needs {m.nv} task coordinates, got {k}; use control.projected")
        acceleration = goal.acceleration + goal.feedback - x.drift
        v_dot = least_squares(x.J, acceleration, RANK_TOLERANCE)
        tau = terms.M @ v_dot.x + terms.c - terms.f
        return command_of_task(terms, tau, goal, v_dot.independent, "plain inverse dynamics")

    return without_constraints(law, task, reference, SINGULAR)
