"""Faster arithmetic operators between two SX expressions of CasADi.

For x * y CasADi tries to convert the operands to each of its types, and each attempt to convert an SX fails slowly: this takes
some 20 us, the operation itself 4. Deriving equations would spend half its time on it. With two SX operands, the operators
installed here call directly the function that these attempts end with; other operands take the usual path. The resulting
expressions are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca

OPERATORS = {"__add__": ca.OP_ADD, "__sub__": ca.OP_SUB, "__mul__": ca.OP_MUL, "__truediv__": ca.OP_DIV}


def _direct(name: str, code: int) -> Callable[[Any, Any], Any]:
    """The operator `name` of ca.SX that calls ca.SX.binary with this operation code where both operands are SX."""
    usual, binary, SX = getattr(ca.SX, name), ca.SX.binary, ca.SX

    def operator(x: Any, y: Any) -> Any:
        return binary(code, x, y) if type(y) is SX and type(x) is SX else usual(x, y)

    return operator


def install() -> None:
    """Replace the operators of casadi.SX, once in a process."""
    for name, code in OPERATORS.items():
        if getattr(ca.SX, name).__module__ != __name__:
            setattr(ca.SX, name, _direct(name, code))
