"""What a picture of a motion contains, whatever draws it: solids on bodies, rods, springs and arrows between points, trails.

A Scene is made once from a mechanism and a result; the renderer, the page and the browser all draw it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
import xarray as xr

from pfaffian.errors import ModelError, ModelWarning, RunError, notice
from pfaffian.evaluate.arrays import configurations, parameter_values
from pfaffian.evaluate.quantities import forward_kinematics
from pfaffian.model.body import Body
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.model.pose import Pose
from pfaffian.model.shape import Shape
from pfaffian.simulate.result import as_result, recorded
from pfaffian.viewer.drawing import COLOURS
from pfaffian.viewer.solids import MAKERS, Solid, read_mesh

LAYERS = {
    "shapes": True,
    "collision": False,
    "joints": True,
    "closures": True,
    "springs": True,
    "rotors": True,
    "forces": True,
    "reactions": False,
    "trails": False,
    "frames": False,
    "floor": True,
}
"""Layer of a scene -> whether it is shown until it is switched."""

Colour = tuple[float, ...]


POSES = 200
"""Records that decide how much space a motion needs."""


class States(NamedTuple):
    """time: (n,) [s].   q: (n, nq).   v: (n, nv) and u: (n, nu), or None where they were not recorded.   p: (np,)."""

    time: np.ndarray
    q: np.ndarray
    v: np.ndarray | None
    u: np.ndarray | None
    p: np.ndarray


class Part(NamedTuple):
    """A solid on a body.   body: its index, -1 for the world.   colour: (4,) red, green, blue, opacity."""

    name: str
    body: int
    solid: Solid
    colour: Colour
    layer: str


class Moving(NamedTuple):
    """What stretches and turns.   kind: rod, spring, arrow: ends (n, 2, 3) [m]; trail: ends (n, 1, 3), its point at each time.
    radius: [m]."""

    name: str
    kind: str
    ends: np.ndarray
    colour: Colour
    layer: str
    radius: float


class Floor(NamedTuple):
    """A plane of the world.   point: (3,).   normal: (3,).   real: whether something rolls on it; else it is a grid below."""

    point: np.ndarray
    normal: np.ndarray
    real: bool


class Scene(NamedTuple):
    """time: (n,) [s].   bodies: names.   positions: (n, bodies, 3) [m], rotations: (n, bodies, 3, 3).   centres: (bodies, 3) mass
    centres in the bodies.   size: of the machine [m].   up: (3,).   floor: None where gravity has no direction.
    layers: those that have something to draw -> whether they are shown at first.
    """

    name: str
    time: np.ndarray
    bodies: tuple[str, ...]
    positions: np.ndarray
    rotations: np.ndarray
    centres: np.ndarray
    parts: tuple[Part, ...]
    moving: tuple[Moving, ...]
    size: float
    up: np.ndarray
    floor: Floor | None
    layers: dict[str, bool]

    @property
    def points(self) -> np.ndarray:
        """(k, 3) points around all that moves, at no more than POSES of its records."""
        at = np.unique(np.linspace(0, len(self.time) - 1, min(POSES, len(self.time))).astype(int))
        found = [x.ends[at].reshape(-1, 3) for x in self.moving if x.layer != "reactions"]
        for part in (x for x in self.parts if x.layer in ("shapes", "closures", "rotors")):
            corners = _corners(part.solid)
            found.append(corners if part.body < 0 else self.placed(part.body, corners)[at].reshape(-1, 3))
        return np.concatenate([*found, self.positions[at].reshape(-1, 3)])

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """(3,) lowest and highest coordinates of these points."""
        points = self.points
        return points.min(axis=0), points.max(axis=0)

    def placed(self, body: int, points: np.ndarray) -> np.ndarray:
        """(n, k, 3) points (k, 3) of a body in the world."""
        return points @ self.rotations[:, body].swapaxes(1, 2) + self.positions[:, body, None]


def _corners(solid: Solid) -> np.ndarray:
    low, high = solid.vertices.min(axis=0), solid.vertices.max(axis=0)
    return np.array([[x, y, z] for x in (low[0], high[0]) for y in (low[1], high[1]) for z in (low[2], high[2])])


class Placed(NamedTuple):
    """A mechanism at the parameters p and the states of a motion: what the makers of parts ask.

    bodies: name -> index.   R: (n, bodies, 3, 3).   x: (n, bodies, 3).   size: [m].
    """

    m: Mechanism
    states: States
    bodies: dict[str, int]
    R: np.ndarray
    x: np.ndarray
    size: float = 1.0

    def value(self, number: ca.SX) -> np.ndarray:
        return self.m.value(number, self.states.p)

    def pose(self, X: Pose) -> tuple[np.ndarray, np.ndarray]:
        """(3, 3) rotation and (3,) position as numbers."""
        return self.value(X.R), self.value(X.p).ravel()

    def index(self, body: str) -> int:
        return self.bodies.get(body, -1)

    def point(self, body: str, x: Any) -> np.ndarray:
        """(n, 3) a point (3,) of a body, or the world, in the world."""
        i, x = self.index(body), np.asarray(x, dtype=float).ravel()
        return np.broadcast_to(x, (len(self.x), 3)) if i < 0 else self.R[:, i] @ x + self.x[:, i]

    def turn(self, body: str) -> np.ndarray:
        """(n, 3, 3) rotation of a body, or the world."""
        i = self.index(body)
        return np.broadcast_to(np.eye(3), (len(self.x), 3, 3)) if i < 0 else self.R[:, i]


def states_of(m: Mechanism, result: xr.Dataset, parameters: Any = None) -> States:
    """The records of one run, up to where it stopped. Raises ModelError: a batch, another mechanism. RunError: no state."""
    recorded(as_result(result), "q")
    if result["q"].dims != ("time", "coordinate"):
        raise ModelError(f"one run with its times is needed, this result has {result['q'].dims}; choose one by .isel(run=...)")
    if tuple(result["coordinate"].values.tolist()) != as_mechanism(m).q_names:
        raise ModelError(f"the result is of another mechanism: its coordinates are not those of {m.name!r}")
    if parameters is None and "parameters" in result:
        parameters = result["parameters"]
    q = result["q"].values
    good = np.isfinite(q).all(axis=1)
    if not good.any():
        raise RunError("the run has no state to show")
    signals = [result[k].values[good] if k in result and result[k].dims[0] == "time" else None for k in ("v", "u")]
    return States(result["time"].values[good], q[good], signals[0], signals[1], parameter_values(m, parameters)[0])


def state_of(m: Mechanism, q: Any = None, parameters: Any = None) -> States:
    """One configuration, neutral where nothing is given."""
    at = configurations(m, q)[:1]
    return States(np.zeros(1), at, None, None, parameter_values(m, parameters)[0])


def thinned(states: States, rate: float) -> States:
    """The states at most so many times a second, evenly in time; the first and the last are kept."""
    time = states.time
    count = int(np.clip(np.ceil((time[-1] - time[0]) * rate) + 1, 1, len(time)))
    at = np.unique(np.searchsorted(time, np.linspace(time[0], time[-1], count) - 1e-9).clip(0, len(time) - 1))
    pick = [None if x is None else x[at] for x in (states.time, states.q, states.v, states.u)]
    return States(*pick, states.p)  # type: ignore[arg-type]


def placed(m: Mechanism, states: States) -> Placed:
    """The poses of all bodies at each state, and the size of the machine at the first."""
    found = forward_kinematics(m, states.q, parameters=states.p)
    n, names = len(states.q), [b.name for b in m.bodies]
    R = np.stack([found[b].rotation for b in names], axis=1) if names else np.zeros((n, 0, 3, 3))
    x = np.stack([found[b].position for b in names], axis=1) if names else np.zeros((n, 0, 3))
    k = Placed(m, states, {b: i for i, b in enumerate(names)}, R, x)
    return k._replace(size=_size(k))


def _size(k: Placed) -> float:
    """Largest extent at the start of the points that bodies are joined at, or else of the bodies themselves [m]."""
    from pfaffian.viewer.sketch import attached, radius_of_gyration

    points = [k.point(b.name, x)[0] for b in k.m.bodies for x in attached(k, b)]
    extent = float(np.ptp(np.array(points), axis=0).max()) if points else 0.0
    widest = max([2 * radius_of_gyration(k, b) for b in k.m.bodies] + [0.0])
    return max(extent, widest) or 1.0


def scene(m: Mechanism, states: States, reactions: bool = False) -> Scene:
    """Everything that there is to draw of a mechanism in motion. reactions: whether to compute those of joints and closures."""
    from pfaffian.viewer import fittings, sketch

    k = placed(m, states)
    makers = (shapes(k), sketch.sketches(k), fittings.joints(k), fittings.closures(k), fittings.rotors(k))
    parts = tuple(part for made in makers for part in made)
    moving = stretching(k, reactions)
    g = k.value(m.gravity).ravel()
    up = -g / np.linalg.norm(g) if g.any() else np.array([0.0, 0.0, 1.0])
    centres = np.array([k.value(b.com).ravel() for b in m.bodies]).reshape(-1, 3)
    made = Scene(m.name, states.time, tuple(k.bodies), k.x, k.R, centres, parts, moving, k.size, up, None, _layers(k, parts, moving))
    return made._replace(floor=fittings.floor(k, made) if g.any() else None)


def stretching(k: Placed, reactions: bool = False) -> tuple[Moving, ...]:
    """Springs, rods, arrows and trails."""
    from pfaffian.viewer import fittings

    held = fittings.reactions(k) if reactions else []
    return (*fittings.stretched(k), *fittings.forces(k), *held, *fittings.trails(k))


def _layers(k: Placed, parts: Iterable[Part], moving: Iterable[Moving]) -> dict[str, bool]:
    """Layers of a scene; joint axes are hidden at first where bodies have shapes of their own."""
    used = {x.layer for x in (*parts, *moving)} | {"frames", "floor"}
    plain = not any(b.shapes for b in k.m.bodies)
    return {name: shown and (plain or name != "joints") for name, shown in LAYERS.items() if name in used}


def shapes(k: Placed) -> Iterator[Part]:
    """The shapes that bodies have. A mesh that cannot be drawn is said once and drawn as the box of its body's inertia."""
    from pfaffian.viewer.sketch import inertia_box

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
                yield Part(b.name, i, solid._replace(colour=None), solid.colour or s.colour or body_colour(k, b), layer)
    if missing:
        first, more = next(iter(missing)), f"; and {len(missing) - 1} more" if len(missing) > 1 else ""
        notice(f"meshes that are drawn as boxes: {first}{more}", ModelWarning)


def solids_of(k: Placed, s: Shape) -> tuple[Solid, ...]:
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


def body_colour(k: Placed, b: Body) -> Colour:
    """One colour of the palette for each body, softened."""
    mine = COLOURS[k.bodies[b.name] % (len(COLOURS) - 1)]
    return (*[0.25 * 0.8 + 0.75 * int(mine[i : i + 2], 16) / 255 for i in (1, 3, 5)], 1.0)


def together(scenes: Iterable[Scene], beside: bool) -> Scene:
    """Runs of one machine in one scene: beside each other, or the first with the others as ghosts."""
    every = list(scenes)
    last = max(every, key=lambda s: s.time[-1])
    if len(every) == 1:
        return last
    width = max(float(np.ptp(np.array(s.bounds), axis=0).max()) for s in every)
    parts, moving, positions, rotations = list[Part](), list[Moving](), [], []
    for i, s in enumerate(every):
        at = np.searchsorted(s.time, last.time - 1e-9).clip(0, len(s.time) - 1)
        shift = np.array([0.0, 1.15 * width * i, 0.0]) if beside else np.zeros(3)
        faint = 1.0 if beside or i == 0 else 0.25
        first = i * len(s.bodies)
        for part in s.parts:
            solid = part.solid.moved(np.eye(3), shift) if part.body < 0 else part.solid
            body = part.body if part.body < 0 else part.body + first
            parts.append(part._replace(body=body, solid=solid, colour=_faint(part.colour, faint)))
        moving += [x._replace(ends=x.ends[at] + shift, colour=_faint(x.colour, faint)) for x in s.moving]
        positions.append(s.positions[at] + shift)
        rotations.append(s.rotations[at])
    names = tuple(f"{b} (run {i})" for i, s in enumerate(every) for b in s.bodies)
    return last._replace(
        bodies=names, positions=np.concatenate(positions, axis=1), rotations=np.concatenate(rotations, axis=1),
        centres=np.concatenate([s.centres for s in every]), parts=tuple(parts), moving=tuple(moving),
    )  # fmt: skip


def floor_square(scene: Scene) -> tuple[np.ndarray, float]:
    """(3,) middle and half the side of the square of the floor that is drawn: all below the motion."""
    assert scene.floor is not None
    low, high = scene.bounds
    n, middle = scene.floor.normal / np.linalg.norm(scene.floor.normal), (low + high) / 2
    return middle - ((middle - scene.floor.point) @ n) * n, 0.75 * float(np.linalg.norm(high - low)) or scene.size


def _faint(colour: Colour, opacity: float) -> Colour:
    return (*colour[:3], colour[3] * opacity)


