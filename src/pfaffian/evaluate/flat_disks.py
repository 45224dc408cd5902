"""Disks that lie flat on their plane, where they touch it with the whole edge and the rows of rolling have no value."""

from __future__ import annotations

from collections.abc import Iterator

import casadi as ca
import numpy as np

from pfaffian.errors import listed
from pfaffian.evaluate.compiled import compile_terms
from pfaffian.model.constraint import Holonomic, Nonholonomic
from pfaffian.model.force import Wrench
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.traced_function import untraced
from pfaffian.parts.tyre import TyreForce
from pfaffian.parts.wheels import Disk, Height, Slip
from pfaffian.terms.terms import Terms

FLAT = 0.02
"""A disk whose angle to its plane is smaller lies flat [rad]: a contact point races around its edge there."""

STEPS = 3.0
"""A disk that would lie flat within so many steps lies flat: the step that met it ended the run."""


def disks(m: Mechanism) -> Iterator[tuple[str, Disk]]:
    """(name of the element, disk) of each disk that touches a plane, once: constraints of rolling, and tyres."""
    for c in m.all_constraints:
        row = untraced(c.eta if isinstance(c, Nonholonomic) else c.phi if isinstance(c, Holonomic) else None)
        if isinstance(row, (Slip, Height)) and isinstance(row.of, Disk):
            yield c.name, row.of
    for f in m.all_forces:
        force = untraced(f.value) if isinstance(f, Wrench) else None
        if isinstance(force, TyreForce):
            yield f.name, force.disk


def lying_flat(m: Mechanism, q: np.ndarray, v: np.ndarray, p: np.ndarray, step: float) -> list[str]:
    """A message for each of several states that names the disks that lie flat or would within some steps; "" if none.

    q: (runs, nq).   v: (runs, nv).   p: (runs, np).   step: length of a step [s].
    """
    touching = {(d.body, str(d.axis)): (name, d) for name, d in disks(m)}
    if not touching:
        return [""] * len(q)
    names, found = zip(*touching.values(), strict=True)
    of = compile_terms(m, {"angle": lambda T: _angles(T, found), "rate": lambda T: _rates(T, found)})
    values = of.matrices(q, v, parameters=p)
    angle, rate = (values[k].reshape(len(q), len(found)) for k in ("angle", "rate"))
    flat = (angle <= FLAT) | (angle <= -STEPS * step * rate)
    return [_words([names[i] for i in np.flatnonzero(row)], [found[i].body for i in np.flatnonzero(row)]) for row in flat]


def _words(names: list[str], bodies: list[str]) -> str:
    """The message about disks of these constraints or tyres, fixed to these bodies."""
    if not names:
        return ""
    what = "the disk of {} lies flat ({})" if len(names) == 1 else "the disks of {} lie flat ({})"
    return (
        f"{what.format(listed(bodies), listed(names))}, where the whole edge touches the plane and rolling is not defined: end "
        "the run before, or let points of its edge touch by pf.forces.contact"
    )


def _angles(T: Terms, found: tuple[Disk, ...]) -> ca.SX:
    """(disks, 1) angle between each disk and its plane [rad]."""
    pairs = [_directions(T, d) for d in found]
    return ca.vertcat(*[ca.atan2(ca.norm_2(ca.cross(a, n)), ca.fabs(ca.dot(a, n))) for a, n in pairs])


def _rates(T: Terms, found: tuple[Disk, ...]) -> ca.SX:
    """(disks, 1) rate of that angle [rad/s]; zero where the disk lies flat."""
    rates = []
    for d in found:
        a, n = _directions(T, d)
        body, plane = (T.kinematics.twist(name, "LOCAL_WORLD_ALIGNED")[3:] for name in (d.body, d.plane.on))
        across = ca.norm_2(ca.cross(a, n))
        towards = ca.dot(ca.cross(body - plane, a), n) * ca.sign(ca.dot(a, n))
        rates.append(ca.if_else(across > 0, -towards / across, 0))
    return ca.vertcat(*rates)


def _directions(T: Terms, d: Disk) -> tuple[ca.SX, ca.SX]:
    """The axis of a disk and the normal of its plane, each (3, 1), world axes."""
    return T.kinematics.rotation(d.body) @ d.axis, d.plane.normal(T.kinematics)
