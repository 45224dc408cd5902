"""Frames of an OSIM file: ground, bodies, and frames that are fixed to them."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field

import numpy as np

from pfaffian.errors import nearest
from pfaffian.formats.text.strict_number import numbers, printable
from pfaffian.formats.text.xml import Element
from pfaffian.model.body import WORLD
from pfaffian.model.number import constants
from pfaffian.model.pose import IDENTITY, Pose, pose

UP = pose(rotation=[[1, 0, 0], [0, 0, -1], [0, 1, 0]])
"""Pose of OpenSim's ground, whose y points up, in the world, whose z does."""

MAX_DEPTH = 100
"""Largest number of frames that are fixed to each other."""


@dataclass
class Frames:
    """The frames of a model.   bodies: names.   fixed: path of a frame -> path of its parent, its pose there, its element."""

    bodies: list[str] = field(default_factory=list)
    fixed: dict[str, tuple[str, Pose, Element]] = field(default_factory=dict)

    def find(self, path: str, owner: str, element: Element) -> tuple[str, Pose]:
        """The body of a frame, or the world, and the frame's pose in it.   path: of the frame, from its owner's on.

        Raises ModelError: there is no such frame.
        """
        at = IDENTITY
        for _ in range(MAX_DEPTH):
            name = self._key(path, owner, element)
            if name == "ground":
                return WORLD, UP @ at
            if name in self.bodies:
                return name, at
            parent, here, _ = self.fixed[name]
            path, owner, at = parent, posixpath.dirname(name), here @ at
        raise element.error(f"the frame {printable(path)} is fixed to itself, by way of others; correct it")

    def _key(self, path: str, owner: str, element: Element) -> str:
        """Name of a body, "ground", or path of a fixed frame, from a path in the file."""
        last = posixpath.basename(path.rstrip("/"))
        candidates = [posixpath.normpath(posixpath.join("/", owner, up, path)) for up in ("", "..")]
        for full in candidates:
            if full in self.fixed:
                return full
        if last == "ground" or last in self.bodies:
            return last
        same = [full for full in self.fixed if posixpath.basename(full) == last]
        if len(same) == 1:
            return same[0]
        raise element.error(f"there is no frame {printable(path)}; {nearest(path, ['ground', *self.bodies, *self.fixed])}")


def read_frames(model: Element, bodies: list[str]) -> Frames:
    """The frames of a model from version 4 on."""
    found = Frames(bodies)

    def walk(element: Element, path: str) -> None:
        """Note the frames within an element, by their paths."""
        for child in element.children:
            name = child.attributes.get("name", "") or (child.tag.lower() if child.tag.endswith("Set") else "")
            here = f"{path}/{name}" if name and child.tag not in ("objects", "components") else path
            if child.tag == "PhysicalOffsetFrame":
                parent = child.only("socket_parent")
                if parent is None or not parent.content:
                    raise child.error("<socket_parent> is missing; add it")
                found.fixed[here] = parent.content, offset(child, "translation", "orientation"), child
            walk(child, here)

    walk(model, "")
    return found


def offset(element: Element, place: str, turn: str) -> Pose:
    """A pose from a position and the angles of three turns, about x, then about the new y and z."""
    p, (a, b, c) = (vector(element, tag, (0.0, 0.0, 0.0)) for tag in (place, turn))
    if not any((a, b, c)):
        return pose(p) if any(p) else IDENTITY
    R = np.eye(3)
    for axis, angle in zip(np.eye(3), (a, b, c), strict=True):
        R = R @ turned(axis, angle)
    return pose(p, rotation=R)


def turned(axis: np.ndarray, angle: float) -> np.ndarray:
    """(3, 3) rotation about a unit axis."""
    half = angle / 2
    return constants(pose(quaternion=(*(np.sin(half) * axis), np.cos(half))).R)


def vector(element: Element, tag: str, default: tuple[float, ...]) -> tuple[float, ...]:
    """The numbers in a child element, as many as the default has."""
    child = element.only(tag)
    return default if child is None or not child.content else numbers(child.content, len(default), child.where)
