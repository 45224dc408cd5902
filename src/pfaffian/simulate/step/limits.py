"""Limits of joints and inputs: how far a run exceeded them, with one warning; inputs are saturated on request.

A run does not enforce the limits of joints, because a mechanism has no force that does, apart from stops. A start outside the
limits of a closure is refused, since the angle of a closure is given within half a turn of their middle. Inputs are cut at
their limits by `Scheme(saturate=True)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.errors import RunError, RunWarning, notice
from pfaffian.model.loop_coordinates import loop_coordinates_of
from pfaffian.model.mechanism import Mechanism
from pfaffian.parts.contact import stopped
from pfaffian.simulate.step.draft import Draft
from pfaffian.terms.pfaffian import row_names
from pfaffian.terms.terms import shared, symbols
from pfaffian.terms.traced_now import remembered

SLIGHT = 1e-9
"""Excess relative to the limit up to which it counts as rounding."""

MOST_NAMED = 5
"""Largest number of joints or inputs that the warning names."""


def saturated(m: Mechanism, u: ca.SX) -> ca.SX:
    """Inputs u (nu, 1) cut at their limits; NaN stays NaN."""
    cut = ca.SX(u)
    for i, (low, high) in enumerate(m.u_limits):
        if np.isfinite(low):
            cut[i] = ca.if_else(cut[i] < low, low, cut[i])
        if np.isfinite(high):
            cut[i] = ca.if_else(cut[i] > high, high, cut[i])
    return cut


def excesses(m: Mechanism, time: np.ndarray, recorded: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """How far the recorded instants exceed the limits of joints and inputs, as variables of a result.

    `limit_excess` (run, coordinate) [unit of the coordinate] is the largest excess and `limit_time` [s] the first time of an
    excess, NaN if there is none; they exist where a joint has limits and q is recorded. `input_excess` and `input_time`
    (run, input) are their counterparts for the requested inputs, `loop_excess` and `loop_time` (run, loop_coordinate) for
    joints that close loops.   recorded: signal -> (times, runs, size).
    """
    variables: dict[str, Any] = {}
    if "q" in recorded and np.isfinite(m.q_limits).any():
        variables |= _excess(time, "limit", "coordinate", m.q_limits, _entries(recorded["q"]))
    loops = loop_coordinates_of(m)
    if "loop" in recorded and np.isfinite(loops.limits).any():
        variables |= _excess(time, "loop", "loop_coordinate", loops.limits, _entries(recorded["loop"]))
    if "u" in recorded and np.isfinite(m.u_limits).any():
        variables |= _excess(time, "input", "input", m.u_limits, _requested(recorded, m))
    return variables


def check_loop_limits(m: Mechanism, q: np.ndarray, p: np.ndarray, t: float) -> None:
    """Raise RunError if a closure starts outside its limits.   q: (runs, nq), NaN where a run has no start.   p: (runs, np)."""
    loops = loop_coordinates_of(m)
    if not np.isfinite(loops.limits).any():
        return
    coordinates = _loop_coordinates(m)
    for run, (at, values) in enumerate(zip(q, np.broadcast_to(p, (len(q), p.shape[1])), strict=True)):
        x = np.array(coordinates(at, values, t)).ravel()
        for name, unit, of, (low, high) in zip(loops.names, loops.units, x.tolist(), loops.limits.tolist(), strict=True):
            if max(of - high, low - of) > _slight(low, high, np.array([of])):
                which = f" of run {run}" if len(q) > 1 else ""
                raise RunError(
                    f"closure {name!r} starts at {of:.6g} {unit}{which}, outside its limits from {low:g} to {high:g}; start "
                    "inside them, or change the limits"
                )


@remembered(64)
def _loop_coordinates(m: Mechanism) -> ca.Function:
    """(q, p, t) -> the coordinates of closures, in the order of `loop_coordinates_of`."""
    k = shared(m).kinematics
    return ca.Function(
        "loop", [k.q, m.p_symbols, k.t], [ca.vertcat(*[k.joint(c.name) for c in loop_coordinates_of(m).closures])]
    )


def warn_of_limits(result: Draft, m: Mechanism, saturate: bool, q: np.ndarray) -> None:
    """Warn once if a result exceeds limits, except for inputs that were cut on request and joints with compliant stops.

    q: (runs, nq) the start, which is checked instead where q is not recorded.
    """
    phrases = [] if "q" in result else _outside_at_start(m, q)
    if "limit_excess" in result:
        phrases = _phrases(result, "limit", "coordinate", "q_unit", "joint", stopped(m))
    if "loop_excess" in result:
        phrases += _phrases(result, "loop", "loop_coordinate", "loop_unit", "closure", stopped(m))
    phrases += _phrases(result, "input", "input", "u_unit", "input") if "input_excess" in result and not saturate else []
    if phrases:
        notice("limits are not enforced: " + "; ".join(phrases), RunWarning)


def _slight(low: float, high: float, x: np.ndarray) -> float:
    """Excess of x that is rounding: a fraction of the larger limit, or of the largest |x| where both limits are zero."""
    ends = np.abs([low, high])
    return SLIGHT * float(ends[np.isfinite(ends)].max(initial=0.0) or np.nan_to_num(np.abs(x), nan=0.0).max(initial=0.0))


def _outside_at_start(m: Mechanism, q: np.ndarray) -> list[str]:
    """One phrase for each of the first few joints whose start q (runs, nq) is outside its limits."""
    beyond = np.maximum(q - m.q_limits[:, 1], m.q_limits[:, 0] - q)
    worst = np.nan_to_num(beyond, nan=0.0).max(axis=0, initial=0.0)
    slight = [_slight(low, high, of) for (low, high), of in zip(m.q_limits, q.T, strict=True)]
    out = [f"joint {m.q_names[i]!r} is outside at the start, by up to {worst[i]:.3g} {m.q_units[i]}"
           for i in np.flatnonzero(worst > slight)]  # fmt: skip
    return out[:MOST_NAMED] + ([f"{len(out) - MOST_NAMED} more joints"] if len(out) > MOST_NAMED else [])


def _requested(recorded: Mapping[str, np.ndarray], m: Mechanism) -> Callable[[int], np.ndarray]:
    """Input i -> (runs, time) its requested value: the sum of the applied part, the part cut off and servo forces along it."""
    parts = [_entries(recorded[name]) for name in ("u", "u_cut") if name in recorded]
    force = _entries(recorded["servo_force"]) if "servo_force" in recorded else None

    def requested(i: int) -> np.ndarray:
        summands = [of(i) for of in parts] + [force(k) for k in _along(m, m.u_names[i]) if force]
        return sum(summands[1:], summands[0])

    return requested


def _along(m: Mechanism, name: str) -> list[int]:
    """Indices of the servo forces that act along the input `name`."""
    at, entries = 0, list[int]()
    for s in m.servos:
        size = len(row_names(symbols(m).kinematics, (s.target,)))
        entries += [at + k for k in range(size) if not callable(s.directions) and s.directions[k] == name]
        at += size
    return entries


def _entries(values: np.ndarray) -> Callable[[int], np.ndarray]:
    """i -> (runs, time) the values of entry i, from values (time, runs, entries)."""
    return lambda i: values[:, :, i].T


def _excess(time: np.ndarray, name: str, dim: str, limits: np.ndarray, of: Callable[[int], np.ndarray]) -> dict[str, Any]:
    """The largest excess and the time of the first one, entry by entry, since a batch's record may nearly fill the memory."""
    excess = np.zeros((len(of(0)), len(limits)))
    first = np.full(excess.shape, np.nan)
    for i in np.flatnonzero(np.isfinite(limits).any(axis=1)).tolist():
        (low, high), x = limits[i].tolist(), of(i)
        if low <= x.min() and x.max() <= high:
            continue
        beyond = np.fmax(np.maximum(x - high, low - x), 0.0)  # 0 where x is NaN
        outside = beyond > _slight(low, high, x)
        excess[:, i] = np.where(outside, beyond, 0).max(axis=1)
        runs_outside = outside.any(axis=1)
        first[runs_outside, i] = time[outside[runs_outside].argmax(axis=1)]
    what = {"limit": "a joint", "loop": "a closure", "input": "an input"}[name]
    meaning = f"largest beyond {what}'s limit at the recorded instants, 0 if none"
    first_meaning = f"first recorded instant beyond {what}'s limit"
    return {
        f"{name}_excess": (("run", dim), excess, {"units": f"per {dim}", "meaning": meaning}),
        f"{name}_time": (("run", dim), first, {"units": "s", "meaning": first_meaning}),
    }


def _phrases(result: Draft, name: str, dim: str, unit: str, what: str, but: Set[str] = frozenset()) -> list[str]:
    """One phrase for each of the first few entries outside their limits, the earliest first.   but: names to leave out."""
    excess, first = result[f"{name}_excess"], result[f"{name}_time"]
    if not excess.any():
        return []
    start, runs, names, units = float(result["time"][0]), len(excess), result[dim].tolist(), result[unit].tolist()
    words = []
    for i in np.flatnonzero((excess > 0).any(axis=0)).tolist():
        if names[i] in but:
            continue
        out = np.flatnonzero(excess[:, i] > 0)
        began = np.nanmin(first[:, i])
        when = "at the start" if began <= start else f"from t = {began:.6g} s"
        of = f" in {len(out)} of {runs} runs" if runs > 1 else ""
        by = f"by up to {excess[:, i].max():.3g} {units[i]}"
        words.append((began, f"{what} {names[i]!r} is outside {when}, {by}{of}"))
    words.sort(key=lambda word: word[0])
    rest = [f"{len(words) - MOST_NAMED} more {what}s"] if len(words) > MOST_NAMED else []
    hint = ["Scheme(saturate=True) or --saturate cuts inputs"] if words and what == "input" else []
    return [w for _, w in words[:MOST_NAMED]] + rest + hint
