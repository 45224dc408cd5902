"""Writing closures, mimic joints, springs and motors as MJCF."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pfaffian.errors import ModelError
from pfaffian.formats.writers.xml_write import Tag, is_one, numbers, plain
from pfaffian.maths import so3
from pfaffian.model.constraint import Closure
from pfaffian.model.force import Actuator, Spring, Thruster
from pfaffian.model.joint import KINDS, Joint
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.pose import NumericPose

_X, _Y, _Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
_SLIDES = (("slide", _X, "x"), ("slide", _Y, "y"), ("slide", _Z, "z"))

COORDINATES: dict[str, tuple[tuple[str, tuple[float, float, float], str], ...]] = {
    "fixed": (),
    "revolute": (("hinge", _Z, ""),),
    "prismatic": (("slide", _Z, ""),),
    "cylindrical": (("slide", _Z, "z"), ("hinge", _Z, "angle")),
    "universal": (("hinge", _X, "about_x"), ("hinge", _Y, "about_y")),
    "planar-translation": _SLIDES[:2],
    "translation": _SLIDES,
    "planar": (*_SLIDES[:2], ("hinge", _Z, "angle")),
    "schoenflies": (*_SLIDES, ("hinge", _Z, "angle")),
    "spherical": (("ball", _Z, ""),),
    "free": (*_SLIDES, ("ball", _Z, "turn")),
}
"""Kind of joint -> MuJoCo's joints in order: type, axis in the joint's frame, label of the coordinate."""

TURNED = {"planar": 2, "schoenflies": 2, "free": 3}
"""Kind of joint -> number of its linear velocities along axes that turn with the child; those of MuJoCo's slides do not."""

APART = 0.1
"""Distance [m] between the two <connect> points that represent a hinge."""


def same_frames(kind: str, its: NumericPose) -> bool:
    """Whether a joint needs no extra body: its frame is not turned in the child, or none of its coordinates is a quaternion."""
    return is_one(its[0]) or not any(k == "ball" for k, _, _ in COORDINATES[kind])


def add_mimic(section: Tag, j: Joint, lost: list[str]) -> None:
    """Add the equality q = ratio q_other + offset of a mimic joint, which is soft in MuJoCo."""
    if j.mimic is None:
        return
    what = f"joint {j.name!r}"
    if len(j.mimic.joints) > 1:
        raise ModelError(f"{what} follows {len(j.mimic.joints)} joints, but in MJCF a joint follows only one; write YAML")
    ratio, offset = numbers(j.mimic.ratios, what)[0], numbers(j.mimic.offset, what)[0]
    section.add("joint", name=f"{j.name} follows", joint1=j.name, joint2=j.mimic.joints[0], polycoef=(offset, ratio, 0, 0, 0))
    lost.append(f"that {what} follows exactly, since MuJoCo's equality is soft")


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


def add_actuator(section: Tag, a: Any, m: Mechanism, places: Mapping[str, Tag]) -> None:
    """Add a motor on a joint or, for a thruster, at a site."""
    what = f"actuator {a.name!r}"
    limits = a.limits if isinstance(a, (Actuator, Thruster)) and np.isfinite(a.limits).all() else None
    if isinstance(a, Thruster):
        axis, point = numbers(a.axis, what), numbers(a.point, what)
        places[a.body].add("site", name=f"{a.name} point", pos=point, group="4")
        gear = np.concatenate([axis, numbers(a.torque, what)[0] * axis])
        section.add("motor", name=a.name, site=f"{a.name} point", gear=gear, ctrlrange=limits)
        return
    if not isinstance(a, Actuator):
        raise ModelError(f"{what}: only thrusters and motors on one velocity are written as MJCF; write YAML")
    j, gear = m.joint(a.joint), numbers(a.gear, what)[0]
    if a.component < TURNED.get(j.kind.name, 0) or j.kind is KINDS["free"]:
        raise ModelError(f"{what}: MJCF has no motor along an axis that turns with the body; use a thruster")
    at = 0
    for kind, _, label in COORDINATES[j.kind.name]:
        width = 3 if kind == "ball" else 1
        if a.component < at + width:
            along = np.zeros(width)
            along[a.component - at] = gear
            section.add("motor", name=a.name, joint=j.name if not label else f"{j.name}.{label}", gear=along, ctrlrange=limits)
            return
        at += width
