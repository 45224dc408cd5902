"""Put a state onto the constraints: phi(q, t) = 0 and A v = c."""

from __future__ import annotations

from functools import lru_cache

import casadi as ca
import numpy as np

from pfaffian import kernel
from pfaffian.dynamics.motion import shortest_change
from pfaffian.errors import RunError
from pfaffian.kernel.kernel import Backend
from pfaffian.maths.tree_factor import solve_WT
from pfaffian.model.digest import digest
from pfaffian.model.mechanism import Mechanism
from pfaffian.simulate.variables import normalise
from pfaffian.terms.pfaffian import row_names
from pfaffian.terms.terms import Terms, symbols

ITERATIONS = 50
ACCEPTED = 1e-9
"""Largest |phi| and |A v - c| that count as met."""


@lru_cache(maxsize=64)
def _iteration(m: Mechanism, backend: Backend) -> kernel.Kernel:
    """Kernel of one Newton step: (q, v, p, t) -> (q, v, phi, eta)."""
    of_model = digest(m)
    return kernel.compile(lambda: _newton(m), backend=backend, lanes=1, key=None if of_model is None else f"newton {of_model}")


def _newton(m: Mechanism) -> ca.Function:
    T = symbols(m)
    move = solve_WT(T.factor, shortest_change(T).solve(T.rows.phi))
    q = normalise(m, T.q - T.kinematics.kinematic_matrix @ move)
    there = Terms(m, q, T.v, T.u, T.t)
    v = T.v - solve_WT(there.factor, shortest_change(there).solve(there.rows.eta))
    left = Terms(m, q, v, T.u, T.t).rows
    return ca.Function("newton", [T.q, T.v, m.p_symbols, T.t], [q, v, left.phi, left.eta], {"cse": True})


def assemble(
    m: Mechanism, q: np.ndarray, v: np.ndarray, p: np.ndarray, *, t: float = 0.0, backend: Backend = "auto"
) -> tuple[np.ndarray, np.ndarray]:
    """The nearest state, in the metric of M, that meets the constraints: q (runs, nq), v (runs, nv).

    Newton iterations with the rank-revealing inverse, at parameters p (runs, np) and time t [s]; backend as in `run`.
    Raises RunError naming the row that cannot be met.
    """
    if not m.ideal:
        return q, v
    newton = _iteration(m, backend)
    count = max(len(q), len(p))
    q, v, p = (np.broadcast_to(a, (count, a.shape[1])) for a in (q, v, p))
    for _ in range(ITERATIONS):
        q, v, phi, eta = newton(q, v, p, np.array([t]))
        left = np.maximum(np.abs(phi), np.abs(eta))
        if not np.isfinite(left).all() or left.max() <= 1e-13:
            break
    if not left.max() <= ACCEPTED:
        run, row = np.unravel_index(int(np.argmax(np.where(np.isfinite(left), left, np.inf))), left.shape)
        names = row_names(symbols(m).kinematics)
        raise RunError(
            f"the initial state cannot be put onto the constraints: row {names[row]!r} is left with phi = {phi[run, row]:.3g}, "
            f"A v - c = {eta[run, row]:.3g}{f' in run {run}' if count > 1 else ''}; start nearer to a configuration that "
            "closes, or look for constraints that contradict each other"
        )
    return q, v
