"""One step of a linear least-squares problem: starts eliminated, with damping, priors and bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

SINGULAR = 1e-8
"""A direction with a singular value below this fraction of the largest one is not determined, and does not change."""


class WithoutStarts(NamedTuple):
    """The triangles without the starts.   R: (segments * r, n), rhs: (segments * r,) with R dtheta = rhs in least squares.
    starts: (segments, k, n + 1), S with S[:, :, n] - S[:, :, :n] dtheta, the changes of the starts along their directions.
    rank: how many directions of all starts are determined."""

    R: np.ndarray
    rhs: np.ndarray
    starts: np.ndarray
    rank: int


def reduced(triangles: np.ndarray, k: int, damping: float = 0.0) -> WithoutStarts:
    """Eliminate the k starts of each segment.   damping: of the starts, relative to the square of the length of each column.

    Directions of a start that nothing measures, such as the heading of a vehicle with a gyro alone, do not change; what the
    rows say about theta beyond the determined directions is kept.
    """
    size = np.sqrt((triangles[:, :, :k] ** 2).sum(axis=1))
    if damping:
        rows = np.zeros((len(triangles), k, triangles.shape[2]))
        rows[:, np.arange(k), np.arange(k)] = np.sqrt(damping) * size
        triangles = np.asarray(np.linalg.qr(np.concatenate([triangles, rows], axis=1), mode="r"))
    size = np.where(size > 0, size, 1.0)
    U, s, Vt = np.linalg.svd(triangles[:, :k, :k] / size[:, None])
    determined = s > SINGULAR * s[:, :1]
    turned = U.swapaxes(1, 2) @ triangles[:, :k, k:]
    inverse = np.where(determined, 1 / np.where(determined, s, 1.0), 0.0)
    starts = Vt.swapaxes(1, 2) @ (inverse[:, :, None] * turned) / size[:, :, None]
    rest = np.concatenate([np.where(determined[:, :, None], 0.0, turned), triangles[:, k:, k:]], axis=1)
    rest = rest.reshape(-1, rest.shape[2])
    return WithoutStarts(rest[:, :-1], rest[:, -1], starts, int(determined.sum()))


class Settings(NamedTuple):
    """What a solution may be.

    bounds: (n, 2) of theta.   prior: (n, 2) values and standard deviations, infinite where there is none.   most: iterations.
    allowed: whether numbers are physically possible.
    """

    bounds: np.ndarray
    prior: np.ndarray
    most: int
    allowed: Callable[[np.ndarray], bool]


def bounded_step(R: np.ndarray, rhs: np.ndarray, theta: np.ndarray, damping: float, s: Settings) -> tuple[np.ndarray, float]:
    """The damped step of R dtheta = rhs in least squares, with priors and bounds, and the square of its length."""
    n = len(theta)
    R, rhs = (np.vstack([R, np.diag(1 / s.prior[:, 1])]), np.append(rhs, (s.prior[:, 0] - theta) / s.prior[:, 1]))
    Q, R = np.linalg.qr(R)
    rhs, size = Q.T @ rhs, np.sqrt((R**2).sum(axis=0))
    size = np.where(size > 0, size, 1.0)
    free, step = np.ones(n, bool), np.zeros(n)
    for _ in range(n + 1):
        damped = np.vstack([R, np.sqrt(damping) * np.diag(size)])[:, free] / size[free]
        step = np.zeros(n)
        step[free] = np.linalg.lstsq(damped, np.append(rhs, np.zeros(n)), rcond=SINGULAR)[0] / size[free]
        out = free & (((theta <= s.bounds[:, 0]) & (step < 0)) | ((theta >= s.bounds[:, 1]) & (step > 0)))
        if not out.any():
            break
        free &= ~out
    return step, float(((R @ step) ** 2).sum())
