"""Tracking, regulation and force control in reduced quasi-velocities. [aghili08]

Vectors of the reduced space are y-vectors in the range of P (see dynamics/quasivelocity.py), so the laws hold for every
choice of basis; gains are one number, or one for each component of y.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import casadi as ca

from pfaffian.control.allocation import (
    FORCE_UNREACHABLE,
    UNCONTROLLABLE,
    allocate,
    chosen_rows,
    controlled_directions,
    weights,
)
from pfaffian.control.law import Command, Control, maker
from pfaffian.control.reason import undriven
from pfaffian.control.reference import Reference, Setpoint, as_reference
from pfaffian.control.task import gain
from pfaffian.dynamics.quasivelocity import QuasiVelocity, Reduced, projector_rate, quasi_velocity, reduced_quasi_velocity
from pfaffian.errors import ModelError
from pfaffian.model.mechanism import Mechanism, as_names
from pfaffian.terms.terms import Terms, symbols


@maker
def tracking(
    reference: Reference, *, velocity_gain: Any, position_gain: Any, force: Reference | None = None, rows: Sequence[str] = (),
    weight: Any = None, factor: str = "cholesky",
) -> Control:  # fmt: skip
    """u_r = s_dot + Gamma_r s - K_d eps, eps = v_r - s, s = P W^T (v_d - K_p e), e = q - q_d. [aghili08 (40)-(43)]

    eps_dot = -(Gamma_r + K_d) eps and Gamma_r is skew: |eps(t)| <= |eps(0)| exp(-min K_d t). With driven constraints eps =
    P (y - W^T (v_d - K_p e)), to the same end.

    Args:
        reference: q_d(t) of the whole configuration (nq,), meeting the constraints.   velocity_gain K_d [1/s].
        position_gain K_p [1/s]: of (nq,) errors; `pfaffian.position_gain_bound` says how large. (The print's (44) has K_d where
            K_p acts on e.)
        force, rows: multipliers of the named rows, held by u_o. [aghili08 (47)]   weight: as in `projected`.
        factor: cholesky, symmetric or innovations.
    Raises ModelError: joints with quaternions, whose errors are no differences.
    """

    _check(reference, force, rows)

    def law(terms: Terms, z: ca.SX, w: ca.SX, reaction: ca.SX) -> Command:
        n, x = terms.mechanism.nv, quasi_velocity(terms, factor)
        r = reduced_quasi_velocity(terms, x)
        split = len(reference.w_names)
        wanted = _wanted(terms, reference, w[:split, 0])
        K_p, e, e_dot = gain(position_gain, n, "position_gain"), terms.q - wanted.value, terms.v - wanted.rate
        pull = wanted.rate - K_p * e
        off = x.y - x.W.T @ pull
        eps = r.P @ off
        # P d(off)/dt = P (W^T pull)_dot taken from P y_dot; P P_dot off is what the turning of the null space adds.
        pull_dot = x.W_dot.T @ pull + x.W.T @ (wanted.acceleration - K_p * e_dot)
        turning = projector_rate(terms, x) @ off
        # P (y_dot + Gamma y) = u_r: what the applied force must give beside the velocity-free part of c.
        u_r = r.P @ (pull_dot - turning + x.Gamma @ (x.y - eps) - gain(velocity_gain, n, "velocity_gain") * eps)
        return _apply(terms, x, r, u_r, force, rows, w[split:, 0], weight, {"eps": eps, "error": e})

    names = reference.w_names + (force.w_names if force else ())
    return Control(law, (), names, (UNCONTROLLABLE, FORCE_UNREACHABLE), reasons={UNCONTROLLABLE: undriven()})


@maker
def regulation(
    q_d: Reference, *, velocity_gain: Any, position_gain: Any, force: Reference | None = None, rows: Sequence[str] = (),
    weight: Any = None, factor: str = "cholesky",
) -> Control:  # fmt: skip
    """u_r = -K_d v_r - P W^-1 K_p e: to a set point, without Gamma. [aghili08 (48) (51)]

    (|v_r|^2 + e^T K_p e) / 2 falls as v_r^T K_d v_r. The force law is u_o = Lam^T lambda_d alone: off by gamma |v_r|^2 while
    moving, exact at rest.

    Args:
        q_d: the set point of the whole configuration (nq,), meeting the constraints.
        velocity_gain: K_d [1/s].   position_gain: K_p [N/rad, N/m], of (nq,) errors.
        force, rows: multipliers of the named rows, held by u_o. [aghili08 (47)]   weight: as in `projected`.
        factor: cholesky, symmetric or innovations.
    Raises ModelError: joints with quaternions, whose errors are no differences.
    """

    _check(q_d, force, rows)

    def law(terms: Terms, z: ca.SX, w: ca.SX, reaction: ca.SX) -> Command:
        x = quasi_velocity(terms, factor)
        r = reduced_quasi_velocity(terms, x)
        split = len(q_d.w_names)
        e = terms.q - _wanted(terms, q_d, w[:split, 0]).value
        n = terms.mechanism.nv
        u_r = r.P @ (-gain(velocity_gain, n, "velocity_gain") * x.y - x.inverse @ (gain(position_gain, n, "position_gain") * e))
        return _apply(terms, x, r, u_r, force, rows, w[split:, 0], weight, {"error": e}, static=True)

    names = q_d.w_names + (force.w_names if force else ())
    return Control(law, (), names, (UNCONTROLLABLE, FORCE_UNREACHABLE), reasons={UNCONTROLLABLE: undriven()})


def check_rates(m: Mechanism) -> None:
    """Raise ModelError unless v = q_dot throughout: errors of the configuration then are differences."""
    K = symbols(m).kinematics.kinematic_matrix
    if m.nq != m.nv or not ca.sparsify(K - ca.SX.eye(m.nv)).nnz() == 0:
        raise ModelError(f"mechanism {m.name!r} has joints whose rates are not q_dot; this control needs one-dof joints")


def _check(reference: Any, force: Any, rows: Any) -> None:
    """Raise ModelError: what the two laws share is something else."""
    as_reference(reference)
    count = len(as_names(rows, "rows"))
    if (as_reference(force, "force").size if force is not None else 0) != count:
        raise ModelError(f"the force reference has {force.size if force else 'no'} components for {count} rows")


def _wanted(terms: Terms, reference: Reference, w: ca.SX) -> Setpoint:
    """The reference of the whole configuration."""
    m = terms.mechanism
    check_rates(m)
    if reference.size != m.nq:
        raise ModelError(f"the reference has {reference.size} coordinates, the configuration {m.nq}")
    return reference.at(terms.t, w)


def _apply(
    terms: Terms, x: QuasiVelocity, r: Reduced, u_r: ca.SX, force: Reference | None, rows: Sequence[str], w: ca.SX, weight: Any,
    signals: dict[str, ca.SX], static: bool = False,
) -> Command:  # fmt: skip
    """Inputs with P W^-1 (B u + f - g) = u_r, and the force part when asked for.

    (I - P) W^-1 (B u + f - g) + Lam^T lambda = (I - P)(y_dot + Gamma y), the reaction A^T lambda doing the constraint's
    bidding: hence the sign of lambda against (47).
    """
    R = weights(terms.mechanism, weight)
    if force is None:
        answer = allocate(terms, x.W @ u_r + x.g - terms.f, R)
    else:
        own = ca.SX.zeros(u_r.shape[0], 1) if static else r.Q.T @ (r.D + r.Q @ (x.Gamma @ x.y))
        Q, Lam = controlled_directions(terms, chosen_rows(terms, rows))
        lam_d = force.at(terms.t, w).value
        answer = allocate(terms, x.W @ (u_r + own) + x.g - terms.f, R, Q, -(Q @ Lam.T @ lam_d))
    return Command(answer.u, ca.SX(0, 1), ca.vertcat(answer.uncontrollable, answer.unreachable), signals)
