"""The operations that a Program may contain: CasADi's name, the C text and the NumPy function of each.

C text and NumPy functions consist of IEEE 754 primitives (+ - * / sqrt, comparison, selection of bits), so both give the same
bits. The elementary functions are written once, in `elementary`, and computed or printed from there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.kernel.functions import elementary
from pfaffian.kernel.functions.arithmetic import NUMPY

Array = Any


@dataclass(frozen=True)
class Op:
    """An operation.   arity: number of arguments.   c: C text with {0}, {1}, ... for the arguments.   numpy: the same
    operation on NumPy arrays.   results: number of results."""

    arity: int
    c: str
    numpy: Callable[..., Array]
    results: int = 1


def _truth(mask: Array) -> Array:
    """1.0 where the mask is true, else 0.0."""
    return np.where(mask, 1.0, 0.0)


def _fmin(a: Array, b: Array) -> Array:
    """The smaller of a and b, or the other one where one is nan."""
    return np.where((a < b) | (b != b), a, b)


def _fmax(a: Array, b: Array) -> Array:
    """The larger of a and b, or the other one where one is nan."""
    return np.where((a > b) | (b != b), a, b)


def _sign(a: Array) -> Array:
    """1.0 or -1.0, or a itself where a is zero or nan."""
    return np.where(a > 0, 1.0, np.where(a < 0, -1.0, a))


OPS: dict[str, Op] = {
    "add": Op(2, "{0} + {1}", np.add),
    "sub": Op(2, "{0} - {1}", np.subtract),
    "mul": Op(2, "{0} * {1}", np.multiply),
    "div": Op(2, "{0} / {1}", np.divide),
    "neg": Op(1, "-{0}", np.negative),
    "inv": Op(1, "K(1.0) / {0}", lambda a: 1.0 / a),
    "sq": Op(1, "{0} * {0}", lambda a: a * a),
    "twice": Op(1, "{0} + {0}", lambda a: a + a),
    "sqrt": Op(1, "SQRT({0})", np.sqrt),
    "fabs": Op(1, "FABS({0})", np.fabs),
    "floor": Op(1, "FLOOR({0})", np.floor),
    "ceil": Op(1, "CEIL({0})", np.ceil),
    "fmod": Op(2, "FMOD({0}, {1})", np.fmod),
    "copysign": Op(2, "COPYSIGN({0}, {1})", np.copysign),
    "sign": Op(1, "SEL(LT(K(0.0), {0}), K(1.0), SEL(LT({0}, K(0.0)), K(-1.0), {0}))", _sign),
    "fmin": Op(2, "SEL(LT({0}, {1}) | NE({1}, {1}), {0}, {1})", _fmin),
    "fmax": Op(2, "SEL(LT({1}, {0}) | NE({1}, {1}), {0}, {1})", _fmax),
    "lt": Op(2, "TRUTH(LT({0}, {1}))", lambda a, b: _truth(a < b)),
    "le": Op(2, "TRUTH(LE({0}, {1}))", lambda a, b: _truth(a <= b)),
    "eq": Op(2, "TRUTH(EQ({0}, {1}))", lambda a, b: _truth(a == b)),
    "ne": Op(2, "TRUTH(NE({0}, {1}))", lambda a, b: _truth(a != b)),
    "not": Op(1, "TRUTH(EQ({0}, K(0.0)))", lambda a: _truth(a == 0)),
    "and": Op(2, "TRUTH(NE({0}, K(0.0)) & NE({1}, K(0.0)))", lambda a, b: _truth((a != 0) & (b != 0))),
    "or": Op(2, "TRUTH(NE({0}, K(0.0)) | NE({1}, K(0.0)))", lambda a, b: _truth((a != 0) | (b != 0))),
    # A selection of bits, never a product: a nan in the branch that is not chosen must not reach the result.
    "if_else_zero": Op(2, "SEL(NE({0}, K(0.0)), {1}, K(0.0))", lambda a, b: np.where(a != 0, b, 0.0)),
    "select": Op(3, "SEL(NE({0}, K(0.0)), {1}, {2})", lambda a, b, c: np.where(a != 0, b, c)),  # see `selection`
}
OPS.update(
    {
        name: Op(f.arity, f"pf_{name}({', '.join(['{0}', '{1}'][: f.arity])})", partial(f.body, NUMPY), f.results)
        for name, f in elementary.FUNCTIONS.items()
    }
)

SINGLE = frozenset(name for name, op in OPS.items() if op.results == 1)
"""The operations with one result."""

NAMES = (*OPS, "call")
"""Names of all operations; the index of each is its word."""

WORD = {name: i for i, name in enumerate(NAMES)}
"""Operation -> word, the integer that represents it in an encoded Program."""

CALL = WORD["call"]

NAME_OF_CODE: dict[int, str] = {
    getattr(ca, "OP_" + name.upper()): name for name in OPS if hasattr(ca, "OP_" + name.upper())
} | {ca.OP_CONSTPOW: "pow"}
