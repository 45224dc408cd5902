"""Wrench through a joint or closure, from Newton's and Euler's equations of all bodies that the joint carries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import casadi as ca

from pfaffian.dynamics.controlforce import control_force, ideal_reaction
from pfaffian.dynamics.motion import Motion
from pfaffian.dynamics.multipliers import SHARED, minimum_norm_multipliers, vanishing_combinations
from pfaffian.errors import ModelError
from pfaffian.kernel.remember import once_for
from pfaffian.model.constraint import Closure, Servo, Target
from pfaffian.model.joint import Joint
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.pose import Pose
from pfaffian.terms.kinematics import check_frame
from pfaffian.terms.pfaffian import target_rows
from pfaffian.terms.terms import Terms
from pfaffian.terms.wrenches import BodyRows, applied_wrenches, carried_wrench, constraint_wrenches, inertial_wrench, move, turn


class ReactionWrench(NamedTuple):
    """Wrench through a joint or closure.

    wrench: (6, 1) or (..., 6) [N, N m].   unique: of this shape, true where the motion determines the component, false where
    redundant rows share the load, so that the component follows from multipliers of smallest norm.
    """

    wrench: Any
    unique: Any


def reaction_wrenches(terms: Terms, motion: Motion, names: Iterable[str], frame: str = "LOCAL") -> dict[str, ReactionWrench]:
    """Wrench [force; moment] that the parent (body_a) exerts on the child (body_b), for each named joint or closure.

    The wrench through a joint is the rate of momentum of all bodies that it carries, minus weight and all other wrenches on
    them. Its component along the joint's motion is therefore the force of actuator, spring, damper and armature. The wrench
    through a closure follows from its multipliers of smallest norm; its component along the motion is what the closure carries.
    The moment is about the origin of the joint's frame on the child, with the axes of that frame (LOCAL, z is the joint's axis)
    or of the world (LOCAL_WORLD_ALIGNED); for WORLD it is about the world's origin.

    Args:
        terms: Terms at a state, with its inputs.
        motion: result of a formulation at these terms.
        names: names of joints or closures.
        frame: frame of all results, "LOCAL" by default.
    Raises ModelError: an unknown name or frame; a constraint whose force on single bodies is not known.
    """
    check_frame(frame)
    # Of one motion, whose parts the wrenches keep alive, so that no other one can have their addresses.
    key = f"transmitted wrenches {id(terms.u)} {id(motion.v_dot)} {id(motion.reaction)}"
    loads = once_for(terms, key, lambda: TransmittedWrenches.of(terms, motion))
    wrenches = {}
    for name in names:
        X, G = loads.through(name)
        wrenches[name] = _in_frame(loads, X, G, frame)
    return wrenches


def _in_frame(loads: TransmittedWrenches, X: ca.SX, G: Pose, frame: str) -> ReactionWrench:
    """The wrench at the multipliers of smallest norm, in a frame, and whether each component is unique.

    X: (6, 1 + m) about the origin of G, along the world's axes: the wrench without multipliers, and that of a unit of each.
    """
    X = turn(G.R.T, X) if frame == "LOCAL" else move(X, G.p) if frame == "WORLD" else X
    ambiguous = X[:, 1:] @ loads.combinations
    unique = ca.sum2(ambiguous * ambiguous) <= SHARED**2 * ca.sumsqr(X[:, 1:])
    return ReactionWrench(ca.densify(X[:, 0] + X[:, 1:] @ loads.multipliers), ca.densify(unique))


class TransmittedWrenches:
    """Wrenches that joints and closures transmit, as (6, 1 + m) columns: without multipliers, and for a unit of each.

    motion: of which only v_dot is needed for these columns.   losses: joint or closure -> its friction that follows its load.
    """

    def __init__(self, terms: Terms, motion: Motion, losses: Mapping[str, ca.SX]) -> None:
        m = terms.mechanism
        self.terms, self.motion, self.losses, self.u = terms, motion, losses, _inputs(terms)
        self.accelerations = terms.kinematics.accelerations(motion.v_dot, m.gravity)
        self.applied = applied_wrenches(terms, motion.v_dot, self.u, losses)
        counts = [target_rows(terms.kinematics, c).b.numel() for c in m.ideal]
        self.first = {c.name: sum(counts[:i]) for i, c in enumerate(m.ideal)}
        self._rows: dict[str, dict[str, ca.SX]] = {}
        self._undetermined: list[tuple[Target, ModelError]] = []
        for c in m.ideal:
            try:
                self._rows[c.name] = _by_body(constraint_wrenches(terms.kinematics, c))
            except ModelError as error:
                self._undetermined.append((c, error))
        self._of_body: dict[str, ca.SX] = {}

    @classmethod
    def of(cls, terms: Terms, motion: Motion) -> TransmittedWrenches:
        """Of the motion under the inputs of `terms`."""
        losses = terms.losses
        return cls(terms, motion, {} if losses is None else dict(zip(losses.joints, ca.vertsplit(losses.values), strict=True)))

    @cached_property
    def multipliers(self) -> ca.SX:
        """(m, 1) multipliers of smallest norm."""
        return minimum_norm_multipliers(self.terms, ideal_reaction(self.terms, self.motion))

    @cached_property
    def combinations(self) -> ca.SX:
        """(m, m) columns that span the multipliers without any effect on the motion."""
        return vanishing_combinations(self.terms).T

    def through(self, name: str) -> tuple[ca.SX, Pose]:
        """(6, 1 + m) wrench through a joint or closure about the origin of its frame on the child, in world axes; this frame.

        Raises ModelError: there is none of this name; a constraint whose force on single bodies is not known.
        """
        m = self.terms.mechanism
        closures = {c.name: c for c in m.ideal if isinstance(c, Closure)}
        joints = {j.name: j for j in m.joints}
        if name in joints and name in closures:
            raise ModelError(f"{name!r} is a joint and a closure; give one of them another name")
        if name in joints:
            j = joints[name]
            self.check_determined(j)
            child, at, X = j.child, j.child_placement, self.of_joint(j)
        elif name in closures:
            c = closures[name]
            child, at, X = c.body_b, c.placement_b, self.of_closure(c)
        else:
            raise ModelError(_unknown(m, name))
        G = self.terms.kinematics.pose(child)
        return move(X, -(G.R @ at.p)), G @ at

    def check_determined(self, j: Joint) -> None:
        """Raise ModelError if a constraint whose forces on single bodies are not known may act on what the joint carries."""
        m, tree = self.terms.mechanism, self.terms.kinematics.tree
        carried = {j.child}
        for other in m.joints:
            carried |= {other.child} if other.parent in carried else set()
        near = {i for b in carried for i in tree.path(tree.place[b][0])}
        for c, error in self._undetermined:
            A = ca.sparsify(target_rows(self.terms.kinematics, c).A)
            if any(A[:, tree.links[i].v].nnz() for i in near):
                raise error

    def of_joint(self, j: Joint) -> ca.SX:
        """(6, 1 + m) wrench through a joint, about the origin of the child."""
        m, k = self.terms.mechanism, self.terms.kinematics
        if j.child not in self._of_body:
            b = m.body(j.child)
            required = inertial_wrench(k, b, self.accelerations) - self.applied.get(b.name, ca.SX(6, 1))
            X = ca.horzcat(required, -self._constraints_on(b.name))
            for outer in m.joints:
                if outer.parent == b.name:
                    X += move(self.of_joint(outer), k.line(b.name, outer.child))
            self._of_body[b.name] = X
        return self._of_body[j.child]

    def of_closure(self, c: Closure) -> ca.SX:
        """(6, 1 + m) wrench through a closure, about the origin of body_b."""
        rows, X = self._rows[c.name], ca.SX(6, 1 + self.terms.A.shape[0])
        # If body_b is the world, the wrench on it is the opposite of that on body_a.
        L = rows[c.body_b] if c.body_b in rows else -move(rows[c.body_a], self.terms.kinematics.line(c.body_b, c.body_a))
        first = 1 + self.first[c.name]
        X[:, first : first + L.shape[1]] = L
        if c.name in self.terms.mechanism.loop_joints:
            carried = carried_wrench(self.terms, c, self.motion.v_dot, self.u, self.losses)
            at_origin = self.terms.kinematics.rotation(c.body_b) @ c.placement_b.p
            X[:, 0] += move(carried, at_origin)
        return X

    def _constraints_on(self, body: str) -> ca.SX:
        """(6, m) wrench on a body for a unit of each multiplier."""
        X = ca.SX(6, self.terms.A.shape[0])
        for name, L in self._rows.items():
            if body in L:
                X[:, self.first[name] : self.first[name] + L[body].shape[1]] = L[body]
        return X


def _by_body(rows: Iterable[BodyRows]) -> dict[str, ca.SX]:
    """body -> (6, rows) the wrenches of a constraint on it, some of which may come by several ways."""
    found = dict[str, ca.SX]()
    for body, L in rows:
        found[body] = found[body] + L if body in found else L
    return found


def _inputs(terms: Terms) -> ca.SX:
    """(nu, 1) the inputs, including the forces of servo constraints."""
    m = terms.mechanism
    if not m.servos:
        return terms.u
    mu, u, at = control_force(terms).mu, ca.SX(terms.u), 0
    for s in m.servos:
        if callable(s.directions):
            raise ModelError(
                f"servo constraint {s.name!r}: its directions are a function, so which body feels its force cannot be "
                "determined; name inputs instead"
            )
        for name in s.directions:
            u[m.u_names.index(name)] += mu[at]
            at += 1
    return u


def _unknown(m: Mechanism, name: str) -> str:
    """The message for a name that is not a joint or closure."""
    other = {c.name: c for c in m.all_constraints}
    if name in other:
        way = (
            "servo_force and servo_error are in a run's result"
            if isinstance(other[name], Servo)
            else "see `multiplier` of a run"
        )
        return f"constraint {name!r} is not a closure and has no wrench through one frame; {way}"
    known = [j.name for j in m.joints] + [c.name for c in m.ideal if isinstance(c, Closure)]
    return f"mechanism {m.name!r} has no joint or closure {name!r}; it has {', '.join(known)}"
