"""Python's garbage collection, which waits while a file is read."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def without_collection(read: Callable[P, R]) -> Callable[P, R]:
    """The function, without a search for cycles among objects: it would go again and again through all parts of a file."""

    @wraps(read)
    def call(*args: P.args, **options: P.kwargs) -> R:
        was = gc.isenabled()
        gc.disable()
        try:
            return read(*args, **options)
        finally:
            if was:
                gc.enable()

    return call
