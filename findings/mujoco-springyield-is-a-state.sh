#!/bin/sh
# Tools: MuJoCo 4.0.0
# Behaviour: springyield makes a joint spring plastic. It is a deflection, in degrees for a hinge unless the file says
#   radians. Beyond it the rest position moves, and stays where it went when the joint is released. That position is a
#   state of its own, mjData.plastic, which qpos and qvel do not contain; it changes in steps only, so that mj_forward
#   still gives the elastic force.
# Consequence: a run continued from saved qpos and qvel swings back to the rest of the file; save the state with
#   mj_getState and mjSTATE_FULLPHYSICS. A reader that takes stiffness and springref alone makes a part that stays
#   bent elastic.
# Source: MuJoCo documentation, XML reference: joint/springyield; mjData.plastic
# Seen:
#   springyield in the model: 0.2618
#   torque at 1 rad before the first step: -20.0
#   released there, the joint stays at 0.738 where mjData.plastic is 0.738
#   2 s later, continued from mj_getState: 0.738  from qpos and qvel: 0.476
. "$(dirname "$0")/common.sh"
needs mujoco==4.0.0
"$python" -I - <<'END'
import mujoco
import numpy as np

m = mujoco.MjModel.from_xml_string("""<mujoco><option gravity="0 0 0" timestep="0.001"/><worldbody><body>
  <joint axis="0 1 0" stiffness="20" springyield="15" damping="3"/><geom size=".1" mass="1" pos=".5 0 0"/>
</body></worldbody></mujoco>""")
FULL = mujoco.mjtState.mjSTATE_FULLPHYSICS


def run(d, seconds=2):
    mujoco.mj_step(m, d, int(seconds / m.opt.timestep))
    return round(float(d.qpos[0]), 3)


first, full, half = (mujoco.MjData(m) for _ in range(3))
first.qpos[0] = 1
mujoco.mj_forward(m, first)
elastic = float(first.qfrc_spring[0])
rest = run(first)
state = np.empty(mujoco.mj_stateSize(m, FULL))
mujoco.mj_getState(m, first, state, FULL)
mujoco.mj_setState(m, full, state, FULL)
half.qpos[:], half.qvel[:] = first.qpos, first.qvel
print(f"springyield in the model: {m.jnt_springyield[0]:.4f}")
print("torque at 1 rad before the first step:", elastic)
print("released there, the joint stays at", rest, "where mjData.plastic is", round(float(first.plastic[0]), 3))
full, half = run(full), run(half)
print("2 s later, continued from mj_getState:", full, " from qpos and qvel:", half)
assert elastic == -20 and rest > 0.6 and abs(full - rest) < 0.01 and half < rest - 0.1
END
