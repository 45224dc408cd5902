"""Articulated inertias of a tree, from the leaves to the root: what each joint feels of all that it carries.

Inertia in blocks [[A, H], [H^T, J]] for twists [v; w]. Where a joint turns about or slides along z, its own row and column
vanish exactly after the joint has taken its share; they are set to zero rather than computed.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import casadi as ca

from pfaffian.errors import ModelError
from pfaffian.maths.linear import solve_definite
from pfaffian.maths.so3 import hat, symmetric
from pfaffian.maths.tree_factor import factor_tree
from pfaffian.terms.inertia import Wrench, carry
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.tree import Link, project_force

_BLOCKS = ((slice(0, 3), slice(0, 3)), (slice(0, 3), slice(3, 6)), (slice(3, 6), slice(3, 6)))


class ArticulatedJoint(NamedTuple):
    """U: (6, nv) I_A S.   D: (nv, nv) S^T U with armature.   K: (nv, 6) D^-1 U^T.   rest: (6, 6) I_A - U K, what the link
    before it feels. The world feels nothing: a joint on it has neither K nor rest."""

    U: ca.SX
    D: ca.SX
    K: ca.SX
    rest: ca.SX


def check_plain(k: Kinematics, formulation: str) -> None:
    """Raise ModelError where velocities are not the links' own, or more than links has inertia."""
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
            K = solve_definite(D, U.T)
            rest = _reduce(link, inertia[i], U, K)
            inertia[link.parent] += _carry_inertia(k, i, rest)
        joints.insert(0, ArticulatedJoint(U, D, K, rest))
    return joints


def check_inertia(diagonal: ca.SX, joint: str) -> None:
    """Raise ModelError if a joint moves without any inertia, whatever the configuration."""
    if any(diagonal[i].is_zero() for i in range(diagonal.numel())):
        raise ModelError(
            f"joint {joint!r} moves no inertia, all it carries lies on its axis; give a body inertia, or the joint armature"
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
    """The articulated inertia of link i, seen in the frame of the link before it."""
    p = hat(k.steps[i].p)
    A, H, J = (k.conjugate(i, IA[rows, columns]) for rows, columns in _BLOCKS)
    shifted = H - A @ p
    return ca.SX(ca.blockcat([[symmetric(A), shifted], [shifted.T, symmetric(J - H.T @ p + p @ shifted)]]))


def innovations_factor(k: Kinematics) -> ca.SX:
    """W = (I + H Phi G) D^1/2 (nv, nv), upper triangular along the tree, M = W W^T. [aghili08 section V]

    Column i: the wrench that articulated link i needs for a unit of its joint's innovation, carried to the joints before it.
    """
    n = k.mechanism.nv
    W = ca.SX(n, n)
    for i, (link, joint) in enumerate(zip(k.tree.links, articulated_joints(k), strict=True)):
        root = factor_tree(joint.D, range(-1, link.nv - 1)).W
        W[link.v, link.v] = root
        G = joint.U @ solve_definite(joint.D, root)
        for column in range(link.nv):
            F = Wrench(G[:3, column], G[3:, column])
            path = k.tree.path(i)
            for child, parent in pairwise(path):
                F = carry(k.steps[child], F)
                above = k.tree.links[parent]
                W[above.v, link.v.start + column] = project_force(above, *F)
    return W
