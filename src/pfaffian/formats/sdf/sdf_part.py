"""The elements of an SDF model that describe mechanics, as plain data."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError
from pfaffian.formats.text.coupling import GravityCompensation
from pfaffian.formats.text.left_out import LeftOut, leave
from pfaffian.formats.text.solid import UniformSolid
from pfaffian.formats.text.strict_number import number, numbers, printable
from pfaffian.formats.text.xml import Element
from pfaffian.model.force import Potential
from pfaffian.model.joint import UNLIMITED
from pfaffian.model.pose import IDENTITY, Pose, pose

KINDS = {
    "fixed": ("fixed", 0),
    "revolute": ("revolute", 1),
    "continuous": ("revolute", 1),
    "prismatic": ("prismatic", 1),
    "screw": ("helical", 1),
    "ball": ("spherical", 0),
    "universal": ("revolute", 2),
    "revolute2": ("revolute", 2),
    "gearbox": ("gearbox", 2),
}
"""SDF joint type -> kind of joint, and number of axes. A joint with two axes becomes two joints."""

UNLIMITED_FROM = 1e16
"""Limits of at least this size mean no limit in SDF."""

WHOLE_MESH = "inertias of meshes are those of their whole files, whatever their submesh and optimization"

_INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)


@dataclass(frozen=True)
class SdfLink:
    """A link.   mass: [kg].   com: (3,) [m].   inertia: (3, 3) about the mass centre along the link's axes [kg m^2].
    weightless: whether gravity does not act on it."""

    name: str
    element: Element
    mass: float
    com: tuple[float, ...]
    inertia: np.ndarray
    weightless: bool


@dataclass(frozen=True)
class SdfAxis:
    """One axis of a joint.   xyz: (3,) in `frame`, or in the joint's frame if `frame` is empty.   follows: (joint, axis, ratio,
    offset, reference) of <mimic>.   initial: position at the start, from <initial_position> of SDF 1.5 to 1.7."""

    element: Element | None
    xyz: tuple[float, ...] = (0.0, 0.0, 1.0)
    frame: str = ""
    limits: tuple[float, float] = UNLIMITED
    effort: float = math.inf
    damping: float = 0.0
    friction: float = 0.0
    stiffness: float = 0.0
    rest: float = 0.0
    follows: tuple[str, str, float, float, float] | None = None
    initial: float = 0.0


@dataclass(frozen=True)
class SdfJoint:
    """One joint.   pitch: [m/rad] of a screw.   reference, ratio: reference body and ratio of a gearbox."""

    name: str
    element: Element
    kind: str
    parent: str
    child: str
    axes: tuple[SdfAxis, ...]
    pitch: float = 0.0
    reference: str = ""
    ratio: float = 1.0


# -- values between tags ----------------------------------------------------------------------------------------------


def word(element: Element, tag: str, default: str | None = None) -> str:
    """The text of a child element, which is required if there is no default."""
    child = element.only(tag)
    if child is None or not child.content:
        if default is None:
            raise element.error(f"<{tag}> is missing; add it")
        return default
    return child.content


def value(element: Element, tag: str, default: float) -> float:
    """The number in a child element; the default if there is none."""
    child = element.only(tag)
    return default if child is None else number(child.content, lambda: f"{element.where}: {tag}")


def bound(element: Element, tag: str, default: float) -> float:
    """The number in a child element, which may be inf or -inf; the default if there is none."""
    text = word(element, tag, "")
    return float(text) if _INFINITE.fullmatch(text) else value(element, tag, default)


def truth(element: Element, tag: str, default: bool = False) -> bool:
    """The truth value in a child element; the default if there is none."""
    text = word(element, tag, "true" if default else "false").lower()
    if text not in ("true", "false", "1", "0"):
        raise element.error(f"<{tag}> {printable(text)} is not true or false")
    return text in ("true", "1")


def written_pose(element: Element | None) -> Pose:
    """The pose in a <pose> element, in the frame that it is relative to; the identity if there is none."""
    if element is None or not element.content:
        return IDENTITY
    given, where = element.attributes, element.where
    if turned := written_quaternion(element):
        return _placed(element, numbers(element.content, 7, where)[:3], turned)
    x = numbers(element.content, 6, where)
    turn = math.pi / 180 if given.get("degrees", "false") in ("true", "1") else 1.0
    angles = tuple(turn * a for a in x[3:])
    return pose(x[:3], rpy=angles) if any(angles) else pose(x[:3])


def written_quaternion(element: Element) -> tuple[float, ...]:
    """(4,) the quaternion (x, y, z, w) in a <pose> element; empty if it has none."""
    if not element.content or element.attributes.get("rotation_format", "euler_rpy") != "quat_xyzw":
        return ()
    return numbers(element.content, 7, element.where)[3:]


def _placed(element: Element, xyz: tuple[float, ...], quaternion: tuple[float, ...]) -> Pose:
    try:
        return pose(xyz, quaternion=quaternion)
    except ModelError as error:
        raise element.error(str(error)) from None


def name_of(element: Element) -> str:
    """The name of an element: 1 to 128 printable characters, none that SDF reserves."""
    name = element.text("name")
    if not name or len(name) > 128 or not name.isprintable():
        raise element.error("the name must have 1 to 128 printable characters")
    if name == "world" or name.startswith("__"):
        raise element.error(f"the name {printable(name)} is reserved; choose another name")
    return name


# -- links ------------------------------------------------------------------------------------------------------------


def read_link(element: Element, lost: LeftOut, auto: Callable[[Element], UniformSolid]) -> SdfLink:
    """Read a <link>. Without <inertial> it has mass 1 kg and inertia 1 kg m^2, as the SDF specification defines.

    auto: gives the inertia where the file leaves it to the collision shapes, from the <inertial>.
    """
    name, inertial = name_of(element), element.only("inertial")
    weightless = not truth(element, "gravity", True)
    if truth(element, "kinematic"):
        leave(lost, "kinematic links move like other links", name)
    if inertial is None:
        leave(lost, "links without <inertial> have mass 1 kg and inertia 1 kg m^2, the defaults of SDF", name)
        return SdfLink(name, element, 1.0, (0.0, 0.0, 0.0), np.eye(3), weightless)
    if inertial.attributes.get("auto", "false") in ("true", "1"):
        solid = auto(inertial)
        meshes = [e for shape in element.all("collision") for g in shape.all("geometry") for e in g.all("mesh")]
        if any(e.only("submesh") or "optimization" in e.attributes for e in meshes):
            leave(lost, WHOLE_MESH, name)
        I = solid.inertia
        return SdfLink(name, element, solid.mass, tuple(solid.com.tolist()), (I + I.T) / 2, weightless)
    if inertial.only("fluid_added_mass") is not None:
        leave(lost, "added masses of a fluid are left out", name)
    mass = value(inertial, "mass", 1.0)
    if mass < 0:
        raise inertial.error(f"the mass {mass} of {printable(name)} must be zero or positive")
    I = _tensor(inertial)
    at = written_pose(inertial.only("pose"))
    if not at.R.is_eye():
        R = np.array(ca.DM(at.R))
        I = R @ I @ R.T
    if not np.isfinite(I).all():
        raise inertial.error(f"the inertia of {printable(name)} is not finite; correct it")
    return SdfLink(name, element, mass, tuple(np.array(ca.DM(at.p)).ravel().tolist()), (I + I.T) / 2, weightless)


def _tensor(inertial: Element) -> np.ndarray:
    """(3, 3) inertia in the frame of <inertial>; the identity by default."""
    given = inertial.only("inertia")
    if given is None:
        return np.eye(3)
    xx, yy, zz = (value(given, k, 1.0) for k in ("ixx", "iyy", "izz"))
    xy, xz, yz = (value(given, k, 0.0) for k in ("ixy", "ixz", "iyz"))
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


# -- joints -----------------------------------------------------------------------------------------------------------


def read_joint(element: Element, lost: LeftOut) -> SdfJoint:
    """Read a <joint>. Raises ModelError: its type is unknown, or a value is missing or wrong."""
    name, kind = name_of(element), element.text("type")
    if kind not in KINDS:
        raise element.error(f"type {printable(kind)} is unknown; the types are {', '.join(KINDS)}")
    parent, child = word(element, "parent"), word(element, "child")
    if parent == child:
        raise element.error(f"parent and child are both {printable(parent)}; name two different links")
    count = KINDS[kind][1]
    axes = tuple(_axis(element, tag) for tag in ("axis", "axis2")[:count])
    if count and element.only("axis") is None:
        leave(lost, "joints without <axis>, which SDFormat refuses, act about or along z", name)
    if kind == "continuous" and axes[0].limits != UNLIMITED:
        leave(lost, "limits of continuous joints, which turn freely, are left out", name)
        axes = (replace(axes[0], limits=UNLIMITED),)
    if kind == "ball" and (axis := element.only("axis")) and (dynamics := axis.only("dynamics")) and dynamics.children:
        leave(lost, "axes of ball joints, with their dampers, are left out", name)
    ratio = value(element, "gearbox_ratio", 1.0)
    reference = word(element, "gearbox_reference_body") if kind == "gearbox" else ""
    pitch = _pitch(element) if kind == "screw" else 0.0
    return SdfJoint(name, element, kind, parent, child, axes, pitch, reference, ratio)


def _pitch(joint: Element) -> float:
    """Pitch [m/rad], from screw_thread_pitch [m per turn] or the older thread_pitch [rad/m], which has the opposite sign."""
    if joint.only("screw_thread_pitch") is not None:
        found = value(joint, "screw_thread_pitch", 1.0) / (2 * math.pi)
    else:
        old = value(joint, "thread_pitch", -2 * math.pi)
        found = -1 / old if old else math.inf
    if not 0 < abs(found) < math.inf:
        raise joint.error("the pitch of a screw must not be zero or infinite")
    return found


def _axis(joint: Element, tag: str) -> SdfAxis:
    """An axis of a joint; z if the joint has no <axis>."""
    axis = joint.only(tag)
    if axis is None:
        if tag == "axis2":
            raise joint.error("<axis2> is missing")
        return SdfAxis(joint)
    direction = axis.only("xyz")
    xyz = numbers(direction.content, 3, direction.where) if direction is not None and direction.content else (0.0, 0.0, 1.0)
    length = math.hypot(*xyz)
    if not 1e-9 < length < math.inf:
        raise axis.error(f"joint {printable(name_of(joint))}: the axis {xyz} has no direction; give a unit vector")
    frame = direction.attributes.get("expressed_in", "") if direction is not None else ""
    limit, dynamics = (axis.only(t) or Element(t, {}, axis.source, axis.line) for t in ("limit", "dynamics"))
    low, high = bound(limit, "lower", -math.inf), bound(limit, "upper", math.inf)
    if low > high:
        raise limit.error(f"joint {printable(name_of(joint))}: lower {low} is above upper {high}; swap them")
    effort = bound(limit, "effort", -1.0)
    for tag in ("velocity", "stiffness", "dissipation"):
        bound(limit, tag, 0.0)  # a wrong number is an error, used or not
    if value(dynamics, "friction", 0.0) < 0:
        raise dynamics.error(f"joint {printable(name_of(joint))}: the friction is below zero; make it zero or positive")
    numbers_ = {"damping": "damping", "friction": "friction", "stiffness": "spring_stiffness", "rest": "spring_reference"}
    return SdfAxis(
        axis,
        tuple(x / length for x in xyz),
        frame,
        limits=(low if low > -UNLIMITED_FROM else -math.inf, high if high < UNLIMITED_FROM else math.inf),
        effort=effort if effort > 0 else math.inf,
        follows=_mimic(axis),
        initial=value(axis, "initial_position", 0.0),
        **{k: value(dynamics, tag, 0.0) for k, tag in numbers_.items()},
    )


def _mimic(axis: Element) -> tuple[str, str, float, float, float] | None:
    """(joint, axis, ratio, offset, reference) of <mimic>, None if there is none."""
    found = axis.only("mimic")
    if found is None:
        return None
    ratio, offset, reference = (value(found, k, d) for k, d in (("multiplier", 1.0), ("offset", 0.0), ("reference", 0.0)))
    return found.text("joint"), found.attributes.get("axis", "axis"), ratio, offset, reference


def gravity_compensation(links: dict[str, SdfLink], gravity: tuple[float, ...]) -> list[Potential]:
    """Links without gravity: for each, a force at the mass centre that carries its weight."""

    def force(link: SdfLink) -> ca.SX:
        return ca.SX(ca.DM([-link.mass * g for g in gravity]))

    return [
        Potential(f"{n} without gravity"[:128], GravityCompensation(n, ca.SX(ca.DM(x.com)), force(x)))
        for n, x in links.items() if x.weightless and x.mass
    ]  # fmt: skip
