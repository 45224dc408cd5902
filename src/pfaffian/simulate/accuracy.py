"""What the length of its steps costs a run: now and then a step is compared with two of half its length.

Both are made by the run's own kernel, beside the run, so that no bit of it changes. Of a rule of order p their difference is
1 - 2^-p of the local error of the step; between two looks that is taken to grow or fall exponentially, and the sum over all
steps is what they add. Later motion may amplify it: of a chaotic machine no step is short enough for long.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any, NamedTuple

import numpy as np

from pfaffian import kernel
from pfaffian.kernel.rollout import Hold
from pfaffian.model.mechanism import Mechanism
from pfaffian.simulate.arrays import as_number
from pfaffian.simulate.inputs import Times
from pfaffian.simulate.integrators import INTEGRATORS
from pfaffian.simulate.simulation import Simulation
from pfaffian.simulate.system import show

BOUND = 1e-4
"""On the error that the steps of a run add up to, of angles [rad] and of speeds beside the largest: beyond it a run warns."""

LOOKS = 8
"""Looks at a run at most, the start among them."""

STEPS_OF_A_LOOK = 150
"""A look takes three steps, which are then 2 % of the run."""

WORK_OF_A_LOOK = 200_000
"""Steps times numbers in the state for each look beyond the first: what its calls take is then 2 % of the run."""

ROUNDING = 1e-13
"""A difference [rad, unit of speed], beside 1 and the largest, that is rounding."""

ROUGH = 0.7
"""Part of an error that steps of half the length leave where something jumps within them; of a smooth rule 2^-p is left."""

KEPT = 64
"""Runs of a look whose states are kept where a step errs too much."""

SAMPLED = 64
"""Records that tell the largest speed."""


def as_bound(value: Any) -> float:
    """A number above zero, or inf. Raises ModelError: it is none."""
    return np.inf if isinstance(value, float) and value == np.inf else as_number(value, "error_bound", above=0)


class Look(NamedTuple):
    """What was seen at step k of all runs, nan of those not looked at.

    error: (runs, 1 + units + 1) local errors of angles [rad], of v unit by unit, of the energy [J].   largest: (runs, units) of
    |v|.   change: likewise, of v in the step.   rough: (runs,) whether something jumps within it.
    """

    k: int
    error: np.ndarray
    largest: np.ndarray
    change: np.ndarray
    rough: np.ndarray


class State(NamedTuple):
    """x: (runs, nq + nv + 1) [q; v; 0].   energy: (runs, 1) [J]. nan where a step failed."""

    x: np.ndarray
    energy: np.ndarray


@dataclass
class Watch:
    """Looks at a run.

    series, hold, p, due: as the loop takes them.   bound: see BOUND.   looks: so far.   kept: run -> (k, state x) of looks at
    which its step errs too much.   largest: (runs, units) |v| of the whole run.
    """

    simulation: Simulation
    rollout: kernel.Rollout
    when: Times
    series: np.ndarray
    hold: Hold
    p: np.ndarray
    due: list[tuple[int, int]]
    threads: int
    bound: float
    looks: list[Look] = field(default_factory=list)
    kept: dict[int, list[tuple[int, np.ndarray]]] = field(default_factory=dict)
    largest: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))

    @property
    def mechanism(self) -> Mechanism:
        return self.simulation.mechanism

    @property
    def order(self) -> int:
        """Of the integrator."""
        return INTEGRATORS[self.simulation.scheme.integrator].order

    @cached_property
    def at(self) -> tuple[int, ...]:
        """The steps at which to look: those of a run are the same in any batch."""
        steps = self.when.steps
        count = min(LOOKS, 1 + steps * self.simulation.nx // WORK_OF_A_LOOK, max(1, steps // STEPS_OF_A_LOOK))
        return tuple(self.when.first + steps * i // count for i in range(count)) if steps else ()

    def until(self, k: int) -> int:
        """Steps from k to the next look, or to the end."""
        return min((i for i in self.at if i > k), default=self.when.first + self.when.steps) - k

    def look(self, k: int, x: np.ndarray, ordinary: np.ndarray) -> None:
        """At the states x (runs, nx) before step k.   ordinary: (runs,) whether the run makes that step, and as any other.

        Of fewer than STEPS_OF_A_LOOK steps only some runs are looked at, the first among them.
        """
        runs, units = len(x), len(self.units)
        some = np.flatnonzero(ordinary)[: max(1, runs * self.when.steps // STEPS_OF_A_LOOK)]
        error, top, change = (np.full((runs, n), np.nan) for n in (units + 2, units, units))
        found = Look(k, error, top, change, np.zeros(runs, dtype=bool))
        self.looks.append(found)
        if not some.size:
            return
        here = x if len(some) == runs else x[some]
        whole, half = self.ahead(k, here, some), self.ahead(k, here, some, 2)
        found.error[some] = error = self.difference(whole, half)
        found.largest[some] = top = self.sizes(half.x)[:, 1:]
        if k == self.when.first:
            begin = self._shown(k, here, some)
            found.largest[some] = top = np.fmax(top, self.sizes(begin)[:, 1:])
            found.change[some] = self.sizes(half.x - begin)[:, 1:]
        much = np.flatnonzero(self.when.steps * relative(error, top) > self.bound)
        if much.size:
            finer = self.difference(*(self.ahead(k, here[much], some[much], n) for n in (2, 4)))
            found.rough[some[much]] = rough = relative(finer, top[much]) > ROUGH * relative(error[much], top[much])
            for i in much[~rough][:KEPT].tolist():
                self.kept.setdefault(int(some[i]), []).append((k, here[i].copy()))

    def ahead(self, k: int, x: np.ndarray, some: np.ndarray, n: int = 1) -> State:
        """One step on from states x at step k, of these runs of the batch, in n parts."""
        series, p, whole = self.series, self.p, len(some) == len(self.p)
        r = self.rollout(
            x, series if whole or series.ndim == 2 else series[:, some], p if whole else p[some], t0=self.when.start,
            h=self.when.step / n, steps=n, first=k * n, every=(k + 1) * n, last=True, hold=self.hold,
            stride=self.when.stride * n, sampling=[(a * n, b * n) for a, b in self.due], threads=self.threads,
        )  # fmt: skip
        at = self.column("energy")
        E = r.records[-1, :, at] if at.stop > at.start else np.full((len(x), 1), np.nan)
        found = State(self._shown(k + 1, r.x, some), E)
        if r.status.any():
            found = State(*(np.where((r.status == 0)[:, None], part, np.nan) for part in found))
        return found

    def _shown(self, k: int, x: np.ndarray, some: np.ndarray) -> np.ndarray:
        s = self.simulation
        p = s.parameters(self.p[some], x) if s.system.own else self.p
        q, v = show(s.system, x, p, self.when.start + k * self.when.step)
        return np.hstack([q, v, np.zeros((len(x), 1))])

    def column(self, name: str) -> slice:
        """Where a signal stands in a record; an empty slice where it is not recorded."""
        start = 0
        for signal, (_, size) in self.simulation.signals.items():
            if signal == name:
                return slice(start, start + size)
            start += size
        return slice(0, 0)

    @cached_property
    def units(self) -> list[str]:
        """Of the entries of v, in the order in which errors of speeds stand."""
        return sorted(set(self.mechanism.v_units))

    @cached_property
    def groups(self) -> tuple[np.ndarray, np.ndarray]:
        """Which numbers of [q; v; 0] to take, and where among them each group begins: plain angles (and 0), v by unit."""
        m = self.mechanism
        turns = {i for turn in m.quaternions.values() for i in range(turn.start, turn.stop)}
        angles = [i for i, unit in enumerate(m.q_units) if unit in ("rad", "1") and i not in turns]
        parts = [[*angles, m.nq + m.nv]] + [[m.nq + i for i, u in enumerate(m.v_units) if u == unit] for unit in self.units]
        return np.concatenate(parts), np.cumsum([0, *map(len, parts[:-1])])

    def sizes(self, x: np.ndarray) -> np.ndarray:
        """(runs, 1 + units) the largest of x (runs, nq + nv + 1): of angles, a quaternion being half of one; of v by unit."""
        order, begin = self.groups
        found = np.maximum.reduceat(np.abs(x)[:, order], begin, axis=1)
        for turn in self.mechanism.quaternions.values():
            found[:, 0] = np.maximum(found[:, 0], 2 * np.sqrt((x[:, turn] ** 2).sum(axis=1)))
        return found

    def difference(self, a: State, b: State) -> np.ndarray:
        """(runs, 1 + units + 1) error of the states a, those of half the steps being b; see Look."""
        with np.errstate(all="ignore"):
            error = self.sizes(a.x - b.x)
            error[error < ROUNDING * (1 + self.sizes(b.x))] = 0
            return np.hstack([error, a.energy - b.energy]) / (1 - 2.0**-self.order)

    def at_start(self) -> np.ndarray:
        """(runs,) what the steps add up to at least if all err as the first does, beside speeds that they could come to."""
        (first,) = self.looks
        reach = first.largest + self.when.steps * first.change
        return np.where(first.rough, np.nan, self.when.steps * relative(first.error, reach))

    def gathered(self, records: np.ndarray, stopped: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """(runs,) what the steps of each run add up to, see BOUND, and the energy [J] that they so make; None of no step.

        records: (times, runs, signals).   stopped: (runs,) the step at which a run stopped, -1 if it did not.
        """
        if not self.looks:
            return None
        rough, values = (np.array([look[i] for look in self.looks]) for i in (4, 1))
        if rough.any():
            count = rough.sum(axis=0)
            values[rough & ((count < 2) | (2 * count <= len(rough)))] = np.nan
        total = self._sum(values, np.where(stopped < 0, self.when.first + self.when.steps, stopped))
        at, seen = self.column("v"), np.array([look.largest for look in self.looks])
        if at.stop > at.start:
            v = np.fmax.reduce(np.abs(records[:: max(1, len(records) // SAMPLED), :, at]), axis=0)
            x = np.hstack([np.zeros((len(v), self.mechanism.nq)), v, np.zeros((len(v), 1))])
            seen = np.concatenate([seen, self.sizes(x)[None, :, 1:]])
        self.largest = np.fmax.reduce(seen, axis=0)
        return relative(total, self.largest), total[:, -1]

    def _sum(self, values: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """(runs, ...) over all steps up to the ends (runs,), of values (looks, runs, ...) at the looks."""
        if len(values) == 1:
            return (ends - self.when.first)[:, None] * values[0]
        for i in range(1, len(values)):
            values[i] = np.where(np.isnan(values[i]), values[i - 1], values[i])
        for i in reversed(range(len(values) - 1)):
            values[i] = np.where(np.isnan(values[i]), values[i + 1], values[i])
        edges = np.array([*(look.k for look in self.looks), self.when.first + self.when.steps])
        steps = np.clip(ends, edges[:-1, None], edges[1:, None]) - edges[:-1, None]
        means = np.concatenate([_between(values[:-1], values[1:]), values[-1:]])
        return reduce(np.add, steps[:, :, None] * means)


def relative(error: np.ndarray, largest: np.ndarray) -> np.ndarray:
    """(runs,) of errors as in a Look: that of angles [rad], or of speeds beside the largest (runs, units), which is more."""
    with np.errstate(all="ignore"):
        speed = error[:, 1:-1]
        parts = np.where(speed > 0, speed / largest, speed)
    return reduce(np.fmax, parts.T, error[:, 0])


def _between(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The mean of what goes from a to b exponentially; in a straight line where it changes its sign."""
    with np.errstate(all="ignore"):
        least = np.finfo(float).eps * np.maximum(np.abs(a), np.abs(b))
        ratio = np.maximum(np.abs(b), least) / np.maximum(np.abs(a), least)
        curved = (np.abs(ratio - 1) > 1e-6) & (a * b >= 0)
        return np.where(curved, (b - a) / np.log(ratio), (a + b) / 2)
