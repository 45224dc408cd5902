"""A result as one figure: motion, energy, constraints, reactions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from pfaffian.simulate.result import as_result, causes, recorded
from pfaffian.viewer.folder import place
from pfaffian.viewer.plain import label, plural

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's, less the yellow, which is faint on white: told apart by colour-blind eyes."""

DASHES = ("-", "--", ":", "-.")
GREY = "#BBBBBB"
MAX_LINES = 10
"""Labelled lines in a panel; the ones that move most, the others in grey."""

MAX_POINTS = 3000
"""Samples that are drawn as they are; more become the least and greatest of each interval, so that no peak is lost."""

ROUNDING = 1e-16
"""Constraint violations below it are drawn at it: a logarithmic axis has no zero."""

STILL = 1e-9
"""What changes by less over a whole run does not move."""

BAND = (0.05, 0.95)
"""Quantiles of a batch between which the band lies."""

QUANTITIES = {
    "q": ("coordinate", "q_unit", {"rad": "angle", "m": "position", "1": "quaternion"}),
    "v": ("velocity", "v_unit", {"rad/s": "angular velocity", "m/s": "velocity"}),
    "reaction": ("velocity", "force_unit", {"N m": "reaction moment", "N": "reaction force"}),
    "u": ("input", "u_unit", {"N m": "input moment", "N": "input force"}),
}
"""Signal -> its dimension, the coordinate that holds the units, and what an axis of each unit is called."""

_STYLE = {
    "font.size": 8.5,
    "axes.titlesize": 8.5,
    "legend.fontsize": 7.5,
    "axes.grid": True,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.2,
    "text.usetex": False,
    "figure.dpi": 110,
}


class Panel(NamedTuple):
    """One pair of axes: what to call it, its unit, and what draws it."""

    title: str
    unit: str
    draw: Callable[[Any], None]


@contextmanager
def style() -> Iterator[None]:
    """Our look in place of the user's matplotlibrc, and no TeX whatever that says."""
    import matplotlib.style

    with matplotlib.style.context(["default", _STYLE]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def save(figure: Any, path: Path) -> Path:
    """Write a figure as PNG: whole or absent."""
    drawn = BytesIO()
    with style():
        figure.savefig(drawn, format="png", dpi=130)
    return place(path, drawn.getvalue())


def overview(result: xr.Dataset, title: str | None = None) -> Any:
    """A matplotlib Figure of a run, or of a batch: medians, with bands from the 5 % to the 95 % quantile. title: above it.

    Panels: coordinates and velocities by unit, energy, its change, constraint violation, rank, reactions, inputs that
    vary; of those, what was recorded. Raises ModelError: the Dataset is no result of a run, or records nothing to draw.
    """
    as_result(result)
    if not {"q", "v", "energy"} & set(result.variables):
        recorded(result, "q", "v", "energy")
    from matplotlib.figure import Figure

    batch = result if "run" in result.dims else result.expand_dims("run")
    panels = list(_panels(batch))
    count = (len(panels) + 1) // 2
    with style():
        figure = Figure(figsize=(12.5, 0.7 + 1.95 * count))
        figure.set_layout_engine("constrained", w_pad=0.08, h_pad=0.05, hspace=0.03, wspace=0.03)
        axes = figure.subplots(count, 2, sharex=True, squeeze=False)
        for panel, ax in zip(panels, axes.flat, strict=False):
            panel.draw(ax)
            ax.set_ylabel(f"{panel.title}\n[{label(panel.unit)}]")
            _mark_stops(ax, batch)
        if len(panels) % 2:
            axes[-1, 1].remove()
            axes[-2 if count > 1 else -1, 1].tick_params(labelbottom=True)
        for ax in (axes[-1, 0], axes[-2 if len(panels) % 2 and count > 1 else -1, 1]):
            ax.set_xlabel("time [s]")
        figure.suptitle(label(title or _title(result), 150), fontsize=10)
    return figure


def _title(result: xr.Dataset) -> str:
    name = label(result.attrs.get("mechanism", "mechanism"), 50)
    found = causes(result)
    if len(found) == 1:
        scheme = ", ".join(label(result.attrs[k]) for k in ("formulation", "integrator") if k in result.attrs)
        step = f", step {result.attrs['step']:.4g} s" if isinstance(result.attrs.get("step"), (int, float)) else ""
        return f"{name}: {found[0].split(':')[0]}" + (f"  ({scheme}{step})" if scheme else "")
    good = sum(c == "finished" for c in found)
    return f"{name}: {plural(len(found), 'run')}, {good} finished; medians, bands from 5 % to 95 %"


def _panels(batch: xr.Dataset) -> Iterator[Panel]:
    for name in ("q", "v"):
        if name in batch:
            yield from _vector(batch, name)
    if "energy" in batch:
        yield from _energy(batch)
    if "violation" in batch:
        yield Panel("violation of constraints", "m, rad; m/s, rad/s", lambda ax: _violation(ax, batch))
    if "rank" in batch:
        yield Panel("rank", "rows", lambda ax: _rank(ax, batch))
    if "reaction" in batch:
        yield from _vector(batch, "reaction")
    if "u" in batch and np.nanmax(np.ptp(_values(batch, "u"), axis=1), initial=0.0) > 0:
        yield from _vector(batch, "u")


def _energy(batch: xr.Dataset) -> Iterator[Panel]:
    time, energy = batch["time"].values, _values(batch, "energy")
    parts = {"total": energy}
    if "kinetic_energy" in batch:
        kinetic = _values(batch, "kinetic_energy")
        parts |= {"kinetic": kinetic, "potential": energy - kinetic}
    yield Panel("energy", "J", lambda ax: _lines(ax, time, np.stack(list(parts.values()), -1), list(parts)))
    yield Panel("energy gained", "J", lambda ax: _lines(ax, time, (energy - energy[:, :1])[..., None], ["total"]))


def _values(batch: xr.Dataset, name: str) -> np.ndarray:
    """(runs, time, ...) with nan for what is no number."""
    array = batch[name]
    values = array.transpose("run", "time", ...).values.astype(float)
    return np.where(np.isfinite(values), values, np.nan)


def _vector(batch: xr.Dataset, name: str) -> Iterator[Panel]:
    """One panel for each unit among the entries of a signal."""
    dim, unit_of, called = QUANTITIES[name]
    names = [str(n) for n in batch[dim].values]
    units = [str(u) for u in batch[unit_of].values] if unit_of in batch.coords else ["?"] * len(names)
    values, time = _values(batch, name), batch["time"].values
    for unit in dict.fromkeys(units):
        chosen = [i for i, u in enumerate(units) if u == unit]

        def draw(ax: Any, chosen: list[int] = chosen) -> None:
            _lines(ax, time, values[:, :, chosen], [names[i] for i in chosen])

        yield Panel(called.get(unit, name), unit, draw)


def _lines(ax: Any, time: np.ndarray, values: np.ndarray, names: Sequence[str]) -> None:
    """values: (runs, time, n). At most MAX_LINES labelled lines, with bands if there are several runs."""
    labelled = _liveliest(values)
    handles = []
    for i in (i for i in range(len(names)) if i not in labelled):
        ax.plot(*_thinned(time, _median(values[:, :, i])), color=GREY, linewidth=0.8)
    for rank, i in enumerate(labelled):
        look = _look(i if len(names) <= len(COLOURS) * len(DASHES) else rank)
        if len(values) > 1:
            low, high = _quantiles(values[:, :, i])
            ax.fill_between(time, low, high, color=look["color"], alpha=0.15, linewidth=0)
        handles += ax.plot(*_thinned(time, _median(values[:, :, i])), **look)
    shown = [label(names[i]) for i in labelled]
    if len(labelled) < len(names):
        handles += ax.plot([], [], color=GREY)
        shown.append(f"{len(names) - len(labelled)} that {'move less' if labelled else 'stay'}")
    _focus(ax, values)
    _legend(ax, handles, shown)


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


def _median(values: np.ndarray) -> np.ndarray:
    """(time,) over the runs that still go on."""
    if len(values) == 1:
        return values[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.nanmedian(values, axis=0)


def _quantiles(values: np.ndarray) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.nanquantile(values, BAND, axis=0)


def _thinned(time: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
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
        ax.text(0.5, 0.5, "no finite value", transform=ax.transAxes, ha="center", va="center", color="#777777")
        return
    usual = float(np.quantile(finite, 0.9))
    if 0 < 1e4 * usual < finite.max():
        ax.set_ylim(-10 * usual, 10 * usual)
        ax.text(0.99, 0.96, "cut off", transform=ax.transAxes, ha="right", va="top", color="#777777")
    elif finite.max() < 1e-12:
        ax.set_ylim(-1, 1)


def _legend(ax: Any, handles: Sequence[Any], names: Sequence[str]) -> None:
    """Beside the axes, where it hides nothing."""
    if len(names) > 1 or (names and names[0] != "total"):
        ax.legend(handles, names, loc="upper left", bbox_to_anchor=(1.0, 1.03), borderaxespad=0.2, frameon=False,
                  handlelength=1.6, labelspacing=0.25, alignment="left")  # fmt: skip


def _violation(ax: Any, batch: xr.Dataset) -> None:
    time = batch["time"].values
    handles, names = list[Any](), list[str]()
    for name, shown in (("violation", "position"), ("velocity_violation", "velocity")):
        if name not in batch:
            continue
        values = np.maximum(_values(batch, name), ROUNDING)
        colour = COLOURS[len(names)]
        if len(values) > 1:
            ax.fill_between(time, *_quantiles(values), color=colour, alpha=0.15, linewidth=0)
        handles += ax.plot(*_thinned(time, _median(values)), color=colour)
        names.append(shown)
    ax.set_yscale("log")
    low, high = ax.get_ylim()
    ax.set_ylim(max(low, ROUNDING / 2), max(high, 1e-14))
    _legend(ax, handles, names)


def _rank(ax: Any, batch: xr.Dataset) -> None:
    """Rank over time, and the number of rows that there are."""
    from matplotlib.ticker import MaxNLocator

    time, values = batch["time"].values, _values(batch, "rank")
    rows = batch.sizes.get("row", 0)
    handles = ax.plot(*_thinned(time, _median(values)), color=COLOURS[0], drawstyle="steps-post")
    if len(values) > 1:
        ax.fill_between(time, *_quantiles(values), color=COLOURS[0], alpha=0.15, linewidth=0, step="post")
    names = ["rank"]
    if rows:
        handles.append(ax.axhline(rows, color=GREY, linestyle="--"))
        names.append(f"{rows} written")
    ax.set_ylim(-0.3, max(rows, np.nanmax(values, initial=0)) + 0.7)
    ax.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
    _legend(ax, handles, names)


def _mark_stops(ax: Any, batch: xr.Dataset) -> None:
    """A line where a run stopped; of a batch the first one."""
    stops = batch["stopped"].values if "stopped" in batch else np.array([np.nan])
    if np.isfinite(stops).any():
        ax.axvline(float(np.nanmin(stops)), color="#AA0000", linestyle=":", linewidth=1)
