"""Bodies, joints and coordinates of an OSIM file, as plain data, from files of versions 3 and 4."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pfaffian.errors import ModelError
from pfaffian.formats.osim.osim_frame import Frames, offset, read_frames, vector
from pfaffian.formats.osim.osim_function import FUNCTIONS, JUMPING, TIME, OsimFunction, read_function
from pfaffian.formats.text.strict_number import number, printable, words_of
from pfaffian.formats.text.xml import Element
from pfaffian.model.body import WORLD
from pfaffian.model.joint import UNLIMITED
from pfaffian.model.pose import Pose

OLDEST = 20000
"""Oldest version of files that are read."""

NEWEST = 40600
"""Newest version of files whose elements are known, that of OpenSim 4.6."""

FRAMES_FROM = 40000
"""Version of files from which joints are apart from bodies, and have frames."""

X, Y, Z = np.eye(3)
MOTIONS: dict[str, tuple[tuple[bool, np.ndarray, int], ...]] = {
    "WeldJoint": (),
    "PinJoint": ((True, Z, 0),),
    "SliderJoint": ((False, X, 0),),
    "UniversalJoint": ((True, X, 0), (True, Y, 1)),
    "GimbalJoint": ((True, X, 0), (True, Y, 1), (True, Z, 2)),
    "BallJoint": ((True, X, 0), (True, Y, 1), (True, Z, 2)),
    "PlanarJoint": ((False, X, 1), (False, Y, 2), (True, Z, 0)),
    "FreeJoint": ((False, X, 3), (False, Y, 4), (False, Z, 5), (True, X, 0), (True, Y, 1), (True, Z, 2)),
}
"""Kind of joint -> its motions one after another: whether it turns, the axis, the number of the coordinate."""

AXES = ("translation1", "translation2", "translation3", "rotation1", "rotation2", "rotation3")
"""Names of the motions of a CustomJoint, one after another."""

RANGE = (-10.0, 10.0)
"""Range of a coordinate that is clamped without one."""


@dataclass(frozen=True)
class OsimCoordinate:
    """A coordinate.   default, speed: at the start.   limits: of a clamped one.   prescribed: its motion, of time."""

    name: str
    element: Element
    default: float = 0.0
    speed: float = 0.0
    limits: tuple[float, float] = UNLIMITED
    locked: bool = False
    prescribed: OsimFunction | None = None


@dataclass(frozen=True)
class AxisMotion:
    """A turn about or a slide along a unit axis, by a function of coordinates.   name: of the motion."""

    name: str
    turns: bool
    axis: np.ndarray
    by: OsimFunction


@dataclass(frozen=True)
class OsimJoint:
    """A joint.   parent, child: body and the joint's frame in it.   motions: from parent to child, one after another."""

    name: str
    element: Element
    kind: str
    parent: tuple[str, Pose]
    child: tuple[str, Pose]
    coordinates: tuple[OsimCoordinate, ...]
    motions: tuple[AxisMotion, ...]


@dataclass(frozen=True)
class OsimBody:
    """A body.   mass: [kg].   com: (3,) [m].   inertia: xx yy zz xy xz yz about the mass centre [kg m^2]."""

    name: str
    element: Element
    mass: float
    com: tuple[float, ...]
    inertia: tuple[float, ...]


MEMBERS = {
    "BodySet": re.compile("Body"),
    "JointSet": re.compile(r"\w*Joint"),
    "ConstraintSet": re.compile(r"\w*Constraint"),
    "ForceSet": re.compile(r"\w*(Force|Actuator|Muscle\w*|Ligament|Spring)"),
}
"""Set of a model -> tags of its members."""


def listed(model: Element, tag: str) -> list[Element]:
    """The members of a set of a model, such as its BodySet, also those among the components of its parts."""
    found = model.only(tag)
    inside = found.only("objects") if found is not None else None
    others = [e for e in components(model) if MEMBERS[tag].fullmatch(e.tag)] if tag in MEMBERS else []
    return [*([] if inside is None else inside.children), *others]


def components(element: Element) -> Iterator[Element]:
    """The components of an element and of all elements within, those in a ComponentSet among them."""
    for child in element.children:
        if child.tag == "components" or (child.tag == "objects" and element.tag == "ComponentSet"):
            yield from child.children
        yield from components(child)


def descendants(element: Element) -> Iterator[Element]:
    """All elements within an element."""
    for child in element.children:
        yield child
        yield from descendants(child)


def text_of(element: Element, *tags: str) -> str:
    """The text of the first child that has one of these tags; empty without one."""
    return next((c.content for tag in tags if (c := element.only(tag)) is not None), "")


def value(element: Element, tag: str, default: float) -> float:
    """The number in a child element; the default without one."""
    child = element.only(tag)
    return default if child is None or not child.content else number(child.content, child.where)


def truth(element: Element, tag: str, default: bool = False) -> bool:
    """The truth value in a child element; the default without one."""
    word = text_of(element, tag).lower()
    if word not in ("", "true", "false"):
        raise element.error(f"<{tag}> {printable(word)} is not true or false")
    return word == "true" if word else default


def name_of(element: Element) -> str:
    """The name of an element: 1 to 100 printable characters."""
    name = element.attributes.get("name", "") or f"{element.tag} on line {element.line}"
    if len(name) > 100 or not name.isprintable():
        raise element.error("the name must have 1 to 100 printable characters")
    return name


# -- bodies -----------------------------------------------------------------------------------------------------------


def read_bodies(model: Element, version: int) -> list[OsimBody]:
    """The bodies of a model, without the ground that files of version 3 have among them."""
    given = [e for e in listed(model, "BodySet") if e.tag == "Body"]
    found = [_body(e) for e in given if version >= FRAMES_FROM or e.attributes.get("name") != "ground"]
    names = {WORLD, "ground"}
    for b in found:
        if b.name in names:
            raise b.element.error("this name is taken; give the body another one")
        names.add(b.name)
    return found


def _body(e: Element) -> OsimBody:
    """A body, whose inertia is one element from version 4 on, and six before."""
    if not text_of(e, "mass"):
        raise e.error("<mass> is missing; add it, also where it is zero")
    mass, com = value(e, "mass", 0.0), vector(e, "mass_center", (0.0, 0.0, 0.0))
    inertia = vector(e, "inertia", (0.0,) * 6)
    if e.only("inertia") is None:
        inertia = tuple(value(e, f"inertia_{k}", 0.0) for k in ("xx", "yy", "zz", "xy", "xz", "yz"))
    if mass < 0:
        raise e.error(f"the mass {mass} is negative; make it zero or positive")
    return OsimBody(name_of(e), e, mass, com, inertia)


# -- joints -----------------------------------------------------------------------------------------------------------


def read_joints(model: Element, version: int, bodies: Sequence[OsimBody]) -> tuple[list[OsimJoint], Frames]:
    """The joints of a model and its frames. Raises ModelError: a kind that is not read, or a value that is wrong."""
    inner, apart = [(b, e) for b in bodies for e in _inner(b)], listed(model, "JointSet")
    if version < FRAMES_FROM and inner and apart:
        raise apart[0].error("joints are in bodies and in a JointSet too; open the model in OpenSim 4 and save it")
    if version < FRAMES_FROM and not apart:
        frames = Frames([b.name for b in bodies])
        found = [_joint_of(b, e, frames) for b, e in inner]
    else:
        frames = read_frames(model, [b.name for b in bodies])
        found = [_joint(e, *(_end(e, end, frames) for end in ("parent", "child"))) for e in apart]
    seen = set[str]()
    for j in found:
        for name in (j.name, *(c.name for c in j.coordinates)):
            if name in seen and name != j.name:
                raise j.element.error(f"the coordinate {printable(name)} belongs to another joint too; rename one of them")
            seen.add(name)
    return found, frames


def _inner(b: OsimBody) -> list[Element]:
    """The joint within a body of a file of version 3."""
    inside = b.element.only("Joint")
    return [] if inside is None else inside.children


def _joint_of(b: OsimBody, e: Element, frames: Frames) -> OsimJoint:
    """A joint of version 3, whose child is the body that contains it."""
    if truth(e, "reverse"):
        raise e.error("joints that are reversed are not read; exchange the two bodies")
    parent, at = frames.find(text_of(e, "parent_body"), "", e)
    there = offset(e, "location_in_parent", "orientation_in_parent")
    return _joint(e, (parent, at @ there), (b.name, offset(e, "location", "orientation")))


def _end(e: Element, end: str, frames: Frames) -> tuple[str, Pose]:
    """The body at an end of a joint, "parent" or "child", and the joint's frame in it."""
    owner = f"/jointset/{e.attributes.get('name', '')}"
    if path := text_of(e, f"socket_{end}_frame", f"socket_{end}_frame_connectee_name"):
        return frames.find(path, owner, e)
    connectors = e.only("connectors")  # the form between versions 3 and 4
    for c in connectors.children if connectors is not None else ():
        if c.attributes.get("name") == f"{end}_body":
            name, at = frames.find(text_of(c, "connectee_name"), owner, e)
            return name, at @ offset(e, f"location_in_{end}", f"orientation_in_{end}")
    raise e.error(f"<socket_{end}_frame> is missing; add it")


def _joint(e: Element, parent: tuple[str, Pose], child: tuple[str, Pose]) -> OsimJoint:
    """A joint between two bodies, each with the placement of its frame. Raises ModelError: it is of a kind that is not read."""
    if parent[0] == child[0]:
        raise e.error("it connects a body to itself; name two bodies")
    name = name_of(e)
    inside = e.only("coordinates")
    given = inside.children if inside is not None else listed(e, "CoordinateSet")
    if e.tag == "CustomJoint":
        coordinates = tuple(map(_coordinate, given))
        return OsimJoint(name, e, e.tag, parent, child, coordinates, _custom(e))
    if e.tag not in MOTIONS:
        raise e.error(f"joints of this kind are not read; the kinds are {', '.join(MOTIONS)}, CustomJoint")
    rows = MOTIONS[e.tag]
    missing = [f"{name}_coord_{i}" for i in range(len(given), len(rows))]
    coordinates = (*map(_coordinate, given), *(OsimCoordinate(n, e) for n in missing))
    motions = (
        AxisMotion(coordinates[i].name, turns, axis, OsimFunction({coordinates[i].name: 1.0})) for turns, axis, i in rows
    )
    return OsimJoint(name, e, e.tag, parent, child, coordinates, tuple(motions))


def _coordinate(e: Element) -> OsimCoordinate:
    low, high = vector(e, "range", RANGE) if truth(e, "clamped") else UNLIMITED
    if low > high:
        raise e.error(f"its range {low} to {high} is the wrong way round; swap the ends")
    default, speed = value(e, "default_value", 0.0), value(e, "default_speed_value", 0.0)
    if not low <= default <= high:
        raise e.error(
            f"its default_value {default} is outside its range {low} to {high}, within which it is clamped; change one"
        )
    return OsimCoordinate(name_of(e), e, default, speed, (low, high), truth(e, "locked"), _prescribed(e))


def _prescribed(e: Element) -> OsimFunction | None:
    """The motion that a coordinate is given, as a function of time; None if it has none or does not use it."""
    inner = e.only("prescribed_function")
    if not truth(e, "prescribed") or inner is None or not inner.children:
        return None
    if truth(e, "locked"):
        raise e.error("it is locked and prescribed at once; keep one")
    f = inner.children[0]
    if used := [x.tag for x in (f, *descendants(f)) if x.tag in JUMPING]:
        raise f.error(f"the rate of a {used[0]} jumps, so that no motion follows it; use a SimmSpline through its points")
    return read_function(f, (TIME,))


def _custom(e: Element) -> tuple[AxisMotion, ...]:
    """The motions of a CustomJoint, from the six axes of its SpatialTransform."""
    transform = e.only("SpatialTransform")
    if transform is None:
        raise e.error("<SpatialTransform> is missing; add it")
    named = {a.attributes.get("name", ""): a for a in transform.all("TransformAxis")}
    if not set(named) <= set(AXES):
        raise transform.error(f"its axes are {', '.join(map(printable, named))}; they must be {', '.join(AXES)}")
    found = []
    for name in AXES:
        if name not in named:
            continue
        a = named[name]
        axis = np.array(vector(a, "axis", (1.0, 0.0, 0.0)))
        length = np.linalg.norm(axis)
        if not length > 0:
            raise a.error("the axis has no direction; give a unit vector")
        found.append(AxisMotion(name, name.startswith("rotation"), axis / length, _function(a)))
    return tuple(found)


def _function(a: Element) -> OsimFunction:
    """The function of a TransformAxis; zero without one, whatever its coordinates."""
    names = tuple(words_of(text_of(a, "coordinates")))
    inner = a.only("function")
    given = [
        c for c in (inner.children if inner is not None else a.children) if c.tag not in ("coordinates", "axis", "function")
    ]
    if len(given) > 1:
        raise a.error(f"it has {len(given)} functions; keep one of {', '.join(FUNCTIONS)}")
    return read_function(given[0], names) if given else OsimFunction()


def check_version(document: Element) -> int:
    """The version of a file. Raises ModelError: it is older than OLDEST."""
    word = document.attributes.get("Version", "")
    if not word.isdecimal() or int(word) < OLDEST:
        raise ModelError(
            f"{document.where}: version {printable(word)} is not read; open the model in OpenSim 4 and save it, for versions "
            f"from {OLDEST} on"
        )
    return int(word)
