"""One instance of an FMU of another tool, started, stepped and read through fmpy."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np

from pfaffian.errors import ModelError, brief, nearest, optional
from pfaffian.formats.fmu.fmu_file import FMU

TOLERANCE = 1e-9
"""Relative tolerance of the integration of an FMU for model exchange between two instants."""

MOST_ROUNDS = 100
"""Most rounds of events at one instant."""

ENDS = "it asks for the end of the simulation"

SETTERS = {"real": ("setReal", "setFloat64", float), "whole": ("setInteger", "setInt32", int),
           "flag": ("setBoolean", "setBoolean", bool)}  # fmt: skip
"""Type of a variable -> names of the calls that set it in FMI 2.0 and 3.0, and of its values in Python."""


class Stepped(Protocol):
    """What moves an instance from one instant to the next [s], while its inputs go from one value to another; and what sets
    its inputs at an instant."""

    def apply(self, inputs: np.ndarray) -> None: ...

    def advance(self, t: float, to: float, begin: np.ndarray, end: np.ndarray) -> None: ...


@dataclass(eq=False)
class RunningFMU:
    """An instance of an FMU.   outputs: value references of those that are read.   messages: its log."""

    fmu: FMU
    calls: Any
    outputs: list[int]
    stepped: Stepped
    messages: list[str]

    def advance(self, t: float, to: float, begin: np.ndarray, end: np.ndarray) -> None:
        """Step from the time t to another [s]. Raises ModelError: the FMU cannot."""
        with self.explained():
            self.stepped.advance(t, to, begin, end)

    def outputs_under(self, inputs: np.ndarray) -> np.ndarray:
        """The outputs under inputs, at the time that was reached. Raises ModelError: the FMU cannot give them."""
        with self.explained():
            self.stepped.apply(inputs)
            get = self.calls.getReal if self.fmu.version == "2.0" else self.calls.getFloat64
            return np.array(get(self.outputs) if self.outputs else [], dtype=float)

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Add what the FMU logged to errors of its calls."""
        try:
            yield
        except Exception as error:
            raise ModelError(f"{error}{last_words(self.messages)}") from None


def set_real(fmu: FMU, calls: Any, references: Sequence[int], values: np.ndarray) -> None:
    """Set variables of an instance."""
    if references:
        (calls.setReal if fmu.version == "2.0" else calls.setFloat64)(list(references), [float(x) for x in values])


def started(
    fmu: FMU, folder: Path, inputs: Sequence[str], outputs: Sequence[str], values: Mapping[str, Any], t: float, w: np.ndarray
) -> RunningFMU:
    """An instance of the FMU that is unpacked in a folder, initialised at the time t [s] with inputs w.

    values: {name: start value} of parameters and variables.
    Raises ModelError: fmpy is not installed, or the FMU refuses what is requested of it, with what it logged.
    """
    messages: list[str] = []
    calls = instantiated(fmu, folder, messages)
    written, read = ([fmu.variables[n].reference for n in names] for names in (inputs, outputs))
    try:
        if fmu.version == "2.0":
            calls.setupExperiment(startTime=t)
        _set_start(fmu, calls, values)
        calls.enterInitializationMode(**({} if fmu.version == "2.0" else {"startTime": t}))
        _set_start(fmu, calls, values)
        set_real(fmu, calls, written, w)
        calls.exitInitializationMode()
        moved = CoSimulated(fmu, calls, written) if fmu.kind == "co-simulation" else Exchanged(fmu, calls, written, t)
    except Exception as error:
        raise ModelError(f"the FMU {brief(fmu.name)} cannot be started: {error}{last_words(messages)}") from None
    return RunningFMU(fmu, calls, read, moved, messages)


def instantiated(fmu: FMU, folder: Path, messages: list[str]) -> Any:
    """The calls of fmpy of a new instance.   messages: to which its log is added. Raises ModelError: there is none."""
    simulation = optional("fmpy.simulation", "fmpy", "FMUs as parts need")

    def log(*words: Any) -> None:
        messages.append(" ".join(w.decode("utf-8", "replace") for w in words[-1:] if isinstance(w, bytes)))

    kind = "CoSimulation" if fmu.kind == "co-simulation" else "ModelExchange"
    of = SimpleNamespace(modelIdentifier=fmu.identifier)
    described = SimpleNamespace(guid=fmu.token, fmiVersion=fmu.version, coSimulation=of, modelExchange=of)
    here = os.getcwd()
    try:
        calls = simulation.instantiate_fmu(str(folder), described, kind, logger=log)
    except Exception as error:
        way = "its binary does not load, or the GUID in its description is not that of its binary: export it again"
        raise ModelError(f"the FMU {brief(fmu.name)} gives no instance: {way} ({error}){last_words(messages)}") from None
    finally:
        os.chdir(here)  # fmpy loads libraries from their folder, and stays there if one fails
    return calls


def last_words(messages: Sequence[str]) -> str:
    """What an FMU logged, as the end of a message."""
    return f"; it says: {brief(messages[-1])}" if messages else ""


def _set_start(fmu: FMU, calls: Any, values: Mapping[str, Any]) -> None:
    """Set start values."""
    for name, value in values.items():
        v = fmu.variables[name]
        two, three, kind = SETTERS[v.type]
        getattr(calls, two if fmu.version == "2.0" else three)([v.reference], [kind(value)])


@dataclass(eq=False)
class CoSimulated:
    """Steps of an FMU for co-simulation, under the mean of its inputs at both ends."""

    fmu: FMU
    calls: Any
    inputs: list[int]

    def apply(self, inputs: np.ndarray) -> None:
        """See Stepped."""
        set_real(self.fmu, self.calls, self.inputs, inputs)

    def advance(self, t: float, to: float, begin: np.ndarray, end: np.ndarray) -> None:
        """See Stepped."""
        self.apply(0.5 * (begin + end))
        flags = self.calls.doStep(currentCommunicationPoint=t, communicationStepSize=to - t)
        if flags and flags[1]:
            raise RuntimeError(ENDS)


class Exchanged:
    """The integration of an FMU for model exchange by CVODE, under inputs that change linearly; FMI allows discrete ones to
    change in event mode alone, which is at the instants."""

    def __init__(self, fmu: FMU, calls: Any, inputs: list[int], t: float) -> None:
        self.fmu, self.calls, self.inputs = fmu, calls, inputs
        self.next_event = np.inf
        discrete = {v.reference for v in fmu.variables.values() if v.variability == "discrete"}
        self.smooth = np.array([r not in discrete for r in inputs], dtype=bool)
        self.settle(enter=False)
        three = fmu.version == "3.0"
        sizes = fmu.states, fmu.indicators
        if three:  # where the description counts arrays, not their entries
            sizes = calls.getNumberOfContinuousStates(), calls.getNumberOfEventIndicators()
        self.course: tuple[float, float, np.ndarray, np.ndarray] | None = None
        self.solver = optional("fmpy.sundials", "fmpy", "FMUs as parts need").CVodeSolver(
            nx=sizes[0], nz=sizes[1], get_x=calls.getContinuousStates, set_x=calls.setContinuousStates,
            get_dx=calls.getContinuousStateDerivatives if three else calls.getDerivatives, get_z=calls.getEventIndicators,
            get_nominals=calls.getNominalsOfContinuousStates, set_time=self.at, input=SimpleNamespace(apply=lambda t: None),
            startTime=t, relativeTolerance=TOLERANCE, maxNumSteps=100_000,
        )  # fmt: skip

    def at(self, t: float) -> None:
        """Tell the FMU the time, and its inputs then."""
        self.calls.setTime(t)
        if self.course:
            begin, end, first, last = self.course
            now = first + (last - first) * ((t - begin) / (end - begin))
            set_real(self.fmu, self.calls, [r for r, s in zip(self.inputs, self.smooth, strict=True) if s], now[self.smooth])

    def apply(self, inputs: np.ndarray) -> None:
        """See Stepped."""
        if not self.smooth.all():
            self.calls.enterEventMode()
        set_real(self.fmu, self.calls, self.inputs, inputs)
        if not self.smooth.all():
            self.settle(enter=False)

    def settle(self, enter: bool = True) -> None:
        """Let events happen until none is left.   enter: whether event mode has to be entered first."""
        if enter:
            self.calls.enterEventMode()
        two = self.fmu.version == "2.0"
        for _ in range(MOST_ROUNDS):
            more, ends, _, _, defined, instant = (self.calls.newDiscreteStates if two else self.calls.updateDiscreteStates)()
            if ends:
                raise RuntimeError(ENDS)
            if not more:
                break
        else:
            raise RuntimeError(f"its events do not end within {MOST_ROUNDS} rounds")
        self.next_event = instant if defined else np.inf
        self.calls.enterContinuousTimeMode()

    def advance(self, t: float, to: float, begin: np.ndarray, end: np.ndarray) -> None:
        """See Stepped."""
        self.course = (t, to, begin, end)
        self.at(t)
        self.solver.reset(t)  # the slope of the inputs is new
        while t < to:
            event = t >= self.next_event
            if not event:
                event, _, t = self.solver.step(t, min(to, self.next_event))
                self.at(t)
                requested, ends = self.calls.completedIntegratorStep() if self.fmu.completes else (False, False)
                if ends:
                    raise RuntimeError(ENDS)
                event = event or requested or t >= self.next_event
            if event:
                self.settle()
                self.solver.reset(t)


def check_start(fmu: FMU, values: Mapping[str, Any] | None) -> dict[str, Any]:
    """The start values of an FMU. Raises ModelError: an unknown name, a variable of another type, or no number."""
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        raise ModelError(f"FMU {brief(fmu.name)}: start_values: {{name: number}} is needed, got {brief(values)}")
    for name, value in values.items():
        if name not in fmu.variables:
            raise ModelError(f"FMU {brief(fmu.name)}: it has no variable {brief(name)}; {nearest(name, list(fmu.variables))}")
        if fmu.variables[name].type not in SETTERS or fmu.variables[name].array:
            raise ModelError(f"FMU {brief(fmu.name)}: {name!r} is no single number or flag, and cannot be set")
        if not isinstance(value, (bool, int, float, np.generic)) or not np.isfinite(value):
            raise ModelError(f"FMU {brief(fmu.name)}: start value of {name!r}: a finite number is needed, got {brief(value)}")
    return dict(values)
