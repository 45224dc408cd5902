"""Dry friction, regularised at rest: Coulomb friction with the Stribeck effect, plus viscous friction."""

from __future__ import annotations

from typing import Any

import casadi as ca

from pfaffian.errors import ModelError
from pfaffian.model import reprs
from pfaffian.model.data import data
from pfaffian.model.force import GeneralisedForce, Wrench, wrench
from pfaffian.model.number import Scalar, at_defaults, direction, not_negative, positive, vector
from pfaffian.model.ranges import Range

SMOOTH = 1e-3
"""[m/s, rad/s] Speed below which friction grows with the speed, by default."""


@data
class Sliding:
    """The friction law -(C + (S - C) exp(-(|s| / s_S)^2)) s / sqrt(|s|^2 + s_0^2) - d s for a sliding velocity s.

    sliding: C, sliding friction [N, N m].
    static: S, static friction [N, N m].
    stribeck: s_S [m/s, rad/s], the speed at which the difference S - C has dropped by 63 %.
    viscous: d [N s/m, N m s].
    smooth: s_0 [m/s, rad/s]. A body on a slope creeps at about s_0 tan(slope) / friction coefficient instead of sticking.
    """

    sliding: ca.SX
    static: ca.SX
    stribeck: ca.SX
    viscous: ca.SX
    smooth: ca.SX

    @property
    def ranges(self) -> tuple[Range, ...]:
        """What its numbers must be."""
        excess = Range("static friction less sliding friction", self.static - self.sliding)
        above = Range("stribeck", self.stribeck, above=True), Range("smooth", self.smooth, above=True)
        return Range("sliding friction", self.sliding), excess, Range("viscous", self.viscous), *above

    def __repr__(self) -> str:
        return ", ".join(f"{word} {reprs.number(getattr(self, word))}" for word in ("sliding", "static", "viscous"))

    def __call__(self, s: ca.SX) -> ca.SX:
        speed2 = ca.sumsqr(s)
        dry = self.sliding + (self.static - self.sliding) * ca.exp(-speed2 / self.stribeck**2)
        return -(dry / ca.sqrt(speed2 + self.smooth**2) + self.viscous) * s


def joint_friction(
    name: str, joint: str, sliding: Scalar, *, static: Scalar | None = None, stribeck: Scalar = 0.01, viscous: Scalar = 0.0,
    smooth: Scalar = SMOOTH,
) -> GeneralisedForce:  # fmt: skip
    """Dry and viscous friction in a joint of one degree of freedom, against its rate s and smooth at rest.

        -(C + (S - C) exp(-(|s| / stribeck)^2)) s / sqrt(s^2 + smooth^2) - viscous s,   C sliding, S static friction

    Args:
        name: unique among the forces.
        joint: name of the joint.
        sliding: friction while the joint moves [N or N m].
        static: friction at the onset of motion [N or N m]; equal to `sliding` if None.
        stribeck: speed over which static friction drops to sliding friction [m/s, rad/s], 0.01 by default.
        viscous: coefficient of viscous friction [N s/m, N m s], zero by default.
        smooth: speed below which friction grows with the speed [m/s, rad/s], 0.001 by default; friction is complete well
            above it. An explicit integrator chatters about rest if its step exceeds about 2.7 smooth inertia / static.
    Raises ModelError: a number below zero, a speed that is zero, static friction below sliding friction.

    Example:
        >>> import pfaffian as pf
        >>> cart, rail = pf.body("cart", mass=2.0), pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> m = pf.mechanism("cart", [cart], [rail], forces=[pf.forces.joint_friction("seal", "rail", 4.0)])
        >>> pf.forward_dynamics(m, [0.0], [1.0]).v_dot.round(3)  # -4 N on 2 kg
        array([-2.])
    """
    what = f"force {name!r}"
    return GeneralisedForce(name, JointFriction(joint, sliding_law(what, sliding, static, stribeck, viscous, smooth)), joint)


def contact_friction(
    name: str, body: str, on: str, *, normal: Any, load: Scalar, coefficient: Scalar, static: Scalar | None = None,
    point: Any = (0, 0, 0), stribeck: Scalar = 0.01, viscous: Scalar = 0.0, smooth: Scalar = SMOOTH,
) -> Wrench:  # fmt: skip
    """Friction between a point of one body and the surface of another, pressed together by a constant load.

    The law is that of `joint_friction`. Its velocity s is that of the point along the surface, and its friction forces are the
    coefficients times the load.

    Args:
        name: unique among the forces.
        body: name of the body that slides.
        on: name of the body on which it slides, and which takes the opposite force.
        normal: (3,) of the surface, along the axes of `on`, of any length.
        load: force that presses the bodies together [N].
        coefficient: sliding friction per load [1].
        static: static friction per load [1]; equal to `coefficient` if None.
        point: (3,) of the sliding body, in its frame [m]; its origin by default.
        stribeck: speed over which static friction drops to sliding friction [m/s], 0.01 by default.
        viscous: coefficient of viscous friction [N s/m], zero by default.
        smooth: speed below which friction grows with the speed [m/s], 0.001 by default; friction is complete well above it.
    Raises ModelError: a number below zero, a speed that is zero, static friction below sliding friction, a zero normal.

    Example:
        >>> import pfaffian as pf
        >>> cart, rail = pf.body("cart", mass=2.0), pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> brake = pf.forces.contact_friction("brake", "cart", "world", normal=(0, 0, 1), load=20.0, coefficient=0.2)
        >>> m = pf.mechanism("cart", [cart], [rail], forces=[brake])
        >>> pf.forward_dynamics(m, [0.0], [1.0]).v_dot.round(3)  # -0.2 * 20 / 2
        array([-2.])
    """
    what = f"force {name!r}"
    n = direction(normal, f"{what}: normal")
    N = not_negative(load, f"{what}: load")
    mu = sliding_law(what, coefficient, static, stribeck, 0.0, smooth)
    law = Sliding(N * mu.sliding, N * mu.static, mu.stribeck, not_negative(viscous, f"{what}: viscous"), mu.smooth)
    contact = vector(point, 3, f"{what}: point")
    return wrench(name, body, ContactFriction(body, on, contact, n, law), point=contact, by=on)


@data
class JointFriction:
    """f(k) of friction in a joint, along the joint's velocity."""

    joint: str
    law: Sliding

    @property
    def ranges(self) -> tuple[Range, ...]:
        """What its numbers must be."""
        return self.law.ranges

    def __repr__(self) -> str:
        return reprs.words(self, repr(self.law))

    def __call__(self, k: Any) -> ca.SX:
        rate = k.joint_rate(self.joint)
        if rate.numel() != 1:
            raise ModelError(
                f"joint {self.joint!r} has {rate.numel()} velocities; joint_friction is for one, use generalised_force(...)"
            )
        return self.law(rate)


@data
class ContactFriction:
    """f(k) of friction at a point that slides on a surface: a force in the surface's plane, world axes."""

    body: str
    on: str
    point: ca.SX
    normal: ca.SX
    law: Sliding

    @property
    def ranges(self) -> tuple[Range, ...]:
        """What its numbers must be."""
        return self.law.ranges

    def __repr__(self) -> str:
        return reprs.words(self, f"normal {reprs.number(self.normal)}", repr(self.law))

    def __call__(self, k: Any) -> ca.SX:
        n = k.rotation(self.on) @ self.normal
        on_surface = k.rotation(self.on).T @ k.line(self.on, self.body, point_b=self.point)
        s = k.velocity(self.body, self.point) - k.velocity(self.on, on_surface)
        return ca.vertcat(self.law(s - n * ca.dot(n, s)), ca.SX.zeros(3, 1))


def sliding_law(what: str, sliding: Any, static: Any, stribeck: Any, viscous: Any, smooth: Any) -> Sliding:
    """A friction law from the arguments of the public functions, checked.   what: the label of the force in error messages."""
    C = not_negative(sliding, f"{what}: sliding friction")
    S = C if static is None else not_negative(static, f"{what}: static friction")
    excess = at_defaults(S - C)
    if excess is not None and excess.item() < 0:
        raise ModelError(f"{what}: static friction is less than sliding friction by {-excess.item():g}")
    speeds = positive(stribeck, f"{what}: stribeck"), positive(smooth, f"{what}: smooth")
    return Sliding(C, S, speeds[0], not_negative(viscous, f"{what}: viscous"), speeds[1])
