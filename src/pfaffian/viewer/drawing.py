"""The common style of all figures: colours, legends, notes where axes cut lines off; and writing them as PNG."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from pfaffian.errors import ModelError, ModelWarning, notice, optional
from pfaffian.evaluate.single_values import as_number
from pfaffian.output.folder import write_file

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Colours that colour-blind readers can tell apart: those of Okabe and Ito without the yellow, which is faint on white."""

DASHES = ("-", "--", ":", "-.")
GREY = "#BBBBBB"
NOTE = "#777777"

BEYOND = 0.02
"""A line counts as cut off if it leaves an axis by more than this fraction of the axis."""

LEGEND_SIZE = 7.5
"""Font size of legends [points]."""

LETTER = 0.6
"""Width of a letter in a legend, as a fraction of the font size; rather too large than too small."""

MARGINS = 60.0
"""Width that ticks and titles take beside the axes [points]."""
_STYLE = {
    "font.size": 8.5,
    "axes.titlesize": 8.5,
    "legend.fontsize": LEGEND_SIZE,
    "axes.grid": True,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": f"cycler('linestyle', {DASHES}) * cycler('color', {COLOURS})",
    "lines.linewidth": 1.2,
    "text.usetex": False,
    "figure.dpi": 110,
}


def matplotlib(module: str) -> Any:
    """Import a module of matplotlib, which draws all figures. Raises ModelError: matplotlib is not installed."""
    return optional(f"matplotlib.{module}", "matplotlib", "figures need")


def has_matplotlib(what: str) -> bool:
    """Whether figures can be drawn; if not, warn with a ModelWarning that names `what`."""
    try:
        matplotlib("figure")
    except ModelError as error:
        notice(f"{what}: {error}", ModelWarning)
        return False
    return True


def blank_figure(width: float, height: float) -> Any:
    """Return an empty matplotlib figure for a study, laid out so that axes and texts do not overlap.

    Args:
        width, height: of the figure [inch], without the legends that are added beside the axes later.
    Returns:
        matplotlib Figure, with constrained layout.
    Raises ModelError: matplotlib is not installed; a width or height that is not a number above zero.

    Example:
        >>> from pfaffian import study
        >>> axes = study.blank_figure(6.0, 3.0).subplots(1, 2)
        >>> len(axes)
        2
    """
    size = tuple(as_number(x, f"blank_figure: {what}", above=0) for what, x in (("width", width), ("height", height)))
    return matplotlib("figure").Figure(figsize=size, layout="constrained")


@contextmanager
def style() -> Iterator[None]:
    """A context in which figures have the library's style instead of the user's matplotlibrc, and never use TeX."""
    with matplotlib("style").context(["default", _STYLE]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def plain(text: str) -> str:
    """A name as matplotlib shows it letter by letter: two dollars in it enclose no formula."""
    return text.replace("$", r"\$")


def save(figure: Any, path: Path) -> Path:
    """Write a figure as PNG, whole or not at all."""
    drawn = BytesIO()
    with style():
        figure.savefig(drawn, format="png", dpi=130)
    return write_file(path, drawn.getvalue())


def finish(figure: Any) -> Any:
    """Put legends beside the axes of a figure, or above axes that stand side by side, and note where axes cut a line off.

    A legend lists only artists that have data. It leaves out entries that a legend of the whole figure lists, and axes with
    the same entries as earlier ones get no legend. The figure grows by the size of its legends, so that the axes keep theirs.
    """
    legends = set[tuple[Any, ...]]()
    common = {text.get_text() for shared in figure.legends for text in shared.get_texts()}
    for ax in figure.axes:
        handles, names = ax.get_legend_handles_labels()
        filled = [(h, n) for h, n in zip(handles, names, strict=True) if has_data(h) and n not in common]
        if ax.get_legend() is not None:
            ax.get_legend().remove()
        entries = tuple((n, _appearance(h)) for h, n in filled)
        if entries not in legends:
            draw = legend_above if _side_by_side(ax) else legend
            draw(ax, [h for h, _ in filled], [n for _, n in filled])
            if ax.get_title():
                put_title(ax, ax.get_title())
        legends.add(entries)
        note_cut(ax)
    wider, higher = dict[int, float](), dict[int, float]()
    for ax in figure.axes:
        if ax.get_legend() is None or ax.get_subplotspec() is None:
            continue
        box, at = ax.get_legend().get_tightbbox(), ax.get_subplotspec()
        room, line, size = (higher, at.rowspan.start, box.height) if _side_by_side(ax) else (wider, at.colspan.stop, box.width)
        room[line] = max(room.get(line, 0.0), size / figure.dpi)
    width, height = figure.get_size_inches()
    figure.set_size_inches(width + sum(wider.values()), height + sum(higher.values()))
    return figure


def _side_by_side(ax: Any) -> bool:
    """Whether other axes stand beside these, so that a legend at the side would come between them."""
    return ax.get_subplotspec() is not None and ax.get_gridspec().ncols > 1


def _appearance(artist: Any) -> tuple[Any, ...]:
    """Colour, line style and marker of an artist, as far as it has them."""
    return tuple(str(getattr(artist, f"get_{of}")()) for of in ("color", "linestyle", "marker") if hasattr(artist, f"get_{of}"))


def has_data(artist: Any) -> bool:
    """Whether an artist draws anything: a line does if it has a finite point."""
    if hasattr(artist, "get_xydata"):
        return bool(np.isfinite(np.asarray(artist.get_xydata(), dtype=float)).all(axis=1).any())
    return True


def legend(ax: Any, handles: Sequence[Any], names: Sequence[str]) -> None:
    """Draw a legend beside the axes, where it hides nothing."""
    if names:
        ax.legend(handles, names, loc="upper left", bbox_to_anchor=(1.0, 1.03), borderaxespad=0.2, frameon=False,
                  handlelength=1.6, labelspacing=0.25, alignment="left")  # fmt: skip


def legend_above(ax: Any, handles: Sequence[Any], names: Sequence[str]) -> None:
    """Draw a legend above the axes, in as many columns as fit, so that all axes keep their width."""
    if not names:
        return
    size = LEGEND_SIZE
    column = size * (LETTER * max(len(n) for n in names) + 3.4)
    width = 72 * ax.get_figure().get_size_inches()[0] / max(1, ax.get_gridspec().ncols) - MARGINS
    columns = int(max(1, min(len(names), width // column)))
    ax.legend(handles, names, loc="lower left", bbox_to_anchor=(0.0, 1.0), borderaxespad=0.1, frameon=False,
                     handlelength=1.4, handletextpad=0.5, columnspacing=1.2, labelspacing=0.2, borderpad=0.2,
                     ncols=columns, alignment="left")  # fmt: skip
    ax.titlepad_above = 1.35 * size * -(-len(names) // columns) + 4


def put_title(ax: Any, words: str, **how: Any) -> None:
    """Set the title of the axes, above their legend if that stands above them."""
    ax.set_title(words, pad=getattr(ax, "titlepad_above", 3.0), **how)


def cut_off(ax: Any) -> list[str]:
    """The sides on which a line leaves the axes: below, above, left, right."""
    sides = set[str]()
    ax.get_xlim(), ax.get_ylim()  # matplotlib computes the limits when they are read
    for line in ax.lines:
        if line.get_transform() != ax.transData:  # from axhline or axvline
            continue
        with np.errstate(all="ignore"):
            data = np.asarray(line.get_xydata(), dtype=float)
            points = ax.transAxes.inverted().transform(ax.transData.transform(data[np.isfinite(data).all(axis=1)]))
        for axis, (low, high) in enumerate((("left", "right"), ("below", "above"))):
            sides |= {low} if (points[:, axis] < -BEYOND).any() else set()
            sides |= {high} if (points[:, axis] > 1 + BEYOND).any() else set()
    return [side for side in ("below", "above", "left", "right") if side in sides]


def note_cut(ax: Any) -> None:
    """Note above the axes on which sides they cut a line off."""
    sides = cut_off(ax)
    note = f"cut off {' and '.join(sides)}"
    if sides and ax.get_title():
        put_title(ax, f"{ax.get_title()}; {note}")
    elif sides:
        put_title(ax, note, loc="right", fontsize=7, color=NOTE)
