"""The overview of a result in one figure: motion, energy, constraints, reactions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from pfaffian.errors import plural
from pfaffian.output.plain import label, text
from pfaffian.simulate.record.result import FINISHED, as_result, causes, recorded
from pfaffian.viewer.curves import ALONE, lines, median, need_records, quantiles, thinned
from pfaffian.viewer.drawing import COLOURS, GREY, legend_above, note_cut, put_title, style
from pfaffian.viewer.entries import QUANTITIES, ROWS, UNITS, Entries, entries_of, force_unit_of_row

ROUNDING = 1e-16
"""Smaller constraint violations are drawn at this value, since a logarithmic axis has no zero."""

NEAR_SINGULAR = 0.1
"""The regularity has a panel only if it falls below this."""

KNOWN = frozenset({
    *QUANTITIES, *ROWS, "energy", "kinetic_energy", "violation", "velocity_violation", "rank", "regularity", "phi", "u_cut",
    "servo_hold", "servo_rate", "error", "tolerance", "stiff",
})  # fmt: skip
"""Signals that have panels of their own, or that are left out."""

MOST_OTHERS = 8
"""Largest number of panels of other signals."""

NEGLIGIBLE_FORCE = 1e-9
"""Reactions and multipliers below this fraction of the largest one are rounding."""

STOP = "#AA0000"

SAME_TIME = 1e-9
"""Fraction of the duration within which a recorded instant and a stop count as one."""


class Panel(NamedTuple):
    """One pair of axes: its title, its unit, and the function that draws it."""

    title: str
    unit: str
    draw: Callable[[Any], None]


def overview(result: xr.Dataset, title: str | None = None) -> Any:
    """Draw the standard figure of a run, or of a batch of runs: motion, energy, constraints and reactions over time.

    Panels, as far as their signals were recorded: coordinates and velocities by unit, energy, its change, constraint
    violation, rank, regularity if it comes near zero, reactions and multipliers that are not zero throughout, servo and
    task errors, inputs that vary, and outputs of the caller and the law, at most eight panels of them. Curves that coincide
    are one line, named "a = b". The figure of a run that stopped ends where it stopped. A batch is drawn as medians, with bands
    from the 5 % to the 95 % quantile, of the runs that finished; if none did, of the half that ran longest, up to the first
    stop among them.

    Args:
        result: Dataset of a run over time, or of a batch.
        title: text above the figure; None: the mechanism, how the run ended, formulation, integrator and step.
    Returns:
        matplotlib Figure; a notebook shows it, and its `savefig` writes it to a file.
    Raises ModelError: the Dataset is no result of a run, holds one instant only, or records nothing to draw.

    Example:
        >>> import pfaffian as pf
        >>> hinge = pf.joint("hinge", "revolute", "world", "rod", axis=(0, 1, 0))
        >>> m = pf.mechanism("pendulum", [pf.body("rod", 1.0, com=(0, 0, -0.5))], [hinge])
        >>> figure = pf.overview(pf.run(m, {"hinge": 0.3}, duration=0.01, backend="numpy"), title="a pendulum")
        >>> [" ".join(axes.get_ylabel().split()) for axes in figure.axes]
        ['angle [rad]', 'angular velocity [rad/s]', 'energy [J]', 'energy gained [J]']
    """
    as_result(result)
    if not {"q", "v", "energy"} & set(result.variables):
        recorded(result, "q", "v", "energy")
    need_records(result)
    from pfaffian.viewer.chart import Chart

    runs = result if "run" in result.dims else result.expand_dims("run")
    batch = _comparable(runs)
    panels = list(_panels(batch))
    count = (len(panels) + 1) // 2
    with style():
        figure = Chart(figsize=(12.5, 0.7 + 1.95 * count))
        figure.set_layout_engine("constrained", w_pad=0.08, h_pad=0.05, hspace=0.03, wspace=0.03)
        axes = figure.subplots(count, 2, sharex=True, squeeze=False)
        for panel, ax in zip(panels, axes.flat, strict=False):
            panel.draw(ax)
            ax.set_ylabel(label(panel.title, 40) + (f"\n[{label(panel.unit)}]" if panel.unit else ""))
            mark_stop(ax, runs, batch)
            note_cut(ax)
        _note_stop(axes[0, 0], runs, batch)
        if len(panels) % 2:
            axes[-1, 1].remove()
            axes[-2 if count > 1 else -1, 1].tick_params(labelbottom=True)
        for ax in (axes[-1, 0], axes[-2 if len(panels) % 2 and count > 1 else -1, 1]):
            ax.set_xlabel("time [s]")
        figure.suptitle(label(title or heading(result), 150), fontsize=10)
    return figure


def heading(result: xr.Dataset) -> str:
    """Title of the figure of a result: the mechanism, how its runs ended, and their scheme."""
    name = text(result.attrs.get("mechanism", "mechanism"), 50)
    ends = causes(result)
    if len(ends) == 1:
        scheme = ", ".join(text(result.attrs[k], 40) for k in ("formulation", "integrator") if k in result.attrs)
        step = f", step {result.attrs['step']:.4g} s" if isinstance(result.attrs.get("step"), (int, float)) else ""
        return f"{name}: {_cause(ends[0])}" + (f"  ({scheme}{step})" if scheme else "")
    finished = sum(c == FINISHED for c in ends)
    return f"{name}: {plural(len(ends), 'run')}, {finished} finished; medians, bands from 5 % to 95 %"


def _comparable(batch: xr.Dataset) -> xr.Dataset:
    """The runs whose medians are drawn: those with a finite state, over a time in which none of them stops, so that no median
    jumps."""
    some = _has_values(batch)
    batch = batch.isel(run=np.flatnonzero(some)) if some.any() else batch
    if "stopped" not in batch:
        return batch
    stopped, time = batch["stopped"].values, batch["time"].values
    finished = np.isnan(stopped)
    end = time[-1]
    if not finished.any():
        finished = stopped >= np.median(stopped)
        end = stopped[finished].min()
    return batch.isel(
        run=np.flatnonzero(finished), time=np.flatnonzero(time <= max(end, time[0]) + SAME_TIME * (time[-1] - time[0]))
    )


def _has_values(batch: xr.Dataset) -> np.ndarray:
    """Whether each run has a finite record of its state, (run,)."""
    states = [batch[name].transpose("run", ...).values for name in ("q", "v", "energy") if name in batch]
    return np.any([np.isfinite(x).reshape(len(x), -1).any(axis=1) for x in states], axis=0)


def _panels(batch: xr.Dataset) -> Iterator[Panel]:
    """The panels of the overview, as far as their signals were recorded."""
    for name in ("q", "v", "loop", "loop_rate"):
        if name in batch:
            yield from _vector(batch, name)
    if "energy" in batch:
        yield from _energy(batch)
    if "violation" in batch:
        yield Panel("violation of constraints", "m, rad; m/s, rad/s", lambda ax: _violation(ax, batch))
    if "rank" in batch:
        yield Panel("rank", "rows", lambda ax: _rank(ax, batch))
    if "regularity" in batch and np.nanmin(_values(batch, "regularity"), initial=1.0) < NEAR_SINGULAR:
        values = _values(batch, "regularity")[:, :, None]
        yield Panel("regularity", "1", lambda ax: lines(ax, batch["time"].values, values, [ALONE]))
    forces = [np.nanmax(np.abs(_values(batch, n)), initial=0.0) for n in ("reaction", "multiplier") if n in batch]
    least = NEGLIGIBLE_FORCE * max(forces, default=0.0)
    if "reaction" in batch:
        yield from _vector(batch, "reaction", least)
    for name in ROWS:
        if name in batch:
            yield from _rows(batch, name, least if name == "multiplier" else 0.0)
    if "u" in batch and np.nanmax(np.ptp(_values(batch, "u"), axis=1), initial=0.0) > 0:
        yield from _vector(batch, "u")
    if "stiff" in batch and np.nanmax(_values(batch, "stiff"), initial=0.0) > 0:
        yield Panel(
            "steps of the stiff pair",
            "1",
            lambda ax: lines(ax, batch["time"].values, _values(batch, "stiff")[:, :, None], [ALONE]),
        )
    yield from islice(_others(batch), MOST_OTHERS)


def _others(batch: xr.Dataset) -> Iterator[Panel]:
    """One panel for each unit of each signal that only its author knows: an output, or a signal of a law."""
    time = batch["time"].values
    for name in (str(n) for n, x in batch.data_vars.items() if {"run", "time"} <= set(x.dims) and x.ndim <= 3):
        parts = list(entries_of(batch, name)) if name not in KNOWN else []
        sizes = [float(np.nanmax(np.abs(part.values), initial=0.0)) for part in parts]
        least = NEGLIGIBLE_FORCE * max(sizes) if "wrench_magnitude" in batch[name].dims else -1.0
        for part in (part for part, size in zip(parts, sizes, strict=True) if size > least):

            def draw(ax: Any, part: Entries = part) -> None:
                lines(ax, time, part.values, part.names if len(part.names) > 1 else [ALONE])

            yield Panel(part.title, part.unit, draw)


def _energy(batch: xr.Dataset) -> Iterator[Panel]:
    """Panels of the energy with its parts, and of its change since the start."""
    time, energy = batch["time"].values, _values(batch, "energy")
    parts = {"total": energy}
    if "kinetic_energy" in batch:
        kinetic = _values(batch, "kinetic_energy")
        parts |= {"kinetic": kinetic, "potential": energy - kinetic}
    yield Panel("energy", "J", lambda ax: lines(ax, time, np.stack(list(parts.values()), -1), list(parts)))
    yield Panel("energy gained", "J", lambda ax: lines(ax, time, (energy - energy[:, :1])[..., None], ["total"]))


def _values(batch: xr.Dataset, name: str) -> np.ndarray:
    """Values (runs, time, ...) of a signal, nan where they are not finite."""
    array = batch[name]
    values = array.transpose("run", "time", ...).values.astype(float)
    return np.where(np.isfinite(values), values, np.nan)


def _vector(batch: xr.Dataset, name: str, least: float = -1.0) -> Iterator[Panel]:
    """One panel for each unit among the entries of a signal, if one of them exceeds `least`."""
    dim, unit_of, titles = QUANTITIES[name]
    names = [str(n) for n in batch[dim].values]
    units = [str(u) for u in batch[unit_of].values] if unit_of in batch.coords else ["?"] * len(names)
    return _by_unit(batch, _values(batch, name), names, units, titles, name, least)


def _rows(batch: xr.Dataset, name: str, least: float = -1.0) -> Iterator[Panel]:
    """One panel for each unit among the rows of a signal, as far as row names determine it, if one exceeds `least`."""
    dim, titles = ROWS[name]
    values = _values(batch, name)
    values = values if values.ndim == 3 else values[:, :, None]
    names = [str(n) for n in batch[dim].values] if dim in batch.coords else [str(i) for i in range(values.shape[2])]
    units = [force_unit_of_row(n) if name == "multiplier" else UNITS[name] for n in names]
    return _by_unit(batch, values, names, units, titles, name.replace("_", " "), least)


def _by_unit(
    batch: xr.Dataset,
    values: np.ndarray,
    names: list[str],
    units: list[str],
    titles: Mapping[str, str],
    otherwise: str,
    least: float,
) -> Iterator[Panel]:
    """One panel for each unit among the entries of values (runs, time, n), if one of them exceeds `least`.

    titles: unit -> title.   otherwise: the title for any other unit.
    """
    time = batch["time"].values
    for unit in dict.fromkeys(units):
        chosen = [i for i, u in enumerate(units) if u == unit]
        if least > 0 and not np.nanmax(np.abs(values[:, :, chosen]), initial=0.0) > least:
            continue

        def draw(ax: Any, chosen: list[int] = chosen) -> None:
            lines(ax, time, values[:, :, chosen], [names[i] for i in chosen])

        yield Panel(titles.get(unit, otherwise), unit, draw)


def _violation(ax: Any, batch: xr.Dataset) -> None:
    """Draw the violation of constraints on positions and velocities, on a logarithmic axis."""
    time = batch["time"].values
    handles, names = list[Any](), list[str]()
    for name, kind in (("violation", "position"), ("velocity_violation", "velocity")):
        if name not in batch:
            continue
        values = np.maximum(_values(batch, name), ROUNDING)
        colour = COLOURS[len(names)]
        if len(values) > 1:
            ax.fill_between(time, *quantiles(values), color=colour, alpha=0.15, linewidth=0)
        handles += ax.plot(*thinned(time, median(values)), color=colour)
        names.append(kind)
    ax.set_yscale("log")
    low, high = ax.get_ylim()
    ax.set_ylim(max(low, ROUNDING / 2), max(high, 1e-14))
    legend_above(ax, handles, names)


def _rank(ax: Any, batch: xr.Dataset) -> None:
    """Draw the rank over time, and the number of rows."""
    from matplotlib.ticker import MaxNLocator

    time, values = batch["time"].values, _values(batch, "rank")
    rows = batch.sizes.get("row", 0)
    handles = ax.plot(*thinned(time, median(values)), color=COLOURS[0], drawstyle="steps-post")
    if len(values) > 1:
        ax.fill_between(time, *quantiles(values), color=COLOURS[0], alpha=0.15, linewidth=0, step="post")
    names = ["rank"]
    if rows:
        handles.append(ax.axhline(rows, color=GREY, linestyle="--"))
        names.append(f"{rows} written")
    ax.set_ylim(-0.3, max(rows, np.nanmax(values, initial=0)) + 0.7)
    ax.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
    legend_above(ax, handles, names)


def mark_stop(ax: Any, runs: xr.Dataset, batch: xr.Dataset) -> None:
    """Mark the time at which the run stopped, in a batch the first to stop; end the axis where the lines end."""
    start, end = float(batch["time"][0]), float(batch["time"][-1])
    stop = _first_stop(runs)
    if stop is not None:
        ax.axvline(stop, color=STOP, linestyle=":", linewidth=1)
        end = max(end, stop) if len(runs["run"]) == 1 else end
    room = 0.03 * ((end - start) or 1.0)
    ax.set_xlim(start - room, end + room)


def _note_stop(ax: Any, runs: xr.Dataset, batch: xr.Dataset) -> None:
    """Title the first axes with the first stop and its cause, and in a batch with the number of runs drawn."""
    stop, notes = _first_stop(runs), []
    if len(runs["run"]) > 1:
        notes.append(f"drawn: {_has_values(batch).sum()} of {plural(len(runs['run']), 'run')}")
    if stop is not None:
        first = int(np.nanargmin(runs["stopped"].values))
        which = f"run {first} stopped first" if len(runs["run"]) > 1 else "stopped"
        notes.append(f"{which} at t = {stop:.4g} s: {_cause(causes(runs)[first])}")
    if notes:
        put_title(ax, label("; ".join(notes), 120), loc="left", color=STOP if stop is not None else "#000000")


def _first_stop(runs: xr.Dataset) -> float | None:
    """Time at which the first run stopped [s]; None if all finished."""
    stops = runs["stopped"].values if "stopped" in runs else np.array([np.nan])
    return float(np.nanmin(stops)) if np.isfinite(stops).any() else None


def _cause(message: str) -> str:
    """The cause in a message about a stop, without time and advice."""
    return message.split(":")[0].split(" (at t")[0]
