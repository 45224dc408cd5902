#!/bin/sh
# Tools: Drake 1.51.1
# Behaviour: a universal joint of SDF has a damper about each of its two axes. Drake gives both of them the damping of
#   the first one, with a warning, and leaves out the springs and limits of both without a word.
# Consequence: a gimbal whose axes have 0.3 and 0.7 N m s/rad loses the second figure, and springs that centre it.
#   Write two revolute joints with a link between them, or add dampers and springs by hand.
# Source: SDFormat specification 1.9, joint/axis2/dynamics, joint/axis/dynamics/spring_stiffness, joint/axis/limit
# Seen:
#   dampers 0.3 and 0.3, limits -inf to inf, nothing moves at 0.5 rad: 0.0 rad/s^2
. "$(dirname "$0")/common.sh"
needs drake==1.51.1
cat > gimbal.sdf <<'END'
<sdf version="1.9"><model name="gimbal"><link name="ring"><inertial><mass>1</mass>
  <inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz><ixy>0</ixy><ixz>0</ixz><iyz>0</iyz></inertia></inertial></link>
  <joint name="cross" type="universal"><parent>world</parent><child>ring</child>
  <axis><xyz>1 0 0</xyz><limit><lower>-1</lower><upper>1</upper></limit>
    <dynamics><damping>.3</damping><spring_stiffness>9</spring_stiffness></dynamics></axis>
  <axis2><xyz>0 1 0</xyz><limit><lower>-1</lower><upper>1</upper></limit>
    <dynamics><damping>.7</damping><spring_stiffness>9</spring_stiffness></dynamics></axis2></joint></model></sdf>
END
"$python" -I - 2> warnings <<'END'
from pydrake.all import MultibodyPlant, Parser

plant = MultibodyPlant(0.0)
Parser(plant).AddModels("gimbal.sdf")
plant.Finalize()
joint, context = plant.GetJointByName("cross"), plant.CreateDefaultContext()
plant.SetPositions(context, [0.5, 0.0])
rate = plant.EvalTimeDerivatives(context).get_generalized_velocity().GetAtIndex(0)
first, second = joint.default_damping_vector()
low, high = joint.position_lower_limits()[0], joint.position_upper_limits()[0]
print(f"dampers {first} and {second}, limits {low} to {high}, nothing moves at 0.5 rad: {abs(rate)} rad/s^2")
assert first == second == 0.3 and rate == 0 and high == float("inf")
END
grep -q "must be equal for both axes" warnings
if grep -qi "spring\|position" warnings; then exit 1; fi
