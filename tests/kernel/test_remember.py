"""The check of the caches: which results it computes again, and how often."""

import re
import warnings
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import pfaffian
from pfaffian.errors import BuildError, ModelWarning, collected, notice
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
    """No other file writes into the `__dict__` of an object; `Terms` gives its terms to other Terms there, and
    kinematics give what they have computed to their copies."""
    written = re.compile(r"(vars\(\w+\)|__dict__)(\[[^\]]*\] *=[^=]|\.update|\.setdefault)|= vars\(")
    files = {p.relative_to(SOURCE).as_posix() for p in SOURCE.rglob("*.py") if written.search(p.read_text("utf-8"))}
    assert files == {"kernel/remember.py", "terms/reused_kinematics.py", "terms/terms.py"}


class Owner:
    """What notes are attached to."""


def as_library(name: str, **given):
    """A function of the library that calls the given functions, one after another."""
    module = {"__name__": "pfaffian.of_this_test", **given}
    exec(f"def {name}():\n" + "".join(f"    {f}()\n" for f in given), module)
    return module[name]


@contextmanager
def nothing():
    """A context whose decorator stands between functions of the library."""
    yield


def told_by(call) -> list[str]:
    """What a call tells, at the line of this file that calls the library."""
    with warnings.catch_warnings(record=True, action="always") as caught, suppress(ValueError):
        call()
    assert {w.filename for w in caught} <= {__file__}
    return [str(w.message) for w in caught]


def test_what_was_told_with_a_result_is_told_each_time_that_it_is_used():
    """Once in each call of the user: also by results that were made of it, and where a computation fails in the end."""
    owner = Owner()

    def close(n: int) -> int:
        notice(f"{n} is close", ModelWarning)
        return n

    inner = remember.remembered(8)(as_library("inner", of_two=lambda: close(2)))
    noted = as_library("noted", note=lambda: remember.once_for(owner, "one", lambda: close(1)))
    outer = remember.remembered(8)(as_library("outer", inner=inner, noted=noted, again=inner))
    failing = as_library("failing", outer=outer, fail=lambda: int("x"))
    for _ in range(2):
        assert told_by(as_library("calls", outer=outer, inner=inner)) == ["2 is close", "1 is close"]
        assert told_by(noted) == ["1 is close"]
        assert told_by(as_library("through", inner=nothing()(inner))) == ["2 is close"]
        assert told_by(remember.remembered(8)(failing)) == ["2 is close", "1 is close"]
        with collected() as told:
            inner()
        assert told == ["2 is close"]
