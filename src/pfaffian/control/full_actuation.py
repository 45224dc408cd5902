"""Inputs that produce any generalised force, for laws that do not rely on constraint reactions.

The rank of the input matrix B decides whether this is possible, not the number of motors: all of three motors may drive one of
two joints, and two motors may drive a joint together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import casadi as ca

from pfaffian.control.command import Command, Fault
from pfaffian.control.law import Control, motor_matrix, with_no_wrench
from pfaffian.control.reason import mainly, out_of_reach, participation, undriven
from pfaffian.control.reference import Reference
from pfaffian.control.task import Pursuit, Task
from pfaffian.dynamics.motion import RANK_TOLERANCE
from pfaffian.errors import ModelError
from pfaffian.maths.linear import least_squares, orthogonalise, smallest
from pfaffian.maths.margins import ZERO, rank, unit_rows
from pfaffian.maths.span import complement
from pfaffian.model.mechanism import Mechanism
from pfaffian.terms.generic_states import at_generic_states, speed_units, tell
from pfaffian.terms.terms import Terms, shared
from pfaffian.terms.traced_now import remembered

UNDRIVEN = (
    "the actuators do not drive every velocity here, and this law ignores constraints: actuate another joint, "
    "keep away from this configuration, or use control.projected"
)


class Inputs(NamedTuple):
    """Inputs for a generalised force.   u: (motors, 1).   undriven: (1, 1) nonzero where some velocity has no motor."""

    u: ca.SX
    undriven: ca.SX


def inputs_of(terms: Terms, tau: ca.SX, law: str) -> Inputs:
    """Inputs u with B u = tau (nv, 1); the smallest ones where there are more motors than velocities.

    law: name of the law, for the message.

    Raises ModelError: some velocity has no actuator at any configuration.
    """
    m, n = terms.mechanism, terms.mechanism.nv
    lost = without_motor(m)
    if lost:
        raise ModelError(
            f"{law} needs every velocity actuated, and the actuators ({', '.join(m.motor_names) or 'none'}) drive no motion of "
            f"{lost}; see actuate_all, or use control.projected"
        )
    B = motor_matrix(terms)
    if len(m.actuators) == n:
        solved = least_squares(B, tau, RANK_TOLERANCE)
        return Inputs(solved.x, ca.sum1(solved.independent) < n)
    rows = orthogonalise(B, ca.SX(n, 0), RANK_TOLERANCE, passes=1)
    return Inputs(smallest(rows, tau), rows.rank < n)


def command_of_task(terms: Terms, tau: ca.SX, goal: Pursuit, independent: ca.SX, law: str) -> Command:
    """The Command of a law that pursues a task by the generalised force tau (nv, 1), and says where it cannot.

    independent: (k, 1) whether the motions change each task coordinate.   law: name of the law, for the message.
    """
    u, lost = inputs_of(terms, tau, law)
    signals = {"task_error": goal.error, "task_error_rate": goal.error_rate}
    faults = ca.vertcat(ca.sum1(independent) < goal.error.numel(), lost)
    return Command(with_no_wrench(terms, u), ca.SX(0, 1), faults, signals)


def without_constraints(law: Callable[..., Command], task: Task, reference: Reference, singular: str) -> Control:
    """The Control of a law with a `command_of_task`.   singular: what happens where the task's coordinates are dependent."""
    of_motors = Fault(UNDRIVEN, undriven(constrained=False))
    return Control(law, (), reference.w_names, (Fault(singular, out_of_reach(task, constrained=False)), of_motors))


@remembered(64)
def without_motor(m: Mechanism) -> str:
    """Names of the velocities that no actuator drives at almost any configuration; "" if none.

    The parameters differ from their defaults, since a parameter that is zero by default may have another value in a run.
    """
    B = at_generic_states(m, {"B": motor_matrix(shared(m))})["B"]
    if tell(m, "whether the actuators drive every velocity", rank(B)) == m.nv:
        return ""
    comparable = unit_rows(B[0].T * speed_units(m, m.p_defaults))
    return mainly(participation(complement(comparable, ZERO)), m.v_names)
