"""A machine with a floating base: how joints and momentum move a body, and joint motions that leave the base at rest.

With velocities tau of the base in its own axes, s of the joints and the momentum mu_b of all that moves (terms/reduction.py)

    tau = K11^-1 mu_b - A s,    V = J_b tau + J_s s = J_g s + J_b K11^-1 mu_b,    J_g = J_s - J_b A,

J_g being the generalised Jacobian of Umetani and Yoshida (1989). Velocities s with A s = 0 leave the base without reaction: the
reaction null space of Nenchev, Umetani and Yoshida (1992).

Closures between bodies of the machine, A_c s = 0, change no momentum, but they leave fewer s. A velocity v without momentum
goes to the nearest one in the metric of M that they permit, which has no momentum either:

    v = H s,    H = (1 - M^-1 A_c^T (A_c M^-1 A_c^T)^+ A_c) [-A; 1],    J_g = J H,

J being the Jacobian by all v. The reaction null space is that of the rows A and A_c together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import casadi as ca

from pfaffian.dynamics.motion import RANK_TOLERANCE, shortest_change
from pfaffian.errors import ModelError, brief
from pfaffian.maths.linear import orthogonalise, solve_symmetric
from pfaffian.maths.reflection import NOTHING
from pfaffian.maths.tree_factor import solve_WT
from pfaffian.model import reprs
from pfaffian.model.constraint import Closure
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.number import vector
from pfaffian.terms.common_motion import CommonMotion, carried_together
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.reduction import RANK, Blocks, adjoint, blocks, first_joint, indices, others, split, still
from pfaffian.terms.terms import Terms, as_terms

RESTING = {"pose": ("m/s", "rad/s"), "attitude": ("rad/s",)}
"""What of the base is at rest -> units of its velocities that are zero."""


def loops(m: Mechanism, what: str, besides: tuple[type, ...] = ()) -> Mechanism:
    """The machine with closures between the bodies that its first joint carries as its only constraints.

    what: the quantity that is asked for.   besides: kinds of constraints that take no part in it.
    Raises ModelError: nothing that carries all; a constraint of another kind, or a closure that does not always hold.
    """
    carrying(m)
    for c in m.ideal:
        if not isinstance(c, (Closure, *besides)) or (isinstance(c, Closure) and c.active):
            raise ModelError(
                f"{what}: constraint {c.name!r} of {m.name!r} is no closure between bodies that always holds, so that what it "
                "leaves of motions and momentum is not known; write it as a closure, or leave it out: m.with_(constraints=...)"
            )
    return _with_loops(m, what)


def carrying(m: Mechanism) -> str:
    """What carries all, in words. Raises ModelError: nothing does."""
    common = carried_together(m)
    return common.name if common else first_joint(m).name


def one_joint(m: Mechanism, what: str) -> Mechanism:
    """The machine. Raises ModelError: several joints carry it together, and `what` is that of one joint."""
    if common := carried_together(m):
        names = ", ".join(map(repr, common.joints))
        raise ModelError(
            f"{what}: {names} carry {m.name!r} together, and it is that of one joint: let one joint, as of kind 'free', "
            "carry all, and what else stands on the world stand on its body; mechanical_connection, connection_curvature and "
            "reduce(m, momentum=...) take joints together"
        )
    return m


def _with_loops(m: Mechanism, what: str) -> Mechanism:
    """The machine with its closures alone. Raises ModelError: one ties it to what does not move."""
    closures = tuple(c for c in m.ideal if isinstance(c, Closure))
    for c in closures:
        for fixed in still(m) & {c.body_a, c.body_b}:
            raise ModelError(
                f"{what}: closure {c.name!r} ties {m.name!r} to {fixed!r}, which does not move, so that the momentum of joint "
                f"{carrying(m)!r} is not its own; leave the closure out: m.with_(constraints=...)"
            )
    return replace(m, constraints=closures)


def without_momentum(T: Terms, joint: str) -> ca.SX:
    """H (nv, n): the motion v = H s of a first joint and all others without momentum, s put onto the closures of T."""
    m, b = T.mechanism, indices(T.mechanism, (joint,))
    s = others(m, b)
    free = ca.SX(m.nv, len(s))
    free[b, :], free[s, :] = -blocks(T, joint).A, ca.SX.eye(len(s))
    return permitted(T, free)


def permitted(T: Terms, free: ca.SX) -> ca.SX:
    """(nv, n) the motions that the closures of T permit, each the nearest in the metric of M to a column of free (nv, n)."""
    return free - solve_WT(T.factor, shortest_change(T).solve(T.A @ free)) if T.mechanism.ideal else free


@dataclass(frozen=True, eq=False)
class FloatingBase:
    """Terms of a machine split into base and joints, as expressions for laws, outputs and `compile_terms`.

    Closures between its bodies take part in it, other constraints do not. Where several joints carry the machine together, tau
    are speeds along the motions that they share, in the world, and s the velocities that other joints have besides.
    terms: of the machine, at symbols.   joint: name of the first joint, that of the base, or of those that carry all together.
    """

    terms: Terms
    joint: str

    def __repr__(self) -> str:
        return reprs.words(self, f"of {self.terms.mechanism.name!r}", f"joint {self.joint!r}", f"s ({len(self.s)}, 1)")

    @cached_property
    def common(self) -> CommonMotion | None:
        """The motions of several joints that carry all together."""
        return carried_together(self.terms.mechanism)

    @cached_property
    def X(self) -> ca.SX:
        """(nv, nv) v = X [tau; s], each in the place of its entries."""
        return self.common.lift(self.terms.kinematics) if self.common else ca.SX.eye(self.terms.mechanism.nv)

    @cached_property
    def M(self) -> ca.SX:
        """(nv, nv) X^T M X."""
        return self.X.T @ self.terms.M @ self.X if self.common else self.terms.M

    @cached_property
    def blocks(self) -> Blocks:
        """K11 (k, k), K1s (k, n), A (k, n) = K11^-1 K1s and M^ (n, n) = Kss - K1s^T A of the mass matrix."""
        return split(self.M, self.b)

    @cached_property
    def b(self) -> list[int]:
        """Entries of v of the base."""
        m = self.terms.mechanism
        return self.common.entries(self.terms.kinematics.tree) if self.common else indices(m, (self.joint,))

    @cached_property
    def s(self) -> list[int]:
        """Entries of v of the joints."""
        return others(self.terms.mechanism, self.b)

    @cached_property
    def closed(self) -> Terms:
        """Terms of the machine with its closures alone."""
        T = self.terms
        return Terms(_with_loops(T.mechanism, "floating_base"), T.q, T.v, T.u, T.t)

    @cached_property
    def lift(self) -> ca.SX:
        """H (nv, n): without momentum v = H s, s put onto the closures."""
        return permitted(self.closed, self.X[:, self.s] - self.X[:, self.b] @ self.blocks.A)

    def jacobian(self, body: str, frame: str = "LOCAL", point: Any = (0, 0, 0)) -> ca.SX:
        """(6, n) J_g = J H, J_s - J_b A without closures; body, frame and point (3,) [m] as in `Kinematics.jacobian`."""
        return self.terms.kinematics.jacobian(body, frame, point) @ self.lift

    def momentum_twist(self, body: str, frame: str = "LOCAL", point: Any = (0, 0, 0), momentum: Any = None) -> ca.SX:
        """(6, 1) J_b K11^-1 mu_b: what momentum adds to the twist of a body.

        momentum: (k, 1) spatial momentum that is conserved, as `momentum_map` returns it [N s, N m s], which makes the result
        independent of velocities; if None that of v.
        """
        T, Y = self.terms, self.X[:, self.b]
        J = T.kinematics.jacobian(body, frame, point) @ Y
        if momentum is None:
            return J @ solve_symmetric(self.blocks.K11, Y.T @ (T.M @ T.v))
        m, mu = T.mechanism, vector(momentum, len(self.b), "momentum")
        if self.common is None:
            mu = adjoint(m.joint(self.joint), T.q[m.q_slices[self.joint], 0]).T @ mu
        return J @ solve_symmetric(self.blocks.K11, mu)

    def reaction_free(self, keep: str = "pose") -> ca.SX:
        """P (n, n): orthogonal projector onto the s of the closures with A_r s = 0, A_r all rows of A or those of the base's
        rotation.

        The linear part of A is eliminated already: A_r s is the rotation of the base while its mass centre drifts freely.
        keep: pose or attitude, what of the base stays at rest.   Raises ModelError: another word.
        """
        Q = self.reacting(keep)
        return ca.SX.eye(len(self.s)) - Q.T @ Q

    def reacting(self, keep: str = "pose") -> ca.SX:
        """Q (r, n): rows orthogonal to all such s, P = 1 - Q^T Q; orthonormal, or zero where A_r is short of rank."""
        if keep not in RESTING:
            raise ModelError(f"keep: {' or '.join(RESTING)} is needed, got {brief(keep)}")
        T = self.closed
        rows = [row for row, unit in enumerate(self._units) if unit in RESTING[keep]]
        constrained, tolerance, left = ca.SX(0, len(self.s)), RANK, self.blocks.A
        if T.mechanism.ideal:
            rhs = ca.SX(T.A.shape[0], 0)
            constrained = orthogonalise(T.A @ self.X[:, self.s], rhs, RANK_TOLERANCE, T.row_size, groups=T.groups).Q
            left, tolerance = left - (left @ constrained.T) @ constrained, RANK_TOLERANCE
        size = self._felt(left) / ca.fmax(ca.mmax(self._felt(self.blocks.A)), NOTHING)
        return ca.vertcat(constrained, orthogonalise(left[rows, :], ca.SX(len(rows), 0), tolerance, size[rows, 0]).Q)

    @property
    def _units(self) -> list[str]:
        """Of the velocities of the base."""
        if self.common:
            return ["rad/s" if any(twist[3:]) else "m/s" for twist in self.common.twists]
        return [self.terms.mechanism.v_units[i] for i in self.b]

    def _felt(self, A: ca.SX) -> ca.SX:
        """(k, 1) squared lengths of rows A (k, n), each by the inertia that the base has along it, and the joints."""
        joints, base = ca.diag(ca.densify(self.M)[self.s, self.s]), ca.diag(self.blocks.K11)
        return base * (A * A @ (1 / joints))


def floating_base(T: Terms | Kinematics) -> FloatingBase:
    """Expressions of a machine that floats: generalised Jacobian, motion by momentum, reaction null space.

    Args:
        T: Terms, as a law or `compile_terms` passes them on, or `symbols(mechanism)`; or the Kinematics that a constraint, an
            output or a task receives.
    Returns:
        an object with `jacobian(body, frame, point)` (6, n), `momentum_twist(body, ..., momentum)` (6, 1),
        `reaction_free(keep)` (n, n), the `blocks` K11, K1s, A and M^ of the mass matrix, and the entries `b` and `s` of v of
        the base and the joints.
    Raises ModelError: T is neither; nothing carries all: no first joint that is a group, nor several together.

    Example:
        >>> import pfaffian as pf
        >>> hub, mass, wheel = pf.body("hub", 3.0, inertia=3.0), pf.body("mass", 1.0), pf.body("wheel", 1.0, inertia=1.0)
        >>> turn, spin = pf.joint("turn", "revolute", "world", "hub"), pf.joint("spin", "revolute", "hub", "wheel")
        >>> boom = pf.joint("boom", "prismatic", "hub", "mass", axis=(1, 0, 0))
        >>> m = pf.mechanism("satellite", [hub, mass, wheel], [turn, boom, spin])
        >>> f = pf.compile_terms(m, {"A": lambda T: pf.reduction.floating_base(T).blocks.A}, backend="numpy")
        >>> f({"boom": 1.0})["A"]  # the wheel turns the hub back by 1 / (3 + 1 + 1)
        array([[0. , 0.2]])
    """
    if isinstance(T, Kinematics):
        T = Terms(T.mechanism, T.q, T.v, ca.SX.zeros(T.mechanism.nu, 1), T.t)
    return FloatingBase(as_terms(T), carrying(T.mechanism))
