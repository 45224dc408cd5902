"""Numbers of a model as text: an SX of parameters written in the arithmetic that `expression` reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError
from pfaffian.formats.text.expression import LONGEST, NAME
from pfaffian.model.number import parameter_of

Piece = tuple[str, int]
"""The text of an expression, and the precedence of its outermost operation: _SUM, _PRODUCT, _SIGN, _POWER or _ATOM."""

_SUM, _PRODUCT, _SIGN, _POWER, _ATOM = range(5)


def formula(x: ca.SX, what: str) -> float | str:
    """A number of a model as a float, or as the text of an expression of its parameters.   what: names the number in errors.

    Raises ModelError: the number uses a function that expressions in files do not have, or its expression is too long.
    """
    x = ca.SX(x)
    if x.is_constant():
        return float(x)
    symbols = ca.symvar(x)
    names = [_name(s, what) for s in symbols]
    f = ca.Function("x", symbols, [ca.densify(x)])
    work: dict[int, Piece] = {}
    for i in range(f.n_instructions()):
        op, into, out_of = f.instruction_id(i), f.instruction_output(i), f.instruction_input(i)
        if op == ca.OP_OUTPUT:
            return work[out_of[0]][0]
        if op == ca.OP_INPUT:
            piece = names[out_of[0]], _ATOM
        elif op == ca.OP_CONST:
            piece = _constant(f.instruction_constant(i))
        elif op in _WORDS:
            piece = _WORDS[op](*[work[k] for k in out_of])
        else:
            raise ModelError(f"{what}: it uses a function that expressions in a file lack; replace it by its value")
        if len(piece[0]) > LONGEST:
            raise ModelError(f"{what}: its expression has more than {LONGEST} characters; replace it by its value")
        work[into[0]] = piece
    raise AssertionError("a function without an output")


def formulas(x: ca.SX, what: str) -> list[float | str]:
    """The entries of a column as floats or expressions."""
    return [formula(entry, what) for entry in ca.vertsplit(ca.densify(x))]


def rows(x: ca.SX, what: str) -> list[list[float | str]]:
    """The rows of a matrix as lists of floats or expressions."""
    return [formulas(row.T, what) for row in ca.vertsplit(ca.densify(x))]


def constant(x: ca.SX, what: str) -> np.ndarray:
    """The values of an SX without parameters. Raises ModelError: it contains parameters."""
    if not ca.SX(x).is_constant():
        raise ModelError(
            f"{what}: it depends on a parameter, and only YAML files have parameters; write YAML, or use plain numbers"
        )
    return np.array(ca.DM(x))


def _name(symbol: ca.SX, what: str) -> str:
    """The name of the parameter of a symbol. Raises ModelError: it has none that an expression can use."""
    owner = parameter_of(symbol)
    if owner is None or not NAME.fullmatch(owner.name):
        raise ModelError(f"{what}: parameter {owner.name if owner else '?'!r} needs a name of letters, digits and _; rename it")
    return owner.name


def _constant(x: float) -> Piece:
    """The piece of a number; a negative one counts as an expression with a sign."""
    return repr(float(x)), _SIGN if x < 0 else _ATOM


def _in(piece: Piece, least: int) -> str:
    """The text of a piece, in brackets if its precedence is below `least`."""
    return piece[0] if piece[1] >= least else f"({piece[0]})"


def _two(sign: str, level: int, right: int) -> Callable[[Piece, Piece], Piece]:
    """Writer of a binary operation.   level: its precedence.   right: below this precedence, its right side gets brackets."""
    return lambda a, b: (f"{_in(a, level)}{sign}{_in(b, right)}", level)


def _call(name: str) -> Callable[[Piece], Piece]:
    """Writer of a function of one argument."""
    return lambda a: (f"{name}({a[0]})", _ATOM)


_POW: Callable[[Piece, Piece], Piece] = lambda a, b: (f"{_in(a, _ATOM)}^{_in(b, _SIGN)}", _POWER)  # noqa: E731

_WORDS: dict[Any, Callable[..., Piece]] = {
    ca.OP_ADD: _two(" + ", _SUM, _PRODUCT),
    ca.OP_SUB: _two(" - ", _SUM, _PRODUCT),
    ca.OP_MUL: _two("*", _PRODUCT, _SIGN),
    ca.OP_DIV: _two("/", _PRODUCT, _SIGN),
    ca.OP_NEG: lambda a: (f"-{_in(a, _POWER)}", _SIGN),
    ca.OP_SQ: lambda a: (f"{_in(a, _ATOM)}^2", _POWER),
    ca.OP_TWICE: lambda a: (f"2*{_in(a, _SIGN)}", _PRODUCT),
    ca.OP_INV: lambda a: (f"1/{_in(a, _SIGN)}", _PRODUCT),
    ca.OP_POW: _POW,
    ca.OP_CONSTPOW: _POW,
    ca.OP_FABS: _call("abs"),
    **{getattr(ca, f"OP_{name.upper()}"): _call(name)
       for name in ("sin", "cos", "tan", "asin", "acos", "atan", "tanh", "exp", "log", "sqrt")},
}  # fmt: skip
"""CasADi operation -> function that writes it, from the pieces of its arguments."""
