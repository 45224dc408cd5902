#!/bin/sh
# Tools: Drake 1.51.1
# Behaviour: of the <dynamics> and <limit> of a screw joint of SDF, Drake reads the damping alone: spring_stiffness and the
#   limits are left out without a word. A slide with the same lines has both.
# Consequence: a lead screw with a spring does not return, and runs past its end. Add a spring on the screw by hand, or write
#   a slide whose mass is that of the screw and its turning inertia.
# Source: SDFormat specification 1.9, joint/axis/dynamics/spring_stiffness, joint/axis/limit
# Seen:
#   prismatic: limits -1.0 to 1.0, damping 2.0, acceleration at 0.5 -4.5
#   screw: limits -inf to inf, damping 2.0, acceleration at 0.5 0.0
. "$(dirname "$0")/common.sh"
needs drake==1.51.1
"$python" -I - 2> warnings <<'END'
from pydrake.all import MultibodyPlant, Parser

INERTIA = "<ixx>1</ixx><iyy>1</iyy><izz>1</izz><ixy>0</ixy><ixz>0</ixz><iyz>0</iyz>"
AXIS = """<axis><xyz>1 0 0</xyz><limit><lower>-1</lower><upper>1</upper></limit>
  <dynamics><damping>2</damping><spring_stiffness>9</spring_stiffness></dynamics></axis>"""


def seen(kind, pitch=""):
    plant = MultibodyPlant(0.0)
    Parser(plant).AddModelsFromString(f"""<sdf version="1.10"><model name="lead"><link name="nut"><inertial><mass>1</mass>
      <inertia>{INERTIA}</inertia></inertial></link><joint name="thread" type="{kind}"><parent>world</parent>
      <child>nut</child>{pitch}{AXIS}</joint></model></sdf>""", "sdf")
    plant.Finalize()
    joint, context = plant.GetJointByName("thread"), plant.CreateDefaultContext()
    plant.SetPositions(context, [0.5])
    rate = plant.EvalTimeDerivatives(context).get_generalized_velocity()[0]
    span = joint.position_lower_limits()[0], joint.position_upper_limits()[0]
    return *span, float(joint.default_damping_vector()[0]), float(rate) + 0.0


slide, screw = seen("prismatic"), seen("screw", "<screw_thread_pitch>0.1</screw_thread_pitch>")
words = [f"{what}: limits {x[0]} to {x[1]}, damping {x[2]}, acceleration at 0.5 {x[3]}" for what, x in (("prismatic", slide), ("screw", screw))]
print("\n".join(words))
assert slide == (-1, 1, 2, -4.5) and screw == (-float("inf"), float("inf"), 2, 0)
END
if grep -qi "spring\|limit" warnings; then exit 1; fi
