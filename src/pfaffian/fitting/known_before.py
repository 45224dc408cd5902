"""What is known before a fit: which parameters are free, their bounds and priors, and which bodies are possible."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError, brief, nearest
from pfaffian.fitting.linear_step import Settings
from pfaffian.maths.inertia import are_physical, moments, pseudo
from pfaffian.model.mechanism import Mechanism, as_names
from pfaffian.model.number import interval, named_float

ITERATIONS = 60
"""Most iterations."""


def by_name(given: Any, what: str) -> dict[str, Any]:
    """{name: value} as it was given, empty for None. Raises ModelError: it is no dict, or a key is no text."""
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise ModelError(f"{what}: {{name: value}} is needed, got {brief(given)}")
    return dict(given)


def free_parameters(m: Mechanism, parameters: Any) -> tuple[int, ...]:
    """Indices of the parameters to fit, all if None. Raises ModelError: there are none, or one is unknown."""
    given = m.p_names if parameters is None else [parameters] if isinstance(parameters, str) else parameters
    names = as_names(given, "parameters")
    for name in names:
        if name not in m.p_names:
            raise ModelError(f"parameters: there is no {brief(name)}; {nearest(name, m.p_names)}")
    if not names:
        raise ModelError(f"fit: {m.name!r} has no parameters; write numbers that are not known as pf.Parameter(name, default)")
    return tuple(m.p_names.index(name) for name in dict.fromkeys(names))


def settings(
    names: tuple[str, ...],
    bounds: Mapping[str, tuple[float, float]],
    priors: Mapping[str, tuple[float, float]],
    allowed: Callable[[np.ndarray], bool],
) -> Settings:
    """Settings of a solution for the numbers `names`. Raises ModelError: bounds or priors that are none."""
    limits, prior = np.tile([-np.inf, np.inf], (len(names), 1)), np.tile([0.0, np.inf], (len(names), 1))
    for what, table, into in (("bounds", bounds, limits), ("priors", priors, prior)):
        for name, pair in table.items():
            if name not in names:
                raise ModelError(f"{what}: {brief(name)} is not fitted; {nearest(name, names)}")
            label = f"{what}[{name!r}]"
            into[names.index(name)] = interval(pair, label) if what == "bounds" else _prior(pair, label)
    return Settings(limits, prior, ITERATIONS, allowed)


def _prior(pair: Any, label: str) -> tuple[float, float]:
    """A value and its standard deviation. Raises ModelError: it is none."""
    try:
        value, deviation = (named_float(x, label) for x in pair)
    except (TypeError, ValueError):
        raise ModelError(f"{label}: (value, standard deviation) is needed, got {brief(pair)}") from None
    if not deviation > 0:
        raise ModelError(f"{label}: the standard deviation must be above zero, got {deviation:g}")
    return value, deviation


def within(theta: np.ndarray, s: Settings, names: tuple[str, ...], given: Mapping[str, float]) -> np.ndarray:
    """First numbers within their bounds. Raises ModelError: one that a caller has given is not."""
    moved = np.clip(theta, s.bounds[:, 0], s.bounds[:, 1])
    for name, value, (low, high) in zip(names, theta, s.bounds, strict=True):
        if name in given and not low <= value <= high:
            raise ModelError(f"start[{name!r}] = {value:g} is outside its bounds, {low:g} to {high:g}")
    return moved


def possibility(m: Mechanism) -> Callable[[np.ndarray], bool]:
    """Whether every body is physically possible at parameters p (np,); always, where the mechanism is lenient."""
    varied = [] if m.lenient else [b for b in m.bodies if not all(x.is_constant() for x in (b.mass, b.com, b.inertia))]
    if not varied:
        return lambda _: True
    f = ca.Function("bodies", [m.p_symbols], [pseudo(*moments(b.mass, b.com, b.inertia)) for b in varied])
    return lambda p: bool(are_physical(np.array([np.array(P) for P in f.call([p])])).all())
