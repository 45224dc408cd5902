"""Springs, friction, tendons and couplings of a compiled MJCF model."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from pfaffian.formats.mjcf.mjcf_model import CompiledModel, among
from pfaffian.formats.mjcf.mjcf_part import compensates, disabled, equality_name, joint_armature, joint_type, of_actuators
from pfaffian.formats.mjcf.mjcf_text import CONTACT
from pfaffian.formats.text.coupling import (
    FreeArmature,
    Length,
    LengthCoupling,
    LengthDamper,
    LengthInertia,
    LengthSpring,
    MotorGravityCompensation,
    TurnSpring,
    one,
)
from pfaffian.formats.text.left_out import BELOW_ZERO, LeftOut, leave
from pfaffian.formats.text.strict_number import printable
from pfaffian.model.constraint import Holonomic, holonomic
from pfaffian.model.force import Dissipation, Force, GeneralisedForce, KineticEnergy, Potential
from pfaffian.parts.friction import joint_friction

SPHERICAL, FREE, REVOLUTE = 1, 0, 3
"""MuJoCo's type numbers of ball, free and hinge joints."""


MAX_CARRIED = 20_000
"""Largest number of bodies in the equations of gravity compensation by motors, over all joints."""


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
            leave(lost, "couplings of tendons that are left out are left out too", equality_name(c, i))
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
    if c.model.opt.enableflags & int(c.mujoco.mjtEnableBit.mjENBL_SLEEP):
        leave(lost, "bodies that come to rest do not fall asleep (flag sleep)")
    if c.model.opt.density or c.model.opt.viscosity:
        leave(lost, "fluid forces (density, viscosity) are left out")
    if not disabled(c, "CONTACT") and not disabled(c, "CONSTRAINT") and c.touch:
        leave(lost, CONTACT)
    return found


def _of_joint(c: CompiledModel, n: int, friction: bool, lost: LeftOut) -> list[Force]:
    """Spring, armature and dry friction of a joint, as far as its Joint does not have them."""
    m, name, kind, found = c.model, c.joints[n], joint_type(c, n), list[Force]()
    q, v = int(m.jnt_qposadr[n]), int(m.jnt_dofadr[n])
    stiffness = np.r_[m.jnt_stiffness[n], m.jnt_stiffnesspoly[n]]
    if np.any(stiffness) and not disabled(c, "SPRING"):
        _check_elastic(c, "joint", name, m.jnt_springyield[n])
    if kind in (FREE, SPHERICAL) and np.any(stiffness) and not disabled(c, "SPRING"):
        w = m.qpos_spring[q : q + 7] if kind == FREE else m.qpos_spring[q : q + 4]
        turned = _column([*w[:-4], *w[-3:], w[-4]])
        _tell_below_zero(lost, name, stiffness[0])
        found.append(Potential(f"{name} spring"[:128], TurnSpring(name, _trimmed(stiffness), turned)))
    elif np.any(stiffness[1:]) and not disabled(c, "SPRING"):
        rest = _number(m.qpos_spring[q])
        found.append(Potential(f"{name} spring"[:128], LengthSpring(one(name), _trimmed([0.0, *stiffness[1:]]), rest, rest)))
    damping = m.dof_dampingpoly[v] + of_actuators(c, c.on_joints.get(n, ()), m.actuator_dampingpoly)
    if np.any(damping) and not disabled(c, "DAMPER"):
        if kind in (FREE, SPHERICAL):
            leave(lost, "dampers of ball and free joints keep their linear part only", name)
        else:
            found.append(Dissipation(f"{name} damper"[:128], LengthDamper(one(name), _trimmed([0.0, *damping]))))
    if kind == FREE and (armature := joint_armature(c, n)):
        found.append(KineticEnergy(f"{name} armature"[:128], FreeArmature(name, ca.SX(ca.DM([armature] * 6)))))
    dry = float(m.dof_frictionloss[v])
    if not dry or disabled(c, "FRICTIONLOSS") or disabled(c, "CONSTRAINT"):
        return found
    if kind in (FREE, SPHERICAL) or not friction:
        leave(lost, "dry friction (frictionloss) is left out", name)
    else:
        leave(lost, "dry friction (frictionloss) is smooth below 0.001 rad/s or m/s", name)
        found.append(joint_friction(f"{name} friction"[:128], name, c.check_of_joint(n, "frictionloss", dry)))
    return found


def _of_tendon(c: CompiledModel, i: int, along: Length, lost: LeftOut) -> list[Force]:
    """Spring, damper and inertia of a tendon; damping and armature include those of its actuators."""
    m, name, found = c.model, c.tendons[i], list[Force]()
    driving = c.on_tendons.get(i, ())
    stiffness = np.r_[m.tendon_stiffness[i], m.tendon_stiffnesspoly[i]]
    damping = np.r_[
        m.tendon_damping[i] + of_actuators(c, driving, m.actuator_damping),
        m.tendon_dampingpoly[i] + of_actuators(c, driving, m.actuator_dampingpoly),
    ]
    armature = float(m.tendon_armature[i] + of_actuators(c, driving, m.actuator_armature))
    if np.any(stiffness) and not disabled(c, "SPRING"):
        _check_elastic(c, "tendon", name, m.tendon_springyield[i])
        _tell_below_zero(lost, name, stiffness[0])
        low, high = (_number(x) for x in m.tendon_lengthspring[i])
        found.append(Potential(f"{name} spring"[:128], LengthSpring(along, _trimmed(stiffness), low, high)))
    if np.any(damping) and not disabled(c, "DAMPER"):
        _tell_below_zero(lost, name, damping[0])
        found.append(Dissipation(f"{name} damper"[:128], LengthDamper(along, _trimmed(damping))))
    if armature:
        found.append(KineticEnergy(f"{name} armature"[:128], LengthInertia(along, _number(armature))))
    if m.tendon_limited[i] and not disabled(c, "LIMIT"):
        leave(lost, "limits of tendons are left out", name)
    if m.tendon_frictionloss[i] and not disabled(c, "FRICTIONLOSS"):
        leave(lost, "dry friction of tendons is left out", name)
    return found


def _tell_below_zero(lost: LeftOut, name: str, first: float) -> None:
    """Name a spring or a damper whose first coefficient is below zero."""
    if first < 0:
        leave(lost, BELOW_ZERO, name)


def _check_elastic(c: CompiledModel, what: str, name: str, limit: float) -> None:
    """Raise ModelError for a spring that yields: its rest moves, which is a state that a mechanism does not have."""
    if limit > 0:
        reason = f"{what} {printable(name)}: its spring yields (springyield), and a mechanism has no spring whose rest moves"
        raise c.error(f"{reason}; leave springyield out for an elastic one")


def _trimmed(coefs: Any) -> ca.SX:
    """The coefficients of a polynomial as a column, without zeros at its end."""
    return ca.SX(ca.DM(np.trim_zeros(np.asarray(coefs, dtype=float), "b")))


def read_motor_gravcomp(c: CompiledModel, lost: LeftOut) -> list[GeneralisedForce]:
    """What changes where the motors of a joint compensate gravity (actuatorgravcomp), not a force of its own.

    They do so if the file has any actuator, within the joint's actuatorfrcrange.
    """
    m, found = c.model, list[GeneralisedForce]()
    if not compensates(c):
        return found
    motors, sizes, terms = m.nactuator > 0 and not disabled(c, "ACTUATION"), _branch_sizes(c), 0
    for n in np.flatnonzero(m.jnt_actgravcomp).tolist():
        low, high = m.jnt_actfrcrange[n] if m.jnt_actfrclimited[n] else (-np.inf, np.inf)
        if not motors:
            low = high = 0.0
        first = int(m.jnt_bodyid[n])
        carried = [i for i in range(first, first + sizes[first]) if m.body_gravcomp[i] and m.body_mass[i]]
        if not carried or (low, high) == (-np.inf, np.inf):
            continue
        terms += len(carried)
        if terms > MAX_CARRIED:
            leave(lost, "actuatorgravcomp of joints that carry too many bodies acts without motors and limits", c.joints[n])
            continue
        if joint_type(c, n) in (FREE, SPHERICAL):
            leave(lost, "actuatorgravcomp of ball and free joints acts without motors and limits", c.joints[n])
            continue
        force = -(m.body_gravcomp[carried] * m.body_mass[carried]) * m.opt.gravity[:, None]
        law = MotorGravityCompensation(
            joint_type(c, n) == REVOLUTE, c.children[n], _column(m.jnt_axis[n]), _column(m.jnt_pos[n]),
            tuple(c.bodies[i] for i in carried), _column(m.body_ipos[carried].T), _column(force), _number(low), _number(high),
        )  # fmt: skip
        found.append(GeneralisedForce(f"{c.joints[n]} gravcomp"[:128], law, c.joints[n]))
    return found


def _branch_sizes(c: CompiledModel) -> list[int]:
    """Number of bodies in the branch of each body, itself included; these have the numbers after its own."""
    sizes = [1] * c.model.nbody
    for i in range(c.model.nbody - 1, 0, -1):
        sizes[int(c.model.body_parentid[i])] += sizes[i]
    return sizes


def _column(x: Any) -> ca.SX:
    return ca.SX(ca.DM(x))


def _number(x: Any) -> ca.SX:
    return ca.SX(float(x))
