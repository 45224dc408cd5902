"""Where Newton's iterations fail: searches for a state on the constraints, and messages that name the coordinates at fault."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.control.reason import foremost
from pfaffian.errors import listed
from pfaffian.model.mechanism import Mechanism, check_configuration, random_configuration
from pfaffian.starts.branch import UNKNOWN, sides
from pfaffian.starts.continuation import approach, contracts, follow, rotations
from pfaffian.starts.newton import (
    ACCEPTED,
    ITERATIONS,
    MANY,
    Problem,
    State,
    all_of,
    descend,
    evaluated,
    fixed_entries,
    may_converge,
    newton,
)
from pfaffian.starts.whole_turns import periodic
from pfaffian.terms.lengths import default_length, scales
from pfaffian.terms.pfaffian import POSITION, row_names
from pfaffian.terms.terms import shared, symbols, turning
from pfaffian.terms.traced_now import remembered

STARTS = 8
"""Number of random starts that are tried for a state that does not reach the constraints from its own."""

FREE_STARTS, SOON = 2, 12
"""Number of these starts that are tried where no coordinate is fixed, and of their iterations: descents from the given state
were tried before."""

NUDGE = 0.1
"""Displacement of a start from which the residual falls in no direction [rad, machine lengths]."""

STRIDES = 80
"""Largest number of strides of `walk`."""

FINEST_STRIDE, COARSEST_STRIDE = 1e-7, 0.03
"""Fraction of the way below which a stride that fails ends a walk: FINEST_STRIDE where the walk looks for the nearest possible
value, COARSEST_STRIDE where only its end counts."""

NAMED_MOST = 4
"""Most coordinates that an error names."""

BLOCKED = "the initial state cannot be put onto the constraints"
UNSEARCHED = "; search=True looks for a solution further away"
"""The way out where only nearby states were tried."""

ADVICE = "; start nearer to a configuration on the constraints, or look for constraints that contradict each other"
"""The way out where no coordinate or rate is to blame."""

FASTER = "; a row that is not affine in v leaves velocities undetermined, or vanishes at rest: guess all of v, as an array"
"""The way out where only eta = 0 is violated and such a row is among the constraints."""


class Reached(NamedTuple):
    """States that were sought on the constraints.

    continued: (runs,) whether the way to each state stays on the branch of the state from which it begins.
    """

    states: State
    continued: np.ndarray


def find_state(
    problem: Problem,
    q: np.ndarray,
    v: np.ndarray,
    origin: np.ndarray | None = None,
    search: bool = True,
    unwind: bool = True,
) -> Reached:
    """Put the states q, v (runs, n) onto the constraints, on the branch of the state from which they come.

    origin: (runs, nq) where the fixed coordinates come from, by default q. If it is on the constraints, these coordinates move
    from there to their values. Otherwise Newton's iterations end where they contract from q on; elsewhere q is put onto the
    constraints in short steps with nothing fixed, and the fixed coordinates move to their values from there.
    Where this way ends at a singular configuration, other states are searched: where no coordinate is fixed by descents from q
    and from a point near q, then, as where some are fixed, from random configurations of a fixed seed. Only phi decides
    whether to search: another start does not help where fixed rates contradict eta = 0. Without `search` only runs that
    Newton's iterations put onto the constraints from q are continued.
    unwind: whether angles that are not fixed end within half a turn of q; otherwise they keep the turns of the way.
    """
    states = evaluated(problem, q, v)
    fixed, origin = problem.fixed.q.any(axis=1), q if origin is None else origin
    turned = rotations(problem, origin, q) > np.pi  # Rows do not tell whether a screw has made whole turns.
    known = np.isfinite(states.off)  # a coin that lies flat has no height: no search answers for its rows
    tried = np.flatnonzero((~states.satisfied | turned) & known)
    continued = np.ones(len(q), dtype=bool)
    straight, jumps = None, np.zeros(0, dtype=bool)
    if not search:
        straight = newton(problem.take(tried), q[tried], v[tried])
        states.put(tried[~straight.closed], straight.take(~straight.closed))
        tried, straight = tried[straight.closed], straight.take(straight.closed)
    if len(tried):
        continued[tried], jumps = _continue(problem, states, tried, q, v, origin)
    if jumps.any():
        at = tried[jumps]
        states.put(at, newton(problem.take(at), q[at], v[at]) if straight is None else straight.take(jumps))
    loose = np.flatnonzero(_open(states) & np.isfinite(states.off) & ~fixed & search)
    for begin in (q, _nudged(problem.m, q)):
        loose = loose[_open(states)[loose]]
        if len(loose):
            lower = descend(problem.take(loose), begin[loose], v[loose])
            states.put(loose[lower.closed], lower.take(lower.closed))
    lost = _open(states) & search & (known | fixed)
    if lost.any():
        _search(problem, states, lost, q, v)
    return Reached(nearest_turns(problem, states, q) if unwind else states, np.where(fixed, continued, ~lost))


def _continue(
    problem: Problem, states: State, at: np.ndarray, q: np.ndarray, v: np.ndarray, origin: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Put the runs `at` onto the constraints without leaving their branch.

    Returns (k,) whether that is possible, and (k,) whether no state was found. Where the straight way leads through a singular
    configuration at which branches cross, its end is kept, although it is on another branch.
    """
    mine = all_of(at, len(q))
    some, q, v, origin = problem.take(mine), q[mine], v[mine], origin[mine]
    begin = states.take(at) if (origin == q).all() else evaluated(some, origin, v)
    off = np.flatnonzero(~begin.closed)
    if len(off):
        begin.put(off, _onto(some.take(off), q[off], v[off]))
    reached, through = begin.closed, np.zeros(len(q), dtype=bool)
    going = np.flatnonzero(reached & (fixed_entries(some.m, some.fixed.q) & (begin.q != q)).any(axis=1))
    if len(going):
        now = all_of(going, len(q))
        ended, reached[going], through[going] = _moved(some.take(now), begin.q[now], q[now], v[now])
        begin.put(now, ended)
    still = np.flatnonzero(reached & ~begin.satisfied)
    if len(still):
        begin.put(still, newton(some.take(still), begin.q[still], v[still]))
    found = reached | through
    closed = np.flatnonzero(begin.closed & found)
    states.put(all_of(at[closed], len(states.q)), begin.take(all_of(closed, len(q))))
    return reached, ~found


def _moved(problem: Problem, begin: np.ndarray, q: np.ndarray, v: np.ndarray) -> tuple[State, np.ndarray, np.ndarray]:
    """The states where fixed entries have moved from `begin` (runs, nq), on the constraints, to those of q (runs, nq).

    A way whose end is on another branch than its beginning is taken again in strides that stay on it.
    Returns the states, (runs,) whether they are at the goal on the branch of their beginning, and (runs,) whether they are
    there by the straight way alone.   v: (runs, nv) guess of the rates.
    """
    part, end = follow(problem, begin, q)
    states, side = newton(problem, end, v), sides(problem, begin)
    strayed, at_goal = (side != UNKNOWN) & (sides(problem, states.q) != side), states.closed & (part == 1)
    at = np.flatnonzero(strayed)
    if len(at):
        lost = problem.take(at)
        part, end = follow(lost, begin[at], q[at], side[at])
        again = newton(lost, end, v[at])
        back = again.closed & (part == 1)
        states.put(at[back], again.take(back))
        strayed[at[back]], at_goal[at[back]] = False, True
    return states, at_goal & ~strayed, at_goal & strayed


def _onto(problem: Problem, q: np.ndarray, v: np.ndarray) -> State:
    """Put states q, v (runs, n) onto phi = 0: as they are held, where Newton's iterations contract, else with nothing held."""
    free, begin = problem.fixed.q.any(axis=1) == 0, q.copy()
    fixed = np.flatnonzero(~free)
    if len(fixed):
        sure, begin[fixed] = contracts(problem.take(fixed), q[fixed], v[fixed])
        free[fixed] = ~sure
    problem, off = problem._replace(fixed=problem.fixed.release(q=free[:, None], v=False)), np.flatnonzero(free)
    if len(off):
        begin[off] = approach(problem.take(off), q[off], v[off])
    return newton(problem, begin, v)


def _nudged(m: Mechanism, q: np.ndarray) -> np.ndarray:
    """q (runs, nq), displaced a little and in each run alike: rods in line give no direction in which phi falls."""
    within = scales(m, np.array(m.p_defaults)[None], q[:1], m.q_units)
    return check_configuration(m, q + NUDGE * within * np.random.default_rng(13).uniform(-1, 1, m.nq))


def _search(problem: Problem, states: State, lost: np.ndarray, q: np.ndarray, v: np.ndarray) -> None:
    """Search for states of the `lost` runs: walk from the nearest state on the constraints, then try random starts.

    Coordinates that are fixed or that no position row depends on keep their values. Where nothing is fixed, the starts go from
    near the given state to farther away.
    """
    fixed, still = fixed_entries(problem.m, problem.fixed.q), ~_in_loops(problem.m)
    bound = np.asarray(fixed.any(axis=1))
    at = np.flatnonzero(lost & bound)
    free = newton(problem.take(at).released(), q[at], v[at])
    near = free.satisfied
    if near.any():
        way, reached = walk(problem.take(at[near]), free.take(near), q[at[near]], COARSEST_STRIDE)
        _retry(problem, states, at[near][way == 1], reached.q[way == 1], v)
    for i, start in enumerate(_starts(problem.m), 1):
        at = np.flatnonzero(_open(states) & lost & (bound | (i <= FREE_STARTS)))
        if not len(at):
            break
        far = np.where(bound[at], 1, i / FREE_STARTS)[:, None]
        elsewhere = np.where(fixed[at] | still, q[at], (1 - far) * q[at] + far * start)
        elsewhere = check_configuration(problem.m, elsewhere)
        for some, iterations in ((bound[at], ITERATIONS), (~bound[at], SOON)):
            _retry(problem, states, at[some], elsewhere[some], v, iterations)


def _retry(problem: Problem, states: State, at: np.ndarray, q: np.ndarray, v: np.ndarray, iterations: int = ITERATIONS) -> None:
    """Try the runs `at` from q, and put those that satisfy phi = 0 into `states`."""
    if not len(at):
        return
    tried, again = _settled(problem.take(at), q, v[at], iterations)
    states.put(at[tried[again.closed]], again.take(again.closed))


def _settled(problem: Problem, q: np.ndarray, v: np.ndarray, iterations: int = ITERATIONS) -> tuple[np.ndarray, State]:
    """Runs (k,) that may satisfy phi = 0 from q, see `may_converge`, with their states after `newton`; all runs if few."""
    tried = np.flatnonzero(may_converge(problem, q, v, iterations)) if len(q) >= MANY else np.arange(len(q))
    return tried, newton(problem.take(tried), q[tried], v[tried], iterations)


def _open(s: State) -> np.ndarray:
    """(runs,) whether phi = 0 is violated."""
    return ~s.closed


@remembered(64)
def _in_loops(m: Mechanism) -> np.ndarray:
    """(nq,) whether a position row depends on an entry of q."""
    T = shared(m)
    return np.array([ca.depends_on(T.rows.phi[T.rows.at(POSITION)], T.q[i]) for i in range(m.nq)], dtype=bool)


def _starts(m: Mechanism) -> Iterator[np.ndarray]:
    """Random configurations (nq,), the same for every run, so that no run depends on the others of its batch.

    They are starts of a search, and decide nothing about the machine.
    """
    random, within = np.random.default_rng(11), default_length(m) or 1.0
    return (random_configuration(m, random, within) for _ in range(STARTS))


def walk(problem: Problem, begin: State, goal: np.ndarray, shortest: float = FINEST_STRIDE) -> tuple[np.ndarray, State]:
    """Walk from states on the constraints towards `goal` (runs, nq) at the fixed entries, straight and in adaptive strides.

    shortest: fraction of the way below which a stride that fails is the last.
    Returns (runs,) the fraction of the way walked, 1 where it ends at the goal, and the states there. Rates are left free.
    """
    m, entries = problem.m, fixed_entries(problem.m, problem.fixed.q)
    part, stride, now = np.zeros(len(goal)), np.full(len(goal), 0.25), State(*[x.copy() for x in begin])
    problem = problem._replace(fixed=problem.fixed.release(q=False))
    for _ in range(STRIDES):
        going = np.flatnonzero((part < 1) & (stride > shortest))
        if not len(going):
            break
        next_part = np.minimum(part[going] + stride[going], 1.0)
        target = begin.q[going] + next_part[:, None] * (goal[going] - begin.q[going])
        target = np.where(next_part[:, None] == 1, goal[going], target)
        q = check_configuration(m, np.where(entries[going], target, now.q[going]))
        tried, trial = _settled(problem.take(going), q, now.v[going], iterations=12)
        good = np.zeros(len(going), dtype=bool)
        good[tried] = trial.satisfied
        now.put(going[good], trial.take(trial.satisfied))
        part[going[good]] = next_part[good]
        stride[going] *= np.where(good, 1.5, 0.5)
    return part, now


def explain(problem: Problem, state: State, q: np.ndarray, v: np.ndarray, search: bool = True) -> str:
    """Message why the first run does not reach the constraints from q, v (runs, n) but ends in `state`.

    It names the fixed coordinates or rates that prevent it, which takes a search, or the row with the largest residual.
    """
    where = " in run 0" if len(q) > 1 else ""
    one, q, v = problem.take([0])._replace(general=True), q[[0]], v[[0]]
    if not search:
        return f"{BLOCKED}: {open_row(problem.m, state)[0]}{where}{UNSEARCHED}"
    closed = not _open(state)[0]
    culprits = _rates_in_the_way(one, q, v) if closed else _coordinates_in_the_way(one, q, v)
    way = FASTER if closed and turning(symbols(problem.m)) else "" if culprits else ADVICE
    return f"{culprits or f'{BLOCKED}: {open_row(problem.m, state)[0]}'}{where}{way}"


def open_row(m: Mechanism, s: State) -> list[str]:
    """Message for each run with the row whose residual is the largest."""
    if not len(s.phi):
        return []  # the usual case, without deriving the rows for their names
    names = row_names(symbols(m).kinematics)
    left = np.maximum(*map(np.abs, s.parts))
    rows = [foremost(x)[0] for x in np.where(np.isfinite(left), left, np.inf)]
    sizes = zip(rows, s.phi, s.eta, strict=True)
    return [f"row {names[i]!r} is left with phi = {phi[i]:.3g}, eta = {eta[i]:.3g}" for i, phi, eta in sizes]


def _rates_in_the_way(one: Problem, q: np.ndarray, v: np.ndarray) -> str:
    """Message with each fixed rate without which eta = 0 can be satisfied, and the value that it then has; "" if none."""
    m, free = one.m, np.flatnonzero(one.fixed.v[0])
    many = one.take(np.zeros(len(free), int))
    each = newton(many._replace(fixed=many.fixed.release(q=False, v=np.eye(m.nv, dtype=bool)[free])),
                  np.repeat(q, len(free), axis=0), np.repeat(v, len(free), axis=0))  # fmt: skip
    size = scales(m, one.p, q, m.v_units)[0]
    culprits = [(m.v_names[i], v[0, i], m.v_units[i], _near(each.v[k, i], size[i])) for k, i in enumerate(free)
             if each.satisfied[k]]  # fmt: skip
    return _culprits("rate", culprits, [m.v_names[i] for i in free])


def _coordinates_in_the_way(one: Problem, q: np.ndarray, v: np.ndarray) -> str:
    """Message with each fixed coordinate without which phi = 0 can be satisfied, and the nearest value that it then reaches."""
    m, culprits, size = one.m, [], scales(one.m, one.p, q, one.m.q_units)[0]
    for name, entries_of_v in _fixed_groups(one):
        mark = np.isin(np.arange(m.nv), entries_of_v)
        loose = one._replace(fixed=one.fixed.release(q=mark))
        begin = find_state(loose, q, v).states
        if _open(begin)[0]:
            continue
        _, reached = walk(one, begin, q)
        entries = fixed_entries(m, mark[None])[0]
        values = ", ".join(map(_near, reached.q[0, entries], size[entries]))
        given = q[0, entries]
        culprits.append((name, given[0] if len(given) == 1 else given, _unit(m, entries), values))
    return _culprits("coordinate", culprits, [name for name, _ in _fixed_groups(one)]) or _jointly_in_the_way(one, q, v)


def _fixed_groups(one: Problem) -> list[tuple[str, list[int]]]:
    """Fixed coordinates by name, with their velocity coordinates; a quaternion is one entry, named by its joint."""
    m, groups = one.m, dict[str, list[int]]()
    owner = [j.name for j in m.owners for _ in range(j.nv)]
    for i in np.flatnonzero(one.fixed.q[0]):
        entries = fixed_entries(m, np.eye(m.nv, dtype=bool)[[i]])[0]
        name = m.q_names[int(np.argmax(entries))] if entries.sum() == 1 else m.v_names[i] if m.velocities else owner[i]
        groups.setdefault(name, []).append(int(i))
    return list(groups.items())


def _unit(m: Mechanism, entries: np.ndarray) -> str:
    """Unit of the marked entries of q, "" for the entries of a quaternion."""
    unit = m.q_units[int(np.argmax(entries))]
    return "" if unit == "1" else unit


def _jointly_in_the_way(one: Problem, q: np.ndarray, v: np.ndarray) -> str:
    """Message with fixed coordinates of which no single one is to blame, and the nearest values that are possible together."""
    m = one.m
    if not one.fixed.q.any():
        return ""
    begin = find_state(one.released(), q, v).states
    if _open(begin)[0]:
        return ""
    _, reached = walk(one, begin, q)
    size = scales(m, one.p, q, m.q_units)[0]
    entries = np.flatnonzero(fixed_entries(m, one.fixed.q)[0] & (np.abs(reached.q - q)[0] > ACCEPTED * size))
    parts = [f"{m.q_names[i]!r} = {_near(reached.q[0, i], size[i])} instead of {q[0, i]:.6g}" for i in entries[:NAMED_MOST]]
    more = f" and {len(entries) - NAMED_MOST} others" if len(entries) > NAMED_MOST else ""
    return f"the named coordinates cannot all be kept; nearest possible values: {', '.join(parts)}{more}" if parts else ""


def _culprits(what: str, culprits: list[tuple[str, Any, str, str]], fixed: Sequence[str]) -> str:
    """Message for culprits, each (name, given value, unit, nearest possible value).   fixed: names of all fixed entries."""
    parts = [f"{name!r} = {_formatted(value)}{f' {unit}' if unit else ''}" for name, value, unit, _ in culprits]
    if not parts:
        return ""
    if len(parts) == 1:
        near, others = culprits[0][3], [name for name in fixed if name != culprits[0][0]]
        rest = f" together with {listed(others, NAMED_MOST)}" if others else ""
        return (
            f"the {what} {parts[0]} cannot be kept{rest}: the constraints do not allow it; the nearest possible value is "
            + near
        )
    each = [f"{part} (nearest possible value {near})" for part, (*_, near) in zip(parts, culprits, strict=True)][:NAMED_MOST]
    more = f" and {len(parts) - NAMED_MOST} others" if len(parts) > NAMED_MOST else ""
    return f"these {what}s cannot all be kept; one of them has to move: {', '.join(each)}{more}"


def _near(value: float, size: float) -> str:
    """Text of a number that is accurate to ACCEPTED times `size`."""
    return f"{0.0 if abs(value) < ACCEPTED * size else value:.6g}"


def _formatted(value: float | np.ndarray) -> str:
    """Text of a number, or of a quaternion in parentheses."""
    return f"{value:.6g}" if np.ndim(value) == 0 else "(" + ", ".join(f"{x:.6g}" for x in np.asarray(value)) + ")"


def nearest_turn(m: Mechanism, q: np.ndarray, near: np.ndarray) -> np.ndarray:
    """Configurations q (runs, nq), each with angles within half a turn of `near` and quaternions of the same sign.

    Angles whose whole turns matter keep them, see `whole_turns.periodic`.
    """
    q, angles = q.copy(), periodic(m)
    q[:, angles] -= 2 * np.pi * np.round((q - near)[:, angles] / (2 * np.pi))
    for turn in m.quaternions.values():
        q[:, turn] *= np.where((q[:, turn] * near[:, turn]).sum(axis=1, keepdims=True) < 0, -1.0, 1.0)
    return q


def nearest_turns(problem: Problem, states: State, q: np.ndarray) -> State:
    """The states with angles within half a turn of q (runs, nq), where these satisfy the constraints as well."""
    turned = nearest_turn(problem.m, states.q, q)
    at = np.flatnonzero((turned != states.q).any(axis=1) & states.satisfied)
    if len(at):
        near = newton(problem.take(at), turned[at], states.v[at])
        states.put(at[near.satisfied], near.take(near.satisfied))
    return states
