#!/bin/sh
# Tools: Pinocchio 4.1.0, beside MuJoCo 4.0.0
# Behaviour: Pinocchio reads type and size of a geom from its default class, but not its mass, and of a joint not its
#   place (pos). Without a word it computes the mass from the density of water, 1000, and puts the joint at the origin
#   of its body. The same attributes on the element itself are read.
# Consequence: decoration that models make massless by a class, as in <default class="visual"><geom
#   mass="0"/></default>, weighs as much as water. Compare the sum of the masses with MuJoCo's.
# Source: MuJoCo documentation, XML reference: default, body/geom mass, body/joint pos
# Seen:
#   by class: MuJoCo 2.0 kg, hinge at z = 0.2; Pinocchio 18.0 kg, z = 0.0
#   by element: MuJoCo 2.0 kg, hinge at z = 0.2; Pinocchio 2.0 kg, z = 0.2
. "$(dirname "$0")/common.sh"
needs mujoco==4.0.0 pin==4.1.0
"$python" -I - <<'END'
from pathlib import Path

import mujoco
import pinocchio as pin

FILE = """<mujoco><default>
  <default class="shell"><geom type="box" size=".1 .1 .2" {0}/></default>
  <default class="hip"><joint axis="0 1 0" {1}/></default>
</default><worldbody><body name="leg"><joint class="hip" {3}/>
  <geom size=".05" mass="2" pos="0 0 -.3"/><geom class="shell" {2}/></body></worldbody></mujoco>"""
VALUES = 'mass="0"', 'pos="0 .1 .2"'


def both(*values):
    """Mass of the leg in MuJoCo and in Pinocchio, and height of its hinge in both."""
    Path("leg.xml").write_text(FILE.format(*values))
    m, p = mujoco.MjModel.from_xml_path("leg.xml"), pin.buildModelFromMJCF("leg.xml")
    masses = float(m.body_mass[1]), round(float(p.inertias[1].mass), 6)
    return *masses, float(m.jnt_pos[0, 2]), float(p.jointPlacements[1].translation[2])


by_class, by_element = both(*VALUES, "", ""), both("", "", *VALUES)
for name, (mass, other, height, place) in (("class", by_class), ("element", by_element)):
    print(f"by {name}: MuJoCo {mass} kg, hinge at z = {height}; Pinocchio {other} kg, z = {place}")
assert by_class == (2, 18, 0.2, 0) and by_element == (2, 2, 0.2, 0.2)
END
