"""The length of a machine, by which residuals, constraint rows and steps are scaled, whatever its unit and its position.

A machine behaves the same whether it is written in millimetres or in metres, so no fixed number of metres counts as small.
Lengths are those of the bodies: the distances from the mass centre to rotating joints and to the ends of closures, and the
radius of gyration. A sliding joint marks no point, since any parallel axis gives the same joint.
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
from pfaffian.terms.rates import tree
from pfaffian.terms.traced_now import remembered
from pfaffian.terms.tree import Link

ROUNDING = 64 * 2.0**-52
"""Rounding error of a residual, relative to the largest position or rate from which it is computed."""

PURE = ("wx", "wy", "wz", "cross")
"""Rows of closures whose residual is an angle or the cosine of one; all others are lengths."""


# -- of the machine -----------------------------------------------------------------------------------------------


def machine_length(m: Mechanism, *, closed: bool = True) -> ca.SX:
    """The largest length of any body [m], a function of the parameters; structurally zero if no body has a length.

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
    """The largest length [m] of the bodies in the loop that a closure closes, as in `machine_length`."""
    (a, _), (b, _) = ends = _ends(m, c)
    loop = set(tree(m).path(a)) ^ set(tree(m).path(b))
    return largest([*_spans(m, sorted(loop), ends), ca.fabs(c.number)])


@remembered(64, quick=True)
def mean_length(m: Mechanism) -> ca.SX:
    """The root mean square, by mass, of the lengths of the bodies [m]; `machine_length` if these have no mass.

    Random slides and speeds have this size: a rotor written with hardly any mass has a radius of gyration of thousands of
    kilometres, and takes no part in it.
    """
    links = tree(m).links
    marks = _marks(m, range(len(links)), [end for c in m.ideal if isinstance(c, Closure) for end in _ends(m, c)])
    mass, squares = ca.SX(0), ca.SX(0)
    for i, link in enumerate(links):
        if link.mass.is_zero():
            continue
        centre = link.h / link.mass
        squares += ca.fmax(ca.trace(link.I) / 2 - link.mass * ca.sumsqr(centre), 0)
        squares += link.mass * sum((ca.sumsqr(x - centre) for x in marks.get(i, [])), ca.SX(0)) / max(len(marks.get(i, [])), 1)
        mass += link.mass
    return machine_length(m) if squares.is_zero() else ca.sqrt(squares / mass)


def default_length(m: Mechanism) -> float:
    """The machine's length [m] with its parameters at their defaults, 0 if no body has a length."""
    return float(m.value(machine_length(m)).item())


def scales(m: Mechanism, p: np.ndarray, q: np.ndarray, units: tuple[str, ...]) -> np.ndarray:
    """(runs, n) scales of changes of coordinates or velocities with these units: 1, or the machine's length for translations.

    p: (runs, np).   q: (runs, nq), whose largest translation replaces the length if no body has one.
    """
    found, sliding = np.ones((len(q), len(units))), np.array([unit in ("m", "m/s") for unit in units], dtype=bool)
    if sliding.any():
        long = _length_by_parameters(m)
        if long is None:
            far = np.abs(q[:, [unit == "m" for unit in m.q_units]]).max(axis=1, keepdims=True, initial=0.0)
            found[:, sliding] = np.where(far > 0, far, 1.0)
        else:
            found[:, sliding] = long if isinstance(long, float) else np.array(long(p.T)).T  # one call for all runs
    return found


@remembered(64)
def _length_by_parameters(m: Mechanism) -> float | ca.Function | None:
    """The machine's length [m], or the function of the parameters that gives it; None if no body has a length."""
    long = machine_length(m)
    if long.is_zero():
        return None
    return float(long) if long.is_constant() else ca.Function("length", [m.p_symbols], [long])


def slides(m: Mechanism) -> list[bool]:
    """For each velocity whether it is in m/s."""
    return [unit == "m/s" for unit in m.v_units]


# -- of residuals -------------------------------------------------------------------------------------------------


class Reach(NamedTuple):
    """Length and position of a machine.

    long: the machine's length [m]; if no body has one, its distance from the origin plus the distance that it slides in 1 s.
    far: upper bound of the distance from the origin of any point of the machine [m].
    """

    long: ca.SX
    far: ca.SX


def reach(k: Kinematics) -> Reach:
    """Length and position of the machine at the symbols of k."""
    m, links = k.mechanism, k.tree.links
    steps = [link.placement.p for link in links] + [x for c in m.ideal if isinstance(c, Closure) for _, x in _ends(m, c)]
    edges = [ca.norm_1(k.steps[i].p) for i, link in enumerate(links) if link.subgroup is None]
    moved = [ca.fabs(k.q[i]) for i, unit in enumerate(m.q_units) if unit == "m"]
    far = sum([*map(ca.norm_2, steps), *edges, *moved], ca.SX(0))
    return Reach(_or_else(machine_length(m), sum([ca.fabs(k.v[i]) for i, yes in enumerate(slides(m)) if yes], far)), far)


def inverse_scales(k: Kinematics, rows: Rows, limit: float, least: ca.SX) -> ca.SX:
    """(m, 1) `inverse_scale` of the rows of all ideal constraints.   least: (m, 1) its argument for each row."""
    found, first, at = [ca.SX(0, 1)], 0, reach(k)
    for c, count in zip(k.mechanism.ideal, rows.counts, strict=True):
        indices = slice(first, first + count)
        found.append(inverse_scale(k.mechanism, c, rows.A[indices, :], limit, at, least[indices, 0]))
        first += count
    return ca.vertcat(*found)


def inverse_scale(m: Mechanism, c: Target, A: ca.SX, limit: float, at: Reach, least: ca.SX | float = 0.0) -> ca.SX:
    """(rows, 1) 1 / s for the rows of a constraint, which is satisfied if |phi| / s <= limit, whatever the machine's size.

    If phi is a length, s = l + ROUNDING r / limit, with l the length of the constraint's loop and r the largest position from
    which phi is computed: |phi| is then below `limit` times l, or rounding. If phi is an angle, s = 1. If phi is a function,
    whose unit is unknown, l is its change for a turn by 1 rad or a slide by the machine's length.

    A: (rows, nv) of the constraint.   at: length and position of the machine.
    least: lower bound of l for a function, its typical value: near a singular configuration its row is short, but its residual
        is not more accurate for that.
    """
    if isinstance(c, AccelerationConstraint):
        return ca.SX.ones(A.shape[0], 1)
    long = _or_else(loop_length(m, c), at.long) if isinstance(c, Closure) else at.long
    rounding = 1 + ROUNDING / limit * at.far / _divisor(long)
    if isinstance(c, Closure):
        whole = 1 / (rounding * _divisor(long))
        return ca.vertcat(*[ca.SX(1) if row in PURE else whole for row in c.holds.rows])
    return 1 / (rounding * _divisor(ca.fmax(ca.sqrt(squared_lengths(m, A, long)), least)))


def rate_limit_factor(k: Kinematics, limit: float) -> ca.SX:
    """Factor [1/s] from the limit for phi to the limit for its rate.

    A rate is rounded in proportion to the fastest velocity, so the factor is 1 plus this rounding over `limit`.
    """
    long = _divisor(reach(k).long)
    rates = [ca.fabs(k.v[i]) / long if yes else ca.fabs(k.v[i]) for i, yes in enumerate(slides(k.mechanism))]
    return 1 + ROUNDING / limit * largest(rates)


# -- of rows ------------------------------------------------------------------------------------------------------


def squared_lengths(m: Mechanism, A: ca.SX, long: ca.SX | None = None) -> ca.SX:
    """(rows, 1) squared lengths of A (rows, nv), where a slide by `long` [m] counts as a turn by 1 rad.

    long: the machine's length if not given.
    """
    long = _or_else(machine_length(m), ca.SX(1)) if long is None else long
    sliding, turning = ([i for i, yes in enumerate(slides(m)) if yes is of] for of in (True, False))
    return ca.densify(long**2 * ca.sum2(A[:, sliding] ** 2) + ca.sum2(A[:, turning] ** 2))


def row_units(m: Mechanism, counts: tuple[int, ...], grows: tuple[bool, ...]) -> ca.SX:
    """(m, 1) the length [m] to which the length of each row is proportional.

    It is the length of the loop for a closure, and that of the machine for a function where `grows` is true; 1 for an angle,
    and for a function that does not depend on the parameters.
    """
    long, found = _or_else(machine_length(m), ca.SX(1)), list[ca.SX]()
    for c, count in zip(m.ideal, counts, strict=True):
        length = _or_else(loop_length(m, c), long) if isinstance(c, Closure) else long
        found += [length if grows[len(found) + i] else ca.SX(1) for i in range(count)]
    return ca.vertcat(ca.SX(0, 1), *found)


def scales_with_length(m: Mechanism, rows: Rows) -> tuple[bool, ...]:
    """For each row whether its length scales with the machine's when parameters change.   rows: at symbols."""
    squared, found = squared_lengths(m, rows.A), list[bool]()
    for c, count in zip(m.ideal, rows.counts, strict=True):
        if isinstance(c, Closure):
            found += [row not in PURE for row in c.holds.rows]
        else:
            found += [ca.depends_on(squared[len(found) + i], m.p_symbols) for i in range(count)]
    return tuple(found)


def unknown_lengths(m: Mechanism, rows: Rows) -> tuple[int, ...]:
    """Rows of functions that depend on slides, if no body has a length: their scale is unknown."""
    if not machine_length(m).is_zero():
        return ()
    by_function = [not isinstance(c, Closure) for c, count in zip(m.ideal, rows.counts, strict=True) for _ in range(count)]
    sliding = [i for i, yes in enumerate(slides(m)) if yes]
    return tuple(i for i, yes in enumerate(by_function) if yes and rows.A[i, sliding].nnz())


# -- how lengths are found -------------------------------------------------------------------------------------------


def _ends(m: Mechanism, c: Closure) -> tuple[tuple[int, ca.SX], tuple[int, ca.SX]]:
    """(link, point in its frame) for both ends of a closure."""
    place = tree(m).place
    (a, at_a), (b, at_b) = place[c.body_a], place[c.body_b]
    return (a, (at_a @ c.placement_a).p), (b, (at_b @ c.placement_b).p)


def _spans(m: Mechanism, links: Collection[int], ends: Iterable[tuple[int, ca.SX]]) -> list[ca.SX]:
    """Lengths of these links: from the mass centre to rotating joints and to the ends of closures, and radii of gyration."""
    all_links, marks, found = tree(m).links, _marks(m, links, ends), []
    for i in dict.fromkeys([*links, *marks]):
        points = marks.get(i, [])
        if i in links and not all_links[i].mass.is_zero():
            centre = all_links[i].h / all_links[i].mass
            found.append(ca.sqrt(ca.fmax(ca.trace(all_links[i].I) / (2 * all_links[i].mass) - ca.sumsqr(centre), 0)))
        elif points:
            centre = points[0]
        found += [ca.norm_2(x - centre) for x in points]
    return found


def _marks(m: Mechanism, links: Collection[int], ends: Iterable[tuple[int, ca.SX]]) -> dict[int, list[ca.SX]]:
    """Points of links, by index: rotating joints of these links, on both of their sides, and ends of closures."""
    all_links, marks = tree(m).links, dict[int, list[ca.SX]]()
    for i in links:
        if _turns(all_links[i]):
            marks.setdefault(all_links[i].parent, []).append(all_links[i].placement.p)
            marks.setdefault(i, []).append(ca.SX.zeros(3, 1))
    for i, x in ends:
        marks.setdefault(i, []).append(x)
    return marks


def _turns(link: Link) -> bool:
    """Whether the joint of a link rotates about a fixed point or axis, without sliding."""
    return link.subgroup is not None and not set(link.subgroup.axes) & {0, 1, 2}


def _or_else(x: ca.SX, other: ca.SX) -> ca.SX:
    """x, or `other` if x is structurally zero."""
    return other if x.is_zero() else x


def _divisor(x: ca.SX) -> ca.SX:
    """x, at least NOTHING, so that it can divide."""
    return ca.fmax(x, NOTHING)
