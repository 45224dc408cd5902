"""Concurrent control of a base and its arms: outputs on Lie groups follow references of their own. [chhabra14 ch. 5]

An output r is the pose, the attitude or the position of a body, of the base as of any end effector, and all together are a
point of a product of SE(3), SO(3), R^n, and in the plane SE(2) and SO(2). With body velocities V = r^-1 r_dot = E J v and
eta = gamma^-1 gamma_dot,

    r_e = r^-1 gamma,    xi_e = log r_e,    v_e = V - Ad(r_e) eta,                                        (5.2), (5.4.34)
    nu = I^-1 [Theta^-T K_P xi_e - K_D v_e] - [V, Ad(r_e) eta] + Ad(r_e) eta_dot,                         (5.4.32)-(5.4.33)
    u = D^+ [nu - drift],    D = E J S,    drift = E J a + E J_dot v,                                     (5.4.30)

where v_dot = a + S u on the constraints, and Theta = int_0^1 exp(x ad xi_e) dx is the left differential of exp. Momentum that
is kept and wheels that roll are in a and S, so that D is the generalised Jacobian times an inertia: nothing has to be reduced
first. Then V_L = <K_P xi_e, xi_e> / 2 + <I v_e, v_e> / 2 falls as V_L_dot = -<K_D v_e, v_e>.                       (5.4.35)

More motors than outputs leave motions open. The smallest inputs, D^+, are indifferent to them, and light wrists then spin; with
a damping d the motion is the one nearest to v_dot = -d v instead, in the metric of inertia, of all that give the outputs:

    O u = D^T y - S^T M (a + d v),    y = (D O^-1 D^T)^-1 [nu - drift + D O^-1 S^T M (a + d v)],    O = B^T S,

which spares what is heavy: arms swing before wheels turn. With weights W it is the rates r = B^T v along the motors that come
nearest to r_dot = -d r in the metric of W, by the generalised Jacobian G = D O^-1:

    O u = W^-1 G^T y - B^T (a + d v),    y = (G W^-1 G^T)^-1 [nu - drift + G B^T (a + d v)].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.control.allocation import weights
from pfaffian.control.law import Command, Control, Reason, maker, motor_matrix, with_no_wrench
from pfaffian.control.prototype import accelerations
from pfaffian.control.reason import mainly
from pfaffian.control.reference import Reference, function_of_time, set_point
from pfaffian.dynamics.motion import RANK_TOLERANCE
from pfaffian.errors import ModelError, brief, nearest, plural
from pfaffian.maths import se3, so3
from pfaffian.maths.linear import NOTHING, handedness, orthogonalise, smallest, solve_definite, solve_semidefinite
from pfaffian.maths.roots import smallest_singular_value
from pfaffian.maths.subgroups import SUBGROUPS, Subgroup
from pfaffian.maths.tree_factor import solve_W
from pfaffian.model import shown
from pfaffian.model.body import WORLD
from pfaffian.model.mechanism import Mechanism, random_configuration
from pfaffian.model.number import at_defaults, matrix, scalar, several, vector
from pfaffian.terms.fresh import fresh, placed
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.terms import Terms

IN_GROUP = 1e-9
"""How far from R^T R = 1 a reference may be."""

HALF_TURN = 0.01
"""How near to half a turn [rad] an attitude error is said to have no one logarithm: it would jump to the other side there."""

TURNED = f"an attitude error is within {HALF_TURN:g} rad of half a turn, where it has two logarithms and the law no direction"
LOST = "the outputs are not within the inputs' reach here: the decoupling matrix has lost rank"


class Kind(NamedTuple):
    """Which part of a motion is an output.

    group: in the table of subgroups.   shape: of the matrix that says a point of it.
    pose: such a matrix -> (4, 4) within SE(3), c in the corner: 1, or 0 for a rate.
    part: R, p, J of a body -> those of the output, its twist J v along the axes of the group.   unit: of the error.
    still: entries of the twist that the body must not have, so that its motions are of the group.
    """

    group: str
    shape: tuple[int, int]
    pose: Callable[[ca.SX, float], ca.SX]
    part: Callable[[ca.SX, ca.SX, ca.SX], tuple[ca.SX, ca.SX, ca.SX]]
    unit: str
    still: tuple[int, ...] = ()


def _homogeneous(R: ca.SX, p: ca.SX, corner: float) -> ca.SX:
    return ca.SX(ca.blockcat([[R, p], [ca.SX(1, 3), ca.SX(corner)]]))


KINDS = {
    "pose": Kind("free", (4, 4), lambda X, c: X, lambda R, p, J: (R, p, J), "m, rad"),
    "attitude": Kind(
        "spherical", (3, 3), lambda X, c: _homogeneous(X, ca.SX(3, 1), c), lambda R, p, J: (R, ca.SX(3, 1), J), "rad"
    ),
    "position": Kind(
        "translation", (3, 1), lambda X, c: _homogeneous(c * ca.SX.eye(3), X, c),
        lambda R, p, J: (ca.SX.eye(3), p, ca.vertcat(R @ J[:3, :], ca.SX(3, J.shape[1]))), "m",
    ),
    "heading": Kind(
        "revolute", (2, 2), lambda X, c: _homogeneous(ca.diagcat(X, c), ca.SX(3, 1), c), lambda R, p, J: (R, ca.SX(3, 1), J),
        "rad", (3, 4),
    ),
    "planar pose": Kind(
        "planar", (3, 3), lambda X, c: _homogeneous(ca.diagcat(X[:2, :2], c), ca.vertcat(X[:2, 2], 0), c),
        lambda R, p, J: (R, ca.vertcat(p[:2], 0), J), "m, rad", (2, 3, 4),
    ),
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Output:
    """What shall follow a reference on a group of its own; made by `output`.

    body, seen_from: names.   kind: a key of `KINDS`.   at: (3,) point of the body [m].   axes: of a position, of 0, 1, 2.
    reference: of the matrix that says a point of the group, column by column.   stiffness K_P, damping K_D, inertia I: (k, k).
    """

    body: str
    seen_from: str
    kind: str
    at: ca.SX
    axes: tuple[int, ...]
    reference: Reference
    stiffness: ca.SX
    damping: ca.SX
    inertia: ca.SX

    @property
    def group(self) -> Subgroup:
        group = SUBGROUPS[KINDS[self.kind].group]
        return replace(group, along=self.axes) if self.kind == "position" else group

    @property
    def turning(self) -> list[int]:
        """Which of the k coordinates are those of a rotation vector."""
        return [i for i, axis in enumerate(self.group.axes) if axis >= 3]

    @property
    def names(self) -> tuple[str, ...]:
        """Of the k coordinates of the algebra."""
        return tuple(f"{self.body}.{'xyz'[i] if i < 3 else 'r' + 'xyz'[i - 3]}" for i in self.group.axes)

    def __repr__(self) -> str:
        seen = [] if self.seen_from == WORLD else [f"seen from {self.seen_from!r}"]
        return shown.words(self, f"{self.kind} of {self.body!r}", *seen)


def output(
    body: str, kind: str, reference: Any, *, stiffness: Any, damping: Any, inertia: Any = 1.0, at: Any = (0, 0, 0),
    axes: Sequence[int] = (0, 1, 2), seen_from: str = WORLD,
) -> Output:  # fmt: skip
    """What shall follow a reference: "pose" on SE(3), "attitude" on SO(3) or "position" in R^n; of a body that moves in the x y
    plane "planar pose" on SE(2) or "heading" on SO(2). [chhabra14 5.2]

    Args:
        body: whose.   kind: one of these five.   seen_from: the body, or the world, that it is the motion over.
        reference: gamma(t), a matrix: a function of t [s], a constant, or a Reference of its entries column by column; of a
            pose (4, 4) homogeneous [1, m], in the plane (3, 3), of an attitude (3, 3), a heading (2, 2), a position (n,) [m].
        stiffness K_P, damping K_D, inertia I: symmetric and positive definite on the algebra, [v; w] in this order and along
            the body's axes, of a position along those of `seen_from`: one number, k numbers, or (k, k). In units of I, K_P is
            in 1/s^2 and K_D in 1/s.
        at: (3,) point of the body whose position or pose it is [m].   axes: of a position, which of x, y, z.
    Raises ModelError: an unknown kind, gains that are not positive definite, a reference of another shape or of no rotation.
    """
    what = f"output {brief(kind)} of {brief(body)}"
    if not isinstance(body, str) or not isinstance(seen_from, str) or body == seen_from:
        raise ModelError(f"{what}: names of two different bodies are needed, got {brief(body)} and {brief(seen_from)}")
    if kind not in KINDS:
        raise ModelError(f"{what}: {nearest(kind, list(KINDS))}")
    rows: tuple[Any, ...] = tuple(axes) if several(axes) else (axes,)
    if not rows or sorted(set(rows)) != list(rows) or any(isinstance(i, bool) or i not in (0, 1, 2) for i in rows):
        raise ModelError(f"{what}: axes: some of 0, 1, 2 (x, y, z) in this order are needed, got {brief(axes)}")
    if kind != "position" and rows != (0, 1, 2):
        raise ModelError(f"{what}: axes are for a position")
    k, shape = (len(rows), (len(rows), 1)) if kind == "position" else (SUBGROUPS[KINDS[kind].group].nv, KINDS[kind].shape)
    goal = _reference(reference, shape, what)
    given = {"stiffness": stiffness, "damping": damping, "inertia": inertia}
    gains = {n: _definite(x, k, f"{what}: {n}") for n, x in given.items()}
    found = Output(body, seen_from, kind, vector(at, 3, f"{what}: at"), tuple(int(i) for i in rows), goal, **gains)
    _check_start(found, what)
    return found


def _reference(value: Any, shape: tuple[int, int], what: str) -> Reference:
    size = shape[0] * shape[1]
    if isinstance(value, Reference):
        goal = value
    elif callable(value):
        goal = function_of_time(lambda t: _shaped(value(t), shape, what), size)
    else:
        goal = set_point(ca.vertsplit(_shaped(value, shape, what)))
    if goal.size != size:
        raise ModelError(f"{what}: the reference has {goal.size} numbers where {shape[0]} x {shape[1]} are needed")
    return goal


def _shaped(value: Any, shape: tuple[int, int], what: str) -> ca.SX:
    """vec of a matrix. Raises ModelError: it has another shape."""
    X = ca.densify(matrix(value, f"{what}: reference"))
    if X.shape != shape:
        raise ModelError(f"{what}: the reference must be {shape[0]} x {shape[1]}, got {X.shape[0]} x {X.shape[1]}")
    return ca.vec(X)


def _definite(value: Any, k: int, what: str) -> ca.SX:
    """(k, k) symmetric positive definite."""
    X = matrix(value, what)
    if X.shape == (1, 1):
        X = X * ca.SX.eye(k)
    elif X.shape in ((k, 1), (1, k)):
        X = ca.diag(ca.vec(X))
    if X.shape != (k, k):
        raise ModelError(f"{what}: one number, {k} numbers or ({k}, {k}) are needed, got {X.shape}")
    numbers = at_defaults(X)
    if numbers is not None and not _is_definite(numbers):
        raise ModelError(f"{what}: must be symmetric and positive definite, got {brief(value)}")
    return ca.sparsify(ca.SX(X))


def _is_definite(X: np.ndarray) -> bool:
    return bool(np.abs(X - X.T).max() <= 1e-12 * np.abs(X).max() and np.linalg.eigvalsh(X)[0] > 0)


def _check_start(o: Output, what: str) -> None:
    """Raise ModelError unless the reference at t = 0 is of its group, as far as numbers tell."""
    X = None if o.reference.w_names else at_defaults(_goal(o, ca.SX(0), ca.SX(0, 1))[0])
    if X is None:
        return
    R = X[:3, :3]
    if np.abs(R.T @ R - np.eye(3)).max() > IN_GROUP or np.linalg.det(R) < 0 or np.abs(X[3] - [0, 0, 0, 1]).max() > IN_GROUP:
        raise ModelError(f"{what}: the reference at t = 0 is no {o.kind}: R^T R = 1 with determinant 1 is needed")


def _goal(o: Output, t: ca.SX, w: ca.SX) -> list[ca.SX]:
    """(4, 4) gamma, gamma_dot and gamma_ddot."""
    kind, found = KINDS[o.kind], []
    for x, corner in zip(o.reference.at(t, w), (1.0, 0.0, 0.0), strict=True):
        if o.kind == "position":
            full = ca.SX.zeros(3, 1)
            full[list(o.axes)] = x
            x = full
        found.append(kind.pose(ca.reshape(ca.SX(x), *kind.shape), corner))
    return found


class Moving(NamedTuple):
    """An output at a state.   R, p: its point of the group.   J, J_dot: (k, nv), V = J v."""

    R: ca.SX
    p: ca.SX
    J: ca.SX
    J_dot: ca.SX


def moving(k: Kinematics, o: Output) -> Moving:
    """r, and E J of V = r^-1 r_dot = E J v. [chhabra14 (5.3.20)]"""
    s = fresh(k)
    G, J = s.relative(o.body, o.seen_from)
    R, p, J = KINDS[o.kind].part(ca.SX(G.R), G.p + G.R @ o.at, se3.Ad_inv(ca.SX.eye(3), o.at) @ J)
    J = ca.densify(J[list(o.group.axes), :])
    J_dot = ca.reshape(ca.jtimes(ca.vec(J), s.q, s.q_dot), *J.shape)
    return Moving(*placed([R, p, J, J_dot], s, k))


def _check_in_group(o: Output, k: Kinematics) -> None:
    """Raise ModelError where the body has motions that are none of the output's group: looked for at one configuration."""
    still, m = list(KINDS[o.kind].still), k.mechanism
    if not still:
        return
    G, J = k.relative(o.body, o.seen_from)
    tilt = ca.SX(G.R)[2, 2] - 1
    f = ca.Function("still", [k.q, m.p_symbols], [ca.densify(J[still, :]), ca.densify(tilt)])
    q = random_configuration(m, np.random.default_rng(47))
    if max(np.abs(np.array(x)).max(initial=0.0) for x in f(q, m.p_defaults)) > IN_GROUP:
        raise ModelError(
            f"concurrent: {o.body!r} does not move in the x y plane of {o.seen_from!r}, so it has no {o.kind}; take its pose, "
            "attitude or position"
        )


class Servo(NamedTuple):
    """What the servo law makes of an output and its goal.

    nu: (k, 1) V_dot that it asks for.   error, rate: (k, 1) xi_e and v_e.   value: V_L.   decay: its rate, -<K_D v_e, v_e>.
    """

    nu: ca.SX
    error: ca.SX
    rate: ca.SX
    value: ca.SX
    decay: ca.SX


def servo(o: Output, R: ca.SX, p: ca.SX, V: ca.SX, goal: Sequence[ca.SX]) -> Servo:
    """The feed-forward servo law on the output's group. [chhabra14 theorem 5.4.2]

    R, p: the point r.   V: (k, 1) r^-1 r_dot.   goal: (4, 4) gamma, gamma_dot, gamma_ddot.
    """
    group = o.group
    axes, S = list(group.axes), group.S
    gamma, rate, bend = goal
    back = se3.homogeneous(*se3.inverse(gamma[:3, :3], gamma[:3, 3]))
    eta, bent = (se3.vee(x)[axes] for x in (back @ rate, back @ bend - (back @ rate) @ (back @ rate)))
    r_e = se3.compose(R.T, -(R.T @ p), gamma[:3, :3], gamma[:3, 3])
    xi_e, carry = ca.SX(group.log(*r_e)), (se3.Ad(*r_e) @ S)[axes, :]
    carried = carry @ eta
    v_e = V - carried
    pull = group.dexp_right_inv(-xi_e).T @ (o.stiffness @ xi_e) - o.damping @ v_e
    bracket = (se3.ad(S @ V) @ (S @ carried))[axes]
    nu = solve_definite(o.inertia, pull) - bracket + carry @ bent
    value = (ca.dot(xi_e, o.stiffness @ xi_e) + ca.dot(v_e, o.inertia @ v_e)) / 2
    return Servo(ca.densify(nu), ca.densify(xi_e), ca.densify(v_e), value, ca.SX(-ca.dot(v_e, o.damping @ v_e)))


def half_turn(o: Output) -> ca.SX:
    """The least V_L with which an error is half a turn: pi^2 / 2 times the smallest eigenvalue of what K_P leaves of rotations
    while the other coordinates give way. As long as V_L is below it, no error gets there. [chhabra14 theorem 5.4.2]"""
    turn, K = o.turning, ca.densify(o.stiffness)
    rest = [i for i in range(K.shape[0]) if i not in turn]
    S = K[turn, turn] - K[turn, rest] @ solve_definite(K[rest, rest], K[rest, turn]) if rest else K
    return np.pi**2 / 2 * smallest_singular_value(S)


class Decoupling(NamedTuple):
    """How the inputs move the outputs, V_dot = D u + drift.

    D: (k, motors).   drift: (k, 1).   reach: (k, motors) generalised Jacobian, outputs' velocities for rates along the motors
    at the momentum that is kept.   own: (motors, motors) O = B^T S, accelerations along the motors.
    mobility: (k, 1) of each output if everything were driven, E J M^-1 J^T E^T.   a: (nv, 1), S: (nv, motors) v_dot = a + S u.
    """

    D: ca.SX
    drift: ca.SX
    reach: ca.SX
    own: ca.SX
    mobility: ca.SX
    a: ca.SX
    S: ca.SX


def decoupling(terms: Terms, outputs: Sequence[Output]) -> Decoupling:
    """[chhabra14 (5.3.27)], by any formulation's a and S: v_dot = a + S u."""
    parts = [moving(terms.kinematics, o) for o in outputs]
    J, J_dot = (ca.vertcat(*x) for x in zip(*[(x.J, x.J_dot) for x in parts], strict=True))
    a, S = accelerations(terms)
    D, own = J @ S, motor_matrix(terms).T @ S
    reach = solve_semidefinite(ca.densify(own), ca.densify(D.T), RANK_TOLERANCE).x.T
    mobility = ca.sum1(solve_W(terms.factor, J.T) ** 2).T
    return Decoupling(ca.densify(D), J @ a + J_dot @ terms.v, reach, ca.densify(own), ca.densify(mobility), a, S)


UNITS = {"lyapunov": "(m or rad)^2/s^2", "lyapunov_rate": "(m or rad)^2/s^3", "sigma_min": "1", "basin": "1"}
"""Of what the law records beside errors."""


@maker
def concurrent(outputs: Sequence[Output], *, weight: Any = None, rest_damping: Any = None, rest_weight: Any = None) -> Control:
    """u = D^+ [nu - drift]: outputs of base and arms at once on SE(3), SO(3), R^n, SE(2), SO(2). [chhabra14 theorem 5.4.2]

    With as many inputs as coordinates of the outputs each error goes its own way, v_e_dot = nu - ..., whatever the others do,
    and V_L falls as -<K_D v_e, v_e>; with more inputs u is the smallest of those that do it, u^T R u, or with a
    `rest_damping` the one whose motion calms down. Bases without actuators, momentum that is kept, and wheels that roll are
    taken into account, and `pf.reduce` of the machine runs under the same law. Errors vanish whatever goes on inside, where
    no output sees it: `pf.zero_dynamics_along` asks that of a motion.

    Args:
        outputs: made by `output`.   weight: R, (motors,) positive numbers [1/N^2, 1/(N m)^2], ones if None.
        rest_damping: d [1/s] of motion that the outputs leave open: |v_dot + d v| in the metric of inertia is as small as they
            let it be, weight off the joints included, and R decides between motors that move the machine alike. None leaves
            that motion to the smallest inputs, which do not damp it: for a moment, or for motors that all have work to do.
        rest_weight: W, (motors,) positive numbers: with it |r_dot + d r| of the rates r along the motors, in the metric of W,
            is what is small. Low weights let reaction wheels carry what arms would; 1 / (highest rate)^2 is a fair choice.
    Records `output_error` xi_e, `velocity_error` v_e, output by output along the group's axes; `lyapunov` V_L and
    `lyapunov_rate`, in units of I; `sigma_min`, the smallest singular value of the generalised Jacobian, outputs' velocities
    over rates along the motors [m or rad per m or rad]. At zero it ends. `basin`, the largest V_L of an output that turns by
    its `half_turn`: below 1 all errors vanish exponentially.
    Stops a run: D has lost rank; the reason names the output, the motors and the configuration. An attitude error has come to
    half a turn; the reason names the output.
    Raises ModelError: no outputs, one twice, unknown bodies, more coordinates than actuators, an output that cannot move;
    a rest_weight without a rest_damping, or with motors that move the machine alike.
    """
    _check_outputs(outputs)
    names = tuple(name for o in outputs for name in o.names)
    d = None if rest_damping is None else scalar(rest_damping, "rest_damping")
    if d is None and rest_weight is not None:
        raise ModelError("concurrent: rest_weight says which motors a rest_damping spares; give that too, in 1/s")

    def law(terms: Terms, z: ca.SX, w: ca.SX, reaction: ca.SX) -> Command:
        m = terms.mechanism
        _check_count(m, names)
        R = weights(m, weight)
        asked, begin = [], 0
        for o in outputs:
            end = begin + len(o.reference.w_names)
            at = moving(terms.kinematics, o)
            _check_moves(o, at.J)
            _check_in_group(o, terms.kinematics)
            asked.append(servo(o, at.R, at.p, at.J @ terms.v, _goal(o, terms.t, w[begin:end, 0])))
            begin = end
        x = decoupling(terms, outputs)
        V_dot, spare = ca.vertcat(*[y.nu for y in asked]) - x.drift, len(m.actuators) > len(names)
        if d is None or not spare:
            u, rank, side = _least(m, x, V_dot, R)
        elif rest_weight is None:
            u, rank, side = _calm(terms, x, V_dot, d, R)
        else:
            u, rank, side = _calm_motors(terms, x, V_dot, d, _rest_weights(terms, x, rest_weight))
        signals = {
            "output_error": ca.vertcat(*[y.error for y in asked]),
            "velocity_error": ca.vertcat(*[y.rate for y in asked]),
            "lyapunov": sum((y.value for y in asked), ca.SX(0)),
            "lyapunov_rate": sum((y.decay for y in asked), ca.SX(0)),
            "sigma_min": smallest_singular_value(x.reach),
        }
        turned = [(o, y) for o, y in zip(outputs, asked, strict=True) if o.turning]
        signals["basin"] = ca.mmax(ca.vertcat(0, *[y.value / half_turn(o) for o, y in turned]))
        half = ca.mmax(ca.vertcat(0, *[ca.norm_2(y.error[o.turning, 0]) for o, y in turned])) > np.pi - HALF_TURN
        faults, sides = ca.vertcat(rank < len(names), half), ca.vertcat(side, 1)
        return Command(with_no_wrench(terms, u), ca.SX(0, 1), faults, signals, sides)

    error = ", ".join(dict.fromkeys(KINDS[o.kind].unit for o in outputs))
    units = UNITS | {"output_error": error, "velocity_error": f"({error}) / s"}
    w_names = tuple(name for o in outputs for name in o.reference.w_names)
    reasons = {LOST: _lost(outputs, names)} | ({} if w_names else {TURNED: _turned(outputs)})
    return Control(law, (), w_names, (LOST, TURNED), reasons=reasons, units=units)


class Share(NamedTuple):
    """u: (motors, 1).   rank: of D.   side: sign of det D where u is all that gives the outputs, else 1."""

    u: ca.SX
    rank: ca.SX
    side: ca.SX


def _least(m: Mechanism, x: Decoupling, V_dot: ca.SX, R: ca.SX) -> Share:
    """Smallest u^T R u with D u = V_dot."""
    k, motors = x.D.shape
    square = k == motors
    unit = _alike(x) if square else ca.SX(1 / ca.sqrt(R))
    solved = orthogonalise(_by_column(x.D, unit), ca.SX(k, 0), RANK_TOLERANCE, _mobile(x), passes=1)
    return Share(unit * smallest(solved, V_dot), solved.rank, handedness(solved.Q) if square else ca.SX(1))


def _alike(x: Decoupling) -> ca.SX:
    """(motors, 1) units of the inputs that accelerate their motors alike."""
    return 1 / ca.sqrt(ca.fmax(ca.diag(x.own), NOTHING))


def _mobile(x: Decoupling) -> ca.SX:
    """(k, 1) share of its mobility that the motors give an output; next to none, by what is not driven, is short of rank."""
    return ca.sum2(_by_column(x.D, _alike(x)) ** 2) / ca.fmax(x.mobility, NOTHING)


def _calm(terms: Terms, x: Decoupling, V_dot: ca.SX, d: ca.SX, R: ca.SX) -> Share:
    """D u = V_dot with |a + S u + d v| as small as can be in the metric of inertia."""
    push = x.S.T @ (terms.M @ (x.a + d * terms.v))
    left = x.D @ x.reach.T
    solved = solve_semidefinite(left, V_dot + x.reach @ push, RANK_TOLERANCE, ca.diag(left) / ca.fmax(x.mobility, NOTHING))
    tau = x.D.T @ solved.x - push
    return Share(_shared(terms, x, tau, R), ca.sum1(solved.kept), ca.SX(1))


def _calm_motors(terms: Terms, x: Decoupling, V_dot: ca.SX, d: ca.SX, W: ca.SX) -> Share:
    """D u = V_dot with |r_dot + d r| of the rates r along the motors as small as can be in the metric of W."""
    held = motor_matrix(terms).T @ (x.a + d * terms.v)
    cheap = _by_column(x.reach, 1 / W)
    solved = solve_semidefinite(cheap @ x.reach.T, V_dot + x.reach @ held, RANK_TOLERANCE, _mobile(x))
    return Share(solve_definite(x.own, cheap.T @ solved.x - held), ca.sum1(solved.kept), ca.SX(1))


def _rest_weights(terms: Terms, x: Decoupling, weight: Any) -> ca.SX:
    m = terms.mechanism
    if not _independent(terms, x.own):
        raise ModelError(
            f"concurrent: rest_weight weighs the rates along the motors, and some of {m.name!r} move it as others do, so that "
            "their rates are the same: leave motors or rest_weight out"
        )
    return weights(m, weight)


def _shared(terms: Terms, x: Decoupling, tau: ca.SX, R: ca.SX) -> ca.SX:
    """u with O u = tau, of motors that move the machine alike the smallest u^T R u."""
    if _independent(terms, x.own):
        return solve_definite(x.own, tau)
    unit = 1 / ca.sqrt(R)
    rows = orthogonalise(_by_column(x.own, unit), ca.SX(x.own.shape[0], 0), RANK_TOLERANCE)
    return unit * smallest(rows, tau)


def _by_column(A: ca.SX, x: ca.SX) -> ca.SX:
    return A * ca.repmat(x.T, A.shape[0], 1)


def _independent(terms: Terms, own: ca.SX) -> bool:
    """Whether each motor moves the machine as no others do: O has full rank at one configuration, as almost anywhere."""
    m, random = terms.mechanism, np.random.default_rng(43)
    f = ca.Function("own", [terms.q, terms.v, terms.t, m.p_symbols], [own])
    O = np.array(f(random_configuration(m, random), random.normal(size=m.nv), 0.0, m.p_defaults))
    size = np.sqrt(np.outer(np.diag(O), np.diag(O)))
    return bool(np.linalg.matrix_rank(O / np.where(size > 0, size, 1.0), tol=1e-9, hermitian=True) == len(O))


def _check_outputs(outputs: Any) -> None:
    if not several(outputs) or not len(outputs) or not all(isinstance(o, Output) for o in outputs):
        raise ModelError(f"concurrent: a list of outputs made by control.output(...) is needed, got {brief(outputs)}")
    said = set()
    for o in outputs:
        for i in o.axes if o.kind == "position" else (0,):
            this = (o.body, o.seen_from, o.kind, "" if o.kind in ("attitude", "heading") else str(o.at), i)
            if this in said:
                raise ModelError(f"concurrent: the {o.kind} of {o.body!r} is an output twice; leave one out")
            said.add(this)


def _check_moves(o: Output, J: ca.SX) -> None:
    """Raise ModelError where nothing moves a coordinate of an output, whatever the configuration."""
    still = [name for i, name in enumerate(o.names) if J[i, :].is_zero()]
    if still:
        raise ModelError(
            f"concurrent: no joint moves {', '.join(still)} of the {o.kind} of {o.body!r} seen from {o.seen_from!r}; leave it "
            "out, by axes=... or by another kind of output"
        )


def _check_count(m: Mechanism, names: Sequence[str]) -> None:
    if len(names) > len(m.actuators):
        raise ModelError(
            f"concurrent: {len(names)} coordinates of outputs ({', '.join(names)}) for {plural(len(m.actuators), 'actuator')} "
            f"of {m.name!r} ({', '.join(m.motor_names) or 'none'}); leave outputs out, or give it more actuators"
        )


def _lost(outputs: Sequence[Output], names: Sequence[str]) -> Reason:
    """Which outputs no motor moves, which motors then move none, and the joints whose places make it so."""

    def slope(T: Terms) -> ca.SX:
        """(nv, 1) of log det along each velocity: the singular value that vanishes decides where it falls."""
        G = decoupling(T, outputs).reach
        falls = ca.sum1(ca.log(ca.diag(ca.chol(G @ G.T))))
        return T.kinematics.kinematic_matrix.T @ ca.gradient(falls, T.q)

    def words(m: Mechanism, x: Mapping[str, np.ndarray]) -> str:
        U, sigma, Vt = np.linalg.svd(x["reach"])
        still, idle = mainly(U[:, -1], names, 3), mainly(Vt[len(sigma) - 1], m.motor_names, 3)
        steep, q = x["slope"].ravel(), x["q"].ravel()
        joints = [j.name for j in m.joints if j.nv]
        share = np.array([np.linalg.norm(steep[m.v_slices[n]]) for n in joints])
        guilty = mainly(share, joints, 3).split(", ") if np.isfinite(share).all() and share.any() else joints
        at = [f"{m.q_names[i]} = {q[i]:.4g}" for n in guilty for i in range(m.nq)[m.q_slices[n]]]
        return f"{still} hardly move, by {sigma[-1]:.2g} for a unit of {idle}, because of {', '.join(at)}"

    return Reason({"reach": lambda T: decoupling(T, outputs).reach, "slope": slope, "q": lambda T: T.q}, words)


def _turned(outputs: Sequence[Output]) -> Reason:
    """Which attitude error is half a turn."""
    turning = [o for o in outputs if o.turning]

    def angle(T: Terms, o: Output) -> ca.SX:
        at, gamma = moving(T.kinematics, o), _goal(o, T.t, ca.SX(0, 1))[0]
        return ca.norm_2(ca.SX(so3.log(at.R.T @ gamma[:3, :3])))

    def words(m: Mechanism, x: Mapping[str, np.ndarray]) -> str:
        angles = x["angles"].ravel()
        o = turning[int(np.argmax(angles))]
        return f"the {o.kind} of {o.body!r} is {angles.max():.4g} rad off; start nearer, or lead the reference there"

    return Reason({"angles": lambda T: ca.vertcat(*[angle(T, o) for o in turning])}, words)
