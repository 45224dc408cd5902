#!/bin/sh
# Tools: Newton 1.8.0 (newton-usd-schemas 0.6.0), beside usd-core 26.11
# Behaviour: where a USD body gives its mass and its mass centre, Newton takes the inertia of the colliders without
#   carrying it to that centre. Without the mass it does carry it, as ComputeMassProperties of usd-core does in both
#   cases. Where the body and its colliders give masses, Newton weighs the colliders by their volumes for the inertia.
#   Principal axes that come without moments are ignored. No warning.
# Consequence: adding the mass that the body has anyway changes its inertia. Give physics:diagonalInertia and
#   physics:principalAxes beside the mass centre.
# Source: OpenUSD, UsdPhysics: mass properties
# Seen:
#   mass centre at x = 2: moments [166.67, 4166.67, 4166.67] in usd-core, [166.67, 4166.67, 4166.67] in Newton
#   mass 1000, mass centre at x = 2: moments [166.67, 4166.67, 4166.67] in usd-core, [166.67, 166.67, 166.67] in Newton
#   mass 16, parts of 7 and 1 kg at x = 0 and 2: moments [2.67, 9.67, 9.67] in usd-core, [2.67, 18.67, 18.67] in Newton
#   mass 16, parts at x = 0 and 2, axes turned by 45 degrees: moments [10.67, 10.67, 18.67] in usd-core,
#   [2.67, 18.67, 18.67] in Newton
. "$(dirname "$0")/common.sh"
needs newton==1.8.0 newton-usd-schemas==0.6.0 usd-core==26.11
"$python" -I - <<'END'
import newton
import numpy as np
import warp as wp
from pxr import Gf, Usd, UsdGeom, UsdPhysics

wp.config.log_level = wp.LOG_ERROR


def cube(prim):
    """Volume and inertia of a cube of 1 m, at its place in the body."""
    shape = UsdPhysics.RigidBodyAPI.MassInformation()
    shape.volume, shape.inertia, shape.localRot = 1.0, Gf.Matrix3f(1 / 6), Gf.Quatf(1)
    shape.localPos = Gf.Vec3f(UsdGeom.Xformable(prim).GetLocalTransformation().ExtractTranslation())
    return shape


def moments(places, mass=None, centre=None, masses=(), turned=0):
    """Moments of a body of cubes at x = places in usd-core and in Newton."""
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1)
    UsdGeom.SetStageUpAxis(stage, "Z")
    body = UsdGeom.Xform.Define(stage, "/body").GetPrim()
    stage.SetDefaultPrim(body)
    rigid, api = UsdPhysics.RigidBodyAPI.Apply(body), UsdPhysics.MassAPI.Apply(body)
    if mass:
        api.CreateMassAttr(mass)
    if centre:
        api.CreateCenterOfMassAttr(centre)
    if turned:
        api.CreatePrincipalAxesAttr(Gf.Quatf(Gf.Rotation(Gf.Vec3d(0, 0, 1), turned).GetQuat()))
    for i, x in enumerate(places):
        part = UsdGeom.Cube.Define(stage, f"/body/part{i}")
        part.CreateSizeAttr(1)
        part.AddTranslateOp().Set((x, 0, 0))
        UsdPhysics.CollisionAPI.Apply(part.GetPrim())
        if masses:
            UsdPhysics.MassAPI.Apply(part.GetPrim()).CreateMassAttr(masses[i])
    builder = newton.ModelBuilder()
    builder.add_usd(stage)
    inertia = np.array(builder.body_inertia[0]).reshape(3, 3)
    _, principal, _, axes = rigid.ComputeMassProperties(cube)
    R = np.array(Gf.Matrix3d(Gf.Quatd(axes).GetNormalized())).T
    return [[round(float(v), 2) for v in I.diagonal()] for I in (R @ np.diag(principal) @ R.T, inertia)]


seen = {
    "mass centre at x = 2": moments([0], centre=(2, 0, 0)),
    "mass 1000, mass centre at x = 2": moments([0], mass=1000, centre=(2, 0, 0)),
    "mass 16, parts of 7 and 1 kg at x = 0 and 2": moments([0, 2], mass=16, masses=(7, 1)),
    "mass 16, parts at x = 0 and 2, axes turned by 45 degrees": moments([0, 2], mass=16, turned=45),
}
for name, (usd, there) in seen.items():
    print(f"{name}: moments {usd} in usd-core, {there} in Newton")
(usd, carried), (same, left), (weighed, other), (oblique, straight) = seen.values()
assert usd == carried == same and max(left) < 200 and abs(max(other) / max(weighed)) > 1.5
assert abs(oblique[0] - oblique[1]) < 0.1 and abs(straight[0] - straight[1]) > 1
END
