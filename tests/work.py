"""Work is counted instead of timed, so that it is the same on any computer under any load."""

from __future__ import annotations

import sys
from collections.abc import Callable
from os.path import sep
from types import FrameType
from typing import Any

PATIENCE = 900.0
"""Seconds after which a test gives up on a process that may never end. No result depends on it, since a busy computer may
be a hundred times slower."""

CALLS_A_CHARACTER = 15
"""Allowed calls for each character of a text, apart from 1000: eleven in the worst text of the tests, by a scanner written
in Python. A reader that looks at every character again for each of 90,000 others needs thousands."""


def calls(f: Callable[[], Any]) -> int:
    """Number of calls of Python and built-in functions while f() runs."""
    count = 0

    def counted(frame: FrameType, event: str, arg: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    _observed(f, counted, sys.getprofile, sys.setprofile)
    return count


def calls_to_refuse(read: Callable[[str], Any], text: str, error: type[Exception]) -> int:
    """Number of calls of read(text), which must raise `error`."""
    ended = []

    def attempt() -> None:
        try:
            read(text)
        except error as e:
            ended.append(e)

    count = calls(attempt)
    assert ended, f"{read.__name__} accepted what it should refuse"
    return count


def lines(f: Callable[[], Any], package: str = "pfaffian") -> int:
    """Number of lines of a package executed while f() runs, each turn of a loop or comprehension counted."""
    count, part = 0, f"{sep}{package}{sep}"

    def counted(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal count
        count += event == "line"
        return counted

    def entered(frame: FrameType, event: str, arg: Any) -> Any:
        return counted if part in frame.f_code.co_filename else None

    _observed(f, entered, sys.gettrace, sys.settrace)
    return count


def _observed(f: Callable[[], Any], observe: Callable[..., Any], get: Callable[[], Any], put: Callable[[Any], None]) -> None:
    """Call f() with an observer of the interpreter, in place of the one that get() returns and put(...) sets."""
    before = get()
    put(observe)
    try:
        f()
    finally:
        put(before)
