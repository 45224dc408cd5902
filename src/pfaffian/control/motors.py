"""The motors of a machine: the accelerations that they produce, whether some of them are redundant, and their limits."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from pfaffian.control.allocation import input_limits
from pfaffian.control.law import motor_matrix
from pfaffian.control.reason import null_directions
from pfaffian.dynamics import gauss
from pfaffian.errors import ModelError
from pfaffian.model.mechanism import Mechanism, random_configuration
from pfaffian.model.number import column, matrix
from pfaffian.terms.present import remembered
from pfaffian.terms.terms import Terms, symbols

REDUNDANT = 1e-9
"""A motor counts as redundant if the fraction of its motion that other motors cannot produce, squared, is below this."""


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
    """The number of independent motions that the motors drive: the rank of S at a random configuration, so at almost all."""
    T, random = symbols(m), np.random.default_rng(43)
    f = ca.Function("driven", [T.q, T.v, T.t, m.p_symbols], [ca.densify(x) for x in (T.M, T.A, motor_matrix(T))])
    at = random_configuration(m, random), random.normal(size=m.nv), 0.0, m.p_defaults
    M, A, B = (np.array(x) for x in f(*at))
    rank = np.linalg.matrix_rank(A, rtol=1e-9) if A.size else 0  # NumPy 2.0 has no rank of an empty matrix
    N = null_directions(A) if rank < m.nv else np.zeros((m.nv, 0))
    driven = B.T @ N @ np.linalg.pinv(N.T @ M @ N, hermitian=True) @ N.T @ B
    size = np.sqrt(np.outer(np.diag(driven), np.diag(driven)))
    scaled = np.divide(driven, size, out=np.zeros_like(driven), where=size > 0)
    return int(np.linalg.matrix_rank(scaled, tol=REDUNDANT, hermitian=True)) if scaled.size else 0


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
