"""The two ends of a part: names of different bodies or joints."""

from __future__ import annotations

from typing import Any

from pfaffian.errors import ModelError, brief


def check_two_ends(what: str, kind: str, first: Any, last: Any, *, both: str = "ends") -> None:
    """Raise ModelError unless first and last are two different names.

    what: the part in the message.   kind: noun of what is named, "body" or "joint".   both: noun of the two ends.
    """
    for x in (first, last):
        if not isinstance(x, str):
            raise ModelError(f"{what}: a {kind} is given by its name, got {brief(x)}")
    if first == last:
        raise ModelError(f"{what}: both {both} are on {first!r}; name two")
