"""What a stepper is made with, and the states from which its runs start."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pfaffian.control.law import check_parameters
from pfaffian.errors import ModelError
from pfaffian.evaluate.single_values import as_flag
from pfaffian.kernel.call.recipe import Backend
from pfaffian.simulate.run.roll import first_state
from pfaffian.simulate.step.first_states import check_start
from pfaffian.simulate.step.simulation import Simulation
from pfaffian.starts.given_start import StartArguments, start_of
from pfaffian.starts.start import Start, start_state


class Options(NamedTuple):
    """Options of a Stepper.   step: [s].   runs: None for one machine without an axis of runs.   The others as in `stepper`."""

    step: float
    runs: int | None
    seed: int
    threads: int
    backend: Backend
    strict: bool


def first_of(
    s: Simulation, options: Options, given: StartArguments, t: float, correct_start: Any, where: str = "the stepper"
) -> tuple[Start, np.ndarray]:
    """The start that the arguments of a `reset` give, and the first states (runs, nx) of a stepper's runs.

    t: [s].   where: the runs are, for messages. Raises ModelError or RunError: see `Stepper.reset`.
    """
    m, runs = s.mechanism, options.runs or 1
    begin = start_of(m, given, t, options.backend)
    check_parameters(s.control, m, begin.problem.p)
    if len(begin.q) not in (1, runs):
        raise ModelError(f"q, v and parameters are for {len(begin.q)} runs; {where} has {runs}")
    begun = start_state(begin, as_flag(correct_start, "correct_start"))
    check_start(m, begun.q, begun.p, t)
    return begun, np.array(np.broadcast_to(first_state(s, begun, t, runs, options.seed), (runs, s.nx)))
