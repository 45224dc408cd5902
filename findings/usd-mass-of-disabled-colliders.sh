#!/bin/sh
# Tools: usd-core 26.11
# Behaviour: ComputeMassProperties leaves out colliders with collisionEnabled = false. Of two equal parts one switched
#   off, a body by density has half its mass and another mass centre; with both off, the mass returned is -1. The
#   warning for a body without colliders advises to add colliders and switch them off. A body with a mass alone gets
#   the inertia of a ball of radius 0.1 m.
# Consequence: switching contact off changes the motion. Give mass, centerOfMass, diagonalInertia and principalAxes on
#   the body wherever colliders may be off, and refuse a mass that is not positive.
# Source: OpenUSD, UsdPhysics: RigidBodyAPI.ComputeMassProperties
# Seen:
#   two cubes (mass, moments, centre): (2000.0, [333.3333, 833.3334, 833.3334], [0.5, 0.0, 0.0])
#   one of them switched off: (1000.0, [166.6667, 166.6667, 166.6667], [0.0, 0.0, 0.0])
#   both switched off: (-1.0, [1.0, 1.0, 1.0], [0.0, 0.0, 0.0])
#   a body of 3 kg without colliders: (3.0, [0.012, 0.012, 0.012], [0.0, 0.0, 0.0])
. "$(dirname "$0")/common.sh"
needs usd-core==26.11
"$python" -I - 2> warnings <<'END'
from pxr import Gf, Usd, UsdGeom, UsdPhysics


def cube(prim):
    """Volume and inertia of a cube of 1 m, at its place in the body."""
    shape = UsdPhysics.RigidBodyAPI.MassInformation()
    shape.volume, shape.inertia, shape.localRot = 1.0, Gf.Matrix3f(1 / 6), Gf.Quatf(1)
    shape.localPos = Gf.Vec3f(UsdGeom.Xformable(prim).GetLocalTransformation().ExtractTranslation())
    return shape


def properties(*enabled, mass=None):
    """Mass, moments and mass centre of a body of cubes at x = 0, 1, ..."""
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1)
    body = UsdGeom.Xform.Define(stage, "/body").GetPrim()
    if mass:
        UsdPhysics.MassAPI.Apply(body).CreateMassAttr(mass)
    for i, on in enumerate(enabled):
        part = UsdGeom.Cube.Define(stage, f"/body/part{i}")
        part.CreateSizeAttr(1)
        part.AddTranslateOp().Set((i, 0, 0))
        UsdPhysics.CollisionAPI.Apply(part.GetPrim()).CreateCollisionEnabledAttr(on)
    total, moments, centre, _ = UsdPhysics.RigidBodyAPI.Apply(body).ComputeMassProperties(cube)
    return round(total, 3), [round(v, 4) for v in moments], [round(v, 4) for v in centre]


both, one, none, bare = properties(True, True), properties(True, False), properties(False, False), properties(mass=3)
print("two cubes (mass, moments, centre):", both)
print("one of them switched off:", one)
print("both switched off:", none)
print("a body of 3 kg without colliders:", bare)
assert (both[0], one[0], none[0]) == (2000, 1000, -1) and both[2][0] == 0.5 and one[2][0] == 0
assert bare[1] == [0.012] * 3
END
grep -q "disable the 'enable collision' property" warnings
