"""A run to an accuracy, from its arguments to its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pfaffian.control.idle import idle_under
from pfaffian.control.law import Control, check_parameters
from pfaffian.errors import ModelError, RunWarning, brief, notice
from pfaffian.evaluate.arrays import as_batch
from pfaffian.evaluate.progress import progress_line
from pfaffian.evaluate.single_values import MOST_THREADS, as_number, as_whole, some_runs
from pfaffian.kernel.call.memory import threads_for
from pfaffian.kernel.call.recipe import Backend
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.number import floats
from pfaffian.simulate.error.global_error import ERROR_KINDS
from pfaffian.simulate.record.event_table import record_events
from pfaffian.simulate.record.provenance import machine
from pfaffian.simulate.record.result import Recorded, build_result
from pfaffian.simulate.run.companion import as_estimated
from pfaffian.simulate.run.controlled import Controlled, LaneStarts, controlled, first_tolerance
from pfaffian.simulate.run.coupling_error import NEEDED, add_coupling_error, exchanging, halved
from pfaffian.simulate.run.findings import EndedRuns, with_findings
from pfaffian.simulate.run.input_intervals import InputIntervals
from pfaffian.simulate.run.python_law import PythonCalls, messages_of, refuse_continued
from pfaffian.simulate.run.resume_lanes import LanesEnd, continued, end_of_lanes, lanes_end_of
from pfaffian.simulate.run.roll import first_state, initial_status
from pfaffian.simulate.run.singular_start import REGULAR
from pfaffian.simulate.run.solver import Solver, compiled_samplers, compiled_start, compiled_steps, stiff_steps_for
from pfaffian.simulate.run.step_log import StepLog
from pfaffian.simulate.step.draft import Draft
from pfaffian.simulate.step.first_states import check_start
from pfaffian.simulate.step.inputs import constant_inputs, refuse_inputs, series_of
from pfaffian.simulate.step.lane import lane_of, law_instants, new_lanes
from pfaffian.simulate.step.motion_statistics import MotionTally, tally_of_motion
from pfaffian.simulate.step.running_statistics import as_recording
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


class RunRequest(NamedTuple):
    """The arguments of a run to an accuracy, as in `run`, not yet checked."""

    accuracy: Any
    times: Any
    duration: Any
    max_step: Any
    start: Any
    start_from: Any
    q: Any
    v: Any
    guess: Any
    parameters: Any
    u: Any
    u_step: Any
    hold: str
    control: Control | None
    switches: Mapping[str, OutputFunction] | None
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


class Checked(NamedTuple):
    """A request whose arguments are checked.   starts: where its runs begin.   begun: how they were put onto the constraints.
    estimated: runs whose error is estimated.   tally: of their statistics, if any.   more: attributes of the result."""

    solver: Solver
    starts: LaneStarts
    begun: Start
    accuracy: float
    estimated: np.ndarray
    tally: MotionTally | None
    more: dict[str, Any]


def run_accurately(system: AbstractSystem, request: RunRequest) -> Draft:
    """The result of `run` with an accuracy. Raises and warns as `run` does."""
    return _result(_checked(system, request), request)


def run_with_steps(system: AbstractSystem, request: RunRequest) -> tuple[Draft, Solver, StepLog]:
    """The result of `run` with an accuracy, what solved it, and the steps that it made, kinks being no events."""
    checked = _checked(system, request, kinks=False)
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
    _warn_of_error(result, accuracy)
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


def _checked(system: AbstractSystem, request: RunRequest, kinks: bool = True) -> Checked:
    """The request with its arguments checked.   kinks: whether kinks are events.

    Raises ModelError: an argument is wrong. Raises RunError: no run can start on its constraints.
    """
    m, accuracy = system.mechanism, as_accuracy(request.accuracy)
    ended = _end(request, accuracy)
    begin, elapsed = (ended.begin, ended.elapsed) if ended else (as_number(request.start, "start"), 0.0)
    instants = np.maximum(as_instants(request.times, begin + elapsed, request.duration) - begin, elapsed)
    scheme, law, extra = arguments(m, request.scheme, request.control, request.outputs, pair_for(accuracy))
    seeds, names = check_seeds(request.seed), input_names(m, law)
    with progress_line(m.name, request.progress):
        given, series = _start_and_inputs(m, request, begin, names, ended)
        check_parameters(law, m, given.p)
        several = series.shape[1] if series.ndim == 3 else 1
        count = some_runs({"q, v, parameters": len(given.p), "u": several, "seed": seeds})
        recording, changing = as_recording(request.record), as_switches(m, request.switches)
        recorded = as_record(recording.signals if recording else request.record, count)
        s = Simulation(system, scheme, law, extra, recorded, changing.next)
        s = s.with_kinks() if kinks else s
        order = s.pair.order
        begun, starts = _begun(s, request, given, begin, count, accuracy)
        solver = _solver(s, request, np.broadcast_to(begun.p, (count, begun.p.shape[1])), begin, instants, series, ended)
    more = {"state": system.name, "accuracy": accuracy, "order": order, "hold": request.hold}
    more |= {"duration": solver.end - solver.elapsed} | sampled(law, s.changing, ended.seed if ended else request.seed)
    more |= {"idle_motions": ", ".join(idle)} if (idle := idle_under(law, m)) else {}
    more |= {"state_about": "\n".join(system.about)} if system.about else {}
    tally = tally_of_motion(recording, s.signals, count, accuracy)
    return Checked(solver, starts, begun, accuracy, _estimated(request.error, law, ended, count), tally, more)


def _begun(
    s: Simulation, request: RunRequest, given: Given | LanesEnd, begin: float, count: int, accuracy: float
) -> tuple[Start, LaneStarts]:
    """The start of the runs, put onto the constraints or at the end of other runs, and their lanes there."""
    if isinstance(given, LanesEnd):
        return continued(s, given, count)
    begun = start_state(given, request.correct_start)
    check_start(s.mechanism, begun.q, begun.p, begin)
    return begun, lane_starts(s, begun, begin, count, request.seed, accuracy)


def _end(request: RunRequest, accuracy: float) -> LanesEnd | None:
    """The end of the run that this one continues, if any. Raises ModelError: see `end_of`."""
    if request.start_from is None:
        return None
    given = {"q": request.q, "guess": request.guess, "v": request.v, "parameters": request.parameters}
    seed = None if np.ndim(request.seed) == 0 and request.seed == 0 else request.seed
    return lanes_end_of(request.start_from, given | {"start": request.start or None, "seed": seed}, accuracy)


def _estimated(error: Any, law: Control, ended: LanesEnd | None, count: int) -> np.ndarray:
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


def _solver(
    s: Simulation,
    request: RunRequest,
    p: np.ndarray,
    begin: float,
    instants: np.ndarray,
    series: np.ndarray,
    ended: LanesEnd | None,
) -> Solver:
    """The Solver of a request.   p: (runs, np).   begin: of the first run [s].   instants: of the records, since then [s].

    Raises ModelError: max_step, u_step or threads is wrong, or samples of u do not continue where the runs begin.
    """
    longest = np.inf if request.max_step is None else as_number(request.max_step, "max_step", above=0)
    period = np.inf if request.u_step is None else as_number(request.u_step, "u_step", above=0)
    elapsed = ended.elapsed if ended else 0.0
    marks = time_marks(s, np.array(p), begin, begin + float(instants[-1])) - begin
    python = in_python(s.control)
    if ended and python:
        refuse_continued(python)
    outside = (*[group[0] for group in rates(s.control)], python) if python else ()
    first = ended.samples(period) if ended else 0
    called = tuple((part.period, part.phase) for part in outside)
    inputs = InputIntervals(series, period, request.hold == "linear", called, marks, first)
    compiled = (s, request.backend, request.strict)
    stiff = stiff_steps_for(request.scheme, *compiled)
    return Solver(
        s,
        compiled_steps(*compiled),
        stiff,
        compiled_start(s, stiff is not None, *compiled[1:]),
        compiled_samplers(*compiled),
        inputs,
        p,
        begin,
        elapsed,
        ended.inputs_since if ended else 0.0,
        inputs.snapped(instants, law_instants(s)),
        longest,
        threads_for(len(p), SHARE) if request.threads is None else as_whole(request.threads, "threads", most=MOST_THREADS),
        PythonCalls(s, python, p) if python else None,
    )


def lane_starts(s: Simulation, begun: Start, begin: float, count: int, seed: Any, accuracy: float) -> LaneStarts:
    """The lanes of runs that begin with a start at a time [s]."""
    lane = new_lanes(s, first_state(s, begun, begin, count, seed))
    tolerance = np.full(count, first_tolerance(accuracy))
    w, error = (np.broadcast_to(0.0, (count, n)) for n in (2 * len(s.w_names), len(ERROR_KINDS)))
    return LaneStarts(lane, lane, w, tolerance, initial_status(s, begun, count, 0)[0], error)


def _start_and_inputs(
    m: Mechanism, request: RunRequest, begin: float, names: Sequence[str], ended: LanesEnd | None
) -> tuple[Given | LanesEnd, np.ndarray]:
    """The given start, and the inputs (samples, nw) or (samples, runs, nw).   begin: [s].   names: of the inputs.
    ended: what the runs continue, if anything; it is their start then."""
    refuse_inputs(request.u, names)
    series = None if request.u_step is None else series_of(request.u, names)
    constant = request.u if series is None else None
    if ended:
        u = as_batch(constant, names, np.zeros(len(names)), "u") if series is None else np.zeros((1, 0))
        return ended, constant_inputs(u, isinstance(request.u, Mapping), len(ended.p)) if series is None else series
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
