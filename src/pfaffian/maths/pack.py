"""Flatten structures of expressions, such as a factorisation, into columns that one Function can pass to another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import casadi as ca


def pack(x: Any) -> ca.SX:
    """(n, 1) all structural nonzeros of all SX in a structure of tuples, lists and dicts, in order."""
    return ca.vertcat(ca.SX(0, 1), *_parts(x))


def placeholders(x: Any, name: str) -> ca.SX:
    """(n, 1) a new symbol for each entry that `pack` lists; constants stay, so that operations with 0 and 1 still simplify."""
    entries = pack(x)
    return ca.vertcat(ca.SX(0, 1), *[e if e.is_constant() else ca.SX.sym(name) for e in ca.vertsplit(entries)])


def unpack(x: Any, numbers: ca.SX) -> Any:
    """The structure x with the entries of its expressions replaced by `numbers` (n, 1), in the order of `pack`."""
    return _filled(x, iter(ca.vertsplit(numbers)) if numbers.numel() else iter(()))


def _parts(x: Any) -> Iterator[ca.SX]:
    """The entries (k, 1) of each SX in a structure, in order."""
    if isinstance(x, ca.SX):
        if x.nnz():
            yield ca.vec(x.nz[:])
    elif isinstance(x, (tuple, list)):
        for part in x:
            yield from _parts(part)
    elif isinstance(x, dict):
        for part in x.values():
            yield from _parts(part)


def _filled(x: Any, numbers: Iterator[ca.SX]) -> Any:
    """The structure x with the entries of its SX taken from `numbers`."""
    if isinstance(x, ca.SX):
        return ca.SX(x.sparsity(), ca.vertcat(ca.SX(0, 1), *[next(numbers) for _ in range(x.nnz())]))
    if isinstance(x, (tuple, list)):
        parts = [_filled(part, numbers) for part in x]
        return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
    if isinstance(x, dict):
        return {key: _filled(part, numbers) for key, part in x.items()}
    return x
