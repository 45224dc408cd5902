"""Forces of a fluid on a body: quadratic drag, and the thrust and torque of a propeller."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca

from pfaffian.errors import ModelError, brief, is_one_of
from pfaffian.model import reprs
from pfaffian.model.data import data
from pfaffian.model.force import Wrench, wrench
from pfaffian.model.number import Scalar, direction, not_negative, scalar, vector
from pfaffian.model.ranges import Range
from pfaffian.model.traced_function import untraced
from pfaffian.model.user_functions import call_for_column

AIR = 1.225
"""Density of air at sea level and 15 degrees C [kg/m^3]."""

SPEED_SMOOTHING = 1e-12
"""Smoothing of the speed |w| [m/s], which gives it a derivative at rest."""


def drag(
    name: str, body: str, area: Scalar, *, coefficient: Scalar = 1.0, density: Scalar = AIR, point: Any = (0, 0, 0),
    wind: Any = (0, 0, 0),
) -> Wrench:  # fmt: skip
    """The quadratic drag of a fluid on a body.

        F = -rho C A |w| w / 2 at the centre of pressure, w = v - wind the velocity of that point relative to the fluid

    Args:
        name: of the force.
        body: name of the body.
        area: A [m^2], the same for all directions of w.
        coefficient: C [1]; default 1.
        density: rho of the fluid [kg/m^3]; default 1.225, air at sea level and 15 degrees C.
        point: (3,) the centre of pressure, in the body's frame [m]; default its origin.
        wind: (3,) velocity of the fluid, world axes [m/s]; or a function f(k) of the mechanism's Kinematics that returns it,
            such as a `gust`; default zero.
    Returns:
        Wrench, for `forces` of a mechanism.
    Raises ModelError: a number below zero, or a wind of neither form.

    Example:
        >>> import pfaffian as pf
        >>> rail = pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> m = pf.mechanism("cart", [pf.body("cart", 2.0)], [rail], forces=[pf.forces.drag("air", "cart", 0.5, density=1.0)])
        >>> float(pf.compile_terms(m, {"f": lambda T: T.f}, backend="numpy")([0.0], [4.0])["f"])  # -0.5 * 4^2 / 2
        -4.0
    """
    what = f"force {name!r}"
    words = (("area", area), ("coefficient", coefficient), ("density", density))
    A, C, rho = (not_negative(x, f"{what}: {word}") for word, x in words)
    centre = vector(point, 3, f"{what}: point")
    velocity = wind if callable(wind) else vector(wind, 3, f"{what}: wind")
    return wrench(name, body, Drag(body, centre, rho * C * A / 2, velocity), point=centre)


def propeller(
    name: str, body: str, speed: Any, *, thrust: Scalar, torque: Scalar = 0.0, handed: str = "right", axis: Any = (0, 0, 1),
    point: Any = (0, 0, 0),
) -> Wrench:  # fmt: skip
    """The thrust of a propeller along an axis of a body, and its torque against the rotation.

        thrust k_T |w| w along the axis,  torque -k_M |w| w about it

    Args:
        name: of the force.
        body: name of the body that carries the propeller, or is the propeller.
        speed: w [rad/s] about the axis: the name of a joint whose rate it is, a number or Parameter, or a function f(k) of the
            mechanism's Kinematics that returns it.
        thrust: k_T [N s^2/rad^2].
        torque: k_M [N m s^2/rad^2]; default 0.
        handed: "right" (default), or "left" for a propeller that pushes along its axis when w is negative.
        axis: (3,) in the body's frame, of any length but zero; default z.
        point: (3,) at which the thrust acts, in the body's frame [m]; default its origin.
    Returns:
        Wrench, for `forces` of a mechanism.
    Raises ModelError: a coefficient below zero, an axis that is zero, a speed or `handed` of another form.

    Example:
        >>> import pfaffian as pf
        >>> rail = pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> fan = pf.forces.propeller("fan", "cart", 100.0, thrust=1e-3, axis=(1, 0, 0))
        >>> m = pf.mechanism("cart", [pf.body("cart", 2.0)], [rail], forces=[fan])
        >>> round(float(pf.compile_terms(m, {"f": lambda T: T.f}, backend="numpy")([0.0], [0.0])["f"]), 6)  # 1e-3 * 100^2
        10.0
    """
    what = f"force {name!r}"
    if not is_one_of(handed, ("right", "left")):
        raise ModelError(f"{what}: handed {brief(handed)} must be right or left")
    k_T, k_M = not_negative(thrust, f"{what}: thrust"), not_negative(torque, f"{what}: torque")
    w = speed if isinstance(speed, str) or callable(speed) else scalar(speed, f"{what}: speed")
    law = Propeller(w, direction(axis, f"{what}: axis"), k_T if handed == "right" else -k_T, k_M)
    return wrench(name, body, law, point=point, axes="LOCAL")


@data
class Drag:
    """f(k) of quadratic drag: the wrench at the centre of pressure, world axes.

    point: (3, 1) centre of pressure, in the body [m].
    factor: rho C A / 2 [kg/m].
    wind: (3, 1) velocity of the fluid [m/s], or a function of Kinematics giving it.
    """

    body: str
    point: ca.SX
    factor: ca.SX
    wind: ca.SX | Callable[[Any], Any]

    @property
    def ranges(self) -> tuple[Range, ...]:
        """What its numbers must be."""
        return (Range("area times coefficient times density", 2 * self.factor), *getattr(untraced(self.wind), "ranges", ()))

    def __repr__(self) -> str:
        wind = reprs.function(self.wind) if callable(self.wind) else reprs.number(self.wind, "m/s")
        return reprs.words(self, reprs.number(self.factor, "kg/m"), f"wind {wind}")

    def __call__(self, k: Any) -> ca.SX:
        wind = call_for_column(self.wind, "wind", k) if callable(self.wind) else self.wind
        if wind.numel() != 3:
            raise ModelError(f"wind: its function must return 3 numbers, got {wind.numel()}")
        w = k.velocity(self.body, self.point) - wind
        return ca.vertcat(-self.factor * ca.sqrt(ca.sumsqr(w) + SPEED_SMOOTHING**2) * w, ca.SX.zeros(3, 1))


@data
class Propeller:
    """f(k) of a propeller: the wrench along its body's axes.

    speed: name of the joint whose rate it is, a number, or a function of Kinematics giving it [rad/s].
    axis: (3, 1) unit vector.
    thrust: k_T [N s^2/rad^2], negative for a left-handed propeller.
    torque: k_M [N m s^2/rad^2].
    """

    speed: str | ca.SX | Callable[[Any], Any]
    axis: ca.SX
    thrust: ca.SX
    torque: ca.SX

    @property
    def ranges(self) -> tuple[Range, ...]:
        """What its numbers must be; a thrust has either sign."""
        return (Range("torque", self.torque),)

    @property
    def joints(self) -> tuple[str, ...]:
        return (self.speed,) if isinstance(self.speed, str) else ()

    def __repr__(self) -> str:
        if isinstance(self.speed, str):
            speed = f"rate of {self.speed!r}"
        else:
            speed = reprs.function(self.speed) if callable(self.speed) else reprs.number(self.speed, "rad/s")
        return reprs.words(self, f"speed {speed}", f"along {reprs.number(self.axis)}", f"thrust {reprs.number(self.thrust)}")

    def __call__(self, k: Any) -> ca.SX:
        w = k.joint_rate(self.speed) if isinstance(self.speed, str) else self.speed
        w = call_for_column(w, "speed", k) if callable(w) else w
        if w.numel() != 1:
            raise ModelError(f"speed: one number is needed, got {w.numel()}")
        square = ca.fabs(w) * w
        return ca.vertcat(self.thrust * square * self.axis, -self.torque * square * self.axis)
