#!/bin/sh
# Tools: MuJoCo 4.0.0
# Behaviour: a <pid> actuator takes two controls, a position and a velocity to follow. nu counts controls, nactuator
#   counts actuators, and the control of an actuator behind a pid is no longer at the place of its id. In the model
#   below, ctrl[id of the motor] is the velocity that the pid of the other joint is to follow.
# Consequence: replacing a <position> by a <pid> moves the controls of all actuators behind it, without an error, as
#   ctrl is long enough. Use data.actuator(name).ctrl, or ctrl[model.actuator_ctrladr[id]].
# Source: MuJoCo documentation, XML reference: actuator/pid; mjModel.actuator_ctrladr
# Seen:
#   actuators: 2  controls: 3  id of the motor: 1  its control: 2
#   torque on j and k by ctrl[id] = 1: [2.0, 0.0]  by ctrl[actuator_ctrladr[id]] = 1: [0.0, 1.0]
. "$(dirname "$0")/common.sh"
needs mujoco==4.0.0
"$python" -I - <<'END'
import mujoco

m = mujoco.MjModel.from_xml_string("""<mujoco><worldbody>
  <body><joint name="j" axis="0 1 0"/><geom size=".1"/></body>
  <body pos="0 1 0"><joint name="k" axis="0 1 0"/><geom size=".1"/></body>
</worldbody><actuator><pid joint="j" kp="5" kv="2"/><motor name="motor" joint="k"/></actuator></mujoco>""")


def forces(place):
    d = mujoco.MjData(m)
    d.ctrl[place] = 1
    mujoco.mj_forward(m, d)
    return d.qfrc_actuator.tolist()


motor = m.actuator("motor").id
wrong, right = forces(motor), forces(m.actuator_ctrladr[motor])
print(
    "actuators:", m.nactuator, " controls:", m.nu, " id of the motor:", motor, " its control:", int(m.actuator_ctrladr[motor])
)
print("torque on j and k by ctrl[id] = 1:", wrong, " by ctrl[actuator_ctrladr[id]] = 1:", right)
assert (m.nactuator, m.nu) == (2, 3) and wrong == [2, 0] and right == [0, 1]
END
