"""Evaluate a casadi.Function without CasADi's matrices, whose conversion to arrays takes longer than the function itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import casadi as ca
import numpy as np


def values(f: ca.Function, *arguments: Any) -> list[np.ndarray]:
    """The outputs of f as arrays of their shapes, for arguments that are numbers or arrays of the sizes of f's inputs.

    Outputs of f must be dense.

    Example:
        >>> x = ca.SX.sym("x", 2)
        >>> print(values(ca.Function("f", [x], [x @ x.T]), [1.0, 2.0])[0])
        [[1. 2.]
         [2. 4.]]
    """
    return values_at(f, [arguments])[0]


def values_at(f: ca.Function, many: Iterable[Sequence[Any]]) -> list[list[np.ndarray]]:
    """`values` of f for many lists of arguments.

    Example:
        >>> x = ca.SX.sym("x")
        >>> print(values_at(ca.Function("f", [x], [x**2]), [[2.0], [3.0]]))
        [[array([[4.]])], [array([[9.]])]]
    """
    bound: tuple[Any, Any] = f.buffer()
    buffer, evaluate = bound
    sizes, shapes = [f.nnz_in(i) for i in range(f.n_in())], [f.size_out(i) for i in range(f.n_out())]
    assert all(f.sparsity_out(i).is_dense() for i in range(f.n_out()))
    out = []
    for arguments in many:
        given = [np.array(x, dtype=float, order="F").ravel(order="F") for x in arguments]
        found = [np.empty(rows * columns) for rows, columns in shapes]
        for i, (x, size) in enumerate(zip(given, sizes, strict=True)):
            if len(x) != size:
                raise ValueError(f"argument {i} of {f.name()!r} has {size} numbers, got {len(x)}")
            buffer.set_arg(i, x.data)
        for i, x in enumerate(found):
            buffer.set_res(i, x.data)
        evaluate()
        out.append([np.ascontiguousarray(x.reshape(shape, order="F")) for x, shape in zip(found, shapes, strict=True)])
    return out
