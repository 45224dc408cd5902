#!/bin/sh
# Tools: usd-core 26.11
# Behaviour: xformOp:orient turns about the vector part of its quaternion by twice the arc cosine of the scalar part, which
#   is limited to -1 ... 1. A quaternion that is not of unit length turns by another angle than its direction says, with
#   no warning: (1, 0, 0, 1), along that of 90 degrees, does not turn at all. Lengths do not change. In Gf.Matrix3d the
#   same quaternion gives a matrix that also changes lengths.
# Consequence: a prim stands elsewhere than an exporter meant that leaves normalising to the reader, as MJCF does.
#   Normalise quaternions before they are written.
# Source: OpenUSD, UsdGeom: XformOp.GetOpTransform; Gf: Rotation.SetQuat
# Seen:
#   (1, 0, 0, 1): turned by 0.00 degrees, normalised 90.00; scale 1.00, of Matrix3d 2.24
#   (0.5, 0, 0, 0.5): turned by 120.00 degrees, normalised 90.00; scale 1.00, of Matrix3d 0.71
#   (0.6, 0, 0, 0.4): turned by 106.26 degrees, normalised 67.38; scale 1.00, of Matrix3d 0.83
. "$(dirname "$0")/common.sh"
needs usd-core==26.11
"$python" -I - <<'END'
from math import acos, atan2, degrees

from pxr import Gf, Usd, UsdGeom

for w, z in ((1, 1), (0.5, 0.5), (0.6, 0.4)):
    q = Gf.Quatd(w, 0, 0, z)
    stage = Usd.Stage.CreateInMemory()
    prim = UsdGeom.Xform.Define(stage, "/prim")
    prim.AddOrientOp(UsdGeom.XformOp.PrecisionDouble).Set(q)
    x = prim.ComputeLocalToWorldTransform(0.0).TransformDir((1, 0, 0))
    angle, scale = degrees(atan2(x[1], x[0])), x.GetLength()
    normalised, other = degrees(2 * atan2(z, w)), Gf.Matrix3d(q).GetRow(0).GetLength()
    print(
        f"{w, 0, 0, z}: turned by {angle:.2f} degrees, normalised {normalised:.2f}; "
        f"scale {scale:.2f}, of Matrix3d {other:.2f}"
    )
    assert abs(angle - degrees(2 * acos(w))) < 1e-3 and abs(scale - 1) < 1e-9 and abs(other - 1) > 0.1
END
