"""`pf.fit`: from records of a motion to the numbers of a machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from pfaffian.control.law import Control
from pfaffian.differentiation.step_slopes import differentiable
from pfaffian.errors import RunError, RunWarning, notice
from pfaffian.evaluate.single_values import as_flag
from pfaffian.fitting.determined import uncertainty
from pfaffian.fitting.doubt import FAR, doubt, hidden, times_noise
from pfaffian.fitting.fit_result import Fit
from pfaffian.fitting.fit_state import FitState, save_state, saved_state
from pfaffian.fitting.fit_task import SAMPLES, FitOptions, FitTask, fit_task
from pfaffian.fitting.known_before import ITERATIONS, by_name, free_parameters
from pfaffian.fitting.linear_step import Settings, bounded_step, reduced
from pfaffian.fitting.problem import FitProblem, Fitted, evaluate
from pfaffian.fitting.segments import ON_GRID, Segments, cut, usual_interval
from pfaffian.fitting.solve import FitSolution, Tell, solve
from pfaffian.formats.text.file import as_path
from pfaffian.model.mechanism import Mechanism
from pfaffian.simulate.step.signals import OutputFunction
from pfaffian.simulate.step.step import Scheme

FINE = 0.1
"""Largest error of the steps, in standard deviations of the residuals."""

SHIFT = 0.2
"""Largest change of the numbers when steps are halved, in standard errors: a small error of every sample, always to the same
side, shifts numbers that many samples determine."""

FINEST = 32
"""Most steps in a usual interval."""

ENOUGH = 10
"""Most iterations over segments twice as long: from the right numbers and starts a few are enough."""


def fit(
    m: Mechanism,
    records: Any,
    *,
    parameters: Iterable[str] | None = None,
    outputs: Mapping[str, OutputFunction] | None = None,
    unknown: Mapping[str, Any] | None = None,
    horizon: float | None = None,
    start: Mapping[str, float] | Fit | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    priors: Mapping[str, tuple[float, float]] | None = None,
    guess: Any = None,
    units: Mapping[str, str] | None = None,
    robust: bool = True,
    control: Control | None = None,
    scheme: Scheme | None = None,
    progress: bool = False,
    resume: str | Path | None = None,
) -> Fit:
    """Fit parameters of a mechanism to records of its motion: least squares over short segments whose starts are unknown too.

    The motion of every segment is simulated, and compared with everything that was measured in it. Parameters, the starts of
    all segments, which stay on the constraints, and the unknown numbers of sensors change until the sum of squares is least.
    Derivatives are exact; signals have weights that are estimated from their residuals.

    Args:
        m: the mechanism.
        records: one record, a list of them or {name: record}: a dict, DataFrame or Dataset of a run with "time" (n,) [s], the
            inputs "u" (n, nu), each held until the next sample, and what was measured: "q" (n, nq), "v" (n, nv) and outputs
            by name, as arrays or {name: (n,)}, nan where nothing was measured.
        parameters: names of the parameters to fit; all of the mechanism by default.
        outputs: {name: function of the kinematics, or `of_motion`}, other signals that were measured.
        unknown: {signal: word or words} of what is not known of a signal or of "u": "delay" by which it is late, "clock", a
            delay of each record, "gain" and "offset" of each number, "zero", an offset of each record. By default the delay of
            the inputs, and that of v where q is measured.
        horizon: length of a segment [s]; 50 samples by default. Numbers that are to predict over a longer time are best fitted
            once more over segments as long, with this fit as `start`: faults of the model then weigh as they do there.
        start: {parameter or unknown: value} from which to start, defaults where left out; or a Fit, to go on from it.
        bounds: {parameter: (low, high)}.
        priors: {parameter: (value, standard deviation)}, known before.
        guess: configuration near which coordinates that are not measured start, as for `run`; neutral by default.
        units: {signal: unit} of records that are not in SI units, such as {"q": "deg"}.
        robust: whether residuals beyond 3 standard deviations count less (Huber); True by default.
        control: a law in continuous time that was in the loop; its inputs take the place of the mechanism's.
        scheme: of the simulation; `pf.Scheme()` by default.
        progress: whether to show a progress bar.
        resume: a file that keeps the state after each step; if it exists, the fit goes on from there.
    Returns:
        a `Fit`: values with intervals, residuals, what the records do not determine, the fitted mechanism, held-out errors.
    Warns RunWarning: parameters that the records do not determine; a fit that did not converge; residuals far above the noise,
        as those of a false minimum.
    Raises ModelError: a record that cannot be read, by name, signal and time; unknown names; a file to resume of another fit.
    Raises RunError: the motion of the first guess fails.

    Example:
        >>> import numpy as np, pfaffian as pf
        >>> k = pf.Parameter("stiffness", 5.0, "N/m")
        >>> slide = pf.joint("x", "prismatic", "world", "box", axis=(1, 0, 0), stiffness=k)
        >>> m = pf.mechanism("oscillator", [pf.body("box", mass=2.0)], [slide], parameters=[k])
        >>> t = np.arange(0.0, 4.0, 0.02)
        >>> record = {"time": t, "q": np.cos(2.0 * t) + 1e-3 * np.random.default_rng(1).normal(size=200)}
        >>> round(pf.fit(m, record).values["stiffness"], 1)
        8.0
    """
    limits, prior, of_units = by_name(bounds, "bounds"), by_name(priors, "priors"), by_name(units, "units")
    begin = start if isinstance(start, Fit) else by_name(start, "start")
    functions = by_name(outputs, "outputs")
    given = FitOptions(begin, limits, prior, guess, of_units, as_flag(robust, "robust"), unknown, horizon)
    s = differentiable(m, control, scheme, "fit")
    free = free_parameters(s.mechanism, parameters)
    task = fit_task(s, free, records, functions, given)
    first, file = task.theta, None if resume is None else as_path(resume)
    before = saved_state(file, FitState(task.problem.names, task.theta, task.x, task.deviation)) if file else None
    if before:
        task = task._replace(theta=before.theta, x=before.x, deviation=before.deviation, near=True)
    bar = tqdm(total=ITERATIONS, disable=not progress, unit="step", desc="fit")

    def tell(theta: np.ndarray, here: Fitted, decrement: float) -> None:
        bar.update(1)
        cost = here.cost / max(int(here.counts.sum()), 1)
        bar.set_postfix_str(f"cost per sample {cost:.4g}, step {np.sqrt(max(decrement, 0)):.2g} standard errors")
        if file and here.x.shape == task.x.shape:
            save_state(file, FitState(task.problem.names, theta, here.x, here.deviation))

    with bar:
        problem, solution = _solved(task, tell)
        long = task.horizon > SAMPLES * usual_interval(task.problem.records) * (1 + ON_GRID)
        if long and (times_noise(problem, solution) > FAR).any():
            short = fit_task(s, free, records, functions, given._replace(horizon=None))
            problem, solution = _by_short_segments(task, (problem, solution), short, tell)
        if hidden(problem, solution) and not doubt(problem, solution):
            solution = solution._replace(growth=_growth(task, problem, solution))
    found = Fit(problem, solution, first, task.settings.prior, given.units)
    if not solution.converged:
        notice(f"fit: it has not converged after {solution.iterations} iterations; {found.stalled()}", RunWarning)
    for sentence in filter(None, (*found.undetermined, found.doubt)):
        notice(f"fit: {sentence}", RunWarning)
    return found


def _solved(task: FitTask, tell: Tell) -> tuple[FitProblem, FitSolution]:
    """The solution, with steps so short that their error is small beside the residuals."""
    problem, theta, x, deviation, near = task.problem, task.theta, task.x, task.deviation, task.near
    substeps = 1
    while True:
        solution = solve(problem, theta, x, deviation, task.settings, near, tell)
        if solution is None:
            if substeps >= FINEST:
                raise RunError(
                    "fit: the motion from the first guess fails, as it is not finite or off the constraints; give start= "
                    "values nearer to the truth, or a shorter horizon"
                )
            substeps *= 4
        else:
            theta, x, deviation, near = solution.theta, solution.fitted.x, solution.deviation, True
            if substeps >= FINEST or _fine(problem, solution, task, substeps):
                return problem, solution
            substeps *= 2
        problem = problem._replace(segments=cut(problem.records, task.horizon, substeps))


def _by_short_segments(
    task: FitTask, first: tuple[FitProblem, FitSolution], short: FitTask, tell: Tell
) -> tuple[FitProblem, FitSolution]:
    """The better one of a first solution and of one that begins where short segments have led.

    The sum of squares of a long motion has many minima in numbers that its phase or its growth depends on, that of a short one
    few.
    """
    try:
        _, near = _solved(short, tell)
        other = _solved(task._replace(theta=near.theta, x=_starts_of(short, near, task)), tell)
    except RunError:
        return first
    return min(first, other, key=lambda x: float((x[1].fitted.counts * np.log(x[1].deviation)).sum()))


def _starts_of(short: FitTask, near: FitSolution, task: FitTask) -> np.ndarray:
    """The starts of a task, from short segments that begin at the same time, where there are such."""
    x, same = task.x.copy(), _same_begin(task.problem.segments, short.problem.segments)
    x[same >= 0] = near.fitted.x[same[same >= 0]]
    return x


def _same_begin(few: Segments, many: Segments) -> np.ndarray:
    """(segments of few,) index of the one of many that begins at the same time, -1 where there is none."""
    same = (few.record[:, None] == many.record) & (np.abs(few.begin[:, None] - many.begin) < few.h / 2)
    return np.where(same.any(axis=1), same.argmax(axis=1), -1)


def _growth(task: FitTask, problem: FitProblem, solution: FitSolution) -> np.ndarray | None:
    """(ny,) how many times as large the residuals are over segments twice as long, which begin at every second start.

    In each segment, starts of hidden coordinates make up for much of what wrong numbers do; but then they do not lie on one
    motion. None if no segment becomes longer, or if a longer motion fails.
    """
    segments = problem.segments
    longer = cut(problem.records, 2 * task.horizon, round(usual_interval(problem.records) / segments.h))
    same = _same_begin(longer, segments)
    if longer.runs == segments.runs or not (same >= 0).any():
        return None
    x, twice = solution.fitted.x[same[same >= 0]], problem._replace(segments=longer.take(same >= 0))
    found = solve(twice, solution.theta, x, solution.deviation, task.settings._replace(most=ENOUGH), near=True)
    return None if found is None else found.deviation / solution.deviation


def _fine(problem: FitProblem, solution: FitSolution, task: FitTask, substeps: int) -> bool:
    """Whether steps of half the length change neither the residuals nor the numbers by more than FINE and SHIFT."""
    finer = problem._replace(segments=cut(problem.records, task.horizon, 2 * substeps))
    other = evaluate(finer, solution.theta, solution.fitted.x, solution.deviation)
    if other is None:
        return False
    change = np.nan_to_num(other.residual - solution.fitted.residual)
    size = np.sqrt((change**2).sum(axis=(0, 1)) / np.maximum(solution.fitted.counts, 1))
    return bool((size <= FINE * solution.deviation).all()) and _shift(problem, solution, other, task.settings) <= SHIFT


def _shift(problem: FitProblem, solution: FitSolution, other: Fitted, s: Settings) -> float:
    """The largest change of a number, in its standard errors, from the solution to the minimum of the finer problem `other`."""
    here, there = (reduced(x.triangles, x.basis.shape[2]) for x in (solution.fitted, other))
    moved = [bounded_step(x.R, x.rhs, solution.theta, 0.0, s)[0] for x in (here, there)]
    error = np.sqrt(np.diag(uncertainty(here, solution.theta, problem.typical(solution.theta), s.prior).covariance))
    return float(np.max(np.abs(moved[1] - moved[0]) / np.maximum(error, np.finfo(float).tiny), initial=0.0))
