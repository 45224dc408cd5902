"""Lines through points of bodies, over pulleys and round cylinders and spheres: their length and its rate.

A line of tension T pulls each point on it along its two straight pieces, and a body that it touches by the resultant of the
pulls at its ends, since the massless line on the body is in equilibrium. The power of these pulls is -T l_dot, so the rate of
the length follows from them, and the generalised force of the line is -T (dl_dot/dv)^T.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import casadi as ca

from pfaffian.errors import ModelError, brief
from pfaffian.maths.wrapping import Wrapped, round_cylinder, round_sphere
from pfaffian.model import reprs
from pfaffian.model.data import data
from pfaffian.model.number import Scalar, at_defaults, direction, positive, several, single, vector
from pfaffian.model.pose import Pose, align_z, clean
from pfaffian.model.ranges import Range


@data
class Through:
    """A point (3, 1) of a body through which a line runs."""

    body: str
    point: ca.SX


@data
class Guide:
    """A cylinder, sphere or pulley of a body, which a line touches where it would pass through it.

    kind: "cylinder", "sphere" or "pulley": a cylinder round which the line goes in the positive sense about its axis.
    frame: its frame in the body, with the axis along z.   side: (3, 1) in that frame, see `wrapping`; None for the shorter way.
    """

    kind: str
    body: str
    frame: Pose
    radius: ca.SX
    side: ca.SX | None

    def wrapped(self, a: ca.SX, b: ca.SX) -> Wrapped:
        """The line from a to b (3, 1), in its frame."""
        if self.kind == "sphere":
            return round_sphere(a, b, self.radius, self.side)
        return round_cylinder(a, b, self.radius, self.side, always=self.kind == "pulley")


class Pull(NamedTuple):
    """Force and moment (3, 1) of a line of unit tension on a body, about a point (3, 1) of the body, in world axes."""

    body: str
    point: ca.SX
    force: ca.SX
    moment: ca.SX | None

    def times(self, falls: ca.SX) -> Pull:
        """The pull of a tension of `falls`."""
        if falls.is_one():
            return self
        return self._replace(force=falls * self.force, moment=None if self.moment is None else falls * self.moment)

    def plus(self, other: Pull) -> Pull:
        """The sum of two pulls on the same point."""
        moments = [x for x in (self.moment, other.moment) if x is not None]
        return self._replace(force=self.force + other.force, moment=sum(moments[1:], moments[0]) if moments else None)


class LinePiece(NamedTuple):
    """A part of a line between two points: its length (1, 1), and its pulls."""

    length: ca.SX
    pulls: list[Pull]


class PathPart(Protocol):
    """A part of a path: strands, and the travel of a slider-crank."""

    @property
    def falls(self) -> ca.SX: ...

    @property
    def bodies(self) -> tuple[str, ...]: ...

    @property
    def numbers(self) -> tuple[ca.SX, ...]: ...

    @property
    def ranges(self) -> tuple[Range, ...]: ...

    def pieces(self, k: Any) -> list[LinePiece]: ...


@data
class Strand:
    """One line: points, with a cylinder or sphere between two of them where there is one.

    falls: (1, 1) how often the strand counts: two for a tackle of two equal falls.
    """

    stations: tuple[Through | Guide, ...]
    falls: ca.SX

    @property
    def bodies(self) -> tuple[str, ...]:
        return tuple(s.body for s in self.stations)

    @property
    def numbers(self) -> tuple[ca.SX, ...]:
        """All its numbers, for checks."""
        points = [x.point if isinstance(x, Through) else ca.vertcat(x.frame.p, x.radius) for x in self.stations]
        return (*points, self.falls)

    @property
    def ranges(self) -> tuple[Range, ...]:
        """What its numbers must be."""
        guides = [x for x in self.stations if isinstance(x, Guide)]
        radii = [Range(f"the radius of the {x.kind} on {x.body!r}", x.radius, True) for x in guides]
        return (*radii, Range("the falls of the path", self.falls, True))

    def spans(self) -> list[tuple[Through, Guide | None, Through]]:
        """Each pair of neighbouring points, and what the line goes round between them."""
        found, points = [], [i for i, s in enumerate(self.stations) if isinstance(s, Through)]
        for i, j in pairwise(points):
            a, b, between = self.stations[i], self.stations[j], self.stations[i + 1 : j]
            assert isinstance(a, Through) and isinstance(b, Through)
            found.append((a, next((x for x in between if isinstance(x, Guide)), None), b))
        return found

    def pieces(self, k: Any) -> list[LinePiece]:
        """The pieces between its points."""
        return [_straight(k, a, b) if round_ is None else _bent(k, a, round_, b) for a, round_, b in self.spans()]


@data
class Drum:
    """A drum that takes up line as its joint turns forwards.   radius: length of line per angle [m]."""

    joint: str
    radius: ca.SX


@data
class Path:
    """A line as its strands and drums; its length is their sum, made by `path`.

    Example:
        >>> import pfaffian as pf
        >>> rope = pf.forces.path([("world", (0, 0, 2)), ("load", (0, 0, 0))])
        >>> m = pf.mechanism("load", [pf.body("load", 2.0)], [pf.joint("lift", "prismatic", "world", "load")])
        >>> seen = pf.compile_terms(m, {"l": lambda T: rope.length(T.kinematics), "l_dot": lambda T: rope.rate(T.kinematics)})
        >>> {name: float(x) for name, x in seen([0.5], [0.2]).items()}
        {'l': 1.5, 'l_dot': -0.2}
    """

    strands: tuple[PathPart, ...]
    drums: tuple[Drum, ...] = ()

    def __repr__(self) -> str:
        bodies = dict.fromkeys(self.bodies)
        return reprs.words(self, f"along {reprs.listed(list(bodies))}", *[f"wound by {d.joint!r}" for d in self.drums])

    def __add__(self, other: Path) -> Path:
        """The line whose length is the sum of both."""
        if not isinstance(other, Path):
            return NotImplemented
        return Path(self.strands + other.strands, self.drums + other.drums)

    @property
    def bodies(self) -> tuple[str, ...]:
        return tuple(body for s in self.strands for body in s.bodies)

    @property
    def numbers(self) -> tuple[ca.SX, ...]:
        """All numbers of the path, for checks."""
        return tuple(x for s in self.strands for x in s.numbers) + tuple(d.radius for d in self.drums)

    @property
    def ranges(self) -> tuple[Range, ...]:
        """What its numbers must be."""
        drums = (Range(f"the radius of the drum on {d.joint!r}", d.radius, True) for d in self.drums)
        return (*(r for s in self.strands for r in s.ranges), *drums)

    @property
    def joints(self) -> tuple[str, ...]:
        return tuple(d.joint for d in self.drums)

    def length(self, k: Any) -> ca.SX:
        """(1, 1) length at the kinematics k, with the line on the drums [m]."""
        return self.line(k).length

    def rate(self, k: Any) -> ca.SX:
        """(1, 1) rate of the length [m/s]."""
        total = sum((d.radius * k.joint_rate(d.joint) for d in self.drums), ca.SX(0))
        for pull in self.line(k).pulls:
            total -= ca.dot(pull.force, k.velocity(pull.body, pull.point))
            total -= 0 if pull.moment is None else ca.dot(pull.moment, k.twist(pull.body, "LOCAL_WORLD_ALIGNED")[3:])
        return ca.SX(total)

    def line(self, k: Any) -> LinePiece:
        """The whole line: its length, and its pulls on all bodies; those on the same point are added up."""
        length = sum((d.radius * single(k.joint(d.joint), d.joint, "a drum") for d in self.drums), ca.SX(0))
        found: dict[int, Pull] = {}
        for strand in self.strands:
            for piece in strand.pieces(k):
                length += strand.falls * piece.length
                for pull in (pull.times(strand.falls) for pull in piece.pulls):
                    key = id(pull.point)
                    found[key] = pull.plus(found[key]) if key in found else pull
        return LinePiece(ca.SX(length), list(found.values()))


def _straight(k: Any, a: Through, b: Through) -> LinePiece:
    """The straight piece from a to b. On one body it is of constant length, and its pulls cancel."""
    d = k.line(a.body, b.body, a.point, b.point) if a.body != b.body else b.point - a.point
    l = ca.norm_2(d)
    return LinePiece(l, [Pull(a.body, a.point, d / l, None), Pull(b.body, b.point, -d / l, None)] if a.body != b.body else [])


def _bent(k: Any, a: Through, round_: Guide, b: Through) -> LinePiece:
    """The piece from a to b round a cylinder or sphere."""
    places = k.tree.place
    on, X = places[round_.body]
    for end in (a, b):
        link, Y = places[end.body]
        if link == on and end.body != round_.body:  # bodies that a fixed joint holds together
            still = X.inverse() @ Y
            _check_outside(round_, end, still.R @ end.point + still.p)
    R = k.rotation(round_.body) @ round_.frame.R
    arms = [k.line(round_.body, end.body, round_.frame.p, end.point) for end in (a, b)]
    found = round_.wrapped(*(R.T @ arm for arm in arms))
    at_a, at_b = R @ found.at_a, R @ found.at_b
    on_guide = Pull(round_.body, round_.frame.p, -(at_a + at_b), -(ca.cross(arms[0], at_a) + ca.cross(arms[1], at_b)))
    return LinePiece(found.length, [Pull(a.body, a.point, at_a, None), Pull(b.body, b.point, at_b, None), on_guide])


# -- making -----------------------------------------------------------------------------------------------------------


def path(stations: Iterable[Any], *, falls: Scalar = 1.0, drums: Mapping[str, Scalar] | None = None) -> Path:
    """A line through points of bodies, round cylinders, spheres and pulleys, and on drums.

    Springs, winches and cables run along it, and its length and rate are functions of the kinematics: outputs of a run, terms
    of a law or of a constraint. A line is straight where it touches nothing, has no mass, and slides without friction.

    Args:
        stations: in order, each a pair (body, point (3,) in the frame of the body [m]), "world" for the fixed frame, or made
            by `guide` or `pulley`, which need a point before and after them.
        falls: how often the line counts, one by default: the rope of a tackle with four equal falls is four times as long as
            one, and pulls with four times its tension. The sum of two paths is a path, so falls may differ.
        drums: {joint: radius [m]} of drums that take up line: turning a joint forwards by an angle adds radius * angle to
            the length. None, the default, for no drums.
    Returns: a path.
    Raises ModelError: fewer than two points, the same point twice in a row, a cylinder or sphere without a point on either side
    or that contains such a point, a radius or number of falls that is not above zero.

    Example:
        A rope from a beam down to a load, over the sheave of a crane, half round it:

        >>> import pfaffian as pf
        >>> sheave = pf.forces.pulley("world", 0.1, axis=(0, 1, 0), centre=(0, 0, 2))
        >>> rope = pf.forces.path([("world", (-0.1, 0, 0)), sheave, ("load", (0.1, 0, 0))])
        >>> m = pf.mechanism("load", [pf.body("load", 2.0)], [pf.joint("lift", "prismatic", "world", "load")])
        >>> r = pf.run(m, [0.5], duration=0.01, step=0.01, outputs={"rope": rope.length}, backend="numpy")
        >>> float(r.rope.isel(time=0).item().__round__(6))  # 2 + pi 0.1 + 1.5
        3.814159
    """
    items = tuple(_station(x, i) for i, x in enumerate(stations if several(stations) else ()))
    if sum(isinstance(x, Through) for x in items) < 2:
        raise ModelError(f"path: two points (body, point) or more are needed, got {brief(stations)}")
    for i, x in enumerate(items):
        beside = items[max(i - 1, 0) : i] + items[i + 1 : i + 2]
        if isinstance(x, Guide):
            _check_guide(x, beside)
        elif x in beside:
            raise ModelError(f"path: the point {reprs.number(x.point)} of {x.body!r} stands twice in a row; leave one out")
    if drums is not None and not isinstance(drums, Mapping):
        raise ModelError(f"path: drums must be a dict of joint -> radius, got {brief(drums)}")
    for joint in drums or {}:
        if not isinstance(joint, str):
            raise ModelError(f"path: drums: the key {brief(joint)} is not the name of a joint")
    wound = tuple(Drum(joint, positive(r, f"path: radius of the drum on {joint!r}")) for joint, r in (drums or {}).items())
    return Path((Strand(items, positive(falls, "path: falls")),), wound)


def _station(x: Any, i: int) -> Through | Guide:
    """A station of a path. Raises ModelError: neither a point of a body nor something to go round."""
    if isinstance(x, (Through, Guide)):
        return x
    if not isinstance(x, (tuple, list)) or len(x) != 2 or not isinstance(x[0], str):
        raise ModelError(f"path: station {i} must be (body, point) or made by guide(...) or pulley(...), got {brief(x)}")
    return Through(x[0], vector(x[1], 3, f"path: point {i}, on {x[0]!r}"))


def _check_guide(x: Guide, beside: tuple[Through | Guide, ...]) -> None:
    """Raise ModelError unless a cylinder or sphere stands between two points, none of which is fixed inside it."""
    what = f"path: the {x.kind} of radius {reprs.number(x.radius)} on {x.body!r}"
    if len(beside) < 2 or not all(isinstance(y, Through) for y in beside):
        raise ModelError(f"{what} needs a point of the line before and after it; add (body, point)")
    for y in beside:
        if isinstance(y, Through) and y.body == x.body:
            _check_outside(x, y, y.point)


def _check_outside(x: Guide, y: Through, point: ca.SX) -> None:
    """Raise ModelError if a cylinder or sphere contains a point of the line that is fixed on its body, at `point` (3, 1)."""
    seen = x.frame.inverse()
    away = seen.R @ point + seen.p
    inside = at_defaults(ca.norm_2(away if x.kind == "sphere" else away[:2]) - x.radius)
    if inside is not None and inside.item() < 0:
        raise ModelError(
            f"path: the {x.kind} of radius {reprs.number(x.radius)} on {x.body!r} contains the point {reprs.number(y.point)} "
            f"of {y.body!r} on the line; move it out, or make the radius smaller"
        )


def guide(body: str, radius: Scalar, *, centre: Any = (0, 0, 0), axis: Any = None, side: Any = None) -> Guide:
    """A cylinder or a sphere of a body as a station of a `path`, which goes round it where it would pass through.

    The line takes the shorter way. A point `side` on the other side makes it take the longer way: it does so while, seen along
    the axis, the point lies between the directions opposite to the two points of the line beside it. MuJoCo's site of the side
    has the same rule. A line with an end inside is straight.

    Args:
        body: name of the body, "world" for the fixed frame.
        radius: [m].
        centre: (3,) centre of the sphere, or a point on the axis of the cylinder, in the body [m]; its origin by default.
        axis: (3,) axis of the cylinder, which has no ends, along the body's axes; None, the default, for a sphere.
        side: (3,) point on whose side the line passes, in the body [m]; None, the default, for the shorter way.
    Raises ModelError: a radius that is not above zero, an axis of zeros, a point `side` inside.

    Example:
        >>> import pfaffian as pf
        >>> knee = pf.forces.guide("thigh", 0.03, centre=(0, 0, -0.4), axis=(0, 1, 0))
        >>> knee.kind, pf.forces.guide("thigh", 0.03).kind
        ('cylinder', 'sphere')
    """
    what = "guide"
    frame = _frame(body, centre, axis, what)
    r = positive(radius, f"{what}: radius")
    beside = None
    if side is not None:
        seen = frame.inverse()
        beside = ca.densify(seen.R @ vector(side, 3, f"{what}: side") + seen.p)
        out = at_defaults(ca.norm_2(beside) - r)
        if out is not None and out.item() < 0:
            raise ModelError(f"{what}: the point `side` is inside, but a line only runs outside; choose a point outside")
    return Guide("sphere" if axis is None else "cylinder", body, frame, r, beside)


def pulley(body: str, radius: Scalar, *, axis: Any, centre: Any = (0, 0, 0)) -> Guide:
    """A pulley of a body as a station of a `path`: the line goes round it in the positive sense about its axis.

    The line lies in the groove as long as its ends, seen along the axis from the centre, are less than a whole turn apart. It
    leaves the pulley where its straight way passes on the other side. The pulley has no mass and no friction; a pulley on an
    arm is one on a body that turns.

    Args:
        body: name of the body, "world" for the fixed frame.
        radius: to the middle of the line [m].
        axis: (3,) about which the line goes round, by the right-hand rule, along the body's axes.
        centre: (3,) in the body [m]; its origin by default.
    Raises ModelError: a radius that is not above zero, an axis of zeros.

    Example:
        >>> import pfaffian as pf
        >>> over = pf.forces.path([("world", (1, 0, 0)), pf.forces.pulley("world", 0.1, axis=(0, 0, 1)), ("world", (0, -1, 0))])
        >>> over.bodies
        ('world', 'world', 'world')
    """
    return Guide("pulley", body, _frame(body, centre, axis, "pulley"), positive(radius, "pulley: radius"), None)


def _frame(body: Any, centre: Any, axis: Any, what: str) -> Pose:
    """The frame of a cylinder or sphere in its body. Raises ModelError: a body that is not a name, an axis of zeros."""
    if not isinstance(body, str):
        raise ModelError(f"{what}: body must be the name of a body, got {brief(body)}")
    R = ca.SX.eye(3) if axis is None else clean(ca.DM(align_z(ca.DM(direction(axis, f"{what}: axis")).full().ravel())))
    return Pose(R, vector(centre, 3, f"{what}: centre"))
