"""Tracking, regulation and force control in reduced quasi-velocities. [aghili08]

A vector of the reduced space is represented by a vector of quasi-velocities in the range of P (see dynamics/quasivelocity.py).
So the laws do not depend on the choice of a basis, and a gain is one number, or one for each component of y.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import casadi as ca

from pfaffian.control.allocation import (
    FORCE_UNREACHABLE,
    UNCONTROLLABLE,
    allocate,
    chosen_rows,
    weights,
)
from pfaffian.control.command import Command, Fault
from pfaffian.control.law import Control, maker
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
    """Follow a reference of the whole configuration in reduced quasi-velocities. [aghili08 (40)-(43)]

        u_r = s_dot + Gamma_r s - K_d eps,   eps = v_r - s,   s = P W^T (v_d - K_p e),   e = q - q_d

    Then eps_dot = -(Gamma_r + K_d) eps with Gamma_r skew, so that |eps(t)| <= |eps(0)| exp(-min K_d t). With constraints that
    depend on time, eps = P (y - W^T (v_d - K_p e)) decays in the same way. (The printed (44) has K_d where K_p acts on e.)

    Args:
        reference: q_d(t), (nq,), which satisfies the constraints.
        velocity_gain: K_d [1/s], not negative; one number, or one for each quasi-velocity.
        position_gain: K_p [1/s], not negative; one number, or one for each coordinate; `position_gain_bound` says how large it
            must be.
        force: reference of the multipliers of `rows`, which the part u_o of the inputs maintains; none if None.
            [aghili08 (47)]
        rows: names of these constraint rows, as in the result's `row`.
        weight: (motors,) positive weights R; u has the least u^T R u of all inputs with this motion; ones if None.
        factor: "cholesky", "symmetric" or "innovations", the choice of W in M = W W^T; default "cholesky".
    Returns:
        Control that records eps and error e.
    Stops a run: uncontrollable with these actuators; a force that the actuators cannot produce.
    Raises ModelError: a reference that is not a Reference, a force reference of another size than rows. At the run: joints
    with quaternions, whose errors are not differences; a reference of another size, an unknown row, a negative gain, weights
    that are not positive, or no actuators.

    Example:
        >>> import pfaffian as pf
        >>> from pfaffian import control
        >>> rail = pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> m = pf.mechanism("cart", [pf.body("cart", 2.0)], [rail], actuators=[pf.actuator("motor", "rail")])
        >>> law = control.tracking(control.set_point([1.0]), velocity_gain=2.0, position_gain=3.0)
        >>> run = pf.run(m, duration=0.05, step=0.01, control=law, backend="numpy")
        >>> run["u"].values[0].round(6)  # 2 kg times K_d K_p times 1 m
        array([12.])
    """

    request = _request(reference, force, rows, weight)

    def law(terms: Terms, z: ca.SX, w: ca.SX, reaction: ca.SX) -> Command:
        """Inputs that drive the deviation eps of the reduced quasi-velocities to zero; reactions as requested."""
        n, x = terms.mechanism.nv, quasi_velocity(terms, factor)
        r = reduced_quasi_velocity(terms, x)
        split = len(reference.w_names)
        goal = _setpoint(terms, reference, w[:split, 0])
        K_p, e, e_dot = gain(position_gain, n, "position_gain"), terms.q - goal.value, terms.v - goal.rate
        target = goal.rate - K_p * e
        deviation = x.y - x.W.T @ target
        eps = r.P @ deviation
        # P d(deviation)/dt = P y_dot - P (W^T target)_dot; P P_dot deviation comes from the rotation of the null space.
        target_dot = x.W_dot.T @ target + x.W.T @ (goal.acceleration - K_p * e_dot)
        turning = projector_rate(terms, x) @ deviation
        # The applied force must supply u_r = P (y_dot + Gamma y) in addition to the velocity-free part of c.
        u_r = r.P @ (target_dot - turning + x.Gamma @ (x.y - eps) - gain(velocity_gain, n, "velocity_gain") * eps)
        return _apply(terms, x, r, u_r, request, w[split:, 0])._replace(signals={"eps": eps, "task_error": e})

    names = reference.w_names + (force.w_names if force else ())
    return Control(law, (), names, (Fault(UNCONTROLLABLE, undriven()), Fault(FORCE_UNREACHABLE)))


@maker
def regulation(
    q_d: Reference, *, velocity_gain: Any, position_gain: Any, force: Reference | None = None, rows: Sequence[str] = (),
    weight: Any = None, factor: str = "cholesky",
) -> Control:  # fmt: skip
    """Go to a set point of the whole configuration in reduced quasi-velocities, without Gamma. [aghili08 (48) (51)]

        u_r = -K_d v_r - P W^-1 K_p e,   e = q - q_d

    (|v_r|^2 + e^T K_p e) / 2 falls at the rate v_r^T K_d v_r. The force law is u_o = Lam^T lambda_d alone; the force has an
    error of gamma |v_r|^2 during motion and none at rest.

    Args:
        q_d: reference of the whole configuration (nq,), constant, which satisfies the constraints.
        velocity_gain: K_d [1/s], not negative; one number, or one for each quasi-velocity.
        position_gain: K_p [N/rad, N/m], not negative; one number, or one for each coordinate.
        force, rows, weight, factor: as in `tracking`.
    Returns:
        Control that records error e. It stops a run, and raises errors, where `tracking` does.

    Example:
        >>> import pfaffian as pf
        >>> from pfaffian import control
        >>> rail = pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> m = pf.mechanism("cart", [pf.body("cart", 2.0)], [rail], actuators=[pf.actuator("motor", "rail")])
        >>> gains = {"velocity_gain": 2.0, "position_gain": 3.0}
        >>> run = pf.run(m, duration=0.05, step=0.01, control=control.regulation(control.set_point([1.0]), **gains))
        >>> run["u"].values[0].round(6)  # 3 N/m times 1 m
        array([3.])
    """

    request = _request(q_d, force, rows, weight)

    def law(terms: Terms, z: ca.SX, w: ca.SX, reaction: ca.SX) -> Command:
        x = quasi_velocity(terms, factor)
        r = reduced_quasi_velocity(terms, x)
        split = len(q_d.w_names)
        e = terms.q - _setpoint(terms, q_d, w[:split, 0]).value
        n = terms.mechanism.nv
        u_r = r.P @ (-gain(velocity_gain, n, "velocity_gain") * x.y - x.inverse @ (gain(position_gain, n, "position_gain") * e))
        return _apply(terms, x, r, u_r, request, w[split:, 0], static=True)._replace(signals={"task_error": e})

    names = q_d.w_names + (force.w_names if force else ())
    return Control(law, (), names, (Fault(UNCONTROLLABLE, undriven()), Fault(FORCE_UNREACHABLE)))


def check_rates(m: Mechanism) -> None:
    """Raise ModelError unless v = q_dot for every joint, so that errors of the configuration are differences."""
    K = symbols(m).kinematics.kinematic_matrix
    if m.nq != m.nv or not ca.sparsify(K - ca.SX.eye(m.nv)).nnz() == 0:
        raise ModelError(f"mechanism {m.name!r} has joints whose rates are not q_dot; this control needs one-dof joints")


class _Request(NamedTuple):
    """The options that both laws share.

    force: reference of the multipliers of `rows`, None for none.   rows: names of constraint rows.   weight: (motors,) weights
    R of the inputs.
    """

    force: Reference | None
    rows: Sequence[str]
    weight: Any


def _request(reference: Any, force: Any, rows: Any, weight: Any) -> _Request:
    """The options of a law, checked.

    Raises ModelError: the reference is not a Reference, or the force reference does not have one component for each row.
    """
    as_reference(reference)
    count = len(as_names(rows, "rows"))
    if (as_reference(force, "force").size if force is not None else 0) != count:
        raise ModelError(f"the force reference has {force.size if force else 'no'} components for {count} rows")
    return _Request(force, rows, weight)


def _setpoint(terms: Terms, reference: Reference, w: ca.SX) -> Setpoint:
    """The setpoint of the whole configuration at this instant; w are the inputs that the reference reads.

    Raises ModelError: joints with quaternions, or a reference of another size.
    """
    m = terms.mechanism
    check_rates(m)
    if reference.size != m.nq:
        raise ModelError(f"the reference has {reference.size} coordinates, the configuration {m.nq}")
    return reference.at(terms.t, w)


def _apply(
    terms: Terms, x: QuasiVelocity, r: Reduced, u_r: ca.SX, request: _Request, w: ca.SX, static: bool = False
) -> Command:
    """The Command with P W^-1 (B u + f - g) = u_r and, if a force is requested, with these multipliers.

    (I - P) W^-1 (B u + f - g) + Lam^T lambda = (I - P)(y_dot + Gamma y), since the reaction A^T lambda maintains the
    constraints; therefore lambda has the opposite sign of (47).

    w: inputs of the force reference.   static: whether to leave out the part of the force that is due to motion.
    """
    R = weights(terms.mechanism, request.weight)
    if request.force is None:
        answer = allocate(terms, x.W @ u_r + x.g - terms.f, R)
    else:
        inertial = ca.SX.zeros(u_r.shape[0], 1) if static else r.Q.T @ (r.D + r.Q @ (x.Gamma @ x.y))
        lam_d = request.force.at(terms.t, w).value
        tau = x.W @ (u_r + inertial) + x.g - terms.f
        answer = allocate(terms, tau, R, chosen_rows(terms, request.rows), lam_d)
    return Command(answer.u, ca.SX(0, 1), ca.vertcat(answer.uncontrollable, answer.unreachable))
