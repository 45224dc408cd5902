"""Functions of the package are short, the longer ones say what they do, and private ones have few arguments."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

from tests.public_names import PUBLIC

SOURCE = Path(__file__).resolve().parents[2] / "src" / "pfaffian"
FILES = sorted(SOURCE.rglob("*.py"))

LINES, ARGUMENTS = 40, 8
"""Most lines of code of a function, without docstring, comments and blank lines; most arguments of a private function."""

UNEXPLAINED = 8
"""Most statements of a function without a docstring. Classes explain their methods `__x__`."""

LONGER = {"simulate/run/run.py: run"}
"""Functions that may be longer, because they describe a whole run step by step."""


def functions(path: Path) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.FunctionDef)]


def lines_of_code(f: ast.FunctionDef, text: list[str]) -> int:
    """Lines without comments, blank lines and docstrings, also those of functions inside."""
    explained = [
        x.body[0] for x in ast.walk(f) if isinstance(x, ast.FunctionDef) and ast.get_docstring(x, clean=False) is not None
    ]
    prose = {n for x in explained for n in range(x.lineno, (x.end_lineno or x.lineno) + 1)}
    lines = range(f.body[0].lineno, (f.body[-1].end_lineno or 0) + 1)
    return sum(1 for n in lines if n not in prose and text[n - 1].strip() and not text[n - 1].lstrip().startswith("#"))


def statements(f: ast.FunctionDef) -> int:
    return sum(isinstance(x, ast.stmt) for node in f.body for x in ast.walk(node))


def unexplained(f: ast.FunctionDef) -> bool:
    return not ast.get_docstring(f) and not f.name.startswith("__") and statements(f) > UNEXPLAINED


def arguments(f: ast.FunctionDef) -> list[str]:
    every = [a.arg for a in (*f.args.posonlyargs, *f.args.args, *f.args.kwonlyargs)]
    return [name for name in every if name not in ("self", "cls")]


def public() -> set[tuple[str, str]]:
    """File and name of each public function."""
    inside = [x for module in PUBLIC.values() if inspect.ismodule(module) for x in vars(module).values()]
    made = [inspect.unwrap(x) for x in (*PUBLIC.values(), *inside) if inspect.isfunction(x)]
    return {(inspect.getsourcefile(f) or "", f.__name__) for f in made}


def test_functions_are_short():
    found = {
        f"{path.relative_to(SOURCE).as_posix()}: {f.name}"
        for path in FILES
        for f in functions(path)
        if lines_of_code(f, path.read_text(encoding="utf-8").split("\n")) > LINES
    }
    assert found == LONGER


def test_only_public_functions_have_many_arguments():
    many = [(str(path), f.name) for path in FILES for f in functions(path) if len(arguments(f)) > ARGUMENTS]
    assert len(many) > 10 and not set(many) - public()


def test_long_functions_say_what_they_do():
    assert not [f"{path.relative_to(SOURCE)}: {f.name}" for path in FILES for f in functions(path) if unexplained(f)]


@pytest.mark.parametrize("count", [UNEXPLAINED, UNEXPLAINED + 1])
def test_statements_are_counted_at_any_depth(count):
    text = "def f(x):\n    if x:\n" + "        x += 1\n" * (count - 1)
    (f,) = ast.parse(text).body
    assert isinstance(f, ast.FunctionDef) and unexplained(f) == (count > UNEXPLAINED)
    (f,) = ast.parse(text.replace(":\n", ':\n    """What it does."""\n', 1)).body
    assert isinstance(f, ast.FunctionDef) and not unexplained(f)


@pytest.mark.parametrize("count", [LINES, LINES + 1])
def test_only_lines_of_code_are_counted(count):
    text = 'def f(self, a, *, b):\n    """Doc.\n\n    More."""\n' + "    # why\n\n" + "    a += b\n" * count
    (f,) = ast.parse(text).body
    assert isinstance(f, ast.FunctionDef) and lines_of_code(f, text.split("\n")) == count and arguments(f) == ["a", "b"]
