"""The text of an MJCF file prepared for MuJoCo's compiler: with all includes, of bounded size, and without names of files.

MuJoCo's compiler would open the files that a text names. So the library's own XML reader reads the text, resolves includes
within the folder of the file, drops elements without a part in the mechanics (textures, sensors, cameras, plugins), and gives
meshes other file names. The tree is then written with one element per line, so that the line number in an error of the
compiler identifies the element.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from xml.sax.saxutils import quoteattr

from pfaffian.errors import ModelError
from pfaffian.formats.text.file import read_text
from pfaffian.formats.text.left_out import LeftOut, leave
from pfaffian.formats.text.place import allowed_path
from pfaffian.formats.text.strict_number import number, printable, words_of
from pfaffian.formats.text.xml import MAX_ELEMENTS, Element, parse_xml
from pfaffian.output.plain import text as plain

MAX_COPIES = 10_000
"""Largest number of bodies that <replicate> and <composite> may make."""

MAX_COPIED_ELEMENTS = 200_000
"""Largest number of elements with all copies; MuJoCo's compiler takes minutes for more."""

MAX_INCLUDES = 100

MAX_ATTACHED = 8
"""Largest depth of models that attach models."""

CONTACT = "contact between shapes is left out"

_ATTRIBUTES = ("delay", "nsample", "interp", "meshdir", "texturedir", "assetdir", "strippath")
"""Attributes that are dropped: folders of files, and the buffer of past inputs for delays."""

_DROPPED = frozenset(
    (
        "visual",
        "statistic",
        "sensor",
        "custom",
        "size",
        "texture",
        "skin",
        "hfield",
        "camera",
        "light",
        "contact",
        "lengthrange",
    )
)
"""Elements that are dropped: without a part in the mechanics, or only for contact, which is reported if shapes can touch."""

FLEX = "soft bodies (flex) are left out"

_SOFT = ("flexcomp", "flex", "flexvert", "flexstrain")
"""Elements of soft bodies, which are left out."""

_NAMES = frozenset(
    (
        *("name", "class", "childclass", "model", "file", "prefix", "mesh", "material", "hfield", "texture", "key", "value"),
        *("body", "body1", "body2", "joint", "joint1", "joint2", "jointinparent", "geom", "geom1", "geom2", "tendon"),
        *("tendon1", "tendon2", "site", "site1", "site2", "sidesite", "cranksite", "slidersite", "refsite", "actuator"),
        *("target", "node", "plugin", "instance"),
    )
)
"""Attributes whose value is a name, so that any word is allowed."""

_OPEN = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
"""The open end of a range."""

_NO_NUMBER = re.compile(rf"[+-]?(0x.*|nan(\(.*\))?)|{_OPEN.pattern}", re.IGNORECASE)
"""Words that the compiler takes for numbers although they are none, or not finite."""

_LINE = re.compile(r"\s*Element (?:name )?'.*', (?:id -?[0-9]+, )?line ([0-9]+)\s*$|,? line ([0-9]+)\s*$", re.DOTALL)


@dataclass
class MjcfText:
    """A prepared MJCF text.

    text: for the compiler.   elements: the element on each line, over all texts.   meshes: name of a mesh file in a text ->
    its name in the file.   root: root element with all includes.   models: name of a file in a text -> text of an attached
    model.   lost: what is left out.
    """

    text: str
    elements: list[Element]
    meshes: dict[str, str]
    root: Element
    models: dict[str, bytes] = field(default_factory=dict)
    lost: LeftOut = field(default_factory=dict)

    def error(self, error: Exception) -> ModelError:
        """The ModelError for an error of the compiler, at the element that caused it."""
        message = plain(re.sub(r"^(XML )?Error: ", "", _LINE.sub("", _innermost(error))).strip().split("\n")[0], 400)
        return self.element(error).error(f"{message} (reported by MuJoCo's compiler)")

    def element(self, error: Exception) -> Element:
        """The element that caused an error of the compiler; the root if the error has no line number."""
        found = _LINE.search(_innermost(error))
        line = int(found[1] or found[2]) if found else 0
        return self.elements[line - 1] if 0 < line <= len(self.elements) else self.root


def _innermost(error: Exception) -> str:
    """The innermost message of a compiler's error: that about the attached file, if the error is in one."""
    *outer, text = str(error).split("could not parse model file with error: ")
    return text.split("\n\n")[0] if outer else text


HIGHER = "move the file there, or read the main file with folder=..., a folder above both"
"""Way out of errors about files that lie elsewhere."""


@dataclass(frozen=True)
class Folders:
    """Where the files that a text names may lie.   main: the folder of the main file, None for a text without one.   root: the
    folder that contains all of them, usually the same."""

    main: Path | None
    root: Path | None

    def find(self, name: str, element: Element, beside: Path | None = None) -> Path:
        """The path of a file: beside the main file or, if it is not there, beside the file that names it.

        beside: the folder of that file.   Raises ModelError: it is not below the root.
        """
        if self.main is None or self.root is None:
            raise element.error(f"{printable(name)} cannot be found: the text has no folder; pass folder=..., or read the file")
        allow, way = None if self.root == self.main else [self.root], HIGHER
        if beside is not None and beside != self.main:
            near = allowed_path(beside, name, [self.root], element.where, way)
            first = allowed_path(self.main, name, allow, element.where, way) if _is_inside(self.main, name, self.root) else near
            return first if first.is_file() else near
        return allowed_path(self.main, name, allow, element.where, way)


def _is_inside(folder: Path, name: str, root: Path) -> bool:
    """Whether a path from a folder stays below the root."""
    return Path(os.path.normpath(folder.resolve() / name)).is_relative_to(root.resolve())


def prepare(text: str, source: str, folder: Path | None, root: Path | None = None) -> MjcfText:
    """Prepare an MJCF text for MuJoCo's compiler.   folder: of the text.   root: that of all files it may name, if larger.

    Raises ModelError: the text is not MJCF; an included or attached file is not in the folder; there are too many copies.
    """
    where = Folders(folder, root or folder)
    whole = _whole(parse_xml(text, source), where)
    found = MjcfText("", [], {}, whole)
    found.text = _prepared(whole, found, where, ())[0]
    return found


def _whole(root: Element, where: Folders) -> Element:
    """The <mujoco> element with all its includes resolved."""
    if root.tag != "mujoco":
        raise root.error("this is not MJCF; the root element of an MJCF file is <mujoco>")
    return _Includes(where).resolve(root, where.main)


def _prepared(whole: Element, found: MjcfText, where: Folders, within: tuple[Path, ...]) -> tuple[str, int]:
    """The text of a file, and the number of elements of its copies and attached models.   within: files that attach it.

    Blank lines at its start let its line numbers follow those of the earlier texts, so that each number means one element.
    """
    count = _Count(_attached(whole, found, where, within), _named_parts(whole))
    count.check(whole, 1)
    meshes = _mesh_folder(whole)
    if within and where.main is not None and meshes != "/":
        meshes = PurePosixPath(os.path.relpath(within[-1].parent / meshes, where.main.resolve())).as_posix()
    pruned = _readable(whole, found, "" if meshes == "." else meshes)
    if pruned is None:
        return "", 0
    _strip_keys(pruned, found)
    above = "\n" * len(found.elements)
    return above + "\n".join(_lines(pruned, found.elements)), count.total


def _attached(whole: Element, found: MjcfText, where: Folders, within: tuple[Path, ...]) -> dict[str, int]:
    """Name of each attached model -> its number of elements. Stores its text in `found.models`, under a new file name."""
    sizes = dict[str, int]()
    for model in [m for asset in whole.all("asset") for m in asset.all("model")]:
        name = model.text("file")
        path = (replace(where, main=within[-1].parent) if within else where).find(name, model)
        if len(within) >= MAX_ATTACHED or len(found.models) >= MAX_INCLUDES:
            bounds = f"more than {MAX_ATTACHED} deep or {MAX_INCLUDES} in all"
            raise model.error(f"{printable(name)} attaches itself, or models are attached {bounds}; write their bodies out")
        inner = _whole(parse_xml(read_text(path), name), replace(where, main=path.parent))
        text, size = _prepared(inner, found, where, (*within, path))
        alias = f"model{len(found.models)}.xml"
        found.models[alias], model.attributes["file"] = text.encode(), alias
        sizes[model.attributes.get("name") or inner.attributes.get("model", "")] = size
    return sizes


class _Includes:
    """Resolves <include> elements. Each file may be included once."""

    def __init__(self, where: Folders) -> None:
        self.where, self.seen, self.count = where, set[Path](), 0

    def resolve(self, element: Element, beside: Path | None) -> Element:
        """The element with the includes in it resolved.   beside: the folder of its file."""
        children: list[Element] = []
        for child in element.children:
            self.count += 1
            if self.count > MAX_ELEMENTS:
                raise child.error(f"the file and its includes have more than {MAX_ELEMENTS} elements; split them")
            if child.tag == "include":
                children += self.open(child, beside)
            else:
                children.append(self.resolve(child, beside))
        return Element(element.tag, element.attributes, element.source, element.line, children)

    def open(self, include: Element, beside: Path | None) -> list[Element]:
        """The children of the root element of an included file.   beside: the folder of the file that includes it."""
        name = include.text("file")
        path = self.where.find(name, include, beside)
        if path in self.seen or len(self.seen) >= MAX_INCLUDES:
            raise include.error(f"{printable(name)} is included twice, or {MAX_INCLUDES} files are; include each file once")
        self.seen.add(path)
        return self.resolve(parse_xml(read_text(path), name), path.parent).children


def _named_parts(element: Element) -> dict[tuple[str, str], Element]:
    """(tag, name) of each body and frame -> the element."""
    found: dict[tuple[str, str], Element] = {}
    for child in element.children:
        found |= _named_parts(child)
    if element.tag in ("body", "frame") and "name" in element.attributes:
        found[element.tag, element.attributes["name"]] = element
    return found


@dataclass
class _Count:
    """Counts the elements of a text with all copies.   sizes: name of an attached model -> its elements.   parts: bodies and
    frames of the text.   total: what was counted."""

    sizes: Mapping[str, int]
    parts: Mapping[tuple[str, str], Element]
    total: int = 0

    def check(self, element: Element, times: int, depth: int = 0) -> None:
        """Raise ModelError for too many copies of bodies.   times: copies of this element.   depth: of attached parts."""
        if element.tag in ("replicate", "composite"):
            words = words_of(element.attributes.get("count", "1"))[:3]
            for word in words:
                if not re.fullmatch(r"[0-9]{1,6}", word):
                    raise element.error(f"count {printable(' '.join(words))} must be whole numbers below 1000000")
                times *= max(int(word), 1)
        self.total += times
        if "model" in element.attributes and element.tag == "attach":
            self.total += times * self.sizes.get(element.attributes["model"], 1)
        if times > MAX_COPIES or self.total > MAX_COPIED_ELEMENTS:
            raise element.error(f"more than {MAX_COPIES} copies, or {MAX_COPIED_ELEMENTS} elements in all; make fewer")
        if element.tag == "attach" and "model" not in element.attributes:
            self.check(self.attached(element, depth), times, depth + 1)
        for child in element.children:
            self.check(child, times, depth)

    def attached(self, attach: Element, depth: int) -> Element:
        """The part of the text that is attached. Raises ModelError: there is none; parts attach themselves."""
        for tag in ("body", "frame"):
            name = attach.attributes.get(tag)
            if name is not None and (tag, name) not in self.parts:
                raise attach.error(f"the file has no <{tag}> {printable(name)}; correct the name, or write the copy out")
            if name is not None and depth >= MAX_ATTACHED:
                raise attach.error(f"{printable(name)} attaches itself, or parts are attached more than {MAX_ATTACHED} deep")
            if name is not None:
                return self.parts[tag, name]
        raise attach.error("it names neither a body nor a frame; add one")


def _mesh_folder(root: Element) -> str:
    """The mesh folder that <compiler> gives (meshdir or assetdir); "/" if only the last part of paths counts (strippath)."""
    given: dict[str, str] = {}
    for compiler in root.all("compiler"):
        given |= compiler.attributes
    return "/" if given.get("strippath") == "true" else given.get("meshdir", given.get("assetdir", ""))


def _readable(element: Element, found: MjcfText, folder: str) -> Element | None:
    """The element without the parts that have no role in the mechanics; None if the whole element has none."""
    if element.tag in _SOFT:
        leave(found.lost, FLEX, _label(element, "name", "flex"))
        return None
    if element.tag in _DROPPED:
        if element.tag == "contact" and element.all("pair"):
            leave(found.lost, CONTACT)
        return None
    if element.tag in ("plugin", "extension"):
        if element.tag == "plugin":
            leave(found.lost, "plugins are left out", _label(element, "name", "plugin"))
        return None
    given = dict(element.attributes)
    for key, value in given.items():
        if key not in _NAMES:
            _check_numbers(element, key, words_of(value))
    for key in _ATTRIBUTES:
        if given.pop(key, None) is not None and key == "delay":
            leave(found.lost, "delays of actuators are left out", _label(element, "name"))
    if element.tag == "material":
        given.pop("texture", None)
    if element.tag == "mesh" and "file" in given:
        _rename(element, given, found, folder)
    elif element.tag not in ("mesh", "model"):
        for key in [k for k in given if k.startswith("file")]:
            del given[key]
    if element.tag == "mesh" and any(c.tag == "plugin" for c in element.children):
        leave(found.lost, "plugins are left out", *(_label(c, "plugin") for c in element.all("plugin")))
        return None
    children = [] if element.tag == "material" else [_readable(c, found, folder) for c in element.children]
    return Element(element.tag, given, element.source, element.line, [c for c in children if c is not None])


def _label(element: Element, *keys: str) -> str:
    """What an element is called in messages: the first of these attributes that it has, else its tag and line."""
    return next((element.attributes[k] for k in keys if element.attributes.get(k)), f"<{element.tag}> in line {element.line}")


def _check_numbers(element: Element, key: str, words: list[str]) -> None:
    """Raise ModelError for words of an attribute that the compiler would accept in silence: hexadecimal numbers, nan, inf other
    than as the open end of a range, and a range whose ends are the wrong way round."""
    span = key.endswith("range")
    if not words and key != "user":
        raise element.error(f"{key} is empty; give its value, or leave it out")
    for word in words:
        if _NO_NUMBER.fullmatch(word) and not (span and _OPEN.fullmatch(word)):
            raise element.error(f"{key} {printable(word)} is not a finite decimal number; correct it")
    if span and len(words) == 2:
        low, high = (float(w) if _OPEN.fullmatch(w) else number(w, f"{element.where}: {key}") for w in words)
        if low > high:
            raise element.error(f"{key}: {words[0]} is above {words[1]}; swap them")


def _rename(mesh: Element, given: dict[str, str], found: MjcfText, folder: str) -> None:
    """Give the mesh a file name that leads nowhere; `found.meshes` maps it to the name in the file."""
    label = given["file"].replace("\\", "/")
    given.setdefault("name", PurePosixPath(label).stem)
    alias = f"mesh{len(found.meshes)}{PurePosixPath(label).suffix.lower()[:5]}"
    absolute = label.startswith("/") or not folder
    found.meshes[alias] = PurePosixPath(label).name if folder == "/" else label if absolute else f"{folder.rstrip('/')}/{label}"
    given["file"] = alias


def _strip_keys(root: Element, found: MjcfText) -> None:
    """Remove values of keyframes that no longer fit because actuators or coordinates were dropped."""
    if "plugins are left out" in found.lost:
        for frame in root.all("keyframe"):
            for key in frame.children:
                key.attributes.pop("ctrl", None)
                key.attributes.pop("act", None)
    if FLEX in found.lost and (frames := root.all("keyframe")):
        leave(found.lost, "keyframes of soft bodies are left out")
        for frame in frames:
            frame.children.clear()


def _lines(element: Element, elements: list[Element]) -> Iterator[str]:
    """One line for each start tag, so that an error's line number identifies the element.   elements: gets one per line."""
    elements.append(element)
    given = "".join(f" {k}={quoteattr(v)}" for k, v in element.attributes.items())
    if not element.children:
        yield f"<{element.tag}{given}/>"
        return
    yield f"<{element.tag}{given}>"
    inner = [line for child in element.children for line in _lines(child, elements)]
    inner[-1] += f"</{element.tag}>"
    yield from inner
