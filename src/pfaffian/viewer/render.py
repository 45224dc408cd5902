"""Frames of a scene as pixels, by NumPy alone: triangles in spans of pixels, the nearest of which is seen."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pfaffian.viewer.camera import VIEW, Camera
from pfaffian.viewer.fittings import coil
from pfaffian.viewer.scene import Floor, Scene, floor_square
from pfaffian.viewer.solids import cone, rod, towards

BACKGROUND = (250, 250, 252)
LIGHT = np.array([0.35, 0.45, 0.82])
"""Direction to the light, in the axes of the camera."""

AMBIENT = 0.42
FINER = 2
"""Rows and columns of pixels that are drawn for one of the picture, which is their mean."""

GRID, LINE = 12, (0.80, 0.81, 0.84, 1.0)
NEAREST = 1e-3
"""What is nearer to the eye than this fraction of its distance to the target is not drawn."""


class Triangles(NamedTuple):
    """corners: (n, 3, 3) [m] in the world.   colours: (n, 4)."""

    corners: np.ndarray
    colours: np.ndarray


class Batch(NamedTuple):
    """The solids of a scene in one array. vertices: (n, 3) in their bodies.   body: (n,) index of the body, the last for the
    world.   faces: (m, 3).   colours: (m, 4)."""

    vertices: np.ndarray
    body: np.ndarray
    faces: np.ndarray
    colours: np.ndarray


def batched(scene: Scene, layers: frozenset[str]) -> Batch:
    """The parts of the shown layers."""
    parts = [p for p in scene.parts if p.layer in layers]
    counts = np.array([len(p.solid.vertices) for p in parts], dtype=int)
    starts = np.concatenate([[0], np.cumsum(counts)])
    if not parts:
        return Batch(np.zeros((0, 3)), np.zeros(0, dtype=int), np.zeros((0, 3), dtype=int), np.zeros((0, 4)))
    return Batch(
        np.concatenate([p.solid.vertices for p in parts]),
        np.repeat([p.body % (len(scene.bodies) + 1) for p in parts], counts),
        np.concatenate([p.solid.faces + s for p, s in zip(parts, starts, strict=False)]),
        np.concatenate([np.broadcast_to(p.colour, (len(p.solid.faces), 4)) for p in parts]),
    )


def triangles(scene: Scene, batch: Batch, layers: frozenset[str], i: int) -> Triangles:
    """All triangles at record i."""
    R = np.concatenate([scene.rotations[i], np.eye(3)[None]])
    x = np.concatenate([scene.positions[i], np.zeros((1, 3))])
    vertices = np.einsum("nij,nj->ni", R[batch.body], batch.vertices) + x[batch.body]
    found = [Triangles(vertices[batch.faces], batch.colours)]
    for solid, colour in _moving(scene, layers, i):
        corners = solid[0][solid[1]]
        found.append(Triangles(corners, np.broadcast_to(colour, (len(corners), 4))))
    return Triangles(*[np.concatenate(x) for x in zip(*found, strict=True)])


def _moving(scene: Scene, layers: frozenset[str], i: int) -> list[tuple[tuple[np.ndarray, np.ndarray], tuple[float, ...]]]:
    """(vertices, faces) and colour of rods, springs, arrows, trails and frames at record i."""
    found = []
    for x in scene.moving:
        if x.layer not in layers:
            continue
        ends = x.ends[: i + 1, 0] if x.kind == "trail" else x.ends[i]
        for solid in _solids(x.kind, ends, x.radius):
            found.append((solid, x.colour))
    if "frames" in layers:
        length = 0.12 * scene.size
        for R, p in zip(scene.rotations[i], scene.positions[i], strict=True):
            for axis, colour in enumerate(((0.8, 0.1, 0.1, 1.0), (0.1, 0.6, 0.1, 1.0), (0.1, 0.2, 0.9, 1.0))):
                found.append((rod(p, p + length * R[:, axis], 0.05 * length, 6)[:2], colour))
    return found


def _solids(kind: str, ends: np.ndarray, radius: float) -> list[tuple[np.ndarray, np.ndarray]]:
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
    """image: (pixels, 3) uint8.   depth: (pixels,) 1 / distance of what is drawn, 0 where nothing is.   size: in pixels."""

    image: np.ndarray
    depth: np.ndarray
    size: tuple[int, int]


def backdrop(scene: Scene, layers: frozenset[str], camera: Camera, size: tuple[int, int]) -> Canvas:
    """What does not move: the background, and the grid of the floor."""
    width, height = size[0] * FINER, size[1] * FINER
    image = np.empty((height * width, 3), dtype=np.uint8)
    image[:] = BACKGROUND
    made = Canvas(image, np.zeros(height * width, dtype=np.float32), (width, height))
    if "floor" in layers and scene.floor is not None:
        _draw(_floor(scene, scene.floor), camera, made, shaded=False)
    return made


def frame(scene: Scene, batch: Batch, layers: frozenset[str], camera: Camera, behind: Canvas, i: int) -> np.ndarray:
    """(height, width, 3) uint8: the scene at record i, before what does not move."""
    canvas = behind._replace(image=behind.image.copy(), depth=behind.depth.copy())
    _draw(triangles(scene, batch, layers, i), camera, canvas)
    width, height = canvas.size
    fine = canvas.image.reshape(height // FINER, FINER, width // FINER, FINER, 3)
    total = np.full(fine[:, 0, :, 0].shape, FINER**2 // 2, dtype=np.uint16)
    for row in range(FINER):
        for column in range(FINER):
            total += fine[:, row, :, column]
    return (total // FINER**2).astype(np.uint8)


def _floor(scene: Scene, floor: Floor) -> Triangles:
    """A grid of lines in the plane of the floor, thin quads each."""
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
    seen = (t.corners - camera.eye).astype(np.float32) @ axes.T
    reach = float(np.linalg.norm(camera.eye - camera.target))
    good = (seen[:, :, 2] < -NEAREST * reach).all(axis=1)
    seen, colours = seen[good], t.colours[good]
    if not len(seen):
        return
    normal = np.cross(seen[:, 1] - seen[:, 0], seen[:, 2] - seen[:, 0])
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-30)
    front = np.einsum("ij,ij->i", normal, seen[:, 0]) < 0
    facing = np.where(front[:, None], normal, -normal)
    light = AMBIENT + (1 - AMBIENT) * np.clip(facing @ (LIGHT / np.linalg.norm(LIGHT)), 0, 1) if shaded else 1.0
    drawn = (255 * colours[:, :3] * np.reshape(light, (-1, 1))).astype(np.uint8)
    scale = size[1] / VIEW
    inverse = -1 / seen[:, :, 2]
    x = size[0] / 2 + scale * seen[:, :, 0] * inverse
    y = size[1] / 2 - scale * seen[:, :, 1] * inverse
    opaque = colours[:, 3] > 0.99
    for chosen in (opaque, ~opaque):
        if chosen.any():
            pixel, z, which = _fragments(x[chosen], y[chosen], inverse[chosen], size)
            near = np.flatnonzero(z > depth[pixel])
            near = near[_ascending(z[near])]
            pixel, z, colour = pixel[near], z[near], drawn[chosen][which[near]]
            if chosen is opaque:
                image[pixel], depth[pixel] = colour, z  # the nearest is written last
            else:
                share = colours[chosen][which[near], 3:].astype(np.float32)
                image[pixel] = (share * colour + (1 - share) * image[pixel]).astype(np.uint8)


def _ascending(z: np.ndarray) -> np.ndarray:
    """The order of float32 numbers above zero, equal ones as they come: their bits are whole numbers in the same order.

    NumPy sorts one array of whole numbers several times as fast as it finds the stable order of others.
    """
    keys = z.view(np.uint32).astype(np.uint64) << np.uint64(32) | np.arange(len(z), dtype=np.uint64)
    keys.sort()
    return (keys & np.uint64(0xFFFFFFFF)).astype(np.intp)


def _fragments(x: np.ndarray, y: np.ndarray, z: np.ndarray, size: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pixels whose middle a triangle covers: index of the pixel, 1 / distance there, index of the triangle."""
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
    """Of 1 / distance along the rows and columns of pixels: linear there."""
    x1, x2 = x[:, 1] - x[:, 0], x[:, 2] - x[:, 0]
    y1, y2 = y[:, 1] - y[:, 0], y[:, 2] - y[:, 0]
    z1, z2 = z[:, 1] - z[:, 0], z[:, 2] - z[:, 0]
    area = x1 * y2 - x2 * y1
    area = np.where(np.abs(area) > 1e-12, area, np.inf)
    return (z1 * y2 - z2 * y1) / area, (x1 * z2 - x2 * z1) / area


def _ranges(start: np.ndarray, stop: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Index of the range and each number in it, for ranges start <= n < stop."""
    count = np.maximum(stop - start, 0)
    which = np.repeat(np.arange(len(count), dtype=np.int32), count)
    within = np.arange(len(which), dtype=np.int32) - np.repeat(np.cumsum(count) - count, count).astype(np.int32)
    return which, start[which] + within
