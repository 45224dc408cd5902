"""Closures of loops: for each kind the rows of the relative twist that it holds at zero, and the residual that they come from.

The pose of frame B seen from frame A is (R, r), its twist along the axes of A is V = [v; w] with r_dot = v, R_dot = hat(w) R.
A kind defines L(R, r) and phi(R, r): it holds L V = 0, and d phi / dt = L V wherever phi = 0. Where it leaves a group of
motions, L is constant, the rows that vanish on the basis S of the group's algebra. No phi vanishes upside down.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import casadi as ca

from pfaffian.maths import so3
from pfaffian.maths.subgroups import SUBGROUPS, Subgroup

TWIST = ("vx", "vy", "vz", "wx", "wy", "wz")
HALF_TURN = 1e-24
"""(1 + cos angle) / 2 below which a turn counts as half a turn, from where the way back has no direction."""


class Residual(NamedTuple):
    """L: (rows, 6) with L V = 0.   phi: (rows, 1) [m, rad]."""

    L: ca.SX
    phi: ca.SX


@dataclass(frozen=True)
class ClosureKind:
    """rows: names of the entries of the twist that are held.   residual: (R (3, 3), r (3, 1), number) -> Residual.
    number: name of the argument of `closure` with its number, pitch [m/rad] or length [m]; empty for most.
    group: of the motions that it leaves; None where they are no group.
    """

    name: str
    rows: tuple[str, ...]
    residual: Callable[[ca.SX, ca.SX, ca.SX], Residual]
    number: str = ""
    group: Subgroup | None = None


def _leaves(g: Subgroup, name: str) -> ClosureKind:
    """The kind that leaves the motions of a group: L S = 0."""
    turns = len(g.rotation.axes)
    rows = [i for i in range(6) if i not in g.axes]
    names = tuple("screw" if g.screws and i == 2 else TWIST[i] for i in rows)

    def residual(R: ca.SX, r: ca.SX, pitch: ca.SX) -> Residual:
        rotation = {0: turn_residual, 1: tilt_residual, 3: _none}[turns](R)
        L, phi = ca.SX(ca.DM.eye(6)), ca.vertcat(r, rotation)
        if g.screws:
            L[2, 5], phi[2] = -pitch, screw_residual(R, r, pitch)
        return Residual(ca.sparsify(L[rows, :]), phi[rows, 0])

    return ClosureKind(name, names, residual, "pitch" if g.screws else "", g)


def _none(R: ca.SX) -> ca.SX:
    return ca.SX.zeros(3, 1)


def turn_residual(R: ca.SX) -> ca.SX:
    """(3, 1) 2 sin(angle / 2) along the axis of R [rad]: of length 2 at half a turn, zero nowhere but at R = 1."""
    half = (1 + ca.trace(R)) / 4  # cos^2 (angle / 2)
    skew = ca.vertcat(R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]) / 2
    # At half a turn the sign of each entry of the axis is arbitrary; any direction away from it will do.
    axis = ca.sqrt(ca.fmax(ca.diag(R) + 1, 0) / 2)
    over = half < HALF_TURN
    return ca.if_else(over, 2 * axis, skew / ca.sqrt(ca.if_else(over, 1, half)))


def tilt_residual(R: ca.SX) -> ca.SX:
    """(3, 1) the same for the turn that takes z to the z axis of R, which has no part about z."""
    half = (1 + R[2, 2]) / 2
    over = half < HALF_TURN
    scale = ca.sqrt(ca.if_else(over, 1, half))
    return ca.vertcat(ca.if_else(over, 2, -R[1, 2] / scale), ca.if_else(over, 0, R[0, 2] / scale), 0)


def screw_residual(R: ca.SX, r: ca.SX, pitch: ca.SX) -> ca.SX:
    """(1, 1) z - pitch angle [m], the angle being that of the turn of the screw nearest to z: full turns are not counted."""
    c, s, turned = (R[0, 0] + R[1, 1]) / 2, (R[1, 0] - R[0, 1]) / 2, r[2] / pitch
    C, S = ca.cos(turned), ca.sin(turned)
    return pitch * ca.atan2(S * c - C * s, C * c + S * s)


def _universal(R: ca.SX, r: ca.SX, _: ca.SX) -> Residual:
    """One common point, and the z axis of A at right angles to that of B."""
    z = R[:, 2]
    L = ca.vertcat(ca.horzcat(ca.SX.eye(3), ca.SX(3, 3)), ca.horzcat(ca.SX(1, 3), z[1], -z[0], ca.SX(1, 1)))
    return Residual(L, ca.vertcat(r, z[2]))


def _distance(R: ca.SX, r: ca.SX, length: ca.SX) -> Residual:
    """(|r|^2 - length^2) / (2 length): as long as a difference of lengths near zero, and smooth."""
    return Residual(ca.horzcat(r.T / length, ca.SX(1, 3)), (ca.sumsqr(r) - length**2) / (2 * length))


def _on(count: int, first: int) -> Callable[[ca.SX, ca.SX, ca.SX], Residual]:
    rows = list(range(first, first + count))
    return lambda R, r, _: Residual(ca.SX.eye(6)[rows, :], r[rows, 0])


CLOSURES = {
    kind.name: kind
    for kind in (
        *(_leaves(g, name) for name, g in SUBGROUPS.items() if name != "free"),
        _leaves(SUBGROUPS["fixed"], "weld"),
        ClosureKind("universal", (*TWIST[:3], "cross"), _universal),
        ClosureKind("point-on-line", TWIST[:2], _on(2, 0)),
        ClosureKind("point-on-plane", TWIST[2:3], _on(1, 2)),
        ClosureKind("distance", ("length",), _distance, "length"),
    )
}
"""Name -> kind: every motion group but the free one, and those that leave no group. [chhabra14 table 2.1]"""


def rate(kind: ClosureKind, R: ca.SX, r: ca.SX, number: ca.SX, V: ca.SX) -> ca.SX:
    """(rows, 6) dL/dt at a twist V (6, 1); zero for a constant L."""
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
    """Whether the rows L of a closure depend on the pose of B seen from A."""
    S, s = ca.SX.sym("R", 3, 3), ca.SX.sym("r", 3)
    return ca.depends_on(kind.residual(S, s, ca.SX.sym("number")).L, ca.veccat(S, s))
