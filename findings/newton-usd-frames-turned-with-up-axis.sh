#!/bin/sh
# Tools: Newton 1.8.0 (newton-usd-schemas 0.6.0), usd-core 26.11
# Behaviour: in a stage without PhysicsArticulationRootAPI Newton turns the frame that a joint has in its first body by the
#   rotation that takes the axis which is up in the stage to z, although that body is turned already. With y up, a hinge
#   about the body's z acts about another axis, at another place. No warning.
# Consequence: machines with y up move otherwise than the stage says as soon as coordinates are used. Apply
#   PhysicsArticulationRootAPI, or write the stage with z up.
# Source: OpenUSD, UsdPhysics: localPos0, localRot0; UsdGeom: upAxis
# Seen:
#   z up, articulation: the joint is at [1. 0. 2.] in its first body, its axis is [0. 0. 1.]
#   z up, none: the joint is at [1. 0. 2.] in its first body, its axis is [0. 0. 1.]
#   y up, articulation: the joint is at [1. 0. 2.] in its first body, its axis is [0. 0. 1.]
#   y up, none: the joint is at [ 1. -2.  0.] in its first body, its axis is [ 0. -1.  0.]
. "$(dirname "$0")/common.sh"
needs newton==1.8.0 newton-usd-schemas==0.6.0 usd-core==26.11
"$python" -I - <<'END'
from pathlib import Path

import newton
import numpy as np
import warp as wp
from pxr import Usd, UsdGeom, UsdPhysics

wp.config.log_level, wp.config.kernel_cache_dir = wp.LOG_ERROR, str(Path("kernels").resolve())


def joint_of(up, articulated):
    """Place and axis of a joint in its first body, as imported."""
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1)
    UsdGeom.SetStageUpAxis(stage, up)
    for path in ("/base", "/moved"):
        body = UsdGeom.Xform.Define(stage, path).GetPrim()
        UsdPhysics.RigidBodyAPI.Apply(body)
        mass = UsdPhysics.MassAPI.Apply(body)
        mass.CreateMassAttr(1)
        mass.CreateDiagonalInertiaAttr((1, 2, 2.5))
    if articulated:
        UsdPhysics.ArticulationRootAPI.Apply(stage.GetPrimAtPath("/base"))
    joint = UsdPhysics.RevoluteJoint.Define(stage, "/joint")
    joint.CreateAxisAttr("Z")
    joint.CreateBody0Rel().SetTargets(["/base"])
    joint.CreateBody1Rel().SetTargets(["/moved"])
    joint.CreateLocalPos0Attr((1, 0, 2))
    builder = newton.ModelBuilder()
    builder.add_usd(stage)
    i = builder.joint_label.index("/joint")
    frame, axis = builder.joint_X_p[i], builder.joint_axis[builder.joint_qd_start[i]]
    turned = wp.quat_rotate(wp.transform_get_rotation(frame), axis)
    return [np.array(x, dtype=float).round(3) + 0.0 for x in (wp.transform_get_translation(frame), turned)]


seen = {}
for up in "ZY":
    for articulated in (True, False):
        place, axis = seen[up, articulated] = joint_of(up, articulated)
        how = "articulation" if articulated else "none"
        print(f"{up.lower()} up, {how}: the joint is at {place} in its first body, its axis is {axis}")
right = seen["Z", True]
assert all(np.allclose(seen[key], right, atol=1e-5) for key in (("Z", False), ("Y", True)))
assert np.abs(seen["Y", False][1] - right[1]).max() > 0.9
END
