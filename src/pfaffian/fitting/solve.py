"""Gauss-Newton with a trust region, for residuals whose starts are eliminated segment by segment (variable projection)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pfaffian.fitting.determined import uncertainty
from pfaffian.fitting.linear_step import Settings, bounded_step, reduced
from pfaffian.fitting.problem import HUBER, FitProblem, Fitted, evaluate

CONVERGED = 1e-2
"""A step counts as the last if the square of its length, in standard errors, is below this."""

REJECTED = 14
"""Most steps tried from one point, each with ten times the damping."""

FIRST = 1e-6
"""First damping, relative to the square of each column's length."""

NEAR = 10.0
"""Until the square of a step is below this, all signals have standard deviations in proportion to their noise: residuals of a
poor guess would give a signal that it happens to meet a weight that it never loses."""

SETTLED = 0.01
"""Relative change of a standard deviation that counts as settled."""

SIMILAR = 0.1
"""Relative change of a standard deviation beyond which derivatives with the old weights no longer serve for a shorter step."""

EXACT = 1e-7
"""Smallest standard deviation, relative to the size of the measured signal: data without noise have none."""


class FitSolution(NamedTuple):
    """A solution.

    theta: (n,).   fitted: the problem there.   deviation: (ny,) of the residuals.   converged: whether the last step was small.
    iterations: number of points with derivatives.   decrement: square of the last step in standard errors.
    growth: (ny,) how many times as large residuals are over segments twice as long; None where no coordinate is hidden.
    """

    theta: np.ndarray
    fitted: Fitted
    deviation: np.ndarray
    converged: bool
    iterations: int
    decrement: float
    growth: np.ndarray | None = None


Tell = Callable[[np.ndarray, Fitted, float], None]
"""What is called after each step: with the numbers, the problem there, and the squared length of the step."""


def solve(
    problem: FitProblem, theta: np.ndarray, x: np.ndarray, deviation: np.ndarray, s: Settings, near: bool = False,
    tell: Tell | None = None,
) -> FitSolution | None:  # fmt: skip
    """The numbers theta and starts x of least squares, with standard deviations estimated from the residuals.

    near: whether `deviation` is that of a solution nearby.   None if the motion of the first numbers fails.
    """
    here = evaluate(problem, theta, x, deviation)
    if here is None:
        return None
    damping, decrement, shape = FIRST, np.inf, deviation
    for iteration in range(1, s.most + 1):
        estimated = estimate(problem, here, len(theta))
        common = np.sqrt(np.average((estimated / shape) ** 2, weights=here.counts))
        near = near or decrement < NEAR
        estimated = estimated if near else np.maximum(shape * common, EXACT)
        settled = near and bool((np.abs(estimated / deviation - 1) < SETTLED).all())
        found = _next(problem, theta, here, estimated, damping, s)
        if isinstance(found, float) and settled:
            return FitSolution(theta, here, deviation, found < CONVERGED, iteration, found)
        deviation, near = estimated, near or isinstance(found, float)
        if isinstance(found, float):  # with other standard deviations there may be a step
            here = evaluate(problem, theta, here.x, deviation) or here
            continue
        theta, here, damping, decrement = found
        if tell:
            tell(theta, here, decrement)
        if settled and decrement < CONVERGED * _correlated(problem, here, theta, s):
            return FitSolution(theta, here, deviation, True, iteration, decrement)
    return FitSolution(theta, here, deviation, False, s.most, decrement)


def _next(
    problem: FitProblem, theta: np.ndarray, here: Fitted, deviation: np.ndarray, damping: float, s: Settings
) -> tuple[np.ndarray, Fitted, float, float] | float:
    """The next point, with its damping and the squared length of the step.

    If no step lowers the cost, the squared length of the shortest one that was tried: small at a minimum, also at one with a
    kink, such as a delay at which the samples of an input meet the ends of steps.
    """
    before = _total(problem, here.residual, theta, deviation, s.prior)
    for tried in range(REJECTED):
        step, dx, length, decrement = _step(here, theta, damping, s)
        trial = np.clip(theta + step, s.bounds[:, 0], s.bounds[:, 1])
        moved = evaluate(problem, trial, here.x + dx, deviation) if s.allowed(trial) else None
        if moved and _total(problem, moved.residual, trial, deviation, s.prior) <= before:
            return trial, moved, damping / 10, decrement
        if length < CONVERGED:
            return length
        if tried == 0 and (np.abs(here.deviation / deviation - 1) > SIMILAR).any():
            here = evaluate(problem, theta, here.x, deviation) or here  # its weights were other ones
        damping = max(damping * 10, FIRST)
    return length


def _correlated(problem: FitProblem, here: Fitted, theta: np.ndarray, s: Settings) -> float:
    """The factor by which correlated residuals enlarge the variances."""
    if not len(theta):
        return 1.0
    return uncertainty(reduced(here.triangles, here.basis.shape[2]), theta, problem.typical(theta), s.prior).correlated


def _total(problem: FitProblem, residual: np.ndarray, theta: np.ndarray, deviation: np.ndarray, prior: np.ndarray) -> float:
    """The cost of residuals, and of the distance from the prior."""
    size = np.abs(np.nan_to_num(residual)) / deviation
    linear = HUBER * (2 * size - HUBER)
    cost = np.where(size > HUBER, linear, size**2) if problem.robust else size**2
    return float(cost.sum() + (((theta - prior[:, 0]) / prior[:, 1]) ** 2).sum())


def estimate(problem: FitProblem, here: Fitted, n: int) -> np.ndarray:
    """(ny,) standard deviations of the residuals, with the share of the fitted numbers in them."""
    total = int(here.counts.sum())
    left = max(total - reduced(here.triangles, here.basis.shape[2]).rank - n, 1) / max(total, 1)
    size = np.nanmax(np.abs(np.where(np.isfinite(problem.segments.y), problem.segments.y, 0.0)), axis=(0, 1))
    found = np.sqrt(here.square / np.maximum(here.counts * left, 1))
    return np.maximum(found, EXACT * np.where(size > 0, size, 1.0))


def _step(here: Fitted, theta: np.ndarray, damping: float, s: Settings) -> tuple[np.ndarray, np.ndarray, float, float]:
    """The damped Gauss-Newton step of theta and of the starts, the square of its length in standard errors, and that of the
    step without damping, which alone tells how far the minimum is."""
    k = here.basis.shape[2]
    part = reduced(here.triangles, k, damping)
    step, length = bounded_step(part.R, part.rhs, theta, damping, s)
    whole = reduced(here.triangles, k)
    _, decrement = bounded_step(whole.R, whole.rhs, theta, 0.0, s)
    along = part.starts[:, :, -1] - part.starts[:, :, :-1] @ step
    dx = (here.basis @ along[:, :, None])[:, :, 0]
    return step, dx, length, decrement
