"""Friction of joints in proportion to the loads that they carry, solved together with the motion on which these depend.

The motion is affine in the friction Q of the joints: the components w_i of the reaction that press on joint i are w_i0 + G_i Q.
With the load L_i, a sum of norms of such components, the friction satisfies

    Q_i + mu_i sigma(s_i) L_i(w_i0 + G_i Q) = 0

or with sticking Q_i = clip(Q_i - (s_i_dot + s_i / settle) / H_ii, mu_i L_i), for the rates s_i, H_ii being s_i_dot for a unit
of Q_i. Where the friction of a joint adds more to its own load than it takes from it, mu_i |sigma| L_i(G_ii) >= 1, this has no
solution or several (Painleve); below it has one. Together with others it has one if all pivots of I - K are positive,
K_ij = mu_i |sigma_i| L_i(G_ij).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.dynamics.motion import Motion, shortest_change
from pfaffian.dynamics.multipliers import by_least_norm, vanishing_combinations
from pfaffian.dynamics.reaction import TransmittedWrenches
from pfaffian.errors import ModelError, RunError
from pfaffian.maths.margins import vanishing
from pfaffian.maths.tree_factor import multiply_W, solve_W, solve_WT
from pfaffian.model.force import Thruster, Transmission
from pfaffian.model.load_loss import GEAR, GUIDE, PIN, SCREW, LoadLoss
from pfaffian.model.mechanism import Mechanism
from pfaffian.terms.generic_states import at_generic_states
from pfaffian.terms.terms import FOLLOWING, LOAD_LOSSES, JointLosses, Terms, shared
from pfaffian.terms.traced_now import remembered
from pfaffian.terms.wrenches import turn

ITERATIONS = 5
"""Number of Newton iterations for the friction of several joints, or of one with several parts or with sticking."""

RESIDUAL = 1e-8
"""Largest residual of the friction after the iterations, relative to the loads."""

TINY_LOAD = 1e-9
"""[N, N m] Smoothing of a load, which gives it a derivative where there is none."""

COMPONENTS = {GUIDE: ((0, 1), (3, 4)), PIN: ((0, 1), (2,)), SCREW: ((2,),), GEAR: ()}
"""Carrier -> the components of the reaction in the joint's frame, z its axis, whose sizes make up the load."""


def losses_of(m: Mechanism) -> tuple[LoadLoss, ...]:
    """The friction of a mechanism that follows loads. Raises ModelError: there are servo constraints too."""
    found = tuple(f for f in m.all_forces if isinstance(f, LoadLoss))
    if found and m.servos:
        raise ModelError(
            f"force {found[0].name!r} follows the load of a joint, which servo constraints do not support; hold the motion by "
            "control.servo_control"
        )
    return found


def levers(f: LoadLoss) -> tuple[ca.SX, ...]:
    """What the size of each part of the load counts for [1, 1/m, m], zero where a part causes no friction."""
    if f.carrier == GUIDE:
        return ca.SX(1), ca.SX(0) if f.lengths[0].is_zero() else 2 / f.lengths[0]
    return tuple(ca.vertsplit(f.lengths))


class Pressing(NamedTuple):
    """What presses on a joint: `size` times the norm of `part` (k, 1), for each of its parts."""

    sizes: tuple[ca.SX, ...]
    parts: tuple[ca.SX, ...]


def solve(T: Terms) -> JointLosses:
    """The friction of all joints that follows their loads, in the motion under the inputs of T.

    Raises ModelError: servo constraints; a load that redundant constraints share.
    """
    m, losses = T.mechanism, losses_of(T.mechanism)
    E = ca.horzcat(*[T.kinematics.along_joint(f.joint, ca.SX(1)) for f in losses])
    force = ca.horzcat(ca.densify(T.applied + T.B @ T.u - T.c), E)
    rows = ca.horzcat(ca.densify(T.b), ca.SX.zeros(T.b.numel(), len(losses)))
    check_unique(m)
    return _solved(T, losses, E, _responses(T, force, rows))


FOLLOWING[LOAD_LOSSES] = solve


def losses_at(T: Terms, a: ca.SX, inputs: Callable[[ca.SX], tuple[ca.SX, ca.SX]]) -> JointLosses:
    """The friction of all joints that follows their loads at an acceleration a (nv, 1).

    inputs: force (nv, 1) of friction along v -> the inputs (nu, 1) and the reaction (nv, 1) that together produce the
        acceleration, both affine in this force.
    """
    losses = losses_of(T.mechanism)
    E = ca.horzcat(*[T.kinematics.along_joint(f.joint, ca.SX(1)) for f in losses])
    check_unique(T.mechanism)
    Q = ca.SX.sym("friction", len(losses))
    u, reaction = inputs(E @ Q)
    lam = by_least_norm(T).solve(reaction) if T.A.shape[0] else ca.SX(0, 1)
    loads = _JointLoads(T.under(u), losses)
    pressing = [loads.pressing(f, i) for i, f in enumerate(losses)]
    parts = ca.densify(ca.vertcat(*[part for x in pressing for part in x.parts]))
    parts = ca.substitute(parts, loads.motion, ca.densify(ca.vertcat(a, lam, Q)))
    base = ca.substitute(parts, Q, ca.SX.zeros(len(losses), 1))
    equations = _equations(T, losses, pressing, base, ca.jacobian(parts, Q), None)
    values, faults = friction(equations)
    return JointLosses(tuple(f.joint for f in losses), values, ca.densify(E @ values), faults)


class _Responses(NamedTuple):
    """The motion without friction, in the first column, and that for a unit of each friction, in the others.

    a: (nv, 1 + n) accelerations.   lam: (m, 1 + n) multipliers.   correction: (nv, 1 + n) effect of the rows, mass-weighted.
    """

    a: ca.SX
    lam: ca.SX
    correction: ca.SX


def _responses(T: Terms, force: ca.SX, rows: ca.SX) -> _Responses:
    """The responses to forces (nv, 1 + n) and right-hand sides of the rows (m, 1 + n)."""
    F = T.factor
    y = solve_W(F, force)
    if not T.A.shape[0]:
        return _Responses(solve_WT(F, y), ca.SX(0, force.shape[1]), ca.SX(*force.shape))
    change = shortest_change(T)
    off = rows - T.Lam @ y
    correction = change.solve(off)
    lam = by_least_norm(T).solve(multiply_W(F, correction)) if change.rows is None else change.combination(off)
    return _Responses(solve_WT(F, y + correction), lam, correction)


def _solved(T: Terms, losses: Sequence[LoadLoss], E: ca.SX, of: _Responses) -> JointLosses:
    """The friction, and the motion under it.   E: (nv, n) forces along v for a unit of each friction."""
    n, loads = len(losses), _JointLoads(T, losses)
    at = ca.densify(ca.vertcat(of.a, of.lam, ca.horzcat(ca.SX.zeros(n, 1), ca.SX.eye(n))))
    pressing = [loads.pressing(f, i) for i, f in enumerate(losses)]
    parts = ca.densify(ca.vertcat(*[part for x in pressing for part in x.parts]))
    base, changes = ca.substitute(parts, loads.motion, at[:, 0]), ca.jtimes(parts, loads.motion, at[:, 1:])
    Q, faults = friction(_equations(T, losses, pressing, base, changes, of.a))
    v_dot, correction = (ca.densify(x[:, 0] + x[:, 1:] @ Q) for x in (of.a, of.correction))
    return JointLosses(tuple(f.joint for f in losses), Q, ca.densify(E @ Q), faults, (v_dot, correction))


def _equations(
    T: Terms, losses: Sequence[LoadLoss], pressing: Sequence[Pressing], base: ca.SX, changes: ca.SX, a: ca.SX | None
) -> list[_Equation]:
    """The equations of all losses.   base: (parts, 1) what presses on the joints without friction, all parts in a column.
    changes: (parts, n) its change for a unit of each friction.   a: as of `_Equation.of`."""
    found, first = list[_Equation](), 0
    for i, (f, x) in enumerate(zip(losses, pressing, strict=True)):
        ends = [*accumulate((part.numel() for part in x.parts), initial=first)]
        at = [slice(*ends[k : k + 2]) for k in range(len(x.parts))]
        first = ends[-1]
        found.append(_Equation.of(T, f, i, x.sizes, [base[k, 0] for k in at], [changes[k, :] for k in at], a))
    return found


class _JointLoads:
    """The loads of joints as functions of a motion at symbols.   motion: (nv + m + n, 1) v_dot, multipliers, friction."""

    def __init__(self, T: Terms, losses: Sequence[LoadLoss]) -> None:
        m, rows = T.mechanism, T.A.shape[0]
        a, self.lam, self.Q = ca.SX.sym("a", m.nv), ca.SX.sym("lam", rows), ca.SX.sym("Q", len(losses))
        self.T, self.motion = T, ca.vertcat(a, self.lam, self.Q)
        friction = {f.joint: self.Q[i] for i, f in enumerate(losses)}
        self.wrenches = TransmittedWrenches(T, Motion(a, ca.SX(m.nv, 1), ca.SX(0)), friction)

    def columns(self, f: LoadLoss) -> list[ca.SX]:
        """Components of the reaction that press on a joint, (k, 1 + m) each: without multipliers, and for a unit of each."""
        if not COMPONENTS[f.carrier]:
            return []
        X, G = self.wrenches.through(f.joint)
        local = turn(G.R.T, X)
        return [local[list(part), :] for part in COMPONENTS[f.carrier]]

    def pressing(self, f: LoadLoss, i: int) -> Pressing:
        """What presses on the joint of a loss, the i-th of all."""
        if f.carrier == GEAR:
            return Pressing((ca.SX(1),), (motor_force(self.T, f.joint),))
        parts = [x[:, 0] + x[:, 1:] @ self.lam for x in self.columns(f)]
        if f.carrier == SCREW:
            pitch, radius = ca.SX(self.T.mechanism.joint(f.joint).parts[0].subgroup.pitch), f.lengths[0]
            cosine2 = radius**2 / (radius**2 + pitch**2)
            # The thread's own friction is along its flank, and has a part along the axis that does not press on it.
            return Pressing((radius / cosine2,), (parts[0] - self.Q[i] * pitch * cosine2 / radius**2,))
        used = [(size, x) for size, x in zip(levers(f), parts, strict=True) if not size.is_zero()]
        return Pressing(tuple(size for size, _ in used), tuple(x for _, x in used))


def motor_force(T: Terms, joint: str) -> ca.SX:
    """(1, 1) the force of all motors along a joint of one velocity."""
    m, total = T.mechanism, ca.SX(0)
    for a in m.actuators:
        if not isinstance(a, Thruster):
            gears = a.gears if isinstance(a, Transmission) else a.gear
            total += sum((gears[n] * T.u[m.u_names.index(a.name)] for n, (j, _) in enumerate(a.ends) if j == joint), ca.SX(0))
    return total


class _EquationAt(NamedTuple):
    """An equation at given frictions: its residual, its slopes and the bound on its friction.

    value: (1, 1).   slopes: (1, n) along the frictions.   most: (1, 1) the largest friction under the load.
    """

    value: ca.SX
    slopes: ca.SX
    most: ca.SX


class _Equation(NamedTuple):
    """The equation of the friction Q_i of one joint.

    number: i.   factor: (1, 1) mu sigma with the sign of the rate, mu itself with sticking.   sizes, base, turned: of the parts
    of the load: their weights, values w0 (k, 1) without friction, and changes G (k, n) for a unit of each friction.
    rest: with sticking, (1, 1) the rate that has to vanish, s_dot + s / settle without friction, and (1, n) its change for a
    unit of each friction.
    """

    number: int
    factor: ca.SX
    sizes: tuple[ca.SX, ...]
    base: list[ca.SX]
    turned: list[ca.SX]
    rest: tuple[ca.SX, ca.SX] | None

    @classmethod
    def of(
        cls, T: Terms, f: LoadLoss, number: int, sizes: tuple[ca.SX, ...], base: list[ca.SX], turned: list[ca.SX],
        a: ca.SX | None,
    ) -> _Equation:  # fmt: skip
        """The equation of a loss.   a: (nv, 1 + n) accelerations without friction and for a unit of each; None: they are given,
        so that friction does not decide whether the joint moves."""
        k = T.kinematics
        s = k.joint_rate(f.joint)
        mu = f.sliding + (f.static - f.sliding) * ca.exp(-((s / f.stribeck) ** 2))
        if f.carrier == GEAR:
            mu = ca.if_else(base[0] * s > 0, 1 - f.sliding, 1 / f.static - 1)
        if f.settle is None or a is None:
            return cls(number, mu * s / ca.sqrt(s**2 + f.smooth**2), sizes, base, turned, None)
        along = ca.jacobian(s, k.v)
        drift = ca.jtimes(s, k.q, k.q_dot)
        return cls(number, mu, sizes, base, turned, (along @ a[:, 0] + drift + s / f.settle, along @ a[:, 1:]))

    def at(self, Q: ca.SX) -> _EquationAt:
        """The equation under frictions Q (n, 1)."""
        load, slope, n = ca.SX(0), ca.SX(1, Q.numel()), self.number
        for c, w, G in zip(self.sizes, self.base, self.turned, strict=True):
            part = w + G @ Q
            size = ca.sqrt(ca.sumsqr(part) + TINY_LOAD**2)
            load, slope = load + c * size, slope + (self.factor * c / size) * (part.T @ G)
        most, unit = self.factor * load, ca.SX.eye(Q.numel())[n, :]
        if self.rest is None:
            return _EquationAt(Q[n] + most, unit + slope, ca.fabs(most))
        rate, change = self.rest
        along = change / change[n]
        left = rate / change[n] + along @ Q
        slides = ca.fabs(Q[n] - left) > most
        against = ca.if_else(Q[n] > left, 1, -1)  # the direction in which friction would have to exceed its largest value
        value = ca.if_else(slides, Q[n] - against * most, left)
        return _EquationAt(value, ca.if_else(slides, unit - against * slope, along), most)

    @property
    def feedback(self) -> ca.SX:
        """(1, n) the largest change of this friction for a unit of each friction, by way of its load."""
        size = sum((c * ca.sqrt(ca.sum1(G**2)) for c, G in zip(self.sizes, self.turned, strict=True)), ca.SX(0))
        return ca.fabs(self.factor) * size

    @property
    def simple(self) -> bool:
        """Whether it is a quadratic equation for one friction alone."""
        return self.rest is None and len(self.sizes) == 1


def friction(equations: Sequence[_Equation]) -> tuple[ca.SX, ca.SX]:
    """(n, 1) the friction of all joints, and (n + 1, 1) the faults, see `JointLosses`."""
    n = len(equations)
    if n == 1 and equations[0].simple:
        Q, room = _closed_form(equations[0])
        return Q, ca.vertcat(ca.logic_not(room > 0), 0)
    K = ca.vertcat(*[e.feedback for e in equations])
    pivots = ca.diag(_factors(ca.SX.eye(n) - K))
    Q = _iterated(equations)
    left, _, most = _all_at(equations, Q)
    missed = ca.logic_not(ca.mmax(ca.fabs(left) / (most + TINY_LOAD)) <= RESIDUAL)
    return Q, ca.vertcat(ca.logic_not(pivots > 0), missed)


def _closed_form(e: _Equation) -> tuple[ca.SX, ca.SX]:
    """The friction -c L of one joint, L >= 0 from (1 - |c G|^2) L^2 + 2 c w.G L - |w|^2 = 0; and 1 - |c G|^2."""
    (size,), (w,), (G,) = e.sizes, e.base, e.turned
    c, weight = e.factor * size, ca.sumsqr(w) + TINY_LOAD**2
    half, room = c * ca.dot(w, G), 1 - c**2 * ca.sumsqr(G)
    return -c * weight / (half + ca.sqrt(half**2 + room * weight)), room


def _iterated(equations: Sequence[_Equation]) -> ca.SX:
    """(n, 1) Q after ITERATIONS of Newton."""
    Q = ca.SX.zeros(len(equations), 1)
    for _ in range(ITERATIONS):
        left, slopes, _most = _all_at(equations, Q)
        Q = Q - _solve(_factors(slopes), left)
    return Q


def _all_at(equations: Sequence[_Equation], Q: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
    """(n, 1) the residuals of all equations, (n, n) their slopes, and (n, 1) the largest frictions."""
    values, slopes, most = zip(*[e.at(Q) for e in equations], strict=True)
    return ca.densify(ca.vertcat(*values)), ca.densify(ca.vertcat(*slopes)), ca.vertcat(*most)


def _factors(A: ca.SX) -> ca.SX:
    """(n, n) L and U of A = L U in one matrix, without pivoting: L with ones on its diagonal, which is not stored."""
    A = ca.densify(A)
    for i in range(A.shape[0]):
        for j in range(i + 1, A.shape[0]):
            A[j, i] = A[j, i] / A[i, i]
            A[j, i + 1 :] = A[j, i + 1 :] - A[j, i] * A[i, i + 1 :]
    return A


def _solve(LU: ca.SX, b: ca.SX) -> ca.SX:
    """(n, 1) x with A x = b for the factors of A."""
    n, x = LU.shape[0], ca.densify(b)
    for i in range(n):
        x[i] -= sum((LU[i, j] * x[j] for j in range(i)), ca.SX(0))
    for i in reversed(range(n)):
        x[i] = (x[i] - sum((LU[i, j] * x[j] for j in range(i + 1, n)), ca.SX(0))) / LU[i, i]
    return x


def meanings(m: Mechanism) -> tuple[str, ...]:
    """The meaning of each fault of `JointLosses`, in order."""
    losses = losses_of(m)
    joints = [
        f"joint {f.joint!r}: its friction {f.name!r} follows its load so strongly that there is no motion, or several "
        "(Painleve): lower the coefficient, or move what presses on the joint"
        for f in losses
    ]
    rest = "friction that follows loads: its iterations did not converge; lower the coefficients, or take one joint less"
    return (*joints, rest) if losses else ()


def check_solved(m: Mechanism, faults: np.ndarray, t: Any) -> None:
    """Raise RunError, naming joint, time and run, if friction has no solution or several.   faults: (..., n + 1, 1) numbers."""
    flat = faults.reshape(-1, faults.shape[-2]) != 0
    if flat.any():
        run, fault = (int(x[0]) for x in np.nonzero(flat))
        when = float(np.ravel(t)[run % np.size(t)])
        where = f", run {run}" if len(flat) > 1 else ""
        raise RunError(f"{meanings(m)[fault]} (t = {when:g} s{where})")


@remembered(64)
def check_unique(m: Mechanism) -> bool:
    """True. Raises ModelError: redundant constraints share a load that friction follows, so that it is not unique."""
    T = shared(m)
    if not T.A.shape[0]:
        return True
    losses = losses_of(m)
    loads, combinations = _JointLoads(T, losses), vanishing_combinations(T).T
    columns = {f"{i} {k}": x[:, 1:] for i, f in enumerate(losses) for k, x in enumerate(loads.columns(f))
               if not levers(f)[k].is_zero()}  # fmt: skip
    shared_by = at_generic_states(m, {key: x @ combinations for key, x in columns.items()}, on_constraints=True)
    sizes = at_generic_states(m, columns, on_constraints=True)
    for key, x in shared_by.items():
        size = np.linalg.norm(sizes[key], axis=(1, 2))[:, None, None]
        if not vanishing(x, np.maximum(size, np.finfo(float).tiny)).answer.all():
            f = losses[int(key.split()[0])]
            raise ModelError(
                f"force {f.name!r}: redundant constraints share the load of joint {f.joint!r}, so its friction is not "
                "determined; leave out what holds the same motion twice, or take joint_friction"
            )
    return True
