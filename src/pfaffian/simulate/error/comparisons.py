"""Errors of single steps, from comparisons with two half steps, and their sum over a run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np


class Comparison(NamedTuple):
    """A comparison of step k with two half steps, for all runs; NaN for runs that are not compared.

    error: (runs, 1 + units) local errors of angles [rad], and of v for each unit.   largest: (runs, units) largest |v|.
    change: (runs, units) |change of v| in the step.
    balance_errors: (runs, 1 + momenta) errors of the energy [J] and of momenta.
    jumps: (runs,) whether a force or velocity jumps within the step.
    """

    k: int
    error: np.ndarray
    largest: np.ndarray
    change: np.ndarray
    balance_errors: np.ndarray
    jumps: np.ndarray

    def of(self, at: slice) -> Comparison:
        """The comparison for the runs `at` alone."""
        return Comparison(self.k, *[x[at] for x in self[1:]])


def summed(comparisons: Sequence[Comparison], numbers: list[np.ndarray], stopped: np.ndarray, end: int) -> np.ndarray:
    """(runs, n) sums over all steps of numbers that are known at the compared steps.

    Between two compared steps the numbers are assumed to grow or decay exponentially. A single step with a jump is left out,
    and so are several, unless they are most of the compared steps.
    comparisons: the comparisons, in order.   numbers: (runs, n) at each of them.
    stopped: (runs,) step at which each run stopped, negative if it did not.   end: the step at which the run ends.
    """
    first = comparisons[0].k
    ends = np.where(stopped < 0, end, stopped)
    if len(numbers) == 1:
        return np.where(comparisons[0].jumps, np.nan, ends - first)[:, None] * numbers[0]
    jumps = np.array([c.jumps for c in comparisons])
    values = np.array(numbers)
    if jumps.any():
        values[jumps & (2 * jumps.sum(axis=0) <= len(jumps))] = np.nan
    for i in range(1, len(values)):
        values[i] = np.where(np.isnan(values[i]), values[i - 1], values[i])
    for i in reversed(range(len(values) - 1)):
        values[i] = np.where(np.isnan(values[i]), values[i + 1], values[i])
    edges = np.array([*(c.k for c in comparisons), end])
    steps = np.clip(ends, edges[:-1, None], edges[1:, None]) - edges[:-1, None]
    means = np.concatenate([_between(values[:-1], values[1:]), values[-1:]])
    return reduce(np.add, steps[:, :, None] * means)


def _between(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The mean of a quantity that grows or decays exponentially from a to b, both at least zero."""
    with np.errstate(all="ignore"):
        least = np.finfo(float).eps * np.maximum(a, b)
        ratio = np.maximum(b, least) / np.maximum(a, least)
        return np.where(np.abs(ratio - 1) > 1e-6, (b - a) / np.log(ratio), (a + b) / 2)
