"""Lower bound of the position gain of tracking in quasi-velocities. [aghili08 (37)-(46)]"""

from __future__ import annotations

from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.control.quasivelocity_laws import check_rates
from pfaffian.dynamics.quasivelocity import projector_rate, quasi_velocity, reduced_quasi_velocity
from pfaffian.evaluate.arrays import configurations, parameter_values, velocities
from pfaffian.evaluate.compiled import Compiled, compile_terms, given
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.terms.terms import Terms
from pfaffian.terms.traced_now import remembered


class GainBound(NamedTuple):
    """Position gain above which the error of `control.tracking` vanishes. [aghili08 (46)]

    bound: [1/s] c2 c4 / sqrt(c1) over all the states; any single gain K_p above it suffices.
    c1: smallest eigenvalue of M [kg, kg m^2].   c2: constant of (39), |W_r^T(q) - W_r^T(q*)| <= c2 |q - q*|, an upper bound.
    c4: largest |v_d| [m/s, rad/s].
    local: (...) [1/s] bound of each state by itself, independent of the factor; never above `bound`, and negative where errors
        shrink without feedback.
    """

    bound: float
    c1: float
    c2: float
    c4: float
    local: np.ndarray


def position_gain_bound(
    m: Mechanism, q: Any, v: Any, *, t: float = 0.0, parameters: Any = None, factor: str = "cholesky"
) -> GainBound:
    """Bound c in the gain condition K_p > c of tracking in quasi-velocities, for a reference or a region. [aghili08 (46)]

    While eps = 0, x = W_r^T e obeys x_dot = W_r_dot^T e - W_r^T K_p e, to first order in e = q - q_d and for the basis
    transported along the motion: |x| falls at least as exp(-(K_p - c) t). The units and the norms (37), (39) give c = c2 c4 /
    sqrt(c1), where the paper prints c2 c4 / c1; `local` uses the largest eigenvalue instead of the three norms.

    Args:
        m: the mechanism.
        q: (nq,) or (runs, nq) array, or {coordinate: number}, the reference at one state or many; it must satisfy the
            constraints.
        v: (nv,) or (runs, nv) array, or {velocity: number}, the velocity of the reference.
        t: time [s].
        parameters: {name: value or (runs,)} or a (np,) or (runs, np) array; defaults where left out.
        factor: factor of the mass matrix, "cholesky" (default), "symmetric" or "innovations", as in `control.tracking`.
    Returns:
        a named tuple: bound [1/s] over all the states; c1, the smallest eigenvalue of M, c2 of (39) and c4, the largest |v|;
        local (...) [1/s] of each state by itself, never above bound and negative where errors shrink without feedback.
    Raises ModelError: joints with quaternions, wrong names or shapes.

    Example:
        >>> import pfaffian as pf
        >>> turn = pf.joint("turn", "revolute", "world", "arm")
        >>> slide = pf.joint("slide", "prismatic", "arm", "mass", axis=(1, 0, 0))
        >>> m = pf.mechanism("boom", [pf.body("arm"), pf.body("mass", 2.0)], [turn, slide])
        >>> found = pf.analysis.position_gain_bound(m, {"slide": 3.0}, {"slide": 0.6})
        >>> print(f"{found.local:.3f} of at most {found.bound:.3f}")  # r_dot / r
        0.200 of at most 0.600
    """
    check_rates(as_mechanism(m))
    n = m.nv
    at = given(q=(q, configurations(m, q)), v=(v, velocities(m, v)), parameters=(parameters, parameter_values(m, parameters)))
    (qs, vs, p), count = at.spread, at.size
    # The rates are affine in v, so they are evaluated at v = 0 and along each coordinate.
    along = np.tile(np.vstack([np.zeros(n), np.eye(n)]), (count, 1))
    rates = _rates(m, factor)(np.repeat(qs, n + 1, axis=0), along, t=t, parameters=np.repeat(p, n + 1, axis=0))
    W, P, W_rate, P_rate = (x.reshape(count, n + 1, n, n) for x in rates.values())
    W, P, W_rate, P_rate = W[:, 0], P[:, 0], W_rate[:, 1:], P_rate[:, 1:] - P_rate[:, :1]
    c1 = float(np.linalg.svd(W, compute_uv=False).min() ** 2)
    c2 = max(_lipschitz(*x) for x in zip(P, W, W_rate, P_rate, strict=True))
    c4 = float(np.linalg.norm(vs, axis=1).max())
    local = np.array([_growth(P[i], W[i], np.einsum("k,kij->ij", vs[i], W_rate[i])) for i in range(count)])
    return GainBound(c2 * c4 / np.sqrt(c1), c1, c2, c4, at.shaped(local))


@remembered(16)
def _rates(m: Mechanism, factor: str) -> Compiled:
    """The compiled W and P with their rates along v; all share one quasi-velocity form, traced once."""
    forms: dict[str, Any] = {}

    def form(T: Terms) -> Any:
        return forms.setdefault("x", quasi_velocity(T, factor))

    parts = {
        "W": lambda T: ca.densify(form(T).W),
        "P": lambda T: reduced_quasi_velocity(T, form(T)).P,
        "W_rate": lambda T: ca.densify(form(T).W_dot),
        "P_rate": lambda T: projector_rate(T, form(T)),
    }
    return compile_terms(m, parts, lanes=1)


def _lipschitz(P: np.ndarray, W: np.ndarray, W_rate: np.ndarray, P_rate: np.ndarray) -> float:
    """Upper bound of |d W_r^T| / |dq| in a transported basis, from P (P' W^T + W'^T) along each coordinate."""
    D = P @ (P_rate @ W.T + W_rate.transpose(0, 2, 1))
    return float(min(np.linalg.norm(np.vstack(D), 2), np.linalg.norm(np.hstack(D), 2)))


def _growth(P: np.ndarray, W: np.ndarray, W_rate: np.ndarray) -> float:
    """Largest eigenvalue of the symmetric part of W_rate^T W^-T within the range of P."""
    V2 = np.linalg.eigh(P)[1][:, len(P) - round(np.trace(P)) :]
    S = V2.T @ np.linalg.solve(W, W_rate) @ V2
    return float(np.linalg.eigvalsh((S + S.T) / 2)[-1]) if S.size else 0.0
