#!/bin/sh
# Tools: Newton 1.8.0 (newton-usd-schemas 0.6.0), usd-core 26.11
# Behaviour: a joint of a USD stage whose second body is the world turns the first body forward in Newton, as if this one were
#   the second; limits and drives keep their sign. And in a stage without PhysicsArticulationRootAPI the coordinate of a joint
#   to the world is zero where the file places the body, and not where the frames of the joint meet; limits and targets are
#   not moved with it. No warning.
# Consequence: a stop from 0 to 90 degrees holds the body on the other side, or 30 degrees further. Name the world as the
#   first body, and apply PhysicsArticulationRootAPI, or place bodies where their joints are at zero.
# Source: OpenUSD, UsdPhysics: joints (localPos0, localRot0, body0 and body1)
# Seen:
#   second body: the frame of the second in the first is turned by 17.2 degrees at .3 rad
#   second body is the world: the frame of the second in the first is turned by -17.2 degrees at .3 rad
#   placed at 30 degrees, articulation: the body is at 17.2 degrees at .3 rad
#   placed at 30 degrees, none: the body is at 47.2 degrees at .3 rad
. "$(dirname "$0")/common.sh"
needs newton==1.8.0 newton-usd-schemas==0.6.0 usd-core==26.11
"$python" -I - <<'END'
from pathlib import Path

import newton
import numpy as np
import warp as wp
from pxr import Usd, UsdGeom, UsdPhysics

wp.config.log_level, wp.config.kernel_cache_dir = wp.LOG_ERROR, str(Path("kernels").resolve())


def turned(side, placed=0.0, articulated=True):
    """Angle [deg] of a body about z at a coordinate of .3 rad; it is the joint's body 0 or 1, and the world the other."""
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1)
    UsdGeom.SetStageUpAxis(stage, "Z")
    robot, body, tip = (UsdGeom.Xform.Define(stage, path) for path in ("/robot", "/robot/body", "/robot/tip"))
    for moved in (body, tip):
        moved.AddRotateZOp().Set(placed)
        UsdPhysics.RigidBodyAPI.Apply(moved.GetPrim())
        mass = UsdPhysics.MassAPI.Apply(moved.GetPrim())
        mass.CreateMassAttr(1)
        mass.CreateDiagonalInertiaAttr((1, 2, 2.5))
    if articulated:
        UsdPhysics.ArticulationRootAPI.Apply(robot.GetPrim())
    joint, hinge = (UsdPhysics.RevoluteJoint.Define(stage, f"/robot/{name}") for name in ("a", "b"))
    joint.CreateAxisAttr("Z")
    (joint.CreateBody1Rel() if side else joint.CreateBody0Rel()).SetTargets(["/robot/body"])
    (joint.CreateLocalPos0Attr() if side else joint.CreateLocalPos1Attr()).Set((0, 0, 1))  # in the world
    hinge.CreateBody0Rel().SetTargets(["/robot/body"])
    hinge.CreateBody1Rel().SetTargets(["/robot/tip"])
    builder = newton.ModelBuilder()
    builder.add_usd(stage)
    if not articulated:
        builder.add_articulation([0, 1])
    model = builder.finalize(device="cpu")
    state = model.state()
    q, still = (wp.array(np.float32(x), dtype=float, device="cpu") for x in ((0.3, 0), (0, 0)))
    newton.eval_fk(model, q, still, state)
    assert builder.joint_label == ["/robot/a", "/robot/b"]
    z, w = state.body_q.numpy()[0][5:7]
    return float(np.degrees(2 * np.arctan2(z, w)))


second, first = turned(1), -turned(0)
print(f"second body: the frame of the second in the first is turned by {second:.1f} degrees at .3 rad")
print(f"second body is the world: the frame of the second in the first is turned by {first:.1f} degrees at .3 rad")
within, without = (turned(1, 30.0, articulated) for articulated in (True, False))
print(f"placed at 30 degrees, articulation: the body is at {within:.1f} degrees at .3 rad")
print(f"placed at 30 degrees, none: the body is at {without:.1f} degrees at .3 rad")
assert abs(second + first) < 1e-3 and abs(second - np.degrees(0.3)) < 1e-3
assert abs(within - second) < 1e-3 and abs(without - second - 30) < 1e-3
END
