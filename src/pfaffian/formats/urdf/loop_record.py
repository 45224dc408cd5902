"""Loops that a URDF file describes besides its tree of joints, in any of the dialects: each becomes a closure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pfaffian.errors import ModelError
from pfaffian.formats.text.strict_number import printable
from pfaffian.formats.urdf.urdf_part import UrdfJoint, UrdfMimic
from pfaffian.model.constraint import Closure, closure
from pfaffian.model.joint import UNLIMITED, Joint, axis_frame, mimic
from pfaffian.model.number import vector
from pfaffian.model.pose import IDENTITY, Pose

KINDS = {
    "revolute": "revolute", "continuous": "revolute", "hinge": "revolute", "prismatic": "prismatic", "slider": "prismatic",
    "fixed": "weld", "weld": "weld", "6d": "weld", "spherical": "spherical", "ball": "spherical", "3d": "spherical",
    "universal": "universal", "revolute2": "universal", "planar": "planar", "cylindrical": "cylindrical", "screw": "helical",
    "helical": "helical",
}  # fmt: skip
"""Type of a loop-closing joint, in any of the dialects -> kind of closure."""

ONE_MOTION = ("revolute", "prismatic", "helical")
"""Kinds of closures with one coordinate, along which a file can put a spring, a damper, limits and a motor."""

DAMPED = (*ONE_MOTION, "spherical", "universal")
"""Kinds of joints and closures whose velocities have one unit, so that one number says their damping."""

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


@dataclass(frozen=True)
class Loop:
    """A joint that closes a loop.

    kind: of the closure.   links: the two links that it connects.   where: source and line.   places: its frame in each link.
    axes: its axis in each of these frames; for a universal joint, the axis fixed to each link.   pitch: [m/rad] of a screw.
    stiffness, rest, damping, armature, friction, limits, effort: along its coordinate, for a kind with one.
    follows: the joint that its coordinate follows, or None.
    """

    name: str
    kind: str
    links: tuple[str, str]
    where: str
    places: tuple[Pose, Pose] = (IDENTITY, IDENTITY)
    axes: tuple[tuple[float, ...], tuple[float, ...]] = (Z, Z)
    pitch: float | None = None
    stiffness: float = 0.0
    rest: float = 0.0
    damping: float = 0.0
    armature: float = 0.0
    friction: float = 0.0
    limits: tuple[float, float] = UNLIMITED
    effort: float = math.inf
    follows: UrdfMimic | None = None

    @property
    def carried(self) -> dict[str, Any]:
        """The arguments of `closure` for what the joint carries, as far as its kind can have it."""
        if self.kind not in ONE_MOTION:
            return {"damping": self.damping} if self.kind in DAMPED else {}
        given = {"stiffness": self.stiffness, "rest": self.rest or None, "damping": self.damping, "armature": self.armature}
        if law := self.follows:
            return given | {"mimic": mimic({law.joint: law.multiplier}, law.offset)}
        return given | {"limits": self.limits, "effort": self.effort}

    @property
    def not_carried(self) -> list[str]:
        """Words for what the file gives and the closure cannot have."""
        words = {"a spring": self.stiffness, "rotor": self.armature, "limits": self.limits != UNLIMITED}
        words |= {} if self.kind in DAMPED else {"damping": self.damping}
        return [] if self.kind in ONE_MOTION else [word for word, given in words.items() if given]


def loop_kind(word: str, where: str) -> str:
    """The kind of closure for a joint type, upper or lower case. Raises ModelError: an unknown type."""
    found = KINDS.get(word.lower())
    if found is None:
        raise ModelError(f"{where}: no closure is of type {printable(word)}; the types are {', '.join(KINDS)}")
    return found


def unit(n: tuple[float, ...], where: str) -> tuple[float, ...]:
    """The unit vector along n. Raises ModelError: n is zero or not finite."""
    length = math.hypot(*n)
    if not 1e-9 < length < math.inf:
        raise ModelError(f"{where}: the axis {n} has no direction; give a unit vector")
    return tuple(x / length for x in n)


def close(loop: Loop, called: Mapping[str, str]) -> Closure:
    """The closure of a loop.   called: link -> body. Raises ModelError: an unknown link, or the same link twice."""
    for name in loop.links:
        if name not in called:
            raise ModelError(f"{loop.where}: there is no link {printable(name)}; correct the name")
    a, b = (called[name] for name in loop.links)
    if a == b:
        raise ModelError(f"{loop.where}: this loop connects {printable(loop.links[0])} to itself; name two different links")
    (at, its), (n, k) = loop.places, loop.axes
    if loop.kind == "universal":
        return closure(loop.name, loop.kind, a, b, placement_a=at, placement_b=its, axis=n, axis_b=k, **loop.carried)
    if loop.kind not in ("weld", "spherical"):
        at, its = at @ axis_frame(n, loop.where), its @ axis_frame(k, loop.where)
    return closure(loop.name, loop.kind, a, b, placement_a=at, placement_b=its, pitch=loop.pitch, **loop.carried)


def zero_places(order: list[UrdfJoint], root: str) -> dict[str, Pose]:
    """Link -> its pose in the root link with all joints at zero."""
    found = {root: IDENTITY}
    for j in order:
        found[j.child] = found[j.parent] @ j.placement
    return found


def past_massless(loops: list[Loop], order: list[UrdfJoint], lost: set[str]) -> tuple[list[Loop], set[str]]:
    """The loops without massless joints at their ends, and the names of the joints that were merged into loops.

    No force determines the motion of a joint that carries no mass, but a loop does. So a weld to a link that such a joint
    carries becomes a closure of the joint's kind, from the joint's parent.   lost: names of the joints that carry no mass.

    Raises ModelError: a loop at such a joint that is not a weld, or a second loop there.
    """
    leading, made, merged = {j.child: j for j in order}, list[Loop](), set[str]()
    for loop in loops:
        here = loop
        for end in (0, 1):
            j, place = leading.get(here.links[end]), here.places[end]
            while j is not None and j.kind == "fixed":
                place = j.placement @ place
                j = leading.get(j.parent)
            if j is None or j.name not in lost:
                continue
            if here.kind != "weld" or j.name in merged or j.kind not in KINDS:
                why = f"joint {printable(j.name)} moves no mass, so nothing determines the motion of this loop"
                raise ModelError(f"{loop.where}: {why}; give link {printable(j.child)} a mass")
            other, its = here.links[1 - end], here.places[1 - end]
            axes = (X, Y) if j.kind == "universal" else (j.axis, j.axis)
            here = Loop(loop.name, KINDS[j.kind], (j.parent, other), loop.where,
                        (j.placement @ j.turn, its @ place.inverse() @ j.turn), axes, j.pitch, damping=j.damping,
                        armature=j.armature, friction=j.friction, limits=j.limits, effort=j.effort)  # fmt: skip
            merged.add(j.name)
        made.append(here)
    return made, merged


def hinge_at(name: str, links: tuple[str, str], point: tuple[float, ...], axis: tuple[float, ...], zero: Mapping[str, Pose],
             kind: str, where: str) -> Loop:  # fmt: skip
    """A loop given by a point and an axis in the root link, with all joints at zero.   zero: link -> its pose there."""
    for link in links:
        if link not in zero:
            raise ModelError(f"{where}: there is no link {printable(link)}; correct the name")
    at = Pose(axis_frame(unit(axis, where), where).R, vector(point, 3, where))
    here, there = (zero[link].inverse() @ at for link in links)
    return Loop(name, kind, links, where, (here, there))


def closed_loops(closing: list[Loop], tree: list[Joint], called: Mapping[str, str]) -> tuple[list[Loop], list[Closure]]:
    """The loops and their closures; they follow joints of the tree with one coordinate only.   called: link -> body."""
    leaders = {j.name for j in tree if j.kind.nq == 1}
    loops = [x if x.follows is None or x.follows.joint in leaders else replace(x, follows=None) for x in closing]
    return loops, [close(loop, called) for loop in loops]
