"""The base install is small: matplotlib and SciPy are extras, and everything else works without them."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import pfaffian as pf
from pfaffian.cli.main import main
from pfaffian.viewer import run_study as study
from pfaffian.viewer import zoo
from pfaffian.viewer.maps import ConfigurationMap
from pfaffian.viewer.still import still

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MODULES = {"pyyaml": "yaml"}
"""Module of a package, where their names differ."""
BEHIND = {"h5py": "h5netcdf"}
"""Packages that the library does not import itself -> the one that reads files through them."""


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation without matplotlib and SciPy."""
    for package in ("matplotlib", "scipy"):
        monkeypatch.setitem(sys.modules, package, None)


def _packages(requirements: list[str]) -> set[str]:
    names = {re.split(r"[>=<\[]", x)[0].lower() for x in requirements}
    return {MODULES.get(name, name) for name in names}


def _imports(statements: list[ast.stmt]) -> Iterator[str]:
    """Modules that a file imports when it is loaded, not in its functions and not for types alone."""
    for s in statements:
        if isinstance(s, ast.Import):
            yield from (alias.name for alias in s.names)
        elif isinstance(s, ast.ImportFrom) and not s.level:
            yield str(s.module)
        elif isinstance(s, ast.ClassDef | ast.Try | ast.With) or (
            isinstance(s, ast.If) and "TYPE_CHECKING" not in ast.dump(s.test)
        ):
            yield from _imports(s.body)


def test_files_of_the_library_import_only_the_base_install():
    """The only exception is environment.py, which is imported when pf.learning is used and names the missing package itself."""
    base = _packages(PROJECT["dependencies"]) | set(sys.stdlib_module_names) | {"pfaffian", "IPython"}
    files = {f: f.read_text(encoding="utf-8") for f in (ROOT / "src").rglob("*.py")}
    more = {f.name: {n.partition(".")[0] for n in _imports(ast.parse(text).body)} - base for f, text in files.items()}
    assert {name: found for name, found in more.items() if found} == {"environment.py": {"gymnasium"}}
    assert not [f.name for f, text in files.items() if re.search(r"^ *(from|import) scipy", text, re.M)]
    assert not {"matplotlib", "scipy", "pillow"} & base


def unused(requirements: list[str], texts: str) -> set[str]:
    """Required packages that no text imports or names."""
    return {x for x in _packages(requirements) if not re.search(rf"^ *(?:import|from) {x}\b|[\"']{x}[\"']", texts, re.M)}


def test_every_required_package_is_used():
    texts = "\n".join(f.read_text(encoding="utf-8") for f in (ROOT / "src").rglob("*.py"))
    assert unused(PROJECT["dependencies"], texts) == BEHIND.keys() and not unused([*BEHIND.values()], texts)
    assert unused(["pyyaml>=6", "tqdm>=4", "h5py"], "import yaml\nfrom tqdm import tqdm  # not h5py") == {"h5py"}


def test_every_program_for_contributors_is_mentioned():
    tools = [f.stem for f in (ROOT / "tools").glob("*.py") if "__main__" in f.read_text(encoding="utf-8")]
    pages = "\n".join(f.read_text(encoding="utf-8") for f in (ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")))
    assert len(tools) > 8 and not [name for name in tools if f"tools.{name}" not in pages]


def test_studies_are_checked_without_figures():
    """Studies and examples do not import matplotlib, and their other imports are in the extras `studies` and `mjcf`."""
    extras = PROJECT["optional-dependencies"]
    known = _packages(PROJECT["dependencies"] + extras["studies"] + extras["mjcf"]) | set(sys.stdlib_module_names)
    for file in (*(ROOT / "studies").glob("*.py"), *(ROOT / "examples").glob("*.py")):
        found = {name.partition(".")[0] for name in _imports(ast.parse(file.read_text(encoding="utf-8")).body)}
        assert "matplotlib" not in found and found <= known | {"pfaffian"}, file.name


GRID = ConfigurationMap(np.arange(2.0), np.arange(2.0), np.eye(2), np.zeros((2, 2, 1)), "x", "y", "height", "machine")
SWEPT = xr.Dataset(
    {"space": (("run", "axis"), np.eye(2)), "far": ("run", [1.0, 2.0]), "status": ("run", [0, 0])},
    {"axis": ["x", "y"]},
    {"mechanism": "machine"},
)
FIGURES = {
    "overview": pf.overview,
    "plot": lambda r: pf.plot(r, "q"),
    "a map": lambda r: GRID.figure(),
    "plot_sweep": lambda r: pf.plot_sweep(SWEPT, "far", "x", "y", kind="heat"),
    "a blank figure": lambda r: pf.study.blank_figure(3, 2),
}


@pytest.fixture(scope="module")
def ran() -> tuple[pf.Mechanism, xr.Dataset]:
    m, settings = pf.read("zoo:crane")
    return m, pf.run(m, settings.q, duration=0.1, step=0.05, backend="numpy")


@pytest.mark.parametrize("draw", FIGURES.values(), ids=FIGURES)
def test_each_figure_names_the_package_it_needs(bare, ran, draw):
    with pytest.raises(pf.ModelError, match="figures need the package matplotlib: run `pip install matplotlib`"):
        draw(ran[1])


def test_functions_that_need_scipy_name_it(bare):
    with pytest.raises(pf.ModelError, match="samples need the package scipy: run `pip install scipy`"):
        pf.sweeps.samples({"length": (0.5, 1.5)}, 4)


def test_pictures_animations_and_numbers_of_the_zoo_work_without_extras(bare, ran, tmp_path):
    m, r = ran
    assert still(m, r).startswith(b"\x89PNG") and len(pf.animate(m, r, tmp_path / "crane.html").data) > 10_000
    found = zoo.machine("quarter_car")
    assert zoo.claim(found, zoo.start(found.m, found.settings)).holds


STUDY = '''"""A study that draws."""
from pfaffian.study import blank_figure

def run(): return 1.0
def claims(result): return [("one", result, 1, 0, "by hand")]
def figures(result): return {"none": blank_figure(3, 2)}
'''


def test_a_study_is_checked_without_its_figures(bare, tmp_path):
    (tmp_path / "drawing.py").write_text(STUDY)
    with pytest.warns(pf.ModelWarning, match="study 'drawing': figures need the package matplotlib"):
        found = study.run_study("drawing", tmp_path)
    assert found.holds and not found.figures
    (tmp_path / "drawing.py").write_text(f"{STUDY}\nimport scipy.optimize\n")
    with pytest.raises(pf.ModelError, match="study 'drawing' needs the package scipy: run `pip install scipy`"):
        study.run_study("drawing", tmp_path)


def test_a_run_in_a_terminal_is_written_without_its_figure(bare, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["run", "four_bar", "--duration", "0.002"]) == 0
    assert [f.name for f in (tmp_path / "out").iterdir()] == ["four_bar.nc"]
    assert "four_bar.yaml: figures need the package matplotlib" in capsys.readouterr().err
