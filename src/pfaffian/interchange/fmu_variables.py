"""The variables of an FMU: names, units, start values and value references, in the order of instance.h."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Literal, NamedTuple

import numpy as np

from pfaffian.interchange.machine import FMUMachine
from pfaffian.model.loop_coordinates import loop_coordinates_of
from pfaffian.model.mechanism import Mechanism, force_unit
from pfaffian.output.folder import unused
from pfaffian.simulate.step.sampling import rates as rates_of_law
from pfaffian.states.signal import Signal

Causality = Literal["independent", "input", "parameter", "output", "local"]


class Variable(NamedTuple):
    """A variable of an FMU.

    reference: its value reference.   unit: "" where it has none.   initial: "exact" with a start value, or "calculated".
    rate_of: value reference of the state whose rate it is.   interval, shift: of a clock [s].
    """

    name: str
    reference: int
    causality: Causality
    unit: str = ""
    variability: str = "continuous"
    initial: str | None = None
    start: float | None = None
    rate_of: int | None = None
    interval: float | None = None
    shift: float = 0.0


class FMUVariables(NamedTuple):
    """The variables of an FMU by what they are; `numbers` counts those of each kind that have value references."""

    time: Variable
    inputs: tuple[Variable, ...]
    parameters: tuple[Variable, ...]
    states: tuple[Variable, ...]
    rates: tuple[Variable, ...]
    outputs: tuple[Variable, ...]
    sides: tuple[Variable, ...]
    clocks: tuple[Variable, ...]

    def listed(self) -> tuple[Variable, ...]:
        """All variables, in the order of the file."""
        return self.time, *chain(*self[1:])


def variables_of(machine: FMUMachine) -> FMUVariables:
    """The variables of a machine."""
    s, m, names, place = machine.simulation, machine.simulation.mechanism, set[str](), iter(range(1, 10**9))

    def named(name: str) -> str:
        """The name in characters that XML can hold, different from all others."""
        return unused("".join(c if c.isprintable() else "?" for c in name) or "unnamed", names)

    time = Variable(named("time"), 0, "independent", "s")
    units = dict(zip(m.u_names, m.u_units, strict=True))
    inputs = [Variable(named(f"input.{n}"), next(place), "input", units.get(n, ""), start=0.0) for n in s.w_names]
    parameters = []
    for p, value in zip(m.parameters, machine.p, strict=True):
        reference = next(place)
        if p.name not in s.changing.names:
            name = named(f"parameter.{p.name}")
            parameters.append(Variable(name, reference, "parameter", p.unit, "tunable", "exact", float(value)))
    states = []
    for (name, unit), value in zip(state_entries(machine), machine.x, strict=True):
        reference = next(place)
        if name:
            kind: Causality = "local" if s.system.other_state or not name.startswith(("q.", "v.")) else "output"
            states.append(Variable(named(name), reference, kind, unit, "continuous", "exact", float(value)))
    rates = [
        Variable(
            named(f"der({x.name})"), next(place), "local", per_second(x.unit), "continuous", "calculated", None, x.reference
        )
        for x in (states if machine.timing.exchange else ())
    ]
    outputs = [
        Variable(name, reference, "output", unit, "continuous", "calculated")
        for entry, unit in output_entries(machine)
        for reference in [next(place)]
        for name in [named(entry)]
        if s.system.other_state or not entry.startswith(("q.", "v."))
    ]
    sides = [Variable(named(f"event.{j}"), next(place), "local", "", "continuous", "calculated") for j in range(machine.sides)]
    clocks = [
        Variable(named(f"clock.{p.title}"), next(place), "input", variability="discrete", interval=p.period, shift=p.phase)
        for p, *_ in (rates_of_law(s.control) if machine.timing.clocked else ())
    ]
    return FMUVariables(time, *map(tuple, (inputs, parameters, states, rates, outputs, sides, clocks)))


def per_second(unit: str) -> str:
    """The unit of the rate of a number with this unit."""
    return f"{unit}/s" if unit and unit != "1" and "/" not in unit else ("1/s" if unit in ("", "1") else f"{unit}^2")


def state_entries(machine: FMUMachine) -> list[tuple[str, str]]:
    """Name and unit of each entry of the state [x; z; d]; those of d have no name."""
    s = machine.simulation
    of_system = [(f"{part.name}.{n}", u) for part in s.system.parts for n, u in zip(part.names, part.units, strict=True)]
    return of_system + [(f"law.{j}", "") for j in range(len(s.z))] + [("", "")] * s.layout.size


def output_entries(machine: FMUMachine) -> list[tuple[str, str]]:
    """Name and unit of each entry of a record."""
    entries = []
    for name, (signal, size) in machine.simulation.signals.items():
        labels = signal.names if signal.dim else [str(j) for j in range(size)] if size > 1 else [""]
        units = entry_units(machine.simulation.mechanism, name, signal, size)
        entries += [(f"{name}.{label}" if label else name, unit) for label, unit in zip(labels, units, strict=True)]
    return entries


def entry_units(m: Mechanism, name: str, signal: Signal, size: int) -> Sequence[str]:
    """The unit of each entry of a signal; "" where it is not known."""
    loops = loop_coordinates_of(m)
    units: dict[str, Sequence[str]] = {
        "per coordinate": m.q_units,
        "per velocity": [force_unit(u) for u in m.v_units] if name == "reaction" else m.v_units,
        "per input": m.u_units,
        "per loop coordinate": loops.units,
        "per loop velocity": loops.v_units,
    }
    found = units.get(signal.unit, ())
    if len(found) == size:
        return found
    plain = "" if signal.unit.startswith("per ") or "unit of" in signal.unit else signal.unit
    return [plain] * size


def free(machine: FMUMachine, variables: FMUVariables) -> np.ndarray:
    """(np,) whether an importer may set a parameter: those that the run itself changes are not variables of the FMU."""
    known, first = {v.reference for v in variables.parameters}, 1 + len(machine.simulation.w_names)
    return np.array([first + j in known for j in range(len(machine.p))], dtype=int)


def dependencies(machine: FMUMachine, variables: FMUVariables) -> dict[int, list[int]]:
    """Value reference of each rate, output and event indicator -> those of time, inputs, parameters and states on which it
    depends; in co-simulation, whose outputs may depend on all of these, of none."""
    if not machine.timing.exchange:
        return {}
    nx, nw, n_p = len(machine.x), len(machine.simulation.w_names), len(machine.p)
    found, first, variable = dict[int, list[int]](), 1 + nw + n_p + nx, {v.reference for v in variables.listed()}
    for pattern in machine.patterns:
        for row, column in zip(*pattern.get_triplet(), strict=True):
            found.setdefault(first + row, []).append(column)
        found |= {first + row: found.get(first + row, []) for row in range(pattern.size1())}
        first += pattern.size1()
    found |= {x.reference: [x.reference] for x in variables.states}
    return {unknown: sorted(variable.intersection(knowns)) for unknown, knowns in found.items() if unknown in variable}
