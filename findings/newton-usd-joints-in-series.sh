#!/bin/sh
# Tools: Newton 1.8.0 (newton-usd-schemas 0.6.0), usd-core 26.11
# Behaviour: hinges and sliders between the same two bodies of a USD stage become one joint, whose parts act one after the
#   other: in the order of the stage where the stage has no articulation, in the order of their names within an
#   articulation, and slides before hinges in both. No warning. The mass matrix of such a joint, like that of any joint
#   with several turns, is not the one of its own poses: away from zero, the first angle changes the moment about the
#   axis that it turns.
# Consequence: applying PhysicsArticulationRootAPI, or renaming a joint, moves the body otherwise at the same angles. Name
#   the joints in the order in which they act, or write one body for each; do not use eval_mass_matrix with such joints.
# Source: OpenUSD, UsdPhysics: articulations; Newton documentation: newton.eval_mass_matrix
# Seen:
#   joints z, y: x of the body at angles (0.4, -0.3) is [0.88  0.372 0.296] without, [0.88  0.389 0.272] in an articulation
#   joints a, b: x of the body at angles (0.4, -0.3) is [0.88  0.372 0.296] without, [0.88  0.372 0.296] in an articulation
#   angles (0.0, 0.0): moment about the second turn 2.00 in Newton, 2.00 by its poses
#   angles (0.4, 0.0): moment about the second turn 1.85 in Newton, 2.00 by its poses
. "$(dirname "$0")/common.sh"
needs newton==1.8.0 newton-usd-schemas==0.6.0 usd-core==26.11
"$python" -I - <<'END'
from pathlib import Path

import newton
import numpy as np
import warp as wp
from pxr import Usd, UsdGeom, UsdPhysics

wp.config.log_level, wp.config.kernel_cache_dir = wp.LOG_ERROR, str(Path("kernels").resolve())


def model_of(names, articulated):
    """A base that is held, and a body with the moments 1, 2 and 2.5 that turns about z, and then about y."""
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1)
    UsdGeom.SetStageUpAxis(stage, "Z")
    for path in ("/base", "/moved"):
        body = UsdGeom.Xform.Define(stage, path).GetPrim()
        UsdPhysics.RigidBodyAPI.Apply(body)
        mass = UsdPhysics.MassAPI.Apply(body)
        mass.CreateMassAttr(1)
        mass.CreateDiagonalInertiaAttr((1, 2, 2.5))
    if articulated:
        UsdPhysics.ArticulationRootAPI.Apply(stage.GetPrimAtPath("/base"))
    UsdPhysics.FixedJoint.Define(stage, "/held").CreateBody1Rel().SetTargets(["/base"])
    for name, axis in zip(names, "ZY", strict=True):
        joint = UsdPhysics.RevoluteJoint.Define(stage, f"/{name}")
        joint.CreateBody0Rel().SetTargets(["/base"])
        joint.CreateBody1Rel().SetTargets(["/moved"])
        joint.CreateAxisAttr(axis)
    builder = newton.ModelBuilder()
    builder.add_usd(stage)
    if not articulated:
        builder.add_articulation(list(range(builder.joint_count)))
    model = builder.finalize(device="cpu")
    if builder.joint_axis[0][2] < 0.5:  # about y first: the angles in this order
        return model, [1, 0]
    return model, [0, 1]


def at(model, order, angles):
    """State of the model, and the rotation of its body, at angles about z and y."""
    state = model.state()
    q, still = (wp.array(np.float32(x), dtype=float, device="cpu") for x in (np.take(angles, order), (0, 0)))
    newton.eval_fk(model, q, still, state)
    return state, np.array(wp.quat_to_matrix(wp.quat(*state.body_q.numpy()[1][3:].tolist()))).reshape(3, 3)


def moments(angles, h=0.01):
    """About the second turn: in Newton, and by the change of its poses."""
    model, order = model_of("ab", False)
    state, R = at(model, order, angles)
    after, before = (at(model, order, (angles[0], angles[1] + s * h))[1] for s in (1, -1))
    change = R.T @ (after - before) / (2 * h)
    w = np.array([change[2, 1], change[0, 2], change[1, 0]])
    return float(newton.eval_mass_matrix(model, state).numpy()[0][1, 1]), float(w @ np.diag([1, 2, 2.5]) @ w)


gaps = {}
for names in ("zy", "ab"):
    alone, within = (at(*model_of(names, articulated), (0.4, -0.3))[1][:, 0].round(3) for articulated in (False, True))
    gaps[names] = np.abs(alone - within).max()
    print(f"joints {', '.join(names)}: x of the body at angles (0.4, -0.3) is {alone} without, {within} in an articulation")
assert gaps["zy"] > 0.01 and gaps["ab"] < 1e-6
for angles in ((0.0, 0.0), (0.4, 0.0)):
    theirs, right = moments(angles)
    print(f"angles {angles}: moment about the second turn {theirs:.2f} in Newton, {right:.2f} by its poses")
assert abs(theirs - right) > 0.1 and abs(right - 2) < 0.01
END
