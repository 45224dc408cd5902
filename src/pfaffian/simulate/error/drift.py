"""The check of a reduced run: how far its motion may have departed from the motion of the full equations."""

from __future__ import annotations

import casadi as ca
import numpy as np

from pfaffian.errors import RunWarning, notice
from pfaffian.simulate.step.draft import Draft
from pfaffian.states.abstract_system import AbstractSystem
from pfaffian.terms.terms import symbols

BEYOND_ROUNDING = 1e-6
"""Departure from the motion of the full equations at the end of a run [m, rad] above which a run warns: more than rounding."""


def warn_of_drift(result: Draft, s: AbstractSystem, q: np.ndarray, v: np.ndarray, p: np.ndarray, t: float) -> None:
    """Estimate how far the momentum errors of a reduced run let it depart from the full equations, and warn of a departure.

    A momentum that has drifted moves its body at the speed drift / inertia; an error of a momentum's rate makes a speed that
    grows. Both are integrated over the recorded instants. Adds `reduction_error` (run) [m, rad], the departure of the motion
    that departs the furthest, to the result of a system with `inertia`; other results stay unchanged.
    q: (runs, nq), v: (runs, nv), p: (runs, np) at the start, at the time t [s].   Warns RunWarning.
    """
    if s.inertia is None or "momentum_drift" not in result:
        return
    time, drift = result["time"], np.abs(_entries(result, "momentum_drift"))
    names = result["momentum_drift_entry"].tolist()
    q, v, p = (np.broadcast_to(x, (len(drift), x.shape[1])) for x in (q, v, p))
    inertia = _inertia(s, q, v, p, t)
    speed = drift / inertia[:, None]
    if "momentum_rate_error" in result:
        at = [names.index(n) for n in result["momentum_rate_error_entry"].tolist()]
        speed[:, :, at] += _summed(np.abs(_entries(result, "momentum_rate_error")) / inertia[:, None, at], time)
    errors = _summed(speed, time).max(axis=1)
    result.data["reduction_error"] = (
        "run", errors.max(axis=1),
        {"units": "m, rad", "meaning": "how far the motion may have left that of the full equations"},
    )  # fmt: skip
    if not errors.max() > BEYOND_ROUNDING:
        return
    run, i = np.unravel_index(int(np.argmax(errors)), errors.shape)
    which = f", in run {run} of {len(errors)} the most" if len(errors) > 1 else ""
    notice(
        f"the reduced motion departs from that of the full equations, which do not conserve the momentum of {names[i]!r}: at "
        f"the end it is off by some {errors[run, i]:.2g} m or rad there{which}; run the mechanism without reduction",
        RunWarning,
    )


def _entries(result: Draft, name: str) -> np.ndarray:
    """(runs, times, entries) values of a variable, zero after a stop."""
    return np.nan_to_num(result[name])


def _summed(x: np.ndarray, time: np.ndarray) -> np.ndarray:
    """The integral of x (runs, times, entries) over time by the trapezium rule, up to each instant."""
    pieces = (x[:, 1:] + x[:, :-1]) / 2 * np.diff(time)[:, None]
    return np.concatenate([np.zeros_like(x[:, :1]), np.cumsum(pieces, axis=1)], axis=1)


def _inertia(s: AbstractSystem, q: np.ndarray, v: np.ndarray, p: np.ndarray, t: float) -> np.ndarray:
    """(runs, entries) inertias along the momenta at the start, at the time t [s]."""
    assert s.inertia is not None
    T = symbols(s.mechanism)
    f = ca.Function("inertia", [T.q, T.v, T.t, s.mechanism.p_symbols], [ca.densify(s.inertia(T))])
    return np.array(f.map(len(q))(q.T, v.T, np.full((1, len(q)), t), p.T)).T
