"""What a picture of a motion contains, whatever draws it: solids on bodies, rods, springs and arrows between points, trails.

A Scene is made once of a mechanism and its states (`build`); the renderer, the page and the browser all draw it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
import xarray as xr

from pfaffian.errors import ModelError, RunError
from pfaffian.evaluate.arrays import configurations, parameter_values
from pfaffian.model.body import Body
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.model.pose import Pose
from pfaffian.simulate.result import as_result, recorded
from pfaffian.viewer.drawing import COLOURS
from pfaffian.viewer.solids import Solid

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


class ScenePart(NamedTuple):
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
    """time: (n,) [s].   bodies: names.   positions: (n, bodies, 3) [m], rotations: (n, bodies, 3, 3).
    centres: (bodies, 3) mass centres in the bodies.   size: of the machine [m].   up: (3,).
    floor: None where gravity has no direction.
    layers: those that have something to draw -> whether they are shown at first.
    """

    name: str
    time: np.ndarray
    bodies: tuple[str, ...]
    positions: np.ndarray
    rotations: np.ndarray
    centres: np.ndarray
    parts: tuple[ScenePart, ...]
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


class PlacedMechanism(NamedTuple):
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

    def number_of(self, body: str) -> int:
        return self.bodies.get(body, -1)

    def point(self, body: str, x: Any) -> np.ndarray:
        """(n, 3) a point (3,) of a body, or the world, in the world."""
        i, x = self.number_of(body), np.asarray(x, dtype=float).ravel()
        return np.broadcast_to(x, (len(self.x), 3)) if i < 0 else self.R[:, i] @ x + self.x[:, i]

    def turn(self, body: str) -> np.ndarray:
        """(n, 3, 3) rotation of a body, or the world."""
        i = self.number_of(body)
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
    v, u = (None if x is None else x[at] for x in (states.v, states.u))
    return States(time[at], states.q[at], v, u, states.p)


def body_colour(k: PlacedMechanism, b: Body) -> Colour:
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
    parts, moving, positions, rotations = list[ScenePart](), list[Moving](), [], []
    for i, s in enumerate(every):
        at = np.searchsorted(s.time, last.time - 1e-9).clip(0, len(s.time) - 1)
        shift = np.array([0.0, 1.15 * width * i, 0.0]) if beside else np.zeros(3)
        opacity = 1.0 if beside or i == 0 else 0.25
        first = i * len(s.bodies)
        for part in s.parts:
            solid = part.solid.moved(np.eye(3), shift) if part.body < 0 else part.solid
            body = part.body if part.body < 0 else part.body + first
            parts.append(part._replace(body=body, solid=solid, colour=faint(part.colour, opacity)))
        moving += [x._replace(ends=x.ends[at] + shift, colour=faint(x.colour, opacity)) for x in s.moving]
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


def faint(colour: Colour, opacity: float) -> Colour:
    return (*colour[:3], colour[3] * opacity)
