"""A 3D view of a machine or its motion in a browser, seen from any side and moved by its joints. Needs viser."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from pfaffian.errors import ModelError, RunError, brief, optional
from pfaffian.evaluate.single_values import as_flag
from pfaffian.maths import so3
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.output.plain import markdown, text
from pfaffian.starts.assemble import assemble
from pfaffian.starts.trajectory import Trajectory
from pfaffian.viewer.animate import drawn_runs, runs_of
from pfaffian.viewer.build import placed, scene, stretching
from pfaffian.viewer.camera import VIEW, framing
from pfaffian.viewer.fittings import coil
from pfaffian.viewer.scene import MovingPart, Scene, floor_square, motion_of, state_of
from pfaffian.viewer.solids import towards

FRAMES_PER_SECOND = 30
SPEEDS = ("0.1", "0.25", "0.5", "1", "2", "4")
ASPECT = 1.0
"""Width over height of the part of a window beside the panel; a low estimate, so that nothing is cut off."""
STILL = "still camera"
Rerun = Callable[[dict[str, float]], xr.Dataset]
"""A function from {parameter: value} to the result of a run."""

MAX_SLIDERS = 20
"""Largest number of sliders: a machine with more coordinates and parameters has them for the first ones."""


def need_viser() -> Any:
    """Import viser. Raises ModelError: it is not installed, with the command that installs it."""
    return optional("viser", "viser", "3D in a browser needs")


def view(
    m: Mechanism, result: xr.Dataset | Trajectory | None = None, parameters: Any = None, *, q: Any = None, beside: bool = False,
    reactions: bool = False, rerun: Rerun | None = None, block: bool | None = None,
) -> View:  # fmt: skip
    """Show a mechanism, or the motion of a run, in 3D in a browser on this machine. Needs viser.

    The panel beside the picture plays the motion at any speed, follows a body, and switches shapes, joint axes, closures,
    springs, rotors, forces, trails, names and the floor on and off. It also moves the machine by its joints and parameters:
    `assemble` closes the loops, and the panel reports what is out of reach. A click on a part displays its name. The view is
    served to this computer only.

    Args:
        m: the mechanism.
        result: Dataset of a run with q recorded, or of a batch, whose runs are drawn in one picture, or the motion of
            `assemble(..., along=True)`; None, the default, shows the machine at rest.
        parameters: {name: value} of the run; None: those in the result, or the defaults.
        q: without a result, the configuration as `assemble` takes it: {coordinate: number}, the rest as near to neutral as the
            constraints allow.
        beside: whether to draw the runs of a batch side by side; False, the default, draws all but the first as ghosts.
        reactions: whether to compute the reactions of joints and closures along the result, as a layer; False by default.
        rerun: with a result, a function of {parameter: value} that returns the result of a new run, which the view shows when a
            slider changes a parameter; None, the default: such a slider only changes the machine at rest.
        block: whether to wait until Ctrl-C. None, the default: it waits in a script, which would end otherwise, and not in a
            notebook or at a prompt.
    Returns:
        View: `url`, `play(on)`, `seek(time)`, `pose(name, value)`, `stop()`; a notebook displays it.
    Raises ModelError: viser is not installed; q is given with a result, or rerun or reactions without one; the result is of
    another mechanism, or lacks v or u, of which reactions are computed. RunError: the result has no finite state.
    Warns ModelWarning: a mesh cannot be read, with the reason.

    Example:
        >>> import pfaffian as pf
        >>> hinge = pf.joint("hinge", "revolute", "world", "rod", axis=(0, 1, 0))
        >>> m = pf.mechanism("pendulum", [pf.body("rod", 1.0, com=(0, 0, -0.5))], [hinge])
        >>> pf.view(m)  # doctest: +SKIP
        showing 'pendulum' at http://127.0.0.1:8080; Ctrl-C ends it
    """
    as_mechanism(m)
    as_flag(beside, "beside"), as_flag(reactions, "reactions")
    if result is not None:
        result = motion_of(m, result)
        if q is not None:
            raise ModelError("view: q is only for a machine without a result; a result has its own q")
    if rerun is not None and (result is None or not callable(rerun)):
        raise ModelError("view: rerun is a function of {parameter: value} that returns a result, and needs a result too")
    if reactions and result is None:
        raise ModelError("view: reactions are drawn along a run, so give its result; at one state, see pf.reaction_wrench")
    viser = need_viser()
    if result is None:
        p = state_of(m, None, parameters).p[0]
        start, message = _start(m, q, p)
        picture = scene(m, state_of(m, start, p))
    else:
        picture, message = drawn_runs(m, result, parameters, FRAMES_PER_SECOND, beside, reactions), ""
        first = next(iter(runs_of(m, result, parameters).values()))
        start, p = first.q[0], first.p[0]
    window = View(m, picture, viser.ViserServer(host="127.0.0.1", label="pfaffian", verbose=False), start, p)
    if rerun is not None:
        window.rerun = lambda p: _scene_of_rerun(m, rerun, p, beside, reactions)
    if message:
        window.say(message)
    wait = not _interactive() if block is None else as_flag(block, "block")
    print(f"showing {text(m.name, 60)!r} at {window.url}" + ("; Ctrl-C ends it" if wait else ""))
    if wait:
        window.wait()
    return window


def _scene_of_rerun(m: Mechanism, rerun: Rerun, p: np.ndarray, beside: bool, reactions: bool) -> Scene:
    """The scene of a new run at the parameters p (np,)."""
    result = motion_of(m, rerun(dict(zip(m.p_names, p.tolist(), strict=True))))
    return drawn_runs(m, result, None if "parameters" in result else p, FRAMES_PER_SECOND, beside, reactions)


def _interactive() -> bool:
    """Whether this is a notebook or a prompt, not a script."""
    return hasattr(sys, "ps1") or "ipykernel" in sys.modules


def _start(m: Mechanism, q: Any, p: np.ndarray) -> tuple[np.ndarray, str]:
    """The first configuration, on the constraints if these can be met, and a message if not."""
    try:
        return assemble(m, q, parameters=p).q, ""
    except RunError as error:
        if q is not None:
            raise
        return m.neutral(), f"the neutral configuration does not meet the constraints: {error}"


class View:
    """A scene in a browser; made by `view`.

    url, port: address at which it is served.   switches: layer -> checkbox.   sliders: coordinate or parameter -> slider.
    followed: choice of what the camera follows -> name of the body, empty for none.
    """

    def __init__(self, m: Mechanism, drawn: Scene, server: Any, q: np.ndarray, p: np.ndarray) -> None:
        self.m, self.drawn, self.server, self.q, self.p = m, drawn, server, np.array(q, dtype=float), np.array(p, dtype=float)
        self.port: int = server.get_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.run = drawn
        self.rerun: Callable[[np.ndarray], Scene] | None = None
        self._lock, self._over = threading.RLock(), threading.Event()
        self._seen: np.ndarray | None = None
        self.places: dict[int, Any] = {}
        self.layers: dict[str, list[Any]] = {}
        self.switches: dict[str, Any] = {}
        self.sliders: dict[str, Any] = {}
        self.followed: dict[str, str] = {STILL: ""}
        self._build()
        self._panel()
        self._camera()
        self.draw()
        self._player = threading.Thread(target=self._play, daemon=True)
        self._player.start()

    def __repr__(self) -> str:
        return f"<View of {text(self.m.name, 60)!r} at {self.url}>"

    def _repr_html_(self) -> str:
        return f'<iframe src="{self.url}" width="100%" height="560" style="border:0"></iframe>'

    # -- public methods

    def play(self, on: bool = True) -> None:
        """Play the motion, or pause it."""
        self.playing.value = bool(on)

    def seek(self, t: float) -> None:
        """Show the motion at a time [s]."""
        with self._lock:
            self.clock.value = float(np.clip(t, self.run.time[0], self.run.time[-1]))
            self._show(self.run)
            self.draw()

    def pose(self, name: str, value: float) -> None:
        """Set a coordinate or a parameter; loops close as near as possible, or the panel reports what is out of reach."""
        with self._lock:
            self.playing.value = False
            q, p, hold = self.q.copy(), self.p.copy(), list[str]()
            if name in self.m.q_names:
                q[self.m.q_names.index(name)], hold = value, [name]
            elif name in self.m.p_names:
                p[self.m.p_names.index(name)] = value
            else:
                raise ModelError(f"pose: {brief(name)} is neither a coordinate nor a parameter of {self.m.name!r}")
            if self.rerun is not None and not hold:
                self._run_again(p)
                return
            try:
                q = assemble(self.m, q, parameters=p, hold=hold, search=False).q if self.m.constraints else q
            except (RunError, ModelError) as error:
                self.say(str(error))
                return
            self.say("")
            self._pose(q, p)

    def _run_again(self, p: np.ndarray) -> None:
        """Show the motion of a new run at other parameters; if it cannot run, the panel says why, and the old motion stays."""
        assert self.rerun is not None
        try:
            drawn = self.rerun(p)
        except (RunError, ModelError) as error:
            self.say(str(error))
            return
        self.say("")
        self.p, self.run = p, drawn
        self.clock.max = float(max(drawn.time[-1], drawn.time[0] + 1e-3))
        self._show(drawn)
        self.seek(float(self.clock.value))

    def stop(self) -> None:
        """Close the view."""
        self._over.set()
        self._player.join(2.0)
        self.server.stop()

    def wait(self) -> None:
        """Wait until Ctrl-C, or until the view is stopped."""
        try:
            while not self._over.is_set():
                time.sleep(0.2)
        except KeyboardInterrupt:
            self.stop()

    def say(self, words: str) -> None:
        """Show a message in the panel."""
        self.message.content = markdown(words, 300)

    # -- the scene

    def _pose(self, q: np.ndarray, p: np.ndarray) -> None:
        """Draw the machine at a configuration; if a parameter changed, make its parts anew."""
        changed = not np.array_equal(p, self.p)
        self.q, self.p = q, p
        if changed or len(self.drawn.bodies) != len(self.m.bodies):
            self._show(scene(self.m, state_of(self.m, q, p)))
        else:
            k = placed(self.m, state_of(self.m, q, p))._replace(size=self.drawn.size)
            moved = self.drawn._replace(time=np.zeros(1), positions=k.x, rotations=k.R, moving=stretching(k))
            self._show(moved)
        for name, slider in self.sliders.items():
            now = q[self.m.q_names.index(name)] if name in self.m.q_names else p[self.m.p_names.index(name)]
            slider.value = float(np.clip(now, slider.min, slider.max))
        self.draw()

    def _show(self, drawn: Scene) -> None:
        """Show another scene; if its parts are the same, they stay in the browser."""
        same = drawn.parts is self.drawn.parts
        self.drawn = drawn
        if not same:
            self._build()

    def _build(self) -> None:
        """Add all parts, each under the frame of its body. Names in the browser's scene tree are fixed words and numbers."""
        drawn, api = self.drawn, self.server.scene
        for handle in [h for handles in self.layers.values() for h in handles] + [*self.places.values()]:
            handle.remove()
        self.layers = {name: [] for name in drawn.layers}
        frames = [api.add_frame(f"/body{i}", show_axes=False) for i in range(len(drawn.bodies))]
        self.places = dict(enumerate(frames))
        for n, part in enumerate(drawn.parts):
            colour = tuple(int(255 * x) for x in part.colour[:3])
            where = f"/body{part.body}/part{n}" if part.body >= 0 else f"/part{n}"
            solid, opacity = part.solid, part.colour[3] if part.colour[3] < 0.99 else None
            mesh = api.add_mesh_simple(
                where, solid.vertices.astype(np.float32), solid.faces.astype(np.uint32), color=colour, opacity=opacity,
                flat_shading=True, side="double", visible=self._on(part.layer),
            )  # fmt: skip
            mesh.on_click(lambda _, name=part.name: self.say(name))
            self.layers[part.layer].append(mesh)
        length = 0.12 * drawn.size
        for i in range(len(drawn.bodies)):
            axes = api.add_frame(f"/body{i}/axes", axes_length=length, axes_radius=0.05 * length, visible=self._on("frames"))
            self.layers["frames"].append(axes)
        for i, name in enumerate(drawn.bodies):
            words = api.add_label(f"/body{i}/name", text(name, 60), position=drawn.centres[i], visible=self._on("names"))
            self.layers["names"].append(words)
        if drawn.floor is not None:
            middle, half = floor_square(drawn)
            turn = so3.quaternions(towards(drawn.floor.normal)[None])[0][[3, 0, 1, 2]]
            grid = {"cell_size": half / 6, "section_size": half / 2, "position": middle, "wxyz": turn}
            self.layers["floor"].append(api.add_grid("/floor", 2 * half, 2 * half, **grid, visible=self._on("floor")))
        self._strokes: dict[str, Any] = {}

    def _on(self, layer: str) -> bool:
        """Whether a layer is visible."""
        return bool(self.switches[layer].value) if layer in self.switches else self.drawn.layers.get(layer, False)

    def draw(self) -> None:
        """Draw the scene at the time of the slider."""
        with self._lock, self.server.atomic():
            drawn = self.drawn
            i = int(np.searchsorted(drawn.time, self.clock.value - 1e-9).clip(0, len(drawn.time) - 1))
            turned = so3.quaternions(drawn.rotations[i])[:, [3, 0, 1, 2]]
            for body, frame in self.places.items():
                frame.position, frame.wxyz = drawn.positions[i, body], turned[body]
            for layer in drawn.layers:
                moving = [x for x in drawn.moving if x.layer == layer]
                self._stroke(layer, "lines", [x for x in moving if x.kind != "arrow"], i)
                self._stroke(layer, "arrows", [x for x in moving if x.kind == "arrow"], i)
            self._follow(i)

    def _stroke(self, layer: str, kind: str, strokes: list[MovingPart], i: int) -> None:
        """Draw the lines or arrows of a layer as one object of the browser."""
        name = f"/{layer}-{kind}"
        if not strokes:
            if name in self._strokes:  # of another state
                stale = self._strokes.pop(name)
                self.layers[layer].remove(stale)
                stale.remove()
            return
        segments = [_segments(x, i) for x in strokes]
        points = np.concatenate(segments).astype(np.float32)
        colour = tuple(int(255 * x) for x in strokes[0].colour[:3])
        radius = strokes[0].radius
        if name in self._strokes:
            self._strokes[name].points = points
        elif kind == "arrows":
            sizes = {"shaft_radius": radius, "head_radius": 2.4 * radius, "head_length": 5 * radius}
            self._strokes[name] = self.server.scene.add_arrows(name, points, colour, **sizes, visible=self._on(layer))
            self.layers[layer].append(self._strokes[name])
        else:
            thick = 2 * radius / (5 if strokes[0].kind == "spring" else 1)
            self._strokes[name] = self.server.scene.add_line_segments(
                name, points, colour, thickness=thick, visible=self._on(layer)
            )
            self.layers[layer].append(self._strokes[name])

    # -- the camera

    def _camera(self) -> None:
        """Place the initial camera so that the whole motion is in view."""
        camera, first = framing(self.drawn, ASPECT), self.server.initial_camera
        self.server.scene.set_up_direction(tuple(camera.up))
        first.position, first.look_at, first.up = tuple(camera.eye), tuple(camera.target), tuple(camera.up)
        first.fov = 2 * float(np.arctan(VIEW / 2))

    def _follow(self, i: int) -> None:
        """Move all cameras with the body to follow, if there is one, to record i."""
        name = self.followed[self.follow.value]
        if name not in self.drawn.bodies:
            self._seen = None
            return
        body = self.drawn.bodies.index(name)
        now = self.drawn.placed(body, self.drawn.centres[body][None])[i, 0]
        moved = np.zeros(3) if self._seen is None else now - self._seen
        for client in self.server.get_clients().values():
            client.camera.position = client.camera.position + moved
            client.camera.look_at = now
        self._seen = now

    # -- the panel

    def _panel(self) -> None:
        """Make the panel: player, camera, message, switches of the layers, sliders."""
        gui, run = self.server.gui, self.run
        gui.configure_theme(control_layout="collapsible", show_logo=False, show_share_button=False)
        start, end = float(run.time[0]), float(max(run.time[-1], run.time[0] + 1e-3))
        in_motion = len(run.time) > 1
        with gui.add_folder("play", visible=in_motion):
            self.playing = gui.add_checkbox("play", in_motion)
            self.clock = gui.add_slider("time [s]", start, end, step=(end - start) / 1000, initial_value=start)
            self.speed = gui.add_dropdown("speed", SPEEDS, initial_value="1")
        for i, body in enumerate(run.bodies):
            choice = text(body, 60)
            self.followed[choice if choice not in self.followed else f"{choice} ({i})"] = body
        self.follow = gui.add_dropdown("follow", tuple(self.followed), initial_value=STILL)
        self.message = gui.add_markdown("")
        self.clock.on_update(lambda event: self._scrubbed(event))
        with gui.add_folder("show"):
            for layer, on in run.layers.items():
                self.switches[layer] = gui.add_checkbox(layer, on)
                self.switches[layer].on_update(lambda _, layer=layer: self._switch(layer))
        with gui.add_folder("move", expand_by_default=not in_motion):
            for name, low, high, now in [*self._coordinates(), *self._parameters()][:MAX_SLIDERS]:
                at = float(np.clip(now, low, high))
                slider = gui.add_slider(text(name, 60), low, high, step=(high - low) / 1000, initial_value=at)
                slider.on_update(lambda event, name=name: self._moved(event, name))
                self.sliders[name] = slider

    def _coordinates(self) -> list[tuple[str, float, float, float]]:
        """Name, lowest, highest and present value of each coordinate in rad or m, so of none of a quaternion."""
        ranges = []
        for i, (name, unit) in enumerate(zip(self.m.q_names, self.m.q_units, strict=True)):
            reach = {"rad": np.pi, "m": 2 * self.drawn.size}.get(unit)
            if reach is not None:
                now, (low, high) = float(self.q[i]), self.m.q_limits[i].tolist()
                ranges.append((name, max(low, min(-reach, now)), min(high, max(reach, now)), now))
        return [(name, low, high, now) for name, low, high, now in ranges if high > low]

    def _parameters(self) -> list[tuple[str, float, float, float]]:
        """Name, lowest, highest and present value of each parameter: 0.2 to 3 times its value, or -1 to 1 if that is zero."""
        ranges = []
        for name, now in zip(self.m.p_names, self.p.tolist(), strict=True):
            low, high = sorted((0.2 * now, 3 * now)) if now else (-1.0, 1.0)
            ranges.append((name, low, high, now))
        return ranges

    def _switch(self, layer: str) -> None:
        """Show or hide a layer, as its checkbox says."""
        for handle in self.layers.get(layer, []):
            handle.visible = self._on(layer)

    def _scrubbed(self, event: Any) -> None:
        if event.client is not None:  # None: this program moved the slider, not a user
            self.playing.value = False
            self.seek(self.clock.value)

    def _moved(self, event: Any, name: str) -> None:
        if event.client is not None:
            self.pose(name, self.sliders[name].value)

    def _play(self) -> None:
        """Advance the time while the motion plays; runs in a thread until the view is stopped."""
        before = time.monotonic()
        while not self._over.wait(1 / FRAMES_PER_SECOND):
            now = time.monotonic()
            if self.playing.value and len(self.run.time) > 1:
                with self._lock:
                    t = self.clock.value + (now - before) * float(self.speed.value)
                    self.seek(t if t <= self.run.time[-1] else float(self.run.time[0]))
            before = now


def _segments(x: MovingPart, i: int) -> np.ndarray:
    """The segments (k, 2, 3) of a line at record i, or the ends (1, 2, 3) of an arrow [m]."""
    if x.kind == "arrow":
        return x.ends[i][None]
    path = (
        x.ends[i]
        if x.kind == "rod"
        else coil(x.ends[i, 0], x.ends[i, 1], x.radius)
        if x.kind == "spring"
        else x.ends[: i + 1, 0]
    )
    path = path[:: max(len(path) // 200, 1)] if x.kind == "trail" else path
    path = np.concatenate([path, path]) if len(path) == 1 else path
    return np.stack([path[:-1], path[1:]], axis=1)
