"""Wheels, disks, balls and blades on a plane: constraints from the geometry of the contact.

The plane belongs to a body, n is its normal, and its surface may turn about n besides, as a turntable does. What rolls has no
velocity, relative to that surface, of the point of it that touches; what stands on it has no height.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca

from pfaffian.errors import ModelError, brief
from pfaffian.model.body import WORLD
from pfaffian.model.caller import answer
from pfaffian.model.constraint import Holonomic, Nonholonomic
from pfaffian.model.data import data
from pfaffian.model.joint import axis_frame
from pfaffian.model.number import Parameter, Scalar, direction, positive, scalar, vector


@data
class Plane:
    """on: whose.   through: (3,) a point of it [m].   axes: (3, 3) its directions and the normal as columns, in the body's
    axes.   rate: [rad/s] of its surface about the normal through that point, or a function of t giving it."""

    on: str
    through: ca.SX
    axes: ca.SX
    rate: ca.SX | Callable[[Any], Any]

    def normal(self, k: Any) -> ca.SX:
        return k.rotation(self.on) @ self.axes[:, 2]

    def height(self, k: Any, x: ca.SX) -> ca.SX:
        """Of a point x (3, 1), world axes [m]."""
        return ca.dot(self.normal(k), x - k.position(self.on, self.through))

    def slip(self, k: Any, body: str, x: ca.SX) -> ca.SX:
        """(3, 1) velocity of the body at x less that of the surface there, world axes [m/s]."""
        turning = self.rate
        if callable(turning):
            turning = scalar(answer(turning, "rate", k.t), "rate")
        surface = _velocity(k, self.on, x) + turning * ca.cross(self.normal(k), x - k.position(self.on, self.through))
        return _velocity(k, body, x) - surface


def _velocity(k: Any, body: str, x: ca.SX) -> ca.SX:
    V = k.twist(body, "LOCAL_WORLD_ALIGNED")
    return V[:3] + ca.cross(V[3:], x - k.pose(body).p)


@data
class Disk:
    """A circle in a body, and the plane under it. axis: (3,) unit, of the body."""

    body: str
    radius: ca.SX
    axis: ca.SX
    centre: ca.SX
    plane: Plane

    def contact(self, k: Any) -> tuple[ca.SX, ca.SX, ca.SX]:
        """Its lowest point, where it heads, and sideways of that in the plane, world axes; no numbers where it lies flat."""
        a, n = k.rotation(self.body) @ self.axis, self.plane.normal(k)
        heading = ca.cross(a, n)
        heading /= ca.norm_2(heading)
        return k.position(self.body, self.centre) + self.radius * ca.cross(a, heading), heading, ca.cross(n, heading)


@data
class DiskHeight:
    """phi: the height of the lowest point of a disk [m]."""

    disk: Disk

    def __call__(self, k: Any) -> ca.SX:
        return self.disk.plane.height(k, self.disk.contact(k)[0])


@data
class DiskSlip:
    """eta: slip of a disk where it touches, as it heads and sideways [m/s]."""

    disk: Disk

    def __call__(self, k: Any) -> ca.SX:
        x, heading, sideways = self.disk.contact(k)
        s = self.disk.plane.slip(k, self.disk.body, x)
        return ca.vertcat(ca.dot(heading, s), ca.dot(sideways, s))


@data
class BallHeight:
    """phi: the height of the lowest point of a ball [m]."""

    body: str
    radius: ca.SX
    centre: ca.SX
    plane: Plane

    def __call__(self, k: Any) -> ca.SX:
        return self.plane.height(k, k.position(self.body, self.centre)) - self.radius


@data
class BallSlip:
    """eta: slip of a ball where it touches, along both directions of the plane [m/s]."""

    body: str
    radius: ca.SX
    centre: ca.SX
    plane: Plane

    def __call__(self, k: Any) -> ca.SX:
        x = k.position(self.body, self.centre) - self.radius * self.plane.normal(k)
        return (k.rotation(self.plane.on) @ self.plane.axes[:, :2]).T @ self.plane.slip(k, self.body, x)


@data
class Sideways:
    """eta: velocity of a blade across itself in the plane [m/s], times the sine of the angle that it makes with the normal."""

    body: str
    along: ca.SX
    point: ca.SX
    plane: Plane

    def __call__(self, k: Any) -> ca.SX:
        across = ca.cross(self.plane.normal(k), k.rotation(self.body) @ self.along)
        return ca.dot(across, self.plane.slip(k, self.body, k.position(self.body, self.point)))


def disk(
    name: str, body: str, radius: Scalar, *, axis: Any = (0, 0, 1), centre: Any = (0, 0, 0), on: str = WORLD,
    through: Any = (0, 0, 0), normal: Any = (0, 0, 1), rate: Any = 0.0,
) -> tuple[Holonomic, Nonholonomic]:  # fmt: skip
    """A thin disk that rolls on its edge: no height, and no slip of its lowest point. Three rows, the slip's not integrable.

    The normal force is the multiplier of `name height` [N], upwards where positive: nothing keeps the disk from being pulled
    down (see `sign_changes`). Those of `name slip` are the friction as it heads and sideways [N]. A disk that lies flat touches
    everywhere, so that no start is found there, and a run that comes there stops.

    Args:
        body, radius [m], axis (3,), centre (3,) [m]: of the disk, in the body's frame.
        on: the body that the plane belongs to.   through: (3,) [m] a point of it.   normal: (3,) to the side of the disk.
        rate: [rad/s] at which the surface turns about the normal at `through`; a number, Parameter, or function of t.
    Returns (Holonomic, Nonholonomic), for constraints=[*disk(...)].
    Raises ModelError: a radius that is not above zero, an axis or normal of zero.
    """
    disk = _disk(name, body, radius, axis, centre, on, through, normal, rate)
    return Holonomic(f"{name} height", DiskHeight(disk)), Nonholonomic(f"{name} slip", DiskSlip(disk))


def wheel(
    name: str, body: str, radius: Scalar, *, axis: Any = (0, 0, 1), centre: Any = (0, 0, 0), on: str = WORLD,
    through: Any = (0, 0, 0), normal: Any = (0, 0, 1), rate: Any = 0.0,
) -> Nonholonomic:  # fmt: skip
    """The slip of `disk` alone, for a wheel whose height is that of what carries it. Two rows [m/s].

    Args:
        body, radius, axis, centre, on, through, normal, rate: as there.
    """
    return Nonholonomic(name, DiskSlip(_disk(name, body, radius, axis, centre, on, through, normal, rate)))


def sphere(
    name: str, body: str, radius: Scalar, *, centre: Any = (0, 0, 0), on: str = WORLD, through: Any = (0, 0, 0),
    normal: Any = (0, 0, 1), rate: Any = 0.0,
) -> tuple[Holonomic, Nonholonomic]:  # fmt: skip
    """A ball that rolls without slip on a plane, or on a turntable: no height, no slip. Three rows.

    Args:
        body, radius [m], centre (3,) [m]: of the ball.   on, through, normal, rate: of the plane, see `disk`.
    Returns (Holonomic, Nonholonomic), for constraints=[*sphere(...)].
    Raises ModelError: a radius that is not above zero, a normal of zero.
    """
    what = f"constraint {name!r}"
    ball = body, positive(radius, f"{what}: radius"), vector(centre, 3, f"{what}: centre")
    plane = _plane(what, on, through, normal, rate)
    return Holonomic(f"{name} height", BallHeight(*ball, plane)), Nonholonomic(f"{name} slip", BallSlip(*ball, plane))


def knife_edge(
    name: str, body: str, along: Any, *, point: Any = (0, 0, 0), on: str = WORLD, through: Any = (0, 0, 0),
    normal: Any = (0, 0, 1), rate: Any = 0.0,
) -> Nonholonomic:  # fmt: skip
    """A blade, skate or keel: a point of a body does not move sideways in a plane. One row [m/s].

    Args:
        body, along (3,), point (3,) [m]: of the edge, in the body's frame.   on, through, normal, rate: of the plane, see
            `disk`. Where the edge stands along the normal the row vanishes and holds nothing.
    Raises ModelError: an edge or normal of zero.
    """
    what = f"constraint {name!r}"
    plane = _plane(what, on, through, normal, rate)
    return Nonholonomic(name, Sideways(body, direction(along, f"{what}: along"), vector(point, 3, f"{what}: point"), plane))


def _disk(name: str, body: str, radius: Any, axis: Any, centre: Any, on: str, through: Any, normal: Any, rate: Any) -> Disk:
    what = f"constraint {name!r}"
    r, a, c = positive(radius, f"{what}: radius"), direction(axis, f"{what}: axis"), vector(centre, 3, f"{what}: centre")
    return Disk(body, r, a, c, _plane(what, on, through, normal, rate))


def _plane(what: str, on: str, through: Any, normal: Any, rate: Any) -> Plane:
    if not isinstance(on, str):
        raise ModelError(f"{what}: on must be the name of a body, got {brief(on)}")
    axes = axis_frame(direction(normal, f"{what}: normal"), what).R
    turning = rate if callable(rate) and not isinstance(rate, (Parameter, ca.SX)) else scalar(rate, f"{what}: rate")
    return Plane(on, vector(through, 3, f"{what}: through"), ca.SX(axes), turning)
