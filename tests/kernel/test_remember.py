"""What the check of the caches computes anew, and how often."""

import pytest

from pfaffian.errors import BuildError
from pfaffian.kernel import remember


def test_results_that_others_need_are_computed_once_for_each_check(monkeypatch):
    """An outer result of twelve steps, each of which takes the one before it twice: 2^12 if every call was computed anew."""
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
    assert made == [2, 1, 0, 1, 0], "a later check begins anew"
    base[0] = 3
    with pytest.raises(BuildError, match="its key leaves out something"):
        step(12)


def test_what_belongs_to_an_object_is_made_once():
    class Owner:
        pass

    made = []
    one, other = Owner(), Owner()
    for owner in (one, one, other):
        assert remember.once_for(owner, "x", lambda owner=owner: made.append(owner) or len(made)) == len(made)
    assert made == [one, other]
