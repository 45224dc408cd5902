"""Formulations of the equations of motion: each maps the same Terms to the same Motion."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pfaffian.dynamics import articulated, controlforce, gauss, multipliers, nullspace, projection, quasivelocity
from pfaffian.dynamics.motion import Motion
from pfaffian.errors import ModelError
from pfaffian.terms.terms import Terms


class Formulations(dict[str, Callable[[Terms], Motion]]):
    """Name -> function of Terms that returns the Motion: v_dot, reaction and rank. All give the same motion where they serve.

    gauss: Gauss' principle in mass-weighted coordinates, by an orthogonal factorisation of A W^-T, M = W W^T; the default with
        constraints. Any rank.
    momentum: the same, driven by the rates of the momenta M v instead of the bias force.
    multipliers: lambda from A M^-1 A^T; the classical form, which squares the condition number of the rows.
    nullspace: Maggi-Kane, independent accelerations along an orthonormal basis of the null space of A.
    projection: one system of full size with the projector P = I - A^+ A, whatever the rank of A. [aghili05]
    projection-symmetric, projection-tuned: the same with other constraint inertias: the symmetric one, and one scaled to M.
    quasi-velocity: y = W^T v with the tree's triangular factor W, and a projector in y. [aghili08]
    quasi-velocity-symmetric, quasi-velocity-innovations: the same with the symmetric root of M, or the innovations factor.
    control-force: holds servo constraints by forces along chosen directions, and all others by reactions. [ider]
    articulated: articulated bodies, in time proportional to the number of bodies; the default of a tree without constraints.

    "auto" of a Scheme takes articulated, control-force or gauss, as the mechanism has no constraints, servo constraints or
    others. A Scheme names one: `pf.run(m, ..., scheme=pf.Scheme(formulation="projection"))`.
    """

    def __repr__(self) -> str:
        return f"<Formulations: {', '.join(self)}; help(pf.FORMULATIONS) tells what they are>"


FORMULATIONS = Formulations({
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
})  # fmt: skip
"""Name -> function of Terms that returns the Motion: v_dot, reaction and rank.

Example:
    >>> import pfaffian as pf
    >>> m = pf.mechanism("cart", [pf.body("cart", 2.0)], [pf.joint("rail", "prismatic", "world", "cart")])
    >>> pf.FORMULATIONS["gauss"](pf.symbols(m)).v_dot  # of a cart on a vertical rail
    SX(-9.81)
"""

MIXING = ("multipliers", "projection", "projection-symmetric", "quasi-velocity-symmetric")
"""Formulations that add up inertias of all directions: where one is 1e-12 of the others its digits are lost, or the rank."""


def formulation(name: str, terms: Terms, factored: bool = False) -> Callable[[Terms], Motion]:
    """The formulation of that name; "auto" is articulated for a tree, control-force for servo constraints and gauss otherwise.

    factored: whether M is needed anyway, as by a control law: gauss then shares it, and is the shorter one for a tree too.

    Raises ModelError: the name is unknown; the mechanism has servo constraints, which this formulation does not support, or
    inertias too far apart for one that mixes directions.
    """
    m = terms.mechanism
    if name == "auto":
        plain = not (m.constraints or m.kinetic_energies) and terms.kinematics.rates.plain
        return controlforce.motion if m.servos else articulated.motion if plain and not factored else gauss.motion
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
