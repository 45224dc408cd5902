#!/bin/sh
# Tools: Drake 1.51.1, beside MuJoCo 4.0.0
# Behaviour: by the gear of a <motor>, MuJoCo multiplies the control; a joint with gear="4" gets 4 N m from a control
#   of 1. Drake stores the same number as gear ratio, which in Drake concerns the reflected inertia of the rotor
#   alone: its actuation is the torque at the joint, and its effort limit the ctrlrange.
# Consequence: one file, one command, and joint torques that differ by the gear, although both mass matrices agree.
#   Multiply the command of a controller made in MuJoCo by the gear before it goes to Drake.
# Source: MuJoCo documentation, XML reference: actuator/gear; Drake, class JointActuator
# Seen:
#   Drake: gear ratio 4.0  effort limit 3.0
#   acceleration for the command 3: MuJoCo 26.432, Drake 6.608 rad/s^2
. "$(dirname "$0")/common.sh"
needs mujoco==4.0.0 drake==1.51.1
cat > motor.xml <<'END'
<mujoco model="robot"><option gravity="0 0 0"/><worldbody><body name="arm"><joint name="a" axis="0 1 0" armature=".2"/>
  <geom size=".1" mass="1" pos=".5 0 0"/></body></worldbody>
<actuator><motor name="motor" joint="a" gear="4" ctrllimited="true" ctrlrange="-3 3"/></actuator></mujoco>
END
"$python" -I - <<'END'
import mujoco
import numpy as np
from pydrake.all import MultibodyPlant, Parser

m = mujoco.MjModel.from_xml_path("motor.xml")
d = mujoco.MjData(m)
d.ctrl[0] = 3
mujoco.mj_forward(m, d)
plant = MultibodyPlant(0.0)
Parser(plant).AddModels("motor.xml")
plant.mutable_gravity_field().set_gravity_vector(np.zeros(3))
plant.Finalize()
context = plant.CreateDefaultContext()
plant.get_actuation_input_port().FixValue(context, [3.0])
rate = plant.EvalTimeDerivatives(context).get_generalized_velocity().GetAtIndex(0)
actuator = plant.GetJointActuatorByName("motor")
print("Drake: gear ratio", actuator.default_gear_ratio(), " effort limit", actuator.effort_limit())
print(f"acceleration for the command 3: MuJoCo {d.qacc[0]:.3f}, Drake {rate:.3f} rad/s^2")
assert abs(d.qacc[0] / rate - 4) < 1e-6
END
