#!/bin/sh
# Tools: Drake 1.51.1 and DART 6.20.0 (dartpy)
# Behaviour: for one screw joint of an SDF file with thread_pitch 0.1, one radian moves the nut by -10 m in Drake, and
#   by 0.1 m a turn in DART. Drake takes the number as radians per metre, with the sign reversed, as libsdformat does;
#   it warns that the element is deprecated and that it ignores it, and uses it. The newer screw_thread_pitch is in
#   metres a turn.
# Consequence: a screw that works in one simulator runs off in the other. Renaming the element without converting its
#   value p changes the motion in Drake by the factor -2 pi / p^2, here -628.
# Source: SDFormat specification 1.10, joint/thread_pitch and joint/screw_thread_pitch
# Seen:
#   thread_pitch 0.1: one radian moves the nut by -10.0000 m in Drake, 0.0159 m in DART
#   screw_thread_pitch 0.1: by 0.0159 m in Drake
#   SDF Element[thread_pitch] is deprecated
#   Ignoring unsupported SDFormat element in joint: thread_pitch
. "$(dirname "$0")/common.sh"
needs drake==1.51.1 dartpy==6.20.0
"$python" -I - 2> warnings <<'END'
from math import pi
from pathlib import Path

import dartpy as dart
from pydrake.all import MultibodyPlant, Parser

INERTIAL = """<inertial><mass>1</mass>
  <inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz><ixy>0</ixy><ixz>0</ixz><iyz>0</iyz></inertia></inertial>"""
FILE = """<sdf version="{0}"><model name="press"><link name="frame">{2}</link><link name="nut">{2}</link>
  <joint name="base" type="fixed"><parent>world</parent><child>frame</child></joint>
  <joint name="screw" type="screw"><parent>frame</parent><child>nut</child>
    <{1}>0.1</{1}><axis><xyz>0 0 1</xyz></axis></joint></model></sdf>"""


def in_drake():
    """Travel of the nut in one radian."""
    plant = MultibodyPlant(0.0)
    Parser(plant).AddModels("screw.sdf")
    plant.Finalize()
    context = plant.CreateDefaultContext()
    plant.SetPositions(context, [1.0])
    return float(plant.EvalBodyPoseInWorld(context, plant.GetBodyByName("nut")).translation()[2])


Path("screw.sdf").write_text(FILE.format("1.10", "screw_thread_pitch", INERTIAL))
new = in_drake()
Path("screw.sdf").write_text(FILE.format("1.6", "thread_pitch", INERTIAL))
old = in_drake()
robot = dart.utils.SdfParser.readSkeleton(dart.common.Uri.createFromPath(str(Path("screw.sdf").resolve())))
robot.setPosition(robot.getNumDofs() - 1, 1.0)
there = float(robot.getBodyNode("nut").getWorldTransform().translation()[2])
print(f"thread_pitch 0.1: one radian moves the nut by {old:.4f} m in Drake, {there:.4f} m in DART")
print(f"screw_thread_pitch 0.1: by {new:.4f} m in Drake")
turn = 0.1 / (2 * pi)
assert abs(old + 10) < 1e-9 and abs(new - turn) < 1e-9 and abs(there - turn) < 1e-9
END
grep -o "SDF Element.thread_pitch. is deprecated" warnings
grep -o "Ignoring unsupported SDFormat element in joint: thread_pitch" warnings
