"""The C text of an FMU: its tables, the Programs of its equations, and the functions of FMI 2.0 or 3.0."""

from __future__ import annotations

import numpy as np

from pfaffian import sources
from pfaffian.interchange.accurate_step import accurate_programs, accurate_tables
from pfaffian.interchange.c_tables import c_string, exact, table
from pfaffian.interchange.fmu_variables import FMUVariables, free
from pfaffian.interchange.machine import FMUMachine
from pfaffian.kernel.text.source import PART_SIZE, file_text, source_of
from pfaffian.kernel.text.units import units_of
from pfaffian.simulate.record.result import status_of
from pfaffian.simulate.step.events import EPS, MOST_AT_ONCE, events_of
from pfaffian.simulate.step.faults import FaultKind
from pfaffian.simulate.step.lane import lane_of

MOST_VIOLATION = 1e-8
"""Largest residual of the constraints after start values of the importer were put onto them, as the tolerance of starts."""

MOST_DRIFT = 1e-10
"""Largest distance of a state from the constraints, relative to 1 plus its entries, at which an importer may go on."""

AHEAD = 1e-7
"""Time after an event that tells what follows it, relative to the proposed length of steps: long enough that the motion passes
what is compared."""

EVENT_FAULTS: tuple[FaultKind, ...] = ("arriving", "events", "undefined")
"""Faults that events of model exchange may raise."""


def tables(machine: FMUMachine, variables: FMUVariables) -> str:
    """The numbers and names that the functions of FMI read."""
    s, timing = machine.simulation, machine.timing
    counts = {
        "N_U": len(s.w_names), "N_P": len(machine.p), "N_X": len(machine.x), "N_RATE": len(variables.rates),
        "N_Y": s.width, "N_SIDE": machine.sides, "N_FAULT": machine.faults, "FIRST_FAULT": machine.first_fault,
        "FIRST_SAMPLED": status_of(s, "sampled"), "N_PARTS": len(machine.instants), "CLOCKED": int(timing.clocked),
        "TIME_EVENTS": int(timing.exchange and not timing.clocked), "TIMED": int(machine.timed),
        "LANE": 0 if timing.accuracy is None else lane_of(s).size, "N_SWITCHED": len(s.changing.at) if machine.eventful else 0,
    }  # fmt: skip
    return "\n".join([
        f"#define MODEL_EXCHANGE {int(timing.exchange)}",
        event_tables(machine),
        "enum { " + ", ".join(f"{name} = {n}" for name, n in counts.items()) + " };",
        f"static const double T_START = {float(timing.start).hex()}, STEP_LENGTH = {float(timing.step).hex()};",
        f"static const double LIMIT = {s.system.limit.hex()}, MOST_VIOLATION = {MOST_VIOLATION.hex()};",
        f"static const double MOST_DRIFT = {MOST_DRIFT.hex()};",
        table("double", "U_START", exact(np.zeros(len(s.w_names)))),
        table("double", "P_START", exact(machine.p)),
        table("double", "X_START", exact(machine.x)),
        table("int", "P_FREE", map(str, free(machine, variables))),
        table("int64_t", "SAMPLING", [str(n) for pair in machine.due for n in pair]),
        table("double", "PERIOD", exact(np.array([period for period, _ in machine.instants]))),
        table("double", "PHASE", exact(np.array([phase for _, phase in machine.instants]))),
        table("char *const", "CAUSES", map(c_string, machine.causes)),
        "",
    ])  # fmt: skip


def event_tables(machine: FMUMachine) -> str:
    """The numbers of events in model exchange, if there are any."""
    s, events = machine.simulation, events_of(machine.simulation) if machine.eventful else None
    if events is None:
        return "#define EVENTFUL 0\nenum { MOST_AT_ONCE, EVENTS_FAULT };"
    counts = {
        "SWITCHED_AT": len(machine.x) - s.layout.size + range(s.layout.size)[s.layout.switched].start,
        "N_CONDITIONS": events.conditions, "N_ARRIVING": len(s.faults.arriving), "MOST_AT_ONCE": MOST_AT_ONCE,
        **{f"{kind.upper()}_FAULT": status_of(s, kind) for kind in EVENT_FAULTS},
    }  # fmt: skip
    return "\n".join([
        "#define EVENTFUL 1",
        "enum { " + ", ".join(f"{name} = {n}" for name, n in counts.items()) + " };",
        f"static const double AHEAD = {AHEAD.hex()}, EPS = {EPS.hex()};",
        table("int", "SWITCHED", map(str, s.changing.at)),
        table("int", "STEPWISE", [str(int(one)) for one in events.stepwise]),
    ])  # fmt: skip


def sources_of(machine: FMUMachine, variables: FMUVariables, version: str) -> list[str]:
    """The C texts of the units of an FMU; the first has the functions of FMI, and needs the macro TOKEN before it."""
    loop, numbers = "", tables(machine, variables)
    if machine.timing.exchange:
        kind, (programs, samplers) = "model_exchange", machine.exchanged
        names: tuple[str, ...] = ("DERIVE", "OBSERVE", "PROJECT", "TANGENT", "ADJOINT", *(["JUMP"] if machine.eventful else []))
    elif machine.timing.accuracy is None:
        kind, loop, names = "co_simulation", file_text("rollout.h"), ("STEP", "OBSERVE", "PROJECT")
        programs, samplers = machine.loop
    else:
        kind, numbers = "accurate", numbers + accurate_tables(machine)
        programs, names, samplers = accurate_programs(machine)
    files = [sources.read(f"interchange/{name}.h") for name in ("instance", "law_parts", kind, f"fmi{version[0]}")]
    driver = "\n".join([loop, numbers, *files])
    text = source_of(programs, names, driver, 1, PART_SIZE, samplers, most=1, table=False).text
    units = units_of(text)
    return [f"#define UNIT\n{unit}" for unit in units] if len(units) > 1 else units
