"""Writing mechanisms as URDF: a .urdf file of the tree, and a YAML file that adds loops, forces and motors to it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError
from pfaffian.formats.text.file import read_text
from pfaffian.formats.text.formula import constant
from pfaffian.formats.text.run_settings import RunSettings
from pfaffian.formats.text.strict_number import printable
from pfaffian.formats.writers.xml_write import Tag, check_names, composed, document, inverted, is_one, numbers, plain, warn_lost
from pfaffian.formats.writers.yaml_write import yaml_text
from pfaffian.formats.writers.yaml_write_part import mesh_name
from pfaffian.model.body import WORLD, Body
from pfaffian.model.force import Actuator
from pfaffian.model.joint import UNLIMITED, Joint
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.pose import NumericPose, align_z, pose
from pfaffian.model.shape import Shape

_TYPES = {"revolute": "revolute", "prismatic": "prismatic", "fixed": "fixed", "free": "floating", "planar": "planar"}
_GRAVITY = (0.0, 0.0, -9.81)


def urdf_files(m: Mechanism, path: Path, settings: RunSettings | None) -> dict[Path, str]:
    """The texts of the .urdf file of the tree, and of the .yaml file of the same name that reads it and adds the rest.

    Raises ModelError: a body or joint that URDF cannot represent, by name.
    """
    check_names([m.name, *(b.name for b in m.bodies), *(j.name for j in m.joints)], "URDF")
    folder, lost = path.parent.resolve(), list[str]()
    robot = Tag("robot", {"name": m.name})
    if any(j.parent == WORLD for j in m.joints):
        robot.add("link", name=WORLD)
    for b in m.bodies:
        _link(robot, b, folder, lost)
    for j in m.joints:
        _joint(robot, j, lost)
    for j in m.joints:
        _rotor(robot, j)
    whole, names = all(_plain(m, a) for a in m.actuators), [a.name for a in m.actuators]
    section: dict[str, Any] = {"file": path.name, "mimic": "follow", "actuated": names if whole else []}
    more = ["parameters", "constraints", "forces"] + ([] if whole else ["actuators"])
    sections = ["gravity"] if tuple(numbers(m.gravity, "gravity")) != _GRAVITY else []
    companion = yaml_text(m, settings, folder, urdf=section, only=(*sections, *more))
    warn_lost(lost, "URDF")
    comment = f"{path.with_suffix('.yaml').name} in this folder reads this file and adds loops, forces and motors"
    return {path: document(robot, comment), _companion_path(path): companion}


def _companion_path(path: Path) -> Path:
    """The path of the YAML file for a URDF file. Raises ModelError: a file of something else is already there."""
    place = path.with_suffix(".yaml")
    if place.is_file() and f"file: {path.name}" not in read_text(place):
        raise ModelError(f"{printable(place.name)} exists and does not read {printable(path.name)}; write to another name")
    return place


def _plain(m: Mechanism, a: Any) -> bool:
    """Whether an actuator equals the one that the URDF reader puts on its joint."""
    if not isinstance(a, Actuator) or a.name != a.joint or a.component or not a.gear.is_constant() or float(a.gear) != 1.0:
        return False
    j = next((j for j in m.joints if j.name == a.joint), None)
    return j is not None and j.kind.name in ("revolute", "prismatic") and not j.mimic and a.limits == (-j.effort, j.effort)


def _link(robot: Tag, b: Body, folder: Path, lost: list[str]) -> None:
    """Add the <link> of a body; `lost` takes what URDF cannot say of its shapes."""
    what, link = f"body {b.name!r}", robot.add("link", name=b.name)
    mass, com, I = numbers(b.mass, what)[0], numbers(b.com, what), numbers(b.inertia, what).reshape(3, 3)
    if mass or I.any():
        inertial = link.add("inertial")
        inertial.add("origin", xyz=com, rpy=np.zeros(3))
        inertial.add("mass", value=mass)
        words = {"ixx": (0, 0), "ixy": (0, 1), "ixz": (0, 2), "iyy": (1, 1), "iyz": (1, 2), "izz": (2, 2)}
        inertial.add("inertia", **{key: I[at] for key, at in words.items()})
    for s in b.shapes:
        _shape(link, s, what, folder, lost)


def _shape(link: Tag, s: Shape, what: str, folder: Path, lost: list[str]) -> None:
    """Add a <visual> or <collision> to a link; `lost` takes a cone, which URDF does not have."""
    if s.kind == "cone":
        lost.append(f"the cone of {what}")
        return
    size, entry = numbers(s.size, what), link.add(s.role)
    _origin(entry, plain(s.placement, what))
    geometry = entry.add("geometry")
    if s.kind == "mesh":
        name = mesh_name(s, folder)
        geometry.add("mesh", filename=name.get("file", s.label), scale=size)
    elif s.kind == "box":
        geometry.add("box", size=size)
    else:
        geometry.add(s.kind, **dict(zip(("radius", "length"), size, strict=False)))
    if s.colour is not None:
        entry.add("material", name="").add("color", rgba=s.colour)


def _origin(parent: Tag, X: NumericPose, after: np.ndarray | None = None, whole: np.ndarray | None = None) -> None:
    """Add <origin>, with the fewest digits of the angles that reproduce the rotation exactly, so that a pose that was read from
    a file is written unchanged.   after: rotation that follows.   whole: rotation to reproduce, R after; R by default."""
    R, p = X
    if not p.any() and is_one(R):
        return
    G, target, angles = np.eye(3) if after is None else after, R if whole is None else whole, rpy_of(R)
    for digits in (6, 9, 12, 14, 15, 16):
        short = np.round(angles, digits)
        if np.array_equal(constant(pose(rpy=short).R @ ca.SX(G), "rpy"), target):
            angles = short
            break
    parent.add("origin", xyz=p, rpy=None if is_one(R) else angles)


def rpy_of(R: np.ndarray) -> np.ndarray:
    """(3,) roll, pitch, yaw of a rotation, R = Rz(yaw) Ry(pitch) Rx(roll); yaw is zero if the pitch is a right angle."""
    pitch = math.atan2(-R[2, 0], math.hypot(R[0, 0], R[1, 0]))
    if math.hypot(R[0, 0], R[1, 0]) < 1e-12:
        return np.array([math.atan2(math.copysign(1.0, pitch) * R[0, 1], R[1, 1]), pitch, 0.0])
    return np.array([math.atan2(R[2, 1], R[2, 2]), pitch, math.atan2(R[1, 0], R[0, 0])])


def _joint(robot: Tag, j: Joint, lost: list[str]) -> None:
    """Add a joint. If its axis misses the child's origin, it gets an extra child link, to which the child is welded."""
    what = f"joint {j.name!r}"
    _check(j, what)
    at, its = plain(j.placement, what), plain(j.child_placement, what)
    axis, direct = its[0][:, 2], _through_origin(j.kind.name, its)
    child = j.child if direct else f"{j.child} behind {j.name}"[:128]
    made = robot.add("joint", name=j.name, type_=_type(j))
    _origin(made, composed(at, inverted(its)) if direct else at, its[0] if direct else None, at[0])
    made.add("parent", link=j.parent)
    made.add("child", link=child)
    if j.kind.name not in ("fixed", "free"):
        made.add("axis", xyz=axis if direct else (0.0, 0.0, 1.0))
    _dynamics(made, j, what, lost)
    if direct:
        return
    lost.append(f"the axis of {what} away from the origin of {j.child!r}, so a link and a fixed joint are put between them")
    robot.add("link", name=child)
    weld = robot.add("joint", name=child, type_="fixed")
    _origin(weld, inverted(its))
    weld.add("parent", link=child)
    weld.add("child", link=j.child)


def _through_origin(kind: str, its: NumericPose) -> bool:
    """Whether placement . motion . its^-1 is an <origin> followed by a motion about an axis through the child's origin."""
    R, p = its
    if kind in ("fixed", "prismatic"):
        return True
    if kind == "revolute":
        return bool(np.abs(p - R[:, 2] * (R[:, 2] @ p)).max() < 1e-15)
    return not p.any() and bool(np.abs(R - (align_z(R[:, 2]) if kind == "planar" else np.eye(3))).max() < 1e-14)


def _check(j: Joint, what: str) -> None:
    """Raise ModelError if URDF cannot represent a joint."""
    if j.pose is not None:
        raise ModelError(f"edge {j.name!r}: its pose is a function in Python, which a file cannot contain; use a joint kind")
    if j.kind.name not in _TYPES or j.distribution is not None:
        part = "distributions of velocities" if j.distribution is not None else f"{j.kind.name} joints"
        raise ModelError(f"{what}: URDF has no {part}; write YAML")
    if not j.stiffness.is_zero():
        raise ModelError(f"{what}: URDF has no joint springs; write YAML or MJCF, or use a force")
    if j.mimic and len(j.mimic.joints) > 1:
        raise ModelError(f"{what} follows {len(j.mimic.joints)} joints, but in URDF a joint follows only one; write YAML")
    if j.kind.name not in ("revolute", "prismatic") and not (j.damping.is_zero() and j.armature.is_zero()):
        raise ModelError(f"{what}: URDF has no damping or armature on a {j.kind.name} joint; write YAML or MJCF")


def _type(j: Joint) -> str:
    return "continuous" if j.kind.name == "revolute" and not np.isfinite(j.limits).all() else _TYPES[j.kind.name]


def _dynamics(made: Tag, j: Joint, what: str, lost: list[str]) -> None:
    """Add limits, damping and mimic of a joint; `lost` takes those that URDF cannot say."""
    if j.kind.name not in ("revolute", "prismatic"):
        if any(pair != UNLIMITED for pair in j.limits):
            lost.append(f"the limits of {what}")
        if np.isfinite(j.effort):
            lost.append(f"the effort of {what}")
        return
    low, high = j.limits[0]
    finite = bool(np.isfinite((low, high)).all())
    if not finite and (low, high) != UNLIMITED:
        lost.append(f"the one-sided limit of {what}")
    elif not finite and j.kind.name == "prismatic":
        lost.append(f"that {what} has no limits, which the format requires, so that other tools may refuse the file")
    effort = j.effort if np.isfinite(j.effort) else 0.0
    if finite or (effort and j.kind.name == "revolute"):
        given = {"lower": low, "upper": high} if finite else {}
        made.add("limit", **given, effort=effort, velocity=0.0)
    elif effort:
        lost.append(f"the effort of {what}, which has no limits")
    if not j.damping.is_zero():
        made.add("dynamics", damping=numbers(j.damping, what)[0], friction=0.0)
    if j.mimic:
        ratio, offset = numbers(j.mimic.ratios, what)[0], numbers(j.mimic.offset, what)[0]
        made.add("mimic", joint=j.mimic.joints[0], multiplier=ratio, offset=offset)


def _rotor(robot: Tag, j: Joint) -> None:
    """Add the armature of a joint as the rotor inertia of Drake's dialect."""
    if j.armature.is_zero():
        return
    t = robot.add("transmission", name=f"{j.name} transmission"[:128])
    t.add("joint", name=j.name)
    motor = t.add("actuator", name=f"{j.name} rotor"[:128])
    motor.add("drake:rotor_inertia", value=numbers(j.armature, f"joint {j.name!r}")[0])
    motor.add("drake:gear_ratio", value=1.0)
