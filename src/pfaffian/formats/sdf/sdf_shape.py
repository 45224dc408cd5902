"""The shapes of an SDF link: <visual> and <collision>."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pfaffian.errors import ModelError
from pfaffian.formats.sdf.sdf_part import value, word, written_pose
from pfaffian.formats.text.left_out import LeftOut, leave
from pfaffian.formats.text.mesh_file import MeshFolders
from pfaffian.formats.text.strict_number import numbers, words_of
from pfaffian.formats.text.xml import Element
from pfaffian.model.shape import ROLES, Shape, mesh, shape
from pfaffian.output.plain import text

UNREAD = "shapes that cannot be read, or are not a box, sphere, cylinder, capsule, cone or mesh, are left out of pictures"


def read_shapes(link: Element, where: MeshFolders, lost: LeftOut) -> tuple[Shape, ...]:
    """The shapes of a <link>. Those that cannot be read are left out, since no motion depends on them."""
    found = list[Shape]()
    for role in ROLES:
        for element in link.all(role):
            try:
                made = _shape(element, role, where)
            except ModelError:
                made = None
            if made is None:
                leave(lost, UNREAD, link.attributes["name"])
            else:
                found.append(made)
    return tuple(found)


def _shape(element: Element, role: str, where: MeshFolders) -> Shape | None:
    """A <visual> or <collision> as a shape; None if it is of an unknown kind, or placed relative to another frame."""
    geometry = element.only("geometry")
    solid = geometry.children[0] if geometry and len(geometry.children) == 1 else None
    if solid is None or (element.only("pose") or element).attributes.get("relative_to"):
        return None
    at, colour = written_pose(element.only("pose")), _colour(element)
    if solid.tag == "mesh":
        name = word(solid, "uri")
        scale = numbers(word(solid, "scale", "1 1 1"), 3, solid.where)
        return mesh(where.find(name), text(name, 120), scale, at, colour, role)
    sizes: dict[str, Callable[[], dict[str, Any]]] = {
        "box": lambda: {"size": numbers(word(solid, "size"), 3, solid.where)},
        "sphere": lambda: {"radius": value(solid, "radius", 1.0)},
    }
    for kind in ("cylinder", "capsule", "cone"):
        sizes[kind] = lambda: {"radius": value(solid, "radius", 1.0), "length": value(solid, "length", 1.0)}
    return shape(solid.tag, **sizes[solid.tag](), placement=at, colour=colour, role=role) if solid.tag in sizes else None


def _colour(element: Element) -> tuple[float, ...] | None:
    """The diffuse or ambient colour of a material, with components limited to 0 to 1; None if there is none."""
    material = element.only("material")
    colour = None if material is None else material.only("diffuse") or material.only("ambient")
    if colour is None:
        return None
    count = len(words_of(colour.content)[:5])
    return tuple(min(max(x, 0.0), 1.0) for x in numbers(colour.content, count, colour.where)) if count in (3, 4) else None
