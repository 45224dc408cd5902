"""Functions of the kinematics that files describe by names and numbers: lengths, couplings, springs, gravity compensation."""

from __future__ import annotations

from typing import Any, Protocol

import casadi as ca

from pfaffian.maths import so3
from pfaffian.model import reprs
from pfaffian.model.data import data


class Length(Protocol):
    """A length or an angle as a function of the kinematics, with its rate."""

    def length(self, k: Any) -> ca.SX: ...

    def rate(self, k: Any) -> ca.SX: ...


@data
class JointSum:
    """The length of a fixed tendon, sum of coef q over its joints; also a single coordinate.   coefs: (n, 1)."""

    joints: tuple[str, ...]
    coefs: ca.SX

    def length(self, k: Any) -> ca.SX:
        return ca.dot(self.coefs, ca.vertcat(*[k.joint(n) for n in self.joints]))

    def rate(self, k: Any) -> ca.SX:
        return ca.dot(self.coefs, ca.vertcat(*[k.joint_rate(n) for n in self.joints]))


@data
class LengthCoupling:
    """The residual phi(k) = (a - a0) - sum of coef_n (b - b0)^n of a polynomial coupling between two lengths a and b.

    coefs: (5, 1) of the powers 0 to 4.   starts: (2, 1) a0 and b0.   b: None for a constraint that keeps a constant.
    """

    a: Length
    b: Length | None
    coefs: ca.SX
    starts: ca.SX

    __repr__ = reprs.kind

    def __call__(self, k: Any) -> ca.SX:
        x = ca.SX(0) if self.b is None else self.b.length(k) - self.starts[1]
        polynomial, power = ca.SX(0), ca.SX(1)
        for n in range(5):
            polynomial += self.coefs[n] * power
            power = power * x
        return self.a.length(k) - self.starts[0] - polynomial


@data
class PiecewiseCoupling:
    """The residual phi(k) = q - (offset + sum of ratio q_n + f(q_of)) of a coordinate q that follows others.

    joint: of q.   joints: of the q_n.   ratios: (n, 1), None without these.   by: the joint of q_of.   pieces: (m, k) rows x,
    c0, c1, ... of f = c0 + c1 (q_of - x) + c2 (q_of - x)^2 ..., from x on and, in the first row, before it; None without f.
    """

    joint: str
    joints: tuple[str, ...]
    ratios: ca.SX | None
    offset: ca.SX
    by: str | None
    pieces: ca.SX | None

    __repr__ = reprs.kind

    def __call__(self, k: Any) -> ca.SX:
        whole = self.offset
        if self.ratios is not None:
            whole += ca.dot(self.ratios, ca.vertcat(*[k.joint(n) for n in self.joints]))
        if self.by is not None and self.pieces is not None:
            whole += _piecewise(self.pieces, k.joint(self.by))
        return k.joint(self.joint) - whole


@data
class PrescribedMotion:
    """The residual phi(k) = q - f(t) of a coordinate q whose motion is given.

    joint: of q.   pieces: (m, k) rows t0, c0, c1, ... of f, as in PiecewiseCoupling.
    """

    joint: str
    pieces: ca.SX

    __repr__ = reprs.kind

    def __call__(self, k: Any) -> ca.SX:
        return k.joint(self.joint) - _piecewise(self.pieces, k.t)


def _piecewise(pieces: ca.SX, x: ca.SX) -> ca.SX:
    """The value of a piecewise polynomial, chosen among those of all pieces."""
    found = ca.SX(0)
    for i in range(pieces.shape[0]):
        s, value = x - pieces[i, 0], ca.SX(0)
        for n in reversed(range(1, pieces.shape[1])):
            value = value * s + pieces[i, n]
        found = value if i == 0 else ca.if_else(x >= pieces[i, 0], value, found)
    return found


def one(name: str) -> JointSum:
    """The coordinate of a joint as a length."""
    return JointSum((name,), ca.SX.ones(1, 1))


@data
class GravityCompensation:
    """The potential V(k) = -force . x of a constant force at a body's mass centre x, which carries a part of its weight."""

    body: str
    com: ca.SX
    force: ca.SX

    @property
    def bodies(self) -> tuple[str]:
        return (self.body,)

    def __repr__(self) -> str:
        return f"<GravityCompensation: {self.body!r}>"

    def __call__(self, k: Any) -> ca.SX:
        return -ca.dot(self.force, k.position(self.body, self.com))


@data
class MotorGravityCompensation:
    """The force f(k) along a joint by which its motors compensate gravity within a range, less the compensation itself.

    turns: whether the joint turns or slides.   body: its child, in whose frame it has the `axis` (3, 1) through the `anchor`
    (3, 1).   bodies: those that it carries and that are compensated, by the `forces` (3, n) at their `points` (3, n).
    low, high: range of the motors; both zero without motors.
    """

    turns: bool
    body: str
    axis: ca.SX
    anchor: ca.SX
    bodies: tuple[str, ...]
    points: ca.SX
    forces: ca.SX
    low: ca.SX
    high: ca.SX

    def __repr__(self) -> str:
        return f"<MotorGravityCompensation: {self.body!r}>"

    def __call__(self, k: Any) -> ca.SX:
        axis, anchor, whole = k.rotation(self.body) @ self.axis, k.position(self.body, self.anchor), ca.SX(0)
        for i, name in enumerate(self.bodies):
            force = self.forces[:, i]
            arm = k.position(name, self.points[:, i]) - anchor
            whole += ca.dot(axis, ca.cross(arm, force) if self.turns else force)
        return ca.fmax(ca.fmin(whole, self.high), self.low) - whole


NEAR_ZERO = 1e-200
"""Added to squares of distances before their roots are taken, so that these have derivatives at zero too; elsewhere it rounds
away."""


# -- functions of a length --------------------------------------------------------------------------------------------


def _energy(coefs: ca.SX, x: ca.SX, square: ca.SX) -> ca.SX:
    """The energy, the sum of coefs_i x^(i + 2) / (i + 2), of a force with the coefficients coefs (n, 1) of x, x^2, ...

    x: (1, 1).   square: its square, which is smooth where x is not.
    """
    found = coefs[0] * square / 2
    for i in range(1, coefs.numel()):
        found += coefs[i] * square * x**i / (i + 2)
    return found


@data
class LengthSpring:
    """The potential V(k) of a spring on a length, whose force is a polynomial of x, the distance beyond `low` or `high`.

    stiffness: (n, 1) coefficients of x, x^2, ...; x is zero between `low` and `high`, and negative below.
    """

    along: Length
    stiffness: ca.SX
    low: ca.SX
    high: ca.SX

    __repr__ = reprs.kind

    def __call__(self, k: Any) -> ca.SX:
        x = self.along.length(k)
        if (self.low.is_zero() and self.high.is_zero()) or ca.is_equal(self.low, self.high):
            return _energy(self.stiffness, x - self.low, (x - self.low) ** 2)
        above, below = ca.fmax(x - self.high, 0), ca.fmax(self.low - x, 0)
        return _energy(self.stiffness, above - below, above**2 + below**2)


@data
class LengthDamper:
    """The dissipation function R(k) of a damper on a length, whose force is a polynomial of the rate.

    damping: (n, 1) coefficients of rate, rate |rate|, rate |rate|^2, ...
    """

    along: Length
    damping: ca.SX

    __repr__ = reprs.kind

    def __call__(self, k: Any) -> ca.SX:
        rate = self.along.rate(k)
        return _energy(self.damping, ca.SX(ca.fabs(rate)), rate**2)


@data
class ActuatorBias:
    """The potential V(k) = -(constant x + slope x^2 / 2) of an actuator's force constant + slope x, x being its length.

    actuator: name of its input, None if it has none.   gear: force along the length per unit of the input.
    """

    along: Length
    constant: ca.SX
    slope: ca.SX
    actuator: str | None
    gear: ca.SX

    __repr__ = reprs.kind

    def __call__(self, k: Any) -> ca.SX:
        x = self.along.length(k)
        return -(self.constant * x + self.slope * x**2 / 2)

    def force(self, k: Any) -> ca.SX:
        """(1, 1) the force along the length."""
        return self.constant + self.slope * self.along.length(k)


@data
class ActuatorDamping:
    """The dissipation function R(k) = damping rate^2 / 2 of the part of an actuator's force that damps.

    actuator, gear: as in ActuatorBias.
    """

    along: Length
    damping: ca.SX
    actuator: str | None
    gear: ca.SX

    __repr__ = reprs.kind

    def __call__(self, k: Any) -> ca.SX:
        return self.damping * self.along.rate(k) ** 2 / 2

    def force(self, k: Any) -> ca.SX:
        """(1, 1) the force along the length."""
        return -self.damping * self.along.rate(k)


@data
class LengthInertia:
    """The kinetic energy T(k) = a rate^2 / 2 of an inertia a along a length."""

    along: Length
    inertia: ca.SX

    __repr__ = reprs.kind

    def __call__(self, k: Any) -> ca.SX:
        return self.inertia * self.along.rate(k) ** 2 / 2


@data
class TurnSpring:
    """The potential V(k) of a spring on the orientation of a joint; on a free joint also on its position.

    stiffness: (n, 1) coefficients of the angle and its powers, of the distance too.
    rest: (4, 1) quaternion, or (7, 1) position and quaternion.
    """

    joint: str
    stiffness: ca.SX
    rest: ca.SX

    def __repr__(self) -> str:
        return f"<TurnSpring: {self.joint!r}>"

    def __call__(self, k: Any) -> ca.SX:
        q = k.joint(self.joint)
        turn = so3.quat_log(so3.quat_mul(so3.quat_conj(self.rest[-4:]), q[-4:]))
        away = q[:-4] - self.rest[:-4]
        squares = [ca.SX(ca.sumsqr(x)) for x in (turn, away) if x.numel()]
        return sum((_energy(self.stiffness, ca.sqrt(x + NEAR_ZERO), x) for x in squares), ca.SX(0))


@data
class FreeArmature:
    """The kinetic energy T(k) = sum of a_i v_i^2 / 2 of an armature on the six velocities of a free joint."""

    joint: str
    inertia: ca.SX

    def __repr__(self) -> str:
        return f"<FreeArmature: {self.joint!r}>"

    def __call__(self, k: Any) -> ca.SX:
        return ca.dot(self.inertia, k.joint_rate(self.joint) ** 2) / 2
