"""What outputs under a law leave: the motion inside, and whether it is stable. [chhabra14 5.3, not analysed there]"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.control.law import Control
from pfaffian.errors import ModelError
from pfaffian.model.mechanism import Mechanism
from pfaffian.simulate.arrays import as_number, configurations, parameter_values, runs, velocities
from pfaffian.simulate.linearise import SPLIT, linearise, modes
from pfaffian.simulate.simulation import command_of, input_names
from pfaffian.simulate.step import Scheme
from pfaffian.terms.terms import symbols

ERRORS = ("output_error", "velocity_error")
"""Signals of a law that its outputs are followed by."""


@dataclass(frozen=True, eq=False)
class ZeroDynamics:
    """x_dot = A x, the motions near a state that no output shows.

    places, speeds: how many displacements and speeds the outputs leave; momentum that is kept is among the speeds.
    A: (n, n) [1/s], n = places + speeds.   eigenvalues: (n,) [1/s], the least stable first.
    dq: (nq, n), dv: (nv, n) change of q and v for each unit of x, over q_names and v_names.
    """

    places: int
    speeds: int
    A: np.ndarray
    dq: np.ndarray
    dv: np.ndarray
    q_names: tuple[str, ...]
    v_names: tuple[str, ...]

    @property
    def eigenvalues(self) -> np.ndarray:
        return modes(self.A)[0]

    @property
    def unstable(self) -> bool:
        """Whether some motion inside grows; one that only drifts, with a zero eigenvalue, does not."""
        return bool((self.eigenvalues.real > 0).any())

    def __str__(self) -> str:
        lines = [f"the outputs leave {self.places} displacements and {self.speeds} speeds"]
        return "\n".join(lines + [f"  {x.real:12.6g} {x.imag:+12.6g}i 1/s" for x in self.eigenvalues])


def zero_dynamics(
    m: Mechanism, control: Control, q: Any = None, v: Any = None, u: Any = None, *, t: float = 0.0, parameters: Any = None
) -> ZeroDynamics:
    """The zero dynamics of a law's outputs, linearised: the part of `pf.linearise` that leaves the errors as they are.

    With x the state of the closed loop, C = d(errors)/dx and Z a basis of C x = 0, A = Z^T (d x_dot / dx) Z. The time of the
    reference is held still: along a steady motion, one whose C does not change, the eigenvalues tell whether it is stable.

    Args:
        m: the mechanism.   control: a law that records output_error and velocity_error, such as `control.concurrent`.
        q, v: one state where both are about zero, (n,) or {name: number}.   u: inputs of the law.   t: [s].
        parameters: {name: value} or an array, defaults if None.
    Raises ModelError: a law without these signals, and what `pf.linearise` refuses.
    """
    near = linearise(m, q, v, u, t=t, parameters=parameters, control=control)
    names = input_names(m, control)
    given = [configurations(m, q), velocities(m, v), runs(u, names, np.zeros(len(names)), "u"), parameter_values(m, parameters)]
    q0, v0, w0, p0 = (x[0] for x in given)
    C_q, C_v = (np.array(x) for x in _shown(m, control)(q0, v0, w0, control.z, as_number(t, "t"), p0))
    n, k = len(near.states), sum(name.startswith("d") for name in near.states)
    _, sizes, Vt = np.linalg.svd(C_q @ near.dq + C_v @ near.dv)
    Z = Vt[int((sizes > SPLIT * sizes.max(initial=0)).sum()) :].T
    half = C_q.shape[0] // 2
    places = k - int(np.linalg.matrix_rank((C_q @ near.dq)[:half, :k]))
    return ZeroDynamics(
        places, Z.shape[1] - places, Z.T @ near.A @ Z, near.dq[:, :n] @ Z, near.dv[:, :n] @ Z, near.q_names, near.v_names
    )


@lru_cache(maxsize=16)
def _shown(m: Mechanism, control: Control) -> ca.Function:
    """(q, v, w, z, t, p) -> derivatives of the errors along q and v."""
    T = symbols(m)
    w, z = ca.SX.sym("w", len(input_names(m, control))), ca.SX.sym("z", len(control.z))
    signals = command_of(T, control, Scheme(), z, w).signals
    missing = [name for name in ERRORS if name not in signals]
    if missing:
        raise ModelError(f"zero_dynamics: the law records no {', '.join(missing)}; control.concurrent does")
    errors = ca.vertcat(*[signals[name] for name in ERRORS])
    return ca.Function("shown", [T.q, T.v, w, z, T.t, m.p_symbols], [ca.jacobian(errors, x) for x in (T.q, T.v)])
