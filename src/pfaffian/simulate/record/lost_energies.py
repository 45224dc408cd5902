"""Potentials that have no number where a run went on, as beyond the pole of log(q), which a step may pass without a fault."""

from __future__ import annotations

import casadi as ca
import numpy as np

from pfaffian.errors import RunWarning, listed, notice
from pfaffian.kernel.remember import remembered
from pfaffian.model.mechanism import Mechanism
from pfaffian.simulate.step.activation import NO_NUMBER, has
from pfaffian.simulate.step.draft import Draft
from pfaffian.terms.applied_forces import energy_of
from pfaffian.terms.terms import symbols

MOST_EXAMINED = 64
"""Largest number of runs that are examined."""


def warn_of_lost_energies(result: Draft, m: Mechanism, p: np.ndarray, switched: tuple[str, ...]) -> None:
    """Warn RunWarning of potentials whose energy is no number at a recorded state.

    p: (1 or runs, np) parameters.   switched: names of those that the run changes, on which an examined potential may not
    depend.
    """
    names, f = _energies(m, switched)
    if not names or "q" not in result:
        return
    for run in range(min(len(result["q"]), MOST_EXAMINED)):
        q, t = result["q"][run], result["time"]
        known = np.isfinite(q).all(axis=1)
        if not known.any():
            continue
        values = np.array(f(q[known].T, t[known][None], p[min(run, len(p) - 1)][:, None]))
        lost = ~np.isfinite(values)
        if lost.any():
            first = int(lost.any(axis=0).argmax())
            which = listed([repr(name) for name, is_lost in zip(names, lost[:, first], strict=True) if is_lost])
            notice(
                f"the energy of {which} is no number at t = {t[known][first]:.6g} s"
                f"{f' in run {run}' if len(result['q']) > 1 else ''}: if steps passed a pole there, as that of ca.log(x) at 0, "
                "what follows is no motion of the machine; a run with accuracy= ends at a pole",
                RunWarning,
            )
            return


@remembered(64)
def _energies(m: Mechanism, switched: tuple[str, ...]) -> tuple[tuple[str, ...], ca.Function]:
    """Names of the forces whose energy may be no number, and (q, t, p) -> (forces, 1) these energies."""
    T = symbols(m)
    changing = ca.vertcat(ca.SX(0, 1), *[m.p_symbols[m.p_names.index(name)] for name in switched])
    found = {force.name: energy_of(T.kinematics, force) for force in m.all_forces}
    found = {name: V for name, V in found.items() if has(V, NO_NUMBER) and not ca.depends_on(V, changing)}
    return tuple(found), ca.Function("energies", [T.q, T.t, m.p_symbols], [ca.vertcat(ca.SX(0, 1), *found.values())])
