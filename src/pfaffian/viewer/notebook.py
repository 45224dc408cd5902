"""Machines and results as HTML for notebooks, with a picture and the main facts.

Text from files is escaped, and pictures of machines contain none.
"""

from __future__ import annotations

import warnings
from base64 import b64encode
from collections.abc import Iterator
from html import escape

import numpy as np
import xarray as xr

from pfaffian.errors import ModelWarning, PfaffianError, plural
from pfaffian.model.mechanism import Mechanism
from pfaffian.output.plain import LONGEST, text
from pfaffian.simulate.record.result import FINISHED, causes
from pfaffian.starts.assemble import assemble
from pfaffian.viewer.build import scene
from pfaffian.viewer.scene import state_of
from pfaffian.viewer.still import drawn, png

MOST_BODIES = 30
"""A machine with more bodies is not drawn: that would take longer than one waits for a table."""

MOST_SOLVED = 8
"""The loops of a machine with more velocities are not closed for its picture."""

SIZE = 360, 270
"""Width and height of the picture of a machine [pixels]."""

BEND = 0.6
"""Angle by which each joint is turned from neutral in the picture [rad]."""


def machine(m: Mechanism) -> str:
    """A mechanism as HTML: its picture, and the tables of its parts."""
    return f'<div style="display:flex;flex-wrap:wrap;gap:1em"><div>{m._repr_html_()}</div><div>{_drawn(m)}</div></div>'


def result(ds: xr.Dataset) -> str:
    """A Dataset as HTML; for the result of a run, its main facts and a figure of coordinates and energy come first."""
    table = ds._repr_html_()
    if not {"time", "status"} <= set(ds.variables) or "meaning" not in ds["status"].attrs:
        return table
    rows = "".join(f"<tr><th>{escape(text(a))}</th><td>{escape(text(b, 200))}</td></tr>" for a, b in _facts(ds))
    summary = f'<div style="display:flex;flex-wrap:wrap;gap:1em"><table>{rows}</table><div>{_figure(ds)}</div></div>'
    return f"{summary}<details><summary>Dataset</summary>{table}</details>"


def _facts(ds: xr.Dataset) -> Iterator[tuple[str, str]]:
    """The main facts of a result: (title, text)."""
    ends = causes(ds)
    finished = sum(x == FINISHED for x in ends)
    time = np.atleast_1d(ds["time"].values)
    yield "mechanism", text(ds.attrs.get("mechanism", "?"), LONGEST)
    yield "ended", ends[0] if len(ends) == 1 else f"{finished} of {plural(len(ends), 'run')} finished"
    if len(ends) > 1 and finished < len(ends):
        yield "first not finished", next(x for x in ends if x != FINISHED)
    yield "time", f"{time[0]:.6g} to {time[-1]:.6g} s, {plural(len(time), 'record')}"
    for name, words in (("violation", "violation"), ("error", "estimated error"), ("limit_excess", "beyond limits")):
        if name in ds and np.isfinite(ds[name].values).any():
            yield words, f"at most {np.nanmax(ds[name].values):.2g}"
    if "energy" in ds and "time" in ds["energy"].dims and np.isfinite(ds["energy"].values).any():
        gained = ds["energy"].isel(time=-1).values - ds["energy"].isel(time=0).values
        yield "energy gained", f"{float(np.nanmedian(gained)):+.3g} J" + ("" if gained.ndim == 0 else ", median")
    yield "scheme", ", ".join(text(ds.attrs[k], LONGEST) for k in ("formulation", "integrator") if k in ds.attrs) or "?"


def _figure(ds: xr.Dataset) -> str:
    """A figure of coordinates and energy, as far as they were recorded, as an image in HTML."""
    from pfaffian.viewer import chart
    from pfaffian.viewer.plots import plot

    names = [n for n in ("q", "energy") if n in ds and "time" in ds[n].dims]
    if not names or "time" not in ds.dims:
        return ""
    try:
        return _image("png", chart.png(plot(ds, *names), 55), "coordinates and energy over time")
    except PfaffianError as error:
        return f"no figure: {escape(text(error, 200))}"


def _image(kind: str, data: bytes, what: str) -> str:
    """An image in HTML.   what: its description."""
    return f'<img alt="{what}" src="data:image/{kind};base64,{b64encode(data).decode("ascii")}"/>'


def _drawn(m: Mechanism) -> str:
    """A picture of a mechanism in HTML, with its joints bent a little and its loops closed from there."""
    if len(m.bodies) > MOST_BODIES:
        return ""
    bent, note = _bent(m), ""
    try:
        q = bent
        if m.ideal and m.nv > MOST_SOLVED:
            note = "loops open"
        elif m.ideal:
            q = assemble(m, bent, search=False, backend="numpy").q
    except PfaffianError:
        q, note = bent, "loops open: no state closes near this one"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelWarning)  # about missing meshes, which are drawn as boxes
            return _image("png", png(drawn(scene(m, state_of(m, q), collision=False), SIZE)), "the machine") + escape(note)
    except PfaffianError as error:
        return f"no picture: {escape(text(error, 200))}"


def _bent(m: Mechanism) -> np.ndarray:
    """The neutral configuration (nq,) with angles turned to both sides in turn: a stretched arm would hide its links."""
    q = m.neutral().copy()
    angles = [i for i, unit in enumerate(m.q_units) if unit == "rad"]
    q[angles] += BEND * (-1.0) ** np.arange(len(angles))
    return q
