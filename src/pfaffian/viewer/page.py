"""A scene as one HTML file that plays anywhere: the player's script and the data, nothing from a network."""

from __future__ import annotations

import json
from base64 import b64encode
from importlib.resources import files
from typing import Any

import numpy as np

from pfaffian.maths import so3
from pfaffian.output.plain import text
from pfaffian.viewer.camera import framing
from pfaffian.viewer.scene import Moving, Scene, ScenePart, floor_square
from pfaffian.viewer.solids import Solid

SMALLEST = 65535
"""Steps along the longest side of a mesh to which its vertices are rounded."""


def page(scene: Scene) -> str:
    """The text of the file. Names are data in it: none can become markup or script."""
    template = files("pfaffian.viewer").joinpath("player.html").read_text(encoding="utf-8")
    # The parser of HTML looks for </script> even inside JSON.
    words = json.dumps(_data(scene), separators=(",", ":"), allow_nan=False)
    for sign in "<>&":
        words = words.replace(sign, f"\\u{ord(sign):04x}")
    return template.replace("@DATA@", words)


def _data(scene: Scene) -> dict[str, Any]:
    camera = framing(scene)
    known: dict[bytes, int] = {}
    geometries: list[dict[str, Any]] = []
    parts = [_part(p, known, geometries) for p in scene.parts]
    return {
        "name": text(scene.name, 200),
        "time": _base64(scene.time, "<f4"),
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
    }


def _part(p: ScenePart, known: dict[bytes, int], geometries: list[dict[str, Any]]) -> dict[str, Any]:
    """One part; what several parts have in common is stored once."""
    key = p.solid.vertices.tobytes() + p.solid.faces.tobytes()
    if key not in known:
        known[key] = len(geometries)
        geometries.append(_geometry(p.solid))
    colour = [round(x, 4) for x in p.colour]
    return {"name": text(p.name, 100), "geometry": known[key], "body": p.body, "colour": colour, "layer": p.layer}


def _geometry(solid: Solid) -> dict[str, Any]:
    low = solid.vertices.min(axis=0)
    step = float(np.ptp(solid.vertices, axis=0).max()) / SMALLEST or 1.0
    wide = len(solid.vertices) > SMALLEST
    return {
        "vertices": _base64(np.rint((solid.vertices - low) / step), "<u2"),
        "low": low.tolist(),
        "step": step,
        "faces": _base64(solid.faces, "<u4" if wide else "<u2"),
        "wide": wide,
    }


def _moving(x: Moving) -> dict[str, Any]:
    return {
        "name": text(x.name, 100), "kind": x.kind, "ends": _base64(x.ends, "<f4"), "colour": [round(c, 4) for c in x.colour],
        "layer": x.layer, "radius": x.radius,
    }  # fmt: skip


def _floor(scene: Scene) -> dict[str, Any] | None:
    if scene.floor is None:
        return None
    middle, half = floor_square(scene)
    return {"middle": middle.tolist(), "normal": scene.floor.normal.tolist(), "half": half}


def _base64(x: np.ndarray, kind: str) -> str:
    return b64encode(np.ascontiguousarray(x, dtype=kind).tobytes()).decode("ascii")
