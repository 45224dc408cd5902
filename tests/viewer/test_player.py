"""The script of an animation page, run by V8 without a browser: poses between records, plots, arrows, camera, names, GIF."""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from py_mini_racer import JSPromise, MiniRacer

import pfaffian as pf
from pfaffian.viewer.camera import VIEW, Camera
from pfaffian.viewer.picture import lit_from

SINGLE = 3e-6
"""Rounding of the data of a page, which are float32, over some operations on numbers of about one."""

PIXEL = 1e-3
"""Positions on the page [pixels]: single precision times some hundred pixels."""

GIF_STEP = 4
"""Largest difference of a colour of a GIF from what was drawn: its palette has levels of 8."""

GAP = 4
"""Record of the first curve of the page that is not finite."""

STAND_INS = Path(__file__).with_name("player.js").read_text(encoding="utf-8")

Play = Callable[..., list[Any]]


def written() -> tuple[dict[str, Any], str]:
    """The data of a page and its script: a body that turns by more than 1 rad from record to record while it slides, with a
    flap, a spring and a push. Every other quaternion has the other sign, which means the same."""
    slide = pf.joint("slide", "cylindrical", "world", "drum", axis=(1, 0, 0))
    bodies = [
        pf.body("drum", 1.0, com=(0.1, 0.2, 0.3), inertia=(0.1, 0.2, 0.2)),
        pf.body("flap <&>", 0.5, com=(0, 0, 0.4), inertia=0.01),
    ]
    hinge = pf.joint("hinge", "revolute", "drum", "flap <&>", axis=(0, 1, 0), placement=(0.5, 0, 0))
    tie = pf.spring("tie", "world", "drum", point_a=(-1, 0, 0), point_b=(-0.2, 0.1, 0), stiffness=3.0, rest=0.5)
    push = pf.wrench("push", "drum", lambda k: [40 + 30 * k.t, -30, 20, 0, 0, 0], point=(0, 0.1, 0))
    m = pf.mechanism("machine", bodies, [slide, hinge], forces=[tie, push])
    every = pf.run(m, [0.1, 0.2, -0.3], [0.5, 8.0, 3.0], duration=2.0, step=0.01, backend="numpy")
    result = every.isel(time=slice(None, None, 20))
    text = pf.animate(m, result, plot=("q", "energy"), show=["names", "frames"]).data.decode()
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.S)
    assert found
    data = json.loads(found[1])
    poses = np.frombuffer(base64.b64decode(data["poses"]), "<f4").reshape(len(result["time"]), 2, 7).copy()
    poses[::2, :, 3:] *= -1
    gap = np.frombuffer(base64.b64decode(data["plots"][0]["lines"][0]["values"]), "<f4").copy()
    gap[GAP] = np.nan
    data["plots"][0]["lines"][0]["values"] = base64.b64encode(gap.tobytes()).decode()
    data["poses"] = base64.b64encode(poses.tobytes()).decode()
    script = re.search(r"<script>(.*?)</script>", text, re.S)
    assert script
    return data, script[1]


@pytest.fixture(scope="module")
def page() -> tuple[dict[str, Any], Play]:
    """The data of a page, and a function that opens it, runs expressions in it, one after another, and returns their values."""
    data, script = written()
    words = json.dumps(data).replace("<", "\\u003c").replace("&", "\\u0026")

    def play(*expressions: str) -> list[Any]:
        page = MiniRacer()
        for text in (STAND_INS, f"ids.data = {{textContent: {json.dumps(words)}}}", script):
            page.eval(text)
        plain, values = page.eval("plain"), []
        for text in expressions:
            value = page.eval(text)
            values.append(json.loads(plain(value.get() if isinstance(value, JSPromise) else value)))
        return values

    return data, play


def times(data: dict[str, Any]) -> np.ndarray:
    return np.frombuffer(base64.b64decode(data["time"]), "<f8")


def poses(data: dict[str, Any], t: float) -> tuple[np.ndarray, np.ndarray]:
    """(bodies, 3, 3) rotations and (bodies, 3) positions at a time: the chord between the quaternions, on its nearer side."""
    time, table = times(data), np.frombuffer(base64.b64decode(data["poses"]), "<f4").astype(float)
    table = table.reshape(len(time), -1, 7)
    i = int(np.clip(np.searchsorted(time, t, side="right") - 1, 0, len(time) - 2))
    s, a, b = (t - time[i]) / (time[i + 1] - time[i]), table[i], table[i + 1]
    side = np.where((a[:, 3:] * b[:, 3:]).sum(axis=1, keepdims=True) < 0, -1.0, 1.0)
    quaternion = (1 - s) * a[:, 3:] + s * side * b[:, 3:]
    v, w = np.split(quaternion / np.linalg.norm(quaternion, axis=1, keepdims=True), [3], axis=1)
    cross = np.cross(np.eye(3)[None], -v[:, None]).transpose(0, 2, 1)  # columns v x e
    R = np.eye(3) + 2 * w[:, :, None] * cross + 2 * cross @ cross
    return R, (1 - s) * a[:, :3] + s * b[:, :3]


def rows(places: list[float]) -> tuple[np.ndarray, np.ndarray]:
    """Matrices (n, 3, 3) and displacements (n, 3) of the parts, as the shader reads them: a texel has a column and a number."""
    table = np.array(places).reshape(-1, 3, 4)
    return table[:, :, :3].transpose(0, 2, 1), table[:, :, 3]


def ends(data: dict[str, Any], name: str, t: float) -> np.ndarray:
    """Both ends (2, 3) of a moving part at a time."""
    (part,) = [x for x in data["moving"] if x["name"] == name]
    values = np.frombuffer(base64.b64decode(part["ends"]), "<f4").reshape(-1, 6)
    return np.array([np.interp(t, times(data), v) for v in values.T]).reshape(2, 3)


def test_bodies_are_between_two_records_where_they_should_be(page: tuple[dict[str, Any], Play]) -> None:
    data, play = page
    wanted = [0.0, 0.2, 0.274, 1.1, 1.9998, 2.0]
    for t, places in zip(wanted, play(*[f"state.time = {t}; draw(); seen.places" for t in wanted]), strict=True):
        M, p = rows(places)
        R, x = poses(data, t)
        np.testing.assert_allclose(M[:2], R, atol=SINGLE)
        np.testing.assert_allclose(p[:2], x, atol=SINGLE)
        assert np.array_equal(M[2], np.eye(3)) and not p[2].any(), "the world stays"


def test_springs_arrows_and_axes_end_where_the_scene_says(page: tuple[dict[str, Any], Play]) -> None:
    data, play = page
    t = 0.437
    ((places, rod),) = play(f"state.time = {t}; draw(); [seen.places, frameRow]")
    (M, p), names = rows(places), [x["name"] for x in data["moving"]]
    row = 3 + 2 * names.index("tie")
    a, b = ends(data, "tie", t)
    np.testing.assert_allclose([p[row], M[row, :, 2]], [a, b - a], atol=SINGLE)
    thick = data["moving"][names.index("tie")]["radius"] ** 2 * np.eye(2, 3)
    np.testing.assert_allclose(M[row, :, :2].T @ M[row], thick, atol=SINGLE)
    shaft = 3 + 2 * names.index("push")
    a, b = ends(data, "push", t)
    radius, length = data["moving"][names.index("push")]["radius"], float(np.linalg.norm(b - a))
    neck = b - (b - a) * min(5 * radius, 0.6 * length) / length
    np.testing.assert_allclose([p[shaft], p[shaft] + M[shaft, :, 2]], [a, neck], atol=SINGLE)
    np.testing.assert_allclose([p[shaft + 1], p[shaft + 1] + M[shaft + 1, :, 2]], [neck, b], atol=SINGLE)
    np.testing.assert_allclose(np.linalg.norm(M[shaft + 1, :, :2], axis=0), 2.4 * radius, atol=SINGLE)
    assert np.linalg.det(M[shaft]) > 0 < np.linalg.det(M[row]), "no part is turned inside out"
    R, x = poses(data, t)
    for body in range(2):
        for k in range(3):
            np.testing.assert_allclose(p[rod + 3 * body + k], x[body], atol=SINGLE)
            np.testing.assert_allclose(M[rod + 3 * body + k, :, 2], 0.12 * data["size"] * R[body, :, k], atol=SINGLE)


def test_the_time_bar_moves_the_machine_and_follows_it(page: tuple[dict[str, Any], Play]) -> None:
    _, play = page
    dragged = 'at("at").value = 250; at("at").oninput(); [state.time, state.playing, at("time").textContent]'
    assert play("state.playing", dragged) == [True, [0.5, False, "0.50 s"]], "a page plays until one drags its bar"
    followed = 'state.time = 0.8; draw(); at("at").value'
    held = 'document.activeElement = at("at"); state.time = 1.2; draw(); at("at").value'
    assert play("play(false)", followed, held)[1:] == [pytest.approx(400), pytest.approx(400)], "a bar in the hand stays"


def test_it_plays_at_its_speed_and_begins_again(page: tuple[dict[str, Any], Play]) -> None:
    _, play = page
    step = "seen.frames.pop()"
    first = f"play(false); state.time = 0.2; seen.frames.length = 0; play(true); {step}(1000); state.time"
    later = f'at("speed").value = "2"; at("speed").onchange(); {step}(1150); [state.time, seen.frames.length]'
    over = f"{step}(2100); state.time"
    stop = 'at("play").onclick(); tick(9999); [state.time, state.playing]'
    again = "state.time = 2; play(true); state.time"
    values = play(first, later, over, stop, again)
    assert values == [pytest.approx(0.2), [pytest.approx(0.5), 1], 0, [0, False], 0]


def test_the_space_bar_plays_and_pauses(page: tuple[dict[str, Any], Play]) -> None:
    _, play = page
    press = 'seen.keys.keydown({code: "CODE", target: document.body, preventDefault() {}}); state.playing'
    space, other = press.replace("CODE", "Space"), press.replace("CODE", "KeyA")
    assert play("play(false)", space, space, other)[1:] == [True, False, False]


def test_a_click_in_a_plot_moves_the_machine_and_the_mark(page: tuple[dict[str, Any], Play]) -> None:
    data, play = page
    wide, left, right, plot = 600, 52, 8, 'at("side").children[0]'
    click = lambda x: f"press({plot}, {x}, 100); [state.time, state.playing]"  # noqa: E731
    mark = f'calls({plot}, "moveTo").at(-1)[0]'
    inside = left + 0.3 * (wide - left - right)
    drag = 'at("side").children[1].onpointermove({buttons: BUTTONS, offsetX: 330}); state.time'
    found = play(click(inside), mark, click(10), click(900), drag.replace("BUTTONS", "0"), drag.replace("BUTTONS", "1"))
    assert found[0] == [pytest.approx(0.6), False] and found[1] == pytest.approx(inside, abs=PIXEL)
    assert found[2:5] == [[0, False], [2, False], 2], "beyond the curves is their begin or end; the pointer alone moves nothing"
    assert found[5] == pytest.approx(2 * (330 - left) / (wide - left - right))
    (words,) = play(f'state.time = 0.21; draw(); calls({plot}, "fillText").map(c => c[0])')
    line = data["plots"][0]["lines"][0]
    t, y = np.frombuffer(base64.b64decode(line["time"]), "<f8"), np.frombuffer(base64.b64decode(line["values"]), "<f4")
    value = float([w for w in words if w.startswith(line["name"] + " ")][-1].rpartition(" ")[2])
    assert value == pytest.approx(y[np.abs(t - 0.21).argmin()], rel=0.01), "beside the name of a curve: its value now"


def test_curves_in_a_plot_go_through_their_numbers(page: tuple[dict[str, Any], Play]) -> None:
    """Each record at its place between the lowest and the highest of the panel; nothing is drawn at one that is not finite."""
    data, play = page
    paper = "const paper = calls(at('side').children[0], 'drawImage').at(-1)[0].getContext('2d').calls;"
    drawn = "paper.filter(c => ['moveTo', 'lineTo', 'strokeRect', 'fillText'].includes(c[0]))"
    (calls,) = play(f"draw(); {paper} {drawn}")
    ((left, top, wide, tall),) = [c[1:] for c in calls if c[0] == "strokeRect"]
    lines = data["plots"][0]["lines"]
    values = [np.frombuffer(base64.b64decode(line["values"]), "<f4").astype(float) for line in lines]
    low, high = (f([f(y[np.isfinite(y)]) for y in values]) for f in (min, max))
    steps = [c for c in calls if c[0] in ("moveTo", "lineTo")]
    t = np.frombuffer(base64.b64decode(lines[0]["time"]), "<f8")
    for y in values:
        at = [(t[n], y[n], "moveTo" if n == 0 or np.isnan(y[n - 1]) else "lineTo") for n in range(len(t)) if np.isfinite(y[n])]
        mine, steps = steps[: len(at)], steps[len(at) :]
        assert [c[0] for c in mine] == [kind for _, _, kind in at]
        expected = [(left + wide * time / t[-1], top + tall * (high - value) / (high - low)) for time, value, _ in at]
        np.testing.assert_allclose([c[1:] for c in mine], expected, atol=PIXEL)
    assert not steps
    labels = [c[1:] for c in calls if c[0] == "fillText"][:3]
    assert [float(x[0]) for x in labels] == pytest.approx([low, (low + high) / 2, high], rel=0.01, abs=0.01 * (high - low))
    assert [x[2] - 4 for x in labels] == pytest.approx([top + tall, top + tall / 2, top])


def test_the_camera_sees_what_pictures_see(page: tuple[dict[str, Any], Play]) -> None:
    """Points on the page beside those by the camera of the data; a body that is followed is in the middle."""
    data, play = page
    eye, target, up = (np.array(data["camera"][k]) for k in ("eye", "target", "up"))
    back = (eye - target) / np.linalg.norm(eye - target)
    right = np.cross(up, back) / np.linalg.norm(np.cross(up, back))
    above = np.cross(back, right)
    points = [[0.3, 0.1, -0.2], [-0.5, 0.4, 0.2], target.tolist()]
    found = play("draw()", *[f"project({p})" for p in points])[1:]
    for p, at in zip(points, found, strict=True):
        x = np.array(p) - eye
        away = -x @ back
        np.testing.assert_allclose(
            at, [300 + 450 / VIEW * (x @ right) / away, 225 - 450 / VIEW * (x @ above) / away], atol=PIXEL
        )
    by_shader = play("draw()", *[f"shown({p})" for p in points])[1:]
    np.testing.assert_allclose(by_shader, found, atol=PIXEL, err_msg="the shader's matrix")
    behind = "project(add(lastView.eye, axes().back))[0]"
    change = "[camera.around - before.around, camera.above - before.above, camera.distance / before.distance]"
    moved = f"{{ const before = {{...camera}}; drag(canvas, 50, 25); {change} }}"
    follow = 'at("follow").value = "1"; at("follow").onchange(); project(centre(1))'
    values = play("draw()", behind, moved, follow)
    assert values[1] < -1e6 and values[2] == pytest.approx([-0.4, 0.2, 1.0])
    assert values[3] == pytest.approx([300, 225], abs=PIXEL)


def test_the_light_is_that_of_pictures_and_its_shadows_cover_the_machine(page: tuple[dict[str, Any], Play]) -> None:
    data, play = page
    back, right, matrix = play("[lightBack, lightRight, toLight]")[0]
    eye, target, up = (np.array(data["camera"][k]) for k in ("eye", "target", "up"))
    axes = lit_from(Camera(eye, target, up).axes, up)
    np.testing.assert_allclose([right, back], axes[[0, 2]], atol=SINGLE)
    X, radius, middle = np.array(matrix).reshape(4, 4).T, 1.15 * data["radius"], np.array(data["middle"])
    corners = [middle, *(middle + radius * a for a in axes)]
    seen = [X @ [*x, 1.0] for x in corners]
    expected = [[0, 0, 0, 1], [1, 0, 0, 1], [0, 1, 0, 1], [0, 0, -0.5, 1]]
    np.testing.assert_allclose(seen, expected, atol=SINGLE)


def test_arrows_say_their_newtons(page: tuple[dict[str, Any], Play]) -> None:
    _, play = page
    force = np.array([40 + 30 * 0.5, -30.0, 20.0])
    place = "const [a, b] = ends(data.moving.find(m => m.name === 'push'), record(0.5));"
    place += "const [u, v] = project(add(a, sub(b, a), 0.5));"
    read = '[at("chosen").textContent, at("chosen").style.display]'
    hover = "canvas.onpointermove({offsetX: u, offsetY: v + 2, pointerId: 9});"
    hover += '[at("hint").textContent, at("hint").style.left, at("hint").style.top, u, v]'
    script = f"play(false); state.time = 0.5; draw(); {place} press(canvas, u, v); {read}"
    words, (hint, across, down, u, v), gone = play(script, hover, f"press(canvas, 1, 1); {read}")
    expected = [
        "push at 0.500 s",
        f"|F| = {np.linalg.norm(force):.2f} N",
        *(f"F{n} = {x:.2f} N" for n, x in zip("xyz", force, strict=True)),
    ]
    assert words == ["\n".join(expected), "block"] and gone[1] == "none"
    assert (float(across.removesuffix("px")), float(down.removesuffix("px"))) == (pytest.approx(u + 12), pytest.approx(v - 10))
    assert hint == f"push, {np.linalg.norm(force):.2f} N"
    units = play(*[f"newtons({x})" for x in (0, 0.05, 99.99, 1e3, -2.5e6)])
    assert units == ["0.000 N", "50.00 mN", "99.99 N", "1.000 kN", "-2.500 MN"]


def test_the_legend_has_the_scale_of_the_arrows(page: tuple[dict[str, Any], Play]) -> None:
    data, play = page
    wide = "[at('legend').children[0].children[0].style.width, at('legend').children[0].children[1].textContent, lastView.eye]"
    hidden = "state.visible.forces = false; draw(); at('legend').children[0].style.display"
    (width, words, eye), none = play(f"draw(); {wide}", hidden)
    scale = next(x["scale"] for x in data["moving"] if x["name"] == "push")
    number, unit, layer = words.split(" ")
    newtons = float(number) * {"N": 1, "kN": 1000}[unit]
    per_metre = 450 / VIEW / np.linalg.norm(np.array(eye) - data["camera"]["target"])
    assert float(width.removesuffix("px")) == pytest.approx(newtons * scale * per_metre, abs=0.5 + PIXEL)
    assert 0.05 * 450 <= float(width.removesuffix("px")) <= 0.14 * 450 + 0.5
    assert (layer, none) == ("(forces)", "none")


def test_names_stand_at_the_mass_centres_and_are_words_only(page: tuple[dict[str, Any], Play]) -> None:
    data, play = page
    places, calls, off = play(
        "state.time = 0.3; draw(); [0, 1].map(i => project(centre(i)))",
        'draw(); calls(at("names"), "fillText").slice(-2)',
        "state.visible.names = false; draw(); words.width",
    )
    assert [c[0] for c in calls] == ["drum", "flap <&>"] == data["bodies"] and off == 0
    np.testing.assert_allclose([c[1:] for c in calls], places, atol=PIXEL)
    R, x = poses(data, 0.3)
    centres = [R[i] @ data["centres"][i] + x[i] for i in range(2)]
    np.testing.assert_allclose(play("state.time = 0.3; draw(); [0, 1].map(centre)")[0], centres, atol=SINGLE)


def test_layers_are_drawn_when_they_are_switched_on(page: tuple[dict[str, Any], Play]) -> None:
    data, play = page
    count = "seen.drawn.length = 0; draw(); seen.drawn.length"
    assert set(data["layers"]) == set(play("Object.keys(state.visible)")[0])
    switch = 'const box = at("layers").children.map(l => l.children[0]).find(b => b.id === "layer-shapes");'
    switch += "box.checked = false; box.onchange();"
    with_, without = play(count, f"{switch} {count}")
    assert without < with_


def test_a_gif_shows_what_was_drawn(page: tuple[dict[str, Any], Play]) -> None:
    """Each picture of a GIF, read by pillow, beside the pixels that were drawn at its time; the page stands where it stood."""
    Image = pytest.importorskip("PIL.Image")
    _, play = page
    levels = "(i * 7 + k) % 97 > 48 ? 200 : 20, 8 * ((i >> 5) % 8 + k % 3), 60, 255"
    paint = f"for (let i = 0; i < w * h; i++) p.set([{levels}], 4 * i); return p;"
    seen = "seen.pixels = (w, h) => { const p = new Uint8ClampedArray(4 * w * h), k = Math.round(10 * state.time); PAINT }"
    made = "state.time = 0.3; state.speed = 4;"
    made += "gif(10, 96).then(b => b.arrayBuffer()).then(b => [[...new Uint8Array(b)], state.time])"
    _, (data, time) = play(seen.replace("PAINT", paint), made)
    film = Image.open(io.BytesIO(bytes(data)))
    width, height = film.size
    assert (width, height, film.n_frames, time) == (96, 72, 6, 0.3) and film.info["loop"] == 0
    for n in range(film.n_frames):
        film.seek(n)
        k, i = round(20 * n / 5), np.arange(width * height)
        colours = np.stack([np.where((i * 7 + k) % 97 > 48, 200, 20), 8 * ((i >> 5) % 8 + k % 3), np.full(i.shape, 60)], axis=1)
        given = np.asarray(film.convert("RGB")).reshape(-1, 3).astype(int)
        assert np.abs(given - colours).max() <= GIF_STEP, n
        assert film.info["duration"] == 100


def test_a_picture_is_saved_under_a_harmless_name(page: tuple[dict[str, Any], Play]) -> None:
    _, play = page
    saved = 'data.name = "../a <b>"; at("png").onclick(); seen.saved'
    assert play(saved) == [["_a_b_.png"]]
