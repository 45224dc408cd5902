#!/bin/sh
# Tools: Drake 1.51.1, beside MuJoCo 4.0.0
# Behaviour: Drake reads the armature of an MJCF joint into the actuator that drives it. A joint without an actuator,
#   or with one of a kind that Drake does not read, as <velocity>, loses its armature; for the armature there is no
#   warning.
# Consequence: passive joints behind gears or springs, and the driven ones of a file whose actuators were taken out,
#   have another inertia than in MuJoCo. Compare the mass matrices.
# Source: MuJoCo documentation, XML reference: joint/armature; Drake, class JointActuator: reflected inertia
# Seen:
#   motor: inertia of the joint 0.954 in MuJoCo, 0.954 kg m^2 in Drake
#   velocity: inertia of the joint 0.954 in MuJoCo, 0.254 kg m^2 in Drake
#   no actuator: inertia of the joint 0.954 in MuJoCo, 0.254 kg m^2 in Drake
. "$(dirname "$0")/common.sh"
needs mujoco==4.0.0 drake==1.51.1
"$python" -I - 2> warnings <<'END'
import mujoco
import numpy as np
from pydrake.all import MultibodyPlant, Parser

FILE = """<mujoco model="arm"><worldbody><body name="arm"><joint name="j" axis="0 1 0" armature=".7"/>
  <geom size=".1" mass="1" pos=".5 0 0"/></body></worldbody>{}</mujoco>"""
CASES = {
    "motor": '<actuator><motor name="m" joint="j"/></actuator>',
    "velocity": '<actuator><velocity name="m" joint="j" kv="1"/></actuator>',
    "no actuator": "",
}
seen = {}
for name, actuator in CASES.items():
    text = FILE.format(actuator)
    m = mujoco.MjModel.from_xml_string(text)
    d = mujoco.MjData(m)
    mujoco.mj_forward(m, d)
    M = np.empty((1, 1))
    mujoco.mj_fullM(m, d, M)
    plant = MultibodyPlant(0.0)
    Parser(plant).AddModelsFromString(text, "xml")
    plant.Finalize()
    inertia = plant.CalcMassMatrix(plant.CreateDefaultContext())[0, 0]
    seen[name] = round(float(M[0, 0]), 3), round(float(inertia), 3)
    print(f"{name}: inertia of the joint {seen[name][0]} in MuJoCo, {seen[name][1]} kg m^2 in Drake")
assert seen == {"motor": (0.954, 0.954), "velocity": (0.954, 0.254), "no actuator": (0.954, 0.254)}
END
! grep -q armature warnings
