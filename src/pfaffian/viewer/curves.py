"""Lines over time: those of many that move most, medians and bands of a batch, thinned without losing a peak."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from pfaffian.output.plain import label
from pfaffian.viewer.drawing import COLOURS, DASHES, GREY, NOTE, legend_above

MAX_LINES = 10
"""Labelled lines in a panel, those that move most; the others are grey."""

MAX_POINTS = 3000
"""Longer lines are drawn by the least and the greatest sample of each interval, so that no peak is lost."""

STILL = 1e-9
"""A signal that changes by less over a whole run does not move."""

CONSTANT = 1e-11
"""A relative change below this is rounding, which an axis would magnify."""

ALONE = "total"
"""Name of a curve that is what its axis says, and needs no legend."""

APART = 2e-3
"""Part of a panel's range by which curves differ visibly: about the width of a line."""

MOST_JOINED, SHORT = 3, 18
"""Names of coinciding curves that a legend gives, and the characters of each."""

MOST_WAYS = 100
"""Runs of a batch of which a phase plot shows the curves."""

BAND = (0.05, 0.95)
"""Quantiles at the edges of a batch's band."""


def lines(ax: Any, time: np.ndarray, values: np.ndarray, names: Sequence[str]) -> None:
    """values: (runs, time, n). At most MAX_LINES labelled lines, with bands if there are several runs. Curves that coincide to
    the eye are one line, and the legend names them all.
    """
    labelled = _most_moving(values)
    handles, others = list[Any](), list[Any]()
    for i in (i for i in range(len(names)) if i not in labelled):
        others += ax.plot(*thinned(time, median(values[:, :, i])), color=GREY, linewidth=0.8)
    alike = _coinciding(values, labelled)
    for rank, i in enumerate(labelled):
        if i not in alike:
            continue
        look = _look(i if len(names) <= len(COLOURS) * len(DASHES) else rank)
        if len(values) > 1:
            low, high = quantiles(values[:, :, i])
            ax.fill_between(time, low, high, color=look["color"], alpha=0.15, linewidth=0)
        handles += ax.plot(*thinned(time, median(values[:, :, i])), **look)
    labels = [_joined([names[k] for k in group]) for group in alike.values()]
    if len(labelled) < len(names):
        handles.append(others[0])
        labels.append(f"{len(names) - len(labelled)} that {'move less' if labelled else 'stay'}")
    _focus(ax, values)
    if labels != [ALONE]:
        legend_above(ax, handles, labels)


def ways(ax: Any, x: np.ndarray, values: np.ndarray, names: Sequence[str]) -> None:
    """values: (runs, time, n) over x: (runs, time), one curve for each run; a ring where it starts, a dot where it ends."""
    labelled, handles = _most_moving(values) or [0], list[Any]()
    for i in labelled:
        look = _look(i)
        for run in range(min(len(values), MOST_WAYS)):
            good = np.isfinite(x[run]) & np.isfinite(values[run, :, i])
            a, b = x[run][good], values[run, good, i]
            drawn = ax.plot(a, b, **look, linewidth=1.2 if len(values) == 1 else 0.7)
            handles += drawn if run == 0 else []
            for k, face in ((0, "white"), (-1, look["color"])) if len(a) else ():
                ax.plot(a[k], b[k], "o", markersize=4, color=look["color"], markerfacecolor=face)
    if len(names) > 1:
        legend_above(ax, handles, [label(names[i]) for i in labelled])


def _coinciding(values: np.ndarray, entries: Sequence[int]) -> dict[int, list[int]]:
    """First entry of each group of curves that nobody could tell apart -> all of the group."""
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
    """The legend's text of curves that coincide."""
    if len(names) == 1:
        return label(names[0])
    more = [f"{len(names) - MOST_JOINED} more"] if len(names) > MOST_JOINED else []
    return " = ".join([label(names[0], SHORT), *[label(n, SHORT).strip() for n in names[1:MOST_JOINED]], *more])


def _look(i: int) -> dict[str, str]:
    """Colour and dashes of entry i, the same in every panel."""
    return {"color": COLOURS[i % len(COLOURS)], "linestyle": DASHES[i // len(COLOURS) % len(DASHES)]}


def _most_moving(values: np.ndarray) -> list[int]:
    """The entries that move most, in increasing order; none where there are many and none moves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        spread = np.nan_to_num(np.nanmax(values, axis=(0, 1)) - np.nanmin(values, axis=(0, 1)))
    if len(spread) > MAX_LINES and spread.max() < STILL:
        return []
    return sorted(np.argsort(-spread, kind="stable")[:MAX_LINES].tolist())


def median(values: np.ndarray) -> np.ndarray:
    """(time,) over the runs that have a number there."""
    if len(values) == 1:
        return values[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.nanmedian(values, axis=0)


def quantiles(values: np.ndarray) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.nanquantile(values, BAND, axis=0)


def thinned(time: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A long line reduced to the least and the greatest sample of each interval, in order of time."""
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


def _focus(ax: Any, values: np.ndarray) -> None:
    """Cut off the end of a diverging run where it would flatten all before it; centre the axis on flat lines."""
    finite = np.abs(values[np.isfinite(values)])
    if not finite.size:
        ax.text(0.5, 0.5, "no finite value", transform=ax.transAxes, ha="center", va="center", color=NOTE)
        return
    usual = float(np.quantile(finite, 0.9))
    if 0 < 1e4 * usual < finite.max():
        ax.set_ylim(-10 * usual, 10 * usual)
    elif finite.max() < 1e-12:
        ax.set_ylim(-1, 1)
    elif np.nanmax(values) - np.nanmin(values) < CONSTANT * finite.max():
        ax.set_ylim(*sorted((0.95 * np.nanmean(values), 1.05 * np.nanmean(values))))
