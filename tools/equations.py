"""Indexes of theses: where each of their equations is, from the tags such as `[konz25 (4.22)]` in docstrings and comments.

python -m tools.equations konz25     # prints the index of that thesis

A page of docs/ gets the index where it has the line `<!-- equations of konz25 -->`. Functions and classes of the library come
with the first sentence of their docstrings, and with the names under which users call them, then the tests and studies that
show them.
"""

from __future__ import annotations

import ast
import re
import sys
import textwrap
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pfaffian as pf
from tools.api import public_names

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "pfaffian"
MARK = re.compile(r"^<!-- equations of (\w+) -->$", re.M)
"""The line of a page that is replaced by an index."""
APPENDIX = 100
"""Chapter of an appendix, which comes last."""
WIDTH = 128

SUBJECTS = {
    "konz25": {
        1: "an introductory example",
        2: "mathematics: redundant coordinates, minimal velocities, rotations",
        3: "mechanics of particles and rigid bodies, from energies",
        4: "tracking control: the prototype that a machine imitates, and its inputs",
        5: "multicopters: models, force control, estimation, flights",
        APPENDIX: "constraints and general energies",
    },
    "chhabra14": {
        2: "kinematics: joints as groups of motions, products of exponentials",
        3: "machines without rolling: symmetries and reduction by momenta",
        4: "wheels and blades: reduction of nonholonomic machines",
        5: "concurrent control of base and hand",
    },
}
"""By source: what each chapter is about."""

_TAG = r"\[{}\s([^\]\[{{}}]+)\]"
_NUMBER = re.compile(r"(?<![\w.])([A-Z]|\d+)\.\d+(?:\.\d+)*|\b(?:ch\.|chapter) (\d+)|(?:app\.|appendix) ([A-Z])")
_DEFINITIONS = ast.FunctionDef | ast.ClassDef


class Place(NamedTuple):
    """A tag.   reference: "(4.22)", "prop. 4.2.15".   name: of the function or class that has it, "" for the file itself.
    what: first sentence of its docstring."""

    reference: str
    file: Path
    name: str
    what: str


def places(key: str, files: Sequence[Path]) -> Iterator[Place]:
    """The tags of a source in these files."""
    tag = re.compile(_TAG.format(key))
    for file in files:
        text = file.read_text(encoding="utf-8")
        if key not in text:
            continue
        tree = ast.parse(text)
        owners = [x for x in ast.walk(tree) if isinstance(x, _DEFINITIONS)]
        for found in tag.finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            around = [x for x in owners if x.lineno <= line <= (x.end_lineno or 0)]
            owner = max(around, key=lambda x: x.lineno) if around else None
            what = _sentence(ast.get_docstring(owner or tree) or "", tag)
            for reference in references(" ".join(found[1].split())):
                yield Place(reference, file, owner.name if owner else "", what)


def references(words: str) -> list[str]:
    """The parts of a tag: "(4.23), (4.32)" has two, "4.8.2, corrected" one."""
    parts = [part.partition(";")[0] for part in re.split(r", | and ", words) if not re.match(r"[a-z]+\d\d ", part)]
    plain = [re.sub(r"^sections? |[.]$", "", x).replace("examples", "example").replace("thm.", "theorem") for x in parts]
    return [x for x in plain if chapter(x) is not None] or [words]


def chapter(reference: str) -> int | None:
    """Chapter of an equation, section, figure or table; None if it names none."""
    found = _NUMBER.search(reference)
    if not found:
        return None
    word = next(x for x in found.groups() if x)
    return int(word) if word.isdigit() else APPENDIX + ord(word) - ord("A")


def order(reference: str) -> tuple[int, ...]:
    """Order of a reference within its thesis: by chapter, sections before equations, by the first number."""
    found, number = _NUMBER.search(reference), chapter(reference) or 0
    numbers = list(map(int, re.findall(r"\d+", found[0]))) if found else []
    return (number, reference.startswith("("), *numbers[number < APPENDIX :])


def _sentence(doc: str, tag: re.Pattern[str]) -> str:
    """The first sentence of a docstring, without its tags and its full stop."""
    text = " ".join(tag.sub("", doc.split("\n\n")[0]).split())
    found = re.match(r"(.*?[^.\d])\.(?= |$)", text)
    return (found[1] if found else text).strip().removesuffix(".")


@cache
def index(key: str) -> str:
    """The index of a source, a section for each chapter."""
    library = list(places(key, sorted(SOURCE.rglob("*.py"))))
    shown = list(places(key, [*sorted((ROOT / "tests").rglob("*.py")), *sorted((ROOT / "studies").glob("*.py"))]))
    chapters: dict[int, set[str]] = {}
    for place in (*library, *shown):
        chapters.setdefault(chapter(place.reference) or 0, set()).add(place.reference)
    parts = []
    for number in sorted(chapters):
        items = {x: _items(x, library, shown) for x in sorted(chapters[number], key=lambda x: (order(x), x))}
        groups = [list(same) for _, same in groupby(items, key=items.get)]
        entries = ["\n".join([f"* {', '.join(f'**{x}**' for x in same)}", *items[same[0]]]) for same in groups]
        parts.append("\n".join([f"## {_title(key, number)}\n", *entries]))
    return "\n\n".join(parts)


def _title(key: str, number: int) -> str:
    if number == 0:
        return "The whole"
    place = f"Chapter {number}" if number < APPENDIX else f"Appendix {chr(ord('A') + number - APPENDIX)}"
    return f"{place}: {SUBJECTS[key][number]}"


def _items(reference: str, library: Sequence[Place], shown: Sequence[Place]) -> tuple[str, ...]:
    """The lines below a reference: what the library has for it, then what shows it."""
    found = dict.fromkeys(f"{_named(p)}: {p.what}" for p in library if p.reference == reference)
    shows = [p for p in shown if p.reference == reference]
    files = {file: [p.name for p in shows if p.file == file and p.name] for file in dict.fromkeys(p.file for p in shows)}
    words = [f"`{file.stem}`" if file.parent.name == "studies" else _test(file, names) for file, names in files.items()]
    items = [*found, *([f"shown by {', '.join(words)}"] if words else [])]
    how = {"subsequent_indent": "    ", "break_long_words": False, "break_on_hyphens": False}
    return tuple(textwrap.fill(f"  * {x}", WIDTH, **how) for x in items)


def _named(place: Place) -> str:
    """A function by the name that users call, if it has one, and by its file."""
    file = place.file.relative_to(SOURCE)
    if not place.name:
        return f"`{file.as_posix()}`"
    module = ".".join(("pfaffian", *file.with_suffix("").parts)).removesuffix(".__init__")
    return f"`{_public().get((module, place.name), place.name)}` in `{file.as_posix()}`"


@cache
def _public() -> dict[tuple[str, str], str]:
    """Module and name of a definition -> name that users call, such as `pf.control.pose`."""
    rooms = {f"pf.{name}": getattr(pf, name) for name in public_names(pf) if isinstance(getattr(pf, name), ModuleType)}
    values = {
        f"{room}.{name}": getattr(module, name) for room, module in {**rooms, "pf": pf}.items() for name in public_names(module)
    }
    return {
        (x.__module__, x.__name__): name for name, x in values.items() if hasattr(x, "__module__") and hasattr(x, "__name__")
    }


def _test(file: Path, names: Sequence[str]) -> str:
    name = file.relative_to(ROOT / "tests").as_posix()
    only = list(dict.fromkeys(names))
    return f"`{name}::{only[0]}`" if len(only) == 1 else f"`{name}`"


def with_indexes(text: str) -> str:
    """A page with its indexes."""
    return MARK.sub(lambda found: index(found[1]), text)


if __name__ == "__main__":
    print(index(sys.argv[1]))
