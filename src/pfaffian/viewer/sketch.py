"""A body without a shape, from its joints and inertia: rods between the points where it is joined, else a solid."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pfaffian.model.body import WORLD, Body
from pfaffian.model.constraint import Closure, Nonholonomic
from pfaffian.model.elastic import PoseSpring
from pfaffian.model.fluid import Propeller
from pfaffian.model.force import Potential, Spring, Thruster, Wrench
from pfaffian.model.rolling import BallSlip, Disk, DiskSlip
from pfaffian.viewer.scene import PlacedMechanism, ScenePart, body_colour
from pfaffian.viewer.solids import Solid, box, cylinder, rod, sphere, towards

THICKNESS = 0.016
"""Radius of rods, as a fraction of the machine's size."""

NEAR = 1e-6
"""Points closer than this fraction of the largest distance are one."""

SLENDER = 0.5, 2.0
"""A body from whose joint a slender rod leads, if its largest moment of inertia is so many times that of the rod."""

BALL = 0.4
"""Largest radius of a ball at the mass centre, as a fraction of the way there from the joint: it hides no joint."""

HUB_DOFS = 3
"""A joint with more freedom than this leads nowhere in particular: the rods of its body start at the mass centre."""


def sketches(k: PlacedMechanism) -> Iterator[ScenePart]:
    """The parts of all bodies that have no shape, nor are fixed to one that has."""
    round_ = dict(_round(k))
    for i, b in enumerate(k.m.bodies):
        if not _shaped(k, b.name):
            for solid in round_.get(b.name) or _rods(k, b):
                yield ScenePart(b.name, i, solid, body_colour(k, b), "shapes")


def _shaped(k: PlacedMechanism, body: str) -> bool:
    """Whether a body, or one that it is fixed to, has shapes: parts of a robot that its file shows nothing of are inside."""
    if body in k.bodies and k.m.body(body).shapes:
        return True
    lead = next((j for j in k.m.joints if j.child == body), None)
    return lead is not None and lead.kind.name == "fixed" and lead.mimic is None and _shaped(k, lead.parent)


def attached(k: PlacedMechanism, b: Body) -> list[np.ndarray]:
    """(3,) points of a body that joints, closures, springs, bushings, thrusters and propellers take hold of, in its frame; that
    of the joint that leads to it first."""
    m, found = k.m, list[np.ndarray]()
    for j in m.joints:
        if j.child == b.name and j.nv <= HUB_DOFS:
            found.append(k.pose(j.child_placement)[1])
    for j in m.joints:
        if j.parent == b.name and j.pose is None:
            found.append(k.pose(j.placement)[1])
    for c in m.constraints:
        if isinstance(c, Closure):
            ends = ((c.body_a, c.placement_a), (c.body_b, c.placement_b))
            found += [k.pose(X)[1] for body, X in ends if body == b.name]
    for f in (*m.forces, *m.actuators):
        found += [k.value(x).ravel() for body, x in _ends(f) if body == b.name]
    return found


def _ends(f: object) -> tuple[tuple[str, Any], ...]:
    """Bodies of which a force or actuator takes hold, each with the point in its frame; a bushing sits where body b rests."""
    if isinstance(f, Spring):
        return (f.body_a, f.point_a), (f.body_b, f.point_b)
    if isinstance(f, Potential) and isinstance(f.function, PoseSpring) and WORLD not in f.function.bodies:
        return (f.function.body_a, f.function.rest.p), (f.function.body_b, np.zeros(3))
    if isinstance(f, Thruster) or (isinstance(f, Wrench) and isinstance(f.value, Propeller)):
        return ((f.body, f.point),)
    return ()


def _rods(k: PlacedMechanism, b: Body) -> Iterator[Solid]:
    """From the joint that leads to the body, or its mass centre, to the other points; the inertia where these are few."""
    points, com = attached(k, b), k.value(b.com).ravel()
    led = any(j.child == b.name and j.nv <= HUB_DOFS for j in k.m.joints)
    hub = points.pop(0) if led else com
    radius, done = THICKNESS * k.size, [hub]
    for x in points:
        if min(np.linalg.norm(x - y) for y in done) > NEAR * k.size:
            done.append(x)
            yield rod(hub, x, radius)
    way, most = float(np.linalg.norm(com - hub)), np.inf
    if len(done) == 1 and way > radius and k.value(b.mass).any():
        if led and SLENDER[0] < 3 * radius_of_inertia(k, b) ** 2 / way**2 < SLENDER[1]:
            yield rod(hub, 2 * com - hub, radius)
            return
        yield rod(hub, com, radius)
        most = BALL * way
    if len(done) < (2 if led else 3) and (k.value(b.mass).any() or k.value(b.inertia).any()):
        yield from inertia_solid(k, b, most)


def _round(k: PlacedMechanism) -> Iterator[tuple[str, list[Solid]]]:
    """The wheels and balls that roll."""
    for c in k.m.constraints:
        if isinstance(c, Nonholonomic) and isinstance(c.eta, DiskSlip):
            d: Disk = c.eta.disk
            r = k.value(d.radius).item()
            yield d.body, [cylinder(r, 0.12 * r, 36).moved(towards(k.value(d.axis)), k.value(d.centre))]
        if isinstance(c, Nonholonomic) and isinstance(c.eta, BallSlip):
            yield c.eta.body, [sphere(k.value(c.eta.radius).item()).moved(np.eye(3), k.value(c.eta.centre))]


def radius_of_gyration(k: PlacedMechanism, b: Body) -> float:
    """[m]; zero for a body without mass or inertia."""
    m, I = k.value(b.mass).item(), k.value(b.inertia)
    return float(np.sqrt(max(np.trace(I), 0.0) / 2 / m)) if m > 0 else 0.0


def radius_of_inertia(k: PlacedMechanism, b: Body) -> float:
    """[m] at which the body's mass has its largest moment of inertia."""
    return float(np.sqrt(max(np.linalg.eigvalsh(k.value(b.inertia))[-1], 0.0) / k.value(b.mass).item()))


def inertia_box(k: PlacedMechanism, b: Body) -> tuple[Solid, ...]:
    """The box of even density that has the body's mass and inertia; none thinner than a rod."""
    m, I = k.value(b.mass).item(), k.value(b.inertia)
    moments, axes = np.linalg.eigh((I + I.T) / 2)
    squares = 6 * (moments.sum() / 2 - moments) * 2 / m if m > 0 else np.zeros(3)
    edges = np.maximum(np.sqrt(np.maximum(squares, 0)), 2 * THICKNESS * k.size)
    axes = axes * np.sign(np.linalg.det(axes))
    return (box(edges).moved(axes, k.value(b.com)),)


def inertia_solid(k: PlacedMechanism, b: Body, most: float = np.inf) -> tuple[Solid, ...]:
    """A ball for equal moments of inertia, or none, of a radius of at most `most`; else the box of the inertia."""
    m, I = k.value(b.mass).item(), k.value(b.inertia)
    moments = np.linalg.eigvalsh((I + I.T) / 2)
    if np.ptp(moments) > 1e-3 * abs(moments).max():
        return inertia_box(k, b)
    radius = np.sqrt(2.5 * max(moments.mean(), 0.0) / m) if m > 0 else 0.0
    return (sphere(max(min(float(radius), most), 2.2 * THICKNESS * k.size)).moved(np.eye(3), k.value(b.com)),)
