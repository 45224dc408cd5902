#!/bin/sh
# Tools: MuJoCo 4.0.0
# Behaviour: gravcomp="1" on a body makes it weightless. With actuatorgravcomp="true" on its joint the torque that
#   does so counts as the force of an actuator, and acts only if the model has an actuator, on whichever joint. An arm
#   without one falls, although qfrc_gravcomp holds the full torque; a motor on a joint of another body makes it
#   float. The limit actuatorfrcrange of the joint bounds the torque, too.
# Consequence: deleting the motors of a file, for identification or inverse dynamics, changes its gravity, and
#   qfrc_gravcomp does not tell. Without actuatorgravcomp the torque always acts.
# Source: MuJoCo documentation, XML reference: body/gravcomp, joint/actuatorgravcomp, joint/actuatorfrcrange
# Seen:
#   no actuator (acceleration, torque): (23.927, -7.848)
#   a motor on the wheel: (0.0, -7.848)
#   the same, actuatorfrcrange of 2 N m: (17.829, -7.848)
#   without actuatorgravcomp: (0.0, -7.848)
. "$(dirname "$0")/common.sh"
needs mujoco==4.0.0
"$python" -I - <<'END'
import mujoco

FILE = """<mujoco><worldbody>
  <body gravcomp="1"><joint name="arm" axis="0 1 0" actuatorgravcomp="{0}" {1}/><geom size=".1" mass="2" pos=".4 0 0"/></body>
  <body pos="0 2 0"><joint name="wheel" axis="0 0 1"/><geom size=".1" mass="1"/></body>
</worldbody>{2}</mujoco>"""
MOTOR = '<actuator><motor joint="wheel"/></actuator>'


def arm(flag, limit="", motor=""):
    """Acceleration of the arm, and its compensating torque."""
    m = mujoco.MjModel.from_xml_string(FILE.format(flag, limit, motor))
    d = mujoco.MjData(m)
    mujoco.mj_forward(m, d)
    return round(float(d.qacc[0]), 3), round(float(d.qfrc_gravcomp[0]), 3)


alone, driven = arm("true"), arm("true", motor=MOTOR)
limited, passive = arm("true", 'actuatorfrcrange="-2 2"', MOTOR), arm("false")
print("no actuator (acceleration, torque):", alone)
print("a motor on the wheel:", driven)
print("the same, actuatorfrcrange of 2 N m:", limited)
print("without actuatorgravcomp:", passive)
assert alone[0] > 20 and alone[1] == -7.848 and driven[0] == 0 and limited[0] > 15 and passive[0] == 0
END
