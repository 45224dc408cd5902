"""An ordinary install, in a folder of its own, has all that the source has: headers, studies, examples."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("src", "studies", "examples", "pyproject.toml", "setup.py", "README.md", "LICENSE")


def _said(*command, **options):
    found = subprocess.run([str(c) for c in command], capture_output=True, text=True, **options)
    assert found.returncode == 0, found.stderr
    return found.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built aside, so that the checkout stays as it is; nothing is fetched."""
    place = tmp_path_factory.mktemp("wheel")
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, place / part, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            shutil.copy(ROOT / part, place)
    build = ("wheel", "-q", "--no-build-isolation", "--no-deps", "--no-index", "--disable-pip-version-check", "-w", place)
    _said(sys.executable, "-m", "pip", *build, place)
    return next(place.glob("*.whl"))


def test_the_wheel_has_every_file(wheel):
    kinds = ("*.py", "*.h", "*.html", "py.typed")
    wanted = {str(p.relative_to(ROOT / "src")) for kind in kinds for p in (ROOT / "src").rglob(kind)}
    for kind in ("studies", "examples"):
        wanted |= {f"pfaffian/_{kind}/{p.name}" for p in (ROOT / kind).iterdir() if p.suffix in (".py", ".yaml", ".md")}
    assert wanted <= set(zipfile.ZipFile(wheel).namelist())


def test_a_page_of_metadata_shows_all_that_it_links_to(wheel):
    files = zipfile.ZipFile(wheel)
    told = files.read(next(n for n in files.namelist() if n.endswith("/METADATA"))).decode()
    assert "Description-Content-Type: text/markdown" in told.split("\n\n")[0]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert all(line in told for line in re.findall("^## .*$", readme, re.M)) and "result = pf.run(four_bar" in told
    links = re.findall(r"\]\(([^)]*)\)|<(?:img|a)[^>]*(?:src|href)=[\"']?([^\"' >]+)", told)
    assert [x for x in map("".join, links) if not x.startswith(("https://", "#"))] == []


@pytest.fixture(scope="module")
def installed(wheel):
    """The folder of programs of a fresh environment with the wheel in it, dependencies taken from this one."""
    place = wheel.parent / "fresh"
    _said(sys.executable, "-m", "venv", "--without-pip", place)
    programs = place / ("Scripts" if os.name == "nt" else "bin")
    install = ("install", "-q", "--no-compile", "--no-deps", "--no-index", "--disable-pip-version-check", wheel)
    _said(sys.executable, "-m", "pip", "--python", programs / "python", *install)
    site = _said(programs / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    Path(site, "zz_dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return programs


@pytest.fixture
def call(installed, tmp_path):
    """Run a program of that environment in an empty folder, and give what it says."""
    bare = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    return lambda program, *arguments: _said(installed / program, *arguments, cwd=tmp_path, env=bare)


def test_studies_are_listed_and_load_anywhere(call, installed):
    said = call("pfaffian", "study")
    assert str(installed.parent) in said.split("\n")[0]
    assert all(f.stem.replace("_", "-") in said for f in (ROOT / "studies").glob("*.py"))
    load = "from pfaffian.viewer import study as s; print(len([s.load(n, s.folder()) for n in s.studies()]))"
    assert int(call("python", "-c", load)) == len(list((ROOT / "studies").glob("*.py")))


def test_examples_are_found_by_name(call):
    assert call("pfaffian", "info", "four-bar").startswith("four-bar: 3 bodies")
    assert int(call("python", "-c", "from pfaffian.viewer import zoo; print(len(zoo.machines()))")) >= 40
