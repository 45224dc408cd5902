"""Plots that an animation page shows beside the motion."""

from __future__ import annotations

from collections.abc import Iterable

import xarray as xr

from pfaffian.model.mechanism import as_names
from pfaffian.output.plain import label
from pfaffian.simulate.record.result import as_result
from pfaffian.viewer.curves import most_variable, need_records, thinned
from pfaffian.viewer.entries import entries_of
from pfaffian.viewer.page import SidePlot


def beside_motion(result: xr.Dataset, names: str | Iterable[str]) -> list[SidePlot]:
    """The panels for signals or entries of these names, of the first run of a batch: one for each unit, with few lines.

    Raises ModelError: there is no such signal or entry, or the result is one instant.
    """
    chosen_names = (names,) if isinstance(names, str) else as_names(names, "plot")
    if not chosen_names:
        return []
    result = as_result(result)
    need_records(result)
    run = result.isel(run=[0]) if "run" in result.dims else result.expand_dims("run")
    panels = []
    for part in (part for name in chosen_names for part in entries_of(run, name)):
        chosen = most_variable(part.values) or [0]
        lines = {label(part.names[i], 40): thinned(run["time"].values, part.values[0, :, i]) for i in chosen}
        panels.append(SidePlot(part.axis, lines))
    return panels
