#!/bin/sh
# Tools: MuJoCo 4.0.0
# Behaviour: gravcomp="-1" on a body doubles its weight, but only if the gravcomp of some body of the model is above
#   zero, on whichever tree. In a model where all are zero or below, it has no effect and nothing is told.
# Consequence: a model of heavier gravity by a negative gravcomp changes when another body is compensated, or no longer.
#   Give the body more mass and inertia, or write a force.
# Source: MuJoCo documentation, XML reference, body/gravcomp, which gives the fraction of the weight that is carried
# Seen:
#   torque on the arm, the wheel with gravcomp 0, -1 and 0.001: 0.0, 0.0 and 7.848 N m
. "$(dirname "$0")/common.sh"
needs mujoco==4.0.0
"$python" -I - <<'END'
import mujoco

FILE = """<mujoco><worldbody>
  <body gravcomp="-1"><joint name="arm" axis="0 1 0"/><geom size=".1" mass="2" pos=".4 0 0"/></body>
  <body pos="0 2 0" gravcomp="{}"><joint name="wheel" axis="0 0 1"/><geom size=".1" mass="1"/></body>
</worldbody></mujoco>"""


def torque(wheel):
    """The torque on the arm that gravcomp exerts."""
    m = mujoco.MjModel.from_xml_string(FILE.format(wheel))
    d = mujoco.MjData(m)
    mujoco.mj_forward(m, d)
    return round(float(d.qfrc_gravcomp[0]), 3)


none, below, above = map(torque, (0, -1, 0.001))
print(f"torque on the arm, the wheel with gravcomp 0, -1 and 0.001: {none}, {below} and {above} N m")
assert none == below == 0 and abs(above - 7.848) < 1e-9
END
