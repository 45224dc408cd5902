"""Where a machine with fewer inputs than motions moves as its prototype does: about a set point, and along a reference.

What its inputs cannot give is the matching force btilde = Mbar v_dot + bbar, which `control.prototype_tracking` records. Two
parts of it are known before a run: that of small errors about a set point, and that of no error at all. [konz25 4.6]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.control.prototype import Pair, accelerations, as_pairs, assembled, reference_motion
from pfaffian.control.reason import lowest, mainly, share
from pfaffian.control.reference import Reference, as_reference
from pfaffian.dynamics.motion import RANK_TOLERANCE
from pfaffian.errors import ModelError
from pfaffian.evaluate.arrays import as_number, configurations, parameter_values, runs
from pfaffian.maths.linear import solve_semidefinite
from pfaffian.maths.span import complement
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.model.number import floats
from pfaffian.simulate.linearise import linearise
from pfaffian.terms.present import remembered
from pfaffian.terms.terms import Terms, symbols

HELD = 1e-6
"""Part of the accelerations without inputs that they may leave at a set point."""

FEASIBLE = 1e-6
"""Part of the forces that a reference asks for which the inputs may lack."""


class Matching(NamedTuple):
    """Conditions under which small motions about a set point are the prototype's, and what is left where they do not hold.

        Lambda_K = Bp^T (M Mbar^-1 Kbar - K) = 0,   Lambda_D = Bp^T (M Mbar^-1 Dbar - D) = 0,   B^T Bp = 0      [konz25 (4.62)]

    stiffness, damping: (k, nv) Lambda_K and Lambda_D, of displacements e along v, q - q_R = K e, and of their rates.
    idle: (nv, k) Bp, motions on which no input does work, orthonormal in M.
    carry: (nv, k) M Bp S, S = (Bp^T M Mbar^-1 M Bp)^-1: the matching force for each unit of lambda (4.58).
    u: (nu,) inputs that hold the set point [N, N m].   v_names: of the velocities.
    """

    stiffness: np.ndarray
    damping: np.ndarray
    idle: np.ndarray
    carry: np.ndarray
    u: np.ndarray
    v_names: tuple[str, ...]

    def force(self, e: Any, e_dot: Any) -> np.ndarray:
        """(nv,) matching force btilde = M Bp S (Lambda_K e + Lambda_D e_dot) of small errors, (nv,) each. [konz25 (4.62)]"""
        return self.carry @ (self.stiffness @ np.asarray(e, dtype=float) + self.damping @ np.asarray(e_dot, dtype=float))


def matching(
    m: Mechanism, pairs: Sequence[Pair], q: Any = None, *, u: Any = None, t: float = 0.0, parameters: Any = None
) -> Matching:
    """The matching conditions of a prototype about a set point, at which all approaches are one. [konz25 (4.62)]

    Of a machine with constraints M, D, K and B are those of the motions that these leave free.

    Args:
        m: the mechanism.   pairs: see `control.pair`.   q: (nq,) or {name: number} the set point, on the constraints.
        u: (nu,) or {name: number} inputs that hold it; found if None.   t: [s].   parameters: {name: value}, defaults if None.
    Raises ModelError: no inputs hold the set point; the prototype has no inertia against some motion; what `linearise` refuses.
    """
    as_mechanism(m)
    pairs = as_pairs(pairs, "matching")
    n = len(m.actuators)
    q0, p0 = configurations(m, q)[0], parameter_values(m, parameters)[0]
    held = _holding(m, q0, t, p0) if u is None else runs(u, m.u_names, np.zeros(m.nu), "u")[0]
    x = linearise(m, q0, None, held, t=t, parameters=p0)
    k = sum(name.startswith("d") for name in x.states)
    K_r, D_r, B = -x.A[k:, :k], -x.A[k:, k:], x.B[k:, :n]
    M, Mbar, Dbar, Kbar, left = (np.array(f) for f in _parts(m, pairs).call([q0, p0]))
    Z_q, Z_v = left @ x.dq[:, :k], x.dv[:, k:]
    inertia = Z_v.T @ Mbar @ Z_v
    values = np.linalg.eigvalsh(inertia)
    if not values[0] > RANK_TOLERANCE**2 * values[-1]:
        weightless = mainly(share(Z_v @ lowest(inertia)), m.v_names)
        raise ModelError(f"matching: the prototype has no inertia against {weightless}; give a pair of bodies more Mbar'")
    Bp = complement(B.T, RANK_TOLERANCE)
    inverse = np.linalg.inv(inertia)
    stiffness = Bp.T @ (inverse @ Z_v.T @ Kbar @ Z_q - K_r) @ Z_q.T @ M
    damping = Bp.T @ (inverse @ Z_v.T @ Dbar @ Z_v - D_r) @ Z_v.T @ M
    idle = Z_v @ Bp
    return Matching(stiffness, damping, idle, M @ idle @ np.linalg.inv(Bp.T @ inverse @ Bp), held, m.v_names)


def _holding(m: Mechanism, q: np.ndarray, t: float, p: np.ndarray) -> np.ndarray:
    """(nu,) least inputs of the motors that hold q. Raises ModelError: none do."""
    x, n = linearise(m, q, None, None, t=t, parameters=p), len(m.actuators)
    k = sum(name.startswith("d") for name in x.states)
    B, a = x.B[k:, :n], x.drift[k:]
    u = np.zeros(m.nu)
    u[:n] = np.linalg.lstsq(B, -a, rcond=RANK_TOLERANCE)[0]
    left = a + B @ u[:n]
    if np.linalg.norm(left) > HELD * max(np.linalg.norm(a), np.linalg.norm(B, axis=0).max(initial=0.0) * HELD):
        moves = mainly(x.dv[:, k:] @ left, m.v_names)
        raise ModelError(f"matching: no inputs of {m.name!r} hold this set point, it accelerates along {moves}; take another")
    return u


@remembered(16)
def _parts(m: Mechanism, pairs: tuple[Pair, ...]) -> ca.Function:
    """(q, p) -> M, Mbar, Dbar, Kbar (nv, nv) and K^+ (nv, nq)."""
    T = symbols(m)
    bars = [assembled(T.kinematics, pairs, what) for what in ("inertia", "damping", "stiffness")]
    K = ca.densify(T.kinematics.kinematic_matrix)
    return ca.Function("parts", [T.q, m.p_symbols], [ca.densify(T.M), *bars, ca.solve(K.T @ K, K.T)], {"cse": True})


class Feasibility(NamedTuple):
    """Whether inputs can give what a reference asks for, at every instant.

    time: (times,) [s].   u: (times, nu) inputs that come nearest [N, N m].
    force: (times, nv) what is left, W (v_dot - v_R_dot): the matching force without error.   size: (times,) [of force]
        largest part of W v_R_dot, W a and W S u, the forces among which that is.
    lacking: (times, nv) accelerations v_R_dot - v_dot that no input gives.   v_names: of the velocities.
    """

    time: np.ndarray
    u: np.ndarray
    force: np.ndarray
    size: np.ndarray
    lacking: np.ndarray
    v_names: tuple[str, ...]

    @property
    def worst(self) -> int:
        """Where in `time` the most is left."""
        return int(np.argmax(np.abs(self.force).max(axis=1)))

    @property
    def feasible(self) -> bool:
        """Whether what is left is rounding beside the forces that the reference asks for."""
        return bool(np.abs(self.force).max() <= FEASIBLE * max(self.size.max(), 1e-300))

    def __str__(self) -> str:
        if self.feasible:
            return f"feasible: at most {np.abs(self.force).max():.2g} of {self.size.max():.3g} is left to the inputs"
        i = self.worst
        most = np.abs(self.force[i]).max()
        moves = mainly(self.lacking[i], self.v_names)
        return f"infeasible: at t = {self.time[i]:.6g} s no input gives the acceleration of {moves}, {most:.3g} is left"

    def check(self) -> None:
        """Raise ModelError: the reference is infeasible, with where and along which motion."""
        if not self.feasible:
            raise ModelError(
                f"the reference is {self}; plan one by a flat output (pvtol_reference, quadcopter_reference), or give the "
                "machine an input there"
            )


def feasibility(
    m: Mechanism, reference: Reference, times: Any, *, pairs: Sequence[Pair] | None = None, parameters: Any = None
) -> Feasibility:
    """What the inputs cannot give along a reference without error, lambda = -Bp^T (M v_R_dot + b). [konz25 (4.60)]

    A prototype of any approach asks for v_R_dot there, bbar = -Mbar v_R_dot; so only references of which nothing is left can
    be followed, whatever its numbers.

    Args:
        m: the mechanism.   reference: of the whole configuration, on the constraints, a function of time.   times: (times,)
            [s].   pairs: of a prototype, in whose metric W = Mbar the inputs come nearest; W = M if None.
        parameters: {name: value}, defaults if None.
    Raises ModelError: a reference of inputs of the run, of another size, or undefined at one of the times; no actuators.
    """
    as_mechanism(m)
    as_reference(reference)
    at, p = np.atleast_1d(floats(times, "feasibility: times")), parameter_values(m, parameters)[0]
    if reference.w_names:
        raise ModelError("feasibility: a sampled reference is known in a run only; make a function of time by series(...)")
    if not m.actuators:
        raise ModelError(f"feasibility: {m.name!r} has no actuators; see actuate_all")
    if at.ndim != 1 or not at.size:
        raise ModelError(f"feasibility: times must be (times,) numbers, got the shape {at.shape}")
    t = ca.SX.sym("t")
    T = symbols(m)
    goal = reference_motion(Terms(m, T.q, T.v, ca.SX(m.nu, 1), t), reference, ca.SX(0, 1))
    here = Terms(m, goal.k.q, goal.k.v, ca.SX(m.nu, 1), t)
    a, S = accelerations(here)
    W = ca.densify(here.M) if pairs is None else assembled(goal.k, as_pairs(pairs, "feasibility"), "inertia")
    u = solve_semidefinite(ca.densify(S.T @ W @ S), ca.densify(S.T @ (W @ (goal.v_dot - a))), RANK_TOLERANCE).x
    asked = [W @ goal.v_dot, W @ a, W @ (S @ u)]
    off = a + S @ u - goal.v_dot
    size = ca.mmax(ca.fabs(ca.densify(ca.vertcat(*asked))))
    f = ca.Function("feasibility", [t, m.p_symbols], [ca.densify(x) for x in (u, W @ off, size, -off)], {"cse": True})
    rows = [[np.array(x).ravel() for x in f(as_number(float(x), "t"), p)] for x in at]
    inputs, force, sizes, lacking = (np.array(x) for x in zip(*rows, strict=True))
    if not (np.isfinite(force).all() and np.isfinite(inputs).all()):
        i = int(np.argmin(np.isfinite(force).all(axis=1)))
        raise ModelError(f"feasibility: the reference, or the machine there, is undefined at t = {at[i]:.6g} s")
    u_all = np.zeros((len(at), m.nu))
    u_all[:, : inputs.shape[1]] = inputs
    return Feasibility(at, u_all, force, sizes[:, 0], lacking, m.v_names)
