"""What is being done while somebody waits: told to whoever listens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_LISTENER: ContextVar[Callable[[str], None] | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Callable[[str], None]) -> Iterator[None]:
    """Within it, `listener` is told in a few words what is traced, compiled or tried, again and again while that lasts."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def tell(words: str) -> None:
    listener = _LISTENER.get()
    if listener is not None:
        listener(words)
