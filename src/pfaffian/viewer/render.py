"""Frames of a scene as pixels: its solids, rods, springs, arrows and trails over a floor, with the scale of its arrows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pfaffian.viewer.camera import VIEW, Camera
from pfaffian.viewer.fittings import coil
from pfaffian.viewer.legend import arrow_scales, stamped
from pfaffian.viewer.picture import SUPERSAMPLING, Solids, Viewpoint, draw, lit_from
from pfaffian.viewer.scene import Scene, floor_square
from pfaffian.viewer.solids import cone, rod, towards

TOP, BOTTOM = (226.0, 233.0, 242.0), (250.0, 250.0, 252.0)
"""Colours of the background at its upper and its lower edge."""

GROUND, LINE = (236.0, 238.0, 241.0), (203.0, 208.0, 215.0)
"""Colours of the floor and of the lines of its grid."""

GRID, LINE_WIDTH = 12, 0.02
"""Number of squares of the floor along each side, and width of a line as a fraction of a square."""

FADING = 0.6
"""The floor fades from this fraction of half its side on."""


class Backdrop(NamedTuple):
    """What lies behind the solids of a picture.   image: (height, width, 3) uint8.   view: from where it is seen and lit.
    work: memory to draw in C, None to draw by NumPy."""

    image: np.ndarray
    view: Viewpoint
    work: np.ndarray | None = None


def batched(scene: Scene, layers: frozenset[str]) -> Solids:
    """The solids of the given layers that are fixed to bodies; the world counts as the body after the last."""
    parts = [p for p in scene.parts if p.layer in layers]
    world = len(scene.bodies)
    return _joined([(p.solid.vertices, p.solid.faces, p.colour, p.body if p.body >= 0 else world) for p in parts])


def _joined(parts: list[tuple[np.ndarray, np.ndarray, tuple[float, ...], int]]) -> Solids:
    """(vertices, faces, colour, body) of several solids as one."""
    counts = [len(x) for x, _, _, _ in parts]
    starts = np.cumsum([0, *counts])
    return Solids(
        np.concatenate([np.zeros((0, 3)), *[x for x, _, _, _ in parts]]).astype(np.float32),
        np.repeat([body for _, _, _, body in parts], counts).astype(np.int32),
        np.concatenate([np.zeros((0, 3)), *[f + start for (_, f, _, _), start in zip(parts, starts, strict=False)]]).astype(
            np.int32
        ),
        np.concatenate([np.zeros((0, 4)), *[np.tile(colour, (len(f), 1)) for _, f, colour, _ in parts]]).astype(np.float32),
    )


def frame(scene: Scene, batch: Solids, layers: frozenset[str], behind: Backdrop, i: int) -> np.ndarray:
    """Pixels (height, width, 3) uint8 of the scene at record i."""
    moving = _joined([(*solid, colour, len(scene.bodies)) for solid, colour in _moving(scene, layers, i)])
    if len(moving.vertices):
        more = moving._replace(faces=moving.faces + len(batch.vertices))
        batch = Solids(*[np.concatenate(pair) for pair in zip(batch, more, strict=True)])
    poses = np.concatenate([scene.rotations[i].reshape(-1, 9), scene.positions[i]], axis=1)
    poses = np.concatenate([poses, [[1.0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0]]])
    return draw(batch, poses, behind.view, behind.image, behind.work)


def backdrop(
    scene: Scene, layers: frozenset[str], camera: Camera, size: tuple[int, int], work: np.ndarray | None = None
) -> Backdrop:
    """What does not move: background, floor and the scale of the arrows.   size: (width, height).

    work: memory by `workspace`, to draw in C; None: by NumPy.
    """
    width, height = size
    points = scene.points if len(scene.bodies) else np.zeros((1, 3))
    low, high = points.min(axis=0), points.max(axis=0)
    distance = float(np.linalg.norm(camera.eye - camera.target))
    floor = scene.floor if "floor" in layers else None
    plane = floor and (floor.normal / np.linalg.norm(floor.normal), floor.point)
    radius = max(float(np.linalg.norm(high - low)) / 2, 0.1 * scene.size)
    light = lit_from(camera.axes, scene.up if plane is None else plane[0])
    view = Viewpoint(camera.axes, camera.eye, distance, light, (low + high) / 2, radius, SUPERSAMPLING * height / VIEW, plane)
    image = np.linspace(TOP, BOTTOM, height, dtype=np.float32)[:, None].repeat(width, axis=1)
    if plane is not None:
        _put_floor(scene, image, view)
    stamped(image, arrow_scales(scene, layers, VIEW * distance), height / VIEW / distance)
    return Backdrop(image.astype(np.uint8), view, work)


def _put_floor(scene: Scene, image: np.ndarray, view: Viewpoint) -> None:
    """Draw the floor and its grid into the background: lines as wide as they appear, fading towards the floor's edge."""
    assert view.floor is not None
    height, width, _ = image.shape
    (normal, point), (middle, half) = view.floor, floor_square(scene)
    scale, squares = view.scale / SUPERSAMPLING, GRID / 2 / half
    x = ((np.arange(width) + 0.5 - width / 2) / scale)[None, :].astype(np.float32)
    y = ((height / 2 - np.arange(height) - 0.5) / scale)[:, None].astype(np.float32)

    def along(direction: np.ndarray) -> np.ndarray:
        """(height, width) component of the ray through each pixel along a direction."""
        right, up, back = (view.axes @ direction).astype(np.float32)
        return x * right + (y * up - back)

    fall = along(normal)
    t = np.float32(normal @ (point - view.eye)) / np.where(fall == 0, np.float32(np.inf), fall)
    seen = t > 0
    pixel = (t * np.float32(squares / scale)) ** 2  # width of a pixel in squares, if it were seen straight on, squared
    lines, away = np.zeros_like(t), np.zeros_like(t)
    for axis in towards(normal)[:, :2].T * squares:
        at = np.float32((view.eye - middle) @ axis) + t * along(axis)
        down, across = np.gradient(at)
        wide = np.sqrt(np.maximum(down**2 + across**2, pixel))
        part = np.clip((np.float32(LINE_WIDTH / 2) - np.abs(at - np.rint(at))) / wide + np.float32(0.5), 0, 1)
        lines = np.maximum(lines, part * np.minimum(1, np.float32(3 * LINE_WIDTH) / wide + np.float32(0.25)))
        away += at**2
    away = np.sqrt(away) * np.float32(2 / GRID)
    opaque = np.where(seen, np.clip((1 - away) * np.float32(1 / (1 - FADING)), 0, 1), np.float32(0))
    for k in range(3):
        image[:, :, k] += opaque * (GROUND[k] + lines * np.float32(LINE[k] - GROUND[k]) - image[:, :, k])


def _moving(scene: Scene, layers: frozenset[str], i: int) -> list[tuple[tuple[np.ndarray, np.ndarray], tuple[float, ...]]]:
    """(vertices, faces) and colour of each rod, spring, arrow, trail and frame at record i."""
    solids = []
    for x in scene.moving:
        if x.layer not in layers:
            continue
        ends = x.ends[: i + 1, 0] if x.kind == "trail" else x.ends[i]
        for solid in _solids(x.kind, ends, x.radius):
            solids.append((solid, x.colour))
    if "frames" in layers:
        length = 0.12 * scene.size
        for R, p in zip(scene.rotations[i], scene.positions[i], strict=True):
            for axis, colour in enumerate(((0.8, 0.1, 0.1, 1.0), (0.1, 0.6, 0.1, 1.0), (0.1, 0.2, 0.9, 1.0))):
                solids.append((rod(p, p + length * R[:, axis], 0.05 * length, 6)[:2], colour))
    return solids


def _solids(kind: str, ends: np.ndarray, radius: float) -> list[tuple[np.ndarray, np.ndarray]]:
    """(vertices, faces) of the solids that draw one rod, spring, arrow or trail."""
    if kind == "rod":
        return [rod(ends[0], ends[1], radius)[:2]]
    if kind == "arrow":
        along = ends[1] - ends[0]
        length = float(np.linalg.norm(along))
        if length < 1e-9:
            return []
        head = min(5 * radius, 0.6 * length)
        neck = ends[1] - along * (head / length)
        tip = cone(2.4 * radius, head).moved(towards(along), (neck + ends[1]) / 2)
        return [rod(ends[0], neck, radius, 8)[:2], tip[:2]]
    path = coil(ends[0], ends[1], radius) if kind == "spring" else ends[:: max(len(ends) // 200, 1)]
    return [tube(path, radius / 5 if kind == "spring" else radius)]


def tube(path: np.ndarray, radius: float, around: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Vertices and faces of a tube along a path (n, 3)."""
    if len(path) < 2:
        return np.zeros((0, 3)), np.zeros((0, 3), dtype=int)
    along = np.gradient(path, axis=0)
    along /= np.maximum(np.linalg.norm(along, axis=1, keepdims=True), 1e-300)
    side = np.cross(along, np.eye(3)[np.argmin(np.abs(along).max(axis=0))])
    side /= np.maximum(np.linalg.norm(side, axis=1, keepdims=True), 1e-300)
    other = np.cross(along, side)
    angle = 2 * np.pi * np.arange(around) / around
    ring = np.cos(angle)[:, None] * side[:, None] + np.sin(angle)[:, None] * other[:, None]
    j, k = np.arange(around), np.arange(len(path) - 1)[:, None] * around
    a, b = k + j, k + (j + 1) % around
    quads = np.stack([a, a + around, b + around, a, b + around, b], axis=-1)
    return (path[:, None] + radius * ring).reshape(-1, 3), quads.reshape(-1, 3)
