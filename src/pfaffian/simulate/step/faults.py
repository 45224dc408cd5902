"""The faults that may stop a run, grouped by origin. A fault is identified by its position here, never by its text."""

from __future__ import annotations

from itertools import chain
from typing import Literal, NamedTuple

from pfaffian.control.command import Fault

FaultKind = Literal[
    "law", "servo", "friction", "limit", "turns", "integrator", "arriving", "events", "undefined", "sampled", "python"
]
"""Kind of a fault: a field of Faults."""


class Faults(NamedTuple):
    """The faults of a simulation beyond those of the step itself, in the order of the flags that its functions return.

    law: faults of the law in continuous time.   servo: chosen forces cannot hold their motions.   friction: friction that
    follows loads has no value, or several.   limit: the state of the system reached the end of its domain.   turns: the number
    of turns of a closure became unknown.   integrator: iterations did not converge.   arriving: a constraint became active or
    jumped away from phi = 0.   events: they follow one another without end.   undefined: conditions compared NaN.   sampled:
    faults of laws in discrete time.   python: faults of a law in Python, raised between the steps.
    """

    law: tuple[Fault, ...] = ()
    servo: tuple[Fault, ...] = ()
    friction: tuple[Fault, ...] = ()
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
