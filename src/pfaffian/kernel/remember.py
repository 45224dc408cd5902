"""Caches of function results, and a check of them: with PFAFFIAN_CHECK=1 every cached result is computed anew and compared."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from functools import lru_cache, wraps
from typing import Any, TypeVar

import casadi as ca
import numpy as np

from pfaffian.errors import BuildError

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Value = TypeVar("_Value")


CHECKING = os.environ.get("PFAFFIAN_CHECK", "") not in ("", "0")
"""Whether cached results are computed anew and compared."""


def checking() -> bool:
    return CHECKING


def remembered(maxsize: int) -> Callable[[_Function], _Function]:
    """Decorator like functools.lru_cache; with PFAFFIAN_CHECK=1 cached results are checked."""

    def of(make: _Function) -> _Function:
        cached = lru_cache(maxsize)(make)

        @wraps(make)
        def checked(*arguments: Any) -> Any:
            return _checked(make, cached, arguments) if CHECKING else cached(*arguments)

        checked.cache_clear = cached.cache_clear  # type: ignore[attr-defined]
        return checked  # type: ignore[return-value]

    return of


_COMPARED: ContextVar[set[Any] | None] = ContextVar("compared", default=None)
"""What has been compared since the outermost comparison began, which computes what it calls anew too: each once."""


def _checked(make: Callable[..., Any], cached: Any, arguments: tuple[Any, ...]) -> Any:
    compared, hits = _COMPARED.get(), cached.cache_info().hits
    value = cached(*arguments)
    if cached.cache_info().hits == hits or (compared is not None and (make, arguments) in compared):
        return value
    before = _COMPARED.set(set() if compared is None else compared)
    try:
        compare(f"{make.__module__}.{make.__qualname__}", value, make(*arguments))
    finally:
        _COMPARED.reset(before)
    if compared is not None:
        compared.add((make, arguments))
    return value


def once_for(owner: Any, key: str, make: Callable[[], _Value]) -> _Value:
    """make(), once for an object that lives as long as its expressions: the result stays in the object's own dict."""
    notes = vars(owner)
    if key not in notes:
        notes[key] = make()
    value: _Value = notes[key]
    return value


def compare(what: str, found: Any, made: Any) -> None:
    """Raise BuildError if the cached value `found` differs from the one computed now."""
    if content(found) != content(made):
        raise BuildError(f"{what} was cached and is another now: its key leaves out something that it depends on")


def content(x: Any) -> Any:
    """All numbers, texts and expressions in a value, for comparison; only the type of any other object."""
    if isinstance(x, ca.Function):
        return x.serialize()
    if isinstance(x, ca.SX):
        return ca.Function("x", [ca.veccat(*ca.symvar(x))], [x]).serialize()
    if isinstance(x, ca.DM):
        return x.serialize()
    if isinstance(x, np.ndarray):
        return x.dtype.str, x.shape, x.tobytes() if x.dtype != object else [content(part) for part in x.flat]
    if hasattr(x, "recipe"):
        return x.recipe.digest
    if x is None or isinstance(x, (str, bytes, bool, int, float, np.generic)):
        return repr(x)
    if isinstance(x, Mapping):
        return [(content(name), content(part)) for name, part in x.items()]
    if isinstance(x, (tuple, list)):
        return [content(part) for part in x]
    if is_dataclass(x):
        return type(x).__name__, [content(getattr(x, f.name)) for f in fields(x) if f.repr]
    return type(x).__name__
