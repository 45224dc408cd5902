"""What is said about runs that have ended, in order: why they stopped, and how far their results can be trusted."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from pfaffian.kernel.call.recipe import Backend
from pfaffian.simulate.error.accuracy import StepErrorMonitor
from pfaffian.simulate.error.advice import too_fast, unresolved, warn_of_later_stiffness, warn_of_step_error
from pfaffian.simulate.error.balance import Cost
from pfaffian.simulate.error.drift import warn_of_drift
from pfaffian.simulate.error.transport import warn_of_transport
from pfaffian.simulate.record.constant_conditions import warn_of_constant_conditions
from pfaffian.simulate.record.event_names import (
    and_last_event,
    contradicting_names,
    reasons,
    undefined_names,
    warn_of_unsplit_steps,
)
from pfaffian.simulate.record.lost_energies import warn_of_lost_energies
from pfaffian.simulate.record.near_dependent_rows import record_undecided
from pfaffian.simulate.record.result import DIVERGED, FIRST_FAULT, status_of
from pfaffian.simulate.record.stops import record_stops
from pfaffian.simulate.run.singular_start import record_singular_starts
from pfaffian.simulate.step.activation import switched
from pfaffian.simulate.step.draft import Draft
from pfaffian.simulate.step.events import eventful
from pfaffian.simulate.step.limits import warn_of_limits
from pfaffian.simulate.step.simulation import Simulation
from pfaffian.starts.start import Start


class ComparedSteps(NamedTuple):
    """The steps of runs that compare some of them with half steps.

    watch: the comparisons.   cost: the errors of all steps, None if none was compared.   begin: (runs, nx) first states.
    stopped: (runs,) step at which a run stopped, -1 if it did not.   warned: whether a warning about the first step was given.
    """

    watch: StepErrorMonitor
    cost: Cost | None
    begin: np.ndarray
    stopped: np.ndarray
    warned: bool


class EndedRuns(NamedTuple):
    """Runs that have ended, of any kind.

    start: of the runs.   t: its time [s].   messages: why a run could not start, or its law failed; "" where neither is so.
    x: (runs, nx) last good states.   kinds: (runs,) the kinds of their starts, see `entrances`.   backend: of the checks.
    steps: their steps, if some were compared with half steps.
    """

    simulation: Simulation
    start: Start
    t: float
    messages: tuple[str, ...]
    x: np.ndarray
    kinds: np.ndarray
    backend: Backend = "auto"
    steps: ComparedSteps | None = None


def _stops(result: Draft, runs: EndedRuns) -> None:
    """Why runs stopped; where nothing else is to blame, a part that was too fast for the steps."""
    s, more = runs.steps, {}
    if s is not None:
        first = np.full_like(s.stopped, s.watch.loop.when.first)
        more = {DIVERGED: too_fast(s.watch, s.begin, first)}
        more |= {status_of(runs.simulation, "integrator"): too_fast(s.watch, runs.x, s.stopped)}
    elif "accuracy" in result.attrs:
        p = np.broadcast_to(runs.start.p, (len(runs.x), runs.start.p.shape[1]))
        fastest = unresolved(runs.simulation, runs.x, p, result["stopped"])
        more = {DIVERGED: fastest}
        more |= {status_of(runs.simulation, "integrator"): partial(and_last_event, runs.simulation, runs.x, result, fastest)}
    if eventful(runs.simulation):
        more[status_of(runs.simulation, "events")] = partial(reasons, runs.simulation, runs.x, result)
        more[status_of(runs.simulation, "undefined")] = partial(undefined_names, runs.simulation)
    if switched(runs.simulation.mechanism):
        more[FIRST_FAULT] = partial(contradicting_names, runs.simulation)
    record_stops(result, runs.simulation, runs.x, runs.start._replace(messages=runs.messages), more)


def _lost_energies(result: Draft, runs: EndedRuns) -> None:
    """The potentials that have no number where a run went on."""
    s = runs.simulation
    warn_of_lost_energies(result, s.mechanism, runs.start.p, s.changing.visible)


def _drift(result: Draft, runs: EndedRuns) -> None:
    """How far a reduced motion departs from that of the full equations."""
    warn_of_drift(result, runs.simulation.system, runs.start.q, runs.start.v, runs.start.p, runs.t)


def _transport(result: Draft, _: EndedRuns) -> None:
    """The energy that the transport map of a prototype moved."""
    warn_of_transport(result)


def _limits(result: Draft, runs: EndedRuns) -> None:
    """The limits of joints and inputs that were exceeded."""
    warn_of_limits(result, runs.simulation.mechanism, runs.simulation.scheme.saturate, runs.start.q)


def _step_errors(result: Draft, runs: EndedRuns) -> None:
    """The accumulated error of the steps, unless a warning before the run said it; else parts that became too fast for them."""
    s = runs.steps
    if s is None or s.cost is None or s.warned:
        return
    worst, seen = np.fmax.reduce(result["error"], axis=(1, 2)), np.fmax(s.cost.error, s.cost.certain)
    if runs.simulation.scheme.stiff:  # it passes over fast motions; only what remains of them counts
        worst = s.cost.error
    worst = np.fmax(np.where(np.isnan(worst), s.cost.error, worst), s.cost.certain)
    # The comparisons find the part at fault. What they did not see was stiff at the start, or became so later.
    missed = not (seen > s.watch.bound).any() and warn_of_later_stiffness(s.watch, result, runs.x)
    if not missed and not warn_of_step_error(s.watch, np.where(result["status"] == 0, worst, np.nan), s.cost):
        warn_of_later_stiffness(s.watch, result, runs.x)


def _singular_starts(result: Draft, runs: EndedRuns) -> None:
    """The runs that began in a singular configuration."""
    record_singular_starts(result, runs.simulation.mechanism, runs.kinds)


def _unsplit_steps(_: Draft, runs: EndedRuns) -> None:
    """The steps that were not split at all of their events."""
    warn_of_unsplit_steps(runs.simulation, runs.x)


def _constant_conditions(_: Draft, runs: EndedRuns) -> None:
    """The conditions that no motion changes."""
    warn_of_constant_conditions(runs.simulation)


def _undecided_rows(result: Draft, runs: EndedRuns) -> None:
    """The rows that count as dependent although more than rounding is left of them."""
    record_undecided(result, runs.simulation.mechanism, runs.start, runs.t, runs.backend)


FINDINGS: tuple[Callable[[Draft, EndedRuns], None], ...] = (
    _stops,
    _lost_energies,
    _drift,
    _transport,
    _limits,
    _step_errors,
    _singular_starts,
    _unsplit_steps,
    _constant_conditions,
    _undecided_rows,
)
"""All findings about a run, in the order in which they are added to its result and warn. Each warns RunWarning."""


def with_findings(result: Draft, runs: EndedRuns) -> Draft:
    """The result of the runs, with all findings added."""
    for find in FINDINGS:
        find(result, runs)
    return result
