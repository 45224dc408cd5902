"""Count lines of code, room by room, without docstrings, comments and blank lines.

python -m tools.lines              # this tree
python -m tools.lines ../before    # and how it differs from another one

Two numbers a room: logical lines (statements, however the formatter breaks them) and the lines of text that they stand on.
"""

from __future__ import annotations

import ast
import sys
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("src/pfaffian", "tests", "studies", "examples", "benchmarks", "tools")
_NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def counts(path: Path) -> tuple[int, int]:
    """Logical lines and lines of text of a file, without strings that stand alone, which are documentation."""
    with tokenize.open(path) as file:
        text = file.read()
    alone = {
        line
        for x in ast.walk(ast.parse(text))
        if isinstance(x, ast.Expr) and isinstance(x.value, ast.Constant) and isinstance(x.value.value, str)
        for line in range(x.lineno, (x.end_lineno or x.lineno) + 1)
    }
    tokens = list(tokenize.generate_tokens(iter(text.splitlines(keepends=True)).__next__))
    logical = sum(x.type == tokenize.NEWLINE and x.start[0] not in alone for x in tokens)
    lines = {n for x in tokens if x.type not in _NO_CODE for n in range(x.start[0], x.end[0] + 1)}
    return logical, len(lines - alone)


def rooms(root: Path) -> dict[str, tuple[int, int]]:
    """Counts of each room of a tree: the folders of the package by name, and each other folder as a whole."""
    logical: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            inside = path.relative_to(root / folder).parts
            room = f"src: {inside[0] if len(inside) > 1 else '(top)'}" if folder.startswith("src") else folder
            found = counts(path)
            logical[room] += found[0]
            lines[room] += found[1]
    return {room: (logical[room], lines[room]) for room in logical}


def table(now: dict[str, tuple[int, int]], before: dict[str, tuple[int, int]]) -> str:
    """A line a room: both counts, and the difference from before where there is one."""
    names = sorted(now | before)
    parts = {"src": [x for x in names if x.startswith("src")], "all": names}
    rows = {x: (now.get(x, (0, 0)), before.get(x, (0, 0))) for x in names}
    for part, members in parts.items():
        sums = [tuple(sum(rows[x][i][j] for x in members) for j in (0, 1)) for i in (0, 1)]
        rows[f"= {part}"] = ((sums[0][0], sums[0][1]), (sums[1][0], sums[1][1]))
    heading = f"{'':22} {'logical':>9} {'text':>9}" + (f" {'logical':>9} {'text':>9}" if before else "")
    return "\n".join([heading, *(_row(x, *rows[x], bool(before)) for x in rows)])


def _row(name: str, now: tuple[int, int], then: tuple[int, int], compared: bool) -> str:
    change = f" {now[0] - then[0]:+9d} {now[1] - then[1]:+9d}" if compared else ""
    return f"{name:22} {now[0]:9d} {now[1]:9d}{change}"


if __name__ == "__main__":
    print(table(rooms(ROOT), rooms(Path(sys.argv[1])) if len(sys.argv) > 1 else {}))
