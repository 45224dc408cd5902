"""Machines and results in a notebook: a picture and the facts, with every name as plain text."""

from __future__ import annotations

import re
import sys
from base64 import b64decode
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr
from PIL import Image

import pfaffian as pf
from pfaffian.kernel.build import toolchain
from pfaffian.viewer import notebook
from tests.promises.test_repr import Cells
from tests.simulate.machines import four_bar

BAD = "<script>alert('1')</script>: & \"x\""


class Page(Cells):
    """The rows, the tags and the image data of a page."""

    def __init__(self, text):
        self.images = []
        super().__init__(text)

    def handle_starttag(self, tag, attributes):
        super().handle_starttag(tag, attributes)
        if tag == "img":
            self.images.append(dict(attributes)["src"])


def chain(kinds, **given):
    bodies = [pf.body(f"b{i}", 1.0, (0.3, 0.1, 0), 0.1) for i in range(len(kinds))]
    joints = [pf.joint(f"j{i}", kind, f"b{i - 1}" if i else "world", f"b{i}", placement=(0.5 * (i > 0), 0, 0))
              for i, kind in enumerate(kinds)]  # fmt: skip
    return pf.mechanism("chain", bodies, joints, **given)


def pixels(image):
    head, _, data = image.partition("base64,")
    assert head == "data:image/png;"
    return np.asarray(Image.open(BytesIO(b64decode(data))).convert("RGB"), dtype=int)


@pytest.mark.parametrize("m", [four_bar(), chain(["revolute", "prismatic", "spherical"]), chain(["free", "universal"])])
def test_the_picture_of_a_machine_shows_all_of_it(m):
    page = Page(notebook.machine(m))
    assert page.open == [] and len(page.images) == 1 and page.rows == Cells(m._repr_html_()).rows
    image = pixels(page.images[0])
    strong = np.ptp(image, axis=2) > 60  # coloured pixels, not those of the ground or its grid
    assert image.shape == (*notebook.SIZE[::-1], 3) and 0.005 < strong.mean() < 0.7
    rows, columns = np.flatnonzero(strong.any(axis=1)), np.flatnonzero(strong.any(axis=0))
    assert rows[0] > 0 and columns[0] > 0 and rows[-1] < len(strong) - 1 and columns[-1] < strong.shape[1] - 1
    assert max(np.ptp(rows) / strong.shape[0], np.ptp(columns) / strong.shape[1]) > 0.4
    assert "open" not in notebook.machine(m)


def test_the_picture_of_a_machine_waits_for_no_compiler(monkeypatch):
    """Poses of bodies, the corners of a rope round a drum, the loop and the pixels: nothing is compiled or loaded."""

    def refuse():
        raise AssertionError("a compiler is looked for")

    bar = four_bar()
    drum = pf.forces.guide("coupler", 0.1, axis=(0, 1, 0))
    rope = pf.forces.path([("world", (0, 0.3, 2)), drum, ("rocker", (0.1, 0, 0))])
    m = bar.with_(name="roped", forces=[pf.forces.path_spring("rope", rope, stiffness=10.0)])
    monkeypatch.setattr(toolchain, "find_compiler", refuse)
    assert len(Page(notebook.machine(m)).images) == 1


def test_machines_that_cannot_be_drawn_keep_their_tables():
    apart = four_bar()
    far = apart.with_(constraints=[pf.coincide("c", "world", (50, 0, 0), "rocker", (0, 0, 0))])
    assert "loops open: no state closes" in notebook.machine(far)
    ball = pf.mechanism("ball", [pf.body("b", 1.0, inertia=1)], [pf.joint("j", "free", "world", "b")])
    assert "<img" in notebook.machine(ball) and "<table" in notebook.machine(ball)
    assert "<img" not in notebook.machine(chain(["revolute"] * (notebook.MOST_BODIES + 1)))


def test_names_are_text_in_machines_and_results():
    m = pf.mechanism(BAD, [pf.body("b", 1.0, (1, 0, 0))], [pf.joint(BAD, "revolute", "world", "b")])
    page = Page(notebook.machine(m))
    assert page.tags == {"b", "div", "img", "table", "tr", "th", "td"} and BAD in [c for row in page.rows for c in row]
    html = notebook.result(pf.run(m, duration=0.02, step=0.01, backend="numpy"))
    assert "<script" not in html and html.index("&lt;script") > 0
    facts = Page(html.partition("<details>")[0])
    assert facts.open == [] and ["mechanism", BAD] in facts.rows and ["ended", "finished"] in facts.rows
    assert b64decode(facts.images[0].partition("base64,")[2])[:4] == b"\x89PNG"


def test_the_facts_of_a_batch_count_stopped_runs():
    with pytest.warns(pf.RunWarning):
        r = pf.run(chain(["revolute"]), [[0.1], [0.2]], v=[[1.0], [1e150]], duration=0.02, step=0.01, backend="numpy")
    rows = dict(Page(notebook.result(r).partition("<details>")[0]).rows)
    assert rows["ended"] == "1 of 2 runs finished" and rows["first not finished"].startswith("diverged")
    few = pf.run(chain(["revolute"]), duration=0.02, step=0.01, record=["energy"], backend="numpy")
    assert "<img" in notebook.result(few) and "<img" not in notebook.result(few.isel(time=-1))


def test_other_datasets_are_shown_as_usual():
    ds = xr.Dataset({"time": 1.0})
    html, usual = (re.sub("[0-9a-f-]{36,}", "", html) for html in (notebook.result(ds), ds._repr_html_()))
    assert html == usual and "<img" not in html


def test_formatters_are_registered_in_notebooks_only(monkeypatch):
    registered = {}
    html = SimpleNamespace(for_type_by_name=lambda module, name, f: registered.update({(module, name): f}))
    shell = SimpleNamespace(display_formatter=SimpleNamespace(formatters={"text/html": html}))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    pf._show_in_notebooks()
    m = chain(["revolute"])
    kinds = {(type(x).__module__, type(x).__name__) for x in (m, xr.Dataset())}
    assert set(registered) == kinds, "the names under which these classes are defined"
    assert registered["pfaffian.model.mechanism", "Mechanism"](m) == notebook.machine(m)
    registered.clear()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    pf._show_in_notebooks()
    assert registered == {}


def test_the_slider_of_the_notebook_page_runs(monkeypatch):
    """With a stand-in for ipywidgets, it draws the figures of two slider positions."""
    page = (Path(__file__).parents[2] / "docs" / "notebooks.md").read_text(encoding="utf-8")
    code, view = re.findall(r"```py\n(.*?)```", page, re.S)
    made = []
    widgets = SimpleNamespace(interact=lambda **limits: lambda f: made.extend(f(x) for x in limits["length"]) or f)
    monkeypatch.setitem(sys.modules, "ipywidgets", widgets)
    known: dict = {}
    exec(compile(code, "notebooks.md", "exec"), known)
    again = []
    monkeypatch.setattr(pf, "view", lambda m, result, rerun: again.extend((result, rerun({"length": 0.5}))))
    exec(compile(view, "notebooks.md", "exec"), known)
    assert [float(r.parameters[0]) for r in again] == [1.0, 0.5]
    crossings = [np.count_nonzero(np.diff(np.sign(figure.axes[0].lines[0].get_ydata()))) for figure in made]
    assert crossings[0] > 2 * crossings[1] > 0
