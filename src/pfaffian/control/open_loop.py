"""The law of a run without control: it passes the inputs of the run to the machine unchanged."""

from __future__ import annotations

import casadi as ca

from pfaffian.control.command import Command
from pfaffian.control.law import Control, Made, with_no_wrench
from pfaffian.kernel.remember import remembered
from pfaffian.model.mechanism import Mechanism
from pfaffian.terms.terms import Terms


@remembered(64)
def open_loop(m: Mechanism) -> Control:
    """The law of an uncontrolled machine. Its inputs are those of the motors, under their names."""
    return Control(_passed_on, w_names=m.motor_names, measured=_nothing, made=_MADE)


def is_open(law: Control) -> bool:
    """Whether a law is `open_loop`. Then the units of inputs and the sizes of signals are known without evaluating the law."""
    return law.law is _passed_on


def _passed_on(terms: Terms, z: ca.SX, w: ca.SX, y: ca.SX) -> Command:
    """The inputs of the run as a Command."""
    return Command(with_no_wrench(terms, w))


def _nothing(terms: Terms, reaction: ca.SX) -> ca.SX:
    """(0, 1): the law measures no reaction."""
    return ca.SX(0, 1)


_MADE = Made("open_loop", (), _passed_on, _nothing, ())
