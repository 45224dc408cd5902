"""Joints of the tree: what motion each kind leaves to the child.

Every joint acts about or along the z axis of its own frame; `axis` turns that frame. The velocity of every kind is
body-fixed: V = S v with a constant motion subspace S, in the joint frame on the child. A universal joint is two of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError, brief, nearest
from pfaffian.maths.subgroups import SUBGROUPS, Subgroup
from pfaffian.model import shown
from pfaffian.model.data import data
from pfaffian.model.number import Scalar, interval, matrix, named_float, scalar, several, vector
from pfaffian.model.pose import IDENTITY, Pose, align_z, as_pose, clean

UNLIMITED = (-np.inf, np.inf)


class Factor(NamedTuple):
    """One subgroup of a kind, about an axis of the joint frame.   label: what its coordinates are called by, of several."""

    subgroup: Subgroup
    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)
    label: str = ""


@dataclass(frozen=True)
class JointKind:
    """The motions of a subgroup, or of several in turn, with their coordinates and velocities."""

    name: str
    factors: tuple[Factor, ...]

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
        """How many velocities it has without a distribution."""
        return len(self.v_names)

    @cached_property
    def screws(self) -> bool:
        return any(f.subgroup.screws for f in self.factors)

    @cached_property
    def quaternion(self) -> bool:
        """Whether the last four coordinates are one."""
        return self.nq > self.nv


_ABOUT_X, _ABOUT_Y = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)

KINDS = {name: JointKind(name, (Factor(g),)) for name, g in SUBGROUPS.items()} | {
    "universal": JointKind("universal", (Factor(SUBGROUPS["revolute"], _ABOUT_X, "about_x"),
                                         Factor(SUBGROUPS["revolute"], _ABOUT_Y, "about_y"))),
}  # fmt: skip
"""Those that `joint` makes."""

EDGE = JointKind("edge", ())


@data
class Mimic:
    """A coordinate that follows others: q = sum of ratio q_other + offset.   ratios: (n, 1).   offset: (1, 1) [rad or m]."""

    joints: tuple[str, ...]
    ratios: ca.SX
    offset: ca.SX

    def __repr__(self) -> str:
        parts = [f"{shown.number(self.ratios[i])} {n!r}" for i, n in enumerate(self.joints)]
        return shown.words(self, " + ".join(parts), f"offset {shown.number(self.offset)}")


def mimic(ratios: Mapping[str, Scalar], offset: Scalar = 0.0) -> Mimic:
    """What a joint without coordinates of its own follows: q = sum of ratio q_other + offset, q_dot = sum of ratio q_dot_other.

    Gears, differentials and coupled fingers; exact, whatever the formulation, with no constraint.

    Args:
        ratios: name of a joint with one coordinate -> ratio.   offset: [rad or m].
    Raises ModelError: no joint, or numbers that are none.
    """
    if not isinstance(ratios, Mapping) or not ratios or not all(isinstance(n, str) for n in ratios):
        raise ModelError(f"mimic: a dict of joint name -> ratio is needed, got {brief(ratios)}")
    numbers = [scalar(x, f"mimic: ratio of {n!r}") for n, x in ratios.items()]
    return Mimic(tuple(ratios), ca.vertcat(*numbers), scalar(offset, "mimic: offset"))


class Part(NamedTuple):
    """What one factor of a joint brings to the tree.

    placement: its frame in the frame of the factor before, or of the parent.   subgroup: with its pitch.
    S: (6, nv) body twist of the child over the parent = S v, in the factor's frame on the child.
    q, v: its entries of the joint's own.
    """

    placement: Pose
    subgroup: Subgroup
    S: ca.SX
    q: slice
    v: slice


@data
class Joint:
    """A joint of the tree: child frame = placement . motion(q) . child_placement^-1, seen from the parent body.

    Both placements already carry the turn of the axis to z. Springs, dampers and armature act along the joint's own velocities:
    tau = -E^T stiffness e - damping v with e the displacement from rest, see `displacement`; armature [kg m^2 or kg] adds to
    the diagonal of M. With k the dimension of the group, nv that of the distribution in it if there is one:

    stiffness: (k, k).   rest: (nq, 1).   damping: (nv, nv).   armature: (nv, 1).   limits: of each coordinate.
    pitch: [m/rad] of a screw.   distribution: (k, nv) or None.   speeds: name and unit of each of its velocities.
    mimic: what the coordinate follows, or None.   pose: of an edge, its motion as a function of the configuration.
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
            parts.append(f"speeds {shown.listed(self.v_names)}")
        if self.mimic:
            parts.append(f"follows {shown.listed(self.mimic.joints)}")
        return shown.words(self, *parts, name=self.name)

    @property
    def moves(self) -> bool:
        """Whether the child moves in the parent, by coordinates of its own or of others."""
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
        """How many coordinates have a rate that is one velocity, or several by an orthogonal block; quaternions follow."""
        return 0 if self.distribution is not None else self.nq - 4 * self.kind.quaternion

    @property
    def parts(self) -> tuple[Part, ...]:
        """One for each factor of the kind."""
        found, before, q, v = list[Part](), self.placement, 0, 0
        for axis, g in ((f.axis, f.subgroup) for f in self.kind.factors):
            g = g.with_pitch(self.pitch) if g.screws else g
            S = g.S if self.distribution is None else g.S @ self.distribution
            turn = _turned_z(*axis)
            found.append(Part(before @ turn, g, S, slice(q, q + g.nq), slice(v, v + S.shape[1])))
            before, q, v = turn.inverse(), q + g.nq, v + S.shape[1]
        return tuple(found)

    @property
    def end(self) -> Pose:
        """The child body in the frame of the last part."""
        turn = _turned_z(*self.kind.factors[-1].axis) if self.kind.factors else IDENTITY
        return turn.inverse() @ self.child_placement.inverse()

    def kinematic(self, q: ca.SX) -> ca.SX:
        """K (nq, nv) at its own q: q_dot = K v."""
        K = ca.SX(ca.diagcat(*[part.subgroup.kinematic(q[part.q, 0]) for part in self.parts]))
        return K if self.distribution is None else K @ self.distribution

    def displacement(self, q: ca.SX) -> tuple[ca.SX, ca.SX]:
        """e (k, 1) from the rest and E (k, nv) with e_dot = E v: what a spring of the joint is stretched by.

        Translations [m] along the joint frame on the parent and angles [rad] are differences of coordinates. Of an orientation
        e is twice the vector part of the quaternion from rest to here: the turn where that is small, and with one k about all
        axes e^T k e / 2 = k (1 - cos turn), tr(P (1 - R)) in general: smooth, and the same for both quaternions everywhere.
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
    """A joint between two bodies.

    Args:
        name: unique among the joints.
        kind: fixed, revolute, prismatic, helical (turns and slides by `pitch`), cylindrical, planar-translation and translation
            (slide along x and y, and z), planar, planar-helical (slides in a plane and screws along its normal), schoenflies
            (planar and along its normal), universal (turns about x, then about y), spherical or free.
        parent, child: body names, "world" for the fixed frame.
        axis: (3,) of the rotation, the translation or the plane's normal, z of the joint frame; normalised here.
        placement: joint frame in the parent body, a pose or a position.   child_placement: that in the child body.
        pitch: [m/rad] of the kinds that screw.
        stiffness, damping: one number for all velocities, one for each, or a symmetric matrix, SI units; of an orientation see
            `Joint.displacement`. With a distribution the spring is one of the group's velocities, the damper one of the speeds.
        rest: coordinate(s) at which the spring is free, its zero if left out.   armature: [kg m^2 or kg], one or for each.
        limits: (low, high) of q where it is one, a pair for each coordinate of several; a result says when and by how far they
            were left, nothing holds them.
        effort: largest |u| of an actuator on it, see `actuator`.
        distribution: what of its motion is left, without slip for instance: names of some of its velocities, or a matrix B
            whose columns are combinations of them, v = B speeds. It has fewer speeds than coordinates then. [chhabra14 (2.1.5)]
        speeds: names of these speeds, or a dict of name -> unit.
        mimic: the coordinate follows others, see `mimic`; for kinds of one coordinate.
    Raises ModelError: an unknown kind, a zero axis, a pitch missing or too many, limits the wrong way round, a negative effort,
    numbers that do not fit the kind, columns of a distribution that depend on each other.
    """
    what = f"joint {name!r}"
    if not isinstance(kind, str) or kind not in KINDS:
        raise ModelError(f"{what}: kind {brief(kind)} is unknown; one of {', '.join(KINDS)}")
    _check_ends(what, parent, child)
    chosen = KINDS[kind]
    if (pitch is None) == chosen.screws:
        raise ModelError(f"{what}: a {kind} joint {'needs its pitch=... [m/rad]' if chosen.screws else 'has no pitch'}")
    G = axis_frame(axis, what)
    if effort != np.inf and not named_float(effort, f"{what}: effort") >= 0:
        raise ModelError(f"{what}: effort {effort!r} must be zero or positive, left out where there is none")
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
    """The pose of one body in another as a function of the mechanism's configuration. [konz25 (3.95), (3.101)-(3.104)]

    Edges and joints together connect all bodies to the world, each by one way; an edge may be written from either side and in
    any order. Twists, Jacobians and their rates follow from the pose by differentiation. It has no coordinates of its own:
    they belong to `coordinates(...)` or to joints.

    Args:
        name: unique among the joints.   parent, child: names of bodies, "world" for the fixed frame.
        pose: function of the configuration k (k.q, k.joint(name)) giving the Pose of the child's frame in the parent's.
    Raises ModelError: names or a function that are none. What it answers is checked when the equations are made.
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
    """The joint held where it is: a fixed one, with no coordinates.

    at: its coordinate(s), in units of q; its zero if left out.
    Raises ModelError: j is no joint, or follows others and is held nowhere, or that is no place of it.
    """
    if not isinstance(j, Joint):
        raise ModelError(f"locked: a joint(...) is needed, got {brief(j)}")
    if j.mimic and at is None:
        raise ModelError(f"joint {j.name!r} follows others; say where it is held, or lock what it follows")
    q, place = _rest(j.kind, at, f"joint {j.name!r}: locked"), IDENTITY
    for part in j.parts:
        R, p = part.subgroup.motion(q[part.q, 0])
        place = place @ part.placement @ Pose(ca.densify(ca.SX(R)), p)
    return joint(j.name, "fixed", j.parent, j.child, placement=place, child_placement=j.end.inverse())


def _distribution(kind: JointKind, value: Any, speeds: Any, what: str) -> tuple[ca.SX | None, tuple[tuple[str, str], ...]]:
    """B (k, nv) and the name and unit of each speed."""
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
    """The name and unit of a speed that no one named: those of the velocity that it is, a number otherwise."""
    used = [row for row in range(kind.nv) if not column[row].is_zero()]
    units = {kind.v_units[row] for row in used}
    name = kind.v_names[used[0]] if len(used) == 1 and column[used[0]].is_one() else f"speed_{i + 1}"
    return name, units.pop() if len(units) == 1 else "1/s"


def _square(value: Any, n: int, what: str) -> ca.SX:
    """(n, n) symmetric, from one number for all directions, one for each, or a matrix."""
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
    off = [given[i, j] - given[j, i] for i in range(n) for j in range(i)]
    room = 1e-12 * float(ca.norm_inf(ca.DM(given))) if given.is_constant() else 0.0
    if any(not x.is_constant() or abs(float(x)) > room for x in map(ca.simplify, off)):
        raise ModelError(f"{what}: the matrix must be symmetric, or it would give or take energy")
    return ca.sparsify(ca.triu2symm(ca.triu(given)))


def _check_moves(given: ca.SX, n: int, what: str) -> None:
    if n == 0 and not given.is_zero():
        raise ModelError(f"{what}: a fixed joint takes none")


def _is_nothing(value: Any) -> bool:
    return isinstance(value, float) and value == 0.0  # the usual case, at no cost


def _each(value: Any, n: int, what: str) -> ca.SX:
    """(n, 1) from one number for all or one for each."""
    if _is_nothing(value):
        return ca.SX.zeros(n, 1)
    given = matrix(value, what)
    _check_moves(given, n, what)
    return ca.repmat(scalar(given, what), n, 1) if given.numel() == 1 else vector(given, n, what)


def _rest(kind: JointKind, value: Any, what: str) -> ca.SX:
    """(nq, 1) configuration of a joint, its zero if none is given; a quaternion of numbers of unit length."""
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
    """(low, high) for each coordinate."""
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
    """Raise ModelError for numbers that do not go with each other."""
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
    """The pose that turns z to the (numeric) axis."""
    n = np.array(ca.DM(_constant(vector(axis, 3, f"{what}: axis"), what))).ravel()
    length = np.linalg.norm(n)
    if not length > 1e-9:
        raise ModelError(f"{what}: the axis {tuple(n.tolist())} has no direction")
    return _turned_z(*(n / length).tolist())


@lru_cache(maxsize=4096)
def _turned_z(x: float, y: float, z: float) -> Pose:
    """The parts of a machine have few directions."""
    return Pose(clean(ca.DM(align_z(np.array([x, y, z])))), ca.SX.zeros(3, 1))


def _constant(x: ca.SX, what: str) -> ca.SX:
    if not x.is_constant():
        raise ModelError(f"{what}: the axis must be plain numbers; turn the placement to make it a parameter")
    return x
