"""Lines over time: those of many that move most, medians and bands of a batch, thinned without losing a peak."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from pfaffian.output.plain import label
from pfaffian.viewer.drawing import COLOURS, DASHES, GREY, NOTE, legend

MAX_LINES = 10
"""Labelled lines in a panel, those that move most; the others are grey."""

MAX_POINTS = 3000
"""Longer lines are drawn by the least and the greatest sample of each interval, so that no peak is lost."""

STILL = 1e-9
"""A signal that changes by less over a whole run does not move."""

CONSTANT = 1e-11
"""A relative change below this is rounding, which an axis would magnify."""

BAND = (0.05, 0.95)
"""Quantiles at the edges of a batch's band."""


def lines(ax: Any, time: np.ndarray, values: np.ndarray, names: Sequence[str]) -> None:
    """values: (runs, time, n). At most MAX_LINES labelled lines, with bands if there are several runs."""
    labelled = _most_moving(values)
    handles, others = list[Any](), list[Any]()
    for i in (i for i in range(len(names)) if i not in labelled):
        others += ax.plot(*thinned(time, median(values[:, :, i])), color=GREY, linewidth=0.8)
    for rank, i in enumerate(labelled):
        look = _look(i if len(names) <= len(COLOURS) * len(DASHES) else rank)
        if len(values) > 1:
            low, high = quantiles(values[:, :, i])
            ax.fill_between(time, low, high, color=look["color"], alpha=0.15, linewidth=0)
        handles += ax.plot(*thinned(time, median(values[:, :, i])), **look)
    labels = [label(names[i]) for i in labelled]
    if len(labelled) < len(names):
        handles.append(others[0])
        labels.append(f"{len(names) - len(labelled)} that {'move less' if labelled else 'stay'}")
    _focus(ax, values)
    if labels != ["total"]:
        legend(ax, handles, labels)


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
