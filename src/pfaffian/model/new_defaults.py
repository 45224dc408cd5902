"""The same mechanism with other default values of its parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.model.mechanism import Mechanism
from pfaffian.model.number import Parameter


def with_defaults(m: Mechanism, values: Mapping[str, float]) -> Mechanism:
    """A mechanism whose parameters have these defaults; the others keep theirs. Functions of a user see the new parameters.

    Raises ModelError: the mechanism is impossible with these values.
    """
    new = {p.name: Parameter(p.name, float(values.get(p.name, p.default)), p.unit) for p in m.parameters}
    old, now = m.p_symbols, ca.vertcat(*[new[p.name].symbol for p in m.parameters])

    def renewed(x: Any) -> Any:
        if isinstance(x, Parameter):
            return new.get(x.name, x)
        if isinstance(x, ca.SX):
            return ca.substitute(x, old, now)
        if isinstance(x, tuple):
            parts = [renewed(y) for y in x]
            return type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)
        if isinstance(x, Mapping):
            return {k: renewed(y) for k, y in x.items()}
        if is_dataclass(x) and not isinstance(x, type):
            changed = {f.name: renewed(getattr(x, f.name)) for f in fields(x) if f.init}
            return replace(x, **{k: y for k, y in changed.items() if y is not getattr(x, k)})
        return _function(x, renewed) if callable(x) and not isinstance(x, (type, np.ndarray)) else x

    parts = {f.name: renewed(getattr(m, f.name)) for f in fields(m) if f.init and f.name != "parameters"}
    return replace(m, parameters=tuple(new.values()), **parts)


def _function(f: Callable[..., Any], renewed: Callable[[Any], Any]) -> Callable[..., Any]:
    """A user's function whose results have the new parameters."""
    return lambda *arguments: renewed(f(*arguments))
