"""A reduced state with more entries: quantities that follow from it, and are kept or integrated by themselves.

Computed from the state, such a quantity is only as exact as the state is. As an entry it has a rate of its own, and after each
step the rest of the state is corrected to agree with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, final

import casadi as ca
import numpy as np

from pfaffian.dynamics.motion import Motion
from pfaffian.states.abstract_system import AbstractSystem, StatePart
from pfaffian.states.reduced_state import ReducedState
from pfaffian.terms.terms import Terms


class AddedEntries(Protocol):
    """What the entries y of a state [x; y] are.

    key: text that distinguishes them.   of: y at the Terms T, where the state is x.   rate: y_dot.
    corrected: [x; y] with x corrected to agree with y.   signals, inertia: those of the system with these entries' own.
    check: raises ModelError if parameters (runs, np) contradict what was found near the defaults.
    """

    @property
    def key(self) -> str: ...

    def of(self, T: Terms, x: ca.SX) -> ca.SX: ...

    def rate(self, T: Terms) -> ca.SX: ...

    def corrected(self, x: ca.SX, y: ca.SX, t: ca.SX) -> ca.SX: ...

    def signals(self, T: Terms, y: ca.SX, signals: dict[str, ca.SX]) -> dict[str, ca.SX]: ...

    def inertia(self, T: Terms, inertia: ca.SX) -> ca.SX: ...

    def check(self, p: np.ndarray) -> None: ...


@final
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ExtendedState(AbstractSystem):
    """[x; y]: the state x of the system `within`, and the entries `added` to it."""

    within: AnyReduced
    added: AddedEntries
    name: str = ReducedState.name

    def enter(self, T: Terms) -> ca.SX:
        """[x; y]."""
        x = ca.SX(self.within.enter(T))
        return ca.vertcat(x, self.added.of(T, x))

    def show(self, x: ca.SX, t: ca.SX) -> tuple[ca.SX, ca.SX]:
        """(q, v) of x."""
        return self.within.show(self.split(x)[0], t)

    def rate(self, T: Terms, motion: Motion, x: ca.SX) -> ca.SX:
        """[x_dot; y_dot]."""
        return ca.vertcat(self.within.rate(T, motion, self.split(x)[0]), self.added.rate(T))

    def project(self, x: ca.SX, t: ca.SX) -> ca.SX:
        """[x; y] with x corrected to agree with y."""
        return self.added.corrected(*self.split(x), t)

    def inside(self, x: ca.SX, t: ca.SX) -> ca.SX:
        """That of the system within."""
        return self.within.inside(self.split(x)[0], t)

    def signals(self, T: Terms, motion: Motion, x: ca.SX) -> dict[str, ca.SX]:
        """Those of the system within, and of the entries."""
        x, y = self.split(x)
        return self.added.signals(T, y, self.within.signals(T, motion, x))

    def inertia(self, T: Terms) -> ca.SX:
        """(k, 1) that of the system within, and of the entries."""
        return self.added.inertia(T, self.within.inertia(T))

    def check(self, p: np.ndarray) -> None:
        """Raise ModelError if parameters p (runs, np) contradict what was found near the defaults."""
        self.within.check(p)
        self.added.check(p)

    def identity(self) -> str:
        """That of the system within, and the entries."""
        return f"{self.within.key} {self.added.key}"

    def changed(self) -> bool:
        """That of the system within."""
        return self.within.changed()

    def split(self, x: ca.SX) -> tuple[ca.SX, ca.SX]:
        """The state x of the system within, and y."""
        return x[: self.within.nx, 0], x[self.within.nx :, 0]


AnyReduced = ReducedState | ExtendedState
"""The systems to whose state entries are added."""


def extended(
    within: AnyReduced, part: StatePart, added: AddedEntries, words: str, named: tuple[StatePart, ...] | None = None
) -> ExtendedState:
    """The system `within` with one more part of its state.

    words: what the part is.   named: labels of the signals; those of the system if None. Entries with signals of their own are
    momenta without reactions, which the correction onto the constraints leaves unchanged.
    """
    more = range(within.nx, within.nx + len(part.names)) if named is not None else ()
    return ExtendedState(
        within=within,
        added=added,
        mechanism=within.mechanism,
        parts=(*within.parts, part),
        named=within.named if named is None else named,
        about=(*within.about, words),
        ends=within.ends,
        holds=within.holds,
        uncorrected=(*within.uncorrected, *more),
    )
