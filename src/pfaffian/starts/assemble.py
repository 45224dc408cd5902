"""Assembly: the nearest state that satisfies the constraints, with the coordinates and rates that a caller names unchanged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, NamedTuple

import numpy as np

from pfaffian.errors import ModelError, RunError, RunWarning, listed, notice, plural
from pfaffian.evaluate.arrays import (
    Arguments,
    as_batch,
    by_name,
    configurations,
    guessed_configurations,
    one_or_many,
    run_arguments,
    unknown,
)
from pfaffian.evaluate.single_values import as_flag, as_number, as_whole
from pfaffian.formats.text.run_settings import StartValues
from pfaffian.kernel.build.waiting import tell
from pfaffian.kernel.call.recipe import Backend, check_options
from pfaffian.model.mechanism import Mechanism, as_mechanism, as_names, check_configuration, random_configuration
from pfaffian.model.unphysical import check_parameters
from pfaffian.starts.newton import BLOCK, Fixed, Problem, State, fixed_entries, fixed_velocities, newton
from pfaffian.starts.start_search import explain, find_state, nearest_turns
from pfaffian.terms.lengths import default_length, scales
from pfaffian.terms.traced_now import present

BRANCH_STARTS = 96
"""Number of starts from which branches are searched: the given state, and random ones."""

APART = 1e-6
"""Assemblies whose coordinates all differ by less than this [rad, the machine's length] count as one."""


class Given(NamedTuple):
    """The start that a caller gave.

    q: (runs, nq).   v: (runs, nv).   problem: the assembly problem, with what is held.   origin: (runs, nq) the configuration
    from which held coordinates move to their values in q; q itself if it was given as a whole.
    guesses: whether q and v were given as arrays, and so as guesses.
    """

    q: np.ndarray
    v: np.ndarray
    problem: Problem
    origin: np.ndarray
    guesses: tuple[bool, bool]

    @property
    def p(self) -> np.ndarray:
        """(runs, np) parameters."""
        return self.problem.p


class Closed(NamedTuple):
    """The states of runs after the attempt to put them onto their constraints.

    q: (runs, nq).   v: (runs, nv).   residual: (runs,) the largest remaining |phi| and |eta|.   satisfied: (runs,) whether all
    constraints are satisfied.   continued: (runs,) whether the way to each stays on the branch of the state that was given.
    lost: the State of the runs whose constraints are not satisfied, in the order of the runs.
    """

    q: np.ndarray
    v: np.ndarray
    residual: np.ndarray
    satisfied: np.ndarray
    continued: np.ndarray
    lost: State


class Assembly(NamedTuple):
    """A state on the constraints, or a batch of them with leading axis (runs, ...) or (branches, ...).

    q: (..., nq).   v: (..., nv).   moved: (..., nq) and moved_rate: (..., nv) what was added to the given state.
    residual: (...) the largest remaining |phi| and |eta|.   continued: (...) whether the state is on the branch of the given
    one: False where a singular configuration lies on the way, and for other `branches`.   q_names, v_names: of the entries.
    """

    q: np.ndarray
    v: np.ndarray
    moved: np.ndarray
    moved_rate: np.ndarray
    residual: np.ndarray
    continued: np.ndarray
    q_names: tuple[str, ...]
    v_names: tuple[str, ...]

    @property
    def named(self) -> dict[str, Any]:
        """Coordinate name -> its value, or (runs,) or (branches,) values."""
        return by_name(self.q, self.q_names)

    def __repr__(self) -> str:
        return f"<Assembly: {one_or_many(self.q, self.q_names)}>"


def assemble(
    m: Mechanism,
    q: Any = None,
    v: Any = None,
    *,
    guess: Any = None,
    parameters: Any = None,
    t: float = 0.0,
    hold: Iterable[str] = (),
    weight: Any = None,
    branches: int = 1,
    search: bool = True,
    backend: Backend = "auto",
) -> Assembly:
    """Find a state that satisfies the constraints at a time t, on the branch of the given one.

        phi(q, t) = 0,   eta(q, v, t) = 0   (A v = c where eta is affine in v)

    Coordinates and rates named in a dict keep their values to the last digit; the others move as little as possible in the
    metric of M, by Newton iterations with a rank-revealing inverse. A mechanism may have several assemblies for the same held
    values. The held coordinates therefore move to their values in strides too short to leave a branch: from the neutral state
    if it satisfies the constraints, else from the state nearest to the given one. That branch is the answer, even where
    another assembly is nearer; where a singular configuration lies on the way, `continued` is False and a warning says so.

    Args:
        m: the mechanism.
        q, v: a state: None (neutral, at rest), an array (n,) or (runs, n) as a guess that moves as a whole, or {name: number or
            (runs,)}, whose entries are held.
        guess: {name: number or (runs,)}, values from which coordinates that the dict q does not name move onto the constraints;
            a coordinate that neither names starts from its neutral value, as in `run`.
        parameters: {name: number or (runs,)} or an array in the mechanism's order; defaults if None.
        t: time [s].
        hold: names of more coordinates or joints to hold, at their values in q, and in v if that is an array.
        weight: {name: number} or (nv,), above zero, 1 where not named: factor on the inertia of a velocity coordinate, so that
            one with a large weight moves less. Translations of free and planar joints count along the axes of the joint.
        branches: above 1, return up to this many different assemblies of one state (a four-bar has two for each angle of its
            crank), the nearest first; angles that differ by full turns are equal. No motion may remain free under what is held.
            1 by default.
        search: whether to search further away if these iterations do not close: by shorter steps that reduce the residual if
            nothing is held; otherwise in strides from the nearest state that closes, then from random states. This takes some
            50 to 250 iterations for a state out of reach. False takes some 20, and may miss a state that the search finds.
            `branches` always searches. True by default.
        backend: "auto" interprets at once, and compiles in parallel where that pays; "c" compiles first; "interpreter" and
            "numpy" only interpret, in C or by NumPy. The bits are the same.
    Returns:
        q: (..., nq) and v: (..., nv), the state; leading axes (runs,) or (branches,).
        moved: (..., nq) and moved_rate: (..., nv), what was added to the given state.
        residual: (...) the largest remaining |phi| and |eta|.
        continued: (...) whether the state is on the branch of the given one.
        q_names, v_names: names of the entries; `named` is {coordinate name: value}.
        If some runs of a batch close and others do not, the states of the latter are NaN; their residual is returned.
    Warns RunWarning: a singular configuration lies between the given state and the held values.
    Raises RunError: no run closes. The message names the row, or the coordinate or rate that prevents closure and its nearest
    possible value.
    Raises ModelError: wrong names, shapes or numbers; motions that remain free although branches are requested.

    Example:
        A particle on a rod of 1 m, with x held at 0.6 m:

        >>> import pfaffian as pf
        >>> plane = pf.joint("bob", "planar-translation", "world", "bob", axis=(0, -1, 0))
        >>> rod = pf.closure("rod", "distance", "world", "bob", length=1.0)
        >>> m = pf.mechanism("pendulum", [pf.body("bob", mass=1.0)], [plane], constraints=[rod])
        >>> pf.assemble(m, [0.6, -0.9], hold=["bob.x"], backend="numpy").q.round(6)
        array([ 0.6, -0.8])
    """
    as_mechanism(m)
    check_options(backend, 1)
    search, arrays = as_flag(search, "search"), start_arguments(m, q, v, parameters, guess=guess, hold=hold)
    given = start_of(m, arrays, as_number(t, "t"), backend, None if weight is None else _weights(m, weight))
    if as_whole(branches, "branches", most=BRANCH_STARTS) > 1:
        if len(given.q) > 1:
            raise ModelError(f"branches takes one state at a time, not {len(given.q)}")
        distinct = _distinct(given, branches)
        size = scales(given.problem.m, given.problem.p, given.q, given.problem.m.q_units)
        same = (np.abs(distinct.q - close(given).q) <= APART * size).all(axis=1)
        return _assembly(given, distinct.q, distinct.v, distinct.residual, same)
    found = close(given, search)
    if not found.satisfied.any():
        raise RunError(explain(given.problem, found.lost.take([0]), given.q, given.v, search))
    many = len(given.q) > 1 or any(np.ndim(x) == 2 for x in (q, v, parameters))
    for x in (found.q, found.v):
        x[~found.satisfied] = np.nan
    tell_jumps(given, found)
    a = _assembly(given, found.q, found.v, found.residual, found.continued)
    return a if many else a._replace(**{n: x[0] for n, x in a._asdict().items() if isinstance(x, np.ndarray)})


def start_arguments(
    m: Mechanism,
    q: Any,
    v: Any,
    parameters: Any,
    *,
    guess: Any = None,
    hold: Iterable[str] = (),
    u: Any = None,
    u_names: Sequence[str] = (),
) -> Arguments:
    """Check the state, parameters, held coordinates and constant inputs that a caller gave, with arguments as in `assemble`.

    A dict q names the coordinates to hold, while the others start from `guess` (None: neutral).
    """
    start, hold = from_guess(m, q, guess, hold)
    given = run_arguments(m, start, v, parameters, u, u_names)
    if parameters is not None:
        tell("checking parameters")
        check_parameters(m, given.p)
    guesses = given.guesses if start is q else (False, given.guesses[1])
    return given._replace(hold=names_to_hold(hold), guesses=guesses)


def start_of(m: Mechanism, given: Arguments, t: float, backend: Backend, weights: np.ndarray | None = None) -> Given:
    """The start with these arguments at the time t [s].   weights: (nv,) factors on the inertias; 1 if None."""
    m = present(m)
    by_hold = fixed_by_name(m, given.hold)
    keep_q = fixed_velocities(m, given.named_q) | by_hold
    keep_v = given.named_v | (by_hold & given.guesses[1])
    count = max(len(given.q), len(given.v), len(given.p))
    qs, vs, p, keep_q, keep_v = (
        np.array(np.broadcast_to(x, (count, x.shape[-1]))) for x in (given.q, given.v, given.p, keep_q, keep_v)
    )
    origin = np.where(fixed_entries(m, keep_q), m.neutral(), qs) if given.named_q.any() and not given.guesses[0] else qs
    fixed = Fixed(keep_q, keep_v, np.ones(m.nv) if weights is None else weights)
    return Given(qs, vs, Problem(m, p, t, fixed, backend), origin, given.guesses)


def from_guess(m: Mechanism, q: Any, guess: Any, hold: Iterable[str] = ()) -> tuple[Any, Iterable[str]]:
    """The configuration and the names to hold of a start whose dict q names coordinates to hold, the others being guesses."""
    if isinstance(q, StartValues):
        q, guess = q.fixed, {**q.guess, **(guess or {})}
    if guess is None:
        return q, hold
    if not isinstance(guess, Mapping) or not (q is None or isinstance(q, Mapping)):
        raise ModelError("guess: {name: number} is needed, together with q as a dict of the coordinates that are held")
    if both := sorted(set(guess) & set(q or ())):
        raise ModelError(f"guess: q names {both[0]!r} too; a coordinate that q names is held, so it needs no guess")
    configurations(m, q)  # refuses a part of a quaternion, which cannot be held
    return guessed_configurations(m, {**guess, **(q or {})}), (*names_to_hold(hold), *(q or ()))


def names_to_hold(hold: Any) -> tuple[str, ...]:
    """The names to hold, of a list, a set or the keys of a dict. Raises ModelError: they are no texts."""
    if isinstance(hold, str):
        raise ModelError(f"hold must be a list of names, got {hold!r}; write hold=[{hold!r}]")
    return as_names(tuple(hold) if isinstance(hold, (Set, Mapping)) else hold, "hold")


def fixed_by_name(m: Mechanism, hold: tuple[str, ...]) -> np.ndarray:
    """(nv,) of bool, whether a velocity coordinate belongs to one of the named coordinates or joints."""
    marked = np.zeros(m.nv, dtype=bool)
    for name in hold:
        if name in m.v_slices:
            marked[m.v_slices[name]] = True
        elif name in m.q_names:
            marked |= fixed_velocities(m, np.array([n == name for n in m.q_names]))
        else:
            raise unknown(name, tuple(dict.fromkeys((*m.q_names, *m.v_slices))), "hold")
    return marked


def _weights(m: Mechanism, weight: Any) -> np.ndarray:
    """(nv,) the checked factors on the inertias of the velocity coordinates."""
    found = as_batch(weight, m.v_names, np.ones(m.nv), "weight")
    if len(found) != 1 or not (found > 0).all():
        raise ModelError(f"weight must be one number above zero for each of {m.nv} velocity coordinates")
    return found[0]


def close(given: Given, search: bool = True) -> Closed:
    """Put every run onto its constraints, BLOCK runs at a time; a run that does not close keeps its residual.

    search: as in `assemble`.
    """
    m, count = given.problem.m, len(given.q)
    if not m.ideal:
        nothing = State(given.q[:0], given.v[:0], *[np.zeros((0, 0))] * 5)
        return Closed(given.q, given.v, np.zeros(count), np.ones(count, dtype=bool), np.ones(count, dtype=bool), nothing)
    q, v, residual = np.empty_like(given.q), np.empty_like(given.v), np.empty(count)
    satisfied, continued = np.empty(count, dtype=bool), np.empty(count, dtype=bool)
    lost = []
    for begin in range(0, count, BLOCK):
        at = slice(begin, begin + BLOCK)
        tell(f"putting runs onto their constraints, {begin} of {count} done")
        found, continued[at] = find_state(given.problem.take(at), given.q[at], given.v[at], given.origin[at], search=search)
        q[at], v[at], residual[at], satisfied[at] = found.q, found.v, found.residual, found.satisfied
        lost.append(found.take(~found.satisfied))
    return Closed(q, v, residual, satisfied, continued, State(*map(np.concatenate, zip(*lost, strict=True))))


def tell_jumps(given: Given, found: Closed) -> None:
    """Warn RunWarning about runs that close, but on no branch that continues the given state."""
    jumped = np.flatnonzero(found.satisfied & ~found.continued)
    if len(jumped):
        m, run = given.problem.m, int(jumped[0])
        fixed = [m.q_names[i] for i in np.flatnonzero(fixed_entries(m, given.problem.fixed.q[[run]])[0])]
        where = f" of {plural(len(jumped), 'run')}, the first of them run {run}" if len(given.q) > 1 else ""
        notice(
            f"a singular configuration lies between the given state and the values of {listed(fixed)}{where}: the assembly may "
            "be on another branch; give the other coordinates by guess=..., or see branches=...",
            RunWarning,
        )


def _assembly(given: Given, q: np.ndarray, v: np.ndarray, residual: np.ndarray, continued: np.ndarray) -> Assembly:
    """The Assembly of states (runs, n), which are nan for runs that do not close."""
    m = given.problem.m
    return Assembly(q, v, q - given.q, v - given.v, residual, continued, m.q_names, m.v_names)


def _distinct(given: Given, count: int) -> State:
    """Up to `count` different assemblies of one state, the nearest first."""
    m, random = given.problem.m, np.random.default_rng(5)
    length = default_length(m) or 1.0
    starts = np.vstack([given.q, [random_configuration(m, random, length) for _ in range(BRANCH_STARTS - 1)]])
    problem = given.problem.take(np.zeros(BRANCH_STARTS, int))
    starts = check_configuration(m, np.where(fixed_entries(m, problem.fixed.q), given.q, starts))
    found = newton(problem, starts, np.repeat(given.v, BRANCH_STARTS, axis=0))
    good = found.satisfied
    if not good.any():
        stuck = find_state(problem.take([0]), given.q, given.v).states
        raise RunError(explain(given.problem, stuck, given.q, given.v))
    free = m.nv - int(given.problem.fixed.q.sum()) - int(found.rank[good].max())
    if free > 0:
        raise ModelError(f"{free} motion(s) stay free, so branches are not isolated: name or hold as many more coordinates")
    found = nearest_turns(problem, found, np.repeat(given.q, BRANCH_STARTS, axis=0))
    distance = np.linalg.norm(found.q - given.q, axis=1)
    chosen, size = list[int](), scales(m, problem.p[:1], given.q, m.q_units)[0]
    for i in np.argsort(np.where(good, distance, np.inf), kind="stable")[: good.sum()]:
        if len(chosen) < count and all((np.abs(found.q[i] - found.q[k]) > APART * size).any() for k in chosen):
            chosen.append(int(i))
    return found.take(chosen)
