"""A run to an accuracy, from its arguments to its result."""

from __future__ import annotations

from functools import partial

import numpy as np

from pfaffian.simulate.record.event_table import record_events
from pfaffian.simulate.record.provenance import machine
from pfaffian.simulate.record.result import Recorded, build_result
from pfaffian.simulate.record.unreached import causes, warn_of_error
from pfaffian.simulate.run.checked_request import Checked, checked_request
from pfaffian.simulate.run.controlled import Controlled, controlled
from pfaffian.simulate.run.coupling_error import NEEDED, add_coupling_error, exchanging, halved
from pfaffian.simulate.run.findings import EndedRuns, with_findings
from pfaffian.simulate.run.python_law import messages_of
from pfaffian.simulate.run.resume_lanes import end_of_lanes
from pfaffian.simulate.run.run_request import RunRequest
from pfaffian.simulate.run.singular_start import REGULAR
from pfaffian.simulate.run.solver import Solver
from pfaffian.simulate.run.step_log import StepLog
from pfaffian.simulate.step.draft import Draft
from pfaffian.simulate.step.lane import lane_of
from pfaffian.simulate.step.step import settings_of
from pfaffian.states.abstract_system import AbstractSystem

GROWN, FITTED = 1e-12, 5
"""Errors above rounding, and the least number of records with such errors from which their growth is known."""


CONSTANT = 1e-6
"""Relative growth of an error in the whole time up to which it is constant, but for the rounding of the fit."""


def run_accurately(system: AbstractSystem, request: RunRequest) -> Draft:
    """The result of `run` with an accuracy. Raises and warns as `run` does."""
    return _result(checked_request(system, request), request)


def run_with_steps(system: AbstractSystem, request: RunRequest) -> tuple[Draft, Solver, StepLog]:
    """The result of `run` with an accuracy, what solved it, and the steps that it made, kinks being no events."""
    checked = checked_request(system, request, kinks=False)
    log = StepLog(checked.solver.simulation.width)
    return _result(checked, request, log), checked.solver, log


def _result(checked: Checked, request: RunRequest, log: StepLog | None = None) -> Draft:
    """The result of runs whose arguments are checked.   log: collects their steps."""
    solver, starts, begun, accuracy, estimated, tally, more = checked
    s, at, begin = solver.simulation, lane_of(solver.simulation), solver.begin
    done = controlled(solver, starts, accuracy, estimated, log or tally, request.progress)
    trust = _trust(begin + solver.instants, done.error, accuracy)
    provenance = machine() | settings_of(s.scheme, s.mechanism) | more
    provenance |= {f"kernel_{k}": value for k, value in solver.first.loop.provenance.items()}
    provenance |= {"interrupted": True} if done.interrupted else {}
    stopped = np.where(done.status != 0, begin + done.lane[:, at.time], np.nan)
    instants, inputs = begin + solver.instants, solver.inputs
    state, ended = end_of_lanes(solver, done)
    course = Recorded(
        instants, done.records, done.status, stopped, begun, inputs.series, inputs.step, done.error, end=state, tally=tally
    )
    result = build_result(s, course, provenance | ended)
    _tell_steps(result, done, trust)
    record_events(result, s, done.events, solver.p)
    last = done.lane[:, at.x]
    if at.discrete.stop > at.discrete.start:
        last = np.concatenate([last, done.lane[:, at.discrete]], axis=1)
    messages = messages_of(begun.messages, solver.python, len(last))
    with_findings(result, EndedRuns(s, begun, begin, messages, last, np.full(len(last), REGULAR), request.backend))
    if exchanging(s.control) and request.error is not False:
        again = request._replace(control=halved(s.control), record=NEEDED, error=False, progress=False)
        add_coupling_error(result, s, solver.p, np.inf, lambda: run_accurately(s.system, again))
    warn_of_error(result, accuracy, partial(causes, s, solver.p, result, accuracy))
    return result


def _tell_steps(result: Draft, done: Controlled, trust: tuple[np.ndarray, np.ndarray]) -> None:
    """Add the steps of the runs to a result, and until when it may be trusted.   trust: see `_trust`."""
    trusted, growth = trust
    for name, values, unit, meaning in (
        ("steps", done.steps, "1", "number of steps that the run made"),
        ("stiff_steps", done.stiff_steps, "1", "number of them that the stiff pair made"),
        ("tolerance", done.tolerance, "1", "largest estimated error of a step"),
        ("trusted", trusted, "s", "last record up to which the error is within the accuracy"),
        ("error_growth", growth, "1/s", "rate at which the error grows; nan if it does not"),
    ):
        result.data[name] = "run", values, {"units": unit, "meaning": meaning}
    meaning = "whether the stiff pair made the step to this record"
    result.data["stiff"] = ("time", "run"), done.stiff[:, :, 0], {"units": "1", "meaning": meaning}


def _trust(instants: np.ndarray, error: np.ndarray, accuracy: float) -> tuple[np.ndarray, np.ndarray]:
    """(runs,) the last record [s] up to which the errors (times, runs, kinds) are within the accuracy, and the rate [1/s] of an
    exponential that fits the largest of them so far; nan where they are not estimated, or do not grow."""
    worst = error.max(axis=2)
    with np.errstate(invalid="ignore"):
        beyond = ~(worst <= accuracy)
    first = np.where(beyond.any(axis=0), beyond.argmax(axis=0), len(instants))
    trusted = np.where(first > 0, instants[np.maximum(first - 1, 0)], np.nan)
    rate = np.full(worst.shape[1], np.nan)
    for run, of_run in enumerate(np.fmax.accumulate(worst, axis=0).T):
        known = of_run > GROWN
        if known.sum() >= FITTED:
            rate[run] = np.polyfit(instants[known], np.log(of_run[known]), 1)[0]
    return trusted, np.where(rate * np.ptp(instants) > CONSTANT, rate, np.nan)
