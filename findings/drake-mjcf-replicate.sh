#!/bin/sh
# Tools: Drake 1.51.1, beside MuJoCo 4.0.0
# Behaviour: Drake drops <replicate> with all that stands in it, and says nothing. For other elements that it lacks,
#   as <frame>, it prints "currently unsupported and will be ignored".
# Consequence: no warning is no proof that the file was read. Wheels lose their weights, hands their fingers, chains
#   their links. Compare the total mass and the degrees of freedom with MuJoCo's.
# Source: MuJoCo documentation, XML reference: replicate
# Seen:
#   mass in MuJoCo and Drake: weights in a replicate (3.0, 1.0)  in a frame (1.4, 1.0)
#   The tag 'frame' found as a child of 'body' is currently unsupported and will be ignored
. "$(dirname "$0")/common.sh"
needs mujoco==4.0.0 drake==1.51.1
"$python" -I - 2> warnings <<'END'
from pathlib import Path

import mujoco
from pydrake.all import MultibodyPlant, Parser

WEIGHT = '<geom size=".05" mass=".4" pos=".3 0 0"/>'
FILE = """<mujoco model="wheel"><worldbody><body name="wheel"><joint axis="0 0 1"/><geom size=".1" mass="1"/>
  {}</body></worldbody></mujoco>"""


def masses(name, parts):
    """Mass in MuJoCo and in Drake."""
    Path(f"{name}.xml").write_text(FILE.format(parts))
    plant = MultibodyPlant(0.0)
    Parser(plant).AddModels(f"{name}.xml")
    plant.Finalize()
    total = mujoco.MjModel.from_xml_path(f"{name}.xml").body_mass.sum()
    return round(float(total), 9), round(plant.CalcTotalMass(plant.CreateDefaultContext()), 9)


copies = masses("copies", f'<replicate count="5" euler="0 0 72">{WEIGHT}</replicate>')
frame = masses("frame", f"<frame>{WEIGHT}</frame>")
print("mass in MuJoCo and Drake: weights in a replicate", copies, " in a frame", frame)
assert copies == (3, 1) and frame == (1.4, 1)
END
grep -o "The tag 'frame'.*will be ignored" warnings
! grep -q replicate warnings
