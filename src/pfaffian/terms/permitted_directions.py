"""Directions in which velocity constraints let a machine move, where these turn with its shape: v = X(q) y.

Every constraint row removes one direction, by a reflection that maps a fixed axis e to the row:

    N <- N (1 - w w^T / (1 + s u_e)) without column e,      u = a N / |a N|,   w = u + s e,   s = 1 or -1,

and of two remaining directions the last row leaves the one perpendicular to it, (-u_2, u_1). The columns of N stay orthonormal
and change smoothly with the row, even where the velocity after which a column is named vanishes, like the velocity of a board
whose wheels are perpendicular to it. No choice of independent velocities has this property. Rows and directions are expressed
in the frame of the body that the first joints carry, so that they do not depend on its pose, whatever these joints are. The
momentum along a column that moves this body alone is the nonholonomic momentum. [chhabra14 prop. 4.2.15]
"""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca

from pfaffian.maths.linear import orthogonalise, smallest, solve_symmetric
from pfaffian.model.mechanism import Mechanism
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.reduced_terms import RANK, horizontal_lift, indices, others
from pfaffian.terms.terms import Terms


class RowBlock(NamedTuple):
    """Rows that share velocities with each other and with no other rows, and their elimination.

    rows: indices of rows of A.   entries: indices of the velocities w in which directions are eliminated.
    names: those of `entries` after which the remaining directions are named.
    reflected: for each row (place, sign): the axis e of its reflection, among the remaining columns, and s. Where two columns
    remain: the one that is removed, and the sign of the other.
    least: for each row the fraction of its squared length that must be perpendicular to the earlier rows.
    lifts: further entries in these rows; a motion of one of them moves `entries` as little as the rows allow.
    """

    rows: tuple[int, ...]
    entries: tuple[int, ...]
    names: tuple[int, ...]
    reflected: tuple[tuple[int, int], ...]
    least: tuple[float, ...]
    lifts: tuple[int, ...]


class Directions(NamedTuple):
    """The directions that constraints on velocities leave, as data from which X(q) is written.

    base: the first joints, which together carry a body by one group of motions.
    axes: entries of that body's twist [v; w] that replace the joints' velocities; none where these are such entries already.
    moved: entries of v of the base by which the machine moves while nothing in its equations changes.
    y: entries of v after which the columns of X are named, in their order.   parts: the blocks of rows.
    length: length that makes rotations comparable with translations [m].
    """

    base: tuple[str, ...]
    axes: tuple[int, ...]
    moved: tuple[int, ...]
    y: tuple[int, ...]
    parts: tuple[RowBlock, ...]
    length: float


class SmoothDirections(NamedTuple):
    """Directions as expressions.   X: (nv, ny).   inside: (n, 1) positive where the directions are smooth functions of q."""

    X: ca.SX
    inside: ca.SX


NEAR = 1e-3
"""Lower bound of the divisor 1 + s u_e of a reflection."""


def left_by(T: Terms, what: tuple[int, ...] | Directions) -> ca.SX:
    """X (nv, ny) with v = X y.

    what: `Directions`, or the entries of v that the constraints fix, see `horizontal_lift`; for () X is the unit matrix.
    """
    if isinstance(what, Directions):
        return directions(T, what).X
    return horizontal_lift(T, what) if what else ca.SX.eye(T.mechanism.nv)


def directions(T: Terms, of: Directions) -> SmoothDirections:
    """X(q) of these directions, and where it is smooth."""
    m, inside, V = T.mechanism, [], from_body(T.kinematics, of)
    A, size = scaled_rows(T, of), ca.SX(scales(m, of))
    free = others(m, [i for part in of.parts for i in part.entries])
    columns = {i: ca.SX.eye(m.nv)[:, i] for i in free}
    for part in of.parts:
        rows, at = A[list(part.rows), :], list(part.entries)
        N, near = _perpendicular(rows[:, at], part)
        inside += near
        for i, column in zip(part.names, ca.horzsplit(N), strict=True):
            columns[i] = ca.SX(m.nv, 1)
            columns[i][at, 0] = column
        if part.lifts:
            moved = smallest(orthogonalise(rows[:, at], ca.SX(len(part.rows), 0), RANK), rows[:, list(part.lifts)])
            for i, column in zip(part.lifts, ca.horzsplit(moved), strict=True):
                columns[i][at, 0] = -column
    N = ca.horzcat(ca.SX(m.nv, 0), *[columns[i] / size * size[i] for i in of.y])
    return SmoothDirections(ca.sparsify(V @ N), ca.vertcat(ca.SX(0, 1), *inside))


def _perpendicular(A: ca.SX, part: RowBlock) -> tuple[ca.SX, list[ca.SX]]:
    """Orthonormal columns N perpendicular to the rows A, and expressions that are positive where N is smooth."""
    N, inside = ca.SX.eye(A.shape[1]), []
    for i, ((place, sign), least) in enumerate(zip(part.reflected, part.least, strict=True)):
        row = A[i, :] @ N
        squared = ca.dot(row, row)
        inside.append(squared / ca.dot(A[i, :], A[i, :]) - least)
        turned, near = complement_of_row(row / ca.sqrt(squared), place, sign)
        inside += near
        N = N @ turned
    return N, inside


def complement_of_row(u: ca.SX, place: int, sign: int) -> tuple[ca.SX, list[ca.SX]]:
    """(n, n - 1) orthonormal columns perpendicular to a unit row u (1, n), and conditions.

    The reflection that takes e, the unit vector of entry `place`, to -sign u has these columns beside that of e.
    The conditions are expressions whose values are positive where the columns depend smoothly on u: away from u = -sign e.
    """
    n = u.numel()
    if n == 2:
        return sign * ca.vertcat(-u[1], u[0]), []
    w = u.T + sign * ca.SX.eye(n)[:, place]
    divisor = 1 + sign * u[place]
    keep = [i for i in range(n) if i != place]
    return (ca.SX.eye(n) - w @ w.T / divisor)[:, keep], [divisor - NEAR]


def scaled_rows(T: Terms, of: Directions) -> ca.SX:
    """(m, nv) A along the velocities w of `from_body`, divided by their `scales`."""
    return ca.densify(T.A) @ from_body(T.kinematics, of) / ca.repmat(ca.SX(scales(T.mechanism, of)).T, T.A.shape[0], 1)


def from_body(k: Kinematics, of: Directions) -> ca.SX:
    """(nv, nv) V with v = V w; w contains the twist of the body that the first joints carry instead of their velocities."""
    V, at, J = ca.SX.eye(k.mechanism.nv), indices(k.mechanism, of.base), _twist(k, of)
    if of.axes:
        V[at, at] = solve_symmetric(J.T @ J, J.T)
    return V


def in_body(k: Kinematics, of: Directions, X: ca.SX) -> ca.SX:
    """(nv, n) velocities w for columns of velocities v in X: the inverse of `from_body`."""
    out, at = ca.densify(X), indices(k.mechanism, of.base)
    if of.axes:
        out[at, :] = _twist(k, of) @ out[at, :]
    return out


def _twist(k: Kinematics, of: Directions) -> ca.SX:
    """Jacobian of the entries `axes` of the twist of the body that the first joints carry, for their velocities."""
    at = indices(k.mechanism, of.base)
    return k.jacobian(k.mechanism.joint(of.base[-1]).child)[list(of.axes), at]


def labels(m: Mechanism, of: Directions | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names and units of the velocities w (see `from_body`): those of v for entries that are not replaced."""
    names, units = list(m.v_names), list(m.v_units)
    if of is not None and of.axes:
        body = m.joint(of.base[-1]).child
        for i, axis in zip(indices(m, of.base), of.axes, strict=True):
            names[i], units[i] = f"{body}.{'vw'[axis // 3]}{'xyz'[axis % 3]}", ("m/s", "rad/s")[axis // 3]
    return tuple(names), tuple(units)


def scales(m: Mechanism, of: Directions) -> list[float]:
    """Factors that make the velocities w comparable: the length for angular velocities, 1 for all others."""
    return [of.length if unit == "rad/s" else 1.0 for unit in labels(m, of)[1]]
