"""Runs that stopped: why, with names, and said once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial

import numpy as np
import xarray as xr

from pfaffian.dynamics.controlforce import fault as servo_fault
from pfaffian.errors import RunWarning, notice
from pfaffian.simulate import arrival
from pfaffian.simulate.diagnose import blamed, realisability
from pfaffian.simulate.result import causes, causes_of
from pfaffian.simulate.simulation import Simulation
from pfaffian.simulate.start import Start
from pfaffian.simulate.system import System, show

BLAMED = 64
"""Stopped runs of a batch whose state is looked at, the first ones; the others have their cause alone."""


def tell_stops(result: xr.Dataset, s: Simulation, x: np.ndarray, start: Start) -> None:
    """Add to a result what stopped its runs, and warn once, with the number of each cause.

    Args:
        x: (runs, nx) last good states.   start: of the runs.
    Adds `reason` (run): who is to blame at the last good state, "" where nothing more is known. Warns RunWarning.
    """
    status, stopped = result["status"].values, result["stopped"].values
    lost = np.flatnonzero(status)
    if not lost.size:
        return
    find = _finders(s, set(status.tolist()))
    words, p = np.full(len(status), "", dtype=object), np.broadcast_to(start.p, (len(status), start.p.shape[1]))
    words[:] = start.words if len(start.words) == len(status) else start.words[0]
    begun = np.array([i for i in lost if not words[i]], dtype=int)
    for i in begun[np.argsort(stopped[begun], kind="stable")][:BLAMED]:
        if int(status[i]) in find:
            words[i] = find[int(status[i])](x[i], s.parameters(p[i], x[i]), float(stopped[i]))
    if words.any():
        result["reason"] = ("run", words, {"meaning": "who is to blame at the last good state of a run that stopped"})
    notice(_summary(result, lost), RunWarning)


def _finders(s: Simulation, needed: set[int]) -> dict[int, Callable[[np.ndarray, np.ndarray, float], str]]:
    """status -> (x, p, t) -> who is to blame, of those statuses that are needed."""
    m, meanings = s.mechanism, causes_of(s)
    found: dict[int, Callable[[np.ndarray, np.ndarray, float], str]] = {}
    for fault, reason in (s.control.reasons if s.control else {}).items():
        status = meanings.index(fault)
        if status in needed:
            found[status] = partial(_by_law, s.system, blamed(m, reason))
    if m.servos:
        found[meanings.index(servo_fault(m.servos))] = partial(_hold, s.system)
    if arrival.switched(m):
        found[meanings.index(arrival.fault(m))] = partial(_away, s.system)
    return found


def _by_law(s: System, look: Callable[..., str], x: np.ndarray, p: np.ndarray, t: float) -> str:
    return look(*show(s, x, p, t), p, t)


def _away(s: System, x: np.ndarray, p: np.ndarray, t: float) -> str:
    return arrival.away(s.mechanism, *show(s, x, p, t), t, p)


def _hold(s: System, x: np.ndarray, p: np.ndarray, t: float) -> str:
    return f"its last state is {realisability(s.mechanism, show(s, x, p, t)[0], t=t, parameters=p)}"


def _summary(result: xr.Dataset, lost: np.ndarray) -> str:
    every, status = causes(result), result["status"].values
    if len(every) == 1:
        return f"the run stopped: {every[0]}"
    told = []
    for code, count in Counter(status[lost].tolist()).most_common():
        first = min((i for i in lost if status[i] == code), key=lambda i: result["stopped"].values[i])
        told.append(f"{count} {every[first].replace('(at t', f'(run {first} first, at t', 1)}")
    return f"{len(lost)} of {len(every)} runs stopped: {'; '.join(told)}"
