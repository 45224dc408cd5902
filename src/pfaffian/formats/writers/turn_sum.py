"""The angle of a hinge that closes a planar loop as a sum of angles of the tree, for formats without such hinges."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pfaffian.formats.writers.xml_write import plain
from pfaffian.model.body import WORLD
from pfaffian.model.constraint import Closure
from pfaffian.model.mechanism import Mechanism

PARALLEL = 1e-9
"""Largest sine of the angle between two axes that count as parallel."""


class TurnSum(NamedTuple):
    """The angle of a closure: zero + sum of sign * angle.   signs: name of a hinge -> 1 or -1.   zero: [rad]."""

    signs: dict[str, float]
    zero: float


def turn_sum(m: Mechanism, c: Closure) -> TurnSum | None:
    """The angle of a closure as a sum; None if it is no hinge, or if not all axes of its loop are parallel to it."""
    if c.kind != "revolute":
        return None
    leading = {j.child: j for j in m.joints}
    signs, turned = dict[str, float](), list[np.ndarray]()
    for way, body, frame in ((-1.0, c.body_a, c.placement_a), (1.0, c.body_b, c.placement_b)):
        R, _ = plain(frame, f"constraint {c.name!r}")
        while body != WORLD:
            j = leading[body]
            what = f"joint {j.name!r}"
            if j.pose is not None or j.mimic is not None or j.kind.name not in ("revolute", "prismatic", "fixed"):
                return None
            R = plain(j.child_placement, what)[0].T @ R
            if j.kind.name == "revolute":
                if np.abs(R[:2, 2]).max() > PARALLEL:
                    return None
                signs[j.name] = signs.get(j.name, 0.0) + way * np.sign(R[2, 2])
            R, body = plain(j.placement, what)[0] @ R, j.parent
        turned.append(R)
    R = turned[0].T @ turned[1]
    if np.abs(R[:2, 2]).max() > PARALLEL or R[2, 2] < 0:
        return None
    return TurnSum({name: sign for name, sign in signs.items() if sign}, float(np.arctan2(R[1, 0], R[0, 0])))
