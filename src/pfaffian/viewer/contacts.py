"""Where a machine touches its surroundings: the planes on which it stands or rolls, its feet, and obstacles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from pfaffian.model.body import WORLD
from pfaffian.model.constraint import Closure, Holonomic, Nonholonomic
from pfaffian.model.force import Wrench
from pfaffian.model.pose import Pose
from pfaffian.model.shape import Colour, Shape
from pfaffian.parts.contact import Contact
from pfaffian.parts.tyre import TyreForce
from pfaffian.parts.wheels import Ball, Blade, Disk, Ellipsoid, Height, Plane, Slip
from pfaffian.viewer.scene import PlacedMechanism, ScenePart
from pfaffian.viewer.solids import MAKERS, Solid, box, cylinder, sphere, towards

FOOT: Colour = (0.20, 0.21, 0.24, 1.0)
OBSTACLE: Colour = (0.62, 0.64, 0.68, 1.0)

FOOT_SIZE = 0.024
"""Smallest radius of a foot, as a fraction of the machine's size."""


class Ground(NamedTuple):
    """A plane of the world on which a machine stands or rolls.   point: (3,) [m].   normal: (3,) unit vector."""

    point: np.ndarray
    normal: np.ndarray


def rolling(k: PlacedMechanism) -> Iterator[Disk | Ball | Ellipsoid | Blade]:
    """What rolls or slides on a plane, once for each contact: disks, balls, ellipsoids, blades, tyres."""
    found = list[Disk | Ball | Ellipsoid | Blade]()
    for c in k.m.all_constraints:
        row = c.eta if isinstance(c, Nonholonomic) else c.phi if isinstance(c, Holonomic) else None
        if isinstance(row, (Slip, Height)):
            found.append(row.of)
    found += [f.value.disk for f in k.m.all_forces if isinstance(f, Wrench) and isinstance(f.value, TyreForce)]
    yield from (x for i, x in enumerate(found) if x not in found[:i])


def compliant(k: PlacedMechanism) -> dict[str, Contact]:
    """The compliant contacts of the machine, by name."""
    return {c.name: c.of for c in k.m.compounds if isinstance(c.of, Contact)}


def grounds(k: PlacedMechanism) -> Iterator[Ground]:
    """The planes of the world on which something rolls, slides, stands or is kept."""
    for plane in (x.plane for x in rolling(k)):
        if plane.on == WORLD:
            yield _of_plane(k, plane)
    for c in compliant(k).values():
        if isinstance(c.shape_b, Pose) and c.body_b == WORLD:
            yield _of_pose(k, c.shape_b)
    for closure in k.m.all_constraints:
        if isinstance(closure, Closure) and closure.kind == "point-on-plane" and closure.body_a == WORLD:
            yield _of_pose(k, closure.placement_a)


def _of_plane(k: PlacedMechanism, plane: Plane) -> Ground:
    return Ground(k.value(plane.through).ravel(), k.value(plane.axes)[:, 2])


def _of_pose(k: PlacedMechanism, X: Pose) -> Ground:
    R, p = k.pose(X)
    return Ground(p, R[:, 2])


def feet(k: PlacedMechanism) -> Iterator[ScenePart]:
    """A solid where each compliant contact is: a ball for a point, else its shape; and what it touches, unless a plane."""
    smallest = FOOT_SIZE * k.size
    for name, c in compliant(k).items():
        yield ScenePart(name, k.number_of(c.body_a), _solid(k, c.shape_a, smallest), FOOT, "contacts")
        if isinstance(c.shape_b, Shape):
            colour = OBSTACLE if c.body_b == WORLD else FOOT
            yield ScenePart(name, k.number_of(c.body_b), _solid(k, c.shape_b, smallest), colour, "contacts")


def _solid(k: PlacedMechanism, shape: Shape, smallest: float) -> Solid:
    """The solid of a shape of a contact; a ball of at least the radius `smallest`."""
    size = k.value(shape.size).ravel()
    solid = sphere(max(float(size[0]), smallest)) if shape.kind == "sphere" else MAKERS[shape.kind](size)
    return solid.moved(*k.pose(shape.placement))


def rolling_solids(k: PlacedMechanism) -> Iterator[tuple[str, list[Solid]]]:
    """Names of the bodies that roll, with the wheels, balls or ellipsoids that they are; a bar shows the turns of wheels."""
    for of in rolling(k):
        if isinstance(of, Disk):
            r = k.value(of.radius).item()
            solids = [cylinder(r, 0.12 * r, 36), box((1.7 * r, 0.1 * r, 0.16 * r)), cylinder(0.18 * r, 0.2 * r)]
            yield of.body, [x.moved(towards(k.value(of.axis)), k.value(of.centre)) for x in solids]
        elif isinstance(of, (Ball, Ellipsoid)):
            axes = k.value(of.radius).repeat(3) if isinstance(of, Ball) else k.value(of.semi_axes).ravel()
            ball = sphere(1.0)
            yield of.body, [ball._replace(vertices=ball.vertices * axes).moved(np.eye(3), k.value(of.centre))]
