"""The entries of signals of a result with their names and units, as plots show them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from pfaffian.errors import ModelError, brief, nearest
from pfaffian.output.plain import label

QUANTITIES = {
    "q": ("coordinate", "q_unit", {"rad": "angle", "m": "position", "1": "quaternion"}),
    "v": ("velocity", "v_unit", {"rad/s": "angular velocity", "m/s": "velocity"}),
    "loop": ("loop_coordinate", "loop_unit", {"rad": "angle of closures", "m": "position of closures", "1": "quaternion"}),
    "loop_rate": ("loop_velocity", "loop_rate_unit", {"rad/s": "angular velocity of closures", "m/s": "velocity of closures"}),
    "reaction": ("velocity", "force_unit", {"N m": "reaction moment", "N": "reaction force"}),
    "u": ("input", "u_unit", {"N m": "input moment", "N": "input force"}),
}
"""Signal -> its dimension, the name of the coordinate with its units, and the axis title for each unit."""

ROWS = {
    "multiplier": ("row", {"N m": "multiplier, moment", "N": "multiplier, force"}),
    "servo_force": ("servo_row", {}),
    "servo_error": ("servo_row", {}),
    "task_error": ("task_error_component", {}),
    "force_error": ("force_error_component", {}),
}
"""Signals of rows and tasks -> their dimension, and the axis title for each known unit."""

UNITS = {
    "multiplier": "N or N m by row",
    "servo_force": "N, N m",
    "servo_error": "unit of the constraint",
    "task_error": "unit of the task",
    "force_error": "N, N m",
}
"""Text in place of the unit where the name of a row does not determine it."""

VAGUE = ("per ", "unit of")
"""Beginnings of the unit of a signal whose entries differ in unit, or whose unit only its author knows."""


class Entries(NamedTuple):
    """Entries of one signal that have the same unit.   title: of the axis.   values: (runs, time, n)."""

    title: str
    unit: str
    names: list[str]
    values: np.ndarray

    @property
    def axis(self) -> str:
        """The label of an axis: a name and its unit."""
        what = f"{self.names[0]}, {self.title}" if len(self.names) == 1 and self.names[0] != self.title else self.title
        return f"{label(what, 60)} [{label(self.unit)}]" if self.unit else label(what, 60)


def one_entry(batch: xr.Dataset, name: Any) -> Entries:
    """The only entry with a name. Raises ModelError: there is none, or there are several."""
    entries = entries_of(batch, name)
    if len(entries) != 1 or len(entries[0].names) != 1:
        known = [f"{name}.{n}" for part in entries for n in part.names]
        raise ModelError(f"over: {brief(name)} has several entries; take one: {nearest('', known)}")
    return entries[0]


def entries_of(batch: xr.Dataset, name: Any) -> list[Entries]:
    """The entries of a signal, or one named entry, grouped by unit. Raises ModelError: there is no such signal or entry."""
    signals = [str(n) for n, x in batch.data_vars.items() if {"run", "time"} <= set(x.dims) and x.ndim <= 3]
    signal = next((n for n in sorted(signals, key=len, reverse=True) if name == n or str(name).startswith(f"{n}.")), None)
    if not isinstance(name, str) or signal is None:
        raise ModelError(f"plot: the result has no signal {brief(name)} over time; {nearest(name, signals)}")
    array = batch[signal].transpose("run", "time", ...)
    values = np.where(np.isfinite(array.values), array.values, np.nan).astype(float)
    if values.ndim == 2:
        names, values = [signal], values[:, :, None]
    else:
        dim = str(array.dims[2])
        names = [str(n) for n in array[dim].values] if dim in array.coords else [str(i) for i in range(values.shape[2])]
    units, titles = _units(batch, signal, names)
    chosen = range(len(names))
    if name != signal:
        entry = name[len(signal) + 1 :]
        if entry not in names:
            raise ModelError(f"plot: {signal!r} has no entry {brief(entry)}; {nearest(entry, names)}")
        chosen = range(names.index(entry), names.index(entry) + 1)
    parts = {unit: [i for i in chosen if units[i] == unit] for unit in dict.fromkeys(units[i] for i in chosen)}
    plain = signal.replace("_", " ")
    return [Entries(titles.get(u, plain), u, [names[i] for i in at], values[:, :, at]) for u, at in parts.items()]


def _units(batch: xr.Dataset, signal: str, names: list[str]) -> tuple[list[str], dict[str, str]]:
    """The unit of each entry, empty where only the author of the signal knows it, and the axis title for each unit."""
    if signal in QUANTITIES and QUANTITIES[signal][1] in batch.coords:
        _, unit_of, titles = QUANTITIES[signal]
        return [str(u) for u in batch[unit_of].values], titles
    if signal in ROWS:
        return [force_unit_of_row(n) if signal == "multiplier" else UNITS[signal] for n in names], ROWS[signal][1]
    dim = str(batch[signal].dims[-1])
    unit_name = f"{dim.removesuffix('_entry')}_unit"
    if unit_name in batch.coords and batch[unit_name].dims == (dim,):
        return [str(u) for u in batch[unit_name].values], {}
    unit = str(batch[signal].attrs.get("units", ""))
    if dim.startswith("wrench_") and unit == "N, N m":  # of a reaction
        return ["N" if n.startswith("f") else "N m" for n in names], {}
    by_dim = {"per velocity": "v_unit", "per coordinate": "q_unit", "per input": "u_unit"}.get(unit)
    if by_dim in batch.coords and batch[by_dim].dims == (dim,):
        return [str(u) for u in batch[by_dim].values], {}
    return ["" if unit.startswith(VAGUE) else unit] * len(names), {}


def force_unit_of_row(row: str) -> str:
    """Unit of the multiplier of a row: from the name of a closure's row; not known for a row that a user wrote."""
    return {".v": "N", ".w": "N m"}.get(row[-3:-1], UNITS["multiplier"]) if row[-1:] in "xyz" else UNITS["multiplier"]
