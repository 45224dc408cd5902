"""Frozen dataclasses whose numbers are SX: compared by content, and copied and pickled with their parameters.

Two items are equal if all their fields are equal. Numbers are equal if they are the same expressions of parameters of the same
name, default and unit; user functions are equal if they are the same object. A Parameter keeps its identity when it is pickled,
so bodies, joints and a mechanism that are unpickled separately still share it.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, TypeVar, dataclass_transform

import casadi as ca

from pfaffian.errors import ModelError
from pfaffian.kernel.remember import once_for
from pfaffian.model.number import ModelNumber, Parameter, parameter_of

_Class = TypeVar("_Class", bound=type)


@dataclass_transform(frozen_default=True, eq_default=False)
def data(cls: _Class) -> _Class:
    """Decorator: make a class a frozen dataclass with ==, hash, copy and pickle by content."""
    if not hasattr(cls, "__post_init__"):
        cls.__post_init__ = _read_by_numpy  # type: ignore[attr-defined]
    decorated: Any = dataclass(frozen=True, eq=False)(cls)
    decorated.__eq__, decorated.__hash__, decorated.__reduce__ = _equal, _hash, _reduce
    decorated.__copy__ = decorated.__deepcopy__ = _itself
    return decorated


def _read_by_numpy(self: Any) -> None:
    """The __post_init__ of data: let NumPy read its numbers. Their class changes in place, since a copy would cost 20 us."""
    for x in vars(self).values():
        if type(x) is ca.SX:
            x.__class__ = ModelNumber


def is_data(item: Any) -> bool:
    """Whether the item is of a class made by `data`, and so is compared by content."""
    return getattr(type(item), "__eq__", None) is _equal


def follows_from_fields(item: Any) -> bool:
    """Whether the item is data of a class of the library, without a user's function or any other object in its fields.

    What it computes can therefore never change, even if it is called as a function of a force or a constraint.
    """
    if not is_data(item) or not type(item).__module__.startswith("pfaffian."):
        return False
    return once_for(item, "follows from fields", lambda: all(_is_plain(getattr(item, f.name)) for f in fields(item)))


def _is_plain(x: Any) -> bool:
    """Whether the value of a field consists of numbers, names and data that follow from their fields."""
    if isinstance(x, tuple):
        return all(map(_is_plain, x))
    return x is None or isinstance(x, (str, bool, int, float, ca.SX)) or follows_from_fields(x)


def numbers_of(x: Any) -> tuple[ca.SX, ...]:
    """All numbers in data that follow from their fields."""
    if isinstance(x, ca.SX):
        return (x,)
    parts = x if isinstance(x, tuple) else [getattr(x, f.name) for f in fields(x)] if is_data(x) else ()
    return tuple(number for part in parts for number in numbers_of(part))


@dataclass(frozen=True)
class _ComparableNumber:
    """An SX in a form that can be compared and pickled.

    value: its serialisation with all zeros, and all digits.
    owners: for each of its symbols the Parameter to which it belongs, or the symbol's hash if there is none.
    text: its serialisation as it is, with the zeros that it stores, which make no difference when it is compared.
    """

    value: str
    owners: tuple[Parameter | int, ...]
    text: str = field(compare=False)


class _Several(NamedTuple):
    """A tuple field that contains numbers, with its items in the form of `_plain`."""

    items: tuple[Any, ...]


def _number(x: ca.SX) -> _ComparableNumber:
    """An SX as a `_ComparableNumber`."""
    symbols = list[ca.SX]()
    if not x.is_constant():
        x = ca.cse(x)  # so that an expression compares equal whether its common parts are computed once or twice
        symbols = ca.symvar(x)
    owners = tuple(parameter_of(s) or s.element_hash() for s in symbols)
    text = _serialised(x, symbols)
    return _ComparableNumber(text if x.is_dense() else _serialised(ca.densify(x), symbols), owners, text)


def _serialised(x: ca.SX, symbols: list[ca.SX]) -> str:
    """An SX with these symbols as a text."""
    return str(ca.Function("number", symbols, [x]).serialize() if symbols else x.serialize())


def _sx(x: _ComparableNumber) -> ca.SX:
    """The SX of a `_ComparableNumber`, the inverse of `_number`."""
    if not x.owners:
        return ca.SX.deserialize(x.text)
    return ca.Function.deserialize(x.text)(*[p.symbol for p in x.owners if isinstance(p, Parameter)])


def content(item: Any) -> tuple[Any, ...]:
    """The fields of an item as a tuple that can be compared, cached in the item."""
    return once_for(item, "content", lambda: tuple(_plain(getattr(item, f.name)) for f in fields(item)))


def _plain(x: Any) -> Any:
    """The value of a field in a form that can be compared: each SX, also within a tuple, becomes a `_ComparableNumber`."""
    if isinstance(x, tuple) and any(isinstance(item, ca.SX) for item in x):
        return _Several(tuple(map(_plain, x)))
    return _number(x) if isinstance(x, ca.SX) else x


def _field(x: Any) -> Any:
    """The value of a field, the inverse of `_plain`."""
    return tuple(map(_field, x.items)) if isinstance(x, _Several) else _sx(x) if isinstance(x, _ComparableNumber) else x


def _owners(x: Any) -> Iterator[Parameter | int]:
    """The owners of all symbols in a field value x, which is in the form of `_plain`."""
    for item in x.items if isinstance(x, _Several) else (x,):
        yield from item.owners if isinstance(item, _ComparableNumber) else ()


def _equal(self: Any, other: Any) -> bool:
    """The __eq__ of data: same class and equal content."""
    if self is other:
        return True
    return content(self) == content(other) if type(self) is type(other) else NotImplemented


def _hash(self: Any) -> int:
    """The __hash__ of data, from its content, cached in the item."""
    # A user's function object need not be hashable, so functions count only as True.
    return once_for(self, "hash", lambda: hash(tuple(callable(x) or x for x in content(self))))


def _itself(self: Any, memo: Any = None) -> Any:
    """The __copy__ and __deepcopy__ of data: the item itself, since it cannot change."""
    return self


def _reduce(self: Any) -> tuple[Any, ...]:
    """The __reduce__ of data. Raises ModelError: a field with a symbol of no Parameter, or with a function not picklable."""
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
    """A context in which data may be pickled by a pickler that accepts any function, such as cloudpickle."""
    token = _BY_VALUE.set(True)
    try:
        yield
    finally:
        _BY_VALUE.reset(token)


def _restore(cls: type, values: tuple[Any, ...]) -> Any:
    """An item of a class made by `data` from its pickled content."""
    item = cls(*map(_field, values))
    once_for(item, "content", lambda: values)  # This keeps the parameters alive for items that are unpickled later.
    return item


def _check_pickles(function: Any, what: str) -> None:
    """Raise ModelError for a function that cannot be pickled.   what: its label in the message."""
    try:
        pickle.dumps(function)
    except Exception as error:  # The pickling code of a user's object may raise anything.
        raise ModelError(
            f"{what} cannot be pickled ({error}); define it at the top level of a module, or as an instance of such a class"
        ) from error
