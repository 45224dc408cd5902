"""Constraints beyond the tree: loops, touching points, any phi(q, t) = 0, eta(q, v, t) = 0, Z(q, v, t) v_dot = z(q, v, t)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import casadi as ca

from pfaffian.errors import ModelError, brief, plural
from pfaffian.maths.closures import CLOSURES, ClosureKind
from pfaffian.model import shown
from pfaffian.model.data import data
from pfaffian.model.joint import axis_frame
from pfaffian.model.number import Scalar, scalar, several, vector
from pfaffian.model.pose import IDENTITY, Pose, as_pose


@data
class Closure:
    """A joint that closes a loop: rows of the relative twist of frame B in frame A are held at zero.

    number: pitch [m/rad] or length [m] of the kinds that have one, else zero.
    """

    name: str
    kind: str
    body_a: str
    body_b: str
    placement_a: Pose
    placement_b: Pose
    number: ca.SX
    active: Callable[[Any], ca.SX] | None = None

    def __repr__(self) -> str:
        kind = f"{self.kind} of {self.holds.number} {shown.number(self.number)}" if self.holds.number else self.kind
        parts = [kind, f"{self.body_a!r} to {self.body_b!r}", plural(len(self.holds.rows), "row")]
        return shown.words(self, *parts, *_while(self), name=self.name)

    @property
    def holds(self) -> ClosureKind:
        return CLOSURES[self.kind]


@data
class Holonomic:
    """phi(k) = 0, phi a function of Kinematics (q, t, poses, parameters) giving a column."""

    name: str
    phi: Callable[[Any], ca.SX]
    active: Callable[[Any], ca.SX] | None = None

    def __repr__(self) -> str:
        return shown.words(self, f"phi(q, t) = 0 by {shown.function(self.phi)}", *_while(self), name=self.name)


@data
class Nonholonomic:
    """eta(k) = 0, eta a function of Kinematics and so of q, v and t: the Pfaffian rows A = d eta / d v."""

    name: str
    eta: Callable[[Any], ca.SX]
    active: Callable[[Any], ca.SX] | None = None

    def __repr__(self) -> str:
        return shown.words(self, f"eta(q, v, t) = 0 by {shown.function(self.eta)}", *_while(self), name=self.name)


@data
class AccelerationConstraint:
    """Z v_dot = z, `rows` a function of Kinematics giving Z (m, nv) and z (m, 1)."""

    name: str
    rows: Callable[[Any], tuple[Any, Any]]
    active: Callable[[Any], ca.SX] | None = None

    def __repr__(self) -> str:
        return shown.words(self, f"Z v_dot = z by {shown.function(self.rows)}", *_while(self), name=self.name)


def _while(c: Target) -> list[str]:
    return [] if c.active is None else [f"while {shown.function(c.active)}"]


Target = Closure | Holonomic | Nonholonomic | AccelerationConstraint


@data
class Servo:
    """A desired motion `target`, held not by an ideal reaction but by forces along chosen directions. [ider]

    directions: names of inputs of the mechanism, or a function of Kinematics giving rows (count, nv).
    stiffness [1/s^2] and damping [1/s] draw position and velocity errors of the target to zero.
    """

    name: str
    target: Target
    directions: tuple[str, ...] | Callable[[Any], ca.SX]
    stiffness: ca.SX
    damping: ca.SX

    def __repr__(self) -> str:
        by = shown.function(self.directions) if callable(self.directions) else shown.listed(self.directions)
        return shown.words(self, f"holds {self.target!r} by forces along {by}", name=self.name)


Constraint = Target | Servo


def closure(
    name: str,
    kind: str,
    body_a: str,
    body_b: str,
    *,
    placement_a: Any = IDENTITY,
    placement_b: Any = IDENTITY,
    axis: Any = (0, 0, 1),
    axis_b: Any = None,
    pitch: Scalar | None = None,
    length: Scalar | None = None,
) -> Closure:
    """Close a loop by a joint between two bodies that are in the tree already. [chhabra14 table 2.1]

    Rows are what the kind holds of the twist of b seen from a, [v; w] along the joint's axes in a: `vx` ... `wz` [m/s, rad/s];
    `screw`, vz - pitch wz [m/s]; `cross`, the cosine of the angle between the two axes [1]; `length` [m/s].

    Args:
        body_a, body_b: names, "world" for the fixed frame.
        kind: weld (fixed), revolute, prismatic, helical, cylindrical, planar, spherical, universal; planar-translation (two
            directions), translation (all three), schoenflies (planar and along the normal: parallel axes), planar-helical (a
            helix normal to the plane that it slides in); point-on-line, point-on-plane: the origin of b's frame on what a has;
            distance: origins `length` apart, a rod of balls.
        placement_a, placement_b: the joint's frame in each body, poses or positions; the two coincide up to the joint's motion.
        axis: (3,) of the joint, line or plane normal, in the joint frame.
        axis_b: (3,) of a universal joint the second axis, in the joint frame of b; `axis` is then that of a alone.
        pitch: [m/rad] along the axis, of the kinds that screw; not zero.   length: [m] of a distance, above zero.
    Raises ModelError: an unknown kind, a zero axis, a number that the kind needs and has not, or has no use for.
    """
    what = f"constraint {name!r}"
    if not isinstance(kind, str) or kind not in CLOSURES:
        raise ModelError(f"{what}: kind {brief(kind)} is unknown; one of {', '.join(CLOSURES)}")
    G = axis_frame(axis, what)
    if (axis_b is None) == (kind == "universal"):
        raise ModelError(f"{what}: axis_b, the second axis, is for a universal joint, which needs it; the kind is {kind}")
    H = G if axis_b is None else axis_frame(axis_b, f"{what}: axis_b")
    a, b = as_pose(placement_a, f"{what}: placement") @ G, as_pose(placement_b, f"{what}: placement") @ H
    number = _number(CLOSURES[kind], {"pitch": pitch, "length": length}, what)
    return Closure(name, kind, body_a, body_b, a, b, number)


def _number(kind: ClosureKind, given: dict[str, Scalar | None], what: str) -> ca.SX:
    """The one number that a kind takes. Raises ModelError: it is missing, zero or below, or another one is given."""
    for word, value in given.items():
        if (value is None) == (word == kind.number):
            kinds = ", ".join(k.name for k in CLOSURES.values() if k.number == word)
            raise ModelError(f"{what}: {word} is for {kinds}, which need it; the kind is {kind.name}")
    if not kind.number:
        return ca.SX(0)
    x = scalar(given[kind.number], f"{what}: {kind.number}")
    if x.is_zero():
        raise ModelError(f"{what}: {kind.number} must not be zero; a {_PLAIN[kind.name]} closure has none")
    if kind.number == "length" and x.is_constant() and float(x) < 0:
        raise ModelError(f"{what}: length {float(x):g} is below zero")
    return x


_PLAIN = {"helical": "revolute", "planar-helical": "planar", "distance": "spherical"}
"""What a kind becomes where its number is zero."""


def coincide(name: str, body_a: str, point_a: Any, body_b: str, point_b: Any) -> Closure:
    """Hold point_a (3,) [m] of body_a on point_b (3,) [m] of body_b: a spherical closure."""
    a, b = (Pose(IDENTITY.R, vector(x, 3, f"constraint {name!r}: point")) for x in (point_a, point_b))
    return Closure(name, "spherical", body_a, body_b, a, b, ca.SX(0))


def holonomic(name: str, phi: Callable[[Any], ca.SX]) -> Holonomic:
    """phi(k) = 0. `phi` receives the mechanism's Kinematics: k.q, k.t, k.joint(name), k.position(body, point), ...

    It may move with time, and by a parameter that a run changes, but not jump: a run in which it jumps, by a comparison with
    the time, say, stops and says how far.
    """
    if not callable(phi):
        raise ModelError(f"constraint {name!r}: phi must be a function of the kinematics, got {brief(phi)}")
    return Holonomic(name, phi)


def servo(
    target: Target, directions: Sequence[str] | Callable[[Any], ca.SX], *, stiffness: Scalar = 400.0, damping: Scalar = 40.0
) -> Servo:
    """Hold a target (closure, phi = 0, eta = 0, Z v_dot = z) by forces along chosen directions, as many as the target has rows.

    Args:
        directions: input names, e.g. actuators, or a function of Kinematics giving rows (count, nv).
        stiffness, damping: [1/s^2], [1/s] of the error dynamics, phi_ddot + damping phi_dot + stiffness phi = 0.
    """
    if not isinstance(target, Constraint):
        raise ModelError(f"servo(target, directions): the target must be a constraint, got {brief(target)}")
    what = f"servo constraint {target.name!r}"
    if isinstance(target, Servo):
        raise ModelError(f"{what} is a servo constraint already")
    if target.active is not None:
        raise ModelError(f"{what}: forces hold it throughout; it cannot be active for a while only")
    if not callable(directions):
        names = tuple(directions) if several(directions) else ()
        if not names or not all(isinstance(n, str) for n in names):
            raise ModelError(f"{what}: directions must be a list of input names or a function, got {brief(directions)}")
        directions = names
    numbers = scalar(stiffness, f"{what}: stiffness"), scalar(damping, f"{what}: damping")
    for word, number in zip(("stiffness", "damping"), numbers, strict=True):
        if number.is_constant() and float(number) < 0:
            raise ModelError(f"{what}: {word} {float(number):g} is below zero and would drive errors away from zero")
    return Servo(target.name, target, directions, *numbers)


def active_while(constraint: Target, condition: Callable[[Any], ca.SX]) -> Target:
    """The constraint only while condition(k) is not zero, e.g. `lambda k: k.t < 2`; it comes and goes within a run.

    When it comes back, velocities are projected onto it (an inelastic stop). Its phi has to be near zero then, no further than
    what velocities cover in two steps: a run in which it comes on elsewhere stops and says how far off it was. A run stops too
    where the condition becomes no number.
    """
    if not isinstance(constraint, Target) or not callable(condition):
        name = f"constraint {constraint.name!r}: " if isinstance(constraint, Constraint) else ""
        got = f"got {brief(constraint)} and {brief(condition)}"
        raise ModelError(f"{name}active_while takes a geometrical constraint and a function of the kinematics, {got}")
    return replace(constraint, active=condition)


def nonholonomic(name: str, eta: Callable[[Any], ca.SX]) -> Nonholonomic:
    """eta(k) = 0, a function of velocities, such as a point's velocity along a direction. [konz25 (3.125)]

    Rows A = d eta / d v, b = -(d eta / d q q_dot + d eta / d t). Where eta is affine in v, A(q, t) v = c(q, t), the reaction
    A^T lambda does work only through c. A nonlinear one, v . v = c^2 for a constant speed, is allowed: its reaction is the
    smallest that keeps eta = 0 (Gauss, Chetaev), and it does work, (A v) . lambda, so energy is not kept. Where A vanishes, as
    that of v . v does at rest, the row holds nothing and no start is found: give v a direction.
    """
    if not callable(eta):
        raise ModelError(f"constraint {name!r}: eta must be a function of the kinematics, got {brief(eta)}")
    return Nonholonomic(name, eta)


def acceleration_constraint(name: str, rows: Callable[[Any], tuple[Any, Any]]) -> AccelerationConstraint:
    """Z v_dot = z: accelerations alone are held, whatever q and v are. [konz25 (3.124)]

    Nothing stands behind it that a correction could bring the state back to: what a step errs stays. Write phi = 0 or
    eta = 0 where there is one, or add to z what draws it back, -k eta. The reaction Z^T lambda may do work.

    Args:
        rows: function of Kinematics that gives Z (m, nv) and z (m,), functions of q, v and t, e.g.
            `lambda k: ([[1, -1]], [0])`. A row of zeros is an error, except in rows that only vanish at some states.
    Raises ModelError: rows is no function; when the equations are made, shapes that do not fit, a row without entries.
    """
    if not callable(rows):
        raise ModelError(f"constraint {name!r}: rows must be a function of the kinematics that gives (Z, z), got {brief(rows)}")
    return AccelerationConstraint(name, rows)
