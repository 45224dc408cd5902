"""The labels of a recorded signal."""

from __future__ import annotations

from typing import NamedTuple


class Signal(NamedTuple):
    """The labels of a signal.   unit: of its entries.   dim, names: dimension and names of its entries, if it has several."""

    unit: str
    dim: str | None = None
    names: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        return len(self.names) if self.dim else 1
