"""What pushes: actuators, wrenches, springs between bodies, and any function of the kinematics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError, brief
from pfaffian.model import shown
from pfaffian.model.data import data
from pfaffian.model.number import Scalar, direction, interval, scalar, vector


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
class Thruster:
    """One input u [N] on a body: the force axis * u at a point, and the moment torque * axis * u, along the body's axes."""

    name: str
    body: str
    point: ca.SX
    axis: ca.SX
    torque: ca.SX
    limits: tuple[float, float]

    @property
    def wrench(self) -> ca.SX:
        """(6, 1) about the point for a unit of the input."""
        return ca.vertcat(self.axis, self.torque * self.axis)

    def __repr__(self) -> str:
        low, high = self.limits
        parts = [f"on {self.body!r} at {shown.number(self.point, 'm')}", f"along {shown.number(self.axis)}"]
        parts += [f"torque {shown.number(self.torque, 'm')}", f"from {low:g} to {high:g}"]
        return shown.words(self, *parts, name=self.name)


@data
class Wrench:
    """A wrench [force; moment] on a body, about `point` of the body, and its opposite on the body that exerts it.

    axes: LOCAL (turning with the body) or WORLD. value: (6, 1), a function of Kinematics that gives it, or None to make it six
    inputs of the run. by: the body that exerts it, None for something outside.
    """

    name: str
    body: str
    point: ca.SX
    axes: str
    value: ca.SX | Callable[[Any], Any] | None
    by: str | None = None

    def __repr__(self) -> str:
        parts = [f"on {self.body!r} at {shown.number(self.point, 'm')}", _shown(self.value), self.axes]
        parts += [f"by {self.by!r}"] if self.by is not None else []
        return shown.words(self, *parts, name=self.name)


def _shown(value: Any) -> str:
    return "six inputs" if value is None else shown.function(value) if callable(value) else shown.number(value, "N, N m")


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


@data
class GeneralisedForce:
    """f(k) along the velocity coordinates of one joint, or of all. It acts within joints, as an actuator does."""

    name: str
    function: Callable[[Any], Any]
    joint: str | None = None

    def __repr__(self) -> str:
        along = "v" if self.joint is None else repr(self.joint)
        return shown.words(self, shown.function(self.function), f"on {along}", name=self.name)


@data
class Potential:
    """V(q, t): the generalised force is -(dV/dq K)^T."""

    name: str
    function: Callable[[Any], Any]

    def __repr__(self) -> str:
        return shown.words(self, shown.function(self.function), name=self.name)


@data
class Dissipation:
    """R(q, v, t): the generalised force is -(dR/dv)^T."""

    name: str
    function: Callable[[Any], Any]

    def __repr__(self) -> str:
        return shown.words(self, shown.function(self.function), name=self.name)


@data
class KineticEnergy:
    """T(q, v, t), quadratic in v: it adds to the mass matrix and the bias force by Hamel's equations."""

    name: str
    function: Callable[[Any], Any]

    def __repr__(self) -> str:
        return shown.words(self, shown.function(self.function), name=self.name)


Force = Wrench | Spring | GeneralisedForce | Potential | Dissipation | KineticEnergy


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


def thruster(
    name: str, body: str, *, axis: Any = (0, 0, 1), point: Any = (0, 0, 0), torque: Scalar = 0.0,
    limits: tuple[float, float] = (-np.inf, np.inf),
) -> Thruster:  # fmt: skip
    """An actuator that pushes a body from outside: a jet, a rope, a propeller by its thrust u = k_T |w| w [N].

    Args:
        axis: (3,) of the force for u > 0, along the body's axes, of any length.   point: (3,) in the body [m].
        torque: moment about the axis per force [m]; of a right-handed propeller -k_M / k_T, of a left-handed one k_M / k_T.
        limits: (low, high) of u [N], as of an `actuator`.
    Raises ModelError: an axis that is zero, numbers of the wrong count.
    """
    what = f"actuator {name!r}"
    if not isinstance(body, str):
        raise ModelError(f"{what}: body must be the name of a body, got {brief(body)}")
    a, t = direction(axis, f"{what}: axis"), scalar(torque, f"{what}: torque")
    return Thruster(name, body, vector(point, 3, f"{what}: point"), a, t, interval(limits, f"{what}: limits"))


def wrench(
    name: str, body: str, value: Any = None, *, point: Any = (0, 0, 0), axes: str = "WORLD", by: str | None = None
) -> Wrench:
    """A wrench on a body, and the opposite one, about the same point of space, on the body that exerts it.

    value: (6,) force [N], moment [N m]; or f(k) that gives it, k being the mechanism's Kinematics: k.pose, k.twist, k.t, ...;
    None: six inputs of the run.   point: (3,) in the body [m].   axes: WORLD, or LOCAL to turn with the body.
    by: the name of a body, None for something outside.
    """
    what = f"force {name!r}"
    if not isinstance(body, str) or not isinstance(by, str | None):
        raise ModelError(f"{what}: body must be the name of a body, and by too, got {brief(body)} and {brief(by)}")
    if axes not in ("LOCAL", "WORLD"):
        raise ModelError(f"{what}: axes {axes!r} must be LOCAL or WORLD")
    given = value if value is None or callable(value) else vector(value, 6, f"{what}: value")
    return Wrench(name, body, vector(point, 3, f"{what}: point"), axes, given, by)


def generalised_force(name: str, f: Callable[[Any], Any], *, joint: str | None = None) -> GeneralisedForce:
    """f(k) [N, N m] along the rates of a joint or of coordinates, or along v, k being the mechanism's Kinematics.

    f: gives as many numbers as the joint has rates, (nv,) without a joint; it may use k.q, k.v, k.t, poses and twists.

    It acts within the joints, as actuators do. A force that acts on a body is a `wrench`.
    """
    return GeneralisedForce(name, _function(f, f"force {name!r}: f"), joint)


def potential(name: str, V: Callable[[Any], Any]) -> Potential:
    """The force -(dV/dq K)^T of a potential V(k) [J], k being the mechanism's Kinematics: k.q, k.joint, k.pose, k.t, ...

    V is part of the energy. Where it depends on the time, the energy changes at the rate dV/dt at rest: the power of whoever
    changes it. It may not depend on velocities.
    """
    return Potential(name, _function(V, f"force {name!r}: V"))


def dissipation(name: str, R: Callable[[Any], Any]) -> Dissipation:
    """The force -(dR/dv)^T of a dissipation function R(k) [W], k being the mechanism's Kinematics. [konz25 (3.37)]

    The energy is not conserved: it changes by -v^T (dR/dv)^T a second, -2 R if R is quadratic in the velocities.
    """
    return Dissipation(name, _function(R, f"force {name!r}: R"))


def kinetic_energy(name: str, T: Callable[[Any], Any]) -> KineticEnergy:
    """The inertia force of a kinetic energy T(k) [J], beside that of the bodies, if there are any. [konz25 (2.31)]

    T = M_ij v^i v^j / 2 + b_i v^i + T0 with M, b and T0 of q and t, k being the mechanism's Kinematics: k.q, k.v, k.q_dot,
    k.twist, ... Hamel's equations add d/dt dT/dv^i + gamma_ij^k v^j dT/dv^k - d_i T to M v_dot + c. What T adds to the energy
    is v^i dT/dv^i - T = M_ij v^i v^j / 2 - T0, so that the energy is conserved where T does not depend on t. Like a rotor's
    armature it acts within joints: no body feels it.
    """
    return KineticEnergy(name, _function(T, f"force {name!r}: T"))


def _function(f: Any, what: str) -> Callable[[Any], Any]:
    if not callable(f):
        raise ModelError(f"{what} must be a function of the kinematics, got {brief(f)}")
    return f


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
