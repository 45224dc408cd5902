"""Frames of a scene as pixels, drawn with NumPy alone: each triangle as rows of pixels, with a depth for each pixel."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pfaffian.viewer.camera import VIEW, Camera
from pfaffian.viewer.fittings import coil
from pfaffian.viewer.scene import Floor, Scene, floor_square
from pfaffian.viewer.solids import cone, rod, towards

BACKGROUND = (250, 250, 252)
LIGHT = np.array([0.35, 0.45, 0.82])
"""Direction towards the light, in the axes of the camera."""

AMBIENT = 0.42
SUPERSAMPLING = 2
"""Each pixel of the picture is the mean of this many rows and columns of drawn pixels."""

GRID, LINE = 12, (0.80, 0.81, 0.84, 1.0)
NEAREST = 1e-3
"""Triangles nearer to the eye than this fraction of the distance from the eye to the target are not drawn."""


class Triangles(NamedTuple):
    """Coloured triangles.   corners: (n, 3, 3) in the world [m].   colours: (n, 4)."""

    corners: np.ndarray
    colours: np.ndarray


class SolidBatch(NamedTuple):
    """The solids of a scene in one array.   vertices: (n, 3) in the body frames [m].   body: (n,) index of each vertex's body;
    that of the world comes after the last body.   faces: (m, 3) indices of vertices.   colours: (m, 4)."""

    vertices: np.ndarray
    body: np.ndarray
    faces: np.ndarray
    colours: np.ndarray


def batched(scene: Scene, layers: frozenset[str]) -> SolidBatch:
    """The solids of the given layers, with one array for all vertices and one for all faces."""
    parts = [p for p in scene.parts if p.layer in layers]
    counts = np.array([len(p.solid.vertices) for p in parts], dtype=int)
    starts = np.concatenate([[0], np.cumsum(counts)])
    if not parts:
        return SolidBatch(np.zeros((0, 3)), np.zeros(0, dtype=int), np.zeros((0, 3), dtype=int), np.zeros((0, 4)))
    return SolidBatch(
        np.concatenate([p.solid.vertices for p in parts]),
        np.repeat([p.body % (len(scene.bodies) + 1) for p in parts], counts),
        np.concatenate([p.solid.faces + s for p, s in zip(parts, starts, strict=False)]),
        np.concatenate([np.broadcast_to(p.colour, (len(p.solid.faces), 4)) for p in parts]),
    )


def triangles(scene: Scene, batch: SolidBatch, layers: frozenset[str], i: int) -> Triangles:
    """All triangles of the scene at record i, in the world."""
    R = np.concatenate([scene.rotations[i], np.eye(3)[None]])
    x = np.concatenate([scene.positions[i], np.zeros((1, 3))])
    vertices = np.einsum("nij,nj->ni", R[batch.body], batch.vertices) + x[batch.body]
    groups = [Triangles(vertices[batch.faces], batch.colours)]
    for solid, colour in _moving(scene, layers, i):
        corners = solid[0][solid[1]]
        groups.append(Triangles(corners, np.broadcast_to(colour, (len(corners), 4))))
    return Triangles(*[np.concatenate(x) for x in zip(*groups, strict=True)])


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


class Canvas(NamedTuple):
    """The pixels drawn so far.   image: (pixels, 3) uint8.   depth: (pixels,) 1 / distance [1/m] of the surface drawn in each
    pixel, 0 where there is none.   size: (width, height) in pixels."""

    image: np.ndarray
    depth: np.ndarray
    size: tuple[int, int]


def backdrop(scene: Scene, layers: frozenset[str], camera: Camera, size: tuple[int, int]) -> Canvas:
    """A canvas with all that does not move: the background and the grid of the floor."""
    width, height = size[0] * SUPERSAMPLING, size[1] * SUPERSAMPLING
    image = np.empty((height * width, 3), dtype=np.uint8)
    image[:] = BACKGROUND
    canvas = Canvas(image, np.zeros(height * width, dtype=np.float32), (width, height))
    if "floor" in layers and scene.floor is not None:
        _draw(_floor(scene, scene.floor), camera, canvas, shaded=False)
    return canvas


def frame(scene: Scene, batch: SolidBatch, layers: frozenset[str], camera: Camera, behind: Canvas, i: int) -> np.ndarray:
    """Pixels (height, width, 3) uint8 of the scene at record i, drawn over the canvas `behind`."""
    canvas = behind._replace(image=behind.image.copy(), depth=behind.depth.copy())
    _draw(triangles(scene, batch, layers, i), camera, canvas)
    width, height = canvas.size
    fine = canvas.image.reshape(height // SUPERSAMPLING, SUPERSAMPLING, width // SUPERSAMPLING, SUPERSAMPLING, 3)
    total = np.full(fine[:, 0, :, 0].shape, SUPERSAMPLING**2 // 2, dtype=np.uint16)
    for row in range(SUPERSAMPLING):
        for column in range(SUPERSAMPLING):
            total += fine[:, row, :, column]
    return (total // SUPERSAMPLING**2).astype(np.uint8)


def _floor(scene: Scene, floor: Floor) -> Triangles:
    """The grid of the floor: lines in its plane, each a thin rectangle."""
    middle, half = floor_square(scene)
    X = towards(floor.normal)
    at, thin = np.linspace(-half, half, GRID + 1), 0.0022 * half
    quads = []
    for c in at:
        for a, b in ((0, 1), (1, 0)):
            p = np.array([[c - thin, -half], [c + thin, -half], [c + thin, half], [c - thin, half]])
            quads.append(middle + p[:, :1] * X[:, a] + p[:, 1:] * X[:, b])
    corners = np.array(quads)[:, [[0, 1, 2], [0, 2, 3]]].reshape(-1, 3, 3)
    return Triangles(corners, np.broadcast_to(LINE, (len(corners), 4)))


def _draw(t: Triangles, camera: Camera, canvas: Canvas, shaded: bool = True) -> None:
    """Draw triangles on the canvas, the transparent ones last."""
    image, depth, size = canvas
    axes = camera.axes.astype(np.float32)
    corners = (t.corners - camera.eye).astype(np.float32) @ axes.T
    distance = float(np.linalg.norm(camera.eye - camera.target))
    in_front = (corners[:, :, 2] < -NEAREST * distance).all(axis=1)
    corners, colours = corners[in_front], t.colours[in_front]
    if not len(corners):
        return
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-30)
    front = np.einsum("ij,ij->i", normal, corners[:, 0]) < 0
    facing = np.where(front[:, None], normal, -normal)
    light = AMBIENT + (1 - AMBIENT) * np.clip(facing @ (LIGHT / np.linalg.norm(LIGHT)), 0, 1) if shaded else 1.0
    drawn = (255 * colours[:, :3] * np.reshape(light, (-1, 1))).astype(np.uint8)
    scale = size[1] / VIEW
    inverse = -1 / corners[:, :, 2]
    x = size[0] / 2 + scale * corners[:, :, 0] * inverse
    y = size[1] / 2 - scale * corners[:, :, 1] * inverse
    opaque = colours[:, 3] > 0.99
    for group in (opaque, ~opaque):
        if group.any():
            pixel, z, which = _fragments(x[group], y[group], inverse[group], size)
            near = np.flatnonzero(z > depth[pixel])
            near = near[_ascending(z[near])]
            pixel, z, colour = pixel[near], z[near], drawn[group][which[near]]
            if group is opaque:
                image[pixel], depth[pixel] = colour, z  # the nearest is written last
            else:
                opacity = colours[group][which[near], 3:].astype(np.float32)
                image[pixel] = (opacity * colour + (1 - opacity) * image[pixel]).astype(np.uint8)


def _ascending(z: np.ndarray) -> np.ndarray:
    """Indices that sort positive float32 numbers, equal ones in their given order.

    The bits of such numbers, read as integers, have the same order. NumPy sorts an array of integers, with the index in the low
    bits, several times as fast as it computes a stable argsort.
    """
    keys = z.view(np.uint32).astype(np.uint64) << np.uint64(32) | np.arange(len(z), dtype=np.uint64)
    keys.sort()
    return (keys & np.uint64(0xFFFFFFFF)).astype(np.intp)


def _fragments(x: np.ndarray, y: np.ndarray, z: np.ndarray, size: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pixels whose centre a triangle covers: index of the pixel, 1 / distance there, index of the triangle."""
    width, height = size
    first = np.clip(np.ceil(y.min(axis=1) - 0.5), 0, height).astype(np.int32)
    last = np.clip(np.ceil(y.max(axis=1) - 0.5), 0, height).astype(np.int32)
    which, row = _ranges(first, last)
    at = row + np.float32(0.5)
    left, right = np.full(len(row), np.inf, np.float32), np.full(len(row), -np.inf, np.float32)
    for a, b in ((0, 1), (1, 2), (2, 0)):
        ya, yb, xa, xb = y[which, a], y[which, b], x[which, a], x[which, b]
        with np.errstate(divide="ignore", invalid="ignore"):
            cut = xa + (at - ya) * (xb - xa) / (yb - ya)
        crossed = (ya <= at) != (yb <= at)
        left = np.where(crossed, np.minimum(left, cut), left)
        right = np.where(crossed, np.maximum(right, cut), right)
    start = np.clip(np.ceil(left - 0.5), 0, width)
    stop = np.clip(np.ceil(right - 0.5), 0, width)
    full = stop > start
    which, row, start, stop = which[full], row[full], start[full].astype(np.int32), stop[full].astype(np.int32)
    span, column = _ranges(start, stop)
    slope_x, slope_y = _slopes(x, y, z)
    t = which[span]
    depth = z[t, 0] + slope_x[t] * (column + 0.5 - x[t, 0]) + slope_y[t] * (row[span] + 0.5 - y[t, 0])
    return row[span] * width + column, depth.astype(np.float32), t


def _slopes(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Changes of 1 / distance per pixel along x and y; over a triangle in the picture it is linear."""
    x1, x2 = x[:, 1] - x[:, 0], x[:, 2] - x[:, 0]
    y1, y2 = y[:, 1] - y[:, 0], y[:, 2] - y[:, 0]
    z1, z2 = z[:, 1] - z[:, 0], z[:, 2] - z[:, 0]
    area = x1 * y2 - x2 * y1
    area = np.where(np.abs(area) > 1e-12, area, np.inf)
    return (z1 * y2 - z2 * y1) / area, (x1 * z2 - x2 * z1) / area


def _ranges(start: np.ndarray, stop: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For ranges start <= n < stop: each number n of all ranges, after the index of its range."""
    count = np.maximum(stop - start, 0)
    which = np.repeat(np.arange(len(count), dtype=np.int32), count)
    within = np.arange(len(which), dtype=np.int32) - np.repeat(np.cumsum(count) - count, count).astype(np.int32)
    return which, start[which] + within
