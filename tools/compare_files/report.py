"""One row for each file: whether it opens, and how far the library and the engines of its format are apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

SAME = 1e-10
"""Relative difference below which quantities count as equal, for engines with double precision."""


@dataclass(frozen=True)
class Row:
    """Result for one file.

    refused: reason why it does not open.   left_out: the reader's warnings.   error: reason why no engine could be compared.
    nv: of the mechanism.   differences: what was compared -> the largest relative difference.   same: below which quantities
    count as equal.   note: more about the comparison, such as engines that do not open the file, with their reason."""

    refused: str = ""
    left_out: str = ""
    error: str = ""
    nv: int = 0
    differences: Mapping[str, float] = field(default_factory=dict)
    same: float = SAME
    note: str = ""

    @property
    def outcome(self) -> str:
        if self.refused:
            return "does not open"
        if self.error or not self.differences:
            return "opens, not compared"
        return "equal" if all(x <= self.same for x in self.differences.values()) else "differs"

    @property
    def why(self) -> str:
        """Explanation in one line."""
        told = self.refused or self.error or (self.left_out if self.outcome == "differs" else "")
        return "; ".join(filter(None, (told, self.note))).replace("\n", " ")

    @property
    def numbers(self) -> str:
        return "  ".join(f"{what} {x:.1e}" for what, x in self.differences.items())
