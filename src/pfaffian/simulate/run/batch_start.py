"""The start of a batch of runs: from a given state, put onto the constraints, or from the end of other runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np

from pfaffian.control.law import Control, check_parameters
from pfaffian.evaluate.arrays import as_batch
from pfaffian.evaluate.progress import progress_line
from pfaffian.kernel.call.recipe import Backend
from pfaffian.model.mechanism import Mechanism
from pfaffian.simulate.record.record_memory import check_memory
from pfaffian.simulate.run.resume import End, resumed
from pfaffian.simulate.run.resume_lanes import LanesEnd
from pfaffian.simulate.run.roll import first_state
from pfaffian.simulate.step.first_states import check_start
from pfaffian.simulate.step.inputs import Times, constant_inputs, refuse_inputs, series_of
from pfaffian.simulate.step.run_arguments import input_names
from pfaffian.simulate.step.running_statistics import Recording, Tally, tally_of
from pfaffian.simulate.step.simulation import Simulation
from pfaffian.starts.given_start import Given, start_arguments, start_of
from pfaffian.starts.start import Start, start_state

Earlier = TypeVar("Earlier", End, LanesEnd)
"""The end of other runs, in steps of one length or to an accuracy."""


def beginning(
    m: Mechanism, law: Control, begin: Earlier | float, given: Mapping[str, Any], u: Any, sampled: bool, backend: Backend,
    progress: bool,
) -> tuple[Given | Earlier, np.ndarray]:  # fmt: skip
    """Where runs begin, and (samples, nw) or (samples, runs, nw) their inputs, from the arguments of `run`.

    begin: the end of other runs, or the time [s] at which the state `given` counts: q, v, guess and parameters by name.
    sampled: whether u is a series. Raises ModelError: numbers of wrong shapes or names.
    """
    names = input_names(m, law)
    refuse_inputs(u, names)
    here: Given | Earlier
    constant = np.zeros((1, len(names)))
    if isinstance(begin, (End, LanesEnd)):
        here = begin
        constant = constant if sampled else as_batch(u, names, constant[0], "u")
    else:
        with progress_line(m.name, progress):
            arrays = start_arguments(m, **given, u=None if sampled else u, u_names=names)
            here, constant = start_of(m, arrays, begin, backend), arrays.u
    check_parameters(law, m, here.p)
    return here, series_of(u, names) if sampled else constant_inputs(constant, isinstance(u, Mapping), len(here.p))


class Started(NamedTuple):
    """The start of a batch.

    start: of its runs.   x: (runs, nx) first states.   tally: of the statistics that replace signals.   continues: whether the
    runs continue others.
    """

    start: Start
    x: np.ndarray
    tally: Tally | None
    continues: bool


def started(
    s: Simulation, begin: Given | End, count: int, when: Times, seed: Any, recording: Recording | None, correct_start: bool
) -> Started:
    """The start of `count` runs from a given state, put onto the constraints if `correct_start`, or from the end of others.

    Raises ModelError: the records do not fit into memory, or the other runs are of another machine. Raises RunError: no run can
    start on its constraints.
    """
    tally = tally_of(recording, s.signals, when.every, when.start, when.step)
    check_memory(when.records, count, len(tally.stored_entries) if tally else s.width, s.nx)
    if isinstance(begin, End):
        return Started(resumed(s, begin, count, when), begin.x, tally, True)
    start = start_state(begin, correct_start)
    check_start(s.mechanism, start.q, start.p, when.start)
    return Started(start, first_state(s, start, when.start, count, seed), tally, False)
