"""Articulated-body inertias, and solution of the equations of motion along the tree, link by link.

The motion V of a link is that of the previous link, transformed to it, plus a drift and the motion S x of its joint. F is the
wrench that a link receives from its joint, and f is the force along the joint:

    V_i = X_i V + drift_i + S_i x_i,    f_i = S_i^T F_i + armature x_i,
    F_i = I_i V_i + bias_i + sum of X_j^T F_j over the links j that follow link i.

With accelerations for V, and the velocity terms in drift and bias, this is forward dynamics. With twists for V, and neither
drift nor bias, F are momenta and f = p, so the same sweeps solve p = M v for v. All links beyond a joint act on the previous
link as an inertia I^A and a bias b^A. Thus no mass matrix is needed, and the work is linear in the number of links.
[Featherstone 1983]

Inertia is stored in blocks [[A, H], [H^T, J]] for twists [v; w]. For a joint that turns about or slides along z, the row and
column of this motion vanish when the joint's part is subtracted; they are set to zero exactly, not computed.
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
    """Articulated-body quantities of a link and its joint.

    inertia: (6, 6) I_A of the link and all that it carries.   U: (6, nv) I_A S.   D: (nv, nv) S^T U with armature.
    K: (nv, 6) D^-1 U^T.   rest: (6, 6) I_A - U K, which acts on the previous link.
    K and rest are zero for a joint on the world.
    """

    inertia: ca.SX
    U: ca.SX
    D: ca.SX
    K: ca.SX
    rest: ca.SX


def check_plain(k: Kinematics, formulation: str) -> None:
    """Raise ModelError if v are not the rates of the links, or if the kinetic energy is not that of the links alone."""
    if not k.rates.plain or k.mechanism.kinetic_energies:
        has = (
            "velocities other than the rates of its joints"
            if not k.rates.plain
            else "a kinetic energy besides that of its bodies"
        )
        raise ModelError(
            f"mechanism {k.mechanism.name!r} has {has}, which the formulation {formulation!r} does not support; use 'gauss'"
        )


def articulated_joints(k: Kinematics) -> list[ArticulatedJoint]:
    """The articulated-body quantities of each link."""
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
            f"joint {joint!r} moves no inertia: all that it carries lies on its axis, or joints beyond it move the same way; "
            "give a body inertia, or the joint armature"
        )


def _rigid(link: Link) -> ca.SX:
    """(6, 6) inertia of a link alone."""
    H = -hat(link.h)
    return ca.densify(ca.blockcat([[link.mass * ca.SX.eye(3), H], [H.T, link.I]]))


def _reduce(link: Link, IA: ca.SX, U: ca.SX, K: ca.SX) -> ca.SX:
    """(6, 6) I_A - U K, with exact zeros in the rows and columns along which a joint without armature moves freely."""
    rest = symmetric(IA - U @ K)
    if link.armature.is_zero():
        for column in range(link.nv):
            if link.basis[:, column].nnz() == 1:
                free = link.basis[:, column].sparsity().row()[0]
                rest[free, :] = 0
                rest[:, free] = 0
    return rest


def _carry_inertia(k: Kinematics, i: int, IA: ca.SX) -> ca.SX:
    """Transform an articulated inertia from the frame of link i to that of the previous link."""
    p = hat(k.steps[i].p)
    A, H, J = (k.conjugate(i, IA[rows, columns]) for rows, columns in _BLOCKS)
    shifted = H - A @ p
    return ca.SX(ca.blockcat([[symmetric(A), shifted], [shifted.T, symmetric(J - H.T @ p + p @ shifted)]]))


class Solved(NamedTuple):
    """Result of `solve_tree`.   x: (ns, 1) along the joints.   F: wrench of each joint on its link, in the link's frame."""

    x: ca.SX
    F: list[SpatialForce]


def solve_tree(
    k: Kinematics,
    f: ca.SX,
    bias: Sequence[ca.SX] | None = None,
    drift: Sequence[ca.SX] | None = None,
    world: ca.SX | None = None,
) -> Solved:
    """Solve the equations of this module for x and F, given f (ns, 1). Raises ModelError: a joint moves no inertia.

    bias, drift: (6, 1) for each link, zero if not given.   world: (6, 1) V of the world, zero if not given.
    """
    links, joints = k.tree.links, articulated_joints(k)
    b = [ca.SX.zeros(6, 1)] * len(links) if bias is None else list(bias)
    innovation = [ca.SX(0)] * len(links)
    for i in reversed(range(len(links))):
        link, joint = links[i], joints[i]
        innovation[i] = f[link.v] - link.basis.T @ b[i]
        if link.parent >= 0:
            # A joint on the world is solved in the outward sweep, by one division.
            innovation[i] = solve_symmetric(joint.D, innovation[i])
            b[i] = b[i] + joint.U @ innovation[i]
            transmitted = b[i] if drift is None else b[i] + joint.rest @ drift[i]
            b[link.parent] = b[link.parent] + ca.vertcat(*carry(k.steps[i], SpatialForce(transmitted[:3], transmitted[3:])))
    V, x, F = list[ca.SX](), ca.SX.zeros(k.tree.ns, 1), list[SpatialForce]()
    for i, (link, X, joint) in enumerate(zip(links, k.steps, joints, strict=True)):
        before = V[link.parent] if link.parent >= 0 else world
        arriving = ca.SX.zeros(6, 1) if before is None else _transformed(X, before)
        if drift is not None:
            arriving += drift[i]
        if link.parent >= 0:
            # Angular parts are known first. Adding them first shortens the chain of sums that limits the outward sweep.
            x[link.v] = innovation[i] - joint.K[:, 3:] @ arriving[3:] - joint.K[:, :3] @ arriving[:3]
            load = joint.rest @ arriving + b[i]
        else:
            x[link.v] = solve_symmetric(joint.D, innovation[i] - joint.U.T @ arriving)
            load = joint.inertia @ (arriving + link.basis @ x[link.v]) + b[i]
        V.append(arriving + ca.vertcat(*split_motion(link, x[link.v])))
        F.append(SpatialForce(load[:3], load[3:]))
    return Solved(x, F)


def _transformed(X: Pose, V: ca.SX) -> ca.SX:
    """(6, 1) transform the motion V from a link's frame to a frame with pose X in it."""
    linear, angular = V[:3], V[3:]
    return ca.vertcat(X.R.T @ (linear + ca.cross(angular, X.p)), X.R.T @ angular)


def innovations_factor(k: Kinematics) -> ca.SX:
    """W = (I + H Phi G) D^1/2 (nv, nv), upper triangular along the tree, M = W W^T. [aghili08 section V]

    Column i is the wrench that articulated link i needs for a unit innovation of its joint, projected onto it and onto the
    joints on its path to the root.
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
