"""Nested and included models of an SDF model, flattened into one model.

The element "palm" of a nested model "hand" is called "hand::palm" in the flat model, and the model's frame "hand". A merged
model keeps its names. An included file lies below the folder of the file that includes it, or below a folder that the caller
allows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from pfaffian.formats.sdf.sdf_frame import MODEL, read_frames, relative_to
from pfaffian.formats.sdf.sdf_names import BELOW, KNOWN
from pfaffian.formats.sdf.sdf_part import name_of, truth, written_quaternion
from pfaffian.formats.text.file import read_text
from pfaffian.formats.text.left_out import LeftOut, leave
from pfaffian.formats.text.mesh_file import MeshFolders
from pfaffian.formats.text.strict_number import printable
from pfaffian.formats.text.unit_length import NORMALISED, is_of_unit_length
from pfaffian.formats.text.unread import NOT_READ, unread
from pfaffian.formats.text.xml import MAX_ELEMENTS, Element, parse_xml
from pfaffian.model.body import WORLD
from pfaffian.model.pose import Pose

MAX_NESTED = 16
"""Largest depth of nested models."""

MAX_INCLUDES = 100
"""Largest number of models that a file may include, directly or by way of others."""

_LEFT = {"plugin": "plugins are left out", "gripper": "grippers are left out"}
_OF_INCLUDE = ("uri", "name", "pose", "static", "placement_frame", "plugin")
_NAMES = {"pose": ("relative_to", "frame"), "xyz": ("expressed_in",), "frame": ("attached_to",), "mimic": ("joint",)}
_WORDS = ("parent", "child", "gearbox_reference_body")


@dataclass(frozen=True)
class Scope:
    """The names and files of a nested model.   prefix: of its names in the flat model.   frame: name of its frame there.
    version: of its file.   where: folders of its meshes and included models."""

    prefix: str
    frame: str
    version: tuple[int, ...]
    where: MeshFolders

    def name(self, local: str) -> str:
        """The name in the flat model of an element with a local name."""
        if local in ("", WORLD):
            return local
        return self.frame if local == MODEL else self.prefix + local.removesuffix(f"::{MODEL}")


@dataclass
class Flat:
    """A flat model under construction.   lost: what is left out.   version: the oldest of its files.   parts: links, joints and
    frames.   after: frame -> transform to apply after the pose of its element.   meshes: link -> places of its meshes.
    detachable: plugins that attach a link to another one, each with the scope and the name of its model.
    includes, elements: number of included models, and of elements in them."""

    lost: LeftOut
    version: tuple[int, ...]
    parts: list[Element] = field(default_factory=list)
    after: dict[str, Pose] = field(default_factory=dict)
    meshes: dict[str, MeshFolders] = field(default_factory=dict)
    detachable: list[tuple[Element, Scope, str]] = field(default_factory=list)
    includes: int = 0
    elements: int = 0


def flatten(model: Element, version: tuple[int, ...], where: MeshFolders, lost: LeftOut) -> tuple[Element, Flat]:
    """The model without nested models. Raises ModelError: an included file is not found; too many models, or too deep."""
    flat = Flat(lost, version)
    _gather(model, Scope("", MODEL, version, where), flat, 0)
    flat.parts += [weld for x in flat.detachable if (weld := _attached(*x, flat))]
    return Element(model.tag, model.attributes, model.source, model.line, flat.parts), flat


NEWEST = (1, 12)
"""Newest version of SDF whose elements are known."""


def _gather(model: Element, scope: Scope, flat: Flat, depth: int) -> None:
    """Add the parts of a model, and those of the models nested in it."""
    if depth > MAX_NESTED:
        raise model.error(f"models are nested more than {MAX_NESTED} deep; write them out")
    if truth(model, "static"):
        raise model.error("the model is static, so nothing in it moves; remove <static>, or read another model")
    flat.version = min(flat.version, scope.version)
    if scope.version > NEWEST:
        later = ".".join(map(str, scope.version))
        leave(flat.lost, f"versions newer than {'.'.join(map(str, NEWEST))}, the newest that is known", later)
    alone = replace(model, children=[e for e in model.children if e.tag not in BELOW])
    leave_unread(flat.lost, alone, *(e for e in model.children if e.tag in ("link", "joint", "frame", "include")))
    for element in model.children:
        if _detaches(element):
            flat.detachable.append((element, scope, model.attributes.get("name", "")))
        elif element.tag in _LEFT:
            leave(flat.lost, _LEFT[element.tag], element.attributes.get("name", "?"))
        elif element.tag in ("link", "joint", "frame"):
            flat.parts.append(_part(element, scope, flat))
        elif element.tag == "model":
            _nest(element, scope, replace(scope), flat, depth)
        elif element.tag == "include":
            flat.includes += 1
            if flat.includes > MAX_INCLUDES:
                raise element.error(f"more than {MAX_INCLUDES} models are included; write them out")
            inner, included = open_include(element, scope.where)
            flat.elements += _size(inner)
            if flat.elements > MAX_ELEMENTS:
                raise element.error(f"the included models have more than {MAX_ELEMENTS} elements; split them")
            _nest(inner, scope, included, flat, depth, element.attributes.get("merge", "false") in ("true", "1"))


def leave_unread(lost: LeftOut, *elements: Element) -> None:
    """Record what is not known in elements, and which of their quaternions are not of unit length."""
    for element in elements:
        for words in unread(element, KNOWN):
            leave(lost, NOT_READ, words)
        for at in _normalised(element):
            leave(lost, NORMALISED, at)


def _normalised(element: Element, of: str = "") -> Iterator[str]:
    """The poses below an element whose quaternions are not of unit length, each in words.   of: name of what contains it."""
    name = element.attributes.get("name") or of
    for child in element.children:
        if child.tag != "pose":
            yield from _normalised(child, name)
        elif (turn := written_quaternion(child)) and not is_of_unit_length(turn):
            yield f"<pose> in <{element.tag}> {name}"


def _detaches(element: Element) -> bool:
    """Whether an element is Gazebo's plugin DetachableJoint, by which its files close loops."""
    name, file = (element.attributes.get(key, "") for key in ("name", "filename"))
    return element.tag == "plugin" and (name.endswith("DetachableJoint") or "detachable-joint" in file)


def _attached(plugin: Element, scope: Scope, model: str, flat: Flat) -> Element | None:
    """The fixed joint that a DetachableJoint is until it is detached; None, with a warning, if its links are not in the model.

    scope, model: of the model that has the plugin; its child model is that model itself, or one nested in it.
    """
    given = [plugin.only(tag) for tag in ("parent_link", "child_model", "child_link")]
    parent, of, child = ("" if e is None else e.content for e in given)
    ends = scope.name(parent), scope.name(child if of == model else f"{of}::{child}")
    if not set(ends) <= set(flat.meshes) or ends[0] == ends[1]:
        leave(flat.lost, "DetachableJoint plugins whose links are not in the model are left out", f"{parent} {of} {child}")
        return None
    name = f"{ends[0]} {ends[1]} attached"[:128]
    leave(flat.lost, "DetachableJoint plugins are welds that stay attached, and close a loop between connected links", name)
    inner = [Element(tag, {}, plugin.source, plugin.line, [], [x]) for tag, x in zip(("parent", "child"), ends, strict=True)]
    return Element("joint", {"name": name, "type": "fixed"}, plugin.source, plugin.line, inner)


def _nest(model: Element, outer: Scope, inner: Scope, flat: Flat, depth: int, merge: bool = False) -> None:
    """Add a nested model: its frame, then its parts.   outer: scope of its parent.   inner: version and places of its file."""
    name, start = outer.prefix + name_of(model), len(flat.parts)
    frame = f"{outer.prefix}_merged__{name_of(model)}__model__" if merge else name
    scope = replace(inner, prefix=outer.prefix if merge else f"{name}::", frame=frame)
    _gather(model, scope, flat, depth + 1)
    parts = flat.parts[start:]
    links = [part.attributes["name"] for part in parts if part.tag == "link"]
    if not links:
        raise model.error("the model has no <link>; add one, or leave the model out")
    canonical = scope.name(model.attributes.get("canonical_link", "")) or links[0]
    given = {"name": frame, "attached_to": canonical}
    flat.parts.insert(start, Element("frame", given, model.source, model.line, [_pose(model, outer)]))
    placed = scope.name(model.attributes.get("placement_frame", ""))
    if placed:
        inside = read_frames(replace(model, children=parts), scope.version, flat.after)
        inside.known[frame] = inside.known[MODEL]
        flat.after[frame] = inside.at(placed, model).inverse()


def _part(element: Element, scope: Scope, flat: Flat) -> Element:
    """A link, joint or frame, with the names of the flat model."""
    made = _renamed(element, scope)
    name = made.attributes["name"] = scope.name(name_of(element))
    if element.tag == "link":
        flat.meshes[name] = scope.where
        return replace(made, children=[_pose(element, scope), *(e for e in made.children if e.tag != "pose")])
    if element.tag == "frame" and not made.attributes.get("attached_to"):
        made.attributes["attached_to"] = scope.frame
    return made


def _pose(element: Element, scope: Scope) -> Element:
    """The <pose> of a link or model, with the frame that it is relative to."""
    found = element.only("pose") or Element("pose", {}, element.source, element.line)
    made = _renamed(found, scope)
    if not any(made.attributes.get(k) for k in _NAMES["pose"]):
        made.attributes["relative_to"] = scope.frame
    return made


def _renamed(element: Element, scope: Scope) -> Element:
    """A copy of an element with all names of frames, links and joints replaced by those of the flat model."""
    given, words = dict(element.attributes), element.words
    for key in _NAMES.get(element.tag, ()):
        if key in given:
            given[key] = scope.name(given[key])
    if element.tag in _WORDS:
        words = [scope.name(element.content)]
    children = [_renamed(e, scope) for e in element.children if e.tag not in _LEFT]
    if element.tag in ("axis", "axis2") and (scope.version < (1, 5) or truth(element, "use_parent_model_frame")):
        xyz = next((e for e in children if e.tag == "xyz"), None)
        if xyz is None:
            children.append(xyz := Element("xyz", {}, element.source, element.line, [], ["0 0 1"]))
        xyz.attributes["expressed_in"] = xyz.attributes.get("expressed_in") or scope.frame
    return Element(element.tag, given, element.source, element.line, children, words)


def _size(element: Element) -> int:
    return 1 + sum(map(_size, element.children))


# -- included files ---------------------------------------------------------------------------------------------------


def include_name(include: Element) -> str:
    """The name of an included model as far as <include> gives it: <name>, or the last part of <uri>."""
    name, uri = include.only("name"), include.only("uri")
    return name.content if name is not None else uri.content.rstrip("/").split("/")[-1].removesuffix(".sdf") if uri else "?"


def open_include(include: Element, where: MeshFolders) -> tuple[Element, Scope]:
    """The model of an <include>, with the name and the pose given there, and the scope of its file.

    Raises ModelError: the file is not found, or does not have one model; an element of the <include> is not supported.
    """
    for element in include.children:
        if element.tag not in _OF_INCLUDE:
            raise element.error(f"this element is not supported in an <include>; use only {', '.join(_OF_INCLUDE)}")
    path = _file(include, where)
    sdf = parse_xml(read_text(path), path.name, words=True)
    models = sdf.all("model") if sdf.tag == "sdf" else []
    if len(models) != 1:
        raise include.error(f"{printable(path.name)} must have one <model> in its <sdf>, but has {len(models)}")
    model, given = models[0], dict(models[0].attributes)
    name, placed = include.only("name"), include.only("placement_frame")
    if name is not None:
        given["name"] = name.content
    if placed is not None:
        given["placement_frame"] = placed.content
    instead = [e for e in include.children if e.tag in ("pose", "static", "plugin")]
    tags = {e.tag for e in instead} - {"plugin"}
    children = [*instead, *(e for e in model.children if e.tag not in tags)]
    scope = Scope(
        "", MODEL, read_version(sdf), MeshFolders(path.parent, (*where.allow, *([where.folder] if where.folder else [])))
    )
    return replace(model, attributes=given, children=children), scope


def _file(include: Element, where: MeshFolders) -> Path:
    """The file of an included model, below the file's own folder or a folder that the caller allows."""
    uri = include.only("uri")
    name = "" if uri is None else uri.content
    rest = name.split("://", 1)[-1].lstrip("/") if name.startswith(("model://", "package://", "file://")) else name
    parts = rest.split("/")
    if not rest or set(rest) & set("\\:\0") or ".." in parts or rest.startswith("/"):
        raise include.error(f"<uri> {printable(name)} is not a path below this file's folder; put the model there")
    for root in [*([where.folder] if where.folder else []), *where.allow]:
        found = _model_file(root / rest, root)
        if found is not None:
            return found
    raise include.error(f"{printable(name)} is not below this file's folder; pass meshes=[the folder that holds {parts[0]!r}]")


def _model_file(path: Path, root: Path) -> Path | None:
    """The .sdf file at a path, or the one named in model.config of a folder there; None if it is missing or not below root."""
    try:
        path = path.resolve()
        if path.is_dir():
            config = path / "model.config"
            named = _configured(config) if config.is_file() and config.resolve().is_relative_to(root.resolve()) else "model.sdf"
            path = (path / named).resolve()
        if path.is_file() and path.suffix == ".sdf" and path.is_relative_to(root.resolve()):
            return path
    except (OSError, ValueError, RuntimeError):
        pass
    return None


def _configured(config: Path) -> str:
    """The last .sdf file listed in a model.config; model.sdf if it lists none."""
    files = parse_xml(read_text(config), config.name, words=True).all("sdf")
    return files[-1].content if files else "model.sdf"


def read_version(sdf: Element) -> tuple[int, ...]:
    """The version of an <sdf> element. Raises ModelError: it is not a version number."""
    version = sdf.attributes.get("version", "")
    parts = version.split(".")
    if not 1 <= len(parts) <= 3 or not all(p.isascii() and p.isdigit() and len(p) < 6 for p in parts):
        raise sdf.error(f"version {printable(version)} is not a version number such as 1.9")
    return tuple(map(int, parts))


def check_placed_alone(model: Element) -> None:
    """Raise ModelError if the pose of a model is relative to another model of its world."""
    other = relative_to(model)
    if other not in ("", WORLD):
        raise model.error(f"the model is placed relative to {printable(other)}, which is not read; place it in the world")
