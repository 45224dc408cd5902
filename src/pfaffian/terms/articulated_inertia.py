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

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import casadi as ca

from pfaffian.errors import ModelError
from pfaffian.maths.linear import solve_symmetric
from pfaffian.maths.repeated import repeated
from pfaffian.maths.so3 import hat, symmetric
from pfaffian.maths.tree_factor import factor_tree
from pfaffian.model.pose import Pose
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.recursions import SpatialForce, carry
from pfaffian.terms.tree import Link, Turning, project_force, turned, turning

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
    if not k.rates.plain or k.mechanism.inertia_elsewhere:
        has = (
            "velocities other than the rates of its joints"
            if not k.rates.plain
            else "inertia besides that of its bodies and of the joints of its tree"
        )
        raise ModelError(
            f"mechanism {k.mechanism.name!r} has {has}, which the formulation {formulation!r} does not support; use 'gauss'"
        )


def articulated_joints(k: Kinematics) -> list[ArticulatedJoint]:
    """The articulated-body quantities of each link."""
    links = k.tree.links
    inertia = [ca.SX(0)] * len(links)
    joints: list[ArticulatedJoint] = []
    carried = [[_rigid()(link.mass, link.h, link.I)[0]] for link in links]
    for i in reversed(range(len(links))):
        link = links[i]
        inertia[i] = sum(carried[i][1:], carried[i][0])
        U, D = _at_joint()(inertia[i], link.basis, link.armature)
        check_inertia(ca.diag(D), link.joint.name)
        K, rest = ca.SX(link.nv, 6), ca.SX(6, 6)
        if link.parent >= 0:
            R, p = k.motions[i].R, k.steps[i].p
            K, rest = _solved(_before_joint, D, _free(link))(inertia[i], U, D)
            carried[link.parent] += _carry_inertia(turning(R))(rest, link.placement.R, R, p, -p)
        joints.append(ArticulatedJoint(inertia[i], U, D, K, rest))
    return joints[::-1]


def _solved(f: Any, D: ca.SX, *options: Any) -> Callable[..., Sequence[ca.SX]]:
    """A repeated function that divides by D; as written where D is a number, by whose reciprocal it then multiplies."""
    return partial(f.__wrapped__, *options) if D.is_constant() else f(*options)


def _free(link: Link) -> tuple[int, ...]:
    """The entries of a twist along which the joint moves freely, alone and without armature."""
    if not link.armature.is_zero():
        return ()
    return tuple(link.basis[:, c].sparsity().row()[0] for c in range(link.nv) if link.basis[:, c].nnz() == 1)


@repeated
def _at_joint(inertia: ca.SX, basis: ca.SX, armature: ca.SX) -> tuple[ca.SX, ca.SX]:
    """U and D of an articulated joint."""
    U = inertia @ basis
    return U, basis.T @ U + ca.diag(armature)


@repeated
def _before_joint(free: tuple[int, ...], inertia: ca.SX, U: ca.SX, D: ca.SX) -> tuple[ca.SX, ca.SX]:
    """K and rest of an articulated joint.   free: entries of a twist along which I_A - U K is exactly zero."""
    K = solve_symmetric(D, U.T)
    rest = symmetric(inertia - U @ K)
    for entry in free:
        rest[entry, :] = 0
        rest[:, entry] = 0
    return K, rest


@repeated
def _carry_inertia(turns: Turning, inertia: ca.SX, P: ca.SX, R: ca.SX, p: ca.SX, minus_p: ca.SX) -> tuple[ca.SX]:
    """Transform an articulated inertia from the frame of a link to that of the previous link.

    R: rotation of the joint, which `turns` describes.   P: rotation of its frame in the previous link.   p: the link's origin.
    """
    A, H, J = (P @ turned(turns, R, inertia[rows, columns]) @ P.T for rows, columns in _BLOCKS)
    (x, y, z), (u, v, w), o = ca.vertsplit(p), ca.vertsplit(minus_p), ca.SX(1, 1)
    x = ca.blockcat([[o, w, y], [z, o, u], [v, x, o]])
    shifted = H - A @ x
    return (ca.blockcat([[symmetric(A), shifted], [shifted.T, symmetric(J - H.T @ x + x @ shifted)]]),)


def check_inertia(diagonal: ca.SX, joint: str) -> None:
    """Raise ModelError if a joint moves without any inertia, whatever the configuration."""
    if any(diagonal[i].is_zero() for i in range(diagonal.numel())):
        raise ModelError(
            f"joint {joint!r} moves no inertia: all that it carries lies on its axis, or joints beyond it move the same way; "
            "give a body inertia, or the joint armature"
        )


@repeated
def _rigid(mass: ca.SX, h: ca.SX, I: ca.SX) -> tuple[ca.SX]:
    """(6, 6) inertia of a link alone."""
    H = -hat(h)
    return (ca.densify(ca.blockcat([[mass * ca.SX.eye(3), H], [H.T, I]])),)


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
    drift = [ca.SX(6, 1)] * len(links) if drift is None else drift
    innovation = [ca.SX(0)] * len(links)
    for i in reversed(range(len(links))):
        link, joint, X = links[i], joints[i], k.steps[i]
        if link.parent < 0:
            # A joint on the world is solved in the outward sweep, by one division.
            innovation[i] = f[link.v] - link.basis.T @ b[i]
        else:
            innovation[i], b[i], moved = _solved(_inward, joint.D)(
                f[link.v], b[i], drift[i], link.basis, joint.D, joint.U, joint.rest, X.R, X.p
            )
            b[link.parent] = b[link.parent] + moved
    V, x, F = list[ca.SX](), ca.SX.zeros(k.tree.ns, 1), list[SpatialForce]()
    for i, (link, X, joint) in enumerate(zip(links, k.steps, joints, strict=True)):
        if link.parent >= 0:
            x[link.v], after, load = _outward()(
                V[link.parent], drift[i], innovation[i], b[i], link.basis, joint.K, joint.rest, X.R, X.p
            )
        else:
            arriving = (ca.SX.zeros(6, 1) if world is None else _transformed(X.R, X.p, world)) + drift[i]
            x[link.v] = solve_symmetric(joint.D, innovation[i] - joint.U.T @ arriving)
            load = joint.inertia @ (arriving + link.basis @ x[link.v]) + b[i]
            after = arriving + ca.densify(link.basis @ x[link.v])
        V.append(after)
        F.append(SpatialForce(load[:3], load[3:]))
    return Solved(x, F)


@repeated
def _inward(
    f: ca.SX, b: ca.SX, drift: ca.SX, basis: ca.SX, D: ca.SX, U: ca.SX, rest: ca.SX, *frame: ca.SX
) -> tuple[ca.SX, ...]:
    """The innovation of a joint, the bias behind it, and the part of that which the previous link receives, in its frame.

    frame: R and p of the link's pose in the previous one.
    """
    innovation = solve_symmetric(D, f - basis.T @ b)
    b = b + U @ innovation
    transmitted = b + rest @ drift
    R, p = frame
    return innovation, b, ca.vertcat(*carry(Pose(R, p), SpatialForce(transmitted[:3], transmitted[3:])))


@repeated
def _outward(
    V: ca.SX, drift: ca.SX, innovation: ca.SX, b: ca.SX, basis: ca.SX, K: ca.SX, rest: ca.SX, *frame: ca.SX
) -> tuple[ca.SX, ...]:
    """x along a joint, the motion of its link, and the wrench of the joint on it, from the motion V of the previous link.

    frame: R and p of the link's pose in the previous one.
    """
    R, p = frame
    arriving = _transformed(R, p, V) + drift
    # Angular parts are known first. Adding them first shortens the chain of sums that limits the outward sweep.
    x = innovation - K[:, 3:] @ arriving[3:] - K[:, :3] @ arriving[:3]
    return x, arriving + ca.densify(basis @ x), rest @ arriving + b


def _transformed(R: ca.SX, p: ca.SX, V: ca.SX) -> ca.SX:
    """(6, 1) transform the motion V from a link's frame to a frame with the pose (R, p) in it."""
    linear, angular = V[:3], V[3:]
    return ca.vertcat(R.T @ (linear + ca.cross(angular, p)), R.T @ angular)


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
