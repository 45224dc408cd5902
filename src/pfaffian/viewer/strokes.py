"""Curves over a stroke: of a suspension over the travel of its wheel, of a linkage over its crank, of the loads of its pins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from pfaffian.errors import ModelError, brief, nearest
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.model.number import real_array
from pfaffian.output.plain import label, text
from pfaffian.starts.trajectory import Trajectory
from pfaffian.viewer.curves import MAX_PHASE_RUNS, focus
from pfaffian.viewer.drawing import COLOURS, DASHES, NOTE, legend_above, note_cut, style

DRAWN_IN = {"rad": ("deg", 180 / np.pi), "m": ("mm", 1000.0)}
"""Unit of a result -> the unit in which its kinematic curves are drawn, and the factor to it."""

COLUMNS = 4
"""Largest number of panels side by side."""

POLE = 10.0
"""A curve that exceeds this multiple of its median size to both sides has a pole, such as a mechanical advantage at a dead
centre; the axis shows this multiple."""


class _StrokeCurve(NamedTuple):
    """One curve of a figure.   title: with its unit.   values: (n,).   unit: "" where there is none."""

    title: str
    values: np.ndarray
    unit: str = ""


def plot_travel(curves: xr.Dataset, *what: str, title: str | None = None) -> Any:
    """Draw the kinematic curves of a suspension: the travel of the wheel upwards, each curve in its own panel.

    Angles are drawn in degrees, lengths in millimetres, as in data sheets of suspensions.

    Args:
        curves: Dataset of `analysis.wheel_curves`, or another one whose variables depend on `travel` alone.
        what: names of curves, such as "camber"; none given: all.
        title: text above the figure; None: the mechanism.
    Returns:
        matplotlib Figure.
    Raises ModelError: the Dataset has no travel, or no curve of such a name.

    Example:
        >>> import numpy as np, pfaffian as pf
        >>> hinge = pf.joint("hinge", "revolute", "world", "hub", axis=(1, 0, 0))
        >>> m = pf.mechanism("swing axle", [pf.body("hub", 20.0, com=(0, 0.7, 0), inertia=1.0)], [hinge])
        >>> found = pf.analysis.wheel_curves(m, "hub", np.linspace(-0.06, 0.06, 13), centre=(0, 0.7, 0))
        >>> figure = pf.results.plot_travel(found, "camber", "track")
        >>> [ax.get_xlabel() for ax in figure.axes], figure.axes[0].get_ylabel()
        (['camber [deg]', 'track [mm]'], 'travel [mm]')
    """
    if not isinstance(curves, xr.Dataset) or "travel" not in curves.coords:
        raise ModelError(f"plot_travel: the Dataset of analysis.wheel_curves is needed, got {brief(curves)}")
    known = [str(n) for n, x in curves.data_vars.items() if x.dims == ("travel",)]
    for name in what:
        if name not in known:
            raise ModelError(f"plot_travel: there is no curve {brief(name)}; {nearest(name, known)}")
    up = _curve("travel", curves["travel"].values, str(curves["travel"].attrs.get("units", "m")))
    panels = [_curve(n.replace("_", " "), curves[n].values, str(curves[n].attrs.get("units", ""))) for n in what or known]
    from pfaffian.viewer.chart import Chart

    columns = min(len(panels), COLUMNS)
    rows = -(-len(panels) // columns)
    with style():
        figure = Chart(figsize=(1.0 + 2.2 * columns, 0.5 + 3.0 * rows), layout="constrained")
        axes = figure.subplots(rows, columns, sharey=True, squeeze=False)
        for panel, ax in zip(panels, axes.flat, strict=False):
            ax.plot(panel.values, up.values, color=COLOURS[0])
            ax.axhline(0.0, color=NOTE, linewidth=0.8, linestyle="-")
            ax.set_xlabel(label(panel.title, 40))
            ax.margins(x=0.12)
            focus(ax, panel.values[None, :, None], "x")
        for ax in axes.flat[len(panels) :]:
            ax.remove()
        for ax in axes[:, 0]:
            ax.set_ylabel(label(up.title, 40))
        figure.suptitle(label(title or text(curves.attrs.get("mechanism", "suspension"), 60), 110), fontsize=10)
    return figure


def plot_motion(
    m: Mechanism, way: Trajectory, *what: str, over: str, more: Mapping[str, Any] | None = None, title: str | None = None
) -> Any:
    """Draw coordinates of a mechanism over one of them, and other quantities of the same samples below.

    Where the motion is out of reach, the curves have a gap; where a ratio has a pole, the axis cuts it off and says so. Angles
    are drawn in degrees, lengths in millimetres.

    Args:
        m: the mechanism.
        way: the motion of one machine, of `assemble(..., along=True)`.
        what: names of coordinates; none are needed if `more` is given.
        over: name of the coordinate along the horizontal axis.
        more: {title with its unit: values (samples,)}, such as {"transmission angle [deg]": ...} or
            {"mechanical advantage": way.v[:, 0] / way.v[:, 2]}; each has its own panel. None by default.
        title: text above the figure; None: the mechanism.
    Returns:
        matplotlib Figure.
    Raises ModelError: no such coordinate; nothing to draw; a batch; values of another length.

    Example:
        >>> import numpy as np, pfaffian as pf
        >>> plane = pf.joint("bob", "planar-translation", "world", "bob", axis=(0, -1, 0))
        >>> rod = pf.closure("rod", "distance", "world", "bob", length=1.0)
        >>> m = pf.mechanism("pendulum", [pf.body("bob", mass=1.0)], [plane], constraints=[rod])
        >>> t = np.linspace(0, 1, 9)
        >>> way = pf.assemble(m, {"bob.x": 0.1 + 0.7 * t}, guess={"bob.y": -1}, t=t, along=True, backend="numpy")
        >>> ratio = {"advantage": way.v[:, 0] / way.v[:, 1]}
        >>> [ax.get_ylabel() for ax in pf.results.plot_motion(m, way, "bob.y", over="bob.x", more=ratio).axes]
        ['bob.y [mm]', 'advantage']
    """
    names = as_mechanism(m).q_names
    if not isinstance(way, Trajectory) or way.q_names != names:
        raise ModelError(f"plot_motion: a motion of {text(m.name, 60)!r} by assemble(..., along=True) is needed")
    if way.q.ndim != 2:
        raise ModelError(f"plot_motion: one machine at a time: the motion has {way.q.shape[1]} runs; take one of them by "
                         "assemble(..., parameters=...) of this run")  # fmt: skip
    for name in (*what, over):
        if name not in names:
            raise ModelError(f"plot_motion: there is no coordinate {brief(name)}; {nearest(name, names)}")
    of = {name: _curve(name, way.q[:, i], m.q_units[i]) for i, name in enumerate(names)}
    panels = [of[name] for name in what] + [_curve(str(n), real_array(x, str(n)), "") for n, x in (more or {}).items()]
    for panel in panels:
        if panel.values.shape != of[over].values.shape:
            raise ModelError(f"plot_motion: {panel.title!r}: {len(way.q)} values are needed, got {panel.values.shape}")
    if not panels:
        raise ModelError("plot_motion: name a coordinate to draw, or give more={title: values}")
    return _stacked(of[over], panels, title or text(m.name, 60))


def _curve(name: str, values: np.ndarray, unit: str) -> _StrokeCurve:
    """A curve in the unit in which it is drawn."""
    unit, factor = DRAWN_IN.get(unit, (unit, 1.0))
    finite = np.where(np.isfinite(values), values, np.nan).astype(float)
    unit = "" if unit == "1" else unit
    return _StrokeCurve(f"{name} [{unit}]" if unit else name, factor * finite, unit)


def _stacked(across: _StrokeCurve, panels: Sequence[_StrokeCurve], title: str) -> Any:
    """Figure of curves above each other over the same axis."""
    from pfaffian.viewer.chart import Chart

    with style():
        figure = Chart(figsize=(6.6, 0.6 + 2.0 * len(panels)), layout="constrained")
        axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
        for panel, ax in zip(panels, axes, strict=True):
            ax.plot(across.values, panel.values, color=COLOURS[0])
            ax.set_ylabel(label(panel.title, 40))
            focus(ax, panel.values[None, :, None])
            usual = float(np.nanmedian(np.abs(panel.values))) if np.isfinite(panel.values).any() else 0.0
            if np.nanmin(panel.values, initial=0.0) < -POLE * usual < 0 < POLE * usual < np.nanmax(panel.values, initial=0.0):
                ax.set_ylim(-POLE * usual, POLE * usual)
            note_cut(ax)
        axes[-1].set_xlabel(label(across.title, 60))
        figure.suptitle(label(title, 110), fontsize=10)
    return figure


def plot_loads(result: xr.Dataset, *what: str, over: str | None = None, title: str | None = None) -> Any:
    """Draw the forces and moments of pins over a stroke or over time, with the largest of each marked.

    The legend tells the largest value and where it is reached. Each run of a batch or a sweep has a thin curve; the mark is the
    largest value of all runs.

    Args:
        result: of `run`, or of `sweep` with states=..., that recorded outputs by `reaction(name, magnitude=True)`.
        what: names of these outputs; none given: all.
        over: name of a coordinate along the horizontal axis, which needs the record of "q"; None: time, or the number of the
            state.
        title: text above the figure; None: the mechanism.
    Returns:
        matplotlib Figure: the forces [N] above, the moments [N m] below where there are any.
    Raises ModelError: the result has no such output or coordinate, or not over time or states.

    Example:
        A bob of 1 kg swings on 1 m from the horizontal: its pin carries 3 m g at the lowest point.

        >>> import numpy as np, pfaffian as pf
        >>> hinge = pf.joint("hinge", "revolute", "world", "bob", axis=(0, 1, 0))
        >>> m = pf.mechanism("pendulum", [pf.body("bob", 1.0, com=(0, 0, -1))], [hinge])
        >>> pin = {"pin": pf.reaction("hinge", magnitude=True)}
        >>> r = pf.run(m, {"hinge": np.pi / 2}, duration=1.0, step=0.002, outputs=pin, backend="numpy")
        >>> figure = pf.results.plot_loads(r, over="hinge")
        >>> [text.get_text()[:13] for text in figure.axes[0].get_legend().get_texts()], figure.axes[0].get_ylabel()
        (['pin: 29.43 N '], 'force [N]')
    """
    pins, along = _pins(result, what)
    across = _across(result, along, over)
    sizes = {n: result[n].transpose(..., along, "wrench_magnitude").values.reshape(-1, result.sizes[along], 2) for n in pins}
    rows = [(0, "force", "N")] + [(1, "moment", "N m")] * any(_matters(x) for x in sizes.values())
    from pfaffian.viewer.chart import Chart

    with style():
        figure = Chart(figsize=(6.6, 0.6 + 2.8 * len(rows)), layout="constrained")
        axes = figure.subplots(len(rows), 1, sharex=True, squeeze=False)[:, 0]
        for (row, name, unit), ax in zip(rows, axes, strict=True):
            drawn = [_pin(ax, i, across, x[:, :, row], n, unit) for i, (n, x) in enumerate(sizes.items())]
            ax.set(ylabel=f"{name} [{unit}]", ylim=(0.0, ax.get_ylim()[1]))
            legend_above(ax, *zip(*drawn, strict=True))
        axes[-1].set_xlabel(label(across.title, 60))
        runs = len(next(iter(sizes.values())))
        some = f"{MAX_PHASE_RUNS} of " if runs > MAX_PHASE_RUNS else ""
        many = f": {some}{runs} runs, the largest load of all is marked" if runs > 1 else ""
        figure.suptitle(label(title or f"{text(result.attrs.get('mechanism', 'loads'), 60)}{many}", 110), fontsize=10)
    return figure


def _pins(result: Any, what: Sequence[str]) -> tuple[list[str], str]:
    """Names of the outputs with the force and moment of a pin, and the dimension along which they are drawn."""
    way = 'outputs={"pin": pf.reaction("pin", magnitude=True)}'
    if not isinstance(result, xr.Dataset):
        raise ModelError(f"plot_loads: a Dataset is needed, of a run or of a sweep, got {brief(result)}")
    known = [str(n) for n, x in result.data_vars.items() if "wrench_magnitude" in x.dims and {"time", "state"} & set(x.dims)]
    for name in what:
        if name not in known:
            raise ModelError(
                f"plot_loads: {brief(name)} has no force over time or states; {nearest(name, known)}; record {way}"
            )
    if not known:
        raise ModelError(f"plot_loads: the result has no force of a pin over time or states; record {way}, and keep it")
    return list(what) or known, "time" if "time" in result[known[0]].dims else "state"


def _across(result: xr.Dataset, along: str, over: str | None) -> _StrokeCurve:
    """The horizontal axis: values (runs, n) of a coordinate, or (1, n) of time or the number of the state."""
    if over is None:
        values = result[along].values if along in result.coords else np.arange(result.sizes[along])
        title, unit = ("time [s]", "s") if along == "time" else ("state", "")
        return _StrokeCurve(title, np.asarray(values, dtype=float)[None], unit)
    if "q" not in result or along not in result["q"].dims:
        raise ModelError(f"plot_loads: over={brief(over)} needs the record of 'q': keep it with the forces")
    q = result["q"].transpose(..., along, "coordinate")
    names = [str(n) for n in q["coordinate"].values]
    if over not in names:
        raise ModelError(f"plot_loads: there is no coordinate {brief(over)}; {nearest(over, names)}")
    unit = str(result["q_unit"].values[names.index(over)]) if "q_unit" in result.coords else ""
    return _curve(over, q.values[..., names.index(over)].reshape(-1, result.sizes[along]), unit)


def _matters(x: np.ndarray) -> bool:
    """Whether the moments (runs, n, 2) are more than the rounding of forces over a metre."""
    force, moment = (np.nanmax(x[:, :, row], initial=0.0) for row in (0, 1))
    return bool(moment > 1e-9 * force)


def _pin(ax: Any, i: int, across: _StrokeCurve, size: np.ndarray, name: str, unit: str) -> tuple[Any, str]:
    """Draw the loads (runs, n) of pin i over the axis, and mark the largest. Return a curve and its text for the legend."""
    colour, dashes = COLOURS[i % len(COLOURS)], DASHES[i // len(COLOURS) % len(DASHES)]
    x, where = np.broadcast_to(across.values, size.shape), f" {across.unit}".rstrip()
    for run in range(min(len(size), MAX_PHASE_RUNS)):
        (curve,) = ax.plot(x[run], size[run], color=colour, linestyle=dashes, linewidth=1.2 if len(size) == 1 else 0.6)
    found = np.where(np.isfinite(x) & np.isfinite(size), size, -np.inf)
    at = np.unravel_index(np.argmax(found), size.shape)
    if not np.isfinite(found[at]):
        return curve, f"{label(name)}: no finite value"
    ax.plot(x[at], size[at], "o", color=colour, markersize=4)
    return curve, f"{label(name)}: {_plain(size[at])} {unit} at {_plain(x[at])}{where}"


def _plain(x: float) -> str:
    """Four digits of a number, without an exponent where there is none in a data sheet: 29040."""
    return f"{float(f'{x:.4g}'):.0f}" if 1e4 <= abs(x) < 1e8 else f"{x:.4g}"
