"""A run to an accuracy, from its arguments to its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pfaffian import kernel
from pfaffian.control.law import Control, check_parameters
from pfaffian.errors import ModelError, RunWarning, brief, notice
from pfaffian.evaluate.progress import progress_line
from pfaffian.evaluate.single_values import MOST_THREADS, as_number, as_whole, some_runs
from pfaffian.kernel.call.memory import threads_for
from pfaffian.kernel.call.recipe import Backend
from pfaffian.kernel.remember import remembered
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.number import floats
from pfaffian.simulate.record.provenance import machine
from pfaffian.simulate.record.result import Recorded, build_result
from pfaffian.simulate.run.companion import as_estimated
from pfaffian.simulate.run.controlled import (
    InputIntervals,
    Solver,
    compiled_attempt,
    compiled_record,
    compiled_start,
    controlled,
)
from pfaffian.simulate.run.findings import EndedRuns, with_findings
from pfaffian.simulate.run.roll import first_state, initial_status
from pfaffian.simulate.run.singular_start import REGULAR
from pfaffian.simulate.step.attempt import lane_of
from pfaffian.simulate.step.draft import Draft
from pfaffian.simulate.step.inputs import constant_inputs, refuse_inputs, series_of
from pfaffian.simulate.step.limits import check_loop_limits
from pfaffian.simulate.step.sampling import check_seeds, in_python, rates
from pfaffian.simulate.step.sampling import provenance as sampled
from pfaffian.simulate.step.signals import OutputFunction, as_record
from pfaffian.simulate.step.simulation import Simulation, arguments, input_names
from pfaffian.simulate.step.step import Scheme, settings_of
from pfaffian.simulate.step.switches import as_switches
from pfaffian.simulate.step.time_marks import time_marks
from pfaffian.starts.given_start import Given, start_arguments, start_of
from pfaffian.starts.start import Start, start_state
from pfaffian.states.abstract_system import AbstractSystem

RECORDS = 201
"""Number of records of a run whose `times` are not given."""

COARSE = 1e-4
"""Accuracy from which on the pair of order 5 serves."""

SHARE = 64
"""Least number of runs for each thread."""

GROWN, FITTED = 1e-12, 5
"""Errors above rounding, and the least number of records with such errors from which their growth is known."""

LEAST = 1e-12
"""Smallest accuracy: below it, rounding decides."""


def as_accuracy(value: Any) -> float:
    """The accuracy: a number from LEAST to 0.1. Raises ModelError: it is none."""
    number = as_number(value, "accuracy", above=0)
    if not LEAST <= number <= 0.1:
        raise ModelError(
            f"accuracy {number:g}: a number from {LEAST:g} to 0.1 is needed; the smallest that makes sense is {LEAST:g}, since "
            "rounding decides below it"
        )
    return number


def as_instants(times: Any, start: float, duration: Any) -> np.ndarray:
    """(times,) instants of the records [s]: those given, or RECORDS ones over the duration. Raises ModelError."""
    if times is None:
        if duration is None:
            raise ModelError("give the duration of the run, or the times of its records")
        return start + np.linspace(0.0, as_number(duration, "duration", least=0), RECORDS)
    if duration is not None:
        raise ModelError("give either duration or times: a run lasts until the last of its times")
    instants = floats(times, "times")
    if instants.ndim != 1 or not len(instants) or not (np.diff(instants) > 0).all() or instants[0] < start:
        raise ModelError(f"times must be increasing numbers from the start {start:g} s on, got {brief(times)}")
    return instants


def pair_for(accuracy: float) -> str:
    """Name of the integrator for runs of an accuracy."""
    return "dopri5" if accuracy >= COARSE else "dop853"


@remembered(64)
def _compiled_samplers(s: Simulation, backend: Backend, strict: bool) -> tuple[kernel.Kernel, ...]:
    """The compiled samplers of a simulation's law; parameters that follow angles of closures belong to the step."""
    of_law = s.traced.samplers[1:] if s.changing.names else s.traced.samplers
    return tuple(kernel.compile(f, backend=backend, strict=strict) for f in of_law)


class RunRequest(NamedTuple):
    """The arguments of a run to an accuracy, as in `run`, not yet checked."""

    accuracy: Any
    times: Any
    duration: Any
    max_step: Any
    start: Any
    q: Any
    v: Any
    guess: Any
    parameters: Any
    u: Any
    u_step: Any
    hold: str
    control: Control | None
    outputs: Mapping[str, OutputFunction] | None
    record: Any
    scheme: Scheme | None
    correct_start: bool
    error: Any
    seed: Any
    backend: Backend
    strict: bool
    threads: int | None
    progress: bool


def run_accurately(system: AbstractSystem, request: RunRequest) -> Draft:
    """The result of `run` with an accuracy. Raises and warns as `run` does."""
    solver, begun, x, more = _solver(system, request)
    s, accuracy = solver.simulation, float(more["accuracy"])
    estimated = as_estimated(True if request.error is None else request.error, len(x))
    status, _ = initial_status(s, begun, len(x), 0)
    done = controlled(solver, x, accuracy, status, estimated, request.progress)
    provenance = machine() | settings_of(s.scheme, s.mechanism) | more
    provenance |= {f"kernel_{k}": value for k, value in solver.loop.provenance.items()}
    provenance |= {"interrupted": True} if done.interrupted else {}
    lane, at, begin = done.solved.lane, lane_of(s), solver.begin
    stopped = np.where(done.solved.status != 0, begin + lane[:, at.time], np.nan)
    instants, inputs = begin + solver.instants, solver.inputs
    course = Recorded(instants, done.solved.records, done.solved.status, stopped, begun, inputs.series, inputs.step, done.error)
    result = build_result(s, course, provenance)
    result.data["steps"] = "run", done.solved.steps, {"units": "1", "meaning": "number of steps that the run made"}
    result.data["tolerance"] = "run", done.tolerance, {"units": "1", "meaning": "largest estimated error of a step"}
    trusted, growth = _trust(instants, done.error, accuracy)
    result.data["trusted"] = (
        "run",
        trusted,
        {"units": "s", "meaning": "last record up to which the error is within the accuracy"},
    )
    result.data["error_growth"] = (
        "run",
        growth,
        {"units": "1/s", "meaning": "rate at which the error grows; nan if it does not"},
    )
    last = np.concatenate([lane[:, at.x], lane[:, at.discrete]], axis=1)
    with_findings(result, EndedRuns(s, begun, begin, begun.messages, last, np.full(len(x), REGULAR), request.backend))
    _warn_of_error(result, accuracy)
    return result


def _solver(system: AbstractSystem, request: RunRequest) -> tuple[Solver, Start, np.ndarray, dict[str, Any]]:
    """What solves the runs, their start, their first states (runs, [x; z; d]) and attributes of the result.

    Raises ModelError: an argument is wrong. Raises RunError: no run can start on its constraints.
    """
    m, accuracy, begin = system.mechanism, as_accuracy(request.accuracy), as_number(request.start, "start")
    instants = as_instants(request.times, begin, request.duration)
    longest = np.inf if request.max_step is None else as_number(request.max_step, "max_step", above=0)
    period = np.inf if request.u_step is None else as_number(request.u_step, "u_step", above=0)
    scheme, law, extra = arguments(m, request.scheme, request.control, request.outputs, pair_for(accuracy))
    if in_python(law):
        raise ModelError("accuracy: a law in Python is called at fixed steps; give step= in its place")
    if isinstance(request.record, Mapping):
        raise ModelError("accuracy: statistics over all steps need steps of one length; give step=, or record the signals")
    seeds, names = check_seeds(request.seed), input_names(m, law)
    with progress_line(m.name, request.progress):
        given, series = _start_and_inputs(m, request, begin, names)
        check_parameters(law, m, given.p)
        several = series.shape[1] if series.ndim == 3 else 1
        count = some_runs({"q, v, parameters": len(given.p), "u": several, "seed": seeds})
        s = Simulation(system, scheme, law, extra, as_record(request.record, count), as_switches(m, None).next)
        order = s.pair.order
        begun = start_state(given, request.correct_start)
        check_loop_limits(m, begun.q, begun.p, begin)
        x = first_state(s, begun, begin, count, request.seed)
        marks = time_marks(s, begun.p, begin, float(instants[-1])) - begin
        instants_of_law = tuple((group[0].period, group[0].phase) for group in rates(law))
        inputs = InputIntervals(series, period, request.hold == "linear", instants_of_law, marks)
        compiled = (s, request.backend, request.strict)
        solver = Solver(
            s,
            compiled_attempt(s, request.backend, 8, request.strict),
            compiled_record(*compiled),
            compiled_start(*compiled),
            _compiled_samplers(*compiled),
            inputs,
            np.broadcast_to(begun.p, (count, begun.p.shape[1])),
            begin,
            inputs.snapped(instants - begin),
            longest,
            threads_for(count, SHARE) if request.threads is None else as_whole(request.threads, "threads", most=MOST_THREADS),
        )
    more = {"state": system.name, "accuracy": accuracy, "order": order, "hold": request.hold}
    more |= {"duration": float(instants[-1] - begin)} | sampled(law, s.changing, request.seed)
    return solver, begun, x, more | ({"state_about": "\n".join(system.about)} if system.about else {})


def _start_and_inputs(m: Mechanism, request: RunRequest, begin: float, names: Sequence[str]) -> tuple[Given, np.ndarray]:
    """The given start, and the inputs (samples, nw) or (samples, runs, nw).   begin: [s].   names: of the inputs."""
    refuse_inputs(request.u, names)
    series = None if request.u_step is None else series_of(request.u, names)
    constant = request.u if series is None else None
    arrays = start_arguments(m, request.q, request.v, request.parameters, guess=request.guess, u=constant, u_names=names)
    given = start_of(m, arrays, begin, request.backend)
    if series is None:
        series = constant_inputs(arrays.u, isinstance(request.u, Mapping), len(given.p))
    return given, series


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
    return trusted, np.where(rate > 0, rate, np.nan)


def _warn_of_error(result: Draft, accuracy: float) -> None:
    """Issue a RunWarning if the estimated error of a run exceeds its accuracy: from when on, and what would do."""
    error = result["error"].max(axis=2)
    with np.errstate(invalid="ignore"):
        beyond = error > accuracy
    lost = np.flatnonzero(beyond.any(axis=1))
    if not lost.size:
        return
    run = int(lost[np.argmax(np.nanmax(error[lost], axis=1))])
    first = int(np.argmax(beyond[run]))
    which = "" if len(error) == 1 else f" of {len(lost)} of {len(error)} runs, most in run {run},"
    notice(
        f"the accuracy {accuracy:g} was not reached: the estimated error{which} passes it at t = {result['time'][first]:.6g} s "
        f"and is {np.nanmax(error[run]):.2g} at most; results after that instant are as inexact as `error` tells",
        RunWarning,
    )
