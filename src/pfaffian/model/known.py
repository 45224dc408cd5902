"""Functions of the caller's as they are at one instant: known by the expressions that they give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from types import MethodType
from typing import Any

import casadi as ca

from pfaffian.model.data import is_data


class Known:
    """A function, and the digest of what it gave when it was last looked at.

    Two are equal if both are: a function may give something else tomorrow, and what was made of one asks that one again.
    """

    __slots__ = ("function", "gave")

    def __init__(self, function: Callable, gave: str) -> None:
        self.function, self.gave = function, gave

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Known) and self.gave == other.gave and _same(self.function, other.function)

    def __hash__(self) -> int:
        return hash(self.gave)

    def __repr__(self) -> str:
        return repr(self.function)

    @property
    def __name__(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)


def _same(f: Any, g: Any) -> bool:
    """Whether they are one object, one method of one object, or data of the library with the same content."""
    if isinstance(f, MethodType) and isinstance(g, MethodType):
        return f.__func__ is g.__func__ and f.__self__ is g.__self__
    return f is g or (type(f) is type(g) and is_data(f) and f == g)


def graph(inputs: Sequence[ca.SX], outputs: Sequence[ca.SX]) -> str:
    """sha256 of expressions as functions of the inputs."""
    return sha256(ca.Function("graph", inputs, outputs).serialize().encode()).hexdigest()
