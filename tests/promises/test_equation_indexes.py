"""The indexes of equations in docs/: they have every tag of the source, in order, and the files that the pages name exist."""

import re
from pathlib import Path

import pytest

from tools.equations import WIDTH, chapter, order, places, references, with_indexes

ROOT = Path(__file__).resolve().parents[2]
PAGES = {"konz25": ROOT / "docs" / "konz.md", "chhabra14": ROOT / "docs" / "chhabra.md"}


@pytest.mark.parametrize("key", PAGES)
def test_an_index_has_every_tag_of_its_thesis_in_order(key):
    text = with_indexes(PAGES[key].read_text(encoding="utf-8"))
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "tests").rglob("*.py"), *(ROOT / "studies").glob("*.py")]
    assert {x.reference for x in places(key, files)} <= set(_references(text))
    assert not [x for x in text.split("\n") if len(x) > WIDTH and x.count(" ") > 4 and not x.startswith("|")], (
        "a line is broken where it can be"
    )
    orders = [order(x) for x in _references(text)]
    assert orders == sorted(orders) and len(orders) > 90
    assert "`pf." in text and not re.search("## Chapter [0-9]+$", text, re.M), "public names, and subjects of chapters"


def _references(text):
    lines = re.findall(r"^\* (\*\*.*\*\*)$", text, re.M)
    return [x for line in lines for x in line.removeprefix("**").removesuffix("**").split("**, **")]


@pytest.mark.parametrize("key", PAGES)
def test_a_page_names_every_study_of_its_thesis_and_existing_files(key):
    text = with_indexes(PAGES[key].read_text(encoding="utf-8"))
    studies = [p.stem for p in (ROOT / "studies").glob(f"{key.rstrip('0123456789')}_*.py")]
    assert len(studies) > 5 and not [x for x in studies if x not in text]
    for name in re.findall(r"`([\w/]+\.py)(?:::\w+)?`", text):
        assert [p for p in (ROOT / "src" / "pfaffian", ROOT / "tests", ROOT) if (p / name).exists()], name


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("(4.23), (4.32)", ["(4.23)", "(4.32)"]),
        ("(2.44b); the sign corrected", ["(2.44b)"]),
        ("sections 2.1 and 3.2", ["2.1", "3.2"]),
        ("thm. 3.2.7, corrected", ["theorem 3.2.7"]),
        ("(2.16), konz25 (3.1)", ["(2.16)"]),
        ("ch. 5", ["ch. 5"]),
    ],
)
def test_a_tag_is_divided_into_its_references(words, expected):
    assert references(words) == expected


def test_references_are_ordered_by_numbers_and_appendices_come_last():
    mixed = ["(A.2)", "(4.12)", "fig. 4.20", "(4.9)", "4.10", "ch. 5", "4.8.1"]
    assert sorted(mixed, key=order) == ["4.8.1", "4.10", "fig. 4.20", "(4.9)", "(4.12)", "ch. 5", "(A.2)"]
    assert chapter("corrected") is None


def test_a_tag_belongs_to_the_innermost_function_around_it(tmp_path):
    text = '"""A file."""\nclass A:\n    """It is 1.5 m. More."""\n    def f(self): ...  # [made01 (1.2)]\n# [made01 (1.3)]\n'
    (tmp_path / "a.py").write_text(text)
    assert [(x.reference, x.name, x.what) for x in places("made01", [tmp_path / "a.py"])] == [
        ("(1.2)", "f", ""),
        ("(1.3)", "", "A file"),
    ]
