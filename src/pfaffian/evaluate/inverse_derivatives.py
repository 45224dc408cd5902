"""Derivatives of inverse dynamics at given states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian import kernel
from pfaffian.control.allocation import allocate, weights
from pfaffian.control.idle import idle_motions
from pfaffian.control.law import motor_matrix
from pfaffian.control.losses_at import with_losses_at
from pfaffian.dynamics.motion import RANK_TOLERANCE
from pfaffian.dynamics.multipliers import by_least_norm
from pfaffian.evaluate.arrays import configurations, parameter_values, velocities
from pfaffian.evaluate.compiled import given, matrices
from pfaffian.evaluate.given_state import check_given
from pfaffian.evaluate.inverse import actuated_by
from pfaffian.evaluate.single_values import as_number
from pfaffian.maths.linear import orthogonalise
from pfaffian.model.mechanism import Mechanism, as_mechanism, as_names
from pfaffian.model.number import floats
from pfaffian.terms.terms import Terms, symbols
from pfaffian.terms.traced_now import remembered


class InverseDerivatives(NamedTuple):
    """Result of `inverse_dynamics_derivatives`.   u, reaction: `InversePartials` of each.   names: of the inputs."""

    u: InversePartials
    reaction: InversePartials
    names: tuple[str, ...]


class InversePartials(NamedTuple):
    """Derivatives of (n,) numbers by each argument of inverse dynamics.

    q: (..., n, nv) along the velocities.   v, a: (..., n, nv).   t: (..., n).   parameters: (..., n, np).
    """

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    t: np.ndarray
    parameters: np.ndarray


def inverse_dynamics_derivatives(
    m: Mechanism,
    q: Any,
    v: Any,
    a: Any,
    *,
    actuated: Sequence[str] | None = None,
    weight: Any = None,
    t: float = 0.0,
    parameters: Any = None,
) -> InverseDerivatives:
    """Derivatives of the inputs of smallest u^T R u, and of the reaction, by q, v, a, t and parameters (`inverse_dynamics`).

    They are exact where rows and actuators keep their rank; if rows are redundant, along motions that the constraints allow.
    The state and a are used as given: only `inverse_dynamics` checks that they satisfy the constraints.

    Args:
        m: the mechanism.
        q: (nq,) or (runs, nq) array, or {coordinate: number}; omitted coordinates are neutral.
        v: (nv,) or (runs, nv) array, or {velocity: number}; omitted velocities are zero.
        a: (nv,) or (runs, nv) array, or {velocity: number}, the acceleration v_dot; omitted ones are zero.
        actuated: names of the velocities (joints) with actuators. If None, the mechanism's actuators, or one for every
            velocity of a mechanism without actuators.
        weight: (motors,) diagonal of R, ones if None.
        t: time [s], 0 by default.
        parameters: {name: value or (runs,)} or a (np,) or (runs, np) array; defaults where left out.
    Returns:
        a named tuple: u and reaction, each with q (..., n, nv) along the velocities, v, a (..., n, nv), t (..., n) and
        parameters (..., n, np); names of the inputs.
    Raises ModelError: unknown names, wrong shapes, v or a missing.

    Example:
        >>> import numpy as np
        >>> import pfaffian as pf
        >>> bob = pf.body("bob", mass=2.0, com=(0, 0, -1))
        >>> m = pf.mechanism("pendulum", [bob], [pf.joint("hinge", "revolute", "world", "bob", axis=(0, 1, 0))])
        >>> found = pf.calculus.inverse_dynamics_derivatives(m, {"hinge": 0.0}, [0.0], [0.0])
        >>> found.u.q.round(2), found.u.a.round(2)  # m g l, and the inertia m l^2
        (array([[19.62]]), array([[2.]]))
    """
    as_mechanism(m)
    names = None if actuated is None else as_names(actuated, "actuated")
    R = None if weight is None else tuple(floats(weight, "weight").ravel().tolist())
    check_given(v, m.v_names, "v")
    check_given(a, m.v_names, "a")
    driven, f, shapes = _inverse(m, names, R)
    at = given(
        q=(q, configurations(m, q)),
        v=(v, velocities(m, v)),
        a=(a, velocities(m, a, "a")),
        parameters=(parameters, parameter_values(m, parameters)),
    )
    outputs = matrices(f, at, shapes, np.array([as_number(t, "t")]))
    u, reaction = (InversePartials(*x)._replace(t=x[3][..., 0]) for x in (outputs[:5], outputs[5:]))
    return InverseDerivatives(u, reaction, driven.u_names)


@remembered(64)
def _inverse(
    m: Mechanism, names: tuple[str, ...] | None, weight: tuple[float, ...] | None
) -> tuple[Mechanism, kernel.Kernel, list[tuple[int, int]]]:
    """The mechanism with its actuators; the compiled (q, v, a, p, t) -> derivatives of u and reaction, each by q, v, a, t and
    p; the shapes of these.
    """
    driven = actuated_by(m, names)
    T, a = symbols(driven), ca.SX.sym("a", m.nv)
    by = ca.vertcat(T.q, T.v, a, T.t, m.p_symbols)
    ends, parts = np.cumsum([0, *[x.numel() for x in (T.q, T.v, a, T.t, m.p_symbols)]]).tolist(), list[ca.SX]()
    for x in inverse_slopes(T, a, weights(driven, weight), by):
        each = ca.horzsplit(ca.densify(x), ends)
        parts += [each[0] @ T.kinematics.kinematic_matrix, *each[1:]]
    f = ca.Function("inverse", [T.q, T.v, a, m.p_symbols, T.t], [ca.vec(ca.densify(x)) for x in parts])
    return driven, kernel.compile(f), [x.shape for x in parts]


def inverse_slopes(T: Terms, a: ca.SX, R: ca.SX, by: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Derivatives (nu, k) of the inputs of smallest u^T R u, and (nv, k) of the reaction, by symbols (k, 1) at v_dot = a.

    R u = B^T w, A w = 0 and B u + A^T lambda = M a + c - f hold along any change. They are differentiated at constant u, w and
    lambda; `allocate`, which is linear in the force, then gives the changes of u.
    """
    T = with_losses_at(T, a, R, idle_motions(T.mechanism).number)
    force, x, motors = ca.densify(T.inertia_force(a) - T.f), ca.SX.sym("x", T.mechanism.nv), len(T.mechanism.actuators)
    answer = ca.jacobian(allocate(T, x, R, idle=idle_motions(T.mechanism).number).u, x)
    B, inverse_R = motor_matrix(T), ca.diag(1 / R)
    rows = orthogonalise(T.A, ca.SX(T.A.shape[0], 0), RANK_TOLERANCE, T.row_size, groups=T.groups)
    P = ca.SX.eye(T.mechanism.nv) - rows.Q.T @ rows.Q
    u = answer @ force
    pulled = orthogonalise(ca.densify(B.T @ P), R * u[:motors, 0], RANK_TOLERANCE, groups=[[*range(motors)]])
    reaction = force - T.B @ u
    constants = [u, P @ (pulled.Q.T @ pulled.D), by_least_norm(T).solve(reaction) if T.A.shape[0] else ca.SX(0, 1)]
    u_0, w, lam = fixed_symbols = [ca.SX.sym(name, value.numel()) for name, value in zip("uwl", constants, strict=True)]
    columns = [force - T.B @ u_0, T.A.T @ lam, T.A @ w, B.T @ w]
    fixed_slopes = [ca.densify(ca.jacobian(ca.densify(y), by)) for y in columns]
    free, turned, bent, pull = ca.substitute(fixed_slopes, fixed_symbols, [ca.densify(y) for y in constants])
    moved = inverse_R @ (pull - B.T @ (rows.Q.T @ rows.carry(bent)[0]))
    moved = ca.vertcat(moved, ca.SX(T.mechanism.nu - motors, by.numel()))  # `allocate` leaves wrenches from outside at zero
    u_slopes = moved + answer @ (free - turned - T.B @ moved)
    return u_slopes, free - T.B @ u_slopes
