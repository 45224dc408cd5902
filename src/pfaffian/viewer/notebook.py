"""Machines and results as HTML with a picture and the main facts, for notebooks. Text from files is escaped, and stands in no
picture of a machine."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from html import escape

import casadi as ca
import numpy as np
import xarray as xr

from pfaffian.errors import PfaffianError, plural
from pfaffian.evaluate.compiled import compile_terms
from pfaffian.model import reprs
from pfaffian.model.constraint import Closure
from pfaffian.model.mechanism import Mechanism
from pfaffian.output.plain import LONGEST, text
from pfaffian.simulate.assemble import assemble
from pfaffian.simulate.result import FINISHED, causes
from pfaffian.terms.kinematics import Kinematics

MOST_BODIES = 30
"""Bodies of a machine up to which it is drawn: more take longer than one waits for a table."""

MOST_SOLVED = 8
"""Velocities of a machine up to which its loops are closed for the picture."""

SIZE, MARGIN = 260, 14
"""Pixels of a picture's longer side, and around it."""

BEND = 0.6
"""Angle of each joint [rad]."""

FLAT = 1e-6
"""Extent beside the largest below which a machine is drawn in its plane."""

LOOK = np.array([-1.0, 1.6, -0.7])
"""Direction of view of a machine in space, where z is up."""

LINK, LOOP = "#46465a", "#d55e00"


def machine(m: Mechanism) -> str:
    """A mechanism as HTML: a picture of its links, and the tables of its parts."""
    return f'<div style="display:flex;flex-wrap:wrap;gap:1em"><div>{reprs.html(m)}</div><div>{_drawn(m)}</div></div>'


def result(ds: xr.Dataset) -> str:
    """A Dataset as HTML; if it is a result of a run, after the main facts and a figure of coordinates and energy."""
    usual = ds._repr_html_()
    if not {"time", "status"} <= set(ds.variables) or "meaning" not in ds["status"].attrs:
        return usual
    rows = "".join(f"<tr><th>{escape(text(a))}</th><td>{escape(text(b, 200))}</td></tr>" for a, b in _facts(ds))
    beside = f'<div style="display:flex;flex-wrap:wrap;gap:1em"><table>{rows}</table><div>{_figure(ds)}</div></div>'
    return f"{beside}<details><summary>Dataset</summary>{usual}</details>"


def _facts(ds: xr.Dataset) -> Iterator[tuple[str, str]]:
    ends = causes(ds)
    good = sum(x == FINISHED for x in ends)
    time = np.atleast_1d(ds["time"].values)
    yield "mechanism", text(ds.attrs.get("mechanism", "?"), LONGEST)
    yield "ended", ends[0] if len(ends) == 1 else f"{good} of {plural(len(ends), 'run')} finished"
    if len(ends) > 1 and good < len(ends):
        yield "first not finished", next(x for x in ends if x != FINISHED)
    yield "time", f"{time[0]:.6g} to {time[-1]:.6g} s, {plural(len(time), 'record')}"
    for name, words in (("violation", "violation"), ("step_error", "step error"), ("limit_excess", "beyond limits")):
        if name in ds and np.isfinite(ds[name].values).any():
            yield words, f"at most {np.nanmax(ds[name].values):.2g}"
    if "energy" in ds and "time" in ds["energy"].dims and np.isfinite(ds["energy"].values).any():
        gained = ds["energy"].isel(time=-1).values - ds["energy"].isel(time=0).values
        yield "energy gained", f"{float(np.nanmedian(gained)):+.3g} J" + ("" if gained.ndim == 0 else ", median")
    yield "scheme", ", ".join(text(ds.attrs[k], LONGEST) for k in ("formulation", "integrator") if k in ds.attrs) or "?"


def _figure(ds: xr.Dataset) -> str:
    """Coordinates and energy as far as they were recorded, as an image."""
    from pfaffian.viewer.chart import png
    from pfaffian.viewer.plots import plot

    names = [n for n in ("q", "energy") if n in ds and "time" in ds[n].dims]
    if not names or "time" not in ds.dims:
        return ""
    try:
        return _image("png", png(plot(ds, *names), 55), "coordinates and energy over time")
    except PfaffianError as error:
        return f"no figure: {escape(text(error, 200))}"


def _image(kind: str, data: bytes, what: str) -> str:
    return f'<img alt="{what}" src="data:image/{kind};base64,{b64encode(data).decode("ascii")}"/>'


def _drawn(m: Mechanism) -> str:
    """The links of a mechanism as an image, its joints bent a little, and loops closed from there."""
    if len(m.bodies) > MOST_BODIES or all(j.kind.name == "free" for j in m.joints):
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
        ends = compile_terms(m, {"ends": lambda T: _ends(T.kinematics)}, backend="numpy", lanes=1, squeeze=False)(q)["ends"]
    except PfaffianError as error:
        return f"no picture: {escape(text(error, 200))}"
    gravity = np.array(m.value(m.gravity, m.p_defaults)).ravel()
    loops = 2 * sum(isinstance(c, Closure) for c in m.constraints)
    return _image("svg+xml", _svg(ends.T.reshape(-1, 2, 3), loops, -gravity).encode("ascii"), "links") + escape(note)


def _bent(m: Mechanism) -> np.ndarray:
    """(nq,) the neutral configuration with angles to and fro: a stretched arm shows nothing of its links."""
    q = m.neutral().copy()
    angles = [i for i, unit in enumerate(m.q_units) if unit == "rad"]
    q[angles] += BEND * (-1.0) ** np.arange(len(angles))
    return q


def _ends(k: Kinematics) -> ca.SX:
    """(3, 2 n) ends of sticks: from each body to its joints and its mass centre, then from bodies to their closures."""
    ends: list[ca.SX] = []
    for j in k.mechanism.joints:
        ends += [k.position(j.parent), (k.pose(j.parent) @ j.placement).p, (k.pose(j.child) @ j.child_placement).p,
                 k.position(j.child)]  # fmt: skip
    for b in k.mechanism.bodies:
        ends += [k.position(b.name), k.position(b.name, b.com)]
    for c in k.mechanism.constraints:
        if isinstance(c, Closure):
            for body, place in ((c.body_a, c.placement_a), (c.body_b, c.placement_b)):
                ends += [k.position(body), (k.pose(body) @ place).p]
    return ca.horzcat(*ends)


def _svg(sticks: np.ndarray, loops: int, up: np.ndarray) -> str:
    """sticks: (n, 2, 3), the last `loops` of closures.   up: (3,), zero where there is no weight."""
    right, upward = _view(sticks.reshape(-1, 3), up)
    flat = np.stack([sticks @ right, -(sticks @ upward)], axis=-1)
    low, high = flat.min(axis=(0, 1)), flat.max(axis=(0, 1))
    scale = SIZE / max(float((high - low).max()), 1e-12)
    at = (flat - low) * scale + MARGIN
    width, height = (high - low) * scale + 2 * MARGIN
    shapes = []
    for i, ((x1, y1), (x2, y2)) in enumerate(at):
        colour = LOOP if i >= len(sticks) - loops else LINK
        shapes.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>')
        shapes.append(f'<circle cx="{x2:.1f}" cy="{y2:.1f}" r="2.5" fill="{colour}"/>')
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" stroke-width="3">'
    return f"{head}{''.join(shapes)}</svg>"


def _view(points: np.ndarray, up: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors to the right and upward of the picture: a flat machine in its plane, another from the side and above."""
    _, size, axes = np.linalg.svd(points - points.mean(axis=0))
    up = up / np.linalg.norm(up) if np.linalg.norm(up) > 0 else np.array([0.0, 0.0, 1.0])
    flat = size[2] <= FLAT * max(size[0], 1e-300) and size[1] > FLAT * size[0]
    along = axes[2] if flat else LOOK
    along = along * np.sign(along @ LOOK or 1.0)
    if np.linalg.norm(np.cross(along, up)) < FLAT * np.linalg.norm(along):  # seen from above
        up = np.array([0.0, 1.0, 0.0]) if abs(along[1]) < abs(along[2]) else np.array([0.0, 0.0, 1.0])
    right = np.cross(along, up)
    right /= np.linalg.norm(right)
    upward = np.cross(right, along)
    return right, upward / np.linalg.norm(upward)
