"""The Solver of runs to an accuracy."""

from __future__ import annotations

import numpy as np

from pfaffian.errors import ModelError
from pfaffian.evaluate.single_values import MOST_THREADS, as_number, as_whole
from pfaffian.kernel.call.memory import threads_for
from pfaffian.simulate.run.input_intervals import InputIntervals
from pfaffian.simulate.run.python_law import PythonCalls, refuse_continued
from pfaffian.simulate.run.resume_lanes import LanesEnd
from pfaffian.simulate.run.run_request import RunRequest
from pfaffian.simulate.run.solver import Solver, compiled_samplers, compiled_start, compiled_steps, stiff_steps_for
from pfaffian.simulate.step.lane import law_instants
from pfaffian.simulate.step.pairs import ATTEMPTS
from pfaffian.simulate.step.sampling import in_python, rates
from pfaffian.simulate.step.simulation import Simulation
from pfaffian.simulate.step.time_marks import time_marks

SHARE = 64
"""Least number of runs for each thread."""


def solver_of(
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
    if (seconds := instants[-1] - elapsed) / longest > ATTEMPTS:
        raise ModelError(
            f"max_step {longest:g}: the run of {seconds:g} s would need more than {ATTEMPTS:,} steps, the greatest number that "
            f"a run tries; the shortest max_step for it is {seconds / ATTEMPTS:.2g} s"
        )
    marks = time_marks(s, np.array(p), begin, begin + float(instants[-1])) - begin
    python = in_python(s.control)
    if ended and python:
        refuse_continued(python)
    outside = (*[group[0] for group in rates(s.control)], python) if python else ()
    first = ended.samples(period) if ended else 0
    called = tuple((part.period, part.phase) for part in outside)
    inputs = InputIntervals(series, period, request.hold == "linear", called, marks, first)
    compiled = (request.backend, request.strict)
    stiff = stiff_steps_for(request.scheme, s, len(p), *compiled)
    return Solver(
        s,
        compiled_steps(s, len(p), *compiled),
        stiff,
        compiled_start(s, stiff is not None, *compiled),
        compiled_samplers(s, *compiled),
        inputs,
        p,
        begin,
        elapsed,
        inputs.snapped(instants, law_instants(s)),
        longest,
        threads_for(len(p), SHARE) if request.threads is None else as_whole(request.threads, "threads", most=MOST_THREADS),
        PythonCalls(s, python, p) if python else None,
    )
