#!/bin/sh
# Tools: Drake 1.51.1, beside MuJoCo 4.0.0 and Pinocchio 4.1.0
# Behaviour: a continuous joint of a URDF file has no position limits, whatever its <limit> says. Drake takes lower
#   and upper over; MuJoCo reads an unlimited joint, Pinocchio one with (cos, sin) as coordinates.
# Consequence: wheels stop after part of a turn in Drake. Leave lower and upper out of the <limit> of continuous
#   joints; Pinocchio has nq = nv + 1 for them.
# Source: ROS wiki, URDF/XML/joint: type continuous (no upper and lower limits)
# Seen:
#   Drake: at 5 rad/s for 2 s the wheel turns by 1.000 rad
#   MuJoCo: limited False  Pinocchio: coordinates 2
. "$(dirname "$0")/common.sh"
needs drake==1.51.1 mujoco==4.0.0 pin==4.1.0
robot_of wheel.urdf axle continuous "0 1 0" 'lower="-1" upper="1" effort="9" velocity="9"'
"$python" -I - <<'END'
import mujoco
import pinocchio as pin
from pydrake.all import MultibodyPlant, Parser, Simulator

plant = MultibodyPlant(0.001)
Parser(plant).AddModels("wheel.urdf")
plant.WeldFrames(plant.world_frame(), plant.GetFrameByName("base"))
plant.Finalize()
simulator = Simulator(plant)
plant.SetVelocities(simulator.get_mutable_context(), [5.0])
simulator.AdvanceTo(2.0)
turned = float(plant.GetPositions(simulator.get_context())[0])
limited = bool(mujoco.MjModel.from_xml_path("wheel.urdf").jnt_limited[0])
coordinates = pin.buildModelFromUrdf("wheel.urdf").nq
print(f"Drake: at 5 rad/s for 2 s the wheel turns by {turned:.3f} rad")
print("MuJoCo: limited", limited, " Pinocchio: coordinates", coordinates)
assert turned < 1.1 and not limited and coordinates == 2
END
