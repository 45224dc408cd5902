"""Bodies, joints, shapes and closures of a compiled MJCF model."""

from __future__ import annotations

from collections.abc import Sequence, Set
from functools import lru_cache
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.formats.mjcf.mjcf_model import CompiledModel
from pfaffian.formats.text.coupling import GravityCompensation
from pfaffian.formats.text.left_out import LeftOut, leave
from pfaffian.model.body import WORLD, Body, body
from pfaffian.model.constraint import Closure, closure, coincide
from pfaffian.model.force import Potential
from pfaffian.model.joint import UNLIMITED, Joint, joint
from pfaffian.model.number import constants
from pfaffian.model.pose import IDENTITY, Pose, pose
from pfaffian.model.shape import Shape, mesh, shape
from pfaffian.output.plain import text

KINDS = ("free", "spherical", "prismatic", "revolute")
"""Kind of joint, by MuJoCo's type number."""

_LAST_VISUAL = 2
"""MuJoCo draws geometry groups up to this number by default."""

NOT_DRAWN = "shapes other than boxes, spheres, cylinders, capsules and meshes are left out of pictures"


def frame(xyz: Any, quat: Any) -> Pose:
    """A pose from MuJoCo's position and quaternion, scalar first."""
    w, x, y, z = (float(a) for a in quat)
    at = tuple(map(float, xyz))
    if (x, y, z) == (0.0, 0.0, 0.0):
        return pose(at) if any(at) else IDENTITY
    return pose(at, quaternion=(x, y, z, w))


# -- bodies and joints ------------------------------------------------------------------------------------------------


def read_tree(c: CompiledModel, lost: LeftOut) -> tuple[list[Body], list[Joint]]:
    """The bodies and joints. A body with several joints is preceded by massless bodies, one for each joint but the last."""
    bodies, joints, m = list[Body](), list[Joint](), c.model
    for i in range(1, m.nbody):
        at, last = frame(m.body_pos[i], m.body_quat[i]), WORLD if m.body_parentid[i] == 0 else c.bodies[m.body_parentid[i]]
        first, count = int(m.body_jntadr[i]), int(m.body_jntnum[i])
        if m.body_mocapid[i] >= 0:
            leave(lost, "mocap bodies are fixed", c.bodies[i])
        for n in range(first, first + count):
            child = c.bodies[i] if n == first + count - 1 else _unused(f"{c.bodies[i]} after {c.joints[n]}", c.used)
            c.children[n] = child
            if child != c.bodies[i]:
                bodies.append(body(child))
            joints.append(_joint(c, n, last, child, at, lost))
            last, at = child, IDENTITY
        if not count:
            joints.append(joint(_unused(f"{c.bodies[i]} fixed", c.used), "fixed", last, c.bodies[i], placement=at))
        bodies.append(_body(c, i, lost))
    if m.body_geomnum[0]:
        leave(lost, "shapes of the world are left out, since they belong to no body")
    return bodies, joints


def _unused(name: str, used: Set[str]) -> str:
    """The name, with underscores at its end until it is not in use."""
    name = name[:120]
    while name in used:
        name += "_"
    return name


def _joint(c: CompiledModel, n: int, parent: str, child: str, at: Pose, lost: LeftOut) -> Joint:
    """One joint, with MuJoCo's coordinate, whose value at the pose of the file (ref) can differ from zero."""
    m, kind = c.model, KINDS[joint_type(c, n)]
    q = int(m.jnt_qposadr[n])
    springs = not disabled(c, "SPRING")
    given: dict[str, Any] = {"damping": joint_damping(c, n)}
    if kind in ("revolute", "prismatic"):
        axis = m.jnt_axis[n] / np.linalg.norm(m.jnt_axis[n])
        anchor, ref = _moved(m.jnt_pos[n]), float(m.qpos0[q])
        back = _turn(axis, -ref) if kind == "revolute" else _moved(-ref * axis)
        given |= {"axis": tuple(axis.tolist()), "placement": at @ anchor @ back, "child_placement": anchor}
        given["armature"] = joint_armature(c, n)
        given["limits"] = tuple(map(float, m.jnt_range[n])) if m.jnt_limited[n] and not disabled(c, "LIMIT") else UNLIMITED
        given |= {"stiffness": float(m.jnt_stiffness[n]), "rest": float(m.qpos_spring[q])} if springs else {}
    elif kind == "spherical":
        anchor = _moved(m.jnt_pos[n])
        given |= {"placement": at @ anchor, "child_placement": anchor, "armature": joint_armature(c, n)}
        if m.jnt_limited[n] and not disabled(c, "LIMIT"):
            leave(lost, "limits of ball joints are left out", c.joints[n])
    return joint(c.joints[n], kind, parent, child, **given)


def joint_type(c: CompiledModel, n: int) -> int:
    """MuJoCo's type number of a joint."""
    return int(c.model.jnt_type[n])


def disabled(c: CompiledModel, what: str) -> bool:
    """Whether the file switches a part of the physics off."""
    return bool(c.model.opt.disableflags & int(getattr(c.mujoco.mjtDisableBit, f"mjDSBL_{what}")))


def joint_damping(c: CompiledModel, n: int) -> float:
    """The damping of a joint, with that of the actuators on it."""
    if disabled(c, "DAMPER"):
        return 0.0
    m = c.model
    return float(m.dof_damping[m.jnt_dofadr[n]] + of_actuators(c, c.on_joints.get(n, ()), m.actuator_damping))


def joint_armature(c: CompiledModel, n: int) -> float:
    """The armature of a joint, with that of the actuators on it."""
    m = c.model
    found = float(m.dof_armature[m.jnt_dofadr[n]] + of_actuators(c, c.on_joints.get(n, ()), m.actuator_armature))
    return c.check_of_joint(n, "armature", found)


def of_actuators(c: CompiledModel, driving: Sequence[int], values: np.ndarray) -> Any:
    """Sum of the values of the actuators on a joint or tendon, times the squares of their gears.

    As in MuJoCo it is the first gear, and the sum acts on all velocities of a ball or free joint alike.
    """
    m = c.model
    return sum((values[i] * m.actuator_gear[m.actuator_outadr[i], 0] ** 2 for i in driving), np.zeros(values.shape[1:]))


def _moved(xyz: np.ndarray) -> Pose:
    """The translation by three numbers [m]."""
    return Pose(IDENTITY.R, ca.SX(xyz)) if xyz.any() else IDENTITY


def _turn(axis: np.ndarray, angle: float) -> Pose:
    """The rotation by an angle about a unit axis."""
    if angle == 0.0:
        return IDENTITY
    return pose(quaternion=(*(np.sin(angle / 2) * axis), np.cos(angle / 2)))


@lru_cache(maxsize=4096)
def _rotation(w: float, x: float, y: float, z: float) -> np.ndarray:
    """(3, 3) rotation of MuJoCo's quaternion; cached, since most bodies have the same one."""
    return constants(frame((0, 0, 0), (w, x, y, z)).R)


def _body(c: CompiledModel, i: int, lost: LeftOut) -> Body:
    """The mass, mass centre, inertia and shapes of a body."""
    m = c.model
    R = _rotation(*m.body_iquat[i].tolist())
    I = R @ np.diag(m.body_inertia[i]) @ R.T
    shapes = [s for g in range(m.body_geomadr[i], m.body_geomadr[i] + m.body_geomnum[i]) for s in _shape(c, g, lost)]
    return body(c.bodies[i], float(m.body_mass[i]), m.body_ipos[i].tolist(), (I + I.T) / 2, shape=shapes)


def _shape(c: CompiledModel, g: int, lost: LeftOut) -> list[Shape]:
    """The shape of a geometry, as a list; empty for planes, height fields and other solids that `shape` lacks."""
    m, size = c.model, [float(x) for x in c.model.geom_size[g]]
    at, role = frame(m.geom_pos[g], m.geom_quat[g]), "visual" if m.geom_group[g] <= _LAST_VISUAL else "collision"
    rgba = m.mat_rgba[m.geom_matid[g]] if m.geom_matid[g] >= 0 else m.geom_rgba[g]
    colour = tuple(min(max(float(x), 0.0), 1.0) for x in rgba)
    if g in c.meshes:
        found = c.meshes[g]
        if found.recentred:
            at = at @ frame(m.mesh_pos[m.geom_dataid[g]], m.mesh_quat[m.geom_dataid[g]]).inverse()
        return [mesh(found.file, text(found.label, 120), found.scale, at, colour, role)]
    kinds = c.mujoco.mjtGeom
    sizes: dict[int, tuple[str, dict[str, Any]]] = {
        int(kinds.mjGEOM_BOX): ("box", {"size": [2 * x for x in size]}),
        int(kinds.mjGEOM_SPHERE): ("sphere", {"radius": size[0]}),
        int(kinds.mjGEOM_CYLINDER): ("cylinder", {"radius": size[0], "length": 2 * size[1]}),
        int(kinds.mjGEOM_CAPSULE): ("capsule", {"radius": size[0], "length": 2 * size[1]}),
    }
    if int(m.geom_type[g]) not in sizes:
        leave(lost, NOT_DRAWN, c.bodies[m.geom_bodyid[g]])
        return []
    kind, given = sizes[int(m.geom_type[g])]
    return [shape(kind, **given, placement=at, colour=colour, role=role)]


# -- closures ---------------------------------------------------------------------------------------------------------


def read_closures(c: CompiledModel, lost: LeftOut) -> list[Closure]:
    """The <connect> and <weld> elements as exact closures."""
    m, kinds, found = c.model, c.mujoco.mjtEq, list[Closure]()
    if disabled(c, "EQUALITY") or disabled(c, "CONSTRAINT"):
        return []
    for i in range(m.neq):
        name, kind = equality_name(c, i), int(m.eq_type[i])
        if not m.eq_active0[i]:
            leave(lost, "equality constraints that are not active at the start are left out", name)
        elif kind in (int(kinds.mjEQ_CONNECT), int(kinds.mjEQ_WELD)):
            found.append(_closure(c, i, name, kind == int(kinds.mjEQ_WELD)))
        elif kind not in (int(kinds.mjEQ_JOINT), int(kinds.mjEQ_TENDON)):
            leave(lost, "equality constraints of soft bodies are left out", name)
    return found


def equality_name(c: CompiledModel, i: int) -> str:
    """The name of an <equality> element, or one from its number."""
    m = c.model
    at, names = m.name_eqadr[i], bytes(m.names)
    name = names[at : names.index(b"\0", at)].decode("utf-8", "replace")
    return name if name and name.isprintable() and len(name) <= 100 else f"equality {i}"


def _closure(c: CompiledModel, i: int, name: str, weld: bool) -> Closure:
    """The closure of a <connect> or <weld>; a <weld> with torquescale 0 constrains the position only."""
    m, x = c.model, c.model.eq_data[i]
    ends = [int(m.eq_obj1id[i]), int(m.eq_obj2id[i])]
    if m.eq_objtype[i] == c.mujoco.mjtObj.mjOBJ_SITE:
        a, b = (frame(m.site_pos[s], m.site_quat[s]) for s in ends)
        ends = [int(m.site_bodyid[s]) for s in ends]
    elif weld:
        a, b = frame(x[3:6], x[6:10]), frame(x[:3], (1, 0, 0, 0))
    else:
        a, b = frame(x[:3], (1, 0, 0, 0)), frame(x[3:6], (1, 0, 0, 0))
    first, second = (WORLD if e == 0 else c.bodies[e] for e in ends)
    if weld and x[10] != 0:
        return closure(name, "weld", first, second, placement_a=a, placement_b=b)
    return coincide(name, first, a.p, second, b.p)


# -- gravity compensation ------------------------------------------------------------------------------------------------


def compensates(c: CompiledModel) -> bool:
    """Whether gravcomp acts: as in MuJoCo only if that of some body is above zero, then those below zero too."""
    return bool(c.model.ngravcomp) and not disabled(c, "GRAVITY")


def read_gravcomp(c: CompiledModel) -> list[Potential]:
    """The gravcomp attributes as potentials: a constant force at the mass centre carries a part of the body's weight."""
    m, found = c.model, list[Potential]()
    if not compensates(c):
        return []
    for i in range(1, m.nbody):
        if m.body_gravcomp[i] != 0 and m.body_mass[i] != 0:
            force = -m.body_gravcomp[i] * m.body_mass[i] * m.opt.gravity
            law = GravityCompensation(c.bodies[i], ca.SX(m.body_ipos[i]), ca.SX(force))
            found.append(Potential(f"{c.bodies[i]} gravcomp"[:128], law))
    return found
