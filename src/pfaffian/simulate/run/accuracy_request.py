"""What is asked of a run to an accuracy: the records, the run that is continued, the runs whose error is estimated."""

from __future__ import annotations

from typing import Any

import numpy as np

from pfaffian.control.law import Control
from pfaffian.control.layout import NO_AIM
from pfaffian.errors import ModelError, brief
from pfaffian.evaluate.single_values import as_number
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.number import floats
from pfaffian.simulate.run.companion import as_estimated
from pfaffian.simulate.run.coupling_error import exchanging
from pfaffian.simulate.run.resume_lanes import LanesEnd, lanes_end_of
from pfaffian.simulate.run.run_request import RunRequest
from pfaffian.simulate.step.sampling import in_python

RECORDS = 201
"""Number of records of a run whose `times` are not given."""

PAIR = "dop853"
"""The integrator of runs to an accuracy. Since that bounds the error of the whole motion, steps are so exact that the pair of
order 5 takes more work at any accuracy: twice at 1e-4, and 1.5 times at 0.1."""

LONGEST = NO_AIM / 2
"""Longest time of a run [s]: instants of events are sought in it."""

LEAST = 1e-12
"""Smallest accuracy: below it, rounding decides."""


def as_accuracy(value: Any) -> float:
    """The accuracy: a number from LEAST to 0.1. Raises ModelError: it is none."""
    number = value if isinstance(value, float) else as_number(value, "accuracy")  # which nan and inf are not
    if not LEAST <= number <= 0.1:
        raise ModelError(
            f"accuracy {number:g}: a number from {LEAST:g} to 0.1 is needed; the smallest that makes sense is {LEAST:g}, since "
            "rounding decides below it"
        )
    return number


def as_instants(times: Any, start: float, elapsed: float, duration: Any) -> np.ndarray:
    """(times,) instants of the records [s], counted from `start`: those given, or RECORDS ones over the duration.

    elapsed: from `start` until the run begins [s]. Raises ModelError.
    """
    begin = start + elapsed
    if times is None:
        if duration is None:
            raise ModelError("give the duration of the run, or the times of its records")
        long = as_number(duration, "duration", least=0)
        instants = begin + np.linspace(0.0, long, RECORDS)
        if long > 0 and not (np.diff(instants) > 0).all():
            raise ModelError(
                f"the time between {RECORDS} records in {long:g} s is lost to rounding next to the start {begin:g} s: start "
                "nearer to 0, or run longer"
            )
    else:
        if duration is not None:
            raise ModelError("give either duration or times: a run lasts until the last of its times")
        instants = floats(times, "times")
        if instants.ndim != 1 or not len(instants) or not (np.diff(instants) > 0).all() or instants[0] < begin:
            raise ModelError(f"times must be increasing numbers from the start {begin:g} s on, got {brief(times)}")
    check_end(float(instants[-1]) - start)
    since: np.ndarray = np.maximum(instants - start, elapsed)
    return since


def check_end(long: float) -> None:
    """Raise ModelError if a run that lasts so long [s] would last longer than LONGEST."""
    if long > LONGEST:
        raise ModelError(f"a run lasts at most {LONGEST:g} s, got {long:g} s: take a larger unit of time")


def end_of_earlier(m: Mechanism, request: RunRequest, accuracy: float) -> LanesEnd | None:
    """The end of the run that this one continues, if any. Raises ModelError: see `end_of`."""
    if request.start_from is None:
        return None
    return lanes_end_of(m, request.start_from, request.of_start, accuracy)


def estimated_runs(error: Any, law: Control, ended: LanesEnd | None, count: int) -> np.ndarray:
    """Indices of the runs whose error is estimated: all by default, or those that were before. Raises ModelError: others."""
    known = ended.estimated if ended else np.arange(count)
    chosen = known if error is None else as_estimated(error, count)
    if in_python(law):
        if error is not None and chosen.size and not exchanging(law):
            raise ModelError("error: a law in Python cannot be called for a second solution as well; leave error= out")
        return np.arange(0)
    if unknown := sorted(set(chosen.tolist()) - set(known.tolist())):
        raise ModelError(f"error: run {unknown[0]} continues one whose error was not estimated; leave error= out")
    return chosen
