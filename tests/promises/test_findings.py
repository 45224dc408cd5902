"""Scripts of findings/ are runnable and reproducible, run without this library, and docs/other_tools.md names each once."""

from __future__ import annotations

import ast
import os
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "findings"
SCRIPTS = sorted(p for p in FOLDER.glob("*.sh") if p.name != "common.sh")
FIELDS = ("Tools", "Behaviour", "Consequence", "Source", "Seen")
MACHINE = re.compile("|".join(["/" + "work/", "/" + "root/", "/" + "tmp/", r"https?:", "index" + "-url"]))
"""Paths of machines, and addresses: packages are installed by name."""


def head(text: str) -> dict[str, str]:
    """Field -> text, of the comment at the top of a script."""
    comment = "\n".join(line[2:] for line in re.match("#!/bin/sh\n((?:#.*\n)+)", text)[1].splitlines())
    found = re.findall(r"^(\w+):((?:.*\n?)(?:  .*\n?)*)", comment, re.M)
    return {name: re.sub(r"\s+", " ", said).strip() for name, said in found}


def packages(text: str) -> list[str]:
    """What the script hands to `needs`."""
    return re.findall(r"^needs (.*)$", text, re.M)[0].split()


def code(text: str) -> str:
    """The Python of a script."""
    (found,) = re.findall(r"""^"\$python" -I - .*<<'END'$\n(.*?)^END$""", text, re.M | re.S)
    return found


def faults(text: str) -> list[str]:
    """What is wrong with the text of a script."""
    fields, tree = head(text), ast.parse(code(text))
    found = [f"the head lacks {name}" for name in FIELDS if not fields.get(name)]
    found += [f"{name} has no version" for name in packages(text) if not re.fullmatch(r"[\w.-]+==\d[\w.]*", name)]
    versions = [name.partition("==")[2] for name in packages(text)]
    found += [f"version {v} is not in the head" for v in versions if v not in fields.get("Tools", "")]
    imported = {a.name for x in ast.walk(tree) if isinstance(x, ast.Import) for a in x.names}
    imported |= {x.module or "" for x in ast.walk(tree) if isinstance(x, ast.ImportFrom)}
    if any(name.split(".")[0] == "pfaffian" for name in imported):
        found.append("it imports this library")
    if not any(isinstance(x, ast.Assert) for x in ast.walk(tree)):
        found.append("it asserts nothing")
    return found + [f"it names {word}" for word in MACHINE.findall(text)]


@pytest.mark.parametrize("path", SCRIPTS, ids=[p.stem for p in SCRIPTS])
def test_a_finding_is_a_script_that_anyone_can_run(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert faults(text) == []
    assert '\n. "$(dirname "$0")/common.sh"\n' in text and os.access(path, os.X_OK)
    subprocess.run(["sh", "-n", str(path)], check=True)


@pytest.mark.parametrize(
    "old, new, fault",
    [
        ("==", ">=", "has no version"),
        ("needs osqp==1.1.3", "needs osqp==1.1.4", "version 1.1.4 is not in the head"),
        ("# Consequence: ", "# ", "the head lacks Consequence"),
        ("import osqp", "from pfaffian.maths import qp", "it imports this library"),
        ("assert ", "_ = ", "it asserts nothing"),
        ("solver = ", "# /ro" + "ot/\nsolver = ", "it names"),
    ],
)
def test_faults_of_a_script_are_found(old: str, new: str, fault: str) -> None:
    text = (FOLDER / "osqp-infeasible-is-not-nan.sh").read_text(encoding="utf-8")
    assert faults(text) == [] and old in text
    assert any(fault in found for found in faults(text.replace(old, new)))


def test_all_scripts_pin_the_same_version_of_a_package() -> None:
    """One environment serves all of them."""
    pins = {name for path in SCRIPTS for name in packages(path.read_text(encoding="utf-8"))}
    assert [name for name, n in Counter(pin.partition("==")[0] for pin in pins).items() if n > 1] == []
    assert len(SCRIPTS) >= 30


def test_the_page_names_each_finding_once_with_its_versions() -> None:
    page = (ROOT / "docs" / "other_tools.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.*?) \|.*\(\.\./findings/(.*)\.sh\) \|$", page, re.M)
    assert sorted(name for _, name in rows) == [p.stem for p in SCRIPTS]
    for tools, name in rows:
        said = head((FOLDER / f"{name}.sh").read_text(encoding="utf-8"))["Tools"]
        missing = [tool for tool in tools.split(", ") if tool not in said]
        assert not missing, f"{name}: {missing}"
