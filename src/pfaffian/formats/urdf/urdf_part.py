"""The elements of a URDF file that describe mechanics, as plain data."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError
from pfaffian.formats.text.strict_number import printable
from pfaffian.formats.text.xml import Element
from pfaffian.model.pose import IDENTITY, Pose, pose

ZERO = (0.0, 0.0, 0.0)

KINDS = {
    "revolute": "revolute",
    "continuous": "revolute",
    "prismatic": "prismatic",
    "fixed": "fixed",
    "floating": "free",
    "planar": "planar",
}
"""URDF joint type -> kind of joint."""

LIMITED = ("revolute", "prismatic")
"""URDF joint types whose <limit> the format requires, with bounds."""


@dataclass(frozen=True)
class UrdfLink:
    """A link.   mass: [kg].   com: (3,) [m].   inertia: (3, 3) about the mass centre along the link axes [kg m^2]."""

    name: str
    element: Element
    mass: float = 0.0
    com: tuple[float, ...] = (0.0, 0.0, 0.0)
    inertia: np.ndarray = field(default_factory=lambda: np.zeros((3, 3)))

    @property
    def massless(self) -> bool:
        return self.mass == 0 and not self.inertia.any()


@dataclass(frozen=True)
class UrdfMimic:
    """The relation of a mimic joint, q = multiplier * (q of `joint`) + offset."""

    joint: str
    multiplier: float
    offset: float


@dataclass(frozen=True)
class UrdfJoint:
    """One joint. Its effort is infinite if the file gives none or 0, which exporters write for "unknown".

    turn: rotation of both its frames, if the axes of its kind differ from those in the file.   pitch: [m/rad] of a screw.
    independent: attribute of URDF+, None if missing.   armature: inertia of its rotor on the joint's side [kg m^2 or kg].
    stiffness, rest: of its spring, which Gazebo's elements give.
    """

    name: str
    element: Element
    kind: str
    parent: str
    child: str
    placement: Pose
    axis: tuple[float, ...]
    limits: tuple[float, float]
    effort: float
    damping: float
    friction: float
    mimic: UrdfMimic | None
    turn: Pose = IDENTITY
    pitch: float | None = None
    independent: bool | None = None
    armature: float = 0.0
    stiffness: float = 0.0
    rest: float = 0.0


def read_link(element: Element) -> UrdfLink:
    """Read a <link>. Without <inertial> it has no mass. Raises ModelError: a value is missing or wrong."""
    name = part_name(element)
    inertial = element.only("inertial")
    if inertial is None:
        return UrdfLink(name, element)
    mass_element, tensor = needed(inertial, "mass", name), needed(inertial, "inertia", name)
    mass = mass_element.number("value")
    if mass < 0:
        raise mass_element.error(f"link {printable(name)}: the mass {mass} is negative; make it zero or positive")
    xx, yy, zz, xy, xz, yz = (tensor.number(k) for k in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz"))
    I = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    origin = inertial.only("origin")
    at, com = place_of(origin), ZERO if origin is None else origin.numbers("xyz", ZERO)
    if not at.R.is_eye():
        R = np.array(ca.DM(at.R))
        I = R @ I @ R.T
        I = (I + I.T) / 2
    if not np.isfinite(I).all():
        raise tensor.error(f"link {printable(name)}: the inertia is not finite after turning it to the link axes; correct it")
    return UrdfLink(name, element, mass, com, I)


def read_joint(element: Element) -> UrdfJoint:
    """Read a <joint> directly below <robot>. Raises ModelError: its type is unknown, or a value is missing or wrong."""
    part_name(element)
    kind = element.text("type")
    if kind not in KINDS:
        raise element.error(f"type {printable(kind)} is unknown; the types are {', '.join(KINDS)}")
    return read_joint_of(element, KINDS[kind])


def read_joint_of(element: Element, kind: str) -> UrdfJoint:
    """Read a joint of a given kind, whatever its type is called in the file."""
    name = part_name(element)
    if len(element.all("parent")) > 1 or len(element.all("child")) > 1:
        raise element.error("a joint has one parent and one child; write two joints, and the second one closes the loop")
    parent, child = (needed(element, tag, name).text("link") for tag in ("parent", "child"))
    placement = place_of(element.only("origin"))
    limits, effort = limit_of(element, element.text("type"))
    dynamics = element.only("dynamics")
    damping, friction = (dynamics.number(k, 0.0) for k in ("damping", "friction")) if dynamics else (0.0, 0.0)
    mimic = None if kind == "fixed" else _mimic(element)  # exporters leave <mimic> on joints that they made fixed
    return UrdfJoint(name, element, kind, parent, child, placement, _axis(element, kind), limits, effort, damping, friction,
                     mimic, independent=_truth(element, "independent"))  # fmt: skip


def _truth(element: Element, attribute: str) -> bool | None:
    """The truth value of an attribute, None if it is missing."""
    word = element.attributes.get(attribute)
    if word is None:
        return None
    if word.lower() not in ("true", "false"):
        raise element.error(f"{attribute} must be true or false, not {printable(word)}")
    return word.lower() == "true"


def part_name(element: Element) -> str:
    """The name of a link or joint: 1 to 128 printable characters."""
    name = element.text("name")
    if not name or len(name) > 128 or not name.isprintable():
        raise element.error("the name must have 1 to 128 printable characters")
    return name


def needed(element: Element, tag: str, name: str) -> Element:
    """The required child element.   name: of the part, for errors."""
    found = element.only(tag)
    if found is None:
        raise element.error(f"<{tag}> is missing in {printable(name)}; add it")
    return found


def place_of(element: Element | None) -> Pose:
    """The pose in an element such as <origin>, by xyz and rpy or, as in URDF 1.1, quat_xyzw; the identity if there is none.

    Raises ModelError: a value is wrong, or there are two rotations.
    """
    if element is None:
        return IDENTITY
    xyz, rpy = element.numbers("xyz", ZERO), element.numbers("rpy", ZERO)
    if "quat_xyzw" not in element.attributes:
        return pose(xyz, rpy=rpy if any(rpy) else None) if any(rpy) or any(xyz) else IDENTITY
    if "rpy" in element.attributes:
        raise element.error("it has rpy and quat_xyzw; keep one of them")
    turned = element.numbers("quat_xyzw", (*ZERO, 1.0))
    try:
        return pose(xyz, quaternion=turned)
    except ModelError as error:
        raise element.error(str(error)) from None


def _axis(element: Element, kind: str) -> tuple[float, ...]:
    """The axis as a (3,) unit vector; x by default, as in the URDF specification."""
    axis = element.only("axis")
    if axis is None or kind in ("fixed", "free", "spherical", "universal"):
        return (1.0, 0.0, 0.0)
    n = axis.numbers("xyz", (1.0, 0.0, 0.0))
    length = math.hypot(*n)
    if not 1e-9 < length < math.inf:
        raise axis.error(f"joint {printable(element.text('name'))}: the axis {n} has no direction; give a unit vector")
    return tuple(x / length for x in n)


def limit_of(element: Element, kind: str) -> tuple[tuple[float, float], float]:
    """((lower, upper), effort) of <limit>, infinite if the file does not give them.   kind: URDF type of the joint."""
    limit = element.only("limit")
    if limit is None:
        return (-math.inf, math.inf), math.inf
    effort, _ = limit.number("effort", 0.0), limit.number("velocity", 0.0)  # a wrong number is an error, used or not
    low, high = (limit.number(k, 0.0) for k in ("lower", "upper"))
    if kind not in LIMITED:
        low, high = -math.inf, math.inf
    if low > high:
        raise limit.error(f"joint {printable(element.text('name'))}: lower {low} is above upper {high}; swap them")
    return (low, high), effort if effort > 0 else math.inf


def assumed_limits(j: UrdfJoint) -> list[str]:
    """The bounds that the <limit> of a revolute or prismatic joint leaves out, which are then zero by the format."""
    limit = j.element.only("limit") if j.element.attributes.get("type") in LIMITED else None
    return [] if limit is None else [k for k in ("lower", "upper") if k not in limit.attributes]


def lacks_limit(j: UrdfJoint) -> bool:
    """Whether a revolute or prismatic joint has no <limit>, which the format requires."""
    return j.element.attributes.get("type") in LIMITED and j.element.only("limit") is None


def _mimic(element: Element) -> UrdfMimic | None:
    mimic = element.only("mimic")
    if mimic is None:
        return None
    return UrdfMimic(mimic.text("joint"), mimic.number("multiplier", 1.0), mimic.number("offset", 0.0))


def unique(parts: list[Any], what: str) -> dict[str, Any]:
    """Name -> part.   what: kind of the parts. Raises ModelError: two parts have the same name."""
    named: dict[str, Any] = {}
    for part in parts:
        if part.name in named:
            first = named[part.name].element.line
            raise ModelError(f"{part.element.where}: another {what} of this name is on line {first}; names must be unique")
        named[part.name] = part
    return named
