#!/bin/sh
# Tools: Newton 1.8.0 (newton-usd-schemas 0.6.0), usd-core 26.11
# Behaviour: where the target of a drive is outside of the limits of its joint, Newton takes the middle between the limits as
#   the target. No warning.
# Consequence: a drive that presses a joint against its stop, such as a gripper that is told to close further than it can,
#   pulls it off the stop. Write limits that contain the target, or set the target after the import.
# Source: OpenUSD, UsdPhysics: PhysicsDriveAPI, targetPosition
# Seen:
#   limits of 0 and 40 degrees, target 39: Newton's is 39.0
#   limits of 0 and 40 degrees, target 50: Newton's is 20.0
. "$(dirname "$0")/common.sh"
needs newton==1.8.0 newton-usd-schemas==0.6.0 usd-core==26.11
"$python" -I - <<'END'
import newton
import numpy as np
import warp as wp
from pxr import Usd, UsdGeom, UsdPhysics

wp.config.log_level = wp.LOG_ERROR


def taken(target):
    """Target [deg] that Newton takes for a hinge from 0 to 40 degrees."""
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1)
    UsdGeom.SetStageUpAxis(stage, "Z")
    body = UsdGeom.Xform.Define(stage, "/body").GetPrim()
    UsdPhysics.RigidBodyAPI.Apply(body)
    mass = UsdPhysics.MassAPI.Apply(body)
    mass.CreateMassAttr(1)
    mass.CreateDiagonalInertiaAttr((1, 2, 2.5))
    joint = UsdPhysics.RevoluteJoint.Define(stage, "/joint")
    joint.CreateAxisAttr("Z")
    joint.CreateBody1Rel().SetTargets(["/body"])
    joint.CreateLowerLimitAttr(0)
    joint.CreateUpperLimitAttr(40)
    drive = UsdPhysics.DriveAPI.Apply(joint.GetPrim(), "angular")
    drive.CreateStiffnessAttr(1)
    drive.CreateTargetPositionAttr(target)
    builder = newton.ModelBuilder()
    builder.add_usd(stage)
    return float(np.degrees(builder.joint_target_q[0]))


within, beyond = taken(39), taken(50)
print(f"limits of 0 and 40 degrees, target 39: Newton's is {within:.1f}")
print(f"limits of 0 and 40 degrees, target 50: Newton's is {beyond:.1f}")
assert abs(within - 39) < 1e-3 and abs(beyond - 20) < 1e-3
END
