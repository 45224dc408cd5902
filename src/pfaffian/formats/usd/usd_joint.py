"""Joints of a USD stage: kinds, frames in both bodies, limits, drives and mimic relations."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from pfaffian.formats.text.strict_number import printable
from pfaffian.formats.usd.usd_stage import UsdStage
from pfaffian.maths import so3
from pfaffian.model.joint import UNLIMITED

_AXES = {"X": (1.0, 0.0, 0.0), "Y": (0.0, 1.0, 0.0), "Z": (0.0, 0.0, 1.0)}
_KINDS = {
    "PhysicsFixedJoint": "fixed", "PhysicsRevoluteJoint": "revolute", "PhysicsPrismaticJoint": "prismatic",
    "PhysicsSphericalJoint": "spherical", "PhysicsDistanceJoint": "distance",
}  # fmt: skip
_TURNS, _SLIDES = ("rotX", "rotY", "rotZ"), ("transX", "transY", "transZ")


@dataclass(frozen=True)
class Drive:
    """The drive tau = stiffness (target - q) + damping (speed - v), limited to `most`. All values are in SI units."""

    stiffness: float
    damping: float
    target: float
    speed: float
    most: float


@dataclass(frozen=True)
class UsdJoint:
    """A joint, in SI units.   bodies: names, None for the world.   frames: its frame (R, p) in each body.   excluded: whether
    it is not part of the articulation.   mimic: (path of the joint that it follows, ratio, offset).   length: of a rod.
    lost: attributes that are left out."""

    name: str
    prim: Any
    kind: str
    bodies: tuple[str | None, str | None]
    frames: tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
    axis: tuple[float, float, float]
    excluded: bool
    limits: tuple[float, float] = UNLIMITED
    drive: Drive | None = None
    mimic: tuple[str, float, float] | None = None
    armature: float = 0.0
    length: float = 0.0
    lost: list[str] = field(default_factory=list)


def read_joint(s: UsdStage, prim: Any, name: str, bodies: dict[str, str]) -> UsdJoint | None:
    """Read a joint; None if it is disabled.   bodies: path of a rigid body -> name.

    Raises ModelError: a mechanism cannot represent the joint.
    """
    from pxr import UsdPhysics

    j = UsdPhysics.Joint(prim)
    if j.GetJointEnabledAttr().Get() is False:
        return None
    lost: list[str] = []
    kind, axis = _kind(s, prim)
    ends = [_end(s, prim, rel, at, turn, bodies) for rel, at, turn in (
        (j.GetBody0Rel(), j.GetLocalPos0Attr(), j.GetLocalRot0Attr()),
        (j.GetBody1Rel(), j.GetLocalPos1Attr(), j.GetLocalRot1Attr()))]  # fmt: skip
    if ends[0][0] == ends[1][0]:
        raise s.error(prim, "it connects a body to itself, or the world to the world; name two bodies")
    if (j.GetBreakForceAttr().Get() or np.inf) < 1e30 or (j.GetBreakTorqueAttr().Get() or np.inf) < 1e30:
        lost.append("breakForce")
    unit = {"revolute": np.pi / 180, "prismatic": s.length}.get(kind, 1.0)
    return UsdJoint(
        name, prim, kind, (ends[0][0], ends[1][0]), (ends[0][1], ends[1][1]), axis,
        bool(j.GetExcludeFromArticulationAttr().Get()), _limits(s, prim, kind, unit, lost), _drive(s, prim, kind, unit, lost),
        _mimic(prim, kind, unit), _armature(s, prim, kind), _length(s, prim) if kind == "distance" else 0.0, lost,
    )  # fmt: skip


def _kind(s: UsdStage, prim: Any) -> tuple[str, tuple[float, float, float]]:
    """The kind and the axis of a joint. Raises ModelError: no kind corresponds to its type."""
    word = str(prim.GetTypeName())
    if word == "PhysicsJoint":
        return _by_locks(s, prim)
    if word not in _KINDS:
        raise s.error(prim, f"joint type {printable(word)} is unknown; the types are {', '.join(_KINDS)}, PhysicsJoint")
    axis = prim.GetAttribute("physics:axis").Get() if word != "PhysicsFixedJoint" else None
    return _KINDS[word], _AXES[str(axis or "X")]


def _by_locks(s: UsdStage, prim: Any) -> tuple[str, tuple[float, float, float]]:
    """The kind and axis of a PhysicsJoint, from its free axes; an axis whose lower limit is above the upper one is locked."""
    from pxr import UsdPhysics

    free = []
    for name in (*_SLIDES, *_TURNS):
        limit = UsdPhysics.LimitAPI.Get(prim, name) if prim.HasAPI(UsdPhysics.LimitAPI, name) else None
        low, high = (limit.GetLowAttr().Get(), limit.GetHighAttr().Get()) if limit else (-np.inf, np.inf)
        if low <= high and low != high:
            free.append(name)
    if not free:
        return "fixed", _AXES["X"]
    if len(free) == 1:
        return ("revolute" if free[0] in _TURNS else "prismatic"), _AXES[free[0][-1]]
    whole = {_TURNS: "spherical", _SLIDES: "translation", (*_SLIDES, *_TURNS): "free"}
    if tuple(free) in whole:
        return whole[tuple(free)], _AXES["X"]
    raise s.error(prim, f"no joint kind has the free axes {', '.join(free)}; split it into joints with one degree of freedom")


def _end(s: UsdStage, prim: Any, rel: Any, at: Any, turn: Any, bodies: dict[str, str]) -> tuple[str | None, tuple[Any, ...]]:
    """Name of the body at one end, and the joint's frame in it; the world if no rigid body is at or above the target."""
    targets = rel.GetTargets()
    if len(targets) > 1:
        raise s.error(prim, f"{rel.GetName()} names {len(targets)} bodies; name one")
    q, x = turn.Get(), at.Get()
    R, p = np.eye(3), np.zeros(3)
    if x is not None:
        p = np.array(tuple(x), dtype=float)
    if q is not None:
        R = _rotation((*q.imaginary, q.real), s, prim)
    target = s.stage.GetPrimAtPath(targets[0]) if targets else None
    if targets and not target:
        raise s.error(prim, f"{rel.GetName()} names {printable(str(targets[0]))}, which does not exist; correct the path")
    path = str(targets[0]) if targets else ""
    carrier = target
    while carrier and str(carrier.GetPath()) not in bodies and not carrier.IsPseudoRoot():
        carrier = carrier.GetParent()
    Rt, pt, scale = s.frame(target) if target else (s.up, np.zeros(3), np.ones(3))
    if path in bodies:
        return bodies[path], (R, p * scale * s.length)
    R, p = Rt @ R, pt + Rt @ (p * scale * s.length)
    if carrier and str(carrier.GetPath()) in bodies:
        Rb, pb, _ = s.frame(carrier)
        return bodies[str(carrier.GetPath())], (Rb.T @ R, Rb.T @ (p - pb))
    return None, (R, p)


def _rotation(q: tuple[float, ...], s: UsdStage, prim: Any) -> np.ndarray:
    """(3, 3) rotation of a quaternion, scalar last. Raises ModelError: it cannot be normalised."""
    if not np.isfinite(q).all() or not np.linalg.norm(q) > 1e-6:
        raise s.error(prim, f"the rotation {q} is not a quaternion; give one of unit length")
    return _matrix(*(np.array(q) / np.linalg.norm(q)).tolist())


@lru_cache(maxsize=4096)
def _matrix(x: float, y: float, z: float, w: float) -> np.ndarray:
    """(3, 3) rotation of a unit quaternion; cached, since a machine has few directions."""
    return so3.quat_to_matrix([x, y, z, w]).full()


def _limits(s: UsdStage, prim: Any, kind: str, unit: float, lost: list[str]) -> tuple[float, float]:
    """(low, high) of a revolute or prismatic joint, SI.   unit: SI value of the unit of its coordinate in the stage."""
    if kind == "spherical" and any(
        (a := prim.GetAttribute(f"physics:coneAngle{k}Limit")) and a.Get() is not None and a.Get() >= 0 for k in (0, 1)
    ):
        lost.append("coneAngleLimit")
    if kind not in ("revolute", "prismatic") or prim.GetTypeName() == "PhysicsJoint":
        return UNLIMITED
    low, high = (prim.GetAttribute(f"physics:{word}Limit").Get() for word in ("lower", "upper"))
    pair = -np.inf if low is None else float(low) * unit, np.inf if high is None else float(high) * unit
    if pair[0] > pair[1]:
        raise s.error(prim, f"its lower limit {low} is above the upper one {high}; swap them")
    return pair


def _drive(s: UsdStage, prim: Any, kind: str, unit: float, lost: list[str]) -> Drive | None:
    """The drive of a revolute or prismatic joint, if it has one that a mechanism can represent."""
    from pxr import UsdPhysics

    given = [n for n in ("angular", "linear", *_TURNS, *_SLIDES) if prim.HasAPI(UsdPhysics.DriveAPI, n)]
    allowed = {"revolute": ("angular", *_TURNS), "prismatic": ("linear", *_SLIDES)}.get(kind, ())
    if len(given) > 1 or any(n not in allowed for n in given):
        lost.append(f"drives {', '.join(given)}")
        return None
    if not given:
        return None
    d = UsdPhysics.DriveAPI.Get(prim, given[0])
    if str(d.GetTypeAttr().Get() or "force") != "force":
        lost.append("a drive of accelerations")
        return None
    force = s.mass * s.length * (s.length if kind == "revolute" else 1.0)
    most = _number(d.GetMaxForceAttr(), np.inf)
    return Drive(
        _number(d.GetStiffnessAttr(), 0.0) * force / unit, _number(d.GetDampingAttr(), 0.0) * force / unit,
        _number(d.GetTargetPositionAttr(), 0.0) * unit, _number(d.GetTargetVelocityAttr(), 0.0) * unit,
        most * force if most < 1e30 else np.inf,
    )  # fmt: skip


def _number(attribute: Any, default: float) -> float:
    """The value of a USD attribute, or the default where the file gives none."""
    value = attribute.Get()
    return float(default if value is None else value)


def _mimic(prim: Any, kind: str, unit: float) -> tuple[str, float, float] | None:
    """(path of the joint that it follows, ratio, offset), from PhysX (q + gearing q_reference + offset = 0) or Newton."""
    for name in _TURNS + _SLIDES:
        stem = f"physxMimicJoint:{name}"
        to = prim.GetRelationship(f"{stem}:referenceJoint")
        if to and to.GetTargets():
            gearing, offset = (prim.GetAttribute(f"{stem}:{word}") for word in ("gearing", "offset"))
            ratio = float(gearing.Get()) if gearing and gearing.Get() is not None else 1.0
            shift = float(offset.Get()) if offset and offset.Get() is not None else 0.0
            return str(to.GetTargets()[0]), -ratio, -shift * unit
    to = prim.GetRelationship("newton:mimicJoint")
    if to and to.GetTargets():
        coefficients = [prim.GetAttribute(f"newton:mimicCoef{k}") for k in (0, 1)]
        zero, one = (float(c.Get()) if c and c.Get() is not None else d for c, d in zip(coefficients, (0.0, 1.0), strict=True))
        return str(to.GetTargets()[0]), one, zero * unit
    return None


def _armature(s: UsdStage, prim: Any, kind: str) -> float:
    """The armature [kg m^2 or kg], from PhysX or Newton; zero by default."""
    a = prim.GetAttribute("physxJoint:armature") or prim.GetAttribute("newton:armature")
    value = float(a.Get()) if a and a.Get() is not None else 0.0
    return value * (s.inertia if kind == "revolute" else s.mass)


def _length(s: UsdStage, prim: Any) -> float:
    """The length [m] of a distance joint. Raises ModelError: its distance may vary."""
    low, high = (prim.GetAttribute(f"physics:{word}Distance").Get() for word in ("min", "max"))
    if low is None or high is None or low < 0 or high < 0 or abs(high - low) > 1e-6 * max(high, 1e-9) or not high > 0:
        raise s.error(
            prim, f"its distance may vary from {low} to {high}; only rods of fixed length are read, minDistance = maxDistance"
        )
    return float(high) * s.length
