"""Joints of the tree, and the relative motions that each kind allows.

Every joint acts about or along the z axis of its frame, and `axis` turns that frame. The velocity of every kind is body-fixed:
V = S v with a constant motion subspace S, in the joint frame on the child. A universal joint consists of two revolute joints.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError, brief, nearest, unknown_kind
from pfaffian.maths.repeated import repeated
from pfaffian.maths.subgroups import SUBGROUPS, Subgroup
from pfaffian.model import reprs
from pfaffian.model.data import data
from pfaffian.model.number import (
    Scalar,
    are_plain,
    at_defaults,
    constants,
    interval,
    is_symmetric,
    matrix,
    named_float,
    scalar,
    several,
    sx_named,
    vector,
)
from pfaffian.model.pose import IDENTITY, Pose, align_z, as_pose, clean
from pfaffian.tables import Registry

UNLIMITED = (-np.inf, np.inf)
"""(low, high) of a coordinate without limits."""


class JointFactor(NamedTuple):
    """One of the subgroups of a joint kind, about an axis of the joint frame.

    label: name of its coordinate in a kind of several factors, else empty.
    """

    subgroup: Subgroup
    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)
    label: str = ""


@dataclass(frozen=True)
class JointKind:
    """A kind of joint: the motions of one subgroup, or of several in sequence, with their coordinates and velocities."""

    name: str
    factors: tuple[JointFactor, ...]

    @cached_property
    def q_names(self) -> tuple[str, ...]:
        return tuple(f.label or n for f in self.factors for n in f.subgroup.q_names)

    @cached_property
    def v_names(self) -> tuple[str, ...]:
        return tuple(f.label or n for f in self.factors for n in f.subgroup.v_names)

    @cached_property
    def q_units(self) -> tuple[str, ...]:
        return tuple(u for f in self.factors for u in f.subgroup.q_units)

    @cached_property
    def v_units(self) -> tuple[str, ...]:
        return tuple(u for f in self.factors for u in f.subgroup.v_units)

    @cached_property
    def nq(self) -> int:
        return len(self.q_names)

    @cached_property
    def nv(self) -> int:
        """Number of velocities without a distribution."""
        return len(self.v_names)

    @cached_property
    def screws(self) -> bool:
        """Whether the kind has a pitch."""
        return any(f.subgroup.screws for f in self.factors)

    @cached_property
    def quaternion(self) -> bool:
        """Whether the last four coordinates are a quaternion."""
        return self.nq > self.nv


_ABOUT_X, _ABOUT_Y = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)


def _check_kind(name: str, row: Any) -> None:
    """Raise ModelError if a user's row is no JointKind of that name, made of one-dimensional motions of the library."""
    if not isinstance(row, JointKind) or row.name != name or not isinstance(row.factors, tuple) or not row.factors:
        raise ModelError(f"joint kind {name!r}: a JointKind({name!r}, (JointFactor(...), ...)) is needed, got {brief(row)}")
    for f in row.factors:
        if not isinstance(f, JointFactor) or f.subgroup not in SUBGROUPS.values() or f.subgroup.nv != 1:
            raise ModelError(f"joint kind {name!r}: each factor is a JointFactor of a motion in SUBGROUPS with one velocity")
        if not (len(f.axis) == 3 and abs(np.linalg.norm(f.axis) - 1) <= UNIT):
            raise ModelError(f"joint kind {name!r}: the axis of a factor must be three numbers of length one, got {f.axis!r}")
    if len(set(row.q_names)) < row.nq:
        raise ModelError(f"joint kind {name!r}: give each factor a label of its own, which names its coordinate")


UNIT = 1e-12
"""Largest deviation of an axis of a kind from length one."""

KINDS = Registry("joint kind", {name: JointKind(name, (JointFactor(g),)) for name, g in SUBGROUPS.items()} | {
    "universal": JointKind("universal", (JointFactor(SUBGROUPS["revolute"], _ABOUT_X, "about_x"),
                                         JointFactor(SUBGROUPS["revolute"], _ABOUT_Y, "about_y"))),
}, "give your own another name", _check_kind)  # fmt: skip
"""The kinds that `joint` makes. Users add motions in sequence; a joint with other coordinates is a `pf.edge`."""

EDGE = JointKind("edge", ())
"""The kind of an edge: it has no coordinates, and its pose is a function of those of others."""


@data
class Mimic:
    """The law of a coordinate that follows others, made by `mimic`: q = sum of ratio q_other + offset.

    joints: (n,) names of the joints that it follows.
    ratios: (n, 1).
    offset: (1, 1) [rad or m].
    """

    joints: tuple[str, ...]
    ratios: ca.SX
    offset: ca.SX

    def __repr__(self) -> str:
        parts = [f"{reprs.number(self.ratios[i])} {n!r}" for i, n in enumerate(self.joints)]
        return reprs.words(self, " + ".join(parts), f"offset {reprs.number(self.offset)}")


def mimic(ratios: Mapping[str, Scalar], offset: Scalar = 0.0) -> Mimic:
    """A joint coordinate that follows others, for `joint(..., mimic=...)`: q = sum of ratio q_other + offset.

    The rates follow too: q_dot = sum of ratio q_dot_other. Use it for gears, differentials and coupled fingers. It is exact in
    every formulation, since it needs no constraint: the joint has no coordinate of its own.

    Args:
        ratios: dict of name of a joint with one coordinate -> ratio.
        offset: [rad or m], zero by default.
    Raises ModelError: no joint, or values that are not numbers.

    Example:
        >>> import pfaffian as pf
        >>> wheels = [pf.body("big", mass=1.0, inertia=1.0), pf.body("small", mass=1.0, inertia=0.1)]
        >>> big, gear = pf.joint("big", "revolute", "world", "big"), pf.mimic({"big": -3.0})
        >>> small = pf.joint("small", "revolute", "world", "small", placement=(1, 0, 0), mimic=gear)
        >>> pf.mass_matrix(pf.mechanism("gears", wheels, [big, small])).round(9)  # 1 + 0.1 * 3^2
        array([[1.9]])
    """
    if not isinstance(ratios, Mapping) or not ratios or not all(isinstance(n, str) for n in ratios):
        raise ModelError(f"mimic: a dict of joint name -> ratio is needed, got {brief(ratios)}")
    numbers = [scalar(x, f"mimic: ratio of {n!r}") for n, x in ratios.items()]
    return Mimic(tuple(ratios), ca.vertcat(*numbers), scalar(offset, "mimic: offset"))


class JointPart(NamedTuple):
    """One factor of a joint as a link of the tree.

    placement: its frame in the frame of the previous factor, or in the parent body for the first one.
    subgroup: its motions, with the pitch.
    S: (6, nv) motion subspace: the body twist of the child relative to the parent is S v, in the factor's frame on the child.
    q, v: slices of the joint's coordinates and velocities that belong to it.
    """

    placement: Pose
    subgroup: Subgroup
    S: ca.SX
    q: slice
    v: slice


@data
class Joint:
    """A joint or edge of a mechanism, made by `joint`, `edge` or `locked`.

    The pose of the child in the parent body is placement . motion(q) . child_placement^-1.

    Both placements include the rotation that turns z to the axis. Spring, damper and armature act along the velocities of the
    joint: tau = -E^T stiffness e - damping v, with e the displacement from rest (see `Joint.displacement`). The armature adds
    to the diagonal of M. In the shapes below, k is the dimension of the joint's group, and nv that of its distribution, else k.

    name: unique among the joints.
    kind: a JointKind; `kind.name` is its name, "edge" for an edge.
    parent, child: names of the bodies.
    placement, child_placement: joint frame in the parent and in the child body.
    stiffness: (k, k), rest: (nq, 1), damping: (nv, nv), armature: (nv, 1) [kg m^2 or kg].
    limits: (low, high) of each coordinate.
    effort: the largest |u| of an actuator on the joint.
    pitch: [m/rad] of a joint that screws, else zero.
    distribution: (k, nv), or None.
    speeds: name and unit of each velocity, if the joint has a distribution; else empty.
    mimic: the law by which its coordinate follows others, or None.
    pose: for an edge, the function of the configuration that gives its pose; else None.

    Example:
        >>> import pfaffian as pf
        >>> hinge = pf.joint("hinge", "revolute", "world", "rod", axis=(0, 1, 0), limits=(-1, 1))
        >>> m = pf.mechanism("pendulum", [pf.body("rod", mass=2.0, inertia=0.1)], [hinge])
        >>> m.joint("hinge")
        <Joint 'hinge': revolute, 'world' to 'rod'>
        >>> m.joint("hinge").nq, m.joint("hinge").limits
        (1, ((-1.0, 1.0),))
    """

    name: str
    kind: JointKind
    parent: str
    child: str
    placement: Pose
    child_placement: Pose
    stiffness: ca.SX
    rest: ca.SX
    damping: ca.SX
    armature: ca.SX
    limits: tuple[tuple[float, float], ...]
    effort: float
    pitch: ca.SX
    distribution: ca.SX | None = None
    speeds: tuple[tuple[str, str], ...] = ()
    mimic: Mimic | None = None
    pose: Callable[[Any], Pose] | None = None

    def __repr__(self) -> str:
        parts = [self.kind.name, f"{self.parent!r} to {self.child!r}"]
        if self.distribution is not None:
            parts.append(f"speeds {reprs.listed(self.v_names)}")
        if self.mimic:
            parts.append(f"follows {reprs.listed(self.mimic.joints)}")
        return reprs.words(self, *parts, name=self.name)

    @property
    def moves(self) -> bool:
        """Whether the child moves relative to the parent, by coordinates of this joint or of the joints that it follows."""
        return self.kind.nv > 0

    @property
    def q_names(self) -> tuple[str, ...]:
        return () if self.mimic else self.kind.q_names

    @property
    def v_names(self) -> tuple[str, ...]:
        return () if self.mimic else tuple(n for n, _ in self.speeds) if self.speeds else self.kind.v_names

    @property
    def q_units(self) -> tuple[str, ...]:
        return () if self.mimic else self.kind.q_units

    @property
    def v_units(self) -> tuple[str, ...]:
        return () if self.mimic else tuple(u for _, u in self.speeds) if self.speeds else self.kind.v_units

    @property
    def nq(self) -> int:
        return len(self.q_names)

    @property
    def nv(self) -> int:
        return len(self.v_names)

    @property
    def plain(self) -> int:
        """Number of leading coordinates, before a quaternion, whose rates are velocities up to an orthogonal transformation."""
        return 0 if self.distribution is not None else self.nq - 4 * self.kind.quaternion

    @cached_property
    def parts(self) -> tuple[JointPart, ...]:
        """The parts of the joint, one for each factor of its kind."""
        parts, before, q, v = list[JointPart](), self.placement, 0, 0
        for axis, g in ((f.axis, f.subgroup) for f in self.kind.factors):
            g = g.with_pitch(self.pitch) if g.screws else g
            S = g.S if self.distribution is None else g.S @ self.distribution
            turn = _turned_z(*axis)
            parts.append(JointPart(before @ turn, g, S, slice(q, q + g.nq), slice(v, v + S.shape[1])))
            before, q, v = turn.inverse(), q + g.nq, v + S.shape[1]
        return tuple(parts)

    @property
    def end(self) -> Pose:
        """The pose of the child body in the frame of the last part."""
        turn = _turned_z(*self.kind.factors[-1].axis) if self.kind.factors else IDENTITY
        return turn.inverse() @ self.child_placement.inverse()

    def kinematic(self, q: ca.SX) -> ca.SX:
        """K (nq, nv) at the joint's coordinates q (nq, 1): q_dot = K v."""
        (K,) = _kinematic(self.kind)(q)
        return K if self.distribution is None else K @ self.distribution

    def displacement(self, q: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Displacement e (k, 1) of a joint's spring from rest, and E (k, nv) with e_dot = E v.

        For translations [m] along the joint frame on the parent and for angles [rad], e is a difference of coordinates. For an
        orientation, e is twice the vector part of the quaternion from rest to q, which for small rotations is the rotation
        vector. With one stiffness k about all axes the energy is e^T k e / 2 = k (1 - cos angle), in general tr(P (1 - R)). It
        is smooth, and the same for both quaternions of a rotation.
        """
        pairs = [part.subgroup.displacement(q[part.q, 0], self.rest[part.q, 0]) for part in self.parts]
        e, E = ca.vertcat(*[e for e, _ in pairs]), ca.SX(ca.diagcat(*[E for _, E in pairs]))
        return e, E if self.distribution is None else E @ self.distribution


def joint(
    name: str,
    kind: str,
    parent: str,
    child: str,
    *,
    axis: Any = (0, 0, 1),
    placement: Any = IDENTITY,
    child_placement: Any = IDENTITY,
    pitch: Scalar | None = None,
    stiffness: Any = 0.0,
    rest: Any = None,
    damping: Any = 0.0,
    armature: Any = 0.0,
    limits: Any = UNLIMITED,
    effort: float = np.inf,
    distribution: Any = None,
    speeds: Any = None,
    mimic: Mimic | None = None,
) -> Joint:
    """A joint between two bodies, whose kind determines the relative motions that it allows.

    Args:
        name: unique among the joints.
        kind: fixed, revolute, prismatic, helical (turns and slides by `pitch`), cylindrical, planar-translation (slides along
            x and y), translation (slides along x, y and z), planar, planar-helical (slides in a plane and screws along its
            normal), schoenflies (planar motion and sliding along the normal), universal (turns about x, then about y),
            spherical or free.
        parent, child: names of the bodies, "world" for the fixed frame.
        axis: (3,) of the rotation, the translation or the plane's normal, in the joint frame, of any length; z by default.
        placement: joint frame in the parent body, a pose or a position; the body's frame by default.
        child_placement: joint frame in the child body, a pose or a position; the body's frame by default.
        pitch: [m/rad], for the kinds that screw and no others.
        stiffness: of a spring, SI units: one number for all velocities, one for each, or a symmetric matrix; zero by default.
            With a distribution it refers to all velocities of the kind. For an orientation see `Joint.displacement`.
        rest: (nq,) coordinate(s) at which the spring is relaxed; the joint's zero by default.
        damping: of a damper, SI units: one number for all velocities, one for each, or a symmetric matrix; zero by default.
            With a distribution it refers to the speeds.
        armature: inertia of the rotor [kg m^2 or kg], one number or one for each velocity; zero by default.
        limits: (low, high) of q for a joint of one coordinate, else a pair for each; none by default. A result reports when
            and by how much q exceeded them; nothing enforces them (see `pf.forces.stops`).
        effort: the largest |u| of an actuator on the joint, see `actuator`; infinite by default.
        distribution: the velocities that remain when some are ruled out, by rolling without slip for instance: names of some
            of the joint's velocities, or a matrix B whose columns combine them, v = B speeds. The joint then has fewer speeds
            than coordinates. [chhabra14 (2.1.5)]
        speeds: names of these speeds, or a dict of name -> unit.
        mimic: law by which the coordinate follows others, see `mimic`; for kinds of one coordinate.
    Raises ModelError: an unknown kind, a zero axis, a pitch that is missing or superfluous, limits the wrong way round, a
    negative effort, numbers that do not fit the kind, or a distribution whose columns are linearly dependent.

    Example:
        >>> import pfaffian as pf
        >>> shaft = pf.joint("shaft", "helical", "world", "nut", axis=(0, 0, 1), pitch=0.01, damping=0.2)
        >>> shaft
        <Joint 'shaft': helical, 'world' to 'nut'>
        >>> m = pf.mechanism("screw", [pf.body("nut", mass=1.0, inertia=0.1)], [shaft])
        >>> pf.forward_kinematics(m, [2.0])["nut"].position.round(9)  # 2 rad lift the nut by 0.02 m
        array([0.  , 0.  , 0.02])
    """
    what = f"joint {name!r}"
    if not isinstance(kind, str) or kind not in KINDS:
        raise ModelError(f"{what}: {unknown_kind(kind, list(KINDS))}")
    _check_ends(what, parent, child)
    joint_kind = KINDS[kind]
    if (pitch is None) == joint_kind.screws:
        raise ModelError(f"{what}: a {kind} joint {'needs its pitch=... [m/rad]' if joint_kind.screws else 'has no pitch'}")
    G = axis_frame(axis, what)
    B, named_speeds = _distribution(joint_kind, distribution, speeds, what)
    v_units = [unit for _, unit in named_speeds] or joint_kind.v_units
    at, child_at = (as_pose(x, f"{what}: placement") @ G for x in (placement, child_placement))
    j = Joint(
        name, joint_kind, parent, child, at, child_at,
        **carried(joint_kind, v_units, what, stiffness=stiffness, rest=rest, damping=damping, armature=armature, limits=limits,
                  effort=effort),
        pitch=_zero(1) if pitch is None else scalar(pitch, f"{what}: pitch"),
        distribution=B,
        speeds=named_speeds,
        mimic=mimic,
    )  # fmt: skip
    check_numbers(j, what)
    return j


def edge(name: str, parent: str, child: str, pose: Callable[[Any], Pose]) -> Joint:
    """A joint whose pose is any function of the mechanism's configuration. [konz25 (3.95), (3.101)-(3.104)]

    Together, edges and joints must connect each body to the world by exactly one path; edges may be written in any order and
    from either side. Twists, Jacobians and their rates follow from the pose by differentiation. An edge has no coordinates of
    its own: its pose depends on those of joints and of `coordinates(...)`.

    Args:
        name: unique among the joints.
        parent, child: names of the bodies, "world" for the fixed frame.
        pose: function of the configuration k (k.q, k.joint(name)) giving the Pose of the child's frame in the parent's.
    Raises ModelError: names that are not text, or a pose that is not a function. The value of the function is checked when the
    equations are made.

    Example:
        >>> import casadi as ca
        >>> import pfaffian as pf
        >>> angle = pf.coordinates("c", ["s"], ["s"], lambda q: [[1]])
        >>> bead = pf.edge("wire", "world", "bead", lambda k: pf.pose((ca.cos(k.q[0]), ca.sin(k.q[0]), 0)))
        >>> m = pf.mechanism("bead on a ring", [pf.body("bead", mass=2.0)], [bead], coordinates=[angle])
        >>> pf.mass_matrix(m, [0.3]).round(9)
        array([[2.]])
    """
    what = f"edge {name!r}"
    _check_ends(what, parent, child)
    if not callable(pose):
        raise ModelError(f"{what}: pose must be a function of the configuration, got {brief(pose)}")
    square, column = ca.SX(0, 0), ca.SX(0, 1)
    return Joint(name, EDGE, parent, child, IDENTITY, IDENTITY, square, column, square, column, (), np.inf, ca.SX(0), pose=pose)


def carried(kind: JointKind, v_units: Sequence[str], what: str, **given: Any) -> dict[str, Any]:
    """The fields of a Joint with its spring, damper, rotor, limits and effort, from the arguments of `joint` or `closure`.

    v_units: of its velocities.   what: the label of the joint or closure.   given: the arguments that are not left out.
    Raises ModelError: values that do not fit the kind.
    """
    effort = given.get("effort", np.inf)
    if effort != np.inf and not named_float(effort, f"{what}: effort") >= 0:
        raise ModelError(f"{what}: effort {effort!r} must be zero or positive; leave it out for no limit")
    return {
        "stiffness": _square(given.get("stiffness", 0.0), kind.v_units, f"{what}: stiffness"),
        "rest": _rest(kind, given.get("rest"), f"{what}: rest"),
        "damping": _square(given.get("damping", 0.0), v_units, f"{what}: damping"),
        "armature": _column_of(given.get("armature", 0.0), len(v_units), f"{what}: armature"),
        "limits": _limits(kind, given.get("limits", UNLIMITED), what),
        "effort": float(effort),
    }


def _check_ends(what: str, parent: Any, child: Any) -> None:
    """Raise ModelError unless parent and child are two different names.   what: the label of the joint."""
    for word, body in (("parent", parent), ("child", child)):
        if not isinstance(body, str):
            raise ModelError(f"{what}: {word} must be the name of a body, got {brief(body)}")
    if parent == child:
        raise ModelError(f"{what}: parent and child are both {parent!r}")


def locked(j: Joint, at: Any = None) -> Joint:
    """A fixed joint that locks the given one in place, without coordinates.

    Args:
        j: the joint.
        at: coordinate(s) at which to lock it, in the units of q; the joint's zero if None.
    Raises ModelError: j is not a joint, j follows others and `at` is None, or `at` does not fit its coordinates.

    Example:
        >>> import pfaffian as pf
        >>> hinge = pf.joint("hinge", "revolute", "world", "rod", placement=(0, 0, 2))
        >>> pf.locked(hinge, 0.5).placement
        <Pose: at (0, 0, 2) m, turned by (0, 0, 0.5) rad>
    """
    if not isinstance(j, Joint):
        raise ModelError(f"locked: a joint(...) is needed, got {brief(j)}")
    if j.mimic and at is None:
        raise ModelError(f"joint {j.name!r} follows others; give at=... to lock it, or lock the joints that it follows")
    q, place = _rest(j.kind, at, f"joint {j.name!r}: locked"), IDENTITY
    for part in j.parts:
        R, p = part.subgroup.motion(q[part.q, 0])
        place = place @ part.placement @ Pose(ca.densify(ca.SX(R)), p)
    return joint(j.name, "fixed", j.parent, j.child, placement=place, child_placement=j.end.inverse())


def _distribution(kind: JointKind, value: Any, speeds: Any, what: str) -> tuple[ca.SX | None, tuple[tuple[str, str], ...]]:
    """The matrix B (k, nv) of a distribution, and the name and unit of each speed; None and nothing without a distribution."""
    if value is None:
        if speeds is not None:
            raise ModelError(f"{what}: speeds are the names of a distribution's velocities; give distribution=... too")
        return None, ()
    if len(kind.factors) != 1 or kind.nv < 2:
        raise ModelError(f"{what}: a {kind.name} joint takes no distribution; it is for one group of several velocities")
    names = list(value) if several(value) else []
    if names and all(isinstance(n, str) for n in names):
        for n in names:
            if n not in kind.v_names:
                raise ModelError(f"{what}: distribution: a {kind.name} joint has no velocity {n!r}; {nearest(n, kind.v_names)}")
        B = ca.SX.eye(kind.nv)[:, [kind.v_names.index(n) for n in names]]
    else:
        B = ca.sparsify(matrix(value, f"{what}: distribution"))
    count = B.shape[1]
    if B.shape[0] != kind.nv or not 0 < count < kind.nv:
        raise ModelError(
            f"{what}: distribution: each column combines the {kind.nv} velocities {', '.join(kind.v_names)}: "
            f"({kind.nv}, 1 to {kind.nv - 1}) is needed, got {B.shape}"
        )
    name_units = [_speed(kind, B[:, i], i) for i in range(count)]
    if speeds is not None:
        names = _names(speeds, what)
        if len(names) != count or len(set(names)) != count:
            raise ModelError(f"{what}: speeds: {count} different names are needed, got {brief(speeds)}")
        units = dict(speeds) if isinstance(speeds, Mapping) else dict(zip(names, (u for _, u in name_units), strict=True))
        name_units = [(n, units[n]) for n in names]
        if not all(isinstance(u, str) and u for _, u in name_units):
            raise ModelError(f"{what}: speeds: each unit must be a text, got {brief(speeds)}")
    return B, tuple(name_units)


def _names(value: Any, what: str) -> list[str]:
    """Names of speeds, from a list or the keys of a dict. Raises ModelError: anything else.   what: the label of the joint."""
    names = list(value) if several(value) or isinstance(value, Mapping) else []
    if not names or not all(isinstance(n, str) and n for n in names):
        raise ModelError(f"{what}: speeds: a list of names, or a dict of name -> unit, is needed, got {brief(value)}")
    return names


def _speed(kind: JointKind, column: ca.SX, i: int) -> tuple[str, str]:
    """Default name and unit of the i-th speed: those of the velocity that it equals, else `speed_` with its number.

    column: (k, 1) the speed's column of the distribution.
    """
    rows = [row for row in range(kind.nv) if not column[row].is_zero()]
    units = {kind.v_units[row] for row in rows}
    name = kind.v_names[rows[0]] if len(rows) == 1 and column[rows[0]].is_one() else f"speed_{i + 1}"
    return name, units.pop() if len(units) == 1 else "1/s"


def _square(value: Any, units: Sequence[str], what: str) -> ca.SX:
    """A symmetric (n, n) matrix from one number for all directions, one for each, or a matrix.   units: (n,) of the speeds."""
    n = len(units)
    if _is_plain_zero(value):
        return _nothing(n, n)
    if n == 1 and type(value) is float:
        return scalar(value, what)
    values = sx_named(matrix(value, what), what)
    _check_moves(values, n, what)
    if values.numel() == 1:
        return ca.sparsify(scalar(values, what) * ca.SX.eye(n))
    if values.shape == (n, 1):
        return ca.sparsify(ca.diag(values))
    if values.shape != (n, n):
        raise ModelError(f"{what}: one number, {n} or a symmetric ({n}, {n}) is needed, got {values.shape}")
    if not is_symmetric(values, units):
        raise ModelError(f"{what}: the matrix must be symmetric, or it would give or take energy")
    return ca.sparsify(ca.triu2symm(ca.triu(values)))


def _check_moves(values: ca.SX, n: int, what: str) -> None:
    """Raise ModelError for values other than zero on a joint without velocities, n = 0."""
    if n == 0 and not values.is_zero():
        raise ModelError(f"{what}: a fixed joint takes none")


@lru_cache
def _nothing(n: int, m: int) -> ca.SX:
    """A matrix (n, m) without entries, one for all joints, which do not change it."""
    return ca.SX(n, m)


@lru_cache
def _zero(n: int, quaternion: bool = False) -> ca.SX:
    """The column (n, 1) of zeros, or the zero of coordinates that end with a quaternion; one for all joints."""
    return ca.vertcat(ca.SX.zeros(n - quaternion, 1), ca.SX.ones(int(quaternion), 1))


def _is_plain_zero(value: Any) -> bool:
    """Whether the value is the float 0.0, the default, which needs no checks."""
    return isinstance(value, float) and value == 0.0


def _column_of(value: Any, n: int, what: str) -> ca.SX:
    """A column (n, 1) from one number for all entries, or one for each."""
    if _is_plain_zero(value):
        return _zero(n)
    if n == 1 and type(value) is float:
        return scalar(value, what)
    values = matrix(value, what)
    _check_moves(values, n, what)
    return ca.repmat(scalar(values, what), n, 1) if values.numel() == 1 else vector(values, n, what)


def _rest(kind: JointKind, value: Any, what: str) -> ca.SX:
    """The configuration (nq, 1) of a joint, with its quaternion normalised; the joint's zero if the value is None."""
    if value is None:
        return _zero(kind.nq, kind.quaternion)
    if kind.nq == 1 and type(value) is float:
        return scalar(value, what)
    q = vector([value] if kind.nq == 1 and not several(value) else value, kind.nq, what)
    if not kind.quaternion:
        return q
    turn = q[-4:, 0]
    if not turn.is_constant() or not float(ca.norm_2(ca.DM(turn))) > 1e-6:
        raise ModelError(f"{what}: the quaternion must be numbers, not all zero; the identity is (0, 0, 0, 1)")
    return ca.vertcat(q[:-4, 0], turn / ca.norm_2(turn))


def _limits(kind: JointKind, value: Any, what: str) -> tuple[tuple[float, float], ...]:
    """(low, high) of each coordinate of a joint, checked."""
    if value is UNLIMITED:
        return (UNLIMITED,) * kind.nq
    if kind.nq == 1:
        return (interval(value, f"{what}: limits"),)
    pairs = list(value) if several(value) else []
    if not any(map(several, pairs)):
        pair = interval(value, f"{what}: limits")
        pairs = [pair] * kind.nq if pair == UNLIMITED else [pair]
    if (kind.nq == 0 or kind.quaternion) and any(x != UNLIMITED for x in pairs):
        raise ModelError(f"{what}: a {kind.name} joint takes no limits")
    if len(pairs) != kind.nq:
        raise ModelError(
            f"{what}: limits: a pair (low, high) for each of {', '.join(kind.q_names)} is needed, got {brief(value)}"
        )
    return tuple(interval(x, f"{what}: limits of {n or 'q'}") for x, n in zip(pairs, kind.q_names, strict=True))


def check_numbers(j: Joint, what: str) -> None:
    """Raise ModelError for arguments of a joint that do not fit each other.   what: the label of the joint or closure."""
    k = j.kind.nv
    if not j.armature.is_zero() and (a := at_defaults(j.armature)) is not None and (a < 0).any():
        raise ModelError(f"{what}: armature {a.min():g} is below zero, but it is an inertia")
    if j.kind.quaternion and k > 3 and not j.stiffness[: k - 3, k - 3 :].is_zero():
        raise ModelError(
            f"{what}: stiffness: a joint's spring cannot couple translations to an orientation; use pf.forces.pose_spring"
        )
    if j.mimic is not None:
        if not isinstance(j.mimic, Mimic):
            raise ModelError(f"{what}: mimic={brief(j.mimic)}; make it by mimic({{'other': ratio}})")
        if j.kind.nq != 1:
            raise ModelError(f"{what}: a {j.kind.name} joint cannot follow others; it is for joints of one coordinate")
        if j.limits != (UNLIMITED,) or j.effort != np.inf:
            raise ModelError(f"{what}: it follows others and has no limits or effort; give them to the joints that it follows")


def axis_frame(axis: Any, what: str) -> Pose:
    """The pose that turns z to the axis, (3,) plain numbers of any length.   what: the label of the element."""
    plain = are_plain(axis) and len(axis) == 3
    n = [*map(float, axis)] if plain else constants(_constant(vector(axis, 3, f"{what}: axis"), what)).ravel().tolist()
    found = _along(*n)
    if found is None:
        raise ModelError(f"{what}: the axis {tuple(n)} has no direction")
    return found


@repeated
def _kinematic(kind: JointKind, q: ca.SX) -> tuple[ca.SX]:
    """K of a kind of joint."""
    blocks, first = list[ca.SX](), 0
    for factor in kind.factors:
        blocks.append(factor.subgroup.kinematic(q[first : first + factor.subgroup.nq, 0]))
        first += factor.subgroup.nq
    return (ca.SX(ca.diagcat(*blocks)),)


@lru_cache(maxsize=4096)
def _along(x: float, y: float, z: float) -> Pose | None:
    """The pose that turns z to the vector (x, y, z), None for zero; cached, since a machine has few directions."""
    n = np.array([x, y, z])
    length = np.linalg.norm(n)
    return _turned_z(*(n / length).tolist()) if length > 1e-9 else None


@lru_cache(maxsize=4096)
def _turned_z(x: float, y: float, z: float) -> Pose:
    """The pose that turns z to the unit vector (x, y, z); cached for the same reason."""
    return Pose(clean(ca.DM(align_z(np.array([x, y, z])))), IDENTITY.p)


def _constant(x: ca.SX, what: str) -> ca.SX:
    """An axis x unchanged. Raises ModelError: it depends on parameters."""
    if not x.is_constant():
        raise ModelError(f"{what}: the axis must be plain numbers; turn the placement to make it a parameter")
    return x
