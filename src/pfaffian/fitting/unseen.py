"""How well fitted numbers predict records that they have not seen, beside predictions that need no model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from pfaffian.errors import RunError
from pfaffian.fitting.guesses import guesses
from pfaffian.fitting.linear_step import Settings
from pfaffian.fitting.problem import FitProblem, evaluate
from pfaffian.fitting.records import CheckedRecord
from pfaffian.fitting.segments import Segments, cut, usual_interval
from pfaffian.fitting.solve import FitSolution, solve
from pfaffian.fitting.unknowns import of_records

LEAD = 4
"""Usual intervals before a prediction, from whose samples its start is estimated."""

WINDOWS = 10
"""Predictions in a horizon: they begin so many times as often as the horizon is long."""

RIVALS = ("persistence", "constant speed", "start values")
"""What a fit has to beat."""


def unseen(
    problem: FitProblem, solution: FitSolution, first: np.ndarray, records: tuple[CheckedRecord, ...], horizons: Sequence[float]
) -> pd.DataFrame:
    """Root mean square errors at the end of each horizon, of a solution, of the numbers `first`, of the last measured value,
    and of a straight line through the last ones. One row for each horizon and measured number."""
    rows = list[dict[str, float | str]]()
    unknowns = of_records(problem.unknowns, [r.name for r in problem.records], [r.name for r in records])
    for horizon in horizons:
        lead = LEAD * usual_interval(records)
        segments = cut(records, lead + horizon, every=max(horizon / WINDOWS, usual_interval(records)))
        last = segments.at >= lead + horizon - 0.75 * usual_interval(records)
        segments = _whole(segments, last)
        here = problem._replace(records=records, segments=segments, unknowns=unknowns)
        known = {
            "fit": _at_end(here, solution.theta, solution, lead),
            "persistence": _line(here, lead, horizon, 0),
            "constant speed": _line(here, lead, horizon, 1),
            "start values": _at_end(here, first, solution, lead),
        }
        for i, label in enumerate(problem.layout.labels):
            row = {name: float(x[i]) for name, x in known.items()}
            better = [n for n in RIVALS if row[n] < row["fit"]]
            rows.append({"horizon": horizon, "signal": label, **row, "loses to": ", ".join(better)})
    return pd.DataFrame(rows).set_index(["horizon", "signal"])


def _whole(segments: Segments, last: np.ndarray) -> Segments:
    """The segments that reach the horizon. Raises RunError: none does."""
    whole = last.any(axis=1)
    if not whole.any():
        raise RunError("unseen: no record is as long as the horizon; give shorter horizons")
    return segments._replace(
        record=segments.record[whole], begin=segments.begin[whole], at=segments.at[whole], y=segments.y[whole]
    )


def _at_end(problem: FitProblem, theta: np.ndarray, near: FitSolution, lead: float) -> np.ndarray:
    """(ny,) errors at the last sample of each segment, predicted from a start that fits its first samples.

    near: its weights serve, and coordinates that are not measured start near its first ones, which closes loops as there.
    """
    p, values = problem.at(theta)
    segments, m = problem.segments, problem.of.s.mechanism
    seen = np.where((segments.at <= lead * (1 + 1e-9))[..., None], segments.y, np.nan)
    fixed = problem._replace(segments=segments._replace(y=seen), free=(), p=p)
    x = guesses(m, problem.layout, problem.records, segments, near.fitted.x[0, : m.nq], p)
    x = np.hstack([x, np.tile(problem.of.s.z, (len(x), 1))])
    n = len(values)
    pinned = Settings(np.column_stack([values, values]), np.tile([0.0, np.inf], (n, 1)), 20, lambda _: True)
    solution = solve(fixed, values, x, near.deviation, pinned, near=True)
    found = solution and evaluate(fixed._replace(segments=segments), values, solution.fitted.x, near.deviation)
    if not found:
        return np.full(len(near.deviation), np.inf)
    return _rms(found.residual, segments)


def _line(problem: FitProblem, lead: float, horizon: float, order: int) -> np.ndarray:
    """(ny,) errors of a polynomial of this order through the first samples."""
    segments = problem.segments
    error = np.full_like(segments.y, np.nan)
    for i in range(segments.runs):
        early = segments.at[i] <= lead * (1 + 1e-9)
        for j in range(segments.y.shape[2]):
            good = early & np.isfinite(segments.y[i, :, j])
            if good.sum() <= order:
                continue
            t, y = segments.at[i][good], segments.y[i, good, j]
            line = np.polyfit(t, y, 1) if order else np.array([0.0, y[-1]])
            error[i, :, j] = segments.y[i, :, j] - np.polyval(line, segments.at[i])
    return _rms(error, segments)


def _rms(error: np.ndarray, segments: Segments) -> np.ndarray:
    """(ny,) root mean square of errors (segments, samples, ny) at the last sample of each segment."""
    last = error[np.arange(segments.runs), np.argmax(segments.at, axis=1)]
    count = np.isfinite(last).sum(axis=0)
    return np.sqrt(np.divide(np.nansum(last**2, axis=0), count, out=np.full(len(count), np.nan), where=count > 0))
