"""The motors of a machine: the accelerations that they produce, whether some of them are redundant, and their limits."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from pfaffian.control.allocation import input_limits
from pfaffian.control.law import motor_matrix
from pfaffian.dynamics import gauss
from pfaffian.errors import ModelError
from pfaffian.maths.margins import ROUNDING, ZERO, exceeding, free, rank
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.number import column, matrix
from pfaffian.terms.dependence import DEPENDENT
from pfaffian.terms.generic_states import at_generic_states, speed_units, tell, tell_closest
from pfaffian.terms.terms import Terms, shared
from pfaffian.terms.traced_now import remembered


def accelerations(terms: Terms) -> tuple[ca.SX, ca.SX]:
    """a (nv, 1) and S (nv, motors) in the acceleration v_dot = a + S u of the constrained machine."""
    m, u = terms.mechanism, ca.SX.sym("u", terms.mechanism.nu)
    terms.check_mass()  # builds M, which the plant then shares
    v_dot = gauss.motion(terms.under(u)).v_dot
    S = ca.jacobian(v_dot, u)
    return ca.substitute(v_dot, u, ca.SX.zeros(m.nu, 1)), ca.densify(S[:, : len(m.actuators)])


def motors_are_redundant(m: Mechanism) -> bool:
    """Whether some motors are redundant at almost all configurations, which is possible with fewer motors than velocities."""
    return independent_motors(m) < len(m.actuators)


@remembered(64)
def independent_motors(m: Mechanism) -> int:
    """The number of independent motions that the motors drive: the rank of S at almost all configurations.

    This is the rank of the motors' powers along the motions that constraints leave, whatever the masses are.
    """
    T = shared(m)
    at = at_generic_states(m, {"A": T.A, "B": motor_matrix(T)}, on_constraints=True)
    unit = speed_units(m, m.p_defaults)
    B = unit[:, None] * at["B"]
    left = tell_closest(m, "which motions the constraints leave", [free(A * unit, DEPENDENT) for A in at["A"]])
    powers = np.array([N @ (N.T @ x) for N, x in zip(left, B, strict=True)])
    size = np.linalg.norm(B, axis=1, keepdims=True)
    relative = np.divide(np.abs(powers), size, out=np.zeros_like(powers), where=size > 0)
    nothing = ZERO if at["A"].shape[1] else ROUNDING  # since random states satisfy constraints less closely than to rounding
    question = f"how many of the actuators {', '.join(m.motor_names)} are independent"
    work = tell(m, question, exceeding(relative, nothing))
    return int(tell(m, question, rank(np.where(work, powers, 0.0))))


def limit_rows(m: Mechanism, limits: Any) -> tuple[ca.SX, ca.SX]:
    """W (rows, motors) and l (rows, 1) of the limits W u <= l.

    limits: the pair (W, l), or limits of each actuator as for `input_limits`. Raises ModelError: limits of another form.
    """
    n = len(m.actuators)
    if isinstance(limits, tuple) and len(limits) == 2 and _is_matrix(limits[0]):
        W, l = matrix(limits[0], "limits: W"), column(limits[1], "limits: l")
        if W.shape != (l.numel(), n) or not l.numel():
            raise ModelError(f"limits: W must be ({l.numel()}, {n}) for {l.numel()} limits on {n} actuators, got {W.shape}")
        return W, l
    low, high = input_limits(m, limits).T
    rows = [(i, -1.0, -x) for i, x in enumerate(low) if np.isfinite(x)]
    rows += [(i, 1.0, x) for i, x in enumerate(high) if np.isfinite(x)]
    W = ca.SX(len(rows), n)
    for r, (i, sign, _) in enumerate(rows):
        W[r, i] = sign
    return W, ca.SX(ca.DM([x for *_, x in rows]))


def _is_matrix(x: Any) -> bool:
    """Whether a value is a matrix: a list of rows, or something with two axes."""
    if isinstance(x, (list, tuple)):
        return bool(x) and all(isinstance(row, (list, tuple, np.ndarray)) for row in x)
    return len(getattr(x, "shape", ())) == 2
