"""Plots of chosen signals of a result, over time or over another signal."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from pfaffian.errors import ModelError, brief, nearest, plural
from pfaffian.output.plain import label, text
from pfaffian.simulate.record.result import as_result
from pfaffian.viewer.curves import ALONE, MAX_PHASE_RUNS, lines, phase_curves
from pfaffian.viewer.drawing import note_cut, style
from pfaffian.viewer.figures import QUANTITIES, ROWS, UNITS, force_unit_of_row, heading, mark_stop

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


def plot(result: xr.Dataset, *what: str, over: str | None = None, title: str | None = None) -> Any:
    """Draw chosen signals of a result, with names and units: over time, or over one entry as a phase plot.

    Each signal has one panel for each unit among its entries. Over time, a batch is drawn as medians with bands from the 5 % to
    the 95 % quantile; in a phase plot, as one curve for each run.

    Args:
        result: Dataset of a run over time, or of a batch.
        what: names of signals, such as "q" or "energy", or of single entries, such as "q.hinge".
        over: an entry for the horizontal axis, such as "q.hinge"; None: time.
        title: text above the figure; None: the mechanism and how the run ended.
    Returns:
        matplotlib Figure; a notebook shows it, and its `savefig` writes it to a file.
    Raises ModelError: the result has no time axis; no signal is named; there is no such signal or entry.

    Example:
        >>> import pfaffian as pf
        >>> hinge = pf.joint("hinge", "revolute", "world", "rod", axis=(0, 1, 0))
        >>> m = pf.mechanism("pendulum", [pf.body("rod", 1.0, com=(0, 0, -0.5))], [hinge])
        >>> result = pf.run(m, {"hinge": 0.3}, duration=0.1, step=0.01, backend="numpy")
        >>> [axes.get_ylabel() for axes in pf.plot(result, "q", "energy").axes]
        ['hinge, angle [rad]', 'energy [J]']
        >>> phase = pf.plot(result, "v.hinge", over="q.hinge").axes[0]
        >>> phase.get_xlabel(), phase.get_ylabel()
        ('hinge, angle [rad]', 'hinge, angular velocity [rad/s]')
    """
    as_result(result)
    if not what:
        raise ModelError("plot(result, 'q', 'energy', ...): name what to draw, or see overview(result)")
    if "time" not in result.dims:
        raise ModelError("a figure needs a result over time, not one instant of it: choose by .isel(time=slice(...))")
    batch = result if "run" in result.dims else result.expand_dims("run")
    panels = [panel for name in what for panel in entries_of(batch, name)]
    across = one_entry(batch, over) if over is not None else None
    from pfaffian.viewer.chart import Chart

    height = 4.2 if across and len(panels) == 1 else 2.4
    with style():
        figure = Chart(figsize=(6.6 if across else 8.0, 0.5 + height * len(panels)), layout="constrained")
        axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
        for panel, ax in zip(panels, axes, strict=True):
            if across:
                phase_curves(ax, across.values[:, :, 0], panel.values, panel.names)
            else:
                lines(ax, batch["time"].values, panel.values, panel.names if len(panel.names) > 1 else [ALONE])
                mark_stop(ax, batch, batch)
            ax.set_ylabel(panel.axis)
            note_cut(ax)
        axes[-1].set_xlabel(across.axis if across else "time [s]")
        figure.suptitle(label(title or (_phase_heading(batch) if across else heading(result)), 110), fontsize=10)
    return figure


def _phase_heading(batch: xr.Dataset) -> str:
    """Title of a phase plot: the mechanism, how many runs are drawn, and the marks of start and end."""
    count = len(batch["run"])
    drawn = f"{min(count, MAX_PHASE_RUNS)} of {plural(count, 'run')}, " if count > MAX_PHASE_RUNS else ""
    return f"{text(batch.attrs.get('mechanism', 'mechanism'), 50)}: {drawn}from ring to dot"


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
