#!/bin/sh
# Tools: MuJoCo 4.0.0, Pinocchio 4.1.0 and DART 6.20.0 (dartpy)
# Behaviour: the axis of a URDF planar joint is the normal of its plane. MuJoCo and DART slide in that plane, along
#   different first directions; Pinocchio ignores the axis and slides in the x-y plane, whatever the file says.
# Consequence: one q is three motions. Write planar joints with the axis z only, after turning their frame by
#   <origin>, or as two prismatic joints and a revolute one, and give directions by names, not by positions in q.
# Source: ROS wiki, URDF/XML/joint: axis
# Seen:
#   MuJoCo : the first coordinate moves the link by [1.0, 0.0, 0.0] , the second by [0.0, 0.0, -1.0]
#   Pinocchio : the first coordinate moves the link by [1.0, 0.0, 0.0] , the second by [0.0, 1.0, 0.0]
#   DART : the first coordinate moves the link by [0.0, 0.0, 1.0] , the second by [1.0, 0.0, 0.0]
. "$(dirname "$0")/common.sh"
needs mujoco==4.0.0 pin==4.1.0 dartpy==6.20.0
cat > base.urdf <<'END'
<robot name="base"><link name="ground"/><link name="plate"><inertial><mass value="1"/>
  <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="plane" type="planar"><parent link="ground"/><child link="plate"/><axis xyz="0 1 0"/></joint></robot>
END
"$python" -I - <<'END'
from pathlib import Path

import dartpy as dart
import mujoco
import numpy as np
import pinocchio as pin

m = mujoco.MjModel.from_xml_path("base.urdf")
d = mujoco.MjData(m)
p = pin.buildModelFromUrdf("base.urdf")
data = p.createData()
robot = dart.utils.DartLoader().parseSkeleton(str(Path("base.urdf").resolve()))
first = robot.getNumDofs() - 3
seen = {"MuJoCo": [], "Pinocchio": [], "DART": []}
for i in range(2):
    step = np.eye(3)[i]
    d.qpos[:] = step
    mujoco.mj_forward(m, d)
    pin.forwardKinematics(p, data, pin.integrate(p, pin.neutral(p), step))
    for k in range(3):
        robot.setPosition(first + k, step[k])
    seen["MuJoCo"].append((d.xpos[1] + 0.0).round(6).tolist())
    seen["Pinocchio"].append((data.oMi[1].translation + 0.0).round(6).tolist())
    seen["DART"].append((robot.getBodyNode("plate").getWorldTransform().translation() + 0.0).round(6).tolist())
for tool, moves in seen.items():
    print(tool, ": the first coordinate moves the link by", moves[0], ", the second by", moves[1])
assert seen["Pinocchio"] == [[1, 0, 0], [0, 1, 0]]
assert all(move[1] == 0 for tool in ("MuJoCo", "DART") for move in seen[tool]) and seen["MuJoCo"] != seen["DART"]
END
