"""Articulated bodies: O(n) forward dynamics of a tree without further constraints.

Articulated inertia in blocks [[A, H], [H^T, J]] for twists [v; w]. Where a joint turns about or slides along z, its own
row and column vanish exactly after the joint has taken its share; they are set to zero rather than computed.
"""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca

from pfaffian.dynamics.motion import Motion
from pfaffian.errors import ModelError
from pfaffian.maths.linear import TreeFactor, factor_tree, solve_M
from pfaffian.maths.so3 import hat
from pfaffian.model.pose import Pose
from pfaffian.terms.inertia import Wrench, carry
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.terms import Terms
from pfaffian.terms.tree import Link, split_motion, symmetric


class _Joint(NamedTuple):
    """What the outward sweep needs of a joint: U = I_A S, factor of S^T U, and tau - S^T p_A."""

    U: ca.SX
    D: TreeFactor
    u: ca.SX


def motion(terms: Terms) -> Motion:
    """v_dot of a tree; the mechanism must have no constraints. Raises ModelError if it has."""
    m = terms.mechanism
    if m.constraints:
        raise ModelError(f"mechanism {m.name!r} has constraints; articulated bodies serve trees only, use 'gauss'")
    k, tau = terms.kinematics, terms.generalised_input
    links = k.tree.links
    inertia = [_rigid(link) for link in links]
    bias = [_bias_wrench(link, w) for link, w in zip(links, k.omega, strict=True)]
    joints: list[_Joint | None] = [None] * len(links)
    drift = [
        ca.vertcat(*k.bias_acceleration(link, X, k.omega[link.parent] if link.parent >= 0 else ca.SX.zeros(3, 1)))
        for link, X in zip(links, k.steps, strict=True)
    ]
    for i in reversed(range(len(links))):
        link = links[i]
        joints[i] = _share(link, inertia[i], bias[i], tau[link.v])
        if link.parent >= 0:
            rest = _reduce(link, inertia[i], joints[i])
            p = bias[i] + rest @ drift[i] + joints[i].U @ solve_M(joints[i].D, joints[i].u)
            inertia[link.parent] += _carry_inertia(k.steps[i], rest)
            bias[link.parent] += ca.vertcat(*carry(k.steps[i], Wrench(p[:3], p[3:])))
    v_dot = _outward(k, joints, drift)
    return Motion(v_dot, ca.SX.zeros(m.nv, 1), ca.SX(0))


def _rigid(link: Link) -> ca.SX:
    H = -hat(link.h)
    return ca.densify(ca.blockcat([[link.mass * ca.SX.eye(3), H], [H.T, link.I]]))


def _bias_wrench(link: Link, w: ca.SX) -> ca.SX:
    return ca.vertcat(ca.cross(w, ca.cross(w, link.h)), ca.cross(w, link.I @ w))


def _share(link: Link, IA: ca.SX, pA: ca.SX, tau: ca.SX) -> _Joint:
    free = list(link.joint.kind.motion)
    U = IA[:, free]
    D = U[free, :] + link.joint.armature * ca.SX.eye(len(free))
    return _Joint(U, factor_tree(D, range(-1, len(free) - 1)), tau - pA[free])


def _reduce(link: Link, IA: ca.SX, joint: _Joint) -> ca.SX:
    """I_A - U D^-1 U^T."""
    rest = symmetric(IA - joint.U @ solve_M(joint.D, joint.U.T))
    if link.joint.armature.is_zero():
        for free in link.joint.kind.motion:
            rest[free, :] = 0
            rest[:, free] = 0
    return rest


def _carry_inertia(X: Pose, IA: ca.SX) -> ca.SX:
    """The articulated inertia of a child, seen in the parent's frame."""
    R, p = X.R, hat(X.p)
    A = symmetric(R @ IA[:3, :3] @ R.T)
    H = R @ IA[:3, 3:] @ R.T
    J = symmetric(R @ IA[3:, 3:] @ R.T)
    shifted = H - A @ p
    return ca.blockcat([[A, shifted], [shifted.T, symmetric(J - H.T @ p + p @ shifted)]])


def _outward(k: Kinematics, joints: list[_Joint | None], drift: list[ca.SX]) -> ca.SX:
    a: list[ca.SX] = []
    v_dot = []
    base = ca.vertcat(-k.mechanism.gravity, ca.SX.zeros(3, 1))
    for link, X, joint, bias in zip(k.tree.links, k.steps, joints, drift, strict=True):
        parent = a[link.parent] if link.parent >= 0 else base
        linear, angular = parent[:3], parent[3:]
        arriving = ca.vertcat(X.R.T @ (linear + ca.cross(angular, X.p)), X.R.T @ angular) + bias
        own = solve_M(joint.D, joint.u - joint.U.T @ arriving)
        v_dot.append(own)
        a.append(arriving + ca.vertcat(*split_motion(link, own)))
    return ca.densify(ca.vertcat(*v_dot))
