"""Outputs on Lie groups: motions of bodies with references, their errors, and servo laws for them. [chhabra14 5.2, 5.4]

An output r is the pose, attitude or position of a body, an element of SE(3), SO(3) or R^n; for motion in a plane, of SE(2) or
SO(2). With V = r^-1 r_dot = E J v and eta = gamma^-1 gamma_dot of its reference gamma(t),

    r_e = r^-1 gamma,    xi_e = log r_e,    v_e = V - Ad(r_e) eta,                                        (5.2), (5.4.34)
    nu = I^-1 [Theta^-T K_P xi_e - K_D v_e] - [V, Ad(r_e) eta] + Ad(r_e) eta_dot,                         (5.4.32)-(5.4.33)

where Theta = int_0^1 exp(x ad xi_e) dx is the left differential of exp. With V_dot = nu the Lyapunov function
V_L = <K_P xi_e, xi_e> / 2 + <I v_e, v_e> / 2 falls as V_L_dot = -<K_D v_e, v_e>.                                    (5.4.35)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.control.reference import Reference, function_of_time, set_point
from pfaffian.errors import ModelError, brief, is_one_of, nearest
from pfaffian.maths import se3
from pfaffian.maths.linear import solve_definite
from pfaffian.maths.margins import vanishing
from pfaffian.maths.roots import smallest_singular_value
from pfaffian.maths.subgroups import SUBGROUPS, Subgroup
from pfaffian.model import reprs
from pfaffian.model.body import WORLD
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.number import at_defaults, is_symmetric, matrix, several, vector
from pfaffian.tables import Table
from pfaffian.terms import connection
from pfaffian.terms.generic_states import at_generic_states, tell
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.lengths import default_length
from pfaffian.terms.new_symbols import at_new_symbols, placed
from pfaffian.terms.terms import shared

IN_GROUP = 1e-9
"""Largest error of R^T R = 1 in a reference at the start of a run."""

LEFT_GROUP = 1e-5
"""Largest error of R^T R = 1, and of its rate, later in a run; a reference interpolated between samples needs this margin."""


GAINS = ("stiffness", "damping", "inertia")
"""The gains of an output, each symmetric and positive definite."""


class OutputKind(NamedTuple):
    """A kind of output: the part of the motion of a body that it describes, and its group.

    group: name of the group in the table of subgroups.   shape: of the matrix that represents an element of the group.
    pose: function of this matrix and a corner entry, 1 or for a rate 0, that returns the (4, 4) matrix in SE(3).
    part: function of R, p, J of the body that returns those of the output, with its twist J v along the axes of the group.
    unit: of the error.   still: entries of the twist that must be zero for the motions of the body to be in the group.
    """

    group: str
    shape: tuple[int, int]
    pose: Callable[[ca.SX, float], ca.SX]
    part: Callable[[ca.SX, ca.SX, ca.SX], tuple[ca.SX, ca.SX, ca.SX]]
    unit: str
    still: tuple[int, ...] = ()


def _homogeneous(R: ca.SX, p: ca.SX, corner: float) -> ca.SX:
    """(4, 4) [[R, p], [0, corner]]."""
    return ca.SX(ca.blockcat([[R, p], [ca.SX(1, 3), ca.SX(corner)]]))


KINDS = Table("kind of output", {
    "pose": OutputKind("free", (4, 4), lambda X, c: X, lambda R, p, J: (R, p, J), "m, rad"),
    "attitude": OutputKind(
        "spherical", (3, 3), lambda X, c: _homogeneous(X, ca.SX(3, 1), c), lambda R, p, J: (R, ca.SX(3, 1), J), "rad"
    ),
    "position": OutputKind(
        "translation", (3, 1), lambda X, c: _homogeneous(c * ca.SX.eye(3), X, c),
        lambda R, p, J: (ca.SX.eye(3), p, ca.vertcat(R @ J[:3, :], ca.SX(3, J.shape[1]))), "m",
    ),
    "heading": OutputKind(
        "revolute", (2, 2), lambda X, c: _homogeneous(ca.diagcat(X, c), ca.SX(3, 1), c), lambda R, p, J: (R, ca.SX(3, 1), J),
        "rad", (3, 4),
    ),
    "planar pose": OutputKind(
        "planar", (3, 3), lambda X, c: _homogeneous(ca.diagcat(X[:2, :2], c), ca.vertcat(X[:2, 2], 0), c),
        lambda R, p, J: (R, ca.vertcat(p[:2], 0), J), "m, rad", (2, 3, 4),
    ),
}, "for functions of your own, make a control.Task")  # fmt: skip


@dataclass(frozen=True, eq=False)
class Output:
    """A pose, attitude, heading or position of a body that follows a reference on its group; made by `output`.

    body, seen_from: names of the body and of the body relative to which it moves.
    kind: "pose", "attitude", "position", "planar pose" or "heading".
    at: (3,) point of the body [m].   axes: the coordinates of a position, some of 0, 1, 2.
    reference: of the matrix that represents an element of the group, column by column.
    stiffness, damping, inertia: (k, k) K_P, K_D and I.

    Example:
        >>> from pfaffian import control
        >>> tip = control.output("hand", "position", [0.3, 0.4], stiffness=25.0, damping=10.0, axes=(0, 2))
        >>> tip
        <Output: position of 'hand'>
        >>> tip.names
        ('hand.x', 'hand.z')
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
        """The group of the output; of a position, the translations along its axes."""
        group = SUBGROUPS[KINDS[self.kind].group]
        return replace(group, along=self.axes) if self.kind == "position" else group

    @property
    def turning(self) -> list[int]:
        """Indices of those of the k coordinates that belong to a rotation vector."""
        return [i for i, axis in enumerate(self.group.axes) if axis >= 3]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the k coordinates of the algebra."""
        return tuple(f"{self.body}.{'xyz'[i] if i < 3 else 'r' + 'xyz'[i - 3]}" for i in self.group.axes)

    def __repr__(self) -> str:
        seen = [] if self.seen_from == WORLD else [f"seen from {self.seen_from!r}"]
        return reprs.words(self, f"{self.kind} of {self.body!r}", *seen)


def output(
    body: str, kind: str, reference: Any, *, stiffness: Any, damping: Any, inertia: Any = 1.0, at: Any = (0, 0, 0),
    axes: Sequence[int] = (0, 1, 2), seen_from: str = WORLD,
) -> Output:  # fmt: skip
    """An output for `concurrent`: a pose, attitude, position or heading of a body with reference and gains. [chhabra14 5.2]

        "pose" on SE(3), "attitude" on SO(3), "position" in R^n;
        for a body that moves in the x y plane "planar pose" on SE(2), "heading" on SO(2)

    Args:
        body: name of the body.
        kind: "pose", "attitude", "position", "planar pose" or "heading".
        reference: gamma(t), a matrix: a function of t [s], a constant, or a Reference of its entries column by column. Its
            shape is (4, 4) for a pose and (3, 3) for a planar pose, homogeneous [1, m]; (3, 3) for an attitude; (2, 2) for a
            heading; (n,) for a position [m].
        stiffness: K_P, symmetric and positive definite on the algebra [v; w], in this order and along the body's axes, or for
            a position along the axes of `seen_from`; one number, k numbers, or (k, k); in units of `inertia` [1/s^2].
        damping: K_D, of the same form; in units of `inertia` [1/s].
        inertia: I, of the same form; default 1.
        at: (3,) point of the body whose position or pose is the output [m]; default the body's origin.
        axes: coordinates of a position, some of 0, 1, 2 (x, y, z); default all three.
        seen_from: name of the body relative to which the body moves; default the world.
    Returns:
        Output.
    Raises ModelError: an unknown kind, one body twice, axes for another kind than a position, gains that are not positive
    definite, a reference of another shape, or one that is not in the group at t = 0.

    Example:
        >>> import numpy as np
        >>> from pfaffian import control
        >>> base = control.output("base", "attitude", np.eye(3), stiffness=4.0, damping=4.0)
        >>> base.names
        ('base.rx', 'base.ry', 'base.rz')
    """
    what = f"output {brief(kind)} of {brief(body)}"
    if not isinstance(body, str) or not isinstance(seen_from, str) or body == seen_from:
        raise ModelError(f"{what}: names of two different bodies are needed, got {brief(body)} and {brief(seen_from)}")
    if not is_one_of(kind, KINDS):
        raise ModelError(f"{what}: {nearest(kind, list(KINDS))}")
    rows: tuple[Any, ...] = tuple(axes) if several(axes) else (axes,)
    if not rows or sorted(set(rows)) != list(rows) or any(isinstance(i, bool) or i not in (0, 1, 2) for i in rows):
        raise ModelError(f"{what}: axes: some of 0, 1, 2 (x, y, z) in this order are needed, got {brief(axes)}")
    if kind != "position" and rows != (0, 1, 2):
        raise ModelError(f"{what}: axes are for a position")
    k, shape = (len(rows), (len(rows), 1)) if kind == "position" else (SUBGROUPS[KINDS[kind].group].nv, KINDS[kind].shape)
    goal = _reference(reference, shape, what)
    given = zip(GAINS, (stiffness, damping, inertia), strict=True)
    gains = {n: _definite(x, k, f"{what}: {n}") for n, x in given}
    result = Output(body, seen_from, kind, vector(at, 3, f"{what}: at"), tuple(int(i) for i in rows), goal, **gains)
    _check_start(result, what)
    return result


def _reference(value: Any, shape: tuple[int, int], what: str) -> Reference:
    """A Reference of the matrix entries column by column, from a Reference, a function of t or a constant.

    Raises ModelError: another shape.
    """
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
    """The entries of a matrix, column by column. Raises ModelError: it has another shape."""
    X = ca.densify(matrix(value, f"{what}: reference"))
    if X.shape != shape:
        raise ModelError(f"{what}: the reference must be {shape[0]} x {shape[1]}, got {X.shape[0]} x {X.shape[1]}")
    return ca.vec(X)


def _definite(value: Any, k: int, what: str) -> ca.SX:
    """A gain as a matrix (k, k). Raises ModelError: it has another shape, or is not symmetric and positive definite."""
    X = matrix(value, what)
    if X.shape == (1, 1):
        X = X * ca.SX.eye(k)
    elif X.shape in ((k, 1), (1, k)):
        X = ca.diag(ca.vec(X))
    if X.shape != (k, k):
        raise ModelError(f"{what}: one number, {k} numbers or ({k}, {k}) are needed, got {X.shape}")
    numbers = at_defaults(X)
    if numbers is not None and not is_definite(numbers):
        raise ModelError(f"{what}: must be symmetric and positive definite, got {brief(value)}")
    return ca.sparsify(ca.SX(X))


def is_definite(X: np.ndarray) -> bool:
    """Whether a matrix is symmetric and positive definite."""
    return is_symmetric(X) and bool(np.linalg.eigvalsh(X)[0] > 0)


def _check_start(o: Output, what: str) -> None:
    """Raise ModelError unless the reference at t = 0 is in its group; one that depends on inputs of the run is not checked."""
    X = None if o.reference.w_names else at_defaults(goal_at(o, ca.SX(0), ca.SX(0, 1))[0])
    if X is None:
        return
    R = X[:3, :3]
    if np.abs(R.T @ R - np.eye(3)).max() > IN_GROUP or np.linalg.det(R) < 0 or np.abs(X[3] - [0, 0, 0, 1]).max() > IN_GROUP:
        raise ModelError(f"{what}: the reference at t = 0 is no {o.kind}: R^T R = 1 with determinant 1 is needed")


def goal_at(o: Output, t: ca.SX, w: ca.SX) -> list[ca.SX]:
    """The reference gamma, gamma_dot and gamma_ddot of an output, each as a (4, 4) matrix."""
    kind, matrices = KINDS[o.kind], []
    for x, corner in zip(o.reference.at(t, w), (1.0, 0.0, 0.0), strict=True):
        if o.kind == "position":
            full = ca.SX.zeros(3, 1)
            full[list(o.axes)] = x
            x = full
        matrices.append(kind.pose(ca.reshape(ca.SX(x), *kind.shape), corner))
    return matrices


def leaves_group(goal: Sequence[ca.SX]) -> ca.SX:
    """1 where a reference, (4, 4) gamma and gamma_dot, is not in its group or its rate leads out of the group.

    It is 0 where the reference is nan, which stops a run anyway.
    """
    gamma, rate = goal[0], goal[1]
    R, R_dot = gamma[:3, :3], rate[:3, :3]
    z_error = R[:, 2] - ca.cross(R[:, 0], R[:, 1])  # nonzero for a reflection too
    w_hat = R.T @ R_dot
    off = ca.vertcat(ca.vec(R.T @ R - ca.SX.eye(3)), z_error, (gamma[3, :] - ca.DM([[0, 0, 0, 1]])).T, rate[3, :].T)
    symmetric = ca.vec(w_hat + w_hat.T) / (1 + ca.norm_fro(R_dot))
    return ca.mmax(ca.fabs(ca.vertcat(off, symmetric))) > LEFT_GROUP


class MovingOutput(NamedTuple):
    """An output at a state.   R, p: rotation and position of its element of the group.   J, J_dot: (k, nv), V = J v."""

    R: ca.SX
    p: ca.SX
    J: ca.SX
    J_dot: ca.SX


def moving(k: Kinematics, o: Output) -> MovingOutput:
    """The output r, and the Jacobian E J in V = r^-1 r_dot = E J v with its rate. [chhabra14 (5.3.20)]"""
    s = at_new_symbols(k)
    G, J = s.relative(o.body, o.seen_from)
    R, p, J = KINDS[o.kind].part(ca.SX(G.R), G.p + G.R @ o.at, se3.Ad_inv(ca.SX.eye(3), o.at) @ J)
    J = ca.densify(J[list(o.group.axes), :])
    return MovingOutput(*placed([R, p, J, connection.rate(s, J)], s, k))


def check_in_group(o: Output, m: Mechanism) -> None:
    """Raise ModelError where the body has motions outside the output's group, decided at random states."""
    still = list(KINDS[o.kind].still)
    if not still:
        return
    G, J = shared(m).kinematics.relative(o.body, o.seen_from)
    at = at_generic_states(m, {"J": J, "tilt": ca.SX(G.R)[2, 2] - 1})
    unit = np.array([default_length(m) or 1.0] * 3 + [1.0] * 3)[:, None]
    size = np.linalg.norm(at["J"] / unit, axis=1, keepdims=True)  # of each column of J
    outside = vanishing(at["J"][:, still] / unit[still], size)
    tilt = vanishing(at["tilt"], 1.0)
    question = f"whether {o.body!r} moves in a plane of {o.seen_from!r}"
    if not (tell(m, question, outside).all() and tell(m, question, tilt).all()):
        raise ModelError(
            f"concurrent: {o.body!r} does not move in the x y plane of {o.seen_from!r}, so it has no {o.kind}; take its pose, "
            "attitude or position"
        )


class ServoLaw(NamedTuple):
    """The servo law of an output at an instant.

    nu: (k, 1) the required V_dot.   error, rate: (k, 1) xi_e and v_e.   value: the Lyapunov function V_L.
    decay: its rate, -<K_D v_e, v_e>.
    """

    nu: ca.SX
    error: ca.SX
    rate: ca.SX
    value: ca.SX
    decay: ca.SX


def servo(o: Output, R: ca.SX, p: ca.SX, V: ca.SX, goal: Sequence[ca.SX]) -> ServoLaw:
    """The feed-forward servo law on the output's group. [chhabra14 theorem 5.4.2]

    R, p: rotation and position of r.   V: (k, 1) r^-1 r_dot.   goal: (4, 4) gamma, gamma_dot, gamma_ddot.
    """
    group = o.group
    axes, S = list(group.axes), group.S
    gamma, gamma_dot, gamma_ddot = goal
    inverse = se3.homogeneous(*se3.inverse(gamma[:3, :3], gamma[:3, 3]))
    eta, eta_dot = (
        se3.vee(x)[axes] for x in (inverse @ gamma_dot, inverse @ gamma_ddot - (inverse @ gamma_dot) @ (inverse @ gamma_dot))
    )
    r_e = se3.compose(R.T, -(R.T @ p), gamma[:3, :3], gamma[:3, 3])
    xi_e, adjoint = ca.SX(group.log(*r_e)), (se3.Ad(*r_e) @ S)[axes, :]
    carried = adjoint @ eta
    v_e = V - carried
    pull = group.dexp_right_inv(-xi_e).T @ (o.stiffness @ xi_e) - o.damping @ v_e
    bracket = (se3.ad(S @ V) @ (S @ carried))[axes]
    nu = solve_definite(o.inertia, pull) - bracket + adjoint @ eta_dot
    value = (ca.dot(xi_e, o.stiffness @ xi_e) + ca.dot(v_e, o.inertia @ v_e)) / 2
    return ServoLaw(ca.densify(nu), ca.densify(xi_e), ca.densify(v_e), value, ca.SX(-ca.dot(v_e, o.damping @ v_e)))


def half_turn(o: Output) -> ca.SX:
    """The least V_L at which an error of rotation can be half a turn. [chhabra14 theorem 5.4.2]

    This is pi^2 / 2 times the smallest eigenvalue of the Schur complement of K_P on rotations. As long as V_L is below it, no
    error reaches half a turn.
    """
    turn, K = o.turning, ca.densify(o.stiffness)
    rest = [i for i in range(K.shape[0]) if i not in turn]
    S = K[turn, turn] - K[turn, rest] @ solve_definite(K[rest, rest], K[rest, turn]) if rest else K
    return np.pi**2 / 2 * smallest_singular_value(S)


def check_moves(o: Output, J: ca.SX) -> None:
    """Raise ModelError if some coordinate of an output is moved by no joint at any configuration."""
    still = [name for i, name in enumerate(o.names) if J[i, :].is_zero()]
    if still:
        raise ModelError(
            f"concurrent: no joint moves {', '.join(still)} of the {o.kind} of {o.body!r} seen from {o.seen_from!r}; leave it "
            "out, by axes=... or by another kind of output"
        )
