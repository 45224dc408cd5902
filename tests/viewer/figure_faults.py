"""Faults of a figure that a reader would see: legends over curves, entries without a curve, curves cut off silently."""

from __future__ import annotations

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from pfaffian.viewer.drawing import style

FINE = 50
"""Number of points checked along each segment of a line."""

OUT = 0.02
"""Fraction of an axis beyond which a line counts as cut off."""


def complaints(figure: Figure) -> list[str]:
    """One sentence for each fault of the figure."""
    with style():
        FigureCanvasAgg(figure).draw()
    return [f"{ax.get_ylabel()!r}: {words}" for ax in figure.axes for words in (*_hidden(ax), *_empty(ax), *_clipped(ax))]


def _points(line) -> np.ndarray:
    """The finite points (n, 2) of a line, in data coordinates."""
    data = np.asarray(line.get_xydata(), dtype=float)
    return data[np.isfinite(data).all(axis=1)]


def _hidden(ax):
    """Faults: curves or other axes hidden by the legend of these axes."""
    if ax.get_legend() is None:
        return
    box = ax.get_legend().get_window_extent()
    for other in ax.figure.axes:
        for line in other.lines:
            way = line.get_transform().transform(_points(line))
            if len(way) > 1:
                parts = np.linspace(0, 1, FINE)[:, None, None]
                way = (way[:-1] + parts * (way[1:] - way[:-1])).reshape(-1, 2)
            inside = other.get_window_extent().padded(1)
            seen = way[(way >= inside.min).all(axis=1) & (way <= inside.max).all(axis=1)]
            if ((seen > box.min) & (seen < box.max)).all(axis=1).any():
                yield f"its legend hides {line.get_label()!r}"
        if other is not ax and other.get_window_extent().overlaps(box):
            yield "its legend lies on other axes"


def _empty(ax):
    """Faults: entries of a legend without a line, band or marker that has data."""
    if ax.get_legend() is None:
        return
    drawn = {_look(a) for a in ax.lines if len(_points(a))}
    others = bool(ax.collections or ax.patches)
    for text, handle in zip(ax.get_legend().get_texts(), ax.get_legend().legend_handles, strict=True):
        if (hasattr(handle, "get_xydata") and _look(handle) not in drawn) or not (hasattr(handle, "get_xydata") or others):
            yield f"no curve for {text.get_text()!r}"


def _look(line) -> tuple:
    return line.get_color(), line.get_linestyle(), line.get_marker()


def _clipped(ax):
    cut, found = f"{ax.get_title()} {ax.get_title(loc='right')}".partition("cut off")[2], set()
    for axis, limits in enumerate((ax.get_xlim(), ax.get_ylim())):
        scale = np.log10 if (ax.get_xscale, ax.get_yscale)[axis]() == "log" else lambda x: x
        with np.errstate(all="ignore"):
            low, high = sorted(scale(np.array(limits)))
            for line in ax.lines:
                if line.get_transform() != ax.transData or not len(_points(line)):
                    continue
                x = scale(_points(line)[:, axis])
                for out, side in (((x < low - OUT * (high - low)), 0), ((x > high + OUT * (high - low)), 1)):
                    word = (("left", "right"), ("below", "above"))[axis][side]
                    if out.any():
                        found.add(word)
                        if word not in cut:
                            yield f"{line.get_label()!r} is cut off {word}"
    yield from (
        f"nothing is cut off {word}" for word in ("below", "above", "left", "right") if word in cut and word not in found
    )
