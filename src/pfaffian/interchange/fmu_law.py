"""`fmu_law`: an FMU of another tool as a part of a machine, whose outputs drive actuators."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.control.command import Command
from pfaffian.control.discrete_laws import Sensor, of_parts, sensing, sensor, timing
from pfaffian.control.law import Control
from pfaffian.control.law_part import HOLDS, LawPart, Sample
from pfaffian.errors import ModelError, brief, is_one_of, nearest, optional
from pfaffian.formats.fmu.fmu_contents import unpack
from pfaffian.formats.fmu.fmu_file import FMU
from pfaffian.interchange.running_fmu import RunningFMU, check_start, started
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.number import named_float
from pfaffian.simulate.step.signals import RESERVED, STANDARD


class Driven(NamedTuple):
    """An output of an FMU that drives an actuator.   factor: by which it is multiplied."""

    output: str
    actuator: str
    factor: float


@dataclass(frozen=True, eq=False)
class FMUCalls:
    """An FMU as runs call it.

    inputs: {name of its input: number, or name of the signal that it reads}.   driven: what its outputs drive.
    recorded: names of outputs that are recorded.   values: start values.   hold: as in `fmu_law`.
    """

    fmu: FMU
    inputs: Mapping[str, float | str]
    driven: tuple[Driven, ...]
    recorded: tuple[str, ...]
    values: Mapping[str, Any]
    hold: str

    def __repr__(self) -> str:
        return f"<the FMU {brief(self.fmu.name)}>"

    @cached_property
    def folder(self) -> Path:
        """The folder with the unpacked FMU, which lasts as long as these calls."""
        folder = Path(tempfile.mkdtemp(prefix="pfaffian-fmu-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        unpack(self.fmu.file, folder)
        return folder

    @property
    def outputs(self) -> list[str]:
        """Names of the outputs that are read, each once."""
        return list(dict.fromkeys([d.output for d in self.driven] + list(self.recorded)))

    def __call__(self, m: Mechanism, runs: int) -> Callable[..., np.ndarray]:
        """What a law in Python returns at each instant of new runs of a mechanism, by an instance for each of them.

        Raises ModelError: fmpy is not installed, or the FMU allows one instance only.
        """
        optional("fmpy", "fmpy", "FMUs as parts need")
        if self.fmu.single and runs > 1:
            raise ModelError(
                f"the FMU {brief(self.fmu.name)} allows one instance only, and there are {runs} runs: run them one by one"
            )
        if self.fmu.single and any(of.calls.fmu.file == self.fmu.file for of in ALIVE):
            raise ModelError(f"the FMU {brief(self.fmu.name)} allows one instance only, and another run has it")
        return FMURuns(self, m, runs).answer

    def check(self, m: Mechanism) -> None:
        """Raise ModelError: the mechanism lacks an actuator that an output drives."""
        for d in self.driven:
            if d.actuator not in m.u_names:
                raise ModelError(f"fmu_law: {m.name!r} has no actuator {brief(d.actuator)}; {nearest(d.actuator, m.u_names)}")


ALIVE: weakref.WeakSet[FMURuns] = weakref.WeakSet()
"""The runs that have instances of FMUs."""


class FMURuns:
    """The instances of an FMU in a batch of runs."""

    def __init__(self, calls: FMUCalls, m: Mechanism, runs: int) -> None:
        self.calls, self.runs = calls, runs
        self.instances: list[RunningFMU] = []
        self.t, self.w = 0.0, np.zeros((runs, len(calls.inputs)))
        ALIVE.add(self)
        weakref.finalize(self, _free, self.instances)
        outputs = calls.outputs
        self.gain = np.zeros((m.nu, len(outputs)))
        for d in calls.driven:
            self.gain[m.u_names.index(d.actuator), outputs.index(d.output)] += d.factor
        self.recorded = [outputs.index(name) for name in calls.recorded]

    def answer(self, t: float, q: np.ndarray, v: np.ndarray, measured: Mapping[str, np.ndarray]) -> np.ndarray:
        """(runs, nu + recorded) inputs of the machine and recorded outputs at the time t [s]; without runs for a single one."""
        w = np.empty((self.runs, len(self.calls.inputs)))
        for j, value in enumerate(self.calls.inputs.values()):
            if isinstance(value, str) and value not in measured:
                raise ModelError(f"no law before it has a signal {value!r}; {nearest(value, list(measured))}")
            w[:, j] = np.reshape(measured[value], self.runs) if isinstance(value, str) else value
        if not self.instances:
            self._start(t, w)
        elif t > self.t:
            end = w if self.calls.hold == "first" else self.w
            for i, instance in enumerate(self.instances):
                instance.advance(self.t, t, self.w[i], end[i])
        y = np.array([instance.outputs_under(w[i]) for i, instance in enumerate(self.instances)])
        self.t, self.w = t, w
        answer = np.concatenate([y @ self.gain.T, y[:, self.recorded]], axis=1)
        return answer[0] if self.runs == 1 else answer

    def _start(self, t: float, w: np.ndarray) -> None:
        """Start an instance for each run."""
        c = self.calls
        for i in range(self.runs):
            self.instances.append(started(c.fmu, c.folder, list(c.inputs), c.outputs, c.values, t, w[i]))


def _free(instances: list[RunningFMU]) -> None:
    """Free instances."""
    while instances:
        instances.pop().calls.freeInstance()


def fmu_law(
    fmu: FMU,
    period: float,
    *,
    inputs: Mapping[str, Any] | None = None,
    outputs: Mapping[str, Any] | None = None,
    record: Iterable[str] = (),
    start_values: Mapping[str, Any] | None = None,
    hold: Literal["zero", "first"] = "zero",
) -> Control:
    """An FMU as a part of a machine: it reads measured signals and drives actuators, such as a motor, a hydraulic circuit, a
    driver or a controller that another tool exported. Pass it to a run as `control`.

    At each instant t_k = start of the run + k period the machine has moved under the outputs that the FMU gave before. The
    FMU then makes the step from t_k-1 to t_k, by its own solver in co-simulation, by CVODE to a relative tolerance of 1e-9
    in model exchange. What it gives at t_k acts on the machine until the next instant. A run to an accuracy ends a step at
    each instant. The error of that exchange is part of `error` in the result, from a second run with half the period and
    instances of its own; it is nan, with a warning, where the FMU allows one instance only. Each run begins with new
    instances.

    Args:
        fmu: what `pf.read("motor.fmu", run_binary=True)` returns.
        period: communication step [s], a whole number of steps of the run.
        inputs: {its input: function of the Kinematics that gives a number, a `control.sensor`, the name of a signal of a law
            before it in `control.several`, or a number}; inputs that are not named keep their start values.
        outputs: {its output: name of the actuator that it drives, or (name, factor)}.
        record: names of its outputs that the result contains as signals; an input or output whose name results have already,
            such as u, is called "motor.u" there, after the modelIdentifier of the FMU.
        start_values: {name: number or flag} of its parameters and variables before it starts.
        hold: "zero" (default): machine and FMU hold what they got from each other for a period, as laws in discrete time do;
            the error is of order 1. "first": the machine extrapolates linearly what the FMU gave, and the FMU, which comes
            later, makes its step under the mean of its inputs at both ends, or in model exchange under inputs that change
            linearly; the error is of order 2.
    Returns:
        Control. `control.several(...)` combines it with laws in continuous or in discrete time, if it comes last.
    Stops a run: the FMU reports an error or asks for the end, which stops all runs; `reason` in the result says what it
    logged.
    Raises ModelError: the binary may not run; an unknown variable or actuator, or one of another kind; an argument of another
    kind or out of its range. A run raises it where fmpy is not installed.

    Example:
        A mass on a spring as an FMU, which is pulled by a cart and pulls it back:

        >>> import tempfile
        >>> import pfaffian as pf
        >>> rail = pf.joint("x", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> m = pf.mechanism("cart", [pf.body("cart", mass=2.0)], [rail], actuators=[pf.actuator("push", "x")])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     other = pf.read(pf.fmu(m, f"{folder}/other.fmu", step=0.01).file, run_binary=True)
        ...     inputs, outputs = {"input.push": lambda k: 100 * k.q[0]}, {"q.x": ("push", 100)}
        ...     law = pf.bridges.fmu_law(other, 0.01, inputs=inputs, outputs=outputs)
        >>> law
        <Control: in discrete time, input.push every 0.01 s, law every 0.01 s>
    """
    if not isinstance(fmu, FMU):
        raise ModelError(f"fmu_law: an FMU is needed, which pf.read(path, run_binary=True) returns, got {brief(fmu)}")
    if not fmu.run_binary:
        raise ModelError(
            f"fmu_law: the binary of the FMU {brief(fmu.name)} may not run: pf.read(path, run_binary=True) allows it, with all "
            "rights of this process; do so for FMUs of people whom you trust"
        )
    period, _ = timing(period, 0.0, "fmu_law")
    if not is_one_of(hold, HOLDS):
        raise ModelError(f"fmu_law: hold {brief(hold)} is unknown; one of {', '.join(HOLDS)}")
    read, sensors = _inputs(fmu, inputs)
    recorded = tuple(_known(fmu, name, "output") for name in record)
    calls = FMUCalls(fmu, read, _driven(fmu, outputs), recorded, check_start(fmu, start_values), hold)
    units = {_signal(fmu, name): fmu.variables[name].unit for name in recorded if fmu.variables[name].unit}

    def answer(s: Sample) -> Command:
        calls.check(s.terms.mechanism)
        return Command(ca.SX.zeros(s.terms.mechanism.nu, 1), signals={_signal(fmu, name): ca.SX.zeros(1) for name in recorded})

    part = LawPart("law", answer, period, python=calls, begins=True, measures=True, hold=hold, units=units)
    return of_parts([*(sensing(name, s, part) for name, s in sensors.items()), part])


def _signal(fmu: FMU, name: str) -> str:
    """The name in a result of an input or output: its own, or with that of the FMU before it where results have it already."""
    return f"{fmu.identifier}.{name}" if name in STANDARD | RESERVED else name


def _inputs(fmu: FMU, given: Mapping[str, Any] | None) -> tuple[dict[str, float | str], dict[str, Sensor]]:
    """The inputs of an FMU that are written: their numbers or the signals that they read; and the sensors of these."""
    read, sensors = dict[str, float | str](), dict[str, Sensor]()
    for name, value in _mapping(fmu, given, "inputs", "{name: function, sensor, signal or number}").items():
        _known(fmu, name, "input")
        if isinstance(value, str):
            read[name] = value
        elif isinstance(value, Sensor) or callable(value):
            read[name] = signal = _signal(fmu, name)
            sensors[signal] = value if isinstance(value, Sensor) else sensor(value, unit=fmu.variables[name].unit)
        else:
            read[name] = named_float(value, f"fmu_law: input {name!r} of {brief(fmu.name)}")
    return read, sensors


def _driven(fmu: FMU, given: Mapping[str, Any] | None) -> tuple[Driven, ...]:
    """What the outputs of an FMU drive."""
    found = []
    for name, value in _mapping(fmu, given, "outputs", "{name: actuator or (actuator, factor)}").items():
        _known(fmu, name, "output")
        actuator, factor = value if isinstance(value, tuple) and len(value) == 2 else (value, 1.0)
        if not isinstance(actuator, str):
            raise ModelError(f"fmu_law: {name!r}: the name of an actuator is needed, or (name, factor), got {brief(value)}")
        found.append(Driven(name, actuator, named_float(factor, f"fmu_law: factor of {name!r}")))
    return tuple(found)


def _mapping(fmu: FMU, given: Any, what: str, form: str) -> Mapping[str, Any]:
    """The argument as a mapping. Raises ModelError: it is none."""
    if given is not None and not isinstance(given, Mapping):
        raise ModelError(f"fmu_law: {what} of {brief(fmu.name)}: {form} is needed, got {brief(given)}")
    return given or {}


def _known(fmu: FMU, name: Any, causality: str) -> str:
    """The name of an input or output. Raises ModelError: the FMU has no such number."""
    names = fmu.named(causality)
    if not is_one_of(name, names):
        has = nearest(name, names) if names else f"it has no {causality}s that are numbers"
        raise ModelError(f"fmu_law: {brief(fmu.name)} has no {causality} {brief(name)}; {has}")
    return name
