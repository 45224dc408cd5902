"""The unknown numbers of sensors and inputs: delays, gains, offsets and zeros, each a column of the Jacobian."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pfaffian.errors import ModelError, brief, nearest
from pfaffian.fitting.records import Measurements

WORDS = ("delay", "gain", "offset", "zero")
"""delay: of a whole signal [s].   gain, offset: of each of its numbers.   zero: an offset of each record's own."""


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
    each = [(i, f"{signal} {x}".strip()) for i, x in enumerate(entries)]
    if word != "zero":
        return [UnknownNumber(signal, word, i, -1, f"{word} of {x}") for i, x in each]
    return [UnknownNumber(signal, word, i, k, f"zero of {x} in {r}") for k, r in enumerate(records) for i, x in each]
