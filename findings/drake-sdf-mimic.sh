#!/bin/sh
# Tools: Drake 1.51.1
# Behaviour: SDFormat 1.11 couples joints by <mimic> in <axis>. Drake reads such a file without a warning and without
#   the coupling: it knows only its own <drake:mimic>. From a URDF file it reads the plain <mimic>.
# Consequence: a gripper that works in URDF has a loose finger after it was converted to SDF, with an actuator of its
#   own. Add <drake:mimic> to the file, or a coupler constraint to the plant, and count num_constraints().
# Source: SDFormat specification 1.11, joint/axis/mimic; Drake, parsing of drake:mimic
# Seen:
#   sdf: 3 joints, 2 actuators, 0 constraints
#   urdf: 3 joints, 0 actuators, 1 constraints
. "$(dirname "$0")/common.sh"
needs drake==1.51.1
"$python" -I -  <<'END'
from pydrake.all import DiscreteContactApproximation, MultibodyPlant, Parser

MIMIC = "<mimic joint='left'><multiplier>-1</multiplier><offset>0</offset><reference>0</reference></mimic>"
INERTIA = "<inertial><mass>1</mass><inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz></inertia></inertial>"


def sdf_finger(name, mimic):
    return f"""<link name='{name} finger'>{INERTIA}</link><joint name='{name}' type='prismatic'>
      <parent>palm</parent><child>{name} finger</child><axis><xyz>1 0 0</xyz>{mimic}</axis></joint>"""


def urdf_finger(name, mimic):
    return f"""<link name="{name}"/><joint name="{name}" type="prismatic"><parent link="palm"/><child link="{name}"/>
      <axis xyz="1 0 0"/>{mimic}<limit lower="0" upper="1" effort="9" velocity="9"/></joint>"""


SDF = f"""<sdf version='1.11'><model name='gripper'><link name='palm'>{INERTIA}</link>
  {sdf_finger("left", "")}{sdf_finger("right", MIMIC)}</model></sdf>"""
URDF = f"""<robot name="gripper"><link name="palm"/>
  {urdf_finger("left", "")}{urdf_finger("right", '<mimic joint="left" multiplier="-1"/>')}</robot>"""
seen = {}
for kind, text in (("sdf", SDF), ("urdf", URDF)):
    plant = MultibodyPlant(0.001)
    plant.set_discrete_contact_approximation(DiscreteContactApproximation.kSap)
    Parser(plant).AddModelsFromString(text, kind)
    plant.Finalize()
    seen[kind] = plant.num_constraints()
    print(f"{kind}: {plant.num_joints()} joints, {plant.num_actuators()} actuators, {seen[kind]} constraints")
assert seen == {"sdf": 0, "urdf": 1}
END
test ! -s warnings
