"""Hybrid motion and constraint-force control with a proportional-integral force loop. [aghili05]"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.control.acceleration import INFEASIBLE, task_acceleration
from pfaffian.control.allocation import (
    FORCE_UNREACHABLE,
    UNCONTROLLABLE,
    allocate,
    chosen_rows,
    controlled_directions,
    weights,
)
from pfaffian.control.law import Command, Control, maker
from pfaffian.control.reason import out_of_reach, undriven
from pfaffian.control.reference import Reference, as_reference
from pfaffian.control.task import Task, check_aim, gain
from pfaffian.dynamics.multipliers import minimum_norm_multipliers
from pfaffian.errors import ModelError
from pfaffian.model.mechanism import as_names
from pfaffian.model.number import floats
from pfaffian.terms.terms import Terms


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
    """Steer a task, and the multipliers of some constraint rows, at once. [aghili05 (49)-(52)]

    The reaction along the chosen rows is made A^T (lambda_d + G_F e + G_I int e), e = lambda_d - lambda measured; the motion
    is that of `projected`. Where the model is right e obeys (1 + G_F) e_dot + G_I e = 0. (The print has C q_dot where M C q_dot
    belongs.)

    Args:
        task, reference, stiffness, damping, weight, rest_damping: as in `projected`.
        force: lambda_d of the chosen rows, sign as in the reaction A^T lambda.   rows: their names, as in the result's `row`.
        force_gain G_F [1], integral_gain G_I [1/s]: one number or one for each row.   integral_start: (k,) of the integral.
    Stops a run: uncontrollable, infeasible, or the force out of the actuators' reach.
    """
    check_aim(task, reference)
    rows = as_names(rows, "rows")
    if as_reference(force, "force").size != len(rows):
        raise ModelError(f"the force reference has {force.size} components for {len(rows)} rows")
    start = tuple(np.zeros(len(rows)) if integral_start is None else np.atleast_1d(floats(integral_start, "integral_start")))
    if len(start) != len(rows):
        raise ModelError(f"integral_start has {len(start)} numbers for {len(rows)} rows")

    def law(terms: Terms, z: ca.SX, w: ca.SX, lam: ca.SX) -> Command:
        chosen = chosen_rows(terms, rows)
        split = len(reference.w_names)
        a = task_acceleration(terms, task, reference, w[:split, 0], stiffness, damping, rest_damping)
        lam_d = force.at(terms.t, w[split:, 0]).value
        error = lam_d - lam
        lam_u = lam_d + gain(force_gain, len(rows), "force_gain") * error + gain(integral_gain, len(rows), "integral_gain") * z
        Q, Lam = controlled_directions(terms, chosen)
        tau = terms.M @ a.v_dot + terms.c - terms.f
        answer = allocate(terms, tau, weights(terms.mechanism, weight), Q, -(Q @ Lam.T @ lam_u))
        faults = ca.vertcat(answer.uncontrollable, a.infeasible, answer.unreachable)
        return Command(answer.u, error, faults, {"error": a.error, "error_rate": a.error_rate, "force_error": error})

    def measured(terms: Terms, reaction: ca.SX) -> ca.SX:
        return minimum_norm_multipliers(terms, reaction)[chosen_rows(terms, rows), 0]

    faults = (UNCONTROLLABLE, INFEASIBLE, FORCE_UNREACHABLE)
    reasons = {UNCONTROLLABLE: undriven(), INFEASIBLE: out_of_reach(task)}
    return Control(law, start, reference.w_names + force.w_names, faults, measured, reasons)
