"""The start of a run: put onto the constraints with the named coordinates fixed, and a warning where a guess moved."""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca
import numpy as np

from pfaffian.control.reason import foremost
from pfaffian.errors import RunError, RunWarning, notice
from pfaffian.starts.assemble import close, lost_messages, tell_jumps, why_lost
from pfaffian.starts.given_start import Given
from pfaffian.terms.lengths import scales
from pfaffian.terms.loop_joints import closing_joint

ROUNDING = 1e-9
"""Largest displacement of a guess that counts as rounding [rad, the machine's length, their rates]."""


class Start(NamedTuple):
    """The start of some runs.

    q: (runs, nq), v: (runs, nv), as given where a run cannot start.   p: (runs, np) parameters.
    moved: (runs, nq), moved_rate: (runs, nv) changes of the given q and v.   residual: (runs,) of the constraints.
    messages: reason why each run cannot start, "" where it can.
    """

    q: np.ndarray
    v: np.ndarray
    p: np.ndarray
    moved: np.ndarray
    moved_rate: np.ndarray
    residual: np.ndarray
    messages: tuple[str, ...]


def start_state(given: Given, correct: bool) -> Start:
    """The start of each run, put onto the constraints if `correct`.

    Warns RunWarning where a guess moved. Raises RunError: no run can be put onto the constraints.
    """
    m = given.problem.m
    if not (correct and m.ideal):
        given.refuse_closures("a start without correction")
        still = np.zeros_like(given.q), np.zeros_like(given.v), np.zeros(len(given.q))
        return Start(given.q, given.v, given.problem.p, *still, ("",) * len(given.q))
    assembled = close(given)
    open_ = ~assembled.satisfied
    if open_.all():
        raise RunError(why_lost(given, assembled))
    tell_jumps(given, assembled)
    assembled.q[open_], assembled.v[open_] = given.q[open_], given.v[open_]
    messages = [""] * len(open_)
    for run, message in zip(np.flatnonzero(open_).tolist(), lost_messages(m, assembled), strict=True):
        messages[run] = message
    moves, (nq, nv) = (assembled.q - given.q, assembled.v - given.v), (given.caller.nq, given.caller.nv)
    q, v, moved_q, moved_v = (x[:, :n] for x, n in zip((assembled.q, assembled.v, *moves), (nq, nv, nq, nv), strict=True))
    moved = Start(q, v, _with_turns(given, assembled.q), moved_q, moved_v, assembled.residual, tuple(messages))
    m = given.caller
    guessed_q, guessed_v = given.guesses
    if guessed_q:
        _notice("q", moved.moved, m.q_names, m.q_units, scales(m, moved.p, moved.q, m.q_units))
    if guessed_v:
        _notice("v", moved.moved_rate, m.v_names, m.v_units, scales(m, moved.p, moved.q, m.v_units))
    return moved


def _with_turns(given: Given, q: np.ndarray) -> np.ndarray:
    """(runs, np) the parameters of starts q (runs, ...): closures whose turns are counted begin where they are held."""
    joints, p = given.as_joints, given.problem.p.copy()
    if joints is None:
        return p
    m, at = joints.m, {s.element_hash(): i for i, s in enumerate(ca.vertsplit(joints.m.p_symbols))}
    found, _ = joints.measured(q, np.zeros((len(q), joints.whole.nv)), p, given.problem.instants, given.problem.backend)
    turns = 2 * np.pi * np.round((q - found)[:, m.nq :] / (2 * np.pi))
    end = 0
    for c in (m.loop_joints[name] for name in joints.names):
        end += closing_joint(c).nq
        if c.counted is not None:
            counters = [at[s.element_hash()] for s in ca.vertsplit(c.counted)]
            p[:, counters] = turns[:, end - len(counters) : end]
    return p


def _notice(what: str, moved: np.ndarray, names: tuple[str, ...], units: tuple[str, ...], size: np.ndarray) -> None:
    """Warn once that a guess moved, naming the entry that moved the most relative to its size."""
    if not moved.size or (np.abs(moved) <= ROUNDING * size).all():
        return
    run, i = foremost(np.abs(moved) / size)
    unit = "" if units[i] == "1" else f" {units[i]}"
    where = f" in run {run} of {len(moved)}" if len(moved) > 1 else ""
    notice(
        f"{what} was off the constraints and has been moved onto them, {names[i]!r} the most, by {moved[run, i]:.3g}{unit}"
        f"{where}; see 'moved' in the result, and give {what} as a dict, {{{names[i]!r}: ...}}, to fix the named entries",
        RunWarning,
    )
