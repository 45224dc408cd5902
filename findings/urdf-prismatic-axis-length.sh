#!/bin/sh
# Tools: yourdfpy 0.0.60, beside MuJoCo 4.0.0
# Behaviour: a prismatic joint whose axis is not a unit vector. MuJoCo normalises the axis, so that q is in metres;
#   yourdfpy slides by q times the vector as it is written.
# Consequence: positions, limits, velocities and forces of linear axes differ by the length of the axis, between
#   readers of one file. Write unit vectors.
# Source: ROS wiki, URDF/XML/joint: axis (the vector should be normalised)
# Seen:
#   q = 0.5 moves the cart by 0.5 m in MuJoCo, 1.5 m in yourdfpy
. "$(dirname "$0")/common.sh"
needs mujoco==4.0.0 yourdfpy==0.0.60
robot_of rail.urdf rail prismatic "0 3 0" 'lower="-1" upper="1" effort="9" velocity="9"'
"$python" -I - <<'END'
import mujoco
import yourdfpy

m = mujoco.MjModel.from_xml_path("rail.urdf")
d = mujoco.MjData(m)
d.qpos[0] = 0.5
mujoco.mj_forward(m, d)
robot = yourdfpy.URDF.load("rail.urdf")
robot.update_cfg({"rail": 0.5})
moves = float(d.xpos[1, 1]), float(robot.get_transform("moved")[1, 3])
print("q = 0.5 moves the cart by", moves[0], "m in MuJoCo,", moves[1], "m in yourdfpy")
assert moves == (0.5, 1.5)
END
