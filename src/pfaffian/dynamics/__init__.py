"""Formulations: each maps the same Terms to the same Motion."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pfaffian.dynamics import articulated, gauss, multipliers, nullspace, projection
from pfaffian.dynamics.motion import Motion
from pfaffian.errors import ModelError
from pfaffian.terms.terms import Terms

FORMULATIONS: dict[str, Callable[[Terms], Motion]] = {
    "gauss": gauss.motion,
    "multipliers": multipliers.motion,
    "nullspace": nullspace.motion,
    "projection": projection.motion,
    "projection-symmetric": partial(projection.motion, variant="symmetric"),
    "projection-tuned": partial(projection.motion, variant="tuned"),
    "articulated": articulated.motion,
}


def formulation(name: str, terms: Terms) -> Callable[[Terms], Motion]:
    """The formulation of that name; "auto" takes articulated bodies for a tree and gauss for all else.

    Raises ModelError: the name is unknown.
    """
    if name == "auto":
        return articulated.motion if not terms.mechanism.constraints else gauss.motion
    if name not in FORMULATIONS:
        raise ModelError(f"formulation {name!r} is unknown; one of auto, {', '.join(FORMULATIONS)}")
    return FORMULATIONS[name]
