"""The steps that runs to an accuracy have made: where each began, and when."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pfaffian.simulate.step.lane import SINCE, Lane
from pfaffian.simulate.step.motion_statistics import Evaluate, Steps


class StepBegins(NamedTuple):
    """Where the steps of runs begin; after the last of a run it is repeated.   time: (points, runs) since the run began [s].
    x: (points, runs, nx) states.   w: (points, runs, nw) inputs.   since: (points, runs) when these inputs begin [s]."""

    time: np.ndarray
    x: np.ndarray
    w: np.ndarray
    since: np.ndarray


class StepLog:
    """Collects the steps of runs, as a tally of statistics does.   width: number of signals, all of which are stored."""

    def __init__(self, width: int) -> None:
        self.stored_entries = np.arange(width)
        self.parts: list[tuple[np.ndarray, Steps]] = []

    def restart(self, runs: np.ndarray) -> None:
        """Forget the steps of some runs, which are solved once more."""
        others = [(of, np.flatnonzero(~np.isin(of, runs)), steps) for of, steps in self.parts]
        self.parts = [(of[at], steps.some(at)) for of, at, steps in others]

    def add(self, steps: Steps, runs: np.ndarray, evaluate: Evaluate) -> None:
        """Add steps.   runs: (n,) of each."""
        self.parts.append((runs, steps))

    def begins(self, at: Lane, runs: int) -> StepBegins:
        """Where the steps begin.   at: of the lanes.   runs: their number."""
        of = np.concatenate([of for of, _ in self.parts])
        rows, w = (np.concatenate([getattr(steps, name) for _, steps in self.parts]) for name in ("rows", "w"))
        order = np.argsort(of, kind="stable")
        count = np.bincount(of, minlength=runs)
        first = np.cumsum(count) - count
        points = order[first + np.minimum(np.arange(count.max())[:, None], count - 1)]
        rows, w = rows[points], w[points]
        return StepBegins(rows[:, :, at.time], rows[:, :, at.x], w[:, :, : w.shape[2] // 2 - 1], w[:, :, SINCE])
