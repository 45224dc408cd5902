"""Whether the residuals of a solution are so large that it may be a false minimum."""

from __future__ import annotations

import numpy as np

from pfaffian.fitting.problem import FitProblem
from pfaffian.fitting.records import noise
from pfaffian.fitting.solve import FitSolution
from pfaffian.fitting.starts import DEPENDENT

FAR, PART = 5.0, 0.02
"""Residuals more than FAR times as large as the noise, and than PART of the spread of the measured motion, are doubtful: those
of a good model of a machine are small beside one of the two."""

NOISY = 1.5
"""Residuals so many times as large as the noise are doubtful where coordinates are hidden: wrong starts then make up for much
of what wrong numbers do."""


def hidden(problem: FitProblem, solution: FitSolution) -> bool:
    """Whether the configuration may move freely without a change of the measured coordinates."""
    at = problem.layout.slices.get("q")
    if at is None:
        return False
    measured = np.isfinite(problem.segments.y[:, :, at]).any(axis=(0, 1))
    moves = solution.fitted.basis[:, : len(measured)]
    seen, all_of_them = (int(np.linalg.matrix_rank(x, tol=DEPENDENT).max()) for x in (moves[:, measured], moves))
    return seen < all_of_them


def times_noise(problem: FitProblem, solution: FitSolution) -> np.ndarray:
    """(ny,) by how much the residuals of each measured number are larger than its noise."""
    return solution.deviation / noise(problem.records)


def doubt(problem: FitProblem, solution: FitSolution) -> str:
    """What is wrong with residuals that are large beside both noise and motion, or that grow with the length of segments; empty
    where nothing is."""
    columns = [y[np.isfinite(y)] for y in problem.segments.y.reshape(-1, problem.segments.y.shape[2]).T]
    spread = np.array([np.std(y) if y.size else np.inf for y in columns])
    times, unseen = times_noise(problem, solution), hidden(problem, solution)
    times = np.where(unseen | (solution.deviation > PART * spread), times, 0.0)
    if not (times > (NOISY if unseen else FAR)).any():
        return _torn(problem, solution)
    i = int(np.argmax(times))
    segment, sample = np.unravel_index(np.nanargmax(np.abs(solution.fitted.residual[:, :, i])), problem.segments.at.shape)
    record = problem.records[problem.segments.record[segment]].name
    time = problem.segments.begin[segment] + problem.segments.at[segment, sample]
    return (
        f"residuals of {problem.layout.labels[i]!r} are {times[i]:.2g} times as large as the noise of its record, the largest "
        f"in {record} at {time:.4g} s: these may be the numbers of a false minimum, or the equations lack something; give "
        f"start= or guess= nearer to the truth, or another horizon{_turns(problem)}"
    )


def _torn(problem: FitProblem, solution: FitSolution) -> str:
    """What is wrong where starts of hidden coordinates do not lie on one motion; empty where they do."""
    if solution.growth is None or not (solution.growth > NOISY).any():
        return ""
    i = int(np.argmax(solution.growth))
    return (
        f"coordinates that are not measured do not go on from one segment to the next: over segments twice as long, residuals "
        f"of {problem.layout.labels[i]!r} are {solution.growth[i]:.2g} times as large; these may be the numbers of a false "
        f"minimum, or the equations lack something; give guess= or start= nearer to the truth, or measure more"
    )


def _turns(problem: FitProblem) -> str:
    """A way out where a measured angle changes by more than a turn."""
    at, m = problem.layout.slices.get("q"), problem.of.s.mechanism
    if at is None:
        return ""
    y = problem.segments.y[:, :, at].reshape(-1, m.nq)
    for name, unit, q in zip(m.q_names, m.q_units, y.T, strict=True):
        seen = q[np.isfinite(q)]
        if unit == "rad" and seen.size and np.ptp(seen) > 2 * np.pi:
            return f"; {name!r} changes by {np.ptp(seen):.3g} rad, so if these are degrees, write units={{'q': 'deg'}}"
    return ""
