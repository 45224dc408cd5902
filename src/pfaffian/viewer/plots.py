"""Plots of chosen signals of a result, over time or over another signal."""

from __future__ import annotations

from typing import Any

import xarray as xr

from pfaffian.errors import ModelError, plural
from pfaffian.output.plain import label, text
from pfaffian.simulate.record.result import as_result
from pfaffian.viewer.curves import ALONE, MAX_PHASE_RUNS, lines, need_records, phase_curves
from pfaffian.viewer.drawing import note_cut, style
from pfaffian.viewer.entries import entries_of, one_entry
from pfaffian.viewer.figures import heading, mark_stop


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
    need_records(result)
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
