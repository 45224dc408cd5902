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
from pfaffian.kernel.program.trace import constants_of

COMPARISONS = (np.less, np.less_equal, np.greater, np.greater_equal)


UNIT_ROUNDING = 4e-16
"""Difference of a length from one that counts as rounding."""

SYMMETRIC = 1e-12
"""Tolerance of symmetry: the largest difference from the transpose, relative to the largest entry of the same unit."""


class Condition(ca.SX):
    """The result of comparing parameters: an expression for ca.if_else that is neither true nor false."""

    def __bool__(self) -> NoReturn:
        raise ModelError(
            "a comparison of Parameters is neither true nor false while the equations are made, since every run may have other "
            "values: choose by ca.if_else(condition, a, b), ca.fmax or ca.fmin"
        )


class ModelNumber(ca.SX):
    """A number of a model: an expression like any other, which NumPy reads as an array where it depends on no parameter.

    It cannot be changed in place, since what was computed from it is found again by it.
    """

    def __setitem__(self, at: Any, value: Any) -> NoReturn:
        raise ModelError("a number of a model or a pose cannot be changed in place: copy it first, x = +x")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if not self.is_constant():
            owners = sorted({p.name if (p := parameter_of(s)) else s.name() for s in ca.symvar(self)})
            raise ModelError(
                f"this number depends on {', '.join(map(repr, owners))}, which each run may change: m.value(x) gives it for "
                "the defaults, m.value(x, p) for the values p (np,) of all parameters"
            )
        return np.array(ca.DM(self).full(), dtype=dtype)


@dataclass(frozen=True)
class Parameter(NDArrayOperatorsMixin):
    """A named number of a model, which each run may change without another compilation.

    Arithmetic and the elementwise functions of NumPy and CasADi turn it into expressions, which a model accepts in place of
    numbers: `Parameter("l", 1.0) / 2`, `np.sqrt(p)`, `ca.sqrt(k / m)`; on an expression NumPy's functions work too, but CasADi
    warns that they may change. It has no value before the run, so float(p) and `if p > 1:` raise errors.

    Args:
        name: text that is displayed, and by which a run sets the value.
        default: value in runs that do not set one.
        unit: text that is displayed with the value, "" for none; it does not enter computations.
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
        # Symbols are identified by their hash, so they all have the same name.
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
        """Raise ModelError for a conversion to a number."""
        raise ModelError(
            f"parameter {self.name!r} has no value while the equations are made, since every run may have another: use "
            "NumPy's or CasADi's functions on it (np.sin, ca.sqrt), not math's; ca.if_else for a choice; or its .default"
        )

    __float__ = __int__ = __round__ = _no_number
    __ne__ = object.__ne__  # The negation of ==, which compares content, as for all data of a model.


_BY_SYMBOL: WeakValueDictionary[int, Parameter] = WeakValueDictionary()
_BY_IDENTITY: WeakValueDictionary[str, Parameter] = WeakValueDictionary()


def parameter_of(symbol: ca.SX) -> Parameter | None:
    """The Parameter to which this symbol belongs, or None."""
    return _BY_SYMBOL.get(symbol.element_hash())


def _same_parameter(name: str, default: float, unit: str, identity: str) -> Parameter:
    """The Parameter with this identity, for unpickling: the one that exists in this process, else a new one."""
    existing = _BY_IDENTITY.get(identity)
    if existing is not None:
        return existing
    parameter = Parameter(name, default, unit)
    object.__setattr__(parameter, "identity", identity)
    _BY_IDENTITY[identity] = parameter
    return parameter


Scalar = float | int | Parameter | ca.SX
"""One number of a model: a plain number, a Parameter or an expression of Parameters."""


def as_float(value: Any) -> float:
    """One finite number as a float, from an int, a NumPy scalar, an array of one entry or a DM.

    Raises ModelError: anything else, also a text or a truth value.
    """
    try:
        number = _real(value)
    except (TypeError, ValueError, NotImplementedError, RuntimeError, OverflowError):
        raise ModelError(f"{brief(value)} is not a number") from None
    if not np.isfinite(number):
        raise ModelError(f"{brief(value)} is not a finite number{f'; {NAN_HINT}' if np.isnan(number) else ''}")
    return number


def _real(value: Any) -> float:
    """One real number as a float, nan and inf included. Raises an error of float(): it is none.

    float() itself reads text, counts True as 1 and drops the imaginary part of a NumPy scalar.
    """
    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.item()
    of_numpy = isinstance(value, np.generic) and value.dtype.kind not in "fiu"
    if of_numpy or isinstance(value, (str, bytes, bool, Parameter, ca.SX)):
        raise TypeError
    return float(value)


NAN_HINT = "math's functions and float() turn expressions into nan: use NumPy's or CasADi's, np.sin or ca.sqrt"
"""Explanation in messages about nan."""


def sx(value: Any) -> ca.SX:
    """One number, Parameter or expression as SX. Raises ModelError: it is none of these, or not finite."""
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
    """The expression x. Raises ModelError: one of its constants is nan or infinite, which kernels do not accept."""
    x = +x if isinstance(x, ca.SX) else ca.SX(x)  # a copy, since an SX can be changed in place
    if not x.is_valid_input() and not is_finite(x):  # the first: it consists of symbols
        check_constants(ca.Function("f", ca.symvar(x), [x]))
    return x


def check_constants(function: ca.Function) -> None:
    """Raise ModelError if one of the constants in a Function of SX is nan or infinite."""
    if not all(map(math.isfinite, constants_of(function))):
        raise ModelError(f"the expression contains nan or inf; {NAN_HINT}")


def matrix(value: Any, what: str) -> ca.SX:
    """An SX matrix from one number, a sequence of numbers (a column) or a sequence of sequences (rows).

    what: the label of the value in error messages.
    """
    if isinstance(value, ca.SX):
        return +value
    if not several(value):
        return sx_named(value, what)
    if isinstance(value, np.ndarray) and value.dtype == float and value.size and value.ndim <= 2 and np.isfinite(value).all():
        return ca.SX(value)
    items = list(value)
    if are_plain(items):
        return ca.SX(items)
    parts = [matrix(x, what) for x in items]
    if items and all(map(several, items)):
        parts = [x.T if x.shape[1] == 1 else x for x in parts]
    if len({x.shape[1] for x in parts}) > 1:
        raise ModelError(f"{what}: the rows of {brief(value)} differ in length")
    return ca.vertcat(*parts) if parts else ca.SX(0, 1)


def are_plain(items: Any) -> bool:
    """Whether the items are a list or tuple of plain finite numbers: the usual case, which needs a tenth of the time."""
    return type(items) in (list, tuple) and bool(items) and all(type(x) in _PLAIN and math.isfinite(x) for x in items)


_PLAIN = (float, int, np.float64)


def is_finite(x: ca.SX) -> bool:
    """Whether an SX consists of finite numbers alone."""
    return x.is_constant() and x.is_regular()


def constants(x: ca.SX) -> np.ndarray:
    """The numbers (n, m) of a matrix without symbols. A DM, which CasADi offers for this, takes ten times as long."""
    if not x.is_dense():
        return np.array(ca.DM(x))
    numbers = [*map(float, x.nonzeros())]  # type: ignore[arg-type]  # otherwise NumPy makes an array of each
    return np.array(numbers).reshape(x.shape, order="F")


def all_constants(numbers: Sequence[ca.SX]) -> list[np.ndarray]:
    """The numbers of several matrices without symbols. All at once in a DM, they take a fifth of the time of each alone."""
    return apart(np.array(ca.DM(ca.veccat(*numbers))).ravel(), numbers) if numbers else []


def apart(flat: np.ndarray, numbers: Sequence[ca.SX]) -> list[np.ndarray]:
    """The values of several matrices, each in its shape, from those of their columns one after another."""
    shapes = [x.shape for x in numbers]
    ends = np.cumsum([n * m for n, m in shapes]).tolist()
    return [flat[end - n * m : end].reshape((n, m), order="F") for end, (n, m) in zip(ends, shapes, strict=True)]


def is_symmetric(x: ca.SX | np.ndarray, units: Sequence[str] = ()) -> bool:
    """Whether a matrix (n, n) is symmetric up to rounding; an expression is evaluated at random values of its symbols.

    units: of its rows, (n,) words that are equal where units are; rows of another unit do not decide what is rounding.
    """
    if isinstance(x, ca.SX) and x.is_constant():
        x = constants(x)
    elif isinstance(x, ca.SX):
        symbols = ca.symvar(x)
        at = np.random.default_rng(1).uniform(0.5, 1.5, len(symbols)).tolist()
        x = np.array(ca.Function("x", symbols, [ca.densify(x)]).call(at)[0])
    if np.array_equal(x, x.T):
        return True
    if not np.isfinite(x).all():
        return np.array_equal(x, x.T, equal_nan=True)
    of_unit = np.array(list(units) or [""] * len(x))
    blocks = [(of_unit == a)[:, None] & (of_unit == b) for a in dict.fromkeys(of_unit) for b in dict.fromkeys(of_unit)]
    size, off = np.sqrt(np.abs(np.diag(x))), np.abs(x - x.T)
    within = np.array([size[of_unit == unit].max() for unit in of_unit])
    most = np.maximum(np.abs(x), np.outer(within, within))
    return all(bool(off[block].max() <= SYMMETRIC * most[block].max()) for block in blocks)


def column(value: Any, what: str) -> ca.SX:
    """An SX column (n, 1) from a number, a matrix (its columns one after another) or a sequence of these.

    what: the label of the value in error messages.
    """
    if isinstance(value, ca.SX):
        return ca.vec(value)
    if not several(value):
        return ca.vec(sx_named(value, what))
    return ca.vertcat(ca.SX(0, 1), *[column(x, what) for x in value])


def several(value: Any) -> bool:
    """Whether the value is an ordered collection, such as a list, array, Series or generator; not a text, dict or set."""
    if isinstance(value, (str, bytes, Mapping, Set, ca.SX, ca.DM, ca.MX)) or getattr(value, "ndim", 1) == 0:
        return False
    return hasattr(value, "__iter__")


def vector(values: Any, length: int, what: str) -> ca.SX:
    """An SX column (length, 1) from a sequence of numbers.   what: the label of the value in error messages."""
    if are_plain(values) and len(values) == length:
        return ca.SX(values) if any(values) else ca.SX.zeros(length, 1)
    if isinstance(values, ca.SX) and values.shape == (length, 1) and values.is_dense() and is_finite(values):
        return +values
    if not isinstance(values, (ca.SX, ca.DM)) and not several(values):
        raise ModelError(f"{what}: a sequence of {length} numbers is needed, got {brief(values)}")
    x = matrix(values, what)
    if x.numel() != length or 1 not in x.shape:
        got = x.numel() if 1 in x.shape else f"{x.shape[0]} x {x.shape[1]}"
        raise ModelError(f"{what}: {length} numbers are needed, got {got}")
    return ca.densify(sx_named(ca.vec(x), what))


def direction(value: Any, what: str) -> ca.SX:
    """A unit vector (3, 1) along three plain numbers.   what: the label of the value in error messages."""
    x = floats(value, what)
    if x.shape != (3,) or not np.linalg.norm(x) > 0:
        raise ModelError(f"{what}: three numbers, not all zero, are needed, got {brief(value)}")
    length = np.linalg.norm(x)
    return ca.SX(x if abs(length - 1) < UNIT_ROUNDING else x / length)  # A unit vector keeps its exact digits.


def scalar(value: Any, what: str) -> ca.SX:
    """One number as SX (1, 1).   what: the label of the value in error messages."""
    if type(value) is float and math.isfinite(value):
        return ca.SX(value)
    if isinstance(value, ca.SX) and value.is_scalar(True) and is_finite(value):
        return +value
    number = sx_named(value, what)
    if number.numel() != 1:
        raise ModelError(f"{what}: one number is needed, got {number.numel()}")
    return ca.densify(number)


def at_defaults(x: ca.SX) -> np.ndarray | None:
    """The value of x with each Parameter at its default; None if x contains other symbols."""
    if x.is_constant():
        return constants(x)
    symbols = ca.symvar(x)
    owners = [parameter_of(s) for s in symbols]
    if not all(owners):
        return None
    return np.array(ca.Function("x", symbols, [ca.densify(x)]).call([p.default for p in owners if p])[0])


def not_negative(value: Any, what: str) -> ca.SX:
    """One number as SX (1, 1). Raises ModelError: it is below zero at the parameters' defaults.

    what: the label of the value in error messages.
    """
    x = scalar(value, what)
    number = at_defaults(x)
    if number is not None and number.item() < 0:
        raise ModelError(f"{what} {number.item():g} is below zero")
    return x


def positive(value: Any, what: str) -> ca.SX:
    """One number as SX (1, 1). Raises ModelError: it is not above zero at the parameters' defaults.

    what: the label of the value in error messages.
    """
    x = scalar(value, what)
    if type(value) is float and value > 0:
        return x
    number = at_defaults(x)
    if number is not None and not number.item() > 0:
        raise ModelError(f"{what} {number.item():g} must be above zero")
    return x


def single(x: ca.SX, joint: str, what: str) -> ca.SX:
    """The coordinate x of a joint. Raises ModelError: the joint has several, or none.   what: what turns with it."""
    if x.numel() != 1:
        raise ModelError(f"joint {joint!r} has {x.numel()} coordinates; {what} turns with a joint of one")
    return x


def sx_named(value: Any, what: str) -> ca.SX:
    """One number, Parameter, expression or DM matrix as SX.   what: the label of the value in error messages."""
    try:
        return ca.SX(value) if isinstance(value, ca.DM) and value.is_regular() else sx(value)
    except ModelError as error:
        raise ModelError(f"{what}: {error}") from None


def named_float(value: Any, what: str) -> float:
    """One finite number as a float.   what: the label of the value in error messages."""
    try:
        return as_float(value)
    except ModelError as error:
        raise ModelError(f"{what}: {error}") from None


def interval(value: Any, what: str) -> tuple[float, float]:
    """The pair (low, high) as floats, either of which may be infinite. Raises ModelError: not two numbers in this order.

    what: the label of the value in error messages.
    """
    try:
        low, high = map(_real, value if type(value) is tuple else list(value) if several(value) else [])
    except (TypeError, ValueError, NotImplementedError, RuntimeError, OverflowError):
        raise ModelError(f"{what}: (low, high) is needed, -inf or inf for an open end, got {brief(value)}") from None
    if not low <= high:
        raise ModelError(f"{what} ({low}, {high}) are the wrong way round")
    if low == np.inf or high == -np.inf:
        raise ModelError(f"{what} ({low}, {high}) leave no number; an open end is (-inf, high) or (low, inf)")
    return low, high


def real_array(value: Any, what: str) -> np.ndarray:
    """The value as an array of real numbers of any type, nan and inf included. Raises ModelError: it is not one.

    what: the label of the value in error messages.
    """
    value = on_processor(value, what)
    try:
        numbers = np.asarray(value)
        if numbers.dtype.kind in "fiu" and _has_flags(value):
            raise TypeError
        if numbers.dtype.kind == "O" and all(isinstance(x, Real) and not isinstance(x, bool) for x in numbers.flat):
            numbers = np.array([float(x) for x in numbers.flat]).reshape(numbers.shape)  # for integers beyond 64 bits
        if numbers.dtype.kind not in "fiu":
            raise TypeError
    except (TypeError, ValueError, OverflowError):
        raise ModelError(f"{what}: {brief(value)} is not an array of real numbers") from None
    return numbers


def is_whole(value: Any) -> bool:
    """Whether the value is an int of Python or NumPy, but not True, nor a span of time, which NumPy counts as an integer."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.timedelta64))


def _has_flags(value: Any) -> bool:
    """Whether a list contains True or False, which NumPy takes for numbers where others stand beside them."""
    if type(value) in (list, tuple):
        return any(map(_has_flags, value))
    return isinstance(value, bool) or getattr(getattr(value, "dtype", None), "kind", "") == "b"


def reals(value: Any, what: str) -> np.ndarray:
    """The value as a float64 array, nan and inf included. Raises ModelError: it contains anything but real numbers.

    what: the label of the value in error messages.
    """
    with np.errstate(over="ignore"):
        return in_double(real_array(value, what), what)


def floats(value: Any, what: str, names: Sequence[str] = ()) -> np.ndarray:
    """The value as a float64 array. Raises ModelError: it contains anything but finite real numbers.

    what: the label of the value in error messages.
    names: names of the entries along the last axis, for messages.
    """
    array = reals(value, what)
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        if where and len(names) == array.shape[-1]:
            run = f" in run {where[0]}" if len(where) > 1 else ""
            raise ModelError(f"{what} is not finite: {names[where[-1]]!r} is {array[where]}{run}")
        raise ModelError(f"{what} is not finite" + (f" at index {where}" if where else f": {array}"))
    return array
