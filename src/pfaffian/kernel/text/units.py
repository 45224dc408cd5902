"""Units of a long C text, compiled in parallel: each has the shared text and its own stages, unit 0 also the loops."""

from __future__ import annotations

import re

_UNIT, _SHARED = "/* of unit {} */", "/* of every unit */"
_MARK = re.compile(r"^/\* of (?:unit (\d+)|every unit) \*/\n", re.MULTILINE)


def of_unit(unit: int, *lines: str) -> list[str]:
    """The lines between marks that assign them to one unit."""
    return [_UNIT.format(unit), *lines, _SHARED]


def units_of(text: str) -> list[str]:
    """The text of each unit, in order; the whole text if there is only one unit."""
    shared, *marked = _MARK.split(text)
    parts = [(None, shared), *zip(marked[::2], marked[1::2], strict=True)]
    count = 1 + max((int(unit) for unit, _ in parts if unit), default=0)
    return ["".join(part for unit, part in parts if unit in (None, str(k))) for k in range(count)] if count > 1 else [text]
