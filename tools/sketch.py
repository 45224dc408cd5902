"""A small picture of a machine in motion: its sticks at some instants, the last one in full, and paths of its mass centres."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib import pyplot as plt

from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.viewer.scene import motion

INSTANTS = 7
LINK, LOOP, PATH = "#1b2a3a", "#d55e00", "#0072b2"
AXES = ("#d55e00", "#009e73", "#0072b2")
FLAT = 1e-6
"""A machine thinner than this part of its size is seen along its thin direction."""


def sketch(m: Any, r: xr.Dataset) -> None:
    """Draw one run of a mechanism into a new figure of matplotlib.

    Args:
        m: the mechanism or System that ran.
        r: its result, with q recorded; of a batch, the first run.
    """
    machine: Mechanism = as_mechanism(m)
    found = motion(machine, r.isel(run=0) if "run" in r.dims else r)
    chosen = np.unique(np.linspace(0, len(found.time) - 1, INSTANTS).round().astype(int))
    ends = found.sticks[chosen]
    spread = np.ptp(np.concatenate([ends.reshape(-1, 3), found.origins.reshape(-1, 3)]), axis=0)
    size, view = spread.max(), _view(spread)
    figure, axes = plt.subplots(figsize=(3.4, 2.4))
    links = ends.shape[1] - found.loops
    for i, sticks in enumerate(ends @ view):
        shade = 0.15 + 0.85 * ((i + 1) / len(ends)) ** 2
        for j, stick in enumerate(sticks):
            if np.linalg.norm(ends[i, j, 0] - ends[i, j, 1]) > FLAT * size:
                axes.plot(*stick.T, color=LINK if j < links else LOOP, alpha=shade, lw=2.2, solid_capstyle="round")
    for path in found.origins.swapaxes(0, 1) @ view:
        axes.plot(*path.T, color=PATH, lw=0.6, alpha=0.6)
    _frames(axes, found.origins[chosen[-1]], found.axes[chosen[-1]], 0.08 * size, view)
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_axis_off()
    figure.tight_layout(pad=0.1)


def _view(spread: np.ndarray) -> np.ndarray:
    """(3, 2) of the two directions seen: a plane machine in its plane, upright if it has z, any other one from the side."""
    thin = np.flatnonzero(spread < FLAT * spread.max())
    if len(thin):
        return np.delete(np.eye(3), thin[-1] if 2 not in thin or len(thin) == 1 else thin[0], axis=1)
    turn, lift = np.deg2rad((35, 20))
    return np.array(
        [[np.cos(turn), np.sin(turn) * np.sin(lift)], [np.sin(turn), -np.cos(turn) * np.sin(lift)], [0, np.cos(lift)]]
    )


def _frames(axes: Any, origins: np.ndarray, quaternions: np.ndarray, length: float, view: np.ndarray) -> None:
    """The axes of each body at the last instant."""
    from scipy.spatial.transform import Rotation

    for origin, turned in zip(origins, Rotation.from_quat(np.roll(quaternions, -1, axis=1)).as_matrix(), strict=True):
        for direction, colour in zip(turned.T, AXES, strict=True):
            axes.plot(*(np.array([origin, origin + length * direction]) @ view).T, color=colour, lw=1.2)
