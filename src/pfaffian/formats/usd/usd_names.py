"""The properties of a USD stage that concern physics: which of them are read, and which cannot change the motion.

Every authored one that is neither is named in the warning, so that none is lost without a word.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from pfaffian.formats.text.left_out import LeftOut, leave
from pfaffian.formats.text.unit_length import NORMALISED, is_of_unit_length
from pfaffian.formats.usd.usd_body import collides, moves
from pfaffian.formats.usd.usd_stage import UsdStage, quaternion_of

PHYSICS = re.compile(r"physics:|drive:|limit:|state:|newton:|physx|mjc:")
"""Beginnings of the names of properties that concern physics, whichever engine defined them."""

READ = re.compile(
    r"physics:(mass|density|centerOfMass|diagonalInertia|principalAxes|approximation)"
    r"|physics:(velocity|angularVelocity|rigidBodyEnabled|kinematicEnabled|collisionEnabled)"
    r"|physics:(gravityDirection|gravityMagnitude)"
    r"|physics:(axis|body[01]|localPos[01]|localRot[01]|jointEnabled|excludeFromArticulation|breakForce|breakTorque)"
    r"|physics:(lowerLimit|upperLimit|coneAngle[01]Limit|minDistance|maxDistance)"
    r"|limit:(trans[XYZ]|rot[XYZ]|distance):physics:(low|high)"
    r"|drive:(trans[XYZ]|rot[XYZ]|linear|angular):physics:(stiffness|damping|targetPosition|targetVelocity|maxForce|type)"
    r"|newton:(armature|damping|friction|inertia|massModel|gravityEnabled|mimicJoint|mimicCoef[01]|mimicEnabled)"
    r"|physxJoint:armature|physxMimicJoint:\w+:(referenceJoint|gearing|offset)|physxRigidBody:disableGravity"
)
"""Properties that are read; what a machine cannot represent of them is named where it is read."""

HARMLESS = re.compile(
    # contact, which is left out as a whole and named once
    r"physics:(staticFriction|dynamicFriction|restitution|filteredPairs|filteredGroups|invertFilteredGroups|mergeGroup)"
    r"|newton:(torsionalFriction|rollingFriction|contact\w+|maxHullVertices|selfCollisionEnabled|shellThickness)"
    r"|newton:(sdf|hydroelastic)\w*(:\w+)*"
    r"|physx(Collision|\w*MeshCollision|Material|\w*Hull\w*|SDFMeshCollision|TriangleMesh\w*)(API)?:.*"
    r"|physxArticulation:enabledSelfCollisions"
    # which scene, and how an engine solves
    r"|physics:simulationOwner|newton:(maxSolverIterations|timeStepsPerSecond|jointsAddMobility|xpbd:.*|kamino:.*|vbd:.*|mpm:.*)"
    r"|physxScene:.*|physxArticulation:(solver\w+|sleepThreshold|stabilizationThreshold|articulationEnabled)"
    r"|physxRigidBody:(solver\w+|sleepThreshold|stabilizationThreshold|enableCCD|enableSpeculativeCCD|contactSlopCoefficient)"
    r"|physxRigidBody:(maxContactImpulse|maxDepenetrationVelocity|cfmScale)|physxJoint:enableProjection"
)
"""Properties that do not change the motion of a machine without contact."""

GEOMETRY = ("axis", "faceVertexCounts", "faceVertexIndices", "height", "points", "radius", "radiusBottom", "radiusTop", "size")
"""Attributes from which the volume of a collider comes."""

VARYING = "values that vary in time (those of the default time, and transforms at time zero, are used)"

IDLE = "properties of schemas that are not applied have no effect, as in UsdPhysics"

UNAPPLIED = "properties are read that Newton ignores, unless NewtonMassAPI or NewtonMimicAPI is applied to the prim"

NEEDS = {"newton:inertia": {"NewtonMassAPI"}, "newton:mimicJoint": {"NewtonMimicAPI", "MjcEqualityJointAPI"}}
"""Properties that Newton reads only of prims with one of these schemas; MuJoCo's includes Newton's."""

EQUALITY = re.compile(r"MjcEquality\w*API")
"""Schemas that make a joint a constraint of MuJoCo by their presence alone."""

SOFT_THERE = "constraints that are soft in MuJoCo are exact"

UNKNOWN = "prims that are not read"

NO_COLLIDER = "masses of prims that are neither rigid bodies nor enabled colliders have no effect, as in UsdPhysics"

OTHER_UNITS = "layers with other units or another up axis than the stage are not converted, as in USD"

MISSING = "prims with references, payloads or layers that USD does not find"

QUATERNIONS = ("quatd", "quatf", "quath")
"""Types of attributes that are quaternions."""

BY_SCALAR = "quaternions of transforms that are not of unit length turn by twice the arc cosine of their scalar part, as in USD"

NO_WEIGHT = "masses and densities below zero count as not given, as in USD"

CORE = re.compile(r"physics:|drive:|limit:")
"""Beginnings of the names of properties that usd-core's schemas define; those of other engines need not be installed."""

SOFT = re.compile(r"(Omni)?Phys(ics|x)\w*(Deformable|Particle|Cloth|Vehicle)\w*(:\w+)?")
"""Schemas that move a prim by their presence alone, whatever properties it has."""

OTHER = re.compile(r"(Physx|Newton|Mjc)\w+")
"""Types of prims of other engines, none of which is read."""

NAMED_AS_CORE = re.compile(r"Physics\w+(:\w+)?")
"""Types and schemas whose names say that they are of UsdPhysics."""


def unread(s: UsdStage, lost: LeftOut) -> None:
    """Record the authored properties of a stage that concern physics and are neither read nor harmless, and such prims."""
    found, idle = dict[str, None](), list[str]()
    if missing := s.stage.GetCompositionErrors():
        leave(lost, MISSING, *(str(e.rootSite.path) for e in missing))
    if others := _other_units(s):
        leave(lost, OTHER_UNITS, *others)
    for prim in s.prims:
        kinds = _kinds(prim)
        if "PhysicsMassAPI" in kinds and not (moves(prim) or collides(prim)) and _weighs(prim):
            leave(lost, NO_COLLIDER, str(prim.GetPath()))
        other = [k for i, k in enumerate(kinds) if SOFT.fullmatch(k) or (not i and OTHER.fullmatch(k)) or _is_foreign(k)]
        if other or _repeats_bodies(prim):
            leave(lost, UNKNOWN, f"{prim.GetPath()} ({[*other, kinds[0]][0]})")
        for kind in filter(EQUALITY.fullmatch, kinds):
            leave(lost, SOFT_THERE, f"{prim.GetPath()} ({kind})")
        for name in prim.GetAuthoredPropertyNames():
            physics = PHYSICS.match(name)
            if physics and not READ.fullmatch(name) and not HARMLESS.fullmatch(name):
                found[f"{prim.GetPath()}.{name}"] = None
            elif CORE.match(name) and not HARMLESS.fullmatch(name) and not _is_defined(prim, name):
                idle.append(f"{prim.GetPath()}.{name}")
            elif physics or name.startswith("xformOp") or (name in GEOMETRY and collides(prim)):
                if name in NEEDS and NEEDS[name].isdisjoint(kinds):
                    leave(lost, UNAPPLIED, f"{prim.GetPath()}.{name}")
                a = prim.GetAttribute(name)
                if a and (a.ValueMightBeTimeVarying() if name.startswith("xformOp") else _is_sampled(a)):
                    leave(lost, VARYING, f"{prim.GetPath()}.{name}")
                if name in ("physics:mass", "physics:density") and (a.Get() or 0) < 0:
                    leave(lost, NO_WEIGHT, f"{prim.GetPath()}.{name}")
                if a and a.GetTypeName() in QUATERNIONS and not _is_turn(a.Get()):
                    leave(lost, NORMALISED if physics else BY_SCALAR, f"{prim.GetPath()}.{name}")
    if found:
        leave(lost, "properties that are not read", *found)
    if idle:
        leave(lost, IDLE, *idle)


def _other_units(s: UsdStage) -> list[str]:
    """Names of the layers that say other units or another up axis than the stage has."""
    from pxr import UsdGeom, UsdPhysics

    have = {
        UsdGeom.Tokens.metersPerUnit: s.length,
        UsdPhysics.Tokens.kilogramsPerUnit: s.mass,
        UsdGeom.Tokens.upAxis: UsdGeom.GetStageUpAxis(s.stage),
    }
    roots = [(layer.GetDisplayName(), layer.pseudoRoot) for layer in s.stage.GetUsedLayers()]
    return sorted(name for name, root in roots for k, x in have.items() if root.HasInfo(k) and root.GetInfo(k) != x)


def _weighs(prim: Any) -> bool:
    """Whether the MassAPI of a prim gives a mass, a density or an inertia."""
    from pxr import UsdPhysics

    api = UsdPhysics.MassAPI(prim)
    return any(a.HasAuthoredValue() for a in (api.GetMassAttr(), api.GetDensityAttr(), api.GetDiagonalInertiaAttr()))


def soft_prims(s: UsdStage) -> list[str]:
    """Paths of the prims that bend or flow."""
    return [str(prim.GetPath()) for prim in s.prims if any(map(SOFT.fullmatch, _kinds(prim)))]


def _kinds(prim: Any) -> list[str]:
    """The type of a prim, and the schemas that are applied to it."""
    return [str(prim.GetTypeName()), *map(str, prim.GetPrimTypeInfo().GetAppliedAPISchemas())]


@cache
def _is_foreign(kind: str) -> bool:
    """Whether a type or schema has a name of UsdPhysics, which lacks it."""
    from pxr import Usd

    registry, name = Usd.SchemaRegistry(), kind.split(":")[0]
    known = registry.FindConcretePrimDefinition(name) or registry.FindAppliedAPIPrimDefinition(name)
    return bool(NAMED_AS_CORE.fullmatch(kind)) and not known


def _is_sampled(attribute: Any) -> bool:
    """Whether an attribute has values at times, even a single one, which is none at the default time."""
    from pxr import Usd

    default = (Usd.ResolveInfoSourceNone, Usd.ResolveInfoSourceFallback, Usd.ResolveInfoSourceDefault)
    return attribute.GetResolveInfo().GetSource() not in default


def _repeats_bodies(prim: Any) -> bool:
    """Whether a prim is a point instancer of bodies or colliders."""
    from pxr import Usd, UsdGeom, UsdPhysics

    if not prim.IsA(UsdGeom.PointInstancer):
        return False
    kinds = (UsdPhysics.RigidBodyAPI, UsdPhysics.CollisionAPI)
    made = [prim.GetStage().GetPrimAtPath(t) for t in UsdGeom.PointInstancer(prim).GetPrototypesRel().GetTargets()]
    return any(below.HasAPI(k) for p in made if p for below in Usd.PrimRange(p) for k in kinds)


def _is_turn(q: Any) -> bool:
    """Whether a quaternion has unit length, or is zero or left out, which means that none is given."""
    numbers = () if q is None else quaternion_of(q)
    return not any(numbers) or is_of_unit_length(numbers)


def _is_defined(prim: Any, name: str) -> bool:
    """Whether the type of a prim, or a schema that is applied to it, has a property."""
    return bool(prim.GetPrimDefinition().GetSchemaPropertySpec(name))
