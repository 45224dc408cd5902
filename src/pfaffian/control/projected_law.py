"""Projected inverse dynamics: the smallest weighted inputs that give a requested motion; passive joints allowed. [aghili05]"""

from __future__ import annotations

from typing import Any

import casadi as ca

from pfaffian.control.acceleration import INFEASIBLE, task_acceleration
from pfaffian.control.allocation import BEYOND_LIMITS, UNCONTROLLABLE, allocate, input_limits, weights
from pfaffian.control.command import Command, Fault
from pfaffian.control.idle import idle_motions
from pfaffian.control.law import Control, maker
from pfaffian.control.reason import out_of_reach, undriven
from pfaffian.control.reference import Reference
from pfaffian.control.task import Task, check_aim, task_terms
from pfaffian.terms.terms import Terms


@maker
def projected(
    task: Task,
    reference: Reference,
    *,
    stiffness: Any,
    damping: Any,
    weight: Any = None,
    rest_damping: Any = 0.0,
    limits: Any = None,
) -> Control:
    """Steer a task within the constraints by the smallest inputs; joints may be passive. [aghili05 (43)-(46), (53)-(60)]

        P B u = P (c - f + M v_dot_d),   theta_ddot = theta_ddot_d + G_D e_dot + G_P e,   e = theta_d - theta

    Of all inputs that give this motion, u has the least u^T R u. With every joint actuated and R = 1 it is f_par; with passive
    joints it lies in the range of B and still gives the same motion. Closed loop: e_ddot + G_D e_dot + G_P e = 0.

    Args:
        task: theta(q), a function of the Kinematics that returns (k, 1), such as joints(...) or point(...).
        reference: theta_d(t), a Reference of k coordinates.
        stiffness: G_P [1/s^2], not negative; one number, or one for each task coordinate.
        damping: G_D [1/s], not negative; one number, or one for each task coordinate.
        weight: (motors,) positive numbers, the diagonal of R; ones if None.
        rest_damping: damping of the motions that the task does not determine [1/s]; default 0. Their accelerations are the
            least, weighted by the masses, so that they depend neither on the coordinates nor on where loops are cut.
        limits: "actuators" for the limits of the actuators, or (motors, 2) the lowest and highest input of each [N, N m]; no
            limits if None. u is then the smallest of the inputs within the limits that give this motion, so that redundant
            actuators take over what one of them cannot supply.
    Returns:
        Control that records error e and error_rate e_dot.
    Stops a run: uncontrollable with these actuators; a task that the constraints forbid; a motion that needs inputs beyond the
    limits.
    Raises ModelError: an argument that is not a task or a Reference. At the run: a reference of another size, a negative gain,
    weights that are not positive, limits of another shape, or no actuators.

    Example:
        >>> import pfaffian as pf
        >>> from pfaffian import control
        >>> rail = pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> m = pf.mechanism("cart", [pf.body("cart", 2.0)], [rail], actuators=[pf.actuator("motor", "rail")])
        >>> law = control.projected(control.joints("rail"), control.set_point([1.0]), stiffness=4.0, damping=4.0)
        >>> run = pf.run(m, duration=1.0, step=0.01, control=law, backend="numpy")
        >>> round(float(run["task_error"].values[-1]), 4)  # (1 + 2 t) exp(-2 t)
        0.406
    """

    check_aim(task, reference)

    def law(terms: Terms, z: ca.SX, w: ca.SX, reaction: ca.SX) -> Command:
        a = task_acceleration(terms, task, reference, w, stiffness, damping, rest_damping)
        tau = terms.M @ a.v_dot + terms.c - terms.f
        m = terms.mechanism
        bounds = None if limits is None else input_limits(m, limits)
        idle = idle_motions(m, lambda T: task_terms(T, task).J).number
        answer = allocate(terms, tau, weights(m, weight), limits=bounds, idle=idle)
        beyond = [] if limits is None else [answer.beyond]
        return Command(
            answer.u,
            ca.SX(0, 1),
            ca.vertcat(answer.uncontrollable, a.infeasible, *beyond),
            {"task_error": a.error, "task_error_rate": a.error_rate},
        )

    faults = (Fault(UNCONTROLLABLE, undriven()), Fault(INFEASIBLE, out_of_reach(task)))
    within = () if limits is None else (Fault(BEYOND_LIMITS),)
    return Control(law, (), reference.w_names, (*faults, *within))
