"""Short texts of the parts of a model, for the prompt and for messages, and HTML for notebooks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any

import casadi as ca
import numpy as np

from pfaffian import errors
from pfaffian.model.number import parameter_of

LISTED_NAMES = 6
"""Largest number of names that one line lists."""
TABLE_ROWS = 60
"""Largest number of rows in a table."""


def kind(item: Any) -> str:
    """Its class alone, for a part without a name."""
    return f"<{type(item).__name__}>"


def words(item: Any, *parts: str, name: str | None = None) -> str:
    """The repr of an item: <Body 'rod': part, part>."""
    named = "" if name is None else f" {name!r}"
    return f"<{type(item).__name__}{named}: {', '.join(parts)}>"


def description(item: Any) -> str:
    """The repr of an item without its type and name."""
    return repr(item).removeprefix(f"<{type(item).__name__} {item.name!r}: ")[:-1]


def number(x: ca.SX, unit: str = "") -> str:
    """A number or vector as a short text: 0.5, (1, 0, 0), or f(length) if it depends on the parameter `length`."""
    entries = [_scalar(x[i]) for i in range(x.numel())]
    text = entries[0] if len(entries) == 1 else f"({', '.join(entries)})"
    return f"{text} {unit}".rstrip()


def _scalar(x: ca.SX) -> str:
    """One number as a short text."""
    if x.is_constant():
        return f"{float(x):.5g}"
    owners = [parameter_of(s) for s in ca.symvar(x)]
    named = listed([_plain(p.name) if p else "?" for p in owners])
    return named if x.is_symbolic() else f"f({named})"


def listed(names: Sequence[str]) -> str:
    """The first few names, with their total number if there are more; an empty text for no names."""
    return errors.listed([_plain(name) for name in names], LISTED_NAMES) if names else ""


def function(f: Callable[..., Any]) -> str:
    """The name of a user's function, or the repr of a function object of the library."""
    if not hasattr(f, "__name__") and type(f).__module__.startswith("pfaffian."):
        return _plain(repr(f).strip("<>"))
    return _plain(getattr(f, "__name__", type(f).__name__)).replace("<lambda>", "a lambda")


def maker(f: Callable[..., Any]) -> str:
    """The name of the library's function that created f, such as `projected` for projected.<locals>.law.

    For a function of the user, it is the name of f.
    """
    outer, within, _ = getattr(f, "__qualname__", "").partition(".<locals>.")
    return _plain(outer) if within and getattr(f, "__module__", "").startswith("pfaffian.") else function(f)


def _plain(text: str) -> str:
    """The text with characters that are not printable escaped, since names may come from untrusted files."""
    return text if text.isprintable() else ascii(text)[1:-1]


def lines(text: str) -> str:
    """Lines of text as a preformatted block of HTML, escaped."""
    return f"<pre>{escape(text)}</pre>"


def table(header: Sequence[str], rows: Sequence[Iterable[str]]) -> str:
    """An HTML table with at most TABLE_ROWS rows; an empty text without rows."""
    if not rows:
        return ""
    lines = ["".join(f"<th>{cell(x)}</th>" for x in header)]
    lines += ["".join(f"<td>{cell(x)}</td>" for x in row) for row in rows[:TABLE_ROWS]]
    if len(rows) > TABLE_ROWS:
        lines.append(f'<td colspan="{len(header)}">and {len(rows) - TABLE_ROWS} more</td>')
    return "<table>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"


def cell(text: str) -> str:
    """The text of a table cell: printable, at most 200 characters, escaped."""
    return escape(_plain(text if len(text) <= 200 else f"{text[:200]}..."))


def turn(R: ca.SX, rotation_vector: Callable[[ca.DM], ca.DM]) -> str:
    """A rotation as a short text with its rotation vector [rad]; an empty text for the identity."""
    if not R.is_constant():
        return "turned by parameters"
    angles = np.array(rotation_vector(ca.DM(R))).ravel()
    return f"turned by {number(ca.SX(np.round(angles, 9)), 'rad')}" if np.abs(angles).max() > 1e-9 else ""
