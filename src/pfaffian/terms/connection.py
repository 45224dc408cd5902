"""Calculus along the velocities of q_dot = K(q) v: derivatives, brackets and the connection of a metric M.

The columns of K are vector fields on the configurations, and d_i f = K_i^a df/dq^a is the derivative along the i-th. They do
not commute where the velocities v are not rates of coordinates. q may be redundant: all functions of this file hold on the
configurations with phi(q) = 0. An object with three indices is a tuple over the first of matrices over the other two.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import casadi as ca

from pfaffian.errors import ModelError
from pfaffian.maths.linear import solve_definite
from pfaffian.model.mechanism import Mechanism
from pfaffian.terms.kinematics import Kinematics


def directional_derivative(k: Kinematics, f: ca.SX) -> ca.SX:
    """(n, nv) d_i f of f (n, 1) at constant v and t, [unit of f / unit of v, per second]. [konz25 (2.13)]"""
    return ca.jacobian(f, k.q) @ k.kinematic_matrix


def rate(k: Kinematics, f: ca.SX) -> ca.SX:
    """Total derivative df/dt of f, any shape, at constant v: d_i f v^i plus the partial derivative df/dt."""
    f = ca.densify(f)
    along = ca.jtimes(ca.vec(f), k.q, k.q_dot) + ca.jacobian(ca.vec(f), k.t)
    return ca.reshape(along, *f.shape)


def refuse_distributions(m: Mechanism, what: str) -> None:
    """Raise ModelError if the speeds of a joint do not span all motions of its coordinates, as `what` requires."""
    for j in m.joints:
        if j.distribution is not None:
            raise ModelError(
                f"joint {j.name!r} has a distribution, which {what} does not support: brackets of its speeds leave their span; "
                "keep all velocities of the joint and constrain some to zero by nonholonomic(...)"
            )


def left_inverse(k: Kinematics) -> ca.SX:
    """(nv, nq) K^+ for brackets of velocities, by `pseudo_inverse`. Raises ModelError: a joint has a distribution."""
    refuse_distributions(k.mechanism, "calculus along the velocities (brackets, connection, Hamel's equations)")
    return pseudo_inverse(k)


def pseudo_inverse(k: Kinematics) -> ca.SX:
    """(nv, nq) K^+ = (K^T K)^-1 K^T, joint by joint: v = K^+ q_dot."""
    K = k.kinematic_matrix
    KK, out = K.T @ K, ca.SX(*reversed(K.shape))
    count, order, first = KK.sparsity().scc()
    for i, j in pairwise(first[: count + 1]):
        block = order[i:j]
        columns = K[:, block].T
        touched = sorted(set(columns.sparsity().get_col()))
        out[block, touched] = solve_definite(KK[block, block], columns[:, touched])
    return out


def commutation_coefficients(k: Kinematics) -> tuple[ca.SX, ...]:
    """gamma[i][j, k] = gamma_ij^k with d_i d_j - d_j d_i = gamma_ij^k d_k, skew in i and j. [konz25 (2.19)]

    gamma_ij^k = (d_i K_j - d_j K_i)^a (K^+)^k_a. They vanish where the velocities are rates of coordinates; for the body-fixed
    angular velocity of a rotation they are the Levi-Civita symbol.
    """
    n, K, Y = k.mechanism.nq, k.kinematic_matrix, left_inverse(k)
    along = ca.jacobian(ca.vec(K), k.q) @ K  # [a + nq j, i]: d_i K_j^a
    brackets = (ca.reshape(along[:, i], *K.shape) - along[n * i : n * (i + 1), :] for i in range(k.mechanism.nv))
    return tuple(bracket.T @ Y.T for bracket in brackets)


def connection_coefficients(k: Kinematics, M: ca.SX) -> tuple[ca.SX, ...]:
    """Gamma[i][j, k] = Gamma_ijk of the metric M(q) (nv, nv), symmetric: M_ij v_dot^j + Gamma_ijk v^j v^k is the inertia force.

    Gamma_ijk = (d_k M_ij + d_j M_ik - d_i M_jk + gamma_ij^s M_sk + gamma_ik^s M_sj - gamma_jk^s M_si) / 2
    [konz25 (3.31); the sign of its last term as in (3.57)], so that d_k M_ij = Gamma_ijk + Gamma_jik and gamma_ij^s M_sk =
    Gamma_kji - Gamma_kij. [konz25 (3.29)]
    """
    n = k.mechanism.nv
    along = directional_derivative(k, ca.vec(ca.densify(M)))
    dM = [ca.reshape(along[:, i], n, n) for i in range(n)]  # dM[i][j, k]: d_i M_jk
    lowered = [g @ M for g in commutation_coefficients(k)]  # lowered[i][j, k]: gamma_ij^s M_sk

    def coefficient(i: int) -> ca.SX:
        steps = ca.horzcat(*[dM[j][:, i] for j in range(n)])  # [j, k]: d_k M_ij
        skew = ca.horzcat(*[lowered[j][:, i] for j in range(n)])  # [k, j]: gamma_jk^s M_si
        return (steps + steps.T - dM[i] + lowered[i] + lowered[i].T - skew.T) / 2

    return tuple(coefficient(i) for i in range(n))


def coriolis_matrix(k: Kinematics, M: ca.SX) -> ca.SX:
    """Coriolis matrix of a metric M(q): C v is quadratic in v, and C + C^T = dM/dt.

    C_ij = Gamma_ijk v^k with the connection coefficients of M. The coefficients are not formed, as a few derivatives suffice.

    Args:
        k: Kinematics of a mechanism at symbols, such as `symbols(m).kinematics`.
        M: (nv, nv) symmetric, an expression in k.q.
    Returns:
        C (nv, nv), an expression in k.q and k.v.
    Raises ModelError: a joint has a distribution.

    Example:
        >>> import pfaffian as pf
        >>> turn = pf.joint("turn", "revolute", "world", "arm")
        >>> slide = pf.joint("slide", "prismatic", "arm", "mass", axis=(1, 0, 0))
        >>> m = pf.mechanism("boom", [pf.body("arm"), pf.body("mass", 2.0)], [turn, slide])
        >>> f = pf.compile_terms(m, {"C": lambda T: pf.calculus.coriolis_matrix(T.kinematics, T.M)}, backend="numpy")
        >>> f({"slide": 3.0}, {"turn": 1.0})["C"]  # m r = 6
        array([[ 0., 6.], [-6., 0.]])
    """
    K, Y, p = k.kinematic_matrix, left_inverse(k), M @ k.v
    steps = directional_derivative(k, p)  # [i, j]: d_j M_ik v^k
    y = ca.densify(Y.T @ p)
    fixed = ca.SX.sym("y", k.mechanism.nq)
    bracket = ca.substitute(directional_derivative(k, K.T @ fixed), fixed, y)  # [j, i]: d_i K_j . y
    turned = bracket_along_v(k).T @ Y.T @ M  # [i, j]: gamma_ik^s v^k M_sj
    return (rate(k, M) + steps - steps.T + bracket.T - bracket + turned - turned.T) / 2


def bracket_along_v(k: Kinematics) -> ca.SX:
    """(nq, nv) d_i (K v) - K_dot_i: column i is the bracket of the i-th field with K v; its coefficients are gamma_ij^k v^j."""
    return directional_derivative(k, k.q_dot) - rate(k, k.kinematic_matrix)


def covariant_hessian(k: Kinematics, f: ca.SX, M: ca.SX) -> ca.SX:
    """(nv, nv) d_j d_i f - Gamma^k_ij d_k f of a scalar f(q) in the metric M(q), symmetric. [konz25 (2.16)]

    Where all d_i f vanish, it does not depend on the metric.
    """
    gradient = directional_derivative(k, f).T
    raised = solve_definite(M, gradient)
    bent = sum((raised[l] * G for l, G in enumerate(connection_coefficients(k, M))), ca.SX(*M.shape))
    return directional_derivative(k, gradient) - bent


class Deviation(NamedTuple):
    """First-order expansion f = f_bar + F0 eps + F1 eps_dot + F2 eps_ddot near a trajectory.   F0, F1, F2: (n, nv)."""

    F0: ca.SX
    F1: ca.SX
    F2: ca.SX


def velocity_of_deviation(k: Kinematics) -> ca.SX:
    """B (nv, nv) with v = v_bar + eps_dot + B eps for q = q_bar + K eps; B_ij = gamma_kj^i v^k, linear in v. [konz25 (2.23)]"""
    return -left_inverse(k) @ bracket_along_v(k)


def deviation(k: Kinematics, f: ca.SX, v_dot: ca.SX) -> Deviation:
    """First-order expansion of f(q, v, v_dot, t) in the deviation eps from a trajectory, q = q_bar + K(q_bar) eps.

    F2 = df/dv_dot, F1 = df/dv + F2 B, F0 = d_i f + df/dv B + F2 (B(v_dot) + B_dot), with B(v) of `velocity_of_deviation` and
    B_dot its rate at constant v, all at q, v, v_dot of the trajectory. [konz25 (2.22)-(2.25)]
    Where v = v_dot = 0, B and B_dot vanish.

    f: (n, 1) of k.q, k.v, k.t and v_dot.   v_dot: (nv, 1) symbols.
    """
    B = ca.densify(velocity_of_deviation(k))
    along_v, F2 = ca.jacobian(f, k.v), ca.jacobian(f, v_dot)
    carried = ca.substitute(B, k.v, v_dot) + rate(k, B)
    return Deviation(directional_derivative(k, f) + along_v @ B + F2 @ carried, along_v + F2 @ B, F2)
