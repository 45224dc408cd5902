"""Formulations: each maps the same Terms to the same Motion."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pfaffian.dynamics import articulated, controlforce, gauss, multipliers, nullspace, projection, quasivelocity
from pfaffian.dynamics.motion import Motion
from pfaffian.errors import ModelError
from pfaffian.terms.terms import Terms

FORMULATIONS: dict[str, Callable[[Terms], Motion]] = {
    "gauss": gauss.motion,
    "momentum": gauss.by_momenta,
    "multipliers": multipliers.motion,
    "nullspace": nullspace.motion,
    "projection": projection.motion,
    "projection-symmetric": partial(projection.motion, variant="symmetric"),
    "projection-tuned": partial(projection.motion, variant="tuned"),
    "quasi-velocity": quasivelocity.motion,
    "quasi-velocity-symmetric": partial(quasivelocity.motion, factor="symmetric"),
    "quasi-velocity-innovations": partial(quasivelocity.motion, factor="innovations"),
    "control-force": controlforce.motion,
    "articulated": articulated.motion,
}
"""Name -> function of Terms that gives the Motion: v_dot, reaction and rank."""

MIXING = ("multipliers", "projection", "projection-symmetric", "quasi-velocity-symmetric")
"""Formulations that add up inertias of all directions: with one 1e-12 of the others they lose its digits, or the rank."""


def formulation(name: str, terms: Terms) -> Callable[[Terms], Motion]:
    """The formulation of that name; "auto" takes articulated bodies for a tree, control-force for servo constraints and
    gauss for all else.

    Raises ModelError: the name is unknown; one that knows no servo constraints is asked to hold some, or one that mixes
    directions to serve a mechanism whose inertias lie too far apart.
    """
    m = terms.mechanism
    if name == "auto":
        plain = not (m.constraints or m.kinetic_energies) and terms.kinematics.rates.plain
        return controlforce.motion if m.servos else articulated.motion if plain else gauss.motion
    if m.servos and name != "control-force":
        raise ModelError(f"mechanism {m.name!r} has servo constraints; only the formulation 'control-force' holds them")
    if name not in FORMULATIONS:
        raise ModelError(f"formulation {name!r} is unknown; one of auto, {', '.join(FORMULATIONS)}")
    if name in MIXING and terms.counted is not None:
        raise ModelError(
            f"mechanism {m.name!r} has directions that move next to no inertia, and formulation {name!r} loses the digits of "
            "what they do; take 'gauss', 'nullspace' or 'projection-tuned', or give thin bodies some inertia"
        )
    return FORMULATIONS[name]
