"""The motion of a run as a film, a GIF or a page that plays in a browser, made without a window or a graphics card."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from html import escape
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from pfaffian.errors import ModelError, ModelWarning, RunError, brief, listed, nearest, notice, optional
from pfaffian.formats.text.file import as_path
from pfaffian.formats.text.strict_number import printable
from pfaffian.model.mechanism import Mechanism, as_mechanism, as_names
from pfaffian.model.number import named_float
from pfaffian.output.folder import write_file
from pfaffian.simulate.record.result import as_result, recorded
from pfaffian.starts.trajectory import Trajectory
from pfaffian.viewer.beside import beside_motion
from pfaffian.viewer.build import scene
from pfaffian.viewer.camera import Camera, following, framing
from pfaffian.viewer.names import named
from pfaffian.viewer.page import page
from pfaffian.viewer.picture import video, workspace
from pfaffian.viewer.render import backdrop, batched, frame
from pfaffian.viewer.scene import LAYERS, Scene, States, at_times, combined, motion_of, states_of, switched, thinned

RATE = {".mp4": 30.0, ".gif": 20.0, ".html": 60.0}
"""Suffix -> largest number of frames per second of the film."""

MAX_FRAMES = 3600
"""Largest number of frames in a film."""


ENCODING = "-crf", "20", "-preset", "ultrafast", "-threads", "1"
"""How ffmpeg compresses films: drawings are small whatever it tries, and threads would only take longer."""


class Animation(NamedTuple):
    """An animation made by `animate`; a notebook displays it.

    file: path of the file, None if the animation is only in memory.   suffix: .mp4, .gif or .html.   data: bytes of the file.
    """

    file: Path | None
    suffix: str
    data: bytes

    def __repr__(self) -> str:
        where = "in memory" if self.file is None else f"in {printable(str(self.file))}"
        return f"<Animation: {self.suffix.removeprefix('.')}, {len(self.data) / 1e6:.2g} MB, {where}>"

    def _repr_html_(self) -> str:
        if self.suffix == ".html":
            words = escape(self.data.decode("utf-8"))
            rights = "allow-scripts allow-downloads"  # it saves pictures
            return f'<iframe srcdoc="{words}" width="720" height="540" sandbox="{rights}" style="border:0"></iframe>'
        source = f"{'video/mp4' if self.suffix == '.mp4' else 'image/gif'};base64,{b64encode(self.data).decode('ascii')}"
        return f'<video src="data:{source}" controls loop></video>' if self.suffix == ".mp4" else f'<img src="data:{source}">'


def animate(
    m: Mechanism, result: xr.Dataset | Trajectory, file: str | Path | None = None, *, parameters: Any = None,
    speed: float = 1.0, size: tuple[int, int] = (720, 540), show: Iterable[str] = (), hide: Iterable[str] = (),
    follow: str | None = None, around: float = 0.0, plot: str | Iterable[str] = (), beside: bool = False,
    progress: bool = False,
) -> Animation:  # fmt: skip
    """Write the motion of a run as a film (.mp4, .gif), or as a page (.html) in which it can be played, turned and paused.

    Only this file is written; no window, graphics card or network is needed. The page is a single file that works anywhere.

    Args:
        m: the mechanism that ran.
        result: Dataset of a run with q recorded, or of a batch, whose runs are drawn in one picture; or the motion of
            `assemble(..., along=True)`, without times a sample a second.
        file: path that ends in .mp4 (needs imageio-ffmpeg), .gif (needs pillow) or .html; None, the default, for a page in
            memory only, which a notebook displays.
        parameters: {name: value} of the run; None, the default: those in the result, or the defaults.
        speed: seconds of motion per second of the film, 1 by default; in the page, the viewer chooses the speed.
        size: width and height of the film in pixels, even numbers; (720, 540) by default.
        show: layers to add to those that are visible by default: collision, joints, reactions, trails, frames, names.
            Names are of bodies, and in films need pillow. Reactions are
            computed only if they are named here, from q, v, u and switched parameters as the run recorded them.
        hide: layers to leave out: shapes, joints, contacts, closures, springs, rotors, forces, floor.
        follow: name of a body that stays in the middle; None, the default, for a fixed camera with everything in view.
        around: angle by which the camera goes round the machine to the left [rad], 0 by default; pi shows its other side.
        plot: names of signals or entries, such as "q" or "energy", that the page plots beside the motion; a click in a plot
            moves the machine to that time. None by default; films have no plots.
        beside: whether to draw the runs of a batch side by side; False, the default, draws all but the first as ghosts.
        progress: show a progress bar; False by default.
    Returns:
        Animation with `file`, its path, and `data`, its bytes; a notebook displays it.
    Raises ModelError: the suffix, a layer or the body to follow is unknown; a package is missing; the result is of another
    mechanism; its times do not increase; it lacks a record that reactions need; the film would have too many frames. RunError:
    the result has no finite state; the file cannot be written.
    Warns ModelWarning: records of a run that went on, or all of a run of a batch, are not finite and not drawn; a mesh
    cannot be read, with the reason, and the body is drawn by rods between its joints; the run changed a parameter that it
    did not record, or on which the shape or place of a part depends.

    Example:
        >>> import pfaffian as pf
        >>> hinge = pf.joint("hinge", "revolute", "world", "rod", axis=(0, 1, 0))
        >>> m = pf.mechanism("pendulum", [pf.body("rod", 1.0, com=(0, 0, -0.5))], [hinge])
        >>> film = pf.animate(m, pf.run(m, {"hinge": 0.3}, duration=0.1, backend="numpy"))
        >>> film.data[:15], film.file
        (b'<!doctype html>', None)
    """
    as_mechanism(m)
    suffix = suffix_of(file)
    visible, hidden = _layers(show, "show"), _layers(hide, "hide")
    rate = RATE[suffix] / _above_zero(speed, "speed")
    if "names" in visible - hidden and suffix != ".html":
        need_pillow("names in a film need", "leave out show='names'")
    collision = "collision" in visible or suffix == ".html"  # which a page shows when they are switched on
    result = motion_of(m, result)
    motion = drawn_runs(m, result, parameters, rate, beside, "reactions" in visible, collision)
    motion = motion._replace(layers={k: (v or k in visible) and k not in hidden for k, v in motion.layers.items()})
    if follow is not None and follow not in motion.bodies:
        raise ModelError(f"follow: there is no body {brief(follow)}; {nearest(follow, list(motion.bodies))}")
    around = named_float(around, "around")
    if suffix == ".html":
        data = page(motion, beside_motion(result, plot), around).encode("utf-8")
    else:
        width, height = _pixels(size)
        films = {".mp4": _mp4, ".gif": _gif}
        data = films[suffix](list(_frames(motion, rate, (width, height), follow, around, progress)), RATE[suffix])
    return Animation(None if file is None else write_file(as_path(file), data), suffix, data)


def drawn_runs(
    m: Mechanism, result: xr.Dataset, parameters: Any, rate: float, beside: bool, reactions: bool, collision: bool = True
) -> Scene:
    """The scene of one run, or of all runs of a batch that have a finite state.   rate: most records per second of motion.
    reactions, collision: as in `scene`.

    The runs of a batch are drawn at the same times; one that stopped stays at its last state.
    """
    more = ["v", *(["u"] if m.nu else []), *switched(as_result(result))] if reactions else []
    recorded(as_result(result), "q", *more)
    runs = runs_of(m, result, parameters)
    times = thinned(max(runs.values(), key=lambda states: states.time[-1]), rate).time
    scenes = {i: scene(m, states.rows(at_times(states.time, times)), reactions, collision) for i, states in runs.items()}
    return combined(scenes, beside)


def runs_of(m: Mechanism, result: xr.Dataset, parameters: Any) -> dict[int, States]:
    """The states of each run that has a finite one, by its number in the batch; warns of the others.

    Raises RunError: no run has one.
    """
    if "run" not in result["q"].dims:
        return {0: states_of(m, result, parameters)}
    runs: dict[int, States] = {}
    empty = list[str]()
    for i in range(result.sizes["run"]):
        try:
            runs[i] = states_of(m, result, parameters, i)
        except RunError:  # this run has no finite state
            empty.append(str(i))
    if not runs:
        raise RunError("no run has a state to show")
    if empty:
        notice(f"runs without a finite state are not drawn: {listed(empty)}", ModelWarning)
    return runs


def suffix_of(file: Any) -> str:
    """The suffix of a file; .html for None. Raises ModelError: it is unknown, or the package that it needs is missing."""
    if file is None:
        return ".html"
    suffix = as_path(file).suffix.lower()
    if suffix not in RATE:
        raise ModelError(f"{printable(str(file))}: the name of an animation ends in {', '.join(RATE)}, got {printable(suffix)}")
    needed: dict[str, Callable[[], Any]] = {".mp4": need_ffmpeg, ".gif": need_pillow, ".html": lambda: None}
    needed[suffix]()
    return suffix


def need_ffmpeg() -> Any:
    """Import imageio-ffmpeg. Raises ModelError: it is not installed, with the command that installs it."""
    return optional("imageio_ffmpeg", "imageio-ffmpeg", "an .mp4 needs", "write .html")


def need_pillow(what: str = "a .gif needs", otherwise: str = "write .html") -> Any:
    """Import pillow. Raises ModelError: it is not installed, with the command that installs it."""
    return optional("PIL.Image", "pillow", what, otherwise)


def _layers(names: Iterable[str], what: str) -> frozenset[str]:
    """The layers with these names, one or several. Raises ModelError: there is no such layer."""
    layers = frozenset((names,) if isinstance(names, str) else as_names(names, what))
    for name in layers:
        if name not in LAYERS:
            raise ModelError(f"{what}: there is no layer {brief(name)}; {nearest(name, list(LAYERS))}")
    return layers


def _above_zero(value: Any, what: str) -> float:
    number = named_float(value, what)
    if not number > 0:
        raise ModelError(f"{what}: a number above zero is needed, got {brief(value)}")
    return number


def _pixels(size: Any) -> tuple[int, int]:
    try:
        width, height = (int(x) for x in size)
    except (TypeError, ValueError, OverflowError):
        raise ModelError(f"size: (width, height) in pixels is needed, got {brief(size)}") from None
    if not all(16 <= x <= 4096 and x % 2 == 0 for x in (width, height)):
        raise ModelError(f"size: even numbers of pixels from 16 to 4096 are needed, got {brief(size)}")
    return width, height


def _frames(
    motion: Scene, rate: float, size: tuple[int, int], follow: str | None, around: float, progress: bool
) -> Iterator[np.ndarray]:
    """The pictures of a film, (height, width, 3) uint8, `rate` of them per second of motion."""
    from tqdm import tqdm

    layers = frozenset(k for k, v in motion.layers.items() if v)
    span = float((motion.time[-1] - motion.time[0]) * rate)
    if not span < MAX_FRAMES:
        raise ModelError(
            f"the film would have {span:.4g} pictures, more than {MAX_FRAMES}: give a larger speed or a part of the result"
        )
    at = at_times(motion.time, motion.time[0] + np.arange(int(span) + 1) / rate)
    camera = framing(motion, size[0] / size[1], around)
    motion, camera = motion.moved(-camera.target), following(camera, np.zeros(3))  # the renderer counts with float32
    work = workspace(size)
    batch = batched(motion, layers)
    behind = backdrop(motion, layers, camera, size, work)
    for i in tqdm(at, desc="drawing", disable=not progress, leave=False):
        if follow is not None:
            camera = _followed(motion, camera, follow, int(i))
            behind = backdrop(motion, layers, camera, size, work)
        picture = frame(motion, batch, layers, behind, int(i))
        yield named(picture, motion, camera, int(i)) if "names" in layers else picture


def _followed(motion: Scene, camera: Camera, follow: str, i: int) -> Camera:
    """The camera with the mass centre of the body `follow` in the middle at record i."""
    body = motion.bodies.index(follow)
    return following(camera, motion.placed(body, motion.centres[body][None])[i, 0])


def _mp4(pictures: list[np.ndarray], rate: float) -> bytes:
    """The bytes of a film of pictures (height, width, 3) at `rate` pictures a second."""
    ffmpeg = need_ffmpeg()
    height, width = pictures[0].shape[:2]
    pixels, frames = video(pictures)
    with TemporaryDirectory() as folder:
        path = Path(folder, "film.mp4")
        writer = ffmpeg.write_frames(
            str(path),
            (width, height),
            fps=rate,
            codec="libx264",
            quality=None,
            output_params=list(ENCODING),
            macro_block_size=2,
            pix_fmt_in=pixels,
            ffmpeg_log_level="error",
        )
        writer.send(None)
        for picture in frames:
            writer.send(np.ascontiguousarray(picture))
        writer.close()
        return path.read_bytes()


def _gif(pictures: list[np.ndarray], rate: float) -> bytes:
    """The pictures as a GIF, with one palette, made from a ninth of the pixels of the first, the middle and the last."""
    Image = need_pillow()
    sample = np.concatenate([pictures[i][::3, ::3] for i in sorted({0, len(pictures) // 2, len(pictures) - 1})])
    palette = Image.fromarray(sample).quantize(255, dither=0)
    images = [Image.fromarray(p).quantize(palette=palette, dither=0) for p in pictures]
    stream = BytesIO()
    images[0].save(
        stream, format="GIF", save_all=True, append_images=images[1:], duration=round(1000 / rate), loop=0, optimize=False
    )
    return stream.getvalue()
