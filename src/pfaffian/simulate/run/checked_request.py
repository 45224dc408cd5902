"""A request for runs to an accuracy with its arguments checked: the Solver, and where the runs begin."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pfaffian.control.idle import idle_under
from pfaffian.evaluate.progress import progress_line
from pfaffian.evaluate.single_values import as_number, some_runs
from pfaffian.simulate.run.accuracy_request import PAIR, as_accuracy, as_instants, end_of_earlier, estimated_runs
from pfaffian.simulate.run.batch_start import beginning
from pfaffian.simulate.run.controlled import LaneStarts
from pfaffian.simulate.run.request_solver import solver_of
from pfaffian.simulate.run.request_starts import begin_of_runs
from pfaffian.simulate.run.run_request import RunRequest
from pfaffian.simulate.run.solver import Solver
from pfaffian.simulate.step import sampling
from pfaffian.simulate.step.motion_statistics import MotionTally, tally_of_motion
from pfaffian.simulate.step.running_statistics import as_recording
from pfaffian.simulate.step.signals import as_record
from pfaffian.simulate.step.simulation import Simulation
from pfaffian.simulate.step.switches import as_switches
from pfaffian.simulate.step.turns import counting_arguments
from pfaffian.starts.start import Start
from pfaffian.states.abstract_system import AbstractSystem


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


def checked_request(system: AbstractSystem, request: RunRequest, kinks: bool = True) -> Checked:
    """The request with its arguments checked.   kinks: whether kinks are events.

    Raises ModelError: an argument is wrong. Raises RunError: no run can start on its constraints.
    """
    accuracy = as_accuracy(request.accuracy)
    system, scheme, law, extra = counting_arguments(
        system, request.scheme, request.control, request.outputs, request.switches, PAIR
    )
    m = system.mechanism
    ended = end_of_earlier(m, request, accuracy)
    begin, elapsed = (ended.begin, ended.elapsed) if ended else (as_number(request.start, "start"), 0.0)
    instants = as_instants(request.times, begin, elapsed, request.duration)
    seeds = sampling.check_seeds(request.seed)
    with progress_line(m.name, request.progress):
        sampled = request.u_step is not None
        given, series = beginning(m, law, ended or begin, request.state, request.u, sampled, request.backend, False)
        several = series.shape[1] if series.ndim == 3 else 1
        count = some_runs({"q, v, parameters": len(given.p), "u": several, "seed": seeds})
        recording, changing = as_recording(request.record), as_switches(m, request.switches)
        recorded = as_record(recording.signals if recording else request.record, count)
        s = Simulation(system, scheme, law, extra, recorded, changing.next)
        s = s.with_kinks() if kinks else s
        order = s.pair.order
        begun, starts = begin_of_runs(s, request, given, begin, count, accuracy)
        solver = solver_of(s, request, np.broadcast_to(begun.p, (count, begun.p.shape[1])), begin, instants, series, ended)
    more = {"state": system.name, "accuracy": accuracy, "order": order, "hold": request.hold}
    more |= {"duration": solver.end - solver.elapsed} | sampling.provenance(
        law, s.changing, ended.seed if ended else request.seed
    )
    more |= {"idle_motions": ", ".join(idle)} if (idle := idle_under(law, m)) else {}
    more |= {"state_about": "\n".join(system.about)} if system.about else {}
    tally = tally_of_motion(recording, s.signals, count, accuracy)
    return Checked(solver, starts, begun, accuracy, estimated_runs(request.error, law, ended, count), tally, more)
