"""Rigid bodies of a USD stage, with mass properties and shapes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.formats.usd.usd_stage import UsdStage
from pfaffian.model.body import Body, body
from pfaffian.model.pose import Pose, pose
from pfaffian.model.shape import Shape, mesh, moments, shape

DENSITY = 1000.0
"""Density [kg/m^3] of bodies with neither mass nor density, by the UsdPhysics schema."""

_ALONG = {"X": (0.0, np.pi / 2, 0.0), "Y": (-np.pi / 2, 0.0, 0.0), "Z": (0.0, 0.0, 0.0)}
"""Axis of a solid -> roll, pitch, yaw [rad] that turn z onto it."""


def rigid_bodies(s: UsdStage) -> list[Any]:
    """The prims with an enabled RigidBodyAPI, in the order of the stage."""
    from pxr import UsdPhysics

    found = []
    for prim in s.stage.Traverse():
        if prim.HasAPI(UsdPhysics.RigidBodyAPI):
            enabled = UsdPhysics.RigidBodyAPI(prim).GetRigidBodyEnabledAttr().Get()
            if enabled is not False:
                found.append(prim)
    return found


def read_body(s: UsdStage, prim: Any, name: str) -> Body:
    """A body with its shapes; mass, mass centre and inertia from its MassAPI or, if missing there, from its colliders."""
    shapes = tuple(_shapes(s, prim))
    given = _mass_api(prim)
    m, com, I = given["mass"] * s.mass, given["com"], given["inertia"]
    solid = moments([_weighing(x, given["density"] or DENSITY / s.mass * s.length**3, s) for x in shapes if _counts(x)])
    if not m and solid is not None:
        m = float(solid.mass)
    _, _, scale = s.frame(prim)
    if com is None:
        c = np.zeros(3) if solid is None else np.array(ca.DM(solid.com)).ravel()
    else:
        c = np.array(com) * scale * s.length
    if I is None:
        tensor = np.zeros((3, 3)) if solid is None else np.array(ca.DM(solid.inertia)) * (m / float(solid.mass))
    else:
        R = np.array(ca.DM(pose(quaternion=given["axes"]).R))
        tensor = R @ np.diag(I) @ R.T * s.inertia
    six = [tensor[i, k] for i, k in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
    return body(name, m, c, six if any(six) else 0.0, shape=shapes)


def _mass_api(prim: Any) -> dict[str, Any]:
    """Values of the MassAPI in the units of the stage; com and inertia are None if they have the defaults of the schema."""
    from pxr import UsdPhysics

    found: dict[str, Any] = {"mass": 0.0, "density": 0.0, "com": None, "inertia": None, "axes": (0.0, 0.0, 0.0, 1.0)}
    if not prim.HasAPI(UsdPhysics.MassAPI):
        return found
    api = UsdPhysics.MassAPI(prim)
    found["mass"], found["density"] = float(api.GetMassAttr().Get() or 0.0), float(api.GetDensityAttr().Get() or 0.0)
    com, inertia, axes = api.GetCenterOfMassAttr().Get(), api.GetDiagonalInertiaAttr().Get(), api.GetPrincipalAxesAttr().Get()
    if com is not None and np.isfinite(tuple(com)).all():
        found["com"] = tuple(com)
    if inertia is not None and any(inertia):
        found["inertia"] = tuple(inertia)
    if axes is not None and (any(axes.imaginary) or axes.real):
        found["axes"] = (*axes.imaginary, axes.real)
    return found


def _counts(x: Shape) -> bool:
    """Whether a shape contributes to the inertia of a body without a given one."""
    return x.role == "collision" and x.kind != "mesh"


def _weighing(x: Shape, density: float, s: UsdStage) -> Shape:
    """The shape with a mass.   density: in the units of the stage."""
    sizes = {"box": ("size",), "sphere": ("radius",)}.get(x.kind, ("radius", "length"))
    values = np.array(ca.DM(x.size)).ravel().tolist()
    given: dict[str, Any] = {"size": values} if x.kind == "box" else dict(zip(sizes, values, strict=True))
    return shape(x.kind, **given, placement=x.placement, density=density * s.mass / s.length**3)


def _shapes(s: UsdStage, prim: Any) -> Iterator[Shape]:
    """The shapes of the geometry at and below a body, except below other bodies."""
    from pxr import Usd, UsdGeom, UsdPhysics

    R, p, _ = s.frame(prim)
    below = iter(Usd.PrimRange(prim))
    for part in below:
        if part != prim and part.HasAPI(UsdPhysics.RigidBodyAPI):
            below.PruneChildren()
        elif part.IsA(UsdGeom.Gprim):
            Rs, ps, scale = s.frame(part)
            made = _solid(s, part, scale, Pose(ca.SX(R.T @ Rs), ca.SX(R.T @ (ps - p))))
            if made is not None:
                yield made


def _solid(s: UsdStage, part: Any, scale: np.ndarray, at: Pose) -> Shape | None:
    """The shape of a geometric prim; None for kinds that `shape` lacks.   scale: (3,).   at: its pose in the body."""
    from pxr import UsdGeom, UsdPhysics

    role = "collision" if part.HasAPI(UsdPhysics.CollisionAPI) else "visual"
    colours = UsdGeom.Gprim(part).GetDisplayColorAttr().Get()
    colour = [min(max(float(c), 0.0), 1.0) for c in colours[0]] if colours else None
    style: dict[str, Any] = {"role": role, "colour": colour}
    kind = part.GetTypeName()

    def value(name: str) -> float:
        return float(part.GetAttribute(name).Get())

    if kind == "Cube":
        return shape("box", size=(value("size") * scale * s.length).tolist(), placement=at, **style)
    if kind == "Mesh":
        return mesh(None, str(part.GetPath())[:120], placement=at, role=role)
    if kind not in ("Sphere", "Cylinder", "Capsule", "Cone"):
        return None
    radius = value("radius") * float(scale.max()) * s.length
    if kind == "Sphere":
        return shape("sphere", radius=radius, placement=at, **style)
    axis = str(part.GetAttribute("axis").Get())
    k = "XYZ".index(axis)
    radius = value("radius") * float(np.delete(scale, k).max()) * s.length
    length = value("height") * float(scale[k]) * s.length
    return shape(kind.lower(), radius=radius, length=length, placement=at @ pose(rpy=_ALONG[axis]), **style)
