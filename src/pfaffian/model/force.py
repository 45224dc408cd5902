"""What pushes: actuators, external wrenches, springs between bodies."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError, brief
from pfaffian.model import shown
from pfaffian.model.data import data
from pfaffian.model.number import Scalar, interval, scalar, vector


@data
class Actuator:
    """One input u [N or N m] on one velocity coordinate of a joint: generalised force gear * u."""

    name: str
    joint: str
    component: int
    gear: ca.SX
    limits: tuple[float, float]

    def __repr__(self) -> str:
        low, high = self.limits
        parts = [f"on {self.joint!r}", f"velocity {self.component}", f"gear {shown.number(self.gear)}"]
        return shown.words(self, *parts, f"from {low:g} to {high:g}", name=self.name)


@data
class ExternalWrench:
    """A wrench [force; moment] on a body, about `point` of the body.

    axes: LOCAL (turning with the body) or WORLD. value: (6, 1), or None to make it six inputs of the run.
    """

    name: str
    body: str
    point: ca.SX
    axes: str
    value: ca.SX | None

    def __repr__(self) -> str:
        value = "six inputs" if self.value is None else shown.number(self.value, "N, N m")
        return shown.words(self, f"on {self.body!r} at {shown.number(self.point, 'm')}", value, self.axes, name=self.name)


@data
class Spring:
    """A massless spring and damper between two points: pull k (l - rest) + d l_dot along the line."""

    name: str
    body_a: str
    point_a: ca.SX
    body_b: str
    point_b: ca.SX
    stiffness: ca.SX
    rest: ca.SX
    damping: ca.SX

    def __repr__(self) -> str:
        parts = [f"{self.body_a!r} to {self.body_b!r}", f"stiffness {shown.number(self.stiffness, 'N/m')}"]
        parts += [f"rest {shown.number(self.rest, 'm')}", f"damping {shown.number(self.damping, 'N s/m')}"]
        return shown.words(self, *parts, name=self.name)


Force = ExternalWrench | Spring


def actuator(
    name: str, joint: str, *, component: int = 0, gear: Scalar = 1.0, limits: tuple[float, float] = (-np.inf, np.inf)
) -> Actuator:
    """A motor on velocity coordinate `component` of a joint.   gear: [1].

    limits: (low, high) of u [N or N m], within the joint's effort. A result says when and by how far they were left;
    `Scheme(saturate=True)` cuts u at them.
    """
    what = f"actuator {name!r}"
    if isinstance(component, bool) or not isinstance(component, (int, np.integer)):
        raise ModelError(f"{what}: component must be a whole number, got {brief(component)}")
    return Actuator(name, joint, int(component), scalar(gear, f"{what}: gear"), interval(limits, f"{what}: limits"))


def external_wrench(name: str, body: str, *, point: Any = (0, 0, 0), axes: str = "WORLD", value: Any = None) -> ExternalWrench:
    """A wrench on a body.   point: (3,) in the body [m].   value: (6,) force [N], moment [N m]; None: an input.

    axes: WORLD, or LOCAL to turn with the body.
    """
    what = f"force {name!r}"
    if axes not in ("LOCAL", "WORLD"):
        raise ModelError(f"{what}: axes {axes!r} must be LOCAL or WORLD")
    fixed = None if value is None else vector(value, 6, f"{what}: value")
    return ExternalWrench(name, body, vector(point, 3, f"{what}: point"), axes, fixed)


def spring(
    name: str,
    body_a: str,
    body_b: str,
    *,
    point_a: Any = (0, 0, 0),
    point_b: Any = (0, 0, 0),
    stiffness: Scalar = 0.0,
    rest: Scalar = 0.0,
    damping: Scalar = 0.0,
) -> Spring:
    """A spring-damper between point_a (3,) [m] of body_a and point_b of body_b.

    stiffness: [N/m].   rest: length [m].   damping: [N s/m].

    The points must not meet while rest or damping is not zero: the line has no direction there.
    """
    what = f"force {name!r}"
    return Spring(
        name,
        body_a,
        vector(point_a, 3, f"{what}: point_a"),
        body_b,
        vector(point_b, 3, f"{what}: point_b"),
        scalar(stiffness, f"{what}: stiffness"),
        scalar(rest, f"{what}: rest"),
        scalar(damping, f"{what}: damping"),
    )
