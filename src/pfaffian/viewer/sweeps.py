"""Sweeps in a figure: all axes beside each other, a map of cells, or a cloud of points.

Runs without a value are grey, and the title says how many did not finish. Numbers that fill their range only on a logarithmic
scale are drawn on one.
"""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import xarray as xr

from pfaffian.errors import ModelError, plural
from pfaffian.evaluate.arrays import as_whole, one_of
from pfaffian.output.plain import label
from pfaffian.sweeps.ranked import column
from pfaffian.viewer.drawing import GREY, NOTE, matplotlib, style

Kind = Literal["parallel", "heat", "scatter"]

MOST_READ = 2**22
"""Runs that a figure looks at; of more it takes every so many."""

NOT_COMPUTED = -1
"""The status of a run that is not in the store."""

MOST_DRAWN = {"parallel": 1000, "scatter": 20_000}
"""Lines and points that a figure draws."""


WIDE, NARROW, HIGH = 8.0, 6.4, 4.6
"""Inches of a figure of parallel axes, of the others, and their height."""

AXIS_WIDTH = 1.05
"""Inches that each of many parallel axes takes at least, and"""

LETTERS = 15
"""letters of its name on a line."""

FEW = 8
"""Values that are each written at an axis."""

APART = 0.06
"""Of an axis, between values that are each written."""

COLOURS = "viridis"
"""From dark to bright, so that the smallest values stand out."""


class Picked(NamedTuple):
    """Some runs.   values: (runs, axes).   colour: (runs,).   lost: (others, axes) of runs that have no value.

    names: of the axes, with units.   bar: the same of the colour.
    """

    values: np.ndarray
    colour: np.ndarray
    lost: np.ndarray
    names: list[str]
    bar: str


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
        found: Dataset of a sweep, finished or not; runs without a value are grey, and the title says how many did not finish.
        by: the number that colours, "NAME" or "NAME.ENTRY" of what was kept.
        axes: labels of axes of the space, or other numbers; none: all axes of the space and `by`, of which "heat" and "scatter"
            take the first two.
        kind: "parallel" (default), one line a run across parallel axes; "heat", the mean of `by` in cells of two axes;
            "scatter", one point a run. The smallest values of `by` are dark, and in front.
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
        ['q:x [m]', '']
    """
    one_of(kind, get_args(Kind), "plot_sweep: kind")
    every, bins = -(-found.sizes["run"] // MOST_READ), as_whole(cells, "cells", 1000)
    column(found, by)
    names = _axes(found, by, axes, kind)
    values = np.column_stack([column(found, name)[::every].values for name in [*names, by]]).astype(float)
    status = found["status"][::every].values
    good = (status == 0) & np.isfinite(values).all(axis=1)
    heading = _heading(found, every, good, status, kind)
    if not good.any():
        raise ModelError(f"plot_sweep: no run that finished has a value of {by!r}; {heading}")
    lost = values[~good & (status != NOT_COMPUTED), :-1]
    lost[:, [name not in found["axis"].values.tolist() for name in names]] = np.nan  # what a stopped run counted until then
    lost = lost if kind == "parallel" else lost[np.isfinite(lost).all(axis=1)]
    picked = Picked(
        values[good, :-1],
        values[good, -1],
        lost,
        [_with_unit(found, name) for name in names],
        _with_unit(found, by),
    )
    from pfaffian.viewer.chart import Chart

    with style():
        wide = max(WIDE, AXIS_WIDTH * (len(names) + 1)) if kind == "parallel" else NARROW
        figure = Chart(figsize=(wide, HIGH), layout="constrained")
        norm = _norm(picked.colour)
        draw = {"parallel": _parallel, "heat": _heat, "scatter": _scatter}[kind]
        picture = draw(figure.subplots(), picked, norm, bins)
        _bar(figure, picture)
        if picture.lost is not None:
            figure.legend([picture.lost], ["without a value"], loc="outside lower left", frameon=False)
        figure.suptitle(label(title or heading, 110), fontsize=10)
    return figure


class Picture(NamedTuple):
    """What was drawn.   colours: for the bar.   values: that it shows.   bar: its label.

    lost: what runs without a value look like, if there are any.
    """

    colours: Any
    values: np.ndarray
    bar: str
    lost: Any


def _bar(figure: Any, picture: Picture) -> None:
    """The scale of the colours, with an arrow where it is cut."""
    norm, values = picture.colours.norm, picture.values
    ends = {(False, False): "neither", (True, False): "min", (False, True): "max", (True, True): "both"}
    cut = ends[bool(values.min() < norm.vmin), bool(values.max() > norm.vmax)]
    bar = figure.colorbar(picture.colours, ax=figure.axes, label=label(picture.bar, 60), extend=cut)
    if norm.vmin > 0 and type(norm).__name__ == "LogNorm":
        _few_decades(bar.ax.yaxis, norm.vmin, norm.vmax)


def _few_decades(axis: Any, low: float, high: float) -> None:
    """Plain numbers along a logarithmic scale that is too short for powers of ten alone."""
    if high < 1000 * low:
        ticker = matplotlib("ticker")
        axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter("{x:.4g}")
        axis.set_minor_formatter(ticker.NullFormatter())


def _axes(found: xr.Dataset, by: str, axes: Sequence[str], kind: str) -> list[str]:
    """What the axes show. Raises ModelError: too many or too few are named."""
    space = [str(n) for n in found["axis"].values]
    names = list(axes) or space
    if kind == "parallel":
        return names if by in names or len(axes) > 1 else [*names, by]
    if kind == "scatter" and len(names) == 1:
        return [*names, by]
    if len(names) == 1:
        raise ModelError(f"plot_sweep: a heat figure has two axes, got {names[0]!r}; kind='scatter' draws {by!r} over one")
    if len(axes) > 2:
        raise ModelError(f"plot_sweep: a {kind} figure has two axes; name two of {', '.join(names)}")
    return names[:2]


def _heading(found: xr.Dataset, every: int, good: np.ndarray, status: np.ndarray, kind: str) -> str:
    count = int(good.sum())
    words = [plural(found.sizes["run"], "run")]
    words += [f"one in {every} looked at"] if every > 1 else []
    for how, which in {
        "did not finish": status > 0,
        "without a value": (status == 0) & ~good,
        "not computed yet": status == NOT_COMPUTED,
    }.items():
        words += [f"{which.sum()} {how}"] if which.any() else []
    most = MOST_DRAWN.get(kind, count)
    words += [f"{most} drawn"] if count > most else []
    return f"{found.attrs.get('mechanism', 'sweep')}: {', '.join(words)}"


def _with_unit(found: xr.Dataset, name: str) -> str:
    unit = _unit(found, name)
    return f"{name} [{unit}]" if unit not in ("", "1") and not unit.startswith("per ") else name


def _unit(found: xr.Dataset, name: str) -> str:
    """The unit of an axis of the space or of a number that was kept; "" or "per ..." where it is not known."""
    axes = [str(n) for n in found["axis"].values]
    if name in axes:
        return str(found["axis_unit"].values[axes.index(name)]) if "axis_unit" in found.coords else ""
    unit = str(found[name if name in found else name.partition(".")[0]].attrs.get("units", ""))
    one = column(found, name)
    for many, known in {"per velocity": "v_unit", "per coordinate": "q_unit", "per input": "u_unit"}.items():
        if unit.startswith(many) and known in one.coords and not one[known].dims:
            return unit.replace(many, str(one[known].values))
    return unit


def _logarithmic(x: np.ndarray) -> bool:
    """Whether numbers crowd at the low end of their range, and spread over more than a decade."""
    low, high = x.min(), x.max()
    return bool(low > 0 and high > 20 * low and np.median(x) - low < 0.2 * (high - low))


def _norm(colour: np.ndarray) -> Any:
    """The scale of colours; a linear one leaves out the ends that a few values make, as the arrows of the bar say."""
    colors, (low, high) = matplotlib("colors"), (colour.min(), colour.max())
    if _logarithmic(colour):
        return colors.LogNorm(low, high)
    middle = np.percentile(colour, (1, 99))
    return colors.Normalize(*(middle if high - low > 3 * np.ptp(middle) > 0 else (low, high)))


def _some(colour: np.ndarray, kind: str) -> np.ndarray:
    """The runs that are drawn, evenly from the largest value to the smallest, which comes last and so in front."""
    order = np.argsort(-colour, kind="stable")
    return _evenly(order, MOST_DRAWN[kind])


def _evenly(rows: np.ndarray, most: int) -> np.ndarray:
    return rows[np.round(np.linspace(0, len(rows) - 1, min(len(rows), most))).astype(int)]


def _parallel(ax: Any, picked: Picked, norm: Any, _: int) -> Picture:
    of_lines = matplotlib("collections").LineCollection
    x, some, others = (
        np.arange(len(picked.names)),
        _some(picked.colour, "parallel"),
        _evenly(picked.lost, MOST_DRAWN["parallel"]),
    )
    every = [column[np.isfinite(column)] for column in np.vstack([picked.values, picked.lost]).T]
    low, high, logs = ([of(column) for column in every] for of in (np.min, np.max, _logarithmic))

    def lines(values: np.ndarray, **how: Any) -> Any:
        share = np.column_stack([_share(*column) for column in zip(values.T, low, high, logs, strict=True)])
        return ax.add_collection(of_lines([np.column_stack([x, y]) for y in share], linewidths=0.8, **how))

    drawn = lines(picked.values[some], cmap=COLOURS, norm=norm, alpha=0.75)
    drawn.set_array(picked.colour[some])
    lost = lines(others, colors=GREY, zorder=drawn.get_zorder() - 0.5) if len(others) else None
    ax.vlines(x, 0, 1, color=NOTE, linewidth=1.0, zorder=3)
    titles = [fill(label(name, 60), LETTERS) + ("\n(log)" if log else "") for name, log in zip(picked.names, logs, strict=True)]
    ax.set_xticks(x, [f"{a:.4g}\n{name}" for a, name in zip(low, titles, strict=True)])
    for at, b in zip(x, high, strict=True):
        ax.text(at, 1.02, f"{b:.4g}", ha="center", va="bottom")
    ax.set(yticks=[], xlim=(-0.3, len(x) - 0.7), ylim=(0, 1.08))
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.grid(False)
    return Picture(matplotlib("cm").ScalarMappable(norm, COLOURS), picked.colour, picked.bar, lost)


def _share(x: np.ndarray, low: float, high: float, log: bool) -> np.ndarray:
    """Where values are between the ends of their axis, in the middle if these are one."""
    if not high > low:
        return np.where(np.isnan(x), np.nan, 0.5)
    return np.log(x / low) / np.log(high / low) if log else (x - low) / (high - low)


def _heat(ax: Any, picked: Picked, norm: Any, bins: int) -> Picture:
    every = np.vstack([picked.values, picked.lost])
    edges = [_edges(x, bins) for x in every.T]
    x, y = picked.values.T
    count, *_ = np.histogram2d(x, y, bins=edges)
    total, *_ = np.histogram2d(x, y, bins=edges, weights=picked.colour)
    none, *_ = np.histogram2d(picked.lost[:, 0], picked.lost[:, 1], bins=edges)
    mean = np.ma.masked_invalid(np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0))
    norm = _norm(mean.compressed())
    drawn = ax.pcolormesh(*edges, mean.T, cmap=COLOURS, norm=norm)
    grey = np.ma.masked_where((count > 0) | (none == 0), none).T
    if grey.count():
        ax.pcolormesh(*edges, grey, cmap=matplotlib("colors").ListedColormap([GREY]))
    _scales(ax, picked.names, every)
    ax.grid(False)
    patch = matplotlib("patches").Patch(color=GREY) if grey.count() else None
    return Picture(drawn, mean.compressed(), f"mean of {picked.bar}" if count.max() > 1 else picked.bar, patch)


def _scales(ax: Any, names: Sequence[str], values: np.ndarray) -> None:
    """Labels of both axes, logarithmic ones, and each of few values written."""
    for axis, name, x in zip((ax.xaxis, ax.yaxis), names, values.T, strict=True):
        axis.set_label_text(label(name, 60))
        log, known = _logarithmic(x), np.unique(x)
        if log:
            axis._set_axes_scale("log")
            _few_decades(axis, known[0], known[-1])
        place = _share(known, known[0], known[-1], log)
        if len(known) <= FEW and (np.diff(place) > APART).all():
            axis.set_ticks(known, [f"{v:.4g}" for v in known])
            axis.set_ticks([], minor=True)


def _edges(x: np.ndarray, bins: int) -> np.ndarray:
    """Of the cells of an axis: one about each value if these are few."""
    if _logarithmic(x):
        return 10 ** _linear_edges(np.log10(x), bins)
    return _linear_edges(x, bins)


def _linear_edges(x: np.ndarray, bins: int) -> np.ndarray:
    known = np.unique(x)
    if len(known) > bins:
        return np.linspace(known[0], known[-1], bins + 1)
    middle = (known[1:] + known[:-1]) / 2
    first, last = (middle[:1], middle[-1:]) if len(middle) else (known + 0.5, known - 0.5)
    return np.concatenate([2 * known[:1] - first, middle, 2 * known[-1:] - last])


def _scatter(ax: Any, picked: Picked, norm: Any, _: int) -> Picture:
    some, others = _some(picked.colour, "scatter"), _evenly(picked.lost, MOST_DRAWN["scatter"])
    size = float(np.clip(8000 / len(some), 8, 24))
    ax.set_axisbelow(True)
    drawn = ax.scatter(*picked.values[some].T, c=picked.colour[some], s=size, cmap=COLOURS, norm=norm, linewidths=0)
    lost = ax.scatter(*others.T, c=GREY, s=size, marker="x", linewidths=0.8, zorder=0.9) if len(others) else None
    _scales(ax, picked.names, np.vstack([picked.values, picked.lost]))
    return Picture(drawn, picked.colour, picked.bar, lost)
