"""Progress messages while a caller waits for a kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_LISTENER: ContextVar[Callable[[str], None] | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Callable[[str], None]) -> Iterator[None]:
    """Within this context, `listener` is called repeatedly with short messages about tracing, compiling and testing."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def tell(words: str) -> None:
    """Send a progress message to the listener, if there is one."""
    listener = _LISTENER.get()
    if listener is not None:
        listener(words)
