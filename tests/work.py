"""Work counted instead of timed: the same on any machine under any load."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

PATIENCE = 900.0
"""Seconds after which a test gives up on what may never end. No result hangs on it: a busy machine is slow a hundred times."""

CALLS_A_CHARACTER = 15
"""What reading a text may cost, 1000 calls apart: eleven in the worst text of the tests, of a scanner written in Python. A
reader that looks at every character again for each of 90,000 others makes thousands."""


def calls(f: Callable[[], Any]) -> int:
    """Calls of Python and built-in functions while f() runs."""
    count = 0

    def counted(frame: FrameType, event: str, arg: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        f()
    finally:
        sys.setprofile(before)
    return count


def calls_to_refuse(read: Callable[[str], Any], text: str, error: type[Exception]) -> int:
    """Calls of read(text), which has to end in `error`."""
    ended = []

    def attempt() -> None:
        try:
            read(text)
        except error as e:
            ended.append(e)

    count = calls(attempt)
    assert ended, f"{read.__name__} took what it should refuse"
    return count
