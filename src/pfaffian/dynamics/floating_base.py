"""A machine with a floating base: twists of bodies from joint motion and momentum, and motions that leave the base at rest.

With velocities tau of the base in body axes, s of the joints and the momentum mu_b of the machine (terms/reduced_terms.py)

    tau = K11^-1 mu_b - A s,    V = J_b tau + J_s s = J_g s + J_b K11^-1 mu_b,    J_g = J_s - J_b A,

where J_g is the generalised Jacobian of Umetani and Yoshida (1989). Velocities s with A s = 0 do not move the base: they form
the reaction null space of Nenchev, Umetani and Yoshida (1992).

Closures between bodies of the machine, A_c s = 0, change no momentum, but permit fewer s. A velocity v of zero momentum is
replaced by the nearest permitted one in the metric of M, which has zero momentum too:

    v = H s,    H = (1 - M^-1 A_c^T (A_c M^-1 A_c^T)^+ A_c) [-A; 1],    J_g = J H,

where J is the Jacobian with respect to all v. The reaction null space is that of the rows A and A_c together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import casadi as ca

from pfaffian.dynamics.motion import RANK_TOLERANCE, shortest_change
from pfaffian.errors import ModelError, brief, is_one_of
from pfaffian.maths.linear import orthogonalise, solve_symmetric
from pfaffian.maths.reflection import NOTHING
from pfaffian.maths.tree_factor import solve_WT
from pfaffian.model import reprs
from pfaffian.model.constraint import Closure
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.number import vector
from pfaffian.terms.common_motion import CommonMotion, carried_together
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.reduced_terms import RANK, MassBlocks, adjoint, blocks, first_joint, indices, others, split, still
from pfaffian.terms.terms import Terms, as_terms

RESTING = {"pose": ("m/s", "rad/s"), "attitude": ("rad/s",)}
"""Word for the part of the base's motion that is zero -> units of the velocities in that part."""


def loops(m: Mechanism, what: str, ignored: tuple[type, ...] = ()) -> Mechanism:
    """The machine with the closures between its moving bodies as its only constraints.

    what: name of the requested quantity, for messages.   ignored: kinds of constraints that the quantity ignores.
    Raises ModelError: no joints carry the whole machine; a constraint of another kind; a closure that is not always active, or
    ties the machine to a body that does not move.
    """
    carrying(m)
    for c in m.ideal:
        if not isinstance(c, (Closure, *ignored)) or (isinstance(c, Closure) and c.active):
            raise ModelError(
                f"{what}: constraint {c.name!r} of {m.name!r} is not an always active closure between bodies, so its effect on "
                "motions and momentum is not known; write it as a closure, or leave it out: m.with_(constraints=...)"
            )
    return _with_loops(m, what)


def carrying(m: Mechanism) -> str:
    """The name of the joint, or joints together, that carry the whole machine. Raises ModelError: there are none."""
    common = carried_together(m)
    return common.name if common else first_joint(m).name


def one_joint(m: Mechanism, what: str) -> Mechanism:
    """The machine. Raises ModelError: several joints carry it together, but the quantity `what` is defined for one joint."""
    if common := carried_together(m):
        names = ", ".join(map(repr, common.joints))
        raise ModelError(
            f"{what}: {names} carry {m.name!r} together, but it is defined for one joint: let one joint, for example of kind "
            "'free', carry all, with the other joints of the world on its body; mechanical_connection, connection_curvature "
            "and reduce(m, momentum=...) take joints together"
        )
    return m


def _with_loops(m: Mechanism, what: str) -> Mechanism:
    """The machine with its closures alone. Raises ModelError: one of them ties it to a body that does not move."""
    closures = tuple(c for c in m.ideal if isinstance(c, Closure))
    for c in closures:
        for fixed in still(m) & {c.body_a, c.body_b}:
            raise ModelError(
                f"{what}: closure {c.name!r} ties {m.name!r} to {fixed!r}, which does not move and so changes the momentum of "
                f"joint {carrying(m)!r}; leave the closure out: m.with_(constraints=...)"
            )
    return replace(m, constraints=closures)


def without_momentum(T: Terms, joint: str) -> ca.SX:
    """H (nv, n): the motion v = H s of zero momentum of a first joint and all others, projected onto the closures of T."""
    m, b = T.mechanism, indices(T.mechanism, (joint,))
    s = others(m, b)
    free = ca.SX(m.nv, len(s))
    free[b, :], free[s, :] = -blocks(T, joint).A, ca.SX.eye(len(s))
    return permitted(T, free)


def permitted(T: Terms, free: ca.SX) -> ca.SX:
    """(nv, n) motions that the closures of T permit, each nearest to a column of free (nv, n) in the metric of M."""
    return free - solve_WT(T.factor, shortest_change(T).solve(T.A @ free)) if T.mechanism.ideal else free


@dataclass(frozen=True, eq=False)
class FloatingBase:
    """Terms of a machine split into base and joints, as expressions for laws, outputs and `compile_terms`.

    Closures between its bodies are respected, other constraints ignored. Where several joints carry the machine together, tau
    are the speeds along the motions that these joints share, in the world frame, and s are the remaining velocities.
    terms: Terms of the machine at symbols.   joint: name of the first joint, which moves the base, or of those that carry the
    machine together.
    """

    terms: Terms
    joint: str

    def __repr__(self) -> str:
        return reprs.words(self, f"of {self.terms.mechanism.name!r}", f"joint {self.joint!r}", f"s ({len(self.s)}, 1)")

    @cached_property
    def common(self) -> CommonMotion | None:
        """The common motions of the joints that carry the machine together, None if it has one first joint."""
        return carried_together(self.terms.mechanism)

    @cached_property
    def X(self) -> ca.SX:
        """(nv, nv) v = X [tau; s], with tau at the entries `b` and s at the entries `s`."""
        return self.common.lift(self.terms.kinematics) if self.common else ca.SX.eye(self.terms.mechanism.nv)

    @cached_property
    def M(self) -> ca.SX:
        """(nv, nv) mass matrix X^T M X of tau and s."""
        return self.X.T @ self.terms.M @ self.X if self.common else self.terms.M

    @cached_property
    def _near(self) -> ca.SX:
        """X with common motions about a point of the base, so that no digits are lost far from the world's origin."""
        return self.common.near(self.terms.kinematics) if self.common else self.X

    @cached_property
    def _near_blocks(self) -> MassBlocks:
        """`blocks` for `_near`."""
        return split(self._near.T @ self.terms.M @ self._near, self.b) if self.common else self.blocks

    @cached_property
    def blocks(self) -> MassBlocks:
        """Blocks of the mass matrix: K11 (k, k), K1s (k, n), A (k, n) = K11^-1 K1s and M^ (n, n) = Kss - K1s^T A."""
        if self.common is None:
            return split(self.M, self.b)
        near, M = self._near_blocks, self.M
        A = self.common.about_origin(self.terms.kinematics, near.A)
        return MassBlocks(M[self.b, self.b], M[self.b, self.s], A, near.shape)

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
        """H (nv, n): at zero momentum v = H s, projected onto the closures."""
        return permitted(self.closed, self._near[:, self.s] - self._near[:, self.b] @ self._near_blocks.A)

    def jacobian(self, body: str, frame: str = "LOCAL", point: Any = (0, 0, 0)) -> ca.SX:
        """Generalised Jacobian (6, n) J_g = J H, without closures J_s - J_b A; body, frame and point (3,) [m] as in
        `Kinematics.jacobian`.
        """
        return self.terms.kinematics.jacobian(body, frame, point) @ self.lift

    def momentum_twist(self, body: str, frame: str = "LOCAL", point: Any = (0, 0, 0), momentum: Any = None) -> ca.SX:
        """(6, 1) twist J_b K11^-1 mu_b of a body due to momentum.

        momentum: (k, 1) conserved spatial momentum, as `momentum_map` returns it [N s, N m s]; the result then does not depend
        on velocities. If None, the momentum of v.
        """
        T = self.terms
        J = T.kinematics.jacobian(body, frame, point)
        if momentum is None:
            Y = self._near[:, self.b]
            return (J @ Y) @ solve_symmetric(self._near_blocks.K11, Y.T @ (T.M @ T.v))
        m, mu = T.mechanism, vector(momentum, len(self.b), "momentum")
        if self.common is None:
            mu = adjoint(m.joint(self.joint), T.q[m.q_slices[self.joint], 0]).T @ mu
        return (J @ self.X[:, self.b]) @ solve_symmetric(self.blocks.K11, mu)

    def reaction_free(self, keep: str = "pose") -> ca.SX:
        """P (n, n): orthogonal projector onto the s that satisfy the closures and A_r s = 0.

        A_r are all rows of A for keep="pose", and those of the base's rotation for "attitude". In the latter the linear part is
        eliminated already: A_r s is the rotation of the base while the mass centre drifts freely.
        keep: "pose" or "attitude", the part of the base's motion that is zero.   Raises ModelError: another word.
        """
        Q = self.reacting(keep)
        return ca.SX.eye(len(self.s)) - Q.T @ Q

    def reacting(self, keep: str = "pose") -> ca.SX:
        """Q (r, n): rows of the complement of `reaction_free`, P = 1 - Q^T Q; orthonormal, or zero if A_r is short of rank."""
        if not is_one_of(keep, RESTING):
            raise ModelError(f"keep: {' or '.join(RESTING)} is needed, got {brief(keep)}")
        T = self.closed
        rows = [row for row, unit in enumerate(self._units) if unit in RESTING[keep]]
        constrained, tolerance, left = ca.SX(0, len(self.s)), RANK, self._near_blocks.A
        if T.mechanism.ideal:
            rhs = ca.SX(T.A.shape[0], 0)
            constrained = orthogonalise(T.A @ self._near[:, self.s], rhs, RANK_TOLERANCE, T.row_size, groups=T.groups).Q
            left, tolerance = left - (left @ constrained.T) @ constrained, RANK_TOLERANCE
        size = self._squared(left) / ca.fmax(ca.mmax(self._squared(self._near_blocks.A)), NOTHING)
        return ca.vertcat(constrained, orthogonalise(left[rows, :], ca.SX(len(rows), 0), tolerance, size[rows, 0]).Q)

    @property
    def _units(self) -> list[str]:
        """Units of the velocities of the base."""
        if self.common:
            return ["rad/s" if any(twist[3:]) else "m/s" for twist in self.common.twists]
        return [self.terms.mechanism.v_units[i] for i in self.b]

    def _squared(self, A: ca.SX) -> ca.SX:
        """(k, 1) squared lengths of rows A (k, n), times the base's inertia of each row and divided by those of the joints."""
        X = self._near[:, self.s]
        joints, base = ca.diag(ca.densify(X.T @ self.terms.M @ X)), ca.diag(self._near_blocks.K11)
        return base * (A * A @ (1 / joints))


def floating_base(T: Terms | Kinematics) -> FloatingBase:
    """Expressions of a floating machine: generalised Jacobian, twist due to momentum, reaction null space.

    Args:
        T: Terms, as a law or a function for `compile_terms` receives them, or `symbols(mechanism)`; or the Kinematics that a
            constraint, an output or a task receives.
    Returns:
        an object with `jacobian(body, frame, point)` (6, n), `momentum_twist(body, ..., momentum)` (6, 1),
        `reaction_free(keep)` (n, n), the `blocks` K11, K1s, A and M^ of the mass matrix, and the entries `b` and `s` of v of
        the base and the joints.
    Raises ModelError: T is neither; no joints carry the whole machine as a group.

    Example:
        >>> import pfaffian as pf
        >>> hub, wheel = pf.body("hub", 3.0, inertia=4.0), pf.body("wheel", 1.0, inertia=1.0)
        >>> turn, spin = pf.joint("turn", "revolute", "world", "hub"), pf.joint("spin", "revolute", "hub", "wheel")
        >>> m = pf.mechanism("satellite", [hub, wheel], [turn, spin])
        >>> f = pf.compile_terms(m, {"A": lambda T: pf.reduction.floating_base(T).blocks.A}, backend="numpy")
        >>> round(float(f([0.0, 0.0])["A"]), 9)  # the wheel turns the hub back by 1 / (4 + 1)
        0.2
    """
    if isinstance(T, Kinematics):
        T = Terms(T.mechanism, T.q, T.v, ca.SX.zeros(T.mechanism.nu, 1), T.t)
    return FloatingBase(as_terms(T), carrying(T.mechanism))
