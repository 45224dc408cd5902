#!/bin/sh
# Tools: Newton 1.8.0 (newton-usd-schemas 0.6.0), usd-core 26.11
# Behaviour: hinges between the same two bodies of a USD stage become one joint, whose axes Newton takes to be at right
#   angles. Where they are not, each of them is another one: the second hinge here, alone at .5 rad, turns the body about an
#   axis that is not in the file. No warning.
# Consequence: wrists and legs with oblique axes move otherwise than the stage says. Write a body of little mass between such
#   hinges.
# Source: OpenUSD, UsdPhysics: revolute joints
# Seen:
#   the file's second axis is 0.00 0.80 0.60, Newton turns the body about -0.32 0.89 0.32
. "$(dirname "$0")/common.sh"
needs newton==1.8.0 newton-usd-schemas==0.6.0 usd-core==26.11
"$python" -I - <<'END'
from pathlib import Path

import newton
import numpy as np
import warp as wp
from pxr import Gf, Usd, UsdGeom, UsdPhysics

wp.config.log_level, wp.config.kernel_cache_dir = wp.LOG_ERROR, str(Path("kernels").resolve())

stage = Usd.Stage.CreateInMemory()
UsdGeom.SetStageMetersPerUnit(stage, 1)
UsdGeom.SetStageUpAxis(stage, "Z")
for path in ("/base", "/moved"):
    body = UsdGeom.Xform.Define(stage, path).GetPrim()
    UsdPhysics.RigidBodyAPI.Apply(body)
    mass = UsdPhysics.MassAPI.Apply(body)
    mass.CreateMassAttr(1)
    mass.CreateDiagonalInertiaAttr((1, 2, 2.5))
UsdPhysics.FixedJoint.Define(stage, "/held").CreateBody1Rel().SetTargets(["/base"])
oblique = (0.0, 0.8, 0.6)
for name, axis in (("a", (0.0, 0.0, 1.0)), ("b", oblique)):
    joint = UsdPhysics.RevoluteJoint.Define(stage, f"/{name}")
    joint.CreateBody0Rel().SetTargets(["/base"])
    joint.CreateBody1Rel().SetTargets(["/moved"])
    joint.CreateAxisAttr("Z")
    turn = Gf.Quatf(Gf.Rotation(Gf.Vec3d(0, 0, 1), Gf.Vec3d(*axis)).GetQuat())
    joint.CreateLocalRot0Attr(turn)
    joint.CreateLocalRot1Attr(turn)
builder = newton.ModelBuilder()
builder.add_usd(stage)
builder.add_articulation(list(range(builder.joint_count)))
model = builder.finalize(device="cpu")
state = model.state()
q, still = (wp.array(np.float32(x), dtype=float, device="cpu") for x in ((0, 0.5), (0, 0)))
newton.eval_fk(model, q, still, state)
turned = state.body_q.numpy()[1][3:6]
axis = turned / np.linalg.norm(turned)
words = (" ".join(f"{x:.2f}" for x in of) for of in (oblique, axis))
print("the file's second axis is {}, Newton turns the body about {}".format(*words))
assert np.abs(axis - oblique).max() > 0.1
END
