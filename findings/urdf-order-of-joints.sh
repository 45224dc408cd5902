#!/bin/sh
# Tools: Pinocchio 4.1.0, DART 6.20.0 (dartpy), MuJoCo 4.0.0 and Drake 1.51.1
# Behaviour: the joints of a link that has several children come in the order of the file in MuJoCo and Drake, and in
#   that of the alphabet in Pinocchio and DART.
# Consequence: q, v and torques of a robot with branches cannot be carried between the tools by position, although
#   they can for a robot whose arms happen to be written in alphabetical order. Carry them by names.
# Source: ROS wiki, URDF/XML (the order has no meaning in the format)
# Seen:
#   MuJoCo: ['right', 'hand', 'left']
#   Pinocchio: ['left', 'right', 'hand']
#   DART: ['left', 'right', 'hand']
#   Drake: ['right_q', 'hand_q', 'left_q']
. "$(dirname "$0")/common.sh"
needs pin==4.1.0 dartpy==6.20.0 mujoco==4.0.0 drake==1.51.1
"$python" -I - <<'END'
from pathlib import Path

import dartpy as dart
import mujoco
import pinocchio as pin
from pydrake.all import MultibodyPlant, Parser

INERTIAL = """<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>"""
JOINT = """<link name="{0}">{2}</link><joint name="{0}" type="continuous"><parent link="{1}"/><child link="{0}"/>
  <axis xyz="0 0 1"/></joint>"""
parts = [JOINT.format(name, parent, INERTIAL) for name, parent in (("right", "base"), ("hand", "right"), ("left", "base"))]
Path("robot.urdf").write_text(f'<robot name="robot"><link name="base"/>{"".join(parts)}</robot>')
m, p = mujoco.MjModel.from_xml_path("robot.urdf"), pin.buildModelFromUrdf("robot.urdf")
plant = MultibodyPlant(0.0)
Parser(plant).AddModels("robot.urdf")
plant.WeldFrames(plant.world_frame(), plant.GetFrameByName("base"))
plant.Finalize()
robot = dart.utils.DartLoader().parseSkeleton(str(Path("robot.urdf").resolve()))
seen = {
    "MuJoCo": [m.joint(i).name for i in range(m.njnt)],
    "Pinocchio": list(p.names)[1:],
    "DART": [robot.getDof(i).getName() for i in range(robot.getNumDofs() - 3, robot.getNumDofs())],
    "Drake": plant.GetPositionNames(add_model_instance_prefix=False),
}
for tool, names in seen.items():
    print(f"{tool}: {names}")
assert seen["MuJoCo"] == ["right", "hand", "left"] and seen["Pinocchio"] == seen["DART"] == ["left", "right", "hand"]
assert [name.partition("_")[0] for name in seen["Drake"]] == seen["MuJoCo"]
END
