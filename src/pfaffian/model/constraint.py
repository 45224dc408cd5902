"""Constraints in addition to the joints of the tree: closures, phi(q, t) = 0, eta(q, v, t) = 0 and Z v_dot = z.

Z and z may depend on q, v and t.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, cached_property
from typing import Any, overload

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError, brief, plural, unknown_kind
from pfaffian.maths.closures import CLOSURES, ClosureKind
from pfaffian.maths.subgroups import SUBGROUPS
from pfaffian.model import reprs
from pfaffian.model.compound import Compound
from pfaffian.model.data import data
from pfaffian.model.joint import UNLIMITED, Joint, JointFactor, JointKind, Mimic, axis_frame, carried, check_numbers
from pfaffian.model.number import Scalar, not_negative, scalar, several, vector
from pfaffian.model.pose import IDENTITY, Pose, as_pose


@data
class Closure:
    """A joint that closes a loop, made by `closure` or `coincide`: some rows of the twist of frame B relative to A are zero.

    number: pitch [m/rad] or length [m] for the kinds that have one, else zero.
    active: a function of Kinematics that is not zero while the constraint holds; None for always.
    stiffness: (k, k), rest: (nq, 1), damping: (k, k), armature: (k, 1), limits, effort: as of a Joint, for the k motions that
        the kind permits; None for what the closure does not carry.   friction: (k, 1) dry friction along each of them [N, N m],
        or None.
    mimic: the law by which its coordinate follows those of joints of the tree, or None.
    near: (angles, 1) angles within half a turn of which those of the closure are given, where the pose alone leaves their turns
        open; None for the middle of the limits, or the rest.
    axes: (3, 2) the two axes of a universal closure in its joint frames, which coincide where both angles are zero; None for
        other kinds.
    counted: (angles, 1) what is added to the angles that these are near to, so that a run counts their turns; None elsewhere.
    """

    name: str
    kind: str
    body_a: str
    body_b: str
    placement_a: Pose
    placement_b: Pose
    number: ca.SX
    active: Callable[[Any], ca.SX] | None = None
    stiffness: ca.SX | None = None
    rest: ca.SX | None = None
    damping: ca.SX | None = None
    armature: ca.SX | None = None
    friction: ca.SX | None = None
    limits: tuple[tuple[float, float], ...] | None = None
    effort: float | None = None
    mimic: Mimic | None = None
    near: ca.SX | None = None
    axes: ca.SX | None = None
    counted: ca.SX | None = None

    def __repr__(self) -> str:
        kind = f"{self.kind} of {self.holds.number} {reprs.number(self.number)}" if self.holds.number else self.kind
        parts = [kind, f"{self.body_a!r} to {self.body_b!r}", plural(len(self.holds.rows), "row")]
        parts += [f"with {reprs.listed(self.carries)}"] if self.carries else []
        parts += [f"follows {reprs.listed(self.mimic.joints)}"] if self.mimic else []
        return reprs.words(self, *parts, *_condition_text(self), name=self.name)

    @property
    def holds(self) -> ClosureKind:
        """The kind of the closure, with its rows."""
        return CLOSURES[self.kind]

    @cached_property
    def joint(self) -> Joint | None:
        """The joint that closes the loop, from body_a to body_b, with the coordinates and velocities of the motions that the
        kind permits; None for a kind that is no joint or permits no motion.

        It has no entries in the mechanism's q and v: its coordinates follow from those of the tree.
        """
        kind = _joint_kind(self.kind)
        if kind is None or not kind.nv:
            return None
        nothing = carried(kind, kind.v_units, "")
        given = {n: x for n in nothing if (x := getattr(self, n)) is not None}
        ends = self.placement_a, self.placement_b
        return Joint(self.name, kind, self.body_a, self.body_b, *ends, **(nothing | given), pitch=self.number)

    @cached_property
    def zero(self) -> ca.SX | None:
        """(3, 3) rotation of B relative to A where both angles of a universal closure are zero; None for other kinds."""
        if self.axes is None:
            return None
        G, H = (axis_frame(x, f"constraint {self.name!r}").R for x in ca.horzsplit(self.axes))
        return G.T @ H

    @property
    def carries(self) -> tuple[str, ...]:
        """What the closure has of a spring, a damper, a rotor, friction, limits and an effort, in words."""
        return tuple(n for n in CARRIED if n != "rest" and getattr(self, n) is not None)


CARRIED = {
    "stiffness": 0.0, "rest": None, "damping": 0.0, "armature": 0.0, "limits": UNLIMITED, "effort": np.inf, "friction": 0.0,
}  # fmt: skip
"""What a closure can carry besides its rows -> the value of the argument that says it carries none."""


@data
class Holonomic:
    """A constraint phi(k) = 0, where phi is a function of Kinematics (q, t, poses, parameters) giving a column."""

    name: str
    phi: Callable[[Any], ca.SX]
    active: Callable[[Any], ca.SX] | None = None

    def __repr__(self) -> str:
        return reprs.words(self, f"phi(q, t) = 0 by {reprs.function(self.phi)}", *_condition_text(self), name=self.name)


@data
class Nonholonomic:
    """A constraint eta(k) = 0, where eta is a function of Kinematics (of q, v and t) with the Pfaffian rows A = d eta / d v."""

    name: str
    eta: Callable[[Any], ca.SX]
    active: Callable[[Any], ca.SX] | None = None

    def __repr__(self) -> str:
        return reprs.words(self, f"eta(q, v, t) = 0 by {reprs.function(self.eta)}", *_condition_text(self), name=self.name)


@data
class AccelerationConstraint:
    """A constraint Z v_dot = z, where `rows` is a function of Kinematics giving Z (m, nv) and z (m, 1)."""

    name: str
    rows: Callable[[Any], tuple[Any, Any]]
    active: Callable[[Any], ca.SX] | None = None

    def __repr__(self) -> str:
        return reprs.words(self, f"Z v_dot = z by {reprs.function(self.rows)}", *_condition_text(self), name=self.name)


def _condition_text(c: Target) -> list[str]:
    """The part of a repr that names the condition of a constraint; empty if the constraint is always active."""
    return [] if c.active is None else [f"while {reprs.function(c.active)}"]


Target = Closure | Holonomic | Nonholonomic | AccelerationConstraint


@data
class Servo:
    """A constraint `target` that forces along chosen directions maintain, instead of an ideal reaction. [ider]

    directions: names of inputs of the mechanism, or a function of Kinematics giving rows (count, nv).
    stiffness, damping: [1/s^2] and [1/s], with which position and velocity errors of the target decay.
    """

    name: str
    target: Target
    directions: tuple[str, ...] | Callable[[Any], ca.SX]
    stiffness: ca.SX
    damping: ca.SX

    def __repr__(self) -> str:
        by = reprs.function(self.directions) if callable(self.directions) else reprs.listed(self.directions)
        return reprs.words(self, f"holds {self.target!r} by forces along {by}", name=self.name)


Constraint = Target | Servo


@data
class _Following:
    """phi(k) of a closure that follows joints of the tree, zero where its coordinate is that of the law."""

    closure: str
    law: Mimic

    def __call__(self, k: Any) -> ca.SX:
        q = [self.law.ratios[i] * k.joint(n) for i, n in enumerate(self.law.joints)]
        return k.joint(self.closure) - sum(q, self.law.offset)


def with_laws(constraints: Sequence[Constraint]) -> tuple[Constraint, ...]:
    """The constraints, each closure that follows joints with the constraint of its law after it."""
    found = list[Constraint]()
    for c in constraints:
        found.append(c)
        if isinstance(c, Closure) and c.mimic is not None:
            found.append(Holonomic(f"{c.name} follows", _Following(c.name, c.mimic), c.active))
    return tuple(found)


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
    stiffness: Any = 0.0,
    rest: Any = None,
    damping: Any = 0.0,
    armature: Any = 0.0,
    friction: Any = 0.0,
    limits: Any = UNLIMITED,
    effort: float = np.inf,
    mimic: Mimic | None = None,
    near: Any = None,
) -> Closure:
    """A constraint that closes a loop as a joint would, between two bodies that the tree already connects.
    [chhabra14 table 2.1]

    Its rows are the quantities that the kind keeps at zero. They are components of the twist of b relative to a, [v; w] along
    the joint's axes in a, or combinations of them: `vx` ... `wz` [m/s, rad/s]; `screw`, vz - pitch wz [m/s]; `cross`, the rate
    of the cosine of the angle between the two axes [1/s]; `length`, the rate of the distance [m/s].

    Args:
        name: unique among the constraints.
        kind: weld (fixed), revolute, prismatic, helical, cylindrical, planar, spherical, universal; planar-translation (slides
            in two directions), translation (slides in all three), schoenflies (planar motion and sliding along the normal),
            planar-helical (slides in a plane and screws along its normal); point-on-line, point-on-plane: the origin of b's
            frame lies on the line or plane of a; distance: the origins are `length` apart, like a rod between two ball joints.
        body_a, body_b: names of the bodies, "world" for the fixed frame.
        placement_a, placement_b: the joint's frame in each body, poses or positions; the body's frame by default. The two
            frames coincide up to the motions that the joint allows.
        axis: (3,) axis of the joint or line, or normal of the plane, in the joint frame; z by default.
        axis_b: (3,) second axis of a universal joint, in the joint frame of b; `axis` is then the first one, in a.
        pitch: [m/rad] along the axis, not zero; for the kinds that screw and no others.
        length: [m] of a distance, above zero.
        stiffness, rest, damping, armature, limits, effort: of a spring, a damper, a rotor, of the coordinates and of an
            actuator, as in `joint`, for the motions that the kind permits; none by default.
        friction: dry friction [N, N m], one number or one for each of these motions, smooth below 0.001 rad/s or m/s; zero by
            default. `pf.forces.joint_friction` has other laws.
        mimic: law by which the coordinate follows those of joints of the tree, see `mimic`, for kinds of one coordinate; it is
            a constraint of its own, "name follows".
        near: an angle [rad], two for a universal joint. Where the axes of a loop are not parallel, the angle of the closure is
            given within half a turn of it at a state, and a run counts turns from there; a Parameter then takes the angle. By
            default the middle of the limits, else the rest.
    Raises ModelError: an unknown kind, a zero axis, a number that the kind needs but that is missing, or a number that the kind
    does not use; a spring, a damper, a rotor, limits or an effort on a kind without coordinates.

    Example:
        >>> import pfaffian as pf
        >>> slide = pf.joint("slide", "planar", "world", "rod", axis=(0, 1, 0))
        >>> pin = pf.closure("pin", "revolute", "world", "rod", placement_b=(0, 0, 0.5), axis=(0, 1, 0))
        >>> pin
        <Closure 'pin': revolute, 'world' to 'rod', 5 rows>
        >>> m = pf.mechanism("pendulum", [pf.body("rod", mass=2.0, inertia=0.1)], [slide], constraints=[pin])
        >>> m.nv - int(pf.forward_dynamics(m, pf.assemble(m).q).rank)  # degrees of freedom
        1
    """
    what = f"constraint {name!r}"
    if not isinstance(kind, str) or kind not in CLOSURES:
        point = " (pf.coincide makes it from two points)" if kind == "connect" else ""
        raise ModelError(f"{what}: {unknown_kind(kind, list(CLOSURES))}{point}")
    G = axis_frame(axis, what)
    if (axis_b is None) == (kind == "universal"):
        raise ModelError(f"{what}: axis_b, a second axis, is required for kind universal and no other; the kind is {kind}")
    H = G if axis_b is None else axis_frame(axis_b, f"{what}: axis_b")
    a, b = as_pose(placement_a, f"{what}: placement") @ G, as_pose(placement_b, f"{what}: placement") @ H
    number = _number(CLOSURES[kind], {"pitch": pitch, "length": length}, what)
    given = dict(zip(CARRIED, (stiffness, rest, damping, armature, limits, effort, friction), strict=True))
    angles = None if near is None else _near(kind, near, what)
    axes = None if axis_b is None else ca.horzcat(G.R[:, 2], H.R[:, 2])
    c = Closure(name, kind, body_a, body_b, a, b, number, mimic=mimic, near=angles, axes=axes, **_carried(kind, given, what))
    if mimic is not None and c.joint is None:
        raise ModelError(f"{what}: a {kind} closure has no coordinate that could follow others; leave out mimic")
    if (mimic is not None or c.carries) and c.joint is not None:
        check_numbers(replace(c.joint, mimic=mimic), what)
    return c


@cache
def _joint_kind(kind: str) -> JointKind | None:
    """The kind of joint that a kind of closure is; None for one that is no joint."""
    if kind == "universal":
        turn = SUBGROUPS["revolute"]
        return JointKind(kind, (JointFactor(turn, label="about_a"), JointFactor(turn, label="about_b")))
    group = CLOSURES[kind].group
    return None if group is None else JointKind(kind, (JointFactor(group),))


def _near(kind: str, value: Any, what: str) -> ca.SX:
    """(angles, 1) the checked argument `near` of a closure. Raises ModelError: a kind whose pose leaves no turns open."""
    joint_kind = _joint_kind(kind)
    angles = 0 if joint_kind is None or CLOSURES[kind].number else joint_kind.q_units.count("rad")
    if not angles:
        raise ModelError(f"{what}: the pose of a {kind} closure leaves no number of turns open; leave out near")
    return vector(value if several(value) else [value], angles, f"{what}: near")


def _carried(kind: str, given: dict[str, Any], what: str) -> dict[str, Any]:
    """The fields of a Closure for what it carries, only those that are given; checked.

    given: name of each argument -> its value.
    Raises ModelError: something is carried by a kind that has no coordinates, or values that do not fit the kind.
    """
    used = [n for n, x in given.items() if not (x is CARRIED[n] or (isinstance(x, (int, float, tuple)) and x == CARRIED[n]))]
    if not used:
        return {}
    joint_kind = _joint_kind(kind)
    if joint_kind is None:
        raise ModelError(
            f"{what}: a {kind} closure has no coordinates, so it takes no {used[0]}; add a force, such as "
            "pf.forces.pose_spring or pf.forces.pose_damper"
        )
    if not joint_kind.nv:
        raise ModelError(
            f"{what}: a {kind} closure leaves no motion free, so it takes no {used[0]}; leave it out, or choose another kind"
        )
    dry = given.pop("friction")
    found = carried(joint_kind, joint_kind.v_units, what, **given)
    found["friction"] = _dry(dry, joint_kind.nv, f"{what}: friction")
    return {n: x for n, x in found.items() if n in used}


def _dry(value: Any, n: int, what: str) -> ca.SX:
    """(n, 1) dry friction, from one number for all motions or one for each. Raises ModelError: a number below zero."""
    numbers = [not_negative(x, what) for x in (value if several(value) else [value] * n)]
    if len(numbers) != n:
        raise ModelError(f"{what}: one number, or one for each of {n} motions, is needed, got {brief(value)}")
    return ca.vertcat(*numbers)


def _number(kind: ClosureKind, given: dict[str, Scalar | None], what: str) -> ca.SX:
    """The pitch or length of a closure of this kind, zero for a kind without one.

    given: name of each number -> the value that the user gave, or None.
    Raises ModelError: the number is missing or zero, a length is below zero, or a number is given that the kind does not use.
    """
    for word, value in given.items():
        if (value is None) == (word == kind.number):
            kinds = ", ".join(k.name for k in CLOSURES.values() if k.number == word)
            raise ModelError(f"{what}: {word} is required for {kinds} and no other kind; the kind is {kind.name}")
    if not kind.number:
        return ca.SX(0)
    x = scalar(given[kind.number], f"{what}: {kind.number}")
    if x.is_zero():
        raise ModelError(f"{what}: {kind.number} must not be zero; use a {_WITHOUT_NUMBER[kind.name]} closure instead")
    if kind.number == "length" and x.is_constant() and float(x) < 0:
        raise ModelError(f"{what}: length {float(x):g} is below zero")
    return x


_WITHOUT_NUMBER = {"helical": "revolute", "planar-helical": "planar", "distance": "spherical"}
"""Kind with a number -> the kind to which it reduces where that number is zero."""


def coincide(name: str, body_a: str, point_a: Any, body_b: str, point_b: Any) -> Closure:
    """A constraint that keeps a point of one body on a point of another: a spherical closure.

    Args:
        name: unique among the constraints.
        body_a, body_b: names, "world" for the fixed frame.
        point_a, point_b: (3,) in the frame of each body [m].
    Raises ModelError: points that are not three numbers.

    Example:
        >>> import pfaffian as pf
        >>> slide = pf.joint("slide", "planar", "world", "rod", axis=(0, 1, 0))
        >>> pin = pf.coincide("pin", "world", (0, 0, 0), "rod", (0, 0, 0.5))
        >>> m = pf.mechanism("pendulum", [pf.body("rod", mass=2.0, inertia=0.1)], [slide], constraints=[pin])
        >>> float(pf.forward_kinematics(m, pf.assemble(m).q)["rod"].position[2].round(6))
        -0.5
    """
    a, b = (Pose(IDENTITY.R, vector(x, 3, f"constraint {name!r}: point")) for x in (point_a, point_b))
    return Closure(name, "spherical", body_a, body_b, a, b, ca.SX(0))


def holonomic(name: str, phi: Callable[[Any], ca.SX]) -> Holonomic:
    """A constraint phi(k) = 0 on the configuration.

    phi may vary with time, and with a parameter that a run changes, but it may not jump. A run stops where phi jumps, for
    instance because it compares the time with a number, and reports the size of the jump.

    Args:
        name: unique among the constraints.
        phi: function of the mechanism's Kinematics k (k.q, k.t, k.joint(name), k.position(body, point), ...) giving a number or
            a column.
    Raises ModelError: phi is not a function.

    Example:
        >>> import pfaffian as pf
        >>> ring = pf.holonomic("ring", lambda k: k.q[0]**2 + k.q[1]**2 - 1)
        >>> plane = pf.joint("plane", "planar-translation", "world", "bead")
        >>> m = pf.mechanism("bead", [pf.body("bead", mass=2.0)], [plane], constraints=[ring], gravity=(0, -9.81, 0))
        >>> float(pf.forward_dynamics(m, [0.0, -1.0]).reaction[1].round(6))  # at the lowest point the ring carries m g
        19.62
    """
    if not callable(phi):
        raise ModelError(f"constraint {name!r}: phi must be a function of the kinematics, got {brief(phi)}")
    return Holonomic(name, phi)


def servo(
    target: Target, directions: Sequence[str] | Callable[[Any], ca.SX], *, stiffness: Scalar = 400.0, damping: Scalar = 40.0
) -> Servo:
    """A constraint that forces along chosen directions maintain, instead of an ideal reaction. [ider]

    Args:
        target: the constraint: a closure, phi = 0, eta = 0 or Z v_dot = z. The servo constraint takes its name.
        directions: as many as the target has rows: names of inputs, such as actuators, or a function of Kinematics giving rows
            (count, nv).
        stiffness, damping: [1/s^2], [1/s] of the error dynamics, phi_ddot + damping phi_dot + stiffness phi = 0; 400 and 40 by
            default.
    Raises ModelError: a target that is not a constraint, that is a servo constraint already, or that is active only for a
    while; directions of another form; a stiffness or damping below zero.

    Example:
        >>> import pfaffian as pf
        >>> ball, z = pf.body("ball", mass=2.0), pf.joint("z", "prismatic", "world", "ball")
        >>> hover = pf.servo(pf.holonomic("height", lambda k: k.q[0] - 1), ["lift"])
        >>> m = pf.mechanism("mass", [ball], [z], constraints=[hover], actuators=[pf.actuator("lift", "z")])
        >>> pf.forward_dynamics(m, [1.01]).v_dot.round(6)  # -400 * 0.01
        array([-4.])
    """
    if not isinstance(target, Constraint):
        raise ModelError(f"servo(target, directions): the target must be a constraint, got {brief(target)}")
    what = f"servo constraint {target.name!r}"
    if isinstance(target, Servo):
        raise ModelError(f"{what} is a servo constraint already")
    if target.active is not None:
        raise ModelError(f"{what}: a servo constraint is always active; leave out active_while")
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


@overload
def active_while(constraint: Target, condition: Callable[[Any], ca.SX]) -> Target: ...
@overload
def active_while(constraint: Compound, condition: Callable[[Any], ca.SX]) -> Compound: ...


def active_while(constraint: Target | Compound, condition: Callable[[Any], ca.SX]) -> Target | Compound:
    """A copy of a constraint that is active only while a condition holds, so that a run can switch it on and off.

    When it becomes active, velocities are projected onto it (an inelastic impact). At that instant phi must be near zero, no
    farther than the velocities cover in two steps; otherwise the run stops and reports the residual. A run also stops where the
    condition is not a number.

    Args:
        constraint: a closure, phi = 0, eta = 0, Z v_dot = z, or a compound of them.
        condition: function of the mechanism's Kinematics giving a number that is not zero while the constraint is active,
            e.g. `lambda k: k.t < 2`.
    Raises ModelError: a constraint of another kind, such as a servo constraint, or a condition that is not a function.

    Example:
        >>> import pfaffian as pf
        >>> hook = pf.constraints.active_while(pf.holonomic("hook", lambda k: k.q[0]), lambda k: k.t < 2)
        >>> ball, z = pf.body("ball", mass=2.0), pf.joint("z", "prismatic", "world", "ball")
        >>> m = pf.mechanism("mass", [ball], [z], constraints=[hook])
        >>> float(pf.forward_dynamics(m, [0.0], t=3.0).v_dot[0].round(6))  # released
        -9.81
    """
    if isinstance(constraint, Compound):  # its record, which knows of no condition, is left out
        return Compound(constraint.name, tuple(active_while(part, condition) for part in constraint.parts))
    if not isinstance(constraint, Target) or not callable(condition):
        name = f"constraint {constraint.name!r}: " if isinstance(constraint, Constraint) else ""
        got = f"got {brief(constraint)} and {brief(condition)}"
        raise ModelError(f"{name}active_while takes a constraint (no servo) and a function of the kinematics, {got}")
    return replace(constraint, active=condition)


def nonholonomic(name: str, eta: Callable[[Any], ca.SX]) -> Nonholonomic:
    """A constraint eta(k) = 0 on the velocities, such as a point's velocity along a direction. [konz25 (3.125)]

    Its rows are A = d eta / d v, b = -(d eta / d q q_dot + d eta / d t). Where eta is affine in v, A(q, t) v = c(q, t), the
    reaction A^T lambda does work only through c. A nonlinear eta is allowed too, such as v . v - c^2 for a constant speed. Its
    reaction is the smallest one that keeps eta = 0 (Gauss, Chetaev). It has the power (A v) . lambda, so energy is not
    conserved. Where A vanishes, as it does for v . v at rest, the row constrains nothing and no start is found: start with a
    velocity.

    Args:
        name: unique among the constraints.
        eta: function of the mechanism's Kinematics k (k.q, k.v, k.t, k.velocity(body, point), ...) giving a number or a column.
    Raises ModelError: eta is not a function.

    Example:
        >>> import pfaffian as pf
        >>> skate = pf.nonholonomic("skate", lambda k: k.v[1])  # no velocity sideways
        >>> ice = pf.joint("ice", "planar", "world", "skate")
        >>> m = pf.mechanism("skater", [pf.body("skate", mass=2.0, inertia=0.1)], [ice], constraints=[skate])
        >>> float(pf.forward_dynamics(m, [0, 0, 0], [3, 0, 1]).reaction[1].round(6))  # the centripetal force m v w
        6.0
    """
    if not callable(eta):
        raise ModelError(f"constraint {name!r}: eta must be a function of the kinematics, got {brief(eta)}")
    return Nonholonomic(name, eta)


def acceleration_constraint(name: str, rows: Callable[[Any], tuple[Any, Any]]) -> AccelerationConstraint:
    """A constraint Z v_dot = z on the accelerations alone, without a condition on q or v. [konz25 (3.124)]

    The constraint has no residual phi or eta onto which a run could correct the state, so errors of the steps accumulate. Where
    such a residual exists, write phi = 0 or eta = 0 instead, or add a term to z that reduces it, -k eta. The reaction
    Z^T lambda may do work.

    Args:
        name: unique among the constraints.
        rows: function of the mechanism's Kinematics giving Z (m, nv) and z (m,), functions of q, v and t, e.g.
            `lambda k: ([[1, -1]], [0])`. A row that is zero at all states is an error; one that vanishes at some states is not.
    Raises ModelError: rows is not a function. When the equations are made: shapes that do not fit, or a row without entries.

    Example:
        >>> import pfaffian as pf
        >>> lift = pf.constraints.acceleration_constraint("lift", lambda k: ([[1]], [0.5]))
        >>> ball, z = pf.body("ball", mass=2.0), pf.joint("z", "prismatic", "world", "ball")
        >>> m = pf.mechanism("mass", [ball], [z], constraints=[lift])
        >>> motion = pf.forward_dynamics(m, [0.0])
        >>> motion.v_dot.round(6), motion.reaction.round(6)  # m (g + 0.5)
        (array([0.5]), array([20.62]))
    """
    if not callable(rows):
        raise ModelError(f"constraint {name!r}: rows must be a function of the kinematics giving (Z, z), got {brief(rows)}")
    return AccelerationConstraint(name, rows)
