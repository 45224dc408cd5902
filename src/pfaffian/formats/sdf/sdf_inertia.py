"""The inertia of an SDF link that the file leaves to its collision shapes: <inertial auto="true">.

The density of a shape is its own, else that in <inertial>, else 1000 kg/m^3. A <mass> in <inertial> scales the sum to it.
"""

from __future__ import annotations

from pathlib import Path

import casadi as ca
import numpy as np

from pfaffian.errors import optional
from pfaffian.formats.sdf.sdf_part import value, word, written_pose
from pfaffian.formats.text.mesh_file import MeshFolders
from pfaffian.formats.text.solid import UniformSolid, box, capsule, cylinder, ellipsoid, is_closed, polyhedron, together
from pfaffian.formats.text.strict_number import numbers, printable
from pfaffian.formats.text.xml import Element

DENSITY = 1000.0
"""Density [kg/m^3] of shapes without another one, by the SDF specification."""

GIVE = "write <mass> and <inertia>, without auto"
"""Way out of errors."""


def auto_inertia(link: Element, inertial: Element, where: MeshFolders) -> UniformSolid:
    """Mass, mass centre and inertia of a link, from its <collision> elements.   where: places of meshes.

    Raises ModelError: it has none, or one whose inertia is unknown; the file gives a pose or an inertia as well.
    """
    for tag in ("pose", "inertia"):
        if inertial.only(tag) is not None:
            raise inertial.error(f"with auto, <{tag}> is computed and must not be given; remove it, or auto")
    common = value(inertial, "density", DENSITY)
    shapes = link.all("collision")
    if not shapes:
        raise inertial.error(f"auto needs a <collision> of the link, which has none; add one, or {GIVE}")
    parts = []
    for shape in shapes:
        density = value(shape, "density", common)
        if not density > 0:
            raise shape.error(f"the density {density} is not above zero; correct it")
        solid = _solid(shape, where)
        if not solid.mass > 0:
            raise shape.error(f"it has no volume, so auto cannot give it a mass; correct its size, or {GIVE}")
        at = _placed(shape)
        parts.append(solid.weighing(density * solid.mass).placed(*at))
    whole = together(parts)
    mass = value(inertial, "mass", whole.mass)
    if not mass > 0:
        raise inertial.error(f"the mass {mass} is not above zero; correct it")
    return whole.weighing(mass)


def _placed(shape: Element) -> tuple[np.ndarray, np.ndarray]:
    """Rotation and position of a shape in its link."""
    pose = shape.only("pose")
    if pose is not None and pose.attributes.get("relative_to"):
        raise pose.error(f"a shape that gives the inertia must be placed in its link; leave relative_to out, or {GIVE}")
    at = written_pose(pose)
    return np.array(ca.DM(at.R)), np.array(ca.DM(at.p)).ravel()


def _solid(shape: Element, where: MeshFolders) -> UniformSolid:
    """The solid of a <collision> in its own frame, its mass being its volume. Raises ModelError: its inertia is unknown."""
    geometry = shape.only("geometry")
    if geometry is None or len(geometry.children) != 1:
        raise shape.error("one shape is needed in <geometry>; add it")
    (of,) = geometry.children
    if of.tag == "box":
        return box(np.array(numbers(word(of, "size", "1 1 1"), 3, of.where)))
    if of.tag == "ellipsoid":
        return ellipsoid(np.array(numbers(word(of, "radii", "1 1 1"), 3, of.where)))
    if of.tag == "sphere":
        return ellipsoid(np.full(3, value(of, "radius", 1.0)))
    if of.tag in ("cylinder", "capsule", "cone"):
        radius, length = value(of, "radius", 0.5), value(of, "length", 1.0)
        return (capsule if of.tag == "capsule" else cylinder)(radius, 0.0 if of.tag == "cone" else radius, length)
    if of.tag == "mesh":
        return _mesh(of, where)
    raise of.error(f"auto knows no inertia of this shape; use another, or {GIVE}")


def _mesh(of: Element, where: MeshFolders) -> UniformSolid:
    """The solid of a mesh file. Raises ModelError: it is missing, or the mesh is not closed; trimesh is not installed."""
    name = word(of, "uri")
    path = where.find(name)
    if path is None:
        raise of.error(f"auto needs the mesh {printable(name)}, which is not found; pass meshes=[its folder], or {GIVE}")
    trimesh = optional("trimesh", "trimesh", f"{of.where}: to compute the inertia of a mesh needs", GIVE)
    try:
        mesh = trimesh.load(path, force="mesh", process=False)
        points, triangles = np.array(mesh.vertices, dtype=float), np.array(mesh.faces, dtype=int)
    except Exception as error:  # a loader of trimesh may raise anything for a damaged file
        raise of.error(f"the mesh {printable(Path(path).name)} cannot be read ({type(error).__name__}); {GIVE}") from None
    scale = np.array(numbers(word(of, "scale", "1 1 1"), 3, of.where))
    if not len(triangles) or not is_closed(points, triangles):
        raise of.error(f"the mesh {printable(Path(path).name)} is not closed, so it has no inertia; close it, or {GIVE}")
    return polyhedron(points * scale, triangles)
