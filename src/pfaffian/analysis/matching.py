"""Where a machine with fewer inputs than motions can move like its prototype: about a set point, and along a reference.

The matching force btilde = Mbar v_dot + bbar, which `control.prototype_tracking` records, is the one that the inputs cannot
produce. It is known before a run in two cases: for small errors about a set point, and for a reference that is followed
without error. [konz25 4.6]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.analysis.linearise import linearise
from pfaffian.control.motors import accelerations
from pfaffian.control.prototype import reference_motion
from pfaffian.control.prototype_pair import Pair, as_pairs, assembled
from pfaffian.control.reason import lowest, mainly, participation
from pfaffian.control.reference import Reference, as_reference
from pfaffian.dynamics.motion import RANK_TOLERANCE
from pfaffian.errors import ModelError
from pfaffian.evaluate.arrays import as_batch, configurations, parameter_values
from pfaffian.evaluate.single_values import as_number
from pfaffian.maths.linear import solve_semidefinite
from pfaffian.maths.span import complement
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.model.number import floats
from pfaffian.terms.terms import Terms, symbols
from pfaffian.terms.traced_now import remembered

HOLDING = 1e-6
"""Largest acceleration at a set point that counts as rest, relative to the accelerations without inputs."""

FEASIBLE = 1e-6
"""Largest missing force along a feasible reference, relative to the forces that the reference requires."""


class Matching(NamedTuple):
    """Conditions under which small motions about a set point are those of the prototype, and the matching force otherwise.

        Lambda_K = Bp^T (M Mbar^-1 Kbar - K) = 0,   Lambda_D = Bp^T (M Mbar^-1 Dbar - D) = 0,   B^T Bp = 0      [konz25 (4.62)]

    stiffness, damping: (k, nv) Lambda_K and Lambda_D, factors of displacements e along v, q - q_R = K e, and their rates.
    idle: (nv, k) Bp, motions on which no input does work, orthonormal in the metric of M.
    carry: (nv, k) M Bp S with S = (Bp^T M Mbar^-1 M Bp)^-1, the matching force for each unit of lambda (4.58).
    u: (nu,) inputs that hold the set point [N, N m].   v_names: names of the velocities.
    """

    stiffness: np.ndarray
    damping: np.ndarray
    idle: np.ndarray
    carry: np.ndarray
    u: np.ndarray
    v_names: tuple[str, ...]

    def force(self, e: Any, e_dot: Any) -> np.ndarray:
        """(nv,) matching force btilde = M Bp S (Lambda_K e + Lambda_D e_dot) for small errors (nv,). [konz25 (4.62)]"""
        return self.carry @ (self.stiffness @ np.asarray(e, dtype=float) + self.damping @ np.asarray(e_dot, dtype=float))


def matching(
    m: Mechanism, pairs: Sequence[Pair], q: Any = None, *, u: Any = None, t: float = 0.0, parameters: Any = None
) -> Matching:
    """The matching conditions of a prototype about a set point, which are the same for all approaches. [konz25 (4.62)]

        Lambda_K = Bp^T (M Mbar^-1 Kbar - K) = 0,   Lambda_D = Bp^T (M Mbar^-1 Dbar - D) = 0,   B^T Bp = 0

    If they hold, the inputs can make small motions about the set point equal to those of the prototype. For a machine with
    constraints, M, D, K and B are those of the motions that the constraints leave free.

    Args:
        m: the mechanism.
        pairs: pairs of bodies with the inertia, damping and stiffness of the prototype, made by `control.pair`.
        q: (nq,) or {name: number}, the set point, on the constraints; neutral if None.
        u: (nu,) or {name: number}, inputs that hold the set point [N, N m]; computed if None.
        t: time [s].
        parameters: {name: value} or an array in the mechanism's order; defaults if None.
    Returns:
        stiffness, damping: (k, nv) Lambda_K and Lambda_D, factors of displacements e along v, q - q_R = K e, and their rates.
        idle: (nv, k) Bp, motions on which no input does work, orthonormal in the metric of M.
        carry: (nv, k) M Bp S with S = (Bp^T M Mbar^-1 M Bp)^-1, the matching force for each unit of lambda (4.58).
        u: (nu,) inputs that hold the set point [N, N m].   v_names: names of the velocities.
        force(e, e_dot): (nv,) the matching force of small errors.
    Raises ModelError: no inputs hold the set point; the prototype has no inertia against some motion; the set point is off the
    constraints, or a force has no derivative there; a joint has a distribution.

    Example:
        A cart pushes a box through a spring of 3 N/m. The one motor cannot match a prototype with twice the box's mass on the
        same spring; it does match the machine itself:

        >>> import numpy as np, pfaffian as pf
        >>> from pfaffian import control
        >>> bodies = [pf.body("cart", mass=1.0), pf.body("box", mass=2.0)]
        >>> joints = [pf.joint("cart", "prismatic", "world", "cart", axis=(1, 0, 0)),
        ...           pf.joint("box", "prismatic", "cart", "box", axis=(1, 0, 0), stiffness=3.0)]
        >>> m = pf.mechanism("two masses", bodies, joints, actuators=[pf.actuator("push", "cart")])
        >>> point, spring = np.diag([0, 0, 0, 1.0]), control.pair("box", seen_from="cart", stiffness=np.diag([0, 0, 0, 3.0]))
        >>> pairs = lambda mass: [control.pair("cart", inertia=point), control.pair("box", inertia=mass * point), spring]
        >>> [bool(abs(pf.analysis.matching(m, pairs(mass)).stiffness).max() < 1e-9) for mass in (2.0, 4.0)]
        [True, False]
    """
    as_mechanism(m)
    pairs = as_pairs(pairs, "matching")
    n = len(m.actuators)
    q0, p0 = configurations(m, q)[0], parameter_values(m, parameters)[0]
    inputs = _holding(m, q0, t, p0) if u is None else as_batch(u, m.u_names, np.zeros(m.nu), "u")[0]
    x = linearise(m, q0, None, inputs, t=t, parameters=p0)
    k = sum(name.startswith("d") for name in x.states)
    K_r, D_r, B = -x.A[k:, :k], -x.A[k:, k:], x.B[k:, :n]
    M, Mbar, Dbar, Kbar, inverse_K = (np.array(f) for f in _parts(m, pairs).call([q0, p0]))
    Z_q, Z_v = inverse_K @ x.dq[:, :k], x.dv[:, k:]
    inertia = Z_v.T @ Mbar @ Z_v
    values = np.linalg.eigvalsh(inertia)
    if not values[0] > RANK_TOLERANCE**2 * values[-1]:
        sizes = np.sqrt(np.diag(M))[:, None]  # which make the velocities comparable in any unit of length
        weightless = mainly(participation(sizes * (Z_v @ lowest(inertia))), m.v_names)
        raise ModelError(f"matching: the prototype has no inertia against {weightless}; give a pair of bodies more Mbar'")
    Bp = complement(B.T, RANK_TOLERANCE)
    inverse = np.linalg.inv(inertia)
    stiffness = Bp.T @ (inverse @ Z_v.T @ Kbar @ Z_q - K_r) @ Z_q.T @ M
    damping = Bp.T @ (inverse @ Z_v.T @ Dbar @ Z_v - D_r) @ Z_v.T @ M
    idle = Z_v @ Bp
    return Matching(stiffness, damping, idle, M @ idle @ np.linalg.inv(Bp.T @ inverse @ Bp), inputs, m.v_names)


def _holding(m: Mechanism, q: np.ndarray, t: float, p: np.ndarray) -> np.ndarray:
    """(nu,) the smallest inputs of the motors that hold q. Raises ModelError: no inputs hold it."""
    x, n = linearise(m, q, None, None, t=t, parameters=p), len(m.actuators)
    k = sum(name.startswith("d") for name in x.states)
    B, a = x.B[k:, :n], x.drift[k:]
    u = np.zeros(m.nu)
    u[:n] = np.linalg.lstsq(B, -a, rcond=RANK_TOLERANCE)[0]
    acceleration = a + B @ u[:n]
    if np.linalg.norm(acceleration) > HOLDING * max(np.linalg.norm(a), np.linalg.norm(B, axis=0).max(initial=0.0) * HOLDING):
        moves = mainly(x.dv[:, k:] @ acceleration, m.v_names)
        raise ModelError(f"matching: no inputs of {m.name!r} hold this set point, it accelerates along {moves}; take another")
    return u


@remembered(16)
def _parts(m: Mechanism, pairs: tuple[Pair, ...]) -> ca.Function:
    """(q, p) -> M, Mbar, Dbar, Kbar (nv, nv) and K^+ (nv, nq)."""
    T = symbols(m)
    bars = [assembled(T.kinematics, pairs, what) for what in ("inertia", "damping", "stiffness")]
    K = ca.densify(T.kinematics.kinematic_matrix)
    return ca.Function("parts", [T.q, m.p_symbols], [ca.densify(T.M), *bars, ca.solve(K.T @ K, K.T)])


class Feasibility(NamedTuple):
    """Whether the inputs can produce the accelerations of a reference at every instant.

    time: (times,) [s].   u: (times, nu) inputs that come nearest to the reference [N, N m].
    force: (times, nv) missing force W (v_dot - v_R_dot), the matching force without error.
    size: (times,) [as force] largest entry of W v_R_dot, W a and W S u, the forces to compare the missing force with.
    lacking: (times, nv) accelerations v_R_dot - v_dot that no input produces.   v_names: names of the velocities.
    """

    time: np.ndarray
    u: np.ndarray
    force: np.ndarray
    size: np.ndarray
    lacking: np.ndarray
    v_names: tuple[str, ...]

    @property
    def worst(self) -> int:
        """Index into `time` of the largest missing force."""
        return int(np.argmax(np.abs(self.force).max(axis=1)))

    @property
    def feasible(self) -> bool:
        """Whether the missing force is rounding relative to the forces that the reference requires."""
        return bool(np.abs(self.force).max() <= FEASIBLE * max(self.size.max(), 1e-300))

    def __str__(self) -> str:
        if self.feasible:
            return f"feasible: the missing force is at most {np.abs(self.force).max():.2g} of {self.size.max():.3g}"
        i = self.worst
        most = np.abs(self.force[i]).max()
        moves = mainly(self.lacking[i], self.v_names)
        return (
            f"infeasible: at t = {self.time[i]:.6g} s no input produces the acceleration of {moves}; the missing force is "
            f"{most:.3g}"
        )

    def check(self) -> None:
        """Raise ModelError if the reference is infeasible, naming the instant and the motion."""
        if not self.feasible:
            raise ModelError(
                f"the reference is {self}; plan one from a flat output (pvtol_reference, quadcopter_reference), or give the "
                "machine an input there"
            )


def feasibility(
    m: Mechanism, reference: Reference, times: Any, *, pairs: Sequence[Pair] | None = None, parameters: Any = None
) -> Feasibility:
    """Whether the inputs can make a machine follow a reference without error, and which force is missing. [konz25 (4.60)]

        lambda = -Bp^T (M v_R_dot + b)

    On the reference, the prototype of any approach requires v_R_dot, bbar = -Mbar v_R_dot. So the machine can follow
    only a reference without missing force, whatever the parameters of the prototype.

    Args:
        m: the mechanism.
        reference: the whole configuration as a function of time, on the constraints, such as `control.polynomial`.
        times: (times,) instants to check [s].
        pairs: pairs of a prototype (`control.pair`), in whose metric W = Mbar the inputs come nearest; None: W = M.
        parameters: {name: value} or an array in the mechanism's order; defaults if None.
    Returns:
        u: (times, nu) inputs that come nearest to the reference [N, N m].
        force: (times, nv) missing force W (v_dot - v_R_dot), the matching force without error.
        size: (times,) the largest entry of W v_R_dot, W a and W S u, the forces to compare the missing force with.
        lacking: (times, nv) accelerations v_R_dot - v_dot that no input produces.
        time, v_names: the instants, and the names of the velocities.
        feasible: whether the missing force is rounding; worst: index of the instant with the largest one; check(): raises
        ModelError if the reference is infeasible. Printing the result states it in words.
    Raises ModelError: the reference depends on inputs of the run, has the wrong size or is undefined at one of the times; the
    mechanism has no actuators.

    Example:
        An actuated box of 2 kg moves by 1 m within 1 s; its acceleration after 0.25 s is 5.625 m/s^2:

        >>> import pfaffian as pf
        >>> slide = pf.joint("x", "prismatic", "world", "box", axis=(1, 0, 0))
        >>> m = pf.mechanism("block", [pf.body("box", mass=2.0)], [slide], actuators=[pf.actuator("push", "x")])
        >>> found = pf.analysis.feasibility(m, pf.control.polynomial([0.0], [1.0], duration=1.0), [0.25, 0.5])
        >>> found.feasible, found.u[0].round(9)
        (True, array([11.25]))
    """
    as_mechanism(m)
    as_reference(reference)
    at, p = np.atleast_1d(floats(times, "feasibility: times")), parameter_values(m, parameters)[0]
    if reference.w_names:
        raise ModelError(
            "feasibility: a sampled reference is known only during a run; give a function of time, e.g. polynomial(...)"
        )
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
    required = [W @ goal.v_dot, W @ a, W @ (S @ u)]
    off = a + S @ u - goal.v_dot
    size = ca.mmax(ca.fabs(ca.densify(ca.vertcat(*required))))
    nowhere = ca.if_else(ca.sum1(goal.left) > 0, np.nan, 0) if goal.left.numel() else 0
    parts = [ca.densify(x) for x in (u, W @ off + nowhere, size, -off)]
    f = ca.Function("feasibility", [t, m.p_symbols], parts)
    rows = [[np.array(x).ravel() for x in f(as_number(float(x), "t"), p)] for x in at]
    inputs, force, sizes, lacking = (np.array(x) for x in zip(*rows, strict=True))
    if not (np.isfinite(force).all() and np.isfinite(inputs).all()):
        i = int(np.argmin(np.isfinite(force).all(axis=1)))
        raise ModelError(
            f"feasibility: at t = {at[i]:.6g} s the reference is undefined or no configuration, or the machine is undefined"
        )
    u_all = np.zeros((len(at), m.nu))
    u_all[:, : inputs.shape[1]] = inputs
    return Feasibility(at, u_all, force, sizes[:, 0], lacking, m.v_names)
