"""Numbers of a mechanism: a float, a named parameter, or an expression of parameters.

Everything in a model is kept as CasADi SX, so a constant folds away while tracing and a parameter stays an input of
the kernel. Nothing here evaluates text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4
from weakref import WeakValueDictionary

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError


@dataclass(frozen=True)
class Parameter:
    """A named number that a run may change without compiling again.

    Args:
        name: how people call it.   default: its value unless a run says otherwise.   unit: shown, never computed with.

    It takes part in arithmetic: `Parameter("l", 1.0) / 2` is an expression that a Body or a Joint accepts.
    """

    name: str
    default: float
    unit: str = ""
    symbol: ca.SX = field(init=False, repr=False, compare=False)
    identity: str = field(default_factory=lambda: uuid4().hex, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.default, (int, float, np.number)) or not np.isfinite(self.default):
            raise ModelError(f"parameter {self.name!r}: default {self.default!r} is not a finite number")
        # The symbol's own name is never used: names are for people.
        object.__setattr__(self, "symbol", ca.SX.sym("p"))
        _BY_SYMBOL[self.symbol.element_hash()] = _BY_IDENTITY[self.identity] = self

    def __reduce__(self) -> tuple:
        return _same_parameter, (self.name, self.default, self.unit, self.identity)

    def __copy__(self) -> Parameter:
        return self

    def __deepcopy__(self, memo: Any) -> Parameter:
        return self

    def __SX__(self) -> ca.SX:
        return self.symbol

    def __neg__(self) -> ca.SX:
        return -self.symbol

    def __add__(self, other: Any) -> ca.SX:
        return self.symbol + sx(other)

    def __sub__(self, other: Any) -> ca.SX:
        return self.symbol - sx(other)

    def __mul__(self, other: Any) -> ca.SX:
        return self.symbol * sx(other)

    def __truediv__(self, other: Any) -> ca.SX:
        return self.symbol / sx(other)

    def __pow__(self, other: Any) -> ca.SX:
        return self.symbol ** sx(other)

    def __radd__(self, other: Any) -> ca.SX:
        return sx(other) + self.symbol

    def __rsub__(self, other: Any) -> ca.SX:
        return sx(other) - self.symbol

    def __rmul__(self, other: Any) -> ca.SX:
        return sx(other) * self.symbol

    def __rtruediv__(self, other: Any) -> ca.SX:
        return sx(other) / self.symbol


_BY_SYMBOL: WeakValueDictionary[int, Parameter] = WeakValueDictionary()
_BY_IDENTITY: WeakValueDictionary[str, Parameter] = WeakValueDictionary()


def parameter_of(symbol: ca.SX) -> Parameter | None:
    """The living Parameter whose symbol it is."""
    return _BY_SYMBOL.get(symbol.element_hash())


def _same_parameter(name: str, default: float, unit: str, identity: str) -> Parameter:
    """The Parameter of that identity: the one that lives in this process, else a new one that takes it on."""
    known = _BY_IDENTITY.get(identity)
    if known is not None:
        return known
    made = Parameter(name, default, unit)
    object.__setattr__(made, "identity", identity)
    _BY_IDENTITY[identity] = made
    return made


Scalar = float | int | Parameter | ca.SX


def sx(value: Any) -> ca.SX:
    """One number as SX. Raises ModelError for what is no finite number."""
    if isinstance(value, Parameter):
        return value.symbol
    if isinstance(value, ca.SX):
        return value
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ModelError(f"{value!r} is not a number, a Parameter or an expression of Parameters") from None
    if not np.isfinite(number):
        raise ModelError(f"{value!r} is not a finite number")
    return ca.SX(number)


def vector(values: Any, length: int, what: str) -> ca.SX:
    """(length, 1) SX from a sequence of numbers; `what` names it in the error."""
    if isinstance(values, ca.SX):
        if values.numel() != length:
            raise ModelError(f"{what}: {length} numbers are needed, got {values.numel()}")
        return ca.densify(ca.reshape(values, length, 1))
    if isinstance(values, (str, bytes)) or not isinstance(values, (Sequence, np.ndarray)):
        raise ModelError(f"{what}: a sequence of {length} numbers is needed, got {values!r}")
    if len(values) != length:
        raise ModelError(f"{what}: {length} numbers are needed, got {len(values)}")
    return ca.densify(ca.vertcat(*[_named(v, what) for v in values]))


def scalar(value: Any, what: str) -> ca.SX:
    """(1, 1) SX; `what` names it in the error."""
    number = _named(value, what)
    if number.numel() != 1:
        raise ModelError(f"{what}: one number is needed, got {number.numel()}")
    return ca.densify(number)


def _named(value: Any, what: str) -> ca.SX:
    try:
        return sx(value)
    except ModelError as error:
        raise ModelError(f"{what}: {error}") from None
