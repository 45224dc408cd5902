"""Options of `run`, checked; what goes with steps of one length only, and what with an accuracy only."""

from __future__ import annotations

from typing import Any

from pfaffian.errors import ModelError, listed
from pfaffian.evaluate.single_values import as_flag, one_of
from pfaffian.kernel.call.recipe import check_options
from pfaffian.kernel.program.numpy_loop import HOLDS
from pfaffian.simulate.error.accuracy import BOUND, as_bound
from pfaffian.simulate.step.step import Scheme

ACCURACY = 1e-6
"""Accuracy of a run whose `times` are given without one, and bound on the error of a run that is given no step either."""


def bound_of(error_bound: Any, step: Any, scheme: Scheme) -> float:
    """The error bound: that of the caller, or the default, tighter where neither a step nor a stiff integrator was chosen."""
    if error_bound is None:
        return ACCURACY if step is None and not scheme.stiff else BOUND
    return as_bound(error_bound)


def refuse_with_accuracy(**fixed: Any) -> None:
    """Raise ModelError if an argument of runs with steps of one length is given."""
    if given := [name for name, value in fixed.items() if value is not None]:
        raise ModelError(f"{listed(given)}: for steps of one length; leave it out, or leave out accuracy and times")


def refuse_without_accuracy(**controlled: Any) -> None:
    """Raise ModelError if an argument of runs under error control is given."""
    if given := [name for name, value in controlled.items() if value is not None]:
        raise ModelError(f"{listed(given)}: for runs to an accuracy; give accuracy= too, or leave it out")


def check_run_options(backend: Any, hold: Any, **flags: Any) -> None:
    """Raises ModelError: an unknown backend, an unknown kind of hold, or a flag that is not True or False."""
    check_options(backend, 1)
    one_of(hold, HOLDS, "hold")
    for name, value in flags.items():
        as_flag(value, name)
