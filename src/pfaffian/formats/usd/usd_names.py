"""The properties of a USD stage that concern physics: which of them are read, and which cannot change the motion.

Every authored one that is neither is named in the warning, so that none is lost without a word.
"""

from __future__ import annotations

import re
from typing import Any

from pfaffian.formats.text.left_out import LeftOut, leave
from pfaffian.formats.usd.usd_stage import UsdStage

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

VARYING = "values that vary in time (those of the default time, and transforms at time zero, are used)"

IDLE = "properties of schemas that are not applied have no effect, as in UsdPhysics"

UNKNOWN = "prims that are not read"

CORE = re.compile(r"physics:|drive:|limit:")
"""Beginnings of the names of properties that usd-core's schemas define; those of other engines need not be installed."""

SOFT = re.compile(r"(Omni)?Phys(ics|x)\w*(Deformable|Particle|Cloth|Vehicle)\w*(:\w+)?")
"""Schemas that move a prim by their presence alone, whatever properties it has."""

OTHER = re.compile(r"(Physx|Newton|Mjc)\w+")
"""Types of prims of other engines, none of which is read."""


def unread(s: UsdStage, lost: LeftOut) -> None:
    """Record the authored properties of a stage that concern physics and are neither read nor harmless, and such prims."""
    found, idle = dict[str, None](), list[str]()
    for prim in s.prims:
        kinds = [str(prim.GetTypeName()), *map(str, prim.GetPrimTypeInfo().GetAppliedAPISchemas())]
        if OTHER.fullmatch(kinds[0]) or any(map(SOFT.fullmatch, kinds)):
            leave(lost, UNKNOWN, f"{prim.GetPath()} ({next(k for k in kinds if OTHER.fullmatch(k) or SOFT.fullmatch(k))})")
        for name in prim.GetAuthoredPropertyNames():
            physics = PHYSICS.match(name)
            if physics and not READ.fullmatch(name) and not HARMLESS.fullmatch(name):
                found[f"{prim.GetPath()}.{name}"] = None
            elif CORE.match(name) and not HARMLESS.fullmatch(name) and not _is_defined(prim, name):
                idle.append(f"{prim.GetPath()}.{name}")
            elif physics or name.startswith("xformOp"):
                a = prim.GetAttribute(name)
                if a and a.ValueMightBeTimeVarying():
                    leave(lost, VARYING, f"{prim.GetPath()}.{name}")
    if found:
        leave(lost, "properties that are not read", *found)
    if idle:
        leave(lost, IDLE, *idle)


def _is_defined(prim: Any, name: str) -> bool:
    """Whether the type of a prim, or a schema that is applied to it, has a property."""
    return bool(prim.GetPrimDefinition().GetSchemaPropertySpec(name))
