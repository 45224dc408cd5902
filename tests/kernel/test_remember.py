"""The check of the caches: which results it computes again, and how often."""

import pytest

from pfaffian.errors import BuildError
from pfaffian.kernel import remember


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
