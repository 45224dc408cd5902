"""The shapes of a URDF file: the <visual> and <collision> elements of its links, with their materials."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pfaffian.errors import ModelError
from pfaffian.formats.text.mesh_file import MeshFolders
from pfaffian.formats.text.xml import Element
from pfaffian.formats.urdf.urdf_part import UrdfLink, place_of
from pfaffian.formats.urdf.urdf_warnings import warn
from pfaffian.model.shape import ROLES, Colour, Shape, mesh, shape
from pfaffian.output.plain import text


def read_colours(robot: Element) -> dict[str, Colour]:
    """Name -> colour of each material defined below <robot> for all links; those that cannot be read are left out."""
    found: dict[str, Colour] = {}
    for material in robot.all("material"):
        try:
            colour = _colour(material, {})
        except ModelError:
            continue
        if colour and "name" in material.attributes:
            found[material.attributes["name"]] = colour
    return found


def read_shapes(link: Element, colours: Mapping[str, Colour], where: MeshFolders) -> tuple[tuple[Shape, ...], list[ModelError]]:
    """The shapes of a <link>, and the errors of those that cannot be read."""
    found = [e for e in link.children if e.tag in ROLES]
    if not found:
        return (), []
    shapes, wrong = list[Shape](), list[ModelError]()
    for element in sorted(found, key=lambda e: ROLES.index(e.tag)):
        try:
            shapes.append(_shape(element, element.tag, colours, where))
        except ModelError as error:
            wrong.append(error)
    return tuple(shapes), wrong


def _shape(element: Element, role: str, colours: Mapping[str, Colour], where: MeshFolders) -> Shape:
    """The shape of a <visual> or <collision>. Raises ModelError: it is not exactly one shape of a known kind."""
    geometry = element.only("geometry")
    solids = geometry.children if geometry else []
    if len(solids) != 1:
        raise element.error("exactly one shape in <geometry> is needed")
    at, material = place_of(element.only("origin")), element.only("material")
    colour = _colour(material, colours) if material else None
    solid = solids[0]
    if solid.tag == "mesh":
        name = solid.text("filename")
        return _placed(solid, mesh, where.find(name), text(name, 120), solid.numbers("scale", (1.0, 1.0, 1.0)), at,
                       colour, role)  # fmt: skip
    sizes: dict[str, Any] = {
        "box": lambda: {"size": [float(x) for x in _three(solid)]},
        "sphere": lambda: {"radius": solid.number("radius")},
        "cylinder": lambda: {"radius": solid.number("radius"), "length": solid.number("length")},
        "capsule": lambda: {"radius": solid.number("radius"), "length": solid.number("length")},
    }
    if solid.tag not in sizes:
        raise solid.error(f"this kind of shape is unknown; the kinds are {', '.join(sizes)}, mesh")
    return _placed(solid, shape, solid.tag, **sizes[solid.tag](), placement=at, colour=colour, role=role)


def _three(box: Element) -> tuple[float, ...]:
    box.text("size")
    return box.numbers("size", (0.0, 0.0, 0.0))


def _placed(element: Element, make: Any, *args: Any, **given: Any) -> Shape:
    """The result of `make`, whose errors get the place in the file."""
    try:
        return make(*args, **given)
    except ModelError as error:
        raise element.error(str(error)) from None


def _colour(material: Element, colours: Mapping[str, Colour]) -> Colour | None:
    """The colour of a material, or of the global one with its name; components are limited to 0 to 1."""
    color = material.only("color")
    if color is None:
        return colours.get(material.attributes.get("name", ""))
    return tuple(min(max(x, 0.0), 1.0) for x in color.numbers("rgba", (0.5, 0.5, 0.5, 1.0)))


def shapes_of_links(
    robot: Element, links: Mapping[str, UrdfLink], strict: bool, where: MeshFolders
) -> dict[str, tuple[Shape, ...]]:
    """Link -> its shapes. Those that cannot be read are left out with a warning, or refused if `strict`."""
    colours, found, wrong = read_colours(robot), dict[str, tuple[Shape, ...]](), list[ModelError]()
    for name, link in links.items():
        found[name], bad = read_shapes(link.element, colours, where)
        wrong += bad
    if wrong and strict:
        raise wrong[0]
    if wrong:
        more = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        warn(f"{robot.source}: shapes that cannot be read are left out of pictures: {wrong[0]}{more}")
    return found
