"""Starts in singular configurations: detected by comparison with the rank nearby, and left by a special first step.

Where rows lose rank, the first stage of a step lacks them. In a passage this is one stage of many, but a run that starts there
would carry the error to its end. Such a start takes one step by `Simulation.entering`, in NumPy and so with the same bits
everywhere. Any other start only costs the evaluation of its rank and, where rows are redundant, of the rank nearby.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from pfaffian import kernel
from pfaffian.dynamics import passage
from pfaffian.dynamics.motion import weighted_rows
from pfaffian.errors import RunWarning, notice
from pfaffian.kernel.call.recipe import Backend
from pfaffian.kernel.remember import remembered as by_key
from pfaffian.model.mechanism import Mechanism
from pfaffian.simulate.step.draft import Draft
from pfaffian.simulate.step.simulation import Simulation
from pfaffian.starts.newton import free_problem, newton, rank_at
from pfaffian.starts.start import Start
from pfaffian.terms.generic_states import generic_states
from pfaffian.terms.lengths import scales
from pfaffian.terms.terms import Terms, shared
from pfaffian.terms.traced_now import remembered

AWAY = 1e-2
"""Distance from the start at which the rank is compared [rad, the machine's length]: there, rows that the start lacks are a
thousand times above RANK_TOLERANCE."""

ITERATIONS = 8
"""Newton iterations at that distance: three are enough for an error of AWAY^2."""

REPRESENTATIVES = 8
"""Number of runs whose rank nearby represents the batch; another run is examined only if its rank at the start is lower."""

MOST_NAMED = 6
"""Largest number of coordinates that a warning lists."""

REGULAR, PASSING, AT_REST = 0, 1, 2
"""Kinds of starts. The last two are singular; the velocity selects a branch of motion (PASSING) or does not (AT_REST)."""


def entrances(m: Mechanism, begun: Start, t: float, backend: Backend) -> np.ndarray:
    """(runs,) kinds of starts on the constraints at the time t [s]: REGULAR, PASSING or AT_REST. Runs that cannot start count
    as REGULAR."""
    q, v, p = begun.q, begun.v, begun.p
    kinds = np.full(len(q), REGULAR)
    if not m.ideal or m.servos or not m.nv:
        return kinds
    rank, rows = rank_at(free_problem(m, p, t, backend), q, v)
    if (rank == rows).all():
        return kinds
    nearby = _nearby_rank(m, q[:REPRESENTATIVES], v[:REPRESENTATIVES], p[:REPRESENTATIVES], t, backend)
    suspects = np.flatnonzero(rank < nearby.max(initial=-1))
    if suspects.size:
        at = q[suspects], v[suspects], p[suspects]
        larger = _nearby_rank(m, *at, t, backend)
        lost = suspects[larger > rank[suspects]]
        if lost.size:
            regained = _rows_regained(m)(q[lost], v[lost], p[lost], np.array([t]))[0][:, 0]
            missing = larger[larger > rank[suspects]] - rank[lost]
            kinds[lost] = np.where(regained < missing, AT_REST, PASSING)
    return np.where([bool(message) for message in begun.messages], REGULAR, kinds)


@remembered(64)
def _rows_regained(m: Mechanism) -> kernel.Kernel:
    """The kernel (q, v, p, t) -> number of the rows lost at a state that constrain the motion a moment later."""
    q, v, t = ca.SX.sym("q", m.nq), ca.SX.sym("v", m.nv), ca.SX.sym("t")
    T = Terms(m, q, v, ca.SX(m.nu, 1), t)
    regained = passage.motion(T).rank - weighted_rows(T, ca.SX(T.A.shape[0], 0)).rank
    return kernel.compile(ca.Function("regained", [q, v, m.p_symbols, t], [ca.densify(regained)]), lanes=1)


def _nearby_rank(m: Mechanism, q: np.ndarray, v: np.ndarray, p: np.ndarray, t: float, backend: Backend) -> np.ndarray:
    """(runs,) the larger of two ranks nearby: along the motion, and along a random motion that the constraints allow."""
    problem, still = free_problem(m, p, t, backend), np.zeros_like(v)
    random = np.broadcast_to(generic_states(m, count=1)[0].v, v.shape)
    tangent = newton(problem, q, random).v - newton(problem, q, still).v
    ranks, lengths = list[np.ndarray](), scales(m, p, q, m.q_units)
    for direction in (v, tangent):
        change = _q_dot(m)(q, direction)[0]
        size = np.abs(change / lengths).max(axis=1, keepdims=True, initial=0.0)
        moved = newton(problem, q + AWAY * change / np.where(size > 0, size, 1.0), still, ITERATIONS)
        ranks.append(rank_at(problem, moved.q, still)[0])
    return np.maximum(*ranks)


@remembered(64)
def _q_dot(m: Mechanism) -> kernel.Kernel:
    """The kernel (q, v) -> q_dot."""
    T = shared(m)
    return kernel.compile(ca.Function("q_dot", [T.q, T.v], [ca.densify(T.kinematics.q_dot)]), lanes=1)


@by_key(64)
def entering(s: Simulation) -> kernel.Rollout:
    """The loop that takes the first step of singular starts."""
    return kernel.compile_rollout(lambda: (s.entering, s.traced.observe, *s.traced.samplers), lanes=1)


def record_singular_starts(result: Draft, m: Mechanism, kinds: np.ndarray) -> None:
    """Record in the result which runs began in a singular configuration, and set the regularity to zero where rank is lost.

    Warns RunWarning: runs began in a singular configuration without a velocity along a branch.
    """
    if kinds.any():
        meaning = "0 regular, 1 singular and passed through, 2 singular, no velocity along a branch: several are open"
        result.data["entrance"] = ("run", kinds.astype(np.int32), {"meaning": meaning})
    if "regularity" in result and "rank" in result and not any(c.active for c in m.ideal):
        rank, regularity = result["rank"], result["regularity"]
        lower = np.zeros(rank.shape, dtype=bool)
        lower[:, 1:-1] = (rank[:, 1:-1] < rank[:, :-2]) | (rank[:, 1:-1] < rank[:, 2:])
        regularity[lower] = 0.0
        regularity[kinds != REGULAR, :1] = 0.0
    for i in np.flatnonzero(kinds == AT_REST)[:1]:
        count, one = int((kinds == AT_REST).sum()), len(kinds) == 1
        who = f"the run of {m.name!r} begins" if one else f"{count} of {len(kinds)} runs of {m.name!r} begin"
        notice(
            f"{who} in a singular configuration{_where(result, m, i, one)}: several branches of motion are open there, and "
            "the velocity selects none; give a velocity along a branch, or start elsewhere",
            RunWarning,
        )


def _where(result: Draft, m: Mechanism, i: int, one: bool) -> str:
    """The number of run i and the first coordinates of its start in words, as far as they were recorded.

    one: whether there is no other run, so that its number is left out.
    """
    if "q" not in result:
        return "" if one else f", run {i} the first"
    at = [f"{n} = {x:.6g}" for n, x in zip(m.q_names, result["q"][i, 0], strict=True)]
    values = ", ".join([*at[:MOST_NAMED], "..."] if len(at) > MOST_NAMED else at)
    return f", at {values}" if one else f", run {i} at {values}"
