"""Systems of a mechanism in other states than [q; v]: Hamilton's, and velocities that a caller chooses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import casadi as ca

from pfaffian.dynamics.motion import RANK_TOLERANCE, Motion
from pfaffian.errors import ModelError, brief
from pfaffian.maths.linear import orthogonalise, smallest, solve_definite
from pfaffian.maths.tree_factor import solve_M
from pfaffian.model.caller import answer, checked
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.model.number import matrix, several
from pfaffian.simulate.system import StatePart, System
from pfaffian.simulate.variables import normalise
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.terms import Terms


def hamiltonian(m: Mechanism) -> System:
    """The mechanism in Hamilton's state [q; p], p = M(q) v the momenta that belong to v. [konz25 (2.37)]

        q_dot = K v,   v = M^-1 p
        p_dot_i + gamma_ij^k v^j p_k + d_i H = f_i + (B u)_i + (A^T lambda)_i

    with H(q, p) = p^T M^-1 p / 2 + V, d_i = K_i^a d/dq^a, gamma the commutation coefficients of the d_i, and f the forces
    without potential. Neither M_dot nor the bias force is in it, so that it is a second formulation of every mechanism; the
    reaction is that of the scheme's formulation. `momentum` in the result holds p [N s, N m s].
    """
    return _hamiltonian(as_mechanism(m))


@lru_cache(maxsize=64)
def _hamiltonian(m: Mechanism) -> System:
    units = tuple("N s" if unit == "m/s" else "N m s" for unit in m.v_units)

    def at(q: ca.SX, v: ca.SX, t: ca.SX) -> Terms:
        return Terms(m, q, v, ca.SX(m.nu, 1), t)

    def show(x: ca.SX, t: ca.SX) -> tuple[ca.SX, ca.SX]:
        q = x[: m.nq, 0]
        return q, solve_M(at(q, ca.SX(m.nv, 1), t).factor, x[m.nq :, 0])

    return System(
        m,
        "[q; p]",
        _parts(m, StatePart("momentum", m.v_names, units)),
        enter=lambda T: ca.vertcat(T.q, T.M @ T.v),
        show=show,
        rate=lambda T, motion, x: ca.vertcat(T.kinematics.q_dot, momentum_rate(T, motion, x[m.nq :, 0])),
        project=lambda x, t: ca.vertcat(normalise(m, x[: m.nq, 0]), x[m.nq :, 0]),
        digest="[q; p]",
    )


def momentum_rate(T: Terms, motion: Motion, p: ca.SX) -> ca.SX:
    """p_dot (nv, 1) of momenta p = M v by the Hamel-Hamilton equations. [konz25 (2.37)]

    d_i H at constant p is d_i V - d_i T, T(q, v) at constant v, and gamma_ij^k v^j p_k = (d_i K v - dK_i/dt)^T K^+^T p. Rotors
    that joints drive have a momentum along v and no axes that turn with it: theirs is in p, not under gamma.
    """
    k = T.kinematics
    K, q_dot = ca.densify(k.kinematic_matrix), k.q_dot
    rotors = ca.vertcat(*[link.joint.armature * k.v[link.v] for link in k.tree.links])
    # K^+^T p of the bodies' p: any left inverse of K serves.
    covector = K @ solve_definite(K.T @ K, p - rotors)
    K_dot = ca.reshape(ca.jtimes(ca.vec(K), T.q, q_dot), *K.shape)
    turning = K.T @ ca.jtimes(q_dot, T.q, covector, True) - K_dot.T @ covector
    kinetic = K.T @ ca.gradient(T.T, T.q)
    weight = ca.substitute(T.c, T.v, ca.SX.zeros(T.mechanism.nv, 1))
    return kinetic - turning + T.generalised_input - weight + motion.reaction


def chosen_velocities(m: Mechanism, T: Callable[[Kinematics], Any], names: Sequence[str], units: Sequence[str] = ()) -> System:
    """The mechanism in the state [q; y], y = T(q, t) v velocities that the caller chooses: what a law or a paper speaks of, or
    what changes least along the motion and so errs least in a step.

        y_dot = T v_dot + T_dot v

    Args:
        T: Kinematics -> (nv, nv), of q and t alone, invertible: K^-1 for coordinate rates, the rotation of a body for axes that
            do not turn with it.   names: of the nv entries of y.   units: of these; those of v if none are given.
    `y` in the result holds them. Raises ModelError: wrong numbers of names, T no such matrix or of v.
    """
    as_mechanism(m)
    if not callable(T):
        raise ModelError(f"chosen_velocities: T, a function of the kinematics, is needed, got {brief(T)}")
    for what, given in (("names", names), ("units", units or m.v_units)):
        if not several(given) or len(given) != m.nv or not all(isinstance(n, str) for n in given):
            raise ModelError(f"chosen_velocities: {m.nv} {what} are needed, as many as velocities, got {brief(given)}")

    def matrix_at(k: Kinematics) -> ca.SX:
        what = "chosen_velocities: T"
        found = checked(matrix(answer(T, what, k), what), what, (k.q, k.v, k.t, m.p_symbols))
        if found.shape != (m.nv, m.nv):
            raise ModelError(f"{what}: ({m.nv}, {m.nv}) is needed, got {found.shape}")
        if ca.depends_on(found, k.v):
            raise ModelError(f"{what}: it may depend on q and t, not on v")
        return found

    def show(x: ca.SX, t: ca.SX) -> tuple[ca.SX, ca.SX]:
        q = x[: m.nq, 0]
        rows = orthogonalise(ca.sparsify(matrix_at(Kinematics(m, q, ca.SX.sym("v", m.nv), t))), ca.SX(m.nv, 0), RANK_TOLERANCE)
        return q, smallest(rows, x[m.nq :, 0])

    def rate(terms: Terms, motion: Motion, x: ca.SX) -> ca.SX:
        k = terms.kinematics
        here = matrix_at(k)
        y = here @ k.v
        turning = ca.jtimes(y, k.q, k.q_dot) + ca.jacobian(y, k.t)
        return ca.vertcat(k.q_dot, here @ motion.v_dot + turning)

    return System(
        m,
        "[q; y]",
        _parts(m, StatePart("y", tuple(names), tuple(units or m.v_units))),
        enter=lambda terms: ca.vertcat(terms.q, matrix_at(terms.kinematics) @ terms.v),
        show=show,
        rate=rate,
        project=lambda x, t: ca.vertcat(normalise(m, x[: m.nq, 0]), x[m.nq :, 0]),
    )


def _parts(m: Mechanism, own: StatePart) -> tuple[StatePart, ...]:
    return (StatePart("q", m.q_names, m.q_units), own) if m.nq else ()
