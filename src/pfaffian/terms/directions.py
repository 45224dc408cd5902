"""Directions in which constraints let a machine move, where these turn with its shape: v = X(q) y.

Every row that holds velocities is one direction less, taken away by a reflection that turns a fixed axis into that row:

    N <- N (1 - w w^T / (1 + s u_e)) without column e,      u = a N / |a N|,   w = u + s e,   s = 1 or -1,

and of two directions left by the last row the one across it, (-u_2, u_1). The columns of N stay orthonormal and change smoothly
with the row, also where the velocity that gives a column its name is zero, as that of a board whose wheels stand across it: no
choice of independent velocities does that. Rows and directions are seen from the body that the first joints carry, so where it
stands does not matter, whichever joints carry it. The momentum along a column that moves this body alone is the nonholonomic
momentum. [chhabra14 prop. 4.2.15]
"""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca

from pfaffian.maths.linear import orthogonalise, smallest, solve_symmetric
from pfaffian.model.mechanism import Mechanism
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.reduction import RANK, horizontal_lift, indices, others
from pfaffian.terms.terms import Terms


class RowBlock(NamedTuple):
    """Rows that share velocities with each other and with no other rows, and how they are taken away.

    rows: of A.   entries: of the velocities w.   names: those after which the directions across the rows are called.
    reflected: for each row (place, sign), e of the reflection among the columns that are left and s; where two are left, the
    column that gives its place up, and the sign of the one that stays.
    least: for each row the part of its squared length across the rows before it below which it no longer counts.
    lifts: further entries that the rows hold; moved alone, they move `entries` as little as the rows allow.
    """

    rows: tuple[int, ...]
    entries: tuple[int, ...]
    names: tuple[int, ...]
    reflected: tuple[tuple[int, int], ...]
    least: tuple[float, ...]
    lifts: tuple[int, ...]


class Directions(NamedTuple):
    """What is left by constraints on velocities.

    base: the first joints, which carry a body together as one group.   axes: entries of that body's twist [v; w] that stand in
    the place of the joints' velocities; none where these are such entries already.
    y: entries of v after which the columns of X are called, in their order.   length: by which turns compare with slides [m].
    """

    base: tuple[str, ...]
    axes: tuple[int, ...]
    y: tuple[int, ...]
    parts: tuple[RowBlock, ...]
    length: float


class Left(NamedTuple):
    """X: (nv, ny).   inside: (n, 1) positive where the directions are smooth functions of q."""

    X: ca.SX
    inside: ca.SX


NEAR = 1e-3
"""How near 0 the divisor 1 + s u_e of a reflection may come."""


def left_by(T: Terms, what: tuple[int, ...] | Directions) -> ca.SX:
    """X (nv, ny), v = X y: all of v, what a group of entries that the constraints fix leaves, or `directions`."""
    if isinstance(what, Directions):
        return directions(T, what).X
    return horizontal_lift(T, what) if what else ca.SX.eye(T.mechanism.nv)


def directions(T: Terms, of: Directions) -> Left:
    """X and where it is smooth."""
    m, inside, V = T.mechanism, [], from_body(T.kinematics, of)
    A, size = scaled_rows(T, of), ca.SX(scales(m, of))
    free = others(m, [i for part in of.parts for i in part.entries])
    columns = {i: ca.SX.eye(m.nv)[:, i] for i in free}
    for part in of.parts:
        rows, at = A[list(part.rows), :], list(part.entries)
        N, near = _across(rows[:, at], part)
        inside += near
        for i, column in zip(part.names, ca.horzsplit(N), strict=True):
            columns[i] = ca.SX(m.nv, 1)
            columns[i][at, 0] = column
        if part.lifts:
            moved = smallest(orthogonalise(rows[:, at], ca.SX(len(part.rows), 0), RANK), rows[:, list(part.lifts)])
            for i, column in zip(part.lifts, ca.horzsplit(moved), strict=True):
                columns[i][at, 0] = -column
    N = ca.horzcat(ca.SX(m.nv, 0), *[columns[i] / size * size[i] for i in of.y])
    return Left(ca.sparsify(V @ N), ca.vertcat(ca.SX(0, 1), *inside))


def _across(A: ca.SX, part: RowBlock) -> tuple[ca.SX, list[ca.SX]]:
    """Orthonormal columns N across the rows A, and what has to be positive for them."""
    N, inside = ca.SX.eye(A.shape[1]), []
    for i, ((place, sign), least) in enumerate(zip(part.reflected, part.least, strict=True)):
        row = A[i, :] @ N
        squared = ca.dot(row, row)
        inside.append(squared / ca.dot(A[i, :], A[i, :]) - least)
        turned, near = reflected(row / ca.sqrt(squared), place, sign)
        inside += near
        N = N @ turned
    return N, inside


def reflected(u: ca.SX, place: int, sign: int) -> tuple[ca.SX, list[ca.SX]]:
    """(n, n - 1) orthonormal columns across a unit row u (1, n), and what has to be positive for them."""
    n = u.numel()
    if n == 2:
        return sign * ca.vertcat(-u[1], u[0]), []
    w = u.T + sign * ca.SX.eye(n)[:, place]
    divisor = 1 + sign * u[place]
    keep = [i for i in range(n) if i != place]
    return (ca.SX.eye(n) - w @ w.T / divisor)[:, keep], [divisor - NEAR]


def scaled_rows(T: Terms, of: Directions) -> ca.SX:
    """(m, nv) A seen from the body, with turns as slides at the length."""
    return ca.densify(T.A) @ from_body(T.kinematics, of) / ca.repmat(ca.SX(scales(T.mechanism, of)).T, T.A.shape[0], 1)


def from_body(k: Kinematics, of: Directions) -> ca.SX:
    """(nv, nv) V with v = V w: in w, the twist of the body that the first joints carry stands in the place of theirs."""
    V, at, J = ca.SX.eye(k.mechanism.nv), indices(k.mechanism, of.base), _twist(k, of)
    if of.axes:
        V[at, at] = solve_symmetric(J.T @ J, J.T)
    return V


def in_body(k: Kinematics, of: Directions, X: ca.SX) -> ca.SX:
    """(nv, n) w of velocities X: the inverse of `from_body`."""
    out, at = ca.densify(X), indices(k.mechanism, of.base)
    if of.axes:
        out[at, :] = _twist(k, of) @ out[at, :]
    return out


def _twist(k: Kinematics, of: Directions) -> ca.SX:
    at = indices(k.mechanism, of.base)
    return k.jacobian(k.mechanism.joint(of.base[-1]).child)[list(of.axes), at]


def labels(m: Mechanism, of: Directions | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names and units of the velocities w; those of v where nothing stands in their place."""
    names, units = list(m.v_names), list(m.v_units)
    if of is not None and of.axes:
        body = m.joint(of.base[-1]).child
        for i, axis in zip(indices(m, of.base), of.axes, strict=True):
            names[i], units[i] = f"{body}.{'vw'[axis // 3]}{'xyz'[axis % 3]}", ("m/s", "rad/s")[axis // 3]
    return tuple(names), tuple(units)


def scales(m: Mechanism, of: Directions) -> list[float]:
    """By which the velocities w are multiplied to be compared: the length for turns, 1 for all else."""
    return [of.length if unit == "rad/s" else 1.0 for unit in labels(m, of)[1]]
