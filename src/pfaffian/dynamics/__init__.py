"""Formulations of the equations of motion: each maps the same Terms to the same Motion."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pfaffian.dynamics import articulated, controlforce, gauss, multipliers, nullspace, projection, quasivelocity
from pfaffian.dynamics.motion import Motion
from pfaffian.errors import ModelError
from pfaffian.terms.terms import Terms


class Formulations(dict[str, Callable[[Terms], Motion]]):
    """Formulations: name -> function of Terms that returns the Motion: v_dot, reaction and rank.

    All formulations give the same motion where they apply.

    gauss: Gauss' principle in mass-weighted coordinates, by an orthogonal factorisation of A W^-T, M = W W^T; for any rank of
        A. The default with constraints.
    momentum: gauss with the rates of the momenta M v instead of the bias force.
    multipliers: lambda from A M^-1 A^T; the classical form, which squares the condition number of the rows.
    nullspace: Maggi-Kane, independent accelerations along an orthonormal basis of the null space of A.
    projection: one system of full size with the projector P = I - A^+ A, for any rank of A. [aghili05]
    projection-symmetric, projection-tuned: projection with another constraint inertia: symmetric, or scaled to M.
    quasi-velocity: y = W^T v with the tree's triangular factor W, and a projector in y. [aghili08]
    quasi-velocity-symmetric, quasi-velocity-innovations: quasi-velocity with the symmetric root of M, or the innovations
        factor.
    control-force: forces along chosen directions for servo constraints, reactions for all others. [ider]
    articulated: articulated bodies, in time proportional to the number of bodies; the default of a tree without constraints.

    "auto" in a Scheme selects articulated for a mechanism without constraints, control-force for one with servo constraints,
    and gauss otherwise. To choose one: `pf.run(m, ..., scheme=pf.Scheme(formulation="projection"))`.
    """

    def __repr__(self) -> str:
        return f"<Formulations: {', '.join(self)}; help(pf.FORMULATIONS) describes them>"


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
"""Formulations that add inertias of all directions: one that is 1e-12 of the others loses its digits, or rank is misjudged."""


def formulation(name: str, terms: Terms, factored: bool = False) -> Callable[[Terms], Motion]:
    """The formulation of that name; "auto" is articulated for a tree, control-force for servo constraints and gauss otherwise.

    factored: whether M is needed anyway, for instance by a control law: "auto" then selects gauss for a tree too, because it
        shares M and is shorter.

    Raises ModelError: the name is unknown; the mechanism has servo constraints, which this formulation does not support; its
    inertias are too far apart for a formulation that mixes directions.
    """
    m = terms.mechanism
    if name == "auto":
        plain = not (m.constraints or m.kinetic_energies) and terms.kinematics.rates.plain
        return controlforce.motion if m.servos else articulated.motion if plain and not factored else gauss.motion
    if m.servos and name != "control-force":
        raise ModelError(f"mechanism {m.name!r} has servo constraints; only the formulation 'control-force' supports them")
    if name not in FORMULATIONS:
        raise ModelError(f"formulation {name!r} is unknown; one of auto, {', '.join(FORMULATIONS)}")
    if name in MIXING and terms.counted is not None:
        raise ModelError(
            f"mechanism {m.name!r} has directions of almost no inertia, along which formulation {name!r} loses all digits; "
            "choose 'gauss', 'nullspace' or 'projection-tuned', or give thin bodies some inertia"
        )
    return FORMULATIONS[name]
