"""The text of an MJCF file as MuJoCo's compiler gets it: whole, bounded, and without a name of any file.

The compiler opens the files that a text names. Here the text is read by the library's own XML reader; includes are resolved
within the folder of the file; what has no part in the mechanics (textures, sensors, cameras, plugins) is dropped; meshes get
names of their own. The tree is then written again, one element a line, so that the compiler's errors name the element.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from xml.sax.saxutils import quoteattr

from pfaffian.errors import ModelError
from pfaffian.formats.file import read_text
from pfaffian.formats.left_out import LeftOut, leave
from pfaffian.formats.number import printable
from pfaffian.formats.place import beside
from pfaffian.formats.xml import MAX_ELEMENTS, Element, parse_xml
from pfaffian.output.plain import text as plain

MAX_COPIES = 10_000
"""Bodies that <replicate> and <composite> may make."""

MAX_INCLUDES = 100

CONTACT = "contact between shapes is left out"

_ATTRIBUTES = ("delay", "nsample", "interp", "meshdir", "texturedir", "assetdir", "strippath")
"""Attributes that say where files lie, or how large a memory of past inputs is."""

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
"""Elements without a part in the mechanics, or only in contact, which is named where shapes can touch."""

_REFUSED = {
    "flexcomp": "soft bodies (flex) are no rigid bodies; remove them, or replace them by bodies on joints",
    "flex": "soft bodies (flex) are no rigid bodies; remove them, or replace them by bodies on joints",
    "attach": "attached models are not read; write the model out in one file: mujoco.MjSpec.from_file(f).to_xml()",
    "model": "attached models are not read; write the model out in one file: mujoco.MjSpec.from_file(f).to_xml()",
}

_NAN = re.compile(r"(?:^|\s)[+-]?nan(?:\(\S*\))?(?:\s|$)", re.IGNORECASE)

_LINE = re.compile(r"\s*Element (?:name )?'.*', (?:id -?[0-9]+, )?line ([0-9]+)\s*$|,? line ([0-9]+)\s*$", re.DOTALL)


@dataclass
class MjcfText:
    """text: for the compiler.   elements: the one on each of its lines.   meshes: file name in the text -> that in the file.
    root: the whole file.   lost: what is left out."""

    text: str
    elements: list[Element]
    meshes: dict[str, str]
    root: Element
    lost: LeftOut = field(default_factory=dict)

    def error(self, error: Exception) -> ModelError:
        """A compiler's error, with the element that it is about."""
        said = plain(re.sub(r"^(XML )?Error: ", "", _LINE.sub("", str(error))).strip().split("\n")[0], 400)
        return self.element(error).error(f"{said} (said by MuJoCo's compiler)")

    def element(self, error: Exception) -> Element:
        """The element that a compiler's error is about, the root where it does not say."""
        found = _LINE.search(str(error))
        line = int(found[1] or found[2]) if found else 0
        return self.elements[line - 1] if 0 < line <= len(self.elements) else self.root


def prepare(text: str, source: str, folder: Path | None) -> MjcfText:
    """The text of an MJCF file for MuJoCo's compiler.

    Raises ModelError: no MJCF; an include that is not in the folder; soft bodies and attached models; too many copies.
    """
    root = parse_xml(text, source)
    if root.tag != "mujoco":
        raise root.error("the root element of an MJCF file is <mujoco>")
    whole = _Includes(folder, root.source).resolve(root)
    _check_copies(whole, 1, [0])
    found = MjcfText("", [], {}, whole)
    kept = _kept(whole, found, _mesh_folder(whole))
    if kept is not None:
        _strip_keys(kept, found)
        found.text = "\n".join(_lines(kept, found.elements))
    return found


class _Includes:
    """Resolves <include>, each file once, below the folder of the file that includes it."""

    def __init__(self, folder: Path | None, source: str) -> None:
        self.folder, self.source, self.seen, self.count = folder, source, set[Path](), 0

    def resolve(self, element: Element) -> Element:
        children: list[Element] = []
        for child in element.children:
            self.count += 1
            if self.count > MAX_ELEMENTS:
                raise child.error(f"the file and its includes have more than {MAX_ELEMENTS} elements; split them")
            if child.tag == "include":
                children += self.open(child)
            else:
                children.append(self.resolve(child))
        return Element(element.tag, element.attributes, element.source, element.line, children)

    def open(self, include: Element) -> list[Element]:
        """The elements of an included file."""
        name = include.text("file")
        if self.folder is None:
            raise include.error(f"{printable(name)} cannot be found: the text has no folder; pass folder=..., or read the file")
        path = beside(self.folder, name, (), include.where)
        if path in self.seen or len(self.seen) >= MAX_INCLUDES:
            raise include.error(f"{printable(name)} is included twice, or {MAX_INCLUDES} files are; include each file once")
        self.seen.add(path)
        return self.resolve(parse_xml(read_text(path), name)).children


def _check_copies(element: Element, times: int, total: list[int]) -> None:
    """Raise ModelError where copies of bodies are too many."""
    if element.tag in ("replicate", "composite"):
        words = element.attributes.get("count", "1").split()[:3]
        for word in words:
            if not re.fullmatch(r"[0-9]{1,6}", word):
                raise element.error(f"count {printable(' '.join(words))} must be whole numbers")
            times *= max(int(word), 1)
    total[0] += times
    if times > MAX_COPIES or total[0] > MAX_ELEMENTS:
        raise element.error(f"more than {MAX_COPIES} copies, or {MAX_ELEMENTS} elements in all; make fewer")
    for child in element.children:
        _check_copies(child, times, total)


def _mesh_folder(root: Element) -> str:
    """meshdir or assetdir of the compiler; "/" where only the last part of a path counts (strippath)."""
    said: dict[str, str] = {}
    for compiler in root.all("compiler"):
        said |= compiler.attributes
    return "/" if said.get("strippath") == "true" else said.get("meshdir", said.get("assetdir", ""))


def _kept(element: Element, found: MjcfText, folder: str) -> Element | None:
    """The element without what has no part in the mechanics; None where nothing of it has."""
    if element.tag in _REFUSED:
        raise element.error(_REFUSED[element.tag])
    if element.tag in _DROPPED:
        if element.tag == "contact" and element.all("pair"):
            leave(found.lost, CONTACT)
        return None
    if element.tag in ("plugin", "extension"):
        if element.tag == "plugin":
            leave(found.lost, "plugins are left out", element.attributes.get("name", element.attributes.get("plugin", "?")))
        return None
    given = dict(element.attributes)
    for key, said in given.items():
        if _NAN.search(said):  # the compiler would take it, and write a log file into the working folder
            raise element.error(f"{key} {printable(said)} is not a number")
    for key in _ATTRIBUTES:
        if given.pop(key, None) is not None and key == "delay":
            leave(found.lost, "delays of actuators are left out", given.get("name", "?"))
    if element.tag == "material":
        given.pop("texture", None)
    if element.tag == "mesh" and "file" in given:
        _rename(element, given, found, folder)
    elif element.tag != "mesh":
        for key in [k for k in given if k.startswith("file")]:
            del given[key]
    if element.tag == "mesh" and any(c.tag == "plugin" for c in element.children):
        leave(found.lost, "plugins are left out", *(c.attributes.get("plugin", "?") for c in element.all("plugin")))
        return None
    children = [] if element.tag == "material" else [_kept(c, found, folder) for c in element.children]
    return Element(element.tag, given, element.source, element.line, [c for c in children if c is not None])


def _rename(mesh: Element, given: dict[str, str], found: MjcfText, folder: str) -> None:
    """Give the mesh a file name that leads nowhere; `found.meshes` knows which file it is."""
    label = given["file"].replace("\\", "/")
    given.setdefault("name", PurePosixPath(label).stem)
    own = f"mesh{len(found.meshes)}{PurePosixPath(label).suffix.lower()[:5]}"
    absolute = label.startswith("/") or not folder
    found.meshes[own] = PurePosixPath(label).name if folder == "/" else label if absolute else f"{folder.rstrip('/')}/{label}"
    given["file"] = own


def _strip_keys(root: Element, found: MjcfText) -> None:
    """Inputs of keyframes count actuators; where some are dropped, their values do not fit any more."""
    if "plugins are left out" in found.lost:
        for frame in root.all("keyframe"):
            for key in frame.children:
                key.attributes.pop("ctrl", None)
                key.attributes.pop("act", None)


def _lines(element: Element, elements: list[Element]) -> Iterator[str]:
    """One line for each start tag, so that the line of an error tells the element."""
    elements.append(element)
    given = "".join(f" {k}={quoteattr(v)}" for k, v in element.attributes.items())
    if not element.children:
        yield f"<{element.tag}{given}/>"
        return
    yield f"<{element.tag}{given}>"
    inner = [line for child in element.children for line in _lines(child, elements)]
    inner[-1] += f"</{element.tag}>"
    yield from inner
