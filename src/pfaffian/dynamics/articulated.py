"""Articulated bodies: O(n) forward dynamics of a tree without further constraints.

Articulated inertia in blocks [[A, H], [H^T, J]] for twists [v; w]. Where a joint turns about or slides along z, its own
row and column vanish exactly after the joint has taken its share; they are set to zero rather than computed.
"""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca

from pfaffian.dynamics.motion import Motion
from pfaffian.errors import ModelError
from pfaffian.maths.linear import solve_definite
from pfaffian.maths.so3 import hat
from pfaffian.terms.inertia import Wrench, carry, inertial_wrench
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.terms import Terms
from pfaffian.terms.tree import Link, conjugate, split_motion, symmetric


_BLOCKS = ((slice(0, 3), slice(0, 3)), (slice(0, 3), slice(3, 6)), (slice(3, 6), slice(3, 6)))


class _Joint(NamedTuple):
    """What the outward sweep needs of a joint: K = D^-1 (I_A S)^T and D^-1 (tau - S^T p_A), D = S^T I_A S."""

    K: ca.SX
    own: ca.SX


def motion(terms: Terms) -> Motion:
    """v_dot of a tree; the mechanism must have no constraints. Raises ModelError if it has."""
    m = terms.mechanism
    if m.constraints:
        raise ModelError(f"mechanism {m.name!r} has constraints; articulated bodies serve trees only, use 'gauss'")
    k, tau = terms.kinematics, terms.generalised_input
    links = k.tree.links
    inertia = [_rigid(link) for link in links]
    bias = [ca.vertcat(*inertial_wrench(link, ca.SX(3, 1), spin)) for link, spin in zip(links, k.spin, strict=True)]
    joints: list[_Joint] = []
    drift = [ca.vertcat(*k.velocity_product(i)) for i in range(len(links))]
    for i in reversed(range(len(links))):
        link = links[i]
        free = list(link.joint.kind.motion)
        U = inertia[i][:, free]
        joint = _share(link, U, tau[link.v] - bias[i][free])
        joints.insert(0, joint)
        if link.parent >= 0:
            rest = _reduce(link, inertia[i], U, joint.K)
            p = bias[i] + rest @ drift[i] + U @ joint.own
            inertia[link.parent] += _carry_inertia(k, i, rest)
            bias[link.parent] += ca.vertcat(*carry(k.steps[i], Wrench(p[:3], p[3:])))
    v_dot = _outward(k, joints, drift)
    return Motion(v_dot, ca.SX.zeros(m.nv, 1), ca.SX(0))


def _rigid(link: Link) -> ca.SX:
    H = -hat(link.h)
    return ca.densify(ca.blockcat([[link.mass * ca.SX.eye(3), H], [H.T, link.I]]))


def _share(link: Link, U: ca.SX, u: ca.SX) -> _Joint:
    """U = I_A S, u = tau - S^T p_A."""
    n = link.joint.nv
    D = U[list(link.joint.kind.motion), :] + link.joint.armature * ca.SX.eye(n)
    solved = solve_definite(D, ca.horzcat(U.T, u))
    return _Joint(solved[:, :6], solved[:, 6])


def _reduce(link: Link, IA: ca.SX, U: ca.SX, K: ca.SX) -> ca.SX:
    """I_A - U D^-1 U^T."""
    rest = symmetric(IA - U @ K)
    if link.joint.armature.is_zero():
        for free in link.joint.kind.motion:
            rest[free, :] = 0
            rest[:, free] = 0
    return rest


def _carry_inertia(k: Kinematics, i: int, IA: ca.SX) -> ca.SX:
    """The articulated inertia of link i, seen in the frame of the link before it."""
    link, p = k.tree.links[i], hat(k.steps[i].p)
    A, H, J = (conjugate(link, k.q[link.q], IA[rows, columns]) for rows, columns in _BLOCKS)
    shifted = H - A @ p
    return ca.blockcat([[symmetric(A), shifted], [shifted.T, symmetric(J - H.T @ p + p @ shifted)]])


def _outward(k: Kinematics, joints: list[_Joint], drift: list[ca.SX]) -> ca.SX:
    a: list[ca.SX] = []
    v_dot = []
    base = ca.vertcat(-k.mechanism.gravity, ca.SX.zeros(3, 1))
    for link, X, joint, bias in zip(k.tree.links, k.steps, joints, drift, strict=True):
        parent = a[link.parent] if link.parent >= 0 else base
        linear, angular = parent[:3], parent[3:]
        arriving = ca.vertcat(X.R.T @ (linear + ca.cross(angular, X.p)), X.R.T @ angular) + bias
        own = joint.own - joint.K @ arriving
        v_dot.append(own)
        a.append(arriving + ca.vertcat(*split_motion(link, own)))
    return ca.densify(ca.vertcat(*v_dot))
