"""Friction of joints in proportion to the loads that they carry, solved together with the motion on which these depend.

The motion is affine in the friction Q of the joints: the components w_i of the reaction that press on joint i are w_i0 + G_i Q.
At the rate s of a joint, friction is smooth, or holds it if it can; the equations are in `load_equations`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.dynamics.load_equations import Equation, friction
from pfaffian.dynamics.motion import Motion, shortest_change
from pfaffian.dynamics.multipliers import by_least_norm, vanishing_combinations
from pfaffian.dynamics.reaction import TransmittedWrenches
from pfaffian.errors import ModelError, RunError
from pfaffian.maths.margins import exceeding
from pfaffian.maths.tree_factor import multiply_W, solve_W, solve_WT
from pfaffian.model.force import Thruster, Transmission
from pfaffian.model.load_loss import GEAR, GUIDE, PIN, SCREW, LoadLoss
from pfaffian.model.mechanism import Mechanism
from pfaffian.terms.generic_states import at_generic_states, tell
from pfaffian.terms.terms import FOLLOWING, LOAD_LOSSES, JointLosses, Terms, shared
from pfaffian.terms.traced_now import remembered
from pfaffian.terms.wrenches import turn

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
    slides = [_side(T, f, a) for f in losses]
    values, faults = friction(_equations(T, losses, pressing, base, ca.jacobian(parts, Q), slides, [None] * len(losses)))
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
    lam = by_least_norm(T).solve(multiply_W(F, correction)) if change.rows is None else change.basic_combination(off)
    return _Responses(solve_WT(F, y + correction), lam, correction)


def _solved(T: Terms, losses: Sequence[LoadLoss], E: ca.SX, of: _Responses) -> JointLosses:
    """The friction, and the motion under it.   E: (nv, n) forces along v for a unit of each friction."""
    n, loads = len(losses), _JointLoads(T, losses)
    at = ca.densify(ca.vertcat(of.a, of.lam, ca.horzcat(ca.SX.zeros(n, 1), ca.SX.eye(n))))
    pressing = [loads.pressing(f, i) for i, f in enumerate(losses)]
    parts = ca.densify(ca.vertcat(*[part for x in pressing for part in x.parts]))
    base, changes = ca.substitute(parts, loads.motion, at[:, 0]), ca.jtimes(parts, loads.motion, at[:, 1:])
    slides = [_side(T, f, None) for f in losses]
    Q, faults = friction(_equations(T, losses, pressing, base, changes, slides, _rests(T, losses, E, of.a)))
    v_dot, correction = (ca.densify(x[:, 0] + x[:, 1:] @ Q) for x in (of.a, of.correction))
    return JointLosses(tuple(f.joint for f in losses), Q, ca.densify(E @ Q), faults, (v_dot, correction))


def _equations(
    T: Terms, losses: Sequence[LoadLoss], pressing: Sequence[Pressing], base: ca.SX, changes: ca.SX, slides: Sequence[ca.SX],
    rests: Sequence[tuple[ca.SX, ca.SX] | None],
) -> list[Equation]:  # fmt: skip
    """The equations of all losses.   base: (parts, 1) what presses on the joints without friction, all parts in a column.
    changes: (parts, n) its change for a unit of each friction.   slides: `_side` of each loss.   rests: as in `Equation`."""
    found, first = list[Equation](), 0
    for i, (f, x, side, rest) in enumerate(zip(losses, pressing, slides, rests, strict=True)):
        ends = [*accumulate((part.numel() for part in x.parts), initial=first)]
        at = [slice(*ends[k : k + 2]) for k in range(len(x.parts))]
        first, w = ends[-1], tuple(base[k, 0] for k in at)
        found.append(Equation(i, _coefficient(T, f, w) * side, x.sizes, w, tuple(changes[k, :] for k in at), rest))
    return found


CERTAIN = 1e-8
"""Fraction of `smooth` below which the speed of a joint that friction could hold is rounding."""


def _side(T: Terms, f: LoadLoss, a: ca.SX | None) -> ca.SX:
    """(1, 1) the share of the largest friction that a joint has, with the sign of its motion: sigma(s), with sticking 1.

    a: (nv, 1) the acceleration if it is given. Friction that sticks then does not decide whether the joint moves: it is at its
    limit where the motion is not the one in which friction holds, and zero where it is.
    """
    if f.settle is None:
        s, width = T.kinematics.joint_rate(f.joint), f.smooth
    elif a is None:
        return ca.SX(1)
    else:
        s, width = f.settle * _settling(T, f, a), CERTAIN * f.smooth
    return s / ca.sqrt(s**2 + width**2)


def _coefficient(T: Terms, f: LoadLoss, base: Sequence[ca.SX]) -> ca.SX:
    """(1, 1) mu at the rate of the joint.   base: what presses on it without friction, of a gear the force of the motors."""
    s = T.kinematics.joint_rate(f.joint)
    if f.carrier == GEAR:
        return ca.if_else(base[0] * s > 0, 1 - f.sliding, 1 / f.static - 1)
    return f.sliding + (f.static - f.sliding) * ca.exp(-((s / f.stribeck) ** 2))


LEAST_MOBILITY = 1e-12
"""A joint whose rate friction changes by less than this fraction of what it would without constraints is driven by these."""


def _rests(T: Terms, losses: Sequence[LoadLoss], E: ca.SX, a: ca.SX) -> list[tuple[ca.SX, ca.SX] | None]:
    """The rates that vanish where friction holds, as in `Equation`; None where it does not stick.

    E: (nv, n) forces along v for a unit of each friction.   a: (nv, 1 + n) accelerations without friction, and for a unit of
    each.
    """
    found = list[tuple[ca.SX, ca.SX] | None]()
    for i, f in enumerate(losses):
        if f.settle is None:
            found.append(None)
            continue
        change = ca.jacobian(T.kinematics.joint_rate(f.joint), T.v) @ a[:, 1:]
        mobility = ca.fmax(change[i], LEAST_MOBILITY * ca.sumsqr(solve_W(T.factor, E[:, i])))
        found.append((_settling(T, f, a[:, 0]) / mobility, change / mobility))
    return found


def _settling(T: Terms, f: LoadLoss, a: ca.SX) -> ca.SX:
    """(1, 1) s_dot + s / settle at an acceleration a (nv, 1), which vanishes where friction holds the joint.

    In constraints that let the machine rest, s_dot is without what the rows cause at the present velocity: it vanishes at rest,
    and elsewhere several joints that share one motion could not settle in the same time.
    """
    assert f.settle is not None
    s, at_rest = T.kinematics.joint_rate(f.joint), ca.SX.zeros(T.v.numel(), 1)
    along = ca.jacobian(s, T.v)
    if T.A.shape[0] and not ca.sparsify(ca.substitute(T.rows.eta, T.v, at_rest)).nnz():
        s_dot = along @ (a - _responses(T, ca.SX(*at_rest.shape), ca.densify(T.b)).a)
    else:
        s_dot = along @ a + ca.jtimes(s, T.q, T.kinematics.q_dot)
    return s_dot + s / f.settle


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
        local = turn(_axes_along(G.R).T, X)
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


def _axes_along(R: ca.SX) -> ca.SX:
    """(3, 3) axes with the third of R, in which forces need no rotation where this one is fixed: sizes across it are alike in
    all of them."""
    z = ca.sparsify(R[:, 2])
    if not z.is_constant():
        return R
    n = np.array(ca.DM(z)).ravel()
    x = np.cross(np.eye(3)[np.argmin(np.abs(n))], n)
    x /= np.linalg.norm(x)
    return ca.SX(ca.sparsify(ca.DM(np.column_stack([x, np.cross(n, x), n]))))


def motor_force(T: Terms, joint: str) -> ca.SX:
    """(1, 1) the force of all motors along a joint of one velocity."""
    m, total = T.mechanism, ca.SX(0)
    for a in m.actuators:
        if not isinstance(a, Thruster):
            gears = a.gears if isinstance(a, Transmission) else a.gear
            total += sum((gears[n] * T.u[m.u_names.index(a.name)] for n, (j, _) in enumerate(a.ends) if j == joint), ca.SX(0))
    return total


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
    expressions = columns | {f"shared {key}": x @ combinations for key, x in columns.items()}
    at = at_generic_states(m, expressions | {"rank": shortest_change(T).rank}, on_constraints=True)
    # A branch on which a machine folds, such as a scissor lift with its arms along each other, has fewer independent rows.
    usual = at["rank"].ravel() == at["rank"].max()
    for key in columns:
        f, size = losses[int(key.split()[0])], np.linalg.norm(at[key][usual], axis=(1, 2))[:, None, None]
        relative = np.abs(at[f"shared {key}"][usual]) / np.maximum(size, np.finfo(float).tiny)
        question = f"whether redundant constraints share the load of joint {f.joint!r}"
        if tell(m, question, exceeding(relative)).any():
            raise ModelError(
                f"force {f.name!r}: redundant constraints share the load of joint {f.joint!r}, so its friction is not "
                "determined; leave out what holds the same motion twice, or take joint_friction"
            )
    return True
