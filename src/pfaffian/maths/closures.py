"""Kinds of loop closures: for each the rows L of the relative twist that it constrains to zero, and the residual phi.

The pose of frame B relative to frame A is (R, r), its twist in the axes of A is V = [v; w] with r_dot = v, R_dot = hat(w) R.
A kind defines L(R, r) and phi(R, r): it enforces L V = 0, and d phi / dt = L V wherever phi = 0. If the motions that it
permits form a group, L is constant: the rows that vanish on the basis S of the group's algebra. The residual of a rotation
does not vanish at half a turn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import casadi as ca

from pfaffian.maths import so3
from pfaffian.maths.subgroups import SUBGROUPS, Subgroup
from pfaffian.tables import Table

TWIST = ("vx", "vy", "vz", "wx", "wy", "wz")
HALF_TURN = 1e-24
"""A rotation with (1 + cos angle) / 2 below this counts as half a turn, from which no direction leads back to zero."""


class Residual(NamedTuple):
    """Rows and residual of a closure.   L: (rows, 6) with L V = 0.   phi: (rows, 1) [m, rad]."""

    L: ca.SX
    phi: ca.SX


@dataclass(frozen=True)
class ClosureKind:
    """A kind of loop closure.

    rows: names of the twist's entries that it constrains.   residual: (R (3, 3), r (3, 1), number) -> Residual.
    number: name of the argument of `closure` that gives its number, pitch [m/rad] or length [m]; empty for most kinds.
    group: the group of motions that it permits; None where they do not form a group.
    """

    name: str
    rows: tuple[str, ...]
    residual: Callable[[ca.SX, ca.SX, ca.SX], Residual]
    number: str = ""
    group: Subgroup | None = None


def _permitting(g: Subgroup, name: str) -> ClosureKind:
    """The kind of closure that permits exactly the motions of a group: L S = 0."""
    turns = len(g.rotation.axes)
    rows = [i for i in range(6) if i not in g.axes]
    names = tuple("screw" if g.screws and i == 2 else TWIST[i] for i in rows)

    def residual(R: ca.SX, r: ca.SX, pitch: ca.SX) -> Residual:
        rotation = {0: turn_residual, 1: tilt_residual, 3: _free_rotation}[turns](R)
        L, phi = ca.SX(ca.DM.eye(6)), ca.vertcat(r, rotation)
        if g.screws:
            L[2, 5], phi[2] = -pitch, screw_residual(R, r, pitch)
        return Residual(ca.sparsify(L[rows, :]), phi[rows, 0])

    return ClosureKind(name, names, residual, "pitch" if g.screws else "", g)


def _free_rotation(R: ca.SX) -> ca.SX:
    """(3, 1) zeros: the residual of a closure that permits every rotation."""
    return ca.SX.zeros(3, 1)


def turn_residual(R: ca.SX) -> ca.SX:
    """(3, 1) 2 sin(angle / 2) along the axis of R [rad]: its length is 2 at half a turn, and it is zero only at R = 1."""
    cos_squared = (1 + ca.trace(R)) / 4  # of half the angle
    skew = ca.vertcat(R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]) / 2
    # At half a turn the signs of the axis's entries are arbitrary: any direction away from half a turn will do.
    axis = ca.sqrt(ca.fmax(ca.diag(R) + 1, 0) / 2)
    half_turn = cos_squared < HALF_TURN
    return ca.if_else(half_turn, 2 * axis, skew / ca.sqrt(ca.if_else(half_turn, 1, cos_squared)))


def tilt_residual(R: ca.SX) -> ca.SX:
    """(3, 1) 2 sin(angle / 2) along the axis of the smallest rotation from z to the z axis of R [rad]; no part along z."""
    cos_squared = (1 + R[2, 2]) / 2
    half_turn = cos_squared < HALF_TURN
    scale = ca.sqrt(ca.if_else(half_turn, 1, cos_squared))
    return ca.vertcat(ca.if_else(half_turn, 2, -R[1, 2] / scale), ca.if_else(half_turn, 0, R[0, 2] / scale), 0)


def screw_residual(R: ca.SX, r: ca.SX, pitch: ca.SX) -> ca.SX:
    """(1, 1) r_z - pitch * angle [m], with the angle about z, up to full turns, that is nearest to r_z / pitch."""
    c, s, turned = (R[0, 0] + R[1, 1]) / 2, (R[1, 0] - R[0, 1]) / 2, r[2] / pitch
    C, S = ca.cos(turned), ca.sin(turned)
    return pitch * ca.atan2(S * c - C * s, C * c + S * s)


def _universal(R: ca.SX, r: ca.SX, _: ca.SX) -> Residual:
    """The origins coincide, and the z axis of A is perpendicular to that of B."""
    z = R[:, 2]
    L = ca.vertcat(ca.horzcat(ca.SX.eye(3), ca.SX(3, 3)), ca.horzcat(ca.SX(1, 3), z[1], -z[0], ca.SX(1, 1)))
    return Residual(L, ca.vertcat(r, z[2]))


def _distance(R: ca.SX, r: ca.SX, length: ca.SX) -> Residual:
    """phi = (|r|^2 - length^2) / (2 length): smooth, and near zero equal to |r| - length to first order."""
    return Residual(ca.horzcat(r.T / length, ca.SX(1, 3)), (ca.sumsqr(r) - length**2) / (2 * length))


def _position(count: int, first: int) -> Callable[[ca.SX, ca.SX, ca.SX], Residual]:
    """The residual function with `count` entries of r, from index `first` on."""
    rows = list(range(first, first + count))
    return lambda R, r, _: Residual(ca.SX.eye(6)[rows, :], r[rows, 0])


CLOSURES = Table("kind of closure", {
    kind.name: kind
    for kind in (
        *(_permitting(g, name) for name, g in SUBGROUPS.items() if name != "free"),
        _permitting(SUBGROUPS["fixed"], "weld"),
        ClosureKind("universal", (*TWIST[:3], "cross"), _universal),
        ClosureKind("point-on-line", TWIST[:2], _position(2, 0)),
        ClosureKind("point-on-plane", TWIST[2:3], _position(1, 2)),
        ClosureKind("distance", ("length",), _distance, "length"),
    )
}, "a constraint of your own is a pf.holonomic")  # fmt: skip
"""Name -> kind: one for every motion group except the free one, then the kinds whose motions do not form a group.
[chhabra14 table 2.1]
"""


def rate(kind: ClosureKind, R: ca.SX, r: ca.SX, number: ca.SX, V: ca.SX) -> ca.SX:
    """(rows, 6) dL/dt at a twist V (6, 1); zero where L is constant."""
    if not _varies_with_pose(kind):
        return ca.SX(len(kind.rows), 6)
    S, s = ca.SX.sym("R", 3, 3), ca.SX.sym("r", 3)
    L = kind.residual(S, s, number).L
    Y, W = ca.densify(L), ca.SX.sym("V", 6)
    along = ca.jtimes(ca.vec(Y), ca.veccat(S, s), ca.veccat(so3.hat(W[3:]) @ S, W[:3]))
    outer = ca.symvar(number)
    f = ca.Function("rate", [S, s, W, *outer], [ca.reshape(along, *Y.shape)])
    return f(R, r, V, *outer)


@cache
def _varies_with_pose(kind: ClosureKind) -> bool:
    """Whether the rows L of a closure depend on the pose of B relative to A."""
    S, s = ca.SX.sym("R", 3, 3), ca.SX.sym("r", 3)
    return ca.depends_on(kind.residual(S, s, ca.SX.sym("number")).L, ca.veccat(S, s))
