"""Mass, mass centre and inertia of solids, for files that leave them to the geometry: primitive solids, meshes, sums."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pfaffian.errors import optional

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(4)  # exact to degree 7; the integrands below have at most degree 4

Revolved = Sequence[tuple[float, float, tuple[float, float, float]]]
"""Pieces of a solid of revolution about z: from, to, and the coefficients of r^2 = c0 + c1 z + c2 z^2."""


@dataclass(frozen=True)
class UniformSolid:
    """A rigid piece.   mass: [kg], or the volume [m^3] at unit density.   com: (3,) [m].   inertia: (3, 3) about `com`."""

    mass: float
    com: np.ndarray
    inertia: np.ndarray

    def weighing(self, mass: float) -> UniformSolid:
        """This solid with another mass, its density uniform as before."""
        return replace(self, mass=mass, inertia=self.inertia * (mass / self.mass))

    def placed(self, R: np.ndarray, p: np.ndarray) -> UniformSolid:
        """The solid in another frame, in which its own has the rotation R (3, 3) and the position p (3,) [m]."""
        return UniformSolid(self.mass, R @ self.com + p, R @ self.inertia @ R.T)

    def about(self, point: np.ndarray) -> np.ndarray:
        """The inertia (3, 3) about another point (3,) than the mass centre, by the parallel-axis theorem."""
        d = self.com - point
        return self.inertia + self.mass * (d @ d * np.eye(3) - np.outer(d, d))


def together(pieces: Iterable[UniformSolid]) -> UniformSolid:
    """The sum of pieces, given in one frame, as one rigid solid."""
    known = list(pieces)
    mass = sum(x.mass for x in known)
    weighed = sum((x.mass * x.com for x in known), np.zeros(3))
    com = weighed / mass if mass else weighed
    return UniformSolid(mass, com, sum((x.about(com) for x in known), np.zeros((3, 3))))


def box(edges: np.ndarray) -> UniformSolid:
    """A box about the origin.   edges: (3,) [m]."""
    squares = edges**2
    volume = float(np.prod(edges))
    return UniformSolid(volume, np.zeros(3), np.diag(squares.sum() - squares) * volume / 12)


def ellipsoid(radii: np.ndarray) -> UniformSolid:
    """An ellipsoid about the origin.   radii: (3,) its semi-axes [m], equal for a sphere."""
    squares = radii**2
    volume = float(4 / 3 * np.pi * np.prod(radii))
    return UniformSolid(volume, np.zeros(3), np.diag(squares.sum() - squares) * volume / 5)


def revolved(pieces: Revolved) -> UniformSolid:
    """A solid of revolution about z.

    V = pi int r^2,   z_c = pi int r^2 z / V,   I_z = pi/2 int r^4,   I_x = pi/4 int r^4 + pi int r^2 (z - z_c)^2
    """
    z = np.concatenate([(a + b) / 2 + (b - a) / 2 * _NODES for a, b, _ in pieces])
    w = np.concatenate([(b - a) / 2 * _WEIGHTS for a, b, _ in pieces])
    c0, c1, c2 = np.repeat([c for _, _, c in pieces], len(_NODES), axis=0).T
    r2 = c0 + z * (c1 + z * c2)
    volume = np.pi * w @ r2
    centre = np.pi * w @ (r2 * z) / volume
    axial = np.pi / 2 * w @ r2**2
    across = axial / 2 + np.pi * w @ (r2 * (z - centre) ** 2)
    return UniformSolid(float(volume), np.array([0.0, 0.0, centre]), np.diag([across, across, axial]))


def _line(z0: float, r0: float, z1: float, r1: float) -> tuple[float, float, tuple[float, float, float]]:
    """The piece between two circles.   z0, z1: their places.   r0, r1: their radii."""
    slope = (r1 - r0) / (z1 - z0)
    start = r0 - slope * z0
    return z0, z1, (start**2, 2 * start * slope, slope**2)


def cylinder(bottom: float, top: float, length: float) -> UniformSolid:
    """A cylinder along z about the origin, or a truncated cone.   bottom, top: radii at -z and +z [m], zero for a tip."""
    return _centred(bottom == top, revolved([_line(-length / 2, bottom, length / 2, top)]))


def _centred(even: bool, solid: UniformSolid) -> UniformSolid:
    """A solid with its mass centre exactly at the origin if both ends are equal."""
    return replace(solid, com=np.zeros(3)) if even else solid


def capsule(bottom: float, top: float, length: float) -> UniformSolid:
    """The hull of two balls on z about the origin.   bottom, top: their radii at -z and +z.   length: of their centres [m]."""
    if length <= abs(bottom - top):  # one ball lies within the other, or they coincide
        radius, z = (bottom, -length / 2) if bottom > top else (top, length / 2)
        return ellipsoid(np.full(3, radius)).placed(np.eye(3), np.array([0.0, 0.0, z]))
    sine = (bottom - top) / length
    cosine = np.sqrt(1 - sine**2)
    low, high = -length / 2, length / 2
    ends = low + bottom * sine, high + top * sine
    return _centred(bottom == top, revolved([
        (low - bottom, ends[0], (bottom**2 - low**2, 2 * low, -1.0)),
        _line(ends[0], bottom * cosine, ends[1], top * cosine),
        (ends[1], high + top, (top**2 - high**2, 2 * high, -1.0)),
    ]))  # fmt: skip


def polyhedron(points: np.ndarray, triangles: np.ndarray) -> UniformSolid:
    """The solid within a closed mesh, the sum of the signed tetrahedra between its triangles and a point.

    points: (n, 3) [m].   triangles: (m, 3) indices of corners; all of one sense, outwards or inwards.
    """
    origin = points.mean(axis=0)
    a, b, c = np.moveaxis((points - origin)[triangles], 1, 0)
    six = np.einsum("ni,ni->n", a, np.cross(b, c))  # 6 times the volume of each tetrahedron
    volume = six.sum() / 6
    if volume < 0:
        six, volume = -six, -volume
    if not volume > 0:
        return UniformSolid(0.0, origin, np.zeros((3, 3)))
    s = a + b + c
    com = six @ s / (24 * volume)
    second = sum(np.einsum("n,ni,nj->ij", six, x, x) for x in (a, b, c, s)) / 120 - volume * np.outer(com, com)
    return UniformSolid(float(volume), origin + com, np.trace(second) * np.eye(3) - second)


def is_closed(points: np.ndarray, triangles: np.ndarray) -> bool:
    """Whether each edge of a mesh belongs to as many triangles in one sense as in the other, corners at one place being one."""
    _, corner = np.unique(points, axis=0, return_inverse=True)
    t = corner.reshape(-1)[triangles]
    edges = np.concatenate([t[:, [0, 1]], t[:, [1, 2]], t[:, [2, 0]]])
    edges = edges[edges[:, 0] != edges[:, 1]]
    sense = np.where(edges[:, 0] < edges[:, 1], 1, -1)
    _, which = np.unique(np.sort(edges, axis=1), axis=0, return_inverse=True)
    return len(edges) > 0 and not np.bincount(which.reshape(-1), weights=sense).any()


def hull(points: np.ndarray, why: str) -> UniformSolid | None:
    """The convex hull of points (n, 3) [m]; None if they lie in a plane.   why: subject and verb of the message without SciPy.

    Raises ModelError: SciPy is not installed.
    """
    spatial = optional("scipy.spatial", "scipy", why)
    try:
        found = spatial.ConvexHull(points)
    except (spatial.QhullError, ValueError):
        return None
    outward = found.equations[:, :3]
    t = found.simplices
    a, b, c = np.moveaxis(points[t], 1, 0)
    turned = np.einsum("ni,ni->n", np.cross(b - a, c - a), outward) < 0
    t[turned] = t[turned][:, ::-1]
    return polyhedron(points, t)
