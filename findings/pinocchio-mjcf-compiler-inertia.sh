#!/bin/sh
# Tools: Pinocchio 4.1.0, beside MuJoCo 4.0.0
# Behaviour: of the attributes of <compiler> that change masses and moments, boundmass, boundinertia, balanceinertia
#   and inertiagrouprange have no effect in Pinocchio, and it does not say so.
# Consequence: decoration in a group of its own weighs, and links with tiny inertias stay tiny. Save the file once by
#   MuJoCo, which writes the resulting <inertial> elements, and read that.
# Source: MuJoCo documentation, XML reference: compiler
# Seen:
#   boundmass="2": MuJoCo 2.0 kg, 0.0040 kg m^2; Pinocchio 1.0 kg, 0.0040 kg m^2
#   boundinertia=".5": MuJoCo 1.0 kg, 0.5000 kg m^2; Pinocchio 1.0 kg, 0.0040 kg m^2
#   inertiagrouprange="0 2": MuJoCo 1.0 kg, 0.0040 kg m^2; Pinocchio 5.0 kg, 0.0680 kg m^2
#   balanceinertia="true": MuJoCo 1.0 kg, 0.2167 kg m^2; Pinocchio 1.0 kg, 0.3500 kg m^2
. "$(dirname "$0")/common.sh"
needs mujoco==4.0.0 pin==4.1.0
"$python" -I - <<'END'
from pathlib import Path

import mujoco
import pinocchio as pin

FILE = """<mujoco><compiler {}/><worldbody><body name="arm"><joint axis="0 1 0"/>{}</body></worldbody></mujoco>"""
BALL, SHELL = '<geom size=".1" mass="1"/>', '<geom size=".2" mass="4" group="3"/>'
PLATE = '<inertial pos="0 0 0" mass="1" diaginertia=".1 .2 .35"/>'
CASES = {
    'boundmass="2"': BALL,
    'boundinertia=".5"': BALL,
    'inertiagrouprange="0 2"': BALL + SHELL,
    'balanceinertia="true"': PLATE,
}
for attribute, parts in CASES.items():
    Path("arm.xml").write_text(FILE.format(attribute, parts))
    m, p = mujoco.MjModel.from_xml_path("arm.xml"), pin.buildModelFromMJCF("arm.xml")
    pair = (float(m.body_mass[1]), m.body_inertia[1].max()), (p.inertias[1].mass, p.inertias[1].inertia.max())
    print(f"{attribute}: MuJoCo {pair[0][0]} kg, {pair[0][1]:.4f} kg m^2; Pinocchio {pair[1][0]} kg, {pair[1][1]:.4f} kg m^2")
    assert max(abs(a - b) for a, b in zip(*pair, strict=True)) > 0.01
END
