"""Steps under error control inside an FMU: the Programs and numbers that `accurate.h` reads."""

from __future__ import annotations

from dataclasses import replace

from pfaffian.interchange.c_tables import exact, table
from pfaffian.interchange.machine import FMUMachine, programs_of
from pfaffian.kernel.program.program import Program
from pfaffian.simulate.record.result import status_of
from pfaffian.simulate.run.controlled import first_tolerance
from pfaffian.simulate.step.attempt import attempt, beginning
from pfaffian.simulate.step.integrators import STIFF_PAIR
from pfaffian.simulate.step.lane import SAME, lane_of, lane_samplers
from pfaffian.simulate.step.pairs import ATTEMPTS
from pfaffian.simulate.step.time_marks import time_marks

MARKED = 3600.0
"""Time after the start within which instants are known at which forces and references change abruptly with time [s]."""


def accurate_programs(machine: FMUMachine) -> tuple[tuple[Program, ...], tuple[str, ...], tuple[Program, ...]]:
    """The Programs of steps under error control, the observation, the projection and the begin of a lane, their names in C, and
    the Programs of the samplers: of lanes, or with clocks of the state alone."""
    s = machine.simulation
    steps = {"ATTEMPT": attempt(s)[0]}
    if machine.timing.changes:
        steps["STIFF"] = attempt(replace(s, scheme=replace(s.scheme, integrator=STIFF_PAIR)))[0]
    others = {"OBSERVE": s.traced.observe, "PROJECT": machine.projection, "BEGIN": beginning(s, machine.timing.changes)}
    functions = steps | others
    programs = programs_of(*functions.values(), *(s.traced.samplers if machine.timing.clocked else lane_samplers(s)))
    return programs[: len(functions)], tuple(functions), programs[len(functions) :]


def accurate_tables(machine: FMUMachine) -> str:
    """C text of the numbers of a lane, and of the instants at which equations change abruptly."""
    s, at = machine.simulation, lane_of(machine.simulation)
    marks = time_marks(s, machine.p[None], machine.timing.start, machine.timing.start + MARKED) - machine.timing.start
    marks = marks[marks <= MARKED]
    places = {
        "IN_X": at.x.stop, "TIME": at.time, "IMPLICIT": at.implicit, "DISCRETE": at.discrete.start, "STEPPED": at.stepped,
        "SAMPLED": at.sampled, "MOVING": at.moving,
        "BEGIN_TIME": at.begin, "END": at.end, "TOLERANCE": at.tolerance,
        "LONGEST": at.longest, "N_MARKS": len(marks), "MOST_TRIED": ATTEMPTS, "TOO_MANY": status_of(s, "integrator"),
    }  # fmt: skip
    assert machine.timing.accuracy is not None
    return "\n".join([
        "enum { " + ", ".join(f"{name} = {n}" for name, n in places.items()) + " };",
        f"static const double STEP_TOLERANCE = {first_tolerance(machine.timing.accuracy).hex()}, SAME = {SAME.hex()};",
        table("double", "MARKS", exact(marks)),
        "" if machine.timing.changes else "#define STIFF ATTEMPT",
        "",
    ])  # fmt: skip
