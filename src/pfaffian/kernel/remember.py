"""Caches of function results. With PFAFFIAN_CHECK=1 every cached result is computed anew and compared.

What was told while a result was computed, such as a close decision, is kept with it and told again each time that it is used.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from functools import lru_cache, partial, wraps
from typing import Any, TypeVar

import casadi as ca
import numpy as np

from pfaffian.errors import BuildError, issue, with_notices

_Remembered = TypeVar("_Remembered", bound=Callable[..., Any])
_Result = TypeVar("_Result")


CHECKING = os.environ.get("PFAFFIAN_CHECK", "") not in ("", "0")
"""Whether cached results are computed anew and compared."""


def checking() -> bool:
    """Whether cached results are computed anew and compared (PFAFFIAN_CHECK)."""
    return CHECKING


def remembered(maxsize: int, check: bool = True) -> Callable[[_Remembered], _Remembered]:
    """Decorator like `functools.lru_cache`; with PFAFFIAN_CHECK=1 the cached results are checked, unless `check` is False."""

    def decorator(make: _Remembered) -> _Remembered:
        cached = lru_cache(maxsize)(partial(with_notices, make))

        @wraps(make)
        def checked(*arguments: Any) -> Any:
            value, notices = _checked(make, cached, arguments) if CHECKING and check else cached(*arguments)
            if notices:
                issue(notices)
            return value

        checked.cache_clear = cached.cache_clear  # type: ignore[attr-defined]
        return checked  # type: ignore[return-value]

    return decorator


_COMPARED: ContextVar[set[Any] | None] = ContextVar("compared", default=None)
"""(function, arguments) already compared since the outermost comparison began. A new computation calls other cached functions,
which are compared too; this set makes sure that each is compared only once."""


def _checked(make: Callable[..., Any], cached: Any, arguments: tuple[Any, ...]) -> Any:
    """The result and the notices cached(*arguments); if it came from the cache, it is compared with a new one."""
    compared, hits = _COMPARED.get(), cached.cache_info().hits
    value = cached(*arguments)
    if cached.cache_info().hits == hits or (compared is not None and (make, arguments) in compared):
        return value
    before = _COMPARED.set(set() if compared is None else compared)
    try:
        compare(f"{make.__module__}.{make.__qualname__}", value, with_notices(make, *arguments))
    finally:
        _COMPARED.reset(before)
    if compared is not None:
        compared.add((make, arguments))
    return value


def once_for(owner: Any, key: str, make: Callable[[], _Result]) -> _Result:
    """Return make(), called once for each owner and key.

    The result is noted in the owner's `__dict__`, where no field can have its name. A copy with other fields, as `replace`
    makes it, has no notes; so a note is only what follows from the fields.
    """
    notes, name = vars(owner), f"({key})"
    if name not in notes:
        notes[name] = with_notices(make)
    value, notices = notes[name]
    if notices:
        issue(notices)
    result: _Result = value
    return result


def forget(owner: Any, key: str) -> None:
    """Drop what `once_for` noted for an owner and key, if anything."""
    vars(owner).pop(f"({key})", None)


def compare(what: str, cached: Any, computed: Any) -> None:
    """Raise BuildError if the cached value `found` differs from the one computed now."""
    if content(cached) != content(computed):
        raise BuildError(f"{what}: the cached value differs from a new one: its key leaves out something that it depends on")


def content(x: Any) -> Any:
    """All numbers, texts and expressions in a value, in a form that `==` compares; of any other object only its type."""
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
