"""Elements that dialects of URDF add to the tree: joints that close loops, couplings of joints, bushings and springs.

<loop>, <coupling>, independent=     URDF+ (arXiv 2411.19753)
<loop_joint>                         Isaac Sim; Strandbeest and older Drake with an <axis>
<constraint>                         proposal to urdfdom (ros/urdfdom 264)
<gazebo><joint>                      an SDF joint inside URDF
<drake:...>                          Drake: ball constraint, bushing, spring and damper
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError
from pfaffian.formats.text.strict_number import number, numbers, printable
from pfaffian.formats.text.xml import Element
from pfaffian.formats.urdf.loop_record import Loop, X, Y, loop_kind, unit
from pfaffian.formats.urdf.urdf_part import ZERO, UrdfJoint, limit_of, needed, part_name, place_of
from pfaffian.maths import se3
from pfaffian.model.compound import Compound
from pfaffian.model.force import Force, spring
from pfaffian.model.pose import IDENTITY, Pose, pose
from pfaffian.parts.elastic import bushing

Vector = tuple[float, ...]
UNBOUNDED = 1e16
"""A limit of this size or more is none, as in SDF."""


@dataclass(frozen=True)
class CoupledLinks:
    """A coupling: `ratio` times the angle of `links[0]` equals that of `links[1]`, both from the last common body."""

    links: tuple[str, str]
    ratio: float
    element: Element


@dataclass
class Extras:
    """The elements besides links and joints.   forces: functions that make a force from the map link -> body.
    changed: warnings about elements that are approximated.   lost: elements that are left out, with their lines."""

    loops: list[Loop] = field(default_factory=list)
    couplings: list[CoupledLinks] = field(default_factory=list)
    forces: list[Callable[[Mapping[str, str]], Force | Compound]] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)


def read_extras(robot: Element) -> Extras:
    """Read all children of <robot> besides links and joints."""
    found, frames = Extras(), _frames(robot)
    for e in robot.children:
        if e.tag in _READERS:
            _READERS[e.tag](e, found, frames)
        elif e.tag.startswith("drake:") and e.tag not in _SILENT:
            found.lost.append(f"<{e.tag[:40]}> on line {e.line}")
    return found


def _axis(e: Element, tag: str = "axis", default: Vector = X) -> Vector:
    found = e.only(tag)
    return default if found is None else unit(found.numbers("xyz", default), found.where)


def _kind(e: Element) -> str:
    return loop_kind(e.text("type"), e.where)


def _carried(e: Element, kind: str) -> dict[str, Any]:
    """The fields of a Loop in <dynamics> and <limit>, as of a joint of the tree."""
    dynamics = e.only("dynamics")
    damping, friction = (dynamics.number(k, 0.0) for k in ("damping", "friction")) if dynamics else (0.0, 0.0)
    continuous = e.text("type").lower() == "continuous" or kind not in ("revolute", "prismatic")
    limits, effort = limit_of(e, "continuous" if continuous else kind)
    return {"damping": damping, "friction": friction, "limits": limits, "effort": effort}


def _loop(e: Element, found: Extras, _: Mapping[str, tuple[str, Pose]]) -> None:
    """Read <loop name type><predecessor link><origin/></predecessor><successor link>...</successor><axis/></loop>."""
    name, kind = part_name(e), _kind(e)
    a, b = needed(e, "predecessor", name), needed(e, "successor", name)
    n = _axis(e)
    links, places = (a.text("link"), b.text("link")), (place_of(a.only("origin")), place_of(b.only("origin")))
    found.loops.append(Loop(name, kind, links, e.where, places, (n, n), **_carried(e, kind)))


def _coupling(e: Element, found: Extras, _: Mapping[str, tuple[str, Pose]]) -> None:
    name = part_name(e)
    ends = tuple(needed(e, tag, name).text("link") for tag in ("predecessor", "successor"))
    ratio = needed(e, "ratio", name).number("value")
    if ratio == 0:
        raise e.error("the ratio is zero; use a fixed joint instead")
    found.couplings.append(CoupledLinks((ends[0], ends[1]), ratio, e))


def _loop_joint(e: Element, found: Extras, _: Mapping[str, tuple[str, Pose]]) -> None:
    """Read a <loop_joint>. Both ends may be called <link1>, as in the documentation of Isaac Sim."""
    ends = e.all("link1") + e.all("link2")
    if len(ends) != 2:
        raise e.error("two ends are needed: <link1 link=... xyz=... rpy=.../> and <link2 .../>")
    a, b = ends
    n, kind = _axis(e), _kind(e)
    links, places = (a.text("link"), b.text("link")), (place_of(a), place_of(b))
    found.loops.append(Loop(part_name(e), kind, links, e.where, places, (n, n), **_carried(e, kind)))


def _constraint(e: Element, found: Extras, _: Mapping[str, tuple[str, Pose]]) -> None:
    name, kind = part_name(e), _kind(e)
    links = tuple(needed(e, tag, name).text("link") for tag in ("parent", "child"))
    origins = [e.only(f"{tag}_origin") for tag in ("parent", "child")]
    places = tuple(place_of(o) for o in origins)
    axes = tuple(_axis(e, f"{tag}_axis", d) for tag, d in (("parent", X), ("child", Y if kind == "universal" else X)))
    found.loops.append(
        Loop(name, kind, (links[0], links[1]), e.where, (places[0], places[1]), (axes[0], axes[1]), **_carried(e, kind))
    )


def _gazebo(e: Element, found: Extras, _: Mapping[str, tuple[str, Pose]]) -> None:
    """Read <gazebo><joint>, an SDF joint: values are the contents of elements, and <pose> is in the child link."""
    for j in e.all("joint"):
        name, kind = part_name(j), _kind(j)
        links = tuple(needed(j, tag, name).content for tag in ("parent", "child"))
        at = j.only("pose")
        if at is not None and at.attributes.get("relative_to", links[1]) != links[1]:
            raise at.error(
                f"a pose relative to {printable(at.attributes['relative_to'])} is not supported; give it in the child link"
            )
        x = numbers(at.content or "0 0 0 0 0 0", 6, at.where) if at is not None else (0.0,) * 6
        axes = [_sdf_axis(j, tag) for tag in ("axis", "axis2")]
        n = axes[0] or X
        k = (axes[1] or Y) if kind == "universal" else n
        thread = j.only("thread_pitch")
        pitch = number(thread.content, thread.where) / (2 * np.pi) if thread is not None and kind == "helical" else None
        places = _FROM_ZERO, pose(x[:3], rpy=x[3:])
        found.loops.append(Loop(name, kind, (links[0], links[1]), j.where, places, (n, k), pitch, **_sdf_carried(j)))


_FROM_ZERO = Pose(IDENTITY.R, IDENTITY.p)
"""Placeholder for the frame in the parent, which follows from the tree with all joints at zero."""


def on_parent(loop: Loop, zero: Mapping[str, Pose]) -> Loop:
    """The loop with its frame in the parent, computed if the file gives only that in the child.   zero: link -> pose."""
    if loop.places[0] is not _FROM_ZERO or any(link not in zero for link in loop.links):
        return loop
    parent, child = (zero[link] for link in loop.links)
    return replace(loop, places=(parent.inverse() @ child @ loop.places[1], loop.places[1]))


def _sdf_axis(j: Element, tag: str) -> Vector | None:
    axis = j.only(tag)
    xyz = axis.only("xyz") if axis else None
    if xyz is None:
        return None
    if xyz.attributes.get("expressed_in", "") or (axis and axis.only("use_parent_model_frame")):
        raise xyz.error("an axis expressed in another frame is not supported; express it in the joint's frame")
    return unit(numbers(xyz.content, 3, xyz.where), xyz.where)


def _sdf_carried(j: Element) -> dict[str, Any]:
    """The fields of a Loop in <dynamics> and <limit> of an SDF axis, whose values are contents of elements."""
    axis = j.only("axis")
    dynamics, limit = (axis.only(tag) if axis else None for tag in ("dynamics", "limit"))

    def value(e: Element | None, tag: str, default: float) -> float:
        found = e.only(tag) if e else None
        return default if found is None else number(found.content, found.where)

    low, high = value(limit, "lower", -UNBOUNDED), value(limit, "upper", UNBOUNDED)
    effort = value(limit, "effort", -1.0)
    return {
        "stiffness": value(dynamics, "spring_stiffness", 0.0),
        "rest": value(dynamics, "spring_reference", 0.0),
        "damping": value(dynamics, "damping", 0.0),
        "friction": value(dynamics, "friction", 0.0),
        "limits": (-math.inf if low <= -UNBOUNDED else low, math.inf if high >= UNBOUNDED else high),
        "effort": effort if effort > 0 else math.inf,
    }


# -- Drake -----------------------------------------------------------------------------------------------------------------


def _frames(robot: Element) -> dict[str, tuple[str, Pose]]:
    """Name of each <frame> -> its link and its pose in it."""
    return {e.text("name"): (e.text("link"), place_of(e)) for e in robot.all("frame") if "link" in e.attributes}


def _value(e: Element, tag: str) -> Vector:
    """(3,) attribute `value` of a required child element."""
    found = needed(e, tag, e.tag)
    found.text("value")
    return found.numbers("value", ZERO)


def _body(called: Mapping[str, str], link: str, e: Element) -> str:
    """The body of a link. Raises ModelError: there is no such link."""
    if link not in called:
        raise e.error(f"there is no link {printable(link)}; correct the name")
    return called[link]


def _ends(e: Element, first: str, second: str) -> tuple[str, str]:
    """The names in two required child elements."""
    return needed(e, first, e.tag).text("name"), needed(e, second, e.tag).text("name")


def _ball(e: Element, found: Extras, _: Mapping[str, tuple[str, Pose]]) -> None:
    stem = "drake:ball_constraint_"
    links = _ends(e, f"{stem}body_A", f"{stem}body_B")
    places = pose(_value(e, f"{stem}p_AP")), pose(_value(e, f"{stem}p_BQ"))
    found.loops.append(Loop(f"ball {links[0]} {links[1]}", "spherical", links, e.where, places))


def _bushing(e: Element, found: Extras, frames: Mapping[str, tuple[str, Pose]]) -> None:
    """Read Drake's bushing in roll, pitch and yaw as a bushing of poses, which is the same for small deflections."""
    names = _ends(e, "drake:bushing_frameA", "drake:bushing_frameC")
    words = ("force_stiffness", "torque_stiffness", "force_damping", "torque_damping")
    K = [_value(e, f"drake:bushing_{word}") for word in words]
    for name in names:
        if name not in frames:
            raise e.error(f"there is no frame {printable(name)}; write <frame name=... link=.../>")
    (link_a, A), (link_c, C) = frames[names[0]], frames[names[1]]
    back = C.inverse()
    T = np.array(ca.DM(se3.Ad(back.R, back.p)))
    stiffness, damping = (T.T @ np.diag([*K[i], *K[i + 1]]) @ T for i in (0, 2))

    def made(called: Mapping[str, str]) -> Force | Compound:
        a, c = _body(called, link_a, e), _body(called, link_c, e)
        given = {"stiffness": _symmetric(stiffness), "damping": _symmetric(damping), "rest": A @ back}
        return bushing(f"bushing {names[0]} {names[1]}", a, c, **given)

    found.forces.append(made)
    found.changed.append(
        f"the bushing on line {e.line} acts on poses, not on roll, pitch and yaw: this differs only for large deflections"
    )


def _symmetric(K: np.ndarray) -> np.ndarray:
    """The symmetric part of a matrix."""
    return (K + K.T) / 2


def _spring(e: Element, found: Extras, _: Mapping[str, tuple[str, Pose]]) -> None:
    """Add a linear spring and damper between two links."""
    stem = "drake:linear_spring_damper_"
    links = _ends(e, f"{stem}body_A", f"{stem}body_B")
    points = _value(e, f"{stem}p_AP"), _value(e, f"{stem}p_BQ")
    rest, k, d = (needed(e, f"{stem}{w}", e.tag).number("value") for w in ("free_length", "stiffness", "damping"))

    def made(called: Mapping[str, str]) -> Force | Compound:
        a, b = (_body(called, link, e) for link in links)
        name, (x, y) = f"spring {links[0]} {links[1]}", points
        return spring(name, a, b, point_a=x, point_b=y, stiffness=k, rest=rest, damping=d)

    found.forces.append(made)


_READERS: dict[str, Callable[[Element, Extras, Mapping[str, tuple[str, Pose]]], None]] = {
    "loop": _loop,
    "coupling": _coupling,
    "loop_joint": _loop_joint,
    "constraint": _constraint,
    "gazebo": _gazebo,
    "drake:ball_constraint": _ball,
    "drake:linear_bushing_rpy": _bushing,
    "drake:linear_spring_damper": _spring,
}
"""Tag of an element below <robot> -> its reader."""

_SILENT = ("drake:joint", "drake:collision_filter_group")
"""Elements of Drake that need no warning: read elsewhere, or without an effect on the motion."""


def coupled(couplings: list[CoupledLinks], order: list[UrdfJoint]) -> dict[str, dict[str, float]]:
    """Joint -> (joint that it follows -> ratio), from the couplings of links.

    The angle of a link is the sum of the coordinates from the last common body. The joint that follows is the last one marked
    as not independent, else the last one.
    """
    leading, found = {j.child: j for j in order}, dict[str, dict[str, float]]()
    for c in couplings:
        paths = [_path(link, leading, c) for link in c.links]
        common = {j.name for j in paths[0]} & {j.name for j in paths[1]}
        weights = {j.name: c.ratio for j in paths[0] if j.name not in common}
        weights |= {j.name: -1.0 for j in paths[1] if j.name not in common}
        moved = [j for path in paths for j in path if j.name in weights and j.kind != "fixed"]
        for j in moved:
            if j.kind not in ("revolute", "prismatic"):
                raise c.element.error(f"joint {printable(j.name)} between the coupled links must be revolute or prismatic")
        free = [j for j in moved if j.name not in found]
        follower = next((j for j in reversed(free) if j.independent is False), free[-1] if free else None)
        if follower is None or len(moved) < 2:
            raise c.element.error("no joint between the coupled links is free to follow; remove the coupling")
        w = weights[follower.name]
        found[follower.name] = {j.name: -weights[j.name] / w for j in moved if j is not follower}
    return found


def _path(link: str, leading: Mapping[str, UrdfJoint], c: CoupledLinks) -> list[UrdfJoint]:
    """The joints from the root to a link.   leading: link -> the joint that has it as child."""
    path, at = list[UrdfJoint](), link
    if link not in leading and all(j.parent != link for j in leading.values()):
        raise c.element.error(f"there is no link {printable(link)}; correct the name")
    while at in leading:
        path.append(leading[at])
        at = leading[at].parent
    return path[::-1]


def check_names(loops: list[Loop]) -> None:
    """Raise ModelError if two loops have the same name."""
    seen: dict[str, Loop] = {}
    for loop in loops:
        if loop.name in seen:
            raise ModelError(f"{loop.where}: another loop of this name is at {seen[loop.name].where}; names must be unique")
        seen[loop.name] = loop
