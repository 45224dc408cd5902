"""The check of the caches: which results it computes again, and how often."""

import re
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import pfaffian
from pfaffian.errors import BuildError
from pfaffian.kernel import remember

SOURCE = Path(pfaffian.__file__).parent


def test_nested_results_are_computed_once_in_each_check(monkeypatch):
    """Twelve nested steps, each of which uses the previous one twice: computing every call again would take 2^12 calls."""
    made, base = [], [1]

    @remember.remembered(64)
    def step(n: int) -> int:
        made.append(n)
        return base[0] if n == 0 else (step(n - 1) + step(n - 1)) % 1009

    assert step(12) == pow(2, 12, 1009) and made == [*range(12, -1, -1)]
    monkeypatch.setattr(remember, "CHECKING", True)
    made.clear()
    step(12)
    assert made == [*range(12, -1, -1)]
    made.clear()
    step(2), step(1)
    assert made == [2, 1, 0, 1, 0], "a later check computes all results again"
    base[0] = 3
    with pytest.raises(BuildError, match="its key leaves out something"):
        step(12)


def test_once_for_computes_once_for_each_object():
    class Owner:
        pass

    made = []
    one, other = Owner(), Owner()
    for owner in (one, one, other):
        assert remember.once_for(owner, "x", lambda owner=owner: made.append(owner) or len(made)) == len(made)
    assert made == [one, other]


def test_a_note_has_the_name_of_no_field_and_follows_from_the_fields():
    @dataclass(frozen=True)
    class Owner:
        x: int

    owner = Owner(2)
    assert remember.once_for(owner, "x", lambda: 3 * owner.x) == 6 and owner.x == 2
    other = replace(owner, x=5)
    assert remember.once_for(other, "x", lambda: 3 * other.x) == 15


def test_all_notes_are_made_by_one_function():
    """No other file writes into the `__dict__` of an object; `Terms` gives its terms to other Terms there."""
    written = re.compile(r"(vars\(\w+\)|__dict__)(\[[^\]]*\] *=[^=]|\.update|\.setdefault)|= vars\(")
    files = {p.relative_to(SOURCE).as_posix() for p in SOURCE.rglob("*.py") if written.search(p.read_text("utf-8"))}
    assert files == {"kernel/remember.py", "terms/terms.py"}
