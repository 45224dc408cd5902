"""Lines over time: the liveliest of many, medians and bands of a batch, thinned without losing a peak."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from pfaffian.output.plain import label
from pfaffian.viewer.drawing import COLOURS, DASHES, GREY, NOTE, legend

MAX_LINES = 10
"""Labelled lines in a panel; the ones that move most, the others in grey."""

MAX_POINTS = 3000
"""Samples that are drawn as they are; more become the least and greatest of each interval, so that no peak is lost."""

STILL = 1e-9
"""What changes by less over a whole run does not move."""

CONSTANT = 1e-11
"""What changes by less of itself is rounding, which an axis would blow up."""

BAND = (0.05, 0.95)
"""Quantiles of a batch between which the band lies."""


def lines(ax: Any, time: np.ndarray, values: np.ndarray, names: Sequence[str]) -> None:
    """values: (runs, time, n). At most MAX_LINES labelled lines, with bands if there are several runs."""
    labelled = _liveliest(values)
    handles, others = list[Any](), list[Any]()
    for i in (i for i in range(len(names)) if i not in labelled):
        others += ax.plot(*thinned(time, median(values[:, :, i])), color=GREY, linewidth=0.8)
    for rank, i in enumerate(labelled):
        look = _look(i if len(names) <= len(COLOURS) * len(DASHES) else rank)
        if len(values) > 1:
            low, high = quantiles(values[:, :, i])
            ax.fill_between(time, low, high, color=look["color"], alpha=0.15, linewidth=0)
        handles += ax.plot(*thinned(time, median(values[:, :, i])), **look)
    shown = [label(names[i]) for i in labelled]
    if len(labelled) < len(names):
        handles.append(others[0])
        shown.append(f"{len(names) - len(labelled)} that {'move less' if labelled else 'stay'}")
    _focus(ax, values)
    if shown != ["total"]:
        legend(ax, handles, shown)


def _look(i: int) -> dict[str, str]:
    """Colour and dashes of entry i, the same in every panel."""
    return {"color": COLOURS[i % len(COLOURS)], "linestyle": DASHES[i // len(COLOURS) % len(DASHES)]}


def _liveliest(values: np.ndarray) -> list[int]:
    """The entries that move most, in their own order; of many that do not move, none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        spread = np.nan_to_num(np.nanmax(values, axis=(0, 1)) - np.nanmin(values, axis=(0, 1)))
    if len(spread) > MAX_LINES and spread.max() < STILL:
        return []
    return sorted(np.argsort(-spread, kind="stable")[:MAX_LINES].tolist())


def median(values: np.ndarray) -> np.ndarray:
    """(time,) over the runs, of those with a number there."""
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
    """A long line by the least and the greatest of each interval, in the order in which they come."""
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
    """Where the end of a diverging run would flatten all before it, cut it off; flat lines get an axis around them."""
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
