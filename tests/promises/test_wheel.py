"""A wheel installed into a fresh environment has all files of the source: headers, studies, examples."""

import os
import platform
import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from pfaffian.kernel.build.prebuilt import LEVELS
from tools import wheel as wheels

ROOT = Path(__file__).resolve().parents[2]


def output_of(*command, **options):
    found = subprocess.run([str(c) for c in command], capture_output=True, text=True, **options)
    assert found.returncode == 0, found.stderr
    return found.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A binary wheel with objects that run on any processor of this architecture."""
    return wheels.build(tmp_path_factory.mktemp("wheel"), tuple(LEVELS[platform.machine()])[-1:])


def test_the_wheel_has_every_file(wheel):
    kinds = ("*.py", "*.pyi", "*.h", "*.html", "py.typed")
    expected = {str(p.relative_to(ROOT / "src")) for kind in kinds for p in (ROOT / "src").rglob(kind)}
    for kind in ("studies", "examples"):
        expected |= {f"pfaffian/_{kind}/{p.name}" for p in (ROOT / kind).iterdir() if p.suffix in (".py", ".yaml", ".md")}
    assert expected <= set(zipfile.ZipFile(wheel).namelist())


def test_the_metadata_contains_the_readme_without_relative_links(wheel):
    files = zipfile.ZipFile(wheel)
    metadata = files.read(next(n for n in files.namelist() if n.endswith("/METADATA"))).decode()
    assert "Description-Content-Type: text/markdown" in metadata.split("\n\n")[0]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert all(line in metadata for line in re.findall("^## .*$", readme, re.M)) and "result = pf.run(four_bar" in metadata
    links = re.findall(r"\]\(([^)]*)\)|<(?:img|a)[^>]*(?:src|href)=[\"']?([^\"' >]+)", metadata)
    assert [x for x in map("".join, links) if not x.startswith(("https://", "#"))] == []


@pytest.fixture(scope="module")
def installed(wheel):
    """The folder of programs of a fresh environment with the wheel, which uses the dependencies of this environment."""
    place = wheel.parent / "fresh"
    output_of(sys.executable, "-m", "venv", "--without-pip", place)
    programs = place / ("Scripts" if os.name == "nt" else "bin")
    install = ("install", "-q", "--no-compile", "--no-deps", "--no-index", "--disable-pip-version-check", wheel)
    output_of(sys.executable, "-m", "pip", "--python", programs / "python", *install)
    site = output_of(programs / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    Path(site, "zz_dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return programs


@pytest.fixture
def call(installed, tmp_path):
    """A function that runs a program of that environment in an empty folder and returns its output."""
    bare = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    return lambda program, *arguments, **more: output_of(installed / program, *arguments, cwd=tmp_path, env=bare | more)


def test_studies_are_listed_and_load_in_any_folder(call, installed):
    listing = call("pfaffian", "study")
    assert str(installed.parent) in listing.split("\n")[0]
    assert all(f.stem.replace("_", "-") in listing for f in (ROOT / "studies").glob("[!_]*.py"))
    load = "from pfaffian.viewer import run_study as s; print(len([s.load(n, s.folder()) for n in s.studies()]))"
    assert int(call("python", "-c", load)) == len(list((ROOT / "studies").glob("[!_]*.py")))


def test_examples_are_found_by_name(call):
    assert call("pfaffian", "info", "four-bar").startswith("four-bar: 3 bodies")
    assert int(call("python", "-c", "from pfaffian.viewer import zoo; print(len(zoo.machines()))")) >= 40


RUN = """
import sys
sys.modules |= dict.fromkeys(("matplotlib", "PIL", "scipy"))  # not in the base install
import numpy as np, pfaffian as pf
from pfaffian.kernel.build.compiled_passes import PYTHON, passes
bob = pf.body("bob", mass=2.0, com=(0, 0, -1))
m = pf.mechanism("pendulum", [bob], [pf.joint("hinge", "revolute", "world", "bob", axis=(0, 1, 0))])
one, two = (pf.run(m, [1.0], duration=0.1, backend=backend) for backend in ("auto", "numpy"))
pf.animate(m, one, "fall.html")
print(one.attrs["kernel_backend"], passes() is not PYTHON, one["q"].values.tobytes() == two["q"].values.tobytes())
"""


def test_runs_need_no_compiler(call, tmp_path):
    """No compiler is found, and the store of compiled objects is empty."""
    nothing = {"PATH": str(tmp_path), "PFAFFIAN_CC": str(tmp_path / "none"), "PFAFFIAN_CACHE": str(tmp_path / "cache")}
    assert call("python", "-W", "error", "-c", RUN, **nothing).split() == ["interpreter", "True", "True"]
