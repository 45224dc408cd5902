"""A line on the terminal while something is traced and compiled for the first time, and a bar while steps are taken.

tqdm takes as long to import as a short run, and is imported where something is shown.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from pfaffian.kernel import listening
from pfaffian.output.plain import LONGEST, text

REFRESH = 0.2
"""Seconds between two updates of the line."""

LONG = 5.0
"""Seconds after which a wait is explained to who did not ask for a progress bar."""

_OPEN: ContextVar[bool] = ContextVar("open", default=False)
"""Whether a wait is being explained already, by the function that a user called."""


@contextmanager
def progress_line(name: str, shown: bool) -> Iterator[None]:
    """While it is open, a line on stderr tells what is being done and for how long; it vanishes afterwards. If not `shown`,
    nothing, but after LONG seconds a line that stays, for each thing that is being done.
    """
    if _OPEN.get():
        yield
        return
    token = _OPEN.set(True)
    try:
        with _bar(name) if shown else _notes(name):
            yield
    finally:
        _OPEN.reset(token)


@contextmanager
def progress_bar(total: int, unit: str, name: str | None, shown: bool, done: int = 0) -> Iterator[Callable[[int], Any]]:
    """While it is open, a bar on stderr of `total` units, if `shown`; gives the function that counts some as done."""
    if not shown:
        yield lambda more: None
        return
    from tqdm import tqdm

    with tqdm(total=total, initial=done, unit=unit, desc=name) as bar:
        yield bar.update


@contextmanager
def _bar(name: str) -> Iterator[None]:
    from tqdm import tqdm

    with tqdm(bar_format="{desc} [{elapsed}]", leave=False) as line:
        drawn = [-REFRESH]

        def listener(message: str) -> None:
            line.set_description_str(f"{name}: {message}", refresh=False)
            if time.monotonic() - drawn[0] >= REFRESH:
                drawn[0] = time.monotonic()
                line.refresh()

        with listening(listener):
            yield


@contextmanager
def _notes(name: str) -> Iterator[None]:
    notes = _Notes(text(name, LONGEST))
    with listening(notes.hear):
        try:
            yield
        finally:
            notes.end()


class _Notes:
    """Lines on what is being done, each once, from LONG seconds after the first message on."""

    def __init__(self, name: str) -> None:
        self.name, self.doing, self.late = name, "", False
        self.reported, self.turn = set[str](), threading.Lock()
        self.clock: threading.Timer | None = None

    def hear(self, message: str) -> None:
        """Take a message of the kernel on what it does now."""
        self.doing = message.partition(",")[0]
        if self.clock is None:
            self.clock = threading.Timer(LONG, self._begin)
            self.clock.daemon = True
            self.clock.start()
        self._say()

    def _begin(self) -> None:
        self.late = True
        self._say()

    def _say(self) -> None:
        with self.turn:
            if self.late and self.doing not in self.reported:
                self.reported.add(self.doing)
                print(f"pfaffian: {self.name}: {self.doing}, this once ...", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self.clock is not None:
            self.clock.cancel()
