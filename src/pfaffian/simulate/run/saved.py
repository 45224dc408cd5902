"""Saved states of steppers: which ones are restored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pfaffian.errors import ModelError, brief
from pfaffian.simulate.run.singular_start import AT_REST, REGULAR

RECORDS = "records", "q_v"
"""Arrays of what was recorded, which may be nan. A state is not: a run that stops keeps its last good one."""


def check_saved(saved: Any, shapes: Mapping[str, tuple[int, ...]], causes: tuple[str, ...], what: str) -> None:
    """Raise ModelError: an array of a saved state is not one that `save` returns, in shape, type or numbers.

    shapes: of the arrays, by name.   causes: of stops, the meaning of `status`.   what: name of the method, for the message.
    """
    whole = {"status": (0, len(causes) - 1), "stopped": (-1, np.inf), "kinds": (REGULAR, AT_REST)}
    for name, shape in shapes.items():
        array = getattr(saved, name)
        good = isinstance(array, np.ndarray) and array.shape == shape
        if good and name in whole:
            low, high = whole[name]
            good = array.dtype.kind in "iu" and bool(((array >= low) & (array <= high)).all())
        elif good:
            good = array.dtype.kind == "f" and (name in RECORDS or not np.isnan(array).any())
        if not good:
            raise ModelError(f"{what}: saved.{name} is {brief(array)}; {what} takes what save() returned, unchanged")
