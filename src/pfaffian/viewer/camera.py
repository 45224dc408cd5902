"""Where a picture is taken from: a camera that has a whole motion in view."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pfaffian.maths import so3
from pfaffian.viewer.scene import Scene

VIEW = 0.6
"""Height of the picture at distance 1: twice the tangent of half the angle of view."""

AZIMUTH, ELEVATION = 0.5, 0.32
"""Angles of the line of sight: from the normal of the motion's plane, and above the horizon [rad]."""

MARGIN = 1.1
"""Distance of the camera, as a multiple of the smallest that has everything in view."""

PLANAR = 0.12
"""A motion is planar if its smallest extent is below this fraction of the second smallest."""


class Camera(NamedTuple):
    """A camera.   eye: (3,) its position [m].   target: (3,) the point that it faces [m].   up: (3,) the upward direction."""

    eye: np.ndarray
    target: np.ndarray
    up: np.ndarray

    @property
    def axes(self) -> np.ndarray:
        """(3, 3) unit vectors as rows: to the right, up, and towards the viewer."""
        back = self.eye - self.target
        back = back / np.linalg.norm(back)
        right = np.cross(self.up, back)
        right /= np.linalg.norm(right)
        return np.stack([right, np.cross(back, right), back])


def framing(scene: Scene, aspect: float = 4 / 3, around: float = 0.0) -> Camera:
    """The camera that has a whole motion in view, and faces its plane if it is planar.

    aspect: width over height.   around: angle by which it goes round the machine, to the left about the upward direction [rad].
    """
    points = scene.points
    low, high = points.min(axis=0), points.max(axis=0)
    target, direction = (low + high) / 2, so3.exp(around * scene.up).full() @ _direction(scene.up, high - low)
    camera = Camera(target + direction, target, scene.up)
    in_view = (points - target) @ camera.axes.T
    distance = np.maximum(np.abs(in_view[:, 0]) / aspect, np.abs(in_view[:, 1])) / (VIEW / 2) + in_view[:, 2]
    return camera._replace(eye=target + max(MARGIN * float(distance.max()), 0.5 * scene.size) * direction)


def following(camera: Camera, point: np.ndarray) -> Camera:
    """The camera displaced so that a point (3,) [m] is in the middle of its picture."""
    return camera._replace(eye=camera.eye + point - camera.target, target=point)


def _direction(up: np.ndarray, extent: np.ndarray) -> np.ndarray:
    """(3,) unit vector from the target to the eye: oblique, less so for a motion in a vertical plane."""
    thin = int(np.argmin(extent))
    planar = extent[thin] < PLANAR * np.sort(extent)[1]
    front = np.eye(3)[thin] if planar else np.array([0.0, 1.0, 0.0])
    horizontal = planar and abs(front @ up) > 0.9
    if abs(front @ up) > 0.9:
        front = np.array([0.0, 1.0, 0.0]) if abs(up[1]) < 0.9 else np.array([1.0, 0.0, 0.0])
    front = front - (front @ up) * up
    front = -front / np.linalg.norm(front)
    azimuth, elevation = (AZIMUTH if planar and not horizontal else 1.8 * AZIMUTH), (3 * ELEVATION if horizontal else ELEVATION)
    sideways = np.cos(azimuth) * front - np.sin(azimuth) * np.cross(up, front)
    return np.cos(elevation) * sideways + np.sin(elevation) * up
