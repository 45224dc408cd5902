"""A safe subset of XML: a tree of elements with line numbers.

Document types, and with them entities, are refused. Nothing outside the text is opened. Size, depth and number of elements are
bounded. Text between tags is dropped by default: SDF uses it, URDF and MJCF do not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NoReturn
from xml.parsers import expat

from pfaffian.errors import ModelError, brief
from pfaffian.formats.text.file import MAX_BYTES
from pfaffian.formats.text.strict_number import SPACES, number, numbers, printable

MAX_DEPTH = 256
MAX_ELEMENTS = 500_000

_ENDS = {"<!--": "-->", "<![CDATA[": "]]>", "<?": "?>"}
"""Beginning of what is no element -> its end."""

_BEGINNING = re.compile("|".join(map(re.escape, _ENDS)))
_SPACE_BEFORE_DECLARATION = re.compile(r"(\s+)<\?xml\s[^>]*\?>")


@dataclass(slots=True)  # frozen, it would take three times as long to make, and files have many
class Element:
    """An element, which is not changed once it is read.

    source: name of the text, for errors.   line: of its start tag, from 1.   words: pieces of its text.
    """

    tag: str
    attributes: dict[str, str]
    source: str
    line: int
    children: list[Element] = field(default_factory=list, repr=False)
    words: list[str] = field(default_factory=list, repr=False)

    def error(self, message: str) -> ModelError:
        """A ModelError that begins with the place of the element."""
        return ModelError(f"{self.where}: {message}")

    @property
    def where(self) -> str:
        """Source, line, tag and name, as errors begin."""
        name = f" {printable(self.attributes['name'])}" if "name" in self.attributes else ""
        return f"{self.source} line {self.line}: <{printable(self.tag)[1:-1]}>{name}"

    def all(self, tag: str) -> list[Element]:
        """All children with this tag."""
        return [child for child in self.children if child.tag == tag]

    def only(self, tag: str) -> Element | None:
        """The child with this tag, None if there is none. Raises ModelError: there are several."""
        found = None
        for child in self.children:
            if child.tag == tag:
                if found is not None:
                    raise child.error(f"another <{tag}> of the same element is on line {found.line}; keep one of them")
                found = child
        return found

    @property
    def content(self) -> str:
        """The text between its tags, without spaces at both ends; empty if the file was read without texts."""
        return "".join(self.words).strip(SPACES)

    def text(self, attribute: str) -> str:
        """The value of a required attribute."""
        if attribute not in self.attributes:
            raise self.error(f"the attribute {attribute!r} is missing; add it")
        return self.attributes[attribute]

    def number(self, attribute: str, default: float | None = None) -> float:
        """The number in an attribute, which is required if there is no default."""
        if default is not None and attribute not in self.attributes:
            return default
        return number(self.text(attribute), lambda: f"{self.where}: {attribute}")

    def numbers(self, attribute: str, default: tuple[float, ...]) -> tuple[float, ...]:
        """The numbers in an attribute, as many as the default has."""
        if attribute not in self.attributes:
            return default
        return numbers(self.text(attribute), len(default), lambda: f"{self.where}: {attribute}")


class _Builder:
    """Collects the elements while expat parses the text."""

    def __init__(self, source: str, words: bool) -> None:
        self.source = source
        self.top = Element("", {}, source, 0)
        self.open = [self.top]
        self.count = 0
        # The text is passed to expat as UTF-8, whatever encoding the file declares.
        self.parser = expat.ParserCreate("utf-8")
        self.parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        if words:
            self.parser.buffer_text = True
            self.parser.CharacterDataHandler = self.characters
        self.parser.StartDoctypeDeclHandler = self.doctype
        self.parser.EntityDeclHandler = self.doctype
        self.parser.ExternalEntityRefHandler = self.doctype

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        line = self.parser.CurrentLineNumber
        self.count += 1
        if self.count > MAX_ELEMENTS or len(self.open) > MAX_DEPTH:
            limits = f"there are more than {MAX_ELEMENTS} elements, or more than {MAX_DEPTH} levels"
            raise ModelError(f"{self.source} line {line}: {limits}; split the file")
        element = Element(tag, attributes, self.source, line)
        self.open[-1].children.append(element)
        self.open.append(element)

    def end(self, tag: str) -> None:
        self.open.pop()

    def characters(self, words: str) -> None:
        self.open[-1].words.append(words)

    def doctype(self, *_: object) -> NoReturn:
        line = self.parser.CurrentLineNumber
        raise ModelError(f"{self.source} line {line}: document types and entities are not allowed; write the text in full")


def well_formed(text: str) -> str:
    """The text as expat accepts it, with its lines: the engines of these formats also accept "--" inside a comment, as commands
    with options have it, and white space before the declaration."""
    pieces, at = list[str](), 0
    if declared := _SPACE_BEFORE_DECLARATION.match(text):
        pieces, at = [declared[1]], declared.end()
    while found := _BEGINNING.search(text, at):
        end = text.find(_ENDS[found[0]], found.end())
        if end < 0:
            break
        inside = text[found.end() : end]
        if found[0] == "<!--" and "--" in f"{inside}-":
            inside = "\n" * inside.count("\n")
        pieces += [text[at : found.end()], inside]
        at = end
    return "".join(pieces) + text[at:]


def parse_xml(text: str, source: str, words: bool = False) -> Element:
    """The root element of an XML text.   source: name of the text, for errors.   words: whether to keep text between tags.

    Raises ModelError: the XML is not well-formed, has a document type, or more than 64 MB, 500,000 elements or 256 levels.
    """
    source = printable(source)[1:-1]
    if not isinstance(text, str):
        raise ModelError(f"{source}: the text of a file is needed, got {brief(text)}; to read a file, use pf.read(path)")
    try:
        data = well_formed(text).encode("utf-8")
    except UnicodeEncodeError:
        raise ModelError(f"{source}: the text contains lone surrogates; it is not Unicode text") from None
    if len(data) > MAX_BYTES:
        raise ModelError(f"{source}: the text is larger than {MAX_BYTES} bytes; split it or remove embedded data")
    builder = _Builder(source, words)
    try:
        builder.parser.Parse(data, True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise ModelError(f"{source} line {error.lineno}: this is not well-formed XML: {reason}") from None
    return builder.top.children[0]
