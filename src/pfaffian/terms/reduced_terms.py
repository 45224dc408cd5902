"""Terms of a reduction: the mass matrix without a first joint that is a group, and the velocities that constraints leave.

With body-fixed velocities tau of the first joint, and s of the others, the mass matrix does not depend on the position of that
joint, and

    M = [[K11, K1s], [K1s^T, Kss]],    A = K11^-1 K1s,    M^ = Kss - K1s^T A,    mu_b = K11 tau + K1s s,
    T = s^T M^ s / 2 + mu_b^T K11^-1 mu_b / 2.                                              [chhabra14 (3.3.36)-(3.3.42)]

Constraints on velocities leave v = X y, where y are the velocities of all joints but a group, which the constraints determine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import casadi as ca

from pfaffian.errors import ModelError
from pfaffian.maths import se3
from pfaffian.maths.linear import orthogonalise, smallest, solve_symmetric
from pfaffian.maths.subgroups import Subgroup
from pfaffian.model.body import WORLD
from pfaffian.model.constraint import Closure
from pfaffian.model.joint import Joint
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.pose import Pose
from pfaffian.terms.common_motion import CommonMotion
from pfaffian.terms.connection import commutation_coefficients, directional_derivative, rate
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.momentum import link_momenta, momenta, total_momentum, transport
from pfaffian.terms.recursions import Moments, SpatialForce, carry, composite_moments
from pfaffian.terms.terms import Terms

RANK = 1e-9
"""A constraint row's remainder along the group is zero below this fraction of its length along the group."""


class MassBlocks(NamedTuple):
    """Blocks of the mass matrix for a first joint b and the rest s.   K11: (k, k).   K1s, A: (k, n).   shape: (n, n) M^."""

    K11: ca.SX
    K1s: ca.SX
    A: ca.SX
    shape: ca.SX


def blocks(T: Terms, joint: str) -> MassBlocks:
    """The mass matrix split between a joint and the rest of the velocities, in their order. [chhabra14 (3.3.36), (3.3.37)]"""
    return split(T.M, indices(T.mechanism, (joint,)))


def split(M: ca.SX, b: Sequence[int]) -> MassBlocks:
    """A mass matrix split between the entries b and the rest, in their order."""
    M, s = ca.densify(M), [i for i in range(M.shape[0]) if i not in b]
    K11, K1s = M[b, b], M[b, s]
    A = solve_symmetric(K11, K1s)
    return MassBlocks(K11, K1s, A, M[s, s] - K1s.T @ A)


def indices(m: Mechanism, joints: Sequence[str]) -> list[int]:
    """Entries of v that belong to joints, in the order of v."""
    return [i for j in m.joints if j.name in joints for i in range(m.v_slices[j.name].start, m.v_slices[j.name].stop)]


def others(m: Mechanism, entries: Sequence[int]) -> list[int]:
    """All other entries of v, in the order of v."""
    return [i for i in range(m.nv) if i not in entries]


def group_of(j: Joint) -> Subgroup | None:
    """The group of motions of a joint; None for an edge, two groups in series, a joint that follows others or does not move."""
    if j.pose is not None or j.mimic is not None or len(j.parts) != 1:
        return None
    return j.parts[0].subgroup


def first_joint(m: Mechanism) -> Joint:
    """The one joint between the world and all moving bodies.

    Raises ModelError: there are several such joints, or none; its motions are not a group; the mechanism has coordinates,
    chosen velocities or kinetic energies.
    """
    grounded = [j for j in m.joints if j.parent in still(m) and (j.nv or j.pose)]
    if m.coordinates or m.velocities or m.kinetic_energies:
        raise ModelError(
            f"{m.name!r} has coordinates, velocities or kinetic energies of its own; a reduction needs bodies on joints alone"
        )
    if len(grounded) != 1:
        names = ", ".join(repr(j.name) for j in grounded)
        raise ModelError(
            f"{m.name!r} stands on the world by {names}; a reduction needs one first joint that carries all: "
            f"{_way_out(m, grounded)}"
        )
    if group_of(grounded[0]) is None:
        raise ModelError(
            f"joint {grounded[0].name!r} of {m.name!r} permits no group of motions ({grounded[0].kind.name}); a reduction by "
            "the first joint needs a group of maths.subgroups: write it as two joints in series, for example"
        )
    return grounded[0]


def _way_out(m: Mechanism, grounded: list[Joint]) -> str:
    """Advice, as text, how a machine that stands on the world by these joints can become one tree."""
    free = [j.child for j in grounded if j.kind.name == "free"]
    for c in m.all_constraints:
        if isinstance(c, Closure) and {c.body_a, c.body_b} & set(free):
            return f"pf.joined(m, {c.name!r}) turns closure {c.name!r} into a joint, so that there is one tree"
    if free:
        return "connect the other parts to one of its bodies by a joint, or write a mechanism for each"
    return "let the body that carries them float, by a free joint (base='free' when reading a URDF file)"


def still(m: Mechanism) -> set[str]:
    """The world, and the bodies that are fixed to it."""
    found = {WORLD}
    for j in m.joints:
        if j.parent in found and not j.moves and j.pose is None:
            found.add(j.child)
    return found


def adjoint(j: Joint, q: ca.SX) -> ca.SX:
    """(k, k) Ad of the joint's displacement on its algebra, which maps velocities in the child's frame to the parent's.

    q: (nq, 1) coordinates of the joint. Momenta transform the other way: body momentum = adjoint^T (spatial momentum).
    """
    (part,) = j.parts
    return on_algebra(part.subgroup, *part.subgroup.motion(q))


def adjoint_inverse(j: Joint, q: ca.SX) -> ca.SX:
    """(k, k) inverse of `adjoint`."""
    (part,) = j.parts
    return on_algebra(part.subgroup, *se3.inverse(*part.subgroup.motion(q)))


def to_body(j: Joint, q: ca.SX, mu: ca.SX) -> ca.SX:
    """(k, 1) adjoint^T mu: transform a momentum mu (k, 1) from the joint's frame on the parent to that on the child."""
    (part,) = j.parts
    R, p = part.subgroup.motion(q)
    f, n = _wrench(part.subgroup, mu)
    return part.subgroup.S.T @ ca.vertcat(R.T @ f, R.T @ (n - ca.cross(p, f)))


def to_space(j: Joint, q: ca.SX, pi: ca.SX) -> ca.SX:
    """(k, 1) adjoint^-T pi: transform a momentum pi (k, 1) from the joint's frame on the child to that on the parent."""
    (part,) = j.parts
    return part.subgroup.S.T @ ca.vertcat(*carry(Pose(*part.subgroup.motion(q)), _wrench(part.subgroup, pi)))


def _wrench(group: Subgroup, momentum: ca.SX) -> SpatialForce:
    """The wrench with these components (k, 1) along the axes of a group, zero along all others."""
    F = ca.SX.zeros(6, 1)
    F[list(group.axes), 0] = momentum
    return SpatialForce(F[:3, 0], F[3:, 0])


def on_algebra(group: Subgroup, R: ca.SX, p: ca.SX) -> ca.SX:
    """(k, k) Ad, on the algebra of a group, of a pose that maps this algebra to itself."""
    return (se3.Ad(R, p) @ group.S)[list(group.axes), :]


def in_first_joint(T: Terms, joint: str) -> ca.SX:
    """(k, 1) momentum of all moving bodies along the motions of the first joint, in the joint's frame on the world."""
    link = next(x for x in T.kinematics.tree.links if x.joint.name == joint)
    (part,) = link.joint.parts
    return part.subgroup.S.T @ se3.Ad(link.placement.R, link.placement.p).T @ total_momentum(T.kinematics)


class Translation(NamedTuple):
    """The translations of a first joint, by which the whole machine moves without rotation or change of shape.

    Relative to a frame that moves at V = f / mass, with f the momentum along the translations, the machine has no momentum
    along them, and its angular momentum is the same about all points. Its distance and speed then no longer matter.

    entries: the n entries of v.   mass: (1, 1) of all bodies [kg].
    R: (n, n) rotation from the body's axes to those of the frame on which the joint stands.
    axes: (3, n) the latter axes in the world.   fields: (nv, n) velocities of unit speed along these axes.
    """

    entries: list[int]
    mass: ca.SX
    R: ca.SX
    axes: ca.SX
    fields: ca.SX

    def pull(self, gravity: ca.SX) -> ca.SX:
        """(n, 1) components of gravity (3, 1) along the translations [m/s^2]."""
        return self.axes.T @ gravity

    def remaining_gravity(self, gravity: ca.SX) -> ca.SX:
        """(3, 1) the part of gravity that remains in a frame that falls along the translations, world axes [m/s^2]."""
        return ca.SX(3, 1) if len(self.entries) == 3 else gravity - self.axes @ self.pull(gravity)

    def along(self, force: ca.SX) -> ca.SX:
        """(n, 1) components of a generalised force (nv, 1) along the translations, in the axes of the frame [N]."""
        return self.fields.T @ force

    def effective_gravity(self, gravity: ca.SX, along: ca.SX) -> ca.SX:
        """(3, 1) gravity in the frame, which weight and a force `along` the translations accelerate [m/s^2]."""
        return self.remaining_gravity(gravity) - self.axes @ along / self.mass

    def rate(self, gravity: ca.SX, along: ca.SX) -> ca.SX:
        """(n, 1) rate of the momentum along the translations by weight and a force `along` them [N]."""
        return self.mass * self.pull(gravity) + along


def translation(k: Kinematics, joint: Joint) -> Translation | None:
    """The translations of a first joint that is a group.

    None if it has none, or if it has armature along them, which is an inertia that does not move with the machine.
    """
    (part,) = joint.parts
    group, begin = part.subgroup, k.mechanism.v_slices[joint.name].start
    link = next(x for x in k.tree.links if x.joint.name == joint.name)
    n, mass = len(group.along), sum((x.mass for x in k.tree.links), ca.SX(0))
    if not n or not link.armature[:n].is_zero() or mass.is_zero():
        return None
    R, _ = group.motion(k.joint(joint.name))
    axes = list(group.along)
    entries, R = list(range(begin, begin + n)), ca.SX(R)[axes, axes]
    fields = ca.SX(k.mechanism.nv, n)
    fields[entries, :] = R.T
    return Translation(entries, mass, R, ca.SX(link.placement.R)[:, axes], fields)


def translation_of_all(k: Kinematics, common: CommonMotion) -> Translation | None:
    """The translations that several joints permit to the whole machine; None if there are none."""
    n, mass = common.slides, sum((x.mass for x in k.tree.links), ca.SX(0))
    if not n or mass.is_zero():
        return None
    fields, axes = common.fields(k, along_base=True)[:, :n], ca.SX(ca.DM(common.basis[:3, :n]))
    return Translation(common.entries(k.tree)[:n], mass, ca.SX.eye(n), axes, fields)


def about_mass_centre(T: Terms, joint: Joint, frame: Translation) -> ca.SX:
    """(k, 1) momentum of the bodies along a first joint's translations, and angular momentum about the mass centre."""
    return _centred(T.kinematics, joint, frame, link_momenta(T.kinematics)[_link(T.kinematics, joint)])


def push(k: Kinematics, joint: Joint, frame: Translation | None, F: ca.SX) -> ca.SX:
    """(k, 1) rate of a first joint's spatial momentum by a force F (k, 1); with a frame, of that about the mass centre."""
    (part,) = joint.parts
    return _centred(k, joint, frame, _wrench(part.subgroup, F)) if frame else to_space(joint, k.joint(joint.name), F)


def _centred(k: Kinematics, joint: Joint, frame: Translation, x: SpatialForce) -> ca.SX:
    """(k, 1) components of x, given in the frame of the joint's link, along the translations and about the mass centre."""
    (part,) = joint.parts
    along, moments = list(part.subgroup.along), composite_moments(k)[_link(k, joint)]
    sliding = ca.SX(3, 1)
    sliding[along, 0] = x.f[along, 0]
    turning = part.subgroup.S.T @ ca.vertcat(x.f - sliding, x.n - ca.cross(moments.h, sliding) / moments.mass)
    found = to_space(joint, k.joint(joint.name), turning)
    found[: len(frame.entries), 0] = frame.R @ x.f[along, 0]
    return found


def carries(k: Kinematics, joint: Joint) -> Moments:
    """Moments of all that a joint carries, in the frame of its link."""
    return composite_moments(k)[_link(k, joint)]


def _link(k: Kinematics, joint: Joint) -> int:
    """Index of the link of a joint."""
    return next(i for i, x in enumerate(k.tree.links) if x.joint.name == joint.name)


def in_moving_frame(T: Terms, frame: Translation | None) -> Terms:
    """Terms without inputs, relative to a frame that moves with the mass centre along translations; T if there is none."""
    if frame is None:
        return T
    v = T.v - frame.fields @ frame.along(momenta(T)) / frame.mass
    return Terms(T.mechanism, T.q, v, ca.SX(T.mechanism.nu, 1), T.t)


def horizontal_lift(T: Terms, group: Sequence[int]) -> ca.SX:
    """X (nv, ny) with v = X y; y are all velocities except the entries `group` of v, which the constraint rows determine.

    A_G v_G + A_y y = 0 gives v_G = -A^ y, the principal connection of the constraints. [chhabra14 (4.3.25)]
    """
    rest = others(T.mechanism, group)
    rows, n = ca.densify(T.A), T.mechanism.nv
    A_G, A_y = ca.sparsify(rows[:, list(group)]), rows[:, rest]
    X = ca.SX(n, len(rest))
    X[rest, :] = ca.SX.eye(len(rest))
    X[list(group), :] = ca.sparsify(-smallest(orthogonalise(A_G, ca.SX(A_G.shape[0], 0), RANK), A_y))
    return ca.sparsify(X)


def curvature(T: Terms, A: ca.SX, joints: Sequence[str]) -> ca.SX:
    """(k n, n): row n a + i, column j is B_ij^a = d_i A_j^a - d_j A_i^a - gamma_ij^l A_l^a - [A_i, A_j]^a of A (k, n).

    A is a connection: its k rows belong to the velocities of `joints`, which are groups, its n columns to all other velocities.
    [chhabra14 (3.2.24), (4.3.27)]
    """
    rest, n = others(T.mechanism, indices(T.mechanism, joints)), A.shape[1]
    gamma = commutation_coefficients(T.kinematics)
    along = directional_derivative(T.kinematics, ca.vec(ca.densify(A)))[:, rest]  # [a + k j, i]: d_i A_j^a
    k = A.shape[0]
    out = ca.SX(k * n, n)
    for i in range(n):
        for j in range(n):
            x = along[k * j : k * (j + 1), i] - along[k * i : k * (i + 1), j] - A @ gamma[rest[i]][rest[j], rest].T
            out[i::n, j] = x - _bracket(T.mechanism, joints, A[:, i], A[:, j])
    return out


def _bracket(m: Mechanism, joints: Sequence[str], x: ca.SX, y: ca.SX) -> ca.SX:
    """(k, 1) [x, y] in the product of the algebras of joints, in the order of v."""
    found, at = ca.SX(0, 1), 0
    for j in m.joints:
        if j.name in joints:
            (part,) = j.parts
            S, here = part.subgroup.S, slice(at, at + j.nv)
            found = ca.vertcat(found, (se3.ad(S @ x[here]) @ (S @ y[here]))[list(part.subgroup.axes)])
            at += j.nv
    return found


def transport_along(T: Terms, X: ca.SX) -> ca.SX:
    """(ny, 1) rate X^T p_dot + X_dot^T p of the momenta X(q)^T p if no force acts."""
    p = ca.SX.sym("p", T.mechanism.nv)
    return X.T @ transport(T) + ca.substitute(rate(T.kinematics, X.T @ p), p, momenta(T))
