"""Momenta p = M v of a mechanism and their rates, body by body, without accelerations or derivatives of M.

Cut the tree at joint i. The momentum h of all that the joint carries, in its link's frame, changes by the wrench of the joint
and by weight, so that with the constant basis S of the joint

    p_i = S^T h,    p_i_dot = S^T ad(V)^T h + weight + f_i,        V = [v; w] the twist of the link,

which are Hamel's equations for H(q, p), summed over bodies. [konz25 (2.37), chhabra14 (2.4)] With link rates s = N v, the
momenta along v are N^T p, and N^T changes with q.

The inverse, v from p = M v, uses articulated bodies, whose sweeps also give the momenta h.
"""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca

from pfaffian.maths.tree_factor import solve_M
from pfaffian.terms.applied_forces import named_forces
from pfaffian.terms.articulated_inertia import solve_tree
from pfaffian.terms.connection import rate
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.recursions import Moments, SpatialForce, carry, composite_moments, link_momentum
from pfaffian.terms.terms import Terms
from pfaffian.terms.tree import project_force


def momenta(T: Terms) -> ca.SX:
    """p (nv, 1) = M v [N s, N m s]."""
    p = T.kinematics.along_v(_along_links(T.kinematics, link_momenta(T.kinematics)))
    return p if T.added is None else p + T.added.M @ T.v


class MotionOfMomenta(NamedTuple):
    """Result of `moving`.   v: (nv, 1) velocities.   h: momenta of the links, as in `link_momenta`."""

    v: ca.SX
    h: list[SpatialForce]


def moving(T: Terms, p: ca.SX) -> MotionOfMomenta:
    """v with M v = p (nv, 1), and the momenta h.

    By articulated bodies; by the factor of M if v are not the rates of the links, or if there are other kinetic energies.
    Raises ModelError: a joint moves no inertia.
    """
    k = T.kinematics
    if k.rates.plain and T.added is None:
        found = solve_tree(k, p)
        return MotionOfMomenta(found.x, found.F)
    v = solve_M(T.factor, p)
    return MotionOfMomenta(v, link_momenta(Kinematics(T.mechanism, T.q, v, T.t)))


def link_momenta(k: Kinematics) -> list[SpatialForce]:
    """For each link the momentum [N s], and the angular momentum about its origin [N m s], of all that it carries.

    They include the link itself and are in its axes.
    """
    out = [link_momentum(k, i) for i in range(len(k.tree.links))]
    for i in reversed(range(len(out))):
        parent = k.tree.links[i].parent
        if parent >= 0:
            out[parent] = _sum(out[parent], carry(k.steps[i], out[i]))
    return out


def total_momentum(k: Kinematics) -> ca.SX:
    """(6, 1) momentum of all moving bodies [N s], and their angular momentum about the world's origin [N m s], world axes."""
    total = SpatialForce(ca.SX.zeros(3, 1), ca.SX.zeros(3, 1))
    for i, (link, h) in enumerate(zip(k.tree.links, link_momenta(k), strict=True)):
        if link.parent < 0:
            total = _sum(total, carry(k.link_pose(i), h))
    return ca.vertcat(total.f, total.n)


def momentum_rate(T: Terms) -> ca.SX:
    """p_dot (nv, 1) without reactions [N, N m]; constraints add A^T lambda."""
    return transport(T) + weight(T.kinematics) + T.generalised_input


def transport(T: Terms, h: list[SpatialForce] | None = None) -> ca.SX:
    """(nv, 1) the part of p_dot due to the motion of the links' axes, which is p_dot if no force acts [N, N m].

    h: momenta of the links, as in `link_momenta`; computed from T.v if not given.
    """
    k, turning = T.kinematics, []
    h = link_momenta(k) if h is None else h
    for link, (u, w), x in zip(k.tree.links, k.link_velocity, h, strict=True):
        turning.append(project_force(link, ca.cross(x.f, w), ca.cross(x.f, u) + ca.cross(x.n, w)))
    p_dot = k.along_v(_stacked(k, turning))
    if not k.rates.plain:
        fixed = ca.SX.sym("p", k.tree.ns)
        p_dot += ca.substitute(rate(k, k.along_v(fixed)), fixed, ca.densify(_along_links(k, h)))
    return p_dot if T.added is None else p_dot + rate(k, T.added.M) @ T.v - T.added.c


def weight(k: Kinematics, pull: ca.SX | None = None) -> ca.SX:
    """(nv, 1) generalised force of weight [N, N m].

    pull: (3, 1) an acceleration that replaces gravity, world axes [m/s^2]. With a velocity V instead, the result is M e V, the
        momentum of all bodies that move along with V.
    """
    g, pulls = k.mechanism.gravity if pull is None else pull, []
    if g.is_zero():
        return ca.SX.zeros(k.mechanism.nv, 1)
    for i, x in enumerate(composite_moments(k)):
        pulls.append(_pull(k.link_pose(i).R.T @ g, x))
    return k.along_v(_stacked(k, [project_force(link, *F) for link, F in zip(k.tree.links, pulls, strict=True)]))


def changes(T: Terms, Y: ca.SX) -> dict[str, ca.SX]:
    """d/dt (Y^T p) (n, 1) by cause: "inertia", the part without forces, "weight" and each of `named_forces`.

    Y: (nv, n) fields, functions of q.
    """
    p = ca.SX.sym("p", T.mechanism.nv)
    turning = ca.substitute(rate(T.kinematics, Y.T @ p), p, momenta(T))
    forces = {"weight": weight(T.kinematics)} | named_forces(T.kinematics)
    return {"inertia": Y.T @ transport(T) + turning} | {name: Y.T @ F for name, F in forces.items()}


def _pull(g: ca.SX, x: Moments) -> SpatialForce:
    """Weight of moments x at the gravity g (3, 1), in their frame."""
    return SpatialForce(x.mass * g, ca.cross(x.h, g))


def _sum(a: SpatialForce, b: SpatialForce) -> SpatialForce:
    """The sum of two wrenches or momenta about one origin."""
    return SpatialForce(a.f + b.f, a.n + b.n)


def _along_links(k: Kinematics, h: list[SpatialForce]) -> ca.SX:
    """(ns, 1) momenta along the link rates, including those of rotors (armature)."""
    parts = [project_force(link, *x) + link.armature * k.s[link.v] for link, x in zip(k.tree.links, h, strict=True)]
    return _stacked(k, parts)


def _stacked(k: Kinematics, parts: list[ca.SX]) -> ca.SX:
    """(ns, 1) column of the parts of all links."""
    out = ca.SX.zeros(k.tree.ns, 1)
    for link, part in zip(k.tree.links, parts, strict=True):
        out[link.v] = part
    return out
