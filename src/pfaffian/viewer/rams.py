"""Tubes and rods that slide in each other, such as a hydraulic cylinder, and rails: found in a machine, and drawn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from pfaffian.model.body import WORLD
from pfaffian.model.constraint import Closure
from pfaffian.model.pose import Pose
from pfaffian.viewer.scene import PlacedMechanism
from pfaffian.viewer.solids import Solid, rod

NEAR = 1e-6
"""Points closer together than this fraction of the machine's size count as one."""

BARREL, OVERLAP = 0.85, 0.3
"""Length of the tube over the shortest distance of the pins, and part of it in which the rod stays when it is farthest out."""

SHORTEST = 0.6
"""Shortest over longest distance of the pins of a rod that comes out of one tube: limits that allow more are not its own, and
its lengths are those of the motion."""

WIDE, THIN = 0.024, 0.011
"""Radii of tube and rod, as fractions of the machine's size."""


class Slide(NamedTuple):
    """A joint or closure along z of its frames.   bounds: least and largest displacement that its limits allow [m]."""

    name: str
    tube: str
    placement: Pose
    rod: str
    rod_placement: Pose
    bounds: tuple[float, float]


class Ram(NamedTuple):
    """A tube with its pin and a rod with its pin on one line.   tube_pin, rod_pin: (3,) in the frames of their bodies [m].
    axis: (3,) unit vector from the tube's pin to the rod's, in the frame of the tube; in that of the rod, rod_axis.
    distances: shortest and longest distance of the pins [m]."""

    slide: Slide
    tube_pin: np.ndarray
    rod_pin: np.ndarray
    axis: np.ndarray
    rod_axis: np.ndarray
    distances: tuple[float, float]

    def solids(self, size: float) -> dict[str, Solid]:
        """Tube and rod by their bodies, in the frames of these.   size: of the machine [m]."""
        shortest, longest = self.distances
        barrel = BARREL * max(shortest, SHORTEST * longest)
        reach = longest - (1 - OVERLAP) * barrel
        return {
            self.slide.tube: rod(self.tube_pin, self.tube_pin + barrel * self.axis, WIDE * size, 20),
            self.slide.rod: rod(self.rod_pin, self.rod_pin - reach * self.rod_axis, THIN * size),
        }


def slides(k: PlacedMechanism, tube: str | None = None) -> Iterator[Slide]:
    """The joints and closures between two bodies that slide along an axis, and turn about no other.

    tube: the body whose slides are wanted; None: all of them.
    """
    for j in k.m.joints:
        if tube not in (None, j.parent):
            continue
        if j.parent != WORLD and j.pose is None and [f.subgroup.along for f in j.kind.factors] == [(2,)]:
            at = k.m.q_names.index(j.name) if j.name in k.m.q_names else None
            bounds = (-np.inf, np.inf) if at is None else tuple(k.m.q_limits[at].tolist())
            yield Slide(j.name, j.parent, j.placement, j.child, j.child_placement, bounds)
    for c in k.m.all_constraints:
        if not isinstance(c, Closure) or tube not in (None, c.body_a):
            continue
        if WORLD not in (c.body_a, c.body_b) and c.holds.group and c.holds.group.along == (2,):
            yield Slide(c.name, c.body_a, c.placement_a, c.body_b, c.placement_b, (-np.inf, np.inf))


def ram_of(k: PlacedMechanism, slide: Slide, tube: list[np.ndarray], stem: list[np.ndarray]) -> Ram | None:
    """The ram of a slide; None if its bodies are no tube and rod with one pin each on a line along the slide.

    tube, stem: points (3,) of the two bodies, in their frames, at which something acts on them, the slide among them.
    """
    pins = [_pin(k, points, X) for points, X in ((tube, slide.placement), (stem, slide.rod_placement))]
    if pins[0] is None or pins[1] is None:
        return None
    a, b = k.point(slide.tube, pins[0]), k.point(slide.rod, pins[1])
    along = (k.turn(slide.tube) @ k.pose(slide.placement)[0])[:, :, 2]
    s = ((b - a) * along).sum(axis=1)
    aside = float(np.abs(b - a - s[:, None] * along).max())
    sign = float(np.sign(s[0]))
    if aside > NEAR * k.size or not (sign * s > NEAR * k.size).all():
        return None
    q_range = np.array(slide.bounds) + s[0] - displacements(k, slide)[0]
    every = sign * np.concatenate([s, q_range[np.isfinite(q_range)]])
    every = every if every.min() >= SHORTEST * every.max() else sign * s
    axis, rod_axis = (sign * k.pose(X)[0][:, 2] for X in (slide.placement, slide.rod_placement))
    return Ram(slide, pins[0], pins[1], axis, rod_axis, (float(every.min()), float(every.max())))


def rails(k: PlacedMechanism, body: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Both ends (3,) of the line in a body along which each slide of another body moves, from the slide's own place on."""
    for slide in slides(k, body):
        (R, p), along = k.pose(slide.placement), displacements(k, slide)
        low, high = (float(f(along, initial=0.0)) for f in (np.nanmin, np.nanmax))
        yield p + low * R[:, 2], p + high * R[:, 2]


def displacements(k: PlacedMechanism, slide: Slide) -> np.ndarray:
    """(n,) displacement of a slide at each state [m]."""
    (R, p), (_, at) = k.pose(slide.placement), k.pose(slide.rod_placement)
    gap = k.point(slide.rod, at) - k.point(slide.tube, p)
    return (gap * (k.turn(slide.tube) @ R)[:, :, 2]).sum(axis=1)


def _pin(k: PlacedMechanism, points: list[np.ndarray], X: Pose) -> np.ndarray | None:
    """The one point at which a body is held besides its slide; None if there are none or several.   X: of the slide."""
    at = k.pose(X)[1]
    rest = list(points)
    found = next((i for i, x in enumerate(rest) if np.linalg.norm(x - at) <= NEAR * k.size), None)
    if found is not None:
        del rest[found]
    same = all(np.linalg.norm(x - rest[0]) <= NEAR * k.size for x in rest)
    return rest[0] if rest and same else None
