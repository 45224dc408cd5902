"""Statistics of the continuous motion of runs to an accuracy: over all instants, not only those at which steps end.

Within each step a signal is a polynomial of degree 8 through its values at Chebyshev's points, each of them computed by a step
of that length. A step in which the polynomial does not converge is divided, so that kinks and jumps of a signal are located to
1 / 4096 of a step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from pfaffian.errors import ModelError, listed
from pfaffian.maths import chebyshev
from pfaffian.simulate.step.running_statistics import CHOOSING, KINDS, Recording, Statistic, check_statistics
from pfaffian.simulate.step.signals import entries_of
from pfaffian.states.signal import Signal

CONVERGED = 0.1
"""Largest part of a polynomial's size in its last two terms, relative to the accuracy of the run, for which it serves."""

WHOLE, DEEPEST, FEW = 3, 12, 4
"""Steps are divided into 2^WHOLE parts at most, but a few, FEW, of their parts into 2^DEEPEST: a kink lies in one of them,
whereas noise is everywhere."""

BENT, ROUNDED = 0.25, 1e-13
"""How far a polynomial may rise above the ends of a cell, in second differences between the cells, of which a parabola takes an
eighth; and the least such rise that is looked for, relative to the signal's size."""

VALUES = 2**20
"""Number of values of signals that are worked on at once."""


class Steps(NamedTuple):
    """Steps of lanes, in the order of time.   rows: (n, numbers) the lanes before them.   w: (n, 2 nw).   p: (n, np).
    begin, end: (n,) [s] since the first run began.   lanes: (n,) of each."""

    rows: np.ndarray
    w: np.ndarray
    p: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    lanes: np.ndarray

    def some(self, at: np.ndarray) -> Steps:
        """The steps of the indices `at`."""
        return Steps(*(x[at] for x in self))


class Pieces(NamedTuple):
    """A signal in parts of steps, in the order of time.   values: (nodes, n, entries), nan where one of them is.
    c: their polynomials.   smooth: (n, entries) whether these serve; else the signal is linear between the nodes.
    grid: (cells + 1, n, entries) values.   reach: (cells, n, entries) how far a value within a cell may lie beyond those at its
    ends.   begin, end: (n,) [s].   long: (n, entries) [s], 0 where the signal is nan.
    before: (n, entries) the value before each of them, nan at the start.   runs: (n,) of each."""

    values: np.ndarray
    c: np.ndarray
    smooth: np.ndarray
    grid: np.ndarray
    reach: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    long: np.ndarray
    before: np.ndarray
    runs: np.ndarray

    def root(self, level: float, cell: np.ndarray, k: np.ndarray, i: np.ndarray) -> np.ndarray:
        """(n,) where entries i of the pieces k pass a level within their cells, as parts of the pieces."""
        a, b = (self.grid[c, k, i] - level for c in (cell, cell + 1))
        with np.errstate(invalid="ignore", divide="ignore"):
            linear = chebyshev.GRID[cell] + a / (a - b) / chebyshev.CELLS
        ends = chebyshev.GRID[cell], chebyshev.GRID[cell + 1]
        return np.where(self.smooth[k, i], chebyshev.root(self.c[:, k, i], level, *ends), linear)

    def turns(self, level: float | np.ndarray, sign: float) -> Turns:
        """Where polynomials rise above a level within cells whose ends do not, or fall below it for a sign of -1.

        level: one, or (n, entries).
        """
        grid = sign * (self.grid - level)
        ends = np.fmax(grid[:-1], grid[1:])
        with np.errstate(invalid="ignore"):
            cell, k, i = np.nonzero(self.smooth & (ends <= 0) & (ends + self.reach > 0))
            c = self.c[:, k, i]
            s = chebyshev.peak(sign * c, cell)
            y = chebyshev.at(c, s)
            beyond = sign * (y - np.broadcast_to(level, self.smooth.shape)[k, i]) > 0
        return Turns(*(x[beyond] for x in (cell, k, i, s, y)))

    def roots(self, level: float, sign: float) -> tuple[Turns, np.ndarray, np.ndarray]:
        """The `turns` about a level, and where the polynomials pass it before and after each of them."""
        of = self.turns(level, sign)
        c, low, high = self.c[:, of.k, of.i], chebyshev.GRID[of.cell], chebyshev.GRID[of.cell + 1]
        return of, chebyshev.root(c, level, low, of.s), chebyshev.root(c, level, of.s, high)


class Turns(NamedTuple):
    """Largest or smallest values of signals within cells.   cell, k, i: (n,) numbers of the cell, the piece and the entry.
    s: (n,) places, as parts of the piece.   y: (n,) values there."""

    cell: np.ndarray
    k: np.ndarray
    i: np.ndarray
    s: np.ndarray
    y: np.ndarray


Evaluate = Callable[[Steps, np.ndarray], np.ndarray]
"""(steps, instants (n,)) -> signals (n, width) at an instant within each step."""


def tally_of_motion(
    recording: Recording | None, signals: Mapping[str, tuple[Signal, int]], runs: int, accuracy: float
) -> MotionTally | None:
    """The MotionTally of runs, None without statistics.

    Raises ModelError: a result cannot store one under its name, or needs the instant of the largest value of another signal.
    """
    if recording is None:
        return None
    check_statistics(recording, signals)
    if names := [name for name, x in recording.statistics.items() if x.kind in CHOOSING]:
        raise ModelError(
            f"record: {listed(names)}: values at the instant of a maximum are taken from steps of one length; give step= in "
            "place of accuracy"
        )
    return MotionTally(recording, signals, runs, accuracy)


class MotionTally:
    """The statistics of runs, accumulated step by step.

    recording: which statistics, and which signals to store over time.   signals: name -> (Signal, number of entries), in the
    order of a record.   runs: their number.   accuracy: of the runs.
    """

    over = "over the motion"

    def __init__(self, recording: Recording, signals: Mapping[str, tuple[Signal, int]], runs: int, accuracy: float) -> None:
        at = entries_of(signals)
        self.recording, self.signals, self.runs, self.accuracy = recording, signals, runs, accuracy
        self.columns = {x.signal: at[x.signal] for x in recording.statistics.values()}
        stored = [range(where.start, where.stop) for name, where in at.items() if name in recording.over_time]
        self.stored_entries = np.array([i for entries in stored for i in entries], dtype=int)
        sizes = {name: (runs, where.stop - where.start) for name, where in self.columns.items()}
        self.before = {name: np.full(size, np.nan) for name, size in sizes.items()}
        self.so_far = {name: _begun(x, sizes[x.signal]) for name, x in recording.statistics.items()}
        self.times = {name: np.zeros(size) for name, size in sizes.items()}

    def restart(self, runs: np.ndarray) -> None:
        """Forget what was accumulated for some runs, which are solved once more."""
        new = MotionTally(self.recording, self.signals, len(runs), self.accuracy)
        for mine, its in ((self.before, new.before), (self.so_far, new.so_far), (self.times, new.times)):
            for name in mine:
                mine[name][runs] = its[name]

    def add(self, steps: Steps, runs: np.ndarray, evaluate: Evaluate) -> None:
        """Add steps to the statistics.   runs: (n,) of each."""
        width = sum(size for _, size in self.signals.values())
        many = max(1, VALUES // ((chebyshev.DEGREE + 1) * width))
        for first in range(0, len(runs), many):
            at = np.arange(first, min(first + many, len(runs)))
            index, begin, end, values, smooth = self._divided(steps.some(at), evaluate)
            for name, where in self.columns.items():
                self._add(name, _pieces(values[:, :, where], smooth[:, where], begin, end, self.before[name], runs[at][index]))

    def _divided(self, steps: Steps, evaluate: Evaluate) -> tuple[np.ndarray, ...]:
        """The steps in parts in which the signals are polynomials: the step of each (n,), begin, end (n,), values (nodes, n,
        width), and whether they are (n, width)."""
        index, begin, end = np.arange(len(steps.begin)), steps.begin, steps.end
        size, found = None, list[tuple[np.ndarray, ...]]()
        for depth in range(DEEPEST + 1):
            values = _at_nodes(steps.some(index), begin, end, evaluate)
            size = np.abs(values).max(axis=0) if size is None else size
            c = chebyshev.coefficients(values)
            with np.errstate(invalid="ignore"):
                smooth = ~(np.abs(c[-2:]).sum(axis=0) > CONVERGED * self.accuracy * size[index])
            rough = ~smooth.all(axis=1) & (depth < DEEPEST)
            if depth >= WHOLE:
                rough &= np.bincount(index[rough], minlength=len(size))[index] <= FEW
            found.append((index[~rough], begin[~rough], end[~rough], values[:, ~rough].swapaxes(0, 1), smooth[~rough]))
            if not rough.any():
                break
            middle = (begin + end)[rough] / 2
            index = np.repeat(index[rough], 2)
            begin, end = (np.stack(x, axis=1).ravel() for x in ((begin[rough], middle), (middle, end[rough])))
        index, begin, end, values, smooth = (np.concatenate(part) for part in zip(*found, strict=True))
        order = np.lexsort((begin, index))
        return index[order], begin[order], end[order], values[order].swapaxes(0, 1), smooth[order]

    def _add(self, signal: str, of: Pieces) -> None:
        """Add the parts of steps to the statistics of one signal."""
        np.add.at(self.times[signal], of.runs, of.long)
        for name, x in self.recording.statistics.items():
            if x.signal == signal:
                ADDED[x.kind](self.so_far[name], x, of)
        self.before[signal][of.runs] = of.values[-1]

    def unit(self, kind: str, of: str) -> str:
        """The unit of a kind of statistic of a signal with the unit `of`."""
        return "s" if kind == "histogram" else KINDS[kind].unit(of)

    def value(self, name: str) -> np.ndarray:
        """(runs, entries, ...) values of a statistic."""
        x = self.recording.statistics[name]
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.so_far[name] / self.times[x.signal] if x.kind == "mean" else self.so_far[name]


def _begun(x: Statistic, size: tuple[int, int]) -> np.ndarray:
    """A statistic before the first step."""
    if x.kind == "histogram":
        return np.zeros((*size, len(x.options) - 1))
    return np.full(size, 0.0 if x.kind in ("mean", "integral") else np.nan)


def _at_nodes(steps: Steps, begin: np.ndarray, end: np.ndarray, evaluate: Evaluate) -> np.ndarray:
    """(nodes, n, width) signals at the nodes of parts of steps."""
    n, long = len(begin), end - begin
    instants = [begin + s * long for s in chebyshev.NODES[:-1]] + [end]
    each = np.tile(np.arange(n), len(instants))
    return evaluate(steps.some(each), np.concatenate(instants)).reshape(len(instants), n, -1)


def _pieces(
    values: np.ndarray, smooth: np.ndarray, begin: np.ndarray, end: np.ndarray, before: np.ndarray, runs: np.ndarray
) -> Pieces:
    """The Pieces of a signal with these values (nodes, n, entries).   before: (runs, entries) its values before them."""
    known = np.isfinite(values).all(axis=0)
    values = np.where(known, values, np.nan)
    c = chebyshev.coefficients(values)
    grid = np.where(smooth, chebyshev.on_grid(values, c), chebyshev.linear_on_grid(values))
    long = np.where(known, (end - begin)[:, None], 0.0)
    bend = np.abs(np.diff(grid, 2, axis=0))
    bend = np.concatenate([bend[:1], np.fmax(bend[:-1], bend[1:]), bend[-1:]])
    reach = BENT * bend - ROUNDED * np.abs(grid).max(axis=0)
    return Pieces(values, c, smooth, grid, reach, begin, end, long, _before(values[-1], runs, before), runs)


def _before(ends: np.ndarray, runs: np.ndarray, before: np.ndarray) -> np.ndarray:
    """(n, entries) the value of a signal before each part: at the end of the part before, of the same run."""
    order = np.argsort(runs, kind="stable")
    first = np.diff(runs[order], prepend=-1) != 0
    found = np.empty_like(ends)
    found[order] = np.where(first[:, None], before[runs[order]], np.roll(ends[order], 1, axis=0))
    return found


def _extreme(so_far: np.ndarray, of: Pieces, sign: float) -> None:
    """The largest value, or the smallest for a sign of -1: on the grid, and between its points where that may be larger."""
    better = np.fmax if sign > 0 else np.fmin
    better.at(so_far, of.runs, better.reduce(of.grid, axis=0))
    turns = of.turns(so_far[of.runs], sign)
    better.at(so_far, (of.runs[turns.k], turns.i), turns.y)


def _crossing(so_far: np.ndarray, x: Statistic, of: Pieces) -> None:
    """The time of the first crossing of a level [s]: between two parts, where the signal jumps, or within one."""
    level, direction = x.options
    grid = np.concatenate([of.before[None], of.grid]) - level
    a, b = grid[:-1], grid[1:]
    up, down = (a < 0) & (b >= 0), (a > 0) & (b <= 0)
    across = up if direction == "rising" else down if direction == "falling" else up | down
    k, i = np.nonzero(across.any(axis=0))
    cell = np.argmax(across[:, k, i], axis=0) - 1
    within = np.where(cell < 0, 0.0, of.root(level, np.maximum(cell, 0), k, i))
    np.fmin.at(so_far, (of.runs[k], i), of.begin[k] + within * (of.end - of.begin)[k])
    for sign in (1.0, -1.0):
        turns, before, after = of.roots(level, sign)
        within = after if direction == ("falling" if sign > 0 else "rising") else before
        np.fmin.at(so_far, (of.runs[turns.k], turns.i), of.begin[turns.k] + within * (of.end - of.begin)[turns.k])


def _histogram(so_far: np.ndarray, x: Statistic, of: Pieces) -> None:
    """The time [s] from each edge up to the next; the last edge belongs to the last bin."""
    above = list[np.ndarray]()
    for edge in x.options:
        inside = of.grid > edge if edge == x.options[-1] else of.grid >= edge
        part = (inside[:-1] & inside[1:]).sum(axis=0) / chebyshev.CELLS
        cell, k, i = np.nonzero(inside[:-1] != inside[1:])
        s = of.root(edge, cell, k, i)
        over = np.where(inside[1:][cell, k, i], chebyshev.GRID[cell + 1] - s, s - chebyshev.GRID[cell])
        np.add.at(part, (k, i), over)
        for sign in (1.0, -1.0):
            turns, before, after = of.roots(edge, sign)
            np.add.at(part, (turns.k, turns.i), sign * (after - before))
        above.append(part)
    parts = np.stack([a - b for a, b in pairwise(above)], axis=-1)
    np.add.at(so_far, of.runs, parts * of.long[:, :, None])


def _integral(so_far: np.ndarray, _: Statistic, of: Pieces) -> None:
    """The integral over time."""
    np.add.at(so_far, of.runs, chebyshev.integral(np.where(of.long > 0, of.values, 0.0)) * of.long)


def _final(so_far: np.ndarray, _: Statistic, of: Pieces) -> None:
    """The last value."""
    k, i = np.nonzero(np.isfinite(of.values[-1]))
    so_far[of.runs[k], i] = of.values[-1][k, i]


ADDED: Mapping[str, Callable[[np.ndarray, Statistic, Pieces], None]] = {
    "maximum": lambda so_far, x, of: _extreme(so_far, of, 1.0),
    "minimum": lambda so_far, x, of: _extreme(so_far, of, -1.0),
    "mean": _integral,
    "integral": _integral,
    "final": _final,
    "first_crossing": _crossing,
    "histogram": _histogram,
}
"""Kind of a statistic -> what adds (statistic so far, Statistic, Pieces) to it, in place."""
