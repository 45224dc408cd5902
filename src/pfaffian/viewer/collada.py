"""Plain COLLADA: triangles and polygons of instances of geometries, placed by nodes, in the colours of their materials.

The unit of the file is applied, as RViz and Gazebo do; like these, `up_axis` is not. Controllers, instances of nodes and
primitives that are seldom written are unknown here.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import NoReturn

import numpy as np

from pfaffian.formats.text.xml import Element
from pfaffian.viewer.solids import Solid

PRIMITIVES = ("triangles", "polylist")

NOTHING = {"lines", "linestrips", "extra", "instance_camera", "instance_light", "asset"}
"""What has no triangles."""


class UnreadCollada(Exception):
    """The file contains what this reader does not know, or contradicts itself."""


def solids(root: Element) -> list[Solid]:
    """The solids of a file, one for each primitive of each instance of a geometry.   root: read with its words.

    Raises UnreadCollada: another reader has to try.
    """
    try:
        ids = {x.attributes["id"]: x for x in _all(root) if "id" in x.attributes}
        top = _one(_one(root, "scene"), "instance_visual_scene")
        start = np.diag([unit(root)] * 3 + [1.0])
        return [s for node in _referred(ids, top).all("node") for s in _placed(ids, node, start)]
    except (KeyError, IndexError, ValueError, RecursionError) as error:
        raise UnreadCollada(str(error)) from None


def unit(root: Element) -> float:
    """The unit of length of a file [m]."""
    found = [x for a in root.all("asset") for x in a.all("unit")]
    length = float(found[0].attributes.get("meter", 1.0)) if found else 1.0
    return length if np.isfinite(length) and length > 0 else 1.0


def _all(x: Element) -> Iterator[Element]:
    yield x
    for child in x.children:
        yield from _all(child)


def _one(x: Element, tag: str) -> Element:
    (found,) = x.all(tag)
    return found


def _referred(ids: dict[str, Element], x: Element, attribute: str = "url") -> Element:
    """The element of the same file to which another one refers."""
    address = x.attributes[attribute]
    return ids[address.removeprefix("#")] if address.startswith("#") else _unknown(address)


def _unknown(what: str) -> NoReturn:
    raise UnreadCollada(what)


def _placed(ids: dict[str, Element], node: Element, X: np.ndarray) -> Iterator[Solid]:
    """The solids of a node and of those in it.   X: (4, 4) from the frame about the node to that of the file."""
    inside = list[Element]()
    for x in node.children:
        if x.tag in ("matrix", "translate", "rotate", "scale"):
            X = X @ _step(x)
        elif x.tag in ("node", "instance_geometry"):
            inside.append(x)
        elif x.tag not in NOTHING:
            _unknown(x.tag)
    for x in inside:
        if x.tag == "node":
            yield from _placed(ids, x, X)
        else:
            yield from (_moved(s, X) for s in _geometry(ids, x))


def _step(x: Element) -> np.ndarray:
    """(4, 4) of one transformation of a node."""
    values, X = _numbers(x), np.eye(4)
    if x.tag == "matrix":
        return values.reshape(4, 4)
    if x.tag == "translate":
        X[:3, 3] = values
    elif x.tag == "scale":
        X[:3, :3] = np.diag(values)
    else:
        axis, angle = values[:3] / np.linalg.norm(values[:3]), np.deg2rad(values[3])
        K = np.cross(np.eye(3), axis)
        X[:3, :3] += np.sin(angle) * K + (1 - np.cos(angle)) * K @ K
    return X


def _moved(s: Solid, X: np.ndarray) -> Solid:
    faces = s.faces[:, ::-1] if np.linalg.det(X[:3, :3]) < 0 else s.faces  # a mirror turns the triangles inside out
    return s.moved(X[:3, :3], X[:3, 3])._replace(faces=faces)


def _geometry(ids: dict[str, Element], instance: Element) -> Iterator[Solid]:
    """The solids of an instance of a geometry, in its own frame."""
    colours = _colours(ids, instance)
    for x in _one(_referred(ids, instance), "mesh").children:
        if x.tag in PRIMITIVES:
            vertices, faces = _triangles(ids, x)
            if len(faces):
                yield Solid(vertices, faces, colours.get(x.attributes.get("material", "")))
        elif x.tag not in NOTHING | {"source", "vertices"}:
            _unknown(x.tag)


def _triangles(ids: dict[str, Element], x: Element) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (n, 3) and faces (m, 3) of a primitive; a polygon is a fan of triangles."""
    inputs = x.all("input")
    (of_vertices,) = [i for i in inputs if i.attributes["semantic"] == "VERTEX"]
    (position,) = [i for i in _referred(ids, of_vertices, "source").all("input") if i.attributes["semantic"] == "POSITION"]
    vertices = _points(ids, _referred(ids, position, "source"))
    if not int(x.attributes["count"]):
        return vertices, np.zeros((0, 3), dtype=np.int64)
    width = 1 + max(int(i.attributes["offset"]) for i in inputs)
    corners = _numbers(_one(x, "p"), np.int64).reshape(-1, width)[:, int(of_vertices.attributes["offset"])]
    sides = _numbers(_one(x, "vcount"), np.int64) if x.tag == "polylist" else np.full(len(corners) // 3, 3)
    if sides.sum() != len(corners) or len(sides) != int(x.attributes["count"]) or (sides < 3).any():
        _unknown("other numbers of corners")
    first = np.repeat(np.cumsum(sides) - sides, sides - 2)
    step = np.arange(len(first)) - np.repeat(np.cumsum(sides - 2) - (sides - 2), sides - 2) + 1
    faces = corners[np.stack([first, first + step, first + step + 1], axis=1)]
    if faces.min() < 0 or faces.max() >= len(vertices):
        _unknown("vertices that are missing")
    return vertices, faces


def _points(ids: dict[str, Element], source: Element) -> np.ndarray:
    """(n, 3) points of a source."""
    accessor = _one(_one(source, "technique_common"), "accessor")
    names = [p.attributes.get("name") for p in accessor.all("param")]
    if names != ["X", "Y", "Z"] or accessor.attributes.get("stride") != "3" or accessor.attributes.get("offset", "0") != "0":
        _unknown("another order of coordinates")
    points = _numbers(_referred(ids, accessor, "source")).reshape(-1, 3)
    return points if np.isfinite(points).all() else _unknown("coordinates that are not finite")


def _colours(ids: dict[str, Element], instance: Element) -> dict[str, tuple[float, ...]]:
    """Symbol of each material of an instance -> its colour; white where a texture gives it."""
    found = {}
    for x in _all(instance):
        if x.tag == "instance_material":
            effect = _referred(ids, _one(_referred(ids, x, "target"), "instance_effect"))
            tags = {e.tag: e for e in _all(effect)}
            paint = _colour(tags.get("diffuse")) or (1.0, 1.0, 1.0, 1.0)
            through = _colour(tags.get("transparent"))
            found[x.attributes["symbol"]] = paint if through is None else (*paint[:3], through[3])
    return found


def _colour(x: Element | None) -> tuple[float, ...] | None:
    """The colour (4,) in an element, from 0 to 1; None where it gives none."""
    if x is None or not x.all("color"):
        return None
    red, green, blue, opacity = _numbers(_one(x, "color")).clip(0, 1)
    return float(red), float(green), float(blue), float(opacity)


def _numbers(x: Element, kind: type = float) -> np.ndarray:
    """The numbers between the tags of an element, as many as it says."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # NumPy's for words among numbers
        try:
            values: np.ndarray = np.fromstring(x.content, dtype=kind, sep=" ")
        except DeprecationWarning as error:
            raise UnreadCollada(str(error)) from None
    return values if int(x.attributes.get("count", len(values))) == len(values) else _unknown("other numbers of values")
