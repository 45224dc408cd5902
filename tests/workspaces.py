"""Closed forms of the joints of parallel machines, each on the branch of the machine's own start."""

from __future__ import annotations

import numpy as np

HUB, CRANK, ROD, PLATE = 0.15, 0.2, 0.45, 0.05
"""Lengths of the delta robot in the zoo [m]."""


def delta_cranks(position: np.ndarray) -> np.ndarray:
    """(k, 3) angles of the cranks of the delta robot with its elbows outwards; NaN where a leg does not reach.

    In the plane of a crank its tip (c cos a, -c sin a) is at the distance `rod` from the ball, of which the part across the
    plane is known.   position: (k, 3) of the platform.
    """
    found = []
    for turn in (0.0, 2 * np.pi / 3, -2 * np.pi / 3):
        c, s = np.cos(turn), np.sin(turn)
        along, across = c * position[:, 0] + s * position[:, 1], -s * position[:, 0] + c * position[:, 1]
        x, z = along + PLATE - HUB, position[:, 2]
        reach = (x**2 + z**2 + across**2 + CRANK**2 - ROD**2) / (2 * CRANK)
        with np.errstate(invalid="ignore"):
            found.append(np.arctan2(-z, x) - np.arccos(reach / np.hypot(x, z)))
    return np.array(found).T


def stewart_legs(position: np.ndarray, rotation: np.ndarray) -> np.ndarray:
    """(k, 6) lengths of the legs of the platform in the zoo.   position: (k, 3).   rotation: (k, 3, 3)."""
    low, high = np.deg2rad([10, 110, 130, 230, 250, 350]), np.deg2rad([50, 70, 170, 190, 290, 310])
    feet = np.stack([np.cos(low), np.sin(low), 0 * low], axis=1)
    balls = 0.6 * np.stack([np.cos(high), np.sin(high), 0 * high], axis=1)
    return np.linalg.norm(position[:, None] + np.einsum("kij,lj->kli", rotation, balls) - feet, axis=2)
