"""Coordinates whose whole turns matter, because they are those of screws, or in a loop with one.

The pose of a screw tells its turn, but the rows of a closure that screws are satisfied at every whole turn.
"""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca
import numpy as np

from pfaffian.maths.values import values
from pfaffian.model.constraint import Closure
from pfaffian.model.mechanism import Mechanism
from pfaffian.terms.terms import shared
from pfaffian.terms.traced_now import remembered


class ScrewLoops(NamedTuple):
    """Loops with screws.   around: (nq,) of bool, their coordinates.   pitches: p -> (n, 1) pitch of each screw [m/rad]."""

    around: np.ndarray
    pitches: ca.Function


@remembered(64)
def screw_loops(m: Mechanism) -> ScrewLoops | None:
    """The loops of a mechanism that contain a screw; None if there are none."""
    tree, around, pitches = shared(m).kinematics.tree, set[int](), list[ca.SX]()
    for c in (c for c in m.ideal if isinstance(c, Closure)):
        links = set(tree.path(tree.place[c.body_a][0])) ^ set(tree.path(tree.place[c.body_b][0]))
        groups = [tree.links[i].subgroup for i in sorted(links)]
        here = [ca.SX(g.pitch) for g in groups if g is not None and g.screws]
        here += [c.number] if c.holds.group is not None and c.holds.group.screws else []
        around |= links if here else set()
        pitches += here
    if not pitches:
        return None
    return ScrewLoops(_entries(m, around), ca.Function("pitches", [m.p_symbols], [ca.vertcat(*pitches)]))


@remembered(64)
def periodic(m: Mechanism) -> np.ndarray:
    """(nq,) of bool: angles that a whole turn leaves as they are, for the machine and for what a user reads from it.

    A whole turn moves a screw, and what follows an angle. In a loop with a screw an angle tells how far the screw has turned.
    """
    tree, loops = shared(m).kinematics.tree, screw_loops(m)
    followed = {name for j in m.joints if j.mimic for name in j.mimic.joints}
    screws = {i for i, x in enumerate(tree.links) if (x.subgroup is not None and x.subgroup.screws) or x.joint.name in followed}
    angles = np.array([unit == "rad" for unit in m.q_units], dtype=bool)
    angles &= ~_entries(m, screws)
    return angles if loops is None else angles & ~loops.around


def turns_of_slides(m: Mechanism, p: np.ndarray) -> np.ndarray:
    """(runs, nq) or (1, nq) the angle by which a screw turns at most for each slide in its loop [rad/m]; zero elsewhere."""
    loops = screw_loops(m)
    if loops is None:
        return np.zeros((1, m.nq))
    slides = loops.around & np.array([unit == "m" for unit in m.q_units], dtype=bool)
    each = p[:1] if (p == p[:1]).all() else p
    pitches = np.abs(np.array([values(loops.pitches, x)[0][:, 0] for x in each]))
    return slides * np.divide(1, pitches, out=np.zeros_like(pitches), where=pitches > 0).max(axis=1, keepdims=True)


def _entries(m: Mechanism, links: set[int]) -> np.ndarray:
    """(nq,) of bool: the coordinates of these links' joints."""
    found = np.zeros(m.nq, dtype=bool)
    for name in {shared(m).kinematics.tree.links[i].joint.name for i in links}:
        if name in m.q_slices:
            found[m.q_slices[name]] = True
    return found
