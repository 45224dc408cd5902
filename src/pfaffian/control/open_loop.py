"""No law is a law that does nothing: the inputs of a run go to the machine as they are."""

from __future__ import annotations

import casadi as ca

from pfaffian.control.law import Command, Control, Made, with_no_wrench
from pfaffian.kernel.remember import remembered
from pfaffian.model.mechanism import Mechanism
from pfaffian.terms.terms import Terms


@remembered(64)
def open_loop(m: Mechanism) -> Control:
    """The law of a machine that nobody controls. Its inputs are those of the motors, with their names."""
    return Control(_passed_on, w_names=m.motor_names, measured=_nothing, made=_MADE)


def is_open(law: Control) -> bool:
    """Whether it is such a law: then inputs have units, and signals sizes, which are known without asking the law."""
    return law.law is _passed_on


def _passed_on(terms: Terms, z: ca.SX, w: ca.SX, y: ca.SX) -> Command:
    return Command(with_no_wrench(terms, w))


def _nothing(terms: Terms, reaction: ca.SX) -> ca.SX:
    return ca.SX(0, 1)


_MADE = Made("open_loop", (), _passed_on, _nothing, ())
