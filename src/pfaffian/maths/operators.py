"""CasADi's operators between two expressions of SX, called directly.

Behind x * y CasADi tries all its types, and each attempt to convert an SX fails slowly: some 20 us, where the operation itself
takes 4. Half the time in which equations are derived would be that. The operator between two SX calls what these attempts end
with; any other operand goes the usual way. Expressions are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca

OPERATORS = {"__add__": ca.OP_ADD, "__sub__": ca.OP_SUB, "__mul__": ca.OP_MUL, "__truediv__": ca.OP_DIV}


def _direct(name: str, code: int) -> Callable[[Any, Any], Any]:
    usual, binary, SX = getattr(ca.SX, name), ca.SX.binary, ca.SX

    def operator(x: Any, y: Any) -> Any:
        return binary(code, x, y) if type(y) is SX and type(x) is SX else usual(x, y)

    return operator


def install() -> None:
    """Replace the operators of casadi.SX, once in a process."""
    for name, code in OPERATORS.items():
        if getattr(ca.SX, name).__module__ != __name__:
            setattr(ca.SX, name, _direct(name, code))
