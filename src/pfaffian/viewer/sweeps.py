"""Figures of sweeps: parallel axes, a heat map of cells, or a scatter of points.

Runs without a value are grey, and the title says how many did not finish. Numbers that crowd at the low end of a linear scale
are drawn on a logarithmic one.
"""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import xarray as xr

from pfaffian.errors import ModelError, plural
from pfaffian.evaluate.single_values import as_whole, one_of
from pfaffian.output.plain import label, text
from pfaffian.sweeps.ranked import column
from pfaffian.viewer.drawing import GREY, NOTE, matplotlib, style

FigureKind = Literal["parallel", "heat", "scatter"]

MOST_READ = 2**22
"""Largest number of runs that a figure reads; of more, it reads only every n-th."""

NOT_COMPUTED = -1
"""The status of a run that is not in the store."""

MOST_DRAWN = {"parallel": 1000, "scatter": 20_000}
"""Kind of figure -> largest number of lines or points that it draws."""


WIDE, NARROW, HIGH = 8.0, 6.4, 4.6
"""Width of a figure with parallel axes, width of the other figures, and height of all [inch]."""

AXIS_WIDTH = 1.05
"""Smallest width for each of many parallel axes [inch]."""

LINE_LENGTH = 15
"""Letters on each line of the name of a parallel axis."""

MAX_TICKS = 8
"""If an axis has at most this many values, each is labelled."""

TICK_DISTANCE = 0.06
"""Smallest distance between values that are each labelled, as a fraction of the axis."""

COLOURS = "viridis"
"""Name of the colour map, from dark to bright, so that the smallest values stand out."""


class Picked(NamedTuple):
    """The numbers of a figure.   values: (runs, axes).   colour: (runs,).   lost: (others, axes) of the runs without a value.

    names: of the axes, with units.   bar: name of the number that sets the colour, with its unit.
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
    kind: FigureKind = "parallel",
    cells: int = 40,
    title: str | None = None,
) -> Any:
    """Draw the runs of a sweep, each coloured by one of its numbers.

    Args:
        found: Dataset of a sweep, finished or not; runs without a value are grey, and the title says how many did not finish.
        by: the number that sets the colour: "NAME" or "NAME.ENTRY" of an entry of `keep`.
        axes: labels of axes of the space, or names of other numbers. None given: all axes of the space, and `by`; "heat" and
            "scatter" take the first two.
        kind: "parallel" (default), one line per run across parallel axes; "heat", the mean of `by` in cells of two axes;
            "scatter", one point per run. The smallest values of `by` are dark, and in front.
        cells: number of cells along each side of a heat map, 40 by default; an axis with fewer values has a cell for each.
        title: text above the figure; None: the mechanism and the number of runs.
    Returns:
        matplotlib Figure.
    Raises ModelError: there is no such number or axis; no run that finished has a value.

    Example:
        >>> import tempfile
        >>> import pfaffian as pf
        >>> m = pf.mechanism("box", [pf.body("box", 1.0)], [pf.joint("x", "prismatic", "world", "box")])
        >>> axes, keep = {"q:x": [0.0, 1.0], "v:x": [1.0, 2.0]}, {"end": pf.statistics.final("q")}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     found = pf.sweep(m, axes, store=f"{folder}/runs.zarr", duration=1.0, step=0.1, backend="numpy", keep=keep)
        ...     [a.get_xlabel() for a in pf.plot_sweep(found, "end", kind="heat").axes]
        ['q:x [m]', '']
    """
    one_of(kind, get_args(FigureKind), "plot_sweep: kind")
    stride, bins = -(-found.sizes["run"] // MOST_READ), as_whole(cells, "cells", 1000)
    column(found, by)
    names = _axes(found, by, axes, kind)
    values = np.column_stack([column(found, name)[::stride].values for name in [*names, by]]).astype(float)
    status = found["status"][::stride].values
    valued = (status == 0) & np.isfinite(values).all(axis=1)
    heading = _heading(found, stride, valued, status, kind)
    if not valued.any():
        raise ModelError(f"plot_sweep: no run that finished has a value of {by!r}; {heading}")
    lost = values[~valued & (status != NOT_COMPUTED), :-1]
    # Numbers of a stopped run cover only the time up to its stop, so they are not drawn.
    lost[:, [name not in found["axis"].values.tolist() for name in names]] = np.nan
    lost = lost if kind == "parallel" else lost[np.isfinite(lost).all(axis=1)]
    picked = Picked(
        values[valued, :-1],
        values[valued, -1],
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
    """What was drawn, for the colour bar and the legend.   colours: the mappable of the bar.   values: those that it colours.

    bar: its label.   lost: the artist of the runs without a value, None if there are none.
    """

    colours: Any
    values: np.ndarray
    bar: str
    lost: Any


def _bar(figure: Any, picture: Picture) -> None:
    """Add the colour bar, with an arrow at an end that values exceed."""
    norm, values = picture.colours.norm, picture.values
    ends = {(False, False): "neither", (True, False): "min", (False, True): "max", (True, True): "both"}
    cut = ends[bool(values.min() < norm.vmin), bool(values.max() > norm.vmax)]
    bar = figure.colorbar(picture.colours, ax=figure.axes, label=label(picture.bar, 60), extend=cut)
    if norm.vmin > 0 and type(norm).__name__ == "LogNorm":
        _few_decades(bar.ax.yaxis, norm.vmin, norm.vmax)


def _few_decades(axis: Any, low: float, high: float) -> None:
    """Label a logarithmic scale with plain numbers if it is too short for powers of ten alone."""
    if high < 1000 * low:
        ticker = matplotlib("ticker")
        axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter("{x:.4g}")
        axis.set_minor_formatter(ticker.NullFormatter())


def _axes(found: xr.Dataset, by: str, axes: Sequence[str], kind: str) -> list[str]:
    """Names of the numbers along the axes. Raises ModelError: too many or too few are named."""
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


def _heading(found: xr.Dataset, stride: int, valued: np.ndarray, status: np.ndarray, kind: str) -> str:
    """Title of the figure: the mechanism, and how many runs there are, finished and are drawn."""
    count = int(valued.sum())
    words = [plural(found.sizes["run"], "run")]
    words += [f"one in {stride} read"] if stride > 1 else []
    for how, which in {
        "did not finish": status > 0,
        "without a value": (status == 0) & ~valued,
        "not computed yet": status == NOT_COMPUTED,
    }.items():
        words += [f"{which.sum()} {how}"] if which.any() else []
    most = MOST_DRAWN.get(kind, count)
    words += [f"{most} drawn"] if count > most else []
    return f"{found.attrs.get('mechanism', 'sweep')}: {', '.join(words)}"


def _with_unit(found: xr.Dataset, name: str) -> str:
    """The name of an axis or a number, with its unit where it is known."""
    unit = _unit(found, name)
    return f"{name} [{unit}]" if unit not in ("", "1") and not unit.startswith("per ") else name


def _unit(found: xr.Dataset, name: str) -> str:
    """The unit of an axis of the space or of a number of the sweep; "" or "per ..." where it is not known."""
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
    """Whether numbers crowd at the low end of their range, and span more than a factor of 20."""
    low, high = x.min(), x.max()
    return bool(low > 0 and high > 20 * low and np.median(x) - low < 0.2 * (high - low))


def _norm(colour: np.ndarray) -> Any:
    """The scale of the colours; a linear one leaves out a few extreme values, which the arrows of the bar indicate."""
    colors, (low, high) = matplotlib("colors"), (colour.min(), colour.max())
    if _logarithmic(colour):
        return colors.LogNorm(low, high)
    middle = np.percentile(colour, (1, 99))
    return colors.Normalize(*(middle if high - low > 3 * np.ptp(middle) > 0 else (low, high)))


def _runs_to_draw(colour: np.ndarray, kind: str) -> np.ndarray:
    """Indices of the runs to draw, evenly from the largest value to the smallest, which is drawn last and so in front."""
    order = np.argsort(-colour, kind="stable")
    return _evenly(order, MOST_DRAWN[kind])


def _evenly(rows: np.ndarray, most: int) -> np.ndarray:
    """At most `most` of the rows, evenly spaced."""
    return rows[np.round(np.linspace(0, len(rows) - 1, min(len(rows), most))).astype(int)]


def _parallel(ax: Any, picked: Picked, norm: Any, _: int) -> Picture:
    """Draw a line for each run across one axis for each quantity; runs without a result are grey."""
    LineCollection = matplotlib("collections").LineCollection
    x, chosen, others = (
        np.arange(len(picked.names)),
        _runs_to_draw(picked.colour, "parallel"),
        _evenly(picked.lost, MOST_DRAWN["parallel"]),
    )
    columns = [column[np.isfinite(column)] for column in np.vstack([picked.values, picked.lost]).T]
    low, high, logs = ([of(column) for column in columns] for of in (np.min, np.max, _logarithmic))

    def lines(values: np.ndarray, **how: Any) -> Any:
        heights = np.column_stack([_place(*column) for column in zip(values.T, low, high, logs, strict=True)])
        return ax.add_collection(LineCollection([np.column_stack([x, y]) for y in heights], linewidths=0.8, **how))

    drawn = lines(picked.values[chosen], cmap=COLOURS, norm=norm, alpha=0.75)
    drawn.set_array(picked.colour[chosen])
    lost = lines(others, colors=GREY, zorder=drawn.get_zorder() - 0.5) if len(others) else None
    ax.vlines(x, 0, 1, color=NOTE, linewidth=1.0, zorder=3)
    titles = [
        "\n".join([label(x) for x in wrap(text(name, 60), LINE_LENGTH)] + ["(log)"] * log)
        for name, log in zip(picked.names, logs, strict=True)
    ]
    ax.set_xticks(x, [f"{a:.4g}\n{name}" for a, name in zip(low, titles, strict=True)])
    for at, b in zip(x, high, strict=True):
        ax.text(at, 1.02, f"{b:.4g}", ha="center", va="bottom")
    ax.set(yticks=[], xlim=(-0.3, len(x) - 0.7), ylim=(0, 1.08))
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.grid(False)
    return Picture(matplotlib("cm").ScalarMappable(norm, COLOURS), picked.colour, picked.bar, lost)


def _place(x: np.ndarray, low: float, high: float, log: bool) -> np.ndarray:
    """Places of values along an axis, 0 at `low` and 1 at `high`; 0.5 if these are equal."""
    if not high > low:
        return np.where(np.isnan(x), np.nan, 0.5)
    return np.log(x / low) / np.log(high / low) if log else (x - low) / (high - low)


def _heat(ax: Any, picked: Picked, norm: Any, bins: int) -> Picture:
    """Draw the mean over the runs in each cell of two quantities; cells with lost runs only are grey."""
    all_values = np.vstack([picked.values, picked.lost])
    edges = [_edges(x, bins) for x in all_values.T]
    x, y = picked.values.T
    count, *_ = np.histogram2d(x, y, bins=edges)
    total, *_ = np.histogram2d(x, y, bins=edges, weights=picked.colour)
    without, *_ = np.histogram2d(picked.lost[:, 0], picked.lost[:, 1], bins=edges)
    mean = np.ma.masked_invalid(np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0))
    norm = _norm(mean.compressed())
    mesh = ax.pcolormesh(*edges, mean.T, cmap=COLOURS, norm=norm)
    grey = np.ma.masked_where((count > 0) | (without == 0), without).T
    if grey.count():
        ax.pcolormesh(*edges, grey, cmap=matplotlib("colors").ListedColormap([GREY]))
    _scales(ax, picked.names, all_values)
    ax.grid(False)
    patch = matplotlib("patches").Patch(color=GREY) if grey.count() else None
    return Picture(mesh, mean.compressed(), f"mean of {picked.bar}" if count.max() > 1 else picked.bar, patch)


def _scales(ax: Any, names: Sequence[str], values: np.ndarray) -> None:
    """Label both axes, make them logarithmic where that suits the values, and label each value where there are few."""
    for axis, name, x in zip((ax.xaxis, ax.yaxis), names, values.T, strict=True):
        axis.set_label_text(label(name, 60))
        log, distinct = _logarithmic(x), np.unique(x)
        if log:
            axis._set_axes_scale("log")
            _few_decades(axis, distinct[0], distinct[-1])
        places = _place(distinct, distinct[0], distinct[-1], log)
        if len(distinct) <= MAX_TICKS and (np.diff(places) > TICK_DISTANCE).all():
            axis.set_ticks(distinct, [f"{v:.4g}" for v in distinct])
            axis.set_ticks([], minor=True)


def _edges(x: np.ndarray, bins: int) -> np.ndarray:
    """Edges of the cells along an axis: one cell around each value if there are at most `bins` values."""
    if _logarithmic(x):
        return 10 ** _linear_edges(np.log10(x), bins)
    return _linear_edges(x, bins)


def _linear_edges(x: np.ndarray, bins: int) -> np.ndarray:
    distinct = np.unique(x)
    if len(distinct) > bins:
        return np.linspace(distinct[0], distinct[-1], bins + 1)
    middle = (distinct[1:] + distinct[:-1]) / 2
    first, last = (middle[:1], middle[-1:]) if len(middle) else (distinct + 0.5, distinct - 0.5)
    return np.concatenate([2 * distinct[:1] - first, middle, 2 * distinct[-1:] - last])


def _scatter(ax: Any, picked: Picked, norm: Any, _: int) -> Picture:
    chosen, others = _runs_to_draw(picked.colour, "scatter"), _evenly(picked.lost, MOST_DRAWN["scatter"])
    size = float(np.clip(8000 / len(chosen), 8, 24))
    ax.set_axisbelow(True)
    points = ax.scatter(*picked.values[chosen].T, c=picked.colour[chosen], s=size, cmap=COLOURS, norm=norm, linewidths=0)
    lost = ax.scatter(*others.T, c=GREY, s=size, marker="x", linewidths=0.8, zorder=0.9) if len(others) else None
    _scales(ax, picked.names, np.vstack([picked.values, picked.lost]))
    return Picture(points, picked.colour, picked.bar, lost)
