"""A name of a class or of a type stands for one thing in the whole package, private names included."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src" / "pfaffian"


def types(tree: ast.Module) -> Iterator[str]:
    """Names of the classes in a module, at any depth, and of the types that it names: `Rows = Sequence[int]`."""
    yield from (node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    named = [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
    yield from (x.id for x in named if isinstance(x, ast.Name) and re.fullmatch(r"_?[A-Z][a-z]\w*", x.id))


def twice(files: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Names that several of these (name of file, text) define, with the files; a leading underscore does not count."""
    found = defaultdict(list)
    for file, text in files:
        for name in types(ast.parse(text)):
            found[name.removeprefix("_")].append(file)
    return {name: files for name, files in found.items() if len(files) > 1}


def test_no_name_of_a_class_or_type_is_defined_twice():
    assert not twice((path.relative_to(SOURCE).as_posix(), path.read_text(encoding="utf-8")) for path in SOURCE.rglob("*.py"))


def test_a_second_class_is_found_wherever_it_stands():
    inner = "def f():\n    class _Spring: ...\n"
    assert twice([("a", "class Spring: ..."), ("b", inner), ("c", "LIMIT = 1\nClosed = int")]) == {"Spring": ["a", "b"]}
    assert twice([("a", "Closed = int"), ("b", "class Closed: ...")]) == {"Closed": ["a", "b"]}
