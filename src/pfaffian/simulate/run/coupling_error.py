"""The error of a run that exchanges numbers with an FMU at instants, from a second run with half the time between these.

The second run has instances of its own of the FMU, so that it needs no saved states. Its difference from the run includes the
errors of both integrators. An error that grows with the period as period^p is (1 - 2^-p) of it larger than the difference.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from pfaffian.control.law import Control
from pfaffian.control.law_part import LawPart
from pfaffian.errors import PfaffianError, RunWarning, notice
from pfaffian.model import reprs
from pfaffian.simulate.error.global_error import ROUNDING, Solutions, global_error
from pfaffian.simulate.step.draft import Draft
from pfaffian.simulate.step.sampling import in_python
from pfaffian.simulate.step.simulation import Simulation

ORDERS = {"zero": 1, "first": 2}
"""How inputs of the machine change between two instants -> order of the error of the exchange."""

NEEDED = ("q", "v")


def exchanging(control: Control) -> LawPart | None:
    """The part of a law that has a state of its own, which runs exchange numbers with: an FMU; None if there is none."""
    part = in_python(control)
    return part if part and part.begins else None


def halved(control: Control) -> Control:
    """The law with half the time between exchanges: of the FMU and of its sensors that have its period."""
    part = exchanging(control)
    assert part is not None
    of_it = [p for p in control.parts if p is part or (p.sensor and (p.name, p.period) == (part.name, part.period))]
    return replace(control, parts=tuple(replace(p, period=p.period / 2) if p in of_it else p for p in control.parts))


def add_coupling_error(result: Draft, s: Simulation, p: np.ndarray, bound: float, again: Callable[[], Draft]) -> None:
    """Replace `error` in a result by the error that the exchange with an FMU makes; nan, with a warning, where it is unknown.

    p: (runs, np) parameters.   bound: above which a warning is issued.   again: what makes the run with half the period.
    """
    part = exchanging(s.control)
    assert part is not None and part.python is not None
    name = reprs.function(part.python)
    if not set(NEEDED) <= set(result.data):
        notice(f"the error of the exchange with {name} is nan, as q and v are not recorded", RunWarning)
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            finer = again()
        if stopped := _stopped(result, finer):
            raise PfaffianError(stopped)
    except PfaffianError as reason:
        notice(f"the error of the exchange with {name} is nan, as it cannot run a second time: {reason}", RunWarning)
        return
    motion, fine = (np.concatenate([x[n] for n in NEEDED], axis=2).swapaxes(0, 1) for x in (result, finer))
    time = result["time"]
    difference = global_error(s.mechanism, Solutions(motion, fine), p, float(time[-1] - time[0]))
    error = difference.swapaxes(0, 1) / (1 - 2.0 ** -ORDERS[part.hold]) + ROUNDING
    result.data["error"] = (result.data["error"][0], error, *result.data["error"][2:])
    if (worst := np.nan_to_num(error).max(initial=0.0)) > bound:
        notice(
            f"the exchange with {name} every {part.period:g} s makes an error of {worst:.2g}: give it a shorter period, or "
            + ("extrapolate by hold='first'" if part.hold == "zero" else "make smaller steps"),
            RunWarning,
        )


def _stopped(result: Draft, finer: Draft) -> str:
    """Why runs of the second result stopped that went on in the first; "" if none did."""
    more = np.flatnonzero((finer["status"] != 0) & (result["status"] == 0))
    if not more.size:
        return ""
    return str(finer["reason"][more[0]]) if "reason" in finer else "its run stopped"
