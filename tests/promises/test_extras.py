"""Extras of `pyproject.toml`: what they install, what is missing, and what a page may not use."""

from __future__ import annotations

import sys
from importlib import import_module, metadata, util
from pathlib import Path

import pytest

from tools import extras

ROOT = Path(__file__).resolve().parents[2]

WRITTEN = """
[project]
name = "mill"
dependencies = ["numpy>=2"]
[project.optional-dependencies]
mesh = ["trimesh>=4"]
site = ["mill[mesh]", "no-such-package>=1", "packaging>=9999", "pytest"]
"""


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text(WRITTEN, encoding="utf-8")
    monkeypatch.setattr(extras, "PROJECT", tmp_path / "pyproject.toml")


def test_an_extra_has_the_packages_of_the_extras_that_it_names(written: None) -> None:
    assert [str(x) for x in extras.requirements("site")] == [
        "numpy>=2", "no-such-package>=1", "packaging>=9999", "pytest", "numpy>=2", "trimesh>=4",
    ]  # fmt: skip


def test_what_is_not_installed_or_too_old_is_missing(written: None) -> None:
    assert extras.missing("site") == ["no-such-package>=1", "packaging>=9999"]


def test_what_packages_require_belongs_to_an_extra(written: None) -> None:
    found = extras.closure("site")
    assert found["pluggy"] == metadata.version("pluggy"), "pytest requires it"
    assert "no-such-package" not in found and "sphinx" not in found


def test_packages_that_an_extra_does_not_bring_are_hidden_also_when_they_are_loaded(written: None) -> None:
    import_module("sphinx.errors")
    sys.modules.pop("colorsys", None)
    with extras.alone("site"):
        own = import_module("colorsys")
        assert util.find_spec("trimesh") and metadata.distribution("trimesh")
        for name in ("sphinx", "sphinx.errors"):
            with pytest.raises(ImportError):
                import_module(name)
        assert util.find_spec("sphinx") is None
        with pytest.raises(metadata.PackageNotFoundError):
            metadata.distribution("Sphinx")
    assert sys.modules["sphinx.errors"] and metadata.distribution("sphinx")
    assert sys.modules["colorsys"] is own, "what was imported meanwhile stays"


def test_modules_whose_name_looks_like_a_test_can_still_be_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pytest takes part in their import."""
    (tmp_path / "trend_test.py").write_text("FOUND = 1\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with extras.alone("docs"):
        assert import_module("trend_test").FOUND == 1


def test_modules_are_hidden_that_a_package_keeps_in_a_folder_of_its_own() -> None:
    assert util.find_spec("pinocchio")
    with extras.alone("docs"):
        assert util.find_spec("pinocchio") is None and util.find_spec("numpy")


def test_the_site_is_built_by_ci_as_the_readme_says() -> None:
    command = next(x for x in (ROOT / "README.md").read_text(encoding="utf-8").split("\n") if "tools.pages" in x)
    assert "'.[docs]'" in command and 'grep -m1 "tools.pages" README.md' in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
