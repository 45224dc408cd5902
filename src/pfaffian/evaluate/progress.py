"""A line on the terminal while a mechanism is traced and compiled for the first time, and a progress bar of a run.

tqdm takes as long to import as a short run, so it is imported only when a line or bar is drawn.
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
"""Time between two updates of the line [s]."""

LONG = 5.0
"""Time after which a wait is explained on the terminal although no progress bar was requested [s]."""

_OPEN: ContextVar[bool] = ContextVar("open", default=False)
"""Whether an enclosing call, that of the user, explains the wait already."""


@contextmanager
def progress_line(name: str, visible: bool) -> Iterator[None]:
    """Show the current activity of the kernel and its duration on a line of stderr while the context is open.

    name: of the mechanism.   visible: whether to show the line at once, and remove it at the end. If False, each activity of
    the kernel is printed once, on a line that stays, and only after LONG seconds.
    """
    if _OPEN.get():
        yield
        return
    token = _OPEN.set(True)
    try:
        with _bar(name) if visible else _notes(name):
            yield
    finally:
        _OPEN.reset(token)


@contextmanager
def progress_bar(total: int, unit: str, name: str | None, visible: bool, done: int = 0) -> Iterator[Callable[[int], Any]]:
    """Show a progress bar of `total` units on stderr while the context is open, if `visible`.

    Gives a function that advances the bar by a number of units.   done: units done before.
    """
    if not visible:
        yield lambda more: None
        return
    from tqdm import tqdm

    with tqdm(total=total, initial=done, unit=unit, desc=name) as bar:
        yield bar.update


@contextmanager
def _bar(name: str) -> Iterator[None]:
    """Show the current activity and its duration on a line of tqdm."""
    from tqdm import tqdm

    with tqdm(bar_format="{desc} [{elapsed}]", leave=False) as line:
        last_drawn = [-REFRESH]

        def listener(message: str) -> None:
            line.set_description_str(f"{name}: {message}", refresh=False)
            if time.monotonic() - last_drawn[0] >= REFRESH:
                last_drawn[0] = time.monotonic()
                line.refresh()

        with listening(listener):
            yield


@contextmanager
def _notes(name: str) -> Iterator[None]:
    """Print activities of the kernel once it has worked for LONG seconds."""
    notes = _Notes(text(name, LONGEST))
    with listening(notes.receive):
        try:
            yield
        finally:
            notes.end()


class _Notes:
    """Prints each activity of the kernel once, from LONG seconds after the first message on."""

    def __init__(self, name: str) -> None:
        self.name, self.activity, self.late = name, "", False
        self.printed, self.lock = set[str](), threading.Lock()

    def receive(self, message: str) -> None:
        """Receive a message of the kernel on its current activity."""
        self.activity = message.partition(",")[0]
        now = time.monotonic()
        if not self.late and now >= _DUE.setdefault(self, now + LONG):
            self.late = True
        if not any(thread.is_alive() for thread in _WATCHING):  # None is where the process was forked.
            _WATCHING[:] = [threading.Thread(target=_watch, daemon=True)]
            _WATCHING[0].start()
        self._print()

    def begin(self) -> None:
        """Begin to print, LONG seconds after the first message."""
        self.late = True
        self._print()

    def _print(self) -> None:
        """Print the current activity, unless it is too early or was printed before."""
        with self.lock:
            if self.late and self.activity not in self.printed:
                self.printed.add(self.activity)
                print(f"pfaffian: {self.name}: {self.activity}, this once ...", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Print nothing more."""
        _DUE.pop(self, None)


_DUE: dict[_Notes, float] = {}
"""Notes that wait -> when they begin to print."""

_WATCHING: list[threading.Thread] = []
"""The thread that watches them, if any waits. It serves many calls: to start one for each takes as long as a short call."""


def _watch() -> None:
    """Let notes begin when they are due, until none waits."""
    this = threading.current_thread()
    while this in _WATCHING:
        for notes, due in list(_DUE.items()):
            if due <= time.monotonic() and _DUE.pop(notes, None) is not None:
                notes.begin()
        now = time.monotonic()
        time.sleep(max(0.0, min(_DUE.copy().values(), default=now + LONG) - now))
        if not _DUE:
            _WATCHING.clear()
            if _DUE and not _WATCHING:  # Notes came between these two lines, while this thread still seemed to watch.
                _WATCHING.append(this)
