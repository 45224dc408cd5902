"""A result in 3D in a browser: bodies as frames, links as sticks from joint to joint. Needs viser."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
import xarray as xr

from pfaffian.errors import ModelError, RunError, install
from pfaffian.evaluate.compiled import compile_terms
from pfaffian.model.body import WORLD
from pfaffian.model.constraint import Closure
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.simulate.result import as_result, recorded
from pfaffian.terms.kinematics import Kinematics

FRAMES_PER_SECOND = 30
STICK, LOOP = (70, 70, 80), (213, 94, 0)


class Motion(NamedTuple):
    """time: (n,) [s].   sticks: (n, sticks, 2, 3) end points [m].   loops: how many of the last sticks belong to closures.
    origins: (n, bodies, 3) [m].   axes: (n, bodies, 4) quaternions w x y z."""

    time: np.ndarray
    sticks: np.ndarray
    loops: int
    origins: np.ndarray
    axes: np.ndarray


def motion(m: Mechanism, result: xr.Dataset, parameters: Any = None) -> Motion:
    """Poses of bodies and ends of sticks at each record of one run, up to where it stopped."""
    names = as_mechanism(m).q_names
    recorded(as_result(result), "q")
    if result["q"].dims != ("time", "coordinate"):
        raise ModelError(f"one run with its times is needed, this result has {result['q'].dims}; choose one by .isel(run=...)")
    if tuple(result["coordinate"].values.tolist()) != names:
        raise ModelError(f"the result is of another mechanism: its coordinates are not those of {m.name!r}")
    if parameters is None and "parameters" in result:
        parameters = result["parameters"]
    q = result["q"].values
    good = np.isfinite(q).all(axis=1)
    if not good.any():
        raise RunError("the run has no state to show")
    loops = sum(2 for c in m.constraints if isinstance(c, Closure))
    where = compile_terms(m, {"sticks": lambda T: _sticks(T.kinematics), "bodies": lambda T: _bodies(T.kinematics)})
    found = where(q[good], parameters=parameters)
    count = int(good.sum())
    sticks = found["sticks"].transpose(0, 2, 1).reshape(count, -1, 2, 3)
    bodies = found["bodies"].reshape(count, 12, -1).transpose(0, 2, 1)
    rotations = bodies[:, :, 3:].reshape(count, -1, 3, 3).swapaxes(2, 3)
    return Motion(result["time"].values[good], sticks, loops, bodies[:, :, :3], _quaternions(rotations))


def _sticks(k: Kinematics) -> ca.SX:
    """(3, 2 n) ends of sticks: body to joint on both sides, across the joint, body to mass centre; then the closures."""
    ends: list[ca.SX] = []
    for j in k.mechanism.joints:
        there = [k.pose(j.parent) @ j.placement, k.pose(j.child) @ j.child_placement]
        ends += [_origin(k, j.parent), there[0].p, there[0].p, there[1].p, there[1].p, _origin(k, j.child)]
    for b in k.mechanism.bodies:
        ends += [_origin(k, b.name), k.position(b.name, b.com)]
    for c in k.mechanism.constraints:
        if isinstance(c, Closure):
            ends += [_origin(k, c.body_a), (k.pose(c.body_a) @ c.placement_a).p]
            ends += [_origin(k, c.body_b), (k.pose(c.body_b) @ c.placement_b).p]
    return ca.horzcat(*ends)


def _origin(k: Kinematics, body: str) -> ca.SX:
    return k.pose(body).p if body != WORLD else ca.SX.zeros(3, 1)


def _bodies(k: Kinematics) -> ca.SX:
    """(12, bodies): position, then the rotation column by column."""
    return ca.horzcat(*[ca.vertcat(k.pose(b.name).p, ca.vec(k.pose(b.name).R)) for b in k.mechanism.bodies])


def _quaternions(R: np.ndarray) -> np.ndarray:
    """(..., 4) w x y z of rotations (..., 3, 3)."""
    from scipy.spatial.transform import Rotation

    return Rotation.from_matrix(R.reshape(-1, 3, 3)).as_quat()[:, [3, 0, 1, 2]].reshape(*R.shape[:-2], 4)


def need_viser() -> Any:
    """The package viser. Raises ModelError: it is not installed, and how to install it."""
    try:
        import viser
    except ImportError:
        raise ModelError(f"3D in a browser needs the package viser: run {install('viser')}") from None
    return viser


def view(m: Mechanism, result: xr.Dataset | None = None, parameters: Any = None) -> None:
    """Show the motion of one run in 3D in a browser on this machine, and play it until Ctrl-C. Needs viser.

    Bodies are drawn as frames, links as sticks from joint to joint, closures in orange. Only this machine is served.

    Args:
        m: the mechanism that ran.
        result: Dataset of one run, with q recorded.
        parameters: {name: value} of the run; None: those in the result, or the defaults.
    Raises ModelError: viser is not installed; a batch; the result of another mechanism. RunError: no state to show.

    Example:
        >>> import pfaffian as pf
        >>> hinge = pf.joint("hinge", "revolute", "world", "rod", axis=(0, 1, 0))
        >>> m = pf.mechanism("pendulum", [pf.body("rod", 1.0, com=(0, 0, -0.5))], [hinge])
        >>> result = pf.run(m, {"hinge": 0.3}, duration=0.01, backend="numpy")
        >>> pf.view(m, result)  # doctest: +SKIP
        showing the motion; Ctrl-C ends it
    """
    as_mechanism(m)
    run = as_result(result)
    viser = need_viser()
    found = motion(m, run, parameters)
    server = viser.ViserServer(host="127.0.0.1", label="pfaffian")
    draw, size = _scene(server, found), _size(found)
    server.initial_camera.position = tuple(found.origins[0].mean(axis=0) + size * np.array([0.8, -1.6, 0.8]))
    server.initial_camera.look_at = tuple(found.origins[0].mean(axis=0))
    slider: Any = server.gui.add_slider("time [s]", *_span(found), step=1e-3, initial_value=float(found.time[0]))
    playing = server.gui.add_checkbox("play", True)
    print("showing the motion; Ctrl-C ends it")
    try:
        while True:
            if playing.value:
                now = slider.value + 1 / FRAMES_PER_SECOND
                slider.value = now if now <= found.time[-1] else float(found.time[0])
            draw(int(np.searchsorted(found.time, slider.value).clip(0, len(found.time) - 1)))
            time.sleep(1 / FRAMES_PER_SECOND)
    except KeyboardInterrupt:
        server.stop()


def _span(found: Motion) -> tuple[float, float]:
    return float(found.time[0]), float(max(found.time[-1], found.time[0] + 1e-3))


def _size(found: Motion) -> float:
    """Largest extent at the start [m]."""
    points = found.sticks[0].reshape(-1, 3)
    return max(float(np.ptp(points, axis=0).max()), 0.1)


def _scene(server: Any, found: Motion) -> Callable[[int], None]:
    """Draw the first record; return the function that draws record i. Names in the scene are fixed words."""
    size, n = _size(found), found.sticks.shape[1]
    colours = np.array([STICK] * (n - found.loops) + [LOOP] * found.loops, dtype=np.uint8)
    server.scene.set_up_direction("+z")
    server.scene.add_grid("/floor", width=4 * size, height=4 * size, cell_size=size / 4, section_size=size)
    sticks = server.scene.add_line_segments(
        "/sticks", found.sticks[0].astype(np.float32), np.repeat(colours[:, None], 2, axis=1), thickness=size / 120
    )
    frames = server.scene.add_batched_axes(
        "/bodies", found.axes[0], found.origins[0], axes_length=size / 15, axes_radius=size / 400
    )

    def draw(i: int) -> None:
        sticks.points = found.sticks[i].astype(np.float32)
        frames.batched_positions = found.origins[i].astype(np.float32)
        frames.batched_wxyzs = found.axes[i].astype(np.float32)

    return draw
