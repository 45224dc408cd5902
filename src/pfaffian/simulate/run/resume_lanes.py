"""A run to an accuracy that continues from the end of another one: `run(m, start_from=result, accuracy=..., duration=...)`.

What is stored is the lane of each run before the step that passes the end, with the length of that step, the memory of its
controller and the inputs in force, and the same of the coarser solution from which the error is estimated. The step is made
again, so that all bits are those of one run, and the error is that since the first run began.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np

from pfaffian.errors import ModelError
from pfaffian.model.mechanism import Mechanism
from pfaffian.simulate.run.controlled import Controlled, LaneStarts
from pfaffian.simulate.run.resume import checked_end, identity
from pfaffian.simulate.run.solver import Solver
from pfaffian.simulate.step.lane import Lane, lane_of, row_size
from pfaffian.simulate.step.simulation import Simulation
from pfaffian.starts.start import Start
from pfaffian.states.abstract_system import show

WHOLE = 1e-9
"""Largest difference of the end of a run from a sample of the inputs, as a fraction of the time between samples."""


class LanesEnd(NamedTuple):
    """The end of runs to an accuracy.

    rows: (runs, n) their lanes, those of their coarser solutions, and inputs, as `end_of_lanes` stores them.
    p: (runs, np) parameters.   tolerance: (runs,) of their steps.   error: (runs, kinds) estimated at the end.
    begin: of the first run [s].   elapsed: since then [s].   seed: of the noise.   digest: of mechanism, state, law and
    switches.   estimated: runs with a coarser solution.
    """

    rows: np.ndarray
    p: np.ndarray
    tolerance: np.ndarray
    error: np.ndarray
    begin: float
    elapsed: float
    seed: Any
    digest: str
    estimated: np.ndarray

    def samples(self, period: float) -> int:
        """Number of samples of inputs until the end, `period` [s] apart. Raises ModelError: it is none of their instants."""
        if not period < np.inf:
            return 0
        count = round(self.elapsed / period)
        if abs(count * period - self.elapsed) > WHOLE * period:
            raise ModelError(
                f"start_from: the result ends after {self.elapsed:g} s, which is no multiple of u_step = {period:g} s: choose "
                "another"
            )
        return count


def end_of_lanes(solver: Solver, done: Controlled) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The variable and the attributes that store the end of a result."""
    meaning = "state before the last step, with the inputs there: run(..., accuracy=, start_from=result) continues from it"
    attributes = {"first_start": solver.begin, "time_made": solver.end}
    return (("run", "state_entry"), done.ends, {"meaning": meaning}), attributes | {"digest": identity(solver.simulation)}


def lanes_end_of(m: Mechanism, result: Any, given: dict[str, Any], accuracy: float) -> LanesEnd:
    """The end of a result.   given: {name: value} of other arguments of the run that set its start.

    Raises ModelError: see `checked_end`; the result is of steps of one length, or of another accuracy.
    """
    r, rows, p = checked_end(m, result, given)
    a = r.attrs
    if "time_made" not in a:
        raise ModelError(f"start_from: the result has steps of one length: take step={a.get('step')!r} in place of accuracy")
    if float(a["accuracy"]) != accuracy:
        raise ModelError(f"start_from: the result has the accuracy {a['accuracy']:g} and this run {accuracy:g}: take that")
    estimated = np.flatnonzero(np.isfinite(rows).all(axis=1))
    start, made = float(a["first_start"]), float(a["time_made"])
    tolerance, seed = np.atleast_1d(r["tolerance"].values), json.loads(str(a.get("seed", 0)))
    error = np.nan_to_num(r["error"].isel(time=-1).values.reshape(len(rows), -1))
    return LanesEnd(rows, p, tolerance, error, start, made, seed, str(a["digest"]), estimated)


def continued(s: Simulation, end: LanesEnd, runs: int) -> tuple[Start, LaneStarts]:
    """The start at the end of other runs. Raises ModelError: their mechanism, state, law or number differs."""
    at, p = lane_of(s), end.p
    n, n_w = at.moving + s.layout.size, row_size(s) - 1
    if end.digest != identity(s) or end.rows.shape[1] != 2 * n + n_w:
        raise ModelError("start_from: the result is of another mechanism, state or law; start a new run at its last q and v")
    if len(end.rows) != runs:
        raise ModelError(f"start_from: the result has {len(end.rows)} runs and u {runs}: give u for each of them")
    lane, coarse = (_lanes(at, part) for part in (end.rows[:, :n], end.rows[:, n : 2 * n]))
    x = np.concatenate([lane[:, at.x], lane[:, at.discrete]], axis=1)
    q, v = show(s.system, x, s.parameters(p, x), end.begin + end.elapsed)
    begun = Start(q, v, p, np.zeros_like(q), np.zeros_like(v), np.zeros(runs), ("",) * runs)
    return begun, LaneStarts(lane, coarse, end.rows[:, 2 * n :], end.tolerance, np.zeros(runs, np.int32), end.error)


def _lanes(at: Lane, rows: np.ndarray) -> np.ndarray:
    """(runs, numbers) lanes from the numbers that steps and samplers change (runs, n)."""
    lane = np.zeros((len(rows), at.begin))
    lane[:, : at.moving], lane[:, at.discrete] = rows[:, : at.moving], rows[:, at.moving :]
    return lane
