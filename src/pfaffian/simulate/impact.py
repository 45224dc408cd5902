"""Plastic impact: bodies meet, constraints begin, and velocities jump."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pfaffian.control.reason import foremost
from pfaffian.errors import ModelError, RunError
from pfaffian.evaluate.arrays import as_number
from pfaffian.evaluate.quantities import mass_matrix
from pfaffian.kernel.call.kernel import Backend
from pfaffian.model.mechanism import Mechanism
from pfaffian.simulate.assemble import start_of
from pfaffian.simulate.newton import State, settle
from pfaffian.terms.pfaffian import row_names
from pfaffian.terms.terms import symbols


class Impact(NamedTuple):
    """v: (..., nv) velocities after it.   impulse: (..., nv) A^T i = M (v+ - v-) [N s, N m s] along v.
    loss: (...) kinetic energy of the velocities lost, (v- - v+)^T M (v- - v+) / 2 [J]; all that is lost where the constraints
    stand still, by Carnot's theorem."""

    v: np.ndarray
    impulse: np.ndarray
    loss: np.ndarray


def impact(m: Mechanism, q: Any, v: Any, *, parameters: Any = None, t: float = 0.0, backend: Backend = "auto") -> Impact:
    """Velocities after a plastic impact, by which the constraints of a mechanism begin: a grasp, a landing, a stop.

    v+ = v- - M^-1 A^T (A M^-1 A^T)^+ (A v- - c): of all velocities with A v+ = c the nearest in the metric of M, by impulses of
    the constraints alone. Nothing else pushes, so momenta that the constraints leave alone are kept: all of it where they are
    between bodies. What `assemble` does to velocities and a run where a constraint comes on, with q as it is.

    Args:
        m: the mechanism with the constraints that begin.   parameters: {name: value} or an array, defaults if None.   t: [s].
        q, v: the state before, (n,) or (runs, n) arrays or {name: number or (runs,)}; q meets the constraints.
        backend: as in `run`.
    Raises ModelError: no constraints; wrong names, shapes or numbers. RunError: they are not met at q, or contradict.
    """
    given = start_of(m, q, v, parameters, as_number(t, "t"), backend)
    if not m.ideal:
        raise ModelError(f"impact: {m.name!r} has no constraints that could begin; give it the grasp as a closure, say")
    everything = np.ones_like(given.v, dtype=bool)
    found = settle(given.problem._replace(held=given.problem.held._replace(q=everything, v=~everything)), given.q, given.v)
    if not found.met.all():
        raise RunError(_why_not(m, found.take([foremost(found.off)[0]])))
    jump = found.v - given.v
    M = np.reshape(mass_matrix(m, given.q, t=t, parameters=parameters), (-1, m.nv, m.nv))
    impulse = np.einsum("rij,rj->ri", np.broadcast_to(M, (len(jump), m.nv, m.nv)), jump)
    many = len(jump) > 1 or any(np.ndim(x) == 2 for x in (q, v, parameters))
    answer = Impact(found.v, impulse, np.einsum("ri,ri->r", jump, impulse) / 2)
    return answer if many else Impact(*[x[0] for x in answer])


def _why_not(m: Mechanism, left: State) -> str:
    names = row_names(symbols(m).kinematics)
    phi, eta = (foremost(x[0])[0] for x in left.parts)
    if not left.closed[0]:
        return (
            f"impact: {names[phi]} is {abs(left.phi[0, phi]):.3g} off before anything meets; put q there first, by "
            "pf.assemble(m, q)"
        )
    return f"impact: no velocities meet all constraints, of {names[eta]} {abs(left.eta[0, eta]):.3g} is left"
