"""Assemblies along given motions: all coordinates of a mechanism over time, on one branch from the first sample to the last.

From the first state the branch is followed in strides that span many samples where it is straight enough: the rates predict the
next state, and Newton's iterations from there have to contract (`starts/continuation.py`). Between two such states the samples
are interpolated from both, all at once, and put onto the constraints under the same condition.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pfaffian.errors import RunError, RunWarning, listed, notice, plural
from pfaffian.evaluate.arrays import by_name
from pfaffian.evaluate.quantities import forward_kinematics
from pfaffian.kernel.build.waiting import tell
from pfaffian.maths import so3
from pfaffian.maths.spline import spline_slopes
from pfaffian.model.loop_coordinates import coordinates_of_closures
from pfaffian.model.mechanism import Mechanism, check_configuration
from pfaffian.starts.branch import UNKNOWN, branch_and_distance, sides
from pfaffian.starts.closure_angles import ClosuresAlong
from pfaffian.starts.closures_as_joints import measured
from pfaffian.starts.continuation import CONTRACTS, NEGLIGIBLE, follow, length_of
from pfaffian.starts.given_motion import GivenMotion
from pfaffian.starts.held_rates import StateRates, rates, row_name
from pfaffian.starts.newton import (
    ACCEPTED,
    BLOCK,
    CONVERGED,
    Fixed,
    Problem,
    State,
    descent,
    evaluated,
    newton,
    position_residual,
    position_step,
    worst_of,
)
from pfaffian.starts.start_search import explain, find_state
from pfaffian.terms.lengths import scales

LONGEST, SHORTEST, FINEST = 256, 2.0**-10, 2.0**-20
"""Bounds of a stride, in samples; FINEST where its branch is compared. A branch that cannot be followed in the shortest one
ends at a singular configuration."""

STRAIGHT, SHORT = 0.1, 1e-3
"""A stride is doubled where the first correction is below STRAIGHT times the way, or the way is below SHORT."""

ROUGH = 1e-5
"""Length of a second Newton step [rad, machine lengths] after which a third one follows."""

POLISH = 6
"""Largest number of Newton steps at a sample."""

NEAR = 0.02
"""Regularity below which a minimum counts as a singular passage, as in `results.singular_passages`."""

GUESSED = 8
"""Largest number of coordinates of a guess in a message."""

CHUNK, ANCHORS = 16, (0, 1, 4, 16, 64)
"""Number of samples, then four times as many, among which the first one within reach is looked for; and how many strides before
the last sample within reach the ways to it begin."""


class SingularSample(NamedTuple):
    """A sample at which a trajectory comes closest to a singular configuration.

    run, sample: indices.   time: [s], or the index of the sample if no times were given.   regularity: [1].
    row: the constraint row that then almost depends on the others.
    """

    run: int
    sample: int
    time: float
    regularity: float
    row: str


class LostSamples(NamedTuple):
    """Samples of a run, from `first` to `last`, that the branch does not reach.

    worst: the sample at which the most remains open.   residual: the largest |phi| there.
    """

    run: int
    first: int
    last: int
    worst: int
    residual: float


class Trajectory(NamedTuple):
    """All coordinates along given motions; arrays (samples, ...), or (samples, runs, ...) of a batch.

    q: (..., nq).   v: (..., nv) and a: (..., nv), its derivative v_dot; NaN where no times were given.
    reached: (...) whether the branch of the first sample reaches this one; q, v and a are NaN where it does not.
    residual: (...) the largest remaining |phi|.   regularity: (...) from 0 in a singular configuration to 1.
    branch: () or (runs,) index of the branch as in `Assembly`, at the first sample that is reached.
    passages: the singular passages.   lost: the stretches that are not reached.   q_names, v_names: of the entries.
    t: (samples,) instants [s], or the numbers of the samples where no times were given.
    at_closures: by which `loop` is found.
    """

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    reached: np.ndarray
    residual: np.ndarray
    regularity: np.ndarray
    branch: np.ndarray
    passages: tuple[SingularSample, ...]
    lost: tuple[LostSamples, ...]
    q_names: tuple[str, ...]
    v_names: tuple[str, ...]
    t: np.ndarray
    at_closures: ClosuresAlong

    @property
    def named(self) -> dict[str, Any]:
        """Coordinate name -> its values (samples,) or (samples, runs)."""
        return by_name(self.q, self.q_names)

    @property
    def loop(self) -> dict[str, np.ndarray]:
        """Name of each coordinate of the joints that close loops -> its values (samples,) or (samples, runs), with angles that
        are continued over whole turns. Where no times were given, they turn less than half a turn from sample to sample."""
        many = self.q.ndim == 3
        q, v = (x if many else x[:, None] for x in (self.q, self.v))
        return {name: x if many else x[:, 0] for name, x in self.at_closures.of(q, v).items()}

    def __repr__(self) -> str:
        runs = f", {self.q.shape[1]} runs" if self.q.ndim == 3 else ""
        ways = f"{plural(len(self.passages), 'singular passage')}, {plural(int((~self.reached).sum()), 'sample')} out of reach"
        return f"<Trajectory: {len(self.q)} samples{runs} of {listed(self.q_names)}; {ways}>"


class FollowedMotion(NamedTuple):
    """What is followed: the given motion, and the problem of each run.   p: (runs, np).   origin: (runs, nq) first states."""

    given: GivenMotion
    p: np.ndarray
    t: float
    weight: np.ndarray
    backend: Any

    def problem(self, run: np.ndarray, at: np.ndarray) -> Problem:
        """The Problem of runs (k,) at samples (k,), whole or in between."""
        marked = np.broadcast_to(self.given.fixed, (len(run), self.given.m.nv))
        t = self.time(at)[:, None] if self.given.timed else self.t
        return Problem(self.given.m, self.p[run], t, Fixed(marked, marked, self.weight), self.backend)

    def goal(self, run: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The fixed entries of q (k, ...) and the rates (k, nv) of the fixed coordinates; in between by cubic polynomials."""
        g, n = self.given, len(self.given.times)
        before = np.minimum(at.astype(int), n - 1)
        after, s = np.minimum(before + 1, n - 1), (at - before)[:, None]
        i, w = run * n + before, np.zeros((len(run), g.m.nv))
        if not s.any():
            w[:, g.fixed] = g.w[i]
            return g.values[i], w
        j, h = run * n + after, (g.times[after] - g.times[before])[:, None]
        w[:, g.fixed] = (1 - s) * g.w[i] + s * g.w[j]
        return _between(g.values[i], g.slopes[i], g.values[j], g.slopes[j], s, h), w

    def time(self, at: np.ndarray) -> np.ndarray:
        """Times at samples (k,), whole or in between."""
        return np.interp(at, np.arange(len(self.given.times)), self.given.times)


def _between(x: np.ndarray, rate: np.ndarray, y: np.ndarray, rate_y: np.ndarray, s: np.ndarray, h: np.ndarray) -> np.ndarray:
    """The cubic polynomials from x to y with these rates at both ends, at the fractions s (k, 1) of the intervals h (k, 1)."""
    r = 1 - s
    return r * r * ((1 + 2 * s) * x + s * h * rate) + s * s * ((1 + 2 * r) * y - r * h * rate_y)


class Knots(NamedTuple):
    """States at samples from which others are interpolated.   flat: (k,) run n + sample.   q, q_dot: (k, nq)."""

    flat: np.ndarray
    q: np.ndarray
    q_dot: np.ndarray


class Stride(NamedTuple):
    """Strides of branches (k,) from states q (k, nq) to samples `target` (k,), whole or in between.

    h: (k, 1) [s].   goal: (k, ...) fixed entries at the target.   size: (k, nq) of changes.
    """

    path: FollowedMotion
    run: np.ndarray
    target: np.ndarray
    q: np.ndarray
    h: np.ndarray
    goal: np.ndarray
    size: np.ndarray

    def to(self, way: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """States (k, nq) after two or three Newton steps from those that the rates `way` (k, nq) predict; the length of the
        first step, and the second one relative to the longest that lets Newton's iterations contract."""
        guess = self.q + self.h * way
        guess[:, self.path.given.entries] = self.goal
        guess, problem = check_configuration(self.path.given.m, guess), self.path.problem(self.run, self.target)
        still = np.zeros((len(guess), self.path.given.m.nv))
        one = position_step(problem, guess, still)
        two = position_step(problem, one, still)
        first, second = length_of(one - guess, self.size), length_of(two - one, self.size)
        rough = np.flatnonzero((second > ROUGH) & np.isfinite(second))
        if len(rough):
            two[rough] = position_step(problem.take(rough), two[rough], still[rough])
        return two, first, np.maximum(second - NEGLIGIBLE, 0) / np.maximum(CONTRACTS * first, NEGLIGIBLE)


def _advance(
    path: FollowedMotion,
    run: np.ndarray,
    begin: np.ndarray,
    end: np.ndarray,
    q: np.ndarray,
    longest: int,
    free: bool,
    side: np.ndarray | None = None,
) -> tuple[Knots, np.ndarray]:
    """Follow the branch of states q (k, nq) of runs (k,) from samples `begin` (k,) to `end` (k,).

    longest: stride in samples.   free: whether motions stay free, which are then integrated by the trapezoidal rule.
    side: (k,) index of the branch that strides must not leave; None to accept what contracts.
    Returns the Knots, and (k,) the last sample that each reaches.
    """
    n, entries, size = len(path.given.times), path.given.entries, scales(path.given.m, path.p[run], q, path.given.m.q_units)
    at, last, stride, q = begin.astype(float), begin.copy(), np.ones(len(run)), q.copy()
    shortest = SHORTEST if side is None else FINEST
    q_dot = _q_dot(path, run, at, q)
    found = [Knots(run * n + begin, q.copy(), q_dot.copy())]
    while len(k := np.flatnonzero((last < end) & (stride >= shortest))):
        whole = (at[k] == last[k]) & (stride[k] >= 1)
        target = np.where(
            whole, np.minimum(at[k] + stride[k], end[k]), np.minimum(at[k] + np.minimum(stride[k], 1), last[k] + 1)
        )
        h = (path.time(target) - path.time(at[k]))[:, None]
        one = Stride(path, run[k], target, q[k], h, path.goal(run[k], target)[0], size[k])
        after, first, ratio = one.to(q_dot[k])
        way = length_of(np.where(entries, 0, after - q[k]), size[k])
        rate = _q_dot(path, run[k], target, after)
        if free:
            after = one.to((q_dot[k] + rate) / 2)[0]
            rate = _q_dot(path, run[k], target, after)
        good = (ratio <= 1) & np.isfinite(rate).all(axis=1)
        if side is not None:
            good &= _stays(path.problem(run[k], target), after, side[k])
        ok, on = k[good], good & (target == np.floor(target))
        q[ok], q_dot[ok], at[ok] = after[good], rate[good], target[good]
        last[ok] = np.floor(target[good]).astype(int)
        found.append(Knots(run[k[on]] * n + last[k[on]], q[k[on]], q_dot[k[on]]))
        straight = (ratio <= CONTRACTS) & ((first <= STRAIGHT * way) | (way <= SHORT))
        stride[k] = np.where(good, np.where(straight, np.minimum(2 * stride[k], longest), stride[k]), stride[k] / 4)
    return _merged(found), last


def _stays(problem: Problem, q: np.ndarray, side: np.ndarray) -> np.ndarray:
    """(k,) whether states q (k, nq) are on the constraints, and on the branches of index `side` (k,)."""
    return evaluated(problem, q, np.zeros((len(q), problem.m.nv))).closed & (sides(problem, q) == side)


def _q_dot(path: FollowedMotion, run: np.ndarray, at: np.ndarray, q: np.ndarray) -> np.ndarray:
    """(k, nq) rates of states q (k, nq) of runs at samples (k,), with what is free as slow as possible."""
    w = path.goal(run, at)[1]
    return rates(path.problem(run, at), q, w, 0 * w).q_dot


def _merged(found: list[Knots]) -> Knots:
    """Knots of several lists, in order; of knots at the same sample the last one."""
    flat = np.concatenate([x.flat for x in found])[::-1]
    _, at = np.unique(flat, return_index=True)
    q, q_dot = (np.concatenate([x[i] for x in found])[::-1][at] for i in (1, 2))
    return Knots(flat[at], q, q_dot)


class Filled(NamedTuple):
    """All samples: q (runs n, nq), |phi| relative to its scale and whether each is on its branch (runs n,)."""

    q: np.ndarray
    off: np.ndarray
    good: np.ndarray


def _fill(path: FollowedMotion, knots: Knots, flat: np.ndarray, into: Filled) -> None:
    """Interpolate the samples `flat` (k,), in order, between the knots around them, and put them onto the constraints."""
    m, n, entries = path.given.m, len(path.given.times), path.given.entries
    for b in range(0, len(flat), BLOCK):
        part = flat[b : b + BLOCK]
        run, sample = np.divmod(part, n)
        left = np.searchsorted(knots.flat, part, side="right") - 1
        right = np.minimum(left + 1, len(knots.flat) - 1)
        right = np.where(knots.flat[right] // n == run, right, left)
        x, y = knots.flat[left] - run * n, knots.flat[right] - run * n
        h = path.given.times[y] - path.given.times[x]
        s = np.where(h > 0, (path.given.times[sample] - path.given.times[x]) / np.where(h > 0, h, 1), 0)
        columns = [z.T[:, i].T for z in knots[1:] for i in (left, right)]
        q = _between(columns[0], columns[2], columns[1], columns[3], s[:, None], h[:, None])
        q[:, entries] = path.given.values[part]
        guess = q = check_configuration(m, q)
        problem, size = path.problem(run, sample), scales(m, path.p[run], q, m.q_units)
        zero = np.zeros((len(part), m.nv))
        first = np.zeros(len(part))
        off, good, active = np.full(len(part), np.inf), np.ones(len(part), dtype=bool), np.arange(len(part))
        for i in range(POLISH):
            some = slice(None) if len(active) == len(part) else active
            after, phi = position_residual(problem.take(some), guess, zero[some])
            step = length_of(after - guess, size[some])
            if i == 0:
                first = step
            elif i == 1:
                good[active] = step <= CONTRACTS * first[active] + NEGLIGIBLE
            rest = worst_of(phi)
            better = rest < off[active]
            q.T[:, active[better]] = after.T[:, better]
            off[active[better]] = rest[better]
            more = (rest > CONVERGED) & better & good[active]
            guess, active = after.T[:, more].T, active[more]
            if not len(active):
                break
        good &= off <= ACCEPTED
        good &= first <= CONTRACTS * length_of(columns[1] - columns[0], size) + SHORT
        into.q.T[:, part], into.off[part], into.good[part] = q.T, off, good


def along(path: FollowedMotion, begin: State) -> tuple[Filled, np.ndarray]:
    """Follow every run from its first state, and fill all samples.

    begin: states of the runs at their first samples, or before these where they are not closed there.
    Returns the samples, and (runs,) the number of motions that stay free.
    """
    m, n, runs = path.given.m, len(path.given.times), path.given.runs
    filled = Filled(np.full((m.nq, runs * n), np.nan).T, np.full(runs * n, np.inf), np.zeros(runs * n, dtype=bool))
    every, zeros = np.arange(runs), np.zeros(runs, dtype=int)
    goal, w = path.goal(every, zeros.astype(float))
    closed = begin.closed & (begin.q[:, path.given.entries] == goal).all(axis=1)
    rank = rates(path.problem(every, zeros), begin.q, w, 0 * w).rank
    free = (m.nv - int(path.given.fixed.sum()) - rank).astype(int)
    knots, lanes = list[Knots](), [(np.flatnonzero(closed), zeros[closed], begin.q[closed])]
    lost = [(int(r), -1) for r in np.flatnonzero(~closed)]
    while lanes or lost:
        for run, start, q in lanes:
            tell("following a branch along the given motions")
            for loose in (False, True):
                these = np.flatnonzero((free[run] > 0) == loose)
                if len(these):
                    end = np.full(len(these), n - 1)
                    new, last = _advance(path, run[these], start[these], end, q[these], 1 if loose else LONGEST, loose)
                    knots.append(new)
                    lost += [(int(r), int(x)) for r, x in zip(run[these], last, strict=True) if x < n - 1]
        so_far = _merged(knots) if knots else None
        again = [_resume(path, so_far, begin, r, reached) for r, reached in lost]
        lanes, lost = [lane for lane in again if lane is not None], []
    if knots:
        _complete(path, _merged(knots), free, filled)
        _back_on_branch(path, filled)
    return filled, free


def _complete(path: FollowedMotion, knots: Knots, free: np.ndarray, filled: Filled) -> None:
    """Fill the samples between the knots; where interpolation is too far from the branch, it is followed sample by sample."""
    n = len(path.given.times)
    reached = np.zeros(path.given.runs * n, dtype=bool)
    for start, stop in _spans(path, knots):
        reached[start : stop + 1] = True
    _fill(path, knots, np.flatnonzero(reached), filled)
    _refine(path, knots, np.flatnonzero(reached & ~filled.good), filled)


def _refine(path: FollowedMotion, knots: Knots, wrong: np.ndarray, filled: Filled, side: np.ndarray | None = None) -> None:
    """Follow the branch sample by sample between the knots around the samples `wrong` (k,), and fill what is there.

    side: (runs,) as of `_advance`.
    """
    n = len(path.given.times)
    if not len(wrong):
        return
    left = np.unique(np.searchsorted(knots.flat, wrong, side="right") - 1)
    left = left[(left + 1 < len(knots.flat))]
    left = left[knots.flat[left + 1] // n == knots.flat[left] // n]
    if not len(left):
        return
    run, begin = np.divmod(knots.flat[left], n)
    end = knots.flat[left + 1] - run * n
    more, last = _advance(path, run, begin, end, knots.q[left], 1, False, None if side is None else side[run])
    inside = np.concatenate([np.arange(r * n + b, r * n + x + 1) for r, b, x in zip(run, begin, last, strict=True)])
    _fill(path, _merged([knots, more]), inside, filled)


def _back_on_branch(path: FollowedMotion, filled: Filled) -> None:
    """Follow the runs again that changed the branch: beside a singular configuration two branches come so close that Newton's
    iterations contract onto either. Where branches cross, a run stays on its straight way."""
    n = len(path.given.times)
    whole = np.flatnonzero(filled.good.reshape(-1, n).all(axis=1))
    side = _sides(path, filled, whole)
    left = (side[:, 0] != UNKNOWN) & ((side != side[:, :1]) & (side != UNKNOWN)).any(axis=1)
    run, side = whole[left], side[left, 0]
    if not len(run):
        return
    zeros = np.zeros(len(run), dtype=int)
    knots, last = _advance(path, run, zeros, zeros + n - 1, filled.q[run * n], LONGEST, False, side)
    again = Filled(filled.q.copy(order="K"), filled.off.copy(), filled.good.copy())
    for r, s in zip(run[last == n - 1], side[last == n - 1], strict=True):
        every, mine = np.arange(r * n, (r + 1) * n), Knots(*[x[knots.flat // n == r] for x in knots])
        _fill(path, mine, every, again)
        _refine(path, mine, every[~again.good[every]], again, np.full(path.given.runs, s))
        if again.good[every].all() and np.isin(_sides(path, again, np.array([r])), (s, UNKNOWN)).all():
            filled.q.T[:, every], filled.off[every] = again.q.T[:, every], again.off[every]


def _sides(path: FollowedMotion, filled: Filled, run: np.ndarray) -> np.ndarray:
    """(k, n) index of the branch of all samples of runs (k,)."""
    n = len(path.given.times)
    flat = (run[:, None] * n + np.arange(n)).ravel()
    found = np.full(len(flat), UNKNOWN)
    for b in range(0, len(flat), BLOCK):
        part = flat[b : b + BLOCK]
        found[b : b + BLOCK] = sides(path.problem(*np.divmod(part, n)), filled.q[part])
    return found.reshape(-1, n)


def _spans(path: FollowedMotion, knots: Knots) -> list[tuple[int, int]]:
    """(first, last) flat indices of the stretches that strides connect: knots farther apart than a stride end one."""
    n, flat = len(path.given.times), knots.flat
    apart = np.flatnonzero((np.diff(flat) > LONGEST) | (flat[1:] // n != flat[:-1] // n))
    return list(zip(flat[np.r_[0, apart + 1]].tolist(), flat[np.r_[apart, len(flat) - 1]].tolist(), strict=True))


def _resume(
    path: FollowedMotion, knots: Knots | None, begin: State, run: int, last: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """The lane from the first sample after `last` that is within reach again: its run, sample and state, (1, ...); None if no
    sample is. The fixed coordinates move straight from a state before to their values there."""
    n, m = len(path.given.times), path.given.m
    mine = np.zeros((0, m.nq)) if knots is None else knots.q[(knots.flat // n == run) & (knots.flat <= run * n + last)]
    anchors = [mine[-1 - i] for i in ANCHORS if i < len(mine)] or [begin.q[run]]
    first, size = last + 1, CHUNK
    while first < n:
        sample = np.arange(first, min(first + size, n))
        best = None
        for anchor in anchors:
            runs = np.full(len(sample), run)
            problem, (values, _) = path.problem(runs, sample), path.goal(runs, sample.astype(float))
            start = np.repeat(anchor[None], len(sample), axis=0)
            goal = np.where(path.given.entries, 0, start)
            goal[:, path.given.entries] = values
            way, end = follow(problem, start, goal)
            reached = newton(problem, np.where(way[:, None] == 1, end, goal), np.zeros((len(sample), m.nv)))
            good = np.flatnonzero((way == 1) & reached.closed)
            if len(good) and (best is None or good[0] < best[0]):
                best = int(good[0]), reached.q[good[0]]
        if best is not None:
            return np.array([run]), np.array([first + best[0]]), best[1][None]
        first, size = first + size, 4 * size
    return None


# -- what the caller gets ------------------------------------------------------------------------------------------


def first_states(path: FollowedMotion, m: Mechanism, q: np.ndarray, origin_closed: np.ndarray) -> State:
    """The states of the runs at their first samples, on the branch of the given ones; where these samples are out of reach,
    the nearest states on the constraints.

    m: the caller's mechanism.   q: (runs, nq) the given state.   origin_closed: (runs, nq) the state nearest to it on m's own
    constraints, from which given bodies start.
    """
    given = path.given
    every = np.arange(given.runs)
    entries = [given.m.q_names.index(name) for name in m.q_names]
    origin = np.tile(given.m.neutral(), (given.runs, 1))
    origin[:, entries] = origin_closed if given.bodies else np.where(given.entries[entries], m.neutral(), q)
    for joint_name, body, place in given.bodies:
        at = forward_kinematics(m, origin_closed, parameters=path.p if m.p_names else None)[body]
        origin[:, given.m.q_slices[joint_name]] = _coordinates(at.position, at.rotation, place, given.m, joint_name)
    if given.closures:
        here = (origin[:, entries], np.zeros((given.runs, m.nv)), path.p, np.array([path.t]), path.backend)
        coordinates, _ = measured(m, given.closures, *here)
        slices = [given.m.q_slices[name] for name in given.closures]
        origin[:, np.concatenate([np.arange(given.m.nq)[at] for at in slices])] = coordinates
    goal, _ = path.goal(every, np.zeros(given.runs))
    q = origin.copy()
    q[:, given.entries] = goal
    for turn in given.m.quaternions.values():  # of the two quaternions of an attitude the one nearer to the first sample
        origin[:, turn] *= np.where((origin[:, turn] * q[:, turn]).sum(axis=1, keepdims=True) < 0, -1.0, 1.0)
    problem = path.problem(every, every * 0)
    v = np.zeros((given.runs, given.m.nv))
    found = find_state(problem, check_configuration(given.m, q), v, origin)
    lost = np.flatnonzero(~found.states.closed | ~found.continued)
    if len(lost):
        found.states.put(lost, newton(problem.take(lost).released(), origin[lost], v[lost]))
    return found.states


def _coordinates(position: Any, rotation: Any, place: Any, m: Mechanism, name: str) -> np.ndarray:
    """(runs, k) coordinates of the joint that gives a body's pose: position, quaternion, or both, of the tool."""
    X = np.array(m.value(place.p)).reshape(3)
    R = np.array(m.value(place.R)).reshape(3, 3)
    p, rotation = np.atleast_2d(position + rotation @ X), np.reshape(rotation @ R, (-1, 3, 3))
    turn = so3.quaternions(rotation)
    return {3: p, 4: turn, 7: np.hstack([p, turn])}[m.q_slices[name].stop - m.q_slices[name].start]


def trajectory(path: FollowedMotion, m: Mechanism, begin: State) -> Trajectory:
    """The Trajectory of a path, whose runs begin in these states.   m: the caller's mechanism.

    Raises RunError: no sample of any run is within reach.
    Warns RunWarning: samples out of reach, singular passages.
    """
    given, n, runs = path.given, len(path.given.times), path.given.runs
    filled, free = along(path, begin)
    if not filled.good.any():
        problem, (goal, _) = path.problem(np.array([0]), np.array([0])), path.goal(np.array([0]), np.array([0.0]))
        q = begin.q[[0]].copy()
        q[:, given.entries] = goal
        stuck = find_state(problem, q, 0 * begin.v[[0]]).states
        raise RunError(_elsewhere(path, m, stuck.q[0]) if stuck.closed[0] else explain(problem, stuck, q, 0 * begin.v[[0]]))
    found = _rates(path, filled, free)
    lost = _lost(path, filled, begin)
    passages = _passages(path, filled, found)
    q_entries = [given.m.q_names.index(name) for name in m.q_names]
    v_entries = [given.m.v_names.index(name) for name in m.v_names]
    bad = ~filled.good

    def shaped(x: np.ndarray) -> np.ndarray:
        if x.ndim == 1:
            x = x.reshape(runs, n).T
            return x if given.many else x[:, 0]
        x = x.T.reshape(-1, runs, n).transpose(2, 1, 0)
        return x if given.many else x[:, 0]

    q, v, a = filled.q, found.v, found.v_dot
    if len(q_entries) < given.m.nq:
        q, v, a = q.T[q_entries].T, v.T[v_entries].T, a.T[v_entries].T
    if not given.timed:
        v.fill(np.nan)
        a.fill(np.nan)
    for x in (q, v, a):
        x.T[:, bad] = np.nan
    regularity = np.where(bad, np.nan, found.regularity)
    branch = _branches(path, filled)
    rest = shaped(filled.good), shaped(filled.off), shaped(regularity), branch if given.many else branch[0]
    names = [name for name in coordinates_of_closures(m) if name in given.m.q_names]
    values = {name: filled.q[:, given.m.q_names.index(name)].reshape(runs, n).T for name in names}
    closures = ClosuresAlong(m, path.p, given.times if given.timed else np.array([path.t]), path.backend, values)
    answer = Trajectory(shaped(q), shaped(v), shaped(a), *rest, passages, lost, m.q_names, m.v_names, given.times, closures)
    _tell(path, answer)
    return answer


def _elsewhere(path: FollowedMotion, m: Mechanism, q: np.ndarray) -> str:
    """Message that the first sample is on another branch than the start.   m: the caller's.   q: (nq,) a state there."""
    at = {name: path.given.m.q_names.index(name) for name in m.q_names}
    values = [f"{name!r}: {q[i]:.4g}" for name, i in at.items() if not path.given.entries[i]]
    guess = ", ".join([*values[:GUESSED], *["..."] * (len(values) > GUESSED)])
    return (
        "the branch of the start does not reach the first sample, which other branches have: singular configurations, or "
        f"motions out of reach, lie between; start near an assembly of that sample, guess={{{guess}}}"
    )


def _rates(path: FollowedMotion, filled: Filled, free: np.ndarray) -> StateRates:
    """The StateRates of all samples, without q_dot; where motions stay free, their accelerations are those of the velocities'
    splines, and without them there is no w."""
    m, n = path.given.m, len(path.given.times)
    N, loose = len(filled.good), bool((free > 0).any())
    v, v_dot = (np.empty((m.nv, N)).T for _ in range(2))
    numbers = [np.empty(N) for _ in range(3)]
    q_dot = np.empty((m.nq, min(BLOCK, N))).T  # of one block
    every_w = np.empty((m.nv, N if loose else len(q_dot))).T
    a_free = np.zeros((0, m.nv))
    for again in range(1 + loose):
        if again:
            a_free = np.zeros((m.nv, N)).T
            for r in range(path.given.runs):
                w = np.where(filled.good[r * n : (r + 1) * n, None], every_w[r * n : (r + 1) * n], 0)
                a_free[r * n : (r + 1) * n] = spline_slopes(path.given.times, w).first
        for b in range(0, N, BLOCK):
            part = slice(b, min(b + BLOCK, N))
            run, sample = np.divmod(np.arange(b, part.stop), n)
            w = np.zeros((m.nv, len(run))).T
            a = a_free[part].copy() if again else w.copy()
            w[:, path.given.fixed], a[:, path.given.fixed] = path.given.w[part], path.given.a[part]
            into = StateRates(
                v[part],
                v_dot[part],
                q_dot[: len(run)],
                every_w[part if loose else slice(len(run))],
                *[x[part] for x in numbers],
            )
            rates(path.problem(run, sample), filled.q[part], w, a, into)
    return StateRates(v, v_dot, q_dot[:0], every_w if loose else every_w[:0], *numbers)


def _branches(path: FollowedMotion, filled: Filled) -> np.ndarray:
    """(runs,) index of the branch of each run at its first sample that is reached, UNKNOWN where none is."""
    n, runs = len(path.given.times), path.given.runs
    good = filled.good.reshape(runs, n)
    first = good.argmax(axis=1)
    q = filled.q[np.arange(runs) * n + first]
    return np.where(good.any(axis=1), branch_and_distance(path.problem(np.arange(runs), first), q, q)[0], UNKNOWN)


def _lost(path: FollowedMotion, filled: Filled, begin: State) -> tuple[LostSamples, ...]:
    """The stretches that are not reached; `filled.off` gets their residuals."""
    n, found = len(path.given.times), list[LostSamples]()
    good = filled.good.reshape(path.given.runs, n)
    for r in np.flatnonzero(~good.all(axis=1)):
        edges = np.diff(np.r_[False, ~good[r], False].astype(int))
        for first, stop in zip(np.flatnonzero(edges == 1), np.flatnonzero(edges == -1), strict=True):
            near = filled.q[r * n + first - 1] if first else begin.q[r]
            sample = np.arange(first, stop)
            q = np.repeat(near[None], len(sample), axis=0)
            q[:, path.given.entries] = path.given.values[r * n + sample]
            left = descent(path.problem(np.full(len(sample), r), sample), q, np.zeros((len(sample), path.given.m.nv)))
            filled.off[r * n + sample] = rest = worst_of(left.phi)
            found.append(LostSamples(int(r), int(first), int(stop) - 1, int(first + rest.argmax()), float(rest.max())))
    return tuple(found)


def _passages(path: FollowedMotion, filled: Filled, found: StateRates) -> tuple[SingularSample, ...]:
    """The minima of the regularity below NEAR, and the samples where rank is lost."""
    each = path.given.runs, len(path.given.times)
    good, rank = filled.good.reshape(each), found.rank.reshape(each)
    full = np.where(good, rank, 0).max(axis=1, keepdims=True)
    x = np.where(good, np.where(rank < full, 0.0, found.regularity.reshape(each)), np.inf)
    before, after = (np.full_like(x, np.inf) for _ in range(2))
    before[:, 1:], after[:, :-1] = x[:, :-1], x[:, 1:]
    row, times = found.row.reshape(each), path.given.times
    return tuple(
        SingularSample(int(r), int(i), float(times[i]), float(x[r, i]), row_name(path.given.m, int(row[r, i])))
        for r, i in np.argwhere((x < NEAR) & (x < before) & (x <= after))
    )


def _tell(path: FollowedMotion, found: Trajectory) -> None:
    """Warn RunWarning about samples out of reach and singular passages."""
    n, times = len(path.given.times), path.given.times
    if found.lost:
        worst = found.lost[0]
        run = f" of run {worst.run}" if path.given.runs > 1 else ""
        when = f", t = {times[worst.first]:.6g} to {times[worst.last]:.6g} s" if path.given.timed else ""
        more = f", and in {plural(len(found.lost) - 1, 'other part')} (see 'lost')" if len(found.lost) > 1 else ""
        notice(
            f"the branch of the first sample does not reach the samples {worst.first} to {worst.last} of {n}{run}{when}: up to "
            f"{worst.residual:.3g} of the constraints stays open, at sample {worst.worst}{more}; they are NaN. pf.assemble of "
            "that sample alone names the coordinate in the way and its nearest possible value",
            RunWarning,
        )
    if found.passages:
        least = min(found.passages, key=lambda x: x.regularity)
        run = f" of run {least.run}" if path.given.runs > 1 else ""
        notice(
            f"{plural(len(found.passages), 'singular passage')}, the closest at sample {least.sample}{run}: regularity "
            f"{least.regularity:.2g}, where row {least.row!r} almost depends on the others; rates are large or uncertain there "
            "(see 'passages')",
            RunWarning,
        )
