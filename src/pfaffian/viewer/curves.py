"""Lines over time: the most variable of many entries, medians and bands of a batch, thinned without losing a peak."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from pfaffian.errors import ModelError
from pfaffian.output.plain import label
from pfaffian.viewer.drawing import COLOURS, DASHES, GREY, NOTE, legend_above

MAX_LINES = 10
"""Largest number of labelled lines in a panel, those that vary most; the others are grey."""

MAX_POINTS = 3000
"""A line with more points is reduced to the smallest and largest sample of each interval, so that no peak is lost."""

STILL = 1e-9
"""A signal that varies by less than this counts as constant."""

CONSTANT = 1e-11
"""A relative change below this is rounding, which the axis must not magnify."""

ALONE = "total"
"""Name of a curve that is alone on its axes and needs no legend."""

APART = 2e-3
"""Smallest visible difference of curves, as a fraction of the panel's range: about the width of a line."""

MAX_JOINED, NAME_LENGTH = 3, 18
"""Largest number of coinciding curves that a legend names, and of characters in each name."""

MAX_PHASE_RUNS = 100
"""Largest number of runs of a batch in a phase plot."""

BAND = (0.05, 0.95)
"""Quantiles at the edges of a batch's band."""


def lines(ax: Any, time: np.ndarray, values: np.ndarray, names: Sequence[str]) -> None:
    """Draw values (runs, time, n): at most MAX_LINES labelled lines, with bands if there are several runs.

    Curves that the eye cannot tell apart are one line, and the legend names them all.
    """
    labelled = most_variable(values)
    handles, others = list[Any](), list[Any]()
    for i in (i for i in range(len(names)) if i not in labelled):
        others += _curve(ax, time, median(values[:, :, i]), color=GREY, linewidth=0.8)
    groups = _coinciding(values, labelled)
    for rank, i in enumerate(labelled):
        if i not in groups:
            continue
        style = _line_style(i if len(names) <= len(COLOURS) * len(DASHES) else rank)
        if len(values) > 1:
            low, high = quantiles(values[:, :, i])
            ax.fill_between(time, low, high, color=style["color"], alpha=0.15, linewidth=0)
        handles += _curve(ax, time, median(values[:, :, i]), **style)
    labels = [_joined([names[k] for k in group]) for group in groups.values()]
    if len(labelled) < len(names):
        handles.append(others[0])
        labels.append(f"{len(names) - len(labelled)} that {'move less' if labelled else 'stay'}")
    focus(ax, values)
    if labels != [ALONE]:
        legend_above(ax, handles, labels)


def _curve(ax: Any, time: np.ndarray, values: np.ndarray, **style: Any) -> Any:
    """Draw values (time,) as a curve; a single finite value, such as that of a run that stopped at once, as a dot."""
    marker = "o" if np.isfinite(values).sum() == 1 else None
    return ax.plot(*thinned(time, values), marker=marker, markersize=4, **style)


def need_records(result: Any) -> None:
    """Raise ModelError: the result is one instant, or has no record."""
    if "time" not in result.dims:
        raise ModelError("a figure needs a result over time, not one instant of it: choose by .isel(time=slice(...))")
    if not result.sizes["time"]:
        raise ModelError("a figure needs a result over time, and this one has no record left: choose a part that has some")


def phase_curves(ax: Any, x: np.ndarray, values: np.ndarray, names: Sequence[str]) -> None:
    """Draw values (runs, time, n) over x (runs, time): one curve per run, with a ring at its start and a dot at its end."""
    labelled, handles = most_variable(values) or [0], list[Any]()
    for i in labelled:
        style = _line_style(i)
        for run in range(min(len(values), MAX_PHASE_RUNS)):
            finite = np.isfinite(x[run]) & np.isfinite(values[run, :, i])
            a, b = x[run][finite], values[run, finite, i]
            curve = ax.plot(a, b, **style, linewidth=1.2 if len(values) == 1 else 0.7)
            handles += curve if run == 0 else []
            for k, face in ((0, "white"), (-1, style["color"])) if len(a) else ():
                ax.plot(a[k], b[k], "o", markersize=4, color=style["color"], markerfacecolor=face)
    if len(names) > 1:
        legend_above(ax, handles, [label(names[i]) for i in labelled])


def _coinciding(values: np.ndarray, entries: Sequence[int]) -> dict[int, list[int]]:
    """First entry of each group of curves that the eye cannot tell apart -> all entries of the group."""
    finite = values[:, :, entries][np.isfinite(values[:, :, entries])]
    width = APART * np.ptp(finite) if finite.size else 0.0
    groups: dict[int, list[int]] = {}
    for i in entries:
        for first in groups:
            a, b = values[:, :, first], values[:, :, i]
            if (np.isfinite(a) == np.isfinite(b)).all() and np.nanmax(np.abs(a - b), initial=0.0) <= width:
                groups[first].append(i)
                break
        else:
            groups[i] = [i]
    return groups


def _joined(names: Sequence[str]) -> str:
    """The text in the legend for curves that coincide."""
    if len(names) == 1:
        return label(names[0])
    more = [f"{len(names) - MAX_JOINED} more"] if len(names) > MAX_JOINED else []
    return " = ".join([label(names[0], NAME_LENGTH), *[label(n, NAME_LENGTH).strip() for n in names[1:MAX_JOINED]], *more])


def _line_style(i: int) -> dict[str, str]:
    """Colour and dashes of entry i, the same in every panel."""
    return {"color": COLOURS[i % len(COLOURS)], "linestyle": DASHES[i // len(COLOURS) % len(DASHES)]}


def most_variable(values: np.ndarray) -> list[int]:
    """The entries that vary most, in increasing order; none if there are more than MAX_LINES and all are constant."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        spread = np.nan_to_num(np.nanmax(values, axis=(0, 1)) - np.nanmin(values, axis=(0, 1)))
    if len(spread) > MAX_LINES and spread.max() < STILL:
        return []
    return sorted(np.argsort(-spread, kind="stable")[:MAX_LINES].tolist())


def median(values: np.ndarray) -> np.ndarray:
    """Median (time,) over the runs that have a number at each time."""
    if len(values) == 1:
        return values[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.nanmedian(values, axis=0)


def quantiles(values: np.ndarray) -> np.ndarray:
    """Quantiles (2, time) at the edges of the band, over the runs that have a number at each time."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.nanquantile(values, BAND, axis=0)


def thinned(time: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A long line reduced to the smallest and the largest sample of each interval, in order of time."""
    if len(time) <= MAX_POINTS:
        return time, y
    size = -(-len(time) // (MAX_POINTS // 2))
    count = len(time) // size
    blocks = y[: count * size].reshape(count, size)
    low, high = (f(blocks, axis=1) for f in (_argmin, _argmax))
    at = (np.sort(np.stack([low, high], -1), axis=1) + size * np.arange(count)[:, None]).ravel()
    at = np.concatenate([[0], at, np.arange(count * size, len(time))])
    return time[at], y[at]


def _argmin(y: np.ndarray, axis: int) -> np.ndarray:
    return np.argmin(np.where(np.isnan(y), np.inf, y), axis=axis)


def _argmax(y: np.ndarray, axis: int) -> np.ndarray:
    return np.argmax(np.where(np.isnan(y), -np.inf, y), axis=axis)


def focus(ax: Any, values: np.ndarray, axis: str = "y") -> None:
    """Set the range of the axis: without the end of a diverging run, which would flatten the rest; centred on flat lines."""
    set_range = getattr(ax, f"set_{axis}lim")
    finite = np.abs(values[np.isfinite(values)])
    if not finite.size:
        ax.text(0.5, 0.5, "no finite value", transform=ax.transAxes, ha="center", va="center", color=NOTE)
        return
    usual = float(np.quantile(finite, 0.9))
    if 0 < 1e4 * usual < finite.max():
        set_range(-10 * usual, 10 * usual)
    elif finite.max() < 1e-12:
        set_range(-1, 1)
    elif np.nanmax(values) - np.nanmin(values) < CONSTANT * finite.max():
        set_range(*sorted((0.95 * np.nanmean(values), 1.05 * np.nanmean(values))))
