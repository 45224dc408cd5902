"""Inputs of smallest weighted norm that produce a requested motion, whichever joints are actuated.

A generalised force tau and inputs u produce the same motion if B u = tau + W Q^T nu for some nu, where Q are the orthonormal
constraint rows in mass-weighted coordinates. Only the reaction then differs, by -nu. The remaining freedom minimises u^T R u.
[aghili05 (45) (46) (53)-(62)]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.control.law import motor_matrix, with_no_wrench
from pfaffian.dynamics.motion import RANK_TOLERANCE, weighted_rows
from pfaffian.errors import ModelError, nearest, plural
from pfaffian.maths import qp
from pfaffian.maths.linear import Orthogonal, null_space, orthogonalise
from pfaffian.maths.nearest_in_plane import DIMENSIONS, nearest_between
from pfaffian.maths.spare import smallest_and_spare
from pfaffian.maths.tree_factor import multiply_W, solve_W
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.model.number import interval, named_float, several, vector
from pfaffian.terms.pfaffian import row_names
from pfaffian.terms.terms import Terms

STRUCTURAL = 1e-9
"""A constraint row counts for controllability while orthonormalisation leaves more than this part of its length. Thus
no actuator is reported as missing while the motion passes a singular configuration, where a row is left out for a moment.
"""

UNCONTROLLABLE = (
    "uncontrollable with these actuators at this configuration: some motion that the constraints leave free has no actuator; "
    "actuate another joint or keep away from this configuration; control.concurrent steers a machine that floats"
)
BEYOND_LIMITS = (
    "the requested motion is beyond the limits of the actuators, however they share it: request a slower one, widen the "
    "limits, or leave them out and let Scheme(saturate=True) cut the inputs"
)
FORCE_UNREACHABLE = (
    "the requested constraint force is out of reach of these actuators: actuate more joints or control fewer rows"
)


_NOTHING = ca.SX(0, 1)
_NEVER = ca.SX(0)


class Allocation(NamedTuple):
    """Inputs for a requested motion, and whether they produce it.

    u: (nu, 1).   uncontrollable, unreachable: (1, 1) nonzero where u cannot produce the motion or the reaction.
    spare: (k, motors) directions of R^1/2 u that change neither, as rows that are orthonormal or zero.
    beyond: (1, 1) nonzero where no u within limits produces the motion.
    proof: (motors, 1) the weights c of a contradiction, where one shows this: c^T u is the same for every u that produces the
        motion, and larger than within the limits; else zero.
    tau: (nv, 1) the generalised force of the motion, less its part along idle motions.
    """

    u: ca.SX
    uncontrollable: ca.SX
    unreachable: ca.SX
    spare: ca.SX
    beyond: ca.SX = _NEVER
    proof: ca.SX = _NOTHING
    tau: ca.SX = _NOTHING


class _Reaction(NamedTuple):
    """The requested reaction: rows (k, nv) of its directions in y, and its value (k, 1) along them."""

    rows: ca.SX
    value: ca.SX


def weights(m: Mechanism, weight: Any = None) -> ca.SX:
    """(motors, 1) positive weights R of u^T R u; ones if None. Raises ModelError: a wrong count or a weight not above zero."""
    if weight is None:
        return ca.SX.ones(len(m.actuators), 1)
    R = vector(weight, len(m.actuators), "weight, one for each actuator")
    if not (m.value(R) > 0).all():
        raise ModelError("weight: every actuator needs a weight above zero")
    return R


def input_limits(m: Mechanism, limits: Any) -> np.ndarray:
    """(motors, 2) lowest and highest input of each actuator; "actuators" stands for the limits of the mechanism's actuators.

    Rows for wrenches are accepted and left out. Raises ModelError: a value of another form, limits of which none is finite, or
    low above high.
    """
    count = len(m.actuators)
    if isinstance(limits, str) and limits == "actuators":
        limits = m.u_limits[:count]
    rows = list(limits) if several(limits) else []
    if len(rows) not in (count, m.nu):
        raise ModelError(
            f'limits: give "actuators" for their declared limits, or (low, high) for each of {plural(count, "actuator")}; '
            "control.prototype_tracking also takes a pair (W, l) with W u <= l"
        )
    pairs = [interval(pair, f"limits of {name}") for pair, name in zip(rows, m.motor_names, strict=False)]
    if not np.isfinite(pairs).any():
        raise ModelError("limits: none of them is finite; give the actuators limits=(low, high), or omit limits")
    return np.array(pairs)


def length_weights(m: Mechanism, length: float) -> np.ndarray:
    """Weights that make the forces and moments of actuators comparable, by a characteristic length. [aghili05 (47) (48)]

    Args:
        m: the mechanism.
        length: characteristic length [m], above zero; a moment counts as the force that produces it with this lever arm.
    Returns:
        (motors,) 1 for actuators in N, 1 / length^2 for those in N m; pass it to a law as `weight`.
    Raises ModelError: a length not above zero.

    Example:
        >>> import pfaffian as pf
        >>> from pfaffian import control
        >>> arm = pf.joint("arm", "revolute", "world", "arm", axis=(0, 0, 1))
        >>> rail = pf.joint("rail", "prismatic", "arm", "cart", axis=(1, 0, 0))
        >>> motors = [pf.actuator("turn", "arm"), pf.actuator("slide", "rail")]
        >>> m = pf.mechanism("crane", [pf.body("arm", 1.0), pf.body("cart", 2.0)], [arm, rail], actuators=motors)
        >>> control.length_weights(m, length=0.5)
        array([4., 1.])
    """
    as_mechanism(m)
    if not named_float(length, "the characteristic length") > 0:
        raise ModelError(f"the characteristic length must be positive, got {length!r}")
    return np.array([1.0 if unit == "N" else length**-2 for unit in m.u_units[: len(m.actuators)]])


def allocate(
    terms: Terms,
    tau: ca.SX,
    weight: ca.SX,
    chosen: Sequence[int] = (),
    lam: ca.SX = _NOTHING,
    limits: np.ndarray | None = None,
    idle: int = 0,
    wish: ca.SX | None = None,
) -> Allocation:
    """Inputs of smallest u^T R u that produce the motion of the generalised force tau (nv, 1), within limits if given.

    In addition to the reaction to tau, the chosen constraint rows carry the multipliers lam (chosen, 1), as far as possible;
    the motion has priority. Inputs of wrenches are zero.

    weight: (motors, 1) diagonal of R.   limits: (motors, 2).   idle: number of motions that are left to themselves, see
    `idle_motions`.   wish: (motors, 1) inputs from which u differs least instead of from zero.

    Raises ModelError: the mechanism has no actuators.
    """
    m = terms.mechanism
    if not m.actuators:
        raise ModelError(f"mechanism {m.name!r} has no actuators; add some, or use actuate_all")
    B = motor_matrix(terms)
    direct = _direct(B)
    if direct is not None and len(direct) == m.nv:
        answer = _by_multipliers(terms, B, direct, tau, weight, chosen, lam)
    else:
        rows = weighted_rows(terms, ca.SX(terms.A.shape[0], 0))
        tau = _without_idle(terms, rows, B, tau) if idle else tau
        Q, Lam = controlled_directions(terms, chosen) if chosen else (ca.SX(0, m.nv), ca.SX(0, m.nv))
        reaction = -(Q @ Lam.T @ lam)
        goal = _Reaction(Q, reaction)
        if direct is None:
            answer = _by_motion(terms, rows, B, tau, weight, goal, idle)
        else:
            answer = _by_reaction(terms, rows, B, direct, tau, weight, goal, idle)
    if wish is not None:
        part = answer.spare @ (ca.sqrt(weight) * wish)
        answer = answer._replace(u=answer.u + (answer.spare.T @ part) / ca.sqrt(weight))
    if limits is not None:
        answer = _within(answer, weight, limits)
    return answer._replace(u=with_no_wrench(terms, answer.u), tau=tau)


def _within(answer: Allocation, weight: ca.SX, limits: np.ndarray) -> Allocation:
    """The nearest inputs within limits (motors, 2): the answer without limits, plus the shortest step along `spare`."""
    spare_part = ca.sum1(answer.spare**2).T
    Y = ca.diag((spare_part > RANK_TOLERANCE**2) / ca.sqrt(weight)) @ answer.spare.T
    k = answer.spare.shape[0]
    if k in DIMENSIONS:
        room = [[x - answer.u[i] if np.isfinite(x) else None for i, x in enumerate(side)] for side in limits.T.tolist()]
        found = nearest_between(Y, *room)
        u = _cut(answer.u + Y @ found.z, limits)  # the rounding of the sum
        return answer._replace(u=u, beyond=ca.logic_not(found.solved), proof=found.proof)
    low, high = (np.flatnonzero(np.isfinite(x)) for x in limits.T)
    W = ca.vertcat(Y[high.tolist(), :], -Y[low.tolist(), :])
    left = ca.vertcat(limits[high, 1] - answer.u[high.tolist()], answer.u[low.tolist()] - limits[low, 0])
    rows = (high.tolist(), low.tolist())
    if not k:
        beyond = ca.logic_not(ca.mmin(left) >= 0)
        return answer._replace(beyond=beyond, proof=_by_input(left == ca.mmin(left), rows, len(limits)) * beyond)
    step = qp.nearest(ca.SX.eye(k), ca.SX.zeros(k), W, left)
    proof = _by_input(step.y, rows, len(limits)) * (step.status == qp.INFEASIBLE)
    return answer._replace(u=answer.u + Y @ step.u, beyond=step.status != qp.SOLVED, proof=proof)


def _cut(u: ca.SX, limits: np.ndarray) -> ca.SX:
    """The inputs u (motors, 1) without what exceeds the limits (motors, 2), where these are finite."""
    cut = ca.densify(u)
    for i, (low, high) in enumerate(limits.tolist()):
        cut[i] = ca.fmax(cut[i], low) if np.isfinite(low) else cut[i]
        cut[i] = ca.fmin(cut[i], high) if np.isfinite(high) else cut[i]
    return cut


def _by_input(y: ca.SX, rows: tuple[list[int], list[int]], motors: int) -> ca.SX:
    """(motors, 1) the multipliers y of upper limits less those of lower limits.   rows: inputs with each of these."""
    (high, low), found = rows, ca.SX.zeros(motors, 1)
    found[high, 0] += y[: len(high), 0]
    found[low, 0] -= y[len(high) :, 0]
    return found


def _direct(B: ca.SX) -> list[int] | None:
    """Index of the velocity that each input drives, if each drives one velocity that no other input drives; else None."""
    driven, inputs = B.sparsity().get_triplet()
    alone = list(inputs) == list(range(B.shape[1])) and len(set(driven)) == len(driven)
    return list(driven) if alone else None


def _by_multipliers(
    terms: Terms, B: ca.SX, driven: list[int], tau: ca.SX, weight: ca.SX, chosen: Sequence[int], lam: ca.SX
) -> Allocation:
    """Allocation in terms of multipliers, where each input drives a velocity of its own and no velocity is passive.

    B u = tau - A^T lam has a solution for any lam. The multipliers of rows not chosen are free and reduce the inputs; every
    motion and reaction can be produced.
    """
    others = [i for i in range(terms.A.shape[0]) if i not in chosen]
    scale = ca.sqrt(weight) / ca.vertcat(*[B[i, j] for j, i in enumerate(driven)])
    free = terms.A[others, driven] @ ca.diag(scale)
    size = ca.densify(terms.row_size[others, 0])
    saved = orthogonalise(free, ca.SX(len(others), 0), RANK_TOLERANCE, size, groups=terms.row_groups(others))
    spent = scale * (tau - terms.A[list(chosen), :].T @ lam)[driven, 0]
    u = (spent - saved.Q.T @ (saved.Q @ spent)) / ca.sqrt(weight)
    return Allocation(ca.densify(u), _NEVER, _NEVER, saved.Q)


def _by_reaction(
    terms: Terms,
    rows: Orthogonal,
    B: ca.SX,
    driven: list[int],
    tau: ca.SX,
    weight: ca.SX,
    goal: _Reaction,
    idle: int,
) -> Allocation:
    """Allocation in terms of nu (one for each constraint row), where each input drives a velocity of its own.

    nu must first make the forces on passive velocities zero and then give the requested reaction. The freedom that remains
    reduces the inputs.
    """
    n, F = terms.M.shape[0], terms.factor
    passive = [i for i in range(n) if i not in driven]
    E = ca.horzcat(ca.SX(n, 0), *[multiply_W(F, rows.Q[i, :].T) for i in range(rows.Q.shape[0])])
    G = ca.densify(ca.vertcat(E[passive, :], goal.rows @ rows.Q.T))
    rhs = ca.densify(ca.vertcat(-tau[passive, 0], goal.value))
    # Rows of E are measured relative to the inertia of the passive coordinate, part of which the constraints must carry.
    size = ca.vertcat(ca.sum2(E[passive, :] ** 2) / ca.diag(terms.M)[passive, 0], ca.SX.ones(goal.rows.shape[0], 1))
    solved = orthogonalise(G, rhs, RANK_TOLERANCE, ca.densify(size))
    nu = solved.Q.T @ solved.D
    scale = ca.sqrt(weight) / ca.vertcat(*[B[i, j] for j, i in enumerate(driven)])
    spent, free = scale * (tau + E @ nu)[driven, 0], ca.diag(scale) @ E[driven, :]
    spared = ca.densify((free - (free @ solved.Q.T) @ solved.Q).T)
    k = spared.shape[0]
    rest = orthogonalise(spared, ca.SX(k, 0), RANK_TOLERANCE, ca.sum2(spared**2) * k / ca.sumsqr(free))
    u = (spent - rest.Q.T @ (rest.Q @ spent)) / ca.sqrt(weight)
    lost = len(passive) - ca.sum1(solved.independent[: len(passive), 0])
    missed = (G @ nu - rhs)[len(passive) :, 0]
    size = ca.sumsqr(goal.rows @ solve_W(F, tau)) + ca.sumsqr(goal.value)
    return Allocation(ca.densify(u), _uncontrollable(rows, lost, idle), ca.sumsqr(missed) > 1e-12 * size, rest.Q)


def _by_motion(terms: Terms, rows: Orthogonal, B: ca.SX, tau: ca.SX, weight: ca.SX, goal: _Reaction, idle: int) -> Allocation:
    """Allocation from P_y W^-1 (B u - tau) = 0 with P_y = I - Q^T Q, for any B, at a higher cost."""
    F, scale = terms.factor, 1 / ca.sqrt(weight)
    B, requested = solve_W(F, B) @ ca.diag(scale), solve_W(F, tau)
    G = ca.densify(ca.vertcat(_free(rows, B), goal.rows @ B))
    rhs = ca.densify(ca.vertcat(_free(rows, requested), goal.rows @ requested + goal.value))
    n = B.shape[0]
    if not rows.Q.shape[0] and not idle and n <= B.shape[1]:
        found = smallest_and_spare(G, rhs, RANK_TOLERANCE, ca.sum2(G * G) / (ca.sumsqr(B) / n))
        return Allocation(scale * found.x, _uncontrollable(rows, n - ca.sum1(found.independent), idle), _NEVER, found.spare)
    solved = orthogonalise(G, rhs, RANK_TOLERANCE, ca.sum2(G * G) / (ca.sumsqr(B) / n))
    x = solved.Q.T @ solved.D
    lost = n - rows.rank - ca.sum1(solved.independent[:n, 0])
    unreachable = ca.sumsqr((G @ x - rhs)[n:, 0]) > 1e-12 * ca.sumsqr(rhs[n:, 0])
    # No more directions are spare than inputs are left over where all motions can be produced.
    most = max(min(B.shape[1] - n + rows.Q.shape[0] + idle, B.shape[1]), 0)
    spare = null_space(solved.Q, RANK_TOLERANCE)[0][:most, :]
    return Allocation(scale * x, _uncontrollable(rows, lost, idle), unreachable, spare)


def _uncontrollable(rows: Orthogonal, lost: ca.SX, idle: int) -> ca.SX:
    """Whether more motions lack an actuator than are idle and than constraint rows are left out for a moment (see STRUCTURAL).

    lost: (1, 1) number of motions without an actuator.
    """
    structural = ca.sum1(rows.left > STRUCTURAL**2) if rows.left.numel() else ca.SX(0)
    return lost - (structural - rows.rank) > 0.5 + idle


def _without_idle(terms: Terms, rows: Orthogonal, B: ca.SX, tau: ca.SX) -> ca.SX:
    """The generalised force tau (nv, 1) less its part along motions that neither constraints nor motors determine.

    These are left to themselves. The others stay the same, as the parts are orthogonal in the metric of M.
    """
    F = terms.factor
    B, y = solve_W(F, B), solve_W(F, tau)
    free = _free(rows, B)
    driven = orthogonalise(
        free.T, ca.SX(B.shape[1], 0), RANK_TOLERANCE, (ca.sum1(free**2) / ca.sum1(B**2)).T, groups=[[*range(B.shape[1])]]
    )
    return ca.densify(multiply_W(F, rows.Q.T @ (rows.Q @ y) + driven.Q.T @ (driven.Q @ y)))


def _free(rows: Orthogonal, X: ca.SX) -> ca.SX:
    """Projection of the columns of X onto the null space of the constraint rows."""
    return X - rows.Q.T @ (rows.Q @ X)


def chosen_rows(terms: Terms, rows: Sequence[str]) -> list[int]:
    """Indices of named rows. Raises ModelError: an unknown name."""
    names = row_names(terms.kinematics)
    for name in rows:
        if name not in names:
            raise ModelError(f"there is no constraint row {name!r}; {nearest(name, names)}")
    return [names.index(name) for name in rows]


def controlled_directions(terms: Terms, chosen: Sequence[int]) -> tuple[ca.SX, ca.SX]:
    """The chosen constraint rows in y, A W^-T: first orthonormal and orthogonal to the other rows, then as they are."""
    others = [i for i in range(terms.A.shape[0]) if i not in chosen]
    Lam = solve_W(terms.factor, terms.A.T).T
    order, k = [*others, *chosen], len(others)
    first = terms.row_groups(others) or [[i] for i in range(k)]
    second = terms.row_groups(chosen) or [[i] for i in range(len(chosen))]
    groups = [*first, *[[k + i for i in group] for group in second]]
    size, none = terms.row_size[order, 0], ca.SX(len(order), 0)
    rows = orthogonalise(Lam[order, :], none, RANK_TOLERANCE, size, terms.counted, groups=groups)
    last = [i for i, step in enumerate(rows.steps) if step.picked[0][0] >= k]
    return rows.Q[last, :], Lam[chosen, :]
