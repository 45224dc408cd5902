"""Why runs stopped: the reasons, by name, and one warning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from pfaffian.control.reason import ended
from pfaffian.errors import RunWarning, notice
from pfaffian.evaluate.flat_disks import lying_flat
from pfaffian.evaluate.realisability import blamed, realisable_per_run
from pfaffian.simulate.record.lost_numbers import without_number
from pfaffian.simulate.record.result import CAUSES, DIVERGED, FIRST_FAULT, causes_of, ends, status_of
from pfaffian.simulate.step.draft import Draft
from pfaffian.simulate.step.simulation import Simulation
from pfaffian.starts.start import Start
from pfaffian.states.abstract_system import AbstractSystem, show

Finder = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], list[str]]
"""(x, p, t, w) -> message for each run that names the cause: x (runs, nx) last good states, p (runs, np) parameters, t (runs,)
[s] times of stop, w (runs, nw) inputs there."""

GROWING = "inputs grow faster than the steps can follow: take shorter steps, or choose another motion of the outputs"
"""End of a message about such a fault, with the way out."""

NEAR = 1e-8
"""How far ahead of the last state of a run under error control a cause is looked for, relative to its time."""

STRAIGHT = 2.0
"""How far ahead the motion is continued, in steps: a straight path may fall short of where the steps led."""


def record_stops(
    result: Draft, s: Simulation, x: np.ndarray, start: Start, more: Mapping[int, Callable[[np.ndarray], list[str]]]
) -> None:
    """Add to a result why its runs stopped, and warn once, with the number of runs for each cause.

    Args:
        x: (runs, nx) last good states.   start: of the runs.
        more: status -> function of the indices of runs that returns a message for each, used where no other reason is known.
    Adds `reason` (run): what is to blame at the last good state, "" where it is not known. Warns RunWarning.
    """
    status, stopped = result["status"], result["stopped"]
    lost = np.flatnonzero(status)
    if not lost.size:
        return
    find = _finders(s, set(status.tolist()), _longest_step(result))
    reasons, p = np.full(len(status), "", dtype=object), np.broadcast_to(start.p, (len(status), start.p.shape[1]))
    reasons[:] = start.messages if len(start.messages) == len(status) else start.messages[0]
    for code, finder in find.items():
        at = np.array([i for i in lost if status[i] == code and not reasons[i]], dtype=int)
        if at.size:
            reasons[at] = finder(x[at], s.parameters(p[at], x[at]), stopped[at], _inputs_then(result, s, at))
    for code, explain in more.items():
        at = np.array([i for i in lost if status[i] == code and not reasons[i]], dtype=int)
        if at.size:
            reasons[at] = explain(at)
    at = np.flatnonzero(np.isin(status, (DIVERGED, FIRST_FAULT)) & (reasons == ""))
    if at.size:
        reasons[at] = _flat(s, x[at], s.parameters(p[at], x[at]), stopped[at], _longest_step(result))
    for code in {DIVERGED, *range(DIVERGED + 1, len(CAUSES)), status_of(s, "integrator")} & set(status.tolist()):
        at = np.flatnonzero(status == code)
        for run, found in zip(at, _near_faults(result, s, x, p, at), strict=True):
            reasons[run] = "; ".join(words for words in (found, reasons[run]) if words)
    if reasons.any():
        result.data["reason"] = ("run", reasons, {"meaning": "what is to blame at the last good state of a run that stopped"})
    notice(_summary(ends(causes_of(s), status, stopped, reasons), status, stopped), RunWarning)


def _inputs_then(result: Draft, s: Simulation, at: np.ndarray) -> np.ndarray:
    """(n, nw) the inputs of the runs `at` when they stopped: those of the last sample before."""
    if not s.w_names:
        return np.zeros((len(at), 0))
    given = result["inputs"]
    if "sample_time" not in result:
        return given[at]
    sample = np.maximum(np.searchsorted(result["sample_time"], result["stopped"][at], "right") - 1, 0)
    then: np.ndarray = given[sample] if given.ndim == 2 else given[sample, at]
    return then


def _near_faults(result: Draft, s: Simulation, x: np.ndarray, p: np.ndarray, at: np.ndarray) -> list[str]:
    """Messages for the runs `at`, whose steps failed: the faults with growing inputs to which they were near, "" if none.

    The last states of such a run may be anything, so the state two records before its last one is examined.
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
    causes = [blamed(s.mechanism, reason)(q, v, s.parameters(p[at], x[at]), t) for reason in faults]
    return [f"at t = {now:.6g} s {' and '.join(words)}, where {GROWING}" for now, *words in zip(t, *causes, strict=True)]


def _longest_step(result: Draft) -> float:
    """Longest time after the start of a step at which it may have evaluated the law [s]; under error control, where steps that
    fail become short, NEAR of the time so far or of that between records."""
    between = float(np.diff(result["time"]).max(initial=0.0))
    if "accuracy" in result.attrs:
        return NEAR * max(float(np.nanmax(np.abs(result["stopped"]))), between)
    return float(result.attrs.get("step", between))


def _finders(s: Simulation, needed: set[int], step: float) -> dict[int, Finder]:
    """status -> Finder, for the statuses in `needed`."""
    m = s.mechanism
    finders: dict[int, Finder] = {}
    for status in {DIVERGED, status_of(s, "integrator")} & needed:
        finders[status] = partial(_no_number, s, step)
    for status, fault in enumerate(s.faults.listed(), start=len(CAUSES)):
        if status in needed and fault.reason:
            finders[status] = partial(_by_reason, s.system, blamed(m, fault.reason))
    if m.servos:
        finders[status_of(s, "servo")] = partial(_hold, s.system)
    return finders


def _no_number(s: Simulation, step: float, x: np.ndarray, p: np.ndarray, t: np.ndarray, w: np.ndarray) -> list[str]:
    """The references of the law that have ended, or the parts that have no number, for runs whose state became none."""
    found = ended(s.mechanism, s.control, t, step, p)
    flat = _flat(s, x, p, t, step)
    others = [i for i, words in enumerate(found) if not words and not flat[i]]
    if others:
        lost = without_number(s, x[others], p[others], t[others], w[others], STRAIGHT * step)
        for i, words in zip(others, lost, strict=True):
            found[i] = words
    return found


def _by_reason(
    s: AbstractSystem, find: Callable[..., list[str]], x: np.ndarray, p: np.ndarray, t: np.ndarray, _: np.ndarray
) -> list[str]:
    """The causes that `find` names at (q, v, p, t), for the states x of a system."""
    return find(*show(s, x, p, t), p, t)


def _flat(s: Simulation, x: np.ndarray, p: np.ndarray, t: np.ndarray, step: float) -> list[str]:
    """The disks that lie flat at the last states x."""
    return lying_flat(s.mechanism, *show(s.system, x, p, t), p, step)


def _hold(s: AbstractSystem, x: np.ndarray, p: np.ndarray, t: np.ndarray, _: np.ndarray) -> list[str]:
    """The realisability of the servo constraints at the last states x."""
    return [f"its last state is {found}" for found in realisable_per_run(s.mechanism, show(s, x, p, t)[0], t, p)]


def _summary(endings: list[str], status: np.ndarray, stopped: np.ndarray) -> str:
    """The text of the warning.   endings: why each run ended."""
    lost = np.flatnonzero(status)
    if len(endings) == 1:
        return f"the run stopped: {endings[0]}"
    messages = []
    for code, count in Counter(status[lost].tolist()).most_common():
        first = min((i for i in lost if status[i] == code), key=lambda i: stopped[i])
        messages.append(f"{count} {endings[first].replace('(at t', f'(run {first} first, at t', 1)}")
    return f"{len(lost)} of {len(endings)} runs stopped: {'; '.join(messages)}"
