"""Ways onto the constraints that stay on one branch: steps so short that Newton's iterations cannot jump to another assembly.

A mechanism has several assemblies for the same values of the coordinates that are held. Which of them a full Newton step ends
on is chance, where the loops bend strongly within the step. By the theorem of Newton and Kantorovich a start whose iterations
contract by a quarter from the first step on has one solution near it, so such a start, and such a stride, cannot leave its
branch.
"""

from __future__ import annotations

import numpy as np

from pfaffian.model.mechanism import check_configuration
from pfaffian.starts.newton import Problem, State, fixed_entries, position_step
from pfaffian.terms.lengths import scales

CONTRACTS = 0.25
"""Largest length of the second Newton step relative to the first one at which a start has one solution near it."""

SMALL = 0.003
"""Length of a correction, relative to the stride, that needs no second one."""

NEGLIGIBLE = 1e-9
"""Length of a step that is rounding [rad, machine lengths]."""

SINGULAR_STRIDE = 1e-2
"""Fraction of the longest stride, or of a Newton step, below which a way ends: rows lose rank there."""

TURN = 1.5
"""Largest rotation of a fixed coordinate in one stride [rad]: screws count their turns, which half a turn would leave open."""

DAMPED_STEPS = 12
"""Largest number of damped Newton steps; a start that is no nearer by then goes on as it can."""

ROUNDS = 400
"""Largest number of strides of a way."""

LONGER, SHORTER, CAUTION = 4.0, 0.1, 0.8
"""Bounds of the change of a stride, and the fraction of the longest possible one that is tried."""


def contracts(problem: Problem, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(runs,) whether Newton's iterations from q, v (runs, n) contract from the first step on, and q (runs, nq) after two."""
    one = position_step(problem, q, v)
    two = position_step(problem, one, v)
    size = scales(problem.m, problem.p, q, problem.m.q_units)
    return _length(two - one, size) <= CONTRACTS * _length(one - q, size) + NEGLIGIBLE, two


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
        going = np.flatnonzero(~ended & (part > SINGULAR_STRIDE))
        if not len(going):
            break
        sub, step = problem.take(going), part[going, None] * move[going]
        trial = check_configuration(m, now[going] + step)
        after = position_step(sub, trial, v[going]) - trial
        turned = _length(after - _along(after, move[going], size[going]), size[going])
        ratio = turned / np.maximum(CONTRACTS * _length(step, size[going]), NEGLIGIBLE)
        good = ratio <= 1
        accepted = going[good]
        now[accepted], move[accepted] = trial[good], after[good]
        ended[accepted] = part[accepted] == 1
        part[going] = np.minimum(1.0, part[going] * _change(ratio))
    return check_configuration(m, now + np.where(ended[:, None] & np.isfinite(move), move, 0))


def follow(problem: Problem, begin: State, goal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Follow states on the constraints while their fixed entries move straight to their values in `goal` (runs, nq).

    A stride begins with the way of the last one, continued, and Newton steps correct it. It is right if the first correction is
    small, or the second one a small part of it.
    Returns (runs,) the fraction of the way, 1 where it ends at the goal, and q (runs, nq) there, near the constraints.
    """
    m, entries = problem.m, fixed_entries(problem.m, problem.fixed.q)
    size, part = scales(m, problem.p, goal, m.q_units), np.zeros(len(goal))
    longest = TURN / np.maximum(rotations(problem, begin.q, goal), TURN)
    stride = longest.copy()
    now, way, v = begin.q.copy(), np.zeros_like(goal), begin.v
    for _ in range(ROUNDS):
        going = np.flatnonzero((part < 1) & (stride > SINGULAR_STRIDE * longest))
        if not len(going):
            break
        next_part = np.minimum(part[going] + stride[going], 1.0)
        change = next_part - part[going]
        target = begin.q[going] + next_part[:, None] * (goal[going] - begin.q[going])
        target = np.where(next_part[:, None] == 1, goal[going], target)
        q = check_configuration(m, np.where(entries[going], target, now[going] + change[:, None] * way[going]))
        after = position_step(problem.take(going), q, v[going])
        moved, first = _length(np.where(entries[going], 0, after - now[going]), size[going]), _length(after - q, size[going])
        ratio = np.full(len(going), CAUTION / LONGER)
        again = np.flatnonzero((first > SMALL * moved + NEGLIGIBLE) | (part[going] == 0))
        if len(again):
            before, at = after[again], going[again]
            after[again] = position_step(problem.take(at), before, v[at])
            second = _length(after[again] - before, size[at])
            ratio[again] = np.maximum(second - NEGLIGIBLE, 0) / np.maximum(CONTRACTS * first[again], NEGLIGIBLE)
        good = ratio <= 1
        accepted = going[good]
        way[accepted] = (after[good] - now[accepted]) / change[good, None]
        now[accepted], part[accepted] = after[good], next_part[good]
        stride[going] = np.minimum(change * _change(ratio), longest[going])
    return part, now


def rotations(problem: Problem, q: np.ndarray, goal: np.ndarray) -> np.ndarray:
    """(runs,) the largest rotation of a fixed coordinate on the way from q to its value in `goal` (runs, nq) [rad]."""
    angles = fixed_entries(problem.m, problem.fixed.q) & np.array([unit == "rad" for unit in problem.m.q_units], dtype=bool)
    return np.asarray(np.abs(np.where(angles, goal - q, 0)).max(axis=1, initial=0.0))


def _change(ratio: np.ndarray) -> np.ndarray:
    """(runs,) factors of strides whose errors are `ratio` times the largest that are accepted; errors grow with the stride."""
    return np.clip(CAUTION / np.maximum(np.where(np.isfinite(ratio), ratio, np.inf), CAUTION / LONGER), SHORTER, LONGER)


def _along(x: np.ndarray, way: np.ndarray, size: np.ndarray) -> np.ndarray:
    """(runs, nq) the multiple of `way`, between zero and one, that is nearest to x (runs, nq)."""
    squared = ((way / size) ** 2).sum(axis=1, keepdims=True)
    part = ((x * way) / size**2).sum(axis=1, keepdims=True) / np.maximum(squared, np.finfo(float).tiny)
    return way * np.clip(part, 0, 1)


def _length(x: np.ndarray, size: np.ndarray) -> np.ndarray:
    """(runs,) the largest entry of changes x (runs, nq) relative to their scales; infinite where it is NaN."""
    length = np.abs(x / size).max(axis=1, initial=0.0)
    return np.where(np.isfinite(length), length, np.inf)
