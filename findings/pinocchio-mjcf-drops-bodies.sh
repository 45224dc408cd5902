#!/bin/sh
# Tools: Pinocchio 4.1.0, beside MuJoCo 4.0.0
# Behaviour: Pinocchio reads the first body of the worldbody only, and nothing that stands in a <frame>. It says
#   nothing.
# Consequence: of two arms side by side one is left, of a mechanism whose chains all start at the world, as parallel
#   robots, one chain. Compare nv and the total mass with MuJoCo's; write frames out, and put the chains into one body
#   without joint.
# Source: MuJoCo documentation, XML reference: worldbody, frame
# Seen:
#   two arms: joints and mass in MuJoCo (2, 4.0), in Pinocchio (1, 2.0)
#   a forearm in a frame: joints and mass in MuJoCo (2, 3.0), in Pinocchio (1, 2.0)
. "$(dirname "$0")/common.sh"
needs mujoco==4.0.0 pin==4.1.0
"$python" -I - <<'END'
from pathlib import Path

import mujoco
import pinocchio as pin

ARM = '<body name="{0}" pos="{1} 0 1"><joint axis="0 1 0"/><geom size=".1" mass="2"/>{2}</body>'
FOREARM = '<body name="forearm"><joint axis="0 1 0"/><geom size=".1" mass="1"/></body>'
FILES = {
    "two arms": ARM.format("left", 0, "") + ARM.format("right", 1, ""),
    "a forearm in a frame": ARM.format("left", 0, f'<frame pos="0 0 .5">{FOREARM}</frame>'),
}
seen = {}
for name, bodies in FILES.items():
    Path("robot.xml").write_text(f"<mujoco><worldbody>{bodies}</worldbody></mujoco>")
    m, p = mujoco.MjModel.from_xml_path("robot.xml"), pin.buildModelFromMJCF("robot.xml")
    seen[name] = (m.nv, float(m.body_mass.sum())), (p.nv, sum(i.mass for i in p.inertias))
    print(f"{name}: joints and mass in MuJoCo {seen[name][0]}, in Pinocchio {seen[name][1]}")
assert seen == {"two arms": ((2, 4), (1, 2)), "a forearm in a frame": ((2, 3), (1, 2))}
END
