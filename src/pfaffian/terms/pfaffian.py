"""Constraint rows A v_dot = b, with the position and velocity residuals that drift correction needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import casadi as ca

from pfaffian.errors import ModelError
from pfaffian.maths.closures import rate
from pfaffian.model.constraint import AccelerationConstraint, Closure, Holonomic, Nonholonomic, Servo, Target
from pfaffian.model.number import matrix
from pfaffian.model.pose import Pose
from pfaffian.model.user_functions import call_for_column, call_for_rows, call_for_value, in_symbols
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.loop_joints import closure_frames, relative_twist
from pfaffian.terms.new_symbols import at_new_symbols, placed

POSITION, VELOCITY, ACCELERATION = 0, 1, 2
"""Level of a row, the equation from which it is derived: phi(q, t) = 0, eta(q, v, t) = 0, or Z v_dot = z itself."""

LEVELS = (POSITION, VELOCITY, ACCELERATION)


class Rows(NamedTuple):
    """Constraint rows. [konz25 (3.124)-(3.125)]

    A: (m, nv) with A v_dot = b, a function of q and t, and of v where eta is not affine in it.   b: (m, 1).
    phi: (m, 1) position residual, zero for rows without one.   eta: (m, 1) velocity residual, A v - c where it is affine in v,
    zero for rows without one.   level: POSITION, VELOCITY or ACCELERATION of each row.
    counts: number of rows of each constraint; empty for the rows of a single one.
    """

    A: ca.SX
    b: ca.SX
    phi: ca.SX
    eta: ca.SX
    level: tuple[int, ...]
    counts: tuple[int, ...] = ()

    def at(self, *levels: int) -> list[int]:
        """Indices of the rows of these levels."""
        return [i for i, level in enumerate(self.level) if level in levels]


def constraint_rows(k: Kinematics) -> Rows:
    """The rows that ideal reactions maintain, in the order in which the constraints are written. [aghili05 (18)-(19)]"""
    return _stack(k, k.mechanism.ideal)


class ServoRows(NamedTuple):
    """Rows of servo constraints. [ider (14)-(16)]

    A, phi, eta: as in Rows.   b: (m, 1) including the feedback of phi and eta.
    Z: (m, nv) directions of the control forces mu, whose generalised force is Z^T mu.
    """

    A: ca.SX
    b: ca.SX
    phi: ca.SX
    eta: ca.SX
    Z: ca.SX


def servo_rows(k: Kinematics, B: ca.SX) -> ServoRows:
    """Rows of the mechanism's servo constraints; B (nv, nu) gives the directions of its inputs."""
    parts = []
    for s in k.mechanism.servos:
        rows, Z = target_rows(k, s.target), _directions(k, s, B)
        if Z.shape[0] != rows.A.shape[0]:
            raise ModelError(
                f"servo constraint {s.name!r} has {rows.A.shape[0]} rows but {Z.shape[0]} directions; give one force per row"
            )
        parts.append(ServoRows(rows.A, rows.b - s.damping * rows.eta - s.stiffness * rows.phi, rows.phi, rows.eta, Z))
    if not parts:
        nothing = ca.SX(0, k.mechanism.nv)
        return ServoRows(nothing, ca.SX(0, 1), ca.SX(0, 1), ca.SX(0, 1), nothing)
    return ServoRows(*[ca.vertcat(*x) for x in zip(*parts, strict=True)])


def _directions(k: Kinematics, s: Servo, B: ca.SX) -> ca.SX:
    """(count, nv) Z of one servo constraint. Raises ModelError: the function of its directions returns another shape."""
    if callable(s.directions):
        what = f"servo constraint {s.name!r}: directions"
        Z = in_symbols(matrix(call_for_value(s.directions, what, k), what), what, (k.q, k.v, k.t, k.mechanism.p_symbols))
        if Z.shape[1] != k.mechanism.nv:
            raise ModelError(f"{what}: rows (count, {k.mechanism.nv}) are needed, got {Z.shape[0]} x {Z.shape[1]}")
        return Z
    return B[:, [k.mechanism.u_names.index(n) for n in s.directions]].T


def _stack(k: Kinematics, constraints: tuple[Target, ...]) -> Rows:
    """The rows of several constraints together."""
    parts = [target_rows(k, c) for c in constraints]
    if not parts:
        return Rows(ca.SX(0, k.mechanism.nv), ca.SX(0, 1), ca.SX(0, 1), ca.SX(0, 1), ())
    level = tuple(i for part in parts for i in part.level)
    A, b, phi, eta = (ca.vertcat(*[part[i] for part in parts]) for i in range(4))
    return Rows(A, b, phi, eta, level, tuple(len(part.level) for part in parts))


def row_names(k: Kinematics, constraints: tuple[Target, ...] | None = None) -> tuple[str, ...]:
    """A name for each row of the constraints (the ideal ones if not given): the constraint's, with a component or number."""
    names: list[str] = []
    for c in k.mechanism.ideal if constraints is None else constraints:
        if isinstance(c, Closure):
            names += [f"{c.name}.{row}" for row in c.holds.rows]
        else:
            count = target_rows(k, c).b.numel()
            names += [c.name] if count == 1 else [f"{c.name}.{i}" for i in range(count)]
    return tuple(names)


def target_rows(k: Kinematics, c: Target) -> Rows:
    """The rows of one constraint; while it is not active they are zero and have no effect."""
    rows = closure_rows(k, c) if isinstance(c, Closure) else _differentiate(k, c)
    if c.active is None:
        return rows
    on = activity(k, c.active, c.name)
    return Rows(rows.A * on, rows.b * on, rows.phi * on, rows.eta * on, rows.level)


def position_residual(k: Kinematics, c: Target) -> ca.SX:
    """(n, 1) phi of a constraint, whether or not it is active; (0, 1) for a constraint on velocities or accelerations."""
    if isinstance(c, Closure):
        return ca.densify(closure_rows(k, c).phi)
    return ca.densify(_column(c.phi, c.name, k)) if isinstance(c, Holonomic) else ca.SX(0, 1)


def activity(k: Kinematics, active: Callable[[Kinematics], ca.SX], name: str) -> ca.SX:
    """(1, 1) 1 while a constraint is active, else 0. Raises ModelError: the condition fails, or is not a single number."""
    return ca.if_else(condition(k, active, name), 1, 0)


def condition(k: Kinematics, active: Callable[[Kinematics], ca.SX], name: str) -> ca.SX:
    """(1, 1) condition by which a constraint is active. Raises ModelError: it fails, or is not a single number."""
    found = call_for_column(active, f"constraint {name!r}: active_while", k)
    if found.numel() != 1:
        raise ModelError(f"constraint {name!r}: active_while: one condition is needed, got {found.numel()}; use ca.logic_and")
    return found


def _differentiate(k: Kinematics, c: Holonomic | Nonholonomic | AccelerationConstraint) -> Rows:
    """Rows of a caller's function, differentiated at new symbols, for which the expressions of k are then substituted."""
    s = at_new_symbols(k)
    rows = _ROWS[type(c)](s, c)
    A, b, phi, eta = placed(rows[:4], s, k)
    return Rows(A, b, phi, eta, rows.level)


def holonomic_rows(k: Kinematics, c: Holonomic) -> Rows:
    """phi(q, t) = 0: A = dphi/dq K, and the derivative of A v + dphi/dt at v_dot = 0 gives b. k is at symbols."""
    phi = _column(c.phi, c.name, k)
    if ca.depends_on(phi, k.v):
        raise ModelError(f"constraint {c.name!r}: phi depends on velocities; use nonholonomic(...)")
    A = ca.jacobian(phi, k.q) @ k.kinematic_matrix
    eta = A @ k.v + ca.jacobian(phi, k.t)
    return Rows(A, -_drift(k, eta), phi, eta, (POSITION,) * phi.numel())


def nonholonomic_rows(k: Kinematics, c: Nonholonomic) -> Rows:
    """eta(q, v, t) = 0: A = deta/dv. k is at symbols. [konz25 (3.125)]"""
    eta = _column(c.eta, c.name, k)
    A = ca.sparsify(ca.jacobian(eta, k.v))
    for i in range(eta.numel()):
        # A component that vanishes in this machine, like the slip of a wheel in a plane, is redundant but not an error.
        if A[i, :].nnz() == 0 and not eta[i].is_zero():
            raise ModelError(
                f"constraint {c.name!r}: eta{_numbered(i, eta)} has no velocity in it; use holonomic(...) for phi(q, t) = 0"
            )
    return Rows(A, -_drift(k, eta), ca.SX.zeros(eta.numel(), 1), eta, (VELOCITY,) * eta.numel())


def acceleration_rows(k: Kinematics, c: AccelerationConstraint) -> Rows:
    """Rows Z v_dot = z as they are given. k is at symbols. [konz25 (3.124)]"""
    Z, z = call_for_rows(c.rows, f"constraint {c.name!r}", k)
    for i in range(z.numel()):
        if Z[i, :].nnz() == 0:
            raise ModelError(
                f"constraint {c.name!r}: row {i} of Z has no entry, so it constrains no acceleration; leave it out, or use "
                "nonholonomic(...) for eta(q, v, t) = 0"
            )
    nothing = ca.SX.zeros(z.numel(), 1)
    return Rows(Z, z, nothing, nothing, (ACCELERATION,) * z.numel())


_ROWS: dict[type, Callable[[Kinematics, Any], Rows]] = {
    Holonomic: holonomic_rows,
    Nonholonomic: nonholonomic_rows,
    AccelerationConstraint: acceleration_rows,
}


def _numbered(i: int, x: ca.SX) -> str:
    """The index of an entry as text, empty if it is the only one."""
    return f"[{i}]" if x.numel() > 1 else ""


def _column(function: Callable[[Kinematics], ca.SX], name: str, k: Kinematics) -> ca.SX:
    """(n, 1) residual from a constraint's function. Raises ModelError: it fails, is empty, or returns a comparison."""
    x = call_for_column(function, f"constraint {name!r}", k)
    if x.numel() == 0:
        raise ModelError(f"constraint {name!r} gives no rows")
    if any(x[i].is_op(kind) for i in range(x.numel()) for kind in (ca.OP_EQ, ca.OP_NE, ca.OP_LT, ca.OP_LE)):
        raise ModelError(
            f"constraint {name!r} returns a comparison, 0 or 1; return the difference of its sides instead, which must vanish"
        )
    return x


def _drift(k: Kinematics, eta: ca.SX) -> ca.SX:
    """d eta / dt at v_dot = 0."""
    return ca.jtimes(eta, k.q, k.q_dot) + ca.jacobian(eta, k.t)


def closure_rows(k: Kinematics, c: Closure) -> Rows:
    """Rows L V = 0 of a closure, V being the twist of frame B relative to frame A, in A's axes."""
    (la, Xa), (lb, Xb) = frames = closure_frames(k, c)
    Ra, Rb, r, J = relative_twist(k, frames)
    (va, wa), (vb, wb) = _velocity(k, la, Xa), _velocity(k, lb, Xb)
    (aa, alpha_a), (ab, alpha_b) = k.link_bias(la, Xa.p), k.link_bias(lb, Xb.p)
    # The second derivative of R_a^T (p_b - p_a) and the first of R_a^T (w_b - w_a), at v_dot = 0.
    linear = ab - aa - ca.cross(alpha_a, r) - 2 * ca.cross(wa, vb - va) + ca.cross(wa, ca.cross(wa, r))
    angular = alpha_b - alpha_a - ca.cross(wa, wb - wa)
    drift = ca.vertcat(Ra.T @ linear, Ra.T @ angular)
    relative = Ra.T @ Rb, Ra.T @ r, c.number
    L, phi = c.holds.residual(*relative)
    turning = rate(c.holds, *relative, J @ k.v)
    drift = ca.mtimes(L, drift) + (ca.mtimes(turning, J @ k.v) if turning.nnz() else 0)
    A = ca.mtimes(L, J)
    return Rows(A, -drift, phi, A @ k.v, (POSITION,) * len(c.holds.rows))


def _velocity(k: Kinematics, link: int, X: Pose) -> tuple[ca.SX, ca.SX]:
    """Velocity of the origin of a link's frame X, and its angular velocity, in world axes."""
    if link < 0:
        return ca.SX.zeros(3, 1), ca.SX.zeros(3, 1)
    (u, w), R = k.link_velocity[link], k.link_pose(link).R
    return R @ (u + ca.cross(w, X.p)), R @ w
