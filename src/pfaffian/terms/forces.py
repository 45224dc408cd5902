"""Applied forces: springs, dampers, constant wrenches, the input matrix, potential energy."""

from __future__ import annotations

import casadi as ca

from pfaffian.model.force import ExternalWrench, Spring
from pfaffian.terms.inertia import gravity_energy
from pfaffian.terms.kinematics import Kinematics


def applied_force(k: Kinematics) -> ca.SX:
    """f (nv, 1): joint springs and dampers, springs between bodies, wrenches with a value [N, N m]."""
    f = ca.SX(k.mechanism.nv, 1)
    for link in k.tree.links:
        j = link.joint
        f[link.v] -= j.damping * k.v[link.v]
        if j.nv == 1:
            f[link.v] -= j.stiffness * (k.q[link.q] - j.rest)
    for force in k.mechanism.forces:
        if isinstance(force, Spring):
            f += spring_force(k, force)
        elif force.value is not None:
            f += wrench_columns(k, force) @ force.value
    return ca.densify(f)


def spring_pull(k: Kinematics, s: Spring) -> ca.SX:
    """(3, 1) force of one spring on body_a at point_a, world axes; on body_b the opposite."""
    line = k.position(s.body_b, s.point_b) - k.position(s.body_a, s.point_a)
    if s.rest.is_zero() and s.damping.is_zero():
        return s.stiffness * line
    l = ca.norm_2(line)
    l_dot = ca.dot(line, k.velocity(s.body_b, s.point_b) - k.velocity(s.body_a, s.point_a)) / l
    return (s.stiffness * (l - s.rest) + s.damping * l_dot) * line / l


def spring_force(k: Kinematics, s: Spring) -> ca.SX:
    """(nv, 1) of one spring: -(stiffness (l - rest) + damping l_dot) dl/dq."""
    pull = spring_pull(k, s)
    J = [k.jacobian(body, "LOCAL_WORLD_ALIGNED", point)[:3, :] for body, point in
         ((s.body_a, s.point_a), (s.body_b, s.point_b))]  # fmt: skip
    return J[0].T @ pull - J[1].T @ pull


def wrench_columns(k: Kinematics, w: ExternalWrench) -> ca.SX:
    """(nv, 6) generalised force of the wrench's six components."""
    return k.jacobian(w.body, "LOCAL" if w.axes == "LOCAL" else "LOCAL_WORLD_ALIGNED", w.point).T


def input_matrix(k: Kinematics) -> ca.SX:
    """B (nv, nu): generalised force of the inputs, in the order of Mechanism.u_names."""
    m = k.mechanism
    B = ca.SX(m.nv, len(m.actuators))
    for i, a in enumerate(m.actuators):
        B[m.v_slices[a.joint].start + a.component, i] = a.gear
    wrenches = [wrench_columns(k, f) for f in m.forces if isinstance(f, ExternalWrench) and f.value is None]
    return ca.horzcat(B, *wrenches)


def potential_energy(k: Kinematics) -> ca.SX:
    """V [J] of weight and springs."""
    V = gravity_energy(k, k.mechanism.gravity)
    for link in k.tree.links:
        if link.joint.nv == 1:
            V += link.joint.stiffness * (k.q[link.q] - link.joint.rest) ** 2 / 2
    for s in k.mechanism.forces:
        if isinstance(s, Spring):
            line = k.position(s.body_b, s.point_b) - k.position(s.body_a, s.point_a)
            V += s.stiffness * (ca.sumsqr(line) if s.rest.is_zero() else (ca.norm_2(line) - s.rest) ** 2) / 2
    return V
