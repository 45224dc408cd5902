"""Forces on each body: those that its motion requires, those applied to it, and those of constraints.

Wrenches here are [force; moment] about the origin of the body's frame, in world axes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import casadi as ca

from pfaffian.errors import ModelError
from pfaffian.maths.so3 import hat
from pfaffian.model.body import WORLD, Body
from pfaffian.model.constraint import AccelerationConstraint, Closure, Holonomic, Target
from pfaffian.model.force import Actuator, Dissipation, GeneralisedForce, Potential, Spring, Thruster, Transmission, Wrench
from pfaffian.model.number import column
from pfaffian.model.path import Path
from pfaffian.model.path_force import PathSpring, Winch
from pfaffian.model.user_functions import call_for_value
from pfaffian.terms.applied_forces import generalised_load, loop_load, loop_presence, spring_pull, wrench_value
from pfaffian.terms.independent_bodies import Apart
from pfaffian.terms.kinematics import Acceleration, Kinematics
from pfaffian.terms.loop_joints import loop_wrench_rows
from pfaffian.terms.loop_rotors import rotor_acceleration, rotors_of
from pfaffian.terms.pfaffian import activity
from pfaffian.terms.terms import Terms


def move(W: ca.SX, x: ca.SX) -> ca.SX:
    """Transfer wrenches W (6, n) from one point to another; x (3, 1) is the position of the first relative to the second."""
    return ca.vertcat(W[:3, :], W[3:, :] + hat(x) @ W[:3, :])


def turn(R: ca.SX, W: ca.SX) -> ca.SX:
    """Rotate wrenches W (6, n) by R (3, 3)."""
    return ca.vertcat(R @ W[:3, :], R @ W[3:, :])


def inertial_wrench(k: Kinematics, b: Body, accelerations: tuple[Acceleration, ...]) -> ca.SX:
    """(6, 1) rate of the momentum of a body, minus its weight.   accelerations: of the links, as Kinematics returns them."""
    link, X = k.tree.place[b.name]
    R = k.pose(b.name).R
    if link < 0:
        f, n = -b.mass * k.mechanism.gravity, ca.SX.zeros(3, 1)
    else:
        x, w = accelerations[link], X.R.T @ k.omega[link]
        f = b.mass * (k.link_pose(link).R @ (x.a + x.Phi @ (X.R @ b.com + X.p)))
        n = R @ (b.inertia @ (X.R.T @ x.alpha) + ca.cross(w, b.inertia @ w))
    return move(ca.vertcat(f, n), R @ b.com)


def applied_wrenches(T: Terms, v_dot: ca.SX, u: ca.SX, losses: Mapping[str, ca.SX]) -> dict[str, ca.SX]:
    """{body: (6, 1) wrench on it} by springs, thrusters, wrenches with and without a value, potentials, dissipation, closures.

    Forces within joints of the tree, those of motors and generalised forces, are left out.   v_dot: (nv, 1), which rotors of
    closures resist.   u: (nu, 1) inputs.   losses: joint or closure -> (1, 1) friction along it that follows its load.
    Raises ModelError: a potential or dissipation uses more than joints, poses and twists of bodies.
    """
    m, total = T.mechanism, dict[str, ca.SX]()
    for f in (*m.all_forces, *m.actuators):
        for body, W in _ENDS[type(f)](T, f, u) if type(f) in _ENDS else []:
            total[body] = total.get(body, 0) + W
    for c in m.loop_joints.values():
        carried = carried_wrench(T, c, v_dot, u, losses)
        for body, W in closure_ends(T.kinematics, c, carried) if carried.nnz() else []:
            total[body] = total.get(body, 0) + W
    return total


def carried_wrench(T: Terms, c: Closure, v_dot: ca.SX, u: ca.SX, losses: Mapping[str, ca.SX]) -> ca.SX:
    """(6, 1) wrench of body_a on body_b by what a closure carries: spring, damper, rotor, motors, forces along it.

    It is about the origin of B, in world axes.   v_dot, u, losses: as of `applied_wrenches`.
    """
    k, m = T.kinematics, T.mechanism
    load = loop_load(k, c) + losses.get(c.name, 0)
    if c.armature is not None:
        load -= rotors_of(k, c).a * rotor_acceleration(k, c, v_dot)
    for f in m.all_forces:
        if isinstance(f, GeneralisedForce) and f.joint == c.name:
            load += generalised_load(k, f)
        elif isinstance(f, (Potential, Dissipation)):
            apart = Apart(k, displaced=isinstance(f, Potential))
            value = _value(f, apart)
            load -= apart.work(value, apart.along[c.name]) if c.name in apart.along else 0
    for a in m.actuators:
        gears = a.gears if isinstance(a, Transmission) else a.gear if isinstance(a, Actuator) else ca.SX(0, 1)
        for n, (name, component) in enumerate(a.ends):
            if name == c.name:
                load[component] += gears[n] * u[m.u_names.index(a.name)] * loop_presence(k, c)
    return ca.sparsify(loop_wrench_rows(k, c).T @ load) if ca.sparsify(load).nnz() else ca.SX(6, 1)


def closure_ends(k: Kinematics, c: Closure, W: ca.SX) -> _NamedWrenches:
    """Wrenches W (6, n) of body_a on body_b, about the origin of B, on both bodies of a closure."""
    ends = ((c.body_b, 1), (c.body_a, -1))
    return [(body, move(sign * W, k.line(body, c.body_b, point_b=c.placement_b.p))) for body, sign in ends]


_NamedWrenches = list[tuple[str, ca.SX]]
"""Bodies, each with the wrench (6, 1) on it."""


def _spring_ends(T: Terms, s: Spring, u: ca.SX) -> _NamedWrenches:
    """Wrenches of a spring on both of its bodies."""
    k = T.kinematics
    pull = ca.vertcat(spring_pull(k, s), ca.SX.zeros(3, 1))
    ends = ((s.body_a, s.point_a, 1), (s.body_b, s.point_b, -1))
    return [(body, move(sign * pull, k.rotation(body) @ point)) for body, point, sign in ends]


def _wrench_ends(T: Terms, w: Wrench, u: ca.SX) -> _NamedWrenches:
    """A wrench on its body, and the opposite one on the body that exerts it."""
    k = T.kinematics
    value = _inputs(T, w, u) if w.value is None else wrench_value(k, w)
    W = turn(k.rotation(w.body), value) if w.axes == "LOCAL" else value
    ends = ((w.body, 1), (w.by, -1))
    return [(body, move(sign * W, k.line(body, w.body, point_b=w.point))) for body, sign in ends if body is not None]


def _thruster_ends(T: Terms, a: Thruster, u: ca.SX) -> _NamedWrenches:
    """Wrench of a thruster on its body."""
    R = T.kinematics.rotation(a.body)
    return [(a.body, move(turn(R, a.wrench * u[T.mechanism.u_names.index(a.name)]), R @ a.point))]


def _path_spring_ends(T: Terms, s: PathSpring, u: ca.SX) -> _NamedWrenches:
    """Wrenches of a spring along a path on the bodies of the path; drums act within their joints."""
    return _pulled(T.kinematics, s.path, s.tension(T.kinematics))


def _winch_ends(T: Terms, a: Winch, u: ca.SX) -> _NamedWrenches:
    """Wrenches of a winch on the bodies of its path."""
    rate = a.path.rate(T.kinematics) if a.damps else 1
    return _pulled(T.kinematics, a.path, a.gear * u[T.mechanism.u_names.index(a.name)] * rate)


def _pulled(k: Kinematics, path: Path, tension: ca.SX) -> _NamedWrenches:
    """Wrenches of a line of this tension."""
    found = _NamedWrenches()
    for body, point, force, moment in path.line(k).pulls:
        W = ca.vertcat(force, ca.SX.zeros(3, 1) if moment is None else moment)
        found.append((body, move(tension * W, k.rotation(body) @ point)))
    return found


def _potential_ends(T: Terms, p: Potential, u: ca.SX) -> _NamedWrenches:
    """Wrenches of a potential on all bodies."""
    return _gradient_ends(T.kinematics, p, Apart(T.kinematics, displaced=True))


def _dissipation_ends(T: Terms, d: Dissipation, u: ca.SX) -> _NamedWrenches:
    """Wrenches of a dissipation function on all bodies."""
    return _gradient_ends(T.kinematics, d, Apart(T.kinematics, displaced=False))


def _gradient_ends(k: Kinematics, force: Potential | Dissipation, apart: Apart) -> _NamedWrenches:
    """Wrenches on all bodies: minus the derivatives of the function of a force along the bodies' motions."""
    value = _value(force, apart)
    return [(name, -turn(k.rotation(name), apart.work(value, V))) for name, V in apart.twists.items()]


def _value(force: Potential | Dissipation, apart: Apart) -> ca.SX:
    """The value of a force's function at independent bodies."""
    what = f"force {force.name!r}"
    return column(call_for_value(force.function, what, apart), what)


_ENDS: dict[type, Callable[[Terms, Any, ca.SX], _NamedWrenches]] = {
    Spring: _spring_ends,
    PathSpring: _path_spring_ends,
    Winch: _winch_ends,
    Wrench: _wrench_ends,
    Thruster: _thruster_ends,
    Potential: _potential_ends,
    Dissipation: _dissipation_ends,
}
"""Kind of force or actuator -> its wrenches on bodies; all other kinds act within joints."""


def _inputs(T: Terms, force: Wrench, u: ca.SX) -> ca.SX:
    """(6, 1) the inputs of a wrench without a value."""
    first = T.mechanism.u_names.index(f"{force.name}.fx")
    return u[first : first + 6]


class BodyRows(NamedTuple):
    """Wrenches of a constraint on one body.   L: (6, rows) wrench on `body` for a unit of each multiplier."""

    body: str
    L: ca.SX


def constraint_wrenches(k: Kinematics, c: Target) -> list[BodyRows]:
    """Wrenches of a constraint on each body, from its work when the bodies move independently.

    A row that contains a coordinate or rate of a joint itself acts within the joint, as a motor does, and on no body.
    Raises ModelError: a caller's function uses more than joints, poses and twists of bodies.
    """
    if isinstance(c, AccelerationConstraint):
        raise ModelError(
            f"constraint {c.name!r}: its rows are along the mechanism's v, so the bodies on which its force "
            "acts cannot be determined"
        )
    if isinstance(c, Closure):
        found = _closure(k, c)
    else:
        apart = Apart(k, displaced=isinstance(c, Holonomic))
        what, f = f"constraint {c.name!r}", c.phi if isinstance(c, Holonomic) else c.eta
        rate = column(call_for_value(f, what, apart), what)
        found = [BodyRows(name, turn(k.rotation(name), apart.work(rate, V))) for name, V in apart.twists.items()]
        for name, along in apart.along.items():
            through = k.mechanism.loop_joints[name]
            W = loop_wrench_rows(k, through).T @ apart.work(rate, along)
            found += [BodyRows(body, L) for body, L in closure_ends(k, through, W) if body != WORLD]
    if c.active is None:
        return found
    on = activity(k, c.active, c.name)
    return [BodyRows(name, L * on) for name, L in found]


def _closure(k: Kinematics, c: Closure) -> list[BodyRows]:
    """Wrenches of a closure on its two bodies."""
    Ra, Rb = k.rotation(c.body_a) @ c.placement_a.R, k.rotation(c.body_b) @ c.placement_b.R
    r = k.line(c.body_a, c.body_b, c.placement_a.p, c.placement_b.p)
    L = turn(Ra, c.holds.residual(Ra.T @ Rb, Ra.T @ r, c.number).L.T)  # at the origin of B, in the axes of A, then of the world
    ends = ((c.body_a, -1), (c.body_b, 1))
    arms = (k.line(body, c.body_b, point_b=c.placement_b.p) for body, _ in ends)
    return [BodyRows(body, move(sign * L, arm)) for (body, sign), arm in zip(ends, arms, strict=True) if body != WORLD]
