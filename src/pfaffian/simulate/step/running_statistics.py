"""Statistics of signals over the steps of a run, accumulated during the run without storing the signals.

Those of runs to an accuracy are in `motion_statistics.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from pfaffian.errors import ModelError, brief
from pfaffian.evaluate.single_values import as_number, one_of
from pfaffian.model.number import floats
from pfaffian.simulate.step.signals import RESERVED, entries_of
from pfaffian.states.signal import Signal
from pfaffian.tables import Table

Direction = Literal["rising", "falling", "either"]


class Segment(NamedTuple):
    """A signal over the steps of one call.   values: (times, runs, entries).   valid: (times, runs, entries) whether not NaN.
    before: (runs, entries) the values at the step before, NaN at the start.   times: (times,) [s].   step: [s].
    peak: of the signal whose maximum chooses a step, this one or another."""

    values: np.ndarray
    valid: np.ndarray
    before: np.ndarray
    times: np.ndarray
    step: float
    peak: Peak


class Peak(NamedTuple):
    """The largest values of a signal over the steps of one call.   step: (runs, entries) the first step that has it.
    value: (runs, entries), -inf where all are NaN."""

    step: np.ndarray
    value: np.ndarray


def _peak(values: np.ndarray) -> Peak:
    """The Peak of values (times, runs, entries)."""
    known = np.where(np.isnan(values), -np.inf, values)
    k = known.argmax(axis=0)
    return Peak(k, np.take_along_axis(known, k[None], axis=0)[0])


def _most(so_far: np.ndarray | None, segment: Segment, _: Statistic) -> np.ndarray:
    """The largest value."""
    return np.fmax.reduce(segment.values if so_far is None else np.concatenate([so_far[None], segment.values]), axis=0)


def _least(so_far: np.ndarray | None, segment: Segment, _: Statistic) -> np.ndarray:
    """The smallest value."""
    return np.fmin.reduce(segment.values if so_far is None else np.concatenate([so_far[None], segment.values]), axis=0)


def _total(so_far: np.ndarray | None, segment: Segment, _: Statistic) -> np.ndarray:
    """The sum of all values, added one by one in the order of time, so that the bits do not depend on the length of calls."""
    begin = np.zeros(segment.values.shape[1:]) if so_far is None else so_far
    return np.cumsum(np.concatenate([begin[None], np.where(segment.valid, segment.values, 0.0)]), axis=0)[-1]


def _numbers(so_far: np.ndarray | None, segment: Segment, _: Statistic) -> np.ndarray:
    """The count of values."""
    return segment.valid.sum(axis=0) + (0 if so_far is None else so_far)


def _first(so_far: np.ndarray | None, segment: Segment, _: Statistic) -> np.ndarray:
    """The first value."""
    begin = np.take_along_axis(segment.values, np.argmax(segment.valid, axis=0)[None], axis=0)[0]
    return begin if so_far is None else np.where(np.isnan(so_far), begin, so_far)


def _last(so_far: np.ndarray | None, segment: Segment, _: Statistic) -> np.ndarray:
    """The last value."""
    at = np.where(segment.valid, np.arange(len(segment.values))[:, None, None], 0).max(axis=0)
    end = np.take_along_axis(segment.values, at[None], axis=0)[0]
    return end if so_far is None else np.where(segment.valid.any(axis=0), end, so_far)


def _crossing(so_far: np.ndarray | None, segment: Segment, of: Statistic) -> np.ndarray:
    """The time of the first crossing of the level [s], interpolated linearly within its step."""
    level, direction = of.options
    x = np.concatenate([segment.before[None], segment.values]) - level
    a, b = x[:-1], x[1:]
    up, down = (a < 0) & (b >= 0), (a > 0) & (b <= 0)
    across = up if direction == "rising" else down if direction == "falling" else up | down
    k = np.argmax(across, axis=0)[None]
    a, b = np.take_along_axis(a, k, axis=0)[0], np.take_along_axis(b, k, axis=0)[0]
    with np.errstate(invalid="ignore", divide="ignore"):
        time = segment.times[k[0]] - segment.step * (b / (b - a))
    time = np.where(across.any(axis=0), time, np.nan)
    return time if so_far is None else np.where(np.isnan(so_far), time, so_far)


def _counts(so_far: np.ndarray | None, segment: Segment, of: Statistic) -> np.ndarray:
    """(runs, entries, bins) numbers of values from each edge up to the next; the last edge belongs to the last bin."""
    edges, shape = np.array(of.options), segment.values.shape[1:]
    bins = len(edges) - 1
    at = np.where(segment.values == edges[-1], bins - 1, np.searchsorted(edges, segment.values, side="right") - 1)
    inside = (at >= 0) & (at < bins) & segment.valid
    place = np.broadcast_to(np.arange(shape[0] * shape[1]).reshape(shape) * bins, at.shape)
    counts = np.bincount((place + at)[inside], minlength=shape[0] * shape[1] * bins).reshape(*shape, bins)
    return counts if so_far is None else so_far + counts


def _when_most(so_far: np.ndarray | None, segment: Segment, _: Statistic) -> np.ndarray:
    """(runs, entries, 2) the largest value, and the time at which it first occurs [s]."""
    return _beside(so_far, segment, np.broadcast_to(segment.times[:, None, None], segment.values.shape))


def _value_at_most(so_far: np.ndarray | None, segment: Segment, _: Statistic) -> np.ndarray:
    """(runs, entries, 2) the largest value of the other signal, and the value of this one where that first occurs."""
    return _beside(so_far, segment, segment.values)


def _beside(so_far: np.ndarray | None, segment: Segment, values: np.ndarray) -> np.ndarray:
    """(runs, entries, 2) the largest value of the signal that chooses, and the `values` (times, runs, entries) there."""
    k, most = (np.broadcast_to(x, values.shape[1:]) for x in segment.peak)
    here = np.take_along_axis(values, k[None], axis=0)[0]
    now = np.stack([most, np.where(np.isneginf(most), np.nan, here)], axis=-1)
    return now if so_far is None else np.where(now[..., :1] > so_far[..., :1], now, so_far)


PARTS: Mapping[str, Callable[[np.ndarray | None, Segment, Statistic], np.ndarray]] = {
    "most": _most, "least": _least, "total": _total, "numbers": _numbers, "first": _first, "last": _last,
    "crossing": _crossing, "counts": _counts, "when_most": _when_most, "value_at_most": _value_at_most,
}  # fmt: skip
"""Name of a quantity that is accumulated -> (its value so far, None at first; a Segment) -> its new value. NaN is left out."""


class StatisticKind(NamedTuple):
    """A kind of statistic.   parts: names in PARTS of the quantities that it needs.
    value: (step [s], these quantities) -> (runs, entries, ...).   unit: unit of the signal -> unit of the statistic."""

    parts: tuple[str, ...]
    value: Callable[..., np.ndarray] = lambda step, x: x
    unit: Callable[[str], str] = lambda unit: unit


KINDS = Table("kind of statistic", {
    "maximum": StatisticKind(("most",)),
    "minimum": StatisticKind(("least",)),
    "mean": StatisticKind(("total", "numbers"), lambda step, total, numbers: total / numbers),
    "integral": StatisticKind(
        ("total", "first", "last"),
        lambda step, total, first, last: step * (total - (first + last) / 2),
        lambda unit: f"{unit} s",
    ),
    "final": StatisticKind(("last",)),
    "first_crossing": StatisticKind(("crossing",), unit=lambda unit: "s"),
    "histogram": StatisticKind(("counts",), unit=lambda unit: "1"),
    "time_of_maximum": StatisticKind(("when_most",), lambda step, x: x[..., 1], lambda unit: "s"),
    "at_maximum": StatisticKind(("value_at_most",), lambda step, x: x[..., 1]),
}, "compute another from recorded signals")  # fmt: skip

CHOOSING = ("time_of_maximum", "at_maximum")
"""Kinds of statistics for which the maximum of a signal chooses a step."""

NO_PEAK = Peak(np.zeros((0, 0), dtype=int), np.zeros((0, 0)))
"""In place of a Peak where no statistic needs one."""


@dataclass(frozen=True)
class Statistic:
    """Numbers for each entry of a signal, over all steps of a run until it stops.   kind: a name in KINDS.
    signal: name of the signal.   options: arguments of the kind.   of: name of the signal whose maximum chooses the step; the
    signal itself if empty."""

    kind: str
    signal: str
    options: tuple[Any, ...] = ()
    of: str = ""

    def __post_init__(self) -> None:
        for name in (self.signal, self.of or self.signal):
            if not isinstance(name, str) or not name:
                raise ModelError(f"{self.kind}: the name of a signal is needed, such as {self.kind}('u'), got {brief(name)}")

    @property
    def signals(self) -> tuple[str, str]:
        """The signal, and that whose maximum chooses the step."""
        return self.signal, self.of or self.signal


_DOC = """{what}

    All steps count, with `accuracy` all instants, and the signal itself is not stored.

    Args:
        signal: name of a signal that the run could record, or of an output.
    Returns:
        a value for `record` of `run`, or `keep` of `sweep`: {unit}.
    Raises ModelError: `signal` is not a name.

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

    def public(signal: str) -> Statistic:
        return Statistic(name, signal)

    public.__name__ = public.__qualname__ = name
    public.__doc__ = _DOC.format(name=name, what=what, signal=signal, value=value, unit=unit)
    return public


maximum = _simple("maximum", "The largest value of each entry of a signal over a run.", "v", "2.")
minimum = _simple("minimum", "The smallest value of each entry of a signal over a run.", "q", "-2.905")
mean = _simple(
    "mean", "The mean of each entry of a signal over the start of a run and the ends of all steps.",
    "v", "-2.905",
)  # fmt: skip
integral = _simple(
    "integral", "The integral of each entry of a signal over the time of a run, by the trapezoidal rule.",
    "v", "-2.905", "in the unit of the signal times s",
)  # fmt: skip
final = _simple("final", "The last value of each entry of a signal, at the end of a run or where it stopped.", "q", "-2.905")
time_of_maximum = _simple(
    "time_of_maximum", "The time at which each entry of a signal is first at its largest value of a run.", "q", "0.2", "in s"
)  # fmt: skip


def at_maximum(signal: str, of: str) -> Statistic:
    """The values of a signal at the instant at which another one is first at its largest value of a run.

    Args:
        signal: name of a signal that the run could record, or of an output.
        of: name of the other signal. It has one entry, or as many as `signal`: these are then taken one by one.
    Returns:
        a value for `record` of `run`, or `keep` of `sweep`: in the unit of `signal`.
    Raises ModelError: a name that is no text; in the run, an unknown name or numbers of entries that do not fit.

    Example:
        The height of a stone where its kinetic energy is largest, at the end:

        >>> import pfaffian as pf
        >>> m = pf.mechanism("stone", [pf.body("stone", 1.0)], [pf.joint("z", "prismatic", "world", "stone")])
        >>> record = {"found": pf.statistics.at_maximum("q", "kinetic_energy")}
        >>> pf.run(m, v=[2.0], duration=1.0, step=0.1, record=record, backend="numpy")["found"].values.round(3)
        array([-2.905])
    """
    if not isinstance(of, str) or not of:
        raise ModelError(f"at_maximum: of: the name of a signal is needed, such as 'kinetic_energy', got {brief(of)}")
    return Statistic("at_maximum", signal, (), of)


def first_crossing(signal: str, level: float = 0.0, direction: Direction = "either") -> Statistic:
    """The time at which each entry of a signal first reaches or passes a level, NaN if it never does.

    A start exactly at the level is not a crossing. The signal is interpolated linearly within a step, with `accuracy` to the
    accuracy of the run.

    Args:
        signal: name of a signal that the run could record, or of an output.
        level: in the unit of the signal, 0 by default.
        direction: "rising", "falling" or "either" (default): from which side.
    Returns:
        a value for `record` of `run`, or `keep` of `sweep`: in s.
    Raises ModelError: `signal` is not a name; `level` is not a number; unknown direction.

    Example:
        A stone thrown upwards at 2 m/s is back after 2 * 2 / 9.81 s:

        >>> import pfaffian as pf
        >>> m = pf.mechanism("stone", [pf.body("stone", 1.0)], [pf.joint("z", "prismatic", "world", "stone")])
        >>> record = {"down": pf.statistics.first_crossing("q", direction="falling")}
        >>> pf.run(m, v=[2.0], duration=1.0, step=1e-3, record=record, backend="numpy")["down"].values.round(4)
        array([0.4077])
    """
    one_of(direction, get_args(Direction), "first_crossing: direction")
    return Statistic("first_crossing", signal, (as_number(level, "first_crossing: level"), direction))


def histogram(signal: str, edges: Any) -> Statistic:
    """Counts of how often each entry of a signal lies in each interval, at the start of a run and at the end of every step.

    With `accuracy` it is the time that it spends there [s].

    Args:
        signal: name of a signal that the run could record, or of an output.
        edges: (n + 1,) increasing, in the unit of the signal. A value at an edge belongs to the interval above it, at the last
            edge to the one below it; values outside are not counted.
    Returns:
        a value for `record` of `run`, or `keep` of `sweep`: n counts for each entry, over the dimension NAME_bin.
    Raises ModelError: `signal` is not a name; fewer than two edges, or edges that do not increase.

    Example:
        >>> import pfaffian as pf
        >>> m = pf.mechanism("stone", [pf.body("stone", 1.0)], [pf.joint("z", "prismatic", "world", "stone")])
        >>> record = {"heights": pf.statistics.histogram("q", [-3, -1, 0, 1])}
        >>> pf.run(m, v=[2.0], duration=1.0, step=0.1, record=record, backend="numpy")["heights"].values
        array([[4, 2, 5]])
    """
    limits = floats(edges, "histogram: edges")
    if limits.ndim != 1 or len(limits) < 2 or not (np.diff(limits) > 0).all():
        raise ModelError(f"histogram: edges: at least two increasing numbers are needed, got {brief(edges)}")
    return Statistic("histogram", signal, tuple(limits.tolist()))


class Recording(NamedTuple):
    """The parts of a dict `record`.   over_time: names of signals stored over time.   statistics: name -> Statistic."""

    over_time: tuple[str, ...]
    statistics: Mapping[str, Statistic]

    @property
    def signals(self) -> tuple[str, ...]:
        """Names of all signals that have to be computed."""
        return tuple(sorted({*self.over_time, *(name for s in self.statistics.values() for name in s.signals)}))


def as_recording(record: Any) -> Recording | None:
    """The Recording of a `record` that is a dict, else None. Raises ModelError: a value is neither a Statistic nor True."""
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
    statistics = {name: value for name, value in record.items() if isinstance(value, Statistic)}
    return Recording(tuple(sorted(name for name, value in record.items() if value is True)), statistics)


def tally_of(
    recording: Recording | None, signals: Mapping[str, tuple[Signal, int]], every: int, start: float, step: float
) -> Tally | None:
    """The Tally of a run, None without statistics. Raises ModelError: a result cannot store a statistic under its name."""
    if recording is None:
        return None
    check_statistics(recording, signals)
    return Tally(recording, signals, every, start, step)


def check_statistics(recording: Recording, signals: Mapping[str, tuple[Signal, int]]) -> None:
    """Raise ModelError if a result cannot store a statistic under its name."""
    reserved = RESERVED | set(signals) | {s.dim for s, _ in signals.values() if s.dim} | {f"{n}_component" for n in signals}
    reserved |= {f"{n}_bin" for n, s in recording.statistics.items() if s.kind == "histogram"}
    for name in recording.statistics:
        if name in reserved or "/" in name:
            why = "a name without '/' is needed" if "/" in name else "the result has something else of that name"
            raise ModelError(f"record: statistic {brief(name)}: {why}; choose another")
    for name, x in recording.statistics.items():
        size, judged = (signals[n][1] for n in x.signals)
        if judged not in (1, size):
            raise ModelError(
                f"record: statistic {brief(name)}: {x.of!r} has {judged} entries where {x.signal!r} has {size}; one is needed, "
                "or as many: give an entry of it as an output"
            )


_PartKey = tuple[str, str, str, tuple[Any, ...]]
"""What a quantity that is accumulated depends on: its name, the signal, the signal judged, and options."""


def _part_key(part: str, x: Statistic) -> _PartKey:
    return part, *x.signals, x.options


class Tally:
    """The statistics of runs, accumulated call by call.

    recording: which statistics, and which signals to store over time.   signals: name -> (Signal, number of entries), in the
    order of a record.   every: steps between two records that are stored over time.   start, step: [s].
    """

    over = "over all steps"

    def __init__(
        self, recording: Recording, signals: Mapping[str, tuple[Signal, int]], every: int, start: float, step: float
    ) -> None:
        at = entries_of(signals)
        self.recording, self.every, self.start, self.step = recording, every, start, step
        self.columns = {name: at[name] for x in recording.statistics.values() for name in x.signals}
        stored = [range(where.start, where.stop) for name, where in at.items() if name in recording.over_time]
        self.stored_entries = np.array([i for entries in stored for i in entries], dtype=int)
        self.parts: dict[int, dict[_PartKey, np.ndarray]] = {}
        self.before: dict[tuple[int, str], np.ndarray] = {}

    def add(self, records: np.ndarray, first: int, run: int) -> np.ndarray:
        """Add the records (times, runs, entries) of all steps from `first` on, for the runs from `run` on, to the statistics;
        returns the part of them that is stored over time."""
        steps = np.arange(first, first + len(records))
        if len(records):
            choosing = {x.signals[1] for x in self.recording.statistics.values() if x.kind in CHOOSING}
            peaks = {name: _peak(records[:, :, self.columns[name]]) for name in choosing}
            for signal, where in self.columns.items():
                self._add(signal, records[:, :, where], steps, run, peaks)
        return records[np.flatnonzero(steps % self.every == 0)][:, :, self.stored_entries]

    def _add(self, signal: str, values: np.ndarray, steps: np.ndarray, run: int, peaks: Mapping[str, Peak]) -> None:
        """Add the values (times, runs, entries) of one signal to all of its statistics.   peaks: of the signals that choose."""
        before = self.before.get((run, signal), np.full(values.shape[1:], np.nan))
        segment = Segment(values, ~np.isnan(values), before, self.start + self.step * steps, self.step, NO_PEAK)
        parts = self.parts.setdefault(run, {})
        needed = {_part_key(part, x): x for x in self.recording.statistics.values() if x.signal == signal
                  for part in KINDS[x.kind].parts}  # fmt: skip
        for key, x in needed.items():
            chosen = segment._replace(peak=peaks[x.signals[1]]) if x.kind in CHOOSING else segment
            parts[key] = PARTS[key[0]](parts.get(key), chosen, x)
        self.before[run, signal] = values[-1].copy()

    def unit(self, kind: str, of: str) -> str:
        """The unit of a kind of statistic of a signal with the unit `of`."""
        return KINDS[kind].unit(of)

    def value(self, name: str) -> np.ndarray:
        """(runs, entries, ...) values of a statistic; NaN for runs without a valid value of the signal."""
        statistic = self.recording.statistics[name]
        kind, blocks = KINDS[statistic.kind], [self.parts[run] for run in sorted(self.parts)]
        keys = [_part_key(part, statistic) for part in kind.parts]
        with np.errstate(invalid="ignore", divide="ignore"):
            return kind.value(self.step, *[np.concatenate([block[key] for block in blocks]) for key in keys])
