"""Where a picture is taken from: a camera that has a whole motion in sight."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pfaffian.viewer.scene import Scene

VIEW = 0.6
"""Height of the picture at distance 1: twice the tangent of half the angle of view."""

AROUND, ABOVE = 0.5, 0.32
"""The direction of the view off the normal of the motion's plane, and above the horizon [rad]."""

MARGIN = 1.1
"""How much further away the camera stands than needed."""

FLAT = 0.12
"""A motion whose thinnest side is below this fraction of its second is one in a plane."""


class Camera(NamedTuple):
    """eye: (3,) where it stands.   target: (3,) what it looks at.   up: (3,).   [m]"""

    eye: np.ndarray
    target: np.ndarray
    up: np.ndarray

    @property
    def axes(self) -> np.ndarray:
        """(3, 3) rows: to the right, up, and towards the viewer."""
        back = self.eye - self.target
        back = back / np.linalg.norm(back)
        right = np.cross(self.up, back)
        right /= np.linalg.norm(right)
        return np.stack([right, np.cross(back, right), back])


def framing(scene: Scene, aspect: float = 4 / 3) -> Camera:
    """The camera that has all of a motion in sight, across its plane where it is in one."""
    points = scene.points
    low, high = points.min(axis=0), points.max(axis=0)
    target, direction = (low + high) / 2, _direction(scene.up, high - low)
    camera = Camera(target + direction, target, scene.up)
    seen = (points - target) @ camera.axes.T
    need = np.maximum(np.abs(seen[:, 0]) / aspect, np.abs(seen[:, 1])) / (VIEW / 2) + seen[:, 2]
    return camera._replace(eye=target + max(MARGIN * float(need.max()), 0.5 * scene.size) * direction)


def following(camera: Camera, point: np.ndarray) -> Camera:
    """The same view with a point in its middle."""
    return camera._replace(eye=camera.eye + point - camera.target, target=point)


def _direction(up: np.ndarray, extent: np.ndarray) -> np.ndarray:
    """(3,) unit vector from the target to the eye: at an angle from the side, flatter before a motion in a plane."""
    thin = int(np.argmin(extent))
    flat = extent[thin] < FLAT * np.sort(extent)[1]
    front = np.eye(3)[thin] if flat else np.array([0.0, 1.0, 0.0])
    lying = flat and abs(front @ up) > 0.9
    if abs(front @ up) > 0.9:
        front = np.array([0.0, 1.0, 0.0]) if abs(up[1]) < 0.9 else np.array([1.0, 0.0, 0.0])
    front = front - (front @ up) * up
    front = -front / np.linalg.norm(front)
    around, above = (AROUND if flat and not lying else 1.8 * AROUND), (3 * ABOVE if lying else ABOVE)
    sideways = np.cos(around) * front - np.sin(around) * np.cross(up, front)
    return np.cos(above) * sideways + np.sin(above) * up
