#!/bin/sh
# Tools: Drake 1.51.1, beside MuJoCo 4.0.0
# Behaviour: the hinges of one MJCF body, as in a hip, all pass through the frame of the body. Drake applies the pose
#   of the body behind the last of them, so that the others pass through the origin of the parent. At q = 0 both
#   agree, and so do bodies with one joint and bodies at the origin of the parent.
# Consequence: a look at the rest pose finds nothing, and kinematics, mass matrix and gravity are wrong everywhere
#   else. Split such a body into one body a joint, the first with the pose, or compare the poses at a random q.
# Source: MuJoCo documentation, XML reference: body/joint
# Seen:
#   q = [0. 0. 0.]  origin of the hip: MuJoCo [0.2 0.  1. ]  Drake [0.2 0.  1. ]
#   q = [0.  0.5 0. ]  origin of the hip: MuJoCo [0.2 0.  1. ]  Drake [0.655 0.    0.782]
#   q = [0.  0.  0.5]  origin of the hip: MuJoCo [0.2 0.  1. ]  Drake [0.2 0.  1. ]
. "$(dirname "$0")/common.sh"
needs mujoco==4.0.0 drake==1.51.1
cat > hip.xml <<'END'
<mujoco model="robot"><worldbody><body name="hip" pos=".2 0 1">
  <joint name="x" axis="1 0 0"/><joint name="y" axis="0 1 0"/><joint name="z" axis="0 0 1"/>
  <geom size=".1" mass="1" pos="0 0 -.4"/>
</body></worldbody></mujoco>
END
"$python" -I - <<'END'
import mujoco
import numpy as np
from pydrake.all import MultibodyPlant, Parser

m = mujoco.MjModel.from_xml_path("hip.xml")
d = mujoco.MjData(m)
plant = MultibodyPlant(0.0)
Parser(plant).AddModels("hip.xml")
plant.Finalize()
context = plant.CreateDefaultContext()
gaps = []
for q in (np.zeros(3), np.array([0.0, 0.5, 0.0]), np.array([0.0, 0.0, 0.5])):
    d.qpos[:] = q
    mujoco.mj_forward(m, d)
    plant.SetPositions(context, q)
    there = plant.EvalBodyPoseInWorld(context, plant.GetBodyByName("hip")).translation()
    print("q =", q, " origin of the hip: MuJoCo", d.xpos[1], " Drake", there.round(3))
    gaps.append(float(np.linalg.norm(there - d.xpos[1])))
assert gaps[0] < 1e-12 and gaps[1] > 0.1 and gaps[2] < 1e-12
END
