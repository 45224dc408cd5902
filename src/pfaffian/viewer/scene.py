"""The contents of a picture of a motion, whichever program draws it: solids on bodies, rods, springs, arrows and trails.

`build` makes a Scene once from a mechanism and its states; the renderer, the HTML page and the browser all draw it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
import xarray as xr

from pfaffian.errors import ModelError, ModelWarning, RunError, brief, notice
from pfaffian.evaluate.arrays import configurations, parameter_values
from pfaffian.evaluate.single_values import common_runs
from pfaffian.kernel.call.recipe import Backend
from pfaffian.model.body import Body
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.model.pose import Pose
from pfaffian.model.shape import Colour
from pfaffian.simulate.record.result import as_result, recorded
from pfaffian.starts.trajectory import Trajectory
from pfaffian.viewer.drawing import COLOURS
from pfaffian.viewer.solids import Solid

LAYERS = {
    "shapes": True,
    "collision": False,
    "joints": True,
    "contacts": True,
    "closures": True,
    "springs": True,
    "lines": True,
    "rotors": True,
    "forces": True,
    "reactions": False,
    "trails": False,
    "frames": False,
    "names": False,
    "floor": True,
}
"""Layer of a scene -> whether it is visible until the user switches it."""


SAME_TIME = 1e-9
"""Times that differ by less are the same [s]."""

POSES = 200
"""Largest number of records from which the bounds of a motion are computed."""


FEW_STATES = 8
"""Largest number of states that NumPy computes."""


class States(NamedTuple):
    """The states of one run.   time: (n,) [s].   q: (n, nq).   v: (n, nv), u: (n, nu), None if not recorded.

    p: (n, np) the parameters in force at each.   formulation: name of the one by which the run computed its reactions.
    """

    time: np.ndarray
    q: np.ndarray
    v: np.ndarray | None
    u: np.ndarray | None
    p: np.ndarray
    formulation: str = "auto"

    @property
    def backend(self) -> Backend:
        """Where the poses are computed: of a few states by NumPy, so that a picture waits for no compiler."""
        return "numpy" if len(self.q) <= FEW_STATES else "auto"

    def rows(self, at: np.ndarray) -> States:
        """The states at some of the records."""
        v, u = (None if x is None else x[at] for x in (self.v, self.u))
        return self._replace(time=self.time[at], q=self.q[at], v=v, u=u, p=self.p[at])


class ScenePart(NamedTuple):
    """A solid on a body.   body: its index, -1 for the world.   colour: (4,) red, green, blue, opacity."""

    name: str
    body: int
    solid: Solid
    colour: Colour
    layer: str


class MovingPart(NamedTuple):
    """A part whose end points move.   kind: rod, spring or arrow, with ends (n, 2, 3) [m]; or trail, with ends (n, 1, 3), its
    point at each time [m].   radius: [m].   scale: length of the arrow for a force of 1 N [m/N]; 0 of other parts."""

    name: str
    kind: str
    ends: np.ndarray
    colour: Colour
    layer: str
    radius: float
    scale: float = 0.0


class Floor(NamedTuple):
    """A plane of the world.   point: (3,).   normal: (3,).   real: whether something rolls on it; if not, it
    is only a grid below the motion."""

    point: np.ndarray
    normal: np.ndarray
    real: bool


class Scene(NamedTuple):
    """Everything that a picture of a motion contains.

    time: (n,) [s].   bodies: names.   positions: (n, bodies, 3) [m], rotations: (n, bodies, 3, 3).
    centres: (bodies, 3) mass centres in the body frames [m].   size: of the machine [m].   up: (3,) unit vector.
    floor: None where there is neither gravity nor a plane to stand on.
    layers: each layer with something to draw -> whether it is visible at first.
    """

    name: str
    time: np.ndarray
    bodies: tuple[str, ...]
    positions: np.ndarray
    rotations: np.ndarray
    centres: np.ndarray
    parts: tuple[ScenePart, ...]
    moving: tuple[MovingPart, ...]
    size: float
    up: np.ndarray
    floor: Floor | None
    layers: dict[str, bool]

    @property
    def points(self) -> np.ndarray:
        """(k, 3) points that bound the machine throughout its motion [m], from at most POSES records."""
        at = np.unique(np.linspace(0, len(self.time) - 1, min(POSES, len(self.time))).astype(int))
        clouds = [x.ends[at].reshape(-1, 3) for x in self.moving if x.layer != "reactions"]
        for part in (x for x in self.parts if x.layer in ("shapes", "contacts", "closures", "rotors")):
            corners = _corners(part.solid)
            clouds.append(corners if part.body < 0 else self.placed(part.body, corners)[at].reshape(-1, 3))
        return np.concatenate([*clouds, self.positions[at].reshape(-1, 3)])

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """(3,) lowest and (3,) highest coordinates of the points that bound the motion [m]."""
        points = self.points
        return points.min(axis=0), points.max(axis=0)

    def moved(self, by: np.ndarray) -> Scene:
        """The scene with everything moved by (3,) [m]."""
        floor = self.floor and self.floor._replace(point=self.floor.point + by)
        parts = [p if p.body >= 0 else p._replace(solid=p.solid.moved(np.eye(3), by)) for p in self.parts]
        moving = [x._replace(ends=x.ends + by) for x in self.moving]
        return self._replace(positions=self.positions + by, parts=tuple(parts), moving=tuple(moving), floor=floor)

    def placed(self, body: int, points: np.ndarray) -> np.ndarray:
        """World coordinates (n, k, 3) of points (k, 3) of a body [m]."""
        return points @ self.rotations[:, body].swapaxes(1, 2) + self.positions[:, body, None]


def _corners(solid: Solid) -> np.ndarray:
    low, high = solid.vertices.min(axis=0), solid.vertices.max(axis=0)
    return np.array([[x, y, z] for x in (low[0], high[0]) for y in (low[1], high[1]) for z in (low[2], high[2])])


class PlacedMechanism(NamedTuple):
    """A mechanism with the pose of each body at each state of a motion; the functions that make parts read it.

    bodies: name -> index.   R: (n, bodies, 3, 3).   x: (n, bodies, 3) [m].   size: of the machine [m].
    """

    m: Mechanism
    states: States
    bodies: dict[str, int]
    R: np.ndarray
    x: np.ndarray
    size: float = 1.0

    def value(self, number: ca.SX) -> np.ndarray:
        """The value of an expression of the parameters at the first state, for parts that keep their shape and place."""
        return self.m.value(number, self.states.p[0])

    def values(self, number: ca.SX) -> np.ndarray:
        """(n, rows) values of a column of the parameters at each state."""
        n, f = len(self.states.p), ca.Function("values", [self.m.p_symbols], [ca.vec(ca.densify(ca.SX(number)))])
        return np.array(f.map(n)(self.states.p.T)).T

    def pose(self, X: Pose) -> tuple[np.ndarray, np.ndarray]:
        """Rotation (3, 3) and position (3,) of a pose, as numbers."""
        return self.value(X.R), self.value(X.p).ravel()

    def number_of(self, body: str) -> int:
        """Index of a body; -1 for the world."""
        return self.bodies.get(body, -1)

    def point(self, body: str, x: Any) -> np.ndarray:
        """World coordinates (n, 3) of a point of a body or of the world, (3,), or (n, 3) if it moves in it [m]."""
        i, x = self.number_of(body), np.broadcast_to(x, (len(self.x), 3))
        return x if i < 0 else (self.R[:, i] @ x[:, :, None])[:, :, 0] + self.x[:, i]

    def turn(self, body: str) -> np.ndarray:
        """Rotation (n, 3, 3) of a body; identities for the world."""
        i = self.number_of(body)
        return np.broadcast_to(np.eye(3), (len(self.x), 3, 3)) if i < 0 else self.R[:, i]


def motion_of(m: Mechanism, result: Any) -> xr.Dataset:
    """The result of a run, or the motion of `assemble(..., along=True)` in the form of one.

    Raises ModelError: neither of them, or the motion of another mechanism.
    """
    if not isinstance(result, Trajectory):
        return as_result(result)
    if result.q_names != m.q_names:
        raise ModelError(f"the motion is of another mechanism: its coordinates are not those of {m.name!r}")
    runs = ("run",) if result.q.ndim == 3 else ()
    coords: dict[str, Any] = {"time": result.t, "coordinate": list(m.q_names), "velocity": list(m.v_names)}
    coords |= {"q_unit": ("coordinate", list(m.q_units)), "v_unit": ("velocity", list(m.v_units))}
    data: dict[str, Any] = {"q": (("time", *runs, "coordinate"), result.q)}
    data["status"] = runs, np.zeros(result.q.shape[1:-1], np.int32)
    if np.isfinite(result.v).any():
        data["v"] = ("time", *runs, "velocity"), result.v
    return xr.Dataset(data, coords).transpose(*runs, "time", ...)


def states_of(m: Mechanism, result: xr.Dataset, parameters: Any = None, run: int | None = None) -> States:
    """The recorded states of one run, up to where it stopped.   run: its index in a batch.

    Raises ModelError: the result is a batch, or of another mechanism; the numbers of runs differ; times do not increase.
    RunError: the result has no finite state. Warns ModelWarning: the run changed a parameter that was not recorded; records
    are not finite although the run did not stop before them.
    """
    recorded(as_result(result), "q")
    runs = result.sizes.get("run", 1)
    result = result if run is None else result.isel(run=run)
    if result["q"].dims != ("time", "coordinate"):
        raise ModelError(f"one run with its times is needed, this result has {result['q'].dims}; choose one by .isel(run=...)")
    if tuple(result["coordinate"].values.tolist()) != as_mechanism(m).q_names:
        raise ModelError(f"the result is of another mechanism: its coordinates are not those of {m.name!r}")
    if not (np.diff(result["time"].values) > 0).all():
        raise ModelError("the times of the result do not increase: sort it, result.sortby('time').drop_duplicates('time')")
    if parameters is None and "parameters" in result:
        parameters = result["parameters"]
    values = parameter_values(m, parameters)
    common_runs({"the result": runs, "parameters": len(values)})
    q = result["q"].values
    v, u = (result[k].values if k in result and result[k].dims[0] == "time" else None for k in ("v", "u"))
    p = np.tile(values[run or 0] if len(values) > 1 else values[0], (len(q), 1))
    for name in switched(result):
        if name in result:
            p[:, m.p_names.index(name)] = result[name].values
        else:
            notice(f"{brief(name)} changed during the run, which does not record it: drawn with its first value", ModelWarning)
    finite = np.all([np.isfinite(x).all(axis=1) for x in (q, v, u, p) if x is not None], axis=0)
    if not finite.any():
        raise RunError("the run has no state to show")
    _tell_of_gaps(result, finite)
    formulation = str(result.attrs.get("formulation", "auto"))
    return States(result["time"].values, q, v, u, p, formulation).rows(np.flatnonzero(finite))


def _tell_of_gaps(result: xr.Dataset, finite: np.ndarray) -> None:
    """Warn of records that are not finite, (n,) of bool; a run that stopped has said so, and has none after its stop."""
    stopped = "status" in result and bool(result["status"].values != 0)
    known = finite[: finite.sum()] if stopped else finite
    if not known.all():
        first = float(result["time"].values[finite.argmin()])
        notice(
            f"{(~finite).sum()} of {len(finite)} records are not finite and not drawn, the first at {first:.6g} s", ModelWarning
        )


def switched(result: xr.Dataset) -> list[str]:
    """Names of the parameters that the run changed."""
    return list(json.loads(result.attrs.get("switches", "[]")))


def state_of(m: Mechanism, q: Any = None, parameters: Any = None) -> States:
    """One configuration as States, without velocities; None: the neutral one. Raises ModelError: there are several."""
    at, p = configurations(m, q), parameter_values(m, parameters)
    if max(len(at), len(p)) > 1:
        raise ModelError("one configuration with one set of parameters is needed, got several")
    return States(np.zeros(1), at, None, None, p)


def thinned(states: States, rate: float) -> States:
    """At most `rate` states per second, evenly spaced in time, with the first and the last among them."""
    time = states.time
    count = int(np.clip(np.ceil((time[-1] - time[0]) * rate) + 1, 1, len(time)))
    return states.rows(np.unique(at_times(time, np.linspace(time[0], time[-1], count))))


def at_times(records: np.ndarray, time: np.ndarray) -> np.ndarray:
    """Index of the first record not before each of the times (k,) [s]; that of the last one after the end."""
    return np.searchsorted(records, time - SAME_TIME).clip(0, len(records) - 1)


def body_colour(k: PlacedMechanism, b: Body) -> Colour:
    """The colour of a body: one of the palette, by the index of the body, softened."""
    code = COLOURS[k.bodies[b.name] % (len(COLOURS) - 1)]
    return (*[0.25 * 0.8 + 0.75 * int(code[i : i + 2], 16) / 255 for i in (1, 3, 5)], 1.0)


def combined(scenes: Mapping[int, Scene], beside: bool) -> Scene:
    """One scene of several runs of a machine at the same times: side by side, or the first run with the others as ghosts.

    The arrows of a layer have one scale in all runs.   scenes: number of the run in its batch -> its scene.
    """
    runs = list(scenes.values())
    last = max(runs, key=lambda s: s.time[-1])
    if len(runs) == 1:
        return last
    width = max(float(np.ptp(np.array(s.bounds), axis=0).max()) for s in runs)
    every = [x for s in runs for x in s.moving]
    scales = {layer: min(x.scale for x in every if x.layer == layer) for layer in {x.layer for x in every}}
    parts, moving, positions, rotations = list[ScenePart](), list[MovingPart](), [], []
    for i, run in enumerate(runs):
        s = run.moved(np.array([0.0, 1.15 * width * i, 0.0])) if beside else run
        opacity = 1.0 if beside or i == 0 else 0.25
        first = i * len(s.bodies)
        for part in s.parts:
            body = part.body if part.body < 0 else part.body + first
            parts.append(part._replace(body=body, colour=faint(part.colour, opacity)))
        for x in s.moving:
            scaled = x.ends if x.kind != "arrow" else x.ends[:, :1] + (x.ends - x.ends[:, :1]) * (scales[x.layer] / x.scale)
            moving.append(x._replace(ends=scaled, colour=faint(x.colour, opacity), scale=scales[x.layer]))
        positions.append(s.positions)
        rotations.append(s.rotations)
    names = tuple(f"{b} (run {i})" for i, s in scenes.items() for b in s.bodies)
    layers = {name: s.layers[name] for name in LAYERS for s in runs if name in s.layers}
    return last._replace(
        bodies=names, positions=np.concatenate(positions, axis=1), rotations=np.concatenate(rotations, axis=1),
        centres=np.concatenate([s.centres for s in runs]), parts=tuple(parts), moving=tuple(moving), layers=layers,
    )  # fmt: skip


def floor_square(scene: Scene) -> tuple[np.ndarray, float]:
    """The square of floor that is drawn below the whole motion: its centre (3,) and half the length of its side [m]."""
    assert scene.floor is not None
    low, high = scene.bounds
    n, middle = scene.floor.normal / np.linalg.norm(scene.floor.normal), (low + high) / 2
    return middle - ((middle - scene.floor.point) @ n) * n, 0.75 * float(np.linalg.norm(high - low)) or scene.size


def faint(colour: Colour, opacity: float) -> Colour:
    """The colour with its opacity multiplied by `opacity`."""
    return (*colour[:3], colour[3] * opacity)
