"""Sweeps in a figure: all axes beside each other, a map of cells, or a cloud of points."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
import xarray as xr

from pfaffian.errors import ModelError, plural
from pfaffian.evaluate.arrays import as_whole, one_of
from pfaffian.output.plain import label
from pfaffian.sweeps.ranked import column
from pfaffian.viewer.drawing import GREY, style

Kind = Literal["parallel", "heat", "scatter"]

MOST_READ = 2**22
"""Runs that a figure looks at; of more it takes every so many."""

MOST_DRAWN = {"parallel": 1000, "scatter": 20_000}
"""Lines and points that a figure draws."""


def plot_sweep(
    found: xr.Dataset,
    by: str,
    *axes: str,
    kind: Kind = "parallel",
    cells: int = 40,
    title: str | None = None,
) -> Any:
    """Draw the runs of a sweep, coloured by one number of each.

    Args:
        found: Dataset of a sweep, finished or not; runs that did not finish are left out, and the title says how many.
        by: the number that colours, "NAME" or "NAME.ENTRY" of what was kept.
        axes: labels of axes of the space, or other numbers; none: all axes of the space, of which "heat" and "scatter" take
            the first two.
        kind: "parallel" (default), one line a run across parallel axes, the smallest values of `by` in front; "heat", the mean
            of `by` in cells of two axes; "scatter", one point a run.
        cells: along each side of a heat map, 40 by default; an axis with fewer values has a cell for each.
        title: text above the figure; None: the mechanism and the number of runs.
    Returns:
        matplotlib Figure.
    Raises ModelError: no such number or axis; nothing to draw.

    Example:
        >>> import tempfile
        >>> import pfaffian as pf
        >>> m = pf.mechanism("box", [pf.body("box", 1.0)], [pf.joint("x", "prismatic", "world", "box")])
        >>> how = {"duration": 1.0, "step": 0.1, "backend": "numpy", "keep": {"end": pf.statistics.final("q")}}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     found = pf.sweep(m, {"q:x": [0.0, 1.0], "v:x": [1.0, 2.0]}, store=f"{folder}/runs.zarr", **how)
        ...     [a.get_xlabel() for a in pf.plot_sweep(found, "end", kind="heat").axes]
        ['q:x', '']
    """
    one_of(kind, get_args(Kind), "plot_sweep: kind")
    every, bins = -(-found.sizes["run"] // MOST_READ), as_whole(cells, "cells", 1000)
    colour = column(found, by)[::every].values
    names = list(axes) or [str(n) for n in found["axis"].values]
    if kind != "parallel" and (len(names) < 2 or len(axes) > 2):
        raise ModelError(f"plot_sweep: a {kind} figure has two axes; name two of {', '.join(names)}")
    names = names[:2] if kind != "parallel" else names
    values = np.column_stack([column(found, name)[::every].values for name in names]).astype(float)
    status = found["status"][::every].values
    good = (status == 0) & np.isfinite(colour) & np.isfinite(values).all(axis=1)
    if not good.any():
        raise ModelError(f"plot_sweep: no run that finished has a value of {by!r}")
    from pfaffian.viewer.chart import Chart

    with style():
        figure = Chart(figsize=(8.0 if kind == "parallel" else 6.4, 4.6), layout="constrained")
        draw = {"parallel": _parallel, "heat": _heat, "scatter": _scatter}[kind]
        drawn = draw(figure.subplots(), values[good], colour[good].astype(float), names, bins)
        figure.colorbar(drawn, ax=figure.axes, label=_with_unit(found, by))
        figure.suptitle(label(title or _heading(found, every, good, kind), 110), fontsize=10)
    return figure


def _heading(found: xr.Dataset, every: int, good: np.ndarray, kind: str) -> str:
    count, looked = int(good.sum()), len(good)
    words = [plural(found.sizes["run"], "run")]
    words += [f"one in {every} looked at"] if every > 1 else []
    words += [f"{looked - count} without a value left out"] if count < looked else []
    most = MOST_DRAWN.get(kind, count)
    words += [f"{most} drawn"] if count > most else []
    return f"{found.attrs.get('mechanism', 'sweep')}: {', '.join(words)}"


def _with_unit(found: xr.Dataset, by: str) -> str:
    x = found[by.partition(".")[0]] if by not in found else found[by]
    unit = str(x.attrs.get("units", ""))
    return label(f"{by} [{unit}]" if unit and not unit.startswith("per ") else by, 60)


def _some(colour: np.ndarray, kind: str) -> np.ndarray:
    """The runs that are drawn, evenly from the largest value to the smallest, which comes last and so in front."""
    order = np.argsort(-colour, kind="stable")
    count = min(len(order), MOST_DRAWN[kind])
    return order[np.round(np.linspace(0, len(order) - 1, count)).astype(int)]


def _parallel(ax: Any, values: np.ndarray, colour: np.ndarray, names: list[str], _: int) -> Any:
    from matplotlib.collections import LineCollection

    some = _some(colour, "parallel")
    low, high = values.min(axis=0), values.max(axis=0)
    share = (values[some] - low) / np.where(high > low, high - low, 1.0)
    x = np.arange(len(names))
    lines = LineCollection([np.column_stack([x, y]) for y in share], cmap="viridis_r", linewidths=0.8, alpha=0.8)
    lines.set_array(colour[some])
    ax.add_collection(lines)
    ax.vlines(x, 0, 1, color=GREY, linewidth=1.0, zorder=0)
    ax.set_xticks(x, [f"{label(n, 24)}\n{a:.3g} to {b:.3g}" for n, a, b in zip(names, low, high, strict=True)])
    ax.set(yticks=[], xlim=(-0.2, len(names) - 0.8), ylim=(-0.03, 1.03))
    ax.grid(False)
    return lines


def _heat(ax: Any, values: np.ndarray, colour: np.ndarray, names: list[str], bins: int) -> Any:
    edges = [_edges(x, bins) for x in values.T]
    across, up = values.T
    count, *_ = np.histogram2d(across, up, bins=edges)
    total, *_ = np.histogram2d(across, up, bins=edges, weights=colour)
    mean = np.ma.masked_invalid(np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0))
    ax.set(xlabel=label(names[0], 60), ylabel=label(names[1], 60))
    ax.grid(False)
    return ax.pcolormesh(*edges, mean.T, cmap="viridis_r")


def _edges(x: np.ndarray, bins: int) -> np.ndarray:
    """Of the cells of an axis: one about each value if these are few."""
    known = np.unique(x)
    if len(known) > bins:
        return np.linspace(known[0], known[-1], bins + 1)
    middle = (known[1:] + known[:-1]) / 2
    first, last = (middle[:1], middle[-1:]) if len(middle) else (known + 0.5, known - 0.5)
    return np.concatenate([2 * known[:1] - first, middle, 2 * known[-1:] - last])


def _scatter(ax: Any, values: np.ndarray, colour: np.ndarray, names: list[str], _: int) -> Any:
    some = _some(colour, "scatter")
    ax.set(xlabel=label(names[0], 60), ylabel=label(names[1], 60))
    return ax.scatter(*values[some].T, c=colour[some], s=8, cmap="viridis_r", linewidths=0)
