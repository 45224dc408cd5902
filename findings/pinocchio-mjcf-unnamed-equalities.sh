#!/bin/sh
# Tools: Pinocchio 4.1.0, beside MuJoCo 4.0.0
# Behaviour: the name of an <equality> element is optional. Of several without a name between the same two bodies
#   Pinocchio keeps the first and drops the others without a word.
# Consequence: a hinge that closes a loop is written in MJCF as two <connect> on its axis: Pinocchio reads one ball
#   joint. A <connect> after a <weld> of the same bodies is lost, too. Name every equality, and compare their number
#   with MuJoCo's neq.
# Source: MuJoCo documentation, XML reference: equality (name is optional)
# Seen:
#   constraints in MuJoCo and in Pinocchio: with names (2, 2)  without (2, 1)
. "$(dirname "$0")/common.sh"
needs mujoco==4.0.0 pin==4.1.0
"$python" -I - <<'END'
from pathlib import Path

import mujoco
import pinocchio as pin

LINK = '<body name="{0}" pos="0 0 .3"><joint axis="0 1 0"/><geom type="capsule" size=".02" fromto="0 0 0 0 0 .3"/>{1}</body>'
TREE = LINK.format("a", LINK.format("b", LINK.format("c", "")))
HINGE = '<connect {} body1="a" body2="c" anchor=".1 0 0"/><connect {} body1="a" body2="c" anchor=".1 .2 0"/>'


def constraints(*names):
    Path("robot.xml").write_text(f"<mujoco><worldbody>{TREE}</worldbody><equality>{HINGE.format(*names)}</equality></mujoco>")
    points, frames = pin.buildModelAndConstraintsFromMJCF("robot.xml")[1:3]
    return mujoco.MjModel.from_xml_path("robot.xml").neq, len(points) + len(frames)


named, unnamed = constraints('name="first"', 'name="second"'), constraints("", "")
print("constraints in MuJoCo and in Pinocchio: with names", named, " without", unnamed)
assert named == (2, 2) and unnamed == (2, 1)
END
