"""Which functions of a user have no number where a run stopped: of forces, constraints and the control law."""

from __future__ import annotations

import casadi as ca
import numpy as np

from pfaffian.errors import listed
from pfaffian.simulate.step.activation import NO_NUMBER, has
from pfaffian.simulate.step.closed_loop import traced_loop
from pfaffian.simulate.step.kinks import parts_that_act
from pfaffian.simulate.step.simulation import Simulation

HALVINGS = 30
"""Number of instants that are examined after the last one of a run, each twice as far ahead as the one before."""

MODERATE = 1e6
"""Largest number of a state at which a part is to blame; beyond it the motion itself has grown."""

MOST_EXPLAINED = 64
"""Largest number of stopped runs that are examined."""


def without_number(s: Simulation, x: np.ndarray, p: np.ndarray, t: np.ndarray, w: np.ndarray, ahead: float) -> list[str]:
    """For each run a message that names the parts that become NaN or infinite where its motion leads; "" if none does.

    x: (runs, nx) last states.   p: (runs, np) parameters in force.   t: (runs,) [s].   w: (runs, nw) inputs then, which
    count as constant from there on.   ahead: how far ahead is looked [s].
    """
    loop = traced_loop(s, last=True)
    parts = [(name, part) for name, part in parts_that_act(loop) if has(part, NO_NUMBER)]
    found = [""] * len(t)
    if not parts:
        return found
    sums = ca.vertcat(*[ca.sum1(ca.vec(ca.densify(part))) for _, part in parts])
    at = [loop.x, loop.w, s.mechanism.p_symbols, loop.here.T.t]
    values = ca.Function("parts", at, loop.here.of_state([sums]))
    moved = _moved(s)
    instants = [0.0, *(ahead * 0.5**k for k in reversed(range(HALVINGS)))]
    for run in range(min(len(t), MOST_EXPLAINED)):
        for later in instants:
            there = np.array(moved(x[run], w[run], p[run], t[run], later))
            if not np.abs(there).max(initial=0.0) <= MODERATE:
                break
            lost = ~np.isfinite(np.array(values(there, w[run], p[run], t[run] + later)).ravel())
            if lost.any():
                names = listed([repr(name) for (name, _), is_lost in zip(parts, lost, strict=True) if is_lost])
                found[run] = f"what {names} returns is no number at t = {t[run] + later:.6g} s, {WAY_OUT}"
                break
    return found


WAY_OUT = "where the motion leads; guard it, as in ca.sqrt(ca.fmax(x, 0))"
"""End of a message about such a part."""


def _moved(s: Simulation) -> ca.Function:
    """(x, w, p, t, h) -> the state that the rates at x lead to after the time h, in one step."""
    rhs, variables = s.traced.rhs, s.system.variables
    x, w, p, t = rhs.sx_in()
    h, n = ca.SX.sym("h"), rhs.size1_out(0)
    rate = rhs(x, w, p, t)[0]
    ahead = variables.state(variables.stepped(x[:n, 0]) + h * variables.rate(x[:n, 0], rate))
    return ca.Function("moved", [x, w, p, t, h], [ca.vertcat(ca.if_else(h > 0, ahead, x[:n, 0]), x[n:, 0])])
