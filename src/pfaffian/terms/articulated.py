"""Articulated bodies: the inertia that each joint feels of all that it carries, and solves along the tree, link by link.

Links have motions V, each that of the previous link carried over, a drift, and S x of its joint; F are the forces that they
receive from their joints, f those along each joint:

    V_i = X_i V + drift_i + S_i x_i,    F_i = I_i V_i + bias_i + sum of X_j^T F_j they carry,    f_i = S_i^T F_i + armature x_i.

With accelerations, and the terms of velocities in drift and bias, that is forward dynamics; with twists alone, no drift and no
bias, F are momenta and f = p, so the same sweeps solve p = M v for v. The links beyond a joint act on the previous one again as
an inertia and a bias, I^A and b^A: no mass matrix, and work that is linear in the number of links. [Featherstone 1983]

Inertia in blocks [[A, H], [H^T, J]] for twists [v; w]. Where a joint turns about or slides along z, its own row and column
vanish exactly once the joint's share is subtracted; they are set to zero rather than computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import casadi as ca

from pfaffian.errors import ModelError
from pfaffian.maths.linear import solve_symmetric
from pfaffian.maths.so3 import hat, symmetric
from pfaffian.maths.tree_factor import factor_tree
from pfaffian.model.pose import Pose
from pfaffian.terms.inertia import SpatialForce, carry
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.tree import Link, project_force, split_motion

_BLOCKS = ((slice(0, 3), slice(0, 3)), (slice(0, 3), slice(3, 6)), (slice(3, 6), slice(3, 6)))


class ArticulatedJoint(NamedTuple):
    """inertia: (6, 6) I_A of the link and all it carries.   U: (6, nv) I_A S.   D: (nv, nv) S^T U with armature.
    K: (nv, 6) D^-1 U^T.   rest: (6, 6) I_A - U K, which acts on the previous link. A joint on the world has neither K nor rest.
    """

    inertia: ca.SX
    U: ca.SX
    D: ca.SX
    K: ca.SX
    rest: ca.SX


def check_plain(k: Kinematics, formulation: str) -> None:
    """Raise ModelError where velocities are not those of the links, or kinetic energy is not that of the links alone."""
    if not k.rates.plain or k.mechanism.kinetic_energies:
        has = "velocities that are not those of its joints one by one" if not k.rates.plain else "a kinetic energy of its own"
        raise ModelError(
            f"mechanism {k.mechanism.name!r} has {has}; the formulation {formulation!r} cannot serve it, use 'gauss'"
        )


def articulated_joints(k: Kinematics) -> list[ArticulatedJoint]:
    """One for each link."""
    links = k.tree.links
    inertia = [_rigid(link) for link in links]
    joints: list[ArticulatedJoint] = []
    for i in reversed(range(len(links))):
        link = links[i]
        U = inertia[i] @ link.basis
        D = link.basis.T @ U + ca.diag(link.armature)
        check_inertia(ca.diag(D), link.joint.name)
        K, rest = ca.SX(link.nv, 6), ca.SX(6, 6)
        if link.parent >= 0:
            K = solve_symmetric(D, U.T)
            rest = _reduce(link, inertia[i], U, K)
            inertia[link.parent] += _carry_inertia(k, i, rest)
        joints.insert(0, ArticulatedJoint(inertia[i], U, D, K, rest))
    return joints


def check_inertia(diagonal: ca.SX, joint: str) -> None:
    """Raise ModelError if a joint moves without any inertia, whatever the configuration."""
    if any(diagonal[i].is_zero() for i in range(diagonal.numel())):
        raise ModelError(
            f"joint {joint!r} moves no inertia: all it carries lies on its axis, or joints beyond it move that the same way; "
            "give a body inertia, or the joint armature"
        )


def _rigid(link: Link) -> ca.SX:
    H = -hat(link.h)
    return ca.densify(ca.blockcat([[link.mass * ca.SX.eye(3), H], [H.T, link.I]]))


def _reduce(link: Link, IA: ca.SX, U: ca.SX, K: ca.SX) -> ca.SX:
    rest = symmetric(IA - U @ K)
    if link.armature.is_zero():
        for column in range(link.nv):
            if link.basis[:, column].nnz() == 1:
                free = link.basis[:, column].sparsity().row()[0]
                rest[free, :] = 0
                rest[:, free] = 0
    return rest


def _carry_inertia(k: Kinematics, i: int, IA: ca.SX) -> ca.SX:
    """The articulated inertia of link i, seen in the frame of the previous link."""
    p = hat(k.steps[i].p)
    A, H, J = (k.conjugate(i, IA[rows, columns]) for rows, columns in _BLOCKS)
    shifted = H - A @ p
    return ca.SX(ca.blockcat([[symmetric(A), shifted], [shifted.T, symmetric(J - H.T @ p + p @ shifted)]]))


class Solved(NamedTuple):
    """x: (ns, 1) along the joints.   F: for each link the wrench from its joint, about its origin in its axes."""

    x: ca.SX
    F: list[SpatialForce]


def solve_tree(
    k: Kinematics,
    f: ca.SX,
    bias: Sequence[ca.SX] | None = None,
    drift: Sequence[ca.SX] | None = None,
    world: ca.SX | None = None,
) -> Solved:
    """x and F of the equations above, f (ns, 1) given. Raises ModelError: a joint that moves no inertia.

    bias, drift: (6, 1) of each link, none if not given.   world: (6, 1) V of the world, at rest if not given.
    """
    links, joints = k.tree.links, articulated_joints(k)
    b = [ca.SX.zeros(6, 1)] * len(links) if bias is None else list(bias)
    innovation = [ca.SX(0)] * len(links)
    for i in reversed(range(len(links))):
        link, joint = links[i], joints[i]
        innovation[i] = f[link.v] - link.basis.T @ b[i]
        if link.parent >= 0:
            # For a joint on the world one division is left to the outward sweep.
            innovation[i] = solve_symmetric(joint.D, innovation[i])
            b[i] = b[i] + joint.U @ innovation[i]
            felt = b[i] if drift is None else b[i] + joint.rest @ drift[i]
            b[link.parent] = b[link.parent] + ca.vertcat(*carry(k.steps[i], SpatialForce(felt[:3], felt[3:])))
    V, x, F = list[ca.SX](), ca.SX.zeros(k.tree.ns, 1), list[SpatialForce]()
    for i, (link, X, joint) in enumerate(zip(links, k.steps, joints, strict=True)):
        before = V[link.parent] if link.parent >= 0 else world
        arriving = ca.SX.zeros(6, 1) if before is None else _seen_from(X, before)
        if drift is not None:
            arriving += drift[i]
        if link.parent >= 0:
            # Rotations arrive first: the depth of the sums decides how long the outward sweep takes.
            x[link.v] = innovation[i] - joint.K[:, 3:] @ arriving[3:] - joint.K[:, :3] @ arriving[:3]
            load = joint.rest @ arriving + b[i]
        else:
            x[link.v] = solve_symmetric(joint.D, innovation[i] - joint.U.T @ arriving)
            load = joint.inertia @ (arriving + link.basis @ x[link.v]) + b[i]
        V.append(arriving + ca.vertcat(*split_motion(link, x[link.v])))
        F.append(SpatialForce(load[:3], load[3:]))
    return Solved(x, F)


def _seen_from(X: Pose, V: ca.SX) -> ca.SX:
    """(6, 1) the motion V of a link as that of a body fixed to it at the pose X, in the body's axes."""
    linear, angular = V[:3], V[3:]
    return ca.vertcat(X.R.T @ (linear + ca.cross(angular, X.p)), X.R.T @ angular)


def innovations_factor(k: Kinematics) -> ca.SX:
    """W = (I + H Phi G) D^1/2 (nv, nv), upper triangular along the tree, M = W W^T. [aghili08 section V]

    Column i: the wrench that articulated link i needs for a unit of its joint's innovation, carried to the joints before it.
    """
    n = k.mechanism.nv
    W = ca.SX(n, n)
    for i, (link, joint) in enumerate(zip(k.tree.links, articulated_joints(k), strict=True)):
        root = factor_tree(joint.D, range(-1, link.nv - 1)).W
        W[link.v, link.v] = root
        G = joint.U @ solve_symmetric(joint.D, root)
        for column in range(link.nv):
            F = SpatialForce(G[:3, column], G[3:, column])
            path = k.tree.path(i)
            for child, parent in pairwise(path):
                F = carry(k.steps[child], F)
                above = k.tree.links[parent]
                W[above.v, link.v.start + column] = project_force(above, *F)
    return W
