"""A result before it is labelled: making labels takes longer than a short run, so they are made once, at the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True)
class Draft:
    """The variables of a result without labels.

    data: name -> (dimensions, values[, attributes]).   coords: name -> (dimensions, values[, attributes]), or a list of the
    names of a dimension's entries.   attrs: attributes of the result.
    """

    data: dict[str, tuple[Any, ...]]
    coords: dict[str, Any]
    attrs: dict[str, Any]

    def __contains__(self, name: object) -> bool:
        return name in self.data or name in self.coords

    def __getitem__(self, name: str) -> np.ndarray:
        """The values of a variable or coordinate."""
        found = self.data[name] if name in self.data else self.coords[name]
        return np.asarray(found if isinstance(found, list) else found[1])

    def labelled(self, squeeze: bool = False) -> xr.Dataset:
        """The labelled Dataset.   squeeze: whether to drop the run axis of a single run."""
        from pfaffian.simulate.step import labels

        return labels.labelled(self.data, self.coords, self.attrs, squeeze)
