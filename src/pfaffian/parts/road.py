"""Roads of any shape z(x, y), and the tyre that carries a wheel on one.

A table of heights becomes a surface with continuous slopes: cubic polynomials between its lines, with the slopes of the chords
of the neighbouring points (Catmull and Rom), first along x and then along y.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError, brief
from pfaffian.model import reprs
from pfaffian.model.data import data
from pfaffian.model.force import Wrench, wrench
from pfaffian.model.number import Scalar, direction, floats, not_negative, positive, reals, scalar, vector
from pfaffian.model.ranges import Range
from pfaffian.model.user_functions import call_for_value
from pfaffian.parts.tyre import SLIP_SMOOTHING, magic_formula, magic_numbers

FOOTPRINTS = 2
"""Number of times that the point of the road below the wheel is corrected by the slope at the last one."""

PROBED = np.array([(x, y) for x in (-1.0, -0.3, 0.0, 0.4, 1.0) for y in (-1.0, 0.0, 0.7)])
"""Points (n, 2) at which the heights of a road that is a function are looked at."""


@data
class Road:
    """A road: its height above the world's plane z = 0.

    z: a function f(x, y) of CasADi expressions [m] -> the height [m]; or (nx, ny) heights.
    x, y: (nx, 1), (ny, 1) the lines of a table [m]; empty with a function.
    """

    z: Callable[[Any, Any], Any] | ca.SX
    x: ca.SX
    y: ca.SX

    def __post_init__(self) -> None:
        for word, lines in (("x", self.x), ("y", self.y)):
            if not callable(self.z) and not (np.diff(np.array(ca.DM(lines)), axis=0) > 0).all():
                raise ModelError(f"road: {word}: places that increase are needed, one for each line of heights, got {lines}")

    def __repr__(self) -> str:
        shape = reprs.function(self.z) if callable(self.z) else f"table of {self.x.numel()} by {self.y.numel()} points"
        return reprs.words(self, shape)

    def height(self, x: ca.SX, y: ca.SX) -> ca.SX:
        """(1, 1) the height at a point [m]."""
        if callable(self.z):
            return scalar(call_for_value(self.z, "road", x, y), "road: its height")
        return weights_at(self.x, x).T @ self.z @ weights_at(self.y, y)

    def below(self, place: ca.SX, radius: ca.SX) -> tuple[ca.SX, ca.SX]:
        """The point of the road (3, 1) that is nearest to a wheel's centre, about, and the road's normal (3, 1) there.

        place: (3, 1) of the wheel's centre.   radius: distance of the point from it, about [m].
        """
        X = ca.SX.sym("x", 2)
        z = self.height(X[0], X[1])
        free = [s for s in ca.symvar(z) if not (ca.is_equal(s, X[0]) or ca.is_equal(s, X[1]))]
        f = ca.Function("road", [X, ca.vertcat(ca.SX(0, 1), *free)], [z, ca.jacobian(z, X)])
        at = place[:2]
        for again in range(FOOTPRINTS + 1):
            height, slope = f(at, ca.vertcat(ca.SX(0, 1), *free))
            normal = ca.vertcat(-slope.T, 1) / ca.sqrt(1 + ca.sumsqr(slope))
            if again < FOOTPRINTS:
                at = place[:2] - radius * normal[:2]
        return ca.vertcat(at, height), normal


def weights_at(lines: ca.SX, at: ca.SX) -> ca.SX:
    """(n, 1) weights of the values at increasing lines (n, 1) for a value in between; beyond them the last one goes on."""
    n = lines.numel()
    if n == 1:
        return ca.SX(1)
    at = ca.fmin(ca.fmax(at, lines[0]), lines[n - 1])
    values, slopes = ca.SX.zeros(n, 1), ca.SX.zeros(n, 1)
    for k in range(n - 1):
        h = lines[k + 1] - lines[k]
        s = (at - lines[k]) / h
        here = ca.logic_and(at >= lines[k], at < lines[k + 1]) if k < n - 2 else at >= lines[k]
        values[k] += here * (1 + 2 * s) * (1 - s) ** 2
        values[k + 1] += here * s**2 * (3 - 2 * s)
        slopes[k] += here * h * s * (1 - s) ** 2
        slopes[k + 1] -= here * h * s**2 * (1 - s)
    for k in range(n):
        before, after = max(k - 1, 0), min(k + 1, n - 1)
        chord = slopes[k] / (lines[after] - lines[before])
        values[after] += chord
        values[before] -= chord
    return values


def road(z: Any, x: Any = None, y: Any = None) -> Road:
    """A road z(x, y), as a function or as a table of heights, for `road_tyre`.

    Args:
        z: a function of x and y that returns the height [m] from CasADi expressions; or heights, (nx, ny), or (nx,) for a road
            that does not change along y.
        x: (nx,) increasing places of the heights [m]; None for a function.
        y: (ny,) as x; None for a function, or for heights (nx,).
    Returns: a Road. Beyond a table its edge goes on.
    Raises ModelError: heights that are not finite, with their place; places that do not increase, or are not as many.

    Example:
        >>> import casadi as ca
        >>> import pfaffian as pf
        >>> pf.forces.road(lambda x, y: 0.05 * ca.sin(2 * x))
        <Road: a lambda>
        >>> pf.forces.road([0.0, 0.08, 0.0], x=[1.0, 1.2, 1.4])
        <Road: table of 3 by 1 points>
    """
    if callable(z) and not isinstance(z, ca.SX):
        if x is not None or y is not None:
            raise ModelError("road: x and y are the places of a table; a function of x and y needs none")
        made = Road(z, ca.SX(0, 1), ca.SX(0, 1))
        X = ca.SX.sym("x", 2)
        height = made.height(X[0], X[1])
        if not [s for s in ca.symvar(height) if not (ca.is_equal(s, X[0]) or ca.is_equal(s, X[1]))]:
            _check_finite(np.array(ca.Function("z", [X], [height])(PROBED.T)).ravel(), PROBED)
        return made
    heights = reals(z, "road: z")
    heights = heights[:, None] if heights.ndim == 1 else heights
    if heights.ndim != 2 or not heights.size:
        raise ModelError(f"road: heights (nx, ny) are needed, got {brief(z)}")
    lines = [_lines(given, word, n) for given, word, n in zip((x, y), "xy", heights.shape, strict=True)]
    _check_finite(heights.ravel(), np.array([(a, b) for a in lines[0] for b in lines[1]]))
    return Road(ca.SX(ca.DM(heights)), *[ca.SX(ca.DM(one)) for one in lines])


def _lines(given: Any, word: str, count: int) -> np.ndarray:
    """(n,) the places of a table along one axis. Raises ModelError: they do not increase, or are not as many as its heights."""
    if given is None and count == 1:
        return np.zeros(1)
    found = np.atleast_1d(floats(given, f"road: {word}")) if given is not None else np.zeros(0)
    if found.shape != (count,) or not (np.diff(found) > 0).all():
        raise ModelError(
            f"road: {word}: {count} increasing places are needed, one for each line of heights, got {brief(given)}"
        )
    return found


def _check_finite(z: np.ndarray, places: np.ndarray) -> None:
    """Raise ModelError if a height (n,) is not finite.   places: (n, 2)."""
    if not np.isfinite(z).all():
        i = int(np.argmin(np.isfinite(z)))
        raise ModelError(
            f"road: its height is {z[i]} at x = {places[i][0]:g}, y = {places[i][1]:g}; fill the gap, or leave out the line"
        )


@data
class RoadTyre:
    """f(k) of a tyre on a road: the wrench about the wheel's centre, world axes.

    axis, centre: (3, 1) of the wheel, in its frame.   stiffness, damping: of the tyre [N/m, N s/m].
    friction, shape, speed: of the magic formula, as in `tyre`.
    """

    wheel: str
    radius: ca.SX
    axis: ca.SX
    centre: ca.SX
    road: Road
    stiffness: ca.SX
    damping: ca.SX
    friction: ca.SX
    shape: tuple[ca.SX, ca.SX, ca.SX]
    speed: ca.SX

    @property
    def ranges(self) -> tuple[Range, ...]:
        """What its numbers must be."""
        above = (("radius", self.radius), ("vertical", self.stiffness), ("speed", self.speed))
        below = (("damping", self.damping), ("friction", self.friction))
        return (*(Range(word, x, True) for word, x in above), *(Range(word, x) for word, x in below))

    def __call__(self, k: Any) -> ca.SX:
        R = k.rotation(self.wheel)
        place, V = k.position(self.wheel, self.centre), k.velocity(self.wheel, self.centre)
        ground, n = self.road.below(place, self.radius)
        heading = ca.cross(R @ self.axis, n)
        heading /= ca.norm_2(heading)
        sideways = ca.cross(n, heading)
        arm = self.radius * ca.cross(R @ self.axis, heading)  # to the lowest point of the undeformed wheel
        depth = -ca.dot(n, place + arm - ground)
        N = ca.fmax(self.stiffness * depth - self.damping * ca.dot(n, V), 0) * (depth > 0)
        arm = arm + depth * n
        slip = V + ca.cross(k.twist(self.wheel, "LOCAL_WORLD_ALIGNED")[3:], arm)
        sliding = heading * ca.dot(heading, slip) + sideways * ca.dot(sideways, slip)
        rate = ca.sqrt(ca.sumsqr(sliding) + SLIP_SMOOTHING**2)
        s = rate / ca.sqrt(ca.dot(heading, V) ** 2 + self.speed**2)
        F = N * n - self.friction * N * magic_formula(self.shape, s) * sliding / rate
        return ca.vertcat(F, ca.cross(arm, F))

    def __repr__(self) -> str:
        return reprs.words(self, f"on {self.road!r}", f"stiffness {reprs.number(self.stiffness, 'N/m')}")


def road_tyre(
    name: str, wheel: str, radius: Scalar, *, road: Road, vertical: Scalar, damping: Scalar = 0.0, friction: Scalar = 1.0,
    stiffness: Scalar = 10.0, shape: Scalar = 1.3, curvature: Scalar = 0.0, speed: Scalar = 0.5, axis: Any = (0, 1, 0),
    centre: Any = (0, 0, 0),
) -> Wrench:  # fmt: skip
    """A tyre that carries its wheel on a road z(x, y), and slips on it by the magic formula. [Pacejka 2012, 4.E1]

        N = vertical depth - damping rate, not below zero;   slip forces as in `tyre`, with this load

    The depth is that of the undeformed wheel's lowest point below the tangent plane of the road under the wheel: one point of
    contact, for roads that are smooth beside the length of the footprint.

    Args:
        name: of the force.
        wheel: name of the body of the wheel, which spins.
        radius: undeformed [m].
        road: made by `road`.
        vertical: rate of the tyre against compression [N/m].
        damping: against compression [N s/m], zero by default.
        friction: mu, the largest force per load [1]; 1 by default.
        stiffness: B of the magic formula [1]; 10 by default.
        shape: C [1], at most 2; 1.3 by default.
        curvature: E [1], at most 1; 0 by default.
        speed: V_0, wheel speed below which the slip is no longer relative to the wheel's speed [m/s], 0.5 by default.
        axis: (3,) of the wheel, in its frame; y by default.
        centre: (3,) of the wheel, in its frame [m]; its origin by default.
    Returns: a wrench, for `forces` of a mechanism.
    Raises ModelError: a number out of its range, an axis that is zero, a road that was not made by `road`.

    Example:
        A wheel of 20 kg rests on a flat road, 20 * 9.81 / 2e5 m below its undeformed radius:

        >>> import pfaffian as pf
        >>> base = pf.joint("base", "translation", "world", "wheel")
        >>> flat = pf.forces.road(lambda x, y: 0 * x)
        >>> tyre = pf.forces.road_tyre("tyre", "wheel", 0.3, road=flat, vertical=2e5)
        >>> m = pf.mechanism("wheel", [pf.body("wheel", 20.0)], [base], forces=[tyre])
        >>> pf.forward_dynamics(m, [0, 0, 0.3 - 20 * 9.81 / 2e5]).v_dot.round(6) + 0.0
        array([0., 0., 0.])
    """
    what = f"force {name!r}"
    if not isinstance(road, Road):
        raise ModelError(f"{what}: road: a road is needed, got {brief(road)}; make it by pf.forces.road(lambda x, y: 0 * x)")
    numbers = magic_numbers(what, stiffness, shape, curvature)
    law = RoadTyre(
        wheel, positive(radius, f"{what}: radius"), direction(axis, f"{what}: axis"), vector(centre, 3, f"{what}: centre"),
        road, positive(vertical, f"{what}: vertical"), not_negative(damping, f"{what}: damping"),
        not_negative(friction, f"{what}: friction"), numbers, positive(speed, f"{what}: speed"),
    )  # fmt: skip
    return wrench(name, wheel, law, point=centre)
