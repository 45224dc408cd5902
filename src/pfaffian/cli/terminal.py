"""What a command says to its caller: the exit status, lines of standard error, and a standard output that may be full."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from typing import Any

from pfaffian.errors import ModelWarning, RunError
from pfaffian.output.plain import text

DONE, STOPPED, WRONG_INPUT, INTERRUPTED = 0, 1, 2, 130
"""Exit status: done; a run stopped, a fit is in doubt, a claim fails or a backend is wrong; the input is wrong or a disk full;
interrupted."""


class StandardOutput:
    """Standard output, which raises RunError where it cannot be written, as on a full disk."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, words: str) -> int:
        return self._tried(self.stream.write, words)

    def flush(self) -> None:
        self._tried(self.stream.flush)

    def _tried(self, write: Callable[..., Any], *words: str) -> Any:
        try:
            return write(*words)
        except BrokenPipeError:
            raise
        except OSError as error:
            discard(self.stream)
            raise RunError(f"standard output cannot be written: {error.strerror or error}") from None


def discard(stream: Any) -> None:
    """Discard what a stream still holds, so that nothing fails when the interpreter flushes it at exit."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def say(message: str) -> None:
    """Print a message as one line of standard error, if that can be written."""
    with contextlib.suppress(OSError):
        if sys.stderr is not None:  # None if it is closed
            print(f"pfaffian: {message}", file=sys.stderr)


def notice(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Print a warning as one line."""
    kind = "note" if issubclass(category, ModelWarning) else "warning"
    say(f"{kind}: {text(message)}")
