"""The data from which a reduced state is written: the plan of the reduction, its base, and the fields of the user."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import casadi as ca

from pfaffian.errors import ModelError
from pfaffian.evaluate.reduction_plan import (
    Plan,
)
from pfaffian.maths.margins import vanishing
from pfaffian.model.joint import Joint
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.user_functions import call_for_column
from pfaffian.terms.common_motion import CommonMotion
from pfaffian.terms.equations_digest import digest, of_function
from pfaffian.terms.generic_states import at_generic_states, tell
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.momentum import weight
from pfaffian.terms.permitted_directions import Directions, labels, left_by
from pfaffian.terms.reduced_terms import (
    Translation,
    indices,
    translation,
    translation_of_all,
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


def shared_entries(r: Reduction) -> tuple[int, ...]:
    """The entries `shared` of a `Reduction`, decided at random states relative to the size of the momenta there."""
    T = shared(r.m)
    frame = r.frame(T.kinematics)
    if frame is None or not r.conserved:
        return ()
    X, rows = r.lift(T), r.at(r.conserved)
    X = ca.SX.eye(r.m.nv) if X is None else X
    moved = ca.horzcat(*[X[:, rows].T @ weight(T.kinematics, axis) for axis in ca.horzsplit(frame.axes)])
    inertia = ca.sum1(X[:, rows] * (T.M @ X[:, rows])).T
    at = at_generic_states(r.m, {"moved": moved, "size": ca.sqrt(frame.mass * inertia)})
    question = "whether a translation changes a momentum"
    apart = tell(r.m, question, vanishing(at["moved"], at["size"])).all(axis=1)
    return tuple(i for i, alone in zip(r.conserved, apart, strict=True) if not alone)


def _fields_digest(m: Mechanism, fields: Fields) -> str:
    """Digest of the user's fields, by what they return."""
    if not fields:
        return ""
    k = shared(m).kinematics
    return " ".join(f"{name} {of_function(f, f'along {name!r}', k)}" for name, f in fields)


def sources(m: Mechanism, fields: Fields) -> str:
    """Digest of all from which a reduction is made."""
    return f"{digest(m)} {_fields_digest(m, fields)}"
