"""Frozen data with numbers as SX: equal by content, copied and pickled with their parameters.

Two items are equal if all their fields are: numbers if they are the same expressions of parameters of the same name, default
and unit, the caller's functions if they are the same object. A Parameter keeps its identity when it is pickled, so bodies,
joints and a mechanism that are unpickled separately still share it.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, TypeVar, dataclass_transform

import casadi as ca

from pfaffian.errors import ModelError
from pfaffian.model.number import Parameter, parameter_of

_Class = TypeVar("_Class", bound=type)


@dataclass_transform(frozen_default=True, eq_default=False)
def data(cls: _Class) -> _Class:
    """A frozen dataclass with ==, hash, copy and pickle by content."""
    made: Any = dataclass(frozen=True, eq=False)(cls)
    made.__eq__, made.__hash__, made.__reduce__ = _equal, _hash, _reduce
    made.__copy__ = made.__deepcopy__ = _itself
    return made


def is_data(item: Any) -> bool:
    """Whether the item is compared by content."""
    return getattr(type(item), "__eq__", None) is _equal


class _Number(NamedTuple):
    """An SX as text with all digits, and the owners of its symbols: a Parameter each, or a hash for a symbol of none."""

    text: str
    owners: tuple[Parameter | int, ...]


class _Several(NamedTuple):
    """A tuple of plain fields."""

    items: tuple[Any, ...]


def _number(x: ca.SX) -> _Number:
    if x.is_constant():
        return _Number(x.serialize(), ())
    x = ca.cse(x)  # whether equal parts were computed once or twice is no part of the number
    used = ca.symvar(x)
    return _Number(ca.Function("number", used, [x]).serialize(), tuple(parameter_of(s) or s.element_hash() for s in used))


def _sx(x: _Number) -> ca.SX:
    if not x.owners:
        return ca.SX.deserialize(x.text)
    return ca.Function.deserialize(x.text)(*[p.symbol for p in x.owners if isinstance(p, Parameter)])


def content(item: Any) -> tuple[Any, ...]:
    """The fields of an item as a tuple that can be compared; made once."""
    cache = vars(item)
    if "_content" not in cache:
        values = (getattr(item, f.name) for f in fields(item))
        cache["_content"] = tuple(_plain(x) for x in values)
    return cache["_content"]


def _plain(x: Any) -> Any:
    """A field that can be compared: numbers, also those in a tuple, as `_Number`."""
    if isinstance(x, tuple) and any(isinstance(item, ca.SX) for item in x):
        return _Several(tuple(map(_plain, x)))
    return _number(x) if isinstance(x, ca.SX) else x


def _field(x: Any) -> Any:
    """The field of which `_plain` gave x."""
    return tuple(map(_field, x.items)) if isinstance(x, _Several) else _sx(x) if isinstance(x, _Number) else x


def _owners(x: Any) -> Iterator[Parameter | int]:
    """The owners of the symbols of a plain field."""
    for item in x.items if isinstance(x, _Several) else (x,):
        yield from item.owners if isinstance(item, _Number) else ()


def _equal(self: Any, other: Any) -> bool:
    if self is other:
        return True
    return content(self) == content(other) if type(self) is type(other) else NotImplemented


def _hash(self: Any) -> int:
    cache = vars(self)
    if "_hash" not in cache:
        # A caller's function object need not be hashable.
        cache["_hash"] = hash(tuple(callable(x) or x for x in content(self)))
    return cache["_hash"]


def _itself(self: Any, memo: Any = None) -> Any:
    """The item itself: it cannot change, so it is its own copy."""
    return self


def _reduce(self: Any) -> tuple[Any, ...]:
    what = f"{type(self).__name__.lower()} {getattr(self, 'name', '')!r}"
    for f, value in zip(fields(self), content(self), strict=True):
        if not all(isinstance(p, Parameter) for p in _owners(value)):
            raise ModelError(f"{what} cannot be pickled: its {f.name} uses a symbol of no Parameter")
        if callable(value) and not _BY_VALUE.get():
            _check_pickles(value, f"{what}: its function {f.name}")
    return _restore, (type(self), content(self))


_BY_VALUE: ContextVar[bool] = ContextVar("by_value", default=False)


@contextmanager
def functions_by_value() -> Iterator[None]:
    """Within it, items are pickled by a pickler that takes any function, such as cloudpickle."""
    token = _BY_VALUE.set(True)
    try:
        yield
    finally:
        _BY_VALUE.reset(token)


def _restore(cls: type, values: tuple[Any, ...]) -> Any:
    made = cls(*map(_field, values))
    vars(made)["_content"] = values  # which keeps the parameters alive for items that are unpickled later
    return made


def _check_pickles(function: Any, what: str) -> None:
    try:
        pickle.dumps(function)
    except Exception as error:  # a caller's object may raise anything
        raise ModelError(
            f"{what} cannot be pickled ({error}); define it at the top level of a module, or as an object of such a class"
        ) from error
