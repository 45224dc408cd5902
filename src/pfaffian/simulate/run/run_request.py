"""The arguments of a run, in steps of one length or to an accuracy, as the caller gives them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from pfaffian.control.law import Control
from pfaffian.kernel.call.recipe import Backend
from pfaffian.kernel.program.numpy_loop import Hold
from pfaffian.simulate.step.signals import OutputFunction
from pfaffian.simulate.step.step import Scheme


class RunRequest(NamedTuple):
    """The arguments of `run`, not yet checked; the last three are of runs with steps of one length."""

    accuracy: Any
    times: Any
    duration: Any
    max_step: Any
    start: Any
    start_from: Any
    q: Any
    v: Any
    guess: Any
    parameters: Any
    u: Any
    u_step: Any
    hold: Hold
    control: Control | None
    switches: Mapping[str, OutputFunction] | None
    outputs: Mapping[str, OutputFunction] | None
    record: Any
    scheme: Scheme | None
    correct_start: bool
    error: Any
    seed: Any
    backend: Backend
    strict: bool
    threads: int | None
    progress: bool
    step: Any = None
    every: Any = None
    error_bound: Any = None

    @property
    def state(self) -> dict[str, Any]:
        """The state from which runs begin, as a caller gives it."""
        return {"q": self.q, "guess": self.guess, "v": self.v, "parameters": self.parameters}

    @property
    def of_start(self) -> dict[str, Any]:
        """The arguments that a run which continues another one takes from there: None where the caller gave none."""
        seed = None if np.ndim(self.seed) == 0 and self.seed == 0 else self.seed
        return {**self.state, "start": self.start or None, "seed": seed}
