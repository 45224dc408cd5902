#!/bin/sh
# Tools: Pinocchio 4.1.0, MuJoCo 4.0.0 and Drake 1.51.1
# Behaviour: of a URDF revolute joint whose <limit> gives effort and velocity only, lower and upper are 0 by the
#   format. Pinocchio keeps [0, 0]. MuJoCo and Drake read a joint without limits.
# Consequence: in one reader the joint is locked for every sampler and every clamp, in the others it turns freely.
#   Write lower and upper, or type="continuous".
# Source: ROS wiki, URDF/XML/joint: limit
# Seen:
#   Pinocchio: [0.0, 0.0]  MuJoCo: limited False  Drake: [-inf, inf]
. "$(dirname "$0")/common.sh"
needs mujoco==4.0.0 pin==4.1.0 drake==1.51.1
robot_of arm.urdf hinge revolute "0 1 0" 'effort="20" velocity="4"'
"$python" -I - <<'END'
import mujoco
import numpy as np
import pinocchio as pin
from pydrake.all import MultibodyPlant, Parser

p = pin.buildModelFromUrdf("arm.urdf")
pinocchio = [float(p.lowerPositionLimit[0]), float(p.upperPositionLimit[0])]
limited = bool(mujoco.MjModel.from_xml_path("arm.urdf").jnt_limited[0])
plant = MultibodyPlant(0.0)
Parser(plant).AddModels("arm.urdf")
plant.Finalize()
hinge = plant.GetJointByName("hinge")
drake = hinge.position_lower_limits().tolist() + hinge.position_upper_limits().tolist()
print("Pinocchio:", pinocchio, " MuJoCo: limited", limited, " Drake:", drake)
assert pinocchio == [0, 0] and not limited and drake == [-np.inf, np.inf]
END
