"""The length of a machine: the scale of residuals, constraint rows and moves, in whatever unit and wherever the machine stands.

A machine in millimetres is the same as one in metres, so no number of metres can tell what is small. Lengths here are those of
the bodies: from the mass centre to the joints that turn on them and to the ends of closures, and the radius of gyration. Joints
that slide mark no point, since any parallel axis is the same joint.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

import casadi as ca
import numpy as np

from pfaffian.maths.linear import largest
from pfaffian.maths.reflection import NOTHING
from pfaffian.model.constraint import AccelerationConstraint, Closure, Target
from pfaffian.model.mechanism import Mechanism
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.pfaffian import Rows
from pfaffian.terms.present import remembered
from pfaffian.terms.rates import tree
from pfaffian.terms.tree import Link

ROUNDING = 64 * 2.0**-52
"""Error by rounding alone, relative to the largest position or rate that a residual is computed from."""

PURE = ("wx", "wy", "wz", "cross")
"""Rows of closures whose residual is an angle or the cosine of one; all others are lengths."""


# -- of the machine -----------------------------------------------------------------------------------------------


def machine_length(m: Mechanism, *, closed: bool = True) -> ca.SX:
    """The largest length of any body [m], a function of the parameters; structurally zero where no body has one.

    closed: whether the ends of closures count too.
    """
    return _machine_length(m, closed)


@remembered(64, quick=True)
def _machine_length(m: Mechanism, closed: bool) -> ca.SX:
    closures = [c for c in m.ideal if isinstance(c, Closure) and closed]
    ends = [end for c in closures for end in _ends(m, c)]
    return largest([*_spans(m, range(len(tree(m).links)), ends), *[ca.fabs(c.number) for c in closures]])


@remembered(1024, quick=True)
def loop_length(m: Mechanism, c: Closure) -> ca.SX:
    """The same for the bodies in the loop that a closure closes."""
    (a, _), (b, _) = ends = _ends(m, c)
    loop = set(tree(m).path(a)) ^ set(tree(m).path(b))
    return largest([*_spans(m, sorted(loop), ends), ca.fabs(c.number)])


def default_length(m: Mechanism) -> float:
    """The machine's length [m] with its parameters at their defaults, 0 where no body has one."""
    return float(m.value(machine_length(m)).item())


def scales(m: Mechanism, p: np.ndarray, q: np.ndarray, units: tuple[str, ...]) -> np.ndarray:
    """(runs, n) scales of changes of coordinates or velocities in these units: slides have the machine's length, all else 1.

    p: (runs, np).   q: (runs, nq): where no body has a length, the distance that a run has slid is one.
    """
    found, sliding = np.ones((len(q), len(units))), np.array([unit in ("m", "m/s") for unit in units], dtype=bool)
    if sliding.any():
        long, coordinates = machine_length(m), [unit == "m" for unit in m.q_units]
        if long.is_zero():
            far = np.abs(q[:, coordinates]).max(axis=1, keepdims=True, initial=0.0)
            found[:, sliding] = np.where(far > 0, far, 1.0)
        else:
            f = ca.Function("length", [m.p_symbols], [long])
            found[:, sliding] = float(long) if long.is_constant() else np.array([float(f(row)) for row in p])[:, None]
    return found


def slides(m: Mechanism) -> list[bool]:
    """For each velocity whether it is in m/s."""
    return [unit == "m/s" for unit in m.v_units]


# -- of residuals -------------------------------------------------------------------------------------------------


class Reach(NamedTuple):
    """long: the machine's length [m]; where no body has one, its distance from the origin plus what it slides in 1 s.
    far: no less than any position of the machine [m], world axes.
    """

    long: ca.SX
    far: ca.SX


def reach(k: Kinematics) -> Reach:
    m, links = k.mechanism, k.tree.links
    steps = [link.placement.p for link in links] + [x for c in m.ideal if isinstance(c, Closure) for _, x in _ends(m, c)]
    edges = [ca.norm_1(k.steps[i].p) for i, link in enumerate(links) if link.subgroup is None]
    moved = [ca.fabs(k.q[i]) for i, unit in enumerate(m.q_units) if unit == "m"]
    far = sum([*map(ca.norm_2, steps), *edges, *moved], ca.SX(0))
    return Reach(_or(machine_length(m), sum([ca.fabs(k.v[i]) for i, yes in enumerate(slides(m)) if yes], far)), far)


def inverse_scales(k: Kinematics, rows: Rows, limit: float, least: ca.SX) -> ca.SX:
    """(m, 1) `inverse_scale` of all ideal constraints.   least: (m, 1) for each row."""
    found, first, at = [ca.SX(0, 1)], 0, reach(k)
    for c, count in zip(k.mechanism.ideal, rows.counts, strict=True):
        its = slice(first, first + count)
        found.append(inverse_scale(k.mechanism, c, rows.A[its, :], limit, at, least[its, 0]))
        first += count
    return ca.vertcat(*found)


def inverse_scale(m: Mechanism, c: Target, A: ca.SX, limit: float, at: Reach, least: ca.SX | float = 0.0) -> ca.SX:
    """(rows, 1) 1 / s of the rows of a constraint: |phi| / s <= limit means that it is satisfied, whatever the machine's size.

    For a length s = l + ROUNDING r / limit, with l the length of the constraint's loop and r the largest position it is
    computed from: |phi| is then below `limit` times the loop, or rounding. For an angle s = 1. For a function, whose unit is
    unknown, l is how much a turn by 1 rad or a slide by the machine's length changes it.

    A: (rows, nv) of the constraint.   at: the machine there.   least: lower bound of l of a function, its typical value: near a
    singular configuration its row is short, and |phi| no more accurate for that.
    """
    if isinstance(c, AccelerationConstraint):
        return ca.SX.ones(A.shape[0], 1)
    long = _or(loop_length(m, c), at.long) if isinstance(c, Closure) else at.long
    rounding = 1 + ROUNDING / limit * at.far / _above(long)
    if isinstance(c, Closure):
        whole = 1 / (rounding * _above(long))
        return ca.vertcat(*[ca.SX(1) if row in PURE else whole for row in c.holds.rows])
    return 1 / (rounding * _above(ca.fmax(ca.sqrt(squared_lengths(m, A, long)), least)))


def pace(k: Kinematics, limit: float) -> ca.SX:
    """[1/s] factor by which the limit of rates exceeds that of phi: 1, and what rounding of the fastest rate adds."""
    long = _above(reach(k).long)
    rates = [ca.fabs(k.v[i]) / long if yes else ca.fabs(k.v[i]) for i, yes in enumerate(slides(k.mechanism))]
    return 1 + ROUNDING / limit * largest(rates)


# -- of rows ------------------------------------------------------------------------------------------------------


def squared_lengths(m: Mechanism, A: ca.SX, long: ca.SX | None = None) -> ca.SX:
    """(rows, 1) squared lengths of A (rows, nv), a slide by `long` [m], the machine's length, counting as a turn by 1 rad."""
    long = _or(machine_length(m), ca.SX(1)) if long is None else long
    sliding, turning = ([i for i, yes in enumerate(slides(m)) if yes is of] for of in (True, False))
    return ca.densify(long**2 * ca.sum2(A[:, sliding] ** 2) + ca.sum2(A[:, turning] ** 2))


def row_units(m: Mechanism, counts: tuple[int, ...], grows: tuple[bool, ...]) -> ca.SX:
    """(m, 1) the length [m] that the length of a row scales with: for a closure that of its loop, for a function that `grows`
    the machine's; 1 for an angle, and for a function that is the same whatever the parameters.
    """
    long, found = _or(machine_length(m), ca.SX(1)), list[ca.SX]()
    for c, count in zip(m.ideal, counts, strict=True):
        length = _or(loop_length(m, c), long) if isinstance(c, Closure) else long
        found += [length if grows[len(found) + i] else ca.SX(1) for i in range(count)]
    return ca.vertcat(ca.SX(0, 1), *found)


def growing(m: Mechanism, rows: Rows) -> tuple[bool, ...]:
    """For each row whether its length scales with the machine's, as far as the parameters change it. rows: at symbols."""
    squared, found = squared_lengths(m, rows.A), list[bool]()
    for c, count in zip(m.ideal, rows.counts, strict=True):
        if isinstance(c, Closure):
            found += [row not in PURE for row in c.holds.rows]
        else:
            found += [ca.depends_on(squared[len(found) + i], m.p_symbols) for i in range(count)]
    return tuple(found)


def unknown_lengths(m: Mechanism, rows: Rows) -> tuple[int, ...]:
    """The rows of functions that slides change, where nothing tells how far the machine slides: no body has a length."""
    if not machine_length(m).is_zero():
        return ()
    by_function = [not isinstance(c, Closure) for c, count in zip(m.ideal, rows.counts, strict=True) for _ in range(count)]
    sliding = [i for i, yes in enumerate(slides(m)) if yes]
    return tuple(i for i, yes in enumerate(by_function) if yes and rows.A[i, sliding].nnz())


# -- how lengths are found -------------------------------------------------------------------------------------------


def _ends(m: Mechanism, c: Closure) -> tuple[tuple[int, ca.SX], tuple[int, ca.SX]]:
    """(link, point of it) of both frames of a closure."""
    place = tree(m).place
    (a, at_a), (b, at_b) = place[c.body_a], place[c.body_b]
    return (a, (at_a @ c.placement_a).p), (b, (at_b @ c.placement_b).p)


def _spans(m: Mechanism, links: Collection[int], ends: Iterable[tuple[int, ca.SX]]) -> list[ca.SX]:
    """Lengths of some links: from the mass centre to joints that turn and to ends of closures, and the radius of gyration."""
    every, marks = tree(m).links, dict[int, list[ca.SX]]()
    for i in links:
        if _turns(every[i]):
            marks.setdefault(every[i].parent, []).append(every[i].placement.p)
            marks.setdefault(i, []).append(ca.SX.zeros(3, 1))
    for i, x in ends:
        marks.setdefault(i, []).append(x)
    found = []
    for i in dict.fromkeys([*links, *marks]):
        points = marks.get(i, [])
        if i in links and not every[i].mass.is_zero():
            centre = every[i].h / every[i].mass
            found.append(ca.sqrt(ca.fmax(ca.trace(every[i].I) / (2 * every[i].mass) - ca.sumsqr(centre), 0)))
        elif points:
            centre = points[0]
        found += [ca.norm_2(x - centre) for x in points]
    return found


def _turns(link: Link) -> bool:
    """Whether the joint has a point or an axis of its own, about which it turns."""
    return link.subgroup is not None and not set(link.subgroup.axes) & {0, 1, 2}


def _or(x: ca.SX, other: ca.SX) -> ca.SX:
    return other if x.is_zero() else x


def _above(x: ca.SX) -> ca.SX:
    return ca.fmax(x, NOTHING)
