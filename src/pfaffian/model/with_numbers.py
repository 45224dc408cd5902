"""A mechanism with numbers in place of some of its parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import casadi as ca

from pfaffian.model.mechanism import Mechanism
from pfaffian.model.number import Parameter


def with_numbers(m: Mechanism, values: Mapping[str, float]) -> Mechanism:
    """A mechanism with these numbers in place of the parameters of these names, also in functions of a user.

    Raises ModelError: the mechanism is impossible with these values.
    """
    old = [p for p in m.parameters if p.name in values]
    symbols, numbers = ca.vertcat(ca.SX(0, 1), *[p.symbol for p in old]), ca.SX([float(values[p.name]) for p in old])

    def numeric(x: Any) -> Any:
        """A field, or a part of one, with the numbers."""
        if isinstance(x, ca.SX):
            return ca.substitute(x, symbols, numbers)
        if isinstance(x, tuple):
            return type(x)(*map(numeric, x)) if hasattr(x, "_fields") else tuple(map(numeric, x))
        if is_dataclass(x) and not isinstance(x, (type, Parameter)):
            parts = {f.name: (getattr(x, f.name), numeric(getattr(x, f.name))) for f in fields(x) if f.init}
            return replace(x, **{name: new for name, (was, new) in parts.items() if new is not was})
        return _numeric_function(x, numeric) if callable(x) and not isinstance(x, type) else x

    parts = {f.name: numeric(getattr(m, f.name)) for f in fields(m) if f.init and f.name != "parameters"}
    return replace(m, parameters=tuple(p for p in m.parameters if p.name not in values), **parts)


def _numeric_function(f: Callable[..., Any], numeric: Callable[[Any], Any]) -> Callable[..., Any]:
    """A user's function whose results have the numbers."""
    return lambda *arguments: numeric(f(*arguments))
