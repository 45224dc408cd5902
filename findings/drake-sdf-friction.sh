#!/bin/sh
# Tools: Drake 1.51.1, beside DART 6.20.0 (dartpy)
# Behaviour: Drake has no friction in joints. For <friction> of a URDF file it says so; that of an SDF file it leaves
#   out without a word, though it reads damping and spring of the same element. DART reads it.
# Consequence: an arm that stands by its friction falls in Drake. Add the friction by hand, and do not take the
#   absence of warnings for a sign that the file was read.
# Source: SDFormat specification 1.6, joint/axis/dynamics/friction
# Seen:
#   Drake: damping 0.2, the arm falls from rest with 14.01 rad/s^2; DART: friction of 9.0 N m
. "$(dirname "$0")/common.sh"
needs drake==1.51.1 dartpy==6.20.0
cat > arm.sdf <<'END'
<sdf version="1.6"><model name="arm"><link name="arm"><inertial><pose>.5 0 0 0 0 0</pose><mass>1</mass>
  <inertia><ixx>.1</ixx><iyy>.1</iyy><izz>.1</izz><ixy>0</ixy><ixz>0</ixz><iyz>0</iyz></inertia></inertial></link>
  <joint name="hinge" type="revolute"><parent>world</parent><child>arm</child><axis><xyz>0 1 0</xyz>
  <dynamics><damping>.2</damping><friction>9</friction></dynamics></axis></joint></model></sdf>
END
"$python" -I - 2> warnings <<'END'
from pathlib import Path

import dartpy as dart
from pydrake.all import MultibodyPlant, Parser

plant = MultibodyPlant(0.0)
Parser(plant).AddModels("arm.sdf")
plant.Finalize()
context = plant.CreateDefaultContext()
plant.get_actuation_input_port().FixValue(context, [0.0])
rate = plant.EvalTimeDerivatives(context).get_generalized_velocity().GetAtIndex(0)
damping = plant.GetJointByName("hinge").default_damping_vector()[0]
robot = dart.utils.SdfParser.readSkeleton(dart.common.Uri.createFromPath(str(Path("arm.sdf").resolve())))
friction = robot.getJoint(0).getCoulombFriction(0)
print(f"Drake: damping {damping}, the arm falls from rest with {rate:.2f} rad/s^2; DART: friction of {friction} N m")
assert damping == 0.2 and rate > 10 and friction == 9
END
test ! -s warnings
