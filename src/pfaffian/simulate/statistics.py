"""Statistics of signals along a run, kept while it goes on instead of what they are taken of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from pfaffian.errors import ModelError, brief
from pfaffian.evaluate.arrays import as_number, one_of
from pfaffian.model.number import floats
from pfaffian.simulate.signals import RESERVED, Signal, entries_of

Direction = Literal["rising", "falling", "either"]


class Seen(NamedTuple):
    """What a call adds.   values: (times, runs, entries).   there: the same of bool, whether each is a number.
    before: (runs, entries) the values at the step before, NaN at the start.   times: (times,) [s].   step: [s]."""

    values: np.ndarray
    there: np.ndarray
    before: np.ndarray
    times: np.ndarray
    step: float


def _most(so_far: np.ndarray | None, seen: Seen, _: Statistic) -> np.ndarray:
    return np.fmax.reduce(seen.values if so_far is None else np.concatenate([so_far[None], seen.values]), axis=0)


def _least(so_far: np.ndarray | None, seen: Seen, _: Statistic) -> np.ndarray:
    return np.fmin.reduce(seen.values if so_far is None else np.concatenate([so_far[None], seen.values]), axis=0)


def _total(so_far: np.ndarray | None, seen: Seen, _: Statistic) -> np.ndarray:
    """Added up one after another in the order of time, so that the bits do not depend on how many come at a time."""
    begin = np.zeros(seen.values.shape[1:]) if so_far is None else so_far
    return np.cumsum(np.concatenate([begin[None], np.where(seen.there, seen.values, 0.0)]), axis=0)[-1]


def _numbers(so_far: np.ndarray | None, seen: Seen, _: Statistic) -> np.ndarray:
    return seen.there.sum(axis=0) + (0 if so_far is None else so_far)


def _first(so_far: np.ndarray | None, seen: Seen, _: Statistic) -> np.ndarray:
    begin = np.take_along_axis(seen.values, np.argmax(seen.there, axis=0)[None], axis=0)[0]
    return begin if so_far is None else np.where(np.isnan(so_far), begin, so_far)


def _last(so_far: np.ndarray | None, seen: Seen, _: Statistic) -> np.ndarray:
    at = np.where(seen.there, np.arange(len(seen.values))[:, None, None], 0).max(axis=0)
    end = np.take_along_axis(seen.values, at[None], axis=0)[0]
    return end if so_far is None else np.where(seen.there.any(axis=0), end, so_far)


def _crossing(so_far: np.ndarray | None, seen: Seen, of: Statistic) -> np.ndarray:
    """The time of the first step across the level, interpolated linearly."""
    level, direction = of.options
    x = np.concatenate([seen.before[None], seen.values]) - level
    a, b = x[:-1], x[1:]
    up, down = (a < 0) & (b >= 0), (a > 0) & (b <= 0)
    across = up if direction == "rising" else down if direction == "falling" else up | down
    k = np.argmax(across, axis=0)[None]
    a, b = np.take_along_axis(a, k, axis=0)[0], np.take_along_axis(b, k, axis=0)[0]
    with np.errstate(invalid="ignore", divide="ignore"):
        time = seen.times[k[0]] - seen.step * (b / (b - a))
    time = np.where(across.any(axis=0), time, np.nan)
    return time if so_far is None else np.where(np.isnan(so_far), time, so_far)


def _counts(so_far: np.ndarray | None, seen: Seen, of: Statistic) -> np.ndarray:
    """(runs, entries, bins) how many values there are from each edge up to the next; the last edge belongs to the last bin."""
    edges, shape = np.array(of.options), seen.values.shape[1:]
    bins = len(edges) - 1
    at = np.where(seen.values == edges[-1], bins - 1, np.searchsorted(edges, seen.values, side="right") - 1)
    inside = (at >= 0) & (at < bins) & seen.there
    place = np.broadcast_to(np.arange(shape[0] * shape[1]).reshape(shape) * bins, at.shape)
    found = np.bincount((place + at)[inside], minlength=shape[0] * shape[1] * bins).reshape(*shape, bins)
    return found if so_far is None else so_far + found


PARTS: Mapping[str, Callable[[np.ndarray | None, Seen, Statistic], np.ndarray]] = {
    "most": _most, "least": _least, "total": _total, "numbers": _numbers, "first": _first, "last": _last,
    "crossing": _crossing, "counts": _counts,
}  # fmt: skip
"""What is kept of a signal -> that so far (None at first), with what a call adds. NaN is left out."""


class Kind(NamedTuple):
    """A kind of statistic.   parts: what it is made of.   value: (step [s], the parts) -> (runs, entries, ...).
    unit: of the signal -> of the statistic."""

    parts: tuple[str, ...]
    value: Callable[..., np.ndarray] = lambda step, x: x
    unit: Callable[[str], str] = lambda unit: unit


KINDS: Mapping[str, Kind] = {
    "maximum": Kind(("most",)),
    "minimum": Kind(("least",)),
    "mean": Kind(("total", "numbers"), lambda step, total, numbers: total / numbers),
    "integral": Kind(
        ("total", "first", "last"),
        lambda step, total, first, last: step * (total - (first + last) / 2),
        lambda unit: f"{unit} s",
    ),
    "final": Kind(("last",)),
    "first_crossing": Kind(("crossing",), unit=lambda unit: "s"),
    "histogram": Kind(("counts",), unit=lambda unit: "1"),
}


@dataclass(frozen=True)
class Statistic:
    """Numbers for each entry of a signal, over all steps of a run until it stops.   kind: one of KINDS.   signal: name of what
    it is taken of.   options: of the kind."""

    kind: str
    signal: str
    options: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.signal, str) or not self.signal:
            raise ModelError(f"{self.kind}: the name of a signal is needed, such as {self.kind}('u'), got {brief(self.signal)}")


_DOC = """{what}

    All steps are looked at, and the signal itself is not kept.

    Args:
        signal: name of a signal that the run could record, or of an output.
    Returns:
        a value for `record` of `run`, or `keep` of `sweep`: {unit}.
    Raises ModelError: no name.

    Example:
        >>> import pfaffian as pf
        >>> m = pf.mechanism("stone", [pf.body("stone", 1.0)], [pf.joint("z", "prismatic", "world", "stone")])
        >>> record = {{"found": pf.statistics.{name}("{signal}")}}
        >>> pf.run(m, v=[2.0], duration=1.0, step=0.1, record=record, backend="numpy")["found"].values.round(3)
        array([{value}])
    """


def _simple(
    name: str, what: str, signal: str, value: str, unit: str = "in the unit of the signal"
) -> Callable[[str], Statistic]:
    """The public function of a kind without options."""

    def made(signal: str) -> Statistic:
        return Statistic(name, signal)

    made.__name__ = made.__qualname__ = name
    made.__doc__ = _DOC.format(name=name, what=what, signal=signal, value=value, unit=unit)
    return made


maximum = _simple("maximum", "The largest value of each entry of a signal along a run.", "v", "2.")
minimum = _simple("minimum", "The smallest value of each entry of a signal along a run.", "q", "-2.905")
mean = _simple(
    "mean", "The mean of each entry of a signal over the instants between the steps of a run, first and last included.",
    "v", "-2.905",
)  # fmt: skip
integral = _simple(
    "integral", "The integral of each entry of a signal over the time of a run, by the trapezoidal rule.",
    "v", "-2.905", "in the unit of the signal times s",
)  # fmt: skip
final = _simple(
    "final", "The last value of each entry of a signal, that at the end of a run or where it stopped.", "q", "-2.905"
)


def first_crossing(signal: str, level: float = 0.0, direction: Direction = "either") -> Statistic:
    """The time at which each entry of a signal first reaches or passes a level, NaN if it never does.

    A start exactly at the level is no crossing. Between two steps the signal is taken as a straight line.

    Args:
        signal: name of a signal that the run could record, or of an output.
        level: in the unit of the signal, 0 by default.
        direction: "rising", "falling" or "either" (default): from which side.
    Returns:
        a value for `record` of `run`, or `keep` of `sweep`: in s.
    Raises ModelError: no name; level is no number; another direction.

    Example:
        A stone thrown up at 2 m/s is back after 2 * 2 / 9.81 s:

        >>> import pfaffian as pf
        >>> m = pf.mechanism("stone", [pf.body("stone", 1.0)], [pf.joint("z", "prismatic", "world", "stone")])
        >>> record = {"down": pf.statistics.first_crossing("q", direction="falling")}
        >>> pf.run(m, v=[2.0], duration=1.0, step=1e-3, record=record, backend="numpy")["down"].values.round(4)
        array([0.4077])
    """
    one_of(direction, get_args(Direction), "first_crossing: direction")
    return Statistic("first_crossing", signal, (as_number(level, "first_crossing: level"), direction))


def histogram(signal: str, edges: Any) -> Statistic:
    """How often, counted in steps of a run, each entry of a signal lies in each of some intervals.

    Args:
        signal: name of a signal that the run could record, or of an output.
        edges: (n + 1,) increasing, in the unit of the signal. A value at an edge counts above it, at the last edge below it;
            what lies outside is not counted.
    Returns:
        a value for `record` of `run`, or `keep` of `sweep`: n counts for each entry, over the dimension NAME_bin.
    Raises ModelError: no name; fewer than two edges, or such that do not increase.

    Example:
        >>> import pfaffian as pf
        >>> m = pf.mechanism("stone", [pf.body("stone", 1.0)], [pf.joint("z", "prismatic", "world", "stone")])
        >>> record = {"heights": pf.statistics.histogram("q", [-3, -1, 0, 1])}
        >>> pf.run(m, v=[2.0], duration=1.0, step=0.1, record=record, backend="numpy")["heights"].values
        array([[4, 2, 5]])
    """
    found = floats(edges, "histogram: edges")
    if found.ndim != 1 or len(found) < 2 or not (np.diff(found) > 0).all():
        raise ModelError(f"histogram: edges: at least two increasing numbers are needed, got {brief(edges)}")
    return Statistic("histogram", signal, tuple(found.tolist()))


class Recording(NamedTuple):
    """A caller's `record`, taken apart.   over_time: names of signals kept over time.   statistics: name -> Statistic."""

    over_time: tuple[str, ...]
    statistics: Mapping[str, Statistic]

    @property
    def signals(self) -> tuple[str, ...]:
        """Names of all that has to be computed."""
        return tuple(sorted({*self.over_time, *(s.signal for s in self.statistics.values())}))


def as_recording(record: Any) -> Recording | None:
    """The parts of a `record` given as a dict; None if it is none. Raises ModelError: a value is neither."""
    if not isinstance(record, Mapping):
        return None
    for name, value in record.items():
        if not isinstance(name, str) or not name or not (value is True or isinstance(value, Statistic)):
            raise ModelError(
                f"record: {brief(name)}: {brief(value)}: a statistic such as statistics.maximum('u') is needed, or True to "
                "keep the signal of that name over time"
            )
    if not any(isinstance(value, Statistic) for value in record.values()):
        raise ModelError("record: a dict without a statistic; write a list of names")
    found = {name: value for name, value in record.items() if isinstance(value, Statistic)}
    return Recording(tuple(sorted(name for name, value in record.items() if value is True)), found)


def tally_of(
    recording: Recording | None, signals: Mapping[str, tuple[Signal, int]], every: int, start: float, step: float
) -> Tally | None:
    """The Tally of a run, None without statistics. Raises ModelError: a result has something else of a statistic's name."""
    if recording is None:
        return None
    reserved = RESERVED | set(signals) | {s.dim for s, _ in signals.values() if s.dim} | {f"{n}_component" for n in signals}
    reserved |= {f"{n}_bin" for n, s in recording.statistics.items() if s.kind == "histogram"}
    for name in recording.statistics:
        if name in reserved or "/" in name:
            why = "a name without '/' is needed" if "/" in name else "the result has something else of that name"
            raise ModelError(f"record: statistic {brief(name)}: {why}; choose another")
    return Tally(recording, signals, every, start, step)


class Tally:
    """Statistics of runs on their way.

    recording: what to keep.   signals: those of a record, in order, with their entries.   every: steps between two records that
    are kept over time.   start, step: [s].
    """

    def __init__(
        self, recording: Recording, signals: Mapping[str, tuple[Signal, int]], every: int, start: float, step: float
    ) -> None:
        at = entries_of(signals)
        self.recording, self.every, self.start, self.step = recording, every, start, step
        self.columns = {x.signal: at[x.signal] for x in recording.statistics.values()}
        kept = [range(where.start, where.stop) for name, where in at.items() if name in recording.over_time]
        self.kept = np.array([i for entries in kept for i in entries], dtype=int)
        self.parts: dict[int, dict[tuple[str, str, tuple[Any, ...]], np.ndarray]] = {}
        self.before: dict[tuple[int, str], np.ndarray] = {}

    def add(self, records: np.ndarray, first: int, run: int) -> np.ndarray:
        """Look at the records (times, runs, entries) of all steps from `first` on, of the runs from `run` on; those that are
        kept over time."""
        steps = np.arange(first, first + len(records))
        if len(records):
            for signal, where in self.columns.items():
                self._add(signal, records[:, :, where], steps, run)
        return records[np.flatnonzero(steps % self.every == 0)][:, :, self.kept]

    def _add(self, signal: str, values: np.ndarray, steps: np.ndarray, run: int) -> None:
        before = self.before.get((run, signal), np.full(values.shape[1:], np.nan))
        seen = Seen(values, ~np.isnan(values), before, self.start + self.step * steps, self.step)
        parts = self.parts.setdefault(run, {})
        needed = {(part, signal, x.options): x for x in self.recording.statistics.values() if x.signal == signal
                  for part in KINDS[x.kind].parts}  # fmt: skip
        for key, statistic in needed.items():
            parts[key] = PARTS[key[0]](parts.get(key), seen, statistic)
        self.before[run, signal] = values[-1].copy()

    def value(self, name: str) -> np.ndarray:
        """(runs, entries, ...) of a statistic; NaN for a run without a number."""
        statistic = self.recording.statistics[name]
        kind, blocks = KINDS[statistic.kind], [self.parts[run] for run in sorted(self.parts)]
        keys = [(part, statistic.signal, statistic.options) for part in kind.parts]
        with np.errstate(invalid="ignore", divide="ignore"):
            return kind.value(self.step, *[np.concatenate([block[key] for block in blocks]) for key in keys])
