"""No text from a file can act as a control sequence, as TeX or as a path."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pfaffian.errors import ModelError, RunError, plural
from pfaffian.output.folder import prepare, unused, write_file
from pfaffian.output.plain import label, stem, table, text

HOSTILE = ['"); system("', "</script>", "../../x", "\x1b[31mred\x1b[0m", "a\nb\rc", "\u202egnp", "$\\input$", "\0", "x" * 9999]


@pytest.mark.parametrize("name", HOSTILE)
def test_terminal_gets_printable_characters(name: str) -> None:
    assert text(name).isprintable()
    assert len(text(name, 60)) <= 60


def test_long_names_lose_their_middle() -> None:
    assert label("a" * 50 + "z") == "a" * 13 + ".." + "a" * 12 + "z" and label("a" * 28) == "a" * 28


@given(st.text())
def test_any_text(name: str) -> None:
    assert text(name).isprintable()
    assert label(name).count("$") == label(name).count(r"\$")
    safe = stem(name)
    assert 0 < len(safe) <= 60 and Path(safe).name == safe and not safe.startswith((".", "-"))
    assert set(safe) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


def test_stem_keeps_harmless_characters() -> None:
    assert stem("slider_crank-2") == "slider_crank-2"
    assert stem("../../etc/passwd") == "etc-passwd"
    assert stem("...") == "result"


def test_names_with_equal_stems_get_different_files() -> None:
    used: set[str] = set()
    assert [unused(stem(n), used) for n in ("a/b", "a b", "A:B")] == ["a-b", "a-b-2", "A-B-3"]


def test_plural() -> None:
    assert [plural(1, "body"), plural(2, "body")] == ["1 body", "2 bodies"]
    assert [plural(0, "row"), plural(2, "day")] == ["0 rows", "2 days"]


def test_table_aligns_numbers_to_the_right() -> None:
    rows = table([("a", "1", "x"), ("bb", "-20.5", ""), ("c", "-", "yy")], ("name", "n", "word")).split("\n")
    assert rows == ["  name      n  word", "  a         1  x", "  bb    -20.5", "  c         -  yy"]
    assert table([]) == ""


def test_a_line_end_in_a_cell_does_not_break_the_line() -> None:
    assert len(table([("a\nb", "c\rd")]).splitlines()) == 1


def test_a_failed_write_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunError, match="No space left"):
        write_file(tmp_path / "x.png", b"half")
    assert not list(tmp_path.iterdir())


def test_write_replaces_a_link_and_does_not_follow_it(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("kept")
    (tmp_path / "x.png").symlink_to(other)
    write_file(tmp_path / "x.png", b"new")
    assert other.read_text() == "kept" and (tmp_path / "x.png").read_text() == "new"


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match="another folder"):
        prepare(tmp_path / "file" / "out")
    assert list(prepare(tmp_path / "a" / "b").iterdir()) == []
