"""Articulated bodies: O(n) forward dynamics of a tree without further constraints."""

from __future__ import annotations

import casadi as ca

from pfaffian.dynamics.motion import Motion
from pfaffian.errors import ModelError
from pfaffian.maths.linear import solve_definite
from pfaffian.terms.articulated import ArticulatedJoint, articulated_joints, check_plain
from pfaffian.terms.inertia import Wrench, carry
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.terms import Terms
from pfaffian.terms.tree import split_motion


def motion(terms: Terms) -> Motion:
    """v_dot of a plain tree; the mechanism must have no constraints. Raises ModelError if it has, or is no such tree."""
    m = terms.mechanism
    check_plain(terms.kinematics, "articulated")
    if m.constraints:
        raise ModelError(f"mechanism {m.name!r} has constraints; articulated bodies serve trees only, use 'gauss'")
    k = terms.kinematics
    joints = articulated_joints(k)
    drift = [ca.vertcat(*k.velocity_product(i)) for i in range(len(joints))]
    own = _inward(k, joints, drift, terms.generalised_input)
    return Motion(_outward(k, joints, drift, own), ca.SX.zeros(m.nv, 1), ca.SX(0))


def _inward(k: Kinematics, joints: list[ArticulatedJoint], drift: list[ca.SX], tau: ca.SX) -> list[ca.SX]:
    """D^-1 (tau - S^T p_A) of each joint, p_A the wrench that its articulated body needs without moving its joints.

    Of a joint on the world only tau - S^T p_A: one division is left for the way out.
    """
    links = k.tree.links
    bias = [ca.vertcat(k.spin[i] @ link.h, ca.cross(k.omega[i], link.I @ k.omega[i])) for i, link in enumerate(links)]
    own = [ca.SX(0)] * len(links)
    for i in reversed(range(len(links))):
        link, joint = links[i], joints[i]
        own[i] = tau[link.v] - link.basis.T @ bias[i]
        if link.parent >= 0:
            own[i] = solve_definite(joint.D, own[i])
            p = bias[i] + joint.rest @ drift[i] + joint.U @ own[i]
            bias[link.parent] += ca.vertcat(*carry(k.steps[i], Wrench(p[:3], p[3:])))
    return own


def _outward(k: Kinematics, joints: list[ArticulatedJoint], drift: list[ca.SX], own: list[ca.SX]) -> ca.SX:
    a: list[ca.SX] = []
    v_dot = ca.SX.zeros(k.mechanism.nv, 1)
    base = ca.vertcat(-k.mechanism.gravity, ca.SX.zeros(3, 1))
    for i, (link, X, joint) in enumerate(zip(k.tree.links, k.steps, joints, strict=True)):
        before = a[link.parent] if link.parent >= 0 else base
        linear, angular = before[:3], before[3:]
        arriving = ca.vertcat(X.R.T @ (linear + ca.cross(angular, X.p)), X.R.T @ angular) + drift[i]
        if link.parent >= 0:
            v_dot[link.v] = own[i] - joint.K @ arriving
        else:
            v_dot[link.v] = solve_definite(joint.D, own[i] - joint.U.T @ arriving)
        a.append(arriving + ca.vertcat(*split_motion(link, v_dot[link.v])))
    return v_dot
