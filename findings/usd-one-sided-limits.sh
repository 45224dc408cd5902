#!/bin/sh
# Tools: usd-core 26.11
# Behaviour: the parser of UsdPhysics enables a limit of one side, the other at its default of -inf or inf, for prismatic
#   joints and for each axis of D6 joints, but not for revolute joints: their limit comes back with its number and with
#   enabled = false.
# Consequence: an engine that asks `enabled` lets a hinge pass an end stop that the file states. Write a large finite
#   number for the open side of a revolute joint, or read the two numbers and not the flag.
# Source: OpenUSD, UsdPhysics: LoadUsdPhysicsFromRange, JointLimit
# Seen:
#   revolute (-30, 30): enabled; (-30, inf): not enabled; (-inf, 30): not enabled; (-inf, inf): not enabled
#   prismatic (-30, 30): enabled; (-30, inf): enabled; (-inf, 30): enabled; (-inf, inf): not enabled
#   D6 rotX (-30, 30): enabled; (-30, inf): enabled; (-inf, 30): enabled; (-inf, inf): not enabled
. "$(dirname "$0")/common.sh"
needs usd-core==26.11
"$python" -I - <<'END'
from math import inf

from pxr import Usd, UsdGeom, UsdPhysics

RANGES = (-30, 30), (-30, inf), (-inf, 30), (-inf, inf)


def enabled(kind, low, high):
    """Whether the parser enables a limit of a joint between the world and a body."""
    stage = Usd.Stage.CreateInMemory()
    body = UsdGeom.Xform.Define(stage, "/body").GetPrim()
    UsdPhysics.RigidBodyAPI.Apply(body)
    define = {"revolute": UsdPhysics.RevoluteJoint, "prismatic": UsdPhysics.PrismaticJoint}.get(kind, UsdPhysics.Joint)
    joint = define.Define(stage, "/joint")
    joint.CreateBody1Rel().SetTargets(["/body"])
    if kind == "D6 rotX":
        limit = UsdPhysics.LimitAPI.Apply(joint.GetPrim(), "rotX")
        low != -inf and limit.CreateLowAttr(low)
        high != inf and limit.CreateHighAttr(high)
    else:
        low != -inf and joint.CreateLowerLimitAttr(low)
        high != inf and joint.CreateUpperLimitAttr(high)
    for paths, found in UsdPhysics.LoadUsdPhysicsFromRange(stage, ["/"]).values():
        for each in found:
            if str(getattr(each, "primPath", "")) == "/joint":
                limits = [x.second for x in each.jointLimits] if kind == "D6 rotX" else [each.limit]
                return any(x.enabled for x in limits)
    raise AssertionError("the joint is not found")


for kind in ("revolute", "prismatic", "D6 rotX"):
    found = [enabled(kind, *each) for each in RANGES]
    print(kind, "; ".join(f"{each}: {'enabled' if on else 'not enabled'}" for each, on in zip(RANGES, found)))
    assert found == [True, kind != "revolute", kind != "revolute", False]
END
