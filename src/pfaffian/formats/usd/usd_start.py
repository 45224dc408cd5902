"""The poses and velocities with which the bodies of a USD stage start, as coordinates and velocities of its joints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pfaffian.formats.text.left_out import LeftOut, leave
from pfaffian.formats.usd.usd_joint import UsdJoint
from pfaffian.formats.usd.usd_stage import UsdStage
from pfaffian.maths import so3
from pfaffian.maths.subgroups import SUBGROUPS
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.pose import NumericPose

SAME = 1e-5
"""Relative difference below which two velocities are the same: those of a stage have single precision."""

PLACED = 1e-3
"""Relative difference, and angle [rad], within which a joint allows the poses of its bodies: files round them."""

Field = tuple[np.ndarray, np.ndarray]
"""The velocity (3,) [m/s] of a rigid motion at the origin of the world, and its angular velocity (3,) [rad/s]."""


ELSEWHERE = "joints place bodies elsewhere than the stage does, and the joints count"


def start_coordinates(
    s: UsdStage,
    m: Mechanism,
    tree: Sequence[tuple[UsdJoint, bool]],
    named: dict[str, str],
    between: Mapping[str, NumericPose],
    lost: LeftOut,
) -> dict[str, float]:
    """Name -> value of the coordinates that give the poses of the bodies in the stage, as far as the joints allow these.

    between: massless body -> its pose.
    """
    world: dict[str | None, NumericPose] = {None: (np.eye(3), np.zeros(3))} | {**between}
    world |= {name: s.frame(s.stage.GetPrimAtPath(path))[:2] for path, name in named.items()}
    motions = list[NumericPose]()
    for j, _ in tree:
        (Ra, pa), (Rb, pb) = (
            (world[body][0] @ R, world[body][1] + world[body][0] @ p) for body, (R, p) in zip(j.bodies, j.frames, strict=True)
        )
        motions.append((Ra.T @ Rb, Ra.T @ (pb - pa)))
    found = dict[str, float]()
    turns = so3.quaternions(np.array([R for R, _ in motions]))
    for (j, flipped), motion, turn in zip(tree, motions, turns, strict=True):
        found |= _coordinates(m, j, motion, turn, flipped)
        if not m.joint(j.name).mimic and not _allowed(j, motion, turn, max(map(_size, (world[b][1] for b in j.bodies)))):
            leave(lost, ELSEWHERE, j.name)
    return {name: x for name, x in found.items() if name in m.places and abs(x) > 0}


def _allowed(j: UsdJoint, motion: NumericPose, turn: np.ndarray, far: float) -> bool:
    """Whether a joint allows a motion, within the precision of files.   turn: (4,) quaternion of its rotation.   far: distance
    [m] of its bodies from the origin."""
    (R, p), kind = motion, j.kind
    if j.single:
        n = np.array(j.axis)
        shift, tilt = (p, turn[:3] - (turn[:3] @ n) * n) if kind == "revolute" else (p - (p @ n) * n, turn[:3])
    elif kind == "universal":
        shift, tilt = p, R[0, 1:2]  # zero in R_x(a) R_y(b)
    else:
        g = SUBGROUPS[kind]
        turns = len(g.rotation.axes)
        shift, tilt = np.delete(p, list(g.along)), turn[: (3, 2, 0, 0)[turns]]
    return bool(_size(tilt) <= PLACED and _size(shift) <= PLACED * max(_size(x) for _, x in j.frames) + SAME * far)


def _size(x: np.ndarray) -> float:
    return float(np.sqrt(x @ x))


def _coordinates(m: Mechanism, j: UsdJoint, motion: NumericPose, turn: np.ndarray, flipped: bool) -> dict[str, float]:
    """Name -> value of the coordinates of a joint.   motion: pose of its second frame in the first.   turn: (4,) quaternion of
    its rotation."""
    R, p = motion
    if j.kind == "revolute":
        return {j.name: float(2 * np.arctan2(turn[:3] @ j.axis, turn[3]))}
    if j.kind == "prismatic":
        return {j.name: float(p @ j.axis)}
    if j.kind == "fixed" or m.joint(j.name).mimic:
        return {}
    if flipped:
        R, p = R.T, -R.T @ p
    if j.kind == "universal":  # R = R_x(a) R_y(b)
        names = m.q_names[m.q_slices[j.name]]
        return dict(zip(names, map(float, universal_angles(R)), strict=True))
    g = SUBGROUPS[j.kind]
    turns = len(g.rotation.axes)
    turned: Any = so3.quaternions(R) if turns == 3 else [np.arctan2(R[1, 0], R[0, 0])] * turns
    names = m.q_names[m.q_slices[j.name]]
    return dict(zip(names, (float(x) for x in (*p[list(g.along)], *turned)), strict=True))


def start_rates(
    s: UsdStage,
    m: Mechanism,
    tree: Sequence[tuple[UsdJoint, bool]],
    named: dict[str, str],
    stops: Mapping[str, NumericPose],
    lost: LeftOut,
) -> dict[str, float]:
    """Name -> value of the velocities that are not zero.   stops: massless body between joints in series -> its pose.

    A body whose prim gives no velocity moves with its parent. What the joint of a body does not allow is left out.
    """
    paths = {name: path for path, name in named.items()}
    prims = {name: s.stage.GetPrimAtPath(path) for name, path in paths.items()}
    given = {n: field for n, prim in prims.items() if (field := _given(s, prim, m.value(m.body(n).com).ravel())) is not None}
    if not any(np.any(x) for field in given.values() for x in field):
        return {}
    moving: dict[str | None, Field] = {None: (np.zeros(3), np.zeros(3))}
    rates, leading = dict[str, float](), dict[str | None, list[tuple[UsdJoint, bool]]]()
    for j, flipped in tree:
        parent, child = j.bodies[::-1] if flipped else j.bodies
        assert child is not None
        (v0, w0), goal, parts = moving[parent], given.get(child), [*leading.get(parent, ()), (j, flipped)]
        moving[child] = moving[parent]
        if child in stops:
            leading[child] = parts
        if goal is None:
            continue
        motion = goal[0] - v0, goal[1] - w0
        made, (v, w), off = (
            _in_series(s, m, prims, stops, parts, motion) if len(parts) > 1 else _alone(s, m, prims, j, flipped, motion)
        )
        if off > SAME * np.abs(np.r_[goal]).max():
            leave(lost, "velocities of bodies that their joints do not allow are left out", child)
        moving[child] = v0 + v, w0 + w
        rates |= {name: r for name, r in made.items() if abs(r) > 0}
    return rates


JointRates = tuple[dict[str, float], Field, float]
"""Name -> rate; the velocity that they give a body in another one; and by how much it is off, beyond rounding."""


def _alone(s: UsdStage, m: Mechanism, prims: Mapping[str, Any], j: UsdJoint, flipped: bool, motion: Field) -> JointRates:
    """The rates of a joint for the velocity of its child in its parent."""
    parent, child = j.bodies[::-1] if flipped else j.bodies
    R, p, _ = s.frame(prims[child or ""])
    Rj, pj = j.frames[0 if flipped else 1]
    n, x = R @ Rj, p + R @ pj
    relative = np.r_[n.T @ (motion[0] + np.cross(motion[1], x)), n.T @ motion[1]]
    names = m.v_names[m.v_slices[j.name]]
    parent_turn = s.frame(prims[parent]).R if parent else np.eye(3)
    turned = (parent_turn @ j.frames[1 if flipped else 0][0]).T @ n
    S = _subspace(j, flipped, turned) if names else np.zeros((6, 0))
    speeds = S.T @ relative
    reached = S @ speeds
    w = n @ reached[3:]
    made = dict(zip(names, map(float, speeds), strict=True))
    return made, (n @ reached[:3] - np.cross(w, x), w), _off(reached, relative)


def _in_series(
    s: UsdStage, m: Mechanism, prims: Mapping[str, Any], stops: Mapping[str, NumericPose], parts: list[tuple[UsdJoint, bool]],
    motion: Field,
) -> JointRates:  # fmt: skip
    """The rates of hinges and sliders in series for the velocity of the last body in the first one."""
    j, flipped = parts[-1]
    at = s.frame(prims[j.bodies[0 if flipped else 1] or ""]).p
    relative = np.r_[motion[0] + np.cross(motion[1], at), motion[1]]
    columns = [_column(part, back, _pose_of(s, prims, stops, part.bodies[0]), at) for part, back in parts]
    S = np.array(columns).T
    speeds = np.linalg.lstsq(S, relative, rcond=None)[0]
    reached = S @ speeds
    names = [m.v_names[m.v_slices[part.name]][0] for part, _ in parts]
    made = dict(zip(names, map(float, speeds), strict=True))
    return made, (reached[:3] - np.cross(reached[3:], at), reached[3:]), _off(reached, relative)


def _column(j: UsdJoint, flipped: bool, first: NumericPose, at: np.ndarray) -> np.ndarray:
    """(6,) the velocity of the point `at` of the child of a hinge or slider, and its angular velocity, for a rate of one.

    first: pose in the world of the first body of the joint.
    """
    R, p = first
    n, x = R @ j.frames[0][0] @ np.array(j.axis), p + R @ j.frames[0][1]
    column = np.r_[np.cross(n, at - x), n] if j.kind == "revolute" else np.r_[n, 0 * n]
    return -column if flipped else column


def _pose_of(s: UsdStage, prims: Mapping[str, Any], stops: Mapping[str, NumericPose], name: str | None) -> NumericPose:
    """The pose in the world of a body, a massless one, or the world itself."""
    if name is None:
        return np.eye(3), np.zeros(3)
    return stops[name] if name in stops else s.frame(prims[name])[:2]


def _off(reached: np.ndarray, motion: np.ndarray) -> float:
    """The largest difference of two velocities, as far as it is beyond the precision of files."""
    far = float(np.abs(reached - motion).max())
    return far if far > SAME * np.abs(motion).max() else 0.0


def _given(s: UsdStage, prim: Any, com: np.ndarray) -> Field | None:
    """The velocity that the prim of a body gives its mass centre, along the axes of the prim; None if it gives none."""
    from pxr import UsdPhysics

    api = UsdPhysics.RigidBodyAPI(prim)
    attributes = api.GetVelocityAttr(), api.GetAngularVelocityAttr()
    if not any(a and a.HasAuthoredValue() for a in attributes):
        return None
    R, p, _ = s.frame(prim)
    v, w = (R @ np.array(a.Get() or (0, 0, 0), dtype=float) for a in attributes)
    v, w = v * s.length, w * np.pi / 180
    return v - np.cross(w, p + R @ com), w


def universal_angles(R: np.ndarray) -> tuple[float, float]:
    """Angles a and b [rad] of a rotation R = R_x(a) R_y(b)."""
    return float(np.arctan2(R[2, 1], R[1, 1])), float(np.arctan2(R[0, 2], R[0, 0]))


def _subspace(j: UsdJoint, flipped: bool, turned: np.ndarray) -> np.ndarray:
    """(6, nv) twists that a joint allows its child, along the axes of its frame there.   turned: (3, 3) rotation of that frame
    in the joint's frame in the parent."""
    if j.kind == "universal":
        _, b = universal_angles(turned)
        return np.array([[0, 0, 0, np.cos(b), 0, np.sin(b)], [0, 0, 0, 0, 1, 0]]).T
    if j.single:
        column = np.zeros((6, 1))
        column[slice(3, 6) if j.kind == "revolute" else slice(3), 0] = j.axis
        return -column if flipped else column
    return np.eye(6)[:, list(SUBGROUPS[j.kind].axes)]
