"""What the steppers have in common: machines under a law, their state, and copies of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, NoReturn, Protocol, Self, TypeVar

import numpy as np

from pfaffian.errors import ModelError
from pfaffian.simulate.record.result import causes_of
from pfaffian.simulate.run.resume import identity
from pfaffian.simulate.run.stepper_start import Options
from pfaffian.simulate.step.simulation import Simulation


class StepperState(Protocol):
    """A state, with the status of each run; a stepper may have further rows."""

    @property
    def status(self) -> np.ndarray: ...


Current = TypeVar("Current", bound=StepperState)


class AbstractStepper(ABC, Generic[Current]):
    """One machine, or many of one kind, moved by the caller.   u_names: of the inputs.   causes: of stops, by `status`."""

    def __init__(self, simulation: Simulation, options: Options) -> None:
        self._s, self._options = simulation, options
        self.causes, self.u_names, self._identity = causes_of(simulation), simulation.w_names, identity(simulation)
        self._now: Current | None = None

    @abstractmethod
    def __copy__(self) -> Self: ...

    def __deepcopy__(self, memo: Any) -> Self:
        return self.__copy__()

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise ModelError(
            "a stepper cannot be pickled, since it holds compiled code and the memory on which that works: send what save() "
            "returns, and restore it in a stepper made there by pf.stepper with the same arguments"
        )

    @abstractmethod
    def reset(
        self, q: Any = None, v: Any = None, *, t: float = 0.0, parameters: Any = None, correct_start: bool = True
    ) -> None:
        """Start again from another state."""

    @property
    def _at(self) -> Current:
        """The current state; that of the default start before the first `reset`."""
        if self._now is None:
            self.reset()
            assert self._now is not None
        return self._now

    @property
    def runs(self) -> int:
        """Number of machines."""
        return self._options.runs or 1

    @property
    def status(self) -> Any:
        """0, or the index in `causes` of the reason why a run stopped."""
        status = self._at.status
        return int(status[0]) if self._options.runs is None else status[: self.runs].copy()
