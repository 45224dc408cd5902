"""The pages of the manual, which come with the package: their names and texts, and the code of a page as a program."""

from __future__ import annotations

import re
from difflib import get_close_matches
from pathlib import Path

from pfaffian.errors import ModelError
from pfaffian.formats.bundled import shelf
from pfaffian.formats.text.strict_number import printable

_CODE = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)


def pages() -> dict[str, Path]:
    """Name of each page, such as `tutorials/vehicle`, -> its file. Raises ModelError: this copy of the package has none."""
    folder = shelf("docs")
    return {f.relative_to(folder).with_suffix("").as_posix(): f for f in sorted(folder.rglob("*.md"))}


def page(name: str) -> Path:
    """The file of a page: `tutorials/vehicle`, or `vehicle` where only one page ends so. Raises ModelError: there is none."""
    known = pages()
    found = [n for n in known if n == name.removesuffix(".md")] or [n for n in known if n.endswith(f"/{name}")]
    if len(found) != 1:
        near = ", ".join(found or get_close_matches(name, [*known, *(n.rpartition("/")[2] for n in known)], 3))
        raise ModelError(f"the manual has no page {printable(name)}; `pfaffian docs` lists them{near and f': {near}'}")
    return known[found[0]]


def site() -> Path:
    """The first page of the site, if it has been built from these pages. Raises ModelError: it has not."""
    first = shelf("docs").parent / "out" / "site" / "index.html"
    if not first.is_file():
        raise ModelError("the site is not built; run `python -m tools.pages` in a checkout, or `pfaffian docs PAGE` for a page")
    return first.resolve()


def title(file: Path) -> str:
    """The heading of a page."""
    words = (line.removeprefix("# ").strip() for line in file.read_text(encoding="utf-8").splitlines() if line.startswith("# "))
    return next(words, file.stem)


def program(file: Path) -> str:
    """The code of a page as one program, block after block. Raises ModelError: the page has no code."""
    blocks = _CODE.findall(file.read_text(encoding="utf-8"))
    if not blocks:
        raise ModelError(f"the page {printable(file.stem)} has no code to copy")
    return f'"""{title(file)}"""\n\n' + "\n".join(blocks)
