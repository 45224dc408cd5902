"""Reading the values in entries of YAML files: poses, shapes, pseudo-matrices, surfaces, functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError
from pfaffian.formats.text.expression import words
from pfaffian.formats.text.library_laws import Names, read_law, whole
from pfaffian.formats.text.mesh_file import MESHES, NOWHERE, MeshFolders
from pfaffian.formats.text.place import WAY_OUT
from pfaffian.formats.text.strict_number import printable
from pfaffian.formats.text.written import Written
from pfaffian.formats.text.yaml_tree import Node
from pfaffian.model.number import at_defaults
from pfaffian.model.path import Path
from pfaffian.model.pose import IDENTITY, Pose, pose
from pfaffian.model.shape import ROLES, SIZES, Shape, mesh, shape
from pfaffian.parts.elastic import pseudo_matrix
from pfaffian.parts.wheels import Plane, plane


def take(fields: Mapping[str, Node], **readers: Callable[[Node], Any]) -> dict[str, Any]:
    """The values of the keys that are present.   readers: key -> reader of its value."""
    return {key: read(fields[key]) for key, read in readers.items() if key in fields}


def made_at(node: Node, make: Callable[..., Any], *args: Any, **given: Any) -> Any:
    """The result of `make`, whose errors get the place in the file."""
    try:
        return make(*args, **given)
    except ModelError as error:
        raise node.error(str(error)) from None


def read_pose(node: Node, names: Names) -> Pose:
    """Read a pose: `{xyz: [0, 0, l], rpy: [0, pi/2, 0]}`; `quaternion: [x, y, z, w]` or rows in `rotation` may replace rpy."""
    f = node.fields(("xyz", "rpy", "quaternion", "rotation"))
    if "rotation" in f:
        R = ca.densify(ca.vertcat(*[row.numbers(3, names).T for row in f["rotation"].items(3)]))
        if R.is_constant() and "rpy" not in f and "quaternion" not in f:
            made_at(f["rotation"], pose, rotation=np.array(ca.DM(R)))
            return Pose(R, f["xyz"].numbers(3, names) if "xyz" in f else IDENTITY.p)
        if not R.is_constant():
            return _turned(f, R, names)
    given = take(f, xyz=lambda n: n.numbers(3, names), rpy=lambda n: n.numbers(3, names),
                 quaternion=lambda n: n.constants(4))  # fmt: skip
    return made_at(node, pose, **given)


def _turned(f: Mapping[str, Node], R: ca.SX, names: Names) -> Pose:
    """A pose whose rotation depends on parameters; it must be a rotation at their defaults."""
    if "rpy" in f or "quaternion" in f:
        raise f["rotation"].error("give only one of rotation, rpy and quaternion")
    made_at(f["rotation"], pose, rotation=at_defaults(R))
    return Pose(R, f["xyz"].numbers(3, names) if "xyz" in f else IDENTITY.p)


def read_shapes(node: Node, names: Names, where: MeshFolders) -> list[Shape]:
    """Read one shape, or a list of shapes: `{kind: box, size: [l, 0.02, 0.01], density: 2700}`."""
    return [read_shape(n, names, where) for n in (node.items() if isinstance(node.value, list) else [node])]


def read_shape(node: Node, names: Names, where: MeshFolders) -> Shape:
    lengths = ("radius", "length", "density", "mass")
    f = node.fields(("kind", "size", "file", "label", "scale", "placement", "colour", "role", *lengths), required=("kind",))
    kind = f["kind"].choice(SIZES)
    if kind == "mesh" and "label" in f:
        return _labelled(node, f, names, where)
    given = take(f, size=lambda n: n.numbers(3, names), file=lambda n: _mesh(n, where), scale=lambda n: n.array({}),
                 placement=lambda n: read_pose(n, names), colour=_colour, role=lambda n: n.choice(ROLES),
                 **{k: lambda n: n.number(names) for k in lengths})  # fmt: skip
    return made_at(node, shape, kind, **given)


def _labelled(node: Node, f: Mapping[str, Node], names: Names, where: MeshFolders) -> Shape:
    """A mesh with its name in another file as label. It is not an error if it is not found: pictures then show a box."""
    f = node.fields(("kind", "file", "label", "scale", "placement", "colour", "role"))
    given = take(f, scale=lambda n: n.array({}), placement=lambda n: read_pose(n, names), colour=_colour,
                 role=lambda n: n.choice(ROLES))  # fmt: skip
    colour = given.pop("colour", None)
    checked = {} if colour is None else {"colour": made_at(node, shape, "sphere", radius=1.0, colour=colour).colour}
    found = where.find(f["file"].text()) if "file" in f else None
    return made_at(node, mesh, found, f["label"].text(), **given, **checked)


def _mesh(node: Node, where: MeshFolders) -> str:
    """The path of a mesh. Raises ModelError: it is not found."""
    found = where.find(node.text())
    if found is None:
        kinds = ", ".join(MESHES)
        raise node.error(f"the mesh {printable(node.text())} is not a file ({kinds}) below the file's own folder; {WAY_OUT}")
    return found


def _colour(node: Node) -> Any:
    return [n.constant() for n in node.items()] if isinstance(node.value, list) else node.text()


def _pseudo(node: Node, names: Names) -> ca.SX:
    """Read a pseudo-matrix: `{weight: k, centre: [0, 0, l], moments: [1, 1, 2]}`, `{diagonal: [six numbers]}`, or its rows."""
    if isinstance(node.value, list):
        return ca.vertcat(*[ca.horzcat(*[x.number(names) for x in row.items(len(node.value))]) for row in node.value])
    if "diagonal" in node.map():
        return ca.densify(ca.diag(ca.vertcat(*[x.number(names) for x in node.fields(("diagonal",))["diagonal"].items(6)])))
    f = node.fields(("weight", "centre", "moments"), required=("weight",))
    given = take(f, weight=lambda n: n.number(names), centre=lambda n: n.numbers(3, names),
                 moments=lambda n: _moments(n, names))  # fmt: skip
    return made_at(node, pseudo_matrix, **given)


def _moments(node: Node, names: Names) -> Any:
    return node.number(names) if isinstance(node.value, str) else [x.number(names) for x in node.items()]


def _written(texts: list[str], names: Names) -> Written:
    used = [word for word in words(texts) if word in names]
    return Written(tuple(texts), tuple(used), ca.vertcat(ca.SX(0, 1), *[names[word] for word in used]))


def _wrench(node: Node, names: Names) -> Any:
    """The value of a wrench: six numbers, a law, or a function if the expressions contain more than parameters."""
    if isinstance(node.value, dict):
        return read_law(node, names, read_pose)
    try:
        return node.numbers(6, names)
    except ModelError:
        return _written([n.text() for n in node.items(6)], names)


def read_column(node: Node, names: Names) -> Any:
    """A function given by one or several expressions, or by a law."""
    if isinstance(node.value, dict):
        return read_law(node, names, read_pose)
    return _written([node.text()] if isinstance(node.value, str) else [n.text() for n in node.items()], names)


def read_path(node: Node, names: Names) -> Path:
    """A path, as a law of its strands and drums."""
    return read_law(node, names, read_pose, (Path,))


def _surface(node: Node, names: Names) -> Any:
    """A surface in contact: a shape, or a point or a plane by its pose."""
    if isinstance(node.value, list):
        return node.numbers(3, names)
    return read_shape(node, names, NOWHERE) if "kind" in node.map() else read_pose(node, names)


def _plane(node: Node, names: Names) -> Plane:
    """Read a plane: `{on: ramp, through: [0, 0, h], normal: [0, 1, 1], rate: 0.5}`."""
    f = node.fields(("on", "through", "normal", "rate"))
    given = take(f, on=lambda n: n.text(), through=lambda n: n.numbers(3, names), normal=lambda n: n.constants(3),
                 rate=lambda n: n.number(names))  # fmt: skip
    return made_at(node, plane, **given)


FORMS: dict[str, Callable[[Node, Names], Any]] = {
    "number": lambda n, names: n.number(names),
    "point": lambda n, names: n.numbers(3, names),
    "wrench": _wrench,
    "function": read_column,
    "wind": lambda n, names: read_law(n, names, read_pose) if isinstance(n.value, dict) else n.numbers(3, names),
    "direction": lambda n, _: n.constants(3),
    "axes": lambda n, _: n.choice(("LOCAL", "WORLD")),
    "hand": lambda n, _: n.choice(("right", "left")),
    "text": lambda n, _: n.text(),
    "component": lambda n, _: whole(n, 6),
    "pair": lambda n, names: tuple(x.number(names) for x in n.items(2)),
    "surface": _surface,
    "plane": _plane,
    "path": read_path,
    "truth": lambda n, _: n.truth(),
    "pose": read_pose,
    "pseudo": _pseudo,
}
"""Form of a value -> its reader."""
