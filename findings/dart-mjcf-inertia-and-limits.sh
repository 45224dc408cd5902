#!/bin/sh
# Tools: DART 6.20.0 (dartpy), beside MuJoCo 4.0.0
# Behaviour: every body that DART reads from an MJCF file has the moments of inertia 1, 1, 1 kg m^2, whatever its
#   <inertial> or its geoms say; the mass is right. Ranges of hinges stay in degrees, and a hinge without a range has
#   the limits [0, 0]. No warning.
# Consequence: the robot weighs what it should, and moves hundreds of times too slowly, or not at all. Set inertias
#   and limits by hand, or use a URDF file.
# Source: MuJoCo documentation, XML reference: body/inertial, joint/range
# Seen:
#   a in MuJoCo: 1.0 kg, moments [0.004 0.004 0.004]
#   a in DART: 1.0 kg, moments [1.0, 1.0, 1.0], limits [-60.0, 60.0]
#   b in MuJoCo: 2.0 kg, moments [0.1 0.2 0.3]
#   b in DART: 2.0 kg, moments [1.0, 1.0, 1.0], limits [0.0, 0.0]
. "$(dirname "$0")/common.sh"
needs mujoco==4.0.0 dartpy==6.20.0
cat > robot.xml <<'END'
<mujoco model="robot"><worldbody>
  <body name="a" pos="0 0 0"><joint name="a" axis="0 1 0" range="-60 60"/><geom size=".1" mass="1"/>
    <body name="b" pos="0 0 1"><joint name="b" axis="0 1 0"/><inertial pos="0 0 0" mass="2" diaginertia=".1 .2 .3"/>
    <geom size=".1"/></body></body>
</worldbody></mujoco>
END
"$python" -I - <<'END'
from pathlib import Path

import dartpy as dart
import mujoco

m = mujoco.MjModel.from_xml_path("robot.xml")
robot = dart.utils.MjcfParser.readWorld(dart.common.Uri.createFromPath(str(Path("robot.xml").resolve()))).getSkeleton(0)
seen = []
for i, name in enumerate("ab"):
    body = next(x for x in robot.getBodyNodes() if x.getName() == name)
    moments = body.getInertia().getMoment().diagonal().round(6).tolist()
    hinge = body.getParentJoint()
    bounds = [float(hinge.getPositionLowerLimit(0)), float(hinge.getPositionUpperLimit(0))]
    seen.append((body.getMass(), moments, bounds))
    print(f"{name} in MuJoCo: {m.body_mass[i + 1]} kg, moments {m.body_inertia[i + 1].round(6)}")
    print(f"{name} in DART: {body.getMass()} kg, moments {moments}, limits {bounds}")
assert seen == [(1, [1, 1, 1], [-60, 60]), (2, [1, 1, 1], [0, 0])]
END
