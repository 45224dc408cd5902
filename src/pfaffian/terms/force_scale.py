"""Sizes of forces along a motion, from the bodies that it moves: a force below the rounding of its size counts as zero.

Forces on a gram that a hull of tons carries are compared with the inertia of the gram, since the momentum of the hull and the
forces on the hull are no measure for them.
"""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca
import numpy as np

from pfaffian.terms.applied_forces import named_forces
from pfaffian.terms.connection import rate
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.lengths import slides
from pfaffian.terms.momentum import link_momenta, momenta
from pfaffian.terms.terms import Terms

ROUNDING = 1e-4
"""Fraction of cancelling terms, and of the inertia at unit rates, added to a size: some 1e-11 of it are their rounding."""


class _Carried(NamedTuple):
    """All that moves with a joint.

    entries: of v, for the joint and the joints that it carries.   mass: (1, 1) of all bodies that it carries [kg].
    flow: (1, 1) |h| |V| of the momenta h and twists V of its links, the size of the terms of inertia forces along it.
    squared_rate: (1, 1) |V|^2.   A velocity of the machine's length per second counts as 1 rad/s.
    """

    entries: list[int]
    mass: ca.SX
    flow: ca.SX
    squared_rate: ca.SX


class MomentumSizes(NamedTuple):
    """Sizes (n, 1) of what may change the momenta of n fields; a field twice as fast has twice the size.

    by_cause: of "inertia", "weight" and each of `named_forces`, with the rounding of cancelling terms.
    inertia: that of "inertia" without the rounding.   squared_rates: of the bodies that each field moves; 1 counts as near 1.
    """

    by_cause: dict[str, ca.SX]
    inertia: ca.SX
    squared_rates: ca.SX


def force_sizes(T: Terms, Y: ca.SX, length: float) -> MomentumSizes:
    """Sizes of each cause of a change of the momenta Y^T p.

    The size of inertia is y^T M y / |y| for each column y of Y, at rates near 1. That of weight is its bound
    g sqrt(m y^T M y), with m the mass that is moved. The size of another force is its norm along the moved joints and the
    joints that these carry. The rounding of cancelling terms is added to each.

    Y: (nv, n) fields, functions of q.   length: of the machine [m], which counts as 1 rad.
    """
    k, unit = T.kinematics, ca.DM([length if sliding else 1.0 for sliding in slides(T.mechanism)])
    reach = ca.fabs(Y / ca.repmat(unit, 1, Y.shape[1])).T
    amount = ca.sqrt(ca.sum2(reach**2))
    inertia = ca.sum1(Y * (T.M @ Y)).T
    inertia_forces = inertia / ca.fmax(amount, np.finfo(float).tiny)
    carried_by = _carried_by(k, length)
    squared_rates = reach**2 @ ca.vertcat(*[x.squared_rate for x in carried_by]) / ca.fmax(amount**2, np.finfo(float).tiny)
    cancelling = reach @ ca.vertcat(*[x.flow for x in carried_by]) + ca.fabs(rate(k, Y)).T @ ca.fabs(momenta(T))
    moved = [ca.vertcat(0, *[x.mass for r, x in enumerate(carried_by) if not Y[r, i].is_zero()]) for i in range(Y.shape[1])]
    mass = ca.vertcat(ca.SX(0, 1), *[ca.mmax(x) for x in moved])
    out = {
        "inertia": inertia_forces + ROUNDING * cancelling,
        "weight": ca.norm_2(k.mechanism.gravity) * ca.sqrt(mass * inertia) + ROUNDING * inertia_forces,
    }
    for name, F in named_forces(k).items():
        F = unit * F
        along = reach @ ca.vertcat(*[ca.norm_2(F[x.entries, 0]) for x in carried_by])
        out[name] = along + ROUNDING * (amount * ca.norm_2(F) + inertia_forces)
    return MomentumSizes({name: ca.densify(x) for name, x in out.items()}, ca.densify(inertia_forces), squared_rates)


def _carried_by(k: Kinematics, length: float) -> list[_Carried]:
    """For each entry of v, all that moves with its joint."""
    m, links = k.mechanism, k.tree.links
    owners = [j.name for j in m.joints for _ in range(m.nv)[m.v_slices[j.name]]]
    h, V = link_momenta(k), k.link_velocity
    found = {}
    for name in dict.fromkeys(owners):
        of_joint = [i for i, x in enumerate(links) if x.joint.name == name]
        carried = [x for i, x in enumerate(links) if set(of_joint) & set(k.tree.path(i))]
        on_it = {x.joint.name for x in carried}
        fast = [ca.norm_2(ca.vertcat(V[i][0] / length, V[i][1])) for i in of_joint]
        flow = [ca.norm_2(ca.vertcat(length * h[i].f, h[i].n)) * x for i, x in zip(of_joint, fast, strict=True)]
        entries = [r for r, owner in enumerate(owners) if owner in on_it]
        mass = sum((x.mass for x in carried), ca.SX(0))
        found[name] = _Carried(entries, mass, sum(flow, ca.SX(0)), sum((x**2 for x in fast), ca.SX(0)))
    return [found[name] for name in owners]
