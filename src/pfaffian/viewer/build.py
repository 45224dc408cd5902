"""From a mechanism and its states to a scene."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pfaffian.errors import ModelError, ModelWarning, notice
from pfaffian.evaluate.quantities import forward_kinematics
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.shape import Shape
from pfaffian.viewer import fittings
from pfaffian.viewer.scene import LAYERS, Moving, PlacedMechanism, Scene, ScenePart, States, body_colour
from pfaffian.viewer.sketch import attached, inertia_box, radius_of_gyration, sketches
from pfaffian.viewer.solids import MAKERS, Solid, read_mesh


def placed(m: Mechanism, states: States) -> PlacedMechanism:
    """The poses of all bodies at each state, and the size of the machine at the first."""
    found = forward_kinematics(m, states.q, parameters=states.p)
    n, names = len(states.q), [b.name for b in m.bodies]
    R = np.stack([found[b].rotation for b in names], axis=1) if names else np.zeros((n, 0, 3, 3))
    x = np.stack([found[b].position for b in names], axis=1) if names else np.zeros((n, 0, 3))
    k = PlacedMechanism(m, states, {b: i for i, b in enumerate(names)}, R, x)
    return k._replace(size=_size(k))


def _size(k: PlacedMechanism) -> float:
    """Largest extent at the start of the points that bodies are joined at, or else of the bodies themselves [m]."""
    points = [k.point(b.name, x)[0] for b in k.m.bodies for x in attached(k, b)]
    extent = float(np.ptp(np.array(points), axis=0).max()) if points else 0.0
    widest = max([2 * radius_of_gyration(k, b) for b in k.m.bodies] + [0.0])
    return max(extent, widest) or 1.0


def scene(m: Mechanism, states: States, reactions: bool = False) -> Scene:
    """Everything that there is to draw of a mechanism in motion. reactions: whether to compute those of joints and closures."""
    k = placed(m, states)
    makers = (shapes(k), sketches(k), fittings.joints(k), fittings.closures(k), fittings.rotors(k))
    parts = tuple(part for made in makers for part in made)
    moving = stretching(k, reactions)
    g = k.value(m.gravity).ravel()
    up = 0.0 - g / np.linalg.norm(g) if g.any() else np.array([0.0, 0.0, 1.0])
    centres = np.array([k.value(b.com).ravel() for b in m.bodies]).reshape(-1, 3)
    made = Scene(
        m.name, states.time, tuple(k.bodies), k.x, k.R, centres, parts, moving, k.size, up, None,
        _layers(k, parts, moving, bool(g.any())),
    )  # fmt: skip
    return made._replace(floor=fittings.floor(k, made) if g.any() else None)


def stretching(k: PlacedMechanism, reactions: bool = False) -> tuple[Moving, ...]:
    """Springs, rods, arrows and trails."""
    wrenches = fittings.reactions(k) if reactions else []
    return (*fittings.stretched(k), *fittings.forces(k), *wrenches, *fittings.trails(k))


def _layers(k: PlacedMechanism, parts: tuple[ScenePart, ...], moving: tuple[Moving, ...], floor: bool) -> dict[str, bool]:
    """Layers of a scene; joint axes are hidden at first where bodies have shapes of their own."""
    used = {p.layer for p in parts} | {x.layer for x in moving} | {"frames"} | ({"floor"} if floor else set())
    plain = not any(b.shapes for b in k.m.bodies)
    return {name: shown and (plain or name != "joints") for name, shown in LAYERS.items() if name in used}


def shapes(k: PlacedMechanism) -> Iterator[ScenePart]:
    """The shapes of bodies. A mesh that cannot be drawn is warned of once and drawn as the box of its body's inertia."""
    missing: dict[str, str] = {}
    for i, b in enumerate(k.m.bodies):
        roles = {s.role for s in b.shapes}
        for s in b.shapes:
            layer = "collision" if s.role == "collision" and "visual" in roles else "shapes"
            try:
                solids = solids_of(k, s)
            except ModelError as error:
                missing[str(error)] = b.name
                solids = inertia_box(k, b)
            for solid in solids:
                yield ScenePart(b.name, i, solid._replace(colour=None), solid.colour or s.colour or body_colour(k, b), layer)
    if missing:
        first, more = next(iter(missing)), f"; and {len(missing) - 1} more" if len(missing) > 1 else ""
        notice(f"meshes that are drawn as boxes: {first}{more}", ModelWarning)


def solids_of(k: PlacedMechanism, s: Shape) -> tuple[Solid, ...]:
    """The solids of a shape in the frame of its body. Raises ModelError: a mesh cannot be read."""
    size = k.value(s.size).ravel()
    if s.kind != "mesh":
        found: tuple[Solid, ...] = (MAKERS[s.kind](size),)
    elif s.file is None:
        raise ModelError(f"{s.label} is not found; read the robot with meshes=[folder]")
    else:
        found = tuple(_scaled(x, size) for x in read_mesh(s.file))
    return tuple(x.moved(*k.pose(s.placement)) for x in found)


def _scaled(solid: Solid, scale: np.ndarray) -> Solid:
    faces = solid.faces[:, ::-1] if np.prod(scale) < 0 else solid.faces  # a mirror turns the triangles inside out
    return solid._replace(vertices=solid.vertices * scale, faces=faces)
