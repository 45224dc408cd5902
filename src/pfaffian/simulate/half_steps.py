"""One step beside two steps of half its length: for a rule of order p they differ by 1 - 2^-p of the local error of the step.

The run's own kernel takes both, beside the run, so that no bit of the run changes.

The same difference of energies and momenta is the error that the step adds to them: over one step the exact motion changes the
energy by the work of inputs, dissipation and moving constraints, and by nothing else. No power is integrated for this, as the
rule would err as much as the step.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from pfaffian.simulate.integrators import INTEGRATORS
from pfaffian.simulate.loop import Loop
from pfaffian.simulate.momenta import Momenta, momenta_of
from pfaffian.simulate.signals import entries_of
from pfaffian.simulate.sizes import Sizes, sizes_of

ROUNDING = 1e-13
"""Differences [rad, unit of speed] below this, relative to 1 and to the largest, are rounding."""

LASTING = (4, 8, 16)
"""Steps after one that errs too much at which the remaining error is measured: no oscillation is zero at all of them."""


class Ahead(NamedTuple):
    """The state after a step, nan where the step fails.

    x: (runs, nq + nv + 1) [q; v; 0].   energy: (runs, 1) [J], (runs, 0) if it is not recorded.   state: (runs, nx).
    """

    x: np.ndarray
    energy: np.ndarray
    state: np.ndarray


class Comparison(NamedTuple):
    """A step of some runs, beside its halves.

    error, largest, change: as in Look.   energy: (runs, 1 or 0) its error [J].   whole, half: the states after both.
    """

    error: np.ndarray
    largest: np.ndarray
    change: np.ndarray
    energy: np.ndarray
    whole: Ahead
    half: Ahead


@dataclass(frozen=True, eq=False)
class HalfSteps:
    """Comparisons of steps of a run, that of `loop`, with their halves."""

    loop: Loop

    @cached_property
    def energy(self) -> slice:
        """Where it stands in a record; empty if it is not recorded."""
        return entries_of(self.loop.simulation.signals).get("energy", slice(0, 0))

    @cached_property
    def sizes(self) -> Sizes:
        """The sizes of angles and speeds by which errors are measured."""
        return sizes_of(self.loop.simulation)

    @cached_property
    def momenta(self) -> Momenta | None:
        """Of a machine that floats."""
        return momenta_of(self.loop.simulation)

    @property
    def order(self) -> int:
        """Of the integrator."""
        return INTEGRATORS[self.loop.simulation.scheme.integrator].order

    def compare(self, k: int, x: np.ndarray, some: np.ndarray) -> Comparison:
        """Step k from the states x (len(some), nx) of these runs of the batch."""
        whole, half, begin = self.ahead(k, x, some), self.ahead(k, x, some, 2), self.loop.q_and_v(k, x, some)
        apart, size, change, before = self.sizes.of(np.array([whole.x - half.x, half.x, half.x - begin, begin]))
        largest = self.sizes.levelled(np.fmax(size, before)[:, 1:])
        energy = self._added(whole.energy, half.energy)
        return Comparison(self._error(apart, size), largest, change[:, 1:], energy, whole, half)

    def ahead(self, k: int, x: np.ndarray, some: np.ndarray, n: int = 1) -> Ahead:
        """One step on from states x at step k, of these runs of the batch, in n parts."""
        r = self.loop.beside(x, some, first=k * n, steps=n, parts=n)
        found = self.loop.q_and_v(k + 1, r.x, some)
        found = np.where((r.status == 0)[:, None], found, np.nan) if r.status.any() else found
        return Ahead(found, r.records[-1, :, self.energy], r.x)

    def difference(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """(runs, 1 + units) error of the states a, those of half the steps being b; see Look."""
        return self._error(*self.sizes.of(np.array([a - b, b])))

    def _error(self, apart: np.ndarray, size: np.ndarray) -> np.ndarray:
        """The same of how far they are apart and how large b is."""
        return np.where(apart < ROUNDING * (1 + size), 0, apart) / (1 - 2.0**-self.order)

    def _added(self, whole: np.ndarray, half: np.ndarray) -> np.ndarray:
        """The errors that a step adds to numbers that are `whole` after it, `half` after its halves."""
        made = whole - half
        made[np.abs(made) < ROUNDING * np.abs(half)] = 0
        return made / (1 - 2.0**-self.order)

    def momenta_at(self, k: int, shown: np.ndarray, some: np.ndarray) -> list[np.ndarray]:
        """(runs, k) each: momenta, their rates by weight and inertias at step k, see `Momenta`; shown: as of `q_and_v`."""
        assert self.momenta is not None
        return self.momenta.at(shown, self.loop.p[some], self.loop.when.start + k * self.loop.when.step)

    def pushed_momenta(self, k: int, whole: np.ndarray, half: np.ndarray, some: np.ndarray) -> np.ndarray:
        """(runs, pushed) errors that step k adds to the momenta that are not conserved.   whole, half: as in Comparison."""
        assert self.momenta is not None
        a, b = (self.momenta_at(k + 1, x, some)[0][:, self.momenta.pushed] for x in (whole, half))
        return self._added(a, b)

    def lasting(self, k: int, error: np.ndarray, a: np.ndarray, b: np.ndarray, some: np.ndarray) -> np.ndarray:
        """(runs, 1 + units) what of errors adds up: what is left of them after a few steps.

        What is stiff is forgotten by an integrator that is made for it.   a, b: states at step k, after a step and its halves.
        """
        left = np.zeros_like(error)
        for n in LASTING:
            ends = [self.loop.beside(x, some, first=k, steps=n) for x in (a, b)]
            apart = self.difference(*(self.loop.q_and_v(k + n, r.x, some) for r in ends))
            left = np.fmax(left, np.where((ends[0].status + ends[1].status == 0)[:, None], apart, np.inf))
        return np.fmin(error, left)
