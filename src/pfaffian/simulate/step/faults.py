"""The faults that may stop a run, grouped by origin. A fault is identified by its position here, never by its text."""

from __future__ import annotations

from itertools import chain
from typing import Literal, NamedTuple

from pfaffian.control.command import Fault
from pfaffian.dynamics import load_losses
from pfaffian.dynamics.controlforce import fault as servo_fault
from pfaffian.model.loop_coordinates import loop_coordinates_of
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.ranges import Range
from pfaffian.simulate.step import activation
from pfaffian.simulate.step.closed_loop import LawAndSystem
from pfaffian.simulate.step.events import ENDLESS, UNDEFINED, eventful
from pfaffian.simulate.step.integrators import INTEGRATORS
from pfaffian.simulate.step.sampling import in_python
from pfaffian.simulate.step.step import DEFAULT
from pfaffian.terms.loop_joints import uncounted
from pfaffian.terms.terms import has_losses, shared

FaultKind = Literal[
    "law", "servo", "friction", "range", "limit", "turns", "integrator", "arriving", "events", "undefined", "sampled", "python"
]
"""Kind of a fault: a field of Faults."""

PYTHON_FAULT = "the law in Python failed"
"""Meaning of the fault of a law that is a Python function."""


class Faults(NamedTuple):
    """The faults of a simulation beyond those of the step itself, in the order of the flags that its functions return.

    law: faults of the law in continuous time.   servo: chosen forces cannot hold their motions.   friction: friction that
    follows loads has no value, or several.   range: a number of the machine is out of its range, by a parameter that switched.
    limit: the state of the system reached the end of its domain.   turns: the number
    of turns of a closure became unknown.   integrator: iterations did not converge.   arriving: a constraint became active or
    jumped away from phi = 0.   events: they follow one another without end.   undefined: conditions compared NaN.   sampled:
    faults of laws in discrete time.   python: faults of a law in Python, raised between the steps.
    """

    law: tuple[Fault, ...] = ()
    servo: tuple[Fault, ...] = ()
    friction: tuple[Fault, ...] = ()
    range: tuple[Fault, ...] = ()
    limit: tuple[Fault, ...] = ()
    turns: tuple[Fault, ...] = ()
    integrator: tuple[Fault, ...] = ()
    arriving: tuple[Fault, ...] = ()
    events: tuple[Fault, ...] = ()
    undefined: tuple[Fault, ...] = ()
    sampled: tuple[Fault, ...] = ()
    python: tuple[Fault, ...] = ()

    def listed(self) -> tuple[Fault, ...]:
        """All faults, in order."""
        return tuple(chain(*self))

    def place(self, kind: FaultKind) -> int | None:
        """The index of the first fault of a kind among all faults; None if there is none of this kind."""
        index = self._fields.index(kind)
        return sum(map(len, self[:index])) if self[index] else None


def faults_of(s: LawAndSystem) -> Faults:
    """The faults that may stop a simulation, in addition to those of the step itself."""
    servos, ends = s.mechanism.servos, s.system.ends
    return Faults(
        law=s.control.faults,
        servo=(Fault(servo_fault(servos)),) if servos else (),
        friction=tuple(map(Fault, load_losses.meanings(s.mechanism))) if has_losses(s.mechanism) else (),
        range=tuple(Fault(_range_meaning(what, r)) for what, r in s.changing.ranges),
        limit=(Fault(ends),) if ends else (),
        turns=tuple(Fault(_turns_meaning(name)) for name in _open_turns(s.mechanism)),
        integrator=tuple(Fault(meaning) for meaning in INTEGRATORS.named(s.scheme.integrator or DEFAULT).faults),
        arriving=activation.faults(s.mechanism, s.changing.names),
        events=(Fault(ENDLESS),) if eventful(s) else (),
        undefined=(Fault(UNDEFINED),) if eventful(s) else (),
        sampled=tuple(fault for part in s.control.parts for fault in part.faults),
        python=(Fault(PYTHON_FAULT),) if in_python(s.control) else (),
    )


def _open_turns(m: Mechanism) -> tuple[str, ...]:
    """Names of the closures whose number of turns a run may lose, once for each angle."""
    closures = loop_coordinates_of(m).closures
    return tuple(c.name for c in closures for _ in uncounted(shared(m).kinematics, c))


def _range_meaning(what: str, r: Range) -> str:
    """The message of a run that stops because a parameter that switched puts a number of an element out of its range."""
    return f"{what}: {r.what} {r.words}, but a parameter that changed put it out of this range: correct switches="


def _turns_meaning(name: str) -> str:
    """The message of a run that stops because an angle of this closure passed half a turn."""
    return (
        f"the angle of closure {name!r} passed half a turn from the angle near which it is known, as the axes of its loop are "
        "not parallel: cut the loop at another joint; runs, steppers and FMUs for co-simulation count the turns of such angles"
    )
