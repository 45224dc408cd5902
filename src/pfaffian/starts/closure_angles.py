"""Coordinates of closures along a motion of the tree, with angles that are continued over whole turns from sample to sample."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from pfaffian.evaluate.arrays import by_name
from pfaffian.model.loop_coordinates import coordinates_of_closures
from pfaffian.model.mechanism import Mechanism
from pfaffian.starts.closures_as_joints import measured
from pfaffian.terms.loop_joints import closing_joint

TURN = 2 * np.pi


class ClosuresAlong(NamedTuple):
    """What the coordinates of closures along a motion follow from, besides the motion.

    p: (runs, np) parameters.   t: [s], one instant, or (samples,).   given: name -> (samples, runs) of given coordinates.
    """

    m: Mechanism
    p: np.ndarray
    t: np.ndarray
    backend: Any
    given: Mapping[str, np.ndarray]

    def of(self, q: np.ndarray, v: np.ndarray) -> dict[str, np.ndarray]:
        """Name -> (samples, runs) of each coordinate.   q: (samples, runs, nq), v: (samples, runs, nv), NaN where unknown."""
        names, (n, runs, _) = coordinates_of_closures(self.m), q.shape
        if not names:
            return {}
        rates = np.nan_to_num(v).reshape(n * runs, -1)
        t = np.repeat(self.t, runs)[:, None] if len(self.t) > 1 else self.t
        known, closures = np.isfinite(q).all(axis=2), tuple(self.m.loop_joints)
        x, w = measured(self.m, closures, q.reshape(n * runs, -1), rates, np.tile(self.p, (n, 1)), t, self.backend)
        x[~known.ravel()] = np.nan
        w[~np.isfinite(v).all(axis=2).ravel()] = 0
        x, w = x.reshape(n, runs, -1), w.reshape(n, runs, -1)
        ahead = np.diff(self.t)[:, None, None] * (w[1:] + w[:-1]) / 2 if len(self.t) > 1 and w.shape == x.shape else 0
        angles = [unit == "rad" for c in self.m.loop_joints.values() for unit in closing_joint(c).q_units]
        x[..., angles] = _continued(x, ahead)[..., angles]
        return by_name(x, names) | dict(self.given)


def _continued(x: np.ndarray, ahead: np.ndarray | int) -> np.ndarray:
    """Angles x (samples, ...), each by whole turns nearest to the one before it and what it has moved on, `ahead`; after
    samples that are unknown they begin anew."""
    off = (np.diff(x, axis=0) - ahead) / TURN
    turns = np.zeros_like(x)
    turns[1:] = -np.cumsum(np.nan_to_num(np.round(off)), axis=0)
    return x + TURN * turns
