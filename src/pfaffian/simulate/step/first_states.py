"""Starts from which no run can begin: closures outside their limits, surfaces that rebound inside one another."""

from __future__ import annotations

import casadi as ca
import numpy as np

from pfaffian.errors import RunError
from pfaffian.model.mechanism import Mechanism
from pfaffian.parts.rebound import impacts_of
from pfaffian.simulate.step.limits import check_loop_limits
from pfaffian.terms.lengths import machine_length
from pfaffian.terms.terms import shared
from pfaffian.terms.traced_now import remembered

TOUCHING = 1e-6
"""Depth up to which surfaces touch, relative to the machine's length, or of a joint [rad]."""


def check_start(m: Mechanism, q: np.ndarray, p: np.ndarray, t: float) -> None:
    """Check where runs begin.   q: (runs, nq), NaN where a run has no start.   p: (1 or runs, np) parameters.   t: [s].

    Raises RunError: a closure starts outside its limits, or surfaces that rebound start inside one another.
    """
    check_loop_limits(m, q, p, t)
    if not impacts_of(m):
        return
    names, impacts = _impacts(m)
    of_runs = [q.T, np.broadcast_to(p, (len(q), p.shape[1])).T, np.full((1, len(q)), t)]
    gaps, depths = (np.array(x) for x in impacts.map(len(q)).call(of_runs))
    for i, run in np.argwhere(depths > TOUCHING)[:1]:
        which = f" in run {run}" if len(q) > 1 else ""
        raise RunError(
            f"force {names[i]!r}: its surfaces start {-gaps[i, run]:.4g} m or rad inside one another{which}, and a rebound "
            "does not part them; start where the gap is at least 0"
        )


@remembered(64)
def _impacts(m: Mechanism) -> tuple[list[str], ca.Function]:
    """Names of the parts that rebound, one for each gap, and (q, p, t) -> their gaps, and the relative depths."""
    k, long = shared(m).kinematics, machine_length(m)
    found = [(name, gap) for name, part in impacts_of(m).items() for gap in part.gaps(name, k)]
    gaps = ca.vertcat(*[gap for _, gap in found])
    depths = -gaps / (ca.SX(1) if long.is_zero() else long)
    f = ca.Function("impacts", [k.q, m.p_symbols, k.t], [ca.densify(x) for x in (gaps, depths)])
    return [name for name, _ in found], f
