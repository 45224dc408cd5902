"""The digest of a mechanism, the key under which its compiled equations are cached."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from functools import cache
from hashlib import sha256
from typing import Any

import casadi as ca

from pfaffian.model.compound import Compound
from pfaffian.model.data import is_data
from pfaffian.model.joint import JointKind
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.number import Parameter
from pfaffian.model.traced_function import TracedFunction

IGNORED_FIELDS = ("shapes",)
"""Fields that do not affect the equations."""


def structure(m: Mechanism) -> str:
    """The sha256 of a mechanism's content without the mechanism's name.

    It covers the names of all parts, numbers, limits, defaults of parameters, and the digests of functions as `terms.present`
    computes them. Two mechanisms with the same digest have the same equations, and the same kernels are compiled from them.
    """
    numbers: list[ca.SX] = []
    content = [(f.name, _content(getattr(m, f.name), numbers)) for f in fields(m) if f.name != "name"]
    values = ca.Function("numbers", [m.p_symbols], [ca.densify(ca.veccat(ca.SX(0, 1), *numbers))])
    return sha256((repr(content) + values.serialize()).encode()).hexdigest()


def _content(x: Any, numbers: list[ca.SX], record: bool = False) -> Any:
    """The content of x as nested lists of texts. Expressions in x are appended to `numbers`, and only their shape is listed.

    record: whether x belongs to the record of a compound; what its functions return is in the digests of the compound's parts.
    """
    if isinstance(x, ca.SX):
        numbers.append(x)
        return "number", x.shape
    if isinstance(x, TracedFunction):
        return "function", x.digest
    if isinstance(x, JointKind):
        return "kind", x.name, [(f.subgroup.name, f.axis, f.label) for f in x.factors]
    if isinstance(x, Parameter):
        return "parameter", x.name, x.default, x.unit
    if isinstance(x, tuple):
        return [_content(part, numbers, record) for part in x]
    if isinstance(x, Compound):
        of = _content(x.of, numbers, True) if is_data(x.of) else None  # no equations are made of the record of a user
        return "compound", x.name, _content(x.parts, numbers), of
    if is_dataclass(x):
        kind: Any = type(x)
        return kind.__name__, [(name, _content(getattr(x, name), numbers, record)) for name in _names(kind)]
    if record and callable(x):
        return "function"
    assert x is None or isinstance(x, (str, bool, int, float)), f"{type(x).__name__} is in no digest"
    return repr(x)


@cache
def _names(of: Any) -> tuple[str, ...]:
    """The fields of a class that affect the equations."""
    return tuple(f.name for f in fields(of) if f.name not in IGNORED_FIELDS)
