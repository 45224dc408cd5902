"""Constraints that come on while a run goes on: near phi = 0 they are met there, far from it the run stops.

The correction after a step would otherwise move the state onto them at once, however far that is. A constraint that was met at
the start of the step, or that a motion of at most two steps leads to, is one that is met.
"""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np

from pfaffian.model.constraint import Target
from pfaffian.model.mechanism import Mechanism
from pfaffian.terms.pfaffian import POSITION, activity, target_rows
from pfaffian.terms.terms import Terms, symbols


def switched(m: Mechanism) -> tuple[Target, ...]:
    """Ideal constraints that are active for a while only."""
    return tuple(c for c in m.ideal if c.active is not None)


def fault(m: Mechanism) -> str:
    """What it means that one of them came on elsewhere."""
    names = ", ".join(c.name for c in switched(m))
    return f"a constraint came on (active_while) away from phi = 0: {names}; let it come on where the motion meets it"


def came_on(before: Terms, after: Terms, h: ca.SX, limit: float) -> ca.SX:
    """1 where a constraint holds at the end of a step of h [s] that the motion does not lead to, else 0.

    before, after: the state at the start of the step, and at its end before it is corrected.   limit: |phi| that counts as met.
    """
    found = ca.SX(0)
    for c in switched(before.mechanism):
        was, now = (target_rows(T.kinematics, replace(c, active=None)) for T in (before, after))
        on = activity(after.kinematics, c.active, c.name) if c.active else ca.SX(1)
        for i in now.at(POSITION):
            near = limit + 2 * h * ca.fmax(ca.fabs(was.eta[i]), ca.fabs(now.eta[i]))
            found = ca.logic_or(found, ca.logic_and(on, ca.fabs(was.phi[i]) > near))
    return found


def away(m: Mechanism, q: np.ndarray, v: np.ndarray, t: np.ndarray, p: np.ndarray) -> list[str]:
    """How far each of them was in each of some runs: q (runs, nq), v (runs, nv), t (runs,), p (runs, np)."""
    T = symbols(m)
    phi = [ca.densify(target_rows(T.kinematics, replace(c, active=None)).phi) for c in switched(m)]
    f, found = ca.Function("phi", [T.q, T.v, T.t, m.p_symbols], phi), []
    for state in zip(q, v, t, p, strict=True):
        left = [np.array(x).ravel() for x in f.call(state)]
        most = (f"phi of {c.name!r} is {x[np.argmax(np.abs(x))]:.3g}" for c, x in zip(switched(m), left, strict=True))
        found.append(f"at its last state {', '.join(most)}")
    return found
