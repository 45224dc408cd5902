#!/bin/sh
# Tools: DART 6.20.0 (dartpy), beside Drake 1.51.1
# Behaviour: the axis of a joint is along the axes of the model in SDF 1.4, and along those of the joint's frame, by
#   default the child's, from 1.5 on. Drake follows the version of the file. DART reads both like 1.5.
# Consequence: in files of 1.4 the hinges of turned links are about other axes in DART, without a message. Changing
#   the version number by hand changes the machine for Drake. Compare a velocity or a pose at a nonzero angle.
# Source: SDFormat specifications 1.4 and 1.5, joint/axis/xyz and use_parent_model_frame
# Seen:
#   1.4 axis in the world: Drake [1. 0. 0.]  DART [0. 1. 0.]
#   1.6 axis in the world: Drake [0. 1. 0.]  DART [0. 1. 0.]
. "$(dirname "$0")/common.sh"
needs drake==1.51.1 dartpy==6.20.0
"$python" -I - <<'END'
from pathlib import Path

import dartpy as dart
from pydrake.all import MultibodyPlant, Parser

INERTIA = """<inertial><mass>1</mass>
  <inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz><ixy>0</ixy><ixz>0</ixz><iyz>0</iyz></inertia></inertial>"""
FILE = """<sdf version="{}"><model name="arm"><link name="arm">
  <pose>0 0 0 0 0 1.5707963267948966</pose>{}</link>
  <joint name="hinge" type="revolute"><parent>world</parent><child>arm</child><axis><xyz>1 0 0</xyz></axis></joint>
</model></sdf>"""
seen = []
for version in ("1.4", "1.6"):
    Path("arm.sdf").write_text(FILE.format(version, INERTIA))
    plant = MultibodyPlant(0.0)
    Parser(plant).AddModels("arm.sdf")
    plant.Finalize()
    context = plant.CreateDefaultContext()
    plant.SetVelocities(context, [1.0])
    drake = plant.EvalBodySpatialVelocityInWorld(context, plant.GetBodyByName("arm")).rotational()
    robot = dart.utils.SdfParser.readSkeleton(dart.common.Uri.createFromPath(str(Path("arm.sdf").resolve())))
    robot.setVelocity(0, 1.0)
    there = robot.getBodyNode("arm").getAngularVelocity()
    seen += [drake.round(6).tolist(), there.round(6).tolist()]
    print(version, "axis in the world: Drake", drake.round(3) + 0.0, " DART", there.round(3) + 0.0)
assert seen == [[1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 1, 0]]
END
