"""The parts of a scene other than bodies: joints, closures, springs, rotors, forces, reactions, trails and the floor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.evaluate.compiled import compile_terms
from pfaffian.evaluate.reactions import compiled_wrenches, through
from pfaffian.maths.closures import TWIST, ClosureKind
from pfaffian.maths.subgroups import PLANE, SUBGROUPS, Subgroup
from pfaffian.model.constraint import Closure, Servo
from pfaffian.model.force import Spring, Thruster, Wrench
from pfaffian.model.joint import KINDS, JointKind
from pfaffian.model.shape import Colour
from pfaffian.parts.contact import CompoundLoss
from pfaffian.parts.cylinder import Cylinder
from pfaffian.parts.fluid import Propeller
from pfaffian.terms.applied_forces import wrench_value
from pfaffian.viewer.contacts import compliant, grounds
from pfaffian.viewer.scene import Floor, MovingPart, PlacedMechanism, Scene, ScenePart
from pfaffian.viewer.sketch import rams
from pfaffian.viewer.solids import Solid, box, cylinder, sphere, towards

JOINT: Colour = (0.30, 0.32, 0.36, 1.0)
CLOSURE: Colour = (0.84, 0.37, 0.0, 1.0)
SPRING: Colour = (0.35, 0.35, 0.40, 1.0)
BARREL: Colour = (0.90, 0.62, 0.0, 1.0)
ROTOR: Colour = (0.34, 0.71, 0.91, 0.45)
FORCE: Colour = (0.0, 0.62, 0.45, 1.0)
REACTION: Colour = (0.80, 0.10, 0.20, 1.0)
TRAIL: Colour = (0.80, 0.47, 0.65, 0.98)  # not opaque, so that it casts no shadow

NOTHING = 1e-300
"""Smallest length that is divided by [m]."""

ARROW = 0.3
"""Length of the longest arrow of a layer, as a fraction of the machine's size."""


def joints(k: PlacedMechanism) -> Iterator[ScenePart]:
    """The axis of each joint that has one, a ball for a joint that turns about all axes; nothing for fixed and free joints and
    for the slides of rams, which show themselves."""
    apparent = {x.slide.name for x in rams(k)}
    for j in k.m.joints:
        if 0 < j.kind.nv < len(TWIST) and j.name not in apparent:
            for solid in _joint_solids(j.kind, 0.022 * k.size):
                yield ScenePart(j.name, k.number_of(j.parent), solid.moved(*k.pose(j.placement)), JOINT, "joints")


def closures(k: PlacedMechanism) -> Iterator[ScenePart]:
    """A part for each closure, by its kind: pin, ball, plate, line, block for a weld; `stretched` makes those of a distance.
    The slides of rams show themselves."""
    apparent = {x.slide.name for x in rams(k)}
    for c in _closures(k):
        if c.kind != "distance" and c.name not in apparent:
            for solid in _closure_solids(c.holds, 0.026 * k.size):
                yield ScenePart(c.name, k.number_of(c.body_a), solid.moved(*k.pose(c.placement_a)), CLOSURE, "closures")


def _closures(k: PlacedMechanism) -> list[Closure]:
    """All closures of the mechanism, those of servo constraints too."""
    targets = [c.target if isinstance(c, Servo) else c for c in k.m.all_constraints]
    return [c for c in targets if isinstance(c, Closure)]


def _joint_solids(kind: JointKind, r: float) -> list[Solid]:
    """Solids for a kind of joint, in its frame; one for each factor, about or along its axis.   r: radius of a pin [m]."""
    if len(kind.factors) == 1:
        return [_group_solid(kind.factors[0].subgroup, r)]
    thinner = 0.6 if all(f.subgroup.rotation.axes for f in kind.factors) else 1.0
    return [_group_solid(f.subgroup, r, thinner).moved(towards(np.array(f.axis)), np.zeros(3)) for f in kind.factors]


def _closure_solids(kind: ClosureKind, r: float) -> list[Solid]:
    """Solids for a kind of closure that keeps no distance, in its frame, by the motions that it permits."""
    if kind.name == "universal":
        return _joint_solids(KINDS["universal"], r)
    if kind.name == "point-on-line":
        return [cylinder(0.35 * r, 16 * r)]
    return [_group_solid(SUBGROUPS["planar"] if kind.group is None else kind.group, r)]


def _group_solid(g: Subgroup, r: float, thinner: float = 1.0) -> Solid:
    """A pin for turns about z, a bar for a slide along it, a plate for motions in a plane, a ball for others, a block for none.

    thinner: factor on the radius of a pin.
    """
    turns, normal = len(g.rotation.axes), set(PLANE) <= set(g.along)
    if normal and (turns == 1 or (not turns and len(g.along) == len(PLANE))):
        return box((4 * r, 4 * r, 0.3 * r))
    if turns == 1:
        return cylinder(thinner * r, 4 * r)
    if g.along == (2,):
        return box((1.2 * r, 1.2 * r, 9 * r))
    return sphere(1.3 * r) if g.nv else box((2 * r, 2 * r, 2 * r))


def stretched(k: PlacedMechanism) -> Iterator[MovingPart]:
    """Springs, and rods for the closures that keep a distance."""
    for f in k.m.all_forces:
        if isinstance(f, Spring):
            ends = [k.point(f.body_a, k.values(f.point_a)), k.point(f.body_b, k.values(f.point_b))]
            yield MovingPart(f.name, "spring", np.stack(ends, axis=1), SPRING, "springs", 0.02 * k.size)
    yield from _telescopes(k)
    for c in _closures(k):
        if c.kind == "distance":
            ends = [k.point(c.body_a, k.values(c.placement_a.p)), k.point(c.body_b, k.values(c.placement_b.p))]
            yield MovingPart(c.name, "rod", np.stack(ends, axis=1), CLOSURE, "closures", 0.012 * k.size)


def _telescopes(k: PlacedMechanism) -> Iterator[MovingPart]:
    """Barrel and rod of each cylinder: the barrel is as long as the shortest stroke, and the rod slides out of it."""
    for name, of in ((x.name, x.of) for x in k.m.compounds if isinstance(x.of, Cylinder)):
        a, b = k.point(of.body_a, k.values(of.point_a)), k.point(of.body_b, k.values(of.point_b))
        length = np.linalg.norm(b - a, axis=1, keepdims=True)
        head = a + (b - a) * np.minimum(k.values(of.stroke[0]) / np.maximum(length, NOTHING), 1.0)
        bore, thin = k.value(of.bore).item(), k.value(of.rod).item()
        yield MovingPart(name, "rod", np.stack([a, head], axis=1), BARREL, "springs", 0.6 * bore)
        yield MovingPart(name, "rod", np.stack([head, b], axis=1), JOINT, "springs", thin / 2 or 0.25 * bore)


def _blades(k: PlacedMechanism) -> list[tuple[Any, np.ndarray, np.ndarray]]:
    """Thrusters and propellers, each with its point and axis in the frame of its body."""
    blades: list[tuple[Any, Any]] = [(a, a.axis) for a in k.m.actuators if isinstance(a, Thruster)]
    blades += [(f, f.value.axis) for f in k.m.all_forces if isinstance(f, Wrench) and isinstance(f.value, Propeller)]
    return [(f, k.value(f.point).ravel(), k.value(axis).ravel()) for f, axis in blades]


def rotors(k: PlacedMechanism) -> Iterator[ScenePart]:
    """A disk normal to the axis of each thruster and propeller, sized by the smallest distance between them."""
    blades = _blades(k)
    points = [k.point(f.body, x)[0] for f, x, _ in blades]
    distances = [float(np.linalg.norm(x - y)) for i, x in enumerate(points) for y in points[:i]]
    spacing = min([d for d in distances if d > 1e-9 * k.size] or [0.3 * k.size])
    for f, x, axis in blades:
        disk = cylinder(0.42 * spacing, 0.03 * spacing, 36).moved(towards(axis), x)
        yield ScenePart(f.name, k.number_of(f.body), disk, ROTOR, "rotors")


def forces(k: PlacedMechanism) -> Iterator[MovingPart]:
    """Arrows for thrusts, for the forces of wrenches, and for those of contacts on body_a, as far as inputs and velocities were
    recorded."""
    located = [(f.name, k.point(f.body, k.values(f.point)), F) for f, F in (*_thrusts(k), *_wrenches(k))]
    yield from _arrows(k, [*located, *_pressed(k)], FORCE, "forces")


def _arrows(
    k: PlacedMechanism, located: list[tuple[str, np.ndarray, np.ndarray]], colour: Colour, layer: str
) -> Iterator[MovingPart]:
    """Arrows from (name, point (n, 3) [m], force (n, 3) [N]), scaled so that the longest is ARROW times the machine's size.

    A force that is not finite, as where constraints contradict each other, has no arrow at that instant.
    """
    located = [(name, at, np.where(np.isfinite(F).all(axis=1, keepdims=True), F, 0.0)) for name, at, F in located]
    largest = max([float(np.linalg.norm(F, axis=1).max()) for _, _, F in located] + [0.0])
    for name, at, F in located if largest > 0 else ():
        scale = ARROW * k.size / largest
        yield MovingPart(name, "arrow", np.stack([at, at + F * scale], axis=1), colour, layer, 0.009 * k.size, scale)


def _thrusts(k: PlacedMechanism) -> Iterator[tuple[Any, np.ndarray]]:
    """Each thruster with its force (n, 3) [N] in the world."""
    u = k.states.u
    for a in k.m.actuators if u is not None else ():
        if isinstance(a, Thruster) and u is not None:
            yield a, _turned(k, a.body, u[:, k.m.u_names.index(a.name), None] * k.values(a.axis))


def _wrenches(k: PlacedMechanism) -> Iterator[tuple[Any, np.ndarray]]:
    """Each wrench with its force (n, 3) [N] in the world."""
    s = k.states
    wrenches = [f for f in k.m.all_forces if isinstance(f, Wrench) and not isinstance(f.value, CompoundLoss)]
    terms = {str(i): lambda T, f=f: wrench_value(T.kinematics, f)[:3] for i, f in enumerate(wrenches) if f.value is not None}
    terms = terms if s.v is not None else {}
    values = compile_terms(k.m, terms, backend=s.backend).matrices(s.q, s.v, t=s.time, parameters=s.p) if terms else {}
    for i, f in enumerate(wrenches):
        if str(i) in values:
            F = values[str(i)][..., 0].reshape(-1, 3)
        elif f.value is None and s.u is not None:
            first = k.m.u_names.index(f"{f.name}.fx")
            F = s.u[:, first : first + 3]
        else:
            continue
        yield f, _turned(k, f.body, F) if f.axes == "LOCAL" else F


def _pressed(k: PlacedMechanism) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Each compliant contact with its place (n, 3) [m] and its whole force (n, 3) [N]: pressure, damping and friction."""
    s, contacts = k.states, {name: c for name, c in compliant(k).items() if c.impact is None}
    if s.v is None or not contacts:
        return
    terms = {name: lambda T, c=c: ca.vertcat(*c.carried(T.kinematics)) for name, c in contacts.items()}
    values = compile_terms(k.m, terms, backend=s.backend).matrices(s.q, s.v, t=s.time, parameters=s.p)
    for name in contacts:
        force, place = np.split(values[name][..., 0].reshape(-1, 6), 2, axis=1)
        yield name, place, force


def _turned(k: PlacedMechanism, body: str, F: np.ndarray) -> np.ndarray:
    """Forces (n, 3) along the axes of a body, along those of the world."""
    return (k.turn(body) @ F[:, :, None])[:, :, 0]


def reactions(k: PlacedMechanism) -> Iterator[MovingPart]:
    """Arrows for the forces that joints exert on their child and closures on body_b, at the states as the run recorded them."""
    s = k.states
    if s.v is None:
        return
    targets = [(j.name, j.child, j.child_placement) for j in k.m.joints if j.kind.name != "free"]
    targets += [(c.name, c.body_b, c.placement_b) for c in k.m.all_constraints if isinstance(c, Closure)]
    of = compiled_wrenches(k.m, tuple(name for name, _, _ in targets), "LOCAL_WORLD_ALIGNED", s.formulation)
    wrenches = of.matrices(s.q, s.v, s.u, t=s.time, parameters=s.p)
    arrows = [(name, k.point(b, k.values(X.p)), wrenches[through(name)].reshape(-1, 6, 2)[:, :3, 0]) for name, b, X in targets]
    yield from _arrows(k, arrows, REACTION, "reactions")


def trails(k: PlacedMechanism) -> Iterator[MovingPart]:
    """The path of the mass centre of each body at the end of a branch."""
    parents = {j.parent for j in k.m.joints}
    for b in k.m.bodies if len(k.states.time) > 1 else ():
        if b.name not in parents:
            at = k.point(b.name, k.values(b.com))
            yield MovingPart(b.name, "trail", at[:, None], TRAIL, "trails", 0.006 * k.size)


def floor(k: PlacedMechanism, scene: Scene, weight: bool) -> Floor | None:
    """The plane of the world on which something rolls or stands; otherwise one normal to gravity, just below the motion; None
    without gravity."""
    for ground in grounds(k):
        return Floor(ground.point, ground.normal, True)
    if not weight:
        return None
    low, high = scene.bounds
    corners = np.array([[x, y, z] for x in (low[0], high[0]) for y in (low[1], high[1]) for z in (low[2], high[2])])
    middle = (low + high) / 2
    below = min((corners - middle) @ scene.up)
    return Floor(middle + (below - 0.002 * k.size) * scene.up, scene.up, False)


def coil(a: np.ndarray, b: np.ndarray, radius: float, turns: int = 8, points: int = 65) -> np.ndarray:
    """Points (points, 3) along a coil spring from a to b [m]: straight ends, and turns between them."""
    along = b - a
    part = np.linspace(0, 1, points)
    X = towards(along)
    inside = np.clip((part - 0.1) / 0.8, 0, 1)
    swell = radius * np.minimum(1, 12 * np.minimum(inside, 1 - inside))
    angle = 2 * np.pi * turns * inside
    return a + part[:, None] * along + (swell * np.cos(angle))[:, None] * X[:, 0] + (swell * np.sin(angle))[:, None] * X[:, 1]
