"""Joints of a USD stage: kinds, frames in both bodies, limits, drives and mimic relations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.formats.text.strict_number import printable
from pfaffian.formats.usd.usd_stage import UsdStage, quaternion_of
from pfaffian.maths import so3
from pfaffian.maths.subgroups import SUBGROUPS
from pfaffian.model.pose import NumericPose

_AXES = {"X": (1.0, 0.0, 0.0), "Y": (0.0, 1.0, 0.0), "Z": (0.0, 0.0, 1.0)}
_KINDS = {
    "PhysicsFixedJoint": "fixed", "PhysicsRevoluteJoint": "revolute", "PhysicsPrismaticJoint": "prismatic",
    "PhysicsSphericalJoint": "spherical", "PhysicsDistanceJoint": "distance",
}  # fmt: skip
_DRIVES = {"PhysicsRevoluteJoint": "angular", "PhysicsPrismaticJoint": "linear"}
_TURNS, _SLIDES = ("rotX", "rotY", "rotZ"), ("transX", "transY", "transZ")

CONNECT = "MjcEqualityConnectAPI"
"""Schema of MuJoCo's connect, which gives one point: the other body is held by its point that is there at the start."""

JointEnd = tuple[str | None, NumericPose]
"""Name of the body at one end of a joint, None for the world, and the joint's frame in it."""


@dataclass(frozen=True)
class Drive:
    """The drive tau = stiffness (target - q) + damping (speed - v), limited to `most`. All values are in SI units."""

    stiffness: float = 0.0
    damping: float = 0.0
    target: float = 0.0
    speed: float = 0.0
    most: float = np.inf

    @property
    def rest(self) -> float:
        """Coordinate at which a spring with this stiffness gives the part of tau that does not depend on the motion."""
        return self.target + self.damping * self.speed / self.stiffness if self.stiffness else self.target

    @property
    def thrust(self) -> float:
        """The constant part of tau of a drive without stiffness, whose damping has no limit either."""
        return 0.0 if self.stiffness else self.damping * self.speed


@dataclass(frozen=True)
class Axes:
    """What a joint leaves free.   kind: of the joint.   axis: (3,) of a revolute or prismatic joint.   names: of its
    coordinates, as instances of LimitAPI and DriveAPI; empty if they are not along axes.   turn: (3, 3) rotation of its frames
    after which its normal is z.   locked_at: name -> value of axes that are locked elsewhere than at zero, SI."""

    kind: str
    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)
    names: tuple[str, ...] = ()
    turn: np.ndarray = field(default_factory=lambda: np.eye(3))
    locked_at: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class UsdJoint:
    """A joint, in SI units.

    bodies: names, None for the world.   frames: its frame (R, p) in each body.   excluded: whether it is not part of the
    articulation.   names, limits, drives: of each coordinate; empty for a joint that turns about three axes.   mimic: (path
    of the joint that it follows, ratio, offset), the ratio in the units of the stage.   unit: SI value of the unit of its
    coordinate.   armature, damping, friction: of each velocity.   length: of a rod.   lost: attributes that are left out.
    """

    name: str
    prim: Any
    kind: str
    bodies: tuple[str | None, str | None]
    frames: tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
    axis: tuple[float, float, float]
    excluded: bool
    names: tuple[str, ...] = ()
    limits: tuple[tuple[float, float], ...] = ()
    drives: tuple[Drive | None, ...] = ()
    mimic: tuple[str, float, float] | None = None
    unit: float = 1.0
    armature: tuple[float, ...] = ()
    damping: tuple[float, ...] = ()
    friction: tuple[float, ...] = ()
    length: float = 0.0
    lost: list[str] = field(default_factory=list)

    @property
    def commutes(self) -> bool:
        """Whether its coordinates are those of motions in any order."""
        return self.kind in SUBGROUPS and SUBGROUPS[self.kind].commutes

    @property
    def single(self) -> bool:
        """Whether it is a revolute or a prismatic joint."""
        return self.kind in ("revolute", "prismatic")

    @property
    def drive(self) -> Drive | None:
        """The drive of a revolute or prismatic joint, if it has one."""
        return self.drives[0] if self.single and self.drives else None


def read_joint(s: UsdStage, prim: Any, name: str, bodies: dict[str, str]) -> UsdJoint | None:
    """Read a joint; None if it is disabled.   bodies: path of a rigid body -> name.

    Raises ModelError: a mechanism cannot represent the joint.
    """
    from pxr import UsdPhysics

    j = UsdPhysics.Joint(prim)
    if j.GetJointEnabledAttr().Get() is False:
        return None
    lost: list[str] = []
    free = _axes(s, prim)
    ends = [_end(s, prim, rel, at, turn, bodies) for rel, at, turn in (
        (j.GetBody0Rel(), j.GetLocalPos0Attr(), j.GetLocalRot0Attr()),
        (j.GetBody1Rel(), j.GetLocalPos1Attr(), j.GetLocalRot1Attr()))]  # fmt: skip
    if free.kind == "spherical" and CONNECT in prim.GetPrimTypeInfo().GetAppliedAPISchemas():
        ends[1] = _connected(s, prim, ends, bodies, lost)
    if ends[0][0] == ends[1][0]:
        raise s.error(prim, "it connects a body to itself, or the world to the world; name two bodies")
    if (j.GetBreakForceAttr().Get() or np.inf) < 1e30 or (j.GetBreakTorqueAttr().Get() or np.inf) < 1e30:
        lost.append("breakForce")
    shift, lock = _locked_pose(s, prim, free)
    (R0, p0), (R1, p1) = (frame for _, frame in ends)
    turned = [(R0 @ free.turn, p0 + R0 @ shift), (R1 @ lock.T @ free.turn, p1)]
    unit = {"revolute": np.pi / 180, "prismatic": s.length}.get(free.kind, 1.0)
    armature, damping, friction = _newton(s, prim, free.kind)
    return UsdJoint(
        name, prim, free.kind, (ends[0][0], ends[1][0]), (turned[0], turned[1]), free.axis,
        bool(j.GetExcludeFromArticulationAttr().Get()), free.names, _limits(s, prim, free, lost), _drives(s, prim, free, lost),
        _mimic(prim, unit), unit, armature, damping, friction, _length(s, prim) if free.kind == "distance" else 0.0, lost,
    )  # fmt: skip


def _axes(s: UsdStage, prim: Any) -> Axes:
    """What a joint leaves free. Raises ModelError: no kind corresponds to its type."""
    word = str(prim.GetTypeName())
    if word == "PhysicsJoint":
        free, locked_at = _by_limits(s, prim)
        return replace(_by_locks(s, prim, free), locked_at=locked_at)
    if word not in _KINDS:
        raise s.error(prim, f"joint type {printable(word)} is unknown; the types are {', '.join(_KINDS)}, PhysicsJoint")
    kind = _KINDS[word]
    axis = "X" if kind in ("fixed", "distance") else s.axis(prim, "physics:axis")
    names = {"revolute": (f"rot{axis}",), "prismatic": (f"trans{axis}",)}.get(kind, ())
    return Axes(kind, _AXES[axis], names)


def _by_limits(s: UsdStage, prim: Any) -> tuple[list[str], dict[str, float]]:
    """The axes that a PhysicsJoint leaves free, and axis -> value, SI, for those that are locked elsewhere than at zero.

    An axis whose lower limit is above the upper one is locked at zero; one with equal limits is locked there.
    """
    free, locked_at, given = list[str](), dict[str, float](), _given_limits(prim)
    for name in (*_SLIDES, *_TURNS):
        low, high = given.get(name, (-np.inf, np.inf))
        if low < high:
            free.append(name)
        elif low == high and low:
            locked_at[name] = float(low) * _unit(s, name)
    return free, locked_at


def _locked_pose(s: UsdStage, prim: Any, axes: Axes) -> tuple[np.ndarray, np.ndarray]:
    """(3,) shift [m] along the axes of the first body's frame, and (3, 3) rotation, at which a joint is locked.

    Raises ModelError: it is locked at angles about several axes, or at one beside free turns.
    """
    shift = np.array([axes.locked_at.get(name, 0.0) for name in _SLIDES])
    turns = [name for name in _TURNS if name in axes.locked_at]
    if not turns:
        return shift, np.eye(3)
    if len(turns) > 1 or axes.kind in ("revolute", "universal", "cylindrical", "planar", "schoenflies"):
        raise s.error(prim, f"it is locked at an angle about {' and '.join(turns)} beside other turns; lock it at zero")
    turn = np.zeros(3)
    turn["XYZ".index(turns[0][-1])] = axes.locked_at[turns[0]]
    return shift, so3.exp(ca.DM(turn)).full()


def _by_locks(s: UsdStage, prim: Any, free: list[str]) -> Axes:
    """The kind of a PhysicsJoint, from the axes that it leaves free."""
    slides, turns = (tuple(n for n in free if n in of) for of in (_SLIDES, _TURNS))
    if len(free) == 1:
        return Axes("revolute" if turns else "prismatic", _AXES[free[0][-1]], (free[0],))
    if len(turns) in (0, 3) and len(slides) in (0, 3):
        kind = {(0, 0): "fixed", (0, 3): "spherical", (3, 0): "translation", (3, 3): "free"}[len(slides), len(turns)]
        return Axes(kind, _AXES["X"], slides if kind == "translation" else ())
    if len(turns) == 2 and not slides:  # about the first axis, then about the second, which turns with the body
        x, y = (np.eye(3)[:, "XYZ".index(n[-1])] for n in turns)
        return Axes("universal", names=turns, turn=np.column_stack([x, y, np.cross(x, y)]))
    for k in range(3):  # the axis of the turn, or the normal of the plane
        across, along = (_SLIDES[(k + 1) % 3], _SLIDES[(k + 2) % 3]), _SLIDES[k]
        for kind, names in {
            "cylindrical": (along, _TURNS[k]), "planar-translation": across, "planar": (*across, _TURNS[k]),
            "schoenflies": (*across, along, _TURNS[k]),
        }.items():  # fmt: skip
            if set(names) == set(free):
                return Axes(kind, names=names, turn=np.roll(np.eye(3), -(k + 1), axis=1))
    raise s.error(prim, f"no joint kind has the free axes {', '.join(free)}; split it into joints with one degree of freedom")


def _end(s: UsdStage, prim: Any, rel: Any, at: Any, turn: Any, bodies: dict[str, str]) -> JointEnd:
    """One end of a joint; the world if no rigid body is at or above the target."""
    targets = rel.GetTargets()
    if len(targets) > 1:
        raise s.error(prim, f"{rel.GetName()} names {len(targets)} bodies; name one")
    q, x = turn.Get(), at.Get()
    R = np.eye(3) if q is None else _rotation(quaternion_of(q), s, prim)
    p = np.zeros(3) if x is None else np.array(x, dtype=float)
    target = s.stage.GetPrimAtPath(targets[0]) if targets else None
    if targets and not target:
        raise s.error(prim, f"{rel.GetName()} names {printable(str(targets[0]))}, which does not exist; correct the path")
    path = str(targets[0]) if targets else ""
    carrier = _carrier(target, bodies)
    Rt, pt, scale = s.frame(target) if target else (s.up, np.zeros(3), np.ones(3))
    if path in bodies:
        return bodies[path], (R, p * scale * s.length)
    R, p = Rt @ R, pt + Rt @ (p * scale * s.length)
    if carrier:
        Rb, pb, _ = s.frame(carrier)
        return bodies[str(carrier.GetPath())], (Rb.T @ R, Rb.T @ (p - pb))
    return None, (R, p)


def _carrier(prim: Any, bodies: Mapping[str, str]) -> Any:
    """The rigid body at or above a prim; None if there is none."""
    while prim and str(prim.GetPath()) not in bodies:
        prim = prim.GetParent()
    return prim or None


def _connected(s: UsdStage, prim: Any, ends: Sequence[JointEnd], bodies: Mapping[str, str], lost: list[str]) -> JointEnd:
    """The second end of MuJoCo's connect: where the first one is at the start."""
    targets = [prim.GetRelationship(f"physics:body{k}").GetTargets() for k in (0, 1)]
    carriers = [_carrier(s.stage.GetPrimAtPath(t[0]), bodies) if t else None for t in targets]
    (R0, p0), (R1, p1) = (s.frame(c)[:2] if c else (np.eye(3), np.zeros(3)) for c in carriers)
    name, (turn, given) = ends[1]
    point = R1.T @ (R0 @ ends[0][1][1] + p0 - p1)
    if np.abs(point - given).max() > 1e-5 * max(np.abs(point).max(), np.abs(given).max()):
        lost.append("physics:localPos1, which MuJoCo's connect ignores")
    return name, (turn, point)


def _rotation(q: tuple[float, ...], s: UsdStage, prim: Any) -> np.ndarray:
    """(3, 3) rotation of a quaternion, scalar last. Raises ModelError: it cannot be normalised."""
    R = _normalised(*q)
    if R is None:
        raise s.error(prim, f"the rotation {q} is not a quaternion; give one of unit length")
    return R


@lru_cache(maxsize=4096)
def _normalised(x: float, y: float, z: float, w: float) -> np.ndarray | None:
    """(3, 3) rotation of a quaternion, None if it has no direction; cached, since a machine has few rotations."""
    q = np.array((x, y, z, w))
    length = np.linalg.norm(q)
    return so3.quat_to_matrix((q / length).tolist()).full() if np.isfinite(length) and length > 1e-6 else None


def _unit(s: UsdStage, name: str) -> float:
    """SI value of the unit of a coordinate in the stage.   name: rotX to rotZ, transX to transZ."""
    return np.pi / 180 if name in _TURNS else s.length


def _limits(s: UsdStage, prim: Any, free: Axes, lost: list[str]) -> tuple[tuple[float, float], ...]:
    """(low, high) of each coordinate, SI; those of coordinates that the joint does not have are left out."""
    if free.kind == "spherical" and any(
        (a := prim.GetAttribute(f"physics:coneAngle{k}Limit")) and a.Get() is not None and a.Get() >= 0 for k in (0, 1)
    ):
        lost.append("coneAngleLimit")
    found = {}
    if prim.GetTypeName() != "PhysicsJoint" and free.names:
        found[free.names[0]] = tuple(prim.GetAttribute(f"physics:{word}Limit").Get() for word in ("lower", "upper"))
    for name, pair in _given_limits(prim).items():
        if prim.GetTypeName() == "PhysicsJoint" and name in free.names:
            found[name] = pair
        elif prim.GetTypeName() != "PhysicsJoint" or (pair[0] < pair[1] and np.isfinite(pair).any()):
            lost.append(f"limits of {name}")
    return tuple(_span(s, prim, found.get(name, (None, None)), _unit(s, name)) for name in free.names)


def _given_limits(prim: Any) -> dict[str, tuple[float, float]]:
    """Name of an axis, or "distance" -> (low, high) in the units of the stage, where a LimitAPI gives them."""
    from pxr import UsdPhysics

    found = {}
    for name in _applied(prim, "PhysicsLimitAPI", (*_SLIDES, *_TURNS, "distance")):
        limit = UsdPhysics.LimitAPI.Get(prim, name)
        found[name] = limit.GetLowAttr().Get(), limit.GetHighAttr().Get()
    return found


def _applied(prim: Any, schema: str, names: Sequence[str]) -> list[str]:
    """Those of the names that are instances of a schema which is applied to a prim."""
    schemas = prim.GetAppliedSchemas()
    return [name for name in names if f"{schema}:{name}" in schemas]


def _span(s: UsdStage, prim: Any, pair: tuple[float | None, ...], unit: float) -> tuple[float, float]:
    """(low, high) of a coordinate, SI, open where the file gives none."""
    low, high = pair
    given = -np.inf if low is None else float(low) * unit, np.inf if high is None else float(high) * unit
    if given[0] > given[1]:
        raise s.error(prim, f"its lower limit {low} is above the upper one {high}; swap them")
    return given


def _drives(s: UsdStage, prim: Any, free: Axes, lost: list[str]) -> tuple[Drive | None, ...]:
    """The drive of each coordinate; those that a mechanism cannot represent are left out."""
    from pxr import UsdPhysics

    single = _DRIVES.get(str(prim.GetTypeName()))  # others are named by their axes
    made = dict[str, Drive]()
    for name in _applied(prim, "PhysicsDriveAPI", ("angular", "linear", *_TURNS, *_SLIDES)):
        at = name if single is None else free.names[0] if name == single else ""
        d = UsdPhysics.DriveAPI.Get(prim, name)
        if at not in free.names:
            lost.append(f"drive {name}")
        elif (sort := str(d.GetTypeAttr().Get() or "force")) != "force":
            lost.append("a drive of accelerations" if sort == "acceleration" else f"a drive of unknown type {sort}")
        else:
            made[at] = _drive(s, d, at)
    return tuple(made.get(name) for name in free.names)


def _drive(s: UsdStage, d: Any, name: str) -> Drive:
    """A drive in SI units; one whose maxForce is 0 exerts no force.   name: of its coordinate."""
    force, unit = _force(s, name in _TURNS), _unit(s, name)
    attributes = d.GetStiffnessAttr(), d.GetDampingAttr(), d.GetMaxForceAttr()
    stiffness, damping, most = (_number(a, default) for a, default in zip(attributes, (0.0, 0.0, np.inf), strict=True))
    for a, x in zip(attributes, (stiffness, damping, most), strict=True):
        if x < 0:
            raise s.error(d.GetPrim(), f"{a.GetName()} is {x}; it must be zero or positive")
    if most == 0:
        return Drive(most=0.0)
    return Drive(
        stiffness * force / unit, damping * force / unit,
        _number(d.GetTargetPositionAttr(), 0.0) * unit, _number(d.GetTargetVelocityAttr(), 0.0) * unit,
        most * force if most < 1e30 else np.inf,
    )  # fmt: skip


def _force(s: UsdStage, turns: bool) -> float:
    """SI value of the stage's unit of forces, or of moments."""
    return s.mass * s.length * (s.length if turns else 1.0)


def _number(attribute: Any, default: float) -> float:
    """The value of a USD attribute, or the default where the file gives none."""
    value = attribute.Get()
    return float(default if value is None else value)


def _mimic(prim: Any, unit: float) -> tuple[str, float, float] | None:
    """(path of the joint that it follows, ratio, offset), from PhysX (q + gearing q_reference + offset = 0) or Newton."""
    enabled = prim.GetAttribute("newton:mimicEnabled")
    to = prim.GetRelationship("newton:mimicJoint")
    if to and to.GetTargets():
        if enabled and enabled.Get() is False:
            return None
        coefficients = [prim.GetAttribute(f"newton:mimicCoef{k}") for k in (0, 1)]
        zero, one = (float(c.Get()) if c and c.Get() is not None else d for c, d in zip(coefficients, (0.0, 1.0), strict=True))
        return str(to.GetTargets()[0]), one, zero * unit
    for name in _TURNS + _SLIDES:
        stem = f"physxMimicJoint:{name}"
        to = prim.GetRelationship(f"{stem}:referenceJoint")
        if to and to.GetTargets():
            gearing, offset = (prim.GetAttribute(f"{stem}:{word}") for word in ("gearing", "offset"))
            ratio = float(gearing.Get()) if gearing and gearing.Get() is not None else 1.0
            shift = float(offset.Get()) if offset and offset.Get() is not None else 0.0
            return str(to.GetTargets()[0]), -ratio, -shift * unit
    return None


def _newton(s: UsdStage, prim: Any, kind: str) -> tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]:
    """Armature, damping and friction of each velocity, from Newton; armature also from PhysX. Zero by default."""
    turns = [True, True] if kind == "universal" else [x >= 3 for x in SUBGROUPS[kind].axes] if kind in SUBGROUPS else []

    def value(*names: str) -> float:
        given = {n: float(a.Get()) for n in names if (a := prim.GetAttribute(n)) and a.Get() is not None}
        name, found = next(iter(given.items()), ("", 0.0))
        if not (np.isfinite(found) and found >= 0):
            raise s.error(prim, f"{name} is {found}; it must be zero or positive")
        return found

    armature, damping = value("physxJoint:armature", "newton:armature"), value("newton:damping")
    friction = value("newton:friction")
    return (
        tuple(armature * (s.inertia if t else s.mass) for t in turns),
        tuple(damping * _force(s, t) / (np.pi / 180 if t else s.length) for t in turns),
        tuple(friction * _force(s, t) for t in turns),
    )


def _length(s: UsdStage, prim: Any) -> float:
    """The length [m] of a distance joint. Raises ModelError: its distance may vary."""
    low, high = (prim.GetAttribute(f"physics:{word}Distance").Get() for word in ("min", "max"))
    if low is None or high is None or low < 0 or high < 0 or abs(high - low) > 1e-6 * max(high, 1e-9) or not high > 0:
        raise s.error(
            prim, f"its distance may vary from {low} to {high}; only rods of fixed length are read, minDistance = maxDistance"
        )
    return float(high) * s.length
