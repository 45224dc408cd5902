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
    count as equal.   causes: beginning of what was compared -> why the engine is not right there.   note: more about the
    comparison, such as engines that do not open the file, with their reason."""

    refused: str = ""
    left_out: str = ""
    error: str = ""
    nv: int = 0
    differences: Mapping[str, float] = field(default_factory=dict)
    same: float = SAME
    causes: Mapping[str, str] = field(default_factory=dict)
    note: str = ""

    @property
    def outcome(self) -> str:
        if self.refused:
            return "does not open"
        if self.error or not self.differences:
            return "opens, not compared"
        if not self.apart:
            return "equal"
        return "differs with a known cause" if all(map(self._causes, self.apart)) else "differs"

    @property
    def apart(self) -> list[str]:
        """What differs."""
        return [what for what, x in self.differences.items() if not x <= self.same]

    def _causes(self, what: str) -> list[str]:
        return [why for beginning, why in self.causes.items() if what.startswith(beginning)]

    @property
    def why(self) -> str:
        """Explanation in one line."""
        told = self.refused or self.error or (self.left_out if self.outcome == "differs" else "")
        known = dict.fromkeys(why for what in self.apart for why in self._causes(what))
        return "; ".join(filter(None, (*known, told, self.note))).replace("\n", " ")

    @property
    def numbers(self) -> str:
        return "  ".join(f"{what} {x:.1e}" for what, x in self.differences.items())
