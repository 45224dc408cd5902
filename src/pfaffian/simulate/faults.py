"""What may stop a run, by who raises it: the condition of a fault is its place here, never its text."""

from __future__ import annotations

from itertools import chain
from typing import Literal, NamedTuple

from pfaffian.control.law import Fault

Kind = Literal["law", "servo", "limit", "integrator", "arriving", "sampled", "python"]
"""A field of Faults."""


class Faults(NamedTuple):
    """The faults of a simulation beyond those of the step itself, in the order in which its functions give them.

    law: of the law in continuous time.   servo: chosen forces that cannot hold their motions.   limit: where the state of the
    system ends.   integrator: iterations that did not converge.   arriving: constraints that come on or jump.   sampled: of
    laws in discrete time.   python: of a law in Python, which is raised between the steps.
    """

    law: tuple[Fault, ...] = ()
    servo: tuple[Fault, ...] = ()
    limit: tuple[Fault, ...] = ()
    integrator: tuple[Fault, ...] = ()
    arriving: tuple[Fault, ...] = ()
    sampled: tuple[Fault, ...] = ()
    python: tuple[Fault, ...] = ()

    def listed(self) -> tuple[Fault, ...]:
        """All of them in order."""
        return tuple(chain(*self))

    def place(self, kind: Kind) -> int | None:
        """The place of the first fault of a kind among all of them; None if there is none."""
        index = self._fields.index(kind)
        return sum(map(len, self[:index])) if self[index] else None
