"""Comparison of a step with two steps of half its length: for a rule of order p they differ by 1 - 2^-p of its local error.

The run's kernel computes both apart from the run, so that no bit of the run changes.

The same difference of energies and momenta is the error that the step adds to them: over one step the exact motion changes the
energy by the work of inputs, dissipation and moving constraints, and by nothing else. This work is not obtained by integrating
the power, because the quadrature would be no more accurate than the step.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from pfaffian.simulate.error.momenta import BaseMomenta, momenta_of
from pfaffian.simulate.error.sizes import StateSizes, sizes_of
from pfaffian.simulate.step.integrators import INTEGRATORS
from pfaffian.simulate.step.signals import entries_of
from pfaffian.simulate.step.time_loop import TimeLoop

ROUNDING = 1e-13
"""Differences [rad, unit of speed] below this times (1 + the largest value) are rounding."""

LASTING = (4, 8, 16)
"""Numbers of steps, after one with too large an error, at which the remaining error is measured: no oscillation is zero at
all of them."""


class StepEnd(NamedTuple):
    """The states of some runs after a step.

    x: (runs, nq + nv + 1) [q; v; 0], nan where the step fails.   energy: (runs, 1) [J], (runs, 0) if it is not recorded.
    state: (runs, nx) what the run integrates.
    """

    x: np.ndarray
    energy: np.ndarray
    state: np.ndarray


class ComparedStep(NamedTuple):
    """A step of some runs, compared with two half steps.

    error, largest, change: as in Comparison.   energy: (runs, 1 or 0) error of the energy [J].
    whole, half: the states after the step, and after the half steps.
    """

    error: np.ndarray
    largest: np.ndarray
    change: np.ndarray
    energy: np.ndarray
    whole: StepEnd
    half: StepEnd


@dataclass(frozen=True, eq=False)
class HalfSteps:
    """Compares steps with half steps, for the run that `loop` computes."""

    loop: TimeLoop

    @cached_property
    def energy(self) -> slice:
        """The entry of the energy in a record; empty if it is not recorded."""
        return entries_of(self.loop.simulation.signals).get("energy", slice(0, 0))

    @cached_property
    def sizes(self) -> StateSizes:
        """The measure of angles and speeds in which errors are expressed."""
        return sizes_of(self.loop.simulation)

    @cached_property
    def momenta(self) -> BaseMomenta | None:
        """The momenta of a floating machine; None for other machines."""
        return momenta_of(self.loop.simulation)

    @property
    def order(self) -> int:
        """The order of the integrator."""
        return INTEGRATORS.named(self.loop.simulation.scheme.integrator).order

    def compare(self, k: int, x: np.ndarray, runs: np.ndarray) -> ComparedStep:
        """Compare step k of these runs of the batch, from their states x (len(runs), nx), with two steps of half its length."""
        whole, half, begin = self.advance(k, x, runs), self.advance(k, x, runs, 2), self.loop.q_and_v(k, x, runs)
        difference, size, change, size_before = self.sizes.of(np.array([whole.x - half.x, half.x, half.x - begin, begin]))
        largest = self.sizes.levelled(np.fmax(size, size_before)[:, 1:])
        energy = self._errors_added(whole.energy, half.energy)
        return ComparedStep(self._error(difference, size), largest, change[:, 1:], energy, whole, half)

    def advance(self, k: int, x: np.ndarray, runs: np.ndarray, n: int = 1) -> StepEnd:
        """Take step k of these runs of the batch, from their states x, as n steps of an n-th of its length."""
        r = self.loop.beside(x, runs, first=k * n, steps=n, parts=n)
        state = self.loop.q_and_v(k + 1, r.x, runs)
        state = np.where((r.status == 0)[:, None], state, np.nan) if r.status.any() else state
        return StepEnd(state, r.records[-1, :, self.energy], r.x)

    def difference(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """(runs, 1 + units) error of the states a, given the states b that half steps reach; see Comparison."""
        return self._error(*self.sizes.of(np.array([a - b, b])))

    def _error(self, apart: np.ndarray, size: np.ndarray) -> np.ndarray:
        """(runs, 1 + units) error from the difference between the states and the size of the more accurate one."""
        return np.where(apart < ROUNDING * (1 + size), 0, apart) / (1 - 2.0**-self.order)

    def _errors_added(self, whole: np.ndarray, half: np.ndarray) -> np.ndarray:
        """The errors that a step adds to energies or momenta: `whole` are their values after it, `half` after half steps."""
        error = whole - half
        error[np.abs(error) < ROUNDING * np.abs(half)] = 0
        return error / (1 - 2.0**-self.order)

    def momenta_at(self, k: int, states: np.ndarray, runs: np.ndarray) -> list[np.ndarray]:
        """Momenta, their rates under weight, and inertias at step k, each (runs, n), see `BaseMomenta`.

        states: (runs, nq + nv + 1) as `TimeLoop.q_and_v` returns them.
        """
        assert self.momenta is not None
        return self.momenta.at(states, self.loop.p[runs], self.loop.when.start + k * self.loop.when.step)

    def pushed_momenta(self, k: int, whole: np.ndarray, half: np.ndarray, runs: np.ndarray) -> np.ndarray:
        """(runs, pushed) errors that step k adds to the momenta that are not conserved.   whole, half: as in Comparison."""
        assert self.momenta is not None
        a, b = (self.momenta_at(k + 1, x, runs)[0][:, self.momenta.pushed] for x in (whole, half))
        return self._errors_added(a, b)

    def lasting(self, k: int, error: np.ndarray, a: np.ndarray, b: np.ndarray, runs: np.ndarray) -> np.ndarray:
        """(runs, 1 + units) the part of the errors that accumulates: what remains of them after a few steps.

        An integrator for stiff equations damps the errors of stiff parts.   a, b: (runs, nx) states at step k, reached by a
        step and by half steps.
        """
        remaining = np.zeros_like(error)
        for n in LASTING:
            ends = [self.loop.beside(x, runs, first=k, steps=n) for x in (a, b)]
            apart = self.difference(*(self.loop.q_and_v(k + n, r.x, runs) for r in ends))
            remaining = np.fmax(remaining, np.where((ends[0].status + ends[1].status == 0)[:, None], apart, np.inf))
        return np.fmin(error, remaining)
