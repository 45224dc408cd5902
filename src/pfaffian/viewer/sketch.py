"""Pictures of bodies without shapes: rods between the points where a body is joined, or a solid of its inertia."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pfaffian.maths.spectrum import principal_axes
from pfaffian.model.body import WORLD, Body
from pfaffian.model.constraint import Closure
from pfaffian.model.force import Potential, Spring, Thruster, Wrench
from pfaffian.model.path import Strand, Through
from pfaffian.model.path_force import PathSpring, Winch
from pfaffian.model.shape import Colour
from pfaffian.parts.elastic import PoseSpring
from pfaffian.parts.fluid import Propeller
from pfaffian.viewer.contacts import compliant, rolling_solids
from pfaffian.viewer.rams import Ram, rails, ram_of, slides
from pfaffian.viewer.scene import PlacedMechanism, ScenePart, body_colour
from pfaffian.viewer.solids import Solid, box, rod, sphere

SPOKE: Colour = (0.93, 0.94, 0.95, 1.0)

THICKNESS = 0.016
"""Radius of rods, as a fraction of the machine's size."""

NEAR = 1e-6
"""Points closer together than this fraction of the machine's size count as one."""

SLENDER = 0.5, 2.0
"""A body is drawn as a slender rod from its joint if its largest moment of inertia over that of the rod is between these."""

BALL = 0.4
"""Largest radius of a ball at the mass centre, as a fraction of its distance from the joint, which it must not hide."""

HUB = 0.08
"""Largest radius of a body to which all others are joined at one point, as a fraction of the machine's size: it must not hide
them."""

HUB_DOFS = 3
"""The rods of a body whose joint has more degrees of freedom than this start at its mass centre, not at the joint."""


def sketches(k: PlacedMechanism) -> Iterator[ScenePart]:
    """Parts for all bodies that have no shapes and are not fixed to a body that has."""
    round_ = dict(rolling_solids(k))
    sliding = {body: [solid] for ram in rams(k) for body, solid in ram.solids(k.size).items()}
    for i, b in enumerate(k.m.bodies):
        if not _shaped(k, b.name):
            for j, solid in enumerate(round_.get(b.name) or sliding.get(b.name) or rods(k, b)):
                colour = body_colour(k, b) if j == 0 or b.name not in round_ else SPOKE
                yield ScenePart(b.name, i, solid, colour, "shapes")


def _shaped(k: PlacedMechanism, body: str) -> bool:
    """Whether a body, or one to which it is fixed, has shapes: the file of a robot gives no shapes to hidden parts."""
    if body in k.bodies and k.m.body(body).shapes:
        return True
    joint = next((j for j in k.m.joints if j.child == body), None)
    return joint is not None and joint.kind.name == "fixed" and joint.mimic is None and _shaped(k, joint.parent)


def rams(k: PlacedMechanism) -> list[Ram]:
    """The tubes and rods without shapes that slide in each other; each body is part of one at most."""
    found, bodies = list[Ram](), set[str]()
    for x in slides(k):
        if not bodies & {x.tube, x.rod} and not _shaped(k, x.tube) and not _shaped(k, x.rod):
            points = [attached(k, k.m.body(body)) for body in (x.tube, x.rod)]
            ram = ram_of(k, x, *points)
            found += [] if ram is None else [ram]
            bodies |= set() if ram is None else {x.tube, x.rod}
    return found


def attached(k: PlacedMechanism, b: Body) -> list[np.ndarray]:
    """Points (3,) of a body, in its frame, at which joints, closures, forces and contacts act on it; the point of the joint to
    its parent comes first."""
    m, points = k.m, list[np.ndarray]()
    for j in m.joints:
        if j.child == b.name and j.nv <= HUB_DOFS:
            points.append(k.pose(j.child_placement)[1])
    for j in m.joints:
        if j.parent == b.name and j.pose is None:
            points.append(k.pose(j.placement)[1])
    for c in m.all_constraints:
        if isinstance(c, Closure):
            ends = ((c.body_a, c.placement_a), (c.body_b, c.placement_b))
            points += [k.pose(X)[1] for body, X in ends if body == b.name]
    for f in (*m.all_forces, *m.actuators):
        points += [k.value(x).ravel() for body, x in _ends(f) if body == b.name]
    points += [k.pose(c.shape_a.placement)[1] for c in compliant(k).values() if c.body_a == b.name]
    return points


def _ends(f: object) -> tuple[tuple[str, Any], ...]:
    """Bodies on which a force or actuator acts, each with the point in its frame; a bushing is where body b is at rest."""
    if isinstance(f, Spring):
        return (f.body_a, f.point_a), (f.body_b, f.point_b)
    if isinstance(f, (PathSpring, Winch)):
        stations = [x for s in f.path.strands if isinstance(s, Strand) for x in s.stations]
        return tuple((x.body, x.point if isinstance(x, Through) else x.frame.p) for x in stations)
    if isinstance(f, Potential) and isinstance(f.function, PoseSpring) and WORLD not in f.function.bodies:
        return (f.function.body_a, f.function.rest.p), (f.function.body_b, np.zeros(3))
    if isinstance(f, Thruster) or (isinstance(f, Wrench) and isinstance(f.value, Propeller)):
        return ((f.body, f.point),)
    return ()


def rods(k: PlacedMechanism, b: Body) -> Iterator[Solid]:
    """Rods from the joint to the parent, or the mass centre, to the other points, and the rails of what slides along the body;
    a solid of the inertia if these are few."""
    points, com = attached(k, b), k.value(b.com).ravel()
    jointed = any(j.child == b.name and j.nv <= HUB_DOFS for j in k.m.joints)
    hub = points.pop(0) if jointed else com
    radius, ends = THICKNESS * k.size, [hub]
    for x in points:
        if min(np.linalg.norm(x - y) for y in ends) > NEAR * k.size:
            ends.append(x)
            yield rod(hub, x, radius)
    for low, high in rails(k, b.name) if k.value(b.mass).any() else ():  # a body without mass stands for coordinates alone
        if np.linalg.norm(high - low) > NEAR * k.size:
            ends.append(high)
            yield rod(low, high, radius)
    distance, largest = float(np.linalg.norm(com - hub)), np.inf
    if len(ends) == 1 and distance > radius and k.value(b.mass).any():
        if jointed and SLENDER[0] < 3 * radius_of_inertia(k, b) ** 2 / distance**2 < SLENDER[1]:
            yield rod(hub, 2 * com - hub, radius)
            return
        yield rod(hub, com, radius)
        largest = BALL * distance
    if len(ends) < (2 if jointed else 3) and (k.value(b.mass).any() or k.value(b.inertia).any()):
        covers = HUB * k.size if points and len(ends) == 1 and distance <= radius else np.inf
        yield from (_within(solid, com, covers) for solid in inertia_solid(k, b, largest))


def _within(solid: Solid, centre: np.ndarray, radius: float) -> Solid:
    """The solid, made smaller about a point if it goes beyond the radius."""
    reach = float(np.linalg.norm(solid.vertices - centre, axis=1).max())
    return solid._replace(vertices=centre + (solid.vertices - centre) * min(1.0, radius / reach))


def radius_of_gyration(k: PlacedMechanism, b: Body) -> float:
    """Root mean square distance of a body's mass from its mass centre [m]; zero without mass or inertia."""
    m, I = k.value(b.mass).item(), k.value(b.inertia)
    return float(np.sqrt(max(np.trace(I), 0.0) / 2 / m)) if m > 0 else 0.0


def radius_of_inertia(k: PlacedMechanism, b: Body) -> float:
    """Distance at which the body's mass, as a point, has the body's largest moment of inertia [m]."""
    return float(np.sqrt(max(np.linalg.eigvalsh(k.value(b.inertia))[-1], 0.0) / k.value(b.mass).item()))


def inertia_box(k: PlacedMechanism, b: Body) -> tuple[Solid, ...]:
    """The box of uniform density that has the body's mass and inertia; no edge is shorter than a rod is thick."""
    m, I = k.value(b.mass).item(), k.value(b.inertia)
    moments, axes = principal_axes(I)
    squares = 6 * (moments.sum() / 2 - moments) * 2 / m if m > 0 else np.zeros(3)
    edges = np.maximum(np.sqrt(np.maximum(squares, 0)), 2 * THICKNESS * k.size)
    axes = axes * np.sign(np.linalg.det(axes))
    return (box(edges).moved(axes, k.value(b.com)),)


def inertia_solid(k: PlacedMechanism, b: Body, largest: float) -> tuple[Solid, ...]:
    """A ball of at most the radius `largest` if all moments of inertia are equal or zero; else the box of the inertia."""
    m, I = k.value(b.mass).item(), k.value(b.inertia)
    moments = np.linalg.eigvalsh((I + I.T) / 2)
    if np.ptp(moments) > 1e-3 * abs(moments).max():
        return inertia_box(k, b)
    radius = np.sqrt(2.5 * max(moments.mean(), 0.0) / m) if m > 0 else 0.0
    return (sphere(max(min(float(radius), largest), 2.2 * THICKNESS * k.size)).moved(np.eye(3), k.value(b.com)),)
