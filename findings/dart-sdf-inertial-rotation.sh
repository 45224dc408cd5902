#!/bin/sh
# Tools: DART 6.20.0 (dartpy), beside Drake 1.51.1
# Behaviour: the pose of <inertial> in SDF has a rotation, which turns the axes of the moments. DART takes the place
#   of the pose and ignores its rotation. No warning.
# Consequence: mass and mass centre are right, and links that are modelled along one axis and turned by the pose have
#   their moments about the wrong axes. Write the inertia along the axes of the link, with products.
# Source: SDFormat specification 1.6, link/inertial/pose
# Seen:
#   inertia of the hinge: 0.5 kg m^2 in Drake, 0.01 in DART
. "$(dirname "$0")/common.sh"
needs dartpy==6.20.0 drake==1.51.1
cat > rod.sdf <<'END'
<sdf version="1.6"><model name="rod"><link name="rod"><inertial><pose>0 0 0 1.5707963267948966 0 0</pose><mass>1</mass>
  <inertia><ixx>.5</ixx><iyy>.5</iyy><izz>.01</izz><ixy>0</ixy><ixz>0</ixz><iyz>0</iyz></inertia></inertial></link>
  <joint name="hinge" type="revolute"><parent>world</parent><child>rod</child><axis><xyz>0 0 1</xyz></axis></joint>
</model></sdf>
END
"$python" -I - <<'END'
from pathlib import Path

import dartpy as dart
from pydrake.all import MultibodyPlant, Parser

plant = MultibodyPlant(0.0)
Parser(plant).AddModels("rod.sdf")
plant.Finalize()
drake = round(float(plant.CalcMassMatrix(plant.CreateDefaultContext())[0, 0]), 4)
robot = dart.utils.SdfParser.readSkeleton(dart.common.Uri.createFromPath(str(Path("rod.sdf").resolve())))
there = round(float(robot.getMassMatrix()[0, 0]), 4)
print(f"inertia of the hinge: {drake} kg m^2 in Drake, {there} in DART")
assert (drake, there) == (0.5, 0.01)
END
