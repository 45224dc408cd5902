"""Springs, friction, tendons, couplings and actuators of a compiled MJCF model."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from pfaffian.formats.coupling import Coupling, Length, Sum, one
from pfaffian.formats.left_out import LeftOut, leave
from pfaffian.formats.mjcf_model import Compiled, among
from pfaffian.formats.mjcf_part import disabled, equality_name, m_type
from pfaffian.formats.mjcf_text import CONTACT
from pfaffian.maths import so3
from pfaffian.model.body import WORLD
from pfaffian.model.constraint import Holonomic, holonomic
from pfaffian.model.data import data
from pfaffian.model.force import Dissipation, Force, KineticEnergy, Potential
from pfaffian.model.friction import joint_friction

SPHERICAL, FREE = 1, 0
"""MuJoCo's numbers of joints with an orientation."""


# -- lengths ----------------------------------------------------------------------------------------------------------


@data
class Path:
    """The length of a tendon through points, sum of |b - a| / divisor.

    bodies: of the points.   points: (3, n) in them.   spans: numbers of the points a and b.   divisors: (spans, 1).
    """

    bodies: tuple[str, ...]
    points: ca.SX
    spans: tuple[tuple[int, int], ...]
    divisors: ca.SX

    def length(self, k: Any) -> ca.SX:
        return sum((ca.norm_2(d) / self.divisors[i] for i, (d, _) in enumerate(self._spans(k))), ca.SX(0))

    def rate(self, k: Any) -> ca.SX:
        return sum((ca.dot(d, s) / ca.norm_2(d) / self.divisors[i] for i, (d, s) in enumerate(self._spans(k))), ca.SX(0))

    def _spans(self, k: Any) -> list[tuple[ca.SX, ca.SX]]:
        """Of each span b - a, and its rate."""
        x = [k.position(b, self.points[:, i]) for i, b in enumerate(self.bodies)]
        v = [k.velocity(b, self.points[:, i]) for i, b in enumerate(self.bodies)]
        return [(x[b] - x[a], v[b] - v[a]) for a, b in self.spans]


def tendon_lengths(c: Compiled, lost: LeftOut) -> dict[int, Length]:
    """Number of a tendon -> its length; without those that wrap around solids."""
    m, kinds, found = c.model, c.mujoco.mjtWrap, dict[int, Length]()
    for i in range(m.ntendon):
        wraps = range(int(m.tendon_adr[i]), int(m.tendon_adr[i] + m.tendon_num[i]))
        types = {int(m.wrap_type[w]) for w in wraps}
        if types <= {int(kinds.mjWRAP_JOINT)}:
            joints = tuple(c.joints[m.wrap_objid[w]] for w in wraps)
            found[i] = Sum(joints, ca.SX(ca.DM([float(m.wrap_prm[w]) for w in wraps])))
        elif types <= {int(kinds.mjWRAP_SITE), int(kinds.mjWRAP_PULLEY)}:
            found[i] = _path(c, wraps)
        else:
            leave(lost, "tendons that wrap around shapes are left out, with their actuators", c.tendons[i])
    return found


def _path(c: Compiled, wraps: range) -> Path:
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


# -- functions of a length --------------------------------------------------------------------------------------------


@data
class Pull:
    """V(k) of a spring on a length, free from `low` to `high`: k x^2 / 2 beyond them."""

    along: Length
    stiffness: ca.SX
    low: ca.SX
    high: ca.SX

    def __repr__(self) -> str:
        return "<Pull>"

    def __call__(self, k: Any) -> ca.SX:
        x = self.along.length(k)
        if (self.low.is_zero() and self.high.is_zero()) or ca.is_equal(self.low, self.high):
            return self.stiffness * (x - self.low) ** 2 / 2
        return self.stiffness * (ca.fmax(x - self.high, 0) ** 2 + ca.fmax(self.low - x, 0) ** 2) / 2


@data
class Drag:
    """R(k) of a damper on a length, d rate^2 / 2."""

    along: Length
    damping: ca.SX

    def __repr__(self) -> str:
        return "<Drag>"

    def __call__(self, k: Any) -> ca.SX:
        return self.damping * self.along.rate(k) ** 2 / 2


@data
class Bias:
    """V(k) of the part of an actuator's force that is affine in its length: -(constant x + slope x^2 / 2)."""

    along: Length
    constant: ca.SX
    slope: ca.SX

    def __repr__(self) -> str:
        return "<Bias>"

    def __call__(self, k: Any) -> ca.SX:
        x = self.along.length(k)
        return -(self.constant * x + self.slope * x**2 / 2)


@data
class Rotor:
    """T(k) of an inertia along a length, a rate^2 / 2."""

    along: Length
    inertia: ca.SX

    def __repr__(self) -> str:
        return "<Rotor>"

    def __call__(self, k: Any) -> ca.SX:
        return self.inertia * self.along.rate(k) ** 2 / 2


@data
class TurnSpring:
    """V(k) of a spring on the orientation of a joint, k angle^2 / 2 from rest; on a free joint also on its place.

    rest: quaternion (4, 1), or place and quaternion (7, 1).
    """

    joint: str
    stiffness: ca.SX
    rest: ca.SX

    def __repr__(self) -> str:
        return f"<TurnSpring: {self.joint!r}>"

    def __call__(self, k: Any) -> ca.SX:
        q = k.joint(self.joint)
        turn = so3.quat_log(so3.quat_mul(so3.quat_conj(self.rest[-4:]), q[-4:]))
        away = q[:-4] - self.rest[:-4]
        return self.stiffness * (ca.sumsqr(turn) + ca.sumsqr(away)) / 2


@data
class Sphere:
    """T(k) of an armature on a free joint, a (v^2 + w^2) / 2."""

    joint: str
    inertia: ca.SX

    def __repr__(self) -> str:
        return f"<Sphere: {self.joint!r}>"

    def __call__(self, k: Any) -> ca.SX:
        return ca.dot(self.inertia, k.joint_rate(self.joint) ** 2) / 2


# -- what the model holds ---------------------------------------------------------------------------------------------


def read_couplings(c: Compiled, lengths: dict[int, Length], lost: LeftOut) -> list[Holonomic]:
    """<equality> of joints and tendons, a polynomial of the fourth degree, as constraints."""
    m, kinds, found = c.model, c.mujoco.mjtEq, list[Holonomic]()
    if disabled(c, "EQUALITY") or disabled(c, "CONSTRAINT"):
        return []
    for i in range(m.neq):
        if not m.eq_active0[i] or not among(m.eq_type[i], kinds.mjEQ_JOINT, kinds.mjEQ_TENDON):
            continue
        of_joints, ends = m.eq_type[i] == kinds.mjEQ_JOINT, [int(e) for e in (m.eq_obj1id[i], m.eq_obj2id[i]) if e >= 0]
        if not of_joints and not all(e in lengths for e in ends):
            leave(lost, "couplings of tendons that are left out", equality_name(c, i))
            continue
        parts = [one(c.joints[e]) if of_joints else lengths[e] for e in ends]
        starts = [float(m.qpos0[m.jnt_qposadr[e]]) if of_joints else float(m.tendon_length0[e]) for e in ends]
        numbers = ca.SX(ca.DM(m.eq_data[i, :5])), ca.SX(ca.DM([*starts, 0.0][:2]))
        found.append(holonomic(equality_name(c, i), Coupling(parts[0], parts[1] if len(ends) > 1 else None, *numbers)))
    return found


def read_passive(c: Compiled, lengths: dict[int, Length], friction: bool, lost: LeftOut) -> list[Force]:
    """Springs, dampers, inertias and friction of joints and tendons, as far as joints do not hold them themselves."""
    found: list[Force] = []
    for n in range(c.model.njnt):
        found += _of_joint(c, n, friction, lost)
    for i, along in lengths.items():
        found += _of_tendon(c, i, along, lost)
    if c.model.opt.density or c.model.opt.viscosity:
        leave(lost, "forces of the air or water around are left out")
    if not disabled(c, "CONTACT") and not disabled(c, "CONSTRAINT") and c.touch:
        leave(lost, CONTACT)
    return found


def _of_joint(c: Compiled, n: int, friction: bool, lost: LeftOut) -> list[Force]:
    m, name, kind, found = c.model, c.joints[n], m_type(c, n), list[Force]()
    q, v = int(m.jnt_qposadr[n]), int(m.jnt_dofadr[n])
    if kind in (FREE, SPHERICAL) and m.jnt_stiffness[n] and not disabled(c, "SPRING"):
        w = m.qpos_spring[q : q + 7] if kind == FREE else m.qpos_spring[q : q + 4]
        rest = [*w[:-4], *w[-3:], w[-4]]
        found.append(Potential(f"{name} spring"[:128], TurnSpring(name, _number(m.jnt_stiffness[n]), ca.SX(ca.DM(rest)))))
    if kind == FREE and np.any(m.dof_armature[v : v + 6]):
        found.append(KineticEnergy(f"{name} armature"[:128], Sphere(name, ca.SX(ca.DM(m.dof_armature[v : v + 6])))))
    dry = float(m.dof_frictionloss[v])
    if not dry or disabled(c, "FRICTIONLOSS") or disabled(c, "CONSTRAINT"):
        return found
    if kind in (FREE, SPHERICAL) or not friction:
        leave(lost, "dry friction (frictionloss) is left out", name)
    else:
        leave(lost, "dry friction (frictionloss) is smooth below 0.001 rad/s or m/s", name)
        found.append(joint_friction(f"{name} friction"[:128], name, dry))
    return found


def _of_tendon(c: Compiled, i: int, along: Length, lost: LeftOut) -> list[Force]:
    m, name, found = c.model, c.tendons[i], list[Force]()
    damping, armature = float(m.tendon_damping[i]), float(m.tendon_armature[i])
    for a in range(m.nactuator):
        if m.actuator_trntype[a] == c.mujoco.mjtTrn.mjTRN_TENDON and m.actuator_trnid[a, 0] == i:
            square = float(m.actuator_gear[m.actuator_outadr[a], 0]) ** 2
            damping, armature = damping + square * m.actuator_damping[a], armature + square * m.actuator_armature[a]
    if m.tendon_stiffness[i] and not disabled(c, "SPRING"):
        low, high = (_number(x) for x in m.tendon_lengthspring[i])
        found.append(Potential(f"{name} spring"[:128], Pull(along, _number(m.tendon_stiffness[i]), low, high)))
    if damping and not disabled(c, "DAMPER"):
        found.append(Dissipation(f"{name} damper"[:128], Drag(along, _number(damping))))
    if armature:
        found.append(KineticEnergy(f"{name} armature"[:128], Rotor(along, _number(armature))))
    if m.tendon_limited[i] and not disabled(c, "LIMIT"):
        leave(lost, "limits of tendons are left out", name)
    if m.tendon_frictionloss[i] and not disabled(c, "FRICTIONLOSS"):
        leave(lost, "dry friction of tendons is left out", name)
    if np.any(m.tendon_stiffnesspoly[i]) or np.any(m.tendon_dampingpoly[i]):
        leave(lost, "springs and dampers keep their linear part only", name)
    return found


def _number(x: Any) -> ca.SX:
    return ca.SX(float(x))
