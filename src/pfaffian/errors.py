"""The errors and warnings that a caller can act on. Each message names the element at fault and the way out."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Sequence
from difflib import get_close_matches

LONGEST = 80
"""Characters of a caller's value that a message repeats."""

SHOWN = 12
"""Names that a message lists."""

MESSAGE = 4000
"""Characters of a message, whatever it repeats of a caller's names."""


class PfaffianError(Exception):
    """Root of every error that the library raises on purpose. Its message is at most MESSAGE characters long."""

    def __init__(self, message: str = "") -> None:
        super().__init__(bounded(message))


class ModelError(PfaffianError, ValueError):
    """A mechanism, file, array or setting is wrong: which element, what is wrong with it, what to do."""


class RunError(PfaffianError, RuntimeError):
    """A computation could not go on: when, where, why."""


class BuildError(PfaffianError, RuntimeError):
    """A Program could not be traced, printed or compiled."""


class ModelWarning(UserWarning):
    """A file was read, but something in it was changed, ignored or looks wrong: what, and the way out."""


class RunWarning(UserWarning):
    """A run has a result, but not the one that was asked for: which runs stopped or left a limit, and why."""


def notice(message: str, category: type[Warning]) -> None:
    """Warn at the line that called the library."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("pfaffian."):
        level, frame = level + 1, frame.f_back
    warnings.warn(bounded(message), category, stacklevel=level)


_LONG_WORD = re.compile(r"\S{200,}")


def bounded(message: str) -> str:
    """The message, cut where it is longer than MESSAGE: long words first, then the middle. Its end says the way out."""
    if len(message) <= MESSAGE:
        return message
    words = _LONG_WORD.sub(lambda word: f"{word[0][:60]}... ({len(word[0])} characters) ...{word[0][-20:]}", message)
    half = MESSAGE // 2 - 4
    return words if len(words) <= MESSAGE else f"{words[:half]} ... {words[-half:]}"


def brief(value: object) -> str:
    """A caller's value as a message may repeat it: on one line, and short."""
    if callable(value) and hasattr(value, "__name__"):
        return f"the {type(value).__name__} {value.__name__}"
    words = " ".join(repr(value).split())
    return words if len(words) <= LONGEST else f"{words[:LONGEST]}... ({type(value).__name__})"


def nearest(name: object, known: Sequence[str]) -> str:
    """What a caller may have meant by a name that is not known."""
    near = get_close_matches(str(name)[:LONGEST], known, 1)
    return f"{f'did you mean {near[0]!r}? ' if near else ''}there are {listed(known)}"


def listed(names: Sequence[str]) -> str:
    """The first few of the names, and how many there are."""
    more = f", ... ({len(names)} in all)" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more or "none"


def plural(count: int, word: str) -> str:
    """1 body, 2 bodies."""
    many = f"{word[:-1]}ies" if re.search("[^aeiou]y$", word) else f"{word}s"
    return f"{count} {word if count == 1 else many}"


def install(package: str) -> str:
    """The command that installs an optional package, as every shell takes it; extras in brackets would need quotes."""
    return f"`pip install {package}`"
