"""Functions of the package are short, and private ones have few arguments."""

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

LONGER = {"simulate/run/run.py: run"}
"""Functions that may be longer, because they describe a whole run step by step."""


def functions(path: Path) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.FunctionDef)]


def lines_of_code(f: ast.FunctionDef, text: list[str]) -> int:
    body = f.body[1:] if ast.get_docstring(f, clean=False) is not None else f.body
    lines = text[body[0].lineno - 1 : body[-1].end_lineno] if body else []
    return sum(1 for line in lines if line.strip() and not line.lstrip().startswith("#"))


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


@pytest.mark.parametrize("count", [LINES, LINES + 1])
def test_only_lines_of_code_are_counted(count):
    text = 'def f(self, a, *, b):\n    """Doc.\n\n    More."""\n' + "    # why\n\n" + "    a += b\n" * count
    (f,) = ast.parse(text).body
    assert isinstance(f, ast.FunctionDef) and lines_of_code(f, text.split("\n")) == count and arguments(f) == ["a", "b"]
