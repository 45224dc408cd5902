#!/bin/sh
# Tools: MuJoCo 4.0.0
# Behaviour: in a file in degrees, the ranges of limited hinges become radians in the compiled model. The range of a
#   hinge whose limit is switched off by limited="false" stays in degrees.
# Consequence: one array, jnt_range, holds both units. Code that draws starting poses from it, or copies it into
#   another format, has to look at jnt_limited, or is wrong by a factor of 57.
# Source: MuJoCo documentation, XML reference: joint/limited, joint/range, compiler/angle
# Seen:
#   limited [-0.5236, 0.7854]
#   unlimited [-30.0, 45.0]
. "$(dirname "$0")/common.sh"
needs mujoco==4.0.0
"$python" -I - <<'END'
import mujoco

HINGE = '<body><joint axis="0 1 0" limited="{}" range="-30 45"/><geom size=".1"/></body>'
m = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{HINGE.format('true')}{HINGE.format('false')}</worldbody></mujoco>")
for limited, bounds in zip(m.jnt_limited, m.jnt_range, strict=True):
    print("limited" if limited else "unlimited", [round(float(x), 4) for x in bounds])
assert m.jnt_range[0, 1] < 0.8 and list(m.jnt_range[1]) == [-30, 45]
END
