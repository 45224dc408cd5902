"""Numbers of a mechanism: a float, a named parameter, or an expression of parameters.

All numbers of a model are CasADi SX, so constants fold while the equations are traced and parameters stay inputs of the
kernel. Nothing here evaluates text.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, NoReturn
from uuid import uuid4
from weakref import WeakValueDictionary

import casadi as ca
import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from pfaffian.errors import ModelError, brief
from pfaffian.kernel.call.memory import in_double, on_processor

COMPARISONS = (np.less, np.less_equal, np.greater, np.greater_equal)


UNIT = 4e-16
"""Difference of a length from one that rounding makes."""

SYMMETRIC = 1e-12
"""Part of its largest entry by which a symmetric matrix may differ from its transpose."""


class Condition(ca.SX):
    """The result of a comparison of parameters: an expression for ca.if_else, neither true nor false."""

    def __bool__(self) -> NoReturn:
        raise ModelError(
            "a comparison of Parameters is neither true nor false while the equations are made, since every run may have other "
            "values: choose by ca.if_else(condition, a, b), ca.fmax or ca.fmin"
        )


@dataclass(frozen=True)
class Parameter(NDArrayOperatorsMixin):
    """A named number of a model, which each run may change without another compilation.

    Arithmetic and the elementwise functions of NumPy and CasADi make expressions of it that stand wherever a model takes a
    number: `Parameter("l", 1.0) / 2`, `np.sqrt(p)`. It has no value before the run: float(p) and `if p > 1:` are refused.

    Args:
        name: text that people read, and by which a run sets the value.
        default: value of the runs that set none.
        unit: text that is shown beside the value, "" for none; nothing is computed with it.
    Raises ModelError: a name or unit that is not text, a default that is not a finite number.

    Example:
        >>> import pfaffian as pf
        >>> mass = pf.Parameter("mass", 2.0, "kg")
        >>> ball, rail = pf.body("ball", mass=mass), pf.joint("rail", "prismatic", "world", "ball")
        >>> m = pf.mechanism("ball on a rail", [ball], [rail], parameters=[mass])
        >>> pf.mass_matrix(m), pf.mass_matrix(m, parameters={"mass": 3.0})
        (array([[2.]]), array([[3.]]))
    """

    name: str
    default: float
    unit: str = ""
    symbol: ca.SX = field(init=False, repr=False, compare=False)
    identity: str = field(default_factory=lambda: uuid4().hex, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not isinstance(self.unit, str):
            raise ModelError(f"Parameter: name {brief(self.name)} and unit {brief(self.unit)} must be text")
        try:
            object.__setattr__(self, "default", as_float(self.default))
        except ModelError as error:
            raise ModelError(f"parameter {self.name!r}: default: {error}") from None
        # The name of the symbol is never used.
        object.__setattr__(self, "symbol", ca.SX.sym("p"))
        _BY_SYMBOL[self.symbol.element_hash()] = _BY_IDENTITY[self.identity] = self

    def __reduce__(self) -> tuple[Any, ...]:
        return _same_parameter, (self.name, self.default, self.unit, self.identity)

    def __copy__(self) -> Parameter:
        return self

    def __deepcopy__(self, memo: Any) -> Parameter:
        return self

    def __SX__(self) -> ca.SX:
        return self.symbol

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> ca.SX:
        if method != "__call__" or options:
            raise ModelError(f"parameter {self.name!r}: np.{ufunc.__name__}.{method} does not take Parameters")
        try:
            with warnings.catch_warnings():
                # CasADi warns that arrays will change shape; elementwise functions are not affected.
                warnings.simplefilter("ignore", FutureWarning)
                value = ufunc(*[x if isinstance(x, ca.SX) else matrix(x, ufunc.__name__) for x in inputs])
        except (TypeError, NotImplementedError, RuntimeError) as error:
            raise ModelError(f"parameter {self.name!r}: np.{ufunc.__name__} does not work on expressions: {error}") from None
        return Condition(value) if ufunc in COMPARISONS else value

    def _no_number(self, *_: Any) -> NoReturn:
        raise ModelError(
            f"parameter {self.name!r} has no value while the equations are made, since every run may have another: use "
            "NumPy's or CasADi's functions on it (np.sin, ca.sqrt), not math's; ca.if_else for a choice; or its .default"
        )

    __float__ = __int__ = __round__ = _no_number
    __ne__ = object.__ne__  # the negation of ==, which compares content, as everywhere in a model


_BY_SYMBOL: WeakValueDictionary[int, Parameter] = WeakValueDictionary()
_BY_IDENTITY: WeakValueDictionary[str, Parameter] = WeakValueDictionary()


def parameter_of(symbol: ca.SX) -> Parameter | None:
    """The Parameter that has this symbol, or None."""
    return _BY_SYMBOL.get(symbol.element_hash())


def _same_parameter(name: str, default: float, unit: str, identity: str) -> Parameter:
    """The Parameter of this identity: the one that exists in this process, else a new one."""
    known = _BY_IDENTITY.get(identity)
    if known is not None:
        return known
    made = Parameter(name, default, unit)
    object.__setattr__(made, "identity", identity)
    _BY_IDENTITY[identity] = made
    return made


Scalar = float | int | Parameter | ca.SX


def as_float(value: Any) -> float:
    """One finite number as a float: an int, a NumPy scalar or array of one, a DM. Raises ModelError: all else, even text."""
    try:
        if isinstance(value, (str, bytes, bool, np.bool_, Parameter, ca.SX)):
            raise TypeError
        number = float(value.item() if isinstance(value, np.ndarray) and value.size == 1 else value)
    except (TypeError, ValueError, NotImplementedError, RuntimeError, OverflowError):
        raise ModelError(f"{brief(value)} is not a number") from None
    if not np.isfinite(number):
        raise ModelError(f"{brief(value)} is not a finite number{f'; {NAN}' if np.isnan(number) else ''}")
    return number


NAN = "math's functions and float() make nan of expressions: use NumPy's or CasADi's, np.sin or ca.sqrt"


def sx(value: Any) -> ca.SX:
    """One number as SX. Raises ModelError: it is not a finite number."""
    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.item()
    if isinstance(value, Parameter):
        return value.symbol
    if isinstance(value, ca.SX):
        return without_nan(value)
    try:
        return ca.SX(as_float(value))
    except ModelError as error:
        words = str(error).replace("is not a number", "is not a number, a Parameter or an expression of Parameters")
        raise ModelError(words) from None


def without_nan(x: ca.SX) -> ca.SX:
    """x unchanged. Raises ModelError: one of its constants is nan or infinite, which no kernel takes."""
    x = ca.SX(x)  # an expression may be changed in place
    if x.is_constant() and x.is_regular():
        return x
    f = ca.Function("f", ca.symvar(x), [x])
    constants = (f.instruction_constant(i) for i in range(f.n_instructions()) if f.instruction_id(i) == ca.OP_CONST)
    if not all(map(np.isfinite, constants)):
        raise ModelError(f"the expression contains nan or inf; {NAN}")
    return x


def matrix(value: Any, what: str) -> ca.SX:
    """SX of one number, a column of several, or rows from a sequence of sequences; `what` names it in the error."""
    if isinstance(value, ca.SX):
        return ca.SX(value)
    if not several(value):
        return sx_named(value, what)
    items = list(value)
    if items and all(
        isinstance(x, (int, float)) and type(x) is not bool and math.isfinite(x) for x in items
    ):  # the usual case, at a tenth of the cost
        return ca.SX(ca.DM(items))
    parts = [matrix(x, what) for x in items]
    if items and all(map(several, items)):
        parts = [x.T if x.shape[1] == 1 else x for x in parts]
    if len({x.shape[1] for x in parts}) > 1:
        raise ModelError(f"{what}: the parts of {brief(value)} do not have one width")
    return ca.vertcat(*parts) if parts else ca.SX(0, 1)


def is_symmetric(x: ca.SX | np.ndarray) -> bool:
    """Whether a matrix (n, n) is symmetric to rounding; an expression is looked at for random values of its symbols."""
    if isinstance(x, ca.SX):
        symbols = ca.symvar(x)
        at = np.random.default_rng(1).uniform(0.5, 1.5, len(symbols)).tolist()
        x = np.array(ca.Function("x", symbols, [ca.densify(x)]).call(at)[0])
    return np.allclose(x, x.T, rtol=0, atol=SYMMETRIC * np.abs(x).max(), equal_nan=True)


def column(value: Any, what: str) -> ca.SX:
    """(n, 1) SX of a number, a matrix (its columns one after another) or a sequence of such; `what` names it in the error."""
    if isinstance(value, ca.SX):
        return ca.vec(value)
    if not several(value):
        return ca.vec(sx_named(value, what))
    return ca.vertcat(ca.SX(0, 1), *[column(x, what) for x in value])


def several(value: Any) -> bool:
    """Whether it is an ordered collection: a list, array, Series or generator; not a text, dict or set."""
    if isinstance(value, (str, bytes, Mapping, Set, ca.SX, ca.DM)) or getattr(value, "ndim", 1) == 0:
        return False
    return hasattr(value, "__iter__")


def vector(values: Any, length: int, what: str) -> ca.SX:
    """(length, 1) SX from a sequence of numbers; `what` names it in the error."""
    if not isinstance(values, (ca.SX, ca.DM)) and not several(values):
        raise ModelError(f"{what}: a sequence of {length} numbers is needed, got {brief(values)}")
    x = matrix(values, what)
    if x.numel() != length or 1 not in x.shape:
        got = x.numel() if 1 in x.shape else f"{x.shape[0]} x {x.shape[1]}"
        raise ModelError(f"{what}: {length} numbers are needed, got {got}")
    return ca.densify(sx_named(ca.vec(x), what))


def direction(value: Any, what: str) -> ca.SX:
    """(3, 1) of length one along three plain numbers; `what` names them in the error."""
    x = floats(value, what)
    if x.shape != (3,) or not np.linalg.norm(x) > 0:
        raise ModelError(f"{what}: three numbers, not all zero, are needed, got {brief(value)}")
    length = np.linalg.norm(x)
    return ca.SX(x if abs(length - 1) < UNIT else x / length)  # a direction from a file stays what it was


def scalar(value: Any, what: str) -> ca.SX:
    """(1, 1) SX; `what` names it in the error."""
    number = sx_named(value, what)
    if number.numel() != 1:
        raise ModelError(f"{what}: one number is needed, got {number.numel()}")
    return ca.densify(number)


def at_defaults(x: ca.SX) -> np.ndarray | None:
    """x with each Parameter at its default; None if it contains other symbols."""
    used = ca.symvar(x)
    owners = [parameter_of(s) for s in used]
    if not all(owners):
        return None
    return np.array(ca.Function("x", used, [ca.densify(x)]).call([p.default for p in owners if p])[0])


def not_negative(value: Any, what: str) -> ca.SX:
    """As `scalar`. Raises ModelError: it is below zero at the parameters' defaults."""
    x = scalar(value, what)
    number = at_defaults(x)
    if number is not None and number.item() < 0:
        raise ModelError(f"{what} {number.item():g} is below zero")
    return x


def positive(value: Any, what: str) -> ca.SX:
    """As `scalar`. Raises ModelError: it is zero or below at the parameters' defaults."""
    x = scalar(value, what)
    number = at_defaults(x)
    if number is not None and not number.item() > 0:
        raise ModelError(f"{what} {number.item():g} must be above zero")
    return x


def sx_named(value: Any, what: str) -> ca.SX:
    """As `sx`, or a DM matrix; `what` names it in the error."""
    try:
        return ca.SX(value) if isinstance(value, ca.DM) and value.is_regular() else sx(value)
    except ModelError as error:
        raise ModelError(f"{what}: {error}") from None


def named_float(value: Any, what: str) -> float:
    """As `as_float`; `what` names it in the error."""
    try:
        return as_float(value)
    except ModelError as error:
        raise ModelError(f"{what}: {error}") from None


def interval(value: Any, what: str) -> tuple[float, float]:
    """(low, high), either of which may be infinite. Raises ModelError: not two numbers in this order."""
    pair = list(value) if several(value) else []
    if len(pair) != 2 or any(isinstance(x, (str, bytes, bool, Parameter, ca.SX)) for x in pair):
        raise ModelError(f"{what}: (low, high) is needed, -inf or inf for an open end, got {brief(value)}")
    try:
        low, high = (float(x) for x in pair)
    except (TypeError, ValueError):
        raise ModelError(f"{what}: (low, high) is needed, -inf or inf for an open end, got {brief(value)}") from None
    if not low <= high:
        raise ModelError(f"{what} ({low}, {high}) are the wrong way round")
    return low, high


def floats(value: Any, what: str, names: Sequence[str] = ()) -> np.ndarray:
    """The value as a float64 array. names: of its last axis. Raises ModelError: it contains other than finite real numbers."""
    value = on_processor(value, what)
    try:
        given = np.asarray(value)
        if given.dtype.kind == "O" and all(isinstance(x, Real) and not isinstance(x, bool) for x in given.flat):
            given = np.array([float(x) for x in given.flat]).reshape(given.shape)  # integers beyond 64 bits
        if given.dtype.kind not in "fiu":
            raise TypeError
        with np.errstate(over="ignore"):
            array = in_double(given, what)
    except (TypeError, ValueError, OverflowError):
        raise ModelError(f"{what}: {brief(value)} is no array of real numbers") from None
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        if where and len(names) == array.shape[-1]:
            run = f" in run {where[0]}" if len(where) > 1 else ""
            raise ModelError(f"{what} is not finite: {names[where[-1]]!r} is {array[where]}{run}")
        raise ModelError(f"{what} is not finite" + (f" at index {where}" if where else f": {array}"))
    return array
