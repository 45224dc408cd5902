"""Joints of an OSIM file as chains of turns and slides.

A CustomJoint turns and slides by functions of its coordinates. Each of these motions becomes a joint. A coordinate is that of
the first joint that moves by it alone; the others follow it, by a mimic where the function is linear, else by a constraint.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.formats.osim.osim_coordinate import owners
from pfaffian.formats.osim.osim_frame import turned
from pfaffian.formats.osim.osim_function import OsimFunction
from pfaffian.formats.osim.osim_part import AxisMotion, OsimCoordinate, OsimJoint
from pfaffian.formats.text.coupling import PiecewiseCoupling, PrescribedMotion
from pfaffian.formats.text.left_out import LeftOut, leave
from pfaffian.model.body import Body, body
from pfaffian.model.constraint import Closure, Holonomic, closure, holonomic
from pfaffian.model.joint import UNLIMITED, Joint, joint, mimic
from pfaffian.model.pose import IDENTITY, Pose, pose

CLOSING: dict[str, tuple[str, dict[str, Any]]] = {
    "WeldJoint": ("weld", {}),
    "PinJoint": ("revolute", {"axis": (0, 0, 1)}),
    "SliderJoint": ("prismatic", {"axis": (1, 0, 0)}),
    "BallJoint": ("spherical", {}),
    "GimbalJoint": ("spherical", {}),
    "UniversalJoint": ("universal", {"axis": (1, 0, 0), "axis_b": (0, 1, 0)}),
}
"""Kind of joint -> kind of closure and its axes, for joints that close loops."""


@dataclass
class ChainParts:
    """What joints become.   coordinates: names of all.   between: massless bodies.   couplings: joints that follow by a
    constraint, and by which function.   start: name -> value."""

    coordinates: frozenset[str]
    joints: list[Joint] = field(default_factory=list)
    between: list[Body] = field(default_factory=list)
    couplings: list[tuple[str, OsimFunction]] = field(default_factory=list)
    start: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Mover:
    """One of the joints of a chain.   arguments: of `joint`."""

    name: str
    turns: bool
    axis: np.ndarray
    arguments: Mapping[str, Any]


def add(j: OsimJoint, back: bool, passive: Mapping[str, Mapping[str, float]], made: ChainParts, lost: LeftOut) -> None:
    """Add the joints of one OSIM joint.   back: whether the tree goes from its child to its parent.   passive: coordinate ->
    stiffness, rest and damping of its forces."""
    steps = _steps(j, passive, made, lost)
    near, far = (j.child, j.parent) if back else (j.parent, j.child)
    if back:
        steps = [replace(x, axis=-x.axis) if isinstance(x, Mover) else x.inverse() for x in reversed(steps)]
    movers = [x for x in steps if isinstance(x, Mover)]
    (last, at), end = near, far[1]
    while movers and isinstance(after := steps[-1], Pose):
        end = end @ after.inverse()
        steps.pop()
    for step in steps:
        if isinstance(step, Pose):
            at = at @ step
            continue
        child = far[0] if step is movers[-1] else f"{j.name} after {step.name}"[:128]
        if child != far[0]:
            made.between.append(body(child))
        made.joints.append(joint(
            step.name, "revolute" if step.turns else "prismatic", last, child, axis=tuple(step.axis.tolist()), placement=at,
            child_placement=end if child == far[0] else IDENTITY, **step.arguments,
        ))  # fmt: skip
        last, at = child, IDENTITY
    if not movers:
        made.joints.append(joint(rigid_name(j, made), "fixed", last, far[0], placement=at, child_placement=end))


def _steps(j: OsimJoint, passive: Mapping[str, Mapping[str, float]], made: ChainParts, lost: LeftOut) -> list[Pose | Mover]:
    """The constant poses and the moving joints of a joint, from its parent to its child."""
    known, first = {c.name: c for c in j.coordinates}, {id(x): n for n, x in owners(j.motions).items()}
    moved = {n for x in j.motions for n in x.by.coordinates}
    if idle := [c.name for c in j.coordinates if c.name not in moved and not c.locked]:
        leave(lost, "coordinates that move nothing, or that others give, are left out", *idle)
    found = list[Pose | Mover]()
    for x in j.motions:
        if id(x) in first and first[id(x)] in known:
            c = known[first[id(x)]]
            made.start[c.name] = c.default
            found += _owned(x, c, passive.get(c.name, {}))
        else:
            found += _follower(j, x, made)
    return found


def _owned(x: AxisMotion, c: OsimCoordinate, passive: Mapping[str, float]) -> list[Pose | Mover]:
    """The joint whose coordinate is that of the file, after its offset."""
    sign = next(iter(x.by.ratios.values()))
    shift: list[Pose | Mover] = [_place(x, x.by.offset)] if x.by.offset else []
    limits = c.limits if c.limits != UNLIMITED else UNLIMITED
    return [*shift, Mover(c.name, x.turns, sign * x.axis, {"limits": limits, **passive})]


def _follower(j: OsimJoint, x: AxisMotion, made: ChainParts) -> list[Pose | Mover]:
    """A constant pose, a joint that follows by a mimic, or a joint with a constraint."""
    if not x.by.coordinates:
        return [_place(x, x.by.offset)] if x.by.offset else []
    name = f"{j.name} {x.name}"[:128]
    if not x.by.of:
        return [Mover(name, x.turns, x.axis, {"mimic": mimic(dict(x.by.ratios), x.by.offset)})]
    made.couplings.append((name, x.by))
    return [Mover(name, x.turns, x.axis, {})]


def coupled(name: str, dependent: str, f: OsimFunction) -> Holonomic:
    """The constraint q = f of a dependent coordinate."""
    ratios, pieces = ca.SX(list(f.ratios.values())) if f.ratios else None, ca.SX(f.pieces) if f.of else None
    law = PiecewiseCoupling(dependent, tuple(f.ratios), ratios, ca.SX(f.offset), f.of or None, pieces)
    return holonomic(name, law)


def moved(name: str, f: OsimFunction) -> Holonomic:
    """The constraint q = f(t) of a coordinate whose motion is given."""
    return holonomic(f"{name} prescribed"[:128], PrescribedMotion(name, ca.SX(f.as_pieces())))


def _place(x: AxisMotion, by: float) -> Pose:
    """The pose of a motion at a constant value."""
    return pose(rotation=turned(x.axis, by)) if x.turns else pose(tuple((by * x.axis).tolist()))


def rigid_name(j: OsimJoint, made: ChainParts) -> str:
    """The name of a joint that has no coordinate to be called after: its own, unless a coordinate has it."""
    return f"{j.name} joint"[:128] if j.name in made.coordinates else j.name


def closing(j: OsimJoint, passive: Mapping[str, Mapping[str, float]], made: ChainParts, lost: LeftOut) -> Closure:
    """The closure of a joint that closes a loop, with limits, spring and damper where it has one coordinate.

    Raises ModelError: no closure allows the motions of its kind, or some of its coordinates are locked and others not.
    """
    (a, at_a), (b, at_b) = j.parent, j.child
    name = rigid_name(j, made)
    if not any(x.by.coordinates for x in j.motions):
        for x in j.motions:
            at_a = at_a @ _place(x, x.by.offset)
        return closure(name, "weld", a, b, placement_a=at_a, placement_b=at_b)
    if j.kind not in CLOSING or any(c.locked for c in j.coordinates):
        ways = f"be one of {', '.join(CLOSING)}, with all of its coordinates locked or none"
        raise j.element.error(f"a joint that closes a loop must {ways}; open the loop at another joint")
    kind, axes = CLOSING[j.kind]
    arguments: Mapping[str, Any] = {}
    if len(j.coordinates) == 1:
        arguments = {"limits": j.coordinates[0].limits, **passive.get(j.coordinates[0].name, {})}
    elif names := [c.name for c in j.coordinates if c.name in passive]:
        leave(lost, "springs and dampers of joints with several motions that close loops are left out", *names)
    return closure(name, kind, a, b, placement_a=at_a, placement_b=at_b, **axes, **arguments)
