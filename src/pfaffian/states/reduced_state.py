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

from dataclasses import dataclass
from functools import lru_cache
from typing import final

import casadi as ca
import numpy as np

from pfaffian.dynamics.motion import Motion
from pfaffian.errors import ModelError
from pfaffian.evaluate.directions_at_states import other_places
from pfaffian.evaluate.effects import NONE, Changes, changes_of, changing
from pfaffian.evaluate.place_dependence import first_in_words, place_dependence
from pfaffian.evaluate.reduction_plan import conserved_motions, other_values
from pfaffian.maths.linear import solve_symmetric
from pfaffian.model import reprs
from pfaffian.model.constraint import Nonholonomic
from pfaffian.model.mechanism import force_unit
from pfaffian.states.abstract_system import AbstractSystem, StatePart
from pfaffian.states.reduction_data import Reduction, sources
from pfaffian.states.reduction_in_words import about
from pfaffian.states.variables import normalised
from pfaffian.terms.common_motion import CommonMotion
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.momentum import MotionOfMomenta, changes, momenta, moving, transport, weight
from pfaffian.terms.permitted_directions import directions
from pfaffian.terms.reduced_terms import (
    about_mass_centre,
    first_joint,
    in_first_joint,
    in_moving_frame,
    indices,
    others,
    split,
    to_body,
    to_space,
    transport_along,
)
from pfaffian.terms.terms import Terms, shared


def reduced_state(r: Reduction) -> ReducedState:
    """The System with the state [q; momentum], without inner momenta and constants."""
    m, y = r.m, r.plan.y
    names = tuple(r.names[i] for i in y)
    units = tuple(f"{force_unit(r.units[i])} s" for i in y)
    return ReducedState(
        mechanism=m,
        parts=(StatePart("q", m.q_names, m.q_units), StatePart("momentum", names, units)),
        named=_named(r),
        about=about(r),
        ends=ENDS if r.along else None,
        holds=bool(r.plan.group) and all(isinstance(c, Nonholonomic) for c in m.all_constraints),
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

    r: Reduction
    made_from: str
    name: str = "[q; reduced momentum]"

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
        # The frame falls along its slides alone: across them gravity changes momenta as in the world.
        forces[conserved, 0] = r.by_lift(T, pushed + weight(k, frame.remaining_gravity(r.m.gravity)))[conserved, 0]
        forces[shared, 0] = r.by_lift(T, pushed + weight(k))[shared, 0]
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


def _relative_motion(r: Reduction, q: ca.SX, pi: ca.SX, t: ca.SX) -> MotionOfMomenta:
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
    return moving(T, pi) if X is None else MotionOfMomenta(X @ solve_symmetric(X.T @ T.M @ X, pi), [])


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
