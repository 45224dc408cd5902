"""Joints, loop closures, gearboxes and friction of an SDF model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.formats.sdf.sdf_frame import NamedFrames
from pfaffian.formats.sdf.sdf_part import KINDS, SdfAxis, SdfJoint
from pfaffian.formats.sdf.sdf_tree import JointEnds
from pfaffian.formats.text.coupling import LengthCoupling, one
from pfaffian.formats.text.left_out import LeftOut, leave
from pfaffian.formats.text.strict_number import printable
from pfaffian.maths import so3
from pfaffian.model.body import WORLD, Body, body
from pfaffian.model.circle import circle
from pfaffian.model.constraint import Closure, Holonomic, closure, holonomic
from pfaffian.model.force import GeneralisedForce
from pfaffian.model.joint import UNLIMITED, Joint, joint, mimic
from pfaffian.model.pose import IDENTITY, Pose
from pfaffian.parts.friction import joint_friction

ROOT_JOINT = "root_joint"
"""Name of the joint that connects a model to the world if no joint of the file does."""

SECOND = " axis2"
"""End of the name of a joint about a second axis."""


@dataclass(frozen=True)
class Joined:
    """Input for the joints of a mechanism.   joints: by name.   frames: of the model.   place: of the model in the world.
    lost: what is left out."""

    joints: dict[str, SdfJoint]
    frames: NamedFrames
    place: Pose
    lost: LeftOut

    def end(self, name: str, j: SdfJoint) -> Pose:
        """The pose of a joint's frame in a link or in the world."""
        return self.place @ self.frames.of_joint(j) if name == WORLD else self.frames.in_link(j, name)

    def axis(self, j: SdfJoint, axis: SdfAxis) -> tuple[float, ...]:
        """The direction of an axis in the frame of its joint."""
        if not axis.frame:
            return axis.xyz
        R = self.frames.of_joint(j).R.T @ self.frames.at(axis.frame, axis.element or j.element).R
        n = np.array(ca.DM(R @ ca.DM(axis.xyz))).ravel()
        n[np.abs(n) < 1e-15] = 0.0
        return tuple(n.tolist())


@dataclass
class MadeTree:
    """A tree of joints.   joints: parents first.   between: massless bodies that they need.   start: joint -> coordinates."""

    joints: list[Joint] = field(default_factory=list)
    between: list[Body] = field(default_factory=list)
    start: dict[str, np.ndarray] = field(default_factory=dict)


# -- the tree ---------------------------------------------------------------------------------------------------------


def read_tree(joined: Joined, tree: list[JointEnds], floating: list[str], fixed: bool) -> MadeTree:
    """The joints of the tree, with those that connect floating links to the world.   fixed: whether these are welds."""
    made, used = MadeTree(), {*joined.joints}
    for link in floating:
        name = ROOT_JOINT if len(floating) == 1 else f"{ROOT_JOINT} {link}"[:128]
        while name in used:
            name += "_"
        at = joined.place @ joined.frames.known[link]
        if fixed:
            made.joints.append(joint(name, "fixed", WORLD, link, placement=at))
        else:
            made.joints.append(joint(name, "free", WORLD, link))
            turn = np.array(ca.DM(so3.matrix_to_quat(at.R))).ravel()
            made.start[name] = np.r_[np.array(ca.DM(at.p)).ravel(), turn / np.linalg.norm(turn)]
    single = _single(tree)
    for e in tree:
        _add(joined, e, made, single)
    return made


def _add(joined: Joined, e: JointEnds, made: MadeTree, single: set[str]) -> None:
    """Add the joints of one SDF joint: one, or one about each of its two axes."""
    j, kind = e.joint, KINDS[e.joint.kind][0]
    near, far = joined.end(e.near, j), joined.end(e.far, j)
    names = [j.name, j.name + SECOND] if len(j.axes) == 2 else [j.name]
    axes: list[SdfAxis | None] = [*j.axes] or [None]
    if e.back:
        axes, names = axes[::-1], names[::-1]
    last = e.near
    for i, (name, axis) in enumerate(zip(names, axes, strict=True)):
        end = e.far if i == len(axes) - 1 else f"{j.name} between"[:128]
        if end != e.far:
            made.between.append(body(end))
        given: dict[str, Any] = {
            "placement": near if i == 0 else IDENTITY,
            "child_placement": far if end == e.far else IDENTITY,
        }
        if axis is not None:
            given |= _numbers(joined, j, axis, e.back, single)
        if j.kind == "screw":
            given["pitch"] = j.pitch
        made.joints.append(joint(name, kind, last, end, **given))
        if axis is not None and axis.initial and "mimic" in given:
            leave(joined.lost, "initial positions of joints that follow others are left out", j.name)
        elif axis is not None and axis.initial:
            made.start[name] = np.array([axis.initial])
        last = end


def _numbers(joined: Joined, j: SdfJoint, axis: SdfAxis, back: bool, single: set[str]) -> dict[str, Any]:
    """Axis, limits, spring, damper and mimic of a joint.   back: whether the tree goes from child to parent. Then the axis is
    reversed, so that the coordinate keeps its sign."""
    n = joined.axis(j, axis)
    given: dict[str, Any] = {
        "axis": tuple(-x for x in n) if back else n,
        "stiffness": axis.stiffness,
        "rest": axis.rest,
        "damping": axis.damping,
        "limits": axis.limits if axis.limits != UNLIMITED else UNLIMITED,
        "effort": axis.effort,
    }
    return given | _law(joined, j, axis, single)


def _law(joined: Joined, j: SdfJoint, axis: SdfAxis, single: set[str]) -> dict[str, Any]:
    """The law of a joint with one axis that follows another, in the tree or closing a loop; it then has no limits."""
    leader = _leader(joined, j, axis, single)
    if axis.follows is None or leader is None:
        return {}
    if axis.limits != UNLIMITED or axis.effort != np.inf:
        leave(joined.lost, "limits of joints that follow others are left out", j.name)
    ratio, offset, reference = axis.follows[2:]
    return {"mimic": mimic({leader: ratio}, offset - ratio * reference), "limits": UNLIMITED, "effort": np.inf}


def check_mimics(joints: dict[str, SdfJoint]) -> None:
    """Raise ModelError if an axis follows an unknown joint, or itself by way of others."""
    follows = {j.name: [axis.follows[0] for axis in j.axes if axis.follows] for j in joints.values()}
    for name, others in follows.items():
        for other in others:
            if other not in joints:
                raise joints[name].element.error(f"it mimics {printable(other)}, which is not a joint; correct the name")
    if found := circle(follows):
        raise joints[found[0]].element.error("mimic joints follow each other in a circle; let one of them move freely")


def _single(tree: list[JointEnds]) -> set[str]:
    """Names of the joints of the tree with one axis."""
    return {e.joint.name for e in tree if KINDS[e.joint.kind][1] == 1}


def _leader(joined: Joined, j: SdfJoint, axis: SdfAxis, single: set[str]) -> str | None:
    """The joint that an axis follows. None if it follows none, or one that is not in the tree, or if either has two axes."""
    if axis.follows is None:
        return None
    other = axis.follows[0]
    if other not in single or len(j.axes) != 1:
        leave(joined.lost, "<mimic> of joints with two axes, or of joints that close loops, is left out", j.name)
        return None
    return other


# -- loops ------------------------------------------------------------------------------------------------------------


def read_loops(joined: Joined, tree: list[JointEnds], closed: list[JointEnds]) -> list[Closure]:
    """The joints that close loops, as closures that are satisfied where the file places the links."""
    found, single = [], _single(tree)
    for e in closed:
        j = e.joint
        if j.kind == "gearbox":
            continue
        a, b = joined.end(e.parent, j), joined.end(e.child, j)
        if any(x.initial for x in j.axes):
            leave(joined.lost, "initial positions of joints that close loops are left out", j.name)
        given = _closure(joined, j) | _carried(j)
        for axis in j.axes:
            given |= _law(joined, j, axis, single)
        found.append(closure(j.name, **given, body_a=e.parent, body_b=e.child, placement_a=a, placement_b=b))
    return found


def _carried(j: SdfJoint) -> dict[str, Any]:
    """Springs, dampers, limits and effort of a joint that closes a loop, about one axis or two."""
    if not j.axes:
        return {}
    given = {
        "stiffness": [x.stiffness for x in j.axes],
        "rest": [x.rest for x in j.axes],
        "damping": [x.damping for x in j.axes],
    }
    used: dict[str, Any] = {key: x for key, x in given.items() if any(x)}
    if len(j.axes) == 1:
        return used | {"limits": j.axes[0].limits, "effort": j.axes[0].effort}
    return used | ({"limits": [x.limits for x in j.axes]} if any(x.limits != UNLIMITED for x in j.axes) else {})


def _closure(joined: Joined, j: SdfJoint) -> dict[str, Any]:
    """Kind, axes and pitch of a closure."""
    axes = [joined.axis(j, x) for x in j.axes]
    if len(axes) == 2:
        if abs(float(np.dot(axes[0], axes[1]))) > 1e-9:
            raise j.element.error("a joint that closes a loop needs its two axes at right angles; turn one of them")
        return {"kind": "universal", "axis": axes[0], "axis_b": axes[1]}
    kind = {"fixed": "weld"}.get(KINDS[j.kind][0], KINDS[j.kind][0])
    return {"kind": kind} | ({"axis": axes[0]} if axes else {}) | ({"pitch": j.pitch} if j.kind == "screw" else {})


def read_couplings(joined: Joined, tree: list[JointEnds]) -> list[Holonomic]:
    """The gearboxes as constraints, theta_2 = -ratio theta_1, on the angles of the parent (theta_1) and the child (theta_2)
    relative to the reference body, about the two axes."""
    found = []
    for j in joined.joints.values():
        if j.kind != "gearbox":
            continue
        first, second = (_angle(joined, tree, j, end, axis) for end, axis in zip((j.parent, j.child), j.axes, strict=True))
        ratio = -j.ratio * first[1] / second[1]
        coefs = ca.SX(ca.DM([0.0, ratio, 0.0, 0.0, 0.0]))
        found.append(holonomic(j.name, LengthCoupling(one(second[0]), one(first[0]), coefs, ca.SX.zeros(2, 1))))
    return found


def _angle(joined: Joined, tree: list[JointEnds], j: SdfJoint, link: str, axis: SdfAxis) -> tuple[str, float]:
    """The joint between the reference body and a link, and the sign of its coordinate about the gearbox's axis."""
    target = frames_axis(joined, j, axis)
    for e in tree:
        if {e.parent, e.child} == {j.reference, link} and e.joint.kind in ("revolute", "continuous"):
            along = float(np.dot(frames_axis(joined, e.joint, e.joint.axes[0]), target))
            if abs(abs(along) - 1) > 1e-3:
                raise j.element.error(f"its axis must be parallel to that of joint {printable(e.joint.name)}; correct it")
            return e.joint.name, np.sign(along) * (1.0 if e.child == link else -1.0)
    raise j.element.error(f"a gearbox needs a revolute joint between {printable(j.reference)} and {printable(link)}; add one")


def frames_axis(joined: Joined, j: SdfJoint, axis: SdfAxis) -> np.ndarray:
    """The direction of an axis in the model."""
    return np.array(ca.DM(joined.frames.of_joint(j).R @ ca.DM(joined.axis(j, axis)))).ravel()


# -- friction ---------------------------------------------------------------------------------------------------------


def read_friction(joined: Joined, joints: list[Joint], smooth: bool) -> list[GeneralisedForce]:
    """The dry friction of joints of the tree or of loops.   smooth: whether it is smoothed, or else left out."""
    found, inside = [], {x.name: x for x in joints}
    for j in joined.joints.values():
        for i, axis in enumerate(j.axes):
            name = j.name + (SECOND if i else "")
            if not axis.friction or (name not in inside and j.name not in inside):
                continue
            if not smooth or name not in inside or inside[name].mimic or inside[name].nv > 1:
                leave(joined.lost, "dry friction is left out", name)
            else:
                leave(joined.lost, "dry friction is smooth below 0.001 rad/s or m/s", name)
                found.append(joint_friction(f"{name} friction"[:128], name, axis.friction))
    return found
