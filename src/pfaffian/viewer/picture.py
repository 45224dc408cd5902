"""One picture of a scene as pixels: triangles with shadows, occlusion by what is near, and a floor.

Every pixel is the mean of 2 x 2 samples. A sample shows the nearest triangle, lit from everywhere, from the eye, and by a light
that casts shadows: a second depth buffer, seen from the light, tells where it does not reach. Near other surfaces a pixel is
darker, by how far pairs of opposite neighbours rise above it; so it is along edges. `picture.h` computes the same in C, several
times as fast.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from pfaffian import sources
from pfaffian.errors import BuildError
from pfaffian.kernel.build import library, toolchain
from pfaffian.kernel.build.trial import Answers, Trial

SUPERSAMPLING = 2
"""Each pixel is the mean of this many rows and columns of samples; `picture.h` counts on two."""

MAP = 768
"""Rows and columns of the depth buffer that is seen from the light."""

AMBIENT, HEAD, KEY = 0.36, 0.20, 0.56
"""Light on a surface from everywhere, from the eye where it faces the eye, from the light where it faces the light."""

DARK, OCCLUDED = 0.30, 0.75
"""Part of its brightness that the floor loses in a shadow, and that a pixel loses between close surfaces."""

REACH, BIAS = 0.05, 0.012
"""Distance within which surfaces take light from each other, and depth by which a surface must lie behind another to be in its
shadow, as fractions of the size of what is drawn."""

WIDEST = 24
"""Largest distance of the neighbours that occlude a pixel [pixels]."""

INK = 0.55
"""Part of its brightness that a sample loses on an edge: where its neighbours do not lie on one plane with it."""

NEAREST = 1e-3
"""Triangles nearer to the eye than this fraction of the distance from the eye to the target are not drawn."""


class Solids(NamedTuple):
    """Triangles on bodies.   vertices: (n, 3) float32 in the frames of their bodies [m].   body: (n,) int32 index of each.
    faces: (m, 3) int32 indices of vertices.   colours: (m, 4) float32."""

    vertices: np.ndarray
    body: np.ndarray
    faces: np.ndarray
    colours: np.ndarray


class Viewpoint(NamedTuple):
    """Where a picture is taken from.   axes: (3, 3) right, up, back as rows.   eye: (3,) [m].   distance: of the target.
    light: (3, 3) axes of the light as rows, the last towards it.   centre: (3,) and radius of what is lit [m].
    scale: samples for a length of 1 at distance 1.   floor: (3,) normal and a point of the floor, or None."""

    axes: np.ndarray
    eye: np.ndarray
    distance: float
    light: np.ndarray
    centre: np.ndarray
    radius: float
    scale: float
    floor: tuple[np.ndarray, np.ndarray] | None

    def numbers(self) -> np.ndarray:
        """The numbers that `picture.h` reads, in the order of its names."""
        normal, point = (np.zeros(3), np.zeros(3)) if self.floor is None else self.floor
        lit = MAP / (2.2 * self.radius)
        return np.concatenate([
            self.axes.ravel(), self.eye, [self.scale, NEAREST * self.distance], self.light.ravel(), self.centre, [lit], normal,
            [normal @ (point - self.eye), REACH * self.radius, BIAS * self.radius, AMBIENT, HEAD, KEY, DARK, OCCLUDED],
            [WIDEST, INK],
        ])  # fmt: skip


def draw(solids: Solids, poses: np.ndarray, view: Viewpoint, behind: np.ndarray, work: np.ndarray | None = None) -> np.ndarray:
    """Pixels (height, width, 3) uint8 of solids over a background of the same size.

    poses: (bodies, 12) rotation by rows and position of each body [m].
    work: memory by `workspace`, to draw in C where it can be compiled; None: by NumPy.
    """
    built = None if work is None else compiled()
    if built is None or work is None:
        return drawn(solids, poses, view, behind)
    return _call(built, solids, poses, view.numbers(), behind, work)


def workspace(size: tuple[int, int]) -> np.ndarray:
    """Memory in which the pictures of a film of this size are drawn in C, one after another."""
    return np.empty(int(4.5 * SUPERSAMPLING**2 * size[0] * size[1]) + MAP**2 + 40, np.float32)


# -- in C ---------------------------------------------------------------------------------------------------------------


class _PictureStruct(ctypes.Structure):
    """The struct Picture of picture.h."""

    _fields_ = [
        *[(name, ctypes.c_int32) for name in ("width", "height", "map", "n_vertices", "n_faces", "has_floor")],
        *[
            (name, ctypes.c_void_p)
            for name in ("vertices", "body", "faces", "colours", "poses", "view", "behind", "image", "work")
        ],
    ]


@lru_cache(maxsize=1)
def compiled() -> ctypes.CDLL | None:
    """The library of picture.h; None where nothing can be compiled."""
    compiler = toolchain.find_compiler()
    if compiler is None:
        return None
    try:
        text = f"{sources.read('viewer/picture.h')}\n{_TRIAL}"
        built, _ = library.load(text, "pictures", Trial(_answers, 0, False), compiler)
    except BuildError:
        return None
    built.pfaffian_picture.argtypes, built.pfaffian_picture.restype = [ctypes.c_void_p], ctypes.c_int
    built.pfaffian_video.argtypes = [ctypes.c_int, ctypes.c_int, *[ctypes.c_void_p] * 3]
    built.pfaffian_video.restype = None
    return built


def video(pictures: Sequence[np.ndarray]) -> tuple[str, Iterator[np.ndarray]]:
    """Pictures (height, width, 3) uint8 with even sides for an encoder: its name of their format, and the pictures in it.

    In C they become what a film keeps, a plane of brightness and two of colour at half the resolution. Only what differs from
    the picture before is computed, in the same memory. Without a compiler they stay as they are.
    """
    built = compiled()
    return ("rgb24", iter(pictures)) if built is None else ("yuv420p", _planes(built, pictures))


def _planes(built: ctypes.CDLL, pictures: Sequence[np.ndarray]) -> Iterator[np.ndarray]:
    """The planes of pictures, by `pfaffian_video`."""
    height, width, _ = pictures[0].shape
    planes, before = np.empty(height * width * 3 // 2, np.uint8), None
    for picture in map(np.ascontiguousarray, pictures):
        last = None if before is None else before.ctypes.data
        built.pfaffian_video(width, height, picture.ctypes.data, last, planes.ctypes.data)
        before = picture
        yield planes


def _call(
    built: ctypes.CDLL, s: Solids, poses: np.ndarray, view: np.ndarray, behind: np.ndarray, work: np.ndarray
) -> np.ndarray:
    """Call `pfaffian_picture`. Raises MemoryError: there is not enough memory."""
    height, width, _ = behind.shape
    image = np.empty_like(behind)
    kinds = np.float32, np.int32, np.int32, np.float32, np.float64, np.float64, np.uint8, np.uint8, np.float32
    given = [np.ascontiguousarray(x, k) for x, k in zip((*s, poses, view, behind, image, work), kinds, strict=True)]
    sizes = width * SUPERSAMPLING, height * SUPERSAMPLING, MAP, len(s.vertices), len(s.faces), int(view[27:30].any())
    if built.pfaffian_picture(ctypes.byref(_PictureStruct(*sizes, *[x.ctypes.data for x in given]))):
        raise MemoryError("a picture does not fit into memory")
    return image


TRIED = 32
"""Width and height of the picture of the trial [pixels]."""

_TRIAL = f"""
void pfaffian_trial(const double *table, const double *in, double *out, void *work) {{
  (void)table, (void)work;
  enum {{ V = 8, F = 12, P = {TRIED} }};
  float x[3 * V], colours[4 * F];
  int32_t body[V] = {{0}}, faces[3 * F];
  uint8_t behind[3 * P * P], image[3 * P * P];
  float *space = malloc(sizeof(float) * (18 * P * P + {MAP} * {MAP} + 40));
  for (int i = 0; i < 3 * V; i++) x[i] = (float)in[i];
  for (int i = 0; i < 3 * F; i++) faces[i] = (int32_t)in[3 * V + i];
  for (int i = 0; i < 4 * F; i++) colours[i] = 0.5f + 0.5f * (i % 4 == 3);
  memset(behind, 250, sizeof behind);
  const double *poses = in + 3 * V + 3 * F, *view = poses + 12;
  const Picture p = {{2 * P, 2 * P, {MAP}, V, F, 1, x, body, faces, colours, poses, view, behind, image, space}};
  if (!space || pfaffian_picture(&p)) return;
  for (int i = 0; i < 3 * P * P; i++) out[i] = image[i];
  free(space);
}}
"""


def _answers() -> Answers:
    """The trial: a box on a floor, as NumPy draws it."""
    from pfaffian.viewer.solids import box

    cube, up = box((1.0, 1.0, 1.0)), np.array([0.0, 0.0, 1.0])
    back = np.array([0.8, 0.0, 0.6])
    axes = np.stack([np.array([0.0, 1.0, 0.0]), np.array([-0.6, 0.0, 0.8]), back])
    view = Viewpoint(axes, 4 * back, 4.0, lit_from(axes, up), np.zeros(3), 1.0, 2 * TRIED / 0.6, (up, -0.5 * up))
    solids = Solids(cube.vertices.astype(np.float32), np.zeros(8, np.int32), cube.faces, np.full((12, 4), 0.5, np.float32))
    solids.colours[:, 3] = 1.0
    pose = np.array([[1.0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0]])
    image = drawn(solids, pose, view, np.full((TRIED, TRIED, 3), 250, np.uint8))
    numbers = np.concatenate([solids.vertices.ravel(), solids.faces.ravel(), pose.ravel(), view.numbers()])
    return Answers(numbers[None].astype(float), image.reshape(1, -1).astype(float))


def lit_from(axes: np.ndarray, up: np.ndarray) -> np.ndarray:
    """(3, 3) axes of the light, the last towards it: from above, from the right of the eye and from behind it."""
    towards = 0.85 * up + 0.30 * axes[0] + 0.42 * axes[2]
    towards = towards / np.linalg.norm(towards)
    across = np.cross(axes[1], towards)
    across = across / np.linalg.norm(across)
    return np.stack([across, np.cross(towards, across), towards])


# -- by NumPy -----------------------------------------------------------------------------------------------------------


class _Samples(NamedTuple):
    """Depths (height, width) of the nearest of some triangles, larger where nearer, and the index of its face, -1 for none."""

    depth: np.ndarray
    face: np.ndarray


class _Rays(NamedTuple):
    """Coordinates along some axes of the points of rays through samples: at + t (base + column across + row down)."""

    at: np.ndarray
    base: np.ndarray
    across: np.ndarray
    down: np.ndarray

    def points(self, t: np.ndarray, column: np.ndarray, row: np.ndarray) -> np.ndarray:
        """(k, axes) coordinates at distance t (k,) along the ray through each sample."""
        return self.at + t[:, None] * (self.base + column[:, None] * self.across + row[:, None] * self.down)


def drawn(solids: Solids, poses: np.ndarray, view: Viewpoint, behind: np.ndarray) -> np.ndarray:
    """The picture that `picture.h` draws, by NumPy."""
    height, width = (SUPERSAMPLING * x for x in behind.shape[:2])
    pose = poses[solids.body]
    world = (pose[:, :9].reshape(-1, 3, 3) @ solids.vertices[:, :, None].astype(float))[:, :, 0] + pose[:, 9:]
    seen, lit = _seen(view, world, (width, height))[solids.faces], _lit(view, world)[solids.faces]
    ambient, key = _light(view, world[solids.faces])
    front, opaque = (seen[:, :, 2] > 0).all(axis=1), solids.colours[:, 3] > 0.99
    shadow = _nearest(lit[opaque], (MAP, MAP), -np.inf)
    chosen = np.flatnonzero(front & opaque)
    nearest = _nearest(seen[chosen], (width, height), 0.0)
    rays = _rays(view, view.light, view.centre, (width, height))
    dim, floor = _dimmed(view, nearest.depth), _floor_shadow(view, rays, shadow.depth, (width, height))
    image = (behind * (floor * dim)[:, :, None]).astype(np.uint8)
    fine = image.repeat(SUPERSAMPLING, axis=0).repeat(SUPERSAMPLING, axis=1)
    rows, columns = np.nonzero(nearest.face >= 0)
    face, pixel = chosen[nearest.face[rows, columns]], (rows // 2, columns // 2)
    near = _of_pixels(nearest.depth)[pixel]
    hidden = _shaded(view, rays, shadow.depth, 1 / near, 2 * pixel[1] + 1, 2 * pixel[0] + 1)
    ink = INK * _edges(view, nearest.depth, rows, columns)
    bright = np.minimum(ambient[face] + np.where(hidden, 0.0, key[face]), 1) * dim[pixel] * (1 - ink)
    fine[rows, columns] = (255 * bright[:, None] * solids.colours[face, :3]).astype(np.uint8)
    chosen = np.flatnonzero(front & ~opaque)
    clear = _nearest(seen[chosen], (width, height), 0.0)
    at = (clear.face >= 0) & (clear.depth > nearest.depth)
    face = chosen[clear.face[at]]
    light, opacity = np.minimum(ambient[face] + key[face], 1)[:, None], solids.colours[face, 3:]
    fine[at] = (opacity * 255 * light * solids.colours[face, :3] + (1 - opacity) * fine[at]).astype(np.uint8)
    parts = fine.reshape(height // 2, 2, width // 2, 2, 3).astype(np.uint16).sum(axis=(1, 3))
    return ((parts + 2) // 4).astype(np.uint8)


def _seen(view: Viewpoint, world: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """(n, 3) column and row in samples and 1 / distance of points; the last is -1 where they are too near or behind the eye."""
    x = (world - view.eye) @ view.axes.T
    inverse = np.where(-x[:, 2] > NEAREST * view.distance, -1 / np.where(x[:, 2] == 0, -1.0, x[:, 2]), -1.0)
    return np.stack([size[0] / 2 + view.scale * x[:, 0] * inverse, size[1] / 2 - view.scale * x[:, 1] * inverse, inverse], 1)


def _lit(view: Viewpoint, world: np.ndarray) -> np.ndarray:
    """(n, 3) column and row in the depth buffer of the light, and distance towards the light, of points."""
    x = (world - view.centre) @ view.light.T
    return np.concatenate([MAP / 2 + MAP / (2.2 * view.radius) * x[:, :2], x[:, 2:]], axis=1)


def _light(view: Viewpoint, corners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Brightness (n,) of triangles without the light that casts shadows, and that light's."""
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normal /= np.linalg.norm(normal, axis=1, keepdims=True) + 1e-30
    towards = view.eye - corners[:, 0]
    facing = np.einsum("ij,ij->i", normal, towards) / (np.linalg.norm(towards, axis=1) + 1e-30)
    sign = np.where(facing < 0, -1.0, 1.0)
    return AMBIENT + HEAD * sign * facing, KEY * np.maximum(sign * (normal @ view.light[2]), 0)


def _nearest(t: np.ndarray, size: tuple[int, int], empty: float) -> _Samples:
    """The nearest of some triangles (n, 3, 3), with columns, rows and depths of their corners, at each sample."""
    width, height = size
    depth, index = np.full(width * height, empty), np.full(width * height, -1)
    if len(t):
        pixel, z, which = fragments(t, size)
        np.fmax.at(depth, pixel, z)
        first = np.flatnonzero((z == depth[pixel]) & (z > empty))[::-1]  # of equally near triangles the first one stays
        index[pixel[first]] = which[first]
    return _Samples(depth.reshape(height, width), index.reshape(height, width))


def _rays(view: Viewpoint, rows: np.ndarray, centre: np.ndarray, size: tuple[int, int]) -> _Rays:
    """The rays through the samples of a picture of this size, along axes (k, 3) from a centre (3,)."""
    right, up, back = (rows @ view.axes.T).T
    base = -back - right * size[0] / 2 / view.scale + up * size[1] / 2 / view.scale
    return _Rays(rows @ (view.eye - centre), base, right / view.scale, -up / view.scale)


def _shaded(view: Viewpoint, rays: _Rays, shadow: np.ndarray, t: np.ndarray, column: np.ndarray, row: np.ndarray) -> np.ndarray:
    """Whether the light does not reach the points at distances t along the rays through samples, each (k,)."""
    x = rays.points(t, column, row)
    at = np.floor(MAP / 2 + MAP / (2.2 * view.radius) * x[:, :2])
    u, w = np.clip(at, 0, MAP - 1).astype(int).T
    inside = (at >= 0).all(axis=1) & (at < MAP).all(axis=1)
    return inside & (shadow[w, u] > x[:, 2] + BIAS * view.radius)


def _floor_depth(view: Viewpoint, size: tuple[int, int]) -> np.ndarray:
    """(rows, columns) 1 / distance of the floor at the middle of each pixel; not above zero where it is not seen."""
    shape = size[1] // 2, size[0] // 2
    if view.floor is None:
        return np.zeros(shape)
    normal, point = view.floor
    rays = _rays(view, normal[None], view.eye, size)
    row, column = np.indices(shape) * 2 + 1
    return (rays.base[0] + column * rays.across[0] + row * rays.down[0]) / (normal @ (point - view.eye))


def _floor_shadow(view: Viewpoint, rays: _Rays, shadow: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Part of its brightness (rows, columns) that the floor keeps in the shadows."""
    z = _floor_depth(view, size)
    row, column = np.nonzero(z > 0)
    dark = np.zeros(len(row))
    for k in range(2):
        dark += _shaded(view, rays, shadow, 1 / z[row, column], 2 * column + k + 0.5, 2 * row + k + 0.5)
    keep = np.ones(z.shape)
    keep[row, column] = 1 - DARK * dark / 2
    return keep


def _of_pixels(depth: np.ndarray) -> np.ndarray:
    """The depth (rows, columns) of the nearest sample of each pixel."""
    return depth.reshape(depth.shape[0] // 2, 2, depth.shape[1] // 2, 2).max(axis=(1, 3))


def _dimmed(view: Viewpoint, depth: np.ndarray) -> np.ndarray:
    """Part of its brightness (rows, columns) that each pixel keeps near others: found once for 2 x 2 pixels and smoothed."""
    near = _of_pixels(depth)
    near = np.where(near == 0, np.maximum(_floor_depth(view, depth.shape[::-1]), 0), near)
    row, column = 2 * np.array(np.nonzero(near[::2, ::2] > 0))
    here, reach = near[row, column], REACH * view.radius
    far = np.clip(reach * here * view.scale / 2, 2, WIDEST).astype(int)
    total = np.zeros(len(row))
    for k, (across, down) in enumerate(((1, 0), (0, 1), (1, 1), (1, -1))):
        d, rise = (far if k < 2 else far * 7 // 20 + 1), np.zeros(len(row))
        for side in (-1, 1):
            i, j = column + side * d * across, row + side * d * down
            inside = (i >= 0) & (j >= 0) & (i < near.shape[1]) & (j < near.shape[0])
            other = near[j.clip(0, near.shape[0] - 1), i.clip(0, near.shape[1] - 1)]
            up = np.where(inside, (other - here) / here**2, np.inf)
            rise += np.where(up > 3 * reach, -3 * reach, up.clip(-reach, reach))
        total += np.maximum(rise, 0) / (2 * reach)
    keep = np.ones(near.shape)
    keep[row, column] = 1 - OCCLUDED * total / 4
    return _smoothed(keep[::2, ::2], near, reach)


def _smoothed(keep: np.ndarray, near: np.ndarray, reach: float) -> np.ndarray:
    """What each pixel keeps of its brightness: the mean over its block of 2 x 2 pixels and those beside it, as far as they show
    something at the distance of the pixel.   keep: of each block.   near: 1 / distance of each pixel."""
    far, block = np.pad(near[::2, ::2], 1), np.pad(keep, 1, constant_values=1.0)
    above = [block[j : j + len(keep)] for j in range(3)]
    busy = np.any([x[:, i : i + keep.shape[1]] != 1 for x in above for i in range(3)], axis=0)
    row, column = np.nonzero(busy.repeat(2, axis=0).repeat(2, axis=1)[: near.shape[0], : near.shape[1]])
    here, total, weight = near[row, column], np.zeros(len(row)), np.zeros(len(row))
    for j in range(3):
        for i in range(3):
            at = row // 2 + j, column // 2 + i
            beside = (far[at] > 0) & (np.abs(far[at] - here) <= reach * here**2)
            w = (2 if i == 1 else 1) * (2 if j == 1 else 1) * beside
            total, weight = total + w * block[at], weight + w
    remaining = np.ones(near.shape)
    remaining[row, column] = np.where(weight > 0, total / np.maximum(weight, 1), 1.0)
    return remaining


def _edges(view: Viewpoint, depth: np.ndarray, row: np.ndarray, column: np.ndarray) -> np.ndarray:
    """How much an edge passes through some samples, from 0 to 1: along rows and columns 1 / distance is straight on a plane."""
    height, width = depth.shape
    here, size = depth[row, column], np.zeros(len(row))
    for down, across in ((0, 1), (1, 0)):
        before = depth[np.maximum(row - down, 0), np.maximum(column - across, 0)]
        after = depth[np.minimum(row + down, height - 1), np.minimum(column + across, width - 1)]
        size = np.maximum(size, np.abs(before + after - 2 * here))
    return np.clip(2 * size * view.scale / np.maximum(here, 1e-30) - 1, 0, 1)


def fragments(t: np.ndarray, size: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Samples whose middle a triangle (n, 3, 3) covers: index of the sample, depth there, index of the triangle."""
    (width, height), (x, y, z) = size, t.transpose(2, 0, 1)
    first = np.clip(np.ceil(y.min(axis=1) - 0.5), 0, height).astype(int)
    last = np.clip(np.ceil(y.max(axis=1) - 0.5), 0, height).astype(int)
    which, row = _ranges(first, last)
    at = row + 0.5
    left, right = np.full(len(row), np.inf), np.full(len(row), -np.inf)
    for a, b in ((0, 1), (1, 2), (2, 0)):
        ya, yb, xa, xb = y[which, a], y[which, b], x[which, a], x[which, b]
        cut = xa + (at - ya) * (xb - xa) / np.where(yb == ya, 1.0, yb - ya)
        crossed = (ya <= at) != (yb <= at)
        left, right = np.where(crossed, np.minimum(left, cut), left), np.where(crossed, np.maximum(right, cut), right)
    start, stop = np.clip(np.ceil(left - 0.5), 0, width), np.clip(np.ceil(right - 0.5), 0, width)
    full = stop > start
    which, row, start, stop = which[full], row[full], start[full].astype(int), stop[full].astype(int)
    span, column = _ranges(start, stop)
    slope_x, slope_y = _slopes(x, y, z)
    k = which[span]
    depth = z[k, 0] + slope_x[k] * (column + 0.5 - x[k, 0]) + slope_y[k] * (row[span] + 0.5 - y[k, 0])
    return row[span] * width + column, depth, k


def _slopes(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Changes of the depth per sample along x and y."""
    x1, x2 = x[:, 1] - x[:, 0], x[:, 2] - x[:, 0]
    y1, y2 = y[:, 1] - y[:, 0], y[:, 2] - y[:, 0]
    z1, z2 = z[:, 1] - z[:, 0], z[:, 2] - z[:, 0]
    area = x1 * y2 - x2 * y1
    area = np.where(np.abs(area) > 1e-12, area, np.inf)
    return (z1 * y2 - z2 * y1) / area, (x1 * z2 - x2 * z1) / area


def _ranges(start: np.ndarray, stop: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For ranges start <= n < stop: each number n of all ranges, after the index of its range."""
    count = np.maximum(stop - start, 0)
    which = np.repeat(np.arange(len(count)), count)
    return which, start[which] + np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
