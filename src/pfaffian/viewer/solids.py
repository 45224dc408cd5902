"""Triangles of solids in closed form: boxes, spheres, cylinders, capsules and cones."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

AROUND = 32
"""Number of sides with which round solids are drawn."""


class Solid(NamedTuple):
    """A surface of triangles.   vertices: (n, 3) [m].   faces: (m, 3) indices of vertices, anticlockwise seen from outside.
    colour: (4,) from the mesh file, or None."""

    vertices: np.ndarray
    faces: np.ndarray
    colour: tuple[float, ...] | None = None

    def moved(self, R: np.ndarray, p: np.ndarray) -> Solid:
        """The solid rotated by R, then displaced by p."""
        return self._replace(vertices=self.vertices @ np.asarray(R).T + np.ravel(p))


def box(size: Any) -> Solid:
    """A box centred at the origin.   size: (3,) lengths of its edges [m]."""
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) / 2
    quads = np.array([[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]])
    return Solid(corners * np.asarray(size, dtype=float), np.concatenate([quads[:, :3], quads[:, [0, 2, 3]]]))


def turned(profile: Any, around: int = AROUND) -> Solid:
    """The solid of revolution about z of a profile (n, 2) of radii and heights; closed if its end radii are zero."""
    r, z = np.asarray(profile, dtype=float).T
    angle = 2 * np.pi * np.arange(around) / around
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    rings = np.concatenate([r[:, None, None] * ring, np.broadcast_to(z[:, None, None], (len(r), around, 1))], axis=2)
    i = np.arange(around)
    faces = []
    for k in range(len(r) - 1):
        a, b = k * around + i, (k + 1) * around + i
        an, bn = k * around + (i + 1) % around, (k + 1) * around + (i + 1) % around
        faces += [np.stack([a, an, bn], 1)] if r[k] > 0 else []
        faces += [np.stack([a, bn, b], 1)] if r[k + 1] > 0 else []
    return Solid(rings.reshape(-1, 3), np.concatenate(faces))


def cylinder(radius: float, length: float, around: int = AROUND) -> Solid:
    h = length / 2
    return turned([(0, -h), (radius, -h), (radius, h), (0, h)], around)


def cone(radius: float, length: float) -> Solid:
    return turned([(0, -length / 2), (radius, -length / 2), (0, length / 2)])


def capsule(radius: float, length: float) -> Solid:
    angle = np.linspace(0, np.pi / 2, 7)
    cap = [(radius * np.sin(a), length / 2 + radius * np.cos(a)) for a in angle]
    cap[0] = (0.0, length / 2 + radius)
    return turned([(r, -z) for r, z in cap] + cap[::-1])


def sphere(radius: float) -> Solid:
    angle = np.linspace(0, np.pi, 13)
    profile = np.stack([radius * np.sin(angle), -radius * np.cos(angle)], axis=1)
    profile[[0, -1], 0] = 0
    return turned(profile)


MAKERS = {
    "box": lambda x: box(x),
    "sphere": lambda x: sphere(x[0]),
    "cylinder": lambda x: cylinder(*x),
    "capsule": lambda x: capsule(*x),
    "cone": lambda x: cone(*x),
}
"""Kind of shape -> function that makes the solid from its size."""


def rod(a: np.ndarray, b: np.ndarray, radius: float, around: int = 12) -> Solid:
    """A cylinder from a point a to a point b [m]."""
    along = np.asarray(b, dtype=float) - a
    length = float(np.linalg.norm(along))
    solid = cylinder(radius, length, around)
    return solid.moved(towards(along), (np.asarray(a) + b) / 2)


def towards(direction: Any) -> np.ndarray:
    """A rotation (3, 3) that takes z to the direction; the identity if that is zero."""
    z = np.asarray(direction, dtype=float).ravel()
    length = np.linalg.norm(z)
    if length == 0:
        return np.eye(3)
    z = z / length
    x = np.cross([0.0, 1.0, 0.0] if abs(z[1]) < 0.9 else [1.0, 0.0, 0.0], z)
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(z, x), z], axis=1)
