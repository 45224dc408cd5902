"""Plastic impact: constraints begin to act, and velocities jump."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pfaffian.control.reason import foremost
from pfaffian.errors import ModelError, RunError
from pfaffian.evaluate.quantities import mass_matrix
from pfaffian.evaluate.single_values import as_number
from pfaffian.kernel.call.recipe import Backend, check_options
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.starts.given_start import start_arguments, start_of
from pfaffian.starts.newton import State, newton
from pfaffian.terms.pfaffian import row_names
from pfaffian.terms.terms import symbols
from pfaffian.terms.traced_now import present


class Impact(NamedTuple):
    """The outcome of a plastic impact.

    v: (..., nv) velocities after the impact.   impulse: (..., nv) A^T i = M (v+ - v-) along v [N s, N m s].
    loss: (...) kinetic energy of the lost velocities, (v- - v+)^T M (v- - v+) / 2 [J]; by Carnot's theorem this is the whole
    energy loss where the constraints do not move.
    """

    v: np.ndarray
    impulse: np.ndarray
    loss: np.ndarray

    def __repr__(self) -> str:
        lost = f"loss {self.loss:.6g} J" if self.loss.ndim == 0 else f"loss {self.loss.shape}"
        return f"<Impact: v, impulse {self.v.shape}, {lost}>"


def impact(m: Mechanism, q: Any, v: Any, *, parameters: Any = None, t: float = 0.0, backend: Backend = "auto") -> Impact:
    """Velocities after a plastic impact in which the constraints of a mechanism begin to act: a grasp, a landing, a stop.

        v+ = v- - M^-1 A^T (A M^-1 A^T)^+ (A v- - c)

    v+ is the velocity nearest to v- in the metric of M that satisfies A v+ = c. Only the constraints exert impulses, so all
    momenta along which they do not act are conserved: the whole momentum where the constraints act between bodies. `assemble`
    projects velocities in the same way, and so does a run when a constraint becomes active; here q does not change.

    Args:
        m: the mechanism, with the constraints that begin to act.
        q, v: the state before the impact, (n,) or (runs, n) arrays or {name: number or (runs,)}; q satisfies the constraints.
        parameters: {name: value} or an array in the mechanism's order; defaults if None.
        t: time [s].
        backend: "auto": interpreted at once, and compiled in the background where that pays; "c": compiled first;
            "interpreter" or "numpy": only interpreted, in C or by NumPy. All give the same bits.
    Returns:
        v: (..., nv) velocities after the impact.
        impulse: (..., nv) A^T i = M (v+ - v-) along v [N s, N m s].
        loss: (...) kinetic energy of the lost velocities, (v- - v+)^T M (v- - v+) / 2 [J]; by Carnot's theorem this is the
            whole energy loss where the constraints do not move.
    Raises ModelError: the mechanism has no constraints; names, shapes or numbers are wrong.
    Raises RunError: the constraints are not satisfied at q, or contradict each other.

    Example:
        A bob of 1 kg flies at 5 m/s along x until a rod to the origin becomes taut; it loses 3 m/s along the rod:

        >>> import pfaffian as pf
        >>> plane = pf.joint("bob", "planar-translation", "world", "bob", axis=(0, -1, 0))
        >>> rod = pf.closure("rod", "distance", "world", "bob", length=1.0)
        >>> m = pf.mechanism("pendulum", [pf.body("bob", mass=1.0)], [plane], constraints=[rod])
        >>> after = pf.impact(m, q=[0.6, -0.8], v=[5.0, 0.0], backend="numpy")
        >>> after.v.round(6), after.impulse.round(6), round(float(after.loss), 6)
        (array([3.2, 2.4]), array([-1.8,  2.4]), 4.5)
    """
    m = present(as_mechanism(m))
    check_options(backend, 1)
    given = start_of(m, start_arguments(m, q, v, parameters), as_number(t, "t"), backend)
    given.refuse_closures("an impact")
    if not m.ideal:
        raise ModelError(f"impact: {m.name!r} has no constraints that could begin; add the grasp as a closure, for example")
    all_entries = np.ones_like(given.v, dtype=bool)
    after = newton(given.problem._replace(fixed=given.problem.fixed._replace(q=all_entries, v=~all_entries)), given.q, given.v)
    if not after.satisfied.all():
        raise RunError(_why_not(m, after.take([foremost(after.off)[0]])))
    jump = after.v - given.v
    M = np.reshape(mass_matrix(m, given.q, t=t, parameters=parameters), (-1, m.nv, m.nv))
    impulse = np.einsum("rij,rj->ri", np.broadcast_to(M, (len(jump), m.nv, m.nv)), jump)
    many = len(jump) > 1 or any(np.ndim(x) == 2 for x in (q, v, parameters))
    answer = Impact(after.v, impulse, np.einsum("ri,ri->r", jump, impulse) / 2)
    return answer if many else Impact(*[x[0] for x in answer])


def _why_not(m: Mechanism, state: State) -> str:
    """The message for a state (one run) whose constraints are not satisfied: the row with the largest residual."""
    names = row_names(symbols(m).kinematics)
    phi, eta = (foremost(x[0])[0] for x in state.parts)
    if not state.closed[0]:
        return (
            f"impact: {names[phi]} is {abs(state.phi[0, phi]):.3g} off before the impact; put q onto the constraints first, "
            "with pf.assemble(m, q)"
        )
    return f"impact: no velocities satisfy all constraints: {names[eta]} has a residual of {abs(state.eta[0, eta]):.3g}"
