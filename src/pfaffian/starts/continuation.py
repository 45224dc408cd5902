"""Ways onto the constraints that stay on one branch: steps so short that Newton's iterations cannot jump to another assembly.

A mechanism has several assemblies for the same values of the coordinates that are held. Which of them a full Newton step ends
on is chance, where the loops bend strongly within the step. By the theorem of Newton and Kantorovich a start whose iterations
contract by a quarter from the first step on has one solution near it, so such a start, and such a stride, cannot leave its
branch.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pfaffian.model.mechanism import check_configuration
from pfaffian.starts.branch import UNKNOWN, sides
from pfaffian.starts.newton import Problem, evaluated, fixed_entries, position_step
from pfaffian.starts.whole_turns import turns_of_slides
from pfaffian.terms.lengths import scales

CONTRACTS = 0.25
"""Largest length of the second Newton step relative to the first one at which a start has one solution near it."""

SMALL = 0.003
"""Length of a correction, relative to the stride, that needs no second one."""

NEGLIGIBLE = 1e-9
"""Length of a step that is rounding [rad, machine lengths]."""

SINGULAR_STRIDE, SINGULAR_STEP = 1e-6, 1e-3
"""Fraction of a way, and of a Newton step, below which a way ends: rows lose rank there. Beside a fold, at a distance e of the
coordinates that move freely, a stride is about e^2."""

TURN = 1.5
"""Largest rotation of a fixed coordinate in one stride [rad]: screws count their turns, which half a turn would leave open."""

DAMPED_STEPS = 12
"""Largest number of damped Newton steps; a start that is no nearer by then goes on as it can."""

ROUNDS = 400
"""Largest number of strides of a way."""

MINUTE = 1e-4
"""Part of a way whose Newton step gives the slope at the beginning."""

MORE = 2
"""Further Newton steps of a state whose branch is compared. Between two branches, where rows lose rank, a step may be short
although the state is not on the constraints."""

FAR = 10.0
"""More than any stride [rad, machine lengths]: a first correction above SMALL times it is not small."""

FEW_LEFT = 0.8
"""Share of the runs still on their way at which the others are put aside."""

LONGER, SHORTER, CAUTION = 4.0, 0.1, 0.8
"""Bounds of the change of a stride, and the fraction of the longest possible one that is tried."""


def contracts(problem: Problem, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(runs,) whether Newton's iterations from q, v (runs, n) contract from the first step on, and q (runs, nq) after two."""
    one = position_step(problem, q, v)
    two = position_step(problem, one, v)
    size = scales(problem.m, problem.p, q, problem.m.q_units)
    return length_of(two - one, size) <= CONTRACTS * length_of(one - q, size) + NEGLIGIBLE, two


def approach(problem: Problem, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """q (runs, nq) from which Newton's iterations contract, by damped Newton steps from q, v (runs, n).

    A step is shortened until the next one neither turns nor reverses by more than CONTRACTS of it, and the way ends with a step
    that need not be shortened.
    """
    m, size, now, move = (
        problem.m,
        scales(problem.m, problem.p, q, problem.m.q_units),
        q.copy(),
        position_step(problem, q, v) - q,
    )
    part, ended = np.ones(len(q)), ~np.isfinite(move).all(axis=1)
    for _ in range(DAMPED_STEPS):
        going = np.flatnonzero(~ended & (part > SINGULAR_STEP))
        if not len(going):
            break
        sub, step = problem.take(going), part[going, None] * move[going]
        trial = check_configuration(m, now[going] + step)
        after = position_step(sub, trial, v[going]) - trial
        turned = length_of(after - _along(after, move[going], size[going]), size[going])
        ratio = turned / np.maximum(CONTRACTS * length_of(step, size[going]), NEGLIGIBLE)
        good = ratio <= 1
        accepted = going[good]
        now[accepted], move[accepted] = trial[good], after[good]
        ended[accepted] = part[accepted] == 1
        part[going] = np.minimum(1.0, part[going] * _change(ratio))
    return check_configuration(m, now + np.where(ended[:, None] & np.isfinite(move), move, 0))


class Way(NamedTuple):
    """Runs on their way, what `follow` keeps of each; arrays with the runs last, so that whole rows are added at once.

    at: (k,) index of the run.   problem: of these runs.   q: (nq, k) state.   slope: (nq, k) its change by `part` along the
    last stride.   bend: (nq, k) divided difference of the last two slopes.   begin, change: (h, k) fixed entries at the
    beginning, and their change along the whole way.   size: (nq, 1 or k) scales of changes.   part, last, stride, longest: (k,)
    fractions of the way: walked, the last stride, the next one, and its bound.   side: (k,) index of the branch that a stride
    must not leave; UNKNOWN where it is not compared.
    """

    at: np.ndarray
    problem: Problem
    q: np.ndarray
    slope: np.ndarray
    bend: np.ndarray
    begin: np.ndarray
    change: np.ndarray
    size: np.ndarray
    part: np.ndarray
    last: np.ndarray
    stride: np.ndarray
    longest: np.ndarray
    side: np.ndarray

    def take(self, some: np.ndarray) -> Way:
        """The ways of the marked runs."""
        arrays = {name: x[..., some] for name, x in self._asdict().items() if isinstance(x, np.ndarray) and x.shape[-1] > 1}
        return self._replace(problem=self.problem.take(some), **arrays)


def follow(
    problem: Problem, begin: np.ndarray, goal: np.ndarray, side: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Follow states `begin` (runs, nq) on the constraints while their fixed entries move straight to those of `goal`.

    A stride begins with the way of the last ones, continued as a parabola, and Newton steps correct it. It is right if the
    first correction is small, or the second one a small part of it. All runs fix the same coordinates.   goal: (runs, nq).
    side: (runs,) index of the branch at the beginning, if strides that end on another one are to be shortened: beside a
    singular configuration two branches come so close that Newton's iterations contract onto either.
    Returns (runs,) the fraction of the way, 1 where it ends at the goal, and q (runs, nq) there, near the constraints.
    """
    m, entries = problem.m, fixed_entries(problem.m, problem.fixed.q[:1])[0]
    assert (problem.fixed.q == problem.fixed.q[:1]).all()
    given, passive, bound = np.flatnonzero(entries), np.flatnonzero(~entries), m.quaternions or m.coordinates
    longest = TURN / np.maximum(rotations(problem, begin, goal), TURN)
    q, ends, size = np.array(begin.T, order="C"), goal.T[given], scales(m, problem.p, goal, m.q_units).T
    size = size[:, :1] if (size == size[:, :1]).all() else size
    zeros, none = np.zeros_like(q), np.zeros(len(goal))
    side = np.full(len(goal), UNKNOWN) if side is None else side
    at, change = np.arange(len(goal)), ends - q[given]
    way = Way(at, problem, q, zeros, zeros.copy(), q[given], change, size, none, none, longest, longest, side)
    slope = _tangent(way, given)
    way = way._replace(slope=slope, stride=longest * TURN / np.maximum(_longest(longest * slope, size), TURN))
    ended, at_end = np.zeros(len(goal)), np.array(begin, order="F")
    for _ in range(ROUNDS):
        going = (way.part < 1) & (way.stride > SINGULAR_STRIDE * way.longest)
        if going.sum() <= FEW_LEFT * len(going):
            ended[way.at], at_end.T[:, way.at] = way.part, way.q
            way, going = way.take(going), going[going]
        if not len(going):
            break
        part = np.minimum(way.part + way.stride, 1.0)
        length = part - way.part
        x = way.bend * (length + way.last)
        x += way.slope
        x *= length
        x += way.q
        x[given] = np.where(part == 1, ends[:, way.at], way.begin + part * way.change)
        x = check_configuration(m, x.T).T if bound else x
        after, ratio = _corrected(way, x, going, passive)
        way = _walked(way, going, part, after, ratio, x)
    ended[way.at], at_end.T[:, way.at] = way.part, way.q
    return ended, at_end


def _tangent(way: Way, given: np.ndarray) -> np.ndarray:
    """(nq, k) the slopes at the beginning of ways, from a Newton step after a minute part of each.

    given: the fixed entries of q.
    """
    x = way.q.copy()
    x[given] += MINUTE * way.change
    slope = _stepped(way.problem, x)
    slope -= way.q
    return slope / MINUTE


def _walked(way: Way, going: np.ndarray, part: np.ndarray, after: np.ndarray, ratio: np.ndarray, spare: np.ndarray) -> Way:
    """The ways after strides to states `after` (nq, k) at `part` (k,), as far as they are right.

    ratio: as of `_corrected`.   spare: (nq, k) memory that is overwritten.
    """
    length = np.where(going, part - way.part, 1.0)
    good = going & (ratio <= 1)
    slope = np.subtract(after, way.q, out=spare)
    slope /= length
    np.copyto(way.q, after, where=good)
    bend = np.subtract(slope, way.slope, out=after)
    bend /= length + way.last
    np.copyto(way.bend, bend, where=good & (way.last > 0))
    np.copyto(way.slope, slope, where=good)
    return way._replace(
        part=np.where(good, part, way.part),
        last=np.where(good, length, way.last),
        stride=np.where(going, np.minimum(length * _change(ratio), way.longest), way.stride),
    )


def _corrected(way: Way, x: np.ndarray, going: np.ndarray, passive: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """States (nq, k) after one or two Newton steps from predictions x (nq, k), which are overwritten, and (k,) errors of the
    strides relative to the largest that are accepted.   passive: the entries of q that are not fixed."""
    after = _stepped(way.problem, x)
    first = _longest(np.subtract(after, x, out=x), way.size)
    again = going.copy()
    near = np.flatnonzero(going & (way.part > 0) & (first <= SMALL * FAR))
    if len(near):
        moved = _longest((after[:, near] - way.q[:, near])[passive], _of(way.size, near)[passive])
        again[near] = (first[near] > SMALL * moved + NEGLIGIBLE) | (way.side[near] != UNKNOWN)
    ratio = np.full(len(first), CAUTION / LONGER)
    if again.any():
        some = slice(None) if again.all() else again
        two = _stepped(way.problem.take(some), after[:, some])
        second = _longest(two - after[:, some], _of(way.size, again))
        after[:, some] = two
        ratio[again] = np.maximum(second - NEGLIGIBLE, 0) / np.maximum(CONTRACTS * first[again], NEGLIGIBLE)
    watched = np.flatnonzero(going & (way.side != UNKNOWN))
    if len(watched):
        mine = way.problem.take(watched)
        for _ in range(MORE):
            after[:, watched] = _stepped(mine, after[:, watched])
        reached = evaluated(mine, after.T[watched], np.zeros((len(watched), mine.m.nv)))
        ratio[watched[~reached.closed | (sides(mine, after.T[watched]) != way.side[watched])]] = np.inf
    return after, ratio


def _stepped(problem: Problem, q: np.ndarray) -> np.ndarray:
    """(nq, runs) a Newton step from q (nq, runs), in an array of its own."""
    return np.array(position_step(problem, q.T, np.zeros((q.shape[1], problem.m.nv))).T, order="C", copy=None)


def _of(size: np.ndarray, at: np.ndarray) -> np.ndarray:
    """The columns `at` of scales (nq, 1 or runs)."""
    return size if size.shape[1] == 1 else size[:, at]


def _longest(x: np.ndarray, size: np.ndarray) -> np.ndarray:
    """`length_of` of changes x (nq, runs), which are overwritten."""
    np.abs(x, out=x)
    x /= size
    length = x.max(axis=0, initial=0.0)
    return np.where(np.isfinite(length), length, np.inf)


def rotations(problem: Problem, q: np.ndarray, goal: np.ndarray) -> np.ndarray:
    """(runs,) the largest rotation of a fixed coordinate, or of a screw that a fixed slide turns, on the way from q to `goal`
    (runs, nq) [rad]."""
    angle = np.array([unit == "rad" for unit in problem.m.q_units]) + turns_of_slides(problem.m, problem.p)
    return np.asarray(
        np.abs(np.where(fixed_entries(problem.m, problem.fixed.q), (goal - q) * angle, 0)).max(axis=1, initial=0.0)
    )


def _change(ratio: np.ndarray) -> np.ndarray:
    """(runs,) factors of strides whose errors are `ratio` times the largest that are accepted; errors grow with the stride."""
    return np.clip(CAUTION / np.maximum(np.where(np.isfinite(ratio), ratio, np.inf), CAUTION / LONGER), SHORTER, LONGER)


def _along(x: np.ndarray, way: np.ndarray, size: np.ndarray) -> np.ndarray:
    """(runs, nq) the multiple of `way`, between zero and one, that is nearest to x (runs, nq)."""
    squared = ((way / size) ** 2).sum(axis=1, keepdims=True)
    part = ((x * way) / size**2).sum(axis=1, keepdims=True) / np.maximum(squared, np.finfo(float).tiny)
    return way * np.clip(part, 0, 1)


def length_of(x: np.ndarray, size: np.ndarray) -> np.ndarray:
    """(runs,) the largest entry of changes x (runs, nq) relative to their scales; infinite where it is NaN."""
    length = np.abs(x / size).max(axis=1, initial=0.0)
    return np.where(np.isfinite(length), length, np.inf)
