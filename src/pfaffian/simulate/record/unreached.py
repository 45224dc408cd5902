"""A warning of runs that did not reach their accuracy: from when on, and why."""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca
import numpy as np

from pfaffian.errors import RunWarning, listed, notice
from pfaffian.model.constraint import Target
from pfaffian.model.mechanism import Mechanism
from pfaffian.simulate.error.global_error import Solutions, global_error
from pfaffian.simulate.step.activation import switched
from pfaffian.simulate.step.draft import Draft
from pfaffian.simulate.step.events import ROUNDED
from pfaffian.simulate.step.simulation import Simulation
from pfaffian.simulate.step.thresholds import compared
from pfaffian.terms.pfaffian import condition
from pfaffian.terms.terms import symbols

TELLING = 100.0
"""How many times smaller than the accuracy the rounding of a coordinate may be to count as a cause: it grows in many steps."""

OFTEN = 3
"""Number of records at which a condition is at its edge that are no chance."""


def warn_of_error(result: Draft, accuracy: float, why: Callable[[int], str]) -> None:
    """Issue a RunWarning if the estimated error of a run exceeds its accuracy.   why: of a run, in words, "" if not known."""
    error = result["error"].max(axis=2)
    with np.errstate(invalid="ignore"):
        beyond = error > accuracy
    lost = np.flatnonzero(beyond.any(axis=1))
    if not lost.size:
        return
    run = int(lost[np.argmax(np.nanmax(error[lost], axis=1))])
    first = int(np.argmax(beyond[run]))
    which = "" if len(error) == 1 else f" of {len(lost)} of {len(error)} runs, most in run {run},"
    notice(
        f"the accuracy {accuracy:g} was not reached: the estimated error{which} passes it at t = {result['time'][first]:.6g} s "
        f"and is {np.nanmax(error[run]):.2g} at most; results after that instant are as inexact as `error` tells{why(run)}",
        RunWarning,
    )


def causes(s: Simulation, p: np.ndarray, result: Draft, accuracy: float, run: int) -> str:
    """What may keep a run from its accuracy, as the end of a sentence.   p: (runs, np) parameters."""
    least = _rounding(s.mechanism, p, result, run)
    rounds = f"; rounding its largest coordinate alone makes {least:.2g}" if least > accuracy / TELLING else ""
    edges = [repr(c.name) for c in switched(s.mechanism) if _is_at_edge(s, c, p[run], result, run)]
    if not edges:
        return rounds
    keeps = f"; what the condition of {listed(edges)} compares stands at its edge, where rounding decides whether it acts"
    return f"{rounds}{keeps}: give it a mode (switches=) that ends where its reaction would change its sign"


def _rounding(m: Mechanism, p: np.ndarray, result: Draft, run: int) -> float:
    """The error that rounding its largest coordinates alone gives a run; 0 where they are not recorded."""
    if "q" not in result:
        return 0.0
    q = np.nan_to_num(result["q"][run][:, None])
    q_v = np.concatenate([q, np.zeros((len(q), 1, m.nv))], axis=2)
    both = Solutions(q_v, q_v * (1 + float(np.finfo(float).eps)))
    return float(global_error(m, both, p[[run]], float(np.ptp(result["time"]))).max())


def _is_at_edge(s: Simulation, c: Target, p: np.ndarray, result: Draft, run: int) -> bool:
    """Whether a number that the condition of a constraint compares is zero, to rounding, at several records of a run.

    p: (np,) parameters.
    """
    m = s.mechanism
    k = symbols(m).kinematics
    moving = ca.vertcat(k.q, k.v, k.t)
    active = condition(k, c.active, c.name) if c.active else ca.SX(0)
    found = compared(active, moving, inside=False).comparisons
    if not found or "q" not in result or "v" not in result:
        return False
    numbers = ca.vertcat(*[x.difference for x in found])
    sizes = ca.fabs(ca.jacobian(numbers, moving)) @ ca.fabs(moving)
    at_edge = ca.Function("at_edge", [k.q, k.v, k.t, m.p_symbols], [ca.fabs(numbers) <= ROUNDED * sizes])
    q, v, t = result["q"][run].T, result["v"][run].T, result["time"][None]
    times = np.array(at_edge.map(t.shape[1])(q, v, t, np.tile(p[:, None], t.shape[1])))
    return bool((times.sum(axis=1) >= OFTEN).any())
