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
from hashlib import sha256
from typing import Any, NamedTuple, TypeVar

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError
from pfaffian.kernel.remember import checking, compare, once_for
from pfaffian.kernel.remember import remembered as memoised
from pfaffian.model.compound import each
from pfaffian.model.constraint import Constraint, Servo
from pfaffian.model.data import follows_from_fields
from pfaffian.model.force import Dissipation, Force, Potential
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.number import column, matrix
from pfaffian.model.traced_function import TracedFunction, graph, untraced
from pfaffian.model.user_functions import call_for_rows, call_for_value, in_symbols
from pfaffian.terms.independent_bodies import Apart
from pfaffian.terms.kinematics import Kinematics, choice_now
from pfaffian.terms.reused_kinematics import at_symbols, compute_like, copied

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


class _Trace(NamedTuple):
    """The last trace of a mechanism's functions.

    moving: what determines how it moves.   k: kinematics at the symbols of the trace.   returned: `_returned_now`.
    now: the mechanism in its state then.
    """

    moving: Mechanism
    k: Kinematics
    returned: str | None
    now: Mechanism


def present(m: Mechanism) -> Mechanism:
    """The mechanism with each caller's function identified by what it returns now. Raises ModelError: a function fails."""
    if _settled(m):
        return m
    notes, moving = once_for(m, "last traced", list[_Trace]), choice_now(m)
    last = notes[0] if notes and notes[0].moving == moving else None
    k = last.k if last else at_symbols(_moved(m, moving))
    returned = _returned_now(k)
    if last is not None and returned is not None and returned == last.returned:
        if checking():
            compare(f"functions of {m.name!r}", *([f.digest for f in _functions(x)] for x in (last.now, _traced(k))))
        return last.now
    now = _traced(k)
    if returned is None or returned != _returned_now(k):
        _check_lasting(now, _traced(k))
    if notes and notes[0].now == now:
        now = notes[0].now
    notes[:] = [_Trace(moving, k, returned, now)]
    return now


def _moved(m: Mechanism, moving: Mechanism) -> Mechanism:
    """The whole mechanism, with the functions that determine how it moves as they are traced in `moving`."""
    return replace(m, joints=moving.joints, coordinates=moving.coordinates, velocities=moving.velocities)


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


class _Use(NamedTuple):
    """A caller's function in a field of a constraint or a force.

    what: its owner, for messages.   displaced: for a function on whose bodies a force acts, whether they are seen by displacing
    them (`Apart`) or else by their twists; None for any other.
    """

    field: str
    function: Callable[..., Any]
    what: str
    displaced: bool | None = None


def _uses(x: Constraint | Force) -> list[_Use]:
    """The callers' functions in the fields of a constraint or a force."""
    found = {f.name: getattr(x, f.name) for f in fields(x)}
    functions = [(name, untraced(f)) for name, f in found.items() if _is_function(f)]
    if isinstance(x, Force):
        displaced = {Potential: True, Dissipation: False}.get(type(x))
        return [_Use(name, f, f"force {x.name!r}", displaced) for name, f in functions]
    if isinstance(x, Servo):
        return [_Use(name, f, f"servo constraint {x.name!r}: {name}") for name, f in functions]
    ends, displaced_by = {"active": ": active_while"}, {"phi": True, "eta": False}
    return [_Use(name, f, f"constraint {x.name!r}{ends.get(name, '')}", displaced_by.get(name)) for name, f in functions]


def _returned_now(k: Kinematics) -> str | None:
    """Digest of what all functions of constraints and forces return now, at the symbols of k.

    If it is the same as before, then each function is; None where this cannot be known, since foreign symbols are returned.
    What k has computed for the functions is kept in it for the next time.
    """
    m, used, names = k.mechanism, copied(k), list[str]()
    outputs, twists = list[ca.SX](), list[ca.SX]()
    for x in (*m.all_constraints, *[c.target for c in m.servos], *m.all_forces):
        for use in _uses(x):
            outputs += _values(use, used)
            apart = _on_bodies(use, used)
            if apart is not None:
                names.append(repr(list(apart[0])))
                twists += apart[0].values()
                outputs.append(apart[1])
    compute_like(k, used)
    f = ca.Function("graph", [*_symbols(k), *twists], outputs, {"allow_free": True})
    return None if f.has_free() else repr(names) + sha256(f.serialize().encode()).hexdigest()


def _traced(k: Kinematics) -> Mechanism:
    """The mechanism of k with all its functions traced now."""
    m, k = k.mechanism, copied(k)
    constraints, forces = each(m.constraints, lambda c: _traced_part(c, k)), each(m.forces, lambda f: _traced_part(f, k))
    return replace(m, constraints=constraints, forces=forces)


def _traced_part(x: Any, k: Kinematics) -> Any:
    """A constraint or a force with its functions traced now."""
    now: dict[str, Any] = {use.field: TracedFunction(use.function, _digest(use, k)) for use in _uses(x)}
    if isinstance(x, Servo):
        now["target"] = _traced_part(x.target, k)
    return replace(x, **now) if now else x


def _digest(use: _Use, k: Kinematics) -> str:
    """sha256 of the graph that a function returns now, with that of the bodies on which it acts.

    Functions with equal graphs may act on different bodies.
    """
    values = [in_symbols(x, use.what, _symbols(k)) if use.field != "rows" else x for x in _values(use, k)]
    apart = _on_bodies(use, k)
    found = graph(_symbols(k), values)
    return found if apart is None else found + repr(list(apart[0])) + graph([*_symbols(k), *apart[0].values()], [apart[1]])


def _values(use: _Use, k: Kinematics) -> list[ca.SX]:
    """What a function returns. Raises ModelError: it fails, or returns no numbers."""
    if use.field == "rows":
        return list(call_for_rows(use.function, use.what, k))
    return [_number(call_for_value(use.function, use.what, k), use.what)]


def _number(value: Any, what: str) -> ca.SX:
    """The value of a function as an expression."""
    return matrix(float(value) if isinstance(value, (bool, np.bool_)) else value, what)


def _on_bodies(use: _Use, k: Kinematics) -> tuple[dict[str, ca.SX], ca.SX] | None:
    """The motions of the bodies on which a function acts, by their names, and its value (n, 1) in them.

    None where they do not matter, or cannot be determined.
    """
    with suppress(ModelError):
        if use.displaced is not None:
            apart = Apart(k, displaced=use.displaced)
            value = column(call_for_value(use.function, use.what, apart), use.what)
            return {**apart.twists, **apart.along}, value
    return None


def _symbols(k: Any) -> list[ca.SX]:
    """The symbols on which a function of kinematics may depend."""
    return [k.q, k.v, k.t, k.mechanism.p_symbols]


def of_function(f: Callable[[Kinematics], Any], what: str, k: Kinematics) -> str:
    """sha256 of the graph that a function of Kinematics returns at symbols k, equal for functions that compute the same.

    what: its owner, for messages.   Raises ModelError: the function fails.
    """
    return graph(_symbols(k), [in_symbols(_number(call_for_value(f, what, k), what), what, _symbols(k))])
