"""Quadrilaterals that almost fold: two links are nearly as long as the other two, or three as the fourth.

Where all links are nearly in line, both assemblies come close to each other and part again. Which of them a crank leads to is
known by the side of the diagonal, from the crank's tip to the foot of the rocker, on which the coupler lies.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import casadi as ca
import numpy as np

import pfaffian as pf

LENGTHS = {"ground": 1.6, "crank": 1.0, "coupler": 0.6, "rocker": 1.3}
PLACES = {"A at": 0.8, "B at": 0.5, "D at": 0.9}


class Quadrilaterals(NamedTuple):
    """Quadrilaterals: lengths of the links [m], the crank's angle at the beginning and how far it turns [rad], and the side of
    the diagonal, 1 or -1; arrays (n,)."""

    ground: np.ndarray
    crank: np.ndarray
    coupler: np.ndarray
    rocker: np.ndarray
    begin: np.ndarray
    way: np.ndarray
    side: np.ndarray

    def diagonal(self, angle: np.ndarray) -> np.ndarray:
        """From the tip of the crank to the foot of the rocker, as complex numbers."""
        return self.ground - self.crank * np.exp(1j * angle)


@cache
def quadrilateral() -> pf.Mechanism:
    """A four-bar about z, closed at C, whose coordinates are zero at the angles of its last three parameters."""
    p = {name: pf.Parameter(name, x) for name, x in (LENGTHS | PLACES).items()}

    def at(x, angle):
        return pf.pose(ca.vertcat(x, 0, 0), rpy=(0, 0, angle))

    joints = [
        pf.joint("A", "revolute", "world", "crank", placement=at(0, p["A at"])),
        pf.joint("B", "revolute", "crank", "coupler", placement=at(p["crank"].symbol, p["B at"])),
        pf.joint("D", "revolute", "world", "rocker", placement=at(p["ground"].symbol, p["D at"])),
    ]
    ends = {"placement_a": at(p["coupler"].symbol, 0), "placement_b": at(p["rocker"].symbol, 0)}
    loop = pf.closure("C", "revolute", "coupler", "rocker", **ends)
    bodies = [pf.body(n, 1.0, inertia=0.1) for n in ("crank", "coupler", "rocker")]
    return pf.mechanism("quadrilateral", bodies, joints, constraints=[loop], parameters=list(p.values()))


def draw(count: int, seed: int) -> Quadrilaterals:
    """Quadrilaterals between 1e-7 and a third short of folding, half of which begin beside the fold; the diagonal stays within
    what coupler and rocker reach on the whole way, so that one of both assemblies leads to its end."""
    random, found = np.random.default_rng(seed), list[tuple[float, ...]]()
    while len(found) < count:
        crank, coupler, rocker = random.uniform(0.2, 1.5, 3)
        off = 1 + random.choice([-1, 1]) * 10 ** random.uniform(-7, -0.5)
        ground = abs(random.choice([-1, 1], 3) @ np.array([crank, coupler, rocker])) * off
        begin, way = random.uniform(-np.pi, np.pi), random.uniform(-2.5, 2.5)
        if random.random() < 0.5:
            begin = random.choice([0, np.pi]) + random.choice([-1, 1]) * 10 ** random.uniform(-5, -0.5)
        x = Quadrilaterals(*map(np.asarray, (ground, crank, coupler, rocker, begin, way, random.choice([-1, 1]))))
        folds = np.arange(-4, 5) * np.pi  # where the diagonal is shortest or longest
        angles = np.r_[begin, begin + way, folds[(folds > min(begin, begin + way)) & (folds < max(begin, begin + way))]]
        d = np.abs(x.diagonal(angles))
        if ground > 0.1 and np.minimum(d - abs(coupler - rocker), coupler + rocker - d).min() > 1e-8:
            found.append(tuple(map(float, x)))
    return Quadrilaterals(*np.array(found).T)


def _at(x: Quadrilaterals, angle: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Directions of the coupler and of the rocker where the crank is at this angle."""
    d = x.diagonal(angle)
    inner = np.arccos(np.clip((x.coupler**2 + np.abs(d) ** 2 - x.rocker**2) / (2 * x.coupler * np.abs(d)), -1, 1))
    coupler = np.angle(d) + x.side * inner
    return coupler, np.angle(x.coupler * np.exp(1j * coupler) - d)


def motion(x: Quadrilaterals, turned: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates B and D of `quadrilateral` where the crank has turned by `turned` (..., n)."""
    (b, d), (coupler, rocker) = _at(x, x.begin), _at(x, x.begin + turned)
    return coupler - b - turned, rocker - d


def parameters_of(x: Quadrilaterals) -> dict[str, np.ndarray]:
    """The parameters with which the neutral state is the beginning."""
    b, d = _at(x, x.begin)
    return dict(zip(LENGTHS, x[:4], strict=True)) | {"A at": x.begin, "B at": b - x.begin, "D at": d}
