"""One picture of a motion: the machine as it ends, earlier instants faint, and the ways of its last bodies."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np
import xarray as xr

from pfaffian.model.mechanism import as_mechanism
from pfaffian.viewer.build import scene
from pfaffian.viewer.camera import framing
from pfaffian.viewer.render import backdrop, batched, frame
from pfaffian.viewer.scene import Moving, Scene, ScenePart, faint, states_of, thinned

INSTANTS = 4
"""Instants that are drawn, the last one in full."""

FAINT = (0.10, 0.22)
"""Opacity of the first instant, and of the last but one."""

POINTS = 240
"""Records of a motion that a picture is made of."""


def still(m: Any, result: xr.Dataset, size: tuple[int, int] = (480, 360), *, parameters: Any = None) -> bytes:
    """A PNG of a run.

    Args:
        m: the mechanism or System that ran.
        result: Dataset of a run with q recorded; of a batch, its first run.
        size: width and height in pixels.
        parameters: {name: value} of the run; None, the default: those in the result, or the defaults.
    Raises ModelError: the result of another mechanism. RunError: no state to show.
    """
    m, result = as_mechanism(m), result.isel(run=0) if "run" in result.dims else result
    states = states_of(m, result, parameters)
    span = float(states.time[-1] - states.time[0])
    made = scene(m, thinned(states, POINTS / span) if span > 0 else states)
    return png(drawn(made, size))


def png(pixels: np.ndarray) -> bytes:
    """Pixels (height, width, 3) uint8 as the bytes of a PNG file; each row is written as what differs from the one above."""
    height, width, _ = pixels.shape
    rows = pixels.reshape(height, -1)
    above = np.full((height, 1), 2, dtype=np.uint8)
    body = np.hstack([above, np.diff(rows, axis=0, prepend=np.zeros_like(rows[:1]))])
    header = struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(body.tobytes())), (b"IEND", b""))
    parts = (struct.pack(">I", len(x)) + kind + x + struct.pack(">I", zlib.crc32(kind + x)) for kind, x in chunks)
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def drawn(made: Scene, size: tuple[int, int]) -> np.ndarray:
    """(height, width, 3) uint8: the last record, with some before it."""
    last = len(made.time) - 1
    camera = framing(made, size[0] / size[1])
    chosen = np.unique(np.linspace(0, last, INSTANTS).round().astype(int))[:-1]
    for i, opacity in zip(chosen, np.linspace(*FAINT, len(chosen)), strict=True):
        parts, moving = frozen(made, int(i), float(opacity))
        made = made._replace(parts=made.parts + parts, moving=made.moving + moving)
    layers = frozenset(k for k, on in made.layers.items() if on or k == "trails") - {"forces"}
    return frame(made, batched(made, layers), layers, camera, backdrop(made, layers, camera, size), last)


def frozen(made: Scene, i: int, opacity: float) -> tuple[tuple[ScenePart, ...], tuple[Moving, ...]]:
    """What moves, as it is at record i, fixed to the world and faint."""
    parts = tuple(
        p._replace(
            body=-1, solid=p.solid.moved(made.rotations[i, p.body], made.positions[i, p.body]), colour=faint(p.colour, opacity)
        )
        for p in made.parts
        if p.body >= 0
    )
    moving = tuple(
        x._replace(ends=np.broadcast_to(x.ends[i], x.ends.shape), colour=faint(x.colour, opacity))
        for x in made.moving
        if x.kind in ("rod", "spring")
    )
    return parts, moving
