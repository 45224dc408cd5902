"""Mass, mass centre and inertia of the rigid bodies of a USD stage, by the precedence of UsdPhysics.

A body's own mass, mass centre and inertia come first; what it leaves open comes from its enabled colliders, each of which may
give its own. A density is that of the collider, else of the body, else of the bound material, else 1000 kg/m^3. The sum of the
colliders is scaled to the mass of the body, and carried to its mass centre by the parallel-axis theorem.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pfaffian.formats.text.left_out import LeftOut, leave
from pfaffian.formats.text.solid import UniformSolid, box, capsule, cylinder, ellipsoid, hull, is_closed, polyhedron, together
from pfaffian.formats.usd.usd_stage import UsdStage, quaternion_of
from pfaffian.maths import so3

DENSITY = 1000.0
"""Density [kg/m^3] of colliders for which no density is given, by the UsdPhysics schema."""

POINT_RADIUS = 0.1
"""Radius [m] of the ball that UsdPhysics takes for a body with a mass, but without inertia and colliders."""

GIVEN = 1e-5
"""Size above which a component of an inertia or a quaternion counts as given, in the units of the stage, as in UsdPhysics."""

EVEN = 1e-5
"""Relative difference below which scales count as the same: those of a stage have single precision."""

TURNED = {
    "X": np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]]),
    "Y": np.array([[0.0, 1, 0], [0, 0, 1], [1, 0, 0]]),
    "Z": np.eye(3),
}
"""Axis of a solid -> the rotation that turns z onto it."""

ROUND = ("Cylinder", "Capsule", "Cone", "Cylinder_1", "Capsule_1")
"""Types of solids of revolution."""

APPROXIMATIONS = ("none", "meshSimplification", "convexHull", "convexDecomposition", "boundingSphere", "boundingCube")
"""The ways of UsdPhysics in which a mesh may collide."""

BALL, NO_MASS, OPEN_MESH, UNKNOWN_SOLID, SHELL, UNKNOWN_WAY, UNEVEN, INDEFINITE = (
    f"bodies with a mass, but without inertia and colliders, get the inertia of a ball of {POINT_RADIUS} m, as in UsdPhysics",
    "bodies have no mass, since they have neither mass nor enabled colliders",
    "the inertia of meshes that are not closed is that of their convex hull",
    "colliders whose volume is unknown add no mass",
    "shells and other mass models (newton:massModel) count as solid",
    "meshes whose physics:approximation UsdPhysics does not know have the mass of the mesh itself",
    "round colliders with several scales across stay round, with the largest, as in UsdPhysics",
    "moments without principalAxes have the axes of the colliders, as in UsdPhysics, of which rounding chooses two",
)


@dataclass(frozen=True)
class MassApi:
    """What the MassAPI of a prim gives, in SI units; None for what it leaves open.

    mass: [kg].   density: [kg/m^3].   com: (3,) [m].   inertia: (3,) moments or (3, 3) [kg m^2].   axes: (3, 3) of moments.
    """

    mass: float | None = None
    density: float | None = None
    com: np.ndarray | None = None
    inertia: np.ndarray | None = None
    axes: np.ndarray | None = None

    def tensor(self, axes: np.ndarray) -> np.ndarray:
        """The given inertia (3, 3).   axes: those of given moments."""
        assert self.inertia is not None
        return self.inertia if self.inertia.ndim == 2 else axes @ np.diag(self.inertia) @ axes.T


def body_moments(s: UsdStage, prim: Any, colliders: Sequence[Any], lost: LeftOut) -> UniformSolid:
    """Mass, mass centre and inertia of a body, in its frame.   colliders: its enabled ones."""
    given = read_mass_api(s, prim)
    if given.mass and given.com is not None and given.inertia is not None:
        return UniformSolid(given.mass, given.com, given.tensor(np.eye(3) if given.axes is None else given.axes))
    parts = [x for c in colliders if (x := _collider(s, prim, c, given.density, lost)) is not None]
    return _completed(given, parts, str(prim.GetPath()), lost)


def _completed(given: MassApi, parts: Sequence[UniformSolid], name: str, lost: LeftOut) -> UniformSolid:
    """What a body gives, completed by its colliders.   parts: these, in the frame of the body."""
    whole = together(parts)
    mass = given.mass or whole.mass
    com = whole.com if given.com is None else given.com
    axes = np.eye(3) if given.axes is None else given.axes
    if not whole.mass:
        if given.inertia is None and mass:
            leave(lost, BALL, name)
            return UniformSolid(mass, com, 0.4 * mass * POINT_RADIUS**2 * np.eye(3))
        if not mass:
            leave(lost, NO_MASS, name)
        return UniformSolid(mass, com, np.zeros((3, 3)) if given.inertia is None else given.tensor(axes))
    inertia = whole.weighing(mass).about(com)
    moments, principal = principal_axes(inertia)
    if given.inertia is not None:
        if given.axes is None and _are_indefinite(inertia, moments, given.inertia):
            leave(lost, INDEFINITE, name)
        return UniformSolid(mass, com, given.tensor(principal if given.axes is None else axes))
    return UniformSolid(mass, com, inertia if given.axes is None else axes @ np.diag(moments) @ axes.T)


def _are_indefinite(inertia: np.ndarray, moments: np.ndarray, given: np.ndarray) -> bool:
    """Whether rounding chooses the axes of given moments: two of the colliders' moments are equal where the given ones are not.

    inertia: (3, 3) of the colliders; where it is diagonal as computed, its axes are x, y and z.   moments: (3,) of it.
    """
    if given.ndim == 2 or not (inertia - np.diag(np.diag(inertia))).any():
        return False
    pairs = ((0, 1), (0, 2), (1, 2))
    alike = [(i, k) for i, k in pairs if abs(moments[i] - moments[k]) <= EVEN * moments.max()]
    return any(abs(given[i] - given[k]) > EVEN * given.max() for i, k in alike)


def read_mass_api(s: UsdStage, prim: Any) -> MassApi:
    """What the MassAPI of a prim gives. A zero, an infinite mass centre and a zero quaternion mean that it gives none."""
    from pxr import UsdPhysics

    if not prim.HasAPI(UsdPhysics.MassAPI):
        return MassApi()
    api = UsdPhysics.MassAPI(prim)
    mass, density = (float(a.Get() or 0.0) for a in (api.GetMassAttr(), api.GetDensityAttr()))
    com, inertia, axes = api.GetCenterOfMassAttr().Get(), api.GetDiagonalInertiaAttr().Get(), api.GetPrincipalAxesAttr().Get()
    six, unit = prim.GetAttribute("newton:inertia"), s.solid_frame(prim).scale * s.length
    tensor = np.array(inertia or (0, 0, 0), dtype=float) * s.inertia if inertia and np.abs(inertia).max() > GIVEN else None
    if six and six.Get():
        tensor = _tensor(s, prim, np.array(six.Get(), dtype=float)) * s.inertia
    q = None if axes is None else np.array(quaternion_of(axes))
    return MassApi(
        mass * s.mass if mass > 0 else None,
        density * s.mass / s.length**3 if density > 0 else None,
        np.array(com, dtype=float) * unit if com is not None and np.isfinite(com).all() else None,
        tensor,
        so3.quat_to_matrix(q / np.linalg.norm(q)).full() if q is not None and np.abs(q).max() > GIVEN else None,
    )


def _tensor(s: UsdStage, prim: Any, six: np.ndarray) -> np.ndarray:
    """(3, 3) from xx, yy, zz, xy, xz, yz."""
    if six.shape != (6,) or not np.isfinite(six).all():
        raise s.error(prim, f"newton:inertia must be six finite numbers xx, yy, zz, xy, xz, yz, got {six.tolist()}")
    xx, yy, zz, xy, xz, yz = six
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def _collider(s: UsdStage, body: Any, prim: Any, density: float | None, lost: LeftOut) -> UniformSolid | None:
    """One collider in the frame of its body; None if its volume is unknown.   density: of the body [kg/m^3]."""
    given = read_mass_api(s, prim)
    solid = _solid(s, prim, lost)
    if solid is None or not solid.mass:
        leave(lost, UNKNOWN_SOLID, str(prim.GetPath()))
        return None
    model = prim.GetAttribute("newton:massModel")
    if model and model.Get() not in (None, "solid") and (given.mass is None or given.inertia is None):
        leave(lost, SHELL, str(prim.GetPath()))
    rho = given.density or density or s.density(prim) or DENSITY
    solid = solid.weighing(given.mass or solid.mass * rho)
    axes = np.eye(3) if given.axes is None else given.axes
    com = solid.com if given.com is None else given.com
    if given.inertia is not None:
        inertia = given.tensor(axes)
    else:
        turned = UniformSolid(solid.mass, solid.com, axes @ solid.inertia @ axes.T)
        inertia = turned.about(com)
    (Rb, pb, _), (R, p, _) = s.frame(body), s.solid_frame(prim)
    return UniformSolid(solid.mass, com, inertia).placed(Rb.T @ R, Rb.T @ (p - pb))


def _solid(s: UsdStage, prim: Any, lost: LeftOut) -> UniformSolid | None:
    """The solid of a geometric prim in its own frame, its mass being its volume; None for a kind without a known volume."""
    kind = str(prim.GetTypeName())
    if kind == "Mesh":
        return _mesh(s, prim, s.solid_frame(prim).scale * s.length, lost)
    if kind == "Cube":
        return box(edges(s, prim))
    if kind != "Sphere" and kind not in ROUND:
        return None
    scale = np.abs(s.solid_frame(prim).scale)
    across = scale if kind == "Sphere" else np.delete(scale, "XYZ".index(s.axis(prim, "axis")))
    if np.ptp(across) > EVEN * across.max():
        leave(lost, UNEVEN, str(prim.GetPath()))
    if kind == "Sphere":
        return ellipsoid(np.full(3, ball_radius(s, prim)))
    axis, bottom, top, length = round_sizes(s, prim)
    made = (capsule if kind.startswith("Capsule") else cylinder)(bottom, top, length)
    return made.placed(TURNED[axis], np.zeros(3))


def edges(s: UsdStage, cube: Any) -> np.ndarray:
    """(3,) edges [m] of a Cube."""
    return s.size(cube, "size") * np.abs(s.solid_frame(cube).scale) * s.length


def ball_radius(s: UsdStage, sphere: Any) -> float:
    """The radius [m] of a Sphere, by its largest scale."""
    return s.size(sphere, "radius") * float(np.abs(s.solid_frame(sphere).scale).max()) * s.length


def round_sizes(s: UsdStage, prim: Any) -> tuple[str, float, float, float]:
    """The axis of a round solid, its radii at the lower and the upper end, and its length [m], of a capsule without the balls.

    Raises ModelError: a size is below zero, or one is zero without which the solid has no volume.
    """
    kind, axis, scale = str(prim.GetTypeName()), s.axis(prim, "axis"), s.solid_frame(prim).scale * s.length
    k = "XYZ".index(axis)
    thick = float(np.abs(np.delete(scale, k)).max())
    length = (s.size(prim, "height", 0.0) if kind.startswith("Capsule") else s.size(prim, "height")) * float(abs(scale[k]))
    if kind.endswith("_1"):
        ends = [s.size(prim, name, 0.0) * thick for name in ("radiusBottom", "radiusTop")]
    else:
        radius = s.size(prim, "radius") * thick
        ends = [radius, 0.0 if kind == "Cone" else radius]
    if not any(ends):
        raise s.error(prim, "both of its radii are zero; one must be above zero")
    bottom, top = ends[::-1] if scale[k] < 0 else ends
    return axis, bottom, top, length


def _mesh(s: UsdStage, prim: Any, scale: np.ndarray, lost: LeftOut) -> UniformSolid | None:
    """The solid of a mesh, by its `physics:approximation`: its hull, a box or a ball around it, or else the mesh itself."""
    points = np.array(prim.GetAttribute("points").Get() or np.zeros((0, 3)), dtype=float).reshape(-1, 3) * scale
    counts = np.array(prim.GetAttribute("faceVertexCounts").Get() or (), dtype=int)
    corners = np.array(prim.GetAttribute("faceVertexIndices").Get() or (), dtype=int)
    missing = (corners < 0).any() or (corners >= len(points)).any()
    if missing or (counts < 0).any() or counts.sum() != len(corners) or not np.isfinite(points).all():
        raise s.error(prim, "its points and faces do not fit together; correct faceVertexCounts and faceVertexIndices")
    if not len(corners):
        return None
    way = str(prim.GetAttribute("physics:approximation").Get() or "none") if _approximates(prim) else "none"
    if way not in APPROXIMATIONS:
        leave(lost, UNKNOWN_WAY, f"{prim.GetPath()} ({way})")
    low, high = points.min(axis=0), points.max(axis=0)
    if way == "boundingCube":
        return box(high - low).placed(np.eye(3), (low + high) / 2)
    if way == "boundingSphere":
        centre = (low + high) / 2
        return ellipsoid(np.full(3, np.linalg.norm(points - centre, axis=1).max())).placed(np.eye(3), centre)
    triangles = _fans(counts, corners)
    if way != "convexHull" and is_closed(points, triangles):
        return polyhedron(points, triangles)
    if way != "convexHull":
        leave(lost, OPEN_MESH, str(prim.GetPath()))
    return hull(points, f"{s.place(prim)}: the convex hull of a mesh needs")


def _approximates(prim: Any) -> bool:
    """Whether a mesh may say by which solid it collides."""
    from pxr import UsdPhysics

    return bool(prim.HasAPI(UsdPhysics.MeshCollisionAPI))


def _fans(counts: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """(n, 3) triangles of a mesh's faces, each face a fan about its first corner."""
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    fan = np.maximum(counts - 2, 0)
    first = np.repeat(starts, fan)
    k = np.arange(fan.sum()) - np.repeat(np.cumsum(fan) - fan, fan)
    return np.stack([corners[first], corners[first + k + 1], corners[first + k + 2]], axis=1)


def principal_axes(I: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Moments (3,) and axes (3, 3) of an inertia, each axis that next to x, y or z, by Jacobi's rotations as in UsdPhysics.

    The order is a part of the answer: UsdPhysics combines these moments with given axes, and given moments with these axes.
    """
    axes, scale = np.eye(3), np.abs(I).max()
    for _ in range(24):
        d = axes.T @ I @ axes
        k = int(np.argmax([abs(d[1, 2]), abs(d[0, 2]), abs(d[0, 1])]))
        a, b = (k + 1) % 3, (k + 2) % 3
        if abs(d[a, b]) <= np.finfo(float).eps * scale:
            break
        w = (d[a, a] - d[b, b]) / (2 * d[a, b])  # cot of twice the angle
        angle = np.arctan(1 / (abs(w) + np.hypot(w, 1))) * (1 if w >= 0 else -1)
        R = np.eye(3)
        R[a, a] = R[b, b] = np.cos(angle)
        R[a, b], R[b, a] = -np.sin(angle), np.sin(angle)
        axes = axes @ R
    return np.diag(axes.T @ I @ axes), axes
