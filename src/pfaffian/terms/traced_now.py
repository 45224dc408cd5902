"""The present state of a mechanism, in which each caller's function is identified by what it returns now.

A function is Python code that may return something else later, after a global number was changed, an array was modified in
place or a module was reloaded. All results that are cached for a mechanism are therefore cached for the mechanism that
`present` returns. A mechanism without callers' functions is returned unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields, replace
from functools import wraps
from typing import Any, TypeVar

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError
from pfaffian.kernel.remember import once_for
from pfaffian.kernel.remember import remembered as memoised
from pfaffian.model.compound import each
from pfaffian.model.constraint import AccelerationConstraint, Closure, Constraint, Holonomic, Servo
from pfaffian.model.data import follows_from_fields
from pfaffian.model.force import Dissipation, Force, Potential
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.number import column, matrix
from pfaffian.model.traced_function import TracedFunction, graph
from pfaffian.model.user_functions import call_for_rows, call_for_value, in_symbols
from pfaffian.terms.independent_bodies import Apart
from pfaffian.terms.kinematics import Kinematics, moving_now

_Make = TypeVar("_Make", bound=Callable[..., Any])


def remembered(maxsize: int, quick: bool = False) -> Callable[[_Make], _Make]:
    """Decorator like functools.lru_cache, for functions of a mechanism, which they receive in its present state.

    The mechanism's Parameters are part of the key too, since two with equal names and defaults have different symbols.

    quick: for a function that takes less time than tracing the callers' functions. It is not cached for mechanisms with such
        functions; for all others the result depends on the mechanism alone, so that its state need not be checked.
    """

    def decorate(make: _Make) -> _Make:
        @memoised(maxsize, check=not quick)
        @wraps(make)
        def cached(identities: tuple[Any, ...], m: Mechanism, *arguments: Any) -> Any:
            return make(m, *arguments)

        @wraps(make)
        def wrapper(m: Mechanism, *arguments: Any) -> Any:
            if quick and not _settled(m):
                return make(m, *arguments)
            m = present(m)
            return cached(m.p_identities, m, *arguments)

        return wrapper  # type: ignore[return-value]

    return decorate


def present(m: Mechanism) -> Mechanism:
    """The mechanism with each caller's function identified by what it returns now. Raises ModelError: a function fails."""
    if _settled(m):
        return m
    now, last = _traced(m), once_for(m, "last traced", list[Mechanism])
    if not last:
        _check_lasting(now, _traced(m))
    elif last[0] == now:
        return last[0]
    last[:] = [now]
    return now


def _settled(m: Mechanism) -> bool:
    """Whether all callers' functions are already identified by what they return."""
    return once_for(m, "settled", lambda: all(isinstance(f, TracedFunction) for f in _functions(m)))


def _functions(m: Mechanism) -> list[Any]:
    """All callers' functions of a mechanism."""
    targets = [c.target for c in m.servos]
    items = [*m.joints, *m.coordinates, *m.all_constraints, *targets, *m.all_forces, *([m.velocities] if m.velocities else [])]
    values = [getattr(item, f.name) for item in items for f in fields(item)]
    return [x for x in values if _is_function(x)]


def _is_function(x: Any) -> bool:
    """Whether a field of a model is a caller's function; expressions of CasADi are callable, too."""
    return callable(x) and not isinstance(x, ca.SX) and not follows_from_fields(x)


def _check_lasting(m: Mechanism, again: Mechanism) -> None:
    """Raise ModelError if a function returns different expressions each time it is called."""
    for one, other in zip((*m.all_constraints, *m.all_forces), (*again.all_constraints, *again.all_forces), strict=True):
        if one != other:
            raise ModelError(
                f"a function of {one.name!r} of {m.name!r} returns different expressions each time it is called; all that it "
                "depends on must be constant, or a Parameter"
            )


def _traced(m: Mechanism) -> Mechanism:
    """The mechanism with all its functions traced now."""
    m = moving_now(m)
    k = Kinematics(m, ca.SX.sym("q", m.nq), ca.SX.sym("v", m.nv), ca.SX.sym("t"))
    constraints, forces = each(m.constraints, lambda c: _constraint(c, k)), each(m.forces, lambda f: _force(f, k))
    return replace(m, constraints=constraints, forces=forces)


def _constraint(c: Constraint, k: Kinematics) -> Any:
    """A constraint with its functions traced now."""
    if isinstance(c, Servo):
        what = f"servo constraint {c.name!r}: directions"
        along = _traced_function(c.directions, what, k) if _is_function(c.directions) else c.directions
        return replace(c, target=_constraint(c.target, k), directions=along)
    what = f"constraint {c.name!r}"
    if c.active is not None:
        c = replace(c, active=_traced_function(c.active, f"{what}: active_while", k))
    if isinstance(c, Closure):
        return c
    if isinstance(c, AccelerationConstraint):
        if not _is_function(c.rows):
            return c
        Z, z = call_for_rows(c.rows, what, k)
        return replace(c, rows=TracedFunction(c.rows, graph(_symbols(k), [Z, z])))
    if isinstance(c, Holonomic):
        return replace(c, phi=_traced_function(c.phi, what, k, Apart(k, displaced=True)))
    return replace(c, eta=_traced_function(c.eta, what, k, Apart(k, displaced=False)))


def _force(f: Force, k: Kinematics) -> Any:
    """A force with its functions traced now."""
    given = {field.name: getattr(f, field.name) for field in fields(f)}
    apart = Apart(k, displaced=isinstance(f, Potential)) if isinstance(f, (Potential, Dissipation)) else None
    now: dict[str, Any] = {
        name: _traced_function(x, f"force {f.name!r}", k, apart) for name, x in given.items() if _is_function(x)
    }
    return replace(f, **now) if now else f


def _traced_function(f: Any, what: str, k: Kinematics, apart: Apart | None = None) -> Any:
    """A function identified by the graph that it returns now, and by the bodies on which it acts; data remain as they are.

    what: its owner, for messages.   apart: kinematics that show these bodies, None where they do not matter.
    """
    if not _is_function(f):
        return f
    if isinstance(f, TracedFunction):
        f = f.function
    return TracedFunction(f, of_function(f, what, k) + (_of_bodies(f, what, apart) if apart else ""))


def _of_bodies(f: Callable[..., Any], what: str, apart: Apart) -> str:
    """Digest of the bodies on which a function acts: functions with equal graphs may act on different bodies."""
    with suppress(ModelError):
        value = column(call_for_value(f, what, apart), what)
        apart_by = {**apart.twists, **apart.along}
        return repr(list(apart_by)) + graph([*_symbols(apart), *apart_by.values()], [value])
    return ""


def _symbols(k: Any) -> list[ca.SX]:
    """The symbols on which a function of kinematics may depend."""
    return [k.q, k.v, k.t, k.mechanism.p_symbols]


def of_function(f: Callable[[Kinematics], Any], what: str, k: Kinematics) -> str:
    """sha256 of the graph that a function of Kinematics returns at symbols k, equal for functions that compute the same.

    what: its owner, for messages.   Raises ModelError: the function fails.
    """
    value = call_for_value(f, what, k)
    value = float(value) if isinstance(value, (bool, np.bool_)) else value
    return graph(_symbols(k), [in_symbols(matrix(value, what), what, _symbols(k))])
