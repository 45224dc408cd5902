"""The unknown numbers of sensors and inputs: delays, gains, offsets and zeros, each a column of the Jacobian."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pfaffian.errors import ModelError, brief, nearest
from pfaffian.fitting.records import Measurements

WORDS = ("delay", "clock", "gain", "offset", "zero")
"""delay: of a whole signal [s].   clock: a delay of each record's own, as of two loggers that were started by hand.
gain, offset: of each of its numbers.   zero: an offset of each record's own."""


class UnknownNumber(NamedTuple):
    """An unknown number.   signal: "u" for the inputs.   word: one of WORDS.   entry: its number in the signal, of all if -1.
    record: index of the record, of all if -1.   name: for people."""

    signal: str
    word: str
    entry: int
    record: int
    name: str

    @property
    def default(self) -> float:
        """The value of a perfect sensor."""
        return 1.0 if self.word == "gain" else 0.0

    @property
    def shifts(self) -> bool:
        """Whether it shifts the times of its signal."""
        return self.word in ("delay", "clock")

    def concerns(self, record: np.ndarray) -> np.ndarray:
        """Whether it concerns segments of the records with these indices."""
        return np.full(record.shape, self.record < 0) | (record == self.record)


def as_unknowns(
    unknown: Any, layout: Measurements, records: Sequence[str], usual: Mapping[str, Any]
) -> tuple[UnknownNumber, ...]:
    """All unknowns of {signal: word or words}; `usual` if None. Those of inputs come first.

    Raises ModelError: a signal that is not measured, an unknown word.
    """
    words = usual if unknown is None else unknown
    if not isinstance(words, Mapping):
        raise ModelError(f"unknown: {{signal: word}} is needed, one of {', '.join(WORDS)}, got {brief(words)}")
    known = {**({"u": layout.u_names} if layout.u_names else {}), **dict(zip(layout.names, layout.entries, strict=True))}
    for signal, of in words.items():
        if signal not in known:
            raise ModelError(f"unknown: no record measures {brief(signal)}; {nearest(signal, tuple(known))}")
        if not isinstance(of, str | Sequence):
            raise ModelError(f"unknown: {signal!r} needs a word or a list of words of {', '.join(WORDS)}, got {brief(of)}")
        for word in (of,) if isinstance(of, str) else of:
            if word not in WORDS:
                raise ModelError(f"unknown: {signal!r} has a {brief(word)}; {nearest(word, WORDS)}")
    found = list[UnknownNumber]()
    for signal in sorted(words, key=lambda name: name != "u"):
        of = words[signal]
        for word in (of,) if isinstance(of, str) else of:
            found += _numbers(signal, word, known[signal], records)
    return tuple(found)


def _numbers(signal: str, word: str, entries: tuple[str, ...], records: Sequence[str]) -> list[UnknownNumber]:
    """The unknowns of one word."""
    if word == "delay":
        return [UnknownNumber(signal, word, -1, -1, f"delay of {signal}")]
    if word == "clock":
        return [UnknownNumber(signal, word, -1, k, f"clock of {signal} in {r}") for k, r in enumerate(records)]
    each = [(i, f"{signal} {x}".strip()) for i, x in enumerate(entries)]
    if word != "zero":
        return [UnknownNumber(signal, word, i, -1, f"{word} of {x}") for i, x in each]
    return [UnknownNumber(signal, word, i, k, f"zero of {x} in {r}") for k, r in enumerate(records) for i, x in each]


def unit_of(x: UnknownNumber, units: Mapping[str, Sequence[str]]) -> str:
    """The SI unit of an unknown; empty for a gain, and for an offset of a signal of which `units` says nothing."""
    if x.shifts:
        return "s"
    return units[x.signal][x.entry] if x.word != "gain" and x.signal in units else ""


def lateness(unknowns: Sequence[UnknownNumber], values: Iterable[float], record: np.ndarray) -> np.ndarray:
    """(segments,) by which a signal with these unknowns is late in segments of the records with these indices [s]."""
    late = np.zeros(record.shape)
    for x, value in zip(unknowns, values, strict=True):
        late += np.where(x.concerns(record), value, 0.0) if x.shifts else 0.0
    return late


def of_records(unknowns: Sequence[UnknownNumber], before: Sequence[str], now: Sequence[str]) -> tuple[UnknownNumber, ...]:
    """The unknowns for other records, by names: those of one record stay with it, and have no effect where it is absent."""
    return tuple(
        x if x.record < 0 else x._replace(record=now.index(before[x.record]) if before[x.record] in now else len(now))
        for x in unknowns
    )
