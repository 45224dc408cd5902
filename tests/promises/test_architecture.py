"""Pages about the library: the picture shows the import contracts, and named files, rooms and links exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from pfaffian.model.circle import circle
from tools.api import api_pages
from tools.pages import MADE
from tools.rooms import PICTURE, contracts, picture, rooms

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "pfaffian"
INNER = sorted(p.parent for p in SOURCE.rglob("__init__.py") if p.parent != SOURCE)
"""Folders of the package."""
PLACES = (ROOT, SOURCE, ROOT / "tests", ROOT / "studies", ROOT / "docs")
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
TOP = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
PAGES = [
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "studies" / "errata.md",
    *[p for p in (ROOT / x for x in TOP) if p.exists()],
]
FILE = re.compile(r"[A-Za-z_][\w.]*(?:/[\w.]+)+/?|[A-Za-z_]\w*/|\w+\.(?:py|md|toml|h|svg|png|yaml)")
"""Text in backticks that names a file or a folder: with a slash, or with a suffix used in the repository."""


def prose(page: Path) -> str:
    """The page without its blocks of code."""
    return re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)


def test_the_picture_agrees_with_the_contracts():
    assert PICTURE.read_text(encoding="utf-8") == picture(PROJECT), "run python -m tools.rooms to draw it again"
    drawn = re.findall(r"<text [^>]*>(\w+)</text>", picture(PROJECT))
    layers = contracts(PROJECT)
    assert sorted(drawn) == sorted(name for rows in layers.values() for row in rows for name in row)
    assert len(layers) == 4 and drawn[0] == "cli" and drawn[-3:] == ["errors", "lazy", "sources"]


def imports(source: Path) -> dict[str, set[str]]:
    """Module of a package -> its modules that the module imports anywhere, for types and within functions too."""
    files = {
        ".".join(p.relative_to(source.parent).with_suffix("").parts).removesuffix(".__init__"): p for p in source.rglob("*.py")
    }
    found = {}
    for name, path in files.items():
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        froms = [(n.module, x.name) for n in nodes if isinstance(n, ast.ImportFrom) and n.module for x in n.names]
        named = {f"{module}.{x}" if f"{module}.{x}" in files else module for module, x in froms}
        named |= {x.name for n in nodes if isinstance(n, ast.Import) for x in n.names}
        found[name] = (named & {*files}) - {name}
    return found


def test_no_files_import_each_other_in_a_circle_or_more_than_twenty_others():
    found = imports(SOURCE)
    assert len(found) > 300 and sum(map(len, found.values())) > 2000
    assert circle(found) == [] and [name for name, others in found.items() if len(others) > 20] == []


def test_no_two_files_have_one_name():
    names = [p.name for p in SOURCE.rglob("*.py") if p.name != "__init__.py"]
    assert len(names) > 300 and sorted({n for n in names if names.count(n) > 1}) == []


@pytest.mark.parametrize(
    "back", ["import p.a.low as low", "if False:\n    from p.a.low import x", "def f():\n    from p.a import low"]
)
def test_a_circle_of_files_is_found(back, tmp_path):
    """Also where the import that closes it is for types, or inside a function."""
    texts = {
        "__init__": "",
        "a/__init__": "",
        "a/low": "from p.b import middle",
        "b/__init__": "",
        "b/middle": "from p.top import y",
    }
    for name, text in (texts | {"top": back}).items():
        file = tmp_path / "p" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert sorted(circle(imports(tmp_path / "p"))) == ["p.a.low", "p.b.middle", "p.top"]


def above(stub: str, room: str) -> list[str]:
    """The modules that a room's stub names but the contract does not let it import, which linters do not see."""
    layers = contracts(PROJECT)["pfaffian"]
    (at,) = (i for i, layer in enumerate(layers) if room in layer)
    below = {room, *(name for layer in layers[at + 1 :] for name in layer)}
    return [m for m in re.findall(r"^from (pfaffian\S*) import", stub, re.M) if m.split(".")[1] not in below]


@pytest.mark.parametrize("stub", sorted(SOURCE.glob("*/__init__.pyi")), ids=lambda p: p.parent.name)
def test_names_that_a_room_imports_late_are_its_own_or_from_below(stub):
    text = stub.read_text(encoding="utf-8")
    assert text.count("\nfrom ") > 10 and above(text, stub.parent.name) == []
    upward = "from pfaffian.simulate.run.run import run as run"
    assert above(f"{text}{upward}", stub.parent.name) == ["pfaffian.simulate.run.run"]


def test_another_contract_gives_another_picture():
    other = PROJECT.replace('"kernel | maths | output"', '"kernel", "maths | output"')
    assert other != PROJECT and picture(other) != picture(PROJECT)


def test_the_contract_and_the_table_name_every_room():
    folders = {p.parent.name for p in SOURCE.glob("*/__init__.py")}
    modules = {p.stem for p in SOURCE.glob("*.py")} - {"__init__"}
    table = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", prose(ROOT / "docs" / "architecture.md"), re.M)
    named = [name for row in table for name in re.findall(r"\w+", row)]
    assert sorted(named) == sorted(rooms(PROJECT)) == sorted(folders | modules)


def listed(text: str) -> list[str]:
    """Files and folders that the text of a room lists."""
    return re.findall(r"(?<![\w/])([a-z_0-9]+(?:/|\.(?:py|h|html)))(?=[\s,;]|$)", text)


def contents(room: Path) -> list[str]:
    files = [p.name for p in room.iterdir() if p.suffix in (".py", ".h", ".html") and p.name != "__init__.py"]
    return [*files, *[f"{p.parent.name}/" for p in room.glob("*/__init__.py")]]


@pytest.mark.parametrize("room", INNER, ids=[p.relative_to(SOURCE).as_posix() for p in INNER])
def test_the_text_of_a_room_lists_each_of_its_files_once(room):
    text = ast.get_docstring(ast.parse((room / "__init__.py").read_text(encoding="utf-8")))
    assert sorted(listed(text)) == sorted(contents(room))


def test_a_missing_a_strange_and_a_second_entry_of_a_room_differ_from_its_files(tmp_path):
    for name in ("__init__.py", "step.py", "loop.h"):
        (tmp_path / name).touch()
    for text in (
        "step.py  a step",
        "step.py  a step\nloop.h  a loop\nrun.py  a run",
        "step.py  a step\nstep.py  it\nloop.h  it",
    ):
        assert sorted(listed(text)) != sorted(contents(tmp_path))
    assert sorted(listed("A room.\n\nstep.py    a step\nloop.h     a loop")) == sorted(contents(tmp_path))


def test_the_architecture_is_one_page():
    lines = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").count("\n")
    assert lines <= 110, f"{lines} lines: move details to other pages"


@pytest.mark.parametrize("page", PAGES, ids=[p.name for p in PAGES])
def test_files_that_a_page_names_exist(page):
    named = {word.partition("::")[0] for word in re.findall(r"`([^`]+)`", prose(page))}
    named = {word for word in named if FILE.fullmatch(word) and not word.startswith("out/")}
    missing = [word for word in named if not any((p / word).exists() or (p / f"{word}.py").exists() for p in PLACES)]
    assert not missing, f"{page.name}: {', '.join(sorted(missing))}"


@pytest.mark.parametrize("page", PAGES, ids=[p.name for p in PAGES])
def test_links_of_a_page_lead_somewhere(page):
    text = MADE.sub("", prose(page))  # without the pictures that its code writes
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    missing = [x for x in links if not (page.parent / x).exists() and x.removeprefix("../") not in api_pages()]
    assert not missing, f"{page.name}: {', '.join(missing)}"


def test_functions_of_the_way_of_a_run_are_in_the_named_files():
    page = prose(ROOT / "docs" / "architecture.md")
    way = page[page.index("## The way of a run") : page.index("## Where is")]
    pairs = re.findall(r"`(\w+)`(?: (?:and|or) `\w+`)?\s+in\s+`([\w/]+\.py)`", way)
    assert len(pairs) > 12
    absent = [
        f"{name} in {file}"
        for name, file in pairs
        if not re.search(rf"^(?:def|class) {name}\b", (SOURCE / file).read_text(), re.M)
    ]
    assert not absent, ", ".join(absent)


def test_pages_that_the_source_names_exist():
    named = {(p.name, x) for p in SOURCE.rglob("*.py") for x in re.findall(r"\b(?:docs|studies)/\w+\.md", p.read_text("utf-8"))}
    assert named and not [f"{file}: {page}" for file, page in named if not (ROOT / page).exists()]
