"""Numbers and words as C text."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np


def c_string(words: str) -> str:
    """A string literal of C with these words in UTF-8."""
    safe = {*b" !#$%&'()*+,-./:;<=>@[]^_{|}~", *range(48, 58), *range(65, 91), *range(97, 123)}
    return '"' + "".join(chr(b) if b in safe else f"\\{b:03o}" for b in words.encode()) + '"'


def table(kind: str, name: str, values: Iterable[str]) -> str:
    """A constant array of C, with one entry more than there are values, as C has no empty arrays."""
    return f"static const {kind} {name}[] = {{{', '.join([*values, '0'])}}};"


def exact(values: np.ndarray) -> list[str]:
    """The numbers in C, to the last bit."""
    return [float(x).hex() for x in values]
