"""Rigid bodies of a USD stage, with mass properties and shapes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.formats.text.left_out import LeftOut
from pfaffian.formats.usd.usd_mass import TURNED, ball_radius, body_moments, edges, round_sizes
from pfaffian.formats.usd.usd_stage import UsdStage
from pfaffian.model.body import Body, body
from pfaffian.model.pose import Pose
from pfaffian.model.shape import Shape, mesh, shape

_SHAPES = {
    "Cube": "box", "Sphere": "sphere", "Cylinder": "cylinder", "Capsule": "capsule", "Cone": "cone", "Cylinder_1": "cylinder",
    "Capsule_1": "capsule",
}  # fmt: skip
"""Type of a prim -> kind of its shape."""

BACK = np.diag([1.0, -1.0, -1.0])
"""Half a turn, by which the tip of a mirrored cone points down."""


def rigid_bodies(s: UsdStage) -> list[Any]:
    """The prims with an enabled RigidBodyAPI, in the order of the stage."""
    return [prim for prim in s.prims if moves(prim)]


def moves(prim: Any) -> bool:
    """Whether a prim is a rigid body; one that is disabled is part of what it stands in."""
    from pxr import UsdPhysics

    return prim.HasAPI(UsdPhysics.RigidBodyAPI) and UsdPhysics.RigidBodyAPI(prim).GetRigidBodyEnabledAttr().Get() is not False


def read_body(s: UsdStage, prim: Any, name: str, lost: LeftOut) -> Body:
    """A body with its shapes; mass, mass centre and inertia by the precedence of UsdPhysics."""
    parts = list(_parts(prim))
    solid = body_moments(s, prim, [x for x in parts if collides(x)], lost)
    shapes = tuple(made for x in parts if (made := _shape(s, prim, x)) is not None)
    I = solid.inertia
    six = [I[i, k] for i, k in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
    return body(name, solid.mass, solid.com, six if any(six) else 0.0, shape=shapes)


def collides(part: Any) -> bool:
    """Whether a prim is an enabled collider."""
    from pxr import UsdPhysics

    return part.HasAPI(UsdPhysics.CollisionAPI) and UsdPhysics.CollisionAPI(part).GetCollisionEnabledAttr().Get() is not False


def _parts(prim: Any) -> Iterator[Any]:
    """The prims at and below a body that may be its colliders or shapes, also those of instances; none of other bodies."""
    from pxr import Usd, UsdGeom, UsdPhysics

    below = iter(Usd.PrimRange(prim, Usd.TraverseInstanceProxies()))
    for part in below:
        if part != prim and moves(part):
            below.PruneChildren()
        elif part.IsA(UsdGeom.Gprim) or part.HasAPI(UsdPhysics.CollisionAPI):
            yield part


def _shape(s: UsdStage, body: Any, part: Any) -> Shape | None:
    """The shape of a geometric prim; None for kinds that `shape` lacks."""
    from pxr import UsdGeom, UsdPhysics

    (Rb, pb, _), (R, p, _) = s.frame(body), s.solid_frame(part)
    at = Pose(ca.SX(Rb.T @ R), ca.SX(Rb.T @ (p - pb)))
    role = "collision" if part.HasAPI(UsdPhysics.CollisionAPI) else "visual"
    kind = str(part.GetTypeName())
    if kind == "Mesh":
        return mesh(None, str(part.GetPath())[:120], placement=at, role=role)
    if kind not in _SHAPES:
        return None
    colours = UsdGeom.Gprim(part).GetDisplayColorAttr().Get()
    style: dict[str, Any] = {
        "role": role, "colour": np.clip(colours[0], 0, 1).tolist() if colours else None,
    }  # fmt: skip
    if kind == "Cube":
        return shape("box", size=edges(s, part).tolist(), placement=at, **style)
    if kind == "Sphere":
        return shape("sphere", radius=ball_radius(s, part), placement=at, **style)
    axis, bottom, top, length = round_sizes(s, part)
    if not length:
        return shape("sphere", radius=max(bottom, top), placement=at, **style)
    turned = at @ Pose(ca.SX(TURNED[axis] @ (BACK if kind == "Cone" and top > bottom else np.eye(3))), ca.SX.zeros(3, 1))
    return shape(_SHAPES[kind], radius=max(bottom, top), length=length, placement=turned, **style)
