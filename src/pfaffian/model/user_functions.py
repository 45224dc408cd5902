"""All calls of user functions, so that an error raised in one names the element to which the function belongs."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable
from traceback import extract_tb
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError, PfaffianError, brief
from pfaffian.model.number import check_constants, column, is_finite, matrix

HINTS = {
    "truth value": "an expression is neither true nor false while the equations are made: choose by "
    "ca.if_else(condition, a, b), ca.fmax, ca.logic_and",
    "out of bounds": "an index is beyond the end of the expression; q and v have as many entries as m.q_names and m.v_names",
    "not iterable": "expressions are not iterable: take entries by index, x[0], or ca.vertsplit(x)",
    "Implicit conversion": "NumPy cannot work on this expression: use CasADi's functions, ca.vertcat for np.array",
    "has no callable": "NumPy cannot work on this expression: use CasADi's functions, ca.vertcat for np.array",
    "overloaded function": "CasADi's functions take expressions and numbers: ca.vertcat(a, b) makes a column",
}
"""A part of an error message -> advice on how to avoid the error."""


_CASADI_LOCATION = re.compile(r"^[^ ]*\.[ch]pp:[0-9]+: ")
"""File and line of CasADi's source code, with which its error messages begin."""
_LIBRARY_FILE = re.compile(r"[/\\](casadi|numpy)[/\\]")
"""Path of a file of CasADi or NumPy. A traceback skips these files and names the user's own line."""


def call_user(function: Callable[..., Any], what: str, *arguments: Any) -> Any:
    """Call function(*arguments) of the user.

    what: the label of the element to which the function belongs.
    Raises ModelError: any error inside the function, with this label, the line of the error and the way out.
    """
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", r"\s*casadi: a numpy function was called", FutureWarning)
            return function(*arguments)
    except PfaffianError as error:
        raise ModelError(f"{what}: {error}") from error
    except Exception as error:
        frames = [f for f in extract_tb(error.__traceback__)[1:] if not _LIBRARY_FILE.search(f.filename)]
        if not frames and isinstance(error, TypeError):
            raise ModelError(f"{what}: a function of {len(arguments)} argument(s) is needed: {error}") from error
        where = f" in {_file(frames[-1].filename)} line {frames[-1].lineno}" if frames else ""
        words = _CASADI_LOCATION.sub("", " ".join(str(error).split()))[:200]
        way = next(
            (way for sign, way in HINTS.items() if sign in str(error)), f"its function raised {type(error).__name__}: {words}"
        )
        raise ModelError(f"{what}{where}: {way}") from error


def _file(path: str) -> str:
    """The file name of a path, since messages do not show folders."""
    return path.replace("\\", "/").rsplit("/", 1)[-1]


def call_for_column(function: Callable[..., Any], what: str, k: Any) -> ca.SX:
    """The value function(k) as a dense column (n, 1). The function may return a column, a list or a number.

    k: Kinematics or Terms.
    Raises ModelError: an error inside the function, a value that is not a column of numbers, or symbols in it that do not
    belong to the mechanism.
    """
    value = call_for_value(function, what, k)
    value = float(value) if isinstance(value, (bool, np.bool_)) else value
    return in_symbols(column(value, what), what, (k.q, k.v, k.t, k.mechanism.p_symbols))


def call_for_rows(function: Callable[..., Any], what: str, k: Any) -> tuple[ca.SX, ca.SX]:
    """The value function(k) of an acceleration constraint: Z (m, nv), sparse, and z (m, 1). Lists and numbers are accepted.

    k: Kinematics.
    Raises ModelError: an error inside the function, or a value that is not such a pair.
    """
    pair = call_for_value(function, what, k)
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise ModelError(f"{what}: its function must return a pair (Z, z) with Z v_dot = z, got {brief(pair)}")
    known, n = (k.q, k.v, k.t, k.mechanism.p_symbols), k.mechanism.nv
    Z, z = (
        in_symbols(matrix(pair[0], f"{what}: Z"), f"{what}: Z", known),
        in_symbols(column(pair[1], what), f"{what}: z", known),
    )
    if Z.shape != (z.numel(), n) or not z.numel():
        given = f"Z {Z.shape[0]} x {Z.shape[1]} and z {z.numel()} given"
        raise ModelError(f"{what}: {given}; a row of {n} for each z is needed, [[...], ...] or a matrix (rows, {n})")
    return ca.sparsify(Z), z


def call_for_value(function: Callable[..., Any], what: str, *arguments: Any) -> Any:
    """Call function(*arguments) of the user, which must return an expression or a number.

    Raises ModelError: an error inside the function, or a return value of another type, such as None.
    """
    value = call_user(function, what, *arguments)
    if value is None:
        raise ModelError(f"{what}: its function returns nothing; is a return missing?")
    if isinstance(value, ca.MX):
        raise ModelError(f"{what}: its function returns an MX; return an SX expression of the symbols that it receives")
    if callable(value) and not isinstance(value, ca.SX):
        raise ModelError(f"{what}: its function returns {brief(value)}; call it, or return its value")
    return value


def in_symbols(x: ca.SX, what: str, known: Iterable[ca.SX]) -> ca.SX:
    """The expression x, made dense. Raises ModelError: x contains nan, or symbols that are not in `known`."""
    x = +x  # a copy, since an SX can be changed in place
    if is_finite(x):
        return ca.densify(x)
    symbols = {s.element_hash(): s for part in known for s in ca.symvar(part)}
    function = ca.Function("f", [*symbols.values()], [x], {"allow_free": True})  # sorts the graph once for both questions
    if function.has_free():
        raise ModelError(f"{what} uses symbols that do not belong to the mechanism; list them as parameters")
    try:
        check_constants(function)
    except ModelError as error:
        raise ModelError(f"{what}: {error}") from None
    return ca.densify(x)
