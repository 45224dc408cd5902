"""Springs, dampers, armature, gears, tendons and wrenches against those of MuJoCo."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import pfaffian as pf
from tests.tolerance import PEER, close

ARM = """
<mujoco>
  <compiler angle="radian" autolimits="false"/>
  <option gravity="0.3 -0.2 -9.81"><flag contact="disable" constraint="disable"/></option>
  <worldbody>
    <site name="anchor" pos="0.7 -0.4 0.9"/>
    <body name="upper" pos="0.1 0.2 0.3" quat="0.8 0 0.6 0">
      <inertial pos="0.1 0 0.2" mass="1.5" fullinertia="0.05 0.06 0.04 0.002 -0.003 0.001"/>
      <joint name="shoulder" type="hinge" axis="0.6 0 0.8" stiffness="3" springref="0.4" damping="0.2" armature="0.07"/>
      <body name="slide" pos="0.3 0 0.1">
        <inertial pos="0 0.05 0" mass="0.6" diaginertia="0.01 0.02 0.015"/>
        <joint name="rail" type="slide" axis="0 1 0" stiffness="20" springref="-0.1" damping="0.5" armature="0.2"/>
        <body name="hand" pos="0.1 0.1 0">
          <inertial pos="0.02 0.01 0.1" mass="0.4" diaginertia="0.003 0.002 0.001"/>
          <joint name="wrist" type="ball" damping="0.03" armature="0.01"/>
          <site name="tip" pos="0.05 0.1 0.2"/>
        </body>
      </body>
    </body>
    <body name="drone" pos="0 0 1">
      <freejoint name="flight"/>
      <inertial pos="0.01 -0.02 0.03" mass="0.9" diaginertia="0.01 0.02 0.025"/>
    </body>
  </worldbody>
  <tendon>
    <spatial name="band" stiffness="15" damping="0.6" springlength="0.5">
      <site site="anchor"/><site site="tip"/>
    </spatial>
  </tendon>
  <actuator>
    <motor name="m1" joint="shoulder" gear="2.5"/>
    <motor name="m2" joint="rail" gear="-1.5"/>
  </actuator>
</mujoco>
"""


def ours() -> pf.Mechanism:
    full = (0.05, 0.06, 0.04, 0.002, -0.003, 0.001)
    bodies = [
        pf.body("upper", 1.5, (0.1, 0, 0.2), full),
        pf.body("slide", 0.6, (0, 0.05, 0), (0.01, 0.02, 0.015)),
        pf.body("hand", 0.4, (0.02, 0.01, 0.1), (0.003, 0.002, 0.001)),
        pf.body("drone", 0.9, (0.01, -0.02, 0.03), (0.01, 0.02, 0.025)),
    ]
    turned = pf.pose((0.1, 0.2, 0.3), quaternion=(0, 0.6, 0, 0.8))
    joints = [
        pf.joint("shoulder", "revolute", "world", "upper", placement=turned, axis=(0.6, 0, 0.8), stiffness=3, rest=0.4,
                 damping=0.2, armature=0.07, child_placement=pf.pose()),
        pf.joint("rail", "prismatic", "upper", "slide", placement=pf.pose((0.3, 0, 0.1)), axis=(0, 1, 0), stiffness=20,
                 rest=-0.1, damping=0.5, armature=0.2),
        pf.joint("wrist", "spherical", "slide", "hand", placement=pf.pose((0.1, 0.1, 0)), damping=0.03, armature=0.01),
        pf.joint("flight", "free", "world", "drone"),
    ]  # fmt: skip
    band = pf.spring("band", "world", "hand", point_a=(0.7, -0.4, 0.9), point_b=(0.05, 0.1, 0.2),
                     stiffness=15, rest=0.5, damping=0.6)  # fmt: skip
    pulls = [pf.wrench(f"on {b.name}", b.name, point=b.com, axes="WORLD") for b in bodies]
    motors = [pf.actuator("m1", "shoulder", gear=2.5), pf.actuator("m2", "rail", gear=-1.5)]
    return pf.mechanism("arm", bodies, joints, forces=[band, *pulls], actuators=motors, gravity=(0.3, -0.2, -9.81))


def to_mujoco(q: np.ndarray, v: np.ndarray, R: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """q and v for MuJoCo: quaternions with the scalar first, the free joint's linear velocity along the world's axes."""

    def first(x):
        return [x[3], *x[:3]]

    return np.array([*q[:2], *first(q[2:6]), *q[6:9], *first(q[9:13])]), np.concatenate([v[:5], R @ v[5:8], v[8:]])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("formulation", ["articulated", "gauss"])
def test_forces_agree_with_mujoco(seed, formulation):
    m, random = ours(), np.random.default_rng(seed)
    model = mujoco.MjModel.from_xml_string(ARM)
    data = mujoco.MjData(model)
    q, v, u = pf.random_configuration(m, random), random.normal(size=m.nv), random.normal(size=m.nu)
    parts = {
        "v_dot": lambda T: pf.FORMULATIONS[formulation](T).v_dot,
        "R": lambda T: T.kinematics.rotation("drone"),
        "energy": lambda T: T.T,
        "V": lambda T: T.V,
        "hand": lambda T: T.kinematics.position("hand"),
    }
    r = pf.compile_terms(m, parts, backend="numpy", lanes=1)(q, v, u)
    data.qpos, data.qvel = to_mujoco(q, v, r["R"])
    data.ctrl = u[:2]
    data.xfrc_applied[1:] = u[2:].reshape(4, 6)
    model.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
    mujoco.mj_forward(model, data)
    a = data.qacc.copy()
    # MuJoCo's linear acceleration of the free body is along the world's axes: d(R v)/dt = R (v_dot + w x v).
    a[5:8] = r["R"].T @ a[5:8] - np.cross(v[8:11], v[5:8])
    close(r["hand"], data.body("hand").xpos, PEER, "position of the hand")
    close(r["energy"], data.energy[1], PEER, "kinetic energy")
    close(r["v_dot"], a, PEER, f"acceleration by {formulation}")
    # Both potential energies are zero with weight at the world's origin and springs at rest.
    close(r["V"], data.energy[0], PEER, "potential energy", 1 + abs(data.energy[0]))
