"""Assembly: the nearest state that satisfies the constraints, with the coordinates and rates that a caller names unchanged."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from pfaffian.errors import ModelError, RunError, RunWarning, listed, notice, plural
from pfaffian.evaluate.arrays import by_name, one_or_many, parameter_values
from pfaffian.evaluate.single_values import as_flag, as_number, as_whole
from pfaffian.kernel.build.waiting import tell
from pfaffian.kernel.call.recipe import Backend, check_options
from pfaffian.model.mechanism import Mechanism, as_mechanism, check_configuration, random_configuration
from pfaffian.starts.branch import UNKNOWN, branch_and_distance
from pfaffian.starts.given_motion import read_motion
from pfaffian.starts.given_start import Given, start_arguments, start_of, weights_of
from pfaffian.starts.newton import BLOCK, State, fixed_entries, newton
from pfaffian.starts.start_search import Reached, explain, find_state, nearest_turns, open_row
from pfaffian.starts.trajectory import FollowedMotion, Trajectory, first_states, trajectory
from pfaffian.terms.lengths import default_length, scales
from pfaffian.terms.traced_now import present

BRANCH_STARTS = 96
"""Number of starts from which branches are searched: the given state, and random ones."""

APART = 1e-6
"""Assemblies whose coordinates all differ by less than this [rad, the machine's length] count as one."""


class Closed(NamedTuple):
    """The states of runs after the attempt to put them onto their constraints.

    q: (runs, nq).   v: (runs, nv).   residual: (runs,) the largest remaining |phi| and |eta|.   satisfied: (runs,) whether all
    constraints are satisfied.   continued: (runs,) whether the way to each stays on the branch of the state that was given.
    lost: the State of the runs whose constraints are not satisfied, in the order of the runs.   turns: for each of them a
    message if a closure is whole turns from where it is held, else "".
    """

    q: np.ndarray
    v: np.ndarray
    residual: np.ndarray
    satisfied: np.ndarray
    continued: np.ndarray
    lost: State
    turns: tuple[str, ...] = ()


class Assembly(NamedTuple):
    """A state on the constraints, or a batch of them with leading axis (runs, ...) or (branches, ...).

    q: (..., nq).   v: (..., nv).   moved: (..., nq) and moved_rate: (..., nv) what was added to the given state.
    residual: (...) the largest remaining |phi| and |eta|.   continued: (...) whether the state is on the branch of the given
    one: False where a singular configuration lies on the way, and for other `branches`.
    distance: (...) length of `moved` in the metric of M, without the held coordinates [kg^(1/2) m].
    branch: (...) index of the branch; two states with different indices are separated by singular configurations. -1 where
    motions stay free, or rows are redundant.
    nearer: (...) distance of another assembly that is nearer than this one, NaN where none is known: looked for with one state.
    q_names, v_names: of the entries.
    """

    q: np.ndarray
    v: np.ndarray
    moved: np.ndarray
    moved_rate: np.ndarray
    residual: np.ndarray
    continued: np.ndarray
    distance: np.ndarray
    branch: np.ndarray
    nearer: np.ndarray
    q_names: tuple[str, ...]
    v_names: tuple[str, ...]

    @property
    def named(self) -> dict[str, Any]:
        """Coordinate name -> its value, or (runs,) or (branches,) values."""
        return by_name(self.q, self.q_names)

    def __repr__(self) -> str:
        return f"<Assembly: {one_or_many(self.q, self.q_names)}>"


@overload
def assemble(
    m: Mechanism, q: Any = None, v: Any = None, *, guess: Any = None, parameters: Any = None, t: float = 0.0,
    hold: Iterable[str] = (), weight: Any = None, branches: int = 1, search: bool = True, along: Literal[False] = False,
    backend: Backend = "auto",
) -> Assembly: ...  # fmt: skip
@overload
def assemble(
    m: Mechanism, q: Any = None, v: None = None, *, guess: Any = None, parameters: Any = None, t: Any = 0.0,
    hold: Iterable[str] = (), weight: Any = None, branches: int = 1, search: bool = True, along: Literal[True],
    backend: Backend = "auto",
) -> Trajectory: ...  # fmt: skip
def assemble(
    m: Mechanism, q: Any = None, v: Any = None, *, guess: Any = None, parameters: Any = None, t: Any = 0.0,
    hold: Iterable[str] = (), weight: Any = None, branches: int = 1, search: bool = True, along: bool = False,
    backend: Backend = "auto",
) -> Assembly | Trajectory:  # fmt: skip
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
            (runs,)}, whose entries are held. A name may be that of a coordinate of a closure, `pin` or `pin.z`, which is held
            like that of a joint, over whole turns where those of the tree tell them.
        guess: {name: number or (runs,)}, values from which coordinates that the dict q does not name move onto the constraints;
            a coordinate that neither names starts from its neutral value, as in `run`.
        parameters: {name: number or (runs,)} or an array in the mechanism's order; defaults if None.
        t: time [s]; with `along` increasing times (samples,), without which there are no rates.
        hold: names of more coordinates, joints or closures to hold, at their values in q, and in v if that is an array.
        weight: {name: number} or (nv,), above zero, 1 where not named: factor on the inertia of a velocity coordinate, so that
            one with a large weight moves less. Translations of free and planar joints count along the axes of the joint.
        branches: above 1, return up to this many different assemblies of one state (a four-bar has two for each angle of its
            crank), the nearest in the metric of M first; angles that differ by full turns are equal. No motion may remain free
            under what is held. 1 by default.
        search: whether to search further away if these iterations do not close: by shorter steps that reduce the residual if
            nothing is held, otherwise in strides from the nearest state that closes; then from a few random states, which are
            the same on every machine. This takes some 50 to 250 iterations for a state out of reach. False takes some 20, and
            may miss a state that the search finds. `branches` always searches. True by default.
        along: whether q is a dict of motions over time, to be followed on one branch from the first sample to the last. A key
            is the name of a coordinate, also of a closure, the name of a body (a coordinate of the same name comes first), or a
            pair (body, pose or position of a tool in it). Its value is a number, which is held; a series (samples,) or
            (samples, runs); for a body (samples, 3) positions, (samples, 4) quaternions (x, y, z, w) or (samples, 7) both, with
            runs as the second axis. The rates of a series are those of the cubic spline through it. They are exact where the
            value is a `control.Setpoint(values, rates, accelerations)` of series, or a reference such as
            `control.function_of_time`.
            Motions that stay free are as slow as possible in the metric of M, and are integrated from sample to sample. Takes
            no v, hold or branches. False by default.
        backend: "auto" interprets at once, and compiles in parallel where that pays; "c" compiles first; "interpreter" and
            "numpy" only interpret, in C or by NumPy. The bits are the same.
    Returns:
        q: (..., nq) and v: (..., nv), the state; leading axes (runs,) or (branches,).
        moved: (..., nq) and moved_rate: (..., nv), what was added to the given state.
        residual: (...) the largest remaining |phi| and |eta|.
        continued: (...) whether the state is on the branch of the given one.
        distance: (...) length of `moved` in the metric of M, without the held coordinates [kg^(1/2) m].
        branch: (...) index of the branch. It changes only through a singular configuration, so it is the same along a branch
            and in `branches`; -1 where motions stay free or rows are redundant.
        nearer: (...) distance of an assembly that is nearer in that metric, but not on the branch of the given state; NaN where
            none was seen. Only one state is looked at, by full Newton steps; `branches` gives all.
        q_names, v_names: names of the entries; `named` is {coordinate name: value}.
        If some runs of a batch close and others do not, the states of the latter are NaN; their residual is returned.
        With `along`: t (samples,); q, v and a (samples, ...) or (samples, runs, ...), a being the derivative of v; reached,
        residual and regularity of each sample; branch; passages, the samples nearest to a singular configuration with the row
        that is then almost dependent; lost, the stretches out of reach, where q, v and a are NaN. After such a stretch the
        branch is that of the straight way from the last state within reach.
    Warns RunWarning: a singular configuration lies between the given state and the held values; nothing is held, and the
    assembly was found from another start; samples are out of reach, or pass near a singular configuration.
    Raises RunError: no run closes. The message names the row, or the coordinate or rate that prevents closure and its nearest
    possible value.
    Raises ModelError: wrong names, shapes or numbers; a closure without coordinates, or one that a servo holds; motions that
    remain free although branches are requested; series of unequal length, or with a jump.

    Example:
        A particle on a rod of 1 m, with x held at 0.6 m:

        >>> import pfaffian as pf
        >>> plane = pf.joint("bob", "planar-translation", "world", "bob", axis=(0, -1, 0))
        >>> rod = pf.closure("rod", "distance", "world", "bob", length=1.0)
        >>> m = pf.mechanism("pendulum", [pf.body("bob", mass=1.0)], [plane], constraints=[rod])
        >>> pf.assemble(m, [0.6, -0.9], hold=["bob.x"], backend="numpy").q.round(6)
        array([ 0.6, -0.8])

        The same particle while x moves from 0 to 0.8 m in 1 s:

        >>> x = pf.control.polynomial([0.0], [0.8], duration=1.0)
        >>> way = pf.assemble(m, {"bob.x": x}, guess={"bob.y": -1}, t=[0.0, 0.5, 1.0], along=True, backend="numpy")
        >>> way.q.round(6), way.v[1].round(6)
        (array([[ 0.      , -1.      ],
               [ 0.4     , -0.916515],
               [ 0.8     , -0.6     ]]), array([1.5     , 0.654654]))
    """
    m = present(as_mechanism(m))
    if as_flag(along, "along"):
        _check_alone(v, hold, branches)
        return _along(m, q, guess, parameters, t, weight, backend)
    search, arrays = as_flag(search, "search"), start_arguments(m, q, v, parameters, guess=guess, hold=hold)
    given = start_of(m, arrays, as_number(t, "t"), backend, None if weight is None else weights_of(m, weight))
    if as_whole(branches, "branches", most=BRANCH_STARTS) > 1:
        if len(given.q) > 1:
            raise ModelError(f"branches takes one state at a time, not {len(given.q)}")
        continued = close(given)
        distinct = _distinct(given, branches)
        size = scales(given.problem.m, given.problem.p, given.q, given.problem.m.q_units)
        same = continued.continued & (np.abs(distinct.q - continued.q) <= APART * size).all(axis=1)
        return _assembly(given, distinct.q, distinct.v, distinct.residual, same)
    found = close(given, search)
    if not found.satisfied.any():
        raise RunError(why_lost(given, found, search))
    many = len(given.q) > 1 or any(np.ndim(x) == 2 for x in (q, v, parameters))
    for x in (found.q, found.v):
        x[~found.satisfied] = np.nan
    tell_jumps(given, found)
    a = _assembly(given, found.q, found.v, found.residual, found.continued)
    if many:
        return a
    a = a._replace(nearer=_nearer(given, a))
    return a._replace(**{n: x[0] for n, x in a._asdict().items() if isinstance(x, np.ndarray)})


def _nearer(given: Given, a: Assembly) -> np.ndarray:
    """(1,) distance of the assembly on which full Newton steps from the given state end, if it is nearer than `a`, else NaN."""
    nothing = np.full(1, np.nan)
    if not given.problem.m.ideal or a.distance[0] == 0:
        return nothing
    straight = nearest_turns(given.problem, newton(given.problem, given.q, given.v), given.q)
    if not straight.closed[0]:
        return nothing
    _, distance = branch_and_distance(given.problem, given.q, straight.q)
    return np.where(distance < (1 - APART) * a.distance, distance, nothing)


def _check_alone(v: Any, hold: Any, branches: Any) -> None:
    """Raise ModelError where along=True meets an argument that it cannot take."""
    for name, given, way in (
        ("v", v is not None, "give the rates of a series beside it, control.Setpoint(values, rates, accelerations)"),
        ("hold", hold != (), "give what is to be held as a number in q"),
        ("branches", branches != 1, "choose the branch by guess={...}"),
    ):
        if given:
            raise ModelError(f"along=True takes no {name}: {way}")


def _along(m: Mechanism, q: Any, guess: Any, parameters: Any, t: Any, weight: Any, backend: Backend) -> Trajectory:
    """The Trajectory of `assemble` with along=True."""
    m = present(as_mechanism(m))
    check_options(backend, 1)
    p = parameter_values(m, parameters)
    given = read_motion(m, q, t, p)
    begun = start_arguments(m, None, None, parameters, guess=guess)
    if both := sorted(set(guess or ()) & {name for name in q if isinstance(name, str)}):
        raise ModelError(f"guess: q names {both[0]!r} too; a coordinate that q names is held, so leave it out of guess")
    start = start_of(
        m,
        begun._replace(arrays=begun.arrays._replace(hold=())),
        0.0,
        backend,
        None if weight is None else weights_of(m, weight),
    )
    start.refuse_closures("along=True")
    p, qs = (np.array(np.broadcast_to(x, (given.runs, x.shape[-1]))) for x in (start.p, start.q))
    weights = np.ones(given.m.nv)
    weights[[given.m.v_names.index(name) for name in m.v_names]] = start.problem.fixed.weight
    begin = float(np.ravel(t)[0])
    path = FollowedMotion(given, p, begin, weights, backend)
    closed = qs
    if given.bodies:
        nearest = close(start._replace(problem=start.problem._replace(t=begin)))
        if not nearest.satisfied.all():
            raise RunError(explain(start.problem, nearest.lost.take([0]), start.q, start.v))
        closed = np.array(np.broadcast_to(nearest.q, qs.shape))
    return trajectory(path, m, first_states(path, m, qs, closed))


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
    lost, turns = list[State](), list[str]()
    for begin in range(0, count, BLOCK):
        at = slice(begin, begin + BLOCK)
        tell(f"putting runs onto their constraints, {begin} of {count} done")
        here = given.take(at)
        (found, continued[at]), off = _on_turn(here, find_state(here.problem, here.q, here.v, here.origin, search), search)
        q[at], v[at], residual[at] = found.q, found.v, found.residual
        satisfied[at] = found.satisfied & (off == "")
        lost.append(found.take(~satisfied[at]))
        turns += off[~satisfied[at]].tolist()
    return Closed(q, v, residual, satisfied, continued, State(*map(np.concatenate, zip(*lost, strict=True))), tuple(turns))


def _on_turn(given: Given, found: Reached, search: bool) -> tuple[Reached, np.ndarray]:
    """States in which closures count as many turns as they are held at, and a message for each in which one cannot, else "".

    A loop closes at any whole turn; from where the tree says that it is, its closure moves on to where it is held.
    """
    states, joints, problem = found.states, given.as_joints, given.problem
    if joints is None:
        return found, np.full(len(given.q), "", dtype=object)

    def off(at: np.ndarray) -> np.ndarray:
        return np.array(joints.off_turn(states.q[at], given.p[at], problem.take(at).instants, problem.backend), dtype=object)

    turned = np.flatnonzero(states.satisfied)
    turned = turned[off(turned) != ""]
    if len(turned):
        here = given.take(turned)
        origin, _ = joints.measured(states.q[turned], states.v[turned], here.p, here.problem.instants, problem.backend)
        again = find_state(here.problem, states.q[turned], here.v, origin, search, unwind=False)
        states.put(turned, again.states)
        found.continued[turned] = again.continued
    messages = np.full(len(given.q), "", dtype=object)
    messages[turned] = np.where(states.satisfied[turned], off(turned), "")
    return found, messages


def why_lost(given: Given, found: Closed, search: bool = True) -> str:
    """Message why the first run does not reach its constraints."""
    return found.turns[0] or explain(given.problem, found.lost.take([0]), given.q, given.v, search)


def lost_messages(m: Mechanism, found: Closed) -> list[str]:
    """Message for each run that does not reach its constraints."""
    return [turns or row for turns, row in zip(found.turns, open_row(m, found.lost), strict=True)]


def tell_jumps(given: Given, found: Closed) -> None:
    """Warn RunWarning about runs that close, but on no branch that continues the given state."""
    jumped = np.flatnonzero(found.satisfied & ~found.continued)
    if not len(jumped):
        return
    m, run = given.problem.m, int(jumped[0])
    fixed = [m.q_names[i] for i in np.flatnonzero(fixed_entries(m, given.problem.fixed.q[[run]])[0])]
    where = f" of {plural(len(jumped), 'run')}, the first of them run {run}" if len(given.q) > 1 else ""
    if fixed:
        notice(
            f"a singular configuration lies between the given state and the values of {listed(fixed)}{where}: the assembly may "
            "be on another branch; give the other coordinates by guess=..., or see branches=...",
            RunWarning,
        )
    else:
        notice(
            f"no way leads from the given state{where} onto the constraints: the assembly was found from another start and may "
            "be far away (see 'moved'); give a guess nearer to a configuration on the constraints",
            RunWarning,
        )


def _assembly(given: Given, q: np.ndarray, v: np.ndarray, residual: np.ndarray, continued: np.ndarray) -> Assembly:
    """The Assembly of states (runs, n), which are nan for runs that do not close."""
    m, problem = given.problem.m, given.problem
    many = len(q) > len(given.q)  # several branches of one state
    problem, start = (problem.take(np.zeros(len(q), int)), np.repeat(given.q, len(q), axis=0)) if many else (problem, given.q)
    branch, distance = branch_and_distance(problem, start, q)
    branch = np.where(np.isnan(distance), UNKNOWN, branch)
    nearer, m = np.full(len(q), np.nan), given.caller
    (q, moved), (v, faster) = ([y[:, :n] for y in (x, x - x0)] for x, x0, n in ((q, given.q, m.nq), (v, given.v, m.nv)))
    return Assembly(q, v, moved, faster, residual, continued, distance, branch, nearer, m.q_names, m.v_names)


def _distinct(given: Given, count: int) -> State:
    """Up to `count` different assemblies of one state, the nearest first."""
    m, random = given.problem.m, np.random.default_rng(5)  # starts of a search
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
    _, distance = branch_and_distance(problem, np.repeat(given.q, BRANCH_STARTS, axis=0), found.q)
    chosen, size = list[int](), scales(m, problem.p[:1], given.q, m.q_units)[0]
    for i in np.argsort(np.where(good, distance, np.inf), kind="stable")[: good.sum()]:
        if len(chosen) < count and all((np.abs(found.q[i] - found.q[k]) > APART * size).any() for k in chosen):
            chosen.append(int(i))
    return found.take(chosen)
