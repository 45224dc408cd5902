"""A scene as one HTML file that plays anywhere: the player's script and the data are in it, and it loads nothing."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from pfaffian.maths import so3
from pfaffian.output.plain import text
from pfaffian.viewer.camera import following, framing
from pfaffian.viewer.scene import MovingPart, Scene, ScenePart, floor_square
from pfaffian.viewer.solids import Solid


class SidePlot(NamedTuple):
    """A plot beside the motion.   lines: name -> times (n,) [s], and values (n,) at these."""

    title: str
    lines: dict[str, tuple[np.ndarray, np.ndarray]]


LARGEST_UINT16 = 65535
"""Vertices are rounded to this number of steps along the longest side of a mesh, to be stored as 16-bit integers."""


def page(scene: Scene, plots: Sequence[SidePlot] = (), around: float = 0.0) -> str:
    """The text of the HTML file, with plots beside the motion.   around: as in `framing`.

    Names are only data in it, so none can become markup or script.
    """
    template = files("pfaffian.viewer").joinpath("player.html").read_text(encoding="utf-8")
    # The parser of HTML looks for </script> even inside JSON.
    data = json.dumps(_data(scene, around) | {"plots": [_panel(p) for p in plots]}, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        data = data.replace(character, f"\\u{ord(character):04x}")
    return template.replace("@DATA@", data)


def _data(scene: Scene, around: float) -> dict[str, Any]:
    """The scene as data, about the point that the camera faces: far from the origin float32 would lose a machine's shape."""
    camera = framing(scene, around=around)
    scene, camera = scene.moved(-camera.target), following(camera, np.zeros(3))
    low, high = scene.bounds
    indices: dict[bytes, int] = {}
    geometries: list[dict[str, Any]] = []
    parts = [_part(p, indices, geometries) for p in scene.parts]
    return {
        "name": text(scene.name, 200),
        "time": _base64(scene.time, "<f8"),
        "bodies": [text(b, 100) for b in scene.bodies],
        "poses": _base64(np.concatenate([scene.positions, so3.quaternions(scene.rotations)], axis=2), "<f4"),
        "centres": scene.centres.tolist(),
        "geometries": geometries,
        "parts": parts,
        "moving": [_moving(x) for x in scene.moving],
        "layers": scene.layers,
        "size": scene.size,
        "camera": {"eye": camera.eye.tolist(), "target": camera.target.tolist(), "up": camera.up.tolist()},
        "floor": _floor(scene),
        "middle": ((low + high) / 2).tolist(),
        "radius": max(float(np.linalg.norm(high - low)) / 2, 0.1 * scene.size),
    }


def _part(p: ScenePart, indices: dict[bytes, int], geometries: list[dict[str, Any]]) -> dict[str, Any]:
    """One part as data; a solid that several parts share is stored in `geometries` once.   indices: of solids stored so far."""
    key = p.solid.vertices.tobytes() + p.solid.faces.tobytes()
    if key not in indices:
        indices[key] = len(geometries)
        geometries.append(_geometry(p.solid))
    colour = [round(x, 4) for x in p.colour]
    return {"name": text(p.name, 100), "geometry": indices[key], "body": p.body, "colour": colour, "layer": p.layer}


def _panel(p: SidePlot) -> dict[str, Any]:
    lines = [{"name": text(n, 40), "time": _base64(t, "<f8"), "values": _base64(y, "<f4")} for n, (t, y) in p.lines.items()]
    return {"title": text(p.title, 80), "lines": lines}


def _geometry(solid: Solid) -> dict[str, Any]:
    low = solid.vertices.min(axis=0)
    step = float(np.ptp(solid.vertices, axis=0).max()) / LARGEST_UINT16 or 1.0
    wide = len(solid.vertices) > LARGEST_UINT16
    return {
        "vertices": _base64(np.rint((solid.vertices - low) / step), "<u2"),
        "low": low.tolist(),
        "step": step,
        "faces": _base64(solid.faces, "<u4" if wide else "<u2"),
        "wide": wide,
    }


def _moving(x: MovingPart) -> dict[str, Any]:
    return {
        "name": text(x.name, 100), "kind": x.kind, "ends": _base64(x.ends, "<f4"), "colour": [round(c, 4) for c in x.colour],
        "layer": x.layer, "radius": x.radius, "scale": x.scale,
    }  # fmt: skip


def _floor(scene: Scene) -> dict[str, Any] | None:
    if scene.floor is None:
        return None
    middle, half = floor_square(scene)
    return {"middle": middle.tolist(), "normal": scene.floor.normal.tolist(), "half": half}


def _base64(x: np.ndarray, kind: str) -> str:
    return b64encode(np.ascontiguousarray(x, dtype=kind).tobytes()).decode("ascii")
