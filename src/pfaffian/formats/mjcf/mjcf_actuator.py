"""Actuators of a compiled MJCF model.

A MuJoCo actuator gives the force gain u + b0 + b1 length + b2 rate, along its gear. Here gain and gear are multiplied into one
gear of the input, b0 and b1 become a potential, and b2 becomes a damper. So a motor is still a motor, and the input of a
position or velocity servo is still its target.
"""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from pfaffian.formats.mjcf.mjcf_force import FREE, REVOLUTE, SPHERICAL
from pfaffian.formats.mjcf.mjcf_model import CompiledModel, among
from pfaffian.formats.mjcf.mjcf_part import disabled, frame, joint_type
from pfaffian.formats.mjcf.mjcf_path import along as as_path
from pfaffian.formats.mjcf.mjcf_path import slider_crank
from pfaffian.formats.text.coupling import ActuatorBias, ActuatorDamping, JointSum, Length, one
from pfaffian.formats.text.left_out import LeftOut, leave
from pfaffian.model.force import Actuator, Dissipation, Force, Motor, Potential, thruster, transmission
from pfaffian.model.path import Path
from pfaffian.model.path_force import Winch

NOT_REPRESENTED = "actuators that a mechanism cannot represent are left out"


def read_actuators(c: CompiledModel, lengths: dict[int, Length], lost: LeftOut) -> tuple[list[Motor], list[Force]]:
    """The motors of all actuators, and the forces of actuators that do not depend on their inputs."""
    motors, forces = list[Motor](), list[Force]()
    if disabled(c, "ACTUATION"):
        return motors, forces
    for i in range(c.model.nactuator):
        if 0 <= c.model.actuator_group[i] <= 30 and c.model.opt.disableactuator & (1 << int(c.model.actuator_group[i])):
            leave(lost, "actuators that the file disables are left out", c.actuators[i])
            continue
        gain = _gain(c, i)
        if gain is None:
            leave(lost, NOT_REPRESENTED, f"{c.actuators[i]} ({_sort(c, i)})")
            continue
        if c.model.actuator_dyntype[i] != c.mujoco.mjtDyn.mjDYN_NONE:
            leave(lost, "activation dynamics of actuators are left out, so the input is the activation", c.actuators[i])
        made = _on_site(c, i, gain, lost) if _transmits(c, i, "SITE") else _on_joints(c, i, gain, lengths, lost)
        if made is None:
            leave(lost, NOT_REPRESENTED, c.actuators[i])
            continue
        motors += [made[0]] if made[0] else []
        forces += made[1]
    return motors, forces


def take_torques(c: CompiledModel) -> frozenset[str]:
    """Replace the servos of the model by motors of the same gear, whose inputs are the forces of the servos; their names."""
    m, kinds, found = c.model, c.mujoco, list[str]()
    for i in range(m.nactuator):
        if _gain(c, i) is not None and np.any(_bias(c, i)):
            m.actuator_gaintype[i], m.actuator_biastype[i] = kinds.mjtGain.mjGAIN_FIXED, kinds.mjtBias.mjBIAS_NONE
            m.actuator_dyntype[i], m.actuator_actlimited[i] = kinds.mjtDyn.mjDYN_NONE, 0
            m.actuator_gainprm[i, :3] = 1, 0, 0
            m.actuator_ctrllimited[m.actuator_ctrladr[i]] = 0
            found.append(c.actuators[i])
    return frozenset(found)


def _sort(c: CompiledModel, i: int) -> str:
    """What makes an actuator other than a motor or a servo, in MuJoCo's words."""
    m, enums = c.model, c.mujoco
    if m.actuator_plugin[i] >= 0:
        return "plugin"
    words = [
        enums.mjtDyn(int(m.actuator_dyntype[i])).name, enums.mjtGain(int(m.actuator_gaintype[i])).name,
        enums.mjtBias(int(m.actuator_biastype[i])).name,
    ]  # fmt: skip
    plain = {"NONE", "FIXED", "AFFINE", "INTEGRATOR", "FILTER", "FILTEREXACT"}
    sorts = dict.fromkeys(kind for word in words if (kind := word.split("_", 1)[1]) not in plain)
    return ", ".join(sorts).lower() or "a force that is not affine in its input"


def _transmits(c: CompiledModel, i: int, *kinds: str) -> bool:
    """Whether an actuator has one of these kinds of transmission."""
    return c.transmissions[i] in kinds


def _gain(c: CompiledModel, i: int) -> float | None:
    """The force per unit of input; None where the force is not affine in the input."""
    m, dyn = c.model, c.mujoco.mjtDyn
    gains, biases = c.mujoco.mjtGain, c.mujoco.mjtBias
    states = (dyn.mjDYN_NONE, dyn.mjDYN_INTEGRATOR, dyn.mjDYN_FILTER, dyn.mjDYN_FILTEREXACT)
    terms = np.array(m.actuator_gainprm[i, :3], dtype=bool)
    plain = m.actuator_gaintype[i] == gains.mjGAIN_FIXED or (
        m.actuator_gaintype[i] == gains.mjGAIN_AFFINE and not (terms[1] or (terms[0] and terms[2]))
    )
    affine = among(m.actuator_biastype[i], biases.mjBIAS_NONE, biases.mjBIAS_AFFINE)
    known = plain and affine and among(m.actuator_dyntype[i], *states) and m.actuator_plugin[i] < 0
    return float(m.actuator_gainprm[i, 0]) if known and m.actuator_ctrlnum[i] == 1 else None


def _damping(c: CompiledModel, i: int) -> float:
    """The coefficient of a damper per unit of input, the gain of the rate; zero for other actuators."""
    m = c.model
    return -float(m.actuator_gainprm[i, 2]) * (m.actuator_gaintype[i] == c.mujoco.mjtGain.mjGAIN_AFFINE)


def _bias(c: CompiledModel, i: int) -> np.ndarray:
    """(3,) coefficients b0, b1, b2 of the force that does not depend on the input."""
    m = c.model
    return np.array(m.actuator_biasprm[i, :3]) * (m.actuator_biastype[i] == c.mujoco.mjtBias.mjBIAS_AFFINE)


def _limits(c: CompiledModel, i: int, gain: float, lost: LeftOut, scalar: float = 0.0) -> tuple[float, float]:
    """(low, high) of the input, from ctrlrange and the force ranges.   scalar: gear of an actuator on a single joint."""
    m, biased = c.model, bool(np.any(_bias(c, i)))
    u = int(m.actuator_ctrladr[i])
    low, high = -np.inf, np.inf
    if m.actuator_ctrllimited[u] and not disabled(c, "CLAMPCTRL") and m.actuator_dyntype[i] != c.mujoco.mjtDyn.mjDYN_INTEGRATOR:
        low, high = map(float, m.actuator_ctrlrange[u])
    if m.actuator_actlimited[i]:  # the input is the activation
        low, high = max(low, float(m.actuator_actrange[i, 0])), min(high, float(m.actuator_actrange[i, 1]))
    bounds = [(m.actuator_forcerange[i], gain)] if m.actuator_forcelimited[i] else []
    if scalar and m.jnt_actfrclimited[m.actuator_trnid[i, 0]]:
        bounds.append((m.jnt_actfrcrange[m.actuator_trnid[i, 0]], gain * scalar))
    n, of_tendon = m.actuator_trnid[i, 0], _transmits(c, i, "TENDON")
    if of_tendon and m.tendon_actfrclimited[n]:
        bounds.append((m.tendon_actfrcrange[n], gain * float(m.actuator_gear[m.actuator_outadr[i], 0])))
    for pair, factor in bounds:
        if biased or not factor:
            leave(lost, "force limits of servos are left out", c.actuators[i])
            continue
        ends = sorted(float(x) / factor for x in pair)
        low, high = max(low, ends[0]), min(high, ends[1])
    return (low, high) if low <= high else (low, low)


MotorAndForces = tuple[Motor | None, list[Force]]
"""The motor of an actuator, if it has an input that acts, and its forces that do not depend on the input."""


def _on_joints(c: CompiledModel, i: int, gain: float, lengths: dict[int, Length], lost: LeftOut) -> MotorAndForces | None:
    """The motor and the forces of an actuator on a joint or a tendon; None if a mechanism cannot represent it."""
    n, gear = int(c.model.actuator_trnid[i, 0]), c.model.actuator_gear[c.model.actuator_outadr[i]]
    name, along, ends = c.actuators[i], None, dict[Any, float]()
    if _transmits(c, i, "TENDON"):
        along = lengths.get(n)
        if along is None:
            return None
        if isinstance(along, JointSum):
            for joint, coef in zip(along.joints, np.array(ca.DM(along.coefs)).ravel(), strict=True):
                ends[joint] = ends.get(joint, 0.0) + coef * gear[0]
    elif _transmits(c, i, "SLIDERCRANK"):
        along = slider_crank(c, i)
    elif _transmits(c, i, "JOINT", "JOINTINPARENT") and joint_type(c, n) not in (FREE, SPHERICAL):
        along, ends = one(c.joints[n]), {c.joints[n]: float(gear[0])}
    elif _transmits(c, i, "JOINT") and not (joint_type(c, n) == FREE and np.any(gear[:3])):
        first, turn = (3, gear[3:]) if joint_type(c, n) == FREE else (0, gear[:3])
        ends = {(c.joints[n], first + k): float(turn[k]) for k in range(3) if turn[k]}
    else:
        return None
    if (along is None and np.any(_bias(c, i))) or (not ends and not isinstance(along, Path)):
        return None
    scalar = float(gear[0]) if _transmits(c, i, "JOINT", "JOINTINPARENT") and along is not None else 0.0
    limits = _limits(c, i, gain, lost, scalar)
    forces = [] if along is None else _bias_forces(c, i, along, float(gear[0]), gain)
    if along is not None and (damps := _damping(c, i)):
        turns = _transmits(c, i, "JOINT", "JOINTINPARENT") and joint_type(c, n) == REVOLUTE
        unit = "N m s" if turns else "N s/m"
        return Winch(name, as_path(along), ca.SX(damps * gear[0] ** 2), limits, unit, damps=True), forces
    if isinstance(along, Path) and gain:
        return Winch(name, along, ca.SX(-gain * gear[0]), limits), forces
    return (_motor(name, {end: gain * x for end, x in ends.items()}, limits) if gain and ends else None), forces


def _motor(name: str, ends: dict[Any, float], limits: tuple[float, float]) -> Motor:
    """An actuator if one velocity is driven, else a transmission.   ends: joint, or (joint, component) -> gear."""
    if len(ends) > 1:
        return transmission(name, ends, limits=limits)
    ((end, gear),) = ends.items()
    joint, component = end if isinstance(end, tuple) else (end, 0)
    return Actuator(name, joint, component, ca.SX(gear), limits)


def _bias_forces(c: CompiledModel, i: int, along: Length, gear: float, gain: float) -> list[Force]:
    """The potential of b0 and b1 and the damper of b2, along a length."""
    b0, b1, b2 = (float(x) for x in _bias(c, i))
    found, name = list[Force](), c.actuators[i]
    of = name if gain else None, ca.SX(gain * gear)
    if b0 or b1:
        found.append(Potential(f"{name} bias"[:128], ActuatorBias(along, ca.SX(gear * b0), ca.SX(gear**2 * b1), *of)))
    if b2:
        found.append(Dissipation(f"{name} damping"[:128], ActuatorDamping(along, ca.SX(-(gear**2) * b2), *of)))
    return found


def _on_site(c: CompiledModel, i: int, gain: float, lost: LeftOut) -> MotorAndForces | None:
    """An actuator at a site: a thruster if the moment is parallel to the force, else a transmission on the body's free joint.

    None if a mechanism cannot represent it.
    """
    m, s = c.model, int(c.model.actuator_trnid[i, 0])
    if m.actuator_trnid[i, 1] >= 0 or np.any(_bias(c, i)) or not gain or m.site_bodyid[s] == 0:
        return None
    b, name, limits = int(m.site_bodyid[s]), c.actuators[i], _limits(c, i, gain, lost)
    R = np.array(ca.DM(frame((0, 0, 0), m.site_quat[s]).R))
    gear = gain * m.actuator_gear[m.actuator_outadr[i]]
    f, n = R @ gear[:3], R @ gear[3:]
    size = float(np.linalg.norm(f))
    if size and np.linalg.norm(np.cross(f, n)) <= 1e-12 * size * np.linalg.norm(n) and abs(size - 1) < 1e-15:
        return thruster(name, c.bodies[b], axis=f, point=m.site_pos[s], torque=float(f @ n), limits=limits), []
    first = int(m.body_jntadr[b])
    if m.body_jntnum[b] != 1 or joint_type(c, first) != FREE:
        return None
    wrench = np.r_[f, n + np.cross(m.site_pos[s], f)]
    return _motor(name, {(c.joints[first], k): float(x) for k, x in enumerate(wrench) if x}, limits), []
