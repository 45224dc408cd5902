"""Elements and attributes of an XML file that its reader does not know, found by what it does know, so that none is lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from pfaffian.formats.text.xml import Element

Known = Mapping[str, str]
"""Tag of an element -> the children and, with an "@", the attributes that are read or cannot change the motion, separated by
spaces; "*" for all. A tag that is missing here has no known children and attributes."""

OFF = ("", "false", "0", "0.0", "0 0 0")
"""Contents of an unknown element with which it says nothing."""

ON = ("gravity",)
"""Elements that are on by default, so that they say something with these contents too."""


def unread(element: Element, known: Known, within: str = "") -> Iterator[str]:
    """The elements and attributes below an element that are not known, each in words.   within: name of what contains it."""
    words = _split(known.get(element.tag, ""))
    if "*" in words:
        return
    label = element.attributes.get("name") or within
    of = f"<{element.tag}>" + (f" {label}" if label else "")
    for name in element.attributes:
        if f"@{name}" not in words and not name.startswith("xmlns"):
            yield f"{name} of {of}"
    for child in element.children:
        if child.tag in words:
            yield from unread(child, known, label)
        elif child.children or child.attributes or child.content not in OFF or (child.content and child.tag in ON):
            yield f"<{child.tag}> in {of}"


@cache
def _split(words: str) -> frozenset[str]:
    return frozenset(words.split())


NOT_READ = "elements and attributes that are not read"
"""Message of the warning that lists them."""
