"""Whether the residuals of a solution are so large that it may be a false minimum."""

from __future__ import annotations

import numpy as np

from pfaffian.fitting.problem import FitProblem
from pfaffian.fitting.records import noise
from pfaffian.fitting.solve import FitSolution

FAR, PART = 10.0, 0.02
"""Residuals more than FAR times as large as the noise, and than PART of the spread of the measured motion, are doubtful: those
of a good model of a machine are small beside one of the two."""


def doubt(problem: FitProblem, solution: FitSolution) -> str:
    """What is wrong with residuals that are large beside both the noise and the motion; empty where they are not."""
    columns = [y[np.isfinite(y)] for y in problem.segments.y.reshape(-1, problem.segments.y.shape[2]).T]
    spread = np.array([np.std(y) if y.size else np.inf for y in columns])
    times = np.where(solution.deviation > PART * spread, solution.deviation / noise(problem.records), 0.0)
    if not (times > FAR).any():
        return ""
    i = int(np.argmax(times))
    return (
        f"residuals of {problem.layout.labels[i]!r} are {times[i]:.2g} times as large as the noise of its record: these may be "
        f"the numbers of a false minimum, or the equations lack something; give start= or guess= nearer to the truth, or "
        f"another horizon"
    )
