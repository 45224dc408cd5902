"""Formulations of the equations of motion: each maps the same Terms to the same Motion.

articulated_bodies.py    articulated bodies: O(n) forward dynamics of a tree without constraints
controlforce.py          control forces along chosen directions that maintain servo constraints
floating_base.py         a machine with a floating base
gauss.py                 Gauss' principle in mass-weighted coordinates
load_equations.py        equations of friction in proportion to loads, and their solution
load_losses.py           friction of joints in proportion to the loads that they carry
loop_regularity.py       distance of loops from losing rank
motion.py                the result of every formulation, and the rows that several of them use
multipliers.py           Lagrange multipliers from the inverse of the constraint-space inertia, A M^-1 A^T
net_regularity.py        the same for nets, whose loops depend on each other
nullspace.py             Maggi-Kane: independent accelerations along an orthonormal basis of the null space of A
passage.py               acceleration in a singular configuration that a motion passes through
projection.py            projection operator and constraint inertia matrices
quasivelocity.py         quasi-velocities y = W^T v, M = W W^T, and their reduction by constraints
reaction.py              wrench through a joint or closure, from the equations of all bodies that it carries
regularity.py            distance of constraints from losing rank
response.py              response of accelerations and reactions to small changes
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import casadi as ca

from pfaffian.dynamics import articulated_bodies as articulated
from pfaffian.dynamics import controlforce, gauss, multipliers, nullspace, projection, quasivelocity
from pfaffian.dynamics import load_losses as load_losses  # which enters what `Terms.f` asks for
from pfaffian.dynamics.motion import Motion
from pfaffian.errors import ModelError, brief
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.number import column
from pfaffian.model.traced_function import graph
from pfaffian.model.user_functions import call_user, in_symbols
from pfaffian.tables import Registry
from pfaffian.terms.terms import Terms, has_losses, shared


class Formulations(Registry[Callable[[Terms], Motion]]):
    """Formulations: name -> function of Terms that returns the Motion: v_dot, reaction and rank.

    To add one: `pf.FORMULATIONS["mine"] = f`. Results belong to what f returns when they are requested, also after f or a
    number that it reads was changed. Raises ModelError: the name is one of the library's, or f is no function.

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


def _check(name: str, f: Any) -> None:
    """Raise ModelError if a user's formulation is no function."""
    if not callable(f):
        raise ModelError(f"formulation {name!r}: a function of Terms that returns a pf.Motion is needed, got {brief(f)}")


FORMULATIONS = Formulations("formulation", {
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
}, "give your own another name", _check, ("auto",))  # fmt: skip
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
        plain = not (m.constraints or m.inertia_elsewhere) and terms.kinematics.rates.plain
        factored = factored or has_losses(m)  # whose loads need M too
        return controlforce.motion if m.servos else articulated.motion if plain and not factored else gauss.motion
    if m.servos and name != "control-force":
        raise ModelError(f"mechanism {m.name!r} has servo constraints; only the formulation 'control-force' supports them")
    f = FORMULATIONS.named(name)
    if FORMULATIONS.is_added(name):
        return partial(_users, name, f)
    if name in MIXING and terms.counted is not None:
        raise ModelError(
            f"mechanism {m.name!r} has directions of almost no inertia, along which formulation {name!r} loses all digits; "
            "choose 'gauss', 'nullspace' or 'projection-tuned', or give thin bodies some inertia"
        )
    return f


def _users(name: str, f: Callable[[Terms], Motion], terms: Terms) -> Motion:
    """The Motion that a user's formulation returns. Raises ModelError: it fails, or returns something else."""
    what, n = f"formulation {name!r}", terms.mechanism.nv
    motion = call_user(f, what, terms)
    if not isinstance(motion, Motion):
        raise ModelError(f"{what} must return a pf.Motion(v_dot, reaction, rank), got {brief(motion)}")
    known, parts = (terms.q, terms.v, terms.u, terms.t, terms.mechanism.p_symbols), list[ca.SX]()
    for (part, x), size in zip(motion._asdict().items(), (n, n, 1), strict=True):
        parts.append(in_symbols(column(x, f"{what}: {part}"), f"{what}: {part}", known))
        if parts[-1].numel() != size:
            raise ModelError(f"{what}: {part} has {parts[-1].numel()} numbers where {size} are needed")
    return Motion(*parts)


def identity(name: str, m: Mechanism) -> str:
    """The formulation in a key: its name. To that of a user's formulation, a digest of the motion that it returns now is added.

    Raises ModelError: the name is unknown, or the user's formulation fails.
    """
    if name == "auto":
        return name
    f = FORMULATIONS.named(name)
    if not FORMULATIONS.is_added(name):
        return name
    T = shared(m)
    return f"{name!r} {graph([T.q, T.v, T.u, T.t, m.p_symbols], [*_users(name, f, T)])}"


def check_unchanged(name: str, m: Mechanism, known: str) -> None:
    """Raise ModelError if the `identity` of a formulation is no longer `known`, which is already part of a key."""
    if identity(name, m) != known:
        raise ModelError(
            f"formulation {name!r} no longer returns the motion that it returned when this was requested; request it again, "
            "and let it depend on constants and Parameters only"
        )
