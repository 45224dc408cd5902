"""Runs that stopped: the reason, by name, and one warning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from pfaffian.control.law import Control
from pfaffian.control.reason import ended
from pfaffian.errors import RunWarning, notice
from pfaffian.evaluate.realisability import blamed, holds
from pfaffian.model.mechanism import Mechanism
from pfaffian.simulate.draft import Draft
from pfaffian.simulate.result import CAUSES, DIVERGED, causes_of, ends, status_of
from pfaffian.simulate.simulation import Simulation
from pfaffian.simulate.start import Start
from pfaffian.simulate.system import System, show

Finder = Callable[[np.ndarray, np.ndarray, np.ndarray], list[str]]
"""(x, p, t) -> for each of some runs a message with what is to blame: x (runs, nx) last good states, p (runs, np), t (runs,)
of the stop."""

GROWING = "inputs grow faster than steps follow: take shorter steps, or lead the outputs elsewhere"

NONE: Mapping[int, Callable[[np.ndarray], list[str]]] = {}


def tell_stops(
    result: Draft, s: Simulation, x: np.ndarray, start: Start, more: Mapping[int, Callable[[np.ndarray], list[str]]] = NONE
) -> None:
    """Add to a result what stopped its runs, and warn once, with the number of runs for each cause.

    Args:
        x: (runs, nx) last good states.   start: of the runs.
        more: status -> function that tells for runs of given numbers what is to blame, where nothing else is known.
    Adds `reason` (run): what is to blame at the last good state, "" where nothing more is known. Warns RunWarning.
    """
    status, stopped = result["status"], result["stopped"]
    lost = np.flatnonzero(status)
    if not lost.size:
        return
    find = _finders(s, set(status.tolist()), _step(result))
    reasons, p = np.full(len(status), "", dtype=object), np.broadcast_to(start.p, (len(status), start.p.shape[1]))
    reasons[:] = start.messages if len(start.messages) == len(status) else start.messages[0]
    for code, finder in find.items():
        at = np.array([i for i in lost if status[i] == code and not reasons[i]], dtype=int)
        if at.size:
            reasons[at] = finder(x[at], s.parameters(p[at], x[at]), stopped[at])
    for code, tell in more.items():
        at = np.array([i for i in lost if status[i] == code and not reasons[i]], dtype=int)
        if at.size:
            reasons[at] = tell(at)
    for code in {DIVERGED, *range(DIVERGED + 1, len(CAUSES)), status_of(s, "integrator")} & set(status.tolist()):
        at = np.flatnonzero(status == code)
        for run, found in zip(at, _nearly(result, s, x, p, at), strict=True):
            reasons[run] = "; ".join(words for words in (found, reasons[run]) if words)
    if reasons.any():
        result.data["reason"] = ("run", reasons, {"meaning": "what is to blame at the last good state of a run that stopped"})
    notice(_summary(ends(causes_of(s), status, stopped, reasons), status, stopped), RunWarning)


def _nearly(result: Draft, s: Simulation, x: np.ndarray, p: np.ndarray, at: np.ndarray) -> list[str]:
    """For runs of numbers `at` whose steps failed: to which fault that lets inputs grow they were near shortly before, if the
    law has one. The last states of such a run may be anywhere: the last but two that were recorded are taken.
    """
    faults = [fault.reason for fault in s.faults.listed() if fault.near and fault.reason]
    if not faults or not at.size:
        return [""] * len(at)
    q, v = show(s.system, x[at], s.parameters(p[at], x[at]), result["stopped"][at])
    t = np.array(result["stopped"][at])
    if "q" in result:
        for i, run in enumerate(at):
            recorded = np.flatnonzero(np.isfinite(result["q"][run]).all(axis=1))
            if recorded.size:
                k = recorded[max(len(recorded) - 3, 0)]
                q[i], t[i] = result["q"][run, k], result["time"][k]
                v[i] = result["v"][run, k] if "v" in result else 0.0
    found = [blamed(s.mechanism, reason)(q, v, s.parameters(p[at], x[at]), t) for reason in faults]
    return [f"at t = {now:.6g} s {' and '.join(words)}, where {GROWING}" for now, *words in zip(t, *found, strict=True)]


def _step(result: Draft) -> float:
    """How far ahead of its start a step may have evaluated the law [s]."""
    return float(result.attrs.get("step", np.diff(result["time"]).max(initial=0.0)))


def _finders(s: Simulation, needed: set[int], step: float) -> dict[int, Finder]:
    """status -> Finder, for the statuses that are needed."""
    m = s.mechanism
    found: dict[int, Finder] = {}
    if DIVERGED in needed:
        found[DIVERGED] = partial(_no_number, m, s.control, step)
    for status, fault in enumerate(s.faults.listed(), start=len(CAUSES)):
        if status in needed and fault.reason:
            found[status] = partial(_by_reason, s.system, blamed(m, fault.reason))
    if m.servos:
        found[status_of(s, "servo")] = partial(_hold, s.system)
    return found


def _no_number(m: Mechanism, law: Control, step: float, x: np.ndarray, p: np.ndarray, t: np.ndarray) -> list[str]:
    return ended(m, law, t, step, p)


def _by_reason(s: System, look: Callable[..., list[str]], x: np.ndarray, p: np.ndarray, t: np.ndarray) -> list[str]:
    return look(*show(s, x, p, t), p, t)


def _hold(s: System, x: np.ndarray, p: np.ndarray, t: np.ndarray) -> list[str]:
    return [f"its last state is {found}" for found in holds(s.mechanism, show(s, x, p, t)[0], t, p)]


def _summary(every: list[str], status: np.ndarray, stopped: np.ndarray) -> str:
    """every: what ended each run."""
    lost = np.flatnonzero(status)
    if len(every) == 1:
        return f"the run stopped: {every[0]}"
    messages = []
    for code, count in Counter(status[lost].tolist()).most_common():
        first = min((i for i in lost if status[i] == code), key=lambda i: stopped[i])
        messages.append(f"{count} {every[first].replace('(at t', f'(run {first} first, at t', 1)}")
    return f"{len(lost)} of {len(every)} runs stopped: {'; '.join(messages)}"
