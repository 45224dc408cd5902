"""Evaluate a casadi.Function without CasADi's matrices, whose conversion to arrays takes longer than the function itself."""

from __future__ import annotations

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
    bound: tuple[Any, Any] = f.buffer()
    buffer, evaluate = bound
    given = [np.array(x, dtype=float, order="F").ravel(order="F") for x in arguments]
    found = [np.empty(f.numel_out(i)) for i in range(f.n_out())]
    for i, x in enumerate(given):
        if len(x) != f.nnz_in(i):
            raise ValueError(f"argument {i} of {f.name()!r} has {f.nnz_in(i)} numbers, got {len(x)}")
        buffer.set_arg(i, x.data)
    for i, x in enumerate(found):
        assert f.sparsity_out(i).is_dense()
        buffer.set_res(i, x.data)
    evaluate()
    return [np.ascontiguousarray(x.reshape(f.size_out(i), order="F")) for i, x in enumerate(found)]
