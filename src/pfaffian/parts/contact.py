"""Compliant contact of points, spheres, capsules, boxes and planes, with friction, and compliant stops of joints.

Where the surfaces overlap by a depth x = -gap, they push each other apart with the force [Hunt and Crossley 1975]

    N = k x^n + k x^n max(-1, c x_dot),   zero while they are apart

The first part has the potential k x^(n + 1) / (n + 1). The second part only dissipates energy, and N never pulls. Friction is
the law of `parts/friction.py` with the load k x^n. The model is one of soft surfaces: a body at rest sinks in by
(N / k)^(1 / n), and it creeps on a slope. Rigid contacts are constraints with `active_while`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import casadi as ca

from pfaffian.errors import ModelError, brief
from pfaffian.model import reprs
from pfaffian.model.compound import Compound
from pfaffian.model.data import data
from pfaffian.model.force import Potential, generalised_force, wrench
from pfaffian.model.joint import UNLIMITED
from pfaffian.model.number import Scalar, at_defaults, interval, is_whole, not_negative, positive, scalar, several, vector
from pfaffian.model.pose import IDENTITY, Pose, as_pose
from pfaffian.model.ranges import Range
from pfaffian.model.shape import Shape
from pfaffian.parts.friction import Sliding, sliding_law
from pfaffian.parts.rebound import as_restitution, rebounding, restitution_range
from pfaffian.parts.two_ends import check_two_ends
from pfaffian.parts.wheels import velocity_at

CREEP = 1e-2
"""[m/s] Speed below which friction grows with the speed, by default."""

DISTANCE_SMOOTHING = 1e-12
"""[m] Smoothing of the distance between two points, which gives it a derivative where they coincide."""

ROUND = ("sphere", "capsule")
"""Kinds of shapes that may be shape_b of a contact."""


class ContactPoint(NamedTuple):
    """The place where two surfaces are nearest to each other.

    gap: (1, 1) distance of the surfaces [m], below zero where they overlap.
    normal: (3, 1) unit normal from b to a, world axes.
    point: (3, 1) midway between the two surfaces, from the origin of body_a, world axes [m].
    """

    gap: ca.SX
    normal: ca.SX
    point: ca.SX


class Surfaces(NamedTuple):
    """The surfaces of two bodies that may touch.

    shape_a, shape_b: in the frame of each body. A point is a sphere of radius zero; a plane is a Pose whose z is its normal.
    """

    body_a: str
    body_b: str
    shape_a: Shape
    shape_b: Shape | Pose

    def __repr__(self) -> str:
        kind = "plane" if isinstance(self.shape_b, Pose) else self.shape_b.kind
        return f"{self.shape_a.kind} of {self.body_a!r} on {kind} of {self.body_b!r}"

    def contact_points(self, k: Any) -> list[ContactPoint]:
        """The places where the surfaces may touch: one, except for a capsule (2) or a box (8) on a plane."""
        X, Y = self.shape_a.placement, self.shape_b if isinstance(self.shape_b, Pose) else self.shape_b.placement
        # Both poses are relative to the origin of body_a, along the world's axes.
        A = Pose(k.rotation(self.body_a) @ X.R, k.rotation(self.body_a) @ X.p)
        B = Pose(k.rotation(self.body_b) @ Y.R, k.line(self.body_a, self.body_b, point_b=Y.p))
        if isinstance(self.shape_b, Pose):
            return [_plane_contact(x, r, B) for x, r in _balls(self.shape_a, A)]
        return [_segment_contact(_ContactAxis.of(self.shape_a, A), _ContactAxis.of(self.shape_b, B))]

    def slip(self, k: Any, x: ca.SX, y: ca.SX) -> ca.SX:
        """(3, 1) velocity of the point x of body_a relative to the point y of body_b, both (3, 1) from the origin of body_a,
        world axes [m/s]."""
        return velocity_at(k, self.body_a, x) - velocity_at(k, self.body_b, y - k.line(self.body_a, self.body_b))


def _balls(s: Shape, G: Pose) -> Iterator[tuple[ca.SX, ca.SX]]:
    """Centre (3, 1) in the world and radius of each ball with which a shape touches a plane; zero for a corner."""
    if s.kind == "box":
        signs = [(i, j, l) for i in (-1, 1) for j in (-1, 1) for l in (-1, 1)]
        for sign in signs:
            yield G.R @ (ca.SX(ca.DM(sign)) * s.size / 2) + G.p, ca.SX(0)
    elif s.kind == "capsule":
        for end in (-1, 1):
            yield G.p + end * G.R[:, 2] * s.size[1] / 2, s.size[0]
    else:
        yield G.p, s.size[0]


def _plane_contact(x: ca.SX, radius: ca.SX, plane: Pose) -> ContactPoint:
    """The contact of a ball with centre x (3, 1) and a plane, both in the world."""
    n = plane.R[:, 2]
    gap = ca.dot(n, x - plane.p) - radius
    return ContactPoint(gap, n, x - n * (radius + gap / 2))


class _ContactAxis(NamedTuple):
    """The axis of a capsule or the centre of a sphere, in the world.

    p: (3, 1) middle [m].
    d: (3, 1) vector from the middle to one end [m]; None for a sphere.
    r: radius [m].
    """

    p: ca.SX
    d: ca.SX | None
    r: ca.SX

    @staticmethod
    def of(s: Shape, G: Pose) -> _ContactAxis:
        """The segment of a sphere or capsule whose frame has the pose G in the world."""
        return _ContactAxis(G.p, G.R[:, 2] * s.size[1] / 2 if s.kind == "capsule" else None, s.size[0])

    def nearest(self, x: ca.SX) -> ca.SX:
        """(3, 1) point of the segment nearest to x (3, 1)."""
        return self.p if self.d is None else self.p + self.d * _clamp(ca.dot(x - self.p, self.d) / ca.sumsqr(self.d))


def _clamp(part: ca.SX) -> ca.SX:
    """A position along a segment, in units of its half length, limited to the segment: -1 to 1."""
    return ca.fmax(-1, ca.fmin(1, part))


def _segment_contact(a: _ContactAxis, b: _ContactAxis) -> ContactPoint:
    """The contact of two spheres or capsules."""
    x, y = _nearest(a, b)
    l = ca.sqrt(ca.sumsqr(x - y) + DISTANCE_SMOOTHING**2)
    n, gap = (x - y) / l, l - a.r - b.r
    return ContactPoint(gap, n, y + n * (b.r + gap / 2))


def _nearest(a: _ContactAxis, b: _ContactAxis) -> tuple[ca.SX, ca.SX]:
    """The pair of points, one on each segment, that are nearest to each other. [Ericson 2005, 5.1.9]"""
    if a.d is None or b.d is None:
        y = b.nearest(a.p) if a.d is None else b.p
        return a.nearest(y), y
    aa, bb, ab, between = ca.sumsqr(a.d), ca.sumsqr(b.d), ca.dot(a.d, b.d), b.p - a.p
    # Parallel lines have many nearest pairs; start from the middle of a then.
    determinant = aa * bb - ab**2
    parallel = determinant < 1e-12 * aa * bb
    along = ca.dot(between, a.d) * bb - ca.dot(between, b.d) * ab
    x = a.p + a.d * _clamp(ca.if_else(parallel, 0, along / ca.if_else(parallel, 1, determinant)))
    y = b.nearest(x)
    return a.nearest(y), y


class Press(NamedTuple):
    """The law of a compliant surface: its normal force as a function of the gap and its rate.

    stiffness: k [N/m^n].
    exponent: n.
    damping: c [s/m], or [s/rad] for a rotational stop.
    """

    stiffness: ca.SX
    exponent: ca.SX
    damping: ca.SX

    @property
    def ranges(self) -> tuple[Range, ...]:
        """What its numbers must be."""
        soft = Range("stiffness", self.stiffness, above=True), Range("exponent less 1", self.exponent - 1)
        return *soft, Range("damping", self.damping)

    def __repr__(self) -> str:
        parts = (f"stiffness {reprs.number(self.stiffness)}", f"exponent {reprs.number(self.exponent)}")
        return ", ".join((*parts, f"damping {reprs.number(self.damping, 's/m')}"))

    def elastic(self, gap: ca.SX) -> ca.SX:
        """The elastic force k x^n [N] at the depth x = -gap, zero where the surfaces are apart."""
        return self.stiffness * ca.fmax(0, -gap) ** self.exponent

    def energy(self, gap: ca.SX) -> ca.SX:
        """The potential energy k x^(n + 1) / (n + 1) [J] at the depth x = -gap."""
        return self.stiffness * ca.fmax(0, -gap) ** (self.exponent + 1) / (self.exponent + 1)

    def loss(self, gap: ca.SX, gap_dot: ca.SX) -> ca.SX:
        """The damping force, added to the elastic force; their sum never pulls."""
        return self.elastic(gap) * ca.fmax(-1, -self.damping * gap_dot)

    def depth(self, load: ca.SX, energy: ca.SX) -> ca.SX:
        """The larger of two depths: the one that carries a load [N] and the one that stores an energy [J]."""
        under_load = (load / self.stiffness) ** (1 / self.exponent)
        return ca.fmax(under_load, ((self.exponent + 1) * energy / self.stiffness) ** (1 / (self.exponent + 1)))

    def slope(self, depth: ca.SX) -> ca.SX:
        """The derivative dN/dx of the elastic force at a depth x."""
        return self.exponent * self.stiffness * depth ** (self.exponent - 1)


class WithPress(Protocol):
    """A part that presses by a `Press`, whose numbers it has; without a stiffness it is rigid."""

    @property
    def stiffness(self) -> ca.SX | None: ...

    @property
    def exponent(self) -> ca.SX: ...

    @property
    def damping(self) -> ca.SX: ...


def press_law(of: WithPress) -> Press:
    """The force law of a part that is not rigid."""
    assert of.stiffness is not None
    return Press(of.stiffness, of.exponent, of.damping)


@data
class _Law:
    """What the record of a compound computes. Abstract."""

    of: Any

    @property
    def bodies(self) -> tuple[str, ...]:
        return getattr(self.of, "bodies", ())

    @property
    def joints(self) -> tuple[str, ...]:
        return getattr(self.of, "joints", ())

    def __repr__(self) -> str:
        return reprs.words(self, repr(self.of).strip("<>"))


@data
class CompoundEnergy(_Law):
    """V(k) of a compound: the elastic energy of its record [J]."""

    def __call__(self, k: Any) -> ca.SX:
        return self.of.energy(k)


@data
class CompoundLoss(_Law):
    """f(k) or R(k) of a compound: what its record dissipates, by damping and friction."""

    def __call__(self, k: Any) -> ca.SX:
        return self.of.loss(k)


@data
class Contact:
    """A contact of two surfaces: the arguments of `contact`, checked."""

    body_a: str
    body_b: str
    shape_a: Shape
    shape_b: Shape | Pose
    stiffness: ca.SX | None
    exponent: ca.SX
    damping: ca.SX
    friction: ca.SX
    static: ca.SX
    stribeck: ca.SX
    creep: ca.SX
    impact: ca.SX | None = None

    def __repr__(self) -> str:
        if self.impact is not None:
            return reprs.words(self, repr(self.surfaces), f"restitution {reprs.number(self.impact)}")
        law = reprs.number(self.friction), reprs.number(self.static)
        return reprs.words(self, repr(self.surfaces), repr(press_law(self)), f"friction sliding {law[0]}, static {law[1]}")

    @property
    def bodies(self) -> tuple[str, str]:
        return self.body_a, self.body_b

    @property
    def surfaces(self) -> Surfaces:
        return Surfaces(self.body_a, self.body_b, self.shape_a, self.shape_b)

    @property
    def ranges(self) -> tuple[Range, ...]:
        """What its numbers must be."""
        excess = Range("static friction less sliding friction", self.static - self.friction)
        normal = press_law(self).ranges if self.impact is None else (restitution_range(self.impact),)
        return *normal, Range("sliding friction", self.friction), excess, Range("creep", self.creep, above=True)

    @property
    def sticking(self) -> ca.SX:
        """mu / s_0 [s/m], the damping by friction per load at speeds below s_0."""
        return self.static / self.creep

    def energy(self, k: Any) -> ca.SX:
        """The elastic energy of the surfaces [J]."""
        press = press_law(self)
        return sum((press.energy(point.gap) for point in self.surfaces.contact_points(k)), ca.SX(0))

    def loss(self, k: Any) -> ca.SX:
        """(6, 1) wrench of damping and friction on body_a about its origin, world axes."""
        surfaces, press, total = self.surfaces, press_law(self), ca.SX.zeros(6, 1)
        friction = Sliding(self.friction, self.static, self.stribeck, ca.SX(0), self.creep)
        for gap, n, x in surfaces.contact_points(k):
            s = surfaces.slip(k, x, x)
            gap_dot = ca.dot(n, s)
            F = n * press.loss(gap, gap_dot) + press.elastic(gap) * friction(s - n * gap_dot)
            total += ca.vertcat(F, ca.cross(x, F))
        return total

    def carried(self, k: Any) -> tuple[ca.SX, ca.SX]:
        """(3, 1) the whole force on body_a, world axes [N], and the place (3, 1) in the world where it acts [m].

        Of several points of contact, the place is the mean by their elastic force; where none touches, that of all.
        """
        points = self.surfaces.contact_points(k)
        pressed = [press_law(self).elastic(point.gap) for point in points]
        whole = sum(pressed, ca.SX(0))
        touches = whole > 0
        shares = [ca.if_else(touches, x / ca.if_else(touches, whole, 1), 1 / len(points)) for x in pressed]
        normal = sum((x * point.normal for x, point in zip(pressed, points, strict=True)), ca.SX.zeros(3, 1))
        middle = sum((x * point.point for x, point in zip(shares, points, strict=True)), ca.SX.zeros(3, 1))
        return normal + self.loss(k)[:3], k.position(self.body_a) + middle

    def gap_values(self, k: Any) -> ca.SX:
        """The gap at each place where the surfaces may touch."""
        return ca.vertcat(*[point.gap for point in self.surfaces.contact_points(k)])

    def touches(self, k: Any) -> list[tuple[ca.SX, ca.SX]]:
        """The gap and the sliding velocity (3, 1) of each point of contact, of surfaces apart that of their nearest points: at
        the middle of the gap, the arms of turns would grow with it."""
        surfaces, found = self.surfaces, []
        for gap, n, x in surfaces.contact_points(k):
            half = n * gap / 2
            s = surfaces.slip(k, x + half, x - half)
            found.append((gap, s - n * ca.dot(n, s)))
        return found


def contact(
    name: str, body_a: str, body_b: str = "world", *, shape_a: Any = (0, 0, 0), shape_b: Any = IDENTITY,
    stiffness: Scalar | None = None, exponent: Scalar = 1.5, damping: Scalar = 0.0, friction: Scalar = 0.0,
    static: Scalar | None = None, stribeck: Scalar = 0.01, creep: Scalar = CREEP, impact: Scalar | None = None,
) -> Compound:  # fmt: skip
    """Compliant contact of two bodies: a normal force with damping, and friction; or rigid impacts.

        N = k x^n (1 + max(-1, c x_dot)),   F = -mu k x^n s / sqrt(|s|^2 + creep^2)      [Hunt and Crossley 1975]

    x is the depth by which the surfaces overlap, and s is the velocity of body_a along them. The surfaces are soft by design: a
    body at rest sinks in by (N / k)^(1 / n), and a body that friction holds on a slope creeps at about creep tan(slope) / mu. A
    ball that hits the ground at speed v has a coefficient of restitution of about 1 - 2 c v / 3. A box touches a plane with its
    corners, a capsule with its ends.

    A contact is stiff: a run to an `accuracy` changes to its stiff pair by itself, and steps of one length go with
    `Scheme(integrator="tr-bdf2")`. Other integrators need short steps to resolve it; a run names a suitable step.

    Args:
        name: of the contact; its parts are called "name press" (the elastic force) and "name loss" (damping and friction).
        body_a: name of a body.
        body_b: name of the other body; "world" by default.
        shape_a: a `shape` (sphere, capsule or box), or a point (3,) of body_a [m]; its origin by default.
        shape_b: a sphere or capsule, or the placement in body_b of a plane whose normal is z, out of the ground; by default the
            plane z = 0. A box touches only planes.
        stiffness: k, at each point of contact [N/m^n]; 4/3 E* sqrt(R) for two spheres. [Hertz 1882]
        exponent: n, 1 or more; 1.5 by default, the value for round surfaces.
        damping: c [s/m], zero by default.
        friction: mu of sliding, per load [1], zero by default.
        static: friction at the onset of sliding, per load [1]; `friction` if None.
        stribeck: speed over which static friction drops to sliding friction [m/s], 0.01 by default.
        creep: speed below which friction grows with the speed [m/s], 0.01 by default; friction is complete well above it.
        impact: coefficient of restitution of rigid surfaces without friction, from 0 to 1, in place of the stiffness; see
            `rebound`.
    Returns: a compound of a potential and a wrench, for forces=[...].
    Raises ModelError: a shape that cannot touch the other one, a number out of its range, the same body twice, neither
    stiffness nor impact or both.

    Example:
        A ball of 2 kg comes to rest where the ground carries its weight:

        >>> import pfaffian as pf
        >>> ball, fall = pf.body("ball", mass=2.0), pf.joint("fall", "prismatic", "world", "ball")
        >>> rubber = {"stiffness": 1e4, "exponent": 1.0, "damping": 2.0}
        >>> ground = pf.forces.contact("ground", "ball", shape_a=pf.shape("sphere", radius=0.1), **rubber)
        >>> m = pf.mechanism("ball", [ball], [fall], forces=[ground])
        >>> stiff = pf.Scheme(integrator="tr-bdf2")
        >>> r = pf.run(m, [0.1], duration=2.0, scheme=stiff, error_bound=1, backend="interpreter")
        >>> print(f"{(0.1 - float(r.q[-1, 0])) * 1e3:.3f} mm, m g / k = {2 * 9.81 / 1e4 * 1e3:.3f} mm")
        1.962 mm, m g / k = 1.962 mm
    """
    what = f"force {name!r}"
    surfaces = _surfaces(what, body_a, body_b, shape_a, shape_b)
    press, e = surface_of(what, stiffness, exponent, damping, impact)
    law = sliding_law(what, friction, static, stribeck, 0.0, positive(creep, f"{what}: creep"))
    k, n, c = press
    of = Contact(body_a, body_b, *surfaces, k, n, c, law.sliding, law.static, law.stribeck, law.smooth, e)
    if e is not None:
        if not (law.sliding.is_zero() and law.static.is_zero()):
            raise ModelError(f"{what}: impacts act without friction; leave friction out, or give stiffness in place of impact")
        return rebounding(name, of)
    loss = wrench(f"{name} loss", body_a, CompoundLoss(of), by=body_b)
    return Compound(name, (Potential(f"{name} press", CompoundEnergy(of)), loss), of)


def _surfaces(what: str, body_a: Any, body_b: Any, shape_a: Any, shape_b: Any) -> tuple[Shape, Shape | Pose]:
    """The surfaces shape_a and shape_b of a contact, checked.   what: the label of the contact in error messages."""
    check_two_ends(what, "body", body_a, body_b, both="surfaces")
    if isinstance(shape_a, Pose):
        raise ModelError(f"{what}: shape_a is a plane; a plane must be shape_b, so swap the two bodies")
    a = shape_a if isinstance(shape_a, Shape) else _point(shape_a, what)
    if a.kind not in (*ROUND, "box"):
        raise ModelError(f"{what}: shape_a: a {a.kind} cannot touch; use a point, sphere, capsule or box")
    if not isinstance(shape_b, Shape):
        return a, as_pose(shape_b, f"{what}: shape_b, a shape(...)")
    if shape_b.kind not in ROUND:
        raise ModelError(f"{what}: shape_b: a {shape_b.kind} cannot be touched; use a plane, sphere or capsule")
    if a.kind == "box":
        raise ModelError(f"{what}: a box touches only planes, not a {shape_b.kind}; replace it by several spheres or capsules")
    return a, shape_b


def _point(x: Any, what: str) -> Shape:
    """A point (3,) of a body as a sphere of radius zero."""
    if not (several(x) or isinstance(x, ca.SX)):
        raise ModelError(f"{what}: shape_a must be a shape(...) or a point (3,), got {brief(x)}")
    return Shape("sphere", ca.SX.zeros(1, 1), Pose(IDENTITY.R, vector(x, 3, f"{what}: shape_a, a point")))


def press_of(what: str, stiffness: Any, exponent: Any, damping: Any) -> Press:
    """The law of a compliant surface, checked.   what: the label of the force in error messages."""
    n = positive(exponent, f"{what}: exponent")
    value = at_defaults(n)
    if value is not None and value.item() < 1:
        raise ModelError(
            f"{what}: exponent must be 1 or more, got {value.item():g}; below 1 the contact is infinitely stiff at zero depth"
        )
    return Press(positive(stiffness, f"{what}: stiffness"), n, not_negative(damping, f"{what}: damping"))


def surface_of(
    what: str, stiffness: Any, exponent: Any, damping: Any, impact: Any
) -> tuple[tuple[ca.SX | None, ca.SX, ca.SX], ca.SX | None]:
    """The numbers of the force law, with the stiffness None of rigid surfaces, and their coefficient of restitution, if so.

    Raises ModelError: both or neither are given, or a number is out of its range.
    """
    if (stiffness is None) == (impact is None):
        raise ModelError(
            f"{what}: give either stiffness, of soft surfaces, or impact, the coefficient of restitution of rigid ones"
        )
    if impact is None:
        return press_of(what, stiffness, exponent, damping), None
    if not not_negative(damping, f"{what}: damping").is_zero():
        raise ModelError(f"{what}: damping is of soft surfaces; leave it out with impact")
    return (None, *press_of(what, 1.0, exponent, 0.0)[1:]), as_restitution(what, impact)


# -- stops of joints ----------------------------------------------------------------------------------------------------


@data
class Stop:
    """Stops of one coordinate of a joint: the arguments of `stop`, checked."""

    joint: str
    low: ca.SX | None
    high: ca.SX | None
    component: int
    stiffness: ca.SX | None
    exponent: ca.SX
    damping: ca.SX
    impact: ca.SX | None = None

    def __repr__(self) -> str:
        rigid = "" if self.impact is None else f"restitution {reprs.number(self.impact)}"
        return reprs.words(self, f"joint {self.joint!r}", rigid or repr(press_law(self)))

    @property
    def joints(self) -> tuple[str]:
        return (self.joint,)

    @property
    def ranges(self) -> tuple[Range, ...]:
        """What its numbers must be."""
        return press_law(self).ranges if self.impact is None else (restitution_range(self.impact),)

    @property
    def sticking(self) -> ca.SX:
        """Stops have no friction."""
        return ca.SX(0)

    def gaps(self, k: Any) -> list[tuple[ca.SX, int]]:
        """The gap to each stop, and +1 or -1: the derivative of this gap with respect to the coordinate."""
        q = self.coordinate(k.joint(self.joint))
        stops = ((self.low, 1), (self.high, -1))
        return [(sign * (q - at), sign) for at, sign in stops if at is not None]

    def coordinate(self, x: ca.SX) -> ca.SX:
        """The entry of the joint's coordinates or rates x to which the stops belong."""
        if self.component >= x.numel():
            raise ModelError(f"joint {self.joint!r} has {x.numel()} coordinate(s), none numbered {self.component}")
        return x[self.component]

    def energy(self, k: Any) -> ca.SX:
        """The elastic energy of the stops [J]."""
        press = press_law(self)
        return sum((press.energy(gap) for gap, _ in self.gaps(k)), ca.SX(0))

    def loss(self, k: Any) -> ca.SX:
        """The damping force of the stops along the joint's rates."""
        rates = k.joint_rate(self.joint)
        if rates.numel() != k.joint(self.joint).numel():
            raise ModelError(
                f"joint {self.joint!r} has more coordinates than velocities; stops are for joints like hinges and rails"
            )
        press, out, rate = press_law(self), ca.SX.zeros(rates.numel(), 1), self.coordinate(rates)
        for gap, sign in self.gaps(k):
            out[self.component] += sign * press.loss(gap, sign * rate)
        return out

    def gap_values(self, k: Any) -> ca.SX:
        """The gap to each stop."""
        return ca.vertcat(*[gap for gap, _ in self.gaps(k)])

    def touches(self, k: Any) -> list[tuple[ca.SX, ca.SX]]:
        """The gap of each stop, with a sliding velocity of zero."""
        return [(gap, ca.SX.zeros(3, 1)) for gap, _ in self.gaps(k)]


def stop(
    name: str, joint: str, low: Scalar | None = None, high: Scalar | None = None, *, component: int = 0,
    stiffness: Scalar | None = None, exponent: Scalar = 1.0, damping: Scalar = 0.0, impact: Scalar | None = None,
) -> Compound:  # fmt: skip
    """Compliant stops of a joint, with the normal force of `contact` beyond low and high, or rigid ones with `impact`.

        f = k x^n (1 + max(-1, c x_dot)) back into the range, x the depth beyond it

    Args:
        name: of the stop; its parts are called "name press" and "name loss".
        joint: name of the joint or of coordinates.
        low, high: values of the coordinate [m or rad] at which the stops begin; None, but not for both, for no stop there.
        component: number of the coordinate among those of the joint, from 0; 0 by default.
        stiffness: k [N/m^n or N m/rad^n].
        exponent: n, 1 or more; 1 by default.
        damping: c [s/m or s/rad], zero by default.
        impact: coefficient of restitution of rigid stops, from 0 to 1, in place of the stiffness; see `rebound`.
    Returns: a compound of a potential and a generalised force, for forces=[...].
    Raises ModelError: neither low nor high, a low that is not below high, a number out of its range, neither stiffness nor
    impact or both.

    Example:
        A cart of 2 kg is pushed against its buffer:

        >>> import pfaffian as pf
        >>> cart, rail = pf.body("cart", mass=2.0), pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> buffer = pf.forces.stop("buffer", "rail", high=0.5, stiffness=1e4)
        >>> m = pf.mechanism("cart", [cart], [rail], forces=[buffer])
        >>> pf.forward_dynamics(m, [0.501]).v_dot.round(9)  # -1e4 * 0.001 / 2
        array([-5.])
    """
    what = f"force {name!r}"
    if not isinstance(joint, str):
        raise ModelError(f"{what}: joint must be the name of a joint, got {brief(joint)}")
    if not is_whole(component) or component < 0:
        raise ModelError(f"{what}: component must be a whole number from 0, got {brief(component)}")
    if low is None and high is None:
        raise ModelError(f"{what}: low or high is needed, or both")
    first, last = (None if x is None else scalar(x, f"{what}: {side}") for x, side in ((low, "low"), (high, "high")))
    width = None if first is None or last is None else at_defaults(last - first)
    if width is not None and not width.item() > 0:
        raise ModelError(f"{what}: low must be below high; high - low is {width.item():g}")
    press, e = surface_of(what, stiffness, exponent, damping, impact)
    of = Stop(joint, first, last, component, *press, e)
    if e is not None:
        return rebounding(name, of)
    loss = generalised_force(f"{name} loss", CompoundLoss(of), joint=joint)
    return Compound(name, (Potential(f"{name} press", CompoundEnergy(of)), loss), of)


def stops(
    joints: Any, *, stiffness: Scalar | None = None, exponent: Scalar = 1.0, damping: Scalar = 0.0, impact: Scalar | None = None
) -> tuple[Compound, ...]:
    """A `stop` at the finite limits of each coordinate of the given joints, for forces=stops(m.joints, ...).

    Args:
        joints: joints, made by `joint` or taken from a mechanism (m.joints); joints without limits are skipped.
        stiffness, exponent, damping, impact: as for `stop`, the same for all. The exponent is 1 and the damping 0 by default.
    Returns: a `stop` for each limited coordinate, called "joint stop".
    Raises ModelError: none of the joints has limits, or a number is out of its range.

    Example:
        >>> import pfaffian as pf
        >>> rail = pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0), limits=(-0.5, 0.5))
        >>> ends = pf.forces.stops([rail], stiffness=1e4, damping=0.5)
        >>> m = pf.mechanism("cart", [pf.body("cart", mass=2.0)], [rail], forces=ends)
        >>> pf.forward_dynamics(m, [-0.501]).v_dot.round(9)
        array([5.])
    """
    forces = list[Compound]()
    for j in [joints] if isinstance(joints, str) else joints:
        if isinstance(j, str) or not hasattr(j, "limits"):
            raise ModelError(f"stops: joints are needed, as m.joints, got {brief(j)}")
        for i, limits in enumerate(j.limits):
            if limits == UNLIMITED:
                continue
            low, high = (None if abs(x) == float("inf") else x for x in interval(limits, f"joint {j.name!r}: limits"))
            name = f"{j.name} stop" if len(j.limits) == 1 else f"{j.name}.{j.kind.q_names[i]} stop"
            law: dict[str, Any] = {"stiffness": stiffness, "exponent": exponent, "damping": damping, "impact": impact}
            forces.append(stop(name, j.name, low, high, component=i, **law))
    if not forces:
        raise ModelError("stops: none of these joints has limits")
    return tuple(forces)


# -- what a run asks about contacts and stops ---------------------------------------------------------------------------


def compliant_parts(m: Any) -> dict[str, Contact | Stop]:
    """The contacts and stops of a mechanism, by name."""
    return {c.name: c.of for c in m.compounds if isinstance(c.of, (Contact, Stop)) and c.of.impact is None}


def compliant_gaps(k: Any) -> dict[str, ca.SX]:
    """The gaps of all contacts and stops with compliance, by name; those of a part with several have numbers.

    k: Kinematics.
    """
    found = dict[str, ca.SX]()
    for name, part in compliant_parts(k.mechanism).items():
        values = ca.vertsplit(part.gap_values(k))
        found |= {name if len(values) == 1 else f"{name} {i}": gap for i, gap in enumerate(values)}
    return found


def stopped(m: Any) -> set[str]:
    """Names of the coordinates of a mechanism that have stops."""
    stops = [c.of for c in m.compounds if isinstance(c.of, Stop)]
    return {_coordinate_name(m.owner(s.joint), s.component) for s in stops}


def _coordinate_name(owner: Any, component: int) -> str:
    """Name of a coordinate of a joint or of coordinates."""
    suffix = owner.q_names[component]
    return f"{owner.name}.{suffix}" if suffix else owner.name
