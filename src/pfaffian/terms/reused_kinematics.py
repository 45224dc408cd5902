"""Kinematics at symbols that serve many traces: what was computed once is kept, and each trace works on a copy.

Without it, tracing a caller's function would take mostly the time of the poses and twists of the bodies that it names. The copy
is needed because a caller's function may change an expression in place.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import casadi as ca

from pfaffian.model.mechanism import Mechanism
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.loop_joints import loop_coordinates, loop_rates


def at_symbols(m: Mechanism) -> Kinematics:
    """Kinematics of a mechanism at new symbols."""
    return Kinematics(m, ca.SX.sym("q", m.nq), ca.SX.sym("v", m.nv), ca.SX.sym("t"))


def copied(k: Kinematics) -> Kinematics:
    """A copy of kinematics, with copies of the expressions that it has computed so far."""
    copy = object.__new__(Kinematics)
    vars(copy).update({name: _copied(x) for name, x in vars(k).items()})
    return copy


def _copied(x: Any) -> Any:
    """A copy of the expressions in x; those of poses cannot be changed."""
    if type(x) is ca.SX:
        return +x
    if type(x) is tuple:
        return tuple(map(_copied, x))
    return {name: _copied(part) for name, part in x.items()} if type(x) is dict else x


def compute_like(k: Kinematics, used: Kinematics) -> None:
    """Compute and keep in k what `used`, a copy of k that served a trace, has computed."""
    for name in vars(used):
        if isinstance(getattr(Kinematics, name, None), cached_property):
            getattr(k, name)
    for link in used._poses:
        k.link_pose(link)
    for link in used._offsets:
        k.offset(link)
    for c in k.mechanism.loop_joints.values():
        for compute in (loop_coordinates, loop_rates):
            if any(f"closure {c.name!r}" in name for name in vars(used)):
                compute(k, c)
