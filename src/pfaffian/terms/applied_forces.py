"""Applied forces: springs, dampers, wrenches, the caller's functions, the input matrix, potential energy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca

from pfaffian.errors import ModelError
from pfaffian.maths import so3
from pfaffian.model.constraint import Closure
from pfaffian.model.force import Dissipation, GeneralisedForce, KineticEnergy, Potential, Spring, Thruster, Transmission, Wrench
from pfaffian.model.joint import Joint
from pfaffian.model.load_loss import LoadLoss
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.path_force import PathSpring, Winch
from pfaffian.model.user_functions import call_for_column
from pfaffian.parts.friction import SMOOTH, Sliding
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.loop_joints import closing_joint, loop_rates
from pfaffian.terms.new_symbols import placed
from pfaffian.terms.path_forces import path_spring_energy, path_spring_force, winch_column
from pfaffian.terms.pfaffian import activity
from pfaffian.terms.rates import rate_rows
from pfaffian.terms.recursions import gravity_energy


def applied_force(k: Kinematics) -> ca.SX:
    """(nv, 1) force of joint springs and dampers, and of every force of the mechanism that is neither an input nor follows
    the load of a joint [N, N m]."""
    f = joint_forces(k)
    for force in k.mechanism.all_forces:
        if not isinstance(force, LoadLoss):
            f += force_of(k, force)
    return ca.densify(f)


def force_of(k: Kinematics, force: Any) -> ca.SX:
    """(nv, 1) force of one force of the mechanism; of friction that follows a load, under a unit load."""
    return _FORCE[type(force)](k, force)


def named_forces(k: Kinematics) -> dict[str, ca.SX]:
    """{description: (nv, 1) force} of each applied force; springs and dampers of joints are listed joint by joint.

    Friction that follows a load is that under a unit load: it shows along what it acts, and on what it depends besides.
    """
    m = k.mechanism
    kinds = {force.name: "friction" if isinstance(force, LoadLoss) else type(force).__name__.lower() for force in m.all_forces}
    found = {f"{kinds[force.name]} {force.name!r}": force_of(k, force) for force in m.all_forces}
    for j in m.joints:
        if not (j.damping.is_zero() and j.stiffness.is_zero()):
            found[f"spring or damper of joint {j.name!r}"] = _joint_force(k, j)
    return found | {f"spring, damper or friction of closure {c.name!r}": _loop_force(k, c) for c in carrying(m)}


def potential_energy(k: Kinematics) -> ca.SX:
    """Potential energy V [J] of weight, springs and potentials."""
    V = gravity_energy(k, k.mechanism.gravity)
    for j in _sprung(k):
        e, _ = j.displacement(k.joint(j.name))
        V += ca.dot(e, j.stiffness @ e) / 2
    for c in carrying(k.mechanism):
        e, _ = closing_joint(c).displacement(k.joint(c.name))
        V += loop_presence(k, c) * ca.dot(e, closing_joint(c).stiffness @ e) / 2
    for force in k.mechanism.all_forces:
        V += energy_of(k, force)
    return V


def energy_of(k: Kinematics, force: Any) -> ca.SX:
    """Potential energy of one force of the mechanism [J], 0 if it has none."""
    return _ENERGY[type(force)](k, force) if type(force) in _ENERGY else ca.SX(0)


def input_matrix(k: Kinematics) -> ca.SX:
    """B (nv, nu): generalised forces of unit inputs, in the order of Mechanism.u_names."""
    m = k.mechanism
    motors, on_bodies, closing = (ca.SX(m.nv, len(m.actuators)) for _ in range(3))
    for i, a in enumerate(m.actuators):
        if isinstance(a, Thruster):
            on_bodies[:, i] = k.jacobian(a.body, "LOCAL", a.point).T @ a.wrench
        elif isinstance(a, Winch):
            on_bodies[:, i] = winch_column(k, a)
        else:
            gears = a.gears if isinstance(a, Transmission) else a.gear
            for n, (joint, component) in enumerate(a.ends):
                if c := m.loop_joints.get(joint):
                    closing[:, i] += loop_rates(k, c)[component, :].T * (gears[n] * loop_presence(k, c))
                else:
                    motors[m.v_slices[joint].start + component, i] += gears[n]
    B = k.joint_rates_along_v(motors) + on_bodies + closing
    wrenches = [wrench_columns(k, f) for f in m.all_forces if isinstance(f, Wrench) and f.value is None]
    return ca.horzcat(B, *wrenches)


# -- springs and dampers in joints ------------------------------------------------------------------------------------


def joint_forces(k: Kinematics) -> ca.SX:
    """(nv, 1) sum over the joints of -E^T stiffness e - damping v, with e the displacement from rest and e_dot = E v."""
    total = ca.SX(k.mechanism.nv, 1)
    for j in k.mechanism.joints:
        total += _joint_force(k, j)
    for c in carrying(k.mechanism):
        total += _loop_force(k, c)
    return total


def _joint_force(k: Kinematics, j: Joint) -> ca.SX:
    """(nv, 1) force of the spring and the damper of one joint."""
    force = ca.SX(k.mechanism.nv, 1)
    if not j.damping.is_zero():
        force -= rate_rows(k.mechanism, j).T @ (j.damping @ k.joint_rate(j.name))
    if not j.stiffness.is_zero():
        e, E = j.displacement(k.joint(j.name))
        force -= rate_rows(k.mechanism, j).T @ (E.T @ (j.stiffness @ e))
    return k.joint_rates_along_v(force)


def _sprung(k: Kinematics) -> list[Joint]:
    """The joints with a spring."""
    return [j for j in k.mechanism.joints if not j.stiffness.is_zero()]


# -- springs and dampers in joints that close loops --------------------------------------------------------------------


def loop_load(k: Kinematics, c: Closure) -> ca.SX:
    """(n, 1) force of spring, damper and friction of a closure along its own velocities, zero while it is not active."""
    j, load = closing_joint(c), ca.SX(closing_joint(c).nv, 1)
    if not j.damping.is_zero():
        load -= j.damping @ k.joint_rate(c.name)
    if not j.stiffness.is_zero():
        e, E = j.displacement(k.joint(c.name))
        load -= E.T @ (j.stiffness @ e)
    if c.friction is not None:
        smooth, rates = ca.SX(SMOOTH), ca.vertsplit(k.joint_rate(c.name))
        dry = zip(ca.vertsplit(c.friction), rates, strict=True)
        load += ca.vertcat(*[Sliding(x, x, smooth, ca.SX(0), smooth)(rate) for x, rate in dry])
    return loop_presence(k, c) * load


def _loop_force(k: Kinematics, c: Closure) -> ca.SX:
    """(nv, 1) force of spring, damper and friction of a closure."""
    return k.along_joint(c.name, loop_load(k, c))


def loop_presence(k: Kinematics, c: Closure) -> ca.SX:
    """(1, 1) 1 while a closure is active, else 0: a joint that is released carries nothing."""
    return ca.SX(1) if c.active is None else activity(k, c.active, c.name)


def carrying(m: Mechanism) -> list[Closure]:
    """The closures with a spring, a damper or friction."""
    closures = m.loop_joints.values()
    return [c for c in closures if any(x is not None for x in (c.stiffness, c.damping, c.friction))]


# -- springs ----------------------------------------------------------------------------------------------------------


def _line(k: Kinematics, s: Spring) -> tuple[ca.SX, ca.SX, ca.SX]:
    """(3, 1) vector from point_a to point_b, (3, nv) its rate for v, and (3, 3) the rotation from its axes to the world's.

    If one link carries both bodies, the vector is in the axes of body_a and is computed from the links between the bodies
    alone, so that it keeps its digits however far away they are.
    """
    if k.share_link(s.body_a, s.body_b):
        G, J = k.relative(s.body_b, s.body_a)
        return G.R @ s.point_b + G.p - s.point_a, G.R @ (J[:3, :] - so3.hat(s.point_b) @ J[3:, :]), k.rotation(s.body_a)
    Ja, Jb = (k.jacobian(body, "LOCAL_WORLD_ALIGNED", x)[:3, :] for body, x in ((s.body_a, s.point_a), (s.body_b, s.point_b)))
    return k.line(s.body_a, s.body_b, s.point_a, s.point_b), Jb - Ja, ca.SX.eye(3)


def _pull(k: Kinematics, s: Spring, line: ca.SX, rate: ca.SX) -> ca.SX:
    """(3, 1) force of a spring on point_a, in the axes of its line."""
    if s.rest.is_zero() and s.damping.is_zero():
        return s.stiffness * line
    l = ca.norm_2(line)
    l_dot = 0 if s.damping.is_zero() else ca.dot(line, rate @ k.v) / l
    return (s.stiffness * (l - s.rest) + s.damping * l_dot) * line / l


def spring_pull(k: Kinematics, s: Spring) -> ca.SX:
    """(3, 1) force of a spring on body_a at point_a, world axes; the force on body_b is opposite."""
    line, rate, R = _line(k, s)
    return R @ _pull(k, s, line, rate)


def spring_force(k: Kinematics, s: Spring) -> ca.SX:
    """(nv, 1) generalised force of a spring: -(stiffness (l - rest) + damping l_dot) dl/dq."""
    line, rate, _ = _line(k, s)
    return -rate.T @ _pull(k, s, line, rate)


def spring_energy(k: Kinematics, s: Spring) -> ca.SX:
    """Energy of a spring, stiffness (l - rest)^2 / 2 [J]."""
    line, _, _ = _line(k, s)
    return s.stiffness * (ca.sumsqr(line) if s.rest.is_zero() else (ca.norm_2(line) - s.rest) ** 2) / 2


# -- wrenches ---------------------------------------------------------------------------------------------------------


def wrench_columns(k: Kinematics, w: Wrench) -> ca.SX:
    """(nv, 6) generalised forces of a wrench's six unit components, from the motion of its point relative to the body `by`."""
    J = k.jacobian(w.body, "LOCAL_WORLD_ALIGNED", w.point)
    if w.by is not None:
        arm = k.line(w.by, w.body, point_b=w.point)
        J -= k.jacobian(w.by, "LOCAL_WORLD_ALIGNED", k.rotation(w.by).T @ arm)
    if w.axes == "LOCAL":
        R = k.rotation(w.body)
        J = ca.diagcat(R.T, R.T) @ J
    return J.T


def wrench_value(k: Kinematics, w: Wrench) -> ca.SX:
    """(6, 1) components of a wrench along its axes [N, N m], zero if it is an input."""
    if callable(w.value):
        return _returned(k, w.value, f"force {w.name!r}", 6)
    return ca.SX(6, 1) if w.value is None else w.value


def wrench_force(k: Kinematics, w: Wrench) -> ca.SX:
    """(nv, 1) generalised force of a wrench, zero if it is an input."""
    return ca.SX(k.mechanism.nv, 1) if w.value is None else wrench_columns(k, w) @ wrench_value(k, w)


# -- functions --------------------------------------------------------------------------------------------------------


def generalised_column(k: Kinematics, g: GeneralisedForce) -> ca.SX:
    """(nv, 1) of a generalised force f(k), which acts along all velocities or within one joint."""
    load = generalised_load(k, g)
    return load if g.joint is None else k.along_joint(g.joint, load)


def generalised_load(k: Kinematics, g: GeneralisedForce) -> ca.SX:
    """(n, 1) of a generalised force f(k) along the velocities on which it acts; zero while its closure is not active."""
    m = k.mechanism
    f = _returned(k, g.function, f"force {g.name!r}", m.nv if g.joint is None else m.owner(g.joint).nv)
    return loop_presence(k, c) * f if (c := m.loop_joints.get(g.joint or "")) else f


def loss_at_unit_load(k: Kinematics, f: LoadLoss) -> ca.SX:
    """(1, 1) friction of a joint for each unit of the load that it follows, smoothed at rest."""
    return Sliding(f.sliding, f.static, f.stribeck, ca.SX(0), f.smooth)(k.joint_rate(f.joint))


def potential_value(k: Kinematics, p: Potential) -> ca.SX:
    """Potential V(k) [J]. Raises ModelError: it depends on velocities, or is not one number."""
    s = k.apart
    return placed([_potential(s, p)], s, k)[0]


def potential_force(k: Kinematics, p: Potential) -> ca.SX:
    """(nv, 1) force -(dV/dq K)^T of a potential."""
    s = k.apart
    return placed([-(ca.jacobian(_potential(s, p), s.q) @ s.kinematic_matrix).T], s, k)[0]


def dissipation_force(k: Kinematics, d: Dissipation) -> ca.SX:
    """(nv, 1) force -(dR/dv)^T of a dissipation function. [konz25 (3.37)]"""
    s = k.apart
    return placed([-ca.jacobian(one_number(s, d.function, f"force {d.name!r}"), s.v).T], s, k)[0]


def _potential(s: Kinematics, p: Potential) -> ca.SX:
    """V(s). Raises ModelError: it depends on velocities, or is not one number."""
    V = one_number(s, p.function, f"force {p.name!r}")
    if ca.depends_on(V, s.v):
        raise ModelError(
            f"force {p.name!r}: V depends on velocities; use dissipation(...), generalised_force(...) or wrench(...)"
        )
    return V


def one_number(k: Kinematics, function: Callable[[Any], Any], what: str) -> ca.SX:
    """The number function(k), to be differentiated. Raises ModelError: the function fails, or returns something else."""
    x = _returned(k, function, what, 1)
    if any(x.is_op(kind) for kind in (ca.OP_EQ, ca.OP_NE, ca.OP_LT, ca.OP_LE)):
        raise ModelError(f"{what} returns a comparison, 0 or 1, whose derivative is zero; use ca.if_else instead")
    return x


def _returned(k: Kinematics, function: Callable[[Any], Any], what: str, count: int) -> ca.SX:
    """function(k) as a column (count, 1). Raises ModelError: the function fails, or returns another count of numbers."""
    x = call_for_column(function, what, k)
    if x.numel() != count:
        numbers = "one number" if count == 1 else f"{count} numbers"
        raise ModelError(f"{what}: its function must return {numbers}, got {x.numel()}")
    return x


_FORCE: dict[type, Callable[[Kinematics, Any], ca.SX]] = {
    Spring: spring_force,
    PathSpring: path_spring_force,
    Wrench: wrench_force,
    GeneralisedForce: generalised_column,
    Potential: potential_force,
    Dissipation: dissipation_force,
    KineticEnergy: lambda k, _: ca.SX(k.mechanism.nv, 1),  # its force is part of M v_dot + c
    LoadLoss: lambda k, f: k.along_joint(f.joint, loss_at_unit_load(k, f)),
}
"""Kind of force -> the function that returns its generalised force (nv, 1) [N, N m]."""

_ENERGY: dict[type, Callable[[Kinematics, Any], ca.SX]] = {
    Spring: spring_energy,
    PathSpring: path_spring_energy,
    Potential: potential_value,
}
"""Kind of force with a potential energy -> the function that returns it [J]."""
