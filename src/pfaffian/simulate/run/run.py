"""run: a mechanism, initial states and inputs -> a labelled result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pfaffian.control.law import Control
from pfaffian.kernel.call.recipe import Backend
from pfaffian.kernel.program.numpy_loop import Hold
from pfaffian.model.mechanism import Mechanism
from pfaffian.simulate.record.event_table import drop_listed
from pfaffian.simulate.run.accurate import run_accurately
from pfaffian.simulate.run.run_in_steps import run_in_steps
from pfaffian.simulate.run.run_options import (
    ACCURACY,
    check_run_options,
    refuse_with_accuracy,
    refuse_without_accuracy,
)
from pfaffian.simulate.run.run_request import RunRequest
from pfaffian.simulate.step.joint_loads import with_loads
from pfaffian.simulate.step.signals import OutputFunction
from pfaffian.simulate.step.step import Scheme
from pfaffian.states.abstract_system import AbstractSystem
from pfaffian.states.system import as_system

if TYPE_CHECKING:
    import xarray as xr


def run(
    m: Mechanism | AbstractSystem,
    q: Any = None,
    v: Any = None,
    *,
    duration: float | None = None,
    times: Any = None,
    accuracy: float | None = None,
    step: float | None = None,
    every: int | None = None,
    max_step: float | None = None,
    start: float = 0.0,
    start_from: xr.Dataset | None = None,
    u: Any = None,
    u_step: float | None = None,
    hold: Hold = "zero",
    parameters: Any = None,
    guess: Any = None,
    control: Control | None = None,
    switches: Mapping[str, OutputFunction] | None = None,
    outputs: Mapping[str, OutputFunction] | None = None,
    record: Any = None,
    scheme: Scheme | None = None,
    correct_start: bool = True,
    error_bound: float | None = None,
    error: Any = None,
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
        duration: simulated time [s]; the number of steps of one length is duration / step, rounded.
        times: (n,) increasing times of the records [s], in place of the duration; with `accuracy`, which is 1e-6 by default.
        accuracy: largest error of the motion at any record: of angles in rad, of lengths relative to the machine, of speeds
            relative to the largest. The steps are then under error control, by a pair of explicit rules (`Scheme`), and each
            run is computed a second time with shorter steps to estimate its error, which the result contains as `error`. Runs
            whose error is too large are repeated; where that does not help, a warning says from when on. Without `times`
            there are 201 records. The error under a law in Python, which is called once at each of its instants, is not
            estimated.
        step: length of a time step without `accuracy` [s], 1e-3 by default.
        every: number of such steps between two records, 1 by default.
        max_step: longest step under error control [s], so that it does not miss a short event; unlimited by default.
        start: time at the start [s].
        start_from: the result of a run of the same mechanism and law, with steps of this length or to this accuracy. The run
            continues from its end, with all states and delayed values of the law, the switched modes, the state of the noise
            and the memory of error control, so that two halves give the same bits as one run, unless it needs smaller steps
            for its accuracy. q, v, parameters, start and seed come from this result and must not be given.
            A law in Python has to restore its own memory.
        u: inputs [N, N m]: None (zero), (nu,), (runs, nu) for the runs of the batch, or {name: number or (runs,)}. With
            `u_step` a series: (samples, nu), (samples, runs, nu) or {name: number, (samples,) or (samples, runs)}.
        u_step: time between two samples of `u` [s], a whole number of steps; None: `u` is constant.
        hold: "zero" or "linear" interpolation between samples; the last sample remains to the end.
        parameters: {name: number or (runs,)}, or an array in the mechanism's order; defaults if None.
        guess: {name: number or (runs,)}, the values from which coordinates that the dict q does not name move onto the
            constraints, such as the angle that selects the branch of a loop, or a part of a quaternion; None: neutral.
        control: a law that drives the mechanism's inputs; `u` then contains the inputs of the law.
        switches: {name of a parameter: function of Kinematics, or `of_motion(...)`, that returns its next value}. A mode that
            latches is {"landed": lambda k: ca.if_else(k.position("foot")[2] < 0, 1, landed)}; of_motion sees the motion under
            the inputs and modes in force until then, so that a contact may open where it would pull. A switched parameter
            starts at its value in `parameters` and is recorded under its name. Constraints (`active_while`), forces and laws
            that contain it change with it; velocities jump by the shortest way onto a constraint that becomes active. Steps
            are split where a parameter jumps, so it takes effect at that instant (`pf.events` lists them); one that changes
            gradually does so at the end of each step.
        outputs: {name: function of Kinematics, `reaction(...)` or `of_motion(...)`}, recorded with the standard signals.
        record: names of the signals to record, "all" or "lean". None: all for one run, lean for a batch. The lean record leaves
            out the signals with an entry for each row or velocity: phi, reaction, multiplier. Or a dict of statistics over all
            steps, or with `accuracy` over all instants, {"peak": statistics.maximum("u")}, see `pf.statistics`: their signals
            are not recorded over time, unless the dict names them as well, as in {"q": True}. Or "loads": the peak loads of all
            joints and closures, see `loads`.
        scheme: formulation, integrator and drift correction; `Scheme()` if None.
        correct_start: whether to put the initial state onto the constraints and to leave a singular configuration by a special
            first step. In either case a law starts from its initial state.
        error_bound: warn where the accumulated step error exceeds this, in angles [rad] or in speeds relative to the largest;
            the warning names the part of the machine that is too fast and a step that is short enough. inf: never warn. None:
            5e-5, or 1e-6 if no step is given and the integrator is not a stiff one. The result contains the estimates, nan
            where the run stopped or nothing was estimated:
            `error`, of angles, lengths and speeds at each record, from a second solution with steps of another length;
            `energy_error` [J], the change of energy beyond the work of inputs, dissipation and moving constraints: up to the
            last record where nothing does work on the machine, otherwise an upper estimate from the compared steps;
            `momentum_error`, the change of the momenta along the first joint beyond the impulse of the forces, for a machine
            that floats or conserves some of these momenta.
        error: the runs whose error is estimated: True, False or (runs,) of these. By default all with `accuracy`, else every
            32nd of a batch.
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
    record, outputs = with_loads(m, record, outputs)
    check_run_options(backend, hold, correct_start=correct_start, strict=strict, progress=progress, squeeze=squeeze)
    to_accuracy = accuracy is not None or times is not None
    if to_accuracy:
        refuse_with_accuracy(step=step, every=every, error_bound=error_bound)
    else:
        refuse_without_accuracy(max_step=max_step)
    request = RunRequest(
        accuracy=ACCURACY if accuracy is None else accuracy,
        times=times,
        duration=duration,
        max_step=max_step,
        start=start,
        start_from=start_from,
        q=q,
        v=v,
        guess=guess,
        parameters=parameters,
        u=u,
        u_step=u_step,
        hold=hold,
        control=control,
        switches=switches,
        outputs=outputs,
        record=record,
        scheme=scheme,
        correct_start=correct_start,
        error=error,
        seed=seed,
        backend=backend,
        strict=strict,
        threads=threads,
        progress=progress,
        step=step,
        every=every,
        error_bound=error_bound,
    )
    result = run_accurately(system, request) if to_accuracy else run_in_steps(system, request)
    if start_from is not None:
        drop_listed(result, start_from)
    return result.labelled(squeeze and result["status"].size == 1)
