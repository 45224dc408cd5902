"""Ranges of a compiled MJCF model that limit a sum of forces (actuatorfrcrange), while a mechanism limits each input."""

from __future__ import annotations

import numpy as np

from pfaffian.formats.mjcf.mjcf_force import FREE, SPHERICAL
from pfaffian.formats.mjcf.mjcf_model import CompiledModel
from pfaffian.formats.mjcf.mjcf_part import compensates, disabled, joint_type
from pfaffian.formats.text.left_out import LeftOut, leave
from pfaffian.maths.margins import ROUNDING

SUM = "actuatorfrcrange limits motors and gravity compensation one by one, not their sum"
"""Message about the joints and tendons where this makes a difference."""


def tell_sums(c: CompiledModel, lost: LeftOut) -> None:
    """Record the joints and tendons whose range limits more than the force of the one motor on them."""
    m = c.model
    if not m.nactuator or disabled(c, "ACTUATION"):
        return
    limited = [n for n in np.flatnonzero(m.jnt_actfrclimited).tolist() if joint_type(c, n) not in (FREE, SPHERICAL)]
    across = _driven_across(c) if limited else set()
    for n in limited:
        carries = bool(m.jnt_actgravcomp[n]) and compensates(c)
        if int(m.jnt_dofadr[n]) in across or len(c.on_joints.get(n, ())) + carries > 1:
            leave(lost, SUM, c.joints[n])
    for i, motors in c.on_tendons.items():
        if m.tendon_actfrclimited[i] and len(motors) > 1:
            leave(lost, SUM, c.tendons[i])


def _driven_across(c: CompiledModel) -> set[int]:
    """The degrees of freedom that actuators elsewhere than on their joint act on, by the moment arms at a generic state."""
    m, elsewhere = c.model, [i for i, kind in enumerate(c.transmissions) if kind not in ("JOINT", "JOINTINPARENT")]
    if not elsewhere:
        return set()
    data, random = c.mujoco.MjData(m), np.random.default_rng(1)
    c.mujoco.mj_integratePos(m, data.qpos, random.uniform(0.1, 1.0, m.nv), 1.0)
    for step in (c.mujoco.mj_kinematics, c.mujoco.mj_comPos, c.mujoco.mj_tendon, c.mujoco.mj_transmission):
        step(m, data)
    found = set[int]()
    for i in elsewhere:
        row = int(m.actuator_outadr[i])
        arms = slice(int(data.moment_rowadr[row]), int(data.moment_rowadr[row] + data.moment_rownnz[row]))
        sizes = np.abs(data.actuator_moment[arms])
        moved = sizes > ROUNDING * sizes.max(initial=0.0)
        found |= {int(k) for k in data.moment_colind[arms][moved]}
    return found
