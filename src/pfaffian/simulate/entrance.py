"""Starts in singular configurations: detected by the rank a little way off, and left by a special first step.

Where rows lose rank the first stage of a step goes without them. In a passage that is one stage of many; a run that starts
there would carry its error for good. Such a start takes one step by `Simulation.entering`, on NumPy and so with the same bits
everywhere. All other starts cost nothing but a rank, here and, where rows are redundant, a little way off.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from pfaffian import kernel
from pfaffian.dynamics import passage
from pfaffian.dynamics.motion import weighted_rows
from pfaffian.errors import RunWarning, notice
from pfaffian.evaluate.compiled import Compiled, compile_terms
from pfaffian.kernel.call.recipe import Backend
from pfaffian.kernel.remember import remembered as by_key
from pfaffian.model.mechanism import Mechanism
from pfaffian.simulate.draft import Draft
from pfaffian.simulate.newton import free_problem, rank_at, settle
from pfaffian.simulate.simulation import Simulation
from pfaffian.simulate.start import Start
from pfaffian.terms.lengths import scales
from pfaffian.terms.present import remembered
from pfaffian.terms.terms import shared

AWAY = 1e-2
"""Distance at which the rank is compared [rad, the machine's length]: rows that the configuration lacks are a thousand times
above RANK_TOLERANCE there."""

ITERATIONS = 8
"""Newton iterations there: from an error of AWAY^2 three are enough."""

FEW = 8
"""Runs whose rank a little way off stands for the batch; another run is checked only where its own rank is lower."""

MOST_NAMED = 6
"""Coordinates that a warning lists."""

REGULAR, PASSING, AT_REST = 0, 1, 2
"""Kinds of starts: the last two are singular; the velocity selects a branch (PASSING) or does not (AT_REST)."""


def entrances(m: Mechanism, begun: Start, t: float, backend: Backend) -> np.ndarray:
    """(runs,) REGULAR, PASSING or AT_REST, of starts on the constraints at time t [s]; those that cannot start are REGULAR."""
    q, v, p = begun.q, begun.v, begun.p
    kinds = np.full(len(q), REGULAR)
    if not m.ideal or m.servos or not m.nv:
        return kinds
    here, rows = rank_at(free_problem(m, p, t, backend), q, v)
    if (here == rows).all():
        return kinds
    few = _nearby(m, q[:FEW], v[:FEW], p[:FEW], t, backend)
    suspects = np.flatnonzero(here < few.max(initial=-1))
    if suspects.size:
        at = q[suspects], v[suspects], p[suspects]
        near = _nearby(m, *at, t, backend)
        lost = suspects[near > here[suspects]]
        if lost.size:
            regained = _rows_regained(m)(q[lost], v[lost], t=t, parameters=p[lost] if p.shape[1] else None)["regained"]
            missing = near[near > here[suspects]] - here[lost]
            kinds[lost] = np.where(regained < missing, AT_REST, PASSING)
    return np.where([bool(message) for message in begun.messages], REGULAR, kinds)


@remembered(64)
def _rows_regained(m: Mechanism) -> Compiled:
    """How many of the rows that are lost at a state constrain the motion a moment later."""
    parts = {"regained": lambda T: passage.motion(T).rank - weighted_rows(T, ca.SX(T.A.shape[0], 0)).rank}
    return compile_terms(m, parts, lanes=1)


def _nearby(m: Mechanism, q: np.ndarray, v: np.ndarray, p: np.ndarray, t: float, backend: Backend) -> np.ndarray:
    """(runs,) the larger rank a little way off, along the motion and along a random motion that the constraints allow."""
    problem, still = free_problem(m, p, t, backend), np.zeros_like(v)
    some = np.broadcast_to(np.random.default_rng(20).normal(size=m.nv), v.shape)
    tangent = settle(problem, q, some).v - settle(problem, q, still).v
    ranks, long = list[np.ndarray](), scales(m, p, q, m.q_units)
    for way in (v, tangent):
        change = _q_dot(m)(q, way)[0]
        size = np.abs(change / long).max(axis=1, keepdims=True, initial=0.0)
        there = settle(problem, q + AWAY * change / np.where(size > 0, size, 1.0), still, ITERATIONS)
        ranks.append(rank_at(problem, there.q, still)[0])
    return np.maximum(*ranks)


@remembered(64)
def _q_dot(m: Mechanism) -> kernel.Kernel:
    T = shared(m)
    return kernel.compile(ca.Function("q_dot", [T.q, T.v], [ca.densify(T.kinematics.q_dot)]), lanes=1)


@by_key(64)
def entering(s: Simulation) -> kernel.Rollout:
    """The first step of singular starts."""
    return kernel.compile_rollout(lambda: (s.entering, s.traced.observe, *s.traced.samplers), lanes=1)


def tell_entrances(result: Draft, m: Mechanism, kinds: np.ndarray) -> None:
    """Record which runs began in a singular configuration, and set the regularity to zero where rank is lost.

    Warns RunWarning: runs began there at rest.
    """
    if kinds.any():
        meaning = "0 regular, 1 singular and passed through, 2 singular, no velocity along a branch: several are open"
        result.data["entrance"] = ("run", kinds.astype(np.int32), {"meaning": meaning})
    if "regularity" in result and "rank" in result and not any(c.active for c in m.ideal):
        rank, left = result["rank"], result["regularity"]
        lower = np.zeros(rank.shape, dtype=bool)
        lower[:, 1:-1] = (rank[:, 1:-1] < rank[:, :-2]) | (rank[:, 1:-1] < rank[:, 2:])
        left[lower] = 0.0
        left[kinds != REGULAR, :1] = 0.0
    for i in np.flatnonzero(kinds == AT_REST)[:1]:
        count, one = int((kinds == AT_REST).sum()), len(kinds) == 1
        who = f"the run of {m.name!r} begins" if one else f"{count} of {len(kinds)} runs of {m.name!r} begin"
        notice(
            f"{who} in a singular configuration{_where(result, m, i, one)}: several branches of motion are open there and no "
            "velocity says which is taken; give one along a branch, or start off it",
            RunWarning,
        )


def _where(result: Draft, m: Mechanism, i: int, one: bool) -> str:
    """Run i and the first coordinates of its start, where they were recorded."""
    if "q" not in result:
        return "" if one else f", run {i} the first"
    at = [f"{n} = {x:.6g}" for n, x in zip(m.q_names, result["q"][i, 0], strict=True)]
    values = ", ".join([*at[:MOST_NAMED], "..."] if len(at) > MOST_NAMED else at)
    return f", at {values}" if one else f", run {i} at {values}"
