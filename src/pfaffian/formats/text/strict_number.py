"""Numbers and words from untrusted text, in stricter forms than `float` accepts."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

from pfaffian.errors import ModelError

UNSIGNED = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
"""Pattern of a plain decimal number. `float` would also accept 1_000, digits of other scripts, nan and inf."""

SPACES = " \t\r\n"
"""White space of XML, and the only one around and between numbers: a no-break space is none."""

_NUMBER = re.compile(rf"[+-]?{UNSIGNED}")

_BETWEEN = re.compile(f"[{SPACES}]+")

_LONGEST = 400  # characters; printf("%f") writes the largest double with 316

Where = str | Callable[[], str]
"""The place of a number, for errors: in words, or what makes these, since a file has many numbers and few wrong ones."""


def number(text: str, where: Where) -> float:
    """One finite decimal number; spaces around it are allowed.

    Args:
        text: the number.
        where: the element (and line), for errors.
    Raises ModelError: the text is not a decimal number, or overflows a double.
    """
    word = text.strip(SPACES)
    if len(word) > _LONGEST or not _NUMBER.fullmatch(word):
        raise ModelError(f"{_in_words(where)}: {printable(word)} is not a decimal number such as 0.5 or -1e-3{_hint(word)}")
    value = float(word)
    if not math.isfinite(value):
        raise ModelError(f"{_in_words(where)}: {printable(word)} is too large for a double; the largest is about 1.8e308")
    return value


def numbers(text: str, count: int, where: Where) -> tuple[float, ...]:
    """`count` numbers separated by white space.   where: the element (and line), for errors."""
    words = text.split(maxsplit=count) if text.isascii() else [text]
    if len(words) != count:
        raise ModelError(f"{_in_words(where)}: {count} numbers separated by spaces are needed, got {printable(text)}")
    return tuple([number(word, where) for word in words])


def _in_words(where: Where) -> str:
    """The place, in words."""
    return where if isinstance(where, str) else where()


def words_of(text: str) -> list[str]:
    """The words of a text between the white space of XML."""
    return text.split() if text.isascii() else [word for word in _BETWEEN.split(text) if word]


def check_choice(value: object, choices: Sequence[str], what: str) -> None:
    """Raise ModelError if the value of an argument is none of its choices.   what: name of the argument."""
    if value not in choices:
        raise ModelError(f"{what}={printable(value)}: one of {', '.join(choices)} is needed")


def printable(text: object) -> str:
    """Untrusted text in the form for messages: quoted, escaped and short."""
    quoted = ascii(text)
    return quoted if len(quoted) <= 80 else f"{quoted[:60]}... ({len(quoted)} characters)"


def _hint(word: str) -> str:
    """The way out for common mistakes, as the end of a message."""
    if "${" in word:
        return "; this is xacro source, expand it to URDF first"
    if word[:1] in ("(", "[", "~"):
        return "; write the numbers without brackets"
    if "," in word:
        return "; write a point as the decimal mark, and spaces between numbers"
    return ""
