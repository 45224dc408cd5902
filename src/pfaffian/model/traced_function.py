"""User functions, each with a digest of the expressions that it returned when it was traced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from types import MethodType
from typing import Any

import casadi as ca

from pfaffian.model.data import is_data


class TracedFunction:
    """A user function with the digest of the expressions that it returned when it was last traced.

    Two are equal if both function and digest are equal, since a function may return other expressions later.
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


def untraced(f: Any) -> Any:
    """The function itself, whether it was traced or not."""
    return f.function if isinstance(f, TracedFunction) else f


def _same(f: Any, g: Any) -> bool:
    """Whether f and g are the same object, the same method of the same object, or equal data of the library."""
    if isinstance(f, MethodType) and isinstance(g, MethodType):
        return f.__func__ is g.__func__ and f.__self__ is g.__self__
    return f is g or (type(f) is type(g) and is_data(f) and f == g)


def graph(inputs: Sequence[ca.SX], outputs: Sequence[ca.SX]) -> str:
    """The sha256 of the outputs' expression graph, as a function of the inputs."""
    return sha256(ca.Function("graph", inputs, outputs).serialize().encode()).hexdigest()
