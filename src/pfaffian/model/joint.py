"""Joints of the tree: the relative motions that each kind leaves.

Every joint acts about or along the z axis of its frame; `axis` turns that frame. The velocity of every kind is
body-fixed: V = S v with a constant motion subspace S, in the joint frame on the child. A universal joint is two of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError, brief, nearest, unknown_kind
from pfaffian.maths.subgroups import SUBGROUPS, Subgroup
from pfaffian.model import reprs
from pfaffian.model.data import data
from pfaffian.model.number import Scalar, interval, is_symmetric, matrix, named_float, scalar, several, vector
from pfaffian.model.pose import IDENTITY, Pose, align_z, as_pose, clean

UNLIMITED = (-np.inf, np.inf)


class JointFactor(NamedTuple):
    """One subgroup of a kind, about an axis of the joint frame.   label: name of its coordinate, where a kind has several."""

    subgroup: Subgroup
    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)
    label: str = ""


@dataclass(frozen=True)
class JointKind:
    """The motions of a subgroup, or of several in turn, with their coordinates and velocities."""

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
        return any(f.subgroup.screws for f in self.factors)

    @cached_property
    def quaternion(self) -> bool:
        """Whether the last four coordinates are a quaternion."""
        return self.nq > self.nv


_ABOUT_X, _ABOUT_Y = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)

KINDS = {name: JointKind(name, (JointFactor(g),)) for name, g in SUBGROUPS.items()} | {
    "universal": JointKind("universal", (JointFactor(SUBGROUPS["revolute"], _ABOUT_X, "about_x"),
                                         JointFactor(SUBGROUPS["revolute"], _ABOUT_Y, "about_y"))),
}  # fmt: skip
"""The kinds that `joint` makes."""

EDGE = JointKind("edge", ())


@data
class Mimic:
    """A coordinate that follows others: q = sum of ratio q_other + offset.   ratios: (n, 1).   offset: (1, 1) [rad or m]."""

    joints: tuple[str, ...]
    ratios: ca.SX
    offset: ca.SX

    def __repr__(self) -> str:
        parts = [f"{reprs.number(self.ratios[i])} {n!r}" for i, n in enumerate(self.joints)]
        return reprs.words(self, " + ".join(parts), f"offset {reprs.number(self.offset)}")


def mimic(ratios: Mapping[str, Scalar], offset: Scalar = 0.0) -> Mimic:
    """The coordinates that a joint follows, for `joint(..., mimic=...)`: q = sum of ratio q_other + offset.

    Then q_dot = sum of ratio q_dot_other. It makes gears, differentials and coupled fingers: exact in every formulation, with
    no constraint, and no coordinate of the joint itself.

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
    """What one factor of a joint adds to the tree.

    placement: its frame in the frame of the factor before, or of the parent.   subgroup: with its pitch.
    S: (6, nv) body twist of the child over the parent = S v, in the factor's frame on the child.
    q, v: its entries of the joint's coordinates and velocities.
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

    Both placements already contain the turn of the axis to z. Spring, damper and armature act along the joint's own velocities:
    tau = -E^T stiffness e - damping v, with e the displacement from rest (see `Joint.displacement`); the armature adds to the
    diagonal of M. Let k be the dimension of the joint's group, and nv that of the distribution in it, if it has one:

    name, kind, parent, child: as given; `kind.name` is its text, "edge" for an edge.
    placement, child_placement: joint frame in the parent and in the child body.
    stiffness: (k, k), rest: (nq, 1), damping: (nv, nv), armature: (nv, 1) [kg m^2 or kg].
    limits: (low, high) of each coordinate.
    effort: the largest |u| of an actuator on it.
    pitch: [m/rad] of a joint that screws.
    distribution: (k, nv), or None.
    speeds: name and unit of each of its velocities, where it has a distribution.
    mimic: what its coordinate follows, or None.
    pose: of an edge, the function of the configuration that gives its pose; else None.

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
        """Whether the child moves in the parent, by its own coordinates or those of others."""
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
        """Number of leading coordinates whose rates are velocities, turned at most by an orthogonal block; not a quaternion."""
        return 0 if self.distribution is not None else self.nq - 4 * self.kind.quaternion

    @property
    def parts(self) -> tuple[JointPart, ...]:
        """One for each factor of the kind."""
        found, before, q, v = list[JointPart](), self.placement, 0, 0
        for axis, g in ((f.axis, f.subgroup) for f in self.kind.factors):
            g = g.with_pitch(self.pitch) if g.screws else g
            S = g.S if self.distribution is None else g.S @ self.distribution
            turn = _turned_z(*axis)
            found.append(JointPart(before @ turn, g, S, slice(q, q + g.nq), slice(v, v + S.shape[1])))
            before, q, v = turn.inverse(), q + g.nq, v + S.shape[1]
        return tuple(found)

    @property
    def end(self) -> Pose:
        """The child body in the frame of the last part."""
        turn = _turned_z(*self.kind.factors[-1].axis) if self.kind.factors else IDENTITY
        return turn.inverse() @ self.child_placement.inverse()

    def kinematic(self, q: ca.SX) -> ca.SX:
        """K (nq, nv) at the joint's q: q_dot = K v."""
        K = ca.SX(ca.diagcat(*[part.subgroup.kinematic(q[part.q, 0]) for part in self.parts]))
        return K if self.distribution is None else K @ self.distribution

    def displacement(self, q: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Displacement e (k, 1) of a joint's spring from rest, and E (k, nv) with e_dot = E v.

        Translations [m] along the joint frame on the parent and angles [rad] are differences of coordinates. For an orientation
        e is twice the vector part of the quaternion from rest to q: the rotation vector where that is small. With one k about
        all axes e^T k e / 2 = k (1 - cos turn), in general tr(P (1 - R)): smooth, and the same for both quaternions.
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
    """A joint between two bodies. Its kind says which relative motions it leaves.

    Args:
        name: unique among the joints.
        kind: fixed, revolute, prismatic, helical (turns and slides by `pitch`), cylindrical, planar-translation and translation
            (slide along x and y, and z), planar, planar-helical (slides in a plane and screws along its normal), schoenflies
            (planar and along its normal), universal (turns about x, then about y), spherical or free.
        parent, child: names of the bodies, "world" for the fixed frame.
        axis: (3,) of the rotation, the translation or the plane's normal, in the joint frame; normalised here; z by default.
        placement: joint frame in the parent body, a pose or a position; the body's frame by default.
        child_placement: joint frame in the child body, in the same way.
        pitch: [m/rad], for the kinds that screw and no others.
        stiffness: of a spring, SI units: one number for all velocities, one for each, or a symmetric matrix; zero by default.
            With a distribution it is along all velocities of the kind. For an orientation see `Joint.displacement`.
        rest: (nq,) coordinate(s) at which the spring is free; zero of the joint by default.
        damping: of a damper, in the same forms; zero by default. With a distribution it is along the speeds.
        armature: inertia of the rotor [kg m^2 or kg], one number or one for each velocity; zero by default.
        limits: (low, high) of q where the joint has one coordinate, a pair for each of several; none by default. A result says
            when and by how far they were left; nothing enforces them.
        effort: the largest |u| of an actuator on the joint, see `actuator`; infinite by default.
        distribution: the part of its motion that is left, without slip for instance: names of some of its velocities, or a
            matrix B whose columns combine them, v = B speeds. The joint then has fewer speeds than coordinates.
            [chhabra14 (2.1.5)]
        speeds: names of these speeds, or a dict of name -> unit.
        mimic: lets the coordinate follow others, see `mimic`; for kinds of one coordinate.
    Raises ModelError: an unknown kind, a zero axis, a pitch that is missing or superfluous, limits the wrong way round, a
    negative effort, numbers that do not fit the kind, columns of a distribution that depend on each other.

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
    chosen = KINDS[kind]
    if (pitch is None) == chosen.screws:
        raise ModelError(f"{what}: a {kind} joint {'needs its pitch=... [m/rad]' if chosen.screws else 'has no pitch'}")
    G = axis_frame(axis, what)
    if effort != np.inf and not named_float(effort, f"{what}: effort") >= 0:
        raise ModelError(f"{what}: effort {effort!r} must be zero or positive; leave it out for no limit")
    B, named = _distribution(chosen, distribution, speeds, what)
    nv = chosen.nv if B is None else B.shape[1]
    at, child_at = (as_pose(x, f"{what}: placement") @ G for x in (placement, child_placement))
    made = Joint(
        name, chosen, parent, child, at, child_at,
        stiffness=_square(stiffness, chosen.nv, f"{what}: stiffness"),
        rest=_rest(chosen, rest, f"{what}: rest"),
        damping=_square(damping, nv, f"{what}: damping"),
        armature=_each(armature, nv, f"{what}: armature"),
        limits=_limits(chosen, limits, what),
        effort=float(effort),
        pitch=scalar(0.0 if pitch is None else pitch, f"{what}: pitch"),
        distribution=B,
        speeds=named,
        mimic=mimic,
    )  # fmt: skip
    _check_numbers(made, what)
    return made


def edge(name: str, parent: str, child: str, pose: Callable[[Any], Pose]) -> Joint:
    """A joint whose pose is any function of the mechanism's configuration. [konz25 (3.95), (3.101)-(3.104)]

    Edges and joints together connect all bodies to the world, each by exactly one way; edges may be written in any order and
    from either side. Twists, Jacobians and their rates follow from the pose by differentiation. An edge has no coordinates:
    these belong to `coordinates(...)` or to joints.

    Args:
        name: unique among the joints.
        parent, child: names of the bodies, "world" for the fixed frame.
        pose: function of the configuration k (k.q, k.joint(name)) giving the Pose of the child's frame in the parent's.
    Raises ModelError: names that are not text, a pose that is not a function. What it gives is checked when the equations are
    made.

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


def _check_ends(what: str, parent: Any, child: Any) -> None:
    for word, body in (("parent", parent), ("child", child)):
        if not isinstance(body, str):
            raise ModelError(f"{what}: {word} must be the name of a body, got {brief(body)}")
    if parent == child:
        raise ModelError(f"{what}: parent and child are both {parent!r}")


def locked(j: Joint, at: Any = None) -> Joint:
    """A joint locked in place: a fixed joint, with no coordinates.

    Args:
        j: the joint.
        at: its coordinate(s), in the units of q; the joint's zero if None.
    Raises ModelError: j is not a joint, or follows others while `at` is None, or `at` does not fit its coordinates.

    Example:
        >>> import pfaffian as pf
        >>> hinge = pf.joint("hinge", "revolute", "world", "rod", placement=(0, 0, 2))
        >>> pf.locked(hinge, 0.5).placement
        <Pose: at (0, 0, 2) m, turned by (0, 0, 0.5) rad>
    """
    if not isinstance(j, Joint):
        raise ModelError(f"locked: a joint(...) is needed, got {brief(j)}")
    if j.mimic and at is None:
        raise ModelError(f"joint {j.name!r} follows others; say at which place to lock it, or lock the joints that it follows")
    q, place = _rest(j.kind, at, f"joint {j.name!r}: locked"), IDENTITY
    for part in j.parts:
        R, p = part.subgroup.motion(q[part.q, 0])
        place = place @ part.placement @ Pose(ca.densify(ca.SX(R)), p)
    return joint(j.name, "fixed", j.parent, j.child, placement=place, child_placement=j.end.inverse())


def _distribution(kind: JointKind, value: Any, speeds: Any, what: str) -> tuple[ca.SX | None, tuple[tuple[str, str], ...]]:
    """The matrix B (k, nv) of a distribution, and name and unit of each speed."""
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
            f"{what}: distribution: the columns combine the {kind.nv} velocities {', '.join(kind.v_names)} and are fewer: "
            f"({kind.nv}, 1 to {kind.nv - 1}) is needed, got {B.shape}"
        )
    found = [_speed(kind, B[:, i], i) for i in range(count)]
    if speeds is not None:
        names = _names(speeds, what)
        if len(names) != count or len(set(names)) != count:
            raise ModelError(f"{what}: speeds: {count} different names are needed, got {brief(speeds)}")
        units = dict(speeds) if isinstance(speeds, Mapping) else dict(zip(names, (u for _, u in found), strict=True))
        found = [(n, units[n]) for n in names]
        if not all(isinstance(u, str) and u for _, u in found):
            raise ModelError(f"{what}: speeds: the unit of each is a text, got {brief(speeds)}")
    return B, tuple(found)


def _names(value: Any, what: str) -> list[str]:
    names = list(value) if several(value) or isinstance(value, Mapping) else []
    if not names or not all(isinstance(n, str) and n for n in names):
        raise ModelError(f"{what}: speeds: a list of names, or a dict of name -> unit, is needed, got {brief(value)}")
    return names


def _speed(kind: JointKind, column: ca.SX, i: int) -> tuple[str, str]:
    """Default name and unit of a speed: those of the velocity that it equals, else a number."""
    used = [row for row in range(kind.nv) if not column[row].is_zero()]
    units = {kind.v_units[row] for row in used}
    name = kind.v_names[used[0]] if len(used) == 1 and column[used[0]].is_one() else f"speed_{i + 1}"
    return name, units.pop() if len(units) == 1 else "1/s"


def _square(value: Any, n: int, what: str) -> ca.SX:
    """(n, n) symmetric, from one number for all directions, one each, or a matrix."""
    if _is_nothing(value):
        return ca.SX(n, n)
    given = matrix(value, what)
    _check_moves(given, n, what)
    if given.numel() == 1:
        return ca.sparsify(scalar(given, what) * ca.SX.eye(n))
    if given.shape == (n, 1):
        return ca.sparsify(ca.diag(given))
    if given.shape != (n, n):
        raise ModelError(f"{what}: one number, {n} or a symmetric ({n}, {n}) is needed, got {given.shape}")
    if not is_symmetric(given):
        raise ModelError(f"{what}: the matrix must be symmetric, or it would give or take energy")
    return ca.sparsify(ca.triu2symm(ca.triu(given)))


def _check_moves(given: ca.SX, n: int, what: str) -> None:
    if n == 0 and not given.is_zero():
        raise ModelError(f"{what}: a fixed joint takes none")


def _is_nothing(value: Any) -> bool:
    return isinstance(value, float) and value == 0.0  # the usual case, at no cost


def _each(value: Any, n: int, what: str) -> ca.SX:
    """(n, 1) from one number for all, or one each."""
    if _is_nothing(value):
        return ca.SX.zeros(n, 1)
    given = matrix(value, what)
    _check_moves(given, n, what)
    return ca.repmat(scalar(given, what), n, 1) if given.numel() == 1 else vector(given, n, what)


def _rest(kind: JointKind, value: Any, what: str) -> ca.SX:
    """(nq, 1) configuration of a joint, its zero if None; a quaternion is normalised."""
    if value is None:
        return ca.vertcat(ca.SX.zeros(kind.nq - kind.quaternion, 1), ca.SX.ones(int(kind.quaternion), 1))
    q = vector([value] if kind.nq == 1 and not several(value) else value, kind.nq, what)
    if not kind.quaternion:
        return q
    turn = q[-4:, 0]
    if not turn.is_constant() or not float(ca.norm_2(ca.DM(turn))) > 1e-6:
        raise ModelError(f"{what}: the quaternion must be numbers, not all zero; the identity is (0, 0, 0, 1)")
    return ca.vertcat(q[:-4, 0], turn / ca.norm_2(turn))


def _limits(kind: JointKind, value: Any, what: str) -> tuple[tuple[float, float], ...]:
    """(low, high) of each coordinate."""
    if value is UNLIMITED:
        return (UNLIMITED,) * kind.nq
    pairs = list(value) if several(value) else []
    if kind.nq == 1 or not any(map(several, pairs)):
        pair = interval(value, f"{what}: limits")
        pairs = [pair] * kind.nq if kind.nq == 1 or pair == UNLIMITED else [pair]
    if (kind.nq == 0 or kind.quaternion) and any(x != UNLIMITED for x in pairs):
        raise ModelError(f"{what}: a {kind.name} joint takes no limits")
    if len(pairs) != kind.nq:
        raise ModelError(
            f"{what}: limits: a pair (low, high) for each of {', '.join(kind.q_names)} is needed, got {brief(value)}"
        )
    return tuple(interval(x, f"{what}: limits of {n or 'q'}") for x, n in zip(pairs, kind.q_names, strict=True))


def _check_numbers(j: Joint, what: str) -> None:
    """Raise ModelError for arguments that do not fit each other."""
    k = j.kind.nv
    if j.kind.quaternion and k > 3 and not j.stiffness[: k - 3, k - 3 :].is_zero():
        raise ModelError(
            f"{what}: stiffness: a joint's spring does not couple translations to an orientation; use a force of bodies"
        )
    if j.mimic is not None:
        if not isinstance(j.mimic, Mimic):
            raise ModelError(f"{what}: mimic={brief(j.mimic)}; make it by mimic({{'other': ratio}})")
        if j.kind.nq != 1:
            raise ModelError(f"{what}: a {j.kind.name} joint cannot follow others; it is for joints of one coordinate")
        if j.limits != (UNLIMITED,) or j.effort != np.inf:
            raise ModelError(f"{what}: it follows others and has no limits or effort of its own; give them to what it follows")


def axis_frame(axis: Any, what: str) -> Pose:
    """The pose that turns z to the axis, which is numeric."""
    n = np.array(ca.DM(_constant(vector(axis, 3, f"{what}: axis"), what))).ravel()
    length = np.linalg.norm(n)
    if not length > 1e-9:
        raise ModelError(f"{what}: the axis {tuple(n.tolist())} has no direction")
    return _turned_z(*(n / length).tolist())


@lru_cache(maxsize=4096)
def _turned_z(x: float, y: float, z: float) -> Pose:
    """Cached, since the parts of a machine have few directions."""
    return Pose(clean(ca.DM(align_z(np.array([x, y, z])))), ca.SX.zeros(3, 1))


def _constant(x: ca.SX, what: str) -> ca.SX:
    if not x.is_constant():
        raise ModelError(f"{what}: the axis must be plain numbers; turn the placement to make it a parameter")
    return x
