"""Ctrl-C in a long run: it ends with what it has; in a short one the interrupt is that of the program."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

SHORT = 2.0
"""Seconds that a run must have lasted for Ctrl-C to end it alone. A loop over short runs ends as a whole, and one over long
runs does when Ctrl-C is pressed again, while the next one has just begun."""


@contextmanager
def interrupts() -> Iterator[Callable[[], bool]]:
    """Within it, the function tells whether Ctrl-C was pressed. Pressed early, or twice, it raises KeyboardInterrupt.

    Nothing changes in other threads than the main one, and where the program handles the signal itself.
    """
    begun, pressed = time.monotonic(), [False]

    def note(number: int, frame: Any) -> None:
        if pressed[0] or time.monotonic() - begun < SHORT:
            signal.default_int_handler(number, frame)
        pressed[0] = True

    ours = threading.current_thread() is threading.main_thread()
    ours = ours and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if ours:
        signal.signal(signal.SIGINT, note)
    try:
        yield lambda: pressed[0]
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
