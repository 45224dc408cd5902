"""Text from files in a form that is safe for a terminal, a figure, a page in markdown or a file name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

LONGEST = 60
"""Largest number of characters of a name; longer names lose their middle."""

_MARKS = re.compile(r"[!-/:-@\[-`{-~]|^ | $")
"""Characters that may mean something in markdown: ASCII punctuation, and blanks at the ends."""

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
_NUMBER = re.compile(r"[+-]?[0-9][0-9.e+-]*( N| N m)?|[+-]?(inf|nan)")


def text(value: object, longest: int | None = None) -> str:
    """Text that is safe on a terminal: control characters, line ends and marks of writing direction are escaped.

    longest: number of characters above which the middle is left out; None: no limit.
    """
    printable = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in str(value))
    if longest is None or len(printable) <= longest:
        return printable
    return f"{printable[: longest // 2 - 1]}..{printable[1 - longest // 2 :]}"


def lines(value: object) -> str:
    """Text that is safe on a terminal, with its line ends, such as the output of a compiler."""
    return "\n".join(text(line) for line in str(value).split("\n"))


def label(value: object, longest: int = 28) -> str:
    """Text that is safe in a figure: no TeX, and no leading underscore, which a legend would leave out."""
    printable = text(value, longest).replace("$", r"\$")
    return f" {printable}" if printable.startswith("_") else printable


def markdown(value: object, longest: int | None = None) -> str:
    """Text that markdown shows as it is: every mark is a reference to its character, so nothing becomes an image or HTML."""
    return _MARKS.sub(lambda found: f"&#{ord(found[0])};", text(value, longest))


def stem(value: object, otherwise: str = "result") -> str:
    """A file name without suffix: at most 60 ASCII letters, digits, - and _; `otherwise` if none is left."""
    return _UNSAFE.sub("-", str(value)).strip("-")[:LONGEST].strip("-") or otherwise


def table(rows: Iterable[Sequence[object]], header: Sequence[str] = (), indent: int = 2) -> str:
    """Rows as text in columns, two spaces apart; numbers are aligned right, all else left. The last column may be long."""
    cells = [[*(text(c, LONGEST) for c in row[:-1]), text(row[-1], 6 * LONGEST)] for row in rows]
    whole = [list(header), *cells] if header else cells
    if not whole:
        return ""
    widths = [max(len(row[i]) for row in whole) for i in range(len(whole[0]))]
    right = [_is_numeric([row[i] for row in cells]) for i in range(len(widths))]

    def line(row: Sequence[str]) -> str:
        parts = [c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right, strict=True)]
        return (" " * indent + "  ".join(parts)).rstrip()

    return "\n".join(line(row) for row in whole)


def _is_numeric(column: Sequence[str]) -> bool:
    """Whether a column contains numbers, and otherwise only dashes and blanks."""
    words = [c.strip() for c in column if c.strip() not in ("", "-")]
    return bool(words) and all(_NUMBER.fullmatch(w) for w in words)
