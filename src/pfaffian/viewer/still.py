"""One picture of a motion: the machine at the end, some earlier instants faintly, and the paths of its outermost bodies."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np
import xarray as xr

from pfaffian.model.mechanism import as_mechanism
from pfaffian.viewer.build import scene
from pfaffian.viewer.camera import following, framing
from pfaffian.viewer.render import backdrop, batched, frame
from pfaffian.viewer.scene import MovingPart, Scene, ScenePart, faint, states_of, thinned

INSTANTS = 4
"""Number of instants drawn, the last one opaque."""

FAINT = (0.10, 0.22)
"""Opacity of the first instant, and of the last but one."""

POINTS = 240
"""Number of records to which a motion is thinned before it is drawn."""


def still(m: Any, result: xr.Dataset, size: tuple[int, int] = (480, 360), *, parameters: Any = None) -> bytes:
    """Draw a run as one picture, a PNG.

    Args:
        m: the mechanism or System that ran.
        result: Dataset of a run with q recorded; of a batch, its first run.
        size: width and height in pixels.
        parameters: {name: value} of the run; None, the default: those in the result, or the defaults.
    Returns:
        the bytes of the PNG file.
    Raises ModelError: the result is of another mechanism. RunError: the result has no finite state.
    """
    m = as_mechanism(m)
    states = states_of(m, result, parameters, 0 if "run" in result.dims else None)
    span = float(states.time[-1] - states.time[0])
    motion = scene(m, thinned(states, POINTS / span) if span > 0 else states, collision=False)
    return png(drawn(motion, size))


def png(pixels: np.ndarray) -> bytes:
    """Pixels (height, width, 3) uint8 as the bytes of a PNG file; each row is stored as its difference from the row above."""
    height, width, _ = pixels.shape
    rows = pixels.reshape(height, -1)
    above = np.full((height, 1), 2, dtype=np.uint8)
    body = np.hstack([above, np.diff(rows, axis=0, prepend=np.zeros_like(rows[:1]))])
    header = struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(body.tobytes())), (b"IEND", b""))
    parts = (struct.pack(">I", len(x)) + kind + x + struct.pack(">I", zlib.crc32(kind + x)) for kind, x in chunks)
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def drawn(motion: Scene, size: tuple[int, int]) -> np.ndarray:
    """Pixels (height, width, 3) uint8 of the last record of a scene, with earlier instants faintly.   size: (width, height)."""
    last = len(motion.time) - 1
    camera = framing(motion, size[0] / size[1])
    earlier = np.unique(np.linspace(0, last, INSTANTS).round().astype(int))[:-1]
    for i, opacity in zip(earlier, np.linspace(*FAINT, len(earlier)), strict=True):
        parts, moving = frozen(motion, int(i), float(opacity))
        motion = motion._replace(parts=motion.parts + parts, moving=motion.moving + moving)
    layers = frozenset(k for k, on in motion.layers.items() if on or k == "trails") - {"forces"}
    motion, camera = motion.moved(-camera.target), following(camera, np.zeros(3))  # the renderer counts with float32
    return frame(motion, batched(motion, layers), layers, backdrop(motion, layers, camera, size), last)


def frozen(motion: Scene, i: int, opacity: float) -> tuple[tuple[ScenePart, ...], tuple[MovingPart, ...]]:
    """The moving parts of a scene as they are at record i, fixed to the world and made fainter by `opacity`."""
    parts = tuple(
        p._replace(
            body=-1,
            solid=p.solid.moved(motion.rotations[i, p.body], motion.positions[i, p.body]),
            colour=faint(p.colour, opacity),
        )
        for p in motion.parts
        if p.body >= 0
    )
    moving = tuple(
        x._replace(ends=np.broadcast_to(x.ends[i], x.ends.shape), colour=faint(x.colour, opacity))
        for x in motion.moving
        if x.kind in ("rod", "spring")
    )
    return parts, moving
