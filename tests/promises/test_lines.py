"""Lines of code are counted without documentation, however the formatter breaks them."""

from __future__ import annotations

import pytest

from tools.lines import counts, rooms, table

TEXT = '''"""A file.

Its text."""

# why
LIMIT = 1
"""What it limits."""


def f(a,
      b):  # and b
    """What it does."""
    text = """two
lines"""
    return a + b
'''


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TEXT, (4, 6)),
        ("", (0, 0)),
        ('"""Alone."""', (0, 0)),
        ("a = [\n    1,\n]  # three\n\n\nb = f(\n)", (2, 5)),
        ('x = "a"\n"b"\n', (1, 1)),
    ],
)
def test_statements_and_the_lines_that_they_stand_on_are_counted(tmp_path, text, expected):
    (tmp_path / "a.py").write_text(text)
    assert counts(tmp_path / "a.py") == expected


def test_the_table_has_every_room_and_the_difference_from_another_tree(tmp_path):
    (tmp_path / "src" / "pfaffian" / "model").mkdir(parents=True)
    (tmp_path / "src" / "pfaffian" / "model" / "a.py").write_text("a = 1\n")
    assert rooms(tmp_path) == {"src: model": (1, 1)}
    lines = table(rooms(tmp_path), {"src: model": (3, 4), "tests": (10, 10)}).split("\n")
    assert lines[1].split() == ["src:", "model", "1", "1", "-2", "-3"] and lines[-1].split() == [
        "=",
        "all",
        "1",
        "1",
        "-12",
        "-13",
    ]
