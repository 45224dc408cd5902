"""Statistics of signals along a run, kept while it goes on instead of what they are taken of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from pfaffian.errors import ModelError, brief
from pfaffian.simulate.signals import RESERVED, Signal

Kind = Literal["maximum", "minimum", "mean", "integral", "final"]

UNIT_OF = {"integral": " s"}
"""Kind -> what it appends to the unit of the signal."""


@dataclass(frozen=True)
class Statistic:
    """One number for each entry of a signal, over all steps of a run until it stops.   signal: name of what it is taken of."""

    kind: Kind
    signal: str

    def __post_init__(self) -> None:
        if not isinstance(self.signal, str) or not self.signal:
            raise ModelError(f"{self.kind}: the name of a signal is needed, such as {self.kind}('u'), got {brief(self.signal)}")


def maximum(signal: str) -> Statistic:
    """The largest value of each entry of a signal along a run, for `run(..., record={"peak": maximum("u")})`.

    Args:
        signal: name of a signal that the run could record, or of an output.
    Returns:
        a value for `record` of `run`: all steps are looked at, and the signal itself is not kept.
    Raises ModelError: no name.

    Example:
        >>> import pfaffian as pf
        >>> slide = pf.joint("x", "prismatic", "world", "box", axis=(1, 0, 0), stiffness=8.0)
        >>> m = pf.mechanism("oscillator", [pf.body("box", mass=2.0)], [slide])
        >>> result = pf.run(m, {"x": 0.1}, duration=4.0, step=0.01, record={"fastest": pf.maximum("v")}, backend="numpy")
        >>> float(result["fastest"].sel(velocity="x").round(4))
        0.2
    """
    return Statistic("maximum", signal)


def minimum(signal: str) -> Statistic:
    """The smallest value of each entry of a signal along a run, see `maximum`.

    Args:
        signal: name of a signal that the run could record, or of an output.
    Returns:
        a value for `record` of `run`.
    Raises ModelError: no name.

    Example:
        >>> import pfaffian as pf
        >>> m = pf.mechanism("stone", [pf.body("stone", 1.0)], [pf.joint("z", "prismatic", "world", "stone")])
        >>> result = pf.run(m, duration=1.0, step=0.1, record={"lowest": pf.minimum("q")}, backend="numpy")
        >>> result["lowest"].values.round(3)
        array([-4.905])
    """
    return Statistic("minimum", signal)


def mean(signal: str) -> Statistic:
    """The mean of each entry of a signal over the instants between the steps of a run, first and last included, see `maximum`.

    Args:
        signal: name of a signal that the run could record, or of an output.
    Returns:
        a value for `record` of `run`.
    Raises ModelError: no name.

    Example:
        >>> import pfaffian as pf
        >>> m = pf.mechanism("stone", [pf.body("stone", 1.0)], [pf.joint("z", "prismatic", "world", "stone")])
        >>> result = pf.run(m, duration=1.0, step=0.1, record={"speed": pf.mean("v")}, backend="numpy")
        >>> result["speed"].values.round(3)
        array([-4.905])
    """
    return Statistic("mean", signal)


def integral(signal: str) -> Statistic:
    """The integral of each entry of a signal over the time of a run [unit s], by the trapezoidal rule, see `maximum`.

    Args:
        signal: name of a signal that the run could record, or of an output.
    Returns:
        a value for `record` of `run`.
    Raises ModelError: no name.

    Example:
        >>> import pfaffian as pf
        >>> m = pf.mechanism("stone", [pf.body("stone", 1.0)], [pf.joint("z", "prismatic", "world", "stone")])
        >>> result = pf.run(m, duration=1.0, step=0.1, record={"way": pf.integral("v")}, backend="numpy")
        >>> result["way"].values.round(3)
        array([-4.905])
    """
    return Statistic("integral", signal)


def final(signal: str) -> Statistic:
    """The last value of each entry of a signal, that at the end of a run or where it stopped, see `maximum`.

    Args:
        signal: name of a signal that the run could record, or of an output.
    Returns:
        a value for `record` of `run`.
    Raises ModelError: no name.

    Example:
        >>> import pfaffian as pf
        >>> m = pf.mechanism("stone", [pf.body("stone", 1.0)], [pf.joint("z", "prismatic", "world", "stone")])
        >>> result = pf.run(m, duration=1.0, step=0.1, record={"end": pf.final("q")}, backend="numpy")
        >>> result["end"].values.round(3)
        array([-4.905])
    """
    return Statistic("final", signal)


class Wanted(NamedTuple):
    """A caller's `record`, taken apart.   over_time: names of signals kept over time.   statistics: name -> Statistic."""

    over_time: tuple[str, ...]
    statistics: Mapping[str, Statistic]

    @property
    def signals(self) -> tuple[str, ...]:
        """Names of all that has to be computed."""
        return tuple(sorted({*self.over_time, *(s.signal for s in self.statistics.values())}))


def as_wanted(record: Any) -> Wanted | None:
    """The parts of a `record` given as a dict; None if it is none. Raises ModelError: a value is neither."""
    if not isinstance(record, Mapping):
        return None
    for name, value in record.items():
        if not isinstance(name, str) or not name or not (value is True or isinstance(value, Statistic)):
            raise ModelError(
                f"record: {brief(name)}: {brief(value)}: a statistic such as maximum('u') is needed, or True to keep the "
                "signal of that name over time"
            )
    if not any(isinstance(value, Statistic) for value in record.values()):
        raise ModelError("record: a dict without a statistic; write a list of names")
    found = {name: value for name, value in record.items() if isinstance(value, Statistic)}
    return Wanted(tuple(sorted(name for name, value in record.items() if value is True)), found)


def tally_of(wanted: Wanted | None, signals: Mapping[str, tuple[Signal, int]], every: int, step: float) -> Tally | None:
    """The Tally of a run, None without statistics. Raises ModelError: a result has something else of a statistic's name."""
    if wanted is None:
        return None
    taken = RESERVED | set(signals) | {s.dim for s, _ in signals.values() if s.dim} | {f"{n}_component" for n in signals}
    for name in wanted.statistics:
        if name in taken or "/" in name:
            why = "a name without '/' is needed" if "/" in name else "the result has something else of that name"
            raise ModelError(f"record: statistic {brief(name)}: {why}; choose another")
    return Tally(wanted, signals, every, step)


class Tally:
    """Statistics of runs on their way.

    wanted: what to keep.   signals: those of a record, in order, with their entries.   every: steps between two records that
    are kept over time.   step: [s].
    """

    def __init__(self, wanted: Wanted, signals: Mapping[str, tuple[Signal, int]], every: int, step: float) -> None:
        ends = np.cumsum([size for _, size in signals.values()]).tolist()
        at = {name: slice(end - size, end) for end, (name, (_, size)) in zip(ends, signals.items(), strict=True)}
        self.wanted, self.every, self.step = wanted, every, step
        self.columns = {name: at[x.signal] for name, x in wanted.statistics.items()}
        kept = [range(where.start, where.stop) for name, where in at.items() if name in wanted.over_time]
        self.kept = np.array([i for entries in kept for i in entries], dtype=int)
        self.parts: dict[tuple[str, int], _Sums] = {}

    def add(self, records: np.ndarray, first: int, run: int) -> np.ndarray:
        """Look at the records (times, runs, entries) of all steps from `first` on, of the runs from `run` on; those that are
        kept over time."""
        for name, where in self.columns.items():
            values = records[:, :, where]
            self.parts[name, run] = values_added(self.parts.get((name, run)), values)
        steps = np.arange(first, first + len(records))
        return records[np.flatnonzero(steps % self.every == 0)][:, :, self.kept]

    def value(self, name: str) -> np.ndarray:
        """(runs, entries) of a statistic; NaN for a run without a number."""
        blocks = [self.parts[key] for key in sorted(self.parts) if key[0] == name]
        x, kind = _Sums(*map(np.concatenate, zip(*blocks, strict=True))), self.wanted.statistics[name].kind
        with np.errstate(invalid="ignore", divide="ignore"):
            found = {
                "maximum": x.most,
                "minimum": x.least,
                "mean": x.total / x.numbers,
                "integral": self.step * (x.total - (x.first + x.last) / 2),
                "final": x.last,
            }[kind]
        return np.where(x.numbers > 0, found, np.nan)


class _Sums(NamedTuple):
    """(runs, entries) of what was seen so far; NaN is left out.   total: added up in the order of time.   numbers: how many."""

    most: np.ndarray
    least: np.ndarray
    total: np.ndarray
    numbers: np.ndarray
    first: np.ndarray
    last: np.ndarray


def values_added(so_far: _Sums | None, values: np.ndarray) -> _Sums:
    """So far, and values (times, runs, entries) after that: the same bits however many come at a time."""
    shape = values.shape[1:]
    nothing = np.full(shape, np.nan)
    x = so_far or _Sums(nothing, nothing, np.zeros(shape), np.zeros(shape), nothing, nothing)
    if not len(values):
        return x
    there = ~np.isnan(values)
    some, at = there.any(axis=0), np.arange(len(values))[:, None, None]
    begin = np.take_along_axis(values, np.argmax(there, axis=0)[None], axis=0)[0]
    end = np.take_along_axis(values, np.max(np.where(there, at, 0), axis=0)[None], axis=0)[0]
    added = np.cumsum(np.concatenate([x.total[None], np.where(there, values, 0.0)]), axis=0)[-1]  # one after another
    return _Sums(
        np.fmax(x.most, np.fmax.reduce(values, axis=0)),
        np.fmin(x.least, np.fmin.reduce(values, axis=0)),
        added,
        x.numbers + there.sum(axis=0),
        np.where(np.isnan(x.first), begin, x.first),
        np.where(some, end, x.last),
    )
