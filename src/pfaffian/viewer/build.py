"""Make the scene of a mechanism from its states."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pfaffian.errors import ModelError, ModelWarning, listed, notice
from pfaffian.evaluate.quantities import poses
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.shape import Shape
from pfaffian.viewer import fittings, lines
from pfaffian.viewer.contacts import feet
from pfaffian.viewer.meshes import read_mesh
from pfaffian.viewer.scene import LAYERS, Floor, MovingPart, PlacedMechanism, Scene, ScenePart, States, body_colour
from pfaffian.viewer.sketch import attached, radius_of_gyration, rods, sketches
from pfaffian.viewer.solids import MAKERS, Solid


def placed(m: Mechanism, states: States) -> PlacedMechanism:
    """The mechanism with the poses of all bodies at each state, and the machine's size at the first."""
    n, names = len(states.q), tuple(b.name for b in m.bodies)
    at = poses(m, names, states.q, states.p, states.backend) if names else {}
    R = np.stack([at[b].rotation for b in names], axis=1) if names else np.zeros((n, 0, 3, 3))
    x = np.stack([at[b].position for b in names], axis=1) if names else np.zeros((n, 0, 3))
    k = PlacedMechanism(m, states, {b: i for i, b in enumerate(names)}, R, x)
    return k._replace(size=_size(k))


def _size(k: PlacedMechanism) -> float:
    """Size of the machine at the start [m]: the extent of its joints, or of its largest body if that is greater."""
    points = [k.point(b.name, x)[0] for b in k.m.bodies for x in attached(k, b)]
    extent = float(np.ptp(np.array(points), axis=0).max()) if points else 0.0
    widest = max([2 * radius_of_gyration(k, b) for b in k.m.bodies] + [0.0])
    return max(extent, widest) or 1.0


def scene(m: Mechanism, states: States, reactions: bool = False, collision: bool = True) -> Scene:
    """The scene of a mechanism in motion.

    reactions: whether it has arrows for the reactions of joints and closures.
    collision: whether it has the collision shapes of bodies that have others; without them their meshes are not read.
    """
    k = placed(m, states)
    parts = _parts(k, collision)
    _tell_of_changes(k, parts, collision)
    moving = stretching(k, reactions)
    g = k.value(m.gravity).ravel()
    up = 0.0 - g / np.linalg.norm(g) if g.any() else np.array([0.0, 0.0, 1.0])
    centres = np.array([k.value(b.com).ravel() for b in m.bodies]).reshape(-1, 3)
    groundless = Scene(
        m.name, states.time, tuple(k.bodies), k.x, k.R, centres, parts, moving, k.size, up, None,
        _layers(k, parts, moving),
    )  # fmt: skip
    return with_floor(groundless, fittings.floor(k, groundless, bool(g.any())))


def _parts(k: PlacedMechanism, collision: bool) -> tuple[ScenePart, ...]:
    """The parts that keep their shape and their place on a body."""
    of_parts = (shapes(k, collision), sketches(k), fittings.joints(k), fittings.closures(k), fittings.rotors(k))
    makers = (*of_parts, lines.guides(k), feet(k))
    return tuple(part for maker in makers for part in maker)


def _tell_of_changes(k: PlacedMechanism, parts: tuple[ScenePart, ...], collision: bool) -> None:
    """Warn of parts that a parameter which the run changes would give another shape or place."""
    p = k.states.p
    changed = np.flatnonzero((p != p[0]).any(axis=0))
    if not len(changed):
        return
    other = p[0].copy()
    for i in changed:
        other[i] = p[p[:, i] != p[0, i], i][0]
    others = _parts(k._replace(states=k.states._replace(p=other[None])), collision)
    pairs = zip(parts, others, strict=False)
    names = [a.name for a, b in pairs if not np.array_equal(a.solid.vertices, b.solid.vertices)]
    if names or len(parts) != len(others):
        by, of = (listed(list(dict.fromkeys(x))) for x in ([k.m.p_names[i] for i in changed], names))
        notice(f"drawn throughout as at the start, although the run changes {by}: {of}", ModelWarning)


def stretching(k: PlacedMechanism, reactions: bool = False) -> tuple[MovingPart, ...]:
    """The moving parts of a scene: springs, rods, arrows and trails."""
    wrenches = fittings.reactions(k) if reactions else []
    return (*fittings.stretched(k), *lines.lines(k), *fittings.forces(k), *wrenches, *fittings.trails(k))


def with_floor(scene: Scene, floor: Floor | None) -> Scene:
    """The scene on a floor, whose layer is visible; unchanged for None."""
    return scene if floor is None else scene._replace(floor=floor, layers=scene.layers | {"floor": LAYERS["floor"]})


def _layers(k: PlacedMechanism, parts: tuple[ScenePart, ...], moving: tuple[MovingPart, ...]) -> dict[str, bool]:
    """Layer of the scene -> whether it is visible at first; joint axes are not if a body has a shape."""
    used = {p.layer for p in parts} | {x.layer for x in moving} | {"frames", "names"}
    shapeless = not any(b.shapes for b in k.m.bodies)
    return {name: visible and (shapeless or name != "joints") for name, visible in LAYERS.items() if name in used}


def shapes(k: PlacedMechanism, collision: bool) -> Iterator[ScenePart]:
    """Parts for the shapes of bodies; where meshes cannot be read, a body is drawn by rods, with a warning.

    collision: as in `scene`.
    """
    missing: dict[str, str] = {}
    for i, b in enumerate(k.m.bodies):
        roles = {s.role for s in b.shapes}
        for s in b.shapes:
            layer = "collision" if s.role == "collision" and "visual" in roles else "shapes"
            if layer == "collision" and not collision:
                continue
            try:
                solids = solids_of(k, s)
            except ModelError as error:
                solids = () if b.name in missing.values() else tuple(rods(k, b))
                missing[str(error)] = b.name
            for solid in solids:
                yield ScenePart(b.name, i, solid._replace(colour=None), solid.colour or s.colour or body_colour(k, b), layer)
    if missing:
        first, more = next(iter(missing)), f"; and {len(missing) - 1} more" if len(missing) > 1 else ""
        notice(f"bodies without their meshes are drawn as rods between their joints: {first}{more}", ModelWarning)


def solids_of(k: PlacedMechanism, s: Shape) -> tuple[Solid, ...]:
    """The solids of a shape in the frame of its body. Raises ModelError: its mesh cannot be read."""
    size = k.value(s.size).ravel()
    if s.kind != "mesh":
        solids: tuple[Solid, ...] = (MAKERS[s.kind](size),)
    elif s.file is None:
        raise ModelError(f"{s.label} is not found; read the robot with meshes=[folder]")
    else:
        solids = tuple(_scaled(x, size) for x in read_mesh(s.file))
    return tuple(x.moved(*k.pose(s.placement)) for x in solids)


def _scaled(solid: Solid, scale: np.ndarray) -> Solid:
    """The solid scaled by a factor for each axis."""
    faces = solid.faces[:, ::-1] if np.prod(scale) < 0 else solid.faces  # a mirror turns the triangles inside out
    return solid._replace(vertices=solid.vertices * scale, faces=faces)
