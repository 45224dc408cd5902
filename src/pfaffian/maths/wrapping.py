"""The shortest line between two points round a cylinder or a sphere, without branches.

In the plane of a circle of radius r about the origin, with t_a and t_b the lengths of the tangents from a and b to the circle,
the straight line misses it where a . b - r^2 >= -t_a t_b. Otherwise the line is a tangent, an arc and a tangent. At a it leaves
along (-t_a a + s r a') / |a|^2, where a' is a turned by a quarter and s is +1 or -1, the sense in which it goes round.
The points at which it touches are not needed for lengths and forces: the body that it touches is in equilibrium with the pulls
at a and b. Unrolled, a line on a cylinder is straight, so its slope along the axis is the same everywhere.
"""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca

PARALLEL = 1e-12
"""Two points seen from the centre of a sphere under an angle below this, or above pi less this, determine no plane."""


class Wrapped(NamedTuple):
    """A line from a to b round a body at the origin, or round a circle in a plane.

    length: (1, 1).   at_a, at_b: (n, 1) unit vectors along the line at a and b, each away from its point.
    touches: (1, 1) whether the line touches the body.   arc: (1, 1) angle of the arc, where it touches.
    first, last: (n, 1) points where the arc begins and ends.   turn: (3, 1) rotation vector of the arc, of unit length; in a
    plane (1, 1) its sense, +1 or -1.
    """

    length: ca.SX
    at_a: ca.SX
    at_b: ca.SX
    touches: ca.SX
    arc: ca.SX
    first: ca.SX
    last: ca.SX
    turn: ca.SX


class _InPlane(NamedTuple):
    """Two points as seen in the plane of a circle about the origin.

    a, b: (n, 1).   a_turned, b_turned: (n, 1) the same turned by a quarter.   dot, cross: (1, 1) of a and b.
    """

    a: ca.SX
    b: ca.SX
    a_turned: ca.SX
    b_turned: ca.SX
    dot: ca.SX
    cross: ca.SX


def round_cylinder(a: ca.SX, b: ca.SX, radius: ca.SX, side: ca.SX | None, always: bool) -> Wrapped:
    """The line from a to b (3, 1) round an endless cylinder about z.

    side: (3, 1) a point; the line goes the longer way round if, seen along z, the point lies between the directions opposite to
        a and b. None for the shorter way.
    always: whether the line goes round in the positive sense, as a rope in the groove of a pulley does.
    """
    x, y = a[:2], b[:2]
    flat = _round(_plane(x, y), radius, None if side is None else side[:2], always)
    rise = b[2] - a[2]
    length = ca.sqrt(flat.length**2 + rise**2)
    steep, slope = rise / length, flat.length / length
    t_a, t_b = (ca.norm_2(p - q) for p, q in ((flat.first, x), (flat.last, y)))
    first = ca.vertcat(flat.first, a[2] + rise * t_a / flat.length)
    last = ca.vertcat(flat.last, b[2] - rise * t_b / flat.length)
    at_a, at_b = ca.vertcat(flat.at_a * slope, steep), ca.vertcat(flat.at_b * slope, -steep)
    turn = ca.vertcat(0, 0, flat.turn)
    return _chosen(a, b, Wrapped(length, at_a, at_b, flat.touches, flat.arc, first, last, turn))


def round_sphere(a: ca.SX, b: ca.SX, radius: ca.SX, side: ca.SX | None) -> Wrapped:
    """The line from a to b (3, 1) round a sphere about the origin.   side: as in `round_cylinder`, in the plane of a and b."""
    n = ca.cross(a, b)
    beside = ca.if_else(ca.fabs(a[0]) < ca.fabs(a[1]), ca.SX([1, 0, 0]), ca.SX([0, 1, 0]))
    parallel = ca.sumsqr(n) <= PARALLEL**2 * ca.sumsqr(a) * ca.sumsqr(b)
    n = ca.if_else(parallel, ca.cross(a, beside), n)  # A line through the centre goes round in any plane.
    n = n / ca.norm_2(n)
    a_turned, b_turned = ca.cross(n, a), ca.cross(n, b)
    flat = _round(_InPlane(a, b, a_turned, b_turned, ca.dot(a, b), ca.dot(a_turned, b)), radius, side, False)
    return _chosen(a, b, flat._replace(turn=flat.turn * n))


def _plane(a: ca.SX, b: ca.SX) -> _InPlane:
    """Two points (2, 1) of a plane."""
    a_turned, b_turned = ca.vertcat(-a[1], a[0]), ca.vertcat(-b[1], b[0])
    return _InPlane(a, b, a_turned, b_turned, ca.dot(a, b), ca.dot(a_turned, b))


def _chosen(a: ca.SX, b: ca.SX, wrapped: Wrapped) -> Wrapped:
    """The line round a body where it touches, else the straight line."""
    d = b - a
    l = ca.norm_2(d)
    straight = Wrapped(l, d / l, -d / l, ca.SX(0), ca.SX(0), a, b, wrapped.turn)
    touches = wrapped.touches
    return Wrapped(*[ca.if_else(touches, x, y) for x, y in zip(wrapped, straight, strict=True)])._replace(touches=touches)


def _round(p: _InPlane, r: ca.SX, side: ca.SX | None, always: bool) -> Wrapped:
    """The line from a to b round the circle, and whether it touches the circle at all."""
    aa, bb = ca.sumsqr(p.a), ca.sumsqr(p.b)
    outside = ca.logic_and(aa > r**2, bb > r**2)
    # Within the circle the values are not used, but they and their derivatives must be finite.
    t_a, t_b = (ca.sqrt(ca.if_else(x > r**2, x - r**2, r**2)) for x in (aa, bb))
    short = ca.if_else(p.cross < 0, -1, 1)
    gap, tangents = p.dot - r**2, t_a * t_b
    hits = gap < -tangents
    if always:
        sense, touches = ca.SX(1), ca.logic_or(hits, ca.logic_and(short < 0, gap <= tangents))
    elif side is None:
        sense, touches = short, hits
    else:
        long = ca.logic_and(short * ca.dot(p.a_turned, side) < 0, short * ca.dot(p.b_turned, side) > 0)
        sense, touches = ca.if_else(long, -short, short), ca.logic_or(hits, long)
    at_a, at_b = (-t_a * p.a + sense * r * p.a_turned) / aa, (-t_b * p.b - sense * r * p.b_turned) / bb
    along, across = r**2 - tangents, r * (t_a + t_b)  # proportional to cosine and sine of the angles at a and b together
    cross = sense * p.cross
    arc = ca.atan2(cross * along - p.dot * across, p.dot * along + cross * across)
    arc = ca.if_else(ca.logic_and(cross < 0, arc < 0), arc + 2 * ca.pi, ca.fmax(arc, 0))
    touches = ca.logic_and(outside, touches)
    first, last = p.a + t_a * at_a, p.b + t_b * at_b
    return Wrapped(t_a + r * arc + t_b, at_a, at_b, touches, arc, first, last, sense)
