"""Joints in series: several hinges and sliders between the same two bodies, as in stages that are made from MuJoCo's models.

UsdPhysics would hold the bodies by all of these at once, so that none moves. MuJoCo and Newton let them act one after the
other, from `body0` to `body1`, in the order of the stage; here each one but the last leads to a massless body.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise

import casadi as ca
import numpy as np

from pfaffian.formats.text.left_out import LeftOut, leave
from pfaffian.formats.usd.usd_joint import UsdJoint
from pfaffian.formats.usd.usd_stage import UsdStage
from pfaffian.maths import so3
from pfaffian.model.pose import NumericPose

IN_SERIES = "hinges and sliders between the same two bodies act one after the other, as in MuJoCo"

SAME = 1e-4
"""Relative difference, and sine of an angle, below which places and axes are the same."""


@dataclass(frozen=True)
class MasslessBody:
    """A massless body between two joints in series.   before: the body to which they lead.   at: its pose in the world at the
    start."""

    before: str
    at: NumericPose


def in_series(
    s: UsdStage, joints: Sequence[UsdJoint], named: Mapping[str, str], lost: LeftOut
) -> tuple[list[UsdJoint], dict[str, MasslessBody]]:
    """The joints, of which those in series lead from one body to the next, and the massless bodies between them, by name."""
    groups: dict[tuple[str | None, str | None], list[UsdJoint]] = defaultdict(list)
    for j in joints:
        if j.single and not j.excluded:
            groups[j.bodies].append(j)
    paths, used = {name: path for path, name in named.items()}, {*named.values()}
    between, changed = dict[str, MasslessBody](), dict[str, UsdJoint]()
    for (first, last), group in groups.items():
        if last is None or len(group) < 2 or not _is_series(group):
            continue
        leave(lost, IN_SERIES, *(j.name for j in group))
        world: dict[str | None, NumericPose] = {None: (np.eye(3), np.zeros(3))}
        world |= {n: s.frame(s.stage.GetPrimAtPath(paths[n]))[:2] for n in (first, last) if n is not None}
        stops: list[str | None] = [first, *(_unused(f"{last} after {j.name}", used) for j in group[:-1]), last]
        frames = [group[0].frames, *((j.frames[1], j.frames[1]) for j in group[1:])]
        parts = [replace(j, bodies=ends, frames=f) for j, ends, f in zip(group, pairwise(stops), frames, strict=True)]
        changed |= {j.name: j for j in parts}
        between |= {
            n: MasslessBody(last, at) for n, at in zip(stops[1:-1], _stops(parts, world[first], world[last]), strict=True) if n
        }
    return [changed.get(j.name, j) for j in joints], between


def _unused(name: str, used: set[str]) -> str:
    """The name, with underscores at its end until it is not in use; it is from now on."""
    name = name[:120]
    while name in used:
        name += "_"
    used.add(name)
    return name


def _is_series(group: Sequence[UsdJoint]) -> bool:
    """Whether joints put the second body at the same place, and none repeats another, as two hinges of a door do."""
    (R, p), *others = (_placed(j, 0.0) for j in group)
    size = max(float(np.linalg.norm(x)) for j in group for _, x in j.frames)
    if any(np.abs(R - Rk).max() > SAME or np.abs(p - pk).max() > SAME * size for Rk, pk in others):
        return False
    return not any(_repeats(a, b, size) for a, b in combinations(group, 2))


def _repeats(a: UsdJoint, b: UsdJoint, size: float) -> bool:
    """Whether two joints allow the same motion.   size: of their places [m]."""
    (Ra, pa), (Rb, pb) = a.frames[0], b.frames[0]
    n = Ra @ a.axis
    if a.kind != b.kind or np.linalg.norm(np.cross(n, Rb @ b.axis)) > SAME:
        return False
    return a.kind == "prismatic" or bool(np.linalg.norm(np.cross(n, pb - pa)) <= SAME * size)


def _placed(j: UsdJoint, q: float) -> NumericPose:
    """The pose of the second body of a hinge or slider in the first.   q: its coordinate."""
    (R0, p0), (R1, p1) = j.frames
    n = np.array(j.axis)
    turn = so3.exp(ca.DM(q * n)).full() if j.kind == "revolute" else np.eye(3)
    R = R0 @ turn @ R1.T
    return R, p0 + (R0 @ n * q if j.kind == "prismatic" else 0.0) - R @ p1


def _stops(parts: Sequence[UsdJoint], first: NumericPose, last: NumericPose) -> list[NumericPose]:
    """The poses of the bodies between joints in series in the world, by Newton iterations from zero.   first, last: poses of
    the bodies at their ends."""
    q = np.zeros(len(parts))
    for _ in range(20):
        poses, columns = [first], list[np.ndarray]()
        for j, x in zip(parts, q, strict=True):
            R, p = poses[-1]
            n, at = R @ j.frames[0][0] @ j.axis, p + R @ j.frames[0][1]
            columns.append(np.r_[np.cross(n, last[1] - at), n] if j.kind == "revolute" else np.r_[n, 0 * n])
            Rj, pj = _placed(j, float(x))
            poses.append((R @ Rj, p + R @ pj))
        R, p = poses[-1]
        apart = np.r_[last[1] - p, so3.log(ca.DM(last[0] @ R.T)).full().ravel()]
        if np.abs(apart).max() < SAME**2:
            break
        q = q + np.linalg.lstsq(np.array(columns).T, apart, rcond=None)[0]
    return poses[1:-1]
