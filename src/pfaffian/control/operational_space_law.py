"""Operational-space control: inverse dynamics with the task-space inertia. It ignores constraints; projected laws are compared
with it."""

from __future__ import annotations

from typing import Any

import casadi as ca

from pfaffian.control.acceleration import INFEASIBLE
from pfaffian.control.command import Command
from pfaffian.control.full_actuation import command_of_task, without_constraints
from pfaffian.control.law import Control, maker
from pfaffian.control.reference import Reference
from pfaffian.control.task import Task, check_aim, pursue
from pfaffian.dynamics.motion import RANK_TOLERANCE
from pfaffian.maths.linear import solve_semidefinite
from pfaffian.maths.tree_factor import solve_W
from pfaffian.model.number import scalar
from pfaffian.terms.terms import Terms


@maker
def operational_space(task: Task, reference: Reference, *, stiffness: Any, damping: Any, joint_damping: float = 0.0) -> Control:
    """Steer a task by its task-space inertia (operational-space control), without regard to constraints.

        tau = J^T Lambda (theta_ddot_d + G_D e_dot + G_P e - drift) + c - f - N^T joint_damping M v,
        Lambda = (J M^-1 J^T)^-1,   e = theta_d - theta

    N projects onto motions that leave the task unchanged. Every velocity must be actuated. u is the smallest solution of
    B u = tau, which has many where motors share a joint. Closed loop: e_ddot + G_D e_dot + G_P e = 0.

    Args:
        task: theta(q), a function of the Kinematics that returns (k, 1), such as joints(...) or point(...).
        reference: theta_d(t), a Reference of k coordinates.
        stiffness: G_P [1/s^2], not negative; one number, or one for each task coordinate.
        damping: G_D [1/s], not negative; one number, or one for each task coordinate.
        joint_damping: damping of the motions that leave the task unchanged [1/s]; default 0.
    Returns:
        Control that records error e and error_rate e_dot.
    Stops a run: the task's coordinates cannot all be accelerated independently; the actuators no longer drive some velocity.
    Raises ModelError: an argument that is not a task or a Reference. At the run: a reference of another size, a negative gain,
    or a velocity without an actuator.

    Example:
        >>> import pfaffian as pf
        >>> from pfaffian import control
        >>> rail = pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> m = pf.mechanism("cart", [pf.body("cart", 2.0)], [rail], actuators=[pf.actuator("motor", "rail")])
        >>> task = control.point("cart", axes=[0])
        >>> law = control.operational_space(task, control.set_point([1.0]), stiffness=4.0, damping=4.0)
        >>> run = pf.run(m, duration=0.05, step=0.01, control=law, backend="numpy")
        >>> run["u"].values[0]  # mass times stiffness times error
        array([8.])
    """

    check_aim(task, reference)

    def law(terms: Terms, z: ca.SX, w: ca.SX, reaction: ca.SX) -> Command:
        """Inputs for the task's acceleration, by its inertia (J M^-1 J^T)^-1, with damping of the joints."""
        goal = pursue(terms, task, reference, w, stiffness, damping)
        x = goal.x
        J, Y = x.J, solve_W(terms.factor, x.J.T)
        damping_rate = -scalar(joint_damping, "joint_damping") * terms.v
        # J M^-1 J^T = Y^T Y, as M = W W^T and Y = W^-1 J^T.
        solved = solve_semidefinite(Y.T @ Y, goal.acceleration + goal.feedback - x.drift - J @ damping_rate, RANK_TOLERANCE)
        tau = terms.M @ damping_rate + J.T @ solved.x + terms.c - terms.f
        return command_of_task(terms, tau, goal, solved.independent, "operational-space control")

    return without_constraints(law, task, reference, INFEASIBLE)
