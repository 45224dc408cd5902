"""The motion near a state, as x_dot = drift + A x + B du in coordinates of the constraint manifold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.control.digest import digest as law_digest
from pfaffian.control.law import Command, Control
from pfaffian.dynamics import formulation
from pfaffian.dynamics.controlforce import control_force, ideal_reaction
from pfaffian.dynamics.motion import RANK_TOLERANCE
from pfaffian.dynamics.multipliers import minimum_norm_multipliers
from pfaffian.errors import ModelError
from pfaffian.evaluate.arrays import as_number, configurations, parameter_values, runs, velocities
from pfaffian.evaluate.given_state import check_on_constraints, off_constraints
from pfaffian.maths.linear import Orthogonal, orthogonalise
from pfaffian.maths.span import basis, complement
from pfaffian.maths.tree_factor import solve_W, solve_WT
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.number import floats
from pfaffian.simulate.closed_loop import command_of
from pfaffian.simulate.sampling import refuse
from pfaffian.simulate.simulation import arguments, input_names
from pfaffian.simulate.step import Scheme
from pfaffian.simulate.system import System, as_system, enter
from pfaffian.terms.connection import refuse_distributions
from pfaffian.terms.pfaffian import ACCELERATION, POSITION, VELOCITY
from pfaffian.terms.present import remembered
from pfaffian.terms.terms import Terms, symbols

STILL = 1e-6
"""An equilibrium may drift by this part of the accelerations that its forces and weight alone would cause, and by as many rad/s
or m/s."""

SPLIT = 1e-7
"""Part of the largest entry of A below which an eigenvalue is zero: a pair at zero splits by the root of rounding."""


@dataclass(frozen=True, eq=False)
class Linearised:
    """x_dot = drift + A x + B du near a state, x = [displacements; speeds; states of a law], with its eigenvalues.

    A: (n, n) [1/s].   B: (n, inputs).   drift: (n,) x_dot at the state itself.   equilibrium: whether that is zero.
    states, units: names and units of x: d.. along the manifold of positions, in mass-weighted length; s.. among the velocities
        that the constraints allow; z.. what a law integrates; r.. combinations of these.
    inputs, input_units: of the columns of B.
    dq: (nq, n), dv: (nv, n) change of q and v for each unit of x, over q_names and v_names.
    """

    A: np.ndarray
    B: np.ndarray
    drift: np.ndarray
    equilibrium: bool
    states: tuple[str, ...]
    units: tuple[str, ...]
    inputs: tuple[str, ...]
    input_units: tuple[str, ...]
    dq: np.ndarray
    dv: np.ndarray
    q_names: tuple[str, ...]
    v_names: tuple[str, ...]

    @property
    def eigenvalues(self) -> np.ndarray:
        """(n,) of A [1/s], the least stable first; zero where they differ from it by rounding alone."""
        return self._modes[0]

    @property
    def vectors(self) -> np.ndarray:
        """(n, n) complex eigenvectors as columns, in the order of the eigenvalues; dq @ vectors are their shapes in q."""
        return self._modes[1]

    @property
    def frequencies(self) -> np.ndarray:
        """(n,) [rad/s] |eigenvalue|: undamped natural frequency of a pair."""
        return np.abs(self.eigenvalues)

    @property
    def dampings(self) -> np.ndarray:
        """(n,) [1] damping ratio -Re / |eigenvalue|: 1 decays without oscillating, 0 oscillates on, below 0 grows."""
        return np.divide(0 - self.eigenvalues.real, self.frequencies, out=np.zeros(len(self.A)), where=self.frequencies > 0)

    @property
    def _modes(self) -> tuple[np.ndarray, np.ndarray]:
        return modes(self.A)

    def __str__(self) -> str:
        how = "at an equilibrium" if self.equilibrium else f"no equilibrium: drifts by {np.abs(self.drift).max():.3g}"
        lines = [f"{len(self.states)} states, {len(self.inputs)} inputs, {how}"]
        for value, f, d in zip(self.eigenvalues, self.frequencies, self.dampings, strict=True):
            lines.append(f"  {value.real:12.6g} {value.imag:+12.6g}i 1/s   {f:10.5g} rad/s   damping {d:8.4f}")
        return "\n".join(lines)


def modes(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues (n,) [1/s], the least stable first, zero where they differ from it by rounding, and vectors (n, n)."""
    values, vectors = np.linalg.eig(A) if len(A) else (np.zeros(0), np.zeros((0, 0)))
    values = np.where(np.abs(values) > SPLIT * np.abs(A).max(initial=0), values, 0)
    order = np.lexsort((values.imag, np.abs(values), -np.round(values.real, 12)))
    return values[order], vectors[:, order]


def linearise(
    m: Mechanism | System,
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

        x_1 = Z_q^T M K^+ (q - q_0),   x_2 = Z_v^T M (v - v_0),   x_2_dot = Z_v^T r,   r = f + B u - c - M v_dot + A^T lambda

    The columns of Z_q (Z_v) are a basis, orthonormal in the metric of M, of the velocities that phi = 0 (and eta = 0) allow at
    the state. The multipliers are held constant, so that no derivative passes through a rank decision; redundant rows change
    nothing. The derivatives are exact. At a singular configuration there is no manifold, and the answer is that of the rows in
    use.

    Args:
        m: the mechanism, or a System of it: the answer is then about the motions that its state can follow, which are all but
            for one that holds a momentum fixed, `reduce(m, momentum=...)`; of that x has fewer entries, r...
        q, v, u: one state on the constraints and its inputs, (n,) or {name: number}; None: neutral, at rest, no inputs.
        t: time [s], held constant.
        parameters: {name: value} or an array in the mechanism's order; defaults if None.
        control: a law in the loop; u are then its own inputs and the wrenches from outside.
        z: what the law integrates, which becomes part of x; its start values if None.
    Returns:
        A: (n, n) [1/s], B: (n, inputs) and drift: (n,), x_dot at the state itself; `equilibrium`: whether that is zero.
        eigenvalues, vectors, frequencies [rad/s] and dampings [1], the least stable first.
        states, units: of x: d.. displacements in mass-weighted length, s.. speeds, z.. of the law.
        inputs, input_units: of the columns of B.
        dq: (nq, n), dv: (nv, n), the change of q and v for each unit of x. Printing all shows the eigenvalues.
    Raises ModelError: a batch, a state off the constraints, servo forces or a law without a derivative there, a joint with a
    distribution.

    Example:
        A box of 2 kg on a spring of 8 N/m swings at 2 rad/s:

        >>> import pfaffian as pf
        >>> slide = pf.joint("x", "prismatic", "world", "box", axis=(1, 0, 0), stiffness=8.0)
        >>> m = pf.mechanism("oscillator", [pf.body("box", mass=2.0)], [slide])
        >>> near = pf.linearise(m)
        >>> near.equilibrium, near.frequencies.round(6)
        (True, array([2., 2.]))
    """
    system = as_system(m)
    m = system.mechanism
    refuse_distributions(m, "linearise")
    arguments(None, control, None)
    refuse(control, "linearise")
    at, near = _functions(m, control, law_digest(control, m) if control else None)
    names = input_names(m, control)
    u0 = runs(u, names, np.zeros(len(names)), "u")
    given = [configurations(m, q), velocities(m, v), u0, parameter_values(m, parameters)]
    if any(len(x) != 1 for x in given):
        raise ModelError("linearise takes one state at a time")
    q0, v0, w0, p0 = (x[0] for x in given)
    z0 = floats(control.z if control and z is None else z or (), "z")
    if z0.shape != (len(control.z) if control else 0,):
        raise ModelError(f"z has shape {z0.shape}: ({len(control.z) if control else 0},) is needed")
    state = [q0, v0, w0, z0, as_number(t, "t"), p0]
    *held, off = (np.array(x) for x in at.call(state))
    check_on_constraints(m, off[None])
    parts = _Parts(*(np.array(x) for x in near.call([*state, *held])))
    found = _assembled(m, control, parts, v0, held[0][:, 0], names)
    return _followed(system, found, q0, v0, p0, as_number(t, "t")) if system.own_state else found


def _followed(s: System, x: Linearised, q: np.ndarray, v: np.ndarray, p: np.ndarray, t: float) -> Linearised:
    """The part of it in which a state of another kind differs: all of it, in the same x, unless that state holds something
    fixed. Motions that it can follow stay such motions, so their coordinates r obey r_dot = Z^T drift + Z^T A Z r + Z^T B du.
    """
    enter(s, q[None], v[None], p[None], t)  # refuses what the state cannot represent
    T, X = symbols(s.mechanism), ca.SX.sym("x", s.nx)
    both = ca.vertcat(T.q, T.v)
    into = ca.jacobian(s.entered(T, T.q, T.v), both)
    back = ca.substitute(ca.jacobian(ca.vertcat(*s.shown(X, T.t)), X), X, s.entered(T, T.q, T.v))
    f = ca.Function("kept", [T.q, T.v, s.mechanism.p_symbols, T.t], [ca.densify(back @ into)])
    moved = np.vstack([x.dq, x.dv])
    off = np.array(f(q, v, p, t)) @ moved - moved
    Z = complement(np.where(np.abs(off) > SPLIT * np.abs(moved).max(initial=0.0), off, 0.0), SPLIT)
    n = Z.shape[1]
    if n == len(x.A):
        return x
    names, units = tuple(f"r{i}" for i in range(n)), ("mixed",) * n
    return replace(x, A=Z.T @ x.A @ Z, B=Z.T @ x.B, drift=Z.T @ x.drift, states=names, units=units, dq=x.dq @ Z, dv=x.dv @ Z)


class _Parts(NamedTuple):
    """Terms at a state, as SX and then as arrays; a derivative is one along q, v, z and the inputs.

    inverse_K: left inverse of K.   P_q, P_v: projectors, in y, onto what phi = 0 and eta = 0 allow.   back: W^-T.
    bent: (nv, nq) change of v that the rows require when q moves.   r: derivative of the force balance, accelerations and
    multipliers constant.   called, servo: of the accelerations that the rows and the servo rows require.
    q_dot, z_dot: of these.   A_s, Z_s: servo rows and directions, and rows of accelerations, which are their own directions.
    scale: accelerations by each kind of force, in y.
    """

    M: Any
    K: Any
    inverse_K: Any
    P_q: Any
    P_v: Any
    back: Any
    bent: Any
    r: Any
    called: Any
    servo: Any
    q_dot: Any
    z_dot: Any
    A_s: Any
    Z_s: Any
    scale: Any
    z_rate: Any


def _assembled(
    m: Mechanism, control: Control | None, x: _Parts, v0: np.ndarray, a0: np.ndarray, names: tuple[str, ...]
) -> Linearised:
    nq, nv, nz = m.nq, m.nv, len(x.z_rate)
    Z_q, Z_v = (x.back @ basis(P) for P in (x.P_q, x.P_v))
    k, l = Z_q.shape[1], Z_v.shape[1]
    dq = np.hstack([x.K @ Z_q, np.zeros((nq, l + nz))])
    dv = np.hstack([x.bent @ dq[:, :k], Z_v, np.zeros((nv, nz))])
    n_in = len(names)
    states = np.vstack([dq, dv, np.hstack([np.zeros((nz, k + l)), np.eye(nz)])])
    from scipy.linalg import block_diag  # a tenth of a second to import, and only this needs it

    move = block_diag(states, np.eye(n_in))  # a unit of each state, and of each input, in terms of q, v, z and the inputs
    pushed = Z_v.T @ x.r @ move
    if len(x.A_s):
        # Servo forces, and the reactions of rows of accelerations, give these rows the acceleration that they require.
        G = x.A_s @ Z_v @ Z_v.T @ x.Z_s.T
        missing = (x.servo - x.A_s @ x.called) @ move - x.A_s @ Z_v @ pushed
        redundant = ACCELERATION in symbols(m).rows.level  # these rows may be redundant, servo rows may not
        answer = np.linalg.pinv(G, rcond=RANK_TOLERANCE) @ missing if redundant else np.linalg.solve(G, missing)
        pushed += Z_v.T @ x.Z_s.T @ answer
    along = Z_q.T @ x.M
    rates = np.vstack([along @ x.inverse_K @ x.q_dot @ move, pushed, x.z_dot @ move])
    if not np.isfinite(rates).all():
        raise ModelError("the motion has no derivative here: a force, a constraint or the law is not smooth at this state")
    drift = np.concatenate([along @ v0, Z_v.T @ x.M @ a0, x.z_rate[:, 0]])
    bounds = (STILL * np.sqrt(np.diag(x.M).max()), STILL * x.scale.sum(), STILL)
    parts = np.split(drift, [k, k + l])
    still = all(np.linalg.norm(part) <= bound for part, bound in zip(parts, bounds, strict=True))
    labels = [f"{letter}{i}" for letter, count in (("d", k), ("s", l), ("z", nz)) for i in range(count)]
    units = ["kg^0.5 m"] * k + ["kg^0.5 m/s"] * l + ["1"] * nz
    input_units = m.u_units if control is None else ("1",) * len(control.w_names) + m.u_units[len(m.actuators) :]
    n = k + l + nz
    return Linearised(
        rates[:, :n], rates[:, n:], drift, still, tuple(labels), tuple(units), names, input_units, dq, dv, m.q_names, m.v_names
    )


@remembered(16)
def _functions(m: Mechanism, control: Control | None, law: str | None) -> tuple[ca.Function, ca.Function]:
    """(q, v, w, z, t, p) -> (v_dot, lambda, mu, residuals of the constraints); with v_dot, lambda, mu constant -> _Parts."""
    T = symbols(m)
    names = input_names(m, control)
    w, z = ca.SX.sym("w", len(names)), ca.SX.sym("z", len(control.z) if control else 0)
    command = command_of(T, control, Scheme(), z, w)
    closed = Terms(m, T.q, T.v, command.u, T.t)
    motion = formulation("auto", closed)(closed)
    mu = control_force(closed).mu if m.servos else ca.SX(0, 1)
    lam = minimum_norm_multipliers(closed, ideal_reaction(closed, motion))
    inputs = [T.q, T.v, w, z, T.t, m.p_symbols]
    at = ca.Function("at", inputs, [ca.densify(x) for x in (motion.v_dot, lam, mu, off_constraints(T))])
    held = [ca.SX.sym(n, x.numel()) for n, x in (("a", motion.v_dot), ("lam", lam), ("mu", mu))]
    near = ca.Function("near", [*inputs, *held], [ca.densify(x) for x in _near(closed, command, z, w, *held)])
    return at, near


def _near(T: Terms, command: Command, z: ca.SX, w: ca.SX, a: ca.SX, lam: ca.SX, mu: ca.SX) -> _Parts:
    k, n = T.kinematics, T.M.shape[0]
    every = ca.vertcat(T.q, T.v, z, w)
    rows, positions = (_orthonormal(T, T.rows.at(*levels)) for levels in ((POSITION, VELOCITY), (POSITION,)))
    I, W, only = ca.SX.eye(n), T.factor, T.rows.at(ACCELERATION)
    held, along = ca.vertcat(T.servo.A, T.A[only, :]), ca.vertcat(T.servo.Z, T.A[only, :])
    required = ca.vertcat(T.servo.b, T.b[only, 0])
    velocity = T.rows.at(POSITION, VELOCITY)

    def particular(rhs: ca.SX) -> ca.SX:
        return solve_WT(W, rows.Q.T @ rows.carry(ca.densify(rhs))[0])

    r = T.generalised_input - T.inertia_force(a) + T.A.T @ lam + T.servo.Z.T @ mu
    K = ca.densify(k.kinematic_matrix)
    scale = [ca.norm_2(ca.densify(solve_W(W, x))) for x in (T.c, T.f, T.B @ T.u)]
    scale.append(ca.sqrt(sum(link.mass for link in k.tree.links)) * ca.norm_2(T.mechanism.gravity))
    return _Parts(
        T.M, K, ca.solve(K.T @ K, K.T), I - positions.Q.T @ positions.Q, I - rows.Q.T @ rows.Q, solve_WT(W, I),
        particular(-ca.jacobian(T.rows.eta, T.q)[velocity, :]), ca.jacobian(r, every),
        particular(ca.jacobian(T.b - T.A @ a, every)[velocity, :]),
        ca.jacobian(required - held @ a, every), ca.jacobian(k.q_dot, every), ca.jacobian(command.z_dot, every),
        held, along, ca.vertcat(*scale), command.z_dot,
    )  # fmt: skip


def _orthonormal(T: Terms, rows: list[int]) -> Orthogonal:
    Lam, size, groups = T.Lam[rows, :], T.row_size[rows, 0], T.row_groups(rows)
    return orthogonalise(Lam, ca.SX(len(rows), 0), RANK_TOLERANCE, size, T.counted, groups=groups)
