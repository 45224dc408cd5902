"""The error that the length of its steps causes in a run: now and then a step is compared with two steps of half its length.

Between two such looks the error of a step is assumed to grow or decay exponentially; its sum over all steps is the estimate.
Later motion may amplify the error, without bound in a chaotic machine, or reduce it, as under a law. Of energies and momenta
the sum is of absolute values, since the sign changes from step to step with the motion.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any

import numpy as np

from pfaffian.evaluate.arrays import as_number
from pfaffian.model.mechanism import Mechanism
from pfaffian.simulate.half_steps import HalfSteps
from pfaffian.simulate.looks import Look, added
from pfaffian.simulate.loop import Loop
from pfaffian.simulate.sizes import relative

BOUND = 5e-5
"""Bound on the accumulated error, of angles [rad] and of speeds relative to the largest; beyond it a run warns."""

LOOKS = 8
"""Most looks at a run, that at its start included."""

STEPS_OF_A_LOOK = 500
"""Least number of steps for each look: a look takes three steps and their records, which is then 1 % of the run."""

TOGETHER = 8
"""Runs of a batch that are compared however few steps they have: the lanes of one block."""

WORK_OF_A_LOOK = 300_000
"""Steps times integrated numbers for each look beyond the first: its calls then take 2 % of the run."""

BLOCK = 2**14
"""Runs that are compared at once: what that takes does not grow with a batch."""

FEW = 16
"""One in so many of the compared runs has its momenta compared too, which are evaluated run by run."""

AHEAD = (160, 20)
"""A run whose first step errs too much is compared again, before it starts, after these fractions of its steps."""

KEPT = 64
"""Most runs of a look whose states are stored because a step errs too much."""

SAMPLED = 64
"""Records from which the largest speed is taken."""


def as_bound(value: Any) -> float:
    """A number above zero, or inf. Raises ModelError: it is none."""
    return np.inf if isinstance(value, float) and value == np.inf else as_number(value, "error_bound", above=0)


@dataclass
class Watch:
    """The looks at a run.

    halves: compares steps of the run.   bound: see BOUND.
    looks: so far.   kept: run -> (k, state x) of looks at which its step errs too much.   largest: (runs, units) |v| so far.
    suspect: runs whose first step errs too much.   silent: whose first step tells nothing.   begin: (runs, nx) first states.
    """

    halves: HalfSteps
    bound: float
    looks: list[Look] = field(default_factory=list)
    kept: dict[int, list[tuple[int, np.ndarray]]] = field(default_factory=dict)
    largest: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    suspect: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=int))
    silent: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=int))
    begin: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))

    @property
    def loop(self) -> Loop:
        """The run."""
        return self.halves.loop

    @property
    def mechanism(self) -> Mechanism:
        return self.loop.simulation.mechanism

    @cached_property
    def regular(self) -> tuple[int, ...]:
        """The steps at which to look at every run: by what a run is, so that its numbers are the same in any batch."""
        steps = self.loop.when.steps
        work = steps * (self.loop.simulation.system.nx + len(self.loop.simulation.z))
        return self._spread(min(1 + work // WORK_OF_A_LOOK, max(1, steps // STEPS_OF_A_LOOK)))

    @property
    def at(self) -> tuple[int, ...]:
        """The steps at which to look: more often where some runs are suspect, once more where the first look told nothing."""
        more = self._spread(LOOKS) if self.suspect.size else self._spread(2) if self.silent.size else ()
        return tuple(sorted({*self.regular, *more})) if more else self.regular

    def _spread(self, count: int) -> tuple[int, ...]:
        steps, count = self.loop.when.steps, min(LOOKS, count, self.loop.when.steps)
        return tuple(self.loop.when.first + steps * i // count for i in range(count))

    def until(self, k: int) -> int:
        """Steps from k to the next look, or to the end."""
        return min((i for i in self.at if i > k), default=self.loop.when.end) - k

    def look(self, k: int, x: np.ndarray, ordinary: np.ndarray) -> None:
        """At the states x (runs, nx) before step k.   ordinary: (runs,) whether the run makes that step, and as any other.

        Of fewer than STEPS_OF_A_LOOK steps only some runs are looked at, the first among them. Runs whose first step errs too
        much go a little way ahead, to see whether that passes, and are looked at more often.
        """
        runs = len(x)
        some = np.flatnonzero(ordinary)[: max(TOGETHER, runs * self.loop.when.steps // STEPS_OF_A_LOOK)]
        if k not in self.regular:
            again = np.union1d(self.suspect, self.silent) if k in self._spread(2) else self.suspect
            some = again[ordinary[again]]
        much = self._seen(k, x if len(some) == runs else x[some], some, runs)
        if k > self.loop.when.first:
            return
        self.suspect = much
        self.silent = some[(self.looks[0].error[some] == 0).all(axis=1)]
        self._follow(much)

    def _follow(self, some: np.ndarray) -> None:
        """Looks at these runs a little way ahead of their start."""
        if not some.size or self.loop.python:
            return
        x, at = self.begin[some], self.loop.when.first
        for part in AHEAD:
            there = self.loop.when.first + self.loop.when.steps // part
            if there > at:
                r = self.loop.beside(x, some, first=at, steps=there - at)
                x, at = r.x, there
                self._seen(at, x[r.status == 0], some[r.status == 0], len(self.begin))
        self.looks.sort(key=lambda look: look.k)

    def compared(self, k: int, x: np.ndarray, some: np.ndarray) -> Look:
        """A look at the states x of some runs before step k that is not among the looks of the run."""
        self._seen(k, x, some, len(self.begin))
        return self.looks.pop()

    def _seen(self, k: int, x: np.ndarray, some: np.ndarray, runs: int) -> np.ndarray:
        """A look at the states x of some runs before step k, kept; those of them that err too much."""
        n, energy, momenta = len(self.halves.sizes.units), self.halves.energy, self.halves.momenta
        width = energy.stop - energy.start + (len(momenta.pushed) if momenta else 0)
        seen = np.full((runs, 1 + 3 * n + width), np.nan)
        found = Look(k, seen[:, : n + 1], seen[:, n + 1 : 2 * n + 1], seen[:, 2 * n + 1 : 3 * n + 1], seen[:, 3 * n + 1 :],
                     np.zeros(runs, dtype=bool))  # fmt: skip
        self.looks.append(found)
        much, few = [some[:0]], self.few(some)
        for begin in range(0, len(some), BLOCK):
            at = slice(begin, begin + BLOCK)
            much.append(self._compare(found, seen, x[at], some[at], max(0, few - begin)))
        return np.concatenate(much)

    def _compare(self, found: Look, seen: np.ndarray, x: np.ndarray, some: np.ndarray, few: int) -> np.ndarray:
        """The same of a block of runs, the numbers of whose look are in `seen`, and of `few` of them their momenta."""
        k, when, sizes = found.k, self.loop.when, self.halves.sizes
        error, top, change, energy, whole, half = self.halves.compare(k, x, some)
        numbers = np.concatenate([error, top, change, energy], axis=1)
        seen[some, : numbers.shape[1]] = numbers
        if few and numbers.shape[1] < seen.shape[1]:
            seen[some[:few], numbers.shape[1] :] = self.halves.pushed_momenta(k, whole.x[:few], half.x[:few], some[:few])
        # At a start from rest all speeds are small, and what they may reach counts.
        reach = sizes.levelled(top + when.steps * change) if k == when.first else top
        if self.loop.simulation.scheme.integrator == "tr-bdf2" and not self.loop.python:
            big = np.flatnonzero(when.steps * relative(error, reach) > min(self.bound, BOUND))
            if big.size:
                error[big] = self.halves.lasting(k + 1, error[big], whole.state[big], half.state[big], some[big])
                found.error[some[big]] = error[big]
        much = np.flatnonzero(when.steps * relative(error, reach) > self.bound)
        if much.size:
            rough = self._rough(k, x[much], some[much], error[much], top[much])
            found.rough[some[much]] = rough
            room = KEPT - sum(at == k for states in self.kept.values() for at, _ in states)
            for i in much[~rough][: max(0, room)].tolist():
                self.kept.setdefault(int(some[i]), []).append((k, x[i].copy()))
        return some[much]

    def _rough(self, k: int, x: np.ndarray, some: np.ndarray, error: np.ndarray, top: np.ndarray) -> np.ndarray:
        """(len(some),) whether something jumps within step k.

        Of a smooth step 2^-order of the error is left in half steps, of one in which something jumps all of it may be.
        """
        finer = self.halves.difference(*(self.halves.ahead(k, x, some, n).x for n in (2, 4)))
        return relative(finer, top) > 2 ** (-self.halves.order / 2) * relative(error, top)

    @staticmethod
    def few(some: np.ndarray) -> int:
        """Of so many of these runs momenta are looked at."""
        return -(-len(some) // FEW)

    def at_start(self) -> tuple[np.ndarray, np.ndarray]:
        """(runs, 1 + units) what the steps add up to as far as the start tells, and (runs, units) speeds that v may reach."""
        self.largest = np.fmax.reduce(np.array([look.largest for look in self.looks]), axis=0)
        runs = len(self.largest)
        total = added(self.looks, [look.error for look in self.looks], np.full(runs, -1), self.loop.when.end)
        return total, self.halves.sizes.levelled(self.largest + self.loop.when.steps * self.looks[0].change)

    def gathered(self, v: np.ndarray, stopped: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """What the steps of each run add up to, as looks tell: (runs,) the error, see BOUND, and (runs, 1 + momenta) what they
        made of the energy [J] and of momenta at most, see Look. None where nobody looked.

        v: (times, runs, nv) recorded, or (times, runs, 0).   stopped: (runs,) the step at which a run stopped, -1 if none.
        """
        if not self.looks:
            return None
        seen = [look.largest for look in self.looks]
        if v.size:
            nq = self.mechanism.nq
            x = np.zeros((v.shape[1], nq + v.shape[2] + 1))
            np.fmax.reduce(np.abs(v[:: max(1, len(v) // SAMPLED)]), axis=0, out=x[:, nq:-1])
            seen.append(self.halves.sizes.levelled(self.halves.sizes.of(x)[:, 1:]))
        self.largest = reduce(np.fmax, seen)
        error, made = self._in_all(stopped)
        late = np.setdiff1d(np.flatnonzero(error > self.bound), self.suspect)
        if late.size and not self.loop.python:
            # Whose start erred too much only beside the speeds that they came to.
            self._follow(late)
            again = self._in_all(stopped)
            error[late], made[late] = again[0][late], again[1][late]
        return error, made

    def _in_all(self, stopped: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As `gathered`, of the looks so far."""
        error, made = np.empty(len(stopped)), np.empty_like(self.looks[0].made)
        for begin in range(0, len(stopped), BLOCK):
            at = slice(begin, begin + BLOCK)
            looks = [look.of(at) for look in self.looks]
            seen = [np.concatenate([look.error, np.abs(look.made)], axis=1) for look in looks]
            total = added(looks, seen, stopped[at], self.loop.when.end)
            errors = looks[0].error.shape[1]
            error[at], made[at] = relative(total[:, :errors], self.largest[at]), total[:, errors:]
        return error, made
