"""Wheels, disks, balls, ellipsoids and blades on a plane: constraints from the geometry of the contact.

The plane is fixed to a body. Its normal is n, and its surface may also turn about n, as a turntable does. Rolling means that
the contact point of the body has no velocity relative to this surface; contact means that its height above the plane is zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca

from pfaffian.errors import ModelError, brief
from pfaffian.model import reprs
from pfaffian.model.body import WORLD
from pfaffian.model.compound import Compound
from pfaffian.model.constraint import Holonomic, Nonholonomic
from pfaffian.model.data import data
from pfaffian.model.joint import axis_frame
from pfaffian.model.number import Parameter, Scalar, direction, positive, scalar, vector
from pfaffian.model.user_functions import call_for_value


@data
class Plane:
    """A plane fixed to the body `on`, with a surface that may turn like a turntable; made by `plane`.

    through: (3, 1) a point of the plane, in the body [m].
    axes: (3, 3) two directions of the plane and its normal as columns, along the body's axes.
    rate: rate of the surface about the normal through that point [rad/s], or a function of t giving it.
    """

    on: str
    through: ca.SX
    axes: ca.SX
    rate: ca.SX | Callable[[Any], Any]

    def __repr__(self) -> str:
        turns = reprs.function(self.rate) if callable(self.rate) else reprs.number(self.rate, "rad/s")
        parts = f"through {reprs.number(self.through, 'm')}", f"normal {reprs.number(self.axes[:, 2])}", f"rate {turns}"
        return reprs.words(self, f"on {self.on!r}", *parts)

    def normal(self, k: Any) -> ca.SX:
        """(3, 1) normal of the plane, world axes."""
        return k.rotation(self.on) @ self.axes[:, 2]

    def height(self, k: Any, body: str, arm: ca.SX) -> ca.SX:
        """Height above the plane of the point at the end of `arm` (3, 1), a vector from the body's origin in world axes [m]."""
        return ca.dot(self.normal(k), self._from_centre(k, body, arm))

    def _from_centre(self, k: Any, body: str, arm: ca.SX) -> ca.SX:
        """(3, 1) vector from `through` to the end of an arm of the body, world axes [m]."""
        return k.line(self.on, body, self.through) + arm

    def slip(self, k: Any, body: str, arm: ca.SX) -> ca.SX:
        """(3, 1) velocity of the body relative to the surface at the end of an arm of the body, world axes [m/s]."""
        turning = self.rate
        if callable(turning):
            turning = scalar(call_for_value(turning, "rate", k.t), "rate")
        surface = velocity_at(k, self.on, k.line(self.on, body) + arm)
        surface += turning * ca.cross(self.normal(k), self._from_centre(k, body, arm))
        return velocity_at(k, body, arm) - surface

    def slip_within(self, k: Any, body: str, arm: ca.SX) -> ca.SX:
        """(2, 1) components of `slip` along the two directions of the plane [m/s]."""
        return (k.rotation(self.on) @ self.axes[:, :2]).T @ self.slip(k, body, arm)


def velocity_at(k: Any, body: str, arm: ca.SX) -> ca.SX:
    """(3, 1) velocity of the body at the end of `arm` (3, 1), a vector from its origin; both in world axes [m/s]."""
    V = k.twist(body, "LOCAL_WORLD_ALIGNED")
    return V[:3] + ca.cross(V[3:], arm)


@data
class Disk:
    """A circle fixed to a body, and the plane on which it rolls.

    axis: (3, 1) unit vector along the body's axes.   centre: (3, 1) in the body [m].   radius: [m].
    """

    body: str
    radius: ca.SX
    axis: ca.SX
    centre: ca.SX
    plane: Plane

    def contact(self, k: Any) -> tuple[ca.SX, ca.SX, ca.SX]:
        """The arm to the disk's lowest point, its heading and its sideways direction in the plane, each (3, 1), world axes.

        They are nan where the disk lies flat.
        """
        a, n = k.rotation(self.body) @ self.axis, self.plane.normal(k)
        heading = ca.cross(a, n)
        heading /= ca.norm_2(heading)
        arm = k.rotation(self.body) @ self.centre + self.radius * ca.cross(a, heading)
        return arm, heading, ca.cross(n, heading)

    def height(self, k: Any) -> ca.SX:
        """The height of the lowest point [m]."""
        return self.plane.height(k, self.body, self.contact(k)[0])

    def slip(self, k: Any) -> ca.SX:
        """(2, 1) slip of the lowest point along the heading and sideways [m/s]."""
        arm, heading, sideways = self.contact(k)
        s = self.plane.slip(k, self.body, arm)
        return ca.vertcat(ca.dot(heading, s), ca.dot(sideways, s))


@data
class Ball:
    """A sphere fixed to a body, and the plane on which it rolls.   radius: [m].   centre: (3, 1) in the body [m]."""

    body: str
    radius: ca.SX
    centre: ca.SX
    plane: Plane

    def height(self, k: Any) -> ca.SX:
        """The height of the lowest point [m]."""
        return self.plane.height(k, self.body, k.rotation(self.body) @ self.centre) - self.radius

    def slip(self, k: Any) -> ca.SX:
        """(2, 1) slip of the lowest point along the two directions of the plane [m/s]."""
        arm = k.rotation(self.body) @ self.centre - self.radius * self.plane.normal(k)
        return self.plane.slip_within(k, self.body, arm)


@data
class Ellipsoid:
    """An ellipsoid fixed to a body, and the plane on which it rolls.

    semi_axes: (3, 1) along the body's axes [m].   centre: (3, 1) in the body [m].
    """

    body: str
    semi_axes: ca.SX
    centre: ca.SX
    plane: Plane

    def contact(self, k: Any) -> ca.SX:
        """The arm (3, 1) to the lowest point, world axes: to the centre, minus D^2 n / sqrt(n^T D^2 n).

        D is the diagonal matrix of the semi-axes, and n the plane's normal along the body's axes.
        """
        n = k.rotation(self.body).T @ self.plane.normal(k)
        below = self.semi_axes**2 * n
        return k.rotation(self.body) @ (self.centre - below / ca.sqrt(ca.dot(n, below)))

    def height(self, k: Any) -> ca.SX:
        """The height of the lowest point [m]."""
        return self.plane.height(k, self.body, self.contact(k))

    def slip(self, k: Any) -> ca.SX:
        """(2, 1) slip of the lowest point along the two directions of the plane [m/s]."""
        return self.plane.slip_within(k, self.body, self.contact(k))


@data
class Blade:
    """An edge fixed to a body, and the plane on which it slides.

    along: (3, 1) unit vector along the body's axes.   point: (3, 1) in the body [m].
    """

    body: str
    along: ca.SX
    point: ca.SX
    plane: Plane

    def slip(self, k: Any) -> ca.SX:
        """The sideways velocity of the point in the plane [m/s], times the sine of the blade's angle to the normal."""
        across = ca.cross(self.plane.normal(k), k.rotation(self.body) @ self.along)
        return ca.dot(across, self.plane.slip(k, self.body, k.rotation(self.body) @ self.point))


@data
class Height:
    """phi(k): the height of the lowest point of a disk, ball or ellipsoid above its plane [m]."""

    of: Disk | Ball | Ellipsoid

    @property
    def bodies(self) -> tuple[str, str]:
        return self.of.body, self.of.plane.on

    def __call__(self, k: Any) -> ca.SX:
        return self.of.height(k)


@data
class Slip:
    """eta(k): the velocity along its plane of the point at which a disk, ball, ellipsoid or blade touches it [m/s]."""

    of: Disk | Ball | Ellipsoid | Blade

    @property
    def bodies(self) -> tuple[str, str]:
        return self.of.body, self.of.plane.on

    def __call__(self, k: Any) -> ca.SX:
        return self.of.slip(k)


def _rolling(name: str, of: Disk | Ball | Ellipsoid) -> Compound:
    """The height and the slip of something that rolls, as a whole."""
    return Compound(name, (Holonomic(f"{name} height", Height(of)), Nonholonomic(f"{name} slip", Slip(of))), of)


def plane(*, on: str = WORLD, through: Any = (0, 0, 0), normal: Any = (0, 0, 1), rate: Any = 0.0) -> Plane:
    """A plane fixed to a body, on which wheels, disks, balls and blades move. Its surface may turn like a turntable.

    Args:
        on: name of the body; the world by default.
        through: (3,) a point of the plane, in the frame of `on` [m]; its origin by default.
        normal: (3,) of the plane, along the axes of `on`, towards what rolls on it; z by default.
        rate: [rad/s] at which the surface turns about the normal at `through`: a number, a Parameter or a function of t; zero
            by default.
    Raises ModelError: a body that is not a name, a normal that is zero.

    Example:
        A ball that rolls on a turntable:

        >>> import pfaffian as pf
        >>> ball, base = pf.body("ball", mass=2.0, inertia=0.008), pf.joint("base", "free", "world", "ball")
        >>> table = pf.rolling.plane(rate=2.0)
        >>> m = pf.mechanism("ball", [ball], [base], constraints=[pf.rolling.sphere("contact", "ball", 0.1, plane=table)])
        >>> motion = pf.forward_dynamics(m, [1, 0, 0.1, 0, 0, 0, 1], [1, 0, 0, 20, 10, 0])  # rolls outwards at 1 m/s
        >>> float(motion.v_dot[1].round(6))  # 2/7 of 2 rad/s * 1 m/s, sideways
        0.571429
    """
    if not isinstance(on, str):
        raise ModelError(f"plane: on must be the name of a body, got {brief(on)}")
    axes = axis_frame(direction(normal, "plane: normal"), "plane").R
    turning = rate if callable(rate) and not isinstance(rate, (Parameter, ca.SX)) else scalar(rate, "plane: rate")
    return Plane(on, vector(through, 3, "plane: through"), ca.SX(axes), turning)


FLOOR = plane()
"""The plane z = 0 of the world."""


def disk(
    name: str, body: str, radius: Scalar, *, axis: Any = (0, 0, 1), centre: Any = (0, 0, 0), plane: Plane = FLOOR
) -> Compound:
    """The two constraints of a thin disk that rolls on its edge: its lowest point has zero height and no slip.

    They have three rows; those of slip are not integrable. The multiplier of `name height` is the normal force [N], positive
    upwards. It may become negative and pull the disk down (see `sign_changes`). The multipliers of `name slip` are the friction
    forces along the heading of the disk and sideways [N]. A disk that lies flat touches with its whole edge: no start is found
    there, and a run that arrives there stops.

    Args:
        name: of the contact; the constraints are called "name height" and "name slip".
        body: name of the body to which the disk is fixed.
        radius: [m].
        axis: (3,) of the disk, in the body's frame; z by default.
        centre: (3,) of the disk, in the body's frame [m]; its origin by default.
        plane: on which it rolls, made by `plane`; the world's plane z = 0 by default.
    Returns: a compound of both, for constraints=[...].
    Raises ModelError: a radius that is not above zero, an axis that is zero.

    Example:
        >>> import pfaffian as pf
        >>> coin, base = pf.body("coin", mass=2.0, inertia=(0.005, 0.01, 0.005)), pf.joint("base", "free", "world", "coin")
        >>> edge = pf.rolling.disk("edge", "coin", 0.1, axis=(0, 1, 0))
        >>> m = pf.mechanism("coin", [coin], [base], constraints=[edge], gravity=(3, 0, -9.81))  # a slope
        >>> motion = pf.forward_dynamics(m, [0, 0, 0.1, 0, 0, 0, 1])
        >>> int(motion.rank), float(motion.v_dot[0].round(6))  # 3 / (1 + 0.01 / (2 * 0.1^2))
        (3, 2.0)
    """
    return _rolling(name, circle(f"constraint {name!r}", body, radius, axis, centre, plane))


def wheel(
    name: str, body: str, radius: Scalar, *, axis: Any = (0, 0, 1), centre: Any = (0, 0, 0), plane: Plane = FLOOR
) -> Nonholonomic:
    """The constraint that a wheel does not slip, for a wheel whose height the rest of the machine determines. Two rows [m/s].

    Args:
        name: unique among the constraints.
        body: name of the body to which the wheel is fixed.
        radius: [m].
        axis: (3,) of the wheel, in the body's frame; z by default.
        centre: (3,) of the wheel, in the body's frame [m]; its origin by default.
        plane: on which it rolls, made by `plane`; the world's plane z = 0 by default.
    Raises ModelError: a radius that is not above zero, an axis that is zero.

    Example:
        >>> import pfaffian as pf
        >>> bodies = [pf.body("cart", mass=1.0, inertia=0.1), pf.body("wheel", mass=1.0, inertia=0.01)]
        >>> floor = pf.joint("floor", "planar", "world", "cart")
        >>> hub = pf.joint("hub", "revolute", "cart", "wheel", axis=(0, 1, 0), placement=(0, 0, 0.1))
        >>> tyre, motor = pf.rolling.wheel("tyre", "wheel", 0.1, axis=(0, 1, 0)), pf.actuator("motor", "hub")
        >>> m = pf.mechanism("unicycle", bodies, [floor, hub], constraints=[tyre], actuators=[motor])
        >>> float(pf.forward_dynamics(m, [0, 0, 0, 0], u={"motor": 0.3}).v_dot[0].round(6))  # (0.3 / 0.1) / (2 + 0.01 / 0.1^2)
        1.0
    """
    return Nonholonomic(name, Slip(circle(f"constraint {name!r}", body, radius, axis, centre, plane)))


def sphere(name: str, body: str, radius: Scalar, *, centre: Any = (0, 0, 0), plane: Plane = FLOOR) -> Compound:
    """The two constraints of a ball that rolls on a plane or turntable: zero height and no slip. Three rows.

    Args:
        name: of the contact; the constraints are called "name height" and "name slip".
        body: name of the body to which the ball is fixed.
        radius: [m].
        centre: (3,) of the ball, in the body's frame [m]; its origin by default.
        plane: on which it rolls, made by `plane`; the world's plane z = 0 by default.
    Returns: a compound of both, for constraints=[...].
    Raises ModelError: a radius that is not above zero.

    Example:
        >>> import pfaffian as pf
        >>> ball, base = pf.body("ball", mass=2.0, inertia=0.008), pf.joint("base", "free", "world", "ball")
        >>> rolls = pf.rolling.sphere("contact", "ball", 0.1)
        >>> m = pf.mechanism("ball", [ball], [base], constraints=[rolls], gravity=(3.5, 0, -9.81))  # a slope
        >>> float(pf.forward_dynamics(m, [0, 0, 0.1, 0, 0, 0, 1]).v_dot[0].round(6))  # 3.5 / (1 + 2 / 5)
        2.5
    """
    what = f"constraint {name!r}"
    r, c = positive(radius, f"{what}: radius"), vector(centre, 3, f"{what}: centre")
    return _rolling(name, Ball(body, r, c, as_plane(plane, what)))


def ellipsoid(name: str, body: str, semi_axes: Any, *, centre: Any = (0, 0, 0), plane: Plane = FLOOR) -> Compound:
    """The two constraints of an ellipsoid that rolls on a plane: zero height and no slip. Three rows.

    It may spin about the normal.

    Args:
        name: of the contact; the constraints are called "name height" and "name slip".
        body: name of the body to which the ellipsoid is fixed.
        semi_axes: (3,) half of its lengths along the axes of the body's frame [m].
        centre: (3,) of the ellipsoid, in the body's frame [m]; its origin by default.
        plane: on which it rolls, made by `plane`; the world's plane z = 0 by default.
    Returns: a compound of both, for constraints=[...].
    Raises ModelError: a half axis that is not above zero.

    Example:
        >>> import pfaffian as pf
        >>> egg, base = pf.body("egg", mass=2.0, inertia=0.008), pf.joint("base", "free", "world", "egg")
        >>> rolls = pf.rolling.ellipsoid("contact", "egg", (0.2, 0.1, 0.1))
        >>> m = pf.mechanism("egg", [egg], [base], constraints=[rolls], gravity=(0, 3.5, -9.81))  # a slope
        >>> float(pf.forward_dynamics(m, [0, 0, 0.1, 0, 0, 0, 1]).v_dot[1].round(6))  # 3.5 / (1 + 2 / 5)
        2.5
    """
    what = f"constraint {name!r}"
    lengths = vector(semi_axes, 3, f"{what}: semi_axes")
    half = ca.vertcat(*[positive(lengths[i], f"{what}: semi_axes") for i in range(3)])
    return _rolling(name, Ellipsoid(body, half, vector(centre, 3, f"{what}: centre"), as_plane(plane, what)))


def knife_edge(name: str, body: str, along: Any, *, point: Any = (0, 0, 0), plane: Plane = FLOOR) -> Nonholonomic:
    """The constraint of a blade, skate or keel: a point of a body does not move sideways in a plane. One row [m/s].

    Where the blade is parallel to the normal, the row vanishes and constrains nothing.

    Args:
        name: unique among the constraints.
        body: name of the body to which the blade is fixed.
        along: (3,) direction of the blade, in the body's frame.
        point: (3,) of the blade, in the body's frame [m]; its origin by default.
        plane: on which it slides, made by `plane`; the world's plane z = 0 by default.
    Raises ModelError: a direction that is zero.

    Example:
        >>> import pfaffian as pf
        >>> skate, ice = pf.body("skate", mass=2.0, inertia=0.1), pf.joint("ice", "planar", "world", "skate")
        >>> m = pf.mechanism("skater", [skate], [ice], constraints=[pf.rolling.knife_edge("blade", "skate", (1, 0, 0))])
        >>> float(pf.forward_dynamics(m, [0, 0, 0], [3, 0, 1]).reaction[1].round(6))  # the centripetal force m v w
        6.0
    """
    what = f"constraint {name!r}"
    at = vector(point, 3, f"{what}: point")
    return Nonholonomic(name, Slip(Blade(body, direction(along, f"{what}: along"), at, as_plane(plane, what))))


def circle(what: str, body: str, radius: Any, axis: Any, centre: Any, plane: Any) -> Disk:
    """A disk on a plane, checked. Raises ModelError: a radius or axis out of range."""
    r, a = positive(radius, f"{what}: radius"), direction(axis, f"{what}: axis")
    return Disk(body, r, a, vector(centre, 3, f"{what}: centre"), as_plane(plane, what))


def as_plane(x: Any, what: str) -> Plane:
    """The plane x unchanged. Raises ModelError: it is not a plane.   what: the label of the element in error messages."""
    if not isinstance(x, Plane):
        raise ModelError(f"{what}: plane: a plane is needed, got {brief(x)}; make it by pf.rolling.plane(on=..., normal=...)")
    return x
