"""Projected inverse dynamics: the wanted motion by the smallest weighted actuation, passive joints allowed. [aghili05]"""

from __future__ import annotations

from typing import Any

import casadi as ca

from pfaffian.control.acceleration import INFEASIBLE, task_acceleration
from pfaffian.control.allocation import BEYOND_LIMITS, UNCONTROLLABLE, allocate, input_limits, weights
from pfaffian.control.law import Command, Control, maker
from pfaffian.control.reason import out_of_reach, undriven
from pfaffian.control.reference import Reference
from pfaffian.control.task import Task, check_aim
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
    """Steer a task to a reference with the smallest u^T R u. [aghili05 (43)-(46), (53)-(60)]

    P B u = P (c - f + M v_dot_d): of all inputs with this motion the smallest. With every joint actuated and R = 1 this is
    f_par; with passive joints it lies in the range of B and still does not disturb the motion.
    Closed loop: e_ddot + G_D e_dot + G_P e = 0.

    Args:
        task: theta(q).   reference: of as many coordinates.
        stiffness G_P [1/s^2], damping G_D [1/s]: one number or one for each coordinate.
        weight: (motors,) diagonal of R, ones if None.   rest_damping: [1/s] of motion that the task leaves open.
        limits: (motors, 2) lowest and highest of each actuator [N, N m], such as m.u_limits: of the inputs with this motion the
            smallest within them. Redundant actuators then share what one of them cannot do. Without limits if None.
    Stops a run: uncontrollable with the actuators, infeasible task, a motion beyond the limits.
    """

    check_aim(task, reference)

    def law(terms: Terms, z: ca.SX, w: ca.SX, reaction: ca.SX) -> Command:
        a = task_acceleration(terms, task, reference, w, stiffness, damping, rest_damping)
        tau = terms.M @ a.v_dot + terms.c - terms.f
        m = terms.mechanism
        answer = allocate(terms, tau, weights(m, weight), limits=input_limits(m, limits))
        beyond = [] if limits is None else [answer.beyond]
        return Command(
            answer.u,
            ca.SX(0, 1),
            ca.vertcat(answer.uncontrollable, a.infeasible, *beyond),
            {"error": a.error, "error_rate": a.error_rate},
        )

    reasons = {UNCONTROLLABLE: undriven(), INFEASIBLE: out_of_reach(task)}
    faults = (*reasons, *(() if limits is None else (BEYOND_LIMITS,)))
    return Control(law, (), reference.w_names, faults, reasons=reasons)
