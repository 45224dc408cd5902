"""What numbers of elements must be, also where a run sets their parameters."""

from __future__ import annotations

from typing import Any, NamedTuple

import casadi as ca

from pfaffian.model.traced_function import untraced

LARGEST_WHOLE = 2.0**53
"""Up to here every whole number is a double of its own."""


class Range(NamedTuple):
    """A number that must not be below zero.

    what: words for it, such as "the radius of the sphere on 'arm'".   x: (1, 1).   above: whether zero is refused too.
    whole: whether it must be a whole number too.   to_one: whether it must not be above one either.
    """

    what: str
    x: ca.SX
    above: bool = False
    whole: bool = False
    to_one: bool = False

    @property
    def words(self) -> str:
        """What it must be."""
        if self.to_one:
            return f"must be {'above 0 and at most 1' if self.above else 'from 0 to 1'}"
        return "must be a whole number from 0" if self.whole else f"must {'be above' if self.above else 'not be below'} zero"

    @property
    def holds(self) -> ca.SX:
        """(1, 1) whether it is so."""
        good = self.x > 0 if self.above else self.x >= 0
        if self.to_one:
            good = ca.logic_and(good, self.x <= 1)
        return ca.logic_and(good, ca.logic_and(self.x <= LARGEST_WHOLE, ca.floor(self.x) == self.x)) if self.whole else good


def ranges_of(element: Any) -> tuple[Range, ...]:
    """The ranges that a force, actuator, constraint or compound states, or its function or record; of those numbers alone
    that depend on parameters."""
    owners = (element, *(untraced(getattr(element, name, None)) for name in ("phi", "value", "function", "of")))
    return tuple(r for owner in owners for r in getattr(owner, "ranges", ()) if not r.x.is_constant())
