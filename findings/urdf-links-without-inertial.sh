#!/bin/sh
# Tools: MuJoCo 4.0.0, Pinocchio 4.1.0, Drake 1.51.1 and DART 6.20.0 (dartpy)
# Behaviour: a URDF link without <inertial> has no mass in Pinocchio and Drake. MuJoCo computes its mass from the
#   collision shapes, with the density of water. DART gives it 1 kg and 1 kg m^2.
# Consequence: frames, covers and sensors that a file describes by shapes alone add kilograms in one tool and nothing
#   in the others. Write <inertial> into every link, and compare the total masses.
# Source: ROS wiki, URDF/XML/link: inertial (optional; zero mass and inertia if not specified)
# Seen:
#   mass in kg: {'MuJoCo': 26.0, 'Pinocchio': 2.0, 'Drake': 2.0, 'DART': 3.0}
. "$(dirname "$0")/common.sh"
needs mujoco==4.0.0 pin==4.1.0 drake==1.51.1 dartpy==6.20.0
cat > arm.urdf <<'END'
<robot name="arm"><link name="base"/>
  <link name="arm"><inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="cover"><collision><geometry><box size=".2 .3 .4"/></geometry></collision></link>
  <joint name="hinge" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/></joint>
  <joint name="screws" type="fixed"><parent link="arm"/><child link="cover"/></joint></robot>
END
"$python" -I - <<'END'
from pathlib import Path

import dartpy as dart
import mujoco
import pinocchio as pin
from pydrake.all import MultibodyPlant, Parser

plant = MultibodyPlant(0.0)
Parser(plant).AddModels("arm.urdf")
plant.Finalize()
masses = {
    "MuJoCo": float(mujoco.MjModel.from_xml_path("arm.urdf").body_mass.sum()),
    "Pinocchio": sum(i.mass for i in pin.buildModelFromUrdf("arm.urdf").inertias),
    "Drake": plant.CalcTotalMass(plant.CreateDefaultContext()),
}
robot = dart.utils.DartLoader().parseSkeleton(str(Path("arm.urdf").resolve()))
masses["DART"] = robot.getMass() - robot.getBodyNode("base").getMass()
masses = {tool: round(mass, 6) for tool, mass in masses.items()}
print("mass in kg:", masses)
assert masses == {"MuJoCo": 26, "Pinocchio": 2, "Drake": 2, "DART": 3}
END
