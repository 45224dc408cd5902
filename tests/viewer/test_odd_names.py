"""Odd names stay text wherever they are shown: panel, page, notebook, figures, LaTeX, terminal, file names."""

from __future__ import annotations

import html
import re
import sys
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr
from matplotlib import cbook
from matplotlib.figure import Figure
from matplotlib.text import Text

import pfaffian as pf
from pfaffian.embedded.text import comment
from pfaffian.formats.text.run_settings import RunSettings
from pfaffian.output.plain import label, markdown, stem, table, text
from pfaffian.viewer import notebook
from pfaffian.viewer.browser import STILL, View
from pfaffian.viewer.describe import describe
from pfaffian.viewer.drawing import style
from pfaffian.viewer.latex import escaped
from pfaffian.viewer.summary import summary
from tests.odd_names import MEANINGS, odd_names
from tests.viewer.stand_in import Server
from tests.viewer.test_animate import data_of

NAMES = odd_names()
BODIES, JOINTS, PARAMETERS, INPUTS = (NAMES[i::4] for i in range(4))
TEX = re.compile(r"\\texttt\{(?:[A-Za-z0-9 !\"()*+./:;=?@\[\]|]|\{[-<>,]\}|\\[{}$&#_%]|\\text[a-z]+\{\})*\}")
"""A name in LaTeX: plain characters, ligatures in braces, escapes."""


def boxes(name: str, bodies: list[str], joints: list[str], parameters: list[str], inputs: list[str]) -> pf.Mechanism:
    """Boxes on rails of their own, with a mass and a motor each."""
    mass = [pf.Parameter(n, 1.0, "kg") for n in parameters]
    rails = [
        pf.joint(j, "prismatic", "world", b, placement=(0, i, 0)) for i, (j, b) in enumerate(zip(joints, bodies, strict=True))
    ]
    motors = [pf.actuator(n, j) for n, j in zip(inputs, joints, strict=True)]
    return pf.mechanism(
        name, [pf.body(b, m) for b, m in zip(bodies, mass, strict=True)], rails, actuators=motors, parameters=mass
    )


@pytest.fixture(scope="module")
def crowd() -> pf.Mechanism:
    """Seventy-five boxes; their bodies, joints, parameters and inputs have the odd names."""
    return boxes(NAMES[0], BODIES, JOINTS, PARAMETERS, INPUTS)


@pytest.fixture(scope="module")
def plain() -> pf.Mechanism:
    return boxes("plain", *[[f"{kind}{i}" for i in range(len(BODIES))] for kind in "bjpu"])


@pytest.fixture(scope="module")
def moved(crowd: pf.Mechanism) -> xr.Dataset:
    return pf.run(crowd, duration=0.02, step=0.01, backend="interpreter")


class Tags(HTMLParser):
    """The tags and the text of a page; `data` of scripts and styles is text too."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attributes: list) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def tags(page: str) -> Tags:
    parser = Tags()
    parser.feed(page)
    return parser


def test_no_mark_of_markdown_is_left(crowd: pf.Mechanism) -> None:
    for name in NAMES:
        safe = markdown(name)
        assert not re.search(r"[!-/:-@\[-`{-~]", re.sub(r"&#\d+;", "", safe)) and safe == safe.strip()
        assert html.unescape(safe) == name
    assert markdown("![x](y)") == "&#33;&#91;x&#93;&#40;y&#41;" and len(html.unescape(markdown("x" * 400, 300))) == 300


def test_the_panel_shows_names_as_text(crowd: pf.Mechanism, moved: xr.Dataset, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "viser", SimpleNamespace(ViserServer=Server))
    monkeypatch.setattr(View, "_play", lambda self: None)
    view = pf.view(crowd, moved, block=False)
    try:
        seen = set()
        for mesh in [h for n, h in view.server.scene.made.items() if h.kind == "add_mesh_simple"]:
            mesh.click(None)
            seen.add(html.unescape(view.message.content))
            assert not re.search(r"[!-/:-@\[-`{-~]", re.sub(r"&#\d+;", "", view.message.content))
        assert seen >= set(BODIES)
        choices = view.follow.choices
        assert len(set(choices)) == len(choices) == 1 + len(BODIES) and choices[0] == STILL
        assert all(choice.isprintable() and len(choice) <= 64 for choice in choices)
        assert not any(re.search(r"[^a-z0-9/-]", name) for name in view.server.scene.made), "names in paths of the scene"
    finally:
        view.stop()


def test_a_body_named_like_a_choice_can_be_followed(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "viser", SimpleNamespace(ViserServer=Server))
    monkeypatch.setattr(View, "_play", lambda self: None)
    ball = pf.mechanism(
        STILL, [pf.body(STILL, 1.0, inertia=1e-3)], [pf.joint("fly", "free", "world", STILL)], gravity=(0, 0, 0)
    )
    view = pf.view(ball, pf.run(ball, v={"fly.vx": 3.0}, duration=0.2, step=0.01, backend="numpy"), block=False)
    camera = SimpleNamespace(position=np.array([0.0, -2.0, 1.0]), look_at=None)
    view.server.clients[0] = SimpleNamespace(camera=camera)
    view.seek(0.1)
    assert camera.look_at is None
    view.follow.value = view.follow.choices[1]
    view.seek(0.2)
    np.testing.assert_allclose(camera.look_at, [0.6, 0, 0], atol=1e-9)
    view.stop()


def test_pages_and_notebooks_have_no_tag_from_a_name(crowd: pf.Mechanism, plain: pf.Mechanism, moved: xr.Dataset) -> None:
    usual = pf.run(plain, duration=0.02, step=0.01, backend="interpreter")
    page = pf.animate(crowd, moved).data
    assert tags(page.decode()).tags == tags(pf.animate(plain, usual).data.decode()).tags
    assert data_of(page)["bodies"] == [text(b, 100) for b in BODIES] and data_of(page)["name"] == NAMES[0]
    assert tags(notebook.machine(crowd)).tags == tags(notebook.machine(plain)).tags
    assert tags(notebook.result(moved)).tags == tags(notebook.result(usual)).tags
    shown = tags(notebook.machine(crowd)).text
    assert all(name in shown for name in JOINTS[:60])


NUMBER = re.compile(r"\$\\mathdefault\{[^{}]*(\{[^{}]*\})?\}\$")
"""A number along an axis, which matplotlib writes as a formula."""


def no_formula(figure: Figure) -> None:
    """No text of a figure but numbers is read as a formula."""
    with style():
        figure.draw_without_rendering()
    words = [t.get_text() for t in figure.findobj(Text)]
    assert not [w for w in words if not NUMBER.fullmatch(w) and cbook.is_math_text(w)]


def test_figures_show_names_as_text(crowd: pf.Mechanism, moved: xr.Dataset, tmp_path) -> None:
    for name in NAMES:
        shown = label(name, 60)
        assert not cbook.is_math_text(shown) and not shown.startswith("_")
        assert shown.replace(r"\$", "$").removeprefix(" " if name.startswith("_") else "") == text(name, 60)
    batch = pf.run(crowd, v=np.linspace(0, 1, 2 * crowd.nv).reshape(2, -1), duration=0.02, step=0.01, backend="interpreter")
    for result in (moved, batch):
        no_formula(pf.overview(result))
        no_formula(pf.plot(result, "q", "v", "u"))
        for i in range(0, len(JOINTS), 25):
            no_formula(pf.plot(result, f"v.{JOINTS[i]}", over=f"q.{JOINTS[i]}"))
    rails = [
        pf.joint("$x$", "prismatic", "world", "$b$"),
        pf.joint("$y$", "prismatic", "$b$", "c", axis=(1, 0, 0)),
    ]
    dollars = pf.mechanism("$m$", [pf.body("$b$", 1.0), pf.body("c", 1.0)], rails)
    found = pf.map_of(dollars, ("$x$", np.linspace(0, 1, 3)), ("$y$", np.linspace(0, 1, 2)), "manipulability", body="$b$")
    drawn = found.figure()
    no_formula(drawn)
    assert drawn.get_suptitle().replace(r"\$", "$") == "$m$: manipulability of $b$; white is out of reach"
    assert found.x_title == "$x$ [m]" and "manipulability of $b$ over $x$ [m], $y$ [m]" in repr(found)
    assert pf.plot(moved, "q").get_suptitle().replace(r"\$", "$").startswith(text(NAMES[0]))


def test_sweeps_show_names_as_text(tmp_path) -> None:
    """Eight axes; the names of some break between a backslash and a dollar."""
    names = ["a" * 14 + "$" + "b" * 13 + "$", "a" * 14 + "$x$", "$x$", "a" * 9 + "$b$c", "_a$", "{$}", "$$", "\\$x$"]
    m = boxes("$m$", [f"b{i}" for i in range(8)], [f"j{i}" for i in range(8)], names, [f"u{i}" for i in range(8)])
    how = {"duration": 0.1, "step": 0.1, "backend": "numpy", "keep": {"$end$": pf.statistics.final("energy")}}
    found = pf.sweep(m, {n: [1.0, 2.0] if i < 2 else [1.0] for i, n in enumerate(names)}, store=f"{tmp_path}/s.zarr", **how)
    for kind in ("parallel", "heat", "scatter"):
        no_formula(pf.plot_sweep(found, "$end$", kind=kind))


def test_latex_terminals_and_c_have_no_command_from_a_name(crowd: pf.Mechanism, moved: xr.Dataset) -> None:
    for name in NAMES:
        assert TEX.fullmatch(escaped(name)), (name, escaped(name))
        assert re.fullmatch(r"[ -)+->@-\[\]-~]{1,100}", comment(name)), "inside a comment of C"
    for words in (repr(crowd), describe(crowd, RunSettings()), summary(crowd, moved, 0.1, []), table([(n, n) for n in NAMES])):
        assert all(line.isprintable() for line in words.split("\n"))


def test_equations_have_no_command_from_a_name() -> None:
    """Apart from escaped names they contain the commands of the same equations with plain names, and words set upright."""
    commands = lambda latex: set(re.findall(r"\\[A-Za-z]+", TEX.sub("", latex)))  # noqa: E731
    usual = commands(pf.equations(boxes("m", *[[f"{kind} {i}" for i in range(3)] for kind in "bjpu"])).latex()) | {r"\mathrm"}
    odd = MEANINGS["TeX"] + MEANINGS["markdown"]
    for i in range(0, 48, 12):
        e = pf.equations(boxes(odd[i], *[odd[k : k + 3] for k in range(i, i + 12, 3)]))
        assert commands(e.latex()) <= usual and "$" not in TEX.sub("", e.latex())


def test_names_make_harmless_file_names() -> None:
    for name in NAMES:
        assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]*", stem(name)) and len(stem(name)) <= 60
