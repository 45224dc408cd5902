"""The caller's functions at one instant, each with the digest of the expressions that it gives then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from types import MethodType
from typing import Any

import casadi as ca

from pfaffian.model.data import is_data


class TracedFunction:
    """A function, and the digest of the expressions that it gave when it was last traced.

    Two are equal if both function and digest are, since a function may give other expressions later.
    """

    __slots__ = ("digest", "function")

    def __init__(self, function: Callable[..., Any], digest: str) -> None:
        self.function, self.digest = function, digest

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TracedFunction) and self.digest == other.digest and _same(self.function, other.function)

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return repr(self.function)

    @property
    def __name__(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)


def _same(f: Any, g: Any) -> bool:
    """Whether f and g are one object, one method of one object, or data of the library with the same content."""
    if isinstance(f, MethodType) and isinstance(g, MethodType):
        return f.__func__ is g.__func__ and f.__self__ is g.__self__
    return f is g or (type(f) is type(g) and is_data(f) and f == g)


def graph(inputs: Sequence[ca.SX], outputs: Sequence[ca.SX]) -> str:
    """sha256 of the graph of expressions as functions of the inputs."""
    return sha256(ca.Function("graph", inputs, outputs).serialize().encode()).hexdigest()
