"""Linkages that may be cut at any of their joints: the motion does not depend on the joint that closes the loop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

import pfaffian as pf
from pfaffian.maths import so3


class Hinge(NamedTuple):
    """A hinge about `axis` from one body to another, at a point of each [m]."""

    one: str
    other: str
    at: tuple[float, float, float]
    there: tuple[float, float, float]
    axis: tuple[float, float, float] = (0.0, 1.0, 0.0)
    kind: str = "revolute"


GROUND, CRANK, COUPLER, ROCKER = 0.9, 0.3, 0.8, 0.6
"""Lengths of a four-bar [m] whose crank turns fully."""

FOUR_BAR = {
    "A": Hinge("world", "crank", (0, 0, 0), (0, 0, 0)),
    "B": Hinge("crank", "coupler", (0, 0, CRANK), (0, 0, 0)),
    "C": Hinge("coupler", "rocker", (COUPLER, 0, 0), (0, 0, ROCKER)),
    "D": Hinge("world", "rocker", (GROUND, 0, 0), (0, 0, 0)),
}

PARALLELOGRAM = {
    "A": Hinge("world", "crank", (0, 0, 0), (0, 0, 0)),
    "B": Hinge("crank", "coupler", (0, 0, 0.5), (0, 0, 0)),
    "C": Hinge("coupler", "rocker", (1, 0, 0), (0, 0, 0.5)),
    "D": Hinge("world", "rocker", (1, 0, 0), (0, 0, 0)),
}

ROD_BETWEEN_BALLS = {
    "turn": Hinge("world", "crank", (0, 0, 0), (0, 0, 0), (0, 0, 1)),
    "inner": Hinge("crank", "rod", (0.1, 0, 0), (0, 0, 0), kind="spherical"),
    "outer": Hinge("rod", "rocker", (0.7, 0, 0), (0, 0.5, 0), kind="spherical"),
    "rock": Hinge("world", "rocker", (0.3, 0, 0.2), (0, 0, 0), (1, 0, 0)),
}

_CONE = {"A": (1, 0, 0.1), "B": (0.6, 0.7, 0.2), "C": (-0.1, 0.8, 0.6), "D": (-0.2, 0.1, 1)}
_SPHERE = {name: tuple(0.1 + 0.4 * x for x in axis) for name, axis in _CONE.items()}

SPHERICAL = {
    name: Hinge(one, other, _SPHERE[name], _SPHERE[name], _CONE[name])
    for name, one, other in (
        ("A", "world", "crank"),
        ("B", "crank", "coupler"),
        ("C", "coupler", "rocker"),
        ("D", "world", "rocker"),
    )
}
"""Four hinges whose axes meet in a point, closed where all angles are zero: five rows, of which two are redundant."""


def linkage(
    hinges: Mapping[str, Hinge],
    cut: str,
    carried: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    floating: bool = False,
    **fields: Any,
) -> pf.Mechanism:
    """A chain of bodies of 1 kg, closed at the joint `cut`; the others lead outwards from the world.

    carried: name of a joint -> spring, damper, limits as arguments of `joint` or `closure`.   floating: whether a free hull
    stands for the world.   fields: of the mechanism.
    """
    carried, reached, joints, waiting = carried or {}, {"world"}, [], [n for n in hinges if n != cut]
    if floating:
        hinges = {n: h._replace(one=h.one.replace("world", "hull")) for n, h in hinges.items()}
        reached, joints = {"hull"}, [pf.joint("base", "free", "world", "hull")]
    while waiting:
        name = next(n for n in waiting if {hinges[n].one, hinges[n].other} & reached)
        waiting.remove(name)
        h, more = hinges[name], carried.get(name, {})
        if h.one in reached:
            j = pf.joint(name, h.kind, h.one, h.other, placement=h.at, child_placement=h.there, axis=h.axis, **more)
        else:  # seen from the other body, a turn about the opposite axis is the same
            axis = tuple(-x for x in h.axis)
            j = pf.joint(name, h.kind, h.other, h.one, placement=h.there, child_placement=h.at, axis=axis, **more)
        joints.append(j)
        reached |= {h.one, h.other}
    h = hinges[cut]
    ends = {"placement_a": h.at, "placement_b": h.there, "axis": h.axis}
    closed = pf.closure(cut, h.kind, h.one, h.other, **ends, **carried.get(cut, {}))
    names = sorted({b for h in hinges.values() for b in (h.one, h.other)} - {"world"})
    bodies = [pf.body(n, mass=1.0, com=(0.1, 0, 0.2), inertia=(0.03, 0.02, 0.04)) for n in names]
    return pf.mechanism("linkage", bodies, joints, constraints=[closed], **fields)


def same_state(m: pf.Mechanism, other: pf.Mechanism, q, v) -> tuple[np.ndarray, np.ndarray]:
    """The state of another cut of a linkage, from poses and twists: hinges and ball joints only."""
    names = [b.name for b in m.bodies]
    parts = {n: lambda T, n=n: T.kinematics.rotation(n) for n in names}
    parts |= {f"{n} w": lambda T, n=n: T.kinematics.twist(n)[3:] for n in names}
    at = pf.compile_terms(m, parts, backend="numpy", squeeze=False)(q, v) | {"world": np.eye(3), "world w": np.zeros((3, 1))}
    there, rates = other.neutral(), np.zeros(other.nv)
    for j in other.joints:
        R = j.placement.R.T @ (at[j.parent].T @ at[j.child]) @ j.child_placement.R
        w = j.child_placement.R.T @ (at[f"{j.child} w"] - at[j.child].T @ at[j.parent] @ at[f"{j.parent} w"])
        R, w = np.array(ca.DM(ca.SX(R))), np.array(ca.DM(ca.SX(w)))
        ball = j.kind.name == "spherical"
        there[other.q_slices[j.name]] = np.array(so3.matrix_to_quat(R)).ravel() if ball else np.arctan2(R[1, 0], R[0, 0])
        rates[other.v_slices[j.name]] = w.ravel() if ball else w.ravel()[2]
    return there, rates
