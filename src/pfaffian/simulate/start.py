"""The state that a run starts from: on the constraints, with what the caller names kept and what moved said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from pfaffian.control.reason import foremost
from pfaffian.errors import RunError, RunWarning, notice
from pfaffian.model.mechanism import Mechanism
from pfaffian.simulate.assemble import Given, close
from pfaffian.simulate.newton import State
from pfaffian.simulate.reach import explain, open_row
from pfaffian.terms.lengths import scales

NOTICED = 1e-9
"""A guess that moves by more [rad, the machine's length, their rates] is more than rounded."""


class Start(NamedTuple):
    """What a run starts from.

    q: (runs, nq), v: (runs, nv), of runs that cannot start as given.   p: (runs, np).   moved: (runs, nq) and moved_rate:
    (runs, nv) what was added to the state given.   residual: (runs,) what is left of the constraints.
    words: for each run why it cannot start, empty where it can.
    """

    q: np.ndarray
    v: np.ndarray
    p: np.ndarray
    moved: np.ndarray
    moved_rate: np.ndarray
    residual: np.ndarray
    words: tuple[str, ...]


def start_state(given: Given, q: Any, v: Any, correct: bool) -> Start:
    """The start of each run; `correct` puts it onto the constraints. q, v: as the caller gave them, arrays being guesses.

    Warns RunWarning where a guess moved. Raises RunError: no run closes, see `assemble`.
    """
    m = given.problem.m
    if not (correct and m.ideal):
        still = np.zeros_like(given.q), np.zeros_like(given.v), np.zeros(len(given.q))
        return Start(given.q, given.v, given.problem.p, *still, ("",) * len(given.q))
    found = close(given)
    shut = found.satisfied
    if not shut.any():
        raise RunError(explain(given.problem, found, given.q, given.v))
    qs, vs = np.where(shut[:, None], found.q, given.q), np.where(shut[:, None], found.v, given.v)
    moved = Start(qs, vs, given.problem.p, qs - given.q, vs - given.v, found.residual, _words(m, found, shut))
    if q is not None and not isinstance(q, Mapping):
        _notice("q", moved.moved, m.q_names, m.q_units, scales(m, moved.p, qs, m.q_units))
    if v is not None and not isinstance(v, Mapping):
        _notice("v", moved.moved_rate, m.v_names, m.v_units, scales(m, moved.p, qs, m.v_units))
    return moved


def _words(m: Mechanism, found: State, shut: np.ndarray) -> tuple[str, ...]:
    lost = np.flatnonzero(~shut)
    said = dict(zip(lost.tolist(), open_row(m, found.take(lost)), strict=True)) if len(lost) else {}
    return tuple(said.get(i, "") for i in range(len(shut)))


def _notice(what: str, moved: np.ndarray, names: tuple[str, ...], units: tuple[str, ...], size: np.ndarray) -> None:
    """Say once where a guess moved the most, beside what its size is."""
    if not moved.size or (np.abs(moved) <= NOTICED * size).all():
        return
    run, i = foremost(np.abs(moved) / size)
    unit = "" if units[i] == "1" else f" {units[i]}"
    where = f" in run {run} of {len(moved)}" if len(moved) > 1 else ""
    notice(
        f"{what} was off the constraints and has been moved onto them, {names[i]!r} the most, by {moved[run, i]:.3g}{unit}"
        f"{where}; the result tells in 'moved', and {what} as a dict, {{{names[i]!r}: ...}}, keeps what it names",
        RunWarning,
    )
