"""Decisions that hold at almost every state of a machine, taken at random states: what is zero, and which rank a matrix has.

An analytic function that is zero at a random state is zero at all of them, and at a random state a matrix has the rank that it
has almost everywhere. Nothing is judged beside a fixed number: random slides are within the machine's length, random speeds are
about 1 rad/s or this length per second, and a quantity counts as zero beside the sizes that occur, as `maths/margins.py` says.
So units, and the size of the machine, decide nothing. `tell` warns where a decision is not clear.

Before a machine has equations there are no such states: what a function of its coordinates is like is decided at the
`places` of `terms/rates.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.errors import ModelWarning, notice
from pfaffian.maths.margins import CLEAR, ZERO, Decision
from pfaffian.maths.values import values, values_at
from pfaffian.model.mechanism import Mechanism, random_configuration
from pfaffian.terms.lengths import mean_length, slides
from pfaffian.terms.rates import some_parameters
from pfaffian.terms.terms import always_active, shared, typical, typical_at
from pfaffian.terms.traced_now import remembered

STATES = 6
"""Number of random states at which a decision is taken."""

CORRECTIONS = 3
"""Number of corrections that put a random velocity onto the constraints; one is exact where these are affine in it."""


class GenericState(NamedTuple):
    """A state: q (nq,), v (nv,), the time t [s], and parameters p (np,)."""

    q: np.ndarray
    v: np.ndarray
    t: float
    p: np.ndarray


def generic_states(
    m: Mechanism, on_constraints: bool = False, parameters: np.ndarray | None = None, count: int = STATES
) -> tuple[GenericState, ...]:
    """Random states of a mechanism.

    on_constraints: whether they satisfy its ideal constraints, all of them active; their times are zero and, if no other are
        given, their parameters are the defaults. Where the search finds no such configuration, q is off the constraints.
    parameters: (np,) values; if not given, random ones near the defaults.   count: their number.
    """
    return _states(m, on_constraints, None if parameters is None else tuple(parameters.tolist()), count)


@remembered(64)
def _states(m: Mechanism, on_constraints: bool, parameters: tuple[float, ...] | None, count: int) -> tuple[GenericState, ...]:
    """As `generic_states`, with the parameters as a key by which results are remembered."""
    random = np.random.default_rng(31)
    given = None if parameters is None else np.array(parameters)
    if on_constraints and m.ideal:
        p = m.p_defaults if given is None else given
        places = (typical(m) if given is None else typical_at(m, p)).places
        return tuple(_on_constraints(m, places[i % len(places)] if places else None, p, random) for i in range(count))
    found = []
    for _ in range(count):
        p = some_parameters(m, random) if given is None else given
        q, v = _anywhere(m, p, random)
        found.append(GenericState(q, v, random.uniform(), p))
    return tuple(found)


def _anywhere(m: Mechanism, p: np.ndarray, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A random q (nq,) and v (nv,) of the machine's size."""
    long = length_at(m, p)
    return random_configuration(m, random, long), np.where(slides(m), long, 1.0) * random.normal(size=m.nv)


def length_at(m: Mechanism, p: np.ndarray) -> float:
    """The machine's `mean_length` [m] at parameters p (np,), 1 if no body has one."""
    return float(values(_length(m), p)[0].item()) or 1.0


@remembered(64, quick=True)
def _length(m: Mechanism) -> ca.Function:
    """The function p -> `mean_length`."""
    return ca.Function("length", [m.p_symbols], [ca.densify(mean_length(m))])


def speed_units(m: Mechanism, p: np.ndarray) -> np.ndarray:
    """(nv,) the speed that is a unit for each velocity: 1 rad/s, or the machine's length per second."""
    return np.where(slides(m), length_at(m, p), 1.0)


def _on_constraints(m: Mechanism, place: np.ndarray | None, p: np.ndarray, random: np.random.Generator) -> GenericState:
    """A state at a configuration on the constraints, or anywhere if it is None, with a random velocity that satisfies them."""
    anywhere, v = _anywhere(m, p, random)
    q, unit = anywhere if place is None else place, speed_units(m, p)
    f = _velocity_rows(m)
    for _ in range(CORRECTIONS):
        eta, A = values(f, q, v, 0.0, p)
        v = v - unit * (np.linalg.pinv(A * unit, rcond=ZERO) @ eta[:, 0])
    return GenericState(q, v, 0.0, p)


@remembered(64)
def _velocity_rows(m: Mechanism) -> ca.Function:
    """The function (q, v, t, p) -> (eta, A) of all ideal constraints."""
    T = shared(always_active(m))
    return ca.Function("velocities", [T.q, T.v, T.t, m.p_symbols], [ca.densify(T.rows.eta), ca.densify(T.A)])


def at_generic_states(
    m: Mechanism,
    expressions: Mapping[str, ca.SX],
    on_constraints: bool = False,
    parameters: np.ndarray | None = None,
    count: int = STATES,
) -> dict[str, np.ndarray]:
    """The values (count, rows, columns) of expressions at the random states of `generic_states`, by name.

    expressions: functions of q, v, t and parameters at the symbols of `shared(m)`.
    """
    T = shared(m)
    f = ca.Function("at", [T.q, T.v, T.t, m.p_symbols], [ca.densify(x) for x in expressions.values()])
    at = values_at(f, generic_states(m, on_constraints, parameters, count))
    return {name: np.array([x[i] for x in at]) for i, name in enumerate(expressions)}


def tell_closest(m: Mechanism, question: str, decisions: Sequence[Decision]) -> list[Any]:
    """The answers of decisions at several states, one warning for the one that is least clear.   question: as in `tell`."""
    for least in sorted(decisions, key=lambda x: x.margin)[:1]:
        tell(m, question, least)
    return [x.answer for x in decisions]


def tell(m: Mechanism, question: str, decision: Decision) -> Any:
    """The answer of a decision; a ModelWarning says where it is not clear.   question: what was decided, in words."""
    if decision.margin < CLEAR:
        notice(
            f"{m.name!r}: {question} is a close decision: a quantity that is {decision.nearest:.1e} of its size counted as "
            f"{'zero' if decision.nearest <= decision.bound else 'nonzero'}, with the bound at {decision.bound:.0e}; make the "
            "part that is nearly nothing exactly zero, or clearly larger",
            ModelWarning,
        )
    return decision.answer
