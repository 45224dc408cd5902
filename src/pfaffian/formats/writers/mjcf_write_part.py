"""Writing closures, mimic joints, springs and motors as MJCF."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pfaffian.errors import ModelError
from pfaffian.formats.writers.turn_sum import turn_sum
from pfaffian.formats.writers.xml_write import Tag, is_one, numbers, plain
from pfaffian.maths import so3
from pfaffian.maths.subgroups import PLANE, SPACE
from pfaffian.model.constraint import Closure
from pfaffian.model.force import Actuator, Spring, Thruster
from pfaffian.model.joint import UNLIMITED, Joint, JointKind
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.pose import NumericPose, align_z


class MujocoJoint(NamedTuple):
    """One of the MuJoCo joints of which a joint consists.

    type: "slide", "hinge" or "ball".   axis: (3,) in the joint's frame.   label: of its coordinate; empty where it is alone.
    """

    type: str
    axis: tuple[float, ...]
    label: str


def mujoco_joints(kind: JointKind) -> tuple[MujocoJoint, ...] | None:
    """MuJoCo's joints for a kind of joint, in order: the slides of each factor, then its hinge or ball.

    None for screws, which MuJoCo does not have, and edges.
    """
    if kind.screws or not kind.factors:
        return None
    found = list[MujocoJoint]()
    for g, axis, label in kind.factors:
        axes = (align_z(np.array(axis)) + 0.0).T.tolist()  # without zeros below zero
        found += [MujocoJoint("slide", tuple(axes[i]), label or "xyz"[i]) for i in g.along]
        if g.rotation.axes:
            alone = len(g.rotation.axes) == 1
            found.append(MujocoJoint(*(("hinge", axis, label or "angle") if alone else ("ball", axis, label or "turn"))))
    return tuple(found) if len(found) > 1 else tuple(x._replace(label="") for x in found)


def turned(kind: JointKind) -> list[int]:
    """Indices of the linear velocities along axes that turn with the child; those of MuJoCo's slides do not turn."""
    found, first = list[int](), 0
    for g, *_ in kind.factors:
        turning = {0: (), 1: PLANE, 3: SPACE}[len(g.rotation.axes)]
        found += [first + n for n, i in enumerate(g.along) if i in turning]
        first += g.nv
    return found


def range_of(limits: tuple[float, float], what: str, lost: list[str]) -> tuple[float, float] | None:
    """Limits as MJCF has them: None without, and for those of one side or without width, which `lost` takes.   what: owner."""
    low, high = limits
    if np.isfinite(limits).all() and low < high:
        return limits
    if limits != UNLIMITED:
        lost.append(f"the limits of {what}, which leave no width" if low == high else f"the one-sided limit of {what}")
    return None


APART = 0.1
"""Distance [m] between the two <connect> points that represent a hinge."""


def same_frames(kind: JointKind, its: NumericPose) -> bool:
    """Whether a joint needs no extra body: its frame is not turned in the child, or none of its coordinates is a quaternion."""
    return is_one(its[0]) or not kind.quaternion


def add_mimic(section: Tag, j: Joint, lost: list[str]) -> None:
    """Add the equality q = ratio q_other + offset of a mimic joint, which is soft in MuJoCo."""
    if j.mimic is None:
        return
    what = f"joint {j.name!r}"
    if len(j.mimic.joints) > 1:
        raise ModelError(f"{what} follows {len(j.mimic.joints)} joints, but in MJCF a joint follows only one; write YAML")
    ratio, offset = numbers(j.mimic.ratios, what)[0], numbers(j.mimic.offset, what)[0]
    section.add("joint", name=f"{j.name} follows", joint1=j.name, joint2=j.mimic.joints[0], polycoef=(offset, ratio, 0, 0, 0))
    lost.append(f"that {what} follows exactly, since MuJoCo's equality is soft, so that the joint has a coordinate of its own")


def add_closure(section: Tag, c: Closure, places: Mapping[str, Tag], lost: list[str]) -> None:
    """Add a closure between two sites, which need not coincide at zero. A hinge is two <connect> points on its axis."""
    if c.kind not in ("spherical", "weld", "fixed", "revolute"):
        raise ModelError(f"constraint {c.name!r}: MJCF has no {c.kind} closure; write YAML")
    what = f"constraint {c.name!r}"
    ends = ((c.body_a, plain(c.placement_a, what)), (c.body_b, plain(c.placement_b, what)))
    shifts = (0.0, APART) if c.kind == "revolute" else (0.0,)
    for shift in shifts:
        name = c.name if not shift else f"{c.name} axis"
        sites = []
        for side, (body, (R, p)) in zip("ab", ends, strict=True):
            sites.append(f"{name} {side}")
            site(places[body], sites[-1], (R, p + shift * R[:, 2]))
        kind = "weld" if c.kind in ("weld", "fixed") else "connect"
        section.add(kind, name=name, site1=sites[0], site2=sites[1])
    lost.append(f"that {what} holds exactly, since MuJoCo's equality is soft")


def add_carried(section: Tag, c: Closure, m: Mechanism, lost: list[str]) -> None:
    """Add what a closure carries, and a length for its motors: MuJoCo has no joint there, but a tendon that adds up the angles
    of a planar loop has the closure's angle as its length."""
    driven = any(c.name == joint for a in m.actuators for joint, _ in a.ends)
    if not (c.carries or c.mimic or driven) or c.joint is None:
        return
    what, total = f"constraint {c.name!r}", turn_sum(m, c)
    if c.mimic:
        lost.append(f"that {what} follows joints")
    if not (c.carries or driven):
        return
    if total is None:
        carried = ", ".join([*c.carries, *(["motors"] if driven else [])])
        lost.append(f"the {carried} of {what}, since MuJoCo has no joint there, so that the motion differs")
        return
    j = c.joint
    k, rest, d = (numbers(x, what)[0] for x in (j.stiffness, j.rest, j.damping))
    rotor = numbers(j.armature, what)[0]
    given: dict[str, Any] = {key: x for key, x in (("stiffness", k), ("damping", d), ("armature", rotor)) if x}
    given |= {} if c.friction is None else {"frictionloss": numbers(c.friction, what)[0]}
    given |= {"springlength": rest - total.zero} if k else {}
    if c.limits is not None and (bounds := range_of(c.limits[0], what, lost)):
        given["range"] = [x - total.zero for x in bounds]
    tendon = section.add("fixed", name=c.name, **given)
    for name, sign in total.signs.items():
        tendon.add("joint", joint=name, coef=sign)


def site(body: Tag, name: str, X: NumericPose) -> None:
    """Add a named frame to a body."""
    x, y, z, w = so3.quaternions(X[0])
    body.add("site", name=name, pos=X[1], quat=(w, x, y, z), group="4")


def add_spring(section: Tag, f: Spring, places: Mapping[str, Tag]) -> None:
    """Add a spring and damper as a tendon between two sites."""
    what = f"force {f.name!r}"
    for side, body, point in (("a", f.body_a, f.point_a), ("b", f.body_b, f.point_b)):
        places[body].add("site", name=f"{f.name} {side}", pos=numbers(point, what), group="4")
    k, rest, d = (numbers(x, what)[0] for x in (f.stiffness, f.rest, f.damping))
    tendon = section.add("spatial", name=f.name, stiffness=k, damping=d, springlength=rest)
    for side in "ab":
        tendon.add("site", site=f"{f.name} {side}")


def add_actuator(
    section: Tag, a: Any, bounds: Sequence[float], m: Mechanism, places: Mapping[str, Tag], lost: list[str]
) -> None:
    """Add a motor on a joint, on the tendon of a closure or, for a thruster, at a site.   bounds: of its input."""
    what = f"actuator {a.name!r}"
    if not isinstance(a, (Actuator, Thruster)):
        raise ModelError(f"{what}: only thrusters and motors on one velocity are written as MJCF; write YAML")
    limits = range_of((bounds[0], bounds[1]), what, lost)
    if isinstance(a, Thruster):
        axis, point = numbers(a.axis, what), numbers(a.point, what)
        places[a.body].add("site", name=f"{a.name} point", pos=point, group="4")
        gear = np.concatenate([axis, numbers(a.torque, what)[0] * axis])
        section.add("motor", name=a.name, site=f"{a.name} point", gear=gear, ctrlrange=limits)
        return
    gear = numbers(a.gear, what)[0]
    if c := m.loop_joints.get(a.joint):
        if turn_sum(m, c) is not None:
            section.add("motor", name=a.name, tendon=a.joint, gear=(gear,), ctrlrange=limits)
        return
    j = m.joint(a.joint)
    if a.component in turned(j.kind) or (j.kind.quaternion and turned(j.kind)):
        raise ModelError(f"{what}: MJCF has no motor along an axis that turns with the body; use a thruster")
    at = 0
    for kind, _, label in mujoco_joints(j.kind) or ():
        width = 3 if kind == "ball" else 1
        if a.component < at + width:
            along = np.zeros(width)
            along[a.component - at] = gear
            section.add("motor", name=a.name, joint=j.name if not label else f"{j.name}.{label}", gear=along, ctrlrange=limits)
            return
        at += width
