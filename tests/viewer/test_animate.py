"""Films, GIFs and pages: their contents, names with markup, and errors where something is missing."""

from __future__ import annotations

import base64
import json
import re
import sys
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import pfaffian as pf
from pfaffian.viewer.build import scene
from pfaffian.viewer.camera import VIEW, Camera
from pfaffian.viewer.picture import SUPERSAMPLING, Solids, _smoothed, video, workspace
from pfaffian.viewer.picture import compiled as compiled_pictures
from pfaffian.viewer.render import backdrop, batched, frame
from pfaffian.viewer.scene import Floor, Scene, ScenePart, state_of
from pfaffian.viewer.solids import box
from pfaffian.viewer.still import png

SMALL = {"size": (96, 64)}


@pytest.fixture(scope="module")
def rod() -> pf.Mechanism:
    hinge = pf.joint("hinge", "revolute", "world", "rod", axis=(0, 1, 0))
    return pf.mechanism("pendulum", [pf.body("rod", 1.0, com=(0, 0, -0.5), inertia=0.01)], [hinge])


@pytest.fixture(scope="module")
def swing(rod: pf.Mechanism) -> xr.Dataset:
    return pf.run(rod, {"hinge": 1.0}, duration=0.5, step=0.01, backend="numpy")


def data_of(page: bytes) -> dict:
    found = re.search(rb'<script id="data" type="application/json">(.*?)</script>', page, re.S)
    assert found
    return json.loads(found[1])


def doubles(text: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype="<f8")


def floats(text: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype="<f4")


def test_a_page_contains_the_motion_and_loads_nothing(rod, swing, tmp_path: Path) -> None:
    made = pf.animate(rod, swing, tmp_path / "swing.html")
    assert made.file == tmp_path / "swing.html" and made.file.read_bytes() == made.data
    found = data_of(made.data)
    time, poses = doubles(found["time"]), floats(found["poses"]).reshape(-1, 1, 7)
    assert len(time) == 31 and time[-1] == 0.5, "at most 60 records a second, with both ends"
    q = np.interp(time, swing["time"], swing["q"].values[:, 0])
    np.testing.assert_allclose(np.abs(poses[:, 0, [4, 6]]), np.abs(np.stack([np.sin(q / 2), np.cos(q / 2)], 1)), atol=0.02)
    (geometry,) = [g for g, p in zip(found["geometries"], found["parts"], strict=False) if p["layer"] == "shapes"][:1]
    steps = np.frombuffer(base64.b64decode(geometry["vertices"]), dtype="<u2").reshape(-1, 3)
    assert np.isclose((steps * geometry["step"] + geometry["low"])[:, 2].min(), -0.5, atol=0.2)
    assert not re.findall(rb"(?:src|href)\s*=|@import|url\(|https?://", made.data.replace(found["poses"].encode(), b""))
    assert b"default-src 'none'" in made.data and b"@DATA@" not in made.data


def test_a_motion_of_assemble_is_drawn_like_a_run(rod) -> None:
    """A slider with a rod on the ground, pulled out of reach at the end; with times, without them, and as a batch."""
    rail = pf.joint("rail", "prismatic", "world", "foot", axis=(1, 0, 0))
    hinge = pf.joint("hinge", "revolute", "foot", "rod", axis=(0, 1, 0))
    tip = pf.holonomic("tip", lambda k: k.position("rod", (0, 0, 1))[0])
    m = pf.mechanism("slider", [pf.body("foot", 1.0), pf.body("rod", 1.0, com=(0, 0, 0.5))], [rail, hinge], constraints=[tip])
    t, x = np.linspace(0, 2, 9), np.linspace(0.2, 1.1, 9)
    with pytest.warns(pf.RunWarning):
        way = pf.assemble(m, {"rail": x}, t=t, along=True, guess={"hinge": -0.2}, backend="numpy")
    with pytest.warns(pf.ModelWarning, match="1 of 9 records are not finite"):
        found = data_of(pf.animate(m, way, plot=("q.hinge", "v.rail")).data)
    np.testing.assert_array_equal(doubles(found["time"]), t[:-1])
    places = floats(found["poses"]).reshape(8, 2, 7)
    np.testing.assert_allclose(places[:, 0, 0] - places[0, 0, 0], x[:-1] - x[0], atol=1e-6)
    half = way.q[:-1, 1] / 2
    np.testing.assert_allclose(places[:, 1, [4, 6]], np.stack([np.sin(half), np.cos(half)], 1), atol=1e-6)
    assert [p["title"] for p in found["plots"]] == ["hinge, angle [rad]", "rail, velocity [m/s]"]
    both = pf.assemble(m, {"rail": np.stack([x, x / 2], 1)[:-1]}, along=True, guess={"hinge": -0.2}, backend="numpy")
    found = data_of(pf.animate(m, both).data)
    np.testing.assert_array_equal(doubles(found["time"]), np.arange(8))
    feet = floats(found["poses"]).reshape(8, 4, 7)[:, [0, 2], 0]
    np.testing.assert_allclose(feet - feet[0], np.stack([x, x / 2], 1)[:-1] - [x[0], x[0] / 2], atol=1e-6)
    with pytest.raises(pf.ModelError, match="another mechanism"):
        pf.animate(rod, way)


def test_a_page_has_all_that_its_player_reads(rod, swing) -> None:
    """Every field that the script takes from the data, and the triangles of the scene."""
    page = pf.animate(rod, swing, show=["reactions", "trails"], plot="q").data
    found, script = data_of(page), page.decode().rpartition("<script>")[2]
    fields = lambda name: set(re.findall(rf"\b{name}\.([a-z]\w*)\b(?!\()", script))  # noqa: E731
    assert (
        fields("data") - {"map", "forEach"} == set(found) and found["floor"] and found["floor"].keys() == fields(r"data\.floor")
    )
    assert fields("panel") == set(found["plots"][0]) and fields("l") - {"t", "y", "x"} == set(found["plots"][0]["lines"][0])
    assert fields("m") - {"values"} == set(found["moving"][0]) and set(found["geometries"][0]) == fields("g")
    assert {p["layer"] for p in found["parts"]} and set(found["parts"][0]) - {"name"} == {"geometry", "body", "colour", "layer"}
    drawn = scene(rod, state_of(rod))
    for part, there in zip(found["parts"], drawn.parts, strict=True):
        g = found["geometries"][part["geometry"]]
        faces = np.frombuffer(base64.b64decode(g["faces"]), dtype="<u4" if g["wide"] else "<u2").reshape(-1, 3)
        np.testing.assert_array_equal(faces, there.solid.faces)


def test_plots_beside_the_motion_have_the_numbers_of_the_run(rod, swing) -> None:
    (panel,) = data_of(pf.animate(rod, swing, plot="q.hinge").data)["plots"]
    (line,) = panel["lines"]
    assert panel["title"] == "hinge, angle [rad]"
    np.testing.assert_array_equal(doubles(line["time"]), swing["time"].values)
    np.testing.assert_array_equal(floats(line["values"]), swing["q"].values[:, 0].astype("<f4"))
    with pytest.raises(pf.ModelError, match="no signal 'w'"):
        pf.animate(rod, swing, plot="w")
    assert data_of(pf.animate(rod, swing).data)["plots"] == []


def test_geometry_shared_by_bodies_is_stored_once() -> None:
    ball = pf.shape("sphere", radius=0.1, mass=1.0)
    hinges = [pf.joint(n, "revolute", "world", n, axis=(0, 1, 0), placement=(i, 0, 0)) for i, n in enumerate("abc")]
    m = pf.mechanism("balls", [pf.body(n, shape=ball) for n in "abc"], hinges)
    found = data_of(pf.animate(m, pf.run(m, duration=0.0, backend="numpy"), hide="joints").data)
    assert len({p["geometry"] for p in found["parts"] if p["layer"] == "shapes"}) == 1
    assert not found["layers"]["joints"] and found["layers"]["shapes"]


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attributes: list) -> None:
        self.tags.append(tag)


def test_names_with_markup_stay_text(rod, swing) -> None:
    """Markup and scripts in names add no tags to the page."""
    printable = "</script><img src=x onerror=alert(1)>&<!--'\"`${1}"
    hinge = pf.joint(printable, "revolute", "world", printable, axis=(0, 1, 0))
    m = pf.mechanism(printable, [pf.body(printable, 1.0, com=(0, 0, -0.5))], [hinge])
    page = pf.animate(m, pf.run(m, duration=0.0, backend="numpy")).data
    plain = pf.animate(rod, swing).data
    tags = []
    for text in (page, plain):
        parser = Tags()
        parser.feed(text.decode())
        tags.append(parser.tags)
    assert tags[0] == tags[1] and data_of(page)["bodies"] == [printable] and data_of(page)["name"] == printable


def test_a_notebook_shows_pages_and_gifs(rod, swing, tmp_path: Path) -> None:
    page = pf.animate(rod, swing)
    assert page.file is None and repr(page) == f"<Animation: html, {len(page.data) / 1e6:.2g} MB, in memory>"
    parser = Tags()
    parser.feed(page._repr_html_())
    assert parser.tags == ["iframe"] and 'sandbox="allow-scripts allow-downloads"' in page._repr_html_()
    gif = pf.animate(rod, swing, tmp_path / "a.gif", **SMALL)
    assert gif._repr_html_().startswith('<img src="data:image/gif;base64,')


def test_a_gif_has_twenty_pictures_a_second(rod, swing, tmp_path: Path) -> None:
    from PIL import Image

    made = Image.open(BytesIO(pf.animate(rod, swing, tmp_path / "a.gif", **SMALL).data))
    assert (made.n_frames, made.size, made.info["duration"]) == (11, (96, 64), 50)
    slow = Image.open(BytesIO(pf.animate(rod, swing, tmp_path / "b.gif", speed=0.5, **SMALL).data))
    assert slow.n_frames == 21
    pictures = []
    for i in (0, 10):
        made.seek(i)
        pictures.append(np.asarray(made.convert("RGB"), dtype=int))
    assert (np.abs(pictures[0] - pictures[1]).max(axis=2) > 20).mean() > 0.005, "the rod moves"


def test_a_film_has_its_size_and_frame_rate(rod, swing, tmp_path: Path) -> None:
    ffmpeg = pytest.importorskip("imageio_ffmpeg")
    file = pf.animate(rod, swing, str(tmp_path / "a.mp4"), **SMALL).file
    reader = ffmpeg.read_frames(str(file))
    info = next(reader)
    assert info["size"] == (96, 64) and info["fps"] == 30 and sum(1 for _ in reader) == 16


def test_wrong_arguments_are_refused_before_anything_is_drawn(rod, swing, tmp_path: Path, monkeypatch) -> None:
    other = pf.mechanism("other", [pf.body("b", 1.0, inertia=1.0)], [pf.joint("j", "free", "world", "b")])
    for given, words in (
        ({"file": tmp_path / "a.avi"}, "ends in .mp4, .gif, .html, got '.avi'"),
        ({"file": tmp_path / "a"}, "ends in .mp4, .gif, .html"),
        ({"file": 3}, "must be given by a path"),
        ({"show": ["wings"]}, "show: there is no layer 'wings'"),
        ({"hide": "shape"}, "hide: there is no layer 'shape'; did you mean 'shapes'"),
        ({"follow": "rode"}, "follow: there is no body 'rode'; did you mean 'rod'"),
        ({"speed": 0}, "speed: a number above zero"),
        ({"file": tmp_path / "a.gif", "size": (95, 64)}, "size: even numbers"),
        ({"file": tmp_path / "a.gif", "size": 64}, r"size: \(width, height\)"),
        ({"file": tmp_path / "a.gif", "speed": 1e-4}, "more than 3600"),
    ):
        with pytest.raises(pf.ModelError, match=words):
            pf.animate(rod, swing, **given)
    for m, result, words in (
        (swing, rod, "a Mechanism is needed"),
        (rod, rod, "not the result"),
        (other, swing, "another mechanism"),
    ):
        with pytest.raises(pf.ModelError, match=words):
            pf.animate(m, result)
    for package, name, file in (("imageio_ffmpeg", "imageio-ffmpeg", "a.mp4"), ("PIL", "pillow", "a.gif")):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(pf.ModelError, match=f"needs the package {name}: run `pip install {name}`"):
            pf.animate(rod, swing, tmp_path / file)
    assert not list(tmp_path.iterdir())


def test_a_batch_is_drawn_together(rod) -> None:
    runs = pf.run(rod, {"hinge": [0.1, 0.5]}, duration=0.1, step=0.01, backend="numpy")
    found = data_of(pf.animate(rod, runs).data)
    assert found["bodies"] == ["rod (run 0)", "rod (run 1)"]
    assert {p["colour"][3] for p in found["parts"]} == {1.0, 0.25}
    beside = data_of(pf.animate(rod, runs, beside=True).data)
    assert {p["colour"][3] for p in beside["parts"]} == {1.0}


# -- pixels

WAYS = pytest.mark.parametrize("compiled", [False, True], ids=["numpy", "c"])
"""By NumPy, and in C where that can be compiled."""


def lone(corners: list, colours: list) -> Solids:
    """Triangles (n, 3, 3) fixed to the world, with one colour each."""
    v = np.array(corners, dtype=np.float32).reshape(-1, 3)
    faces = np.arange(len(v), dtype=np.int32).reshape(-1, 3)
    return Solids(v, np.zeros(len(v), dtype=np.int32), faces, np.array(colours, dtype=np.float32))


EMPTY = Scene("", np.zeros(1), (), np.zeros((1, 0, 3)), np.zeros((1, 0, 3, 3)), np.zeros((0, 3)), (), (), 1.0,
              np.array([0.0, 0.0, 1.0]), None, {})  # fmt: skip
ON_EDGES = 2
"""Most pixels of a triangle in which rounding in single precision decides whether a sample on an edge is covered."""

FRONT = Camera(np.array([0.0, -1.0, 0.0]), np.zeros(3), np.array([0.0, 0.0, 1.0]))


def shot(batch: Solids, compiled: bool = False, camera: Camera = FRONT) -> np.ndarray:
    """A picture (60, 60, 3) of triangles of the world."""
    size = 60, 60
    behind = backdrop(EMPTY, frozenset(), camera, size, workspace(size) if compiled else None)
    return frame(EMPTY, batch, frozenset(), behind, 0).astype(int)


def bare(camera: Camera = FRONT) -> np.ndarray:
    """The background of such a picture."""
    return backdrop(EMPTY, frozenset(), camera, (60, 60)).image.astype(int)


@WAYS
def test_a_triangle_covers_the_pixels_whose_centre_it_covers(compiled) -> None:
    """Compared with a test of every subpixel against the three edges, for random triangles."""
    random = np.random.default_rng(3)
    fine = 60 * SUPERSAMPLING
    at = (np.arange(fine) + 0.5) / fine - 0.5
    x, z = np.meshgrid(VIEW * at, -VIEW * at)
    for _ in range(20):
        corners = random.uniform(-0.3, 0.3, (3, 2))
        a, b, c = corners
        sides = [(q[0] - p[0]) * (z - p[1]) - (q[1] - p[1]) * (x - p[0]) for p, q in ((a, b), (b, c), (c, a))]
        inside = np.all([s > 0 for s in sides], axis=0) | np.all([s < 0 for s in sides], axis=0)
        share = inside.reshape(60, SUPERSAMPLING, 60, SUPERSAMPLING).mean(axis=(1, 3))
        seen = shot(lone([[(p[0], 0, p[1]) for p in corners]], [(0, 0, 0, 1)]), compiled)[:, :, 0]
        off = np.abs(seen - bare()[:, :, 0] * (1 - share)) > 3
        assert off.sum() <= ON_EDGES


@WAYS
def test_the_nearest_triangle_is_visible_where_triangles_intersect(compiled) -> None:
    """Two walls cross along the line x = 0, so the left half shows one and the right half the other."""

    def wall(s: float) -> list:
        a, b, c, d = (-0.2, -0.1 * s, -0.2), (0.2, 0.1 * s, -0.2), (0.2, 0.1 * s, 0.2), (-0.2, -0.1 * s, 0.2)
        return [[a, b, c], [a, c, d]]

    red, blue = (1, 0, 0, 1), (0, 0, 1, 1)
    for order in (1, -1):
        seen = shot(lone([*wall(1), *wall(-1)][::order], [red, red, blue, blue][::order]), compiled)
        assert seen[30, 20, 0] > 80 and seen[30, 20, 2] == 0, "the red wall is nearer on the left"
        assert seen[30, 40, 2] > 80 and seen[30, 40, 0] == 0


@WAYS
def test_transparent_triangles_show_what_is_behind_them(compiled) -> None:
    back = [(-0.2, 0.1, -0.2), (0.2, 0.1, -0.2), (0, 0.1, 0.2)]
    front = [(-0.2, -0.1, -0.2), (0.2, -0.1, -0.2), (0, -0.1, 0.2)]
    whole = shot(lone([back], [(1, 0, 0, 1)]), compiled)[32, 30]
    clear = shot(lone([front, back], [(0, 0, 1, 0.5), (1, 0, 0, 1)]), compiled)[32, 30]
    hidden = shot(lone([back, front], [(0, 0, 1, 0.5), (1, 0, 0, 1)]), compiled)[32, 30]
    assert abs(clear[0] - whole[0] / 2) <= 2 and clear[2] > 50 and hidden[2] == 0


@WAYS
def test_triangles_behind_the_camera_are_not_drawn(compiled) -> None:
    behind = shot(lone([[(-0.2, -2, -0.2), (0.2, -2, -0.2), (0, 0.5, 0.2)]], [(0, 0, 0, 1)]), compiled)
    np.testing.assert_array_equal(behind, bare())


def test_the_floor_is_behind_the_machine_and_can_be_hidden(rod) -> None:
    made = scene(rod, state_of(rod))._replace(floor=Floor(np.zeros(3), np.array([0.0, 0.0, 1.0]), False))
    camera = Camera(np.array([0.0, -3.0, 1.0]), np.array([0.0, 0.0, -0.2]), np.array([0.0, 0.0, 1.0]))
    pictures = {}
    for layers in ({"floor"}, set(), {"shapes"}, {"shapes", "floor"}):
        visible = frozenset(layers)
        behind = backdrop(made, visible, camera, (80, 60))
        pictures[visible] = frame(made, batched(made, visible), visible, behind, 0)
    assert (np.ptp(pictures[frozenset()], axis=1) == 0).all()
    assert len({p.tobytes() for p in pictures.values()}) == 4


def test_the_camera_of_films_and_pages_goes_round(tmp_path: Path) -> None:
    """A flag on a mast, from one side and from the other: left becomes right."""
    Image = pytest.importorskip("PIL.Image")
    flag = pf.body("flag", 1.0, inertia=0.1, shape=pf.shape("box", size=(0.3, 0.05, 0.5), placement=(0.9, 0, 1.0)))
    mast = pf.body("mast", 1.0, shape=pf.shape("box", size=(0.05, 0.05, 2.0), colour=(0.4, 0.4, 0.4)))
    joints = [pf.joint("ground", "fixed", "world", "mast"), pf.joint("turn", "revolute", "mast", "flag")]
    m = pf.mechanism("flag", [mast, flag], joints, gravity=(0, 0, 0))
    run = pf.run(m, duration=0.1, step=0.1, backend="numpy")
    middles = []
    for around in (0.0, np.pi):
        made = Image.open(BytesIO(pf.animate(m, run, tmp_path / "a.gif", around=around, **SMALL).data)).convert("RGB")
        pixels = np.asarray(made, dtype=float)
        colourful = np.ptp(pixels, axis=2) > 60
        middles.append(float(np.nonzero(colourful)[1].mean()) / made.size[0] - 0.5)
    assert middles[0] * middles[1] < 0
    one, other = (np.array(data_of(pf.animate(m, run, around=x).data)["camera"]["eye"][:2]) for x in (0.0, np.pi))
    np.testing.assert_allclose(one / np.linalg.norm(one), -other / np.linalg.norm(other), atol=1e-9)
    with pytest.raises(pf.ModelError, match="around"):
        pf.animate(m, run, around="left")


def test_a_followed_body_stays_in_the_middle(tmp_path: Path) -> None:
    from PIL import Image

    ball = pf.mechanism(
        "ball", [pf.body("ball", 1.0, inertia=1e-3)], [pf.joint("fly", "free", "world", "ball")], gravity=(0, 0, 0)
    )
    run = pf.run(ball, v={"fly.vx": 3.0}, duration=0.2, step=0.01, backend="numpy")
    made = Image.open(BytesIO(pf.animate(ball, run, tmp_path / "a.gif", follow="ball", **SMALL).data))
    for i in range(made.n_frames):
        made.seek(i)
        picture = np.asarray(made.convert("RGB"), dtype=int)
        seen = np.abs(picture - picture[:, :1]).max(axis=2) > 40
        middle = np.argwhere(seen).mean(axis=0)
        np.testing.assert_allclose(middle, [31.5, 47.5], atol=1.0)


def test_a_png_preserves_its_pixels():
    from PIL import Image

    pixels = np.random.default_rng(3).integers(0, 256, (7, 5, 3), dtype=np.uint8)
    np.testing.assert_array_equal(np.asarray(Image.open(BytesIO(png(pixels)))), pixels)


def _on_a_floor(height: float) -> Scene:
    """A cube of 0.4 m at a height above a floor."""
    cube = ScenePart("cube", 0, box((0.4, 0.4, 0.4)), (0.8, 0.3, 0.2, 1.0), "shapes")
    up = np.array([0.0, 0.0, 1.0])
    return EMPTY._replace(
        bodies=("cube",), positions=np.array([[[0, 0, height + 0.2]]]), rotations=np.eye(3)[None, None], parts=(cube,),
        centres=np.zeros((1, 3)), floor=Floor(np.zeros(3), up, True), layers={"shapes": True, "floor": True},
    )  # fmt: skip


ABOVE = Camera(np.array([0.0, -3.0, 1.6]), np.array([0.0, 0.0, 0.2]), np.array([0.0, 0.0, 1.0]))


def _seen(made: Scene, compiled: bool) -> tuple[np.ndarray, np.ndarray]:
    """The picture of a scene (120, 160, 3), and what is behind it."""
    layers, size = frozenset(made.layers), (160, 120)
    behind = backdrop(made, layers, ABOVE, size, workspace(size) if compiled else None)
    return frame(made, batched(made, layers), layers, behind, 0).astype(int), behind.image.astype(int)


@WAYS
def test_a_body_casts_a_shadow_on_the_floor_where_the_light_says(compiled) -> None:
    """The shadow's middle is where the ray from the light through the middle of the cube meets the floor."""
    made = _on_a_floor(0.5)
    seen, behind = _seen(made, compiled)
    view = backdrop(made, frozenset(made.layers), ABOVE, (160, 120)).view
    middle, light = np.array([0, 0, 0.7]), view.light[2]
    x = (middle - light * (middle[2] / light[2]) - view.eye) @ view.axes.T
    column, row = 80 - x[0] / x[2] * 120 / VIEW, 60 + x[1] / x[2] * 120 / VIEW
    dark = (behind - seen).min(axis=2) > 40
    place = np.argwhere(dark & (np.abs(seen - seen.mean(axis=2, keepdims=True)).max(axis=2) < 6))
    np.testing.assert_allclose(place.mean(axis=0), [row, column], atol=4.0)


@WAYS
def test_the_floor_is_darker_close_to_a_body_on_it(compiled) -> None:
    """Beside the foot of a wall, on the side of the light, where no shadow falls."""
    for height, darker in ((0.0, True), (0.8, False)):
        seen, behind = _seen(_on_a_floor(height), compiled)
        loss = (behind - seen)[70:100].max(axis=2)
        loss[loss > 60] = 0  # the cube and its shadow
        assert (loss > 12).any() == darker


@WAYS
def test_edges_are_dark_and_planes_are_not(compiled) -> None:
    """A square in front of a larger one has a dark outline; the diagonal between the two triangles of a square is not seen."""

    def square(half: float, y: float, ridge: float = 0.0) -> list:
        a, b, c, d = (-half, y, -half), (half, y, -half), (half, y, half), (-half, y, half)
        top, foot = (0, y - ridge, half), (0, y - ridge, -half)
        return [[a, foot, top], [a, top, d], [foot, b, c], [foot, c, top]] if ridge else [[a, b, c], [a, c, d]]

    def row(*triangles: list) -> np.ndarray:
        corners = [t for part in triangles for t in part]
        return shot(lone(corners, [(1, 1, 1, 1)] * len(corners)), compiled)[30, 15:45].max(axis=1)

    assert np.ptp(row(square(0.25, 0))) <= 1
    outlined = row(square(0.25, 0), square(0.1, -0.3))
    assert (outlined < 0.8 * outlined[15]).sum() in (2, 3, 4)
    folded = row(square(0.25, 0, 0.25))
    assert folded[14:16].min() < 0.85 * min(folded[10], folded[20])


def test_occlusion_is_smoothed_over_what_is_as_far_away() -> None:
    near = np.ones((8, 8))
    near[:, 4:] = 2.0
    keep = np.array([[0.0, 1.0, 0.0, 1.0]] * 4)
    found = _smoothed(keep, near, 0.1)
    assert found[3, 1] == pytest.approx(1 / 3) and found[3, 2] == pytest.approx(2 / 3), (
        "1, 2 of weights 2, 1 within the left half"
    )
    assert found[3, 4] == pytest.approx(1 / 3), "the right half takes nothing of the left"
    assert _smoothed(keep, np.ones((8, 8)), 0.1)[3, 4] == pytest.approx(0.5)


def test_pictures_in_c_are_those_by_numpy(rod) -> None:
    """But for samples at whose edge rounding decides."""
    if compiled_pictures() is None:
        return
    for made in (_on_a_floor(0.1), scene(rod, state_of(rod))):
        slow, fast = (_seen(made, way)[0] for way in (False, True))
        assert (np.abs(slow - fast).max(axis=2) > 3).mean() < 2e-3
        assert (slow != _seen(made, True)[1]).any()


ROUNDED = 1
"""Largest difference of a number of video from its formula, which is rounded to whole numbers."""


def test_video_has_the_brightness_and_colours_of_its_pictures() -> None:
    """Also where a picture differs from the one before by a pixel in its last column and row. ITU-R BT.601."""
    rng = np.random.default_rng(4)
    first = rng.integers(0, 256, (22, 70, 3), dtype=np.uint8)
    second = first.copy()
    second[-1, -1], second[6, 31] = (255, 0, 0), (0, 0, 255)
    pixels, frames = video([first, second, second[::-1]])
    if compiled_pictures() is None:
        assert pixels == "rgb24" and next(frames) is first
        return
    seen = [x.astype(float) for x in (x.copy() for x in frames)]
    for planes, picture in zip(seen, (first, second, second[::-1]), strict=True):
        r, g, b = picture.astype(float).transpose(2, 0, 1) / 255
        y = 0.299 * r + 0.587 * g + 0.114 * b
        colours = [x.reshape(11, 2, 35, 2).mean(axis=(1, 3)) for x in ((b - y) / 1.772, (r - y) / 1.402)]
        expected = np.concatenate([16 + 219 * y.ravel(), *[128 + 224 * x.ravel() for x in colours]])
        assert np.abs(planes - expected).max() <= ROUNDED
