#!/bin/sh
# Tools: Pinocchio 4.1.0, beside MuJoCo 4.0.0
# Behaviour: in an MJCF file in degrees, the default, Pinocchio converts the range of slide joints, too, as if metres
#   were degrees. With compiler angle="radian" it does not.
# Consequence: linear axes and grippers get limits 57 times too narrow, and the limits change when somebody changes
#   the unit of angles. Compare lowerPositionLimit with the file.
# Source: MuJoCo documentation, XML reference: joint/range, compiler/angle
# Seen:
#   degree: upper limit 0.7 m in MuJoCo, 0.01222 m in Pinocchio
#   radian: upper limit 0.7 m in MuJoCo, 0.7 m in Pinocchio
. "$(dirname "$0")/common.sh"
needs mujoco==4.0.0 pin==4.1.0
"$python" -I - <<'END'
from pathlib import Path

import mujoco
import pinocchio as pin

FILE = """<mujoco><compiler angle="{}"/><worldbody>
  <body name="slide"><joint type="slide" axis="1 0 0" range="-.4 .7"/><geom size=".1"/></body></worldbody></mujoco>"""
seen = {}
for unit in ("degree", "radian"):
    Path("axis.xml").write_text(FILE.format(unit))
    m, p = mujoco.MjModel.from_xml_path("axis.xml"), pin.buildModelFromMJCF("axis.xml")
    seen[unit] = round(float(p.upperPositionLimit[0]), 5)
    print(f"{unit}: upper limit {m.jnt_range[0, 1]} m in MuJoCo, {seen[unit]} m in Pinocchio")
assert seen == {"degree": 0.01222, "radian": 0.7}
END
