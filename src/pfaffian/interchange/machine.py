"""What an FMU computes: the Programs of its equations, its start, its faults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError, listed
from pfaffian.kernel.call.recipe import recipe
from pfaffian.kernel.program.numpy_loop import LARGEST
from pfaffian.kernel.program.program import Program
from pfaffian.kernel.text.source import kernel_source
from pfaffian.simulate.record.result import causes_of
from pfaffian.simulate.run.singular_start import REGULAR, entrances
from pfaffian.simulate.run.stepper_start import Options, first_of
from pfaffian.simulate.step.closed_loop import closed_loop
from pfaffian.simulate.step.events import any_of, eventful, events_of
from pfaffian.simulate.step.sampling import compiled_instants, in_python, rates
from pfaffian.simulate.step.simulation import Simulation
from pfaffian.simulate.step.step import FAULTS
from pfaffian.simulate.step.switches import as_switches
from pfaffian.simulate.step.thresholds import compared
from pfaffian.simulate.step.time_loop import compiled, settled
from pfaffian.starts.given_start import start_arguments


class Timing(NamedTuple):
    """Who steps an FMU, and how.

    exchange: whether the importer integrates.   step: length of a step [s].   start: time at the start [s].
    accuracy: of steps under error control, if any.   changes: whether the stiff pair may make some of these.
    clocked: whether clocks of the importer evaluate the law.
    """

    exchange: bool
    step: float
    start: float
    accuracy: float | None
    changes: bool
    clocked: bool


@dataclass(frozen=True, eq=False)
class FMUMachine:
    """A simulation that is to become an FMU.   x, p: (nx,) and (np,) state and parameters at the start."""

    simulation: Simulation
    timing: Timing
    x: np.ndarray
    p: np.ndarray

    @cached_property
    def due(self) -> list[tuple[int, int]]:
        """Period and phase of each sampler, in steps of one length."""
        fixed = self.timing.accuracy is None and not self.timing.exchange
        found = compiled_instants(self.simulation.control, self.timing.step) if fixed else []
        return [(LARGEST, LARGEST - 1)] * len(found) if self.timing.clocked else found

    @cached_property
    def instants(self) -> list[tuple[float, float]]:
        """Period and phase of each sampler [s]."""
        return [(group[0].period, group[0].phase) for group in rates(self.simulation.control)]

    @cached_property
    def loop(self) -> tuple[tuple[Program, ...], tuple[Program, ...]]:
        """The Programs of step, observation and projection, and those of the samplers."""
        rollout = compiled(self.simulation, "numpy", 1, True)
        (project,) = programs_of(self.projection)
        return (rollout.step, rollout.observe, project), rollout.samplers

    @cached_property
    def projection(self) -> ca.Function:
        """(x of the system and z, p, t) -> (x on constraints and manifold, violation)."""
        s = self.simulation
        x, p, t = s.project.sx_in()
        moved, violation = s.project(x, p, t)
        nx = s.system.nx
        return ca.Function("project", [x, p, t], [ca.vertcat(s.system.settled(moved[:nx, 0], t), moved[nx:, 0]), violation])

    @property
    def timed(self) -> bool:
        """Whether the constraints depend on the time."""
        return self.projection.jac_sparsity(0, 2).nnz() > 0

    @cached_property
    def rates(self) -> ca.Function:
        """(x, w, p, t) -> (rates of the state, outputs, event indicators, faults)."""
        return self.results(self.simulation.traced.rhs)

    def results(self, rhs: ca.Function) -> ca.Function:
        """The `rates` by a right-hand side with the results rate, faults, sides and, unless these are not needed, records."""
        x, w, p, t = inputs = rhs.sx_in()
        found = dict(zip(rhs.name_out(), rhs(*inputs), strict=True))
        rate, faults, sides, *_ = names = self.simulation.traced.rhs.name_out()
        outputs = found.get(names[-1], ca.SX(0, 1))
        at = sorted({j for i in range(len(inputs)) for j in rhs.jac_sparsity(rhs.index_out(sides), i).row()})
        indicators = [*[found[sides][j, 0] for j in at], self.thresholds(x, w, p, t)]
        if events := events_of(self.simulation):
            indicators.append(events.at(x, w, p, t).differences)
        results = [ca.densify(y) for y in (found[rate], outputs, ca.vertcat(ca.SX(0, 1), *indicators), found[faults])]
        return ca.Function("rates", [x, w, p, t], results, ["x", "w", "p", "t"], ["rate", "outputs", "sides", "faults"])

    @cached_property
    def thresholds(self) -> ca.Function:
        """(x, w, p, t) -> the differences of the numbers that forces and the law compare: zero where one of them switches."""
        s, m = self.simulation, self.simulation.mechanism
        loop = closed_loop(s, s.system.at())
        here, T, command = loop.here, loop.here.T, loop.command
        switching = ca.vertcat(T.applied, command.u, command.z_dot)
        found = compared(switching, ca.vertcat(T.q, T.v, T.t, loop.z, loop.w)).comparisons
        (differences,) = here.of_state([ca.densify(ca.vertcat(ca.SX(0, 1), *[c.difference for c in found]))])
        return ca.Function("thresholds", [loop.x, loop.w, m.p_symbols, T.t], [differences])

    @cached_property
    def jumps(self) -> ca.Function:
        """(x, w, p, t) -> what the motion changes abruptly: [x; z] after the impacts that are due, the next values of the
        parameters that change, whether an impact is due, which constraints act, flags of `faults.arriving`, and whether a
        condition compares NaN."""
        s, events = self.simulation, events_of(self.simulation)
        assert events is not None
        x, w, p, t = s.traced.rhs.sx_in()
        here, first, now = events.at(x, w, p, t), events.conditions, x[: s.system.nx, 0]
        struck = events.rebound(x, w, p, t) if events.rebound else x[: s.nx - s.layout.size, 0]
        due = any_of(here.states[first : first + events.impacts, 0])
        in_force = s.now(p, x[s.nx - s.layout.size :, 0])
        away = s.arrived(now, now, in_force, t, self.timing.step) if s.arrived else ca.SX(0, 1)
        found = ca.vertcat(struck, here.following, due, here.states[:first, 0], away, any_of(here.undefined))
        return ca.Function("jumps", [x, w, p, t], [ca.densify(found)])

    @property
    def eventful(self) -> bool:
        """Whether the importer's events change what the machine is: parameters, constraints, or velocities by impacts."""
        return self.timing.exchange and eventful(self.simulation)

    @property
    def sides(self) -> int:
        """Number of event indicators."""
        return int(self.rates.size1_out(2)) if self.timing.exchange else 0

    @property
    def faults(self) -> int:
        """Number of faults of the rates."""
        return int(self.rates.size1_out(3)) if self.timing.exchange else 0

    @cached_property
    def patterns(self) -> tuple[ca.Sparsity, ca.Sparsity, ca.Sparsity]:
        """Which rates, outputs and event indicators depend on which of [t; w; p; x], in the order of value references."""
        columns = [[self.rates.jac_sparsity(i, j) for j in (3, 1, 2, 0)] for i in range(3)]
        rate, outputs, sides = (ca.horzcat(*row) for row in columns)
        return rate, outputs, sides

    @cached_property
    def exchanged(self) -> tuple[tuple[Program, ...], tuple[Program, ...]]:
        """The Programs of model exchange: rates with event indicators and faults, outputs, projection, derivatives in a
        direction, their adjoint, and jumps if there are any; and those of the samplers."""
        f, inputs, rhs = self.rates, ["x", "w", "p", "t"], self.simulation.traced.rhs
        forward = f.factory("forward", [*inputs, "fwd:x", "fwd:w"], ["fwd:rate", "fwd:outputs"])
        reverse = f.factory("reverse", [*inputs, "adj:rate", "adj:outputs"], ["adj:x", "adj:w"])
        *needed, _, records = rhs.name_out()  # functions without the others compute less
        derive = self.results(rhs.factory("needed", rhs.name_in(), needed))
        derive = derive.factory("derive", inputs, ["rate", "sides", "faults"])
        observe = rhs.factory("observed", rhs.name_in(), [records])
        observe = ca.Function("observe", rhs.sx_in(), [ca.densify(observe(*rhs.sx_in()))])
        functions = derive, observe, self.projection, dense(forward), dense(reverse), *([self.jumps] if self.eventful else [])
        programs = programs_of(*functions, *self.simulation.traced.samplers)
        return programs[: len(functions)], programs[len(functions) :]

    @property
    def causes(self) -> tuple[str, ...]:
        """The meaning of each status."""
        return causes_of(self.simulation)

    @property
    def first_fault(self) -> int:
        """The status of the first fault of the rates."""
        return 2 + len(FAULTS)


def dense(f: ca.Function) -> ca.Function:
    """The Function with dense inputs and outputs."""
    arguments = [ca.SX.sym(f.name_in(i), f.size1_in(i)) for i in range(f.n_in())]
    results = f.call(arguments, True, False)
    return ca.Function(f.name(), arguments, [ca.densify(ca.reshape(y, -1, 1)) for y in results])


def programs_of(*functions: ca.Function) -> tuple[Program, ...]:
    """The Programs of Functions, with all passes."""
    return recipe(lambda: functions, kernel_source, "numpy", 1, "strict").programs


def machine_of(simulation: Simulation, timing: Timing, given: Mapping[str, Any], seed: int) -> FMUMachine:
    """The FMUMachine of a simulation that starts as `given` by q, v, guess and parameters.

    Raises ModelError: a law in Python, a singular start, several runs, or for model exchange what `refuse_gradual` names.
    Raises RunError: the start cannot be put onto the constraints.
    """
    s, m, start = simulation, simulation.mechanism, timing.start
    if in_python(s.control):
        raise ModelError("fmu: a law in Python cannot run without Python; write it by control.discrete or control.Control")
    if timing.clocked and not s.control.parts:
        raise ModelError("fmu: clocks are the periods of a law in discrete time, and there is none: leave clocks out")
    if timing.exchange:
        refuse_gradual(s)
    arguments = start_arguments(m, given["q"], given["v"], given["parameters"], guess=given["guess"])
    begun, x = first_of(s, Options(timing.step, None, seed, 1, "auto", True), arguments, start, True, "the FMU")
    if (entrances(m, begun, start, "auto") != REGULAR).any():
        raise ModelError("fmu: the start is a singular configuration, which needs a special first step: start beside it")
    if not timing.exchange and timing.accuracy is None:
        x = settled(s, compiled(s, "auto", 1, True), x, np.zeros((1, len(s.w_names))), begun.p, start)
    return FMUMachine(s, timing, x[0], begun.p[0])


def refuse_gradual(s: Simulation) -> None:
    """Raise ModelError if a machine cannot be integrated by others: between its events, all but [q; v] must be constant."""
    if s.system.other_state:
        raise ModelError(
            "fmu: model exchange does not serve a state that takes the place of [q; v]: write kind='co-simulation'"
        )
    events = events_of(s)
    turns = as_switches(s.mechanism, None).names
    stepwise = dict(zip(s.changing.names, events.stepwise if events else (), strict=True))
    if gradual := [name for name in stepwise if not stepwise[name] and name not in turns]:
        raise ModelError(
            f"fmu: model exchange does not serve switches that change gradually: {listed(gradual)}. A run holds them for a "
            "step, and here the importer chooses the steps: let a law integrate them, or write kind='co-simulation'"
        )
