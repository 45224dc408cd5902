"""Parameters that change during a run: modes that latch, and the constraints, forces and laws that switch with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.dynamics.motion import Motion
from pfaffian.errors import ModelError, brief, nearest
from pfaffian.model.constraint import Closure
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.number import column
from pfaffian.model.ranges import Range
from pfaffian.model.unphysical import body_ranges, element_ranges
from pfaffian.model.user_functions import call_for_column, call_for_value
from pfaffian.simulate.step.signals import MotionOutput, OutputFunction, output_digest
from pfaffian.terms.equations_digest import of_function
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.loop_joints import counters
from pfaffian.terms.terms import Terms, shared, symbols

Next = OutputFunction
"""Function that returns the next value of a parameter, from the kinematics or, by `of_motion`, from terms and motion."""


@dataclass(frozen=True, eq=False)
class Switches:
    """The parameters that a run changes.   next: (name, function that returns the next value, perhaps from the current one)."""

    m: Mechanism
    next: tuple[tuple[str, Next], ...] = ()

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.next)

    @cached_property
    def visible(self) -> tuple[str, ...]:
        """Names of the parameters that callers see: all but those that count the turns of closures."""
        known = {p.name for p in self.m.given_parameters}
        return tuple(name for name in self.names if name in known)

    @cached_property
    def at(self) -> list[int]:
        """Indices of the parameters in p."""
        return [self.m.p_names.index(name) for name in self.names]

    @property
    def digests(self) -> list[tuple[str, str]]:
        """Name and digest of each function."""
        return [(name, _digest(name, f, self.m)) for name, f in self.next]

    @cached_property
    def ranges(self) -> list[tuple[str, Range]]:
        """The ranges of the numbers that change with the visible parameters, each with the words for its element."""
        if not self.visible:
            return []
        symbols = ca.vertcat(*[self.m.p_symbols[i] for i in self.at])
        return [(what, r) for what, r in (*element_ranges(self.m), *body_ranges(self.m)) if ca.depends_on(r.x, symbols)]

    def now(self, p: ca.SX, values: ca.SX) -> ca.SX:
        """p (np, 1) with the current values (len, 1) of the switched parameters."""
        p = ca.SX(p)
        p[self.at, 0] = values
        return p

    def put(self, p: np.ndarray, values: np.ndarray) -> np.ndarray:
        """A copy of the numbers p (..., np) with the current values (..., len) of the switched parameters."""
        p = p.copy()
        p[..., self.at] = values
        return p

    def following(self, T: Terms, motion: Callable[[], tuple[Terms, Motion]]) -> ca.SX:
        """(len, 1) the next values.   motion: called for the Terms under all inputs and the motion, if a function needs it."""
        at = motion() if any(isinstance(f, MotionOutput) for _, f in self.next) else (T, None)
        return ca.vertcat(ca.SX(0, 1), *[self._next(name, f, *at) for name, f in self.next])

    def _next(self, name: str, f: Next, T: Terms, motion: Motion | None) -> ca.SX:
        """(1, 1) the next value of a parameter.   motion: needed by `of_motion` only."""
        what = f"switch {name!r}"
        if isinstance(f, MotionOutput):
            value = column(call_for_value(f.column, what, T, motion), what)
        else:
            value = call_for_column(f, what, T.kinematics)
        if value.numel() != 1:
            raise ModelError(f"switch {name!r}: one number is needed, its function gives {value.numel()}")
        return value


def _digest(name: str, f: Next, m: Mechanism) -> str:
    """Digest of a function in `next`."""
    if isinstance(f, MotionOutput):
        return output_digest(name, f, m)
    return of_function(f, f"switch {name!r}", symbols(m).kinematics)


def as_switches(m: Mechanism, given: Any) -> Switches:
    """The Switches of a caller's {name of a parameter: function}, and of parameters that count the turns of closures.

    Raises ModelError: it is not one, or a name is unknown.
    """
    closures = {name: c for name, c in m.loop_joints.items() if c.near is not None or c.counted is not None}
    counting = {name: partial(_counted, c, name) for c in closures.values() for name in counters(shared(m).kinematics, c)}
    given = {} if given is None else given
    if not isinstance(given, Mapping):
        raise ModelError(f"switches: {{name of a parameter: function of the kinematics}} is needed, got {brief(given)}")
    for name, f in given.items():
        if name not in m.p_names:
            raise ModelError(f"switches: the mechanism has no parameter {brief(name)}; {nearest(name, m.p_names)}")
        if not callable(f) and not isinstance(f, MotionOutput):
            raise ModelError(f"switches: {name!r}: a function of the kinematics or of_motion(...) is needed, got {brief(f)}")
    return Switches(m, tuple({**counting, **given}.items()))


def _counted(c: Closure, name: str, k: Kinematics) -> ca.SX:
    """(1, 1) the next value of a parameter that counts the turns of a closure."""
    return counters(k, c)[name]
