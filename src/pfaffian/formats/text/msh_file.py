"""MuJoCo's own binary kind of mesh file (.msh): numbers of vertices, normals, texture coordinates and triangles, then these."""

from __future__ import annotations

import numpy as np

HEADER = 16
"""Bytes of the four numbers."""


def read_msh(data: bytes) -> tuple[np.ndarray, np.ndarray] | None:
    """Vertices (n, 3) and triangles (m, 3) of the bytes of a file, which may have no triangles; None if it is not one."""
    if len(data) < HEADER:
        return None
    vertices, normals, coordinates, faces = (int(x) for x in np.frombuffer(data, "<i4", 4))
    if min(vertices, normals, coordinates, faces) < 0 or vertices == 0:
        return None
    if len(data) != HEADER + 12 * (vertices + normals + faces) + 8 * coordinates:
        return None
    places = np.frombuffer(data, "<f4", 3 * vertices, HEADER).reshape(-1, 3).astype(float)
    corners = np.frombuffer(data, "<i4", 3 * faces, len(data) - 12 * faces).reshape(-1, 3)
    sound = np.isfinite(places).all() and (not faces or (corners.min() >= 0 and corners.max() < vertices))
    return (places, corners) if sound else None
