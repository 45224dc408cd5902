"""What numbers of elements must be, also where a run sets their parameters."""

from __future__ import annotations

from typing import Any, NamedTuple

import casadi as ca

from pfaffian.model.traced_function import untraced


class Range(NamedTuple):
    """A number that must not be below zero.

    what: words for it, such as "the radius of the sphere on 'arm'".   x: (1, 1).   above: whether zero is refused too.
    """

    what: str
    x: ca.SX
    above: bool = False

    @property
    def words(self) -> str:
        """What it must be."""
        return "must be above zero" if self.above else "must not be below zero"


def ranges_of(element: Any) -> tuple[Range, ...]:
    """The ranges that a force, actuator, constraint or compound states, or its function or record; of those numbers alone
    that depend on parameters."""
    owners = (element, *(untraced(getattr(element, name, None)) for name in ("phi", "value", "function", "of")))
    return tuple(r for owner in owners for r in getattr(owner, "ranges", ()) if not r.x.is_constant())
