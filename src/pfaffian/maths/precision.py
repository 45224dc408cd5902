"""The arithmetic for which expressions are built: doubles, or floats while a law is exported in single precision."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_FLOATS = ContextVar("floats", default=False)


@contextmanager
def building_for(precision: str) -> Iterator[None]:
    """Within this context, expressions are built for "double" or "single" precision."""
    token = _FLOATS.set(precision == "single")
    try:
        yield
    finally:
        _FLOATS.reset(token)


def for_floats() -> bool:
    """Whether the expressions that are being built will be evaluated in floats alone."""
    return _FLOATS.get()
