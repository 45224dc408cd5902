"""Checks of a caller's single values: numbers, counts, words and flags, and the common number of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pfaffian.errors import ModelError, brief, is_one_of
from pfaffian.model.number import floats, is_whole


def as_number(value: Any, what: str, *, above: float = -np.inf, least: float = -np.inf) -> float:
    """Return one finite real number above `above` and at least `least`; raise ModelError for anything else."""
    array = floats(value, what)
    if array.ndim:
        raise ModelError(f"{what} has shape {array.shape}: one number is needed")
    if not (array > above and array >= least):
        bound = f"above {above:g}" if array >= least else f"at least {least:g}"
        raise ModelError(f"{what} must be {bound}, got {brief(value)}")
    return float(array)


LARGEST = 2**53
"""Largest count: larger whole numbers, such as a number of steps, are not all exact as floats."""


MOST_THREADS = 1024
"""Largest number of threads that a caller may request."""


def as_whole(value: Any, what: str, most: int = LARGEST) -> int:
    """Return the value as an int from 1 to `most`; raise ModelError for anything else, True and 2.0 included."""
    if is_whole(value) and 1 <= value <= most:
        return int(value)
    raise ModelError(f"{what} must be a whole number from 1 to {most}, got {brief(value)}")


def one_of(value: Any, known: Sequence[str], what: str) -> None:
    """Raise ModelError if the value is not one of the known words."""
    if not is_one_of(value, known):
        raise ModelError(f"{what} {brief(value)} is unknown; one of {', '.join(known)}")


def as_flag(value: Any, what: str) -> bool:
    """Return True or False; raise ModelError for anything else, although Python would give it a truth value."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    raise ModelError(f"{what} must be True or False, got {brief(value)}")


def common_runs(counts: Mapping[str, int]) -> int:
    """The common number of runs; a count of 1 goes with any. Raises ModelError: other counts differ."""
    many = {what: n for what, n in counts.items() if n != 1}
    if len(set(many.values())) > 1:
        raise ModelError("the numbers of runs differ: " + ", ".join(f"{what} has {n}" for what, n in many.items()))
    return next(iter(many.values()), 1)


def some_runs(counts: Mapping[str, int]) -> int:
    """The common number of runs (`common_runs`). Raises ModelError: counts differ, or there is no run."""
    count = common_runs(counts)
    if not count:
        raise ModelError(f"no run in {' and '.join(what for what, n in counts.items() if not n)}: give at least one")
    return count
