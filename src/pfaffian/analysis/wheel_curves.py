"""Kinematic curves of a wheel suspension over the travel of its wheel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError, RunError, brief
from pfaffian.evaluate.compiled import compile_terms
from pfaffian.evaluate.single_values import as_number
from pfaffian.model.constraint import holonomic
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.model.number import direction, floats, positive, vector
from pfaffian.starts.assemble import assemble
from pfaffian.terms.terms import Terms

if TYPE_CHECKING:
    import xarray as xr

UNITS = {
    "camber": "rad", "toe": "rad", "roll_centre": "m", "track": "m", "recession": "m", "caster": "rad", "kingpin": "rad",
}  # fmt: skip
MEANINGS = {
    "camber": "inclination of the wheel, positive where its top leans outwards",
    "toe": "turn of the wheel about the vertical, positive where its front points inwards",
    "roll_centre": "height of the roll centre of two mirrored suspensions, above z = 0",
    "track": "change of the contact point outwards",
    "recession": "change of the contact point forwards",
    "caster": "inclination of the steering axis, positive where its top leans backwards",
    "kingpin": "inclination of the steering axis, positive where its top leans inwards",
}


ALONG = 1e-6
"""Distance from the plane of symmetry [m] and part of an axis across the car below which neither side is outwards."""


def wheel_curves(
    m: Mechanism, wheel: str, travel: Any, *, axis: Any = (0, 1, 0), centre: Any = (0, 0, 0), radius: Any = 0.3,
    steering: Sequence[Any] | None = None, middle: float = 0.0, q: Any = None, fixed: Mapping[str, float] | None = None,
    parameters: Any = None,
) -> xr.Dataset:  # fmt: skip
    """Camber, toe, caster and roll centre of a suspension over the travel of its wheel, and more, in one call.

    The world is the car's body: x points forwards, y to the left, z up. The wheel moves up and down by its suspension, from the
    assembled state near q on, on the branch of this state; motions that stay free move as little as possible.

    Args:
        m: the suspension of one wheel, its body fixed to the world.
        wheel: name of the body that carries the wheel without turning with it: the upright.
        travel: (n,) heights of the wheel's centre above that in the given state [m]; upwards is bump.
        axis: (3,) of the wheel in this body, of any length but zero, to either side; y by default.
        centre: (3,) of the wheel in this body [m]; its origin by default.
        radius: of the wheel [m], to the point of contact; 0.3 by default.
        steering: two points on the steering axis, the lower one first: the ball joints. Each is a point (3,) of this body, or
            (body, point) of another one: the axis of a strut ends in its mount, a point of the "world". None (default): no
            caster.
        middle: y of the car's plane of symmetry [m], for the roll centre; 0 by default.
        q: the state at zero travel, as `assemble` takes it; neutral by default.
        fixed: {coordinate: value} of what does not move, such as the steering rack.
        parameters: {name: value} of the mechanism; defaults where left out.
    Returns:
        Dataset over `travel`: camber, toe, caster and kingpin [rad], roll_centre [m], track and recession [m], the coordinates
        q, and v, their change per travel.
    Raises ModelError: an unknown body, an axis that is zero or does not point across the car, a wheel at y = `middle`, steering
    that is not two points of bodies, travel that is not (n,) numbers.
    Raises RunError: a travel out of reach, with its value and the row that stays open.

    Example:
        A swing axle with its pivot in the middle of the car at the height of the hub; the camber is the angle of the arm:

        >>> import numpy as np
        >>> import pfaffian as pf
        >>> hinge = pf.joint("hinge", "revolute", "world", "hub", axis=(1, 0, 0))
        >>> m = pf.mechanism("swing axle", [pf.body("hub", 20.0, com=(0, 0.7, 0), inertia=1.0)], [hinge])
        >>> found = pf.analysis.wheel_curves(m, "hub", [0.0, 0.07], centre=(0, 0.7, 0))
        >>> found["camber"].values[1:].round(4), np.abs(found["roll_centre"].values).round(6)
        (array([-0.1002]), array([0., 0.]))
    """
    as_mechanism(m)
    heights = floats(travel, "travel")
    if heights.ndim != 1 or not len(heights):
        raise ModelError(f"wheel_curves: travel: (n,) numbers are needed, got {brief(travel)}")
    wheel_at = _Upright(
        wheel, direction(axis, "wheel_curves: axis"), vector(centre, 3, "wheel_curves: centre"),
        positive(radius, "wheel_curves: radius"), _axis_points(wheel, steering), as_number(middle, "wheel_curves: middle"),
    )  # fmt: skip
    hold = tuple(fixed or ())
    begin = assemble(m, {**(fixed or {})} if q is None else q, parameters=parameters)
    z0 = _checked_height(m, wheel_at, begin.q, parameters)
    lift = holonomic("travel of the wheel", lambda k: k.position(wheel, wheel_at.centre)[2] - z0 - k.t)
    lifted = m.with_(constraints=[*m.constraints, lift])
    qs, vs = _along_travel(lifted, heights, begin.q, hold, parameters)
    at = compile_terms(lifted, {"curves": wheel_at.curves}, squeeze=False, lanes=1)
    rows = [at(x, v, t=t, parameters=parameters)["curves"][:, 0] for x, v, t in
            zip((begin.q, *qs), (0 * vs[0], *vs), (0.0, *heights), strict=True)]  # fmt: skip
    return _dataset(m, wheel_at, heights, np.array(rows), qs, vs)


class _Upright(NamedTuple):
    """A wheel on its upright.   axis, centre: (3, 1) in this body.   steering: bodies and points of them.   middle: y of
    symmetry."""

    body: str
    axis: ca.SX
    centre: ca.SX
    radius: ca.SX
    steering: list[tuple[str, ca.SX]]
    middle: float

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the curves."""
        return tuple(UNITS) if self.steering else tuple(UNITS)[:5]

    def place(self, T: Terms) -> ca.SX:
        """(3, 1) the centre of the wheel in the world."""
        return T.kinematics.position(self.body, self.centre)

    def across(self, T: Terms) -> ca.SX:
        """(1, 1) the part of its axis that points across the car, at most 1 in size."""
        return (T.kinematics.rotation(self.body) @ self.axis)[1]

    def curves(self, T: Terms) -> ca.SX:
        """(names, 1) the curves at a state whose velocities are those per travel; track and recession as places."""
        k, R, centre = T.kinematics, T.kinematics.rotation(self.body), self.place(T)
        side = ca.sign(centre[1] - self.middle)
        a = R @ self.axis
        a = a * ca.sign(a[1]) * side  # outwards
        down = ca.vertcat(0, 0, -1) + a[2] * a
        contact = centre + self.radius * down / ca.norm_2(down)
        V = k.velocity(self.body, R.T @ (contact - k.position(self.body)))
        lateral = contact[1] - self.middle
        found = [
            -ca.asin(a[2]),
            ca.atan2(a[0], ca.fabs(a[1])),
            contact[2] + lateral * V[1] / V[2],
            side * contact[1],
            contact[0],
        ]
        if self.steering:
            lower, upper = (k.position(body, x) for body, x in self.steering)
            up = upper - lower
            found += [ca.atan2(-up[0], up[2]), ca.atan2(-side * up[1], up[2])]
        return ca.vertcat(*found)


def _checked_height(m: Mechanism, wheel: _Upright, q: np.ndarray, parameters: Any) -> float:
    """z of the wheel's centre at zero travel [m]. Raises ModelError: the wheel has no side that points outwards."""
    terms = {"place": wheel.place, "across": wheel.across}
    at = compile_terms(m, terms, lanes=1)(q, parameters=parameters)
    what, place = f"wheel_curves: the wheel on {wheel.body!r}", np.ravel(at["place"])
    if abs(place[1] - wheel.middle) < ALONG:
        raise ModelError(f"{what} is in the car's plane of symmetry, y = {wheel.middle:g}, where nothing is outwards; "
                         "correct its centre, or give another `middle`")  # fmt: skip
    if abs(at["across"]) < ALONG:
        raise ModelError(f"{what} has its axis at right angles to y, across the car; correct `axis`")
    return float(place[2])


def _along_travel(
    m: Mechanism, heights: np.ndarray, begin: np.ndarray, hold: tuple[str, ...], parameters: Any
) -> tuple[np.ndarray, np.ndarray]:
    """States q (n, nq), v (n, nv) at the heights, each on the branch of its neighbour nearer to zero travel."""
    qs, vs = np.empty((len(heights), m.nq)), np.empty((len(heights), m.nv))
    for half in (heights >= 0, heights < 0):
        at = np.flatnonzero(half)
        q = begin
        for i in at[np.argsort(np.abs(heights[at]), kind="stable")]:
            try:
                found = assemble(m, q, np.zeros(m.nv), hold=hold, t=float(heights[i]), parameters=parameters, search=False)
            except RunError as error:
                raise RunError(f"wheel_curves: a travel of {heights[i]:g} m is out of reach: {error}") from None
            q, qs[i], vs[i] = found.q, found.q, found.v
    return qs, vs


def _dataset(
    m: Mechanism, wheel: _Upright, heights: np.ndarray, rows: np.ndarray, qs: np.ndarray, vs: np.ndarray
) -> xr.Dataset:
    """The Dataset of the curves.   rows: (1 + n, names), first those at zero travel."""
    import xarray as xr

    data: dict[str, Any] = {}
    for i, name in enumerate(wheel.names):
        x = rows[1:, i] - (rows[0, i] if name in ("track", "recession") else 0.0)
        data[name] = "travel", x, {"units": UNITS[name], "meaning": MEANINGS[name]}
    data["q"] = ("travel", "coordinate"), qs, {"units": "per coordinate"}
    data["v"] = ("travel", "velocity"), vs, {"units": "per velocity and m/s", "meaning": "change per travel"}
    coords = {"travel": ("travel", heights, {"units": "m"}), "coordinate": list(m.q_names), "velocity": list(m.v_names)}
    return xr.Dataset(data, coords, {"mechanism": m.name})


def _axis_points(wheel: str, steering: Any) -> list[tuple[str, ca.SX]]:
    """The two points of the steering axis, each with its body; none. Raises ModelError: something else."""
    if steering is None:
        return []
    if not isinstance(steering, (list, tuple, np.ndarray)) or len(steering) != 2:
        raise ModelError(f"wheel_curves: steering: two points, the lower one first, are needed, got {brief(steering)}")
    of_body = [x if isinstance(x, (list, tuple)) and len(x) == 2 and isinstance(x[0], str) else (wheel, x) for x in steering]
    return [(body, vector(x, 3, "wheel_curves: steering: a point")) for body, x in of_body]
