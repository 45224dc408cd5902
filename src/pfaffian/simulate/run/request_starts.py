"""The lanes of runs to an accuracy where they begin."""

from __future__ import annotations

from typing import Any

import numpy as np

from pfaffian.simulate.error.global_error import ERROR_KINDS
from pfaffian.simulate.run.controlled import LaneStarts, first_tolerance
from pfaffian.simulate.run.resume_lanes import LanesEnd, continued
from pfaffian.simulate.run.roll import first_state, initial_status
from pfaffian.simulate.run.run_request import RunRequest
from pfaffian.simulate.step.first_states import check_start
from pfaffian.simulate.step.lane import new_lanes, row_size
from pfaffian.simulate.step.simulation import Simulation
from pfaffian.starts.given_start import Given
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
    w, error = (np.broadcast_to(0.0, (count, n)) for n in (row_size(s) - 1, len(ERROR_KINDS)))
    return LaneStarts(lane, lane, w, tolerance, initial_status(s, begun, count, 0)[0], error)
