"""Estimate of the error that the step length causes in a run: some steps are compared with two steps of half their length.

Between two comparisons the error of a step is assumed to grow or decay exponentially; the estimate is its sum over all steps.
Later motion may amplify the error, without bound in a chaotic machine, or reduce it, as under a control law. For energies and
momenta the absolute values are summed, since the sign of their error changes from step to step with the motion.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any

import numpy as np

from pfaffian.evaluate.single_values import as_number
from pfaffian.model.mechanism import Mechanism
from pfaffian.simulate.error.comparisons import Comparison, summed
from pfaffian.simulate.error.half_steps import HalfSteps
from pfaffian.simulate.error.sizes import relative
from pfaffian.simulate.step.time_loop import TimeLoop

BOUND = 5e-5
"""Bound on the accumulated error, of angles in rad and of speeds relative to the largest speed; a run beyond it warns."""

MOST_COMPARISONS = 8
"""Largest number of comparisons in a run, including the one at its start."""

STEPS_PER_COMPARISON = 500
"""Least number of steps of a run per comparison. A comparison takes three steps and their records: then 1 % of the run."""

ALWAYS_COMPARED = 8
"""Runs of a batch that are compared even if the run has few steps: as many as one block has lanes."""

WORK_PER_COMPARISON = 300_000
"""Least number of steps times integrated numbers for each comparison after the first: its calls then take 2 % of the run."""

BLOCK = 2**14
"""Runs that are compared at once, so that the memory needed does not grow with the batch."""

RUNS_PER_MOMENTA = 16
"""One in this many of the compared runs also has its momenta compared, because momenta are evaluated run by run."""

EARLY_DIVISORS = (160, 20)
"""A run whose first step exceeds the bound is compared again, before it starts, after 1/160 and 1/20 of its steps."""

MOST_STORED = 64
"""Largest number of runs per comparison whose states are stored because the error of the step exceeds the bound."""

SPEED_SAMPLES = 64
"""Number of records from which the largest speed is determined."""


def as_bound(value: Any) -> float:
    """The error bound: a number above zero, or inf. Raises ModelError: the value is neither."""
    return np.inf if isinstance(value, float) and value == np.inf else as_number(value, "error_bound", above=0)


@dataclass
class StepErrorMonitor:
    """The comparisons of a run's steps with half steps, and the error that follows from them.

    A step exceeds the bound if its error, times the number of steps of the run, does.
    halves: compares steps of the run.   bound: bound on the accumulated error, see BOUND.
    comparisons: the comparisons so far.
    exceeding_states: run -> (k, state x) of compared steps that exceed the bound.   largest: (runs, units) largest |v| so far.
    suspect: runs whose first step exceeds the bound.   silent: runs whose first step shows no error at all.
    begin: (runs, nx) first states.
    """

    halves: HalfSteps
    bound: float
    comparisons: list[Comparison] = field(default_factory=list)
    exceeding_states: dict[int, list[tuple[int, np.ndarray]]] = field(default_factory=dict)
    largest: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    suspect: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=int))
    silent: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=int))
    begin: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))

    @cached_property
    def loop(self) -> TimeLoop:
        """The compiled steps of the run."""
        return self.halves.loop

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism of the run."""
        return self.loop.simulation.mechanism

    @cached_property
    def regular(self) -> tuple[int, ...]:
        """The steps at which every run is compared. They do not depend on the batch, so a run has the same numbers in any."""
        steps = self.loop.when.steps
        work = steps * (self.loop.simulation.system.nx + len(self.loop.simulation.z))
        return self._spread(min(1 + work // WORK_PER_COMPARISON, max(1, steps // STEPS_PER_COMPARISON)))

    @property
    def at(self) -> tuple[int, ...]:
        """The steps at which runs are compared: more if some runs are suspect, one more if some showed no error at first."""
        more = self._spread(MOST_COMPARISONS) if self.suspect.size else self._spread(2) if self.silent.size else ()
        return tuple(sorted({*self.regular, *more})) if more else self.regular

    def _spread(self, count: int) -> tuple[int, ...]:
        """Up to `count` steps at even distances, the first of the run among them."""
        first, steps = self.loop.when.first, self.loop.when.steps
        count = min(MOST_COMPARISONS, count, steps)
        return tuple(first + steps * i // count for i in range(count))

    def until(self, k: int) -> int:
        """Number of steps from k to the next comparison, or to the end of the run."""
        return min((i for i in self.at if i > k), default=self.loop.when.end) - k

    def compare(self, k: int, x: np.ndarray, ordinary: np.ndarray) -> None:
        """Compare step k, from the states x (runs, nx) before it.

        ordinary: (runs,) whether a run takes this step, and not as the special first step of a singular start.
        In a run of fewer than STEPS_PER_COMPARISON steps only the first runs of the batch are compared. Runs whose first step
        exceeds the bound are also advanced a little before the run begins, to see whether the error decays, and are compared
        more often.
        """
        runs = len(x)
        chosen = np.flatnonzero(ordinary)[: max(ALWAYS_COMPARED, runs * self.loop.when.steps // STEPS_PER_COMPARISON)]
        if k not in self.regular:
            again = np.union1d(self.suspect, self.silent) if k in self._spread(2) else self.suspect
            chosen = again[ordinary[again]]
        exceeding = self._compare_step(k, x if len(chosen) == runs else x[chosen], chosen, runs)
        if k > self.loop.when.first:
            return
        self.suspect = exceeding
        self.silent = chosen[(self.comparisons[0].error[chosen] == 0).all(axis=1)]
        self._compare_early(exceeding)

    def _compare_early(self, runs: np.ndarray) -> None:
        """Compare steps of these runs shortly after their start, from states computed apart from the run."""
        if not runs.size or self.loop.python:
            return
        x, at = self.begin[runs], self.loop.when.first
        for divisor in EARLY_DIVISORS:
            end = self.loop.when.first + self.loop.when.steps // divisor
            if end > at:
                r = self.loop.beside(x, runs, first=at, steps=end - at)
                x, at = r.x, end
                self._compare_step(at, x[r.status == 0], runs[r.status == 0], len(self.begin))
        self.comparisons.sort(key=lambda c: c.k)

    def compared(self, k: int, x: np.ndarray, runs: np.ndarray) -> Comparison:
        """Compare step k of some runs from their states x, without adding the result to the comparisons of the run."""
        self._compare_step(k, x, runs, len(self.begin))
        return self.comparisons.pop()

    def _compare_step(self, k: int, x: np.ndarray, runs: np.ndarray, count: int) -> np.ndarray:
        """Compare step k of some of the `count` runs from their states x, and store the result in `comparisons`.

        Returns the runs whose step exceeds the bound.
        """
        n, energy, momenta = len(self.halves.sizes.units), self.halves.energy, self.halves.momenta
        width = energy.stop - energy.start + (len(momenta.pushed) if momenta else 0)
        table = np.full((count, 1 + 3 * n + width), np.nan)
        error, largest, change, balance = np.hsplit(table, [n + 1, 2 * n + 1, 3 * n + 1])
        comparison = Comparison(k, error, largest, change, balance, np.zeros(count, dtype=bool))
        self.comparisons.append(comparison)
        exceeding, with_momenta = [runs[:0]], self.momenta_count(runs)
        for begin in range(0, len(runs), BLOCK):
            at = slice(begin, begin + BLOCK)
            exceeding.append(self._compare_block(comparison, table, x[at], runs[at], max(0, with_momenta - begin)))
        return np.concatenate(exceeding)

    def _compare_block(
        self, comparison: Comparison, table: np.ndarray, x: np.ndarray, runs: np.ndarray, count: int
    ) -> np.ndarray:
        """Compare one block of runs and write the numbers into `table`, to which the arrays of `comparison` refer.

        count: number of runs, the first of the block, whose momenta are compared too. Returns the runs whose step exceeds the
        bound.
        """
        k, when, sizes = comparison.k, self.loop.when, self.halves.sizes
        error, top, change, energy, whole, half = self.halves.compare(k, x, runs)
        numbers = np.concatenate([error, top, change, energy], axis=1)
        table[runs, : numbers.shape[1]] = numbers
        if count and numbers.shape[1] < table.shape[1]:
            table[runs[:count], numbers.shape[1] :] = self.halves.pushed_momenta(
                k, whole.x[:count], half.x[:count], runs[:count]
            )
        # At a start from rest all speeds are small, so the error is taken relative to the speeds that the run may reach.
        reach = sizes.levelled(top + when.steps * change) if k == when.first else top
        if self.loop.simulation.scheme.stiff and not self.loop.python:
            large = np.flatnonzero(when.steps * relative(error, reach) > min(self.bound, BOUND))
            if large.size:
                error[large] = self.halves.lasting(k + 1, error[large], whole.state[large], half.state[large], runs[large])
                comparison.error[runs[large]] = error[large]
        exceeding = np.flatnonzero(when.steps * relative(error, reach) > self.bound)
        if exceeding.size:
            jumps = self._jumps(k, x[exceeding], runs[exceeding], error[exceeding], top[exceeding])
            comparison.jumps[runs[exceeding]] = jumps
            room = MOST_STORED - sum(at == k for states in self.exceeding_states.values() for at, _ in states)
            for i in exceeding[~jumps][: max(0, room)].tolist():
                self.exceeding_states.setdefault(int(runs[i]), []).append((k, x[i].copy()))
        return runs[exceeding]

    def _jumps(self, k: int, x: np.ndarray, runs: np.ndarray, error: np.ndarray, top: np.ndarray) -> np.ndarray:
        """(len(runs),) whether something jumps within step k.

        With half steps, 2^-order of the error of a smooth step remains; where something jumps, all of it may remain.
        """
        finer = self.halves.difference(*(self.halves.advance(k, x, runs, n).x for n in (2, 4)))
        return relative(finer, top) > 2 ** (-self.halves.order / 2) * relative(error, top)

    @staticmethod
    def momenta_count(runs: np.ndarray) -> int:
        """Number of these runs whose momenta are compared: the first ones."""
        return -(-len(runs) // RUNS_PER_MOMENTA)

    def at_start(self) -> tuple[np.ndarray, np.ndarray]:
        """(runs, 1 + units) accumulated error, estimated from the steps at and shortly after the start, and (runs, units)
        speeds that the run may reach."""
        self.largest = np.fmax.reduce(np.array([c.largest for c in self.comparisons]), axis=0)
        runs = len(self.largest)
        total = summed(self.comparisons, [c.error for c in self.comparisons], np.full(runs, -1), self.loop.when.end)
        return total, self.halves.sizes.levelled(self.largest + self.loop.when.steps * self.comparisons[0].change)

    def gathered(self, v: np.ndarray, stopped: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Accumulated errors of each run, estimated from the comparisons; None if no step was compared.

        Returns (runs,) the error that BOUND limits, and (runs, 1 + momenta) upper estimates of the errors of the energy [J]
        and of momenta, see Comparison.
        v: (times, runs, nv) recorded, or (times, runs, 0).   stopped: (runs,) the step at which a run stopped, -1 if none.
        """
        if not self.comparisons:
            return None
        speeds = [c.largest for c in self.comparisons]
        if v.size:
            nq = self.mechanism.nq
            x = np.zeros((v.shape[1], nq + v.shape[2] + 1))
            np.fmax.reduce(np.abs(v[:: max(1, len(v) // SPEED_SAMPLES)]), axis=0, out=x[:, nq:-1])
            speeds.append(self.halves.sizes.levelled(self.halves.sizes.of(x)[:, 1:]))
        self.largest = reduce(np.fmax, speeds)
        error, balance_errors = self._totals(stopped)
        late = np.setdiff1d(np.flatnonzero(error > self.bound), self.suspect)
        if late.size and not self.loop.python:
            # These exceed the bound only relative to the speeds that they reached, so nothing was compared after their start.
            self._compare_early(late)
            again = self._totals(stopped)
            error[late], balance_errors[late] = again[0][late], again[1][late]
        return error, balance_errors

    def _totals(self, stopped: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(runs,) accumulated error and (runs, 1 + momenta) errors of energy and momenta, from the comparisons so far."""
        error, balance_errors = np.empty(len(stopped)), np.empty_like(self.comparisons[0].balance_errors)
        for begin in range(0, len(stopped), BLOCK):
            at = slice(begin, begin + BLOCK)
            comparisons = [c.of(at) for c in self.comparisons]
            numbers = [np.concatenate([c.error, np.abs(c.balance_errors)], axis=1) for c in comparisons]
            total = summed(comparisons, numbers, stopped[at], self.loop.when.end)
            errors = comparisons[0].error.shape[1]
            error[at], balance_errors[at] = relative(total[:, :errors], self.largest[at]), total[:, errors:]
        return error, balance_errors
