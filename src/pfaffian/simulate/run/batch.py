"""A batch of runs whose arguments are checked: from its start to its result, with all findings about it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from pfaffian.evaluate.progress import progress_line
from pfaffian.kernel.call.memory import threads_for
from pfaffian.kernel.call.recipe import Backend
from pfaffian.kernel.program.numpy_loop import Hold
from pfaffian.simulate.error.accuracy import StepErrorMonitor
from pfaffian.simulate.error.half_steps import HalfSteps
from pfaffian.simulate.run.batch_start import Started
from pfaffian.simulate.run.coupling_error import NEEDED, add_coupling_error, exchanging, halved
from pfaffian.simulate.run.ended import ended
from pfaffian.simulate.run.python_law import python_law_of
from pfaffian.simulate.run.resume import since_start, warn_of_restart
from pfaffian.simulate.run.roll import LoopStart, roll
from pfaffian.simulate.run.singular_start import REGULAR, entrances
from pfaffian.simulate.step.draft import Draft
from pfaffian.simulate.step.inputs import Times
from pfaffian.simulate.step.sampling import compiled_instants
from pfaffian.simulate.step.simulation import Simulation
from pfaffian.simulate.step.time_loop import TimeLoop, compiled, settled

SHARE = 64
"""Least number of runs for each thread."""


class Batch(NamedTuple):
    """What a caller of `run` asked for.

    runs: their number.   series: (samples, nw) or (samples, runs, nw) inputs.   due: period and phase of samplers, in steps.
    bound: of the accumulated step error.   seed: one, or (runs,).   threads: None for as many as pay.   The others as in `run`.
    estimated: indices of the runs whose error is estimated.
    """

    simulation: Simulation
    started: Started
    runs: int
    when: Times
    series: np.ndarray
    hold: Hold
    due: list[tuple[int, int]]
    bound: float
    seed: Any
    correct_start: bool
    backend: Backend
    strict: bool
    threads: int | None
    progress: bool
    estimated: np.ndarray


def computed(batch: Batch) -> Draft:
    """The result of the runs. Raises BuildError, and warns RunWarning, as `run` does."""
    s, when, count, (start, x, tally, continues) = batch.simulation, batch.when, batch.runs, batch.started
    with progress_line(s.mechanism.name, batch.progress):
        rollout = compiled(s, batch.backend, 8 if count > 1 else 1, batch.strict)
    if not batch.correct_start and not continues:
        warn_of_restart(s, when.start)
    corrected = batch.correct_start and not continues
    kinds = entrances(s.mechanism, start, when.start, batch.backend) if corrected else REGULAR
    workers = threads_for(count, SHARE) if batch.threads is None else batch.threads
    p = np.broadcast_to(start.p, (count, start.p.shape[1]))
    loop = TimeLoop(s, rollout, when, since_start(batch.series, when), batch.hold, p, batch.due, workers, tally)
    watch = StepErrorMonitor(HalfSteps(loop), batch.bound)
    x = x if continues else settled(s, rollout, x, loop.series, p, when.start)
    departure = LoopStart(x, start, np.broadcast_to(kinds, count))
    python = python_law_of(loop, batch.backend, batch.strict)
    done = roll(watch, departure, python, batch.progress)
    result = ended(watch, departure, done, batch.series, python, batch.seed, batch.backend, batch.estimated)
    if exchanging(s.control) and batch.estimated.size:
        add_coupling_error(result, s, p, batch.bound, lambda: computed(_exchanging_twice(batch)))
    return result


def _exchanging_twice(batch: Batch) -> Batch:
    """The batch with half the time between exchanges with an FMU and half the step, whose error is not estimated."""
    s, when = batch.simulation, batch.when
    law = halved(s.control)
    whole = {name: 2 * getattr(when, name) for name in ("steps", "first", "every", "stride")}
    return batch._replace(
        simulation=replace(s, control=law, record=NEEDED),
        started=batch.started._replace(tally=None),
        when=when._replace(step=when.step / 2, **whole),
        due=compiled_instants(law, when.step / 2),
        estimated=batch.estimated[:0],
        progress=False,
    )
