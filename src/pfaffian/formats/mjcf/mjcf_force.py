"""Springs, friction, tendons and couplings of a compiled MJCF model."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from pfaffian.formats.mjcf.mjcf_model import CompiledModel, among
from pfaffian.formats.mjcf.mjcf_part import disabled, equality_name, joint_type, of_actuators
from pfaffian.formats.mjcf.mjcf_text import CONTACT
from pfaffian.formats.text.coupling import (
    FreeArmature,
    JointSum,
    Length,
    LengthCoupling,
    LengthDamper,
    LengthInertia,
    LengthSpring,
    Path,
    TurnSpring,
    one,
)
from pfaffian.formats.text.left_out import LeftOut, leave
from pfaffian.model.body import WORLD
from pfaffian.model.constraint import Holonomic, holonomic
from pfaffian.model.force import Dissipation, Force, KineticEnergy, Potential
from pfaffian.parts.friction import joint_friction

SPHERICAL, FREE = 1, 0
"""MuJoCo's type numbers of ball and free joints."""


# -- lengths ----------------------------------------------------------------------------------------------------------


def tendon_lengths(c: CompiledModel, lost: LeftOut) -> dict[int, Length]:
    """Number of a tendon -> its length. Tendons that wrap around shapes are left out."""
    m, kinds, found = c.model, c.mujoco.mjtWrap, dict[int, Length]()
    for i in range(m.ntendon):
        wraps = range(int(m.tendon_adr[i]), int(m.tendon_adr[i] + m.tendon_num[i]))
        types = {int(m.wrap_type[w]) for w in wraps}
        if types <= {int(kinds.mjWRAP_JOINT)}:
            joints = tuple(c.joints[m.wrap_objid[w]] for w in wraps)
            found[i] = JointSum(joints, ca.SX(ca.DM([float(m.wrap_prm[w]) for w in wraps])))
        elif types <= {int(kinds.mjWRAP_SITE), int(kinds.mjWRAP_PULLEY)}:
            found[i] = _path(c, wraps)
        else:
            leave(lost, "tendons that wrap around shapes are left out, with their actuators", c.tendons[i])
    return found


def _path(c: CompiledModel, wraps: range) -> Path:
    """The path of a tendon through sites and pulleys.   wraps: indices of its wrap objects."""
    m, sites, spans, divisors, before, divisor = c.model, list[int](), list[tuple[int, int]](), list[float](), False, 1.0
    for w in wraps:
        if m.wrap_type[w] == c.mujoco.mjtWrap.mjWRAP_PULLEY:
            before, divisor = False, float(m.wrap_prm[w])
            continue
        sites.append(int(m.wrap_objid[w]))
        same = before and m.site_bodyid[sites[-1]] == m.site_bodyid[sites[-2]]
        if before and not (same and np.array_equal(m.site_pos[sites[-1]], m.site_pos[sites[-2]])):
            spans.append((len(sites) - 2, len(sites) - 1))
            divisors.append(divisor)
        before = True
    bodies = tuple(WORLD if m.site_bodyid[s] == 0 else c.bodies[m.site_bodyid[s]] for s in sites)
    return Path(bodies, ca.SX(ca.DM(np.array([m.site_pos[s] for s in sites]).T)), tuple(spans), ca.SX(ca.DM(divisors)))


# -- couplings and forces ---------------------------------------------------------------------------------------------


def read_couplings(c: CompiledModel, lengths: dict[int, Length], lost: LeftOut) -> list[Holonomic]:
    """The <equality> elements of joints and tendons, polynomials of degree four, as exact constraints."""
    m, kinds, found = c.model, c.mujoco.mjtEq, list[Holonomic]()
    if disabled(c, "EQUALITY") or disabled(c, "CONSTRAINT"):
        return []
    for i in range(m.neq):
        if not m.eq_active0[i] or not among(m.eq_type[i], kinds.mjEQ_JOINT, kinds.mjEQ_TENDON):
            continue
        of_joints, ends = m.eq_type[i] == kinds.mjEQ_JOINT, [int(e) for e in (m.eq_obj1id[i], m.eq_obj2id[i]) if e >= 0]
        if not of_joints and not all(e in lengths for e in ends):
            leave(lost, "couplings of tendons that wrap around shapes are left out", equality_name(c, i))
            continue
        parts = [one(c.joints[e]) if of_joints else lengths[e] for e in ends]
        starts = [float(m.qpos0[m.jnt_qposadr[e]]) if of_joints else float(m.tendon_length0[e]) for e in ends]
        numbers = ca.SX(ca.DM(m.eq_data[i, :5])), ca.SX(ca.DM([*starts, 0.0][:2]))
        found.append(holonomic(equality_name(c, i), LengthCoupling(parts[0], parts[1] if len(ends) > 1 else None, *numbers)))
    return found


def read_passive(c: CompiledModel, lengths: dict[int, Length], friction: bool, lost: LeftOut) -> list[Force]:
    """Springs, dampers, inertias and friction of joints and tendons that are not already part of a Joint."""
    found: list[Force] = []
    for n in range(c.model.njnt):
        found += _of_joint(c, n, friction, lost)
    for i, along in lengths.items():
        found += _of_tendon(c, i, along, lost)
    if c.model.opt.density or c.model.opt.viscosity:
        leave(lost, "fluid forces (density, viscosity) are left out")
    if not disabled(c, "CONTACT") and not disabled(c, "CONSTRAINT") and c.touch:
        leave(lost, CONTACT)
    return found


def _of_joint(c: CompiledModel, n: int, friction: bool, lost: LeftOut) -> list[Force]:
    """Spring, armature and dry friction of a joint, as far as its Joint does not have them."""
    m, name, kind, found = c.model, c.joints[n], joint_type(c, n), list[Force]()
    q, v = int(m.jnt_qposadr[n]), int(m.jnt_dofadr[n])
    if kind in (FREE, SPHERICAL) and m.jnt_stiffness[n] and not disabled(c, "SPRING"):
        w = m.qpos_spring[q : q + 7] if kind == FREE else m.qpos_spring[q : q + 4]
        rest = [*w[:-4], *w[-3:], w[-4]]
        found.append(Potential(f"{name} spring"[:128], TurnSpring(name, _number(m.jnt_stiffness[n]), ca.SX(ca.DM(rest)))))
    if kind == FREE and np.any(m.dof_armature[v : v + 6]):
        found.append(KineticEnergy(f"{name} armature"[:128], FreeArmature(name, ca.SX(ca.DM(m.dof_armature[v : v + 6])))))
    dry = float(m.dof_frictionloss[v])
    if not dry or disabled(c, "FRICTIONLOSS") or disabled(c, "CONSTRAINT"):
        return found
    if kind in (FREE, SPHERICAL) or not friction:
        leave(lost, "dry friction (frictionloss) is left out", name)
    else:
        leave(lost, "dry friction (frictionloss) is smooth below 0.001 rad/s or m/s", name)
        found.append(joint_friction(f"{name} friction"[:128], name, dry))
    return found


def _of_tendon(c: CompiledModel, i: int, along: Length, lost: LeftOut) -> list[Force]:
    """Spring, damper and inertia of a tendon; damping and armature include those of its actuators."""
    m, name, found = c.model, c.tendons[i], list[Force]()
    kind = c.mujoco.mjtTrn.mjTRN_TENDON
    damping = float(m.tendon_damping[i]) + of_actuators(c, kind, i, m.actuator_damping)
    armature = float(m.tendon_armature[i]) + of_actuators(c, kind, i, m.actuator_armature)
    if m.tendon_stiffness[i] and not disabled(c, "SPRING"):
        low, high = (_number(x) for x in m.tendon_lengthspring[i])
        found.append(Potential(f"{name} spring"[:128], LengthSpring(along, _number(m.tendon_stiffness[i]), low, high)))
    if damping and not disabled(c, "DAMPER"):
        found.append(Dissipation(f"{name} damper"[:128], LengthDamper(along, _number(damping))))
    if armature:
        found.append(KineticEnergy(f"{name} armature"[:128], LengthInertia(along, _number(armature))))
    if m.tendon_limited[i] and not disabled(c, "LIMIT"):
        leave(lost, "limits of tendons are left out", name)
    if m.tendon_frictionloss[i] and not disabled(c, "FRICTIONLOSS"):
        leave(lost, "dry friction of tendons is left out", name)
    if np.any(m.tendon_stiffnesspoly[i]) or np.any(m.tendon_dampingpoly[i]):
        leave(lost, "springs and dampers keep their linear part only", name)
    return found


def _number(x: Any) -> ca.SX:
    return ca.SX(float(x))
