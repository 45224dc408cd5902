"""Functions of expressions that are applied to one link after another: traced once for each structure of their arguments.

Each operation of CasADi on matrices takes some 50 us, most of it to find out what kind of matrices these are. A Function of
a hundred scalar operations takes no longer than two of them. It returns the same expressions, since CasADi simplifies each
operation anew for the arguments, as long as the function neither negates nor inverts an argument that may be a number:
x (-y) would become -(x y) before the number is known.

Example:
    >>> import casadi as ca
    >>> from pfaffian.maths.repeated import repeated
    >>> @repeated
    ... def product(x, y):
    ...     return (x @ y,)
    >>> x = ca.SX.sym("x")
    >>> print(product()(x, ca.SX([[1, 0]]))[0])
    [[x, 0]]
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import casadi as ca


def repeated(f: Callable[..., tuple[ca.SX, ...]]) -> Callable[..., Callable[..., list[ca.SX]]]:
    """Decorator: f(*options, *matrices) -> expressions, as a function of the options that returns one of the matrices.

    What f does may depend on the options and on the sparsity of the matrices, not on their entries.
    """
    traced: dict[Any, tuple[ca.Function, list[ca.Sparsity]]] = {}

    @wraps(f)
    def of(*options: Any) -> Callable[..., list[ca.SX]]:
        def call(*matrices: ca.SX) -> list[ca.SX]:
            key = options, *map(_structure, matrices)
            if key not in traced:
                symbols = [ca.SX.sym("x", x.sparsity()) for x in matrices]
                function = ca.Function("repeated", symbols, [ca.SX(x) for x in f(*options, *symbols)])
                traced[key] = function, [x.sparsity() for x in matrices]  # whose addresses must not be used again
            return traced[key][0].call(matrices)

        return call

    return of


def _structure(x: ca.SX) -> int:
    """The address of a matrix's sparsity: CasADi has one object for all equal ones, as long as one of them exists."""
    return ca.SharedObject.__hash__(x.sparsity())
