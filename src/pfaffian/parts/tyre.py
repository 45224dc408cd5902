"""A tyre that slips on a plane: the magic formula along the direction of slip, times the load that presses it down.

Let (v_x, v_y) be the slip velocity of the contact point along the wheel's heading and sideways, and V the speed of the wheel's
centre along its heading. Then

    s = |(v_x, v_y)| / sqrt(V^2 + V_0^2),   F = -mu N sin(C atan(B s - E (B s - atan(B s)))) (v_x, v_y) / |(v_x, v_y)|

For pure longitudinal or lateral slip this is the magic formula [Pacejka 2012, 4.E1]. For combined slip the force of the magic
formula is directed against the slip velocity (similarity). The model is one of steady slip, without relaxation, camber thrust
or self-aligning moment.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca

from pfaffian.errors import ModelError
from pfaffian.model import reprs
from pfaffian.model.data import data
from pfaffian.model.force import Wrench, wrench
from pfaffian.model.number import Scalar, not_negative, positive, scalar
from pfaffian.model.ranges import Range
from pfaffian.model.user_functions import call_for_column
from pfaffian.parts.wheels import FLOOR, Disk, Plane, circle

SLIP_SMOOTHING = 1e-9
"""[m/s] Smoothing of the slip speed, which gives the force a derivative at zero slip."""


@data
class TyreForce:
    """f(k) of a tyre: the wrench about the wheel's centre, world axes.

    load: N [N], a number or a function of Kinematics giving it.
    friction: mu.
    shape: (B, C, E).
    speed: V_0 [m/s].
    """

    disk: Disk
    load: ca.SX | Callable[[Any], Any]
    friction: ca.SX
    shape: tuple[ca.SX, ca.SX, ca.SX]
    speed: ca.SX

    @property
    def ranges(self) -> tuple[Range, ...]:
        """What its numbers must be."""
        load = () if callable(self.load) and not isinstance(self.load, ca.SX) else (Range("load", self.load),)
        return *load, Range("friction", self.friction), Range("speed", self.speed, above=True)

    def __call__(self, k: Any) -> ca.SX:
        arm, heading, sideways = self.disk.contact(k)
        centre, slip = k.rotation(self.disk.body) @ self.disk.centre, self.disk.plane.slip(k, self.disk.body, arm)
        sliding = heading * ca.dot(heading, slip) + sideways * ca.dot(sideways, slip)
        along = ca.dot(heading, self.disk.plane.slip(k, self.disk.body, centre))
        rate = ca.sqrt(ca.sumsqr(sliding) + SLIP_SMOOTHING**2)
        N = call_for_column(self.load, "load", k) if callable(self.load) else self.load
        if N.numel() != 1:
            raise ModelError(f"load: its function must return one number, got {N.numel()}")
        s = rate / ca.sqrt(along**2 + self.speed**2)
        F = -self.friction * N * magic_formula(self.shape, s) * sliding / rate
        return ca.vertcat(F, ca.cross(arm - centre, F))

    def __repr__(self) -> str:
        load = reprs.function(self.load) if callable(self.load) else reprs.number(self.load, "N")
        return reprs.words(self, f"load {load}", f"friction {reprs.number(self.friction)}")


def magic_formula(shape: tuple[ca.SX, ca.SX, ca.SX], s: ca.SX) -> ca.SX:
    """(1, 1) the force per largest force at a slip s.   shape: (B, C, E)."""
    B, C, E = shape
    x = B * s
    return ca.sin(C * ca.atan(x - E * (x - ca.atan(x))))


def magic_numbers(what: str, stiffness: Any, shape: Any, curvature: Any) -> tuple[ca.SX, ca.SX, ca.SX]:
    """(B, C, E) of the magic formula, checked.   what: the label of the force in error messages."""
    E = scalar(curvature, f"{what}: curvature")
    if E.is_constant() and float(E) > 1:
        raise ModelError(f"{what}: curvature must be at most 1, got {float(E):g}: the force would change its sign")
    C = positive(shape, f"{what}: shape")
    if C.is_constant() and float(C) > 2:
        raise ModelError(f"{what}: shape must be at most 2, got {float(C):g}: the force would push at large slip")
    return positive(stiffness, f"{what}: stiffness"), C, E


def tyre(
    name: str, wheel: str, radius: Scalar, *, load: Any, friction: Scalar = 1.0, stiffness: Scalar = 10.0, shape: Scalar = 1.3,
    curvature: Scalar = 0.0, speed: Scalar = 0.5, axis: Any = (0, 1, 0), centre: Any = (0, 0, 0), plane: Plane = FLOOR,
) -> Wrench:  # fmt: skip
    """The force of a tyre that slips longitudinally and laterally on a plane, by the magic formula. [Pacejka 2012, 4.E1]

        |F| = mu N sin(C atan(B s - E (B s - atan(B s)))) against the slip s, which is relative to the speed of the wheel

    A small slip angle a gives the side force mu N B C a. The force that carries the wheel is not included: the load N is given.

    Args:
        name: of the force.
        wheel: name of the body of the wheel, which spins.
        radius: [m].
        load: N [N]: a number or Parameter, or a function f(k) of the mechanism's Kinematics that returns it.
        friction: mu, the largest force per load [1]; 1 by default.
        stiffness: B [1]; 10 by default.
        shape: C [1], at most 2; 1.3 by default. Above 1 the force falls beyond its peak.
        curvature: E [1], at most 1; 0 by default.
        speed: V_0, wheel speed below which the slip is no longer relative to the wheel's speed [m/s], 0.5 by default.
        axis: (3,) of the wheel, in its frame; y by default.
        centre: (3,) of the wheel, in its frame [m]; its origin by default.
        plane: on which it rolls, made by `pf.rolling.plane`; the world's plane z = 0 by default.
    Returns: a wrench, for `forces` of a mechanism.
    Raises ModelError: a number out of its range, an axis that is zero.

    Example:
        A locked wheel of 20 kg slides at 10 m/s; its acceleration is -0.8 * 200 / 20 sin(1.3 atan(10)):

        >>> import pfaffian as pf
        >>> base = pf.joint("base", "translation", "world", "wheel")
        >>> road = pf.forces.tyre("tyre", "wheel", 0.3, load=200.0, friction=0.8)
        >>> m = pf.mechanism("wheel", [pf.body("wheel", 20.0)], [base], forces=[road])
        >>> round(float(pf.forward_dynamics(m, [0, 0, 0.3], [10.0, 0, 0]).v_dot[0]), 3)
        -7.538
    """
    what = f"force {name!r}"
    numbers = magic_numbers(what, stiffness, shape, curvature)
    N = load if callable(load) and not isinstance(load, ca.SX) else not_negative(load, f"{what}: load")
    disk = circle(what, wheel, radius, axis, centre, plane)
    law = TyreForce(disk, N, not_negative(friction, f"{what}: friction"), numbers, positive(speed, f"{what}: speed"))
    return wrench(name, wheel, law, point=centre, by=disk.plane.on)
