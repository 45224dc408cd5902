"""Hybrid control of motion and constraint force, with a proportional-integral force loop. [aghili05]"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.control.acceleration import INFEASIBLE, task_acceleration
from pfaffian.control.allocation import (
    FORCE_UNREACHABLE,
    UNCONTROLLABLE,
    allocate,
    chosen_rows,
    weights,
)
from pfaffian.control.command import Command, Fault
from pfaffian.control.idle import idle_motions
from pfaffian.control.law import Control, maker
from pfaffian.control.reason import out_of_reach, undriven
from pfaffian.control.reference import Reference, as_reference
from pfaffian.control.task import Task, check_aim, gain, task_terms
from pfaffian.dynamics.multipliers import minimum_norm_multipliers
from pfaffian.errors import ModelError
from pfaffian.model.mechanism import as_names
from pfaffian.model.number import floats
from pfaffian.terms.terms import Terms


@dataclass(frozen=True)
class Multipliers:
    """Measurement of a law: the multipliers of smallest norm of named constraint rows, from the reaction."""

    rows: tuple[str, ...]

    def __call__(self, terms: Terms, reaction: ca.SX) -> ca.SX:
        return self.chosen(terms, minimum_norm_multipliers(terms, reaction))

    def chosen(self, terms: Terms, lam: ca.SX) -> ca.SX:
        """The multipliers of the named rows, from all multipliers lam (m, 1)."""
        return lam[chosen_rows(terms, self.rows), 0]


@maker
def hybrid_force(
    task: Task,
    reference: Reference,
    force: Reference,
    rows: Sequence[str],
    *,
    stiffness: Any,
    damping: Any,
    force_gain: Any = 0.0,
    integral_gain: Any = 0.0,
    integral_start: Sequence[float] | None = None,
    weight: Any = None,
    rest_damping: Any = 0.0,
) -> Control:
    """Control a task and the multipliers of some constraint rows at the same time. [aghili05 (49)-(52)]

        reaction along the rows = A^T (lambda_d + G_F e + G_I int e),   e = lambda_d - lambda measured

    The motion is that of `projected`, with the smallest u^T R u: theta_ddot = theta_ddot_d + G_D e_dot + G_P e, where e is
    the error of the task. If the model is exact, the force error obeys (1 + G_F) e_dot + G_I e = 0. (The paper prints C q_dot
    instead of M C q_dot.)

    Args:
        task: theta(q), a function of the Kinematics that returns (k, 1), such as joints(...) or point(...).
        reference: theta_d(t), with as many coordinates as the task.
        stiffness: G_P [1/s^2], not negative; one number, or one for each task coordinate.
        damping: G_D [1/s], not negative; one number, or one for each task coordinate.
        force: reference lambda_d of the controlled rows, with the sign of the reaction A^T lambda.
        rows: names of the controlled constraint rows, as in the result's `row`.
        force_gain: G_F [1], one number or one for each row; default 0.
        integral_gain: G_I [1/s], one number or one for each row; default 0.
        integral_start: (rows,) start values of the integral; zero if None.
        weight: (motors,) positive numbers, the diagonal of R; ones if None.
        rest_damping: damping of motion that task and constraints leave open [1/s]; default 0.
    Returns:
        Control that records error and error_rate of the task, and force_error e.
    Stops a run: the actuators do not control every motion that the constraints leave free; the constraints forbid the motion
    of the task; the actuators cannot produce the constraint force.
    Raises ModelError: task is not a function, reference or force not a Reference; force or integral_start has another size
    than rows. At the run: an unknown row, a reference of another size, a negative gain, weights that are not positive, or no
    actuators.

    Example:
        >>> import pfaffian as pf
        >>> from pfaffian import control
        >>> bodies = [pf.body("slide", 0.0), pf.body("block", 2.0)]
        >>> x = pf.joint("x", "prismatic", "world", "slide", axis=(1, 0, 0))
        >>> z = pf.joint("z", "prismatic", "slide", "block", axis=(0, 0, 1))
        >>> floor, motors = pf.holonomic("floor", lambda k: k.joint("z")), [pf.actuator("push", "x"), pf.actuator("press", "z")]
        >>> m = pf.mechanism("block", bodies, [x, z], constraints=[floor], actuators=motors, gravity=(0, 0, -10))
        >>> aim = {"stiffness": 4.0, "damping": 4.0, "force": control.set_point([30.0]), "rows": ["floor"]}
        >>> law = control.hybrid_force(control.joints("x"), control.set_point([1.0]), **aim)
        >>> pf.run(m, duration=0.05, step=0.01, control=law, backend="numpy")["u"].values[0].round(6)  # 20 N of 30 N is weight
        array([  8., -10.])
    """
    check_aim(task, reference)
    rows = as_names(rows, "rows")
    if as_reference(force, "force").size != len(rows):
        raise ModelError(f"the force reference has {force.size} components for {len(rows)} rows")
    start = tuple(np.zeros(len(rows)) if integral_start is None else np.atleast_1d(floats(integral_start, "integral_start")))
    if len(start) != len(rows):
        raise ModelError(f"integral_start has {len(start)} numbers for {len(rows)} rows")

    def law(terms: Terms, z: ca.SX, w: ca.SX, lam: ca.SX) -> Command:
        """Inputs for the motion along the task and for the multipliers lam_u along the chosen rows."""
        chosen = chosen_rows(terms, rows)
        split = len(reference.w_names)
        a = task_acceleration(terms, task, reference, w[:split, 0], stiffness, damping, rest_damping)
        lam_d = force.at(terms.t, w[split:, 0]).value
        error = lam_d - lam
        lam_u = lam_d + gain(force_gain, len(rows), "force_gain") * error + gain(integral_gain, len(rows), "integral_gain") * z
        tau = terms.M @ a.v_dot + terms.c - terms.f
        idle = idle_motions(terms.mechanism, lambda T: task_terms(T, task).J).number
        answer = allocate(terms, tau, weights(terms.mechanism, weight), chosen, lam_u, idle=idle)
        faults = ca.vertcat(answer.uncontrollable, a.infeasible, answer.unreachable)
        return Command(answer.u, error, faults, {"task_error": a.error, "task_error_rate": a.error_rate, "force_error": error})

    faults = (Fault(UNCONTROLLABLE, undriven()), Fault(INFEASIBLE, out_of_reach(task)), Fault(FORCE_UNREACHABLE))
    return Control(law, start, reference.w_names + force.w_names, faults, Multipliers(tuple(rows)))
