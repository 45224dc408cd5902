"""What new users rely on: public names, their documentation, the README, quick import."""

import ast
import inspect
import pydoc
import re
import subprocess
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

import pfaffian as pf
from pfaffian import lazy
from pfaffian.viewer.doctor import EXTRAS
from tests.public_names import PUBLIC, ROOMS
from tools.api import public_names

ROOT = Path(__file__).resolve().parents[2]
KEYS = {"aghili05", "aghili08", "ider", "konz25", "chhabra14"}


def test_pf_has_few_names_and_each_name_has_one_place():
    assert len(dir(pf)) - len(ROOMS) <= 78 and len(ROOMS) <= 20 and dir(pf) == sorted(lazy.listed(pf.__file__))
    names = [name.split(".")[-1] for name in [*ROOMS, *PUBLIC]]
    assert {n for n in names if names.count(n) > 1} == {"pose"}, "pf.pose is a placement, control.pose a task"


@pytest.mark.parametrize("room", ["pf", *ROOMS])
def test_the_docstring_of_a_room_has_every_name_on_one_screen(room):
    module = pf if room == "pf" else ROOMS[room]
    text = inspect.getdoc(module)
    names = [name for name in public_names(module) if room != "pf" or name not in ROOMS]
    assert [name for name in names if not re.search(rf"\b{name}\b", text)] == []
    assert len(text.split("\n")) <= 40 and max(map(len, text.split("\n"))) <= 128


@pytest.mark.parametrize("room", ["pf", *ROOMS])
def test_help_of_a_room_is_its_docstring_and_fits_two_screens(room):
    """help() shows the docstring, modules, version and file, but not the docstrings of all names."""
    module = pf if room == "pf" else ROOMS[room]
    help_text = pydoc.render_doc(module, renderer=pydoc.plaintext)
    assert len(help_text.split("\n")) <= 100 and not hasattr(module, "__all__")
    headings = set(re.findall(r"^[A-Z]+(?: [A-Z]+)*$", help_text, re.M))
    assert headings <= {"NAME", "DESCRIPTION", "PACKAGE CONTENTS", "SUBMODULES", "DATA", "VERSION", "FILE"}


def _types(node):
    """Names in the annotations of a class: types of its fields, and return types of its public methods."""
    of = [x.annotation for x in node.body if isinstance(x, ast.AnnAssign)]
    of += [x.returns for x in node.body if isinstance(x, ast.FunctionDef) and x.name[0] != "_" and x.returns]
    return {x.id for part in of for x in ast.walk(part) if isinstance(x, ast.Name)}


def test_classes_that_users_can_reach_have_unique_names():
    """These are public classes, classes that public functions return, and classes of their fields."""
    defined = [
        node
        for path in (ROOT / "src").rglob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
    ]
    public = {x.__name__ for x in PUBLIC.values() if inspect.isclass(x)}
    returned = " ".join(str(x.__annotations__.get("return")) for x in PUBLIC.values() if inspect.isfunction(x))
    reachable = public | set(re.findall(r"\w+", returned)) & {c.name for c in defined}
    while more := {name for c in defined if c.name in reachable for name in _types(c)} & {c.name for c in defined} - reachable:
        reachable |= more
    count = Counter(c.name for c in defined)
    assert len(reachable) > 120
    assert not {name for name in reachable if count[name] > 1}


def test_studies_examples_and_benchmarks_import_only_public_names():
    places = [p for folder in ("studies", "examples", "benchmarks") for p in (ROOT / folder).glob("*.py")]
    imports = [
        (path.name, module.name if isinstance(node, ast.Import) else node.module, module.name)
        for path in places
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for module in node.names
        if (module.name if isinstance(node, ast.Import) else node.module or "").split(".")[0] == "pfaffian"
    ]
    assert len(imports) > 60
    for path, module, name in imports:
        public = dir(import_module(module)) if module != "pfaffian" else [*dir(pf), "pfaffian"]
        assert module.count(".") <= 1 and name in public, f"{path}: {name} of {module} is not public"


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_documented(name):
    value = PUBLIC[name]
    text = inspect.getdoc(value) or ""
    if inspect.isfunction(value) or inspect.isclass(value):
        assert len(text) > 20, f"{name} has no docstring"
        if inspect.isfunction(value):
            missing = [
                p for p in inspect.signature(value).parameters if p not in text and p not in ("name", "m", "self", "options")
            ]
            assert not missing, f"{name}: the docstring does not mention {missing}"


@pytest.mark.parametrize("package", [pf, pf.control, pf.formats])
def test_the_stub_lists_every_public_name_in_order(package):
    """The names in `dir()` are read from the stub, so that a line that is not an entry would hide a name."""
    lines = Path(package.__file__).with_suffix(".pyi").read_text(encoding="utf-8").split("\n")
    entries = [line for line in lines if line.startswith("from ")]
    assert entries == sorted(entries) and len(entries) == len(dir(package)) == len(lazy.listed(package.__file__))
    assert set(lines) - set(entries) - {""} <= {lines[0], "__version__: str"}


def test_import_loads_nothing_but_itself():
    """Import is quick, because numpy, casadi and other packages are loaded when a name is first used."""
    code = (
        "import sys; before = set(sys.modules); import pfaffian; new = {m.split('.')[0] for m in set(sys.modules) - before}; "
        "print(*sorted(new - set(sys.stdlib_module_names))); print(*sorted(m for m in sys.modules if m.startswith('pfaffian')))"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines()
    assert printed == ["pfaffian", "pfaffian pfaffian.lazy pfaffian.sources"]


def test_single_steps_and_questions_do_not_load_xarray():
    """xarray, pandas and tqdm are slow to import, so functions without labelled results do not load them."""
    code = (
        "import sys; import pfaffian as pf; slide = pf.joint('x', 'prismatic', 'world', 'box', axis=(1, 0, 0)); "
        "m = pf.mechanism('block', [pf.body('box', mass=2.0)], [slide]); late = {'xarray', 'pandas', 'tqdm'}; "
        "pf.forward_dynamics(m, [0.0], [1.0]); pf.stepper(m, backend='numpy').step(); "
        "print(late & set(sys.modules)); pf.run(m, duration=0.01, backend='numpy'); print(sorted(late & set(sys.modules)))"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines()
    assert printed == ["set()", "['pandas', 'xarray']"]


def test_the_readme_runs(capsys):
    code = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.S).group(1)
    exec(compile(code, "README.md", "exec"), {})
    assert "finished" in capsys.readouterr().out


def test_install_hints_work_as_printed():
    files = [
        *(ROOT / "src").rglob("*.py"),
        *(ROOT / "studies").glob("*.py"),
        *(f for f in (ROOT / "examples").glob("*") if f.is_file()),
        ROOT / "README.md",
    ]
    hints = [h for f in files for h in re.findall(r"pip install ([^`)\n&]+)", f.read_text(encoding="utf-8"))]
    plain = re.compile(r"(-q )?-e '\.\[[a-z,]+\]' ?|[a-z][a-z-]*|\{package\}")
    assert len(hints) >= 6 and all(plain.fullmatch(h) for h in hints), "a shell would expand brackets without quotes"
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert all(f'"{package}>=' in project for package in EXTRAS), "every package is in an extra"


def test_source_tags_have_known_keys():
    tags = [
        (path.name, key)
        for path in (ROOT / "src").rglob("*.py")
        for key in re.findall(r"\[([a-z]+\d\d|ider)[ \]]", path.read_text(encoding="utf-8"))
    ]
    assert len(tags) > 20
    assert {key for _, key in tags} <= KEYS


def test_no_file_names_a_machine_path_or_a_registry():
    forbidden = re.compile(
        "|".join(["/wo" + "rk/", "/ro" + "ot/", "pypi" + r"\.org", "python" + "hosted", "registry" + r"\.npmjs"])
    )
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    texts = [ROOT / f for f in tracked if f.endswith((".py", ".md", ".toml", ".yaml", ".h", "run", ".c"))]
    assert texts
    assert not [str(f) for f in texts if f.is_file() and forbidden.search(f.read_text(encoding="utf-8"))]


def test_the_glossary_has_a_noun_of_every_public_name():
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    first = [line.split("|")[1] for line in text.split("\n") if line.startswith("| ")]
    words = {w.lower() for cell in first for w in re.findall(r"[A-Za-z]+", cell)}
    singular = ((r"ies$", "y"), (r"ices$", "ix"), (r"es$", ""), (r"s$", ""))
    for name in [*ROOMS, *PUBLIC]:
        parts = [t.lower() for t in re.findall(r"[a-z]+|[A-Z][a-z]+|[A-Z]+", name.split(".")[-1])]
        known = {t for t in parts} | {re.sub(end, one, t) for t in parts for end, one in singular}
        assert known & words, f"{name}: docs/glossary.md has no noun of this name"


def test_help_of_the_formulations_explains_each():
    text = inspect.getdoc(type(pf.FORMULATIONS))
    ours = [name for name in pf.FORMULATIONS if not pf.FORMULATIONS.is_added(name)]  # a page adds one
    assert all(re.search(rf"(^|, ){name}[:,]", text, re.M) for name in ours)
    listed = repr(pf.FORMULATIONS).partition(":")[2].partition(";")[0]
    assert list(pf.FORMULATIONS) == [name.strip() for name in listed.split(",")]
