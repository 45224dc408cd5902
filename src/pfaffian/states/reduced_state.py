"""Reduction of a mechanism by its symmetries and constraints: the state is q and the momenta, conserved or not.

One equation covers all cases. Velocities that the constraints allow are v = X(q) y, the momenta of y are pi = X^T p, and

    pi_dot = X^T p_dot + X_dot^T p,        p = M v,   y = (X^T M X)^-1 pi,

where reactions occur in neither term. X is 1 without constraints: reduction by momentum [chhabra14 chapter 3]. With
constraints X is the horizontal lift of Chaplygin's reduction [chhabra14 section 4.3], whose curvature comes from X_dot. For a
joint that is a group of symmetries the state contains the spatial momenta, mu = Ad_g^-T pi_g, which only forces change; for
the other symmetries only forces change pi itself. So conserved momenta are conserved to the last bit, at any mu, without a
chart of the group. Shape and momenta do not depend on the pose, which is integrated with them by q_dot = K v.

If the first joint slides, all quantities are relative to a frame that moves with the mass centre and does not turn. In this
frame the angular momentum is the same about all points, and nothing grows with the distance or the speed of the machine.

Where the constraints fix no group in every shape, the columns of X are directions across their rows that turn with the shape
(terms/permitted_directions.py): the momentum equation of systems with nonholonomic momentum [chhabra14 prop. 4.2.15].

A column of X may be any field sigma(q) that the constraints allow; its momentum is pi = <p, sigma>. If this is a constant of
motion, due to a horizontal symmetry that no group of positions has, it is conserved like the others [chhabra14 prop. 4.2.15].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, final

import casadi as ca
import numpy as np

from pfaffian.dynamics.motion import Motion
from pfaffian.errors import ModelError
from pfaffian.evaluate.directions_at_states import other_places
from pfaffian.evaluate.effects import NONE, Changes, changes_of, changing
from pfaffian.evaluate.reduction_plan import (
    Plan,
    carrier,
    conserved_motions,
    first_in_words,
    other_values,
    place_dependence,
)
from pfaffian.evaluate.symmetry import symmetries
from pfaffian.maths.linear import solve_symmetric
from pfaffian.maths.subgroups import name_of
from pfaffian.model import reprs
from pfaffian.model.constraint import Closure, Nonholonomic
from pfaffian.model.joint import Joint
from pfaffian.model.mechanism import Mechanism, force_unit
from pfaffian.model.user_functions import call_for_column
from pfaffian.states.abstract_system import AbstractSystem, StatePart
from pfaffian.states.variables import normalised
from pfaffian.terms.common_motion import CommonMotion
from pfaffian.terms.equations_digest import digest, of_function
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.momentum import Moving, changes, momenta, moving, transport, weight
from pfaffian.terms.permitted_directions import Directions, directions, labels, left_by
from pfaffian.terms.reduced_terms import (
    Translation,
    about_mass_centre,
    first_joint,
    in_first_joint,
    in_moving_frame,
    indices,
    others,
    split,
    to_body,
    to_space,
    translation,
    translation_of_all,
    transport_along,
)
from pfaffian.terms.terms import Terms, shared

Fields = tuple[tuple[str, Callable[[Kinematics], Any]], ...]
"""Pairs of the name of a velocity and the field whose momentum replaces that of the velocity."""


class Reduction(NamedTuple):
    """The data of a reduced state.

    plan: how the mechanism is reduced.   along: directions that constraints leave, where they fix no group of velocities by
    the others.
    fields: the user's fields.   base: the first joint, or several joints together, that carries all bodies, if its momentum is
    in the state; otherwise None.   conserved: entries of v whose momenta are conserved, beyond those of the base.
    shared: those of them whose momentum a translation along the slides of the base changes. These momenta are computed in the
    world; the others are the same in the frame and in the world.
    """

    m: Mechanism
    plan: Plan
    along: Directions | None
    fields: Fields
    base: Joint | CommonMotion | None
    conserved: tuple[int, ...]
    shared: tuple[int, ...]

    def at(self, entries: Sequence[int]) -> list[int]:
        """Positions of entries of v among the momenta of the state."""
        return [self.plan.y.index(i) for i in entries]

    @property
    def group(self) -> list[int]:
        """Entries of v of the base, which its momenta belong to."""
        if isinstance(self.base, CommonMotion):
            return self.base.entries(shared(self.m).kinematics.tree)
        return indices(self.m, (self.base.name,)) if self.base else []

    @property
    def counted(self) -> list[int]:
        """Entries of v of the base of several roots: those of the common motions, and those of the base alone."""
        assert isinstance(self.base, CommonMotion)
        tree = shared(self.m).kinematics.tree
        return [*self.base.entries(tree), *self.base.remaining_entries(tree)]

    @property
    def names(self) -> list[str]:
        """Names of the momenta, in the order of v."""
        names = list(labels(self.m, self.along)[0])
        if isinstance(self.base, CommonMotion):
            for i, name in zip(self.counted, (*self.base.names, *self.base.remaining_names), strict=True):
                names[i] = name
        return names

    @property
    def units(self) -> list[str]:
        """Units of the velocities that the momenta belong to, in the order of v."""
        units = list(labels(self.m, self.along)[1])
        if isinstance(self.base, CommonMotion):
            for i, twist in zip(self.counted, (*self.base.twists, *self.base.remaining), strict=True):
                units[i] = "rad/s" if any(twist[3:]) else "m/s"
        return units

    def lift(self, T: Terms) -> ca.SX | None:
        """X of v = X y; None if X is 1."""
        fixed = self.along or self.plan.group
        if not (fixed or self.fields or isinstance(self.base, CommonMotion)):
            return None
        X = lifted(T, self.plan, fixed, self.fields)
        if isinstance(self.base, CommonMotion):
            X[:, self.at(self.counted)] = self.base.lift(T.kinematics, along_base=True)[:, self.counted]
        return X

    def by_lift(self, T: Terms, x: ca.SX) -> ca.SX:
        """The product X^T x."""
        X = self.lift(T)
        return x if X is None else X.T @ x

    def frame(self, k: Kinematics) -> Translation | None:
        """The moving frame in which momenta are computed; None for the world."""
        if isinstance(self.base, CommonMotion):
            return translation_of_all(k, self.base)
        return translation(k, self.base) if self.base else None

    def terms(self, q: ca.SX, v: ca.SX, t: ca.SX) -> Terms:
        """The Terms of the mechanism without inputs."""
        return Terms(self.m, q, v, ca.SX(self.m.nu, 1), t)

    def turned(self, q: ca.SX, pi: ca.SX, how: Callable[[Joint, ca.SX, ca.SX], ca.SX]) -> ca.SX:
        """pi (ny, 1) with its spatial entries transformed by how(joint, q of the joint, entries)."""
        pi = ca.SX(pi)
        for name in self.plan.spatial:
            entries = self.at(indices(self.m, (name,)))
            pi[entries, 0] = how(self.m.joint(name), q[self.m.q_slices[name], 0], pi[entries, 0])
        return ca.densify(pi)


def reduced_state(r: Reduction) -> ReducedState:
    """The System with the state [q; momentum], without inner momenta and constants."""
    m, y = r.m, r.plan.y
    names = tuple(r.names[i] for i in y)
    units = tuple(f"{force_unit(r.units[i])} s" for i in y)
    return ReducedState(
        mechanism=m,
        parts=(StatePart("q", m.q_names, m.q_units), StatePart("momentum", names, units)),
        named=_named(r),
        about=_about(r),
        ends=ENDS if r.along else None,
        holds=bool(r.plan.group) and all(isinstance(c, Nonholonomic) for c in m.constraints),
        uncorrected=tuple(m.nq + i for i in r.at(r.group)),
        r=r,
        made_from=sources(m, r.fields),
    )


ENDS = (
    "rows of constraints that were independent are about to depend on each other here, and the directions of the momenta end; "
    "run the mechanism as it is"
)


@final
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ReducedState(AbstractSystem):
    """[q; pi].   r: the data of the reduction.   made_from: `sources` when it was made."""

    mechanism: Mechanism
    parts: tuple[StatePart, ...]
    named: tuple[StatePart, ...]
    about: tuple[str, ...]
    ends: str | None
    holds: bool
    uncorrected: tuple[int, ...]
    r: Reduction
    made_from: str
    name = "[q; reduced momentum]"

    def enter(self, T: Terms) -> ca.SX:
        """The state at the Terms of q and v."""
        r = self.r
        frame, p, shared = r.frame(T.kinematics), momenta(T), r.at(r.shared)
        pi = ca.SX(r.by_lift(T, momenta(_still(r, T))))
        pi[shared, 0] = r.by_lift(T, p)[shared, 0]
        if frame is None:
            return ca.vertcat(T.q, r.turned(T.q, pi, to_space))
        pi[frame.entries, 0] = 0
        pi = r.turned(T.q, pi, to_space)
        pi[frame.entries, 0] = frame.along(p)
        return ca.vertcat(T.q, pi)

    def show(self, x: ca.SX, t: ca.SX) -> tuple[ca.SX, ca.SX]:
        """q and v of a state."""
        r = self.r
        q, pi = x[: r.m.nq, 0], x[r.m.nq :, 0]
        v = ca.SX(_relative_motion(r, q, pi, t).v)
        frame = r.frame(Kinematics(r.m, q, v, t))
        if frame:
            v += frame.fields @ pi[frame.entries, 0] / frame.mass
        return q, v

    def rate(self, T: Terms, motion: Motion, x: ca.SX) -> ca.SX:
        """The rate of a state."""
        r = self.r
        k, pushed, frame = T.kinematics, T.generalised_input, r.frame(T.kinematics)
        intrinsic = ca.SX(_carried(r, T, x))
        intrinsic[r.at(r.plan.conserved), 0] = 0
        if r.plan.closed:
            # Reactions of closures between bodies do no work along the motions that carry all; those of wheels vanish in X^T.
            carrying = [] if r.plan.group else r.group or indices(r.m, (first_joint(r.m).name,))
            reaction = ca.SX(r.by_lift(T, motion.reaction))
            reaction[r.at(carrying), 0] = 0
            intrinsic += reaction
        if frame is None:
            return ca.vertcat(k.q_dot, r.turned(T.q, r.by_lift(T, pushed + weight(k)) + intrinsic, to_space))
        push = frame.along(pushed)
        forces = ca.SX(r.by_lift(T, pushed + weight(k, frame.effective_gravity(r.m.gravity, push))))
        conserved, shared = r.at(r.conserved), r.at(r.shared)
        forces[conserved, 0] = r.by_lift(T, pushed)[conserved, 0]
        forces[shared, 0] += r.by_lift(T, weight(k))[shared, 0]
        forces[frame.entries, 0] = 0
        pi_dot = r.turned(T.q, forces + intrinsic, to_space)
        pi_dot[frame.entries, 0] = frame.rate(r.m.gravity, push)
        return ca.vertcat(k.q_dot, pi_dot)

    def project(self, x: ca.SX, t: ca.SX) -> ca.SX:
        """x with quaternions of unit length."""
        nq = self.mechanism.nq
        return ca.vertcat(normalised(self.mechanism, x[:nq, 0]), x[nq:, 0])

    def inside(self, x: ca.SX, t: ca.SX) -> ca.SX:
        """(1, 1) positive while the directions are smooth functions of q."""
        r = self.r
        assert r.along is not None
        return ca.mmin(directions(r.terms(x[: r.m.nq, 0], ca.SX(r.m.nv, 1), t), r.along).inside)

    def signals(self, T: Terms, motion: Motion, x: ca.SX) -> dict[str, ca.SX]:
        """The signals beyond the state, see `reduce`."""
        r = self.r
        pi, still, Y = x[r.m.nq :, 0], _still(r, T), _motions(r, T)
        drift, signals = [Y.T @ momenta(T) - pi[r.at(r.conserved), 0]], {}
        if r.base:
            rest, p, X = others(r.m, r.group), r.by_lift(T, momenta(still)), r.lift(T)
            drift = [_of_bodies(r, T) - pi[r.at(r.group), 0], *drift]
            A = split(T.M if X is None else X.T @ T.M @ X, r.group).A
            signals = {"shape_momentum": p[rest] - A.T @ p[r.group]} if rest else {}
        if r.conserved:
            shared = [i for i, entry in enumerate(r.conserved) if entry in r.shared]
            error = changes(still, Y)["inertia"]
            error[shared, 0] = changes(T, Y)["inertia"][shared, 0]
            signals["momentum_rate_error"] = error
        return ({"momentum_drift": ca.vertcat(*drift)} if r.base or r.conserved else {}) | signals

    def inertia(self, T: Terms) -> ca.SX:
        """(k, 1) the inertia along each entry of `momentum_drift`."""
        r = self.r
        Y = r.base.fields(T.kinematics, along_base=True) if isinstance(r.base, CommonMotion) else ca.SX.eye(r.m.nv)[:, r.group]
        Y = ca.horzcat(Y, _motions(r, T))
        return ca.sum1(Y * (T.M @ Y)).T

    def check(self, p: np.ndarray) -> None:
        """Raise ModelError where parameters (runs, np) break a symmetry that the plan found near the defaults."""
        r = self.r
        m, group = r.m, set(r.plan.group)
        names = [j.name for j in m.joints if group & set(indices(m, (j.name,)))] or ([] if r.base else [first_joint(m).name])
        if r.along:
            names = list(r.along.base)
        for words, at, elsewhere in other_places(m, p, r.along) if r.along else other_values(m, p, names):
            differing = place_dependence(m, r.along or r.plan.group, at, elsewhere) if names else {}
            if differing:
                raise ModelError(
                    f"{words}{first_in_words(differing)} of {m.name!r} depends on where {reprs.listed(names)} is, but not near "
                    "the defaults; run the mechanism as it is"
                )
            changed = changing(_watching(r), at)[:, 0] if r.conserved else ()
            lost = [i for i, x in zip(r.conserved, changed, strict=True) if x > NONE]
            if lost:
                raise ModelError(
                    f"{words}the momentum of {m.v_names[lost[0]]!r} of {m.name!r} is not conserved, but is near the defaults; "
                    "reduce a mechanism that has these as its defaults, or run it as it is"
                )

    def identity(self) -> str:
        """The data of the reduction, and what it was made from."""
        r = self.r
        return f"{r.plan} {r.along} {r.conserved} {r.shared} {self.made_from}"

    def changed(self) -> bool:
        """Whether a function of the mechanism or a field gives another result now."""
        return sources(self.r.m, self.r.fields) != self.made_from

    def terms_in_frame(self, x: ca.SX, t: ca.SX) -> Terms:
        """The Terms of the machine at a state, with velocities relative to its frame."""
        r = self.r
        q = x[: r.m.nq, 0]
        return r.terms(q, ca.SX(_relative_motion(r, q, x[r.m.nq :, 0], t).v), t)

    def turns(self, T: Terms) -> ca.SX:
        """(nv, k) velocities that turn all bodies about a point of the base."""
        r = self.r
        if isinstance(r.base, CommonMotion):
            return r.base.fields(T.kinematics, along_base=True)[:, r.base.slides :]
        turning = [i for i in r.group if r.m.v_units[i] == "rad/s"]
        return ca.SX.eye(r.m.nv)[:, turning]


def _relative_motion(r: Reduction, q: ca.SX, pi: ca.SX, t: ca.SX) -> Moving:
    """v and the momenta of the links at a state, relative to its frame."""
    T, pi = r.terms(q, ca.SX(r.m.nv, 1), t), ca.SX(pi)
    frame, X, shared = r.frame(T.kinematics), r.lift(T), r.at(r.shared)
    V = ca.SX(3, 1)
    if frame:
        V = frame.axes @ pi[frame.entries, 0] / frame.mass
        pi[frame.entries, 0] = 0
    pi = r.turned(q, pi, to_body)
    if shared:
        pi[shared, 0] -= r.by_lift(T, weight(T.kinematics, V))[shared, 0]
    return moving(T, pi) if X is None else Moving(X @ solve_symmetric(X.T @ T.M @ X, pi), [])


def _still(r: Reduction, T: Terms) -> Terms:
    """The Terms with velocities relative to the frame."""
    return in_moving_frame(T, r.frame(T.kinematics))


def _carried(r: Reduction, T: Terms, x: ca.SX) -> ca.SX:
    """(ny, 1) the part of the rate of the momenta that the motion itself causes."""
    X, frame = r.lift(T), r.frame(T.kinematics)
    if X is not None and frame is None:
        return transport_along(T, X)
    relative = _relative_motion(r, T.q, x[r.m.nq :, 0], T.t)
    in_frame = r.terms(T.q, relative.v, T.t) if frame else T
    return transport(in_frame, relative.h) if X is None else transport_along(in_frame, X)


def _motions(r: Reduction, T: Terms) -> ca.SX:
    """(nv, n) motions whose momenta are conserved beyond those of the base, in the order of `Reduction.conserved`."""
    X = r.lift(T)
    return conserved_motions(T, ca.SX.eye(r.m.nv) if X is None else X, r.plan)


def _of_bodies(r: Reduction, T: Terms) -> ca.SX:
    """(k, 1) momentum of the base, computed from q and v of the bodies."""
    frame = r.frame(T.kinematics)
    if isinstance(r.base, CommonMotion):
        turning = r.base.fields(T.kinematics, along_base=True)[:, r.base.slides :].T @ momenta(_still(r, T))
        return ca.vertcat(frame.along(momenta(T)) if frame else ca.SX(0, 1), turning)
    assert r.base is not None
    return about_mass_centre(T, r.base, frame) if frame else in_first_joint(T, r.base.name)


@lru_cache(maxsize=64)
def _watching(r: Reduction) -> Changes:
    """The forces and constraints that may change the conserved momenta beyond those of the base."""
    T = shared(r.m)
    return changes_of(T, _motions(r, T))


def _named(r: Reduction) -> tuple[StatePart, ...]:
    """Names and units of the signals beyond the state."""
    of = {
        "momentum_drift": ([*r.group, *r.conserved], " s"),
        "momentum_rate_error": (r.conserved, ""),
        "shape_momentum": (others(r.m, r.group) if r.base else [], " s"),
    }
    names, units = r.names, r.units
    return tuple(
        StatePart(name, tuple(names[i] for i in at), tuple(f"{force_unit(units[i])}{seconds}" for i in at))
        for name, (at, seconds) in of.items()
        if at
    )


def _about(r: Reduction) -> tuple[str, ...]:
    """A description of the plan, line by line."""
    m, plan = r.m, r.plan
    first, names = carrier(m), r.names
    out = list[str]()
    if isinstance(first, CommonMotion):
        out.append(
            f"joints {reprs.listed(first.joints)} are taken as one that carries all, {name_of(first.basis)} in the world; "
            f"its momentum is that of all bodies{', about the mass centre' if first.slides else ''}"
        )
    if r.along:
        out.append(
            f"the constraints leave {len(plan.y)} of {m.nv} velocities, directions that turn with the shape, named after "
            f"{_listed(names, plan.y)}"
        )
        if len(r.along.moved) < len(indices(m, r.along.base)):
            out.append(f"nothing depends on where {reprs.listed(r.along.base)} stands if it moves along its slides alone")
    elif plan.group:
        fixed = reprs.listed([j.name for j in m.joints if set(indices(m, (j.name,))) & set(plan.group)])
        out.append(f"the constraints fix the velocities of {fixed} by the others: {_listed(names, plan.y)}")
    for name in plan.spatial:
        out.append(f"momenta of joint {name!r} are spatial, {_reference(r, name)}")
    for name, _ in r.fields:
        out.append(f"the momentum of {name!r} is that of the field along it")
    out.append(f"conserved while no force acts along them: {_listed(names, plan.conserved)}")
    changing = [i for i in plan.y if i not in plan.conserved]
    out.append(f"changed by the motion itself: {_listed(names, changing)}")
    if not plan.group and (isinstance(first, CommonMotion) or first.distribution is None):
        of_all = symmetries(m)
        for motion, causes in of_all.broken:
            if motion.joint == of_all.joint:
                out.append(f"no symmetry by {motion.label}: {', '.join(causes)}")
    if plan.closed:
        closures = reprs.listed([c.name for c in m.constraints if isinstance(c, Closure)])
        out.append(f"closures {closures} exert reactions, which cancel in the momentum of all bodies")
    return tuple(out)


def _reference(r: Reduction, joint: str) -> str:
    """The reference point of the spatial momenta of a joint."""
    is_base = isinstance(r.base, Joint) and joint == r.base.name
    frame = r.frame(shared(r.m).kinematics) if is_base else None
    return (
        "about the mass centre; those of other joints are relative to a frame that moves with it"
        if frame
        else "about the joint's frame on its parent"
    )


def _listed(names: Sequence[str], entries: Sequence[int]) -> str:
    """The names of some entries, or "none"."""
    return ", ".join(reprs.listed([names[i]]) for i in sorted(entries)) or "none"


def _field(name: str, f: Callable[[Kinematics], Any], k: Kinematics) -> ca.SX:
    """(nv, 1) the user's field. Raises ModelError: it is not a column of that size."""
    what, x = f"along {name!r}", call_for_column(f, f"along {name!r}", k)
    if x.numel() != k.mechanism.nv:
        raise ModelError(f"{what}: a field of {k.mechanism.nv} velocities is needed, in the order of v_names, got {x.numel()}")
    return x


def lifted(T: Terms, plan: Plan, fixed: tuple[int, ...] | Directions, fields: Fields) -> ca.SX:
    """X (nv, ny) of v = X y, with the user's fields as the columns of their velocities."""
    X, names = left_by(T, fixed), labels(T.mechanism, fixed if isinstance(fixed, Directions) else None)[0]
    for name, f in fields:
        X[:, plan.y.index(names.index(name))] = _field(name, f, T.kinematics)
    return X


def _fields_digest(m: Mechanism, fields: Fields) -> str:
    """Digest of the user's fields, by what they return."""
    if not fields:
        return ""
    k = shared(m).kinematics
    return " ".join(f"{name} {of_function(f, f'along {name!r}', k)}" for name, f in fields)


def sources(m: Mechanism, fields: Fields) -> str:
    """Digest of all from which a reduction is made."""
    return f"{digest(m)} {_fields_digest(m, fields)}"
