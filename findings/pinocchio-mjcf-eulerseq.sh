#!/bin/sh
# Tools: Pinocchio 4.1.0, beside MuJoCo 4.0.0
# Behaviour: compiler eulerseq in capitals, as "XYZ", means rotations about the axes of the parent, in small letters
#   about the axes that move along. Pinocchio reads capitals like small letters. No warning.
# Consequence: files converted from URDF, whose rpy is "XYZ", have their links turned wrongly as soon as two of the
#   three angles are not zero. Write quat.
# Source: MuJoCo documentation, XML reference: compiler/eulerseq
# Seen:
#   eulerseq xyz: the two turn the arm by 0.00 degrees apart
#   eulerseq XYZ: the two turn the arm by 26.10 degrees apart
. "$(dirname "$0")/common.sh"
needs mujoco==4.0.0 pin==4.1.0
"$python" -I - <<'END'
from pathlib import Path

import mujoco
import numpy as np
import pinocchio as pin

FILE = """<mujoco><compiler eulerseq="{}"/><worldbody><body name="base"><joint axis="0 1 0"/><geom size=".1"/>
  <body name="arm" euler="{}"><joint axis="0 1 0"/><geom size=".1"/></body></body></worldbody></mujoco>"""


def rotations(sequence, angles):
    """Rotation of the arm in MuJoCo and in Pinocchio."""
    Path("arm.xml").write_text(FILE.format(sequence, angles))
    m, p = mujoco.MjModel.from_xml_path("arm.xml"), pin.buildModelFromMJCF("arm.xml")
    R = np.empty(9)
    mujoco.mju_quat2Mat(R, m.body_quat[2])
    return R.reshape(3, 3), p.jointPlacements[2].rotation


angles = "40 30 20"
(R, S), (P, Q) = rotations("xyz", angles), rotations("XYZ", angles)
for sequence, A, B in (("xyz", R, S), ("XYZ", P, Q)):
    print(f"eulerseq {sequence}: the two turn the arm by {np.degrees(np.linalg.norm(pin.log3(A.T @ B))):.2f} degrees apart")
assert np.allclose(R, S) and np.allclose(Q, R) and not np.allclose(P, Q, atol=0.1)
END
