"""Joint frames, targets and masses of a stage put into Newton's model of it where its importer takes others, which shows that
nothing else makes a difference."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pfaffian.formats.usd.usd_stage import PrimFrame, UsdStage, quaternion_of
from pfaffian.maths import so3
from tools.compare_files.trees import apart

if TYPE_CHECKING:
    from tools.compare_files.by_newton import Imported, Masses

CONCERNED = ("Newton masses", "Newton poses", "Newton mass matrix", "Newton forces", "Newton closures")
"""What masses, the places of joints and the targets of their drives change."""

BACKWARD = (
    "Newton counts the coordinate of a joint whose second body is the world against the file:"
    " findings/newton-usd-joints-to-the-world.sh"
)
PLACED = "Newton's joints to the world are at zero where the file places the body: findings/newton-usd-joints-to-the-world.sh"
TURNED = (
    "Newton turns the frames of joints between bodies with the axis that is up:"
    " findings/newton-usd-frames-turned-with-up-axis.sh"
)
MIDDLE = "Newton takes the middle between the limits for a target outside of them: findings/newton-usd-targets-beyond-limits.sh"
WEIGHED = (
    "Newton computes what bodies and colliders that give a part of their mass properties leave open otherwise than usd-core:"
    " findings/newton-usd-mass-and-centre.sh"
)
"""Causes of differences."""

ALIKE = 1e-4
"""Difference of frames that counts as none: Newton has single precision."""


def turn(b: Any, i: int) -> None:
    """Let a joint of a builder lead from its child to its parent, without another sense of its coordinates."""
    b.joint_parent[i], b.joint_child[i] = b.joint_child[i], b.joint_parent[i]
    b.joint_X_p[i], b.joint_X_c[i] = b.joint_X_c[i], b.joint_X_p[i]
    for k in range(sum(b.joint_dof_dim[i])):
        b.joint_axis[b.joint_qd_start[i] + k] = -b.joint_axis[b.joint_qd_start[i] + k]


def mend(n: Imported, s: UsdStage, masses: Mapping[str, Masses]) -> list[str]:
    """Give a model that has not been evaluated yet the frames and targets of the stage, and these masses, by the paths of
    bodies; and say why Newton's differ."""
    import warp

    b, why, known = n.builder, list[str](), n.found["path_body_map"]
    numbers = [*n.found["path_joint_map"].values()]
    for path, i in n.found["path_joint_map"].items():
        prim = s.stage.GetPrimAtPath(str(path))
        ends = [_end(s, prim, k, known) for k in (0, 1)]
        if numbers.count(i) > 1 or any(x is None for x in ends):  # one of several that became one joint, or on a part of a body
            continue
        backward = b.joint_child[i] != known.get(_target(prim, 1), -1)
        frames = [x for x in (ends[::-1] if backward else ends) if x is not None]
        given = [np.array(x[i]) for x in (b.joint_X_p, b.joint_X_c)]
        if any(_apart(ours, theirs) > ALIKE for ours, theirs in zip(frames, given, strict=True)):
            why.append(PLACED if b.joint_parent[i] < 0 else TURNED)
            b.joint_X_p[i], b.joint_X_c[i] = (warp.transform(x[:3].tolist(), x[3:].tolist()) for x in frames)
        if backward and b.joint_parent[i] < 0 and sum(b.joint_dof_dim[i]) == 1:
            why.append(BACKWARD)
            b.joint_axis[b.joint_qd_start[i]] = -b.joint_axis[b.joint_qd_start[i]]
        if sum(b.joint_dof_dim[i]) == 1 and _retarget(b, i, prim):
            why.append(MIDDLE)
    why += [WEIGHED for path, given in masses.items() if _reweigh(b, known.get(path, -1), given)]
    return [*dict.fromkeys(why)]


def _reweigh(b: Any, i: int, given: Masses) -> bool:
    """Whether Newton has another mass, mass centre or inertia of a body, which then gets those that are given."""
    import warp

    mass, com, inertia = given
    if (
        i < 0
        or max(
            apart(np.array([mass]), np.array([b.body_mass[i]]), 1e-300),
            apart(com, np.array(b.body_com[i]), 1.0),
            apart(inertia.ravel(), np.array(b.body_inertia[i]).ravel(), 1e-300),
        )
        <= ALIKE
    ):
        return False
    b.body_mass[i], b.body_com[i], b.body_inertia[i] = (
        float(mass),
        warp.vec3(*com.tolist()),
        warp.mat33(*inertia.ravel().tolist()),
    )
    b.body_inv_mass[i], b.body_inv_inertia[i] = 1 / float(mass), warp.inverse(b.body_inertia[i])
    return True


def _retarget(b: Any, i: int, prim: Any) -> bool:
    """Give the drive of a joint with one coordinate the target of the stage, if Newton's limits do not contain it."""
    drives = [a for a in prim.GetAttributes() if re.fullmatch(r"drive:\w+:physics:targetPosition", a.GetName())]
    targets = [float(a.Get()) * (1 if re.search("linear|trans", a.GetName()) else np.pi / 180) for a in drives]
    v = b.joint_qd_start[i]
    beyond = [x for x in targets if not b.joint_limit_lower[v] <= x <= b.joint_limit_upper[v]]
    if len(targets) == 1 and beyond:
        b.joint_target_q[b.joint_q_start[i]] = beyond[0]
    return len(targets) == 1 and bool(beyond)


def _target(prim: Any, k: int) -> str:
    """Path of the first or second body of a joint; empty for the world."""
    return next((str(x) for x in prim.GetRelationship(f"physics:body{k}").GetTargets()), "")


def _end(s: UsdStage, prim: Any, k: int, known: dict[str, int]) -> np.ndarray | None:
    """(7,) place and quaternion of a joint in one of its bodies, or in the world with z up, in units of the stage; None if
    it is on a prim below a body."""
    path = _target(prim, k)
    on = s.frame(s.stage.GetPrimAtPath(path)) if path else PrimFrame(s.up, np.zeros(3), np.ones(3))
    if path not in known and any(path.startswith(f"{body}/") for body in known):
        return None
    p = np.array(prim.GetAttribute(f"physics:localPos{k}").Get()) * on.scale
    q = np.array(quaternion_of(prim.GetAttribute(f"physics:localRot{k}").Get()))
    R = so3.quat_to_matrix(q / np.linalg.norm(q)).full()
    if path not in known:
        p, R = on.p / s.length + on.R @ p, on.R @ R
    return np.r_[p, so3.quaternions(R)]


def _apart(ours: np.ndarray, theirs: np.ndarray) -> float:
    return max(apart(ours[:3], theirs[:3], 1.0), 1 - abs(float(ours[3:] @ theirs[3:])))
