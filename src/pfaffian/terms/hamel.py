"""Equations of motion by differentiation, from a kinetic energy T(q, v, t) or an acceleration energy S(q, v, v_dot).

Hamel's equations need no bodies and so also serve systems without any. Both methods are an independent check of the recursions
in `terms.inertia`.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError
from pfaffian.maths import so3
from pfaffian.terms.applied_forces import one_number
from pfaffian.terms.connection import directional_derivative, left_inverse, rate
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.loop_rotors import acceleration_energy_of_rotors
from pfaffian.terms.new_symbols import at_new_symbols, placed
from pfaffian.terms.rates import SIZES, places
from pfaffian.terms.recursions import Inertia

SAME = 1e-9
"""Momenta count as proportional to the velocities up to this fraction of the terms that they are the sum of."""

ROUNDING = 1e-12
"""Rounding of a momentum, relative to the largest of the terms of all."""


def hamel(k: Kinematics, T: ca.SX, what: str = "kinetic energy") -> Inertia:
    """Inertia force of T = M_ij v^i v^j / 2 + b_i v^i + T0 with M, b, T0 of q and t. [konz25 (2.31)]

    M v_dot + c = d/dt dT/dv^i + gamma_ij^k v^j dT/dv^k - d_i T. The coefficients gamma are not formed: with y^T K = dT/dv
    the second term is (d_i (K v) - K_dot_i) . y. The energy is v^i dT/dv^i - T, since terms linear in v do no work.
    Raises ModelError: T is not quadratic in v.
    """
    p = ca.gradient(T, k.v)
    M = ca.jacobian(p, k.v)
    if ca.depends_on(M, k.v) or not _constant_in_v(k, p, M):
        raise ModelError(f"{what}: T must be quadratic in v, v^T M v / 2 + b^T v + T0 with M, b and T0 of q and t")
    y = ca.densify(left_inverse(k).T @ p)
    fixed = ca.SX.sym("y", k.mechanism.nq)
    bracket = directional_derivative(k, ca.dot(k.q_dot, fixed)).T - rate(k, k.kinematic_matrix).T @ fixed
    c = rate(k, p) + ca.substitute(bracket, fixed, y) - directional_derivative(k, T).T
    return Inertia(M, c, ca.dot(k.v, p) - T)


def _constant_in_v(k: Kinematics, p: ca.SX, M: ca.SX) -> bool:
    """Whether the part of p that is odd in v is linear; derivatives cannot tell, since |v|'' = 0.

    A linear function of v has twice the value at twice v to the last bit, however far its terms cancel.
    """
    f = ca.Function("x", [k.q, k.t, k.mechanism.p_symbols, k.v], [p, ca.fabs(p) + ca.fabs(M) @ ca.fabs(k.v)])
    v = np.random.default_rng(7).normal(size=k.mechanism.nv)
    for (q, at), size_of_v in zip(places(k.mechanism), SIZES, strict=True):
        along, against, twice, twice_back = (f(q, 0.3, at, way * size_of_v * v) for way in (1, -1, 2, -2))
        odd, size = np.array(twice[0] - twice_back[0] - 2 * (along[0] - against[0])), np.array(twice[1])
        if (np.abs(odd) > np.maximum(SAME * size, ROUNDING * size.max(initial=0.0))).any():
            return False
    return True


def added_inertia(k: Kinematics) -> Inertia | None:
    """Inertia of all kinetic energies of a mechanism, None if it has none. Raises ModelError: one is not quadratic in v."""
    energies, s = k.mechanism.kinetic_energies, at_new_symbols(k)
    if not energies:
        return None
    inertias = [hamel(s, one_number(s, e.function, f"force {e.name!r}"), f"force {e.name!r}") for e in energies]
    M, c, energy = (sum(parts[1:], parts[0]) for parts in zip(*inertias, strict=True))
    return Inertia(*placed([so3.symmetric(M), c, energy], s, k))


def acceleration_energy(k: Kinematics, v_dot: ca.SX) -> ca.SX:
    """Acceleration energy S of all masses: dS/dv_dot = M v_dot + c, the equations of Gibbs and Appell. [konz25 (3.33)]

    S = sum of m |r_ddot - g|^2 / 2, so dS/dv_dot includes gravity. Rotors contribute only by the acceleration of their spin.

    Args:
        k: Kinematics of a mechanism at symbols, such as `symbols(m).kinematics`.
        v_dot: (nv, 1) accelerations, expressions.
    Returns:
        S (1, 1), an expression [N^2/kg].

    Example:
        >>> import casadi as ca
        >>> import pfaffian as pf
        >>> rail = pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> m = pf.mechanism("cart", [pf.body("cart", 2.0)], [rail], gravity=(0, 0, 0))
        >>> S = pf.calculus.acceleration_energy(pf.symbols(m).kinematics, ca.SX([3.0]))
        >>> float(S)  # 2 kg * (3 m/s^2)^2 / 2
        9.0
    """
    S, s_dot = ca.SX(0), k.s_dot(v_dot)
    for link, x in zip(k.tree.links, k.accelerations(v_dot, k.mechanism.gravity), strict=True):
        S += link.mass * ca.sumsqr(x.a) / 2 + ca.dot(x.a, x.Phi @ link.h) + ca.trace(x.Phi @ link.S @ x.Phi.T) / 2
        S += ca.dot(link.armature, s_dot[link.v] ** 2) / 2
    return S + acceleration_energy_of_rotors(k, v_dot)
