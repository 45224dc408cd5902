"""run: a mechanism, initial states and inputs -> a labelled result. The time loop is compiled code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pfaffian import kernel
from pfaffian.control.law import Control, check_parameters
from pfaffian.evaluate.arrays import MOST_THREADS, as_flag, as_whole, one_of, some_runs
from pfaffian.evaluate.progress import progress_line
from pfaffian.kernel.call.memory import threads_for
from pfaffian.kernel.call.recipe import Backend, check_options
from pfaffian.kernel.program.numpy_loop import HOLDS, Hold
from pfaffian.kernel.remember import remembered
from pfaffian.model.mechanism import Mechanism
from pfaffian.simulate.error.accuracy import BOUND, StepErrorMonitor, as_bound
from pfaffian.simulate.error.advice import too_fast, warn_of_later_stiffness, warn_of_step_error
from pfaffian.simulate.error.balance import cost_of
from pfaffian.simulate.error.drift import warn_of_drift
from pfaffian.simulate.error.half_steps import HalfSteps
from pfaffian.simulate.error.transport import warn_of_transport
from pfaffian.simulate.record.near_dependent_rows import record_undecided
from pfaffian.simulate.record.provenance import machine
from pfaffian.simulate.record.record_memory import check_memory
from pfaffian.simulate.record.result import DIVERGED, Recorded, build_result, status_of, stored_signals
from pfaffian.simulate.record.stops import record_stops
from pfaffian.simulate.run.python_law import PythonLaw, python_law_of
from pfaffian.simulate.run.resume import end_of, end_state, following, resumed, since_start, warn_of_restart
from pfaffian.simulate.run.roll import LoopResult, LoopStart, first_state, roll
from pfaffian.simulate.run.singular_start import REGULAR, entrances, record_singular_starts
from pfaffian.simulate.step.draft import Draft
from pfaffian.simulate.step.inputs import constant_or_series, times, warn_of_short_inputs
from pfaffian.simulate.step.limits import warn_of_limits
from pfaffian.simulate.step.running_statistics import as_recording, tally_of
from pfaffian.simulate.step.sampling import check_seeds, compiled_instants
from pfaffian.simulate.step.sampling import provenance as sampled
from pfaffian.simulate.step.signals import Output, as_record, entries_of
from pfaffian.simulate.step.simulation import Simulation, arguments, input_names
from pfaffian.simulate.step.step import Scheme, settings_of
from pfaffian.simulate.step.switches import as_switches
from pfaffian.simulate.step.time_loop import Loop
from pfaffian.starts.given_start import start_from_guess
from pfaffian.starts.start import Start, start_state
from pfaffian.states.abstract_system import AbstractSystem
from pfaffian.states.system import as_system

if TYPE_CHECKING:
    import xarray as xr

NOTHING = slice(0, 0)
SHARE = 64
"""Least number of runs for each thread."""


@remembered(64)
def compiled(simulation: Simulation, backend: Backend, lanes: int, strict: bool) -> kernel.Rollout:
    """The compiled time loop of a simulation."""
    build = lambda: (simulation.traced.step, simulation.traced.observe, *simulation.traced.samplers)  # noqa: E731
    return kernel.compile_rollout(build, backend=backend, lanes=lanes, strict=strict, key=simulation.key)


def run(
    m: Mechanism | AbstractSystem,
    q: Any = None,
    v: Any = None,
    *,
    duration: float,
    step: float = 1e-3,
    every: int = 1,
    start: float = 0.0,
    start_from: xr.Dataset | None = None,
    u: Any = None,
    u_step: float | None = None,
    hold: Hold = "zero",
    parameters: Any = None,
    guess: Any = None,
    control: Control | None = None,
    switches: Mapping[str, Output] | None = None,
    outputs: Mapping[str, Output] | None = None,
    record: Any = None,
    scheme: Scheme | None = None,
    correct_start: bool = True,
    error_bound: float = BOUND,
    seed: Any = 0,
    backend: Backend = "auto",
    strict: bool = True,
    threads: int | None = None,
    progress: bool = False,
    squeeze: bool = True,
) -> xr.Dataset:
    """Run a mechanism, or a batch of them, through time; returns the recorded motion with names and units.

    Args:
        m: the mechanism, or a System: the mechanism in a state of another kind.
        q, v: initial state: None (neutral, at rest), an array (n,) or (runs, n), or {name: number or (runs,)}. Entries named in
            a dict stay fixed, and the others move onto the constraints by as little as possible in the metric of M. An array is
            a guess and moves as a whole. `moved` in the result is the change; `assemble` offers more choices.
        duration: simulated time [s]; the number of steps is duration / step, rounded.
        step: length of a time step [s].
        every: number of steps between two records.
        start: time at the start [s].
        start_from: the result of a run of the same mechanism and law, with steps of this length. The run continues from its
            end, with all states and delayed values of the law, the switched modes and the state of the noise, so that two
            halves give the same bits as one run. q, v, parameters, start and seed come from this result and must not be given.
            A law in Python has to restore its own memory.
        u: inputs [N, N m]: None (zero), (nu,), (runs, nu) for the runs of the batch, or {name: number or (runs,)}. With
            `u_step` a series: (samples, nu), (samples, runs, nu) or {name: number, (samples,) or (samples, runs)}.
        u_step: time between two samples of `u` [s], a whole number of steps; None: `u` is constant.
        hold: "zero" or "linear" interpolation between samples; the last sample remains to the end.
        parameters: {name: number or (runs,)}, or an array in the mechanism's order; defaults if None.
        guess: {name: number or (runs,)}, the values from which coordinates that the dict q does not name move onto the
            constraints, such as the angle that selects the branch of a loop, or a part of a quaternion; None: neutral.
        control: a law that drives the mechanism's inputs; `u` then contains the inputs of the law.
        switches: {name of a parameter: function of Kinematics, or `of_motion(...)`, that returns its next value}. All are
            evaluated at the start of each step, before any law. A mode that latches is {"landed": lambda k:
            ca.if_else(k.position("foot")[2] < 0, 1, landed)}; of_motion sees the motion under the inputs and modes in force
            until then, so that a contact may open where it would pull. A switched parameter starts at its value in
            `parameters` and is recorded under its name. Constraints (`active_while`), forces and laws that contain it change
            with it; velocities jump by the shortest way onto a constraint that becomes active. An event takes effect at the end
            of the step in which it occurs.
        outputs: {name: function of Kinematics, `reaction(...)` or `of_motion(...)`}, recorded with the standard signals.
        record: names of the signals to record, "all" or "lean". None: all for one run, lean for a batch. The lean record leaves
            out the signals with an entry for each row or velocity: phi, reaction, multiplier. Or a dict of statistics over all
            steps, {"peak": statistics.maximum("u")}, see `pf.statistics`: their signals are not recorded over time, unless the
            dict names them as well, as in {"q": True}.
        scheme: formulation, integrator and drift correction; `Scheme()` if None.
        correct_start: whether to put the initial state onto the constraints and to leave a singular configuration by a special
            first step. In either case a law starts from its initial state.
        error_bound: warn where the accumulated step error exceeds this, in angles [rad] or in speeds relative to the largest;
            the warning names the part of the machine that is too fast and a step that is short enough. inf: never warn. A few
            steps are compared with two steps of half their length. The result contains the estimates, nan where the run stopped
            or no step was compared:
            `step_error`, the sum of the step errors;
            `energy_error` [J], the change of energy beyond the work of inputs, dissipation and moving constraints: up to the
            last record where nothing does work on the machine, otherwise an upper estimate from the compared steps;
            `momentum_error`, the change of the momenta along the first joint beyond the impulse of the forces, for a machine
            that floats or conserves some of these momenta.
        seed: seed of the sensors' noise (`control.sensor`), a whole number from 0 to 2^52 - 1. Each run of a batch has its own
            noise. Or (runs,) seeds: each run then has the noise of a single run with its seed.
        backend: "auto" interpreted at once, and compiled beside it where that pays; "c" compiled first; "interpreter" or
            "numpy" only interpreted, in C or by NumPy. The bits are the same.
        strict: the same bits on every machine and backend; False allows fused multiply-add.
        threads: number of threads; None: one for each core when the batch is large.
        progress: print what is being compiled, then show a progress bar.
        squeeze: drop the run axis of a single run.
    Returns:
        Dataset over (run, time): q, v, energy, ... with units and provenance; `status` (0: finished) and `stopped` [s]; the
        parameters and inputs of each run; `moved`, the change of the start; `left_out`, the relative length that remains of
        rows that count as dependent. A run of a batch that cannot start on its constraints has a special status and its
        `start_residual`; the others continue. Ctrl-C ends a run that has lasted two seconds and returns what was computed, with
        the status "interrupted" and the attribute `interrupted`; before that, or pressed twice, it raises KeyboardInterrupt.
    Raises ModelError: wrong shapes, names or numbers; records that do not fit into memory, with their size in bytes.
    Raises BuildError: no compiler works and backend is "c".
    Raises RunError: no run can start on its constraints; names the row, or the named coordinate and its nearest possible value.
    Warns RunWarning: a guess moved; a series of u ends before the run does; runs stopped, see `causes`; joints or inputs
    exceeded their limits, see `limit_excess` and `input_excess` in the result; the step error exceeds `error_bound`, at the
    start or over the whole run.

    Example:
        A box of 2 kg, pushed by 4 N for 1 s:

        >>> import pfaffian as pf
        >>> slide = pf.joint("x", "prismatic", "world", "box", axis=(1, 0, 0))
        >>> m = pf.mechanism("block", [pf.body("box", mass=2.0)], [slide], actuators=[pf.actuator("push", "x")])
        >>> result = pf.run(m, u={"push": 4.0}, duration=1.0, step=0.05, backend="numpy")
        >>> print(f"{result['q'].sel(coordinate='x').values[-1]:.3f} m, {result['v'].sel(velocity='x').values[-1]:.3f} m/s")
        1.000 m, 2.000 m/s
    """
    system = as_system(m)
    m = system.mechanism
    scheme, law, extra = arguments(m, scheme, control, outputs)
    end = None
    if start_from is not None:
        given = {"q": q, "guess": guess, "v": v, "parameters": parameters, "start": start or None}
        end = end_of(start_from, given | {"seed": None if np.ndim(seed) == 0 and seed == 0 else seed})
    when = following(end, times(end.start if end else start, duration, step, every, u_step))
    _check_options(backend, hold, correct_start=correct_start, strict=strict, progress=progress, squeeze=squeeze)
    seeds, bound = check_seeds(seed), as_bound(error_bound)
    changing = as_switches(m, switches)
    due = compiled_instants(law, changing, when.step)
    with progress_line(m.name, progress):
        given_start = None if end else start_from_guess(m, q, guess, v, parameters, when.start, backend)
    runs, values = (len(given_start.q), given_start.problem.p) if given_start else (len(end.x), end.p)  # type: ignore[union-attr]
    check_parameters(law, m, values)
    series = constant_or_series(u, input_names(m, law), u_step is not None, runs)
    if u_step is not None:
        warn_of_short_inputs(series, when, hold)
    count = some_runs({"q, v, parameters": runs, "u": series.shape[1] if series.ndim == 3 else 1, "seed": seeds})
    workers = threads_for(count, SHARE) if threads is None else as_whole(threads, "threads", most=MOST_THREADS)
    recording = as_recording(record)
    recorded = as_record(recording.signals if recording else record, count)
    simulation = Simulation(system, scheme, law, extra, recorded, changing.next)
    with progress_line(m.name, progress):
        tally = tally_of(recording, simulation.signals, when.every, when.start, when.step)
        check_memory(when.records, count, len(tally.stored_entries) if tally else simulation.width, simulation.nx)
        if end:
            begun, x = resumed(simulation, end, count, when), end.x
        else:
            assert given_start is not None
            begun = start_state(given_start, q if guess is None else {}, v, correct_start)
            given_start = None  # free its memory, which a large batch needs
            x = first_state(simulation, begun, when.start, count, seed)
        rollout = compiled(simulation, backend, 8 if count > 1 else 1, strict)
    if not correct_start and not end:
        warn_of_restart(simulation, when.start)
    kinds = np.broadcast_to(entrances(m, begun, when.start, backend) if correct_start and not end else REGULAR, count)
    p = np.broadcast_to(begun.p, (count, begun.p.shape[1]))
    loop = Loop(simulation, rollout, when, since_start(series, when), hold, p, due, workers, tally)
    watch, departure = StepErrorMonitor(HalfSteps(loop), bound), LoopStart(x, begun, kinds)
    python = python_law_of(loop, backend, strict)
    done = roll(watch, departure, python, progress)
    result = _result(watch, departure, done, series, python, end.seed if end else seed)
    record_undecided(result, m, begun, when.start, backend)
    return result.labelled(squeeze and count == 1)


def _check_options(backend: Any, hold: Any, **flags: Any) -> None:
    """Raises ModelError: an unknown backend, an unknown kind of hold, or a flag that is not True or False."""
    check_options(backend, 1)
    one_of(hold, HOLDS, "hold")
    for name, value in flags.items():
        as_flag(value, name)


def _result(
    watch: StepErrorMonitor, departure: LoopStart, done: LoopResult, series: np.ndarray, python: PythonLaw | None, seed: Any
) -> Draft:
    """The result of the runs; gives all warnings about them."""
    loop, begun = watch.loop, departure.start
    s, when, scheme = loop.simulation, loop.when, loop.simulation.scheme
    state, end_attributes = end_state(s, done.x, when)
    provenance = machine() | {f"kernel_{k}": x for k, x in loop.rollout.provenance.items()}
    provenance |= settings_of(scheme, s.mechanism) | {"state": s.system.name}
    provenance["kernel_backend"] = ", then ".join(done.tiers)
    provenance |= {"state_about": "\n".join(s.system.about)} if s.system.about else {}
    provenance |= {"step": when.step, "duration": when.duration, "hold": loop.hold} | sampled(s.control, s.changing, seed)
    instants = when.start + when.step * when.every * (when.first // when.every + np.arange(when.records))
    stopped = np.where(done.stopped >= 0, when.start + when.step * done.stopped, np.nan)
    stored = entries_of(stored_signals(s, loop.tally))
    E, T, q, v = (done.records[:, :, stored.get(name, NOTHING)] for name in ("energy", "kinetic_energy", "q", "v"))
    cost = cost_of(watch, done.x, done.stopped, E, T, q, v)
    course = Recorded(
        instants, done.records, done.status, stopped, begun, series, when.step * when.stride, cost, state, loop.tally
    )
    result = build_result(s, course, provenance | end_attributes | ({"interrupted": True} if done.interrupted else {}))
    blamed = {DIVERGED: too_fast(watch, departure.x, np.full_like(done.stopped, when.first))}
    blamed |= {status_of(s, "integrator"): too_fast(watch, done.x, done.stopped)}
    record_stops(result, s, done.x, _with_messages(begun, python, len(done.status)), blamed)
    warn_of_drift(result, s.system, begun.q, begun.v, begun.p, when.start)
    warn_of_transport(result)
    warn_of_limits(result, s.mechanism, scheme.saturate, begun.q)
    if cost and not done.warned:
        error = np.where(done.status == 0, np.fmax(cost.error, cost.certain), np.nan)
        if not warn_of_step_error(watch, error, cost):
            warn_of_later_stiffness(watch, result, done.x)
    record_singular_starts(result, s.mechanism, departure.kinds)
    return result


def _with_messages(begun: Start, python: PythonLaw | None, runs: int) -> Start:
    """The start, with the messages of the runs in which a law in Python failed."""
    if python is None:
        return begun
    messages = np.broadcast_to(np.array(begun.messages, dtype=object), runs)
    return begun._replace(messages=tuple(python.messages.get(run, words) for run, words in enumerate(messages.tolist())))
