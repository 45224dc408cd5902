"""The start of a run: on the constraints, keeping what the caller names, with a warning where a guess moved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from pfaffian.control.reason import foremost
from pfaffian.errors import RunError, RunWarning, notice
from pfaffian.model.mechanism import Mechanism
from pfaffian.simulate.assemble import Given, close
from pfaffian.simulate.newton import State
from pfaffian.simulate.start_search import explain, open_row
from pfaffian.terms.lengths import scales

ROUNDING = 1e-9
"""Largest move of a guess that is rounding [rad, the machine's length, their rates]."""


class Start(NamedTuple):
    """The start of some runs.

    q: (runs, nq), v: (runs, nv), unchanged where a run cannot start.   p: (runs, np).   moved: (runs, nq) and moved_rate:
    (runs, nv) what was added to the given state.   residual: (runs,) of the constraints.
    messages: for each run why it cannot start, empty where it can.
    """

    q: np.ndarray
    v: np.ndarray
    p: np.ndarray
    moved: np.ndarray
    moved_rate: np.ndarray
    residual: np.ndarray
    messages: tuple[str, ...]


def start_state(given: Given, q: Any, v: Any, correct: bool) -> Start:
    """The start of each run, put onto the constraints if `correct`.   q, v: as the caller gave them; arrays are guesses.

    Warns RunWarning where a guess moved. Raises RunError: no run closes, see `assemble`.
    """
    m = given.problem.m
    if not (correct and m.ideal):
        still = np.zeros_like(given.q), np.zeros_like(given.v), np.zeros(len(given.q))
        return Start(given.q, given.v, given.problem.p, *still, ("",) * len(given.q))
    found = close(given)
    closed = found.satisfied
    if not closed.any():
        raise RunError(explain(given.problem, found, given.q, given.v))
    qs, vs = np.where(closed[:, None], found.q, given.q), np.where(closed[:, None], found.v, given.v)
    moved = Start(qs, vs, given.problem.p, qs - given.q, vs - given.v, found.residual, _messages(m, found, closed))
    if q is not None and not isinstance(q, Mapping):
        _notice("q", moved.moved, m.q_names, m.q_units, scales(m, moved.p, qs, m.q_units))
    if v is not None and not isinstance(v, Mapping):
        _notice("v", moved.moved_rate, m.v_names, m.v_units, scales(m, moved.p, qs, m.v_units))
    return moved


def _messages(m: Mechanism, found: State, closed: np.ndarray) -> tuple[str, ...]:
    lost = np.flatnonzero(~closed)
    messages = dict(zip(lost.tolist(), open_row(m, found.take(lost)), strict=True)) if len(lost) else {}
    return tuple(messages.get(i, "") for i in range(len(closed)))


def _notice(what: str, moved: np.ndarray, names: tuple[str, ...], units: tuple[str, ...], size: np.ndarray) -> None:
    """Warn once, with the entry of a guess that moved the most relative to its size."""
    if not moved.size or (np.abs(moved) <= ROUNDING * size).all():
        return
    run, i = foremost(np.abs(moved) / size)
    unit = "" if units[i] == "1" else f" {units[i]}"
    where = f" in run {run} of {len(moved)}" if len(moved) > 1 else ""
    notice(
        f"{what} was off the constraints and has been moved onto them, {names[i]!r} the most, by {moved[run, i]:.3g}{unit}"
        f"{where}; see 'moved' in the result, and give {what} as a dict, {{{names[i]!r}: ...}}, to keep what it names",
        RunWarning,
    )
