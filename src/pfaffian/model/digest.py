"""The digest of a mechanism, by which compiled equations are found again."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from hashlib import sha256
from typing import Any

import casadi as ca

from pfaffian.model.joint import JointKind
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.number import Parameter
from pfaffian.model.traced_function import TracedFunction

UNSEEN = ("shapes",)
"""Fields that no equation contains."""


def structure(m: Mechanism) -> str:
    """sha256 of a mechanism's content except its own name.

    Names, numbers, limits, defaults of parameters, and the digests of its functions as `terms.present` finds them.

    Two mechanisms with one digest have the same equations, and all that is made of them is the same.
    """
    numbers: list[ca.SX] = []
    content = [(f.name, _content(getattr(m, f.name), numbers)) for f in fields(m) if f.name != "name"]
    columns = [ca.vec(ca.densify(x)) for x in numbers]
    values = ca.Function("numbers", [m.p_symbols], [ca.vertcat(ca.SX(0, 1), *columns)])
    return sha256((repr(content) + values.serialize()).encode()).hexdigest()


def _content(x: Any, numbers: list[ca.SX]) -> Any:
    """The content of x as texts and names; its expressions of parameters are appended to `numbers`."""
    if isinstance(x, ca.SX):
        numbers.append(x)
        return "number", x.shape
    if isinstance(x, TracedFunction):
        return "function", x.digest
    if isinstance(x, JointKind):
        return "kind", x.name
    if isinstance(x, Parameter):
        return "parameter", x.name, x.default, x.unit
    if isinstance(x, tuple):
        return [_content(part, numbers) for part in x]
    if is_dataclass(x):
        seen = [f.name for f in fields(x) if f.name not in UNSEEN]
        return type(x).__name__, [(name, _content(getattr(x, name), numbers)) for name in seen]
    assert x is None or isinstance(x, (str, bool, int, float)), f"{type(x).__name__} is in no digest"
    return repr(x)
