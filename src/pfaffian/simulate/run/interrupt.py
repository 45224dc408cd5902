"""Ctrl-C during a run: a long run ends early and returns its results so far; a short one raises KeyboardInterrupt."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

SHORT = 2.0
"""Seconds after which Ctrl-C ends only the current run. Before that it interrupts the program, so one Ctrl-C ends a loop over
short runs; a loop over long runs ends when Ctrl-C is pressed again just after the next run has begun."""


@contextmanager
def interrupts() -> Iterator[Callable[[], bool]]:
    """Context in which Ctrl-C is noted; yields a function that returns whether it was pressed.

    Ctrl-C raises KeyboardInterrupt if it is pressed within the first `SHORT` seconds, or a second time. In threads other than
    the main one, and where the program has its own handler for the signal, nothing is changed.
    """
    begun, pressed = time.monotonic(), [False]

    def note(number: int, frame: Any) -> None:
        if pressed[0] or time.monotonic() - begun < SHORT:
            signal.default_int_handler(number, frame)
        pressed[0] = True

    handled = threading.current_thread() is threading.main_thread()
    handled = handled and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if handled:
        signal.signal(signal.SIGINT, note)
    try:
        yield lambda: pressed[0]
    finally:
        if handled:
            signal.signal(signal.SIGINT, signal.default_int_handler)
