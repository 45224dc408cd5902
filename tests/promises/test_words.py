"""The words of the code: names and docstrings that a reader understands without having read another file."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "src" / "pfaffian").rglob("*.py"))

PRIVATE = {"said", "own", "shown", "held", "kept", "asked", "told", "met", "taken", "wanted"}
"""Words that stood for a different thing in each file where the field has a noun: digest, residual, setpoint, message, ..."""

ELSEWHERE = re.compile(r"\b(said|see|as|shown)\s+(above|below)\b|^(the same|as before|ditto)\b", re.I)
"""Phrases of a docstring that refer to a text which `help` does not print with it."""


def names(tree: ast.AST) -> Iterator[str]:
    """Every identifier of a file that its author chose: definitions, arguments, variables, attributes, aliases."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.keyword) and node.arg:
            yield node.arg
        elif isinstance(node, ast.alias) and node.asname:
            yield node.asname


def words(name: str) -> set[str]:
    """The words of an identifier in snake case or camel case."""
    return set(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().split("_"))


def docstrings(tree: ast.AST) -> Iterator[str]:
    """All docstrings of a file: of modules, classes, functions, and the texts below constants."""
    for node in ast.walk(tree):
        for child in getattr(node, "body", []) if not isinstance(node, (ast.Lambda, ast.IfExp)) else []:
            if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant) and isinstance(child.value.value, str):
                yield child.value.value


@pytest.mark.parametrize("path", FILES, ids=[p.relative_to(ROOT / "src" / "pfaffian").as_posix() for p in FILES])
def test_names_and_docstrings_stand_alone(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert sorted({name for name in names(tree) if words(name) & PRIVATE}) == []
    assert [text for text in docstrings(tree) if ELSEWHERE.search(text)] == []


@pytest.mark.parametrize("name", ["held", "_Held", "MET", "by_own_state", "rowsKept"])
def test_the_words_of_a_name(name):
    assert words(name) & PRIVATE
    assert not words("shape") & PRIVATE and not words("metric_owner") & PRIVATE


@pytest.mark.parametrize("text", ["The same of numbers.", "As said above.", "Terms, see\nbelow.", "Ditto"])
def test_a_docstring_that_refers_elsewhere_is_found(text):
    (found,) = docstrings(ast.parse(f'def f():\n    """{text}"""'))
    assert ELSEWHERE.search(found)
    assert list(names(ast.parse("def f(a, *, b=c.d): e = g(h=1)"))) and not ELSEWHERE.search("The bodies below the joint.")
