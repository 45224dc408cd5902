"""An ordinary install, in a folder of its own, has all that the source has: headers, studies, examples."""

import os
import platform
import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from pfaffian.kernel.build.carried import LEVELS
from tools import wheel as wheels

ROOT = Path(__file__).resolve().parents[2]


def _said(*command, **options):
    found = subprocess.run([str(c) for c in command], capture_output=True, text=True, **options)
    assert found.returncode == 0, found.stderr
    return found.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A binary wheel with objects that any processor of this architecture runs."""
    return wheels.build(tmp_path_factory.mktemp("wheel"), tuple(LEVELS[platform.machine()])[-1:])


def test_the_wheel_has_every_file(wheel):
    kinds = ("*.py", "*.pyi", "*.h", "*.html", "py.typed")
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
    return lambda program, *arguments, **more: _said(installed / program, *arguments, cwd=tmp_path, env=bare | more)


def test_studies_are_listed_and_load_anywhere(call, installed):
    said = call("pfaffian", "study")
    assert str(installed.parent) in said.split("\n")[0]
    assert all(f.stem.replace("_", "-") in said for f in (ROOT / "studies").glob("*.py"))
    load = "from pfaffian.viewer import study as s; print(len([s.load(n, s.folder()) for n in s.studies()]))"
    assert int(call("python", "-c", load)) == len(list((ROOT / "studies").glob("*.py")))


def test_examples_are_found_by_name(call):
    assert call("pfaffian", "info", "four-bar").startswith("four-bar: 3 bodies")
    assert int(call("python", "-c", "from pfaffian.viewer import zoo; print(len(zoo.machines()))")) >= 40


RUN = """
import sys
sys.modules |= dict.fromkeys(("matplotlib", "PIL", "scipy"))  # not in the base install
import numpy as np, pfaffian as pf
from pfaffian.kernel.build.passes import PYTHON, passes
bob = pf.body("bob", mass=2.0, com=(0, 0, -1))
m = pf.mechanism("pendulum", [bob], [pf.joint("hinge", "revolute", "world", "bob", axis=(0, 1, 0))])
one, two = (pf.run(m, [1.0], duration=0.1, backend=backend) for backend in ("auto", "numpy"))
pf.animate(m, one, "fall.html")
print(one.attrs["kernel_backend"], passes() is not PYTHON, one["q"].values.tobytes() == two["q"].values.tobytes())
"""


def test_runs_need_no_compiler(call, tmp_path):
    """Nothing that compiles is found, and the store is empty."""
    nothing = {"PATH": str(tmp_path), "PFAFFIAN_CC": str(tmp_path / "none"), "PFAFFIAN_CACHE": str(tmp_path / "cache")}
    assert call("python", "-W", "error", "-c", RUN, **nothing).split() == ["interpreter", "True", "True"]
