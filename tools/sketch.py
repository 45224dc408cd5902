"""A small picture of a machine in motion: its sticks at some instants, the last one in full, and paths of its bodies.

Bodies that move freely, or have no stick, are drawn as the cuboids of their inertia.
"""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
import xarray as xr
from matplotlib import pyplot as plt

import pfaffian as pf
from pfaffian.model.body import WORLD, Body
from pfaffian.model.constraint import Closure
from pfaffian.model.force import Spring
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.terms.kinematics import Kinematics
from pfaffian.viewer.scene import States, states_of

INSTANTS = 6
LINK, LOOP, PATH, ELASTIC = "#1b2a3a", "#d55e00", "#0072b2", "#009e73"
FREE = ("free", "planar", "planar-translation", "translation")
FLAT = 1e-6
"""A machine thinner than this part of its size is seen along its thin direction."""
CORNERS = np.array(list(product((-0.5, 0.5), repeat=3)))
EDGES = [(i, j) for i in range(8) for j in range(i) if np.abs(CORNERS[i] - CORNERS[j]).sum() == 1]


class Lines(NamedTuple):
    """Of one colour.   ends: (instants, lines, 2, 3) [m].   width: in points."""

    ends: np.ndarray
    colour: str
    width: float


class _Motion(NamedTuple):
    """sticks: (n, sticks, 2, 3) end points [m].   loops: how many of the last sticks belong to closures.
    origins: (n, bodies, 3) [m].   turned: (n, bodies, 3, 3) rotations."""

    sticks: np.ndarray
    loops: int
    origins: np.ndarray
    turned: np.ndarray


def _motion(m: Mechanism, states: States) -> _Motion:
    """Poses of bodies and ends of sticks in each state."""
    parts = {"ends": lambda T: _ends(T.kinematics), "bodies": lambda T: _bodies(T.kinematics)}
    found = pf.compile_terms(m, parts).matrices(states.q, parameters=states.p if len(states.p) else None)
    ends, bodies = found["ends"].swapaxes(1, 2), found["bodies"].swapaxes(1, 2)
    loops = sum(2 for c in m.constraints if isinstance(c, Closure))
    turned = bodies[:, :, 3:].reshape(len(bodies), -1, 3, 3).swapaxes(2, 3)
    return _Motion(ends.reshape(len(ends), -1, 2, 3), loops, bodies[:, :, :3], turned)


def _ends(k: Kinematics) -> ca.SX:
    """(3, 2 n) ends of sticks: body to joint on both sides, across the joint, body to mass centre; then the closures."""
    ends: list[ca.SX] = []
    for j in k.mechanism.joints:
        there = [k.pose(j.parent) @ j.placement, k.pose(j.child) @ j.child_placement]
        ends += [_origin(k, j.parent), there[0].p, there[0].p, there[1].p, there[1].p, _origin(k, j.child)]
    for b in k.mechanism.bodies:
        ends += [_origin(k, b.name), k.position(b.name, b.com)]
    for c in k.mechanism.constraints:
        if isinstance(c, Closure):
            ends += [_origin(k, c.body_a), (k.pose(c.body_a) @ c.placement_a).p]
            ends += [_origin(k, c.body_b), (k.pose(c.body_b) @ c.placement_b).p]
    return ca.horzcat(*ends)


def _origin(k: Kinematics, body: str) -> ca.SX:
    return k.pose(body).p if body != WORLD else ca.SX.zeros(3, 1)


def _bodies(k: Kinematics) -> ca.SX:
    """(12, bodies): position, then the rotation column by column."""
    return ca.horzcat(*[ca.vertcat(k.pose(b.name).p, ca.vec(k.pose(b.name).R)) for b in k.mechanism.bodies])


def sketch(m: Any, r: xr.Dataset) -> None:
    """Draw one run of a mechanism into a new figure of matplotlib.

    Args:
        m: the mechanism or System that ran.
        r: its result, with q recorded; of a batch, the first run.
    """
    machine: Mechanism = as_mechanism(m)
    found = _motion(machine, states_of(machine, r.isel(run=0) if "run" in r.dims else r))
    chosen = np.unique(np.linspace(0, len(found.origins) - 1, INSTANTS).round().astype(int))
    turned = found.turned[chosen]
    groups = [*_sticks(machine, found.sticks[chosen], found.loops)]
    groups += [*_solids(machine, found.origins[chosen], turned), *_springs(machine, found.origins[chosen], turned)]
    points = np.concatenate([g.ends.reshape(-1, 3) for g in groups] + [found.origins.reshape(-1, 3)])
    view = _view(np.ptp(points, axis=0))
    figure, axes = plt.subplots(figsize=(3.4, 2.4))
    for path in found.origins.swapaxes(0, 1) @ view:
        axes.plot(*path.T, color=PATH, lw=0.6, alpha=0.6)
    for group in groups:
        for i, lines in enumerate(group.ends @ view):
            shade = 0.15 + 0.85 * ((i + 1) / len(chosen)) ** 2
            for line in lines:
                axes.plot(*line.T, color=group.colour, alpha=shade, lw=group.width, solid_capstyle="round")
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_axis_off()
    figure.tight_layout(pad=0.1)


def _sticks(m: Mechanism, ends: np.ndarray, loops: int) -> list[Lines]:
    """Links and closures, but not the way from a frame to a body that moves freely in it."""
    across = [3 * i + k for i, j in enumerate(m.joints) if j.kind.name in FREE for k in (0, 1, 2)]
    first = ends.shape[1] - loops
    held = [c for c in m.constraints if isinstance(c, Closure)]
    to_world = [first + 2 * i + k for i, c in enumerate(held) for k, b in enumerate((c.body_a, c.body_b)) if b == WORLD]
    links = [i for i in range(first) if i not in across]
    return [
        Lines(ends[:, links], LINK, 2.2),
        Lines(ends[:, [i for i in range(first, ends.shape[1]) if i not in to_world]], LOOP, 2.2),
    ]


def _solids(m: Mechanism, origins: np.ndarray, turned: np.ndarray) -> list[Lines]:
    """Edges of the cuboids of bodies that move freely, or that have no length."""
    free = {j.child for j in m.joints if j.kind.name in FREE}
    long = {j.parent for j in m.joints if np.abs(m.value(j.placement.p)).max() > 0}
    out = []
    for i, b in enumerate(m.bodies):
        centre = m.value(b.com).ravel()
        if b.name in free or not (b.name in long or np.abs(centre).max() > 0):
            axes, sides = _cuboid(m, b)
            corners = centre + (CORNERS * sides) @ axes.T
            at = origins[:, None, i] + np.einsum("tij,cj->tci", turned[:, i], corners)
            out.append(Lines(at[:, EDGES], LINK, 1.0))
    return out


def _cuboid(m: Mechanism, b: Body) -> tuple[np.ndarray, np.ndarray]:
    """Principal axes (3, 3) and sides (3,) [m] of the uniform cuboid of the body's mass and inertia."""
    moments, axes = np.linalg.eigh(m.value(b.inertia))
    mass = float(m.value(b.mass).item())
    squares = 6 * (moments.sum() - 2 * moments) / mass if mass > 0 else np.zeros(3)
    return axes, np.sqrt(np.maximum(squares, 0))


def _springs(m: Mechanism, origins: np.ndarray, turned: np.ndarray) -> list[Lines]:
    """From point to point."""
    place = {b.name: i for i, b in enumerate(m.bodies)}

    def at(body: str, point: Any) -> np.ndarray:
        x = m.value(point).ravel()
        return np.tile(x, (len(origins), 1)) if body == WORLD else origins[:, place[body]] + turned[:, place[body]] @ x

    ends = [np.stack([at(s.body_a, s.point_a), at(s.body_b, s.point_b)], 1) for s in m.forces if isinstance(s, Spring)]
    return [Lines(np.stack(ends, 1), ELASTIC, 1.4)] if ends else []


def _view(spread: np.ndarray) -> np.ndarray:
    """(3, 2) of the two directions seen: a plane machine in its plane, upright if it has z, any other one from the side."""
    thin = np.flatnonzero(spread < FLAT * spread.max())
    if len(thin):
        return np.delete(np.eye(3), thin[-1] if 2 not in thin or len(thin) == 1 else thin[0], axis=1)
    turn, lift = np.deg2rad((35, 20))
    return np.array(
        [[np.cos(turn), np.sin(turn) * np.sin(lift)], [np.sin(turn), -np.cos(turn) * np.sin(lift)], [0, np.cos(lift)]]
    )
