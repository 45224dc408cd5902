"""Small faults for Python source, one at a time, which the tests run by tools/mutate.py should detect."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

BINARY = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"), ast.Pow: ("**", "*"),
    ast.Mod: ("%", "*"), ast.FloorDiv: ("//", "*"), ast.BitOr: ("|", "&"), ast.BitAnd: ("&", "|"),
}  # fmt: skip
COMPARE = {
    ast.Lt: ("<", ">="), ast.LtE: ("<=", "<"), ast.Gt: (">", "<="), ast.GtE: (">=", ">"), ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="), ast.In: ("in", "not in"), ast.NotIn: (r"not\s+in", "in"), ast.Is: ("is", "is not"),
    ast.IsNot: (r"is\s+not", "is"),
}  # fmt: skip
NAME = re.compile(r"[A-Za-z_][\w ./']{0,40}")
"""A text that looks like the name of a signal or an option; other texts are messages."""

EITHER_WAY = {"max", "min", "fmax", "fmin", "maximum", "minimum", "dot", "logic_and", "logic_or", "swapaxes", "array_equal"}
"""Functions whose value does not change when their two arguments are exchanged."""


class Mutant(NamedTuple):
    """Bytes [start, end) of the source become `text`.   line: its line number, from 1.   kind: of change, in words."""

    line: int
    start: int
    end: int
    text: str
    kind: str

    def apply(self, source: bytes) -> bytes:
        return source[: self.start] + self.text.encode() + source[self.end :]


def mutants(source: bytes) -> list[Mutant]:
    """Every mutant of a module, in order, that is valid Python and a different program."""
    return [m for m in candidates(source) if differs(source, m)]


def candidates(source: bytes) -> list[Mutant]:
    """Every change to a module, in order; a few are invalid Python or the same program: see `differs`."""
    lines = [0]
    for line in source.splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    return sorted({m for node, words in _walk(ast.parse(source)) for m in _of(node, words, source, lines)})


def differs(source: bytes, mutant: Mutant) -> bool:
    """Whether a mutant is valid Python and a different program."""
    try:
        return ast.dump(ast.parse(mutant.apply(source))) != _program(source)
    except SyntaxError:
        return False


@lru_cache(8)
def _program(source: bytes) -> str:
    """The program of a module, without its layout and comments."""
    return ast.dump(ast.parse(source))


def _walk(node: ast.AST, words: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    """Nodes of the tree, each with a flag whether its texts are messages (of an error, docstring or symbol).

    Annotations, __all__ and the option strict=True of zip are left out, since no result depends on them.
    """
    if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
        return
    called = _called(node)
    words = words or called == "sym"
    yield node, words
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list"):
            continue
        inside = words or isinstance(node, (ast.Raise, ast.JoinedStr)) or (isinstance(node, ast.Expr) and _is_text(node.value))
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not (called == "zip" and field == "keywords"):
                yield from _walk(child, inside)


def _called(node: ast.AST) -> str:
    """Last part of the called function's name, or "" for another node."""
    called = node.func if isinstance(node, ast.Call) else None
    return getattr(called, "attr", getattr(called, "id", ""))


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _of(node: ast.AST, words: bool, source: bytes, lines: list[int]) -> Iterator[Mutant]:
    def at(n: Any, kind: str, text: str) -> Mutant:
        return Mutant(n.lineno, _start(n, lines), _end(n, lines), text, kind)

    def of(n: ast.AST) -> str:
        return source[_start(n, lines) : _end(n, lines)].decode()

    def between(a: ast.AST, b: ast.AST, pattern: str, text: str, kind: str) -> Iterator[Mutant]:
        gap = source[_end(a, lines) : _start(b, lines)].decode()
        sign = re.search(pattern if pattern[0].isalpha() else re.escape(pattern), gap)
        if sign and "#" not in gap:
            start = _end(a, lines) + len(gap[: sign.start()].encode())
            yield Mutant(b.lineno, start, start + len(sign[0].encode()), text, kind)

    match node:
        case ast.BinOp(left, op, right) if type(op) in BINARY:
            yield from between(left, right, *BINARY[type(op)], "operator")
        case ast.BinOp(left, ast.MatMult(), right):
            yield at(node, "order of a product", f"(({of(right)}) @ ({of(left)}))")
        case ast.UnaryOp(ast.USub() | ast.Not(), operand):
            yield at(node, "sign or not dropped", f"({of(operand)})")
        case ast.Compare(left, [op], [right]) if type(op) in COMPARE:
            yield from between(left, right, *COMPARE[type(op)], "comparison")
        case ast.BoolOp(op, [first, second, *_]):
            old, new = ("and", "or") if isinstance(op, ast.And) else ("or", "and")
            yield from between(first, second, old, new, "and, or")
        case ast.Constant(bool(value)):
            yield at(node, "truth value", str(not value))
        case ast.Constant(int(value) | float(value)):
            yield at(node, "number", repr(value + 1 if isinstance(value, int) else 2 * value or 1.0))
        case ast.Constant(str(value)) if not words and NAME.fullmatch(value):
            yield at(node, "name", repr(value + " x"))
        case ast.If(test) | ast.IfExp(test) | ast.While(test):
            yield at(test, "condition", f"(not ({of(test)}))")
        case ast.comprehension(ifs=[test, *_]):
            yield at(test, "condition", f"(not ({of(test)}))")
        case ast.AugAssign() | ast.Raise() | ast.Expr(ast.Call()):
            yield at(node, "statement dropped", "pass")
    match node:
        case ast.Call(args=[first, second, *rest]) if not any(isinstance(a, ast.Starred) for a in (first, second)):
            start, end = _start(first, lines), _end(second, lines)
            if rest or _called(node) not in EITHER_WAY:
                yield Mutant(first.lineno, start, end, f"{of(second)}, {of(first)}", "arguments exchanged")


def _start(n: Any, lines: list[int]) -> int:
    return lines[n.lineno - 1] + n.col_offset


def _end(n: Any, lines: list[int]) -> int:
    return lines[n.end_lineno - 1] + n.end_col_offset
