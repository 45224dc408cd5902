"""Linearised motion near a state: x_dot = drift + A x + B du in coordinates of the constraint manifold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.analysis.linearised import STILL, Linearised
from pfaffian.analysis.terms_near import TermsNear, near_state
from pfaffian.control.law import Control
from pfaffian.control.law_digest import digest as law_digest
from pfaffian.control.open_loop import is_open
from pfaffian.errors import ModelError
from pfaffian.evaluate.arrays import as_batch, configurations, parameter_values, velocities
from pfaffian.evaluate.given_state import check_on_constraints
from pfaffian.evaluate.single_values import as_number
from pfaffian.maths.span import basis, complement
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.number import floats
from pfaffian.simulate.step.run_arguments import arguments, input_names
from pfaffian.simulate.step.sampling import refuse
from pfaffian.states.abstract_system import AbstractSystem, enter
from pfaffian.states.system import as_system
from pfaffian.terms.connection import refuse_distributions
from pfaffian.terms.lengths import scales
from pfaffian.terms.terms import symbols

SPLIT = 1e-7
"""Parts of unit motions below this fraction count as zero."""


def linearise(
    m: Mechanism | AbstractSystem,
    q: Any = None,
    v: Any = None,
    u: Any = None,
    *,
    t: float = 0.0,
    parameters: Any = None,
    control: Control | None = None,
    z: Sequence[float] | None = None,
) -> Linearised:
    """The linear system near a state, x_dot = drift + A x + B du, in the displacements and speeds that the constraints leave.

        x_1 = Z_q^T M K^+ (q - q_0),   x_2 = Z_v^T M (v - v_0),   x_2_dot = Z_v^T M v_dot

    The columns of Z_q (Z_v) are a basis, orthonormal in the metric of M, of the velocities that phi = 0 (and eta = 0) allow at
    the state. The derivatives of v_dot are those of `derivatives`: exact, and never taken through a rank decision. Redundant
    rows change nothing. At a singular configuration there is no manifold, and the result is that of the rows in use there.

    Args:
        m: the mechanism, or a System of it. The result then contains the motions that the state of the System can represent:
            all of them, except where a momentum is fixed by `reduce(m, momentum=...)`; then x has fewer entries, r...
        q, v, u: one state on the constraints and its inputs, (n,) or {name: number}; None: neutral, at rest, no inputs.
        t: time [s], held constant.
        parameters: {name: value} or an array in the mechanism's order; defaults if None.
        control: a law that closes the loop; u are then the inputs of the law and the external wrenches.
        z: states of the law, which become part of x; their start values if None.
    Returns:
        A: (n, n) [1/s], B: (n, inputs) and drift: (n,), x_dot at the state itself; `equilibrium`: whether drift is zero.
        eigenvalues, vectors, frequencies [rad/s], hertz [Hz] and dampings [1], the least stable first; participation: (nv, n)
        [1], the share of each velocity in the kinetic energy of each mode.
        states, units: names and units of x: d.. displacements in mass-weighted length, s.. speeds, z.. states of the law.
        inputs, input_units: names and units of the inputs, the columns of B.
        dq: (nq, n), dv: (nv, n), the change of q and v for each unit of x. Printing the result shows the eigenvalues.
    Raises ModelError: a batch of states; a state off the constraints; servo forces or a law without a derivative at the state;
    a joint with a distribution.

    Example:
        A box of 2 kg on a spring of 8 N/m oscillates at 2 rad/s:

        >>> import pfaffian as pf
        >>> slide = pf.joint("x", "prismatic", "world", "box", axis=(1, 0, 0), stiffness=8.0)
        >>> m = pf.mechanism("oscillator", [pf.body("box", mass=2.0)], [slide])
        >>> near = pf.linearise(m)
        >>> near.equilibrium, near.frequencies.round(6), near.hertz.round(4), near.participation
        (True, array([2., 2.]), array([0.3183, 0.3183]), array([[1., 1.]]))
    """
    system = as_system(m)
    m = system.mechanism
    refuse_distributions(m, "linearise")
    _, law, _ = arguments(m, None, control, None)
    refuse(law, "linearise")
    near = near_state(m, law, law_digest(law, m))
    names = input_names(m, law)
    u0 = as_batch(u, names, np.zeros(len(names)), "u" if control is None else "u, inputs of the law")
    given = [configurations(m, q), velocities(m, v), u0, parameter_values(m, parameters)]
    if any(len(x) != 1 for x in given):
        raise ModelError("linearise takes one state at a time")
    q0, v0, w0, p0 = (x[0] for x in given)
    z0 = floats(law.z if z is None else z, "z")
    if z0.shape != (len(law.z),):
        raise ModelError(f"z has shape {z0.shape}: ({len(law.z)},) is needed")
    off, parts = near.at(q0, v0, w0, z0, as_number(t, "t"), p0)
    check_on_constraints(m, off[None])
    linear = _assembled(m, law, parts, v0, names, scales(m, p0[None], q0[None], m.v_units)[0])
    return _followed(system, linear, q0, v0, p0, as_number(t, "t")) if system.other_state else linear


def _followed(s: AbstractSystem, x: Linearised, q: np.ndarray, v: np.ndarray, p: np.ndarray, t: float) -> Linearised:
    """The linear system x restricted to the motions that the state of a System can represent.

    That is x unchanged unless the System holds a momentum fixed. The representable motions x = Z r stay among themselves, so
    r_dot = Z^T drift + Z^T A Z r + Z^T B du.
    """
    enter(s, q[None], v[None], p[None], t)  # refuses what the state cannot represent
    T, X = symbols(s.mechanism), ca.SX.sym("x", s.nx)
    both = ca.vertcat(T.q, T.v)
    into = ca.jacobian(s.entered(T, T.q, T.v), both)
    back = ca.substitute(ca.jacobian(ca.vertcat(*s.q_and_v(X, T.t)), X), X, s.entered(T, T.q, T.v))
    f = ca.Function("kept", [T.q, T.v, s.mechanism.p_symbols, T.t], [ca.densify(back @ into)])
    moved = np.vstack([x.dq, x.dv])
    off = np.array(f(q, v, p, t)) @ moved - moved
    Z = complement(np.where(np.abs(off) > SPLIT * np.abs(moved).max(initial=0.0), off, 0.0), SPLIT)
    n = Z.shape[1]
    if n == len(x.A):
        return x
    names, units = tuple(f"r{i}" for i in range(n)), ("mixed",) * n
    return replace(x, A=Z.T @ x.A @ Z, B=Z.T @ x.B, drift=Z.T @ x.drift, states=names, units=units, dq=x.dq @ Z, dv=x.dv @ Z,
                   along=x.along @ Z)  # fmt: skip


def _assembled(
    m: Mechanism, law: Control, x: TermsNear, v0: np.ndarray, names: tuple[str, ...], lengths: np.ndarray
) -> Linearised:
    """The Linearised in bases of the constraint manifold, from the terms at the state.

    names: input names.   lengths: (nv,) the machine's length for velocities in m/s, 1 for others.
    """
    nq, nv, nz = m.nq, m.nv, len(x.z_rate)
    Z_q, Z_v = (x.back @ basis(P) for P in (x.P_q, x.P_v))
    k, l = Z_q.shape[1], Z_v.shape[1]
    dq = np.hstack([x.K @ Z_q, np.zeros((nq, l + nz))])
    dv = np.hstack([x.bent @ dq[:, :k], Z_v, np.zeros((nv, nz))])
    n_in = len(names)
    states = np.vstack([dq, dv, np.hstack([np.zeros((nz, k + l)), np.eye(nz)])])
    # The changes of q, v, z and the inputs for a unit of each state and of each input.
    move = np.block([[states, np.zeros((len(states), n_in))], [np.zeros((n_in, states.shape[1])), np.eye(n_in)]])
    along = Z_q.T @ x.M
    rates = np.vstack([along @ x.inverse_K @ x.q_dot, Z_v.T @ x.M @ x.v_dot, x.z_dot]) @ move
    if not np.isfinite(rates).all():
        raise ModelError("the motion has no derivative here: a force, a constraint or the law is not smooth at this state")
    drift = np.concatenate([along @ v0, Z_v.T @ x.M @ x.a[:, 0], x.z_rate[:, 0]])
    length = np.sqrt((np.diag(x.M) * lengths**2).max(initial=0.0))  # in the mass-weighted metric, as displacements are
    bounds = (STILL * length, STILL * x.scale.sum(), STILL)
    parts = np.split(drift, [k, k + l])
    still = all(np.linalg.norm(part) <= bound for part, bound in zip(parts, bounds, strict=True))
    labels = [f"{letter}{i}" for letter, count in (("d", k), ("s", l), ("z", nz)) for i in range(count)]
    units = ["kg^0.5 m"] * k + ["kg^0.5 m/s"] * l + ["1"] * nz
    input_units = m.u_units if is_open(law) else ("1",) * len(law.w_names) + m.u_units[len(m.actuators) :]
    n = k + l + nz
    return Linearised(
        rates[:, :n], rates[:, n:], drift, still, tuple(labels), tuple(units), names, input_units, dq, dv, m.q_names,
        m.v_names, np.hstack([Z_q, np.zeros((nv, l + nz))]), x.M, x.apart, float(np.sqrt(x.scale.sum() / (length or 1.0))),
    )  # fmt: skip
