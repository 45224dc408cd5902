"""Where runs to an accuracy begin, and under which inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pfaffian.evaluate.arrays import as_batch
from pfaffian.model.mechanism import Mechanism
from pfaffian.simulate.error.global_error import ERROR_KINDS
from pfaffian.simulate.run.accuracy_request import RunRequest
from pfaffian.simulate.run.controlled import LaneStarts, first_tolerance
from pfaffian.simulate.run.resume_lanes import LanesEnd, continued
from pfaffian.simulate.run.roll import first_state, initial_status
from pfaffian.simulate.step.first_states import check_start
from pfaffian.simulate.step.inputs import constant_inputs, refuse_inputs, series_of
from pfaffian.simulate.step.lane import new_lanes
from pfaffian.simulate.step.simulation import Simulation
from pfaffian.starts.given_start import Given, start_arguments, start_of
from pfaffian.starts.start import Start, start_state


def begin_of_runs(
    s: Simulation, request: RunRequest, given: Given | LanesEnd, begin: float, count: int, accuracy: float
) -> tuple[Start, LaneStarts]:
    """The start of the runs, put onto the constraints or at the end of other runs, and their lanes there."""
    if isinstance(given, LanesEnd):
        return continued(s, given, count)
    begun = start_state(given, request.correct_start)
    check_start(s.mechanism, begun.q, begun.p, begin)
    return begun, lane_starts(s, begun, begin, count, request.seed, accuracy)


def lane_starts(s: Simulation, begun: Start, begin: float, count: int, seed: Any, accuracy: float) -> LaneStarts:
    """The lanes of runs that begin with a start at a time [s]."""
    lane = new_lanes(s, first_state(s, begun, begin, count, seed))
    tolerance = np.full(count, first_tolerance(accuracy))
    w, error = (np.broadcast_to(0.0, (count, n)) for n in (2 * len(s.w_names), len(ERROR_KINDS)))
    return LaneStarts(lane, lane, w, tolerance, initial_status(s, begun, count, 0)[0], error)


def given_start_and_inputs(
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
