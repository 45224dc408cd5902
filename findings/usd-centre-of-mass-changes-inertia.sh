#!/bin/sh
# Tools: usd-core 26.11
# Behaviour: ComputeMassProperties carries the inertia of the colliders to a physics:centerOfMass that the body gives,
#   by the parallel-axis theorem, if physics:diagonalInertia is not given. Where colliders give their own masses,
#   these decide the mass centre even if the body gives the total.
# Consequence: a reader that takes mass, centre and inertia from their own places in the file gets another body: below
#   2 instead of 77 kg m^2. Take all of them from one call of ComputeMassProperties.
# Source: OpenUSD, UsdPhysics: mass properties
# Seen:
#   cube of 3 kg (mass, moments, centre): (3.0, [2.0, 2.0, 2.0], [0.0, 0.0, 0.0])
#   with the mass centre given at x = 5: (3.0, [2.0, 77.0, 77.0], [5.0, 0.0, 0.0])
#   two cubes of 16 kg at x = 0 and 5, their centre: [2.5, 0.0, 0.0]
#   the same with masses of 7 and 1 kg on the cubes: 16.0 [0.625, 0.0, 0.0]
. "$(dirname "$0")/common.sh"
needs usd-core==26.11
"$python" -I - <<'END'
from pxr import Gf, Usd, UsdGeom, UsdPhysics


def cube(prim):
    """Volume and inertia of a cube of 2 m, at its place in the body."""
    shape = UsdPhysics.RigidBodyAPI.MassInformation()
    shape.volume, shape.inertia, shape.localRot = 8.0, Gf.Matrix3f(8 * 4 / 6), Gf.Quatf(1)
    shape.localPos = Gf.Vec3f(UsdGeom.Xformable(prim).GetLocalTransformation().ExtractTranslation())
    return shape


def properties(mass, places, masses=(), centre=None):
    """Mass, moments and mass centre of a body of cubes at x = places."""
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1)
    body = UsdGeom.Xform.Define(stage, "/body").GetPrim()
    api = UsdPhysics.MassAPI.Apply(body)
    api.CreateMassAttr(mass)
    if centre:
        api.CreateCenterOfMassAttr(centre)
    for i, x in enumerate(places):
        part = UsdGeom.Cube.Define(stage, f"/body/part{i}")
        part.AddTranslateOp().Set((x, 0, 0))
        UsdPhysics.CollisionAPI.Apply(part.GetPrim())
        if masses:
            UsdPhysics.MassAPI.Apply(part.GetPrim()).CreateMassAttr(masses[i])
    total, moments, there, _ = UsdPhysics.RigidBodyAPI.Apply(body).ComputeMassProperties(cube)
    return total, [round(v, 4) for v in moments], [round(v, 4) for v in there]


plain, given = properties(3, [0]), properties(3, [0], centre=(5, 0, 0))
equal, weighed = properties(16, [0, 5]), properties(16, [0, 5], (7, 1))
print("cube of 3 kg (mass, moments, centre):", plain)
print("with the mass centre given at x = 5:", given)
print("two cubes of 16 kg at x = 0 and 5, their centre:", equal[2])
print("the same with masses of 7 and 1 kg on the cubes:", weighed[0], weighed[2])
assert plain[1] == [2, 2, 2] and sorted(given[1]) == [2, 77, 77]
assert equal[2][0] == 2.5 and weighed[0] == 16 and weighed[2][0] == 0.625
END
