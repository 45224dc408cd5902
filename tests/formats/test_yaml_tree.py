"""Trees of YAML texts are the same with and without libyaml."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from pfaffian.errors import ModelError
from pfaffian.formats.text import yaml_tree
from pfaffian.formats.text.yaml_tree import parse_tree

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))

TEXTS = [
    "a: 1\nb: 'it''s'\nc: \"x\\ty\"\n",
    "a: {b: [1, 2.5e-3, -x], c: no}\nd:\n  - 017\n  - 1:30\n",
    "text: |\n  two\n   lines\nfolded: >-\n  one\n  line # no comment\n",
    "# a comment\na: plain words over\n  two lines\n",
    "%YAML 1.1\n---\na: ~\n...\n",
    "a: {b: {c: [[], {}]}}\n",
]


@pytest.mark.parametrize("text", [*TEXTS, *(path.read_text(encoding="utf-8") for path in EXAMPLES[::6])])
def test_libyaml_gives_the_same_tree(text, monkeypatch):
    tree = parse_tree(text, "file")
    monkeypatch.setattr(yaml_tree, "IN_C", None)
    assert parse_tree(text, "file") == tree


REFUSED = {
    "axis\t: 1\n": "cannot start any token",  # libyaml reads these three
    "a: {b? : 1, c: 2}\n": "expected ',' or '}'",
    "a: >2-# folded\n    b\n": "but found '#'",
    "a: 1\na: 2\n": "given twice",
    "a: !x 1\n": "tags",
    "a: &b 1\n": "anchors",
    "a: [1, 2\n": "line 2",
    "a: 'x\n": "end of stream",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_refused_does_not_depend_on_libyaml(text, monkeypatch):
    words = []
    for of in (yaml_tree.IN_C, None):
        monkeypatch.setattr(yaml_tree, "IN_C", of)
        with pytest.raises(ModelError, match=REFUSED[text]) as error:
            parse_tree(text, "file")
        words.append(str(error.value))
    assert words[0] == words[1]


def test_a_document_without_content_has_the_same_line_without_libyaml(monkeypatch):
    where = parse_tree("--- ", "file").where
    monkeypatch.setattr(yaml_tree, "IN_C", None)
    assert where == parse_tree("--- ", "file").where == "file line 1"


def test_only_common_texts_are_left_to_libyaml(monkeypatch):
    class Recorded(yaml.SafeLoader):
        def __init__(self, text: str) -> None:
            super().__init__(text)
            read.append(text)

    read: list[str] = []
    monkeypatch.setattr(yaml_tree, "IN_C", Recorded)
    for text in (TEXTS[0], "a: \u00e9\n", "a: 'x\ty'\n", "a: why?\n"):
        parse_tree(text, "file")
    assert read == TEXTS[:1]
