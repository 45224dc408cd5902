"""The documentation: code of its pages runs, the site builds without warnings, and it loads nothing from a network."""

from __future__ import annotations

import ast
import inspect
import json
import re
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterable
from html import unescape
from pathlib import Path

import pytest

import pfaffian as pf
from pfaffian.viewer import zoo
from tests.public_names import PUBLIC
from tools import extras
from tools.api import tasks
from tools.notebook import notebook
from tools.pages import (
    ALONE,
    DOCS,
    EXTRA,
    MADE,
    MORE,
    ROOT,
    WIDTH,
    ZOO,
    Ran,
    build,
    has_code,
    keep,
    page_name,
    pages,
    run_page,
    with_outputs,
    zoo_text,
)

PAGES = [page for page in pages() if has_code(page) and page.name != "theories.md"]
"""All pages with code except theories.md, whose numbers tests/promises/test_theories.py checks."""
FOREIGN = re.compile(
    "|".join(["/wo" + "rk/", "/ro" + "ot/", "/tm" + "p/", "pypi" + r"\.org", "python" + "hosted", "jsdelivr", "unpkg"])
)
"""Paths of machines, and hosts of package registries."""


@pytest.mark.parametrize("page", PAGES, ids=[page_name(page) for page in PAGES])
def test_the_code_of_a_page_runs(page: Path) -> None:
    with extras.alone(EXTRA):
        ran = run_page(page)
    keep(page, ran)  # for `python -m tools.pages`, which CI calls after the tests
    assert not FOREIGN.search("".join(block.text for block in ran))
    if page.parent.name == "gallery":
        text = page.read_text(encoding="utf-8")
        assert len(ran) == max(len(re.findall("^## ", text, re.M)), 1), "a machine has one block of code"
        assert all(block.text and len(block.pictures) == 1 for block in ran), "a number and a picture each"
        assert all(len(picture) < 100_000 for block in ran for picture in block.pictures.values())
    written = {name for block in ran for name in block.pictures}
    assert {found[2] for found in MADE.finditer(page.read_text(encoding="utf-8"))} <= written, "the code writes its pictures"
    if page.name.startswith("own_"):
        assert len(ran) >= 2 and "assert" in page.read_text(encoding="utf-8")


def test_there_are_enough_recipes_and_machines() -> None:
    count = {
        folder: sum(len(re.findall("^## ", p.read_text(encoding="utf-8"), re.M)) for p in PAGES if p.parent.name == folder)
        for folder in ALONE
    }
    assert count["how"] >= 40 and count["gallery"] + len(zoo.machines()) >= 70
    assert len([p for p in PAGES if p.parent.name == "tutorials"]) == 11


def test_a_tutorial_begins_with_its_result() -> None:
    """Its first screen has a picture that its code draws, below one paragraph."""
    for page in (DOCS / "index.md", *(p for p in PAGES if p.parent.name == "tutorials")):
        heading, words, picture = page.read_text(encoding="utf-8").split("\n\n")[:3]
        assert heading.startswith("# ") and words.count("\n") <= 3 and MADE.fullmatch(picture), page.name


def test_recipes_are_short_and_ask_a_question() -> None:
    for page in (DOCS / "how").glob("*.md"):
        for part in re.split("^## ", page.read_text(encoding="utf-8"), flags=re.M)[1:]:
            title, code = part.split("\n", 1)[0], re.findall(r"^```python\n(.*?)^```$", part, re.M | re.S)
            assert title.endswith("?"), f"{page.name}: {title}"
            assert 1 <= len(code) <= 2 and max(map(_statements, code)) <= 20, f"{page.name}: {title}"


def _statements(code: str) -> int:
    return sum(isinstance(node, ast.stmt) for node in ast.walk(ast.parse(code)))


def test_code_of_pages_is_narrow_enough_to_be_read_without_scrolling() -> None:
    """84 columns fit beside the list of contents on a screen of 1280 pixels, `python -m tools.browser site` measures it."""
    wide = [
        f"{page.name}: {line}"
        for page in (*pages(), *(ROOT / name for name in MORE))
        for block in _code_blocks(page.read_text(encoding="utf-8"))
        for line in block.split("\n")
        if len(line) > WIDTH
    ]
    assert not wide


def _code_blocks(text: str) -> list[str]:
    """Blocks between fences, and lines that are indented by four columns."""
    fence = re.compile(r"^```\S*\n(.*?)^```$", re.M | re.S)
    return [*fence.findall(text), *re.findall(r"^    ([^ ].*)$", fence.sub("", text), re.M)]


def shown(names: Iterable[str], texts: Iterable[str]) -> set[str]:
    """Those of the public names that some text has, whatever the room before them."""
    words = {word for text in texts for word in re.findall(r"\w+", text)}
    return {name for name in names if name.split(".")[-1] in words}


def test_every_public_name_is_in_a_page_a_study_or_a_benchmark() -> None:
    """The glossary alone does not show how to use a name."""
    code = [f for folder in ("studies", "benchmarks", "examples") for f in (ROOT / folder).glob("*.py")]
    files = [*code, ROOT / "README.md", *(page for page in pages() if page.name != "glossary.md")]
    assert not PUBLIC.keys() - shown(PUBLIC, (f.read_text(encoding="utf-8") for f in files))
    assert shown(["forces.gust", "run", "control.pose"], ["pf.forces.gust(3)", "pf.rerun(poses)"]) == {"forces.gust"}


def test_calls_in_the_text_of_pages_fit_their_functions() -> None:
    """In calls such as `pf.overview(r)`, the name exists and accepts the arguments. Blocks of code are run elsewhere."""
    seen = 0
    for page in (*pages(), ROOT / "README.md"):
        text = re.sub("^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
        for code in re.findall(r"`(pf\.[^`]*)`", text):
            try:
                call = ast.parse(code, mode="eval").body
            except SyntaxError:  # code mixed with other words
                continue
            if not isinstance(call, ast.Call) or any(isinstance(x, ast.Constant) and x.value is ... for x in call.args):
                continue
            given = {k.arg: None for k in call.keywords if k.arg}
            bound = inspect.signature(_named(ast.unparse(call.func))).bind_partial(*call.args, **given)
            words = {name: x.id for name, x in bound.arguments.items() if isinstance(x, ast.Name)}
            assert words.get("result", "r") != "m" and "r" not in {words.get("m"), words.get("title")}, f"{page.name}: {code}"
            seen += 1
    assert seen > 30


def _named(words: str) -> Callable[..., object]:
    found: object = pf
    for name in words.split(".")[1:]:
        found = getattr(found, name)
    assert callable(found)
    return found


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site. Its code is not run, since other tests run it."""
    place = tmp_path_factory.mktemp("site")
    assert build(place, run=False) == ""
    return place


def test_the_site_is_complete_and_loads_nothing(site: Path) -> None:
    """These checks are one test because every process would build the site again."""
    texts = {file.resolve(): file.read_text(encoding="utf-8") for file in site.rglob("*.html")}
    ids = {file: set(re.findall(r'\bid="([^"]+)"', text)) for file, text in texts.items()}
    assert {f"{page_name(page)[:-3]}.html" for page in pages()} <= {f.relative_to(site.resolve()).as_posix() for f in texts}
    for file, text in texts.items():
        assert not FOREIGN.search(text), file.name
        assert not re.search(r'<(?:script|link|img)[^>]+(?:src|href)="(?:https?:)?//', text), (
            f"{file.name} loads from a network"
        )
        for link in set(re.findall(r'<a [^>]*href="([^"]+)"', text)):
            goal, _, part = unescape(link).partition("#")
            if "://" in goal or goal.startswith("mailto:"):
                continue
            there = (file.parent / goal).resolve() if goal else file
            assert there.exists(), f"{file.name}: {link}"
            assert not part or there.suffix != ".html" or part in ids[there], f"{file.name}: {link}"
    first, *_ = tasks().items()
    words = re.sub("<[^>]+>", "", (site / "api" / "index.html").read_text(encoding="utf-8"))
    assert re.search(rf"{first[0]}\s+{', '.join(first[1])}", words), "functions, by task"
    interface = (site / "api" / "pf.html").read_text(encoding="utf-8")
    assert "pf.closure" in interface and "linear system near a state" in interface


def test_outputs_are_inserted_below_their_code(tmp_path: Path) -> None:
    page = DOCS / "start.md"
    ran = [
        b._replace(text=f"printed {i}\n", pictures={"0.png": b"picture"} if i == 0 else {}) for i, b in enumerate(_blocks(page))
    ]
    text = with_outputs(page, ran, tmp_path)
    assert text.index("print(m)") < text.index("printed 0") < text.index("start-0-0.png") < text.index("printed 1")
    assert (tmp_path / "start-0-0.png").read_bytes() == b"picture"


def test_a_page_can_begin_with_a_picture_that_its_code_writes_below(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = 'from pathlib import Path\n\nfor name in ("up.gif", "down.png"):\n    Path(name).write_bytes(name.encode())\n'
    page = tmp_path / "a.md"
    page.write_text(f"# A\n\n![It moves](up.gif)\n\n![None](none.png)\n\n```python\n{code}```\n", encoding="utf-8")
    monkeypatch.setattr("tools.pages.DOCS", tmp_path)
    (tmp_path / "pictures").mkdir()
    ran = run_page(page)
    text = with_outputs(page, ran, tmp_path / "pictures")
    assert text.index("![It moves](/pictures/a-0-up.gif)") < text.index("```python") < text.index("(/pictures/a-0-down.png)")
    assert (tmp_path / "pictures" / "a-0-up.gif").read_bytes() == b"up.gif" and "none.png" not in text
    assert "up.gif" not in with_outputs(page, [], tmp_path / "pictures").split("```")[0], "the code has not run"
    words, code = json.loads(notebook(page, ran))["cells"]
    kinds = [next(iter(output["data"])) for output in code["outputs"]]
    assert "up.gif" not in words["source"] and kinds == ["image/png", "image/gif"]


def test_the_zoo_page_has_a_picture_a_number_and_the_file_of_each_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ZOO in (DOCS / "gallery" / "zoo.md").read_text(encoding="utf-8")
    monkeypatch.setattr("pfaffian.viewer.zoo.machines", lambda: ("sarrus", "crane"))
    text = zoo_text(tmp_path, run=True)
    assert text.index("## Sarrus") < text.index("zoo-sarrus.png") < text.index("foot x: {kind") < text.index("## crane")
    assert "`zoo:sarrus`: 1 degree of freedom. Height of the plate [m]: 0.673177, and 0.673177 by: 2 link sin(angle)." in text
    assert all(10_000 < f.stat().st_size < 100_000 for f in tmp_path.glob("zoo-*.png"))
    assert len(list(tmp_path.glob("*.png"))) == 2 and ".png" not in zoo_text(tmp_path, run=False)


def test_a_tutorial_becomes_a_notebook_with_its_outputs(site: Path) -> None:
    page = DOCS / "tutorials" / "teacher.md"
    ran = [b._replace(text=f"printed {i}\n", pictures={"0.png": b"png"} if i == 0 else {}) for i, b in enumerate(_blocks(page))]
    made = json.loads(notebook(page, ran))
    kinds = [cell["cell_type"] for cell in made["cells"]]
    code = [cell for cell in made["cells"] if cell["cell_type"] == "code"]
    assert made["nbformat"] == 4 and kinds[0] == "markdown" and len(code) == len(ran)
    assert [cell["execution_count"] for cell in code] == list(range(1, len(ran) + 1))
    compile("\n".join(cell["source"] for cell in code), "notebook", "exec")
    assert code[1]["outputs"] == [{"output_type": "stream", "name": "stdout", "text": "printed 1\n"}]
    assert code[0]["outputs"][1]["data"]["image/png"] == "cG5n"
    assert "".join(cell["source"] for cell in made["cells"]).count("```") == 0
    there = [f.name for f in site.rglob("*.ipynb")]
    assert sorted(there) == sorted(f"{p.stem}.ipynb" for p in PAGES if p.parent.name == "tutorials")


def _blocks(page: Path) -> list[Ran]:
    text = page.read_text(encoding="utf-8")
    return [Ran(b.end(), "", {}) for b in re.finditer(r"^```python\n.*?^```$", text, re.M | re.S)]


def test_each_part_of_a_recipe_page_runs_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "how" / "two.md"
    page.parent.mkdir()
    page.write_text("# Two\n\n## One?\n\n```python\nx = 1\n```\n\n## Other?\n\n```python\nprint(x)\n```\n")
    monkeypatch.setattr("tools.pages.DOCS", tmp_path)
    with pytest.raises(NameError):
        run_page(page)
    page.write_text(page.read_text().replace("## Other?", ""))
    assert [block.text for block in run_page(page)] == ["", "1\n"]


def test_the_readme_has_no_relative_links() -> None:
    links = re.findall(r"(?<!!)\[[^\]]*\]\(([^)]+)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert not [link for link in links if "://" not in link]


def test_the_source_distribution_has_pages_examples_and_studies(tmp_path: Path) -> None:
    code = f"from setuptools import build_meta; print(build_meta.build_sdist({str(tmp_path)!r}))"
    made = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    files = [*DOCS.rglob("*"), *(ROOT / "examples").glob("*.yaml"), *(ROOT / "studies").glob("*.py")]
    expected = {p.relative_to(ROOT).as_posix() for p in files if p.is_file() and p.suffix != ".pyc"}
    assert expected <= names and {"tools/pages.py", "CITATION.cff", "CHANGELOG.md"} <= names
